//! Whether the cells of a group differ at all (method 6.7).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::summary::Summary;
use base::metric::MetricReference;
use plan::{CellId, Group, Plan};
use statistics::omnibus::welch_anova;

/// Whether the cells of one group differ at all; it opens or closes no verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Ids of the cells.
    pub cells: Vec<CellId>,
    /// Blocks that all of them completed.
    pub blocks: u64,
    /// p value of Welch's analysis of variance: that all have the same mean.
    #[serde(default, alias = "p_welch", skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// The groups of at least three cells that completed runs.
pub(super) fn families(plan: &Plan, summary: &Summary) -> Vec<Family> {
    plan.groups.iter().filter_map(|group| family(group, summary)).collect()
}

fn family(group: &Group, summary: &Summary) -> Option<Family> {
    let known = |cell: &u32| summary.cells.get(*cell as usize);
    let mut cells = group.cells.iter().filter_map(known);
    let first = cells.next()?;
    // By what they are compared.
    let compared_by = cells.map(|other| other.compared_by(first));
    let metric =
        compared_by.max_by_key(|metric| *metric != MetricReference::LATENCY).unwrap_or(MetricReference::LATENCY);
    let values = |cell: &u32| {
        let values = known(cell)?.run_values(metric);
        (!values.is_empty()).then_some((known(cell)?.id, values))
    };
    let members: Vec<(CellId, Vec<(u32, f64)>)> = group.cells.iter().filter_map(values).collect();
    if members.len() < 3 {
        return None;
    }
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (block, value) in members.iter().flat_map(|(_, values)| values) {
        blocks.entry(*block).or_default().push(*value);
    }
    let whole: Vec<Vec<f64>> = blocks.into_values().filter(|block| block.len() == members.len()).collect();
    let groups: Vec<Vec<f64>> =
        members.iter().map(|(_, values)| values.iter().map(|(_, value)| *value).collect()).collect();
    Some(Family {
        cells: members.iter().map(|(cell, _)| *cell).collect(),
        blocks: whole.len() as u64,
        p: welch_anova(&groups).map(|test| test.p),
    })
}
