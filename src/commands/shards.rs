//! A matrix in shards: which groups each measures, and how long it will take.

use serde::{Deserialize, Serialize};

use super::forecast::{forecasts, forecasts_of_any_machine};
use crate::run::Prepared;
use crate::ui::cli::Shard;
use crate::ui::error::Error;
use crate::ui::plan::PlannedShard;
use experiment::Experiment;
use plan::{self, Cell, CellForecast, Plan, Skip, SkipKind, TooManyShards, estimate_before_measuring, typical_runs};
use reading::plain_file;
use record::ProjectRoot;
use report::format::count;
use spec::Loaded;
use worker::backend;

/// How a matrix was divided when it was submitted, so that every job divides it alike: `.perfrun/shards.json` of a job's root.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Division {
    /// How many shards.
    #[serde(rename = "of")]
    pub(super) total: u32,
    /// The shard of each group.
    pub(super) groups: Vec<u32>,
}

impl Division {
    /// The file below a root.
    pub(super) const FILE: &str = ".perfrun/shards.json";

    /// By what is known of this machine: its reports, or the costs of models and its speed.
    ///
    /// # Errors
    ///
    /// More shards than there are sets of cells that must stay together.
    pub(super) fn by_this_machine(
        prepared: &Prepared,
        loaded: &Loaded,
        total: u32,
        project: &ProjectRoot,
    ) -> Result<Self, Error> {
        let expected = forecasts(&loaded.experiment, prepared, project);
        Self::by(prepared, loaded, total, &[expected], &format!("{total} shards are too many"))
    }

    /// That of the job that a specification lies in; else one that is the same on every machine.
    ///
    /// # Errors
    ///
    /// As [`Division::by_this_machine`].
    pub(super) fn of_shard(prepared: &Prepared, loaded: &Loaded, shard: Shard) -> Result<Self, Error> {
        let root = ProjectRoot::of(&loaded.folder.join("x"))?.root;
        let submitted = plain_file::text(&root.join(Self::FILE)).ok().and_then(|text| serde_json::from_str(&text).ok());
        let fits = |it: &Division| it.total == shard.of && it.groups.len() == prepared.plan.groups.len();
        match submitted.filter(fits) {
            Some(division) => Ok(division),
            None => Self::of_any_machine(prepared, loaded, shard.of, &format!("--shard {shard} selects no cell")),
        }
    }

    /// The same on every machine.
    ///
    /// # Errors
    ///
    /// As [`Division::by_this_machine`], in these words.
    pub(super) fn of_any_machine(
        prepared: &Prepared,
        loaded: &Loaded,
        total: u32,
        message: &str,
    ) -> Result<Self, Error> {
        Self::by(prepared, loaded, total, &forecasts_of_any_machine(&loaded.experiment, prepared), message)
    }

    /// How many shards there may be.
    pub(super) fn most(prepared: &Prepared, loaded: &Loaded) -> u32 {
        plan::most_shards(&loaded.experiment, &prepared.plan)
    }

    fn by(
        prepared: &Prepared,
        loaded: &Loaded,
        total: u32,
        expected: &[Vec<Option<CellForecast>>],
        message: &str,
    ) -> Result<Self, Error> {
        let groups = plan::shards_of_groups(&loaded.experiment, &prepared.plan, expected, total);
        let groups = groups.map_err(|TooManyShards { sets }| {
            let sets = count(u64::from(sets), "set");
            let help = format!("the cells form {sets} that must stay together, so there are at most that many shards");
            Error::refused(message, help)
        })?;
        Ok(Division { total, groups })
    }

    /// The shards, each with the time that it will take on a machine like this one.
    pub(super) fn planned(
        &self,
        prepared: &Prepared,
        experiment: &Experiment,
        project: &ProjectRoot,
    ) -> Vec<PlannedShard> {
        let expected = forecasts(experiment, prepared, project);
        let environment = backend::kind_of(&experiment.backend).environment();
        let planned_shard = |index: u32| {
            let (mut plan, shard) = (prepared.plan.clone(), Shard { index, of: self.total });
            // Where it is measured there may be devices that are not here.
            let is_revived = |cell: &Cell| plan.skip(cell).is_some_and(|skip| skip.kind == SkipKind::Device);
            let revived: Vec<bool> =
                plan.cells.iter().zip(plan.run_somewhere()).map(|(it, is)| is && is_revived(it)).collect();
            plan.cells.iter_mut().zip(revived).filter(|(_, is)| *is).for_each(|(cell, _)| cell.skip = None);
            leave_out_other_shards(&mut plan, &self.groups, shard);
            plan::place_controls(&mut plan, experiment.compare.aa);
            let runs = typical_runs(experiment, &plan);
            let time = environment.on_machine(|| estimate_before_measuring(experiment, &plan, runs, &expected));
            PlannedShard { shard, cells: plan.runnable().count(), time }
        };
        (0..self.total).map(planned_shard).collect()
    }
}

/// Marks the cells of other shards as skipped; the shard of each group is given.
pub(super) fn leave_out_other_shards(plan: &mut Plan, shards: &[u32], shard: Shard) {
    let is_other = |cell: &Cell| shards[cell.group as usize] != shard.index;
    let left_out = plan.cells.iter().enumerate().filter(|(_, cell)| is_other(cell)).map(|(index, _)| index).collect();
    leave_out(plan, left_out, format!("not in shard {shard}"));
}

/// Marks cells as left out by the user.
pub(super) fn leave_out(plan: &mut Plan, cells: Vec<usize>, reason: String) {
    let skip = Skip { kind: SkipKind::Selection, reason, remedy: None };
    for index in cells {
        plan.mark_skipped(index, skip.clone());
    }
}
