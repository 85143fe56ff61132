//! Known values in, known choices out.

#![allow(clippy::unwrap_used)]

mod ties;

use std::path::Path;

use super::*;
use crate::compare::{Control, Unfit, Withheld, against_baseline, compare_cells};
use crate::summary::{CONFIDENCE, CellSummary, FailureSeen, Latency, MetricSummary, RunCounts};
use base::metric::{ITEMS, LATENCY, Metric, Statistic};
use experiment::{Bound, Selector};
use plan::{Skip, expand};
use record::PERCENTILES;
use statistics::pooled_tail::PooledTail;
use statistics::trimmed_mean::trimmed_mean;
use worker::backend::{Failure, FailureKind};

/// A plan whose cells have the values that are put into them.
pub(crate) struct Scene {
    pub plan: Plan,
    pub summary: Summary,
    pub judged: Judged,
}

/// Ten runs around this level, with a spread of about 0.1 %.
fn around(level: f64) -> Vec<f64> {
    shifted(level, 0)
}

/// As [`around`], with the deviations of another cell.
fn shifted(level: f64, cell: usize) -> Vec<f64> {
    (0..10).map(|run| level * (1.0 + 0.001 * ((run * (cell % 2 + 1) + cell) % 5) as f64 - 0.002)).collect()
}

impl Scene {
    pub(crate) fn new(yaml: &str) -> Self {
        Scene::against(yaml, &[])
    }

    /// With a baseline of the specification's own.
    pub(crate) fn against(yaml: &str, baseline: &[(&str, &str)]) -> Self {
        let text = format!("backend: {{ mock: {{ median: 1ms }} }}\n{yaml}");
        let mut experiment = spec::parse("test.yaml", &text, Path::new("."), &[]).unwrap().experiment;
        let keys = baseline.iter().map(|(key, name)| ((*key).to_owned(), vec![(*name).to_owned()]));
        experiment.compare.baseline = (!baseline.is_empty()).then(|| Selector(keys.collect()));
        let plan = expand(&experiment).unwrap();
        let cells = plan.cells.iter().map(|planned| CellSummary::unmeasured(planned.id)).collect();
        Scene { plan, summary: Summary { cells, ..Summary::default() }, judged: Judged::default() }
    }

    pub(crate) fn cell(&self, path: &str) -> usize {
        self.plan.cells.iter().position(|cell| self.plan.path(cell) == path).expect("a cell of the plan")
    }

    pub(crate) fn id(&self, path: &str) -> CellId {
        self.plan.cells[self.cell(path)].id
    }

    /// The cell's runs have these values of a metric.
    pub(crate) fn values(mut self, path: &str, metric: &Metric, values: &[f64]) -> Self {
        let index = self.cell(path);
        let cell = &mut self.summary.cells[index];
        *cell = cell.clone().with_values(metric, values);
        self
    }

    /// Ten runs whose median latency is around this level, in milliseconds.
    pub(crate) fn level(self, path: &str, milliseconds: f64) -> Self {
        let values = shifted(milliseconds * 1e6, self.cell(path));
        self.values(path, &LATENCY, &values)
    }

    /// Percentiles of the runs, a tenth above their medians.
    pub(crate) fn tails(mut self, path: &str, supported: bool) -> Self {
        let index = self.cell(path);
        let cell = &mut self.summary.cells[index];
        let medians = cell.metrics[LATENCY.name].clone();
        for statistic in PERCENTILES {
            let per_run: Vec<(u32, f64)> =
                medians.per_run.iter().map(|(block, median)| (*block, median * 1.1)).collect();
            let values: Vec<f64> = per_run.iter().map(|(_, value)| *value).collect();
            let tail = MetricSummary { estimate: trimmed_mean(&values, CONFIDENCE).unwrap(), per_run };
            cell.metrics.insert(MetricReference { metric: &LATENCY, statistic }.column(), tail);
        }
        let percentiles = PERCENTILES.into_iter().map(|statistic| (statistic, supported)).collect();
        cell.latency = Some(Latency { samples: 1000, late_warmup: 0, percentiles });
        self
    }

