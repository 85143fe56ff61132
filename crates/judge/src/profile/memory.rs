//! What the memory of a cell is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use record::profiled::CellProfile;
use statistics::quantile::median;
use worker::backend::trace::Resident;

/// The parts of the peak of the resident memory without the profiler, in bytes: they add up to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Libraries, inputs and the process itself, before the model was loaded.
    pub before_load: f64,
    /// What loading the model added.
    pub loading: f64,
    /// What running it added.
    pub running: f64,
    /// What the runtime handed out in the first inference; absent where it does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arena: Option<Arena>,
}

/// What the runtime handed out in the first inference, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arena {
    /// In use before the first node ran.
    pub weights: u64,
    /// The most that was in use besides the weights.
    pub activations: u64,
    /// The node at whose end that was.
    pub node: String,
    /// The most that was held, in use or not.
    pub held: u64,
    /// In use besides the weights, over the nodes: the most of each of at most 64 stretches.
    pub live: Vec<u64>,
}

impl Memory {
    pub fn peak(&self) -> f64 {
        self.before_load + self.loading + self.running
    }
}

/// The parts of a cell's memory; `None` where its resident memory is not known.
pub fn memory(profile: &CellProfile) -> Option<Memory> {
    let typical = |bytes_at: fn(&Resident) -> u64| {
        median(&profile.resident.iter().map(|at| bytes_at(at) as f64).collect::<Vec<_>>())
    };
    let before_load = typical(|at| at.before_load_bytes)?;
    let loaded = typical(|at| at.loaded_bytes)?.max(before_load);
    let peak = typical(|at| at.peak_bytes)?.max(loaded);
    Some(Memory { before_load, loading: loaded - before_load, running: peak - loaded, arena: arena(profile) })
}

fn arena(profile: &CellProfile) -> Option<Arena> {
    let arena = profile.arena?;
    let nodes = profile.nodes.iter();
    let live: Vec<(&str, u64)> = nodes
        .filter_map(|node| Some((node.node.path.as_str(), node.node.live_bytes?.saturating_sub(arena.before_bytes))))
        .collect();
    let (node, activations) = live.iter().max_by_key(|(_, bytes)| *bytes)?;
    Some(Arena {
        weights: arena.before_bytes,
        activations: *activations,
        node: (*node).to_owned(),
        held: arena.held_bytes,
        live: stretches(&live.iter().map(|(_, bytes)| *bytes).collect::<Vec<_>>()),
    })
}

/// The largest values of equally long stretches.
fn stretches(values: &[u64]) -> Vec<u64> {
    const MOST: usize = 64;
    let length = values.len().div_ceil(MOST).max(1);
    values.chunks(length).filter_map(|part| part.iter().copied().max()).collect()
}
