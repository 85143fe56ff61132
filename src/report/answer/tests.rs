//! Known comparisons in, known sentences out.

use std::path::Path;

use statistics::interval::{Estimate, Interval};
use statistics::paired::Hint;

use super::*;
use crate::judge::compare::{Comparison, Tie, Withheld};
use crate::judge::summary::{CellSummary, FailureCount, MetricSummary, RunCounts};
use crate::plan::{Skip, expand};
use crate::quality::fidelity::Fidelity;
use crate::worker::backend::{Failure, FailureKind};

/// A plan and what its cells are said to have done.
struct Scene {
    plan: Plan,
    summary: Summary,
    comparisons: Vec<Comparison>,
    ties: Vec<Tie>,
    memory: Vec<Comparison>,
}

fn scene(yaml: &str) -> Scene {
    let text = format!("backend: {{ mock: {{ median: 1ms }} }}\n{yaml}");
    let experiment = crate::spec::parse("test.yaml", &text, Path::new("."), &[]).unwrap().experiment;
    let plan = expand(&experiment).unwrap();
    let cell = |id| {
        let runs = RunCounts { completed: 10, ..RunCounts::default() };
        CellSummary { runs, ..CellSummary::unmeasured(id) }
    };
    let cells = plan.cells.iter().map(|planned| cell(planned.id)).collect();
    let summary = Summary { cells, ..Summary::default() };
    Scene { plan, summary, comparisons: Vec::new(), ties: Vec::new(), memory: Vec::new() }
}

impl Scene {
    fn cell(&self, path: &str) -> usize {
        self.plan.cells.iter().position(|cell| self.plan.path(cell) == path).expect("a cell of the plan")
    }

    /// A comparison whose verdict follows from its interval, as in `judge::compare`.
    fn compared(mut self, path: &str, speedup: f64, interval: Option<[f64; 2]>) -> Self {
        let cell = self.cell(path);
        let verdict = match interval {
            Some([low, _]) if low > 1.02 => Verdict::Better,
            Some([_, high]) if high < 1.0 / 1.02 => Verdict::Worse,
            Some([low, high]) if low > 1.0 / 1.02 && high < 1.02 => Verdict::Equivalent,
            _ => Verdict::Inconclusive,
        };
        let hint = match (verdict, interval) {
            (Verdict::Inconclusive, Some(_)) => {
                Some(Hint::NotEnoughData { detectable_effect: 0.033, more_blocks: Some(13) })
            }
            (Verdict::Inconclusive, None) => Some(Hint::TooFewBlocks { needed: 5 }),
            _ => None,
        };
        self.comparisons.push(Comparison {
            cell,
            baseline: 0,
            metric: crate::vocabulary::metric::MetricReference::LATENCY,
            speedup,
            interval: interval.map(|[low, high]| Interval { low, high }),
            confidence: 0.95,
            blocks: if interval.is_some() { 10 } else { 3 },
            margin: 0.02,
            verdict,
            hint,
            withheld: None,
            details: None,
        });
        self.comparisons.sort_by_key(|comparison| comparison.cell);
        self
    }

    fn withheld(mut self, path: &str, withheld: Withheld) -> Self {
        let cell = self.cell(path);
        for comparison in self.comparisons.iter_mut().filter(|comparison| comparison.cell == cell) {
            (comparison.verdict, comparison.hint, comparison.withheld) = (Verdict::Inconclusive, None, Some(withheld));
        }
        self
    }

    fn failed(mut self, path: &str, completed: u32) -> Self {
        let cell = self.cell(path);
        let failure = Failure::new(FailureKind::OutOfMemory, "no memory");
        self.summary.cells[cell].runs = RunCounts { completed, failed: 2, ..RunCounts::default() };
        self.summary.cells[cell].failures = vec![FailureCount { failure, rehearsal: false, runs: 2, log_tail: None }];
        self
    }

    fn skipped(mut self, path: &str) -> Self {
        let cell = self.cell(path);
        self.plan.mark_skipped(cell, Skip { kind: crate::plan::SkipKind::Other, reason: "x".to_owned(), remedy: None });
        self.summary.cells[cell].runs = RunCounts { skipped: 10, ..RunCounts::default() };
        self
    }