    pub(crate) fn warned(mut self, path: &str, code: &str) -> Self {
        let cell = self.cell(path);
        let runs = self.summary.cells[cell].runs.completed;
        self.summary.cells[cell].warnings.insert(code.to_owned(), runs);
        self
    }

    pub(crate) fn failed(mut self, path: &str) -> Self {
        let cell = self.cell(path);
        let failure = Failure::new(FailureKind::Operator, "no kernel");
        self.summary.cells[cell].runs = RunCounts { failed: 2, not_run: 8, ..RunCounts::default() };
        self.summary.cells[cell].metrics.clear();
        self.summary.cells[cell].failures = vec![FailureSeen { failure, rehearsal: false, runs: 2, log_tail: None }];
        self
    }

    pub(crate) fn skipped(mut self, path: &str) -> Self {
        let cell = self.cell(path);
        self.plan.mark_skipped(cell, Skip { kind: plan::SkipKind::Other, reason: "x".to_owned(), remedy: None });
        self
    }

    /// The baseline of this cell's group was measured twice, the second time with another latency.
    pub(crate) fn failed_control(mut self, path: &str) -> Self {
        let cell = self.cell(path);
        self.plan.controls.push(cell as u32);
        let failed = serde_json::json!({
            "cell": self.id(path), "ratio": 0.9, "low": 0.89, "high": 0.91, "confidence": CONFIDENCE, "blocks": 10,
            "margin": 0.02, "verdict": "worse", "outcome": "failed",
        });
        self.judged.controls.push(serde_json::from_value::<Control>(failed).unwrap());
        self
    }

    pub(crate) fn choose(&self, best: &str, within: &[Bound]) -> Choice {
        self.choose_by(best, within, &ComparisonRules::default())
    }

    pub(crate) fn choose_by(&self, best: &str, within: &[Bound], terms: &ComparisonRules) -> Choice {
        let mut metrics = best.split(", ").map(|metric| metric.parse().unwrap());
        let question = Choose { best: metrics.next().unwrap(), then: metrics.collect(), within: within.to_vec() };
        choose(&self.plan, &self.summary, &self.judged, terms, &question)
    }

    fn best(&self, choice: &Choice) -> Vec<Vec<String>> {
        let path = |id: &CellId| {
            let cell = self.plan.cells.iter().find(|cell| cell.id == *id).unwrap();
            self.plan.path(cell)
        };
        choice.rankings.iter().map(|ranking| ranking.best.iter().map(path).collect()).collect()
    }

    fn standing(&self, choice: &Choice, path: &str) -> Standing {
        let cell = self.id(path);
        let mut candidates = choice.rankings.iter().flat_map(|ranking| &ranking.candidates);
        candidates.find(|candidate| candidate.cell == cell).expect("a candidate").standing
    }
}

/// A metric is at most this, at the inputs with this batch size or at all of them.
pub fn at_most(metric: &str, max: f64, batch: Option<u64>) -> Bound {
    let keys = batch.map(|batch| ("batch".to_owned(), vec![batch.to_string()]));
    let selector = Selector(keys.into_iter().collect());
    Bound { metric: metric.parse().unwrap(), min: None, max: Some(max), of: selector }
}

fn three() -> Scene {
    Scene::new("models: [m]\nvariants: [fp32, int8, fp16]")
        .level("m/default/fp32/cpu", 18.0)
        .level("m/default/int8/cpu", 8.0)
        .level("m/default/fp16/cpu", 28.0)
}

#[test]
fn the_cell_that_beats_the_others_is_best() {
    let scene = three();
    let choice = scene.choose("latency", &[]);
    assert_eq!(scene.best(&choice), [["m/default/int8/cpu"]]);
    let other = scene.id("m/default/int8/cpu");
    assert_eq!(scene.standing(&choice, "m/default/fp16/cpu"), Standing::Beaten { other });
    let against: Vec<CellId> = choice.rankings[0].evidence.iter().map(|comparison| comparison.baseline).collect();
    assert_eq!(against, [scene.plan.cells[0].id, scene.plan.cells[2].id]);
    // The evidence is what the comparison says, no matter which of them is the baseline of the record.
    let known = compare_cells(&scene.summary, 0, 1, MetricReference::LATENCY, &ComparisonRules::default()).unwrap();
    assert_eq!(choice.rankings[0].evidence[0].interval(), known.interval());
}

