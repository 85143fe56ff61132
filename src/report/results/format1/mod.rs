//! Format 1 of `results.json`, which perfrun 0.1.0 wrote before 2026-11-22: a dump of its inner types, with indices in
//! place of names. Names, metrics, runs, comparisons, controls and provenance are read; the rest is absent.

mod file;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(super) use file::Results;
use file::{Comparison, Estimate, Manifest, OldCell, OldControl, OldFailure, OldMetric, OldRun, Plan};

use super::cell::{Cell, CodeSeen, Estimated, FailureSeen, Skipped, Status};
use super::judged::{Compared, Control, DetectableEffect};
use super::{FORMAT, Measured, Rules};
use crate::experiment::{Axis, AxisMap};
use crate::record::provenance::Provenance;
use crate::vocabulary::code;
use crate::vocabulary::metric;

/// Confidence of every interval of that format.
const LEVEL: f64 = 0.95;

impl From<Results> for super::Results {
    fn from(old: Results) -> Self {
        let manifest = &old.manifest;
        let margin = |name: &str| manifest.experiment.compare["margin"][name].as_f64().unwrap_or_default();
        let rows = old.comparisons.iter().chain(&old.tails);
        super::Results {
            format: FORMAT,
            experiment: manifest.experiment.name.clone(),
            description: manifest.experiment.description.clone(),
            record: manifest.record.clone(),
            measured: Measured {
                complete: manifest.complete,
                quick: manifest.quick,
                restrictions: manifest.restrictions.clone(),
                runs_wanted: None,
                sessions: manifest.sessions.iter().map(|session| session.started.clone()).collect(),
                commands: manifest.sessions.iter().map(|session| session.command.clone()).collect(),
            },
            provenance: provenance(manifest),
            rules: Rules {
                runs: manifest.plan.runs,
                runs_min: None,
                seed: manifest.plan.seed,
                baseline: manifest.plan.baseline.as_ref().map(|baseline| baseline.name.clone()),
                compared: manifest.plan.baseline.iter().flat_map(|baseline| baseline.axes.clone()).collect(),
                margin: margin("default"),
                margin_of_tails: margin("tail"),
                confidence: LEVEL,
                gates: Vec::new(),
            },
            cells: (0..manifest.plan.cells.len()).filter_map(|index| cell(&old, index)).collect(),
            comparisons: rows.filter_map(|row| compared(&manifest.plan, row)).collect(),
            controls: old.controls.iter().filter_map(|control| self::control(&manifest.plan, control)).collect(),
            detectable_effect: DetectableEffect {
                grade: old.sight.grade.clone(),
                // The spread of that format is another one, and so is what it finds.
                block_deviation: None,
                in_twelve_blocks: None,
                here: old.sight.here,
                noisy_runs: old.sight.noisy_runs,
            },
            ..super::Results::empty()
        }
    }
}

fn provenance(manifest: &Manifest) -> Provenance {
    let mut found = Provenance::of_host(&manifest.host);
    let measure = &manifest.experiment.measure;
    let plan = &manifest.plan;
    let runtimes: Vec<&Value> = manifest.runtime.iter().chain(manifest.runtimes.iter().flatten()).collect();
    // That nothing had changed was said of models in the cache too, where nobody had looked.
    let dirty = |revision: &Value| revision["dirty"].as_array().is_some_and(|files| !files.is_empty());
    let facts = [
        ("specification", manifest.spec.clone()),
        ("models", named("name", &plan.models, &manifest.models)),
        ("files", manifest.variant_files.iter().map(|file| variant_file(plan, file)).collect()),
        ("datasets", named("model", &plan.models, &manifest.datasets)),
        ("runtimes", json!(runtimes)),
        ("inputs", json!(plan.inputs)),
        ("design", measure["design"].clone()),
        ("cache", measure["cache"].clone()),
        ("input_sets", measure["inputs"].clone()),
        ("perfrun", json!(manifest.perfrun)),
        ("commit", json!(manifest.revision.as_ref().map(|revision| &revision["commit"]))),
        ("dirty", json!(manifest.revision.as_ref().filter(|of| dirty(of)).map(|revision| &revision["dirty"]))),
    ];
    for (name, value) in facts {
        found.take_named(name, value);
    }
    found
}