    fn sentences(&self) -> Vec<String> {
        let (comparisons, ties, memory) = (self.comparisons.clone(), self.ties.clone(), self.memory.clone());
        let judged = Judged { comparisons, ties, memory, ..Judged::default() };
        answer(&self.plan, &self.summary, &judged).iter().map(ToString::to_string).collect()
    }

    /// Two cells that latency does not tell apart take as much memory as this, in MiB.
    fn tied(mut self, ahead: (&str, f64), behind: (&str, f64)) -> Self {
        for (path, memory) in [ahead, behind] {
            self.takes(path, memory);
        }
        let by = crate::vocabulary::metric::MetricReference::of(&metric::PEAK_RSS);
        self.ties.push(Tie { ahead: self.cell(ahead.0), behind: self.cell(behind.0), by });
        self
    }

    fn takes(&mut self, path: &str, memory: f64) {
        let cell = self.cell(path);
        let known = self.summary.cells[cell].clone();
        self.summary.cells[cell] = known.with_values(&metric::PEAK_RSS, &[memory * 1024.0 * 1024.0; 10]);
    }

    /// Peak memory in MiB, with a verdict against the baseline.
    fn memory(mut self, path: &str, memory: f64, baseline: (&str, f64), verdict: Verdict) -> Self {
        self.takes(path, memory);
        self.takes(baseline.0, baseline.1);
        let (cell, baseline) = (self.cell(path), self.cell(baseline.0));
        let known = self.comparisons.iter().find(|one| one.cell == cell).unwrap().clone();
        self.memory.push(Comparison { baseline, verdict, ..known });
        self
    }
}

const THREE: &str = "models: [m]\nvariants: [fp32, int8, fp16]";

#[test]
fn the_only_faster_entry_is_named() {
    let scene = scene(THREE).compared("m/default/int8/cpu", 2.32, Some([2.29, 2.35])).compared(
        "m/default/fp16/cpu",
        0.66,
        Some([0.65, 0.67]),
    );
    assert_eq!(scene.sentences(), ["m: int8. 2.3x faster than fp32; fp16 is slower than fp32 (0.66x)."]);
}

#[test]
fn of_two_faster_entries_the_better_is_named_only_if_the_intervals_are_disjoint() {
    let first = scene(THREE).compared("m/default/int8/cpu", 2.32, Some([2.29, 2.35]));
    let clear = first.compared("m/default/fp16/cpu", 1.5, Some([1.4, 1.6]));
    assert!(clear.sentences()[0].starts_with("m: int8."), "{:?}", clear.sentences());
    let second = scene(THREE).compared("m/default/int8/cpu", 2.32, Some([2.29, 2.35]));
    let overlapping = second.compared("m/default/fp16/cpu", 2.28, Some([2.25, 2.31]));
    assert!(overlapping.sentences()[0].starts_with("m: int8 or fp16."), "{:?}", overlapping.sentences());
}

#[test]
fn ties_are_broken_by_what_else_is_weighed() {
    let scene = scene(THREE)
        .compared("m/default/int8/cpu", 0.989, Some([0.982, 0.991]))
        .compared("m/default/fp16/cpu", 1.0, Some([0.97, 1.03]))
        .tied(("m/default/int8/cpu", 75.5), ("m/default/fp32/cpu", 125.0))
        .tied(("m/default/int8/cpu", 75.5), ("m/default/fp16/cpu", 126.6));
    assert_eq!(
        scene.sentences(),
        [
            "m: int8 by peak memory. Equivalent to fp32; int8 is ahead of fp32 and fp16 by peak memory (75.5 MiB against 125 MiB and 127 MiB); fp16 and fp32 cannot be ranked: only differences above 5 % are detectable here."
        ]
    );
}

#[test]
fn what_is_chosen_has_its_memory_beside_it() {
    let faster = || scene(THREE).compared("m/default/int8/cpu", 2.32, Some([2.29, 2.35]));
    let with = |memory, verdict| {
        let scene = faster().memory("m/default/int8/cpu", memory, ("m/default/fp32/cpu", 125.0), verdict);
        scene.sentences().concat()
    };
    assert_eq!(with(75.5, Verdict::Better), "m: int8. 2.3x faster than fp32, 50 MiB less memory.");
    assert_eq!(with(137.0, Verdict::Worse), "m: int8. 2.3x faster than fp32, 12.0 MiB more memory.");
    assert_eq!(with(124.9, Verdict::Equivalent), "m: int8. 2.3x faster than fp32.");
}

