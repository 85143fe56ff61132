//! Every claim of results, checked by a program of its own: written from docs/method (4.6, 5.1, 6.1), it calls nothing of
//! `judge`. It takes the run-level values and recomputes whether each claim holds.

use std::collections::BTreeMap;

use base::metric::Direction;
use experiment::{Bound, Choose, Goal, Runs, Selector};
use judge::results::{self, BoundCheck, Cell, Claim, Kind, Results, Topic};
use plan::CellId;
use statistics::random::Xoshiro256PlusPlus;
use worker::backend::FailureKind;

use super::fixture::{Axes, Behaviour, Fixture, experiment, usual};

/// What may be said of one cell against another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Said {
    Better,
    Worse,
    Equivalent,
    Open,
}

#[derive(Clone, Copy, Debug)]
struct Found {
    said: Said,
    ratio: f64,
    ends: Option<[f64; 2]>,
    /// An end lies on a margin, but for digits that are not stored.
    is_on_edge: bool,
}

pub(super) struct Checker<'a> {
    results: &'a Results,
    cells: BTreeMap<CellId, &'a Cell>,
}

/// `true` up to what five stored digits of values make of a ratio.
fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 3e-3 * one.abs()
}

impl<'a> Checker<'a> {
    pub(super) fn new(results: &'a Results) -> Self {
        Checker { results, cells: results.cells.iter().map(|cell| (cell.id, cell)).collect() }
    }

    /// The looks of method 4.6.
    fn looks(&self) -> Vec<u32> {
        let (most, least) = (self.results.rules.runs, self.results.rules.runs_min.unwrap_or(self.results.rules.runs));
        let grid = (3..20).flat_map(|power| [1_u32 << power, 3 << (power - 1)]);
        let mut looks: Vec<u32> = grid.filter(|blocks| *blocks > least && *blocks < most).collect();
        looks.extend([least.max(5).min(most), most]);
        looks.sort_unstable();
        looks.dedup();
        looks
    }

    fn values(&self, id: CellId, column: &str) -> BTreeMap<u32, f64> {
        let runs = &self.cells[&id].runs;
        let (Some(blocks), Some(values)) = (runs.get("block"), runs.get(column)) else { return BTreeMap::new() };
        blocks.iter().zip(values).filter_map(|(block, value)| Some(((*block)? as u32, (*value)?))).collect()
    }

    fn is_withheld(&self, id: CellId) -> bool {
        let cell = self.cells[&id];
        let lost = cell.failed + cell.not_run;
        lost * 5 > lost + cell.completed || cell.outputs_differ()
    }

    /// One cell against another by a metric; positive logs are better.
    fn pair(&self, one: CellId, other: CellId, claim: &Claim) -> Found {
        let metric = claim.metric;
        let sign = if metric.metric.direction == Direction::HigherIsBetter { 1.0 } else { -1.0 };
        if let Some(found) = self.items(one, other, metric.metric.name) {
            return found;
        }
        if metric.metric.is_constant() {
            let value = |id: CellId| self.cells[&id].metrics[metric.metric.name].value;
            let by = sign * (value(one) - value(other));
            let said = if by > 0.0 {
                Said::Better
            } else if by < 0.0 {
                Said::Worse
            } else {
                Said::Equivalent
            };
            return Found { said, ratio: (value(one) / value(other)).powf(sign), ends: None, is_on_edge: false };
        }
        let (first, second) = (self.values(one, &metric.column()), self.values(other, &metric.column()));
        let logs: Vec<f64> =
            first.iter().filter_map(|(block, value)| Some(sign * (value.ln() - second.get(block)?.ln()))).collect();
        let margin =
            if metric.statistic.is_tail() { self.results.rules.margin_of_tails } else { self.results.rules.margin };
        let found = judge(&logs, margin, &self.looks());
        let is_withheld = self.is_withheld(one) || self.is_withheld(other);
        Found { said: if is_withheld { Said::Open } else { found.said }, ..found }
    }

