//! Which report of one side stands for which of the other.

use std::collections::{BTreeMap, BTreeSet};

use super::sides::Reports;
use crate::ui::error::Error;
use judge::diff::Side;
use record::StoreError;

/// Reports that stand for each other on both sides.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) both: Vec<(Side, Side)>,
    /// Experiments of the older side alone.
    pub(super) gone: Vec<String>,
    /// Experiments of the newer side alone.
    pub(super) new: Vec<String>,
    /// Why some of these cannot be compared, although both sides may have them.
    pub(super) unread: BTreeMap<String, StoreError>,
}

/// Reports that can be compared, by the names of their folders.
type Readable = BTreeMap<String, Side>;

impl Pairs {
    /// Takes out what a side has in a format that is no longer read: new where only the older side's is, else gone.
    fn leave_out(&mut self, baseline: Reports, candidate: Reports) -> [Readable; 2] {
        let [(mut baseline, older), (mut candidate, newer)] = [split(baseline), split(candidate)];
        for (folder, error) in older {
            let side = if candidate.remove(&folder).is_some() { &mut self.new } else { &mut self.gone };
            side.push(folder.clone());
            self.unread.insert(folder, error);
        }
        for (folder, error) in newer {
            baseline.remove(&folder);
            if self.unread.insert(folder.clone(), error).is_none() {
                self.gone.push(folder);
            }
        }
        [baseline, candidate]
    }
}

fn split(reports: Reports) -> (Readable, BTreeMap<String, StoreError>) {
    let (mut readable, mut unread) = (Readable::new(), BTreeMap::new());
    for (folder, side) in reports {
        match side {
            Ok(side) => drop(readable.insert(folder, side)),
            Err(error) => drop(unread.insert(folder, error)),
        }
    }
    (readable, unread)
}

/// Pairs the reports of both sides, of the experiments that are wanted.
///
/// # Errors
///
/// An experiment that neither side has.
pub(super) fn pair(mut baseline: Reports, mut candidate: Reports, wanted: &[String]) -> Result<Pairs, Error> {
    let name = |folder: &String, side: &Result<Side, StoreError>| match side {
        Ok(side) => side.results.experiment.clone(),
        // `x@laptop` is the report of `x` on another machine.
        Err(_) => folder.split('@').next().unwrap_or_default().to_owned(),
    };
    let known: BTreeSet<String> = baseline.iter().chain(&candidate).map(|(folder, side)| name(folder, side)).collect();
    if let Some(unknown) = wanted.iter().find(|name| !known.contains(*name)) {
        let known: Vec<String> = known.into_iter().collect();
        let help = if known.is_empty() {
            "there are no reports".to_owned()
        } else {
            format!("known experiments: {}", known.join(", "))
        };
        return Err(Error::refused(format!("neither side has a report of `{unknown}`"), help));
    }
    for reports in [&mut baseline, &mut candidate] {
        reports.retain(|folder, side| wanted.is_empty() || wanted.contains(&name(folder, side)));
    }
    let mut pairs = Pairs::default();
    let [baseline, mut candidate] = pairs.leave_out(baseline, candidate);
    // Two single reports are compared whatever they are called.
    if baseline.len() == 1 && candidate.len() == 1 && pairs.unread.is_empty() {
        pairs.both.extend(baseline.into_values().zip(candidate.into_values()));
        return Ok(pairs);
    }
    // Folders of one name first, then what is left of one experiment.
    let (same, unpaired): (Readable, Readable) =
        baseline.into_iter().partition(|(folder, _)| candidate.contains_key(folder));
    for (folder, side) in same.into_iter().chain(unpaired) {
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
