//! What the terminal says about accuracy, before anything is timed.

use std::time::Duration;

use super::duration;
use crate::accuracy::Score;
use crate::metric::Metric;
use crate::report::format::{self, count};
use crate::report::name_without_input;
use crate::store::{Manifest, VariantAccuracy};

/// One line for each model: `digits-mlp: fp32 98.1 %, int8 97.8 % (top-1 accuracy of 540 items); 0.8 s`.
pub(super) fn lines(manifest: &Manifest, took: Duration) -> Vec<String> {
    let plan = &manifest.plan;
    let of = |model: usize| -> Vec<&VariantAccuracy> {
        manifest.accuracy().iter().filter(|known| plan.cells[known.cell as usize].model as usize == model).collect()
    };
    let mut lines: Vec<String> = (0..plan.models.len()).flat_map(|model| about(manifest, model, &of(model))).collect();
    if let Some(last) = lines.last_mut() {
        last.push_str(&format!("; {}", duration(took)));
    }
    lines
}

fn about(manifest: &Manifest, model: usize, known: &[&VariantAccuracy]) -> Vec<String> {
    let plan = &manifest.plan;
    let name = |known: &VariantAccuracy| name_without_input(plan, &plan.cells[known.cell as usize]);
    let mut lines = Vec::new();
    let first: Vec<(String, &Score)> =
        known.iter().filter_map(|known| Some((name(known), known.scores.first()?))).collect();
    if let Some((_, Score { metric, estimate, .. })) = first.first() {
        let metric = metric.metric();
        let each = first.iter().map(|(name, score)| format!("{name} {}", score_of(metric, score)));
        let each = each.collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "{}: {each} ({} of {})",
            plan.models[model],
            metric.title,
            count(estimate.n as u64, "item")
        ));
    }
    for known in known {
        let own: Vec<String> = known.own_scores.iter().map(|(name, value)| format!("{name} {value}")).collect();
        if !own.is_empty() {
            lines.push(format!("{}/{}: {}", plan.models[model], name(known), own.join(", ")));
        }
        if let Some(problem) = &known.problem {
            lines.push(format!("{}/{}: not known: {problem}", plan.models[model], name(known)));
        }
    }
    lines
}

fn score_of(metric: &Metric, score: &Score) -> String {
    format::score(metric, score.estimate.value, score.estimate.n)
}