/// Rows that had their place for a name.
fn named(key: &str, names: &[String], rows: &[Option<Value>]) -> Value {
    let row = |(name, row): (&String, &Option<Value>)| {
        let mut row = row.clone()?;
        row.as_object_mut()?.insert(key.to_owned(), json!(name));
        Some(row)
    };
    names.iter().zip(rows).filter_map(row).collect()
}

fn variant_file(plan: &Plan, file: &Value) -> Value {
    let mut row = file.clone();
    for (key, names) in [("model", &plan.models), ("variant", &plan.variants)] {
        row[key] = json!(file[key].as_u64().and_then(|index| names.get(index as usize)));
    }
    row
}

fn cell(old: &Results, index: usize) -> Option<Cell> {
    let (manifest, plan) = (&old.manifest, &old.manifest.plan);
    let (planned, summary) = (plan.cells.get(index)?, old.summary.cells.get(index)?);
    let skip = planned.skip.and_then(|skip| plan.skips.get(skip));
    let model = manifest.models.get(planned.model).and_then(Option::as_ref);
    let text = |of: &Value, key: &str| of[key].as_str().map(str::to_owned);
    let is_file = |file: &&Value| file["model"] == planned.model && file["variant"] == planned.variant;
    let own_threads = manifest.experiment.variants.get(planned.variant).and_then(|of| of["threads"]["intra"].as_u64());
    let failed = summary.runs.failed + summary.runs.not_run;
    Some(Cell {
        id: planned.id.clone(),
        definition: super::make::short(manifest.definitions.get(index)?),
        names: AxisMap::of(|_| Axis::ABSENT.to_owned())
            .with(Axis::Models, plan.models.get(planned.model)?.clone())
            .with(Axis::Inputs, text(plan.inputs.get(planned.input)?, "name")?)
            .with(Axis::Variants, plan.variants.get(planned.variant)?.clone())
            .with(Axis::Devices, plan.devices.get(planned.device)?.clone())
            .with(Axis::Runtimes, plan.runtimes.get(planned.runtime).map_or(Axis::ABSENT, String::as_str).to_owned()),
        status: match (skip, summary.runs.completed, failed) {
            (Some(_), ..) => Status::Skipped,
            (None, 0, 0) => Status::NotRun,
            (None, 0, _) => Status::Failed,
            (None, _, 0) => Status::Measured,
            (None, ..) => Status::Partial,
        },
        skipped: skip.map(|skip| Skipped { code: "other".to_owned(), reason: skip.reason.clone() }),
        failures: summary.failures.iter().map(failure).collect(),
        batch: model.and_then(|file| file["batch_sizes"][planned.input].as_u64()),
        threads: own_threads.map_or(manifest.default_threads, |threads| threads as u32),
        iterations: summary.iterations,
        dynamic_outputs: summary.dynamic_outputs,
        not_run: summary.runs.not_run,
        sha256: manifest.variant_files.iter().find(is_file).or(model).and_then(|file| text(file, "sha256")),
        nodes: summary.nodes.clone(),
        on_cpu: BTreeMap::new(),
        output_hash: summary.output_hash.clone(),
        metrics: metrics(summary),
        runs: runs(summary),
        environment: BTreeMap::new(),
        other_load: None,
        codes: summary.warnings.iter().filter(|(code, _)| code::is_of_runs(code)).map(code_seen).collect(),
        shape: None,
        of_roof: None,
        bound_by: None,
        fidelity: None,
        score_changes: BTreeMap::new(),
        slices: Vec::new(),
    })
}

fn failure(old: &OldFailure) -> FailureSeen {
    let (kind, message) = (old.failure.kind.clone(), old.failure.message.clone());
    FailureSeen { kind, message, runs: old.runs, rehearsal: old.rehearsal }
}

fn code_seen((code, runs): (&String, &u32)) -> (String, CodeSeen) {
    let severity = code::severity(code);
    (code.clone(), CodeSeen { severity: super::make::word(&severity), runs: Some(*runs) })
}

/// The columns of percentiles, by their place among the quantiles of that format.
const PERCENTILES: [(usize, f64, &str); 4] = [
    (1, 0.9, "latency_p90_ns"),
    (2, 0.95, "latency_p95_ns"),
    (3, 0.99, "latency_p99_ns"),
    (4, 0.999, "latency_p99_9_ns"),
];