    /// Two scores on the same items (6.2): Bonett and Price's interval with a margin of half a percentage point.
    fn items(&self, one: CellId, other: CellId, metric: &str) -> Option<Found> {
        let right = |id: CellId| {
            let rows = &self.results.items_right;
            let row = rows.iter().find(|row| row.metric == metric && row.cells.contains(&id))?;
            let byte = |at: usize| u8::from_str_radix(&row.right[2 * at..2 * at + 2], 16).unwrap();
            Some((0..row.items as usize).map(|item| byte(item / 8) >> (item % 8) & 1).collect::<Vec<u8>>())
        };
        let (first, second) = (right(one)?, right(other)?);
        let only =
            |won: u8| first.iter().zip(&second).filter(|(first, other)| **first == won && **other != won).count();
        let (gained, lost, n) = (only(1) as f64, only(0) as f64, first.len() as f64);
        let [more, fewer] = [gained, lost].map(|items| (items + 1.0) / (n + 2.0));
        let half = 1.959_963_984_540_054 * ((more + fewer - (more - fewer).powi(2)) / (n + 2.0)).sqrt();
        let [low, high] = if gained + lost == 0.0 { [0.0; 2] } else { [more - fewer - half, more - fewer + half] };
        let said = match () {
            () if low > 0.005 => Said::Better,
            () if high < -0.005 => Said::Worse,
            () if low > -0.005 && high < 0.005 => Said::Equivalent,
            () => Said::Open,
        };
        let share = |items: &[u8]| items.iter().map(|right| f64::from(*right)).sum::<f64>();
        let ratio = |by: f64| 1.0 + by * n / share(&second);
        Some(Found {
            said,
            ratio: share(&first) / share(&second),
            ends: Some([ratio(low), ratio(high)]),
            is_on_edge: false,
        })
    }

    fn check(&self, claim: &Claim) -> Result<(), String> {
        if matches!(claim.topic, Topic::Load(_) | Topic::Accuracy) {
            return super::measured_claims::check(self.results, claim);
        }
        let refused = |why: String| Err(format!("{claim:?}: {why}"));
        match claim.kind {
            Kind::Better { ratio, low, high } => {
                let [one, other] = claim.cells[..] else { return refused("it takes two cells".to_owned()) };
                let found = self.pair(one, other, claim);
                let holds = found.said == Said::Better
                    && is_close(found.ratio, ratio)
                    && found
                        .ends
                        .is_none_or(|ends| is_close(ends[0], low.unwrap()) && is_close(ends[1], high.unwrap()));
                if holds || found.is_on_edge { Ok(()) } else { refused(format!("{found:?}")) }
            }
            Kind::Equivalent | Kind::NotToldApart { .. } => {
                let pairs = claim.cells.iter().enumerate().flat_map(|(index, one)| {
                    claim.cells[index + 1..].iter().map(move |other| self.pair(*one, *other, claim))
                });
                let pairs: Vec<Found> = pairs.collect();
                let all = |said: Said| !pairs.is_empty() && pairs.iter().all(|found| found.said == said);
                let holds = match claim.kind {
                    Kind::Equivalent => all(Said::Equivalent),
                    Kind::NotToldApart { low, high } => {
                        let widest = pairs.iter().filter_map(|found| found.ends).map(|[low, high]| high.max(1.0 / low));
                        let widest = widest.fold(1.0, f64::max);
                        let claimed = low.zip(high).map(|(low, high)| high.max(1.0 / low));
                        !all(Said::Equivalent)
                            && pairs.iter().all(|found| !matches!(found.said, Said::Better | Said::Worse))
                            && claimed.is_none_or(|claimed| is_close(claimed, widest))
                    }
                    _ => unreachable!("sets alone"),
                };
                let is_on_edge = pairs.iter().any(|found| found.is_on_edge);
                if holds || is_on_edge { Ok(()) } else { refused(format!("{pairs:?}")) }
            }
            Kind::Kept | Kind::Missed | Kind::Undecided => self.check_bound(claim),
            Kind::LargestRate | Kind::Knee { .. } | Kind::AsAccurate | Kind::MoreAccurate | Kind::LessAccurate => {
                refused("nothing of the kind was measured".to_owned())
            }
        }
    }

