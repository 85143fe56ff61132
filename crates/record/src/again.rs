//! A complete record in which something failed goes on as another one: what failed is measured again, with what it is compared
//! with, and the rest is taken over. The first one stays as it is.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::found::{Compared, Rates, Searched};
use super::journal::{self, Outcome, StoredRun};
use super::{Invocation, LocalPaths, Manifest, Record, StoreError, read_versioned, write_whole};

impl Record {
    /// The groups of cells that failed, and of those that had to be left out because another one failed.
    pub fn failed_groups(&self) -> BTreeSet<u32> {
        let plan = &self.manifest.plan;
        let ids: BTreeSet<_> =
            self.runs.iter().filter(|run| run.outcome == Outcome::Failed).map(|run| run.cell).collect();
        let of_runs = plan.cells.iter().filter(|cell| ids.contains(&cell.id)).map(|cell| cell.group);
        let left_out = self.manifest.findings.rehearsal.iter().flat_map(|found| &found.too_large);
        of_runs.chain(left_out.filter_map(|known| Some(plan.cells.get(known.cell as usize)?.group))).collect()
    }

    /// Begins another record in a folder that was made for it, in which these groups are still to be measured. Their blocks get
    /// numbers that no other run has: runs of two invocations are never of the same block.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn again(
        &self,
        folder: &Path,
        groups: &BTreeSet<u32>,
        invocation: Invocation,
        local: &LocalPaths,
    ) -> Result<Self, StoreError> {
        let plan = &self.manifest.plan;
        let is_open = |cell: u32| plan.cells.get(cell as usize).is_some_and(|cell| groups.contains(&cell.group));
        let ids: BTreeSet<_> =
            (0..).zip(&plan.cells).filter(|(at, _)| !is_open(*at)).map(|(_, cell)| cell.id).collect();
        let is_kept = |run: &&StoredRun| run.outcome == Outcome::Completed && ids.contains(&run.cell);
        let kept: Vec<&StoredRun> = self.runs.iter().filter(is_kept).collect();
        kept.iter().try_for_each(|run| run.write(folder))?;
        journal::sync_block(folder, kept)?;
        let mut findings = self.manifest.findings.clone();
        (findings.complete, findings.sums) = (false, None);
        // A conversion that failed left no file to count the arithmetic of, and nothing to score.
        (findings.rehearsal, findings.peak, findings.accuracy, findings.profile) = (None, None, None, None);
        if let Some(Searched { searches }) = &mut findings.search {
            searches.retain(|known| !is_open(known.cell));
        }
        if let Some(Rates { cells }) = &mut findings.rates {
            cells.retain(|known| !is_open(known.cell));
        }
        if let Some(Compared { fidelity, not_compared }) = &mut findings.outputs {
            fidelity.retain(|known| !is_open(known.cell));
            not_compared.retain(|known| !is_open(known.cell));
        }
        let first_block = self.runs.iter().map(|run| run.block + 1).max().unwrap_or(0);
        findings.invocations.push(Invocation { first_block, ..invocation });
        findings.write(folder)?;
        local.write(folder)?;
        // As it was written, without what was found since; it makes the folder a record, and comes last.
        let mut manifest: Value = read_versioned(&self.folder.join(Manifest::FILE))?;
        manifest["record"] = folder.file_name().map(|name| name.to_string_lossy()).into();
        write_whole(&folder.join(Manifest::FILE), format!("{manifest:#}\n").as_bytes())?;
        Record::open(folder)
    }
}