#[test]
fn more_than_four_subjects_are_a_table() {
    let mut scene = scene("models: [a, b, c, d, e]\nvariants: [fp32, int8]");
    for model in ["a", "b", "c", "d", "e"] {
        scene = scene.compared(&format!("{model}/default/int8/cpu"), 2.32, Some([2.29, 2.35]));
    }
    let judged = Judged { comparisons: scene.comparisons.clone(), ..Judged::default() };
    let sentences = answer(&scene.plan, &scene.summary, &judged);
    let rows = rows(&sentences).unwrap();
    assert_eq!(*rows[4], ["e", "int8", "2.3x faster than fp32"].map(str::to_owned));
}

#[test]
fn the_baseline_takes_ties_too() {
    let scene = scene("models: [m]\nvariants: [fp32, int8]")
        .compared("m/default/int8/cpu", 1.0, Some([0.99, 1.01]))
        .tied(("m/default/fp32/cpu", 100.0), ("m/default/int8/cpu", 125.0));
    assert!(scene.sentences()[0].starts_with("m: fp32 by peak memory. "), "{:?}", scene.sentences());
}

#[test]
fn of_two_faster_entries_that_are_tied_the_lighter_is_named() {
    let scene = scene(THREE)
        .compared("m/default/int8/cpu", 2.32, Some([2.29, 2.35]))
        .compared("m/default/fp16/cpu", 2.28, Some([2.25, 2.31]))
        .tied(("m/default/fp16/cpu", 80.0), ("m/default/int8/cpu", 90.0));
    assert!(
        scene.sentences()[0]
            .starts_with("m: fp16 by peak memory. 2.3x faster than fp32; fp16 is ahead of int8 by peak memory"),
        "{:?}",
        scene.sentences()
    );
}

#[test]
fn a_tie_at_one_input_and_speed_at_another_leave_one_answer_or_none() {
    let two = || scene("models: [m]\ninputs: { batch: [1, 16] }\nvariants: [fp32, int8]");
    let level = two().compared("m/b1/int8/cpu", 0.99, Some([0.982, 0.995]));
    let light = |scene: Scene| scene.tied(("m/b1/int8/cpu", 75.5), ("m/b1/fp32/cpu", 125.0)).sentences().concat();
    let faster = light(level.compared("m/b16/int8/cpu", 1.33, Some([1.32, 1.34])));
    assert!(faster.starts_with("m: int8. 1.33x faster than fp32 at b16, equivalent at b1;"), "{faster}");
    assert!(faster.ends_with("int8 is ahead of fp32 by peak memory at b1 (75.5 MiB against 125 MiB)."), "{faster}");
    let level = two().compared("m/b1/int8/cpu", 0.99, Some([0.982, 0.995]));
    let slower = light(level.compared("m/b16/int8/cpu", 0.8, Some([0.79, 0.81])));
    assert!(slower.starts_with("m: it depends on the input. "), "{slower}");
}

#[test]
fn inputs_are_told_apart_where_they_differ() {
    let scene = scene("models: [m]\ninputs: { batch: [1, 16] }\nvariants: [fp32, int8]")
        .compared("m/b1/int8/cpu", 1.02, Some([0.99, 1.06]))
        .compared("m/b16/int8/cpu", 2.49, Some([2.45, 2.53]));
    assert_eq!(
        scene.sentences(),
        ["m: it depends on the input. int8 is 2.5x faster than fp32 at b16, inconclusive at b1."]
    );
}

#[test]
fn many_inputs_become_a_range() {
    let mut scene = scene("models: [m]\ninputs: { batch: [1, 2, 4, 8] }\nvariants: [fp32, int8]");
    for (batch, speedup) in [(1, 2.0), (2, 2.5), (4, 2.2), (8, 2.1)] {
        scene = scene.compared(&format!("m/b{batch}/int8/cpu"), speedup, Some([speedup - 0.1, speedup + 0.1]));
    }
    assert_eq!(scene.sentences(), ["m: int8. 2.0x to 2.5x faster than fp32 over 4 inputs."]);
}