fn metrics(summary: &OldCell) -> BTreeMap<String, Estimated> {
    let estimated = |estimate: Estimate, supported| Estimated {
        value: estimate.value,
        low: estimate.interval.map(|interval| interval.low),
        high: estimate.interval.map(|interval| interval.high),
        n: estimate.n,
        supported,
    };
    let mut all: BTreeMap<String, Estimated> =
        summary.metrics.iter().map(|(name, metric)| (name.clone(), estimated(metric.estimate, None))).collect();
    let Some(latency) = &summary.latency else { return all };
    all.insert("latency_mean_ns".to_owned(), estimated(latency.mean, None));
    for (_, probability, name) in PERCENTILES {
        let found = latency.percentiles.iter().find(|percentile| percentile.probability == probability);
        all.extend(found.map(|found| (name.to_owned(), estimated(found.estimate, Some(found.supported)))));
    }
    all
}

fn runs(summary: &OldCell) -> BTreeMap<String, Vec<Option<f64>>> {
    let Some(median) = summary.metrics.get(metric::LATENCY.name) else { return BTreeMap::new() };
    let blocks: Vec<u32> = median.per_run.iter().map(|(block, _)| *block).collect();
    let is_fact = |name: &str| metric::by_name(name).is_some_and(metric::Metric::is_constant);
    let column = |(name, metric): (&String, &OldMetric)| {
        let value = |block: &u32| metric.per_run.iter().find(|(other, _)| other == block).map(|(_, value)| *value);
        (name.clone(), blocks.iter().map(value).collect())
    };
    let mut columns: BTreeMap<String, Vec<Option<f64>>> =
        summary.metrics.iter().filter(|(name, _)| !is_fact(name)).map(column).collect();
    columns.insert("block".to_owned(), blocks.iter().map(|block| Some(f64::from(*block))).collect());
    if let Some(latency) = summary.latency.as_ref().filter(|latency| latency.per_run.len() == blocks.len()) {
        let of = |value: &dyn Fn(&OldRun) -> Option<f64>| latency.per_run.iter().map(value).collect::<Vec<_>>();
        columns.insert("latency_mean_ns".to_owned(), of(&|run| Some(run.mean)));
        columns.insert("latency_stddev_ns".to_owned(), of(&|run| run.standard_deviation));
        columns.insert(metric::SAMPLES.name.to_owned(), of(&|run| Some(run.samples as f64)));
        let is_single = !latency.percentiles.is_empty();
        for (place, _, name) in PERCENTILES.into_iter().filter(|_| is_single) {
            columns.insert(name.to_owned(), of(&|run| run.quantiles.get(place).copied()));
        }
    }
    columns
}

fn compared(plan: &Plan, old: &Comparison) -> Option<Compared> {
    let reason = match (&old.withheld, old.verdict.as_str(), &old.hint) {
        (Some(withheld), ..) => withheld.as_str(),
        (None, "equivalent", _) => "within_margin",
        (None, "inconclusive", Some(hint)) => hint.kind.as_str(),
        (None, "inconclusive", None) => "not_enough_data",
        _ => "beyond_margin",
    };
    Some(Compared {
        cell: plan.cells.get(old.cell)?.id.clone(),
        baseline: plan.cells.get(old.baseline)?.id.clone(),
        metric: old.metric.clone(),
        ratio: old.speedup,
        low: old.interval.map(|interval| interval.low),
        high: old.interval.map(|interval| interval.high),
        level: LEVEL,
        blocks: old.blocks,
        margin: old.margin,
        verdict: old.verdict.clone(),
        reason: reason.to_owned(),
        beside: None,
        more_blocks: old.hint.as_ref().and_then(|hint| hint.more_blocks),
        details: None,
        bootstrap: None,
    })
}

fn control(plan: &Plan, old: &OldControl) -> Option<Control> {
    let outcome = match (old.paired.verdict.as_str(), old.is_biased) {
        ("better" | "worse", _) => "failed",
        (_, true) => "biased",
        _ => "passed",
    };
    Some(Control {
        cell: plan.cells.get(old.cell)?.id.clone(),
        ratio: old.ratio,
        low: old.interval.map(|interval| interval.low),
        high: old.interval.map(|interval| interval.high),
        level: LEVEL,
        blocks: old.paired.blocks,
        verdict: old.paired.verdict.clone(),
        outcome: outcome.to_owned(),
        cells: Vec::new(),
        runs: BTreeMap::new(),
        twin_runs: BTreeMap::new(),
    })
}
