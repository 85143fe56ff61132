//! What breaks ties, and that the trade-offs say the same.

use super::*;
use crate::compare::pareto::FrontierPlace;
use crate::compare::tradeoffs;
use base::metric::{ACCURACY_TOP1, ITEMS, MODEL_SIZE, PEAK_RSS};

/// The memory of each variant of [`three`], in MiB, and the size of its file, in bytes.
fn heavy(scene: Scene, memory: [f64; 3], sizes: [f64; 3]) -> Scene {
    let cells = ["fp32", "int8", "fp16"].into_iter().zip(memory.into_iter().zip(sizes));
    cells.fold(scene, |scene, (variant, (memory, size))| {
        let path = format!("m/default/{variant}/cpu");
        scene.values(&path, &PEAK_RSS, &around(memory * 1e6)).values(&path, &MODEL_SIZE, &[size; 10])
    })
}

/// fp32 and fp16 take the same time as int8, as far as these runs show.
fn level() -> Scene {
    three().level("m/default/fp32/cpu", 8.05).level("m/default/fp16/cpu", 8.02)
}

#[test]
fn ties_are_broken_by_what_the_question_names_alone() {
    let int8 = "m/default/int8/cpu";
    let by_memory = heavy(level(), [125.0, 75.0, 127.0], [20.0, 30.0, 10.0]);
    assert_eq!(by_memory.best(&by_memory.choose("latency", &[]))[0].len(), 3);
    let choice = by_memory.choose("latency, peak_rss", &[]);
    assert_eq!(by_memory.best(&choice), [[int8]]);
    let by = MetricReference::of(&PEAK_RSS);
    let tied = Standing::Tied { other: by_memory.id(int8), metric: by };
    assert_eq!(by_memory.standing(&choice, "m/default/fp32/cpu"), tied);
    assert_eq!(by_memory.standing(&choice, "m/default/fp16/cpu"), tied);
    let by_size = heavy(level(), [75.1, 75.0, 127.0], [20.0, 30.0, 10.0]);
    assert_eq!(by_size.best(&by_size.choose("latency, peak_rss", &[]))[0].len(), 2);
    assert_eq!(by_size.best(&by_size.choose("latency, peak_rss, model_size", &[])), [["m/default/fp32/cpu"]]);
    // A difference in speed comes before memory.
    let slower = heavy(three(), [10.0, 75.0, 12.0], [20.0, 30.0, 10.0]);
    assert_eq!(slower.best(&slower.choose("latency, peak_rss", &[])), [[int8]]);
}

#[test]
fn a_percentile_that_samples_do_not_support_breaks_no_tie() {
    let tails = |is_supported: bool| {
        let scene =
            ["fp32", "int8", "fp16"].iter().zip([8.05, 8.0, 8.02]).fold(three(), |scene, (variant, latency)| {
                let path = format!("m/default/{variant}/cpu");
                let scene = scene.level(&path, latency);
                scene.tails(&path, is_supported).values(&path, &ITEMS, &around(1e9 / latency))
            });
        // Its p95 is a fifth below the rest.
        let mut scene = scene;
        let cell = scene.cell("m/default/fp16/cpu");
        let column = "latency.p95".parse::<MetricReference>().unwrap().column();
        let tail = scene.summary.cells[cell].metrics.get_mut(&column).unwrap();
        tail.per_run.iter_mut().for_each(|(_, value)| *value *= 0.8);
        scene
    };
    let best = |scene: &Scene, by: &str, within: &[Bound]| scene.best(&scene.choose(by, within))[0].len();
    assert_eq!(best(&tails(true), "items, latency.p95", &[]), 1);
    assert_eq!(best(&tails(false), "items, latency.p95", &[]), 3);
    // A bound is kept or not: it asks for no less of its metric.
    assert_eq!(best(&tails(true), "items", &[at_most("latency.p95", 20e6, None)]), 3);
}

#[test]
fn a_tie_in_accuracy_is_broken_by_speed_where_that_is_asked() {
    let scene = ["fp32", "int8", "fp16"].iter().zip([0.981, 0.92, 0.981]).fold(three(), |scene, (variant, share)| {
        scene.values(&format!("m/default/{variant}/cpu"), &ACCURACY_TOP1, &[share; 10])
    });
    assert_eq!(scene.best(&scene.choose("accuracy_top1", &[]))[0].len(), 2);
    assert_eq!(scene.best(&scene.choose("accuracy_top1, latency", &[])), [["m/default/fp32/cpu"]]);
}

