//! Known choices in, known sentences out.

use super::*;
use crate::experiment::Bound;
use crate::judge::compare::Terms;
use crate::judge::compare::choose::tests::{Scene, at_most};
use crate::vocabulary::metric::ITEMS;

fn told(scene: &Scene, best: &str, within: &[Bound]) -> Vec<String> {
    let choice = scene.choose(best, within);
    sentences(&scene.plan, &scene.summary, &Judged::default(), &choice).iter().map(ToString::to_string).collect()
}

fn bounds(scene: &Scene, bounds: &[Bound]) -> Vec<String> {
    within(&scene.plan, &scene.choose("latency", bounds)).iter().map(ToString::to_string).collect()
}

fn two_batches() -> Scene {
    Scene::new("models: [m]\ninputs: { batch: [1, 16] }\nvariants: [fp32, int8, fp16]")
        .level("m/b1/fp32/cpu", 18.4)
        .level("m/b1/int8/cpu", 7.9)
        .level("m/b1/fp16/cpu", 27.9)
        .level("m/b16/fp32/cpu", 271.0)
        .level("m/b16/int8/cpu", 109.0)
        .level("m/b16/fp16/cpu", 402.0)
}

#[test]
fn the_best_is_named_with_its_evidence() {
    assert_eq!(
        told(&two_batches(), "latency", &[]),
        ["m: int8. 2.3x faster than fp32 at b1, 2.5x at b16 and ahead of 1 other."]
    );
}

#[test]
fn what_was_measured_beside_other_load_is_chosen_for_that() {
    let mut scene = two_batches();
    let load = crate::judge::summary::OtherLoad { runs: 10, cores: 0.98, waiting_threads: None };
    scene.summary.cells.iter_mut().for_each(|cell| cell.findings.other_load = Some(load));
    let sentence = told(&scene, "latency", &[]).concat();
    assert!(sentence.starts_with("m: int8, beside other load (0.98 of a core). 2.3x faster"), "{sentence}");
}

#[test]
fn what_is_not_told_apart_is_named_together() {
    let scene = two_batches().level("m/b1/fp32/cpu", 7.95);
    let sentences = told(&scene, "latency", &[]);
    assert!(
        sentences[0].starts_with(
            "m: int8 or fp32 at b1; int8 at b16. int8 is equivalent to fp32 at b1 and 3.5x faster than fp16"
        ),
        "{sentences:?}"
    );
}

#[test]
fn a_tie_in_speed_is_broken_by_what_the_question_names() {
    let memory = |scene: Scene, path: &str, mib: f64| {
        scene.values(path, &crate::vocabulary::metric::PEAK_RSS, &[mib * 1024.0 * 1024.0; 10])
    };
    let scene = two_batches().level("m/b1/fp32/cpu", 7.95).level("m/b1/fp16/cpu", 7.85);
    let scene = memory(memory(memory(scene, "m/b1/fp32/cpu", 125.0), "m/b1/int8/cpu", 75.5), "m/b1/fp16/cpu", 126.6);
    let unasked = told(&scene, "latency", &[]).concat();
    assert!(unasked.starts_with("m: fp16 or int8 or fp32 at b1; int8 at b16. "), "{unasked}");
    assert!(!unasked.contains("ahead of fp32 and fp16"), "{unasked}");
    let sentence = told(&scene, "latency, peak_rss", &[]).concat();
    assert!(sentence.starts_with("m: int8. 2.5x faster than fp32 at b16, equivalent at b1 and "), "{sentence}");
    let tie = "int8 is ahead of fp32 and fp16 by peak memory at b1 (75.5 MiB against 125 MiB and 127 MiB)";
    assert!(sentence.contains(tie), "{sentence}");
    let alone = Scene::new("models: [m]\nvariants: [a, b]").level("m/default/a/cpu", 5.0).level("m/default/b/cpu", 5.0);
    let alone = memory(memory(alone, "m/default/a/cpu", 20.0), "m/default/b/cpu", 10.0);
    assert!(told(&alone, "latency, peak_rss", &[])[0].starts_with("m: b by peak memory. Equivalent to a"));
}

#[test]
fn a_bound_in_doubt_is_a_condition() {
    let scene = two_batches().tails("m/b1/int8/cpu", false).tails("m/b1/fp32/cpu", true).tails("m/b1/fp16/cpu", true);
    let bound = [at_most("latency.p95", 20e6, Some(1))];
    let sentences = told(&scene, "latency", &bound);
    assert!(
        sentences[0].starts_with(
            "m: int8 if it keeps p95 <= 20 ms at b1; int8 at b16. int8 is the only one that can be chosen at b1; "
        ),
        "{sentences:?}"
    );
    assert!(
        sentences[0]
            .contains("whether int8 keeps p95 <= 20 ms is undecided (8.690 ms ± 0.012 at b1: too few samples for p95)"),
        "{sentences:?}"
    );
}

