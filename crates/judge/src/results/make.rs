//! Manifest, summary and verdicts -> results.

use std::collections::BTreeMap;

use super::cell::{Cell, CellLoad, CodeSeen, ControlFailure, Search, Skipped, Status, Validity};
use super::method::Method;
use super::metrics::{columns, environment, metrics, named, score_changes, slices};
use super::profile::{Profile, Roofs, explanations};
use super::{
    Budget, Choice, Comparison, Control, Conversion, FORMAT, Family, GateAsked, GoalCheck, ItemsRight, KeptNodes,
    Measured, RecordCode, Results, Rules, remarks,
};
use crate::compare::Judged;
use crate::profile::{CellTime, cell_times};
use crate::stored::{as_fact, rounded};
use crate::summary::{AaCopy, BackgroundLoad, CONFIDENCE, CellShape, CellSummary, RunCounts, Summary, record_codes};
use base::metric::LATENCY;
use base::privacy::without_home;
use experiment::{AxisMap, CompiledSelector, Experiment, Gate};
use onnx::precision::Kept;
use plan::{self, CellId, Plan};
use quality::fidelity::Fidelity;
use record::provenance::Provenance;
use record::{Manifest, RuntimeUsed, VariantAccuracy, VariantFile, VariantOrigin};
use statistics::largest_rate::RateBound;

/// The results of a record, with the home folder taken out of texts that other programs wrote.
pub fn results(manifest: &Manifest, summary: &Summary, judged: &Judged) -> Results {
    let plan = &manifest.plan;
    let margin = manifest.experiment.compare.margin;
    let cells = plan.cells.iter().zip(&summary.cells).enumerate();
    let named = named(&manifest.experiment);
    let latency = |cell: usize| Some(summary.cells.get(cell)?.metrics.get(LATENCY.name)?.estimate);
    let times = cell_times(manifest, latency);
    let references = remarks::other_references(manifest);
    let comparisons = judged.comparisons.iter().chain(&judged.tails).chain(&judged.resources);
    let mut results = Results {
        format: FORMAT,
        experiment: manifest.experiment.name.clone(),
        description: manifest.experiment.description.clone(),
        record: manifest.record.clone(),
        measured: Measured {
            complete: manifest.findings.complete,
            quick: manifest.quick,
            restrictions: manifest.restrictions.iter().map(|text| without_home(text)).collect(),
            runs_wanted: manifest.findings.budget.map(|budget| budget.wanted).filter(|wanted| *wanted > plan.runs),
            boots: manifest
                .findings
                .invocations
                .iter()
                .map(|invocation| invocation.boot.clone().unwrap_or_default())
                .collect(),
            runs_done: summary.cells.iter().map(|cell| u64::from(cell.runs.completed + cell.runs.failed)).sum(),
            runs_planned: manifest
                .experiment
                .interim_analyses()
                .is_one()
                .then(|| plan.runnable().count() as u64 * u64::from(plan.runs)),
            budget: manifest
                .findings
                .budget
                .filter(|budget| budget.runs < budget.wanted)
                .map(|budget| Budget { limit: budget.limit, runs: budget.runs }),
            processors: manifest.host.processors().map(|processors| processors as u64),
            libraries: libraries(manifest),
            sessions: manifest.findings.invocations.iter().map(|invocation| invocation.started.clone()).collect(),
            commands: manifest
                .findings
                .invocations
                .iter()
                .map(|invocation| without_home(&invocation.command))
                .collect(),
        },
        provenance: Provenance::of(manifest),
        rules: Rules {
            runs: plan.runs,
            runs_min: (!manifest.experiment.interim_analyses().is_one()).then_some(manifest.experiment.runs.min),
            seed: plan.seed,
            baseline: plan.baseline.as_ref().map(|baseline| baseline.name.clone()),
            compared: plan
                .baseline
                .iter()
                .flat_map(|baseline| &baseline.axes)
                .map(|axis| axis.singular().to_owned())
                .collect(),
            margin: margin.default.0,
            margin_of_tails: margin.tail.0,
            confidence: CONFIDENCE,
            gates: gates(&manifest.experiment, plan),
            controls: plan.controls.len() as u32,
        },
        method: Method::of(manifest),
        cells: cells
            .map(|(index, (cell, summary))| Cell {
                profile: profile(manifest, &times, index),
                outputs_reference: references.get(&(index as u32)).map(|reference| match reference {
                    Some(cell) => plan.path(cell),
                    None => remarks::STORED_ON_CPU.to_owned(),
                }),
                ..self::cell(manifest, &named, index, cell, summary)
            })
            .collect(),
        codes: codes_of_record(manifest, summary),
        disturbances: summary.disturbances.clone(),
        comparisons: comparisons.cloned().map(Comparison::rounded).collect(),
        explanations: explanations(plan, &times),
        controls: controls(plan, summary, judged),
        control_failures: control_failures(plan, summary),
        detectable_effect: judged.detectable_effect.clone().rounded(),
        efforts: judged.efforts.clone(),
        families: judged.families.iter().map(|it| Family { p: it.p.map(rounded), ..it.clone() }).collect(),
        goals: judged.goals.iter().cloned().map(GoalCheck::rounded).collect(),
        choice: judged.choice.clone().map(Choice::rounded),
        tradeoffs: judged.tradeoffs.clone(),
        items_right: items_right(manifest),
        conversions: conversions(manifest),
        tables: manifest.experiment.tables.clone(),
        remarks: remarks::remarks(manifest, summary, judged),
        differing: remarks::differing(manifest, summary),
        across: Vec::new(),
        claims: Vec::new(),
        decoding: Vec::new(),
    };
    results.across = super::across::across(&results, manifest);
    results.claims = super::claims::claims(&results);
    results.decoding = super::decoding::decoding(&results);
    results
}