#[test]
fn cells_within_the_margin_are_not_told_apart() {
    let scene = three().level("m/default/fp32/cpu", 8.05);
    let choice = scene.choose("latency", &[]);
    assert_eq!(scene.best(&choice), [["m/default/int8/cpu", "m/default/fp32/cpu"]]);
    assert_eq!(choice.rankings[0].evidence[0].verdict, statistics::Verdict::Equivalent);
}

#[test]
fn noise_tells_nothing_apart() {
    let noisy: Vec<f64> =
        around(12e6).iter().enumerate().map(|(run, value)| value * (1.0 + 0.2 * (run % 3) as f64)).collect();
    let scene = three().values("m/default/fp32/cpu", &LATENCY, &noisy).level("m/default/int8/cpu", 13.0);
    assert_eq!(scene.best(&scene.choose("latency", &[]))[0].len(), 2);
}

#[test]
fn each_model_and_input_has_a_ranking_and_devices_compete() {
    let scene = Scene::new("models: [m, n]\ninputs: { batch: [1, 8] }\nvariants: [a]\ndevices: [cpu, cuda]");
    let paths: Vec<String> = scene.plan.cells.iter().map(|cell| scene.plan.path(cell)).collect();
    let scene =
        paths.iter().fold(scene, |scene, path| scene.level(path, if path.contains("cuda") { 1.0 } else { 2.0 }));
    let best = scene.best(&scene.choose("latency", &[]));
    assert_eq!(best, [["m/b1/a/cuda:0"], ["m/b8/a/cuda:0"], ["n/b1/a/cuda:0"], ["n/b8/a/cuda:0"]]);
}

#[test]
fn models_compete_where_they_are_compared() {
    let two = |baseline: &[(&str, &str)]| {
        let scene = Scene::against("models: [m, n]\ndevices: [cpu, cuda]", baseline);
        let scene = scene.level("m/default/fp32/cpu", 2.0).level("n/default/fp32/cpu", 1.0);
        scene.level("m/default/fp32/cuda:0", 2.0).level("n/default/fp32/cuda:0", 0.5)
    };
    let asked = two(&[("model", "m")]);
    assert_eq!(asked.best(&asked.choose("latency", &[])), [["n/default/fp32/cuda:0"]]);
    let default = two(&[]);
    assert_eq!(default.best(&default.choose("latency", &[])).len(), 2);
    let nothing_else = Scene::new("models: [m, n]").level("m/default/fp32/cpu", 2.0).level("n/default/fp32/cpu", 1.0);
    assert_eq!(nothing_else.best(&nothing_else.choose("latency", &[])), [["n/default/fp32/cpu"]]);
}

#[test]
fn a_matrix_over_batches_alone_is_answered_by_items() {
    let mut scene = Scene::new("models: [m]\ninputs: { batch: [1, 8] }").level("m/b1/fp32/cpu", 1.0);
    scene = scene.level("m/b8/fp32/cpu", 4.0);
    let unasked =
        |scene: &Scene| fastest(&scene.plan, &scene.summary, &scene.judged, &ComparisonRules::default(), Vec::new());
    scene.summary.cells.iter_mut().zip([1, 8]).for_each(|(cell, batch)| cell.batch = Some(batch));
    assert_eq!(unasked(&scene), None, "with cold caches there are no rates");
    let rated = |scene: Scene, path: &str, rate: f64| scene.values(path, &ITEMS, &around(rate));
    let scene = rated(rated(scene, "m/b1/fp32/cpu", 1000.0), "m/b8/fp32/cpu", 2000.0);
    let choice = unasked(&scene).expect("an answer");
    assert!(choice.unasked);
    assert_eq!(choice.rankings[0].best, [scene.id("m/b8/fp32/cpu")]);
    assert_eq!(choice.rankings[0].evidence[0].metric, MetricReference::of(&ITEMS));
}

