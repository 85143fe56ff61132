//! Metrics that are the same in every run of a cell: what its model file is, how like the reference's its outputs are, and
//! how right they are.
//!
//! They get one value a run like every metric, so that goals, choices and trade-offs need no second kind of metric. The
//! interval of an accuracy is over items, since runs do not show it.

use std::collections::HashMap;
use std::sync::Arc;

use super::{CONFIDENCE, CellSummary, MetricSummary, Scored};
use crate::profile::cell_times;
use base::metric::{
    FIDELITY_COSINE, FIDELITY_EQUAL, FIDELITY_KL, FIDELITY_TOP1, LATENCY, MODEL_SIZE, Metric, PERPLEXITY,
};
use plan::Cell;
use quality::accuracy::item_bits;
use quality::fidelity::{Equal, Fidelity, Language};
use record::{Manifest, VariantAccuracy};
use statistics::interval::{Estimate, Interval};

/// Adds them to the summaries of all cells, in plan order, that have completed runs.
pub(super) fn add_all(manifest: &Manifest, cells: &mut [CellSummary]) {
    for known in manifest.fidelity() {
        if let Some(cell) = cells.get_mut(known.cell as usize) {
            cell.fidelity = Some(known.fidelity.clone());
        }
    }
    for known in manifest.fidelity() {
        let reference = known.reference.and_then(|reference| cells.get_mut(reference as usize));
        reference.into_iter().for_each(|cell| cell.is_reference = true);
    }
    let scored: HashMap<u32, Arc<Scored>> =
        manifest.accuracy().iter().map(|accuracy| (accuracy.cell, scored(manifest, accuracy))).collect();
    for (cell, summary) in manifest.plan.cells.iter().zip(&mut *cells) {
        add(manifest, cell, summary);
        summary.scored = manifest.accuracy_of(cell).and_then(|accuracy| scored.get(&accuracy.cell)).cloned();
    }
    for known in manifest.fidelity() {
        let reference = known.reference.and_then(|reference| cells.get_mut(reference as usize));
        let perplexity = known.fidelity.language.as_ref().and_then(|language| language.perplexity.as_ref());
        if let (Some(cell), Some(perplexity)) = (reference, perplexity) {
            perplexity_of(cell, perplexity.reference);
        }
    }
    add_operators(manifest, cells);
}

fn perplexity_of(summary: &mut CellSummary, found: Estimate) {
    constant(summary, &PERPLEXITY, found.value, Some(found).filter(|found| found.interval.is_some()));
}

/// Adds the times of the operators that the specification names, with a value for each profiled process.
fn add_operators(manifest: &Manifest, cells: &mut [CellSummary]) {
    let named = manifest.experiment.named_metrics().map(|reference| reference.metric);
    let asked: Vec<&Metric> = named.filter(|metric| metric.operator().is_some()).collect();
    if asked.is_empty() {
        return;
    }
    let latency = |cell: usize| Some(cells.get(cell)?.metrics.get(LATENCY.name)?.estimate);
    for time in cell_times(manifest, latency) {
        let profile = time.profile;
        for metric in &asked {
            let Some(part) = metric.operator().and_then(|operator| time.of_operator(operator)) else { continue };
            let per_run = profile.processes.iter().copied().zip(part.values.iter().copied()).collect();
            let found = MetricSummary { estimate: time.estimate(&part), per_run };
            cells[time.cell].metrics.insert(metric.name.to_owned(), found);
        }
    }
}

fn scored(manifest: &Manifest, accuracy: &VariantAccuracy) -> Arc<Scored> {
    let model = manifest.plan.cells.get(accuracy.cell as usize).map(|cell| cell.model().index());
    let data = model.and_then(|model| manifest.datasets.get(model)?.as_ref()).map(|data| data.sha256.clone());
    let right =
        accuracy.right.iter().filter_map(|(name, text)| Some((name.clone(), item_bits::read(text, accuracy.items)?)));
    Arc::new(Scored { cell: accuracy.cell, data, reference: accuracy.reference, right: right.collect() })
}

fn add(manifest: &Manifest, cell: &Cell, summary: &mut CellSummary) {
    summary.batch = manifest.batch_of(cell);
    let variant_bytes = manifest.variant_file(cell).map(|file| file.bytes);
    let stored = || manifest.models.get(cell.model().index())?.as_ref().map(|file| file.bytes);
    let size = variant_bytes.unwrap_or_else(stored).map(|bytes| bytes as f64);
    let fidelity = summary.fidelity.as_ref();
    let cosine = fidelity.and_then(|fidelity| fidelity.cosine);
    let equal = fidelity.and_then(Fidelity::least_equal).map(Equal::share);
    let top1 = fidelity.and_then(|fidelity| fidelity.agreement).map(|agreement| agreement.top1());
    let known = [(MODEL_SIZE, size), (FIDELITY_COSINE, cosine), (FIDELITY_EQUAL, equal), (FIDELITY_TOP1, top1)];
    for (metric, value) in known {
        if let Some(value) = value {
            constant(summary, &metric, value, None);
        }
    }
    let language = summary.fidelity.as_ref().and_then(|fidelity| fidelity.language.clone());
    if let Some(Language { divergence, perplexity, .. }) = language {
        // One sequence has no interval over sequences.
        let over_sequences = divergence.filter(|estimate| estimate.interval.is_some());
        divergence.into_iter().for_each(|it| constant(summary, &FIDELITY_KL, it.value, over_sequences));
        perplexity.into_iter().for_each(|it| perplexity_of(summary, it.own));
    }
    summary.accuracy = manifest.accuracy_of(cell).map(|known| known.scores.clone()).unwrap_or_default();
    judge_classes(manifest, cell, summary);
    for score in summary.accuracy.clone() {
        // One number for all items has no interval over items.
        let over_items = Some(score.estimate).filter(|estimate| !score.metric.is_own() || estimate.interval.is_some());
        constant(summary, score.metric.metric(), score.estimate.value, over_items);
    }
}

/// Where labels say that the outputs are as right as the reference's, it does not matter which classes changed.
fn judge_classes(manifest: &Manifest, cell: &Cell, summary: &mut CellSummary) {
    let mut of_labels = summary.accuracy.iter().filter(|score| !score.metric.is_own());
    let is_as_right = of_labels.next().is_some_and(|score| score.change.is_some() && !score.is_worse());
    if let (Some(fidelity), Some((limits, precision))) = (&mut summary.fidelity, manifest.limits_of(cell)) {
        fidelity.judge_scores(&limits, precision);
        if !is_as_right {
            fidelity.judge_classes(&limits, precision);
        }
    }
}

fn constant(summary: &mut CellSummary, metric: &Metric, value: f64, known: Option<Estimate>) {
    let Some(latency) = summary.metrics.get(LATENCY.name) else { return };
    let per_run: Vec<(u32, f64)> = latency.per_run.iter().map(|(block, _)| (*block, value)).collect();
    let itself = Some(Interval { low: value, high: value });
    let fact = Estimate { value, interval: itself, n: per_run.len(), confidence: CONFIDENCE };
    let estimate = known.unwrap_or(fact);
    summary.metrics.insert(metric.name.to_owned(), MetricSummary { estimate, per_run });
}