/// Controls with the runs of the A/A copies.
fn controls(plan: &Plan, summary: &Summary, judged: &Judged) -> Vec<Control> {
    let is_merged = plan.groups.iter().any(|group| group.part > 0);
    let index_of = |id: CellId| plan.cells.iter().position(|cell| cell.id == id);
    let control_of = |control: &Control| {
        let cell = index_of(control.cell);
        let aa_copy = summary.aa_copies.iter().find(|copy| Some(copy.cell) == cell);
        let runs = |copy: Option<&CellSummary>| copy.map(|copy| columns(copy, &[])).unwrap_or_default();
        let speaks_for = |other: &usize| cell.is_some_and(|cell| plan.speaks_for(cell, *other));
        let cells = (0..plan.cells.len()).filter(|_| is_merged).filter(speaks_for);
        Control {
            cells: cells.map(|other| plan.cells[other].id).collect(),
            runs: runs(aa_copy.map(|copy| &copy.summary)),
            second_runs: runs(aa_copy.and_then(|copy| copy.second.as_ref())),
            ..control.clone().rounded()
        }
    };
    judged.controls.iter().map(control_of).collect()
}

/// Where each library was found.
fn libraries(manifest: &Manifest) -> BTreeMap<String, String> {
    let found =
        |(name, used): (Option<&str>, RuntimeUsed)| (name.unwrap_or_default().to_owned(), without_home(&used.origin));
    manifest.libraries().map(found).collect()
}

fn conversions(manifest: &Manifest) -> Vec<Conversion> {
    let plan = &manifest.plan;
    let conversion = |file: &VariantFile| {
        let VariantOrigin::Converted { recipe, report, .. } = &file.origin else { return None };
        let report = report.clone().unwrap_or_default();
        let kept = |kept: Kept| KeptNodes { operator: kept.operator, nodes: kept.nodes, reason: kept.reason };
        let notes = report.notes.into_iter().chain(recipe.calibrated().map(|text| without_home(&text)));
        Some(Conversion {
            model: plan.name(file.model).unwrap_or_default().to_owned(),
            variant: plan.name(file.variant).unwrap_or_default().to_owned(),
            converted: report.converted,
            kept: report.kept.into_iter().map(kept).collect(),
            casts: report.casts,
            quantize_nodes: report.quantize_nodes,
            weights_converted: report.weights.converted,
            weights_kept: report.weights.kept,
            notes: notes.chain(file.problem.iter().map(|problem| without_home(problem))).collect(),
        })
    };
    manifest.variant_files().iter().filter_map(conversion).collect()
}