#[test]
fn batches_compete_for_a_rate_per_item_alone() {
    let scene = Scene::new("models: [m]\ninputs: { batch: [1, 8], sequence: [16, 32] }");
    let paths: Vec<String> = scene.plan.cells.iter().map(|cell| scene.plan.path(cell)).collect();
    let rate = |path: &str| if path.contains("/b8") { 500.0 } else { 100.0 };
    let scene =
        paths.iter().fold(scene, |scene, path| scene.level(path, 1.0).values(path, &ITEMS, &around(rate(path))));
    assert_eq!(scene.best(&scene.choose("latency", &[])).len(), 4);
    let best = scene.best(&scene.choose("items_per_s", &[]));
    assert_eq!(best, [["m/b8-sequence16/fp32/cpu"], ["m/b8-sequence32/fp32/cpu"]]);
}

#[test]
fn bounds_are_kept_missed_or_undecided_by_the_whole_interval() {
    let scene = three();
    let outcome = |max: f64| {
        let cell = scene.choose("latency", &[at_most("latency", max, None)]).bounds[0].cells[0].clone();
        (cell.outcome, cell.reason)
    };
    // The mean of the runs is 18 ms with half an interval of 0.107 %, or 0.02 ms.
    assert_eq!(outcome(18.03e6), (BoundOutcome::Kept, None));
    assert_eq!(outcome(18.01e6), (BoundOutcome::Undecided, Some(Doubt::Across)));
    assert_eq!(outcome(17.97e6), (BoundOutcome::Missed, None));
    let least = Bound { min: Some(17.97e6), max: None, ..at_most("latency", 0.0, None) };
    let choice = scene.choose("latency", &[least]);
    assert_eq!(
        choice.bounds[0].cells.iter().map(|cell| cell.outcome).collect::<Vec<_>>(),
        [BoundOutcome::Kept, BoundOutcome::Missed, BoundOutcome::Kept]
    );
    assert_eq!(scene.best(&choice), [["m/default/fp32/cpu"]]);
}

#[test]
fn a_percentile_without_enough_samples_is_undecided() {
    let scene = three().tails("m/default/fp32/cpu", true).tails("m/default/int8/cpu", false);
    let choice = scene.choose("latency", &[at_most("latency.p95", 20e6, None)]);
    let outcomes: Vec<_> = choice.bounds[0].cells.iter().map(|cell| (cell.outcome, cell.reason)).collect();
    let undecided = (BoundOutcome::Undecided, Some(Doubt::TooFewSamples));
    assert_eq!(outcomes, [(BoundOutcome::Kept, None), undecided, undecided]);
    // The faster one may miss the bound, and the one that keeps it may not be the fastest.
    assert_eq!(scene.best(&choice), [["m/default/int8/cpu", "m/default/fp32/cpu"]]);
    assert_eq!(
        scene.standing(&choice, "m/default/int8/cpu"),
        Standing::InDoubt { metric: "latency.p95".parse().unwrap() }
    );
    assert_eq!(scene.standing(&choice, "m/default/fp32/cpu"), Standing::Unbeaten);
    assert!(scene.standing(&choice, "m/default/fp16/cpu") == Standing::Beaten { other: scene.plan.cells[0].id });
}

/// What all samples of the runs of [`three`] together say of p95, in milliseconds.
fn pooled(mut scene: Scene, path: &str, low: Option<f64>, high: Option<f64>) -> Scene {
    let cell = scene.cell(path);
    let [low, high] = [low, high].map(|end| end.map(|milliseconds| milliseconds * 1e6));
    let pooled = PooledTail { low, high, samples: 200, effective: 100, needed: 90, runs: 10 };
    scene.summary.cells[cell].pooled.push((Statistic::P95, pooled));
    scene
}