#[test]
fn what_may_miss_a_bound_takes_no_tie() {
    let scene = heavy(level(), [125.0, 75.0, 127.0], [20.0, 30.0, 10.0]);
    let scene = scene.tails("m/default/fp32/cpu", true).tails("m/default/int8/cpu", false);
    let choice = scene.choose("latency, peak_rss", &[at_most("latency.p95", 20e6, None)]);
    assert_eq!(
        scene.standing(&choice, "m/default/int8/cpu"),
        Standing::InDoubt { metric: "latency.p95".parse().unwrap() }
    );
    assert_eq!(scene.standing(&choice, "m/default/fp32/cpu"), Standing::Unbeaten);
}

/// fp32 is faster than fp16, and neither is told apart from int8, which gives way to fp16 in memory and fp32 to int8.
#[test]
fn what_was_beaten_dominates_nothing_that_is_chosen() {
    let scene = three().level("m/default/fp32/cpu", 1.0).level("m/default/int8/cpu", 1.015);
    let scene = heavy(scene.level("m/default/fp16/cpu", 1.03), [115.0, 107.0, 100.0], [10.0, 10.0, 10.0]);
    let choice = scene.choose("latency, peak_rss", &[]);
    assert_eq!(scene.best(&choice), [["m/default/int8/cpu"]]);
    let places = |scene: &Scene| -> Vec<FrontierPlace> {
        let metrics = [MetricReference::LATENCY, MetricReference::of(&PEAK_RSS)];
        let sets = tradeoffs(&scene.plan, &scene.summary, &scene.judged, &ComparisonRules::default(), &metrics, false);
        sets[0].points.iter().map(|point| point.place.clone()).collect()
    };
    let ids: Vec<CellId> = scene.plan.cells.iter().map(|cell| cell.id).collect();
    let by = |cell: usize| FrontierPlace::Dominated { by: vec![ids[cell]] };
    assert_eq!(places(&scene), [by(1), by(2), FrontierPlace::Frontier]);
    let mut answered = scene;
    answered.judged.choice = Some(choice);
    assert_eq!(places(&answered), [by(1), FrontierPlace::Frontier, FrontierPlace::Frontier]);
}

#[test]
fn a_quick_look_breaks_no_tie() {
    let quick = ComparisonRules { is_quick: true, ..ComparisonRules::default() };
    let scene = heavy(level(), [125.0, 75.0, 127.0], [20.0, 30.0, 10.0]);
    assert_eq!(scene.best(&scene.choose_by("latency, peak_rss", &[], &quick))[0].len(), 3);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// Close enough for margins to be at work, in time and in memory.
    fn close() -> impl Strategy<Value = [(f64, f64); 3]> {
        prop::array::uniform3((1.0_f64..1.06, 1.0_f64..1.06))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The answer and the trade-offs come from the same verdicts.
        #[test]
        fn what_is_best_is_dominated_by_nothing(cells in close(), sizes in prop::array::uniform3(1_u32..3)) {
            let scene = ["fp32", "int8", "fp16"].iter().zip(cells).fold(three(), |scene, (variant, (latency, _))| {
                scene.level(&format!("m/default/{variant}/cpu"), latency)
            });
            let mut scene = heavy(scene, cells.map(|(_, memory)| 100.0 * memory), sizes.map(f64::from));
            let choice = scene.choose("latency, peak_rss", &[]);
            prop_assert!(!choice.rankings[0].best.is_empty());
            scene.judged.choice = Some(choice.clone());
            let metrics = [MetricReference::LATENCY, MetricReference::of(&PEAK_RSS)];
            let weighed =
                tradeoffs(&scene.plan, &scene.summary, &scene.judged, &ComparisonRules::default(), &metrics, false);
            for point in weighed[0].points.iter().filter(|point| choice.rankings[0].best.contains(&point.cell)) {
                let is_dominated = matches!(point.place, FrontierPlace::Dominated { .. });
                prop_assert!(!is_dominated, "{:?} {:?}", choice.rankings[0], weighed[0]);
            }
        }
    }
}