/// The gates of a specification, with the cells of its plan that each speaks of.
pub fn gates(experiment: &Experiment, plan: &Plan) -> Vec<GateAsked> {
    let gate_asked = |gate: &Gate| {
        let selector = CompiledSelector::new(&gate.of, &plan.axes);
        let cells = plan.cells.iter().filter(|cell| selector.matches(&cell.at));
        GateAsked {
            metric: gate.metric.key(),
            worse_by: gate.worse_by,
            fails_undecided: gate.fails_undecided,
            cells: (!gate.of.0.is_empty()).then(|| cells.map(|cell| cell.id).collect()),
        }
    };
    experiment.gate.iter().map(gate_asked).collect()
}

/// Which items each variant gets right, for all cells that the one that was run speaks for.
fn items_right(manifest: &Manifest) -> Vec<ItemsRight> {
    let plan = &manifest.plan;
    let rows_of = |known: &VariantAccuracy| {
        let scored = plan.cells.get(known.cell as usize);
        let alike =
            plan.runnable().filter(|(_, cell)| scored.is_some_and(|scored| cell.differs_in_input_alone(scored)));
        let cells: Vec<CellId> = alike.map(|(_, cell)| cell.id).collect();
        let row = |(metric, right): (&String, &String)| ItemsRight {
            cells: cells.clone(),
            metric: metric.clone(),
            items: known.items,
            right: right.clone(),
        };
        known.right.iter().map(row).collect::<Vec<_>>()
    };
    manifest.accuracy().iter().flat_map(rows_of).collect()
}

fn load(manifest: &Manifest, cell: &plan::Cell, summary: &CellSummary) -> Option<CellLoad> {
    let found = manifest.rate_of(cell);
    let (at_least_per_s, at_most_per_s) = match summary.rate_bound {
        Some(RateBound::AtLeast(rate)) => (Some(rounded(rate)), None),
        Some(RateBound::AtMost(rate)) => (None, Some(rounded(rate))),
        None => (None, None),
    };
    Some(CellLoad {
        queries: manifest.plan.input_of(cell).load?,
        callers: manifest.callers_of(cell),
        predicted_per_s: found.and_then(|found| found.predicted_per_s).map(rounded),
        per_s: found.and_then(|found| found.per_s).map(rounded),
        at_least_per_s,
        at_most_per_s,
        tried: found.map(|found| found.tried.clone()).unwrap_or_default(),
    })
}

fn cell(manifest: &Manifest, named: &[String], index: usize, cell: &plan::Cell, summary: &CellSummary) -> Cell {
    let names = manifest.plan.coordinates(cell);
    let model = manifest.models.get(cell.model().index()).and_then(Option::as_ref);
    let skip = manifest.plan.skip(cell);
    let latency = summary.latency.as_ref();
    let accuracy = manifest.accuracy_of(cell);
    let codes = codes(summary);
    Cell {
        id: cell.id,
        definition: manifest.definitions.get(index).map(|hash| short(hash)).unwrap_or_default(),
        names: AxisMap::of(|axis| names[axis].to_owned()),
        group: cell.group,
        status: status(skip.is_some(), summary.runs),
        validity: (summary.runs.completed > 0).then(|| Validity::of(&codes)),
        skipped: skip.map(|skip| Skipped {
            code: skip.kind,
            reason: without_home(&skip.reason),
            remedy: skip.remedy.as_deref().map(without_home),
        }),
        failures: summary.failures.clone(),
        completed: summary.runs.completed,
        failed: summary.runs.failed,
        batch: manifest.batch_of(cell),
        search: manifest.search_of(cell).map(|search| Search { end: search.end, tried: search.tried.clone() }),
        load: load(manifest, cell, summary),
        macs: manifest.cost(cell).and_then(|cost| cost.macs),
        threads: manifest.threads_of(cell),
        iterations: summary.iterations,
        dynamic_outputs: summary.dynamic_outputs,
        not_run: summary.runs.not_run,
        sha256: match manifest.variant_file(cell) {
            Some(file) => file.sha256.clone(),
            None => model.map(|file| file.sha256.clone()),
        },
        nodes: summary.nodes.clone(),
        on_cpu: summary.fallback.operators.clone(),
        not_compared: model.map(|model| model.not_compared.clone()).unwrap_or_default(),
        output_hash: summary.output_hash.clone(),
        metrics: metrics(summary),
        runs: columns(summary, named),
        environment: environment(summary),
        samples: latency.map_or(0, |latency| latency.samples),
        late_warmup: latency.map_or(0, |latency| latency.late_warmup),
        background_load: summary
            .findings
            .background_load
            .map(|load| BackgroundLoad { cores: rounded(load.cores), ..load }),
        codes,
        shape: summary.findings.shape.clone().map(|shape: CellShape| shape.with_numbers(rounded)),
        roofline_share: summary.diagnosis.of_roof.map(rounded),
        bound_by: summary.diagnosis.bound,
        fidelity: summary.fidelity.clone().map(fidelity),
        outputs_reference: None,
        score_changes: score_changes(summary),
        accuracy_problem: accuracy.and_then(|known| known.problem.as_deref().map(without_home)),
        slices: slices(summary),
        profile: None,
    }
}