    fn check_bound(&self, claim: &Claim) -> Result<(), String> {
        let bound: &BoundCheck = match claim.topic {
            Topic::Goal(number) => &self.results.goals[number].check,
            Topic::Bound(number) => &self.results.choice.as_ref().unwrap().bounds[number],
            _ => return Err(format!("{claim:?}: no bound")),
        };
        let level = 0.05 / self.looks().len() as f64;
        for id in &claim.cells {
            let values: Vec<f64> = self.values(*id, &bound.metric.column()).into_values().collect();
            let is_late = bound.metric.metric.name == base::metric::LATE_SHARE.name;
            let interval = (values.len() >= 5 && !self.is_withheld(*id)).then(|| {
                if is_late {
                    return super::measured_claims::late_share(&values, self.cells[id].samples, 1.0 - level);
                }
                let (estimate, error, freedom) = trimmed_mean(&values);
                let half = quantile(1.0 - level / 2.0, freedom) * error;
                [estimate - half, estimate + half]
            });
            let (least, most) = (bound.min.unwrap_or(f64::MIN), bound.max.unwrap_or(f64::MAX));
            let said = match interval {
                Some([low, high]) if low >= least && high <= most => Kind::Kept,
                Some([low, high]) if high < least || low > most => Kind::Missed,
                _ => Kind::Undecided,
            };
            let is_on_edge =
                interval.is_some_and(|ends| ends.iter().any(|end| is_close(*end, least) || is_close(*end, most)));
            if said != claim.kind && !is_on_edge {
                return Err(format!("{claim:?}: {id} {interval:?} of {least} to {most}"));
            }
        }
        Ok(())
    }

    /// Whether every claim holds, and nothing that sentences are made of is missing.
    pub(super) fn check_all(&self) -> Result<usize, String> {
        self.results.claims.iter().try_for_each(|claim| self.check(claim))?;
        for (number, ranking) in self.results.choice.iter().flat_map(|choice| &choice.rankings).enumerate() {
            let is_named = |claim: &&Claim| claim.topic == Topic::Answer(number) && claim.cells == ranking.best;
            let named = self.results.claims.iter().filter(is_named).count();
            if ranking.best.len() > 8 && named == 0 {
                return Err(format!("{ranking:?}: nothing is claimed of the best"));
            }
        }
        Ok(self.results.claims.len())
    }
}

/// P(|T| <= t) of Student's t with whole degrees of freedom, in closed form [Abramowitz and Stegun 26.7.3, 26.7.4].
fn within(t: f64, freedom: u32) -> f64 {
    let angle = (t / f64::from(freedom).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, cosine) } else { (1.0, 1.0) };
    let first = if is_odd { 3 } else { 2 };
    for step in (first..freedom.saturating_sub(1)).step_by(2) {
        term *= cosine * cosine * f64::from(step - 1) / f64::from(step);
        sum += term;
    }
    match (is_odd, freedom) {
        (true, 1) => angle / std::f64::consts::FRAC_PI_2,
        (true, _) => (angle + sine * sum) / std::f64::consts::FRAC_PI_2,
        (false, _) => sine * sum,
    }
}

/// The t with P(T <= t) = `probability`, by halving.
pub(super) fn quantile(probability: f64, freedom: u32) -> f64 {
    thread_local! {
        static KNOWN: std::cell::RefCell<BTreeMap<(u64, u32), f64>> = const { std::cell::RefCell::new(BTreeMap::new()) };
    }
    let find = || {
        let (mut low, mut high) = (0.0, 1e6);
        for _ in 0..100 {
            let middle = (low + high) / 2.0;
            if within(middle, freedom) < 2.0 * probability - 1.0 { low = middle } else { high = middle }
        }
        high
    };
    KNOWN.with(|known| *known.borrow_mut().entry((probability.to_bits(), freedom)).or_insert_with(find))
}

/// Estimate, error and degrees of freedom of method 5.1.
pub(super) fn trimmed_mean(values: &[f64]) -> (f64, f64, u32) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let cut = if n < 5 { 0 } else { n / 4 };
    let kept = (n - 2 * cut) as f64;
    let estimate = sorted[cut..n - cut].iter().sum::<f64>() / kept;
    let (low, high) = (sorted[cut], sorted[n - cut - 1]);
    let held: Vec<f64> = sorted.iter().map(|value| value.clamp(low, high)).collect();
    let error = deviation(&held) * ((n - 1) as f64).sqrt() / (kept * (kept - 1.0)).sqrt();
    (estimate, error, kept as u32 - 1)
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0 }
}

