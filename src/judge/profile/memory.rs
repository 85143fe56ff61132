//! What the memory of a cell is made of.

use statistics::quantile::median;

use crate::record::profiled::CellProfile;
use crate::worker::backend::trace::Resident;

/// The parts of the peak of the resident memory, in bytes: they add up to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MemoryParts {
    /// Libraries, inputs and the process itself.
    pub(crate) before_load: f64,
    /// What loading the model added.
    pub(crate) loading: f64,
    /// What running it added.
    pub(crate) running: f64,
    /// What the runtime handed out; `None` where it does not tell it.
    pub(crate) arena: Option<ArenaParts>,
}

/// What the runtime handed out in the first inference, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArenaParts {
    /// In use before the first node ran.
    pub(crate) weights: u64,
    /// The most that was in use besides, and the node at whose end it was.
    pub(crate) activations: u64,
    pub(crate) node: String,
    /// The most that was held.
    pub(crate) held: u64,
    /// In use besides the weights at the end of each node.
    pub(crate) live: Vec<u64>,
}

/// The parts of a cell's memory; `None` where its resident memory is not known.
pub(crate) fn memory(profile: &CellProfile) -> Option<MemoryParts> {
    let typical =
        |of: fn(&Resident) -> u64| median(&profile.resident.iter().map(|at| of(at) as f64).collect::<Vec<_>>());
    let before_load = typical(|at| at.before_load_bytes)?;
    let loaded = typical(|at| at.loaded_bytes)?.max(before_load);
    let peak = typical(|at| at.peak_bytes)?.max(loaded);
    Some(MemoryParts { before_load, loading: loaded - before_load, running: peak - loaded, arena: arena(profile) })
}

fn arena(profile: &CellProfile) -> Option<ArenaParts> {
    let arena = profile.arena?;
    // Nodes in others allocate within these.
    let outer = profile.nodes.iter().filter(|node| !node.node.path.contains('/'));
    let live: Vec<(&str, u64)> = outer
        .filter_map(|node| Some((node.node.path.as_str(), node.node.live_bytes?.saturating_sub(arena.before_bytes))))
        .collect();
    let (node, activations) = live.iter().max_by_key(|(_, bytes)| *bytes)?;
    Some(ArenaParts {
        weights: arena.before_bytes,
        activations: *activations,
        node: (*node).to_owned(),
        held: arena.held_bytes,
        live: live.iter().map(|(_, bytes)| *bytes).collect(),
    })
}