/// Where the time of a cell goes, or why that is not known.
fn profile(manifest: &Manifest, times: &[CellTime<'_>], index: usize) -> Option<Profile> {
    let found = manifest.findings.profile.as_ref()?.cells.iter().find(|found| found.cell as usize == index)?;
    let (time, cell) = (times.iter().find(|time| time.cell == index), manifest.plan.cells.get(index)?);
    let profile = time.map_or_else(Profile::default, |time| Profile::of(time, &Roofs { manifest, cell }));
    Some(Profile { problem: found.problem.as_deref().map(without_home), ..profile })
}

/// JSON has no infinity.
fn fidelity(mut found: Fidelity) -> Fidelity {
    let finite = |number: f64| rounded(number.min(f64::MAX));
    (found.max_abs, found.mean_abs) = (finite(found.max_abs), found.mean_abs.map(finite));
    let language = found.language.map(|language| language.with_numbers(rounded));
    let [scaled, mean, close] = [found.max_scaled, found.mean_scaled, found.close].map(|number| number.map(rounded));
    Fidelity { max_scaled: scaled, mean_scaled: mean, close, cosine: found.cosine.map(as_fact), language, ..found }
}

/// As many digits of a hash as an id has.
pub(super) fn short(hash: &str) -> String {
    hash.chars().take(16).collect()
}

fn status(is_skipped: bool, runs: RunCounts) -> Status {
    match (is_skipped, runs.completed, runs.failed + runs.not_run) {
        (true, ..) => Status::Skipped,
        (false, 0, 0) => Status::NotRun,
        (false, 0, _) => Status::Failed,
        (false, _, 0) => Status::Measured,
        (false, ..) => Status::Partial,
    }
}

/// Why runs of the A/A copies failed, which a cell's own runs do not show.
fn control_failures(plan: &Plan, summary: &Summary) -> Vec<ControlFailure> {
    let of_copy = |copy: &AaCopy| {
        let cell = plan.cells[copy.cell].id;
        let seen = [&copy.summary].into_iter().chain(&copy.second).flat_map(|summary| summary.failures.clone());
        seen.map(|seen| ControlFailure { cell, seen }).collect::<Vec<_>>()
    };
    summary.aa_copies.iter().flat_map(of_copy).collect()
}

fn codes_of_record(manifest: &Manifest, summary: &Summary) -> BTreeMap<String, RecordCode> {
    let found = record_codes(manifest, summary).into_iter().map(|code| {
        (String::from(code.code), RecordCode { severity: code.code.severity(), found: without_home(&code.found) })
    });
    found.collect()
}

fn codes(summary: &CellSummary) -> BTreeMap<String, CodeSeen> {
    let seen =
        |(code, runs): (&str, Option<u32>)| (code.to_owned(), CodeSeen { severity: summary.severity(code), runs });
    summary.codes().into_iter().map(seen).collect()
}
