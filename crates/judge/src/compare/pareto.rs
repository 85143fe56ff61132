//! Cells that give and take: the Pareto frontier of what could stand in for each other (method 9).
//!
//! Input: plan, summary, controls, and any list of metrics. Output: for each set of cells of one model and input where
//! each cell lies: on the frontier, dominated and by whom, or open. Deliberately absent: chains of domination, and cells of
//! which nothing may be said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choose::{Candidate, Standing};
use super::comparable::{Unfit, comparable, unfit};
use super::pair::compare_cells;
use super::{ComparisonRules, Judged};
use crate::stored::is_false;
use crate::summary::Summary;
use base::metric::{Direction, MetricReference, PEAK_RSS};
use experiment::Choose;
use plan::{CellId, Plan};
use statistics::certain_domination::{ParetoClass, classify};
use statistics::paired::Verdict;
use statistics::pareto::{Objective, frontier};

/// Fewer cells than these have nothing to give or take.
const LEAST_CELLS: usize = 2;

/// A table of fewer cells than these is read at a glance, so they are weighed only where the specification asks.
const LEAST_CELLS_UNASKED: usize = 3;

/// Cells by several metrics at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tradeoff {
    /// The metrics, as users name them.
    pub metrics: Vec<MetricReference>,
    /// There is something to weigh: of two cells that nothing dominates, one is better by one metric, and the other by
    /// another.
    #[serde(default, rename = "open", skip_serializing_if = "is_false")]
    pub is_open: bool,
    /// Every cell of the set that is to be run, in plan order.
    pub points: Vec<Point>,
}

/// Where a cell lies in a trade-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Id of the cell.
    pub cell: CellId,
    /// On the frontier or off it, and why.
    #[serde(flatten)]
    pub place: FrontierPlace,
}

/// Where a cell lies in a trade-off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "place", rename_all = "snake_case")]
#[schemars(rename = "Place")]
pub enum FrontierPlace {
    /// No other is at least as good by every metric and better by one, as estimated, and none is so for certain.
    Frontier,
    /// Other cells are ahead as estimated, none for certain.
    WithinNoise,
    /// Other cells are better or equivalent by every metric and better by one.
    Dominated {
        /// Ids of these cells, in plan order.
        by: Vec<CellId>,
    },
    /// It has no value, or none that may be judged.
    LeftOut {
        /// Why.
        why: Unfit,
    },
}

/// The metrics that a report weighs: those of the specification, else two: what its question names first, and latency
/// with accuracy where it is known, else with peak memory.
///
/// Two statistics of one metric go along with each other, and a ratio to the baseline says what the metric says.
pub fn metrics(
    listed: &[MetricReference],
    question: Option<&Choose>,
    accuracy: Option<MetricReference>,
) -> Vec<MetricReference> {
    if !listed.is_empty() {
        return listed.to_vec();
    }
    let asked = question.iter().flat_map(|question| question.metrics());
    let mut metrics: Vec<MetricReference> = Vec::new();
    for reference in asked.chain([MetricReference::LATENCY]).chain(accuracy).chain([MetricReference::of(&PEAK_RSS)]) {
        let is_known = metrics.iter().any(|known| known.metric.name == reference.metric.name);
        if !is_known && !reference.is_speedup() && reference.metric.direction != Direction::Neutral {
            metrics.push(reference);
        }
    }
    metrics.truncate(2);
    metrics
}

/// Every set of cells that could stand in for each other and of which something may be said: at least two where the
/// specification asks for these metrics, else at least three. Nothing where a control failed for the whole record.
pub fn tradeoffs(
    plan: &Plan,
    summary: &Summary,
    judged: &Judged,
    terms: &ComparisonRules,
    metrics: &[MetricReference],
    is_asked: bool,
) -> Vec<Tradeoff> {
    let sets = comparable(plan, summary, metrics);
    let least_cells = if is_asked { LEAST_CELLS } else { LEAST_CELLS_UNASKED };
    sets.iter().filter_map(|cells| Set { plan, summary, judged, terms, metrics, least_cells }.weigh(cells)).collect()
}