#[test]
fn what_is_ahead_but_in_doubt_has_an_alternative() {
    let doubt = two_batches().tails("m/b1/int8/cpu", false).tails("m/b1/fp32/cpu", true).tails("m/b1/fp16/cpu", true);
    let lead = |scene: &Scene| {
        let choice = scene.choose("latency", &[at_most("latency.p95", 25e6, Some(1))]);
        sentences(&scene.plan, &scene.summary, &Judged::default(), &choice)[0].lead.clone()
    };
    assert_eq!(lead(&doubt), "m: int8 if it keeps p95 <= 25 ms, else fp32 at b1; int8 at b16.");
    let level = doubt.level("m/b1/fp32/cpu", 7.95).tails("m/b1/fp32/cpu", true);
    assert_eq!(lead(&level), "m: fp32, or int8 if it keeps p95 <= 25 ms at b1; int8 at b16.");
}

#[test]
fn what_the_leader_beats_is_no_answer_where_all_are_in_doubt() {
    let paths = ["m/b1/fp32/cpu", "m/b1/int8/cpu", "m/b1/fp16/cpu"];
    let scene = paths.iter().fold(two_batches(), |scene, path| scene.tails(path, false));
    let bound = [at_most("latency.p95", 50e6, Some(1))];
    let sentences = told(&scene, "latency", &bound);
    assert!(sentences[0].starts_with("m: int8 if it keeps p95 <= 50 ms at b1; int8 at b16."), "{sentences:?}");
    let doubt = "; whether fp32, int8 and fp16 keep p95 <= 50 ms is undecided at b1 (too few samples for p95); ";
    assert!(sentences[0].contains(doubt), "{sentences:?}");
    let all = scene.tails("m/b16/fp32/cpu", false).tails("m/b16/int8/cpu", false).tails("m/b16/fp16/cpu", false);
    assert_eq!(
        bounds(&all, &[at_most("latency.p95", 500e6, None)]),
        ["p95 <= 500 ms: met by none; undecided for 6 cells (too few samples for p95)."]
    );
}

#[test]
fn a_bound_by_all_samples_together_says_what_they_show() {
    use statistics::pooled_tail::PooledTail;
    let paths = ["m/b1/fp32/cpu", "m/b1/int8/cpu", "m/b1/fp16/cpu"];
    let mut scene = paths.iter().fold(two_batches(), |scene, path| scene.tails(path, false));
    let ends = [(Some(18.4e6), None), (Some(7.9e6), Some(9.1e6)), (Some(27.9e6), Some(29.0e6))];
    for (path, (low, high)) in paths.iter().zip(ends) {
        let pooled = PooledTail { low, high, samples: 400, effective: 200, needed: 459, runs: 10 };
        let cell = scene.cell(path);
        scene.summary.cells[cell].pooled.push((crate::vocabulary::metric::Statistic::P95, pooled));
    }
    assert_eq!(
        bounds(&scene, &[at_most("latency.p95", 20e6, Some(1))]),
        [
            "p95 <= 20 ms at batch 1: met by b1/int8; missed by b1/fp16 (at least 27.9 ms); undecided for b1/fp32 (at least 18.4 ms: too few samples for p95, `min_samples: 92` would do)."
        ]
    );
    assert_eq!(
        bounds(&scene, &[at_most("latency.p95", 8e6, Some(1))]),
        [
            "p95 <= 8 ms at batch 1: met by none; missed by b1/fp32 (at least 18.4 ms) and b1/fp16 (at least 27.9 ms); undecided for b1/int8 (7.90 ms to 9.10 ms)."
        ]
    );
}

#[test]
fn bounds_count_cells_and_name_those_that_miss() {
    let scene = two_batches().failed("m/b1/fp16/cpu");
    let at_one = at_most("latency", 10e6, Some(1));
    assert_eq!(
        bounds(&scene, &[at_one.clone(), at_most("latency", 500e6, Some(16))]),
        [
            "latency <= 10 ms at batch 1: met by b1/int8; missed by b1/fp32 (18.40 ms ± 0.02); undecided for b1/fp16 (failed, operator).",
            "latency <= 500 ms at batch 16: met by all 3 cells."
        ]
    );
    let nothing = Bound { min: Some(1e6), ..at_most("latency", 2e6, Some(7)) };
    assert_eq!(bounds(&scene, &[nothing]), ["1 ms <= latency <= 2 ms at batch 7: no cell runs."]);
}