/// The largest sum of ranks that chance has with at most this probability, by counting subsets.
fn critical(n: usize, level: f64) -> f64 {
    let mut ways = vec![0.0_f64; n * (n + 1) / 2 + 1];
    ways[0] = 1.0;
    for rank in 1..=n {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    let all = 2_f64.powi(n as i32);
    let mut reached = 0.0;
    let mut largest = -1.0;
    for (sum, count) in ways.iter().enumerate() {
        reached += count / all;
        if reached > level * (1.0 + 1e-12) {
            break;
        }
        largest = sum as f64;
    }
    f64::max(largest, 0.0)
}

/// Method 6.1, of logs that are positive where the first cell is better.
fn judge(logs: &[f64], margin: f64, looks: &[u32]) -> Found {
    let n = logs.len();
    if n == 0 {
        return Found { said: Said::Open, ratio: 1.0, ends: None, is_on_edge: false };
    }
    let (estimate, error, freedom) = trimmed_mean(logs);
    if n < 5 {
        return Found { said: Said::Open, ratio: estimate.exp(), ends: None, is_on_edge: false };
    }
    let all = looks.len() as f64;
    let number = looks.iter().filter(|look| **look as usize <= n).count().max(1) as f64;
    let confidence = match looks.len() {
        1 if n < 8 => 0.96,
        1 => 0.95,
        _ => 1.0 - 0.05 * number / (all * (all + 1.0) / 2.0),
    };
    let center = middle(logs);
    let mad = 1.482_602_218_505_602 * middle(&logs.iter().map(|log| (log - center).abs()).collect::<Vec<_>>());
    let error = error.max(mad / (n as f64).sqrt());
    let of_differences = match looks.len() {
        1 if n < 8 => error.max(deviation(logs) / (n as f64).sqrt()),
        _ => error,
    };
    let t = |confidence: f64| quantile((1.0 + confidence) / 2.0, freedom);
    let [half, wide_half] = [error, of_differences].map(|error| t(confidence) * error);
    let limit = margin.ln_1p();
    let agrees = |sign: f64| {
        if n <= 8 {
            return logs.iter().all(|log| sign * log > 0.0);
        }
        let (level, first, far) = if looks.len() == 1 { (0.002, 12, 0.99975) } else { (0.0005, 16, 0.99995) };
        let rank = |log: &f64| logs.iter().filter(|other| other.abs() <= log.abs()).count() as f64;
        let against: f64 = logs.iter().filter(|log| sign * **log <= 0.0).map(rank).sum();
        against <= critical(n, level) || (n >= first && sign * estimate > quantile(far, freedom) * of_differences)
    };
    let shown = |estimate: f64| {
        let far = t(confidence.max(0.998)) * of_differences;
        let near = if estimate < limit + 3.0 * wide_half { limit } else { limit.max(estimate - far) };
        [near.exp(), (estimate + far).exp()]
    };
    let (said, ends) = if estimate - wide_half > limit && agrees(1.0) {
        (Said::Better, shown(estimate))
    } else if estimate + wide_half < -limit && agrees(-1.0) {
        let [near, far] = shown(-estimate);
        (Said::Worse, [1.0 / far, 1.0 / near])
    } else {
        let is_within = estimate - half > -limit && estimate + half < limit;
        let ends = [(estimate - half).exp(), (estimate + half).exp()];
        (if is_within { Said::Equivalent } else { Said::Open }, ends)
    };
    let edges = [estimate - half, estimate + half, estimate - wide_half, estimate + wide_half];
    let near = estimate.abs() - limit - 3.0 * wide_half;
    let is_on_edge = near.abs() < 5e-3 || edges.iter().any(|end| (end.abs() - limit).abs() < 3e-3);
    Found { said, ratio: estimate.exp(), ends: Some(ends), is_on_edge }
}

/// Results of a kind that the number chooses: 1 to 8 cells in one or two groups, 1 to 32 runs, by need or fixed, quiet to
/// disturbed, two modes, ties by memory, bounds and goals near the values, and cells that fail.
pub(super) fn made_up(number: u64) -> Results {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let pick = |random: &mut Xoshiro256PlusPlus, of: &[f64]| of[random.below(of.len() as u64) as usize];
    let variants = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let (count, batches) = match random.below(4) {
        0 => (1 + random.below(4) as usize, &[1, 8][..]),
        _ => (1 + random.below(8) as usize, &[1][..]),
    };
    let runs = [1, 3, 5, 7, 8, 10, 12, 16, 24, 32][random.below(10) as usize];
    let axes = Axes { models: &["m"], batches, variants: &variants[..count], devices: &["cpu"], runs };
    let mut spec = experiment("made", &axes);
    if random.unit() < 0.4 && runs > 8 {
        spec.runs = Runs { min: 8, max: runs };
    }
    let level = 5e6;
    let bound =
        |max: f64| Bound { metric: "latency".parse().unwrap(), min: None, max: Some(max), of: Selector::default() };
    if random.unit() < 0.5 {
        let best = ["latency", "peak_rss"][random.below(2) as usize].parse().unwrap();
        let then = if random.unit() < 0.5 { vec!["peak_rss".parse().unwrap()] } else { Vec::new() };
        let within =
            if random.unit() < 0.5 { vec![bound(level * pick(&mut random, &[1.0, 1.05, 1.3]))] } else { Vec::new() };
        spec.choose = Some(Choose { best, then, within });
    }
    if random.unit() < 0.5 {
        spec.goals = vec![Goal { name: None, bound: bound(level * pick(&mut random, &[0.98, 1.02, 1.2])) }];
    }
    let (steps, sd) = (pick(&mut random, &[0.0, 0.012, 0.03, 0.2]), pick(&mut random, &[0.0, 0.003, 0.01, 0.03, 0.1]));
    let (modes, shares) = (pick(&mut random, &[1.0, 1.0, 1.1, 1.6]), pick(&mut random, &[0.0, 10.0, 150.0]));
    let behaviour = |path: &str| {
        let index = path.split('/').nth(2).and_then(|name| variants.iter().position(|known| *known == name)).unwrap();
        let factor = if path.contains("b8") { 3.0 } else { 1.0 };
        let median = factor * level * (1.0 + steps * index as f64);
        Behaviour { run_sd: sd, every_third: modes, memory: 200.0 + shares * (7 - index) as f64, ..usual(median, 3) }
    };
    let mut fixture = Fixture::rerun(spec, number, behaviour);
    if random.unit() < 0.15 {
        let failed = format!("m/b1/{}/cpu", variants[random.below(count as u64) as usize]);
        fixture.fail_rehearsal(&failed, FailureKind::Operator, "no kernel", None);
    }
    fixture.summarized().results()
}

/// How many results are made up; `.ci/run slow` asks for 20,000.
pub(super) fn cases() -> u64 {
    std::env::var("PERFRUN_CLAIMS").map_or(400, |cases| cases.parse().expect("a number"))
}

#[test]
fn quantiles_are_those_of_tables() {
    for (probability, freedom, wanted) in
        [(0.975, 1, 12.706_2), (0.975, 2, 4.302_7), (0.975, 5, 2.570_6), (0.995, 7, 3.499_5), (0.999, 15, 3.732_8)]
    {
        assert!(
            (quantile(probability, freedom) - wanted).abs() < 1e-4,
            "{freedom}: {}",
            quantile(probability, freedom)
        );
    }
}

#[test]
fn no_claim_about_made_up_results_is_false() {
    let (mut claims, mut kinds) = (0, BTreeMap::<&str, usize>::new());
    for number in 0..cases() {
        let results = made_up(number);
        claims += Checker::new(&results).check_all().unwrap_or_else(|why| panic!("{number}: {why}"));
        for claim in &results.claims {
            let kind = match claim.kind {
                Kind::Better { .. } => "better",
                Kind::Equivalent => "equivalent",
                Kind::NotToldApart { .. } => "not told apart",
                Kind::Kept => "kept",
                Kind::Missed => "missed",
                Kind::Undecided => "undecided",
                other => panic!("{other:?} is not of these results"),
            };
            *kinds.entry(kind).or_default() += 1;
        }
    }
    // A checker that sees nothing of a kind checks nothing.
    assert!(claims > 400 && kinds.len() == 6 && kinds.values().all(|count| *count > 20), "{kinds:?}");
}

/// Files hold verdicts by the rule of their day: their claims follow from the intervals that they store.
#[test]
fn no_claim_about_committed_results_is_false() {
    let mut checked = 0;
    for path in crate::results::committed() {
        let results = results::read(&path).unwrap();
        let limit = 1.0 + results.rules.margin;
        for claim in &results.claims {
            let ends: Vec<[f64; 2]> = claim.rests_on.iter().filter_map(|row| Some([row.low?, row.high?])).collect();
            let holds = match claim.kind {
                Kind::Better { .. } if claim.metric.metric.is_constant() => true,
                Kind::Better { .. } => ends.iter().all(|[low, _]| *low >= limit * (1.0 - 1e-4)),
                Kind::Equivalent => {
                    let pairs = claim.cells.len() * (claim.cells.len() - 1) / 2;
                    ends.len() == pairs && ends.iter().all(|[low, high]| *high <= limit && *low >= 1.0 / limit)
                }
                _ => true,
            };
            assert!(holds, "{}: {claim:?}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 10, "{checked}");
}
