//! A complete record goes on: what failed in it is measured again, with what it is compared with.
//!
//! Whoever is killed on the way leaves a record that is complete still, or one that `--resume` goes on with.

use std::collections::BTreeSet;

use super::archive::TABLES;
use super::findings;
use super::found::{Compared, Rates, Rehearsed, Scored, Searched};
use super::journal::{self, Outcome, StoredRun};
use super::profiled::Profiled;
use super::{Disk, RealDisk, Record, Session, StoreError};

impl Record {
    /// The groups of cells that failed, and of those that had to be left out because others failed.
    pub fn failed_groups(&self) -> BTreeSet<u32> {
        let plan = &self.manifest.plan;
        let ids: BTreeSet<_> =
            self.runs.iter().filter(|run| run.outcome == Outcome::Failed).map(|run| run.cell).collect();
        let of_runs = plan.cells.iter().filter(|cell| ids.contains(&cell.id)).map(|cell| cell.group);
        let left_out = self.manifest.findings.rehearsal.iter().flat_map(|found| &found.too_large);
        let unscored = self.manifest.accuracy().iter().filter(|known| known.problem.is_some());
        let indices = left_out.map(|known| known.cell).chain(unscored.map(|known| known.cell));
        of_runs.chain(indices.map(|cell| plan.cells[cell as usize].group)).collect()
    }

    /// Makes a complete record one in which these groups are still to be measured, in a session that begins with it. Their blocks
    /// get numbers that no other run has: runs of two sessions are of no common block.
    ///
    /// # Errors
    ///
    /// When a file cannot be read or written.
    pub fn reopen(mut self, groups: &BTreeSet<u32>, session: Session) -> Result<Self, StoreError> {
        let (folder, plan) = (self.folder.clone(), self.manifest.plan.clone());
        let is_open = |cell: u32| groups.contains(&plan.cells[cell as usize].group);
        let kept: BTreeSet<_> =
            (0..).zip(&plan.cells).filter(|(at, _)| !is_open(*at)).map(|(_, cell)| cell.id).collect();
        // One that a kill left there.
        journal::remove(&folder)?;
        let kept: Vec<&StoredRun> =
            self.runs.iter().filter(|run| run.outcome == Outcome::Completed && kept.contains(&run.cell)).collect();
        kept.iter().try_for_each(|run| run.write(&folder))?;
        journal::sync_block(&folder, kept)?;
        let first_block = self.runs.iter().map(|run| run.block + 1).max().unwrap_or(0);
        let found = &mut self.manifest.findings;
        // Nothing has a sum while it changes.
        found.reopen(&folder, true)?;
        found.forget::<Rehearsed>(&folder)?;
        found.forget::<Scored>(&folder)?;
        found.forget::<Profiled>(&folder)?;
        if let Some(Searched { mut searches }) = found.search.clone() {
            searches.retain(|known| !is_open(known.cell));
            found.keep(&folder, Searched { searches })?;
        }
        if let Some(Rates { mut cells }) = found.rates.clone() {
            cells.retain(|known| !is_open(known.cell));
            found.keep(&folder, Rates { cells })?;
        }
        if let Some(Compared { mut fidelity, mut not_compared }) = found.outputs.clone() {
            fidelity.retain(|known| !is_open(known.cell));
            not_compared.retain(|known| !is_open(known.cell));
            found.keep(&folder, Compared { fidelity, not_compared })?;
        }
        found.begin_session(&folder, Session { first_block, ..session })?;
        RealDisk.sync(&folder)?;
        found.reopen(&folder, false)?;
        RealDisk.sync(&folder)?;
        TABLES.iter().try_for_each(|table| findings::remove(folder.join(format!("{table}.parquet"))))?;
        Record::open(&folder)
    }
}
