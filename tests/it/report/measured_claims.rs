//! Claims about loads and scores, checked as those about pairs are: from docs/method (5.1, 5.9, 5.10, 7.3, 7.5) and the values of runs
//! and items, with nothing of `judge`.

use std::collections::BTreeMap;
use std::path::Path;

use base::metric::LATE_SHARE;
use base::quantity::Nanos;
use experiment::{Arrivals, Axis, LatencyBound, Load};
use judge::results::{self, Cell, CellLoad, Claim, Estimated, Kind, Results, Topic};
use quality::accuracy::Change;
use statistics::random::Xoshiro256PlusPlus;

use super::claims::{quantile, trimmed_mean};
use super::fixture::{Axes, Fixture, usual};

const RUNS: usize = 8;

fn estimated(values: &[f64], is_late_share: bool) -> Estimated {
    let (mut value, half) = interval(values);
    let mut ends = [value - half, value + half];
    if is_late_share {
        value = values.iter().sum::<f64>() / values.len() as f64;
        ends = late_share(values, 0, 0.95);
    }
    let [low, high] = ends.map(Some);
    Estimated { value, low, high, n: values.len() as u64, supported: None }
}

/// A mean over runs (5.1) with the half width of its interval.
fn interval(values: &[f64]) -> (f64, f64) {
    let (value, error, freedom) = trimmed_mean(values);
    (value, quantile(0.975, freedom) * error)
}