struct Set<'a> {
    plan: &'a Plan,
    summary: &'a Summary,
    judged: &'a Judged,
    terms: &'a ComparisonRules,
    metrics: &'a [MetricReference],
    least_cells: usize,
}

impl Set<'_> {
    fn weigh(&self, cells: &[usize]) -> Option<Tradeoff> {
        // What is near the largest rate is not weighed against what is at it.
        if cells.iter().any(|cell| self.metrics.iter().any(|metric| !self.plan.reports(*cell, *metric))) {
            return None;
        }
        let is_run = |cell: &&usize| self.plan.cells[**cell].skip.is_none();
        let run: Vec<usize> = cells.iter().copied().filter(|cell| is_run(&cell)).collect();
        let whys: Vec<Option<Unfit>> = run.iter().map(|cell| self.why_left_out(*cell)).collect();
        let fit: Vec<usize> = run.iter().zip(&whys).filter(|(_, why)| why.is_none()).map(|(cell, _)| *cell).collect();
        if fit.len() < self.least_cells {
            return None;
        }
        let places = self.places(&fit);
        let is_open = self.is_open(&fit, &places);
        let mut places = places.into_iter();
        let place_of = |why: Option<Unfit>| match why {
            Some(why) => FrontierPlace::LeftOut { why },
            None => places.next().unwrap_or(FrontierPlace::LeftOut { why: Unfit::NoValue }),
        };
        let places = whys.into_iter().map(place_of);
        let points = run.iter().zip(places).map(|(cell, place)| Point { cell: self.id(*cell), place }).collect();
        Some(Tradeoff { metrics: self.metrics.to_vec(), points, is_open })
    }

    fn id(&self, cell: usize) -> CellId {
        self.plan.cells[cell].id
    }

    fn why_left_out(&self, cell: usize) -> Option<Unfit> {
        let why = |metric: &MetricReference| unfit(self.plan, self.summary, &self.judged.controls, *metric, cell);
        self.metrics.iter().find_map(why)
    }

    fn objectives(&self) -> Vec<Objective> {
        let objective = |reference: &MetricReference| match reference.metric.direction {
            Direction::HigherIsBetter => Objective::Max,
            Direction::LowerIsBetter | Direction::Neutral => Objective::Min,
        };
        self.metrics.iter().map(objective).collect()
    }

    fn places(&self, cells: &[usize]) -> Vec<FrontierPlace> {
        let value = |cell: &usize, metric: &MetricReference| {
            self.summary.cells[*cell].estimate_of(*metric).map(|estimate| estimate.value)
        };
        let values: Vec<Vec<Option<f64>>> =
            cells.iter().map(|cell| self.metrics.iter().map(|metric| value(cell, metric)).collect()).collect();
        let front = frontier(&values, &self.objectives());
        let verdict = |cell: usize, rival: usize, metric: usize| self.verdict(cells[cell], cells[rival], metric);
        let classes = classify(&front, self.metrics.len(), verdict);
        let place_of = |(point, class): (usize, ParetoClass)| match class {
            ParetoClass::Frontier => FrontierPlace::Frontier,
            ParetoClass::WithinNoise => FrontierPlace::WithinNoise,
            ParetoClass::Dominated { by } => {
                let by = by.into_iter().map(|other| self.id(cells[other]));
                let by: Vec<CellId> = by.filter(|other| !self.is_answered(self.id(cells[point]), *other)).collect();
                match (by.is_empty(), front.members.contains(&point)) {
                    (false, _) => FrontierPlace::Dominated { by },
                    (true, true) => FrontierPlace::Frontier,
                    (true, false) => FrontierPlace::WithinNoise,
                }
            }
            // A value that is not a number cannot be estimated either.
            ParetoClass::Excluded => FrontierPlace::LeftOut { why: Unfit::NoValue },
        };
        classes.into_iter().enumerate().map(place_of).collect()
    }

    /// Whether the answer names a cell, and found another one beaten by the metric that was asked for: equivalence is not
    /// transitive, and what is beaten dominates nothing that is not.
    fn is_answered(&self, cell: CellId, other: CellId) -> bool {
        let Some(choice) =
            self.judged.choice.as_ref().filter(|choice| !choice.unasked && self.metrics.contains(&choice.asked()))
        else {
            return false;
        };
        let is_beaten = |candidate: &Candidate| matches!(candidate.standing, Standing::Beaten { .. });
        choice
            .rankings
            .iter()
            .filter(|ranking| ranking.best.contains(&cell))
            .any(|ranking| ranking.candidates.iter().any(|candidate| candidate.cell == other && is_beaten(candidate)))
    }

    /// The verdict on one cell against another by the metric of this index.
    fn verdict(&self, cell: usize, rival: usize, metric: usize) -> Verdict {
        let comparison = compare_cells(self.summary, rival, cell, self.metrics[metric], self.terms);
        comparison.map(|comparison| comparison.verdict).unwrap_or_default()
    }

    fn is_open(&self, cells: &[usize], places: &[FrontierPlace]) -> bool {
        let may_be = |place: &FrontierPlace| matches!(place, FrontierPlace::Frontier | FrontierPlace::WithinNoise);
        let open: Vec<usize> =
            cells.iter().zip(places).filter(|(_, place)| may_be(place)).map(|(cell, _)| *cell).collect();
        let is_better = |cell: usize, rival: usize| {
            (0..self.metrics.len()).any(|metric| self.verdict(cell, rival, metric).is_improvement())
        };
        let opposed = |cell: usize, rival: usize| is_better(cell, rival) && is_better(rival, cell);
        open.iter().enumerate().any(|(index, cell)| open[index + 1..].iter().any(|rival| opposed(*cell, *rival)))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::compare::choose::tests::{Scene, at_most};
    use base::metric::{ITEMS, LATENCY};

    fn both() -> [MetricReference; 2] {
        [MetricReference::LATENCY, MetricReference::of(&PEAK_RSS)]
    }

    /// Four variants with these latencies and sizes.
    fn scene(values: [(f64, f64); 4]) -> Scene {
        let scene = Scene::new("models: [m]\nvariants: [a, b, c, d]");
        values.into_iter().zip(["a", "b", "c", "d"]).fold(scene, |scene, ((latency, bytes), name)| {
            let path = format!("m/default/{name}/cpu");
            scene.level(&path, latency).values(&path, &PEAK_RSS, &[bytes, bytes * 1.001].repeat(5))
        })
    }

    fn weigh(scene: &Scene) -> Vec<Tradeoff> {
        tradeoffs(&scene.plan, &scene.summary, &scene.judged, &ComparisonRules::default(), &both(), false)
    }

    #[test]
    fn cells_are_on_the_frontier_dominated_or_within_noise() {
        // b is faster than a and larger; c is slower than a and larger; d is within the margin of a, and estimated worse.
        let found = weigh(&scene([(10.0, 1e6), (5.0, 2e6), (12.0, 1.5e6), (10.05, 1.001e6)]));
        let places: Vec<FrontierPlace> = found[0].points.iter().map(|point| point.place.clone()).collect();
        let expected = [
            FrontierPlace::Frontier,
            FrontierPlace::Frontier,
            FrontierPlace::Dominated { by: vec![found[0].points[0].cell, found[0].points[3].cell] },
            FrontierPlace::WithinNoise,
        ];
        assert_eq!(places, expected);
        assert!(found[0].is_open);
    }

    #[test]
    fn one_that_is_best_in_everything_leaves_nothing_to_weigh() {
        let found = weigh(&scene([(10.0, 2e6), (5.0, 1e6), (12.0, 2e6), (11.0, 2e6)]));
        assert!(!found[0].is_open);
        assert_eq!(found[0].points[1].place, FrontierPlace::Frontier);
    }

    #[test]
    fn cells_of_which_nothing_may_be_said_are_left_out_with_the_reason() {
        let values = [(10.0, 1e6), (5.0, 2e6), (12.0, 1.5e6), (4.0, 1e5)];
        let found = weigh(&scene(values).failed("m/default/d/cpu"));
        let why = Unfit::Failed(worker::backend::FailureKind::Operator);
        assert_eq!(found[0].points[3].place, FrontierPlace::LeftOut { why });
        assert_eq!(found[0].points[0].place, FrontierPlace::Frontier);
        assert!(weigh(&scene(values).failed("m/default/d/cpu").failed("m/default/c/cpu")).is_empty());
        assert_eq!(weigh(&scene(values).skipped("m/default/d/cpu"))[0].points.len(), 3);
        assert!(weigh(&scene(values).failed_control("m/default/a/cpu")).is_empty());
    }

    #[test]
    fn two_cells_are_weighed_where_the_specification_asks() {
        let scene = scene([(10.0, 1e6), (5.0, 2e6), (12.0, 1.5e6), (4.0, 1e5)]);
        let scene = scene.failed("m/default/c/cpu").failed("m/default/d/cpu");
        let weigh = |is_asked| {
            tradeoffs(&scene.plan, &scene.summary, &scene.judged, &ComparisonRules::default(), &both(), is_asked)
        };
        assert!(weigh(false).is_empty());
        let found = weigh(true);
        assert!(found[0].is_open);
        assert_eq!(
            found[0].points[..2].iter().map(|point| &point.place).collect::<Vec<_>>(),
            [&FrontierPlace::Frontier; 2]
        );
    }

    #[test]
    fn batches_are_weighed_for_a_rate_per_item() {
        let scene = Scene::new("models: [m]\ninputs: { batch: [1, 4, 16] }");
        let scene = [("b1", 1.0, 100.0), ("b4", 2.0, 200.0), ("b16", 9.0, 178.0)].into_iter().fold(
            scene,
            |scene, (input, latency, rate)| {
                let path = format!("m/{input}/fp32/cpu");
                scene.level(&path, latency).values(&path, &ITEMS, &[rate, rate * 1.001].repeat(5))
            },
        );
        let metrics = [MetricReference::of(&ITEMS), MetricReference::of(&LATENCY)];
        let found = tradeoffs(&scene.plan, &scene.summary, &scene.judged, &ComparisonRules::default(), &metrics, false);
        let places: Vec<&FrontierPlace> = found[0].points.iter().map(|point| &point.place).collect();
        assert_eq!(
            places,
            [
                &FrontierPlace::Frontier,
                &FrontierPlace::Frontier,
                &FrontierPlace::Dominated { by: vec![scene.plan.cells[1].id] }
            ]
        );
    }

    #[test]
    fn the_question_says_what_is_weighed() {
        let names = |best: &str, within: &[&str]| -> Vec<String> {
            let within = within.iter().map(|metric| at_most(metric, 1.0, None)).collect();
            let question = Choose { best: best.parse().unwrap(), then: Vec::new(), within };
            metrics(&[], Some(&question), None).iter().map(ToString::to_string).collect()
        };
        assert_eq!(names("latency", &["latency.p95"]), ["latency", "peak_rss"]);
        assert_eq!(names("items", &["latency.p95", "peak_rss"]), ["items", "latency.p95"]);
        assert_eq!(names("speedup", &["cpu_utilisation"]), ["latency", "peak_rss"]);
        assert_eq!(names("peak_rss", &[]), ["peak_rss", "latency"]);
        assert_eq!(metrics(&[], None, None), both());
        let accuracy = MetricReference::of(&base::metric::ACCURACY_TOP1);
        assert_eq!(metrics(&[], None, Some(accuracy)), [MetricReference::LATENCY, accuracy]);
        let listed: Vec<MetricReference> =
            ["cpu_time", "latency.p95", "load"].map(|name| name.parse().unwrap()).to_vec();
        assert_eq!(metrics(&listed, None, None), listed);
    }
}