#[test]
fn all_samples_together_decide_what_those_of_a_run_cannot() {
    let path = "m/default/int8/cpu";
    let outcome = |scene: Scene, max: f64| {
        let choice = scene.choose("latency", &[at_most("latency.p95", max * 1e6, None)]);
        let bounded = choice.bounds[0].of(scene.id(path)).unwrap();
        (bounded.outcome, bounded.reason, bounded.pooled.is_some())
    };
    let thin = |low, high| pooled(three().tails(path, false), path, low, high);
    assert_eq!(outcome(thin(Some(8.0), Some(9.0)), 20.0), (BoundOutcome::Kept, None, true));
    // The median is 8 ms, so the percentile is no less.
    assert_eq!(outcome(thin(Some(8.0), None), 7.0), (BoundOutcome::Missed, None, true));
    let undecided = BoundOutcome::Undecided;
    assert_eq!(outcome(thin(Some(8.0), Some(9.0)), 8.5), (undecided, Some(Doubt::Across), true));
    assert_eq!(outcome(thin(Some(8.0), None), 20.0), (undecided, Some(Doubt::TooFewSamples), true));
    // Runs that support their percentile have the last word.
    let supported = |low, high| pooled(three().tails(path, true), path, low, high);
    assert_eq!(outcome(supported(Some(9.0), None), 20.0), (BoundOutcome::Kept, None, false));
    assert_eq!(outcome(supported(Some(8.0), Some(8.7)), 8.8), (undecided, Some(Doubt::Across), false));
    assert_eq!(outcome(supported(Some(8.9), None), 8.8), (undecided, Some(Doubt::Across), false));
    // One bad run has many samples, and is one.
    assert_eq!(outcome(thin(Some(24.0), None), 10.0), (undecided, Some(Doubt::Across), true));
    // Too few runs say nothing, however many samples they have.
    let few = pooled(three().values(path, &LATENCY, &[8e6; 4]).tails(path, false), path, Some(8.0), Some(9.0));
    assert!(!outcome(few, 20.0).2);
}

#[test]
fn bounds_speak_of_the_cells_that_they_match() {
    let scene =
        Scene::new("models: [m]\ninputs: { batch: [1, 8] }").level("m/b1/fp32/cpu", 1.0).level("m/b8/fp32/cpu", 9.0);
    let choice = scene.choose("latency", &[at_most("latency", 5e6, Some(1))]);
    assert_eq!(choice.bounds[0].cells.len(), 1);
    assert_eq!(scene.best(&choice), [["m/b1/fp32/cpu"], ["m/b8/fp32/cpu"]]);
    let both = scene.choose("latency", &[at_most("latency", 5e6, None)]);
    assert_eq!(scene.best(&both), [vec!["m/b1/fp32/cpu".to_owned()], vec![]]);
    assert_eq!(scene.standing(&both, "m/b8/fp32/cpu"), Standing::OutOfBounds { metric: MetricReference::LATENCY });
}

#[test]
fn a_speedup_is_that_against_the_own_baseline() {
    let mut scene = three();
    let rules = ComparisonRules::default();
    scene.judged.comparisons = against_baseline(&scene.plan, &[], |baseline, cell| {
        compare_cells(&scene.summary, baseline, cell, MetricReference::LATENCY, &rules)
    });
    let least = Bound { min: Some(1.0), max: None, ..at_most("speedup", 0.0, None) };
    let choice = scene.choose("speedup", &[least]);
    let outcomes: Vec<BoundOutcome> = choice.bounds[0].cells.iter().map(|cell| cell.outcome).collect();
    assert_eq!(outcomes, [BoundOutcome::Kept, BoundOutcome::Kept, BoundOutcome::Missed]);
    assert_eq!(scene.best(&choice), [["m/default/int8/cpu"]]);
}