#[test]
fn nothing_within_bounds_is_no_lack_of_runs() {
    let bound = [at_most("latency", 1e6, None)];
    let told = |scene: &Scene| told(scene, "latency", &bound).concat();
    let missed = two_batches();
    assert_eq!(told(&missed), "m: none. No cell keeps latency <= 1 ms; fp32, int8 and fp16 miss latency <= 1 ms.");
    let failed = missed.failed("m/b1/fp16/cpu").failed("m/b16/fp16/cpu");
    assert!(told(&failed).starts_with("m: none. No cell that can be judged keeps latency <= 1 ms; "));
    let early = two_batches().values("m/b1/int8/cpu", &crate::vocabulary::metric::LATENCY, &[8e6]);
    let early = told(&early);
    assert!(
        early.starts_with("m: no answer yet at b1; none at b16. A verdict needs 5 completed runs of each"),
        "{early}"
    );
    assert!(early.contains("int8 has 1 completed run at b1; a verdict needs 5"), "{early}");
    let all_failed = ["b1", "b16"].iter().flat_map(|at| ["fp32", "int8", "fp16"].map(|it| format!("m/{at}/{it}/cpu")));
    let all_failed = all_failed.fold(two_batches(), |scene, path| scene.failed(&path));
    assert!(told(&all_failed).starts_with("m: no answer. Nothing can be judged; "), "{}", told(&all_failed));
}

#[test]
fn a_choice_by_accuracy_says_the_accuracies() {
    let accuracy = |scene: Scene, path: &str, share: f64| {
        scene.values(path, &crate::vocabulary::metric::ACCURACY_TOP1, &[share; 10])
    };
    let scene = Scene::new("models: [m]\nvariants: [fp32, int8, fp16]");
    let scene = accuracy(accuracy(scene, "m/default/fp32/cpu", 0.981), "m/default/int8/cpu", 0.92);
    let scene = accuracy(scene, "m/default/fp16/cpu", 0.981);
    assert_eq!(
        told(&scene, "accuracy_top1", &[]),
        [
            "m: fp32 or fp16. By top-1 accuracy, fp32 is equivalent to fp16 and higher than int8; top-1 accuracy: fp32 98.1 %, fp16 98.1 %, int8 92.0 %."
        ]
    );
}

#[test]
fn what_failed_or_is_not_judged_has_its_reason() {
    let scene = two_batches().failed("m/b16/fp16/cpu").warned("m/b1/int8/cpu", "W_OUTPUT_NONFINITE");
    let sentences = told(&scene, "latency", &[]);
    assert!(sentences[0].starts_with("m: fp32 at b1; int8 at b16."), "{sentences:?}");
    assert!(
        sentences[0]
            .ends_with("; int8 is not judged at b1: outputs with NaN or infinity; fp16 failed (operator) at b16."),
        "{sentences:?}"
    );
}

#[test]
fn competing_models_have_no_subject() {
    let scene = Scene::new("models: [m, n]").level("m/default/fp32/cpu", 2.0).level("n/default/fp32/cpu", 1.0);
    assert_eq!(told(&scene, "latency", &[]), ["Fastest: n. 2.0x faster than m."]);
}

#[test]
fn a_rate_per_item_chooses_the_batch_too() {
    let rates =
        [("m/b1/fp32/cpu", 100.0), ("m/b1/int8/cpu", 300.0), ("m/b16/fp32/cpu", 400.0), ("m/b16/int8/cpu", 900.0)];
    let scene = Scene::new("models: [m]\ninputs: { batch: [1, 16] }\nvariants: [fp32, int8]");
    let scene = rates.iter().fold(scene, |scene, (path, rate)| scene.values(path, &ITEMS, &[*rate; 10]));
    assert_eq!(
        told(&scene, "items", &[]),
        [
            "m: b16/int8. By items/s, 2.3x faster than b16/fp32 and ahead of 2 others; items/s: b16/int8 900, b16/fp32 400, b1/int8 300, b1/fp32 100."
        ]
    );
}

#[test]
fn many_rivals_are_counted() {
    let names = ["a", "b", "c", "d", "e", "f"];
    let scene = Scene::new("models: [m]\nvariants: [a, b, c, d, e, f]");
    let scene = names
        .iter()
        .enumerate()
        .fold(scene, |scene, (index, name)| scene.level(&format!("m/default/{name}/cpu"), 10.0 - index as f64));
    assert_eq!(told(&scene, "latency", &[]), ["m: f. 2.0x faster than a and ahead of 4 others."]);
}

#[test]
fn a_failed_control_replaces_everything() {
    let scene = two_batches().failed_control("m/b1/fp32/cpu");
    let sentences = told(&scene, "latency", &[at_most("latency", 1e6, None)]);
    assert_eq!(sentences.len(), 1);
    assert!(sentences[0].starts_with("Nothing is claimed. Two identical arms of m/b1/fp32/cpu differed by 11 %"));
    assert!(bounds(&scene, &[at_most("latency", 1e6, None)]).is_empty());
}

#[test]
fn a_quick_look_says_so() {
    let scene = two_batches().level("m/b1/fp32/cpu", 8.0);
    let quick = Terms { is_quick: true, ..Terms::default() };
    let choice = scene.choose_by("latency", &[], &quick);
    let sentences = sentences(&scene.plan, &scene.summary, &Judged::default(), &choice);
    assert_eq!(sentences[0].lead, "m: int8 or fp32, undecided at b1; int8 at b16.");
    assert!(sentences[0].text.contains("inconclusive against fp32 at b1 (quick look)"), "{sentences:?}");
}