#[test]
fn what_is_open_is_not_claimed() {
    let open = scene(THREE).compared("m/default/int8/cpu", 1.02, Some([0.99, 1.06])).compared(
        "m/default/fp16/cpu",
        0.66,
        Some([0.65, 0.67]),
    );
    assert!(open.sentences()[0].starts_with(
        "m: undecided between fp32 and int8. fp16 is slower than fp32 (0.66x); int8 and fp32 cannot be ranked: only"
    ));
    let alike = scene("models: [m]\nvariants: [fp32, int8]").compared("m/default/int8/cpu", 1.0, Some([0.99, 1.01]));
    assert_eq!(alike.sentences(), ["m: no difference beyond 2 %. int8 is equivalent to fp32."]);
}

#[test]
fn what_may_be_faster_still_is_said_to_be_open() {
    let scene = scene(THREE).compared("m/default/int8/cpu", 1.1, Some([1.08, 1.12]));
    let open = scene.compared("m/default/fp16/cpu", 1.6, Some([0.97, 2.6]));
    assert!(open.sentences()[0].starts_with("m: int8; fp16 undecided. 1.10x faster than fp32"));
    let scene = super::tests::scene(THREE).compared("m/default/int8/cpu", 1.1, Some([1.08, 1.12]));
    let beaten = scene.compared("m/default/fp16/cpu", 1.0, Some([0.95, 1.05]));
    assert!(beaten.sentences()[0].starts_with("m: int8. 1.10x faster than fp32"));
}

#[test]
fn what_is_equivalent_to_the_best_may_as_well_be_taken() {
    let scene = scene(THREE).compared("m/default/int8/cpu", 1.015, Some([1.012, 1.018]));
    let scene = scene.compared("m/default/fp16/cpu", 0.66, Some([0.65, 0.67]));
    assert!(scene.sentences()[0].starts_with("m: fp32 or int8. int8 is equivalent to fp32"), "{:?}", scene.sentences());
}

#[test]
fn a_quick_look_is_undecided() {
    let scene = scene("models: [m]\nvariants: [fp32, int8]").compared("m/default/int8/cpu", 1.05, Some([1.0, 1.1]));
    let quick = scene.withheld("m/default/int8/cpu", Withheld::QuickLook);
    assert_eq!(
        quick.sentences(),
        ["m: undecided between fp32 and int8. int8 is inconclusive (a quick look claims only differences beyond 2 %)."]
    );
}

#[test]
fn nothing_is_judged_below_five_runs() {
    let scene = scene(THREE).compared("m/default/int8/cpu", 2.3, None).compared("m/default/fp16/cpu", 0.7, None);
    assert_eq!(
        scene.sentences(),
        ["No answer yet. A verdict needs 5 common runs of a cell and its baseline; here there are at most 3."]
    );
}

#[test]
fn failures_are_told_and_a_failing_candidate_is_no_rival() {
    let scene = scene(THREE)
        .compared("m/default/int8/cpu", 0.8, Some([0.79, 0.81]))
        .compared("m/default/fp16/cpu", 1.1, None)
        .failed("m/default/fp16/cpu", 3);
    assert_eq!(
        scene.sentences(),
        [
            "m: fp32. int8 is slower than fp32 (0.80x); fp16 is not judged: 3 common runs, since runs failed (out of memory), but a verdict needs 5."
        ]
    );
}

#[test]
fn withheld_verdicts_have_a_reason() {
    let faster = || scene(THREE).compared("m/default/int8/cpu", 2.0, Some([1.9, 2.1]));
    let nonsense = faster().withheld("m/default/int8/cpu", Withheld::NotFinite);
    assert_eq!(nonsense.sentences(), ["m: nothing to judge. int8 is not judged: outputs with NaN or infinity."]);
    let unsteady = faster().compared("m/default/fp16/cpu", 0.5, Some([0.49, 0.51]));
    let unsteady = unsteady.withheld("m/default/int8/cpu", Withheld::NotSteady);
    assert_eq!(
        unsteady.sentences(),
        [
            "m: undecided between fp32 and int8. fp16 is slower than fp32 (0.50x); int8 is not judged: most runs never reached a steady state."
        ]
    );
}

