//! Many comparisons at once: omnibus tests of a group and adjustment over a record (method 6.7, 6.8).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statistics::multiplicity::{benjamini_hochberg, holm};
use statistics::omnibus::{Anova, WelchAnova, anova, welch_anova};
use statistics::rank_omnibus::{RankTest, friedman, kruskal_wallis};

use super::Comparison;
use crate::judge::summary::Summary;
use crate::plan::{Group, Plan};
use crate::vocabulary::metric::{ITEMS, MetricReference};

/// Whether the cells of one group differ at all; it opens or closes no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Index of the group.
    pub group: usize,
    /// Indices of the cells that were compared.
    pub cells: Vec<usize>,
    /// Blocks that all of them completed.
    pub blocks: usize,
    /// Friedman's test in those blocks: the one for this design.
    pub friedman: Option<RankTest>,
    /// Welch's analysis of variance, which ignores the blocks.
    pub welch_anova: Option<WelchAnova>,
    /// The classical analysis of variance, with the share of variance that is explained.
    pub anova: Option<Anova>,
    /// Kruskal-Wallis' test, which ignores the blocks.
    pub kruskal_wallis: Option<RankTest>,
}

/// The groups of at least three cells that completed runs.
pub(super) fn families(plan: &Plan, summary: &Summary) -> Vec<Family> {
    plan.groups.iter().enumerate().filter_map(|(index, group)| family(index, group, summary)).collect()
}

fn family(index: usize, group: &Group, summary: &Summary) -> Option<Family> {
    let known = |cell: &u32| summary.cells.get(*cell as usize);
    let mut cells = group.cells.iter().filter_map(known);
    let first = cells.next()?;
    // By what they are compared.
    let metric = match cells.any(|other| other.has_another_batch(first)) {
        true => MetricReference::of(&ITEMS),
        false => MetricReference::LATENCY,
    };
    let values = |cell: &u32| {
        let values = known(cell)?.run_values(metric);
        (!values.is_empty()).then_some((*cell as usize, values))
    };
    let arms: Vec<(usize, Vec<(u32, f64)>)> = group.cells.iter().filter_map(values).collect();
    if arms.len() < 3 {
        return None;
    }
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (block, value) in arms.iter().flat_map(|(_, values)| values) {
        blocks.entry(*block).or_default().push(*value);
    }
    let whole: Vec<Vec<f64>> = blocks.into_values().filter(|block| block.len() == arms.len()).collect();
    let groups: Vec<Vec<f64>> =
        arms.iter().map(|(_, values)| values.iter().map(|(_, value)| *value).collect()).collect();
    Some(Family {
        group: index,
        cells: arms.iter().map(|(cell, _)| *cell).collect(),
        blocks: whole.len(),
        friedman: friedman(&whole),
        welch_anova: welch_anova(&groups),
        anova: anova(&groups),
        kruskal_wallis: kruskal_wallis(&groups),
    })
}

/// Adds the p values that are adjusted for the number of comparisons.
pub(super) fn adjust(comparisons: &mut [Comparison]) {
    let raw = |comparison: &Comparison| Some(comparison.details.as_ref()?.paired.minimum_effect?.p_min_effect);
    let (indices, p_values): (Vec<usize>, Vec<f64>) =
        comparisons.iter().enumerate().filter_map(|(index, comparison)| Some((index, raw(comparison)?))).unzip();
    let (Some(by_holm), Some(by_rate)) = (holm(&p_values), benjamini_hochberg(&p_values)) else { return };
    for ((index, p_holm), q) in indices.into_iter().zip(by_holm).zip(by_rate) {
        if let Some(details) = comparisons[index].details.as_mut() {
            details.p_holm = Some(p_holm);
            details.q = Some(q);
        }
    }
}