#[test]
fn what_cannot_be_judged_is_never_best() {
    let unfit = |scene: Scene, path: &str| {
        let choice = scene.choose("latency", &[]);
        assert!(!scene.best(&choice).concat().contains(&path.to_owned()), "{path}");
        match scene.standing(&choice, path) {
            Standing::Unfit { why } => why,
            other => panic!("{other:?}"),
        }
    };
    let path = "m/default/int8/cpu";
    assert_eq!(unfit(three().failed(path), path), Unfit::Failed(FailureKind::Operator));
    assert_eq!(unfit(three().skipped(path), path), Unfit::Skipped);
    assert_eq!(unfit(three().warned(path, "W_OUTPUT_NONFINITE"), path), Unfit::Withheld(Withheld::NotFinite));
    assert_eq!(unfit(three().values(path, &LATENCY, &[8e6; 4]), path), Unfit::TooFewRuns(4));
    assert_eq!(unfit(Scene::new("models: [m]\nvariants: [int8, b]"), path), Unfit::NotRun);
    let memory = three().choose("peak_rss", &[]);
    assert!(memory.rankings[0].best.is_empty());
    assert_eq!(three().standing(&memory, path), Standing::Unfit { why: Unfit::NoValue });
    let neutral = three().choose("cpu_utilisation", &[]);
    assert_eq!(three().standing(&neutral, path), Standing::Unfit { why: Unfit::NoDirection });
}

#[test]
fn a_failed_control_of_the_record_leaves_nothing_to_claim() {
    let scene = three().failed_control("m/default/fp32/cpu");
    let choice = scene.choose("latency", &[at_most("latency", 20e6, None)]);
    assert_eq!(choice.failed_control.map(|failed| failed.cell), Some(scene.plan.cells[0].id));
    assert!(choice.rankings.is_empty() && choice.bounds.is_empty());
}

#[test]
fn a_failed_control_of_a_group_discredits_that_group() {
    let scene = Scene::new("models: [m, n]\nvariants: [a, b]")
        .level("m/default/a/cpu", 2.0)
        .level("m/default/b/cpu", 1.0)
        .level("n/default/a/cpu", 2.0)
        .level("n/default/b/cpu", 1.0)
        .failed_control("m/default/a/cpu");
    let mut scene = scene;
    scene.plan.controls.push(2);
    let best = scene.best(&scene.choose("latency", &[]));
    assert_eq!(best, [vec![], vec!["n/default/b/cpu".to_owned()]]);
}

#[test]
fn a_quick_look_tells_apart_only_what_is_beyond_its_margin() {
    let margin = ComparisonRules::default().margin.of_quick_look();
    let quick = ComparisonRules { is_quick: true, margin, ..ComparisonRules::default() };
    let scene = three().level("m/default/fp32/cpu", 8.5);
    assert_eq!(scene.best(&scene.choose("latency", &[])), [["m/default/int8/cpu"]]);
    assert_eq!(scene.best(&scene.choose_by("latency", &[], &quick))[0].len(), 2);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn the_best_are_unbeaten_and_everyone_else_has_a_reason(levels in prop::array::uniform3(1.0_f64..3.0), max in 1.0_f64..4.0) {
            let scene = ["fp32", "int8", "fp16"].iter().zip(levels).fold(three(), |scene, (variant, level)| {
                scene.level(&format!("m/default/{variant}/cpu"), level)
            });
            let choice = scene.choose("latency", &[at_most("latency", max * 1e6, None)]);
            let ranking = &choice.rankings[0];
            for candidate in &ranking.candidates {
                let is_best = ranking.best.contains(&candidate.cell);
                let may_be = matches!(candidate.standing, Standing::Unbeaten | Standing::InDoubt { .. });
                prop_assert_eq!(is_best, may_be);
                if let Standing::Beaten { other: by } = candidate.standing {
                    let verdict = verdict_of(&scene, by, candidate.cell);
                    prop_assert_eq!(verdict, statistics::Verdict::Better);
                    prop_assert!(choice.bounds[0].of(by).is_some_and(|bounded| bounded.outcome == BoundOutcome::Kept));
                }
            }
            // Somebody is best unless nobody may be.
            let all_out = ranking.candidates.iter().all(|candidate| matches!(candidate.standing, Standing::OutOfBounds { .. }));
            prop_assert_eq!(ranking.best.is_empty(), all_out);
        }
    }

    fn verdict_of(scene: &Scene, cell: CellId, other: CellId) -> statistics::Verdict {
        let [cell, other] = [cell, other].map(|id| scene.plan.cells.iter().position(|it| it.id == id).unwrap());
        let comparison =
            compare_cells(&scene.summary, other, cell, MetricReference::LATENCY, &ComparisonRules::default());
        comparison.unwrap().verdict
    }
}