#[test]
fn without_a_baseline_nothing_is_compared() {
    let scene = scene("models: [m]\nvariants: [fp32, int8]").failed("m/default/fp32/cpu", 0);
    assert_eq!(scene.sentences(), ["m: nothing to judge. fp32 failed (out of memory), so nothing is compared there."]);
}

#[test]
fn skipped_devices_are_no_subject() {
    let yaml = "models: [m]\nvariants: [fp32, int8]\ndevices: [cpu, cuda]";
    let scene = scene(yaml)
        .compared("m/default/int8/cpu", 2.3, Some([2.2, 2.4]))
        .skipped("m/default/fp32/cuda:0")
        .skipped("m/default/int8/cuda:0");
    assert_eq!(scene.sentences(), ["m: int8. 2.3x faster than fp32."]);
}

#[test]
fn compared_models_have_no_subject() {
    let scene = scene("models: [mlp, cnn]").compared("cnn/default/fp32/cpu", 0.5, Some([0.49, 0.51]));
    assert_eq!(scene.sentences(), ["Fastest: mlp. cnn is slower than mlp (0.50x)."]);
}

#[test]
fn variants_are_places_where_devices_are_compared() {
    let mut scene =
        scene("models: [m]\nvariants: [fp32, int8]\ndevices: [cpu, cuda]\ncompare: { baseline: { device: cpu } }");
    scene = scene.compared("m/default/fp32/cuda:0", 6.7, Some([6.6, 6.8]));
    scene = scene.compared("m/default/int8/cuda:0", 0.5, Some([0.49, 0.51]));
    assert_eq!(
        scene.sentences(),
        ["m: it depends on the variant. cuda:0 is 6.7x faster than cpu with fp32, slower (0.50x with int8)."]
    );
}

#[test]
fn rows_are_places_where_inputs_and_variants_differ() {
    let yaml = "models: [m]\ninputs: { batch: [1, 8] }\nvariants: [fp32, int8]\ndevices: [cpu, cuda]\ncompare: { baseline: { device: cpu } }";
    let mut scene = scene(yaml);
    for (index, path) in ["m/b1/fp32", "m/b1/int8", "m/b8/fp32", "m/b8/int8"].iter().enumerate() {
        let speedup = 2.0 + index as f64;
        scene = scene.compared(&format!("{path}/cuda:0"), speedup, Some([speedup - 0.1, speedup + 0.1]));
    }
    assert_eq!(scene.sentences(), ["m: cuda:0. 2.0x to 5.0x faster than cpu over 4 rows of the table."]);
}

#[test]
fn many_candidates_are_counted() {
    let scene = scene("models: [m]\nvariants: [a, b, c, d, e, f]")
        .compared("m/default/b/cpu", 1.5, Some([1.4, 1.6]))
        .compared("m/default/c/cpu", 1.2, Some([1.1, 1.3]))
        .compared("m/default/d/cpu", 0.5, Some([0.4, 0.6]))
        .compared("m/default/e/cpu", 1.0, Some([0.99, 1.01]))
        .compared("m/default/f/cpu", 1.0, Some([0.9, 1.1]));
    assert_eq!(
        scene.sentences(),
        ["m: b. Of 5 compared with a: 2 faster, 1 slower, 1 equivalent, 1 inconclusive; b is 1.5x faster than a."]
    );
}

#[test]
fn a_single_cell_is_measured_and_not_compared() {
    let mut scene = scene("models: [m]");
    let estimate =
        Estimate { value: 39_912.0, interval: Some(Interval::around(39_912.0, 210.0)), n: 10, confidence: 0.95 };
    let latency = MetricSummary { estimate, per_run: Vec::new() };
    scene.summary.cells[0].metrics.insert(metric::LATENCY.name.to_owned(), latency);
    assert_eq!(
        scene.sentences(),
        [
            "Measured, not compared. m takes 40 us at default; nothing to compare: one variant, one model and one device."
        ]
    );
}

#[test]
fn nothing_measured_is_said() {
    let mut scene = scene("models: [m]");
    scene.summary.cells[0].runs = RunCounts::default();
    assert_eq!(scene.sentences(), ["Nothing was measured. No run has completed."]);
    let failed = scene.failed("m/default/fp32/cpu", 0);
    assert_eq!(failed.sentences(), ["Nothing was measured. No run has completed; the notices say why."]);
}