/// The interval of a late share (5.9): of the mean over runs, or of all queries where none was late.
pub(super) fn late_share(runs: &[f64], queries: u64, confidence: f64) -> [f64; 2] {
    let n = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / n;
    if mean == 0.0 {
        return [0.0, 1.0 - ((1.0 - confidence) / 2.0).powf(1.0 / queries as f64)];
    }
    let deviation = (runs.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let half = quantile((1.0 + confidence) / 2.0, runs.len() as u32 - 1) * deviation / n.sqrt() / mean;
    [mean * (-half).exp(), (mean * half.exp()).min(1.0)]
}

fn set(cell: &mut Cell, column: &str, values: Vec<f64>) {
    cell.metrics.insert(column.to_owned(), estimated(&values, column == LATE_SHARE.name));
    cell.runs.insert(column.to_owned(), values.into_iter().map(Some).collect());
}

/// As a file of these results is read: claims are made anew.
fn read(results: &Results) -> Results {
    let text = serde_json::to_string(results).unwrap();
    results::parse(Path::new("results.json"), &text).unwrap()
}

/// Cells that differ in their load alone: numbers of clients with a knee somewhere, or rates with a bound.
pub(super) fn loads(number: u64) -> Results {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let variants = ["a", "b", "c", "d", "e", "f"];
    let count = 1 + random.below(6) as usize;
    let axes =
        Axes { models: &["m"], batches: &[1], variants: &variants[..count], devices: &["cpu"], runs: RUNS as u32 };
    let mut results = Fixture::new("loads", &axes, |_| usual(5e6, 3)).summarized().results();
    let is_closed = random.unit() < 0.6;
    let first = 1 + random.below(3) as u32;
    let best = 1.0 + 5.0 * random.unit();
    let sd = [0.001, 0.02, 0.2][random.below(3) as usize];
    let shift = random.normal();
    let bound = LatencyBound::of([0.9, 0.99][random.below(2) as usize], Nanos(20_000_000));
    for (index, cell) in results.cells.iter_mut().enumerate() {
        let level = f64::from(first) + index as f64;
        let mut values = |center: f64| (0..RUNS).map(|_| center * (sd * random.normal()).exp()).collect::<Vec<_>>();
        let queries = if is_closed {
            let rate = 100.0 * level.min(best) / level.max(best).powf(0.3);
            set(cell, "throughput_per_s", values(rate));
            set(cell, "latency_mean_ns", values(1e9 * level / rate));
            Load::Clients(level as u32)
        } else {
            let share = bound.allowed() * (0.1 * (index as f64 - 2.0) + 0.2 * shift).exp();
            set(cell, LATE_SHARE.name, values(share).into_iter().map(|it| it.min(1.0)).collect());
            Load::Rate { per_s: 50.0 * level, arrivals: Arrivals::Poisson, bound: Some(bound) }
        };
        cell.names[Axis::Variants] = "fp32".to_owned();
        cell.names[Axis::Inputs] = format!("b1-{}", queries.label());
        cell.load = Some(CellLoad {
            queries,
            callers: 1,
            predicted_per_s: None,
            per_s: None,
            at_least_per_s: None,
            at_most_per_s: None,
            tried: Vec::new(),
        });
    }
    results.comparisons.clear();
    results.choice = None;
    read(&results)
}

/// Cells with a top-1 accuracy over 540 items: from none to many came out differently.
pub(super) fn scores(number: u64) -> Results {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let axes = Axes { models: &["m"], batches: &[1], variants: &["a", "b", "c"], devices: &["cpu"], runs: 8 };
    let mut results = Fixture::new("scores", &axes, |_| usual(5e6, 3)).summarized().results();
    for cell in results.cells.iter_mut().skip(1) {
        let most = [1, 3, 40][random.below(3) as usize];
        let [lost, gained] = [random.below(most), random.below(most)];
        let difference = (gained as f64 - lost as f64) / 540.0;
        let score = Estimated { value: 0.9 + difference, low: Some(0.87), high: Some(0.93), n: 540, supported: None };
        cell.metrics.insert("accuracy_top1_ratio".to_owned(), score);
        let change =
            Change { difference, interval: None, p: mcnemar(lost, gained), lost: Some(lost), gained: Some(gained) };
        cell.score_changes.insert("accuracy_top1_ratio".to_owned(), change);
    }
    read(&results)
}

/// Two-sided and exact: twice the smaller tail of a binomial of so many items that came out differently.
fn mcnemar(lost: u64, gained: u64) -> f64 {
    let n = lost + gained;
    let mut term = 0.5_f64.powi(n as i32);
    let mut sum = 0.0;
    for k in 0..=lost.min(gained) {
        sum += term;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

fn values(cell: &Cell, column: &str) -> Vec<f64> {
    cell.runs.get(column).into_iter().flatten().flatten().copied().collect()
}

/// What the claim should be; `None` where an end lies so near a limit that stored digits decide.
fn expected(results: &Results, claim: &Claim) -> Option<Kind> {
    let cell = |index: usize| results.cells.iter().find(|cell| cell.id == claim.cells[index]).unwrap();
    let is_near = |a: f64, b: f64| (a - b).abs() <= 1e-3 * b.abs();
    match claim.kind {
        Kind::Kept | Kind::Missed | Kind::Undecided => {
            let Load::Rate { bound: Some(bound), .. } = cell(0).load.as_ref().unwrap().queries else { unreachable!() };
            let runs = values(cell(0), LATE_SHARE.name);
            if runs.len() < 5 {
                return Some(Kind::Undecided);
            }
            let [low, high] = late_share(&runs, cell(0).samples, 0.95);
            let is_saturated = cell(0).codes.contains_key("W_SATURATED");
            let allowed = 1.0 - bound.probability;
            if is_near(high, allowed) || is_near(low, allowed) {
                return None;
            }
            Some(match (high <= allowed, low > allowed || is_saturated) {
                (true, _) if is_saturated => Kind::Undecided,
                (true, _) => Kind::Kept,
                (_, true) => Kind::Missed,
                _ => Kind::Undecided,
            })
        }
        Kind::Knee { .. } => {
            let level = |cell: &Cell| {
                let Load::Clients(clients) = cell.load.as_ref().unwrap().queries else { unreachable!() };
                let [rate, latency] =
                    ["throughput_per_s", "latency_mean_ns"].map(|column| interval(&values(cell, column)));
                let ends = [(rate.0 - rate.1) / (latency.0 + latency.1), (rate.0 + rate.1) / (latency.0 - latency.1)];
                (clients, rate.0 / latency.0, ends)
            };
            let levels: Vec<_> = (0..claim.cells.len()).map(|index| level(cell(index))).collect();
            let best = *levels.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            if levels.iter().any(|level| is_near(level.2[1], best.2[0])) {
                return None;
            }
            let may_be: Vec<u32> = levels.iter().filter(|level| level.2[1] >= best.2[0]).map(|level| level.0).collect();
            let [fewest, most] = [levels[0].0, levels[levels.len() - 1].0];
            let [from, to] = [may_be[0], may_be[may_be.len() - 1]];
            // One client is the fewest that there are, unless any level may be the knee.
            let is_known_below = from > fewest || (from == 1 && to < most);
            Some(Kind::Knee { least: is_known_below.then_some(from), most: (to < most).then_some(to) })
        }
        Kind::AsAccurate | Kind::MoreAccurate | Kind::LessAccurate | Kind::NotToldApart { .. } => {
            let change = cell(0).score_changes["accuracy_top1_ratio"];
            let (lost, gained) = (change.lost.unwrap(), change.gained.unwrap());
            let p = mcnemar(lost, gained);
            Some(match (lost + gained, p <= 0.05, gained > lost) {
                (0, ..) => Kind::AsAccurate,
                (_, false, _) => Kind::NotToldApart { low: None, high: None },
                (_, _, true) => Kind::MoreAccurate,
                _ => Kind::LessAccurate,
            })
        }
        _ => panic!("{claim:?} of these results"),
    }
}

/// Whether the claim is what it should be.
pub(super) fn check(results: &Results, claim: &Claim) -> Result<(), String> {
    match expected(results, claim) {
        Some(kind) if kind != claim.kind => Err(format!("{claim:?} should be {kind:?}")),
        _ => Ok(()),
    }
}

#[test]
fn no_claim_about_loads_and_scores_is_false() {
    let mut kinds = BTreeMap::<String, usize>::new();
    let is_about = |claim: &&Claim| matches!(claim.topic, Topic::Load(_) | Topic::Accuracy);
    for number in 0..super::claims::cases() {
        for results in [loads(number), scores(number)] {
            for claim in results.claims.iter().filter(is_about) {
                check(&results, claim).unwrap_or_else(|why| panic!("{number}: {why}"));
                let name = format!("{:?}", claim.kind);
                *kinds.entry(name.split([' ', '{']).next().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    // A checker that sees nothing of a kind checks nothing.
    assert!(kinds.len() == 8 && kinds.values().all(|count| *count > 20), "{kinds:?}");
}
