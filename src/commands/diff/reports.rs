//! Which report of one side stands for which of the other.

use std::collections::BTreeSet;

use super::sides::Reports;
use crate::ui::error::Error;
use judge::diff::Side;

/// Reports that stand for each other on both sides.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) both: Vec<(Side, Side)>,
    /// Experiments of the older side alone.
    pub(super) gone: Vec<String>,
    /// Experiments of the newer side alone.
    pub(super) new: Vec<String>,
}

/// Pairs the reports of both sides, of the experiments that are wanted.
///
/// # Errors
///
/// An experiment that neither side has.
pub(super) fn pair(mut baseline: Reports, mut candidate: Reports, wanted: &[String]) -> Result<Pairs, Error> {
    let is_wanted = |side: &Side| wanted.is_empty() || wanted.contains(&side.results.experiment);
    let known: BTreeSet<String> =
        baseline.values().chain(candidate.values()).map(|side| side.results.experiment.clone()).collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(*name)) {
        let known: Vec<String> = known.into_iter().collect();
        let help = if known.is_empty() {
            "there are no reports".to_owned()
        } else {
            format!("known experiments: {}", known.join(", "))
        };
        return Err(Error::refused(format!("neither side has a report of `{unknown}`"), help));
    }
    baseline.retain(|_, side| is_wanted(side));
    candidate.retain(|_, side| is_wanted(side));
    let mut pairs = Pairs::default();
    // Two single reports are compared whatever they are called.
    if baseline.len() == 1 && candidate.len() == 1 {
        pairs.both.extend(baseline.into_values().zip(candidate.into_values()));
        return Ok(pairs);
    }
    // Folders of one name first, then what is left of one experiment.
    let (same, others): (Reports, Reports) =
        baseline.into_iter().partition(|(folder, _)| candidate.contains_key(folder));
    for (folder, side) in same.into_iter().chain(others) {
        let name = candidate.contains_key(&folder).then(|| folder.clone());
        // A single report finds its experiment wherever it lies; that of the same machine first.
        let alike = || {
            let same = candidate.iter().filter(|(_, other)| other.results.experiment == side.results.experiment);
            let is_here = |other: &Side| other.results.provenance.machine == side.results.provenance.machine;
            same.max_by_key(|(_, other)| is_here(other)).map(|(folder, _)| folder.clone())
        };
        match name.or_else(alike).and_then(|name| candidate.remove(&name)) {
            Some(other) => pairs.both.push((side, other)),
            None => pairs.gone.push(side.results.experiment.clone()),
        }
    }
    pairs.new.extend(candidate.into_values().map(|side| side.results.experiment));
    Ok(pairs)
}