fn fidelity(cosine: f64, passes: bool) -> Fidelity {
    Fidelity {
        items_of_data: Some(10),
        is_given: false,
        input_sets: 1,
        elements: 10,
        cosine: Some(cosine),
        cosine_of: None,
        max_abs: 0.1,
        mean_abs: 0.1,
        max_scaled: None,
        mean_scaled: None,
        max_scaled_ulp: None,
        close: None,
        agreement: None,
        items_kept: None,
        equal: Vec::new(),
        misses: if passes { Vec::new() } else { vec![format!("cosine {cosine}, required 0.999")] },
        is_judged: true,
    }
}

impl Scene {
    fn differs(mut self, path: &str, cosine: f64) -> Self {
        let cell = self.cell(path);
        self.summary.cells[cell].fidelity = Some(fidelity(cosine, false));
        self
    }
}

#[test]
fn what_differs_has_no_verdict_on_speed_and_each_is_named() {
    let names = "models: [m]\nvariants: [fp32, p, q, r, s]";
    let scene = || {
        scene(names)
            .compared("m/default/p/cpu", 1.0, Some([0.9, 1.1]))
            .compared("m/default/q/cpu", 1.0, Some([0.99, 1.01]))
            .compared("m/default/r/cpu", 2.0, Some([1.9, 2.1]))
            .compared("m/default/s/cpu", 1.12, Some([1.1, 1.14]))
            .differs("m/default/p/cpu", 0.8)
            .differs("m/default/q/cpu", 0.7)
            .differs("m/default/r/cpu", 0.6)
    };
    let differ = "p differs: cosine 0.8, required 0.999 (not ranked); q differs: cosine 0.7, required 0.999 (not \
                  ranked); r differs: cosine 0.6, required 0.999 (not ranked)";
    assert_eq!(scene().sentences(), [format!("m: s. 1.12x faster than fp32; {differ}.")]);
    // The short form leaves none of them out.
    let judged = Judged { comparisons: scene().comparisons, ..Judged::default() };
    let answer = answer(&scene().plan, &scene().summary, &judged);
    assert!(answer[0].in_short.ends_with(&format!("{differ}.")), "{answer:?}");
    // Where nothing else is left, it is the baseline.
    let all = scene().differs("m/default/s/cpu", 0.5);
    let text = all.sentences().concat();
    assert!(text.starts_with("m: fp32. p differs: "), "{text}");
    assert!(text.contains("s differs: cosine 0.5") && !text.contains("faster"), "{text}");
}

#[test]
fn what_differs_at_one_input_has_verdicts_at_the_others() {
    let scene = scene("models: [m]\ninputs: { batch: [1, 16] }\nvariants: [fp32, int8, fp16]")
        .compared("m/b1/int8/cpu", 2.0, Some([1.9, 2.1]))
        .compared("m/b16/int8/cpu", 3.0, Some([2.9, 3.1]))
        .compared("m/b1/fp16/cpu", 1.5, Some([1.4, 1.6]))
        .compared("m/b16/fp16/cpu", 1.5, Some([1.4, 1.6]))
        .differs("m/b16/int8/cpu", 0.9);
    assert_eq!(
        scene.sentences(),
        [
            "m: fp16. 1.5x faster than fp32 at b1, 1.5x at b16; int8 at b16 differs: cosine 0.9, required 0.999 (not ranked); int8 is 2.0x faster than fp32 at b1."
        ]
    );
}

/// Of variants that are not compared each has its reference beside it: its outputs tell nothing of a runtime.
#[test]
fn agreement_with_another_than_the_baseline_is_not_said() {
    let said = |variants: &str, path: &str| {
        let scene = scene(&format!(
            "models: [m]\nruntimes: [old, new]\nvariants: {variants}\ncompare: {{ baseline: {{ runtime: old }} }}"
        ));
        let mut scene = scene.compared(path, 1.5, Some([1.4, 1.6]));
        let cell = scene.cell(path);
        scene.summary.cells[cell].fidelity = Some(fidelity(0.99, true));
        scene.sentences().join(" ")
    };
    assert!(said("[a]", "m/default/a/cpu/new").contains("outputs agree (cosine 0.9900)"));
    assert!(!said("[a, b]", "m/default/b/cpu/new").contains("agree"));
}
