//! Two cells in their common blocks (method 6.1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::one_sided;
use super::score::{self, MARGIN_OF_SHARES, p_beyond};
use super::unpaired::sign;
use super::withheld::withheld;
use super::{ComparisonRules, Withheld};
use crate::stored::{interval, rounded, word};
use crate::summary::{CONFIDENCE, CellSummary, Summary, background_load};
use base::metric::{Difference, Direction, ITEMS, LARGEST_RATE, MetricReference, Unit};
use plan::CellId;
use statistics::duet::paired_slice_ratio;
use statistics::interval::Interval;
use statistics::paired::compare_paired;
use statistics::{Claim, Hint, LogRatio, Verdict};

/// A cell against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// Id of the cell.
    pub cell: CellId,
    /// Id of the cell that it is compared with.
    pub baseline: CellId,
    /// What is compared, as users name it: `latency`, `latency.p95`.
    pub metric: MetricReference,
    /// Baseline over cell for times, cell over baseline for rates: above 1 is better.
    pub ratio: f64,
    /// Lower end of its interval; absent below five common blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Confidence of the interval.
    #[serde(alias = "level")]
    pub confidence: f64,
    /// Blocks in which both completed.
    pub blocks: u64,
    /// The margin of the verdict, as a relative difference.
    pub margin: f64,
    /// What may be claimed.
    #[schemars(with = "String", description = format!("{}.", Verdict::listed()))]
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// Processors that background load used during most runs of the two, for which the verdict holds; absent where there
    /// was none.
    #[serde(rename = "beside", default, skip_serializing_if = "Option::is_none")]
    pub background_load: Option<f64>,
    /// About how many more blocks would decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_blocks: Option<u64>,
    /// Winsorised deviation of the log ratios of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The smallest relative effect that these blocks detect with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Two-sided p value of a difference beyond the margin, the test that the interval is of (method 6.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// Why a verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The whole interval lies beyond the margin.
    BeyondMargin,
    /// The whole interval lies within the margin.
    WithinMargin,
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished,
    /// The interval is too wide to decide.
    NotEnoughData,
    /// There are fewer common blocks than a verdict takes.
    TooFewBlocks,
    /// Something forbids a verdict.
    #[serde(untagged)]
    Withheld(Withheld),
}

impl Reason {
    fn of(verdict: Verdict, hint: Option<&Hint>) -> Self {
        match (verdict.claim(), hint) {
            (Claim::Difference, _) => Reason::BeyondMargin,
            (Claim::Sameness, _) => Reason::WithinMargin,
            (Claim::Nothing, Some(Hint::TooFewBlocks { .. })) => Reason::TooFewBlocks,
            (Claim::Nothing, Some(Hint::SizeNotEstablished { .. })) => Reason::SizeNotEstablished,
            (Claim::Nothing, Some(Hint::NotEnoughData { .. }) | None) => Reason::NotEnoughData,
        }
    }

    /// The stored word.
    pub fn name(self) -> String {
        word(&self)
    }
}

impl Comparison {
    /// Its interval; `None` below five common blocks.
    pub fn interval(&self) -> Option<Interval> {
        interval(self.low, self.high)
    }

    /// What forbids a verdict.
    pub fn withheld(&self) -> Option<Withheld> {
        match self.reason {
            Reason::Withheld(withheld) => Some(withheld),
            _ => None,
        }
    }

    /// Whether the verdict may be read as one: there is an interval, and nothing forbids it.
    pub fn is_judged(&self) -> bool {
        self.low.is_some() && self.withheld().is_none()
    }

    /// Whether its verdict claims something: a difference, or that there is none.
    pub fn is_decided(&self) -> bool {
        self.is_judged() && !self.verdict.is_open()
    }

    /// Without its verdict where there is a reason to withhold it; an earlier reason stays.
    pub(super) fn withheld_for(self, reason: Option<Withheld>) -> Self {
        match self.withheld().or(reason) {
            None => self,
            Some(withheld) => Comparison {
                verdict: Verdict::Undecided,
                reason: Reason::Withheld(withheld),
                more_blocks: None,
                ..self
            },
        }
    }

    /// Of two cells by a metric, without interval and margin.
    fn between([from, to]: [&CellSummary; 2], metric: MetricReference, ratio: f64, verdict: Verdict) -> Self {
        Comparison {
            cell: to.id,
            baseline: from.id,
            metric,
            ratio,
            low: None,
            high: None,
            confidence: CONFIDENCE,
            blocks: u64::from(from.runs.completed.min(to.runs.completed)),
            margin: 0.0,
            verdict,
            reason: Reason::of(verdict, None),
            background_load: background_load([from, to]),
            more_blocks: None,
            deviation: None,
            detectable: None,
            p: None,
        }
    }

    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        Comparison {
            ratio: rounded(self.ratio),
            low: self.low.map(rounded),
            high: self.high.map(rounded),
            background_load: self.background_load.map(rounded),
            deviation: self.deviation.map(rounded),
            detectable: self.detectable.map(rounded),
            p: self.p.map(rounded),
            ..self
        }
    }
}

/// Compares two cells by the default metric of the two (method 6.1).
pub(crate) fn compare_unasked(
    summary: &Summary,
    baseline: usize,
    cell: usize,
    terms: &ComparisonRules,
) -> Option<Comparison> {
    let (from, to) = (summary.cells.get(baseline)?, summary.cells.get(cell)?);
    let metric = to.compared_by(from);
    let found = compare_cells(summary, baseline, cell, metric, terms);
    if metric.metric.name == LARGEST_RATE.name {
        // A run whose rate lies beyond those that were looked at is unlike the rest.
        let is_measured = |cell: &CellSummary| cell.bound_of(metric).is_none();
        let lacks =
            |cell: &CellSummary| is_measured(cell) && cell.run_values(metric).len() < cell.runs.completed as usize;
        let why = (lacks(from) || lacks(to)).then_some(Withheld::ShortLoad);
        return found.map(|found| found.withheld_for(why));
    }
    if metric.metric.name != ITEMS.name {
        let differ = to.has_another_batch(from).then_some(Withheld::BatchesDiffer);
        return found.map(|found| found.withheld_for(differ));
    }
    let by_latency = || compare_cells(summary, baseline, cell, MetricReference::LATENCY, terms);
    found.or_else(|| Some(by_latency()?.withheld_for(Some(Withheld::BatchesDiffer))))
}

/// Compares cell `cell` with cell `baseline`; `None` without a common block in which both have the metric.
pub(crate) fn compare_cells(
    summary: &Summary,
    baseline: usize,
    cell: usize,
    reference: MetricReference,
    terms: &ComparisonRules,
) -> Option<Comparison> {
    let (from, to) = (summary.cells.get(baseline)?, summary.cells.get(cell)?);
    if reference.metric.is_constant() {
        let exactly = exact(summary, baseline, cell, reference)?;
        return match from.is_uncertain(reference.metric) && to.is_uncertain(reference.metric) {
            true => by_items(exactly, [from, to], terms),
            false => Some(exactly),
        };
    }
    if reference.metric.is_own() && from.is_same_in_all_runs(reference) && to.is_same_in_all_runs(reference) {
        return exact(summary, baseline, cell, reference);
    }
    if [from, to].iter().any(|cell| cell.bound_of(reference).is_some()) {
        return beyond(from, to, reference, terms);
    }
    let paired = paired(from, to, reference, terms)?;
    let withheld = withheld(from).or_else(|| withheld(to));
    let withheld = withheld.or_else(|| terms.withheld(&paired, reference));
    let interval = paired.interval.map(|interval| interval.map(speedup));
    let comparison = Comparison {
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        confidence: paired.confidence,
        blocks: paired.blocks as u64,
        margin: paired.margin,
        reason: Reason::of(paired.verdict, paired.hint.as_ref()),
        more_blocks: paired.hint.and_then(|hint| hint.more_blocks()).map(|blocks| blocks as u64),
        deviation: paired.winsorised_deviation,
        detectable: paired.detectable_effect,
        p: paired.p(),
        ..Comparison::between([from, to], reference, speedup(paired.theta), paired.verdict)
    };
    Some(comparison.withheld_for(withheld))
}

/// Compares two cells by a score and its interval over items (method 6.2); `None` where the score has no interval.
fn by_items(exactly: Comparison, [from, to]: [&CellSummary; 2], terms: &ComparisonRules) -> Option<Comparison> {
    let reference = exactly.metric;
    let direction = reference.metric.direction;
    let before = from.estimate_of(reference)?.value;
    let found = score::difference(from, to, reference.metric)?;
    let margin = match reference.unit() {
        Unit::Share => MARGIN_OF_SHARES,
        _ => Difference::Relative(terms.margin_of(reference)),
    };
    let verdict = found.verdict(direction, margin.absolute_of(before))?;
    let ends = found.interval.filter(|_| before > 0.0).map(|it| match direction {
        Direction::HigherIsBetter => [it.low, it.high].map(|by| Some(((before + by) / before).max(0.0))),
        // An error that reaches 0 has no largest ratio.
        Direction::LowerIsBetter | Direction::Neutral => {
            [it.high, it.low].map(|by| before + by).map(|after| (after > 0.0).then(|| before / after))
        }
    });
    let [low, high] = ends.unwrap_or_default();
    let comparison = Comparison {
        low,
        high,
        margin: margin.relative_to(before),
        verdict,
        reason: Reason::of(verdict, None),
        p: found.worse(direction).and_then(|worse| p_beyond(worse, margin.absolute_of(before))),
        ..exactly
    };
    Some(comparison.withheld_for(withheld(from).or_else(|| withheld(to))))
}

/// The verdict by a metric of which only the values are known: the values themselves, without margin (method 6.1).
fn exact(summary: &Summary, baseline: usize, cell: usize, reference: MetricReference) -> Option<Comparison> {
    let (from, to) = (summary.cells.get(baseline)?, summary.cells.get(cell)?);
    let (before, after) = (from.estimate_of(reference)?.value, to.estimate_of(reference)?.value);
    let (worse_by, ratio) = match reference.metric.direction {
        Direction::HigherIsBetter => (before - after, after / before),
        Direction::LowerIsBetter | Direction::Neutral => (after - before, before / after),
    };
    let ratio = if before > 0.0 && after > 0.0 { ratio } else { f64::NAN };
    let comparison = Comparison::between([from, to], reference, ratio, Verdict::exact(worse_by, 0.0));
    let comparison = Comparison { low: Some(ratio), high: Some(ratio), ..comparison };
    Some(comparison.withheld_for(withheld(from).or_else(|| withheld(to))))
}

/// The verdict by largest rates of which one at least lies beyond those that were looked at.
fn beyond(
    from: &CellSummary,
    to: &CellSummary,
    reference: MetricReference,
    terms: &ComparisonRules,
) -> Option<Comparison> {
    let found = one_sided::ratio(from, to, reference, terms)?;
    let comparison = Comparison {
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high).filter(|high| high.is_finite()),
        confidence: terms.confidence(),
        margin: terms.margin_of(reference),
        reason: if found.interval.is_some() { Reason::BeyondMargin } else { Reason::TooFewBlocks },
        ..Comparison::between([from, to], reference, found.ratio, found.verdict)
    };
    let why = withheld(from).or_else(|| withheld(to));
    let is_open = found.interval.is_some() && found.verdict.is_open();
    Some(comparison.withheld_for(why.or(is_open.then_some(Withheld::RateBeyond))))
}

/// The paired comparison of two cells, or of a cell and its A/A copy, in their common blocks.
pub(super) fn paired(
    from: &CellSummary,
    to: &CellSummary,
    reference: MetricReference,
    terms: &ComparisonRules,
) -> Option<LogRatio> {
    let log_ratios = block_log_ratios(from, to, reference, terms);
    compare_paired(&log_ratios, terms.margin_of(reference), terms.analyses.analysis_of(log_ratios.len()))
}

/// What is compared: one log ratio for each common block, positive where the candidate is worse.
pub(crate) fn block_log_ratios(
    from: &CellSummary,
    to: &CellSummary,
    reference: MetricReference,
    terms: &ComparisonRules,
) -> Vec<f64> {
    if terms.is_duet && reference == MetricReference::LATENCY {
        slice_ratios(from, to)
    } else {
        log_ratios(from, to, reference)
    }
}

/// Theta above 0 is worse, so the speed-up is its negative exponential.
pub fn speedup(theta: f64) -> f64 {
    (-theta).exp()
}

/// The same for two that ran at the same time: the median over the slices of each block.
fn slice_ratios(from: &CellSummary, to: &CellSummary) -> Vec<f64> {
    let ratio = |(block, slices): &(u32, Vec<f64>)| {
        let (_, base) = from.slices.iter().find(|(other, _)| other == block)?;
        let each = |medians: &[f64]| -> Vec<Vec<f64>> { medians.iter().map(|median| vec![*median]).collect() };
        paired_slice_ratio(&each(base), &each(slices))
    };
    to.slices.iter().filter_map(ratio).collect()
}

/// Log of candidate over baseline in each block that both completed; positive is worse.
pub fn log_ratios(from: &CellSummary, to: &CellSummary, reference: MetricReference) -> Vec<f64> {
    let sign = sign(reference.metric.direction);
    let base = from.run_values(reference);
    let pair = |(block, value): (u32, f64)| {
        let position = base.binary_search_by_key(&block, |(other, _)| *other).ok()?;
        let base = base[position].1;
        (value > 0.0 && base > 0.0).then(|| sign * (value.ln() - base.ln()))
    };
    to.run_values(reference).into_iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metric::{LATENCY, Metric};
    use base::quantity::Ratio;
    use experiment::Margin;
    use std::collections::BTreeMap;

    fn cell(values: &[f64], metric: &Metric) -> CellSummary {
        CellSummary::unmeasured("0123456789abcdef".parse().expect("an id")).with_values(metric, values)
    }

    fn compared(base: CellSummary, other: CellSummary, metric: &'static Metric) -> Comparison {
        let summary = Summary { cells: vec![base, other], ..Summary::default() };
        compare_cells(&summary, 0, 1, MetricReference::of(metric), &ComparisonRules::default()).expect("common blocks")
    }

    const BASE: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];

    #[test]
    fn more_time_is_worse_and_a_higher_rate_is_better() {
        let higher: Vec<f64> = BASE.iter().map(|value| value * 1.1).collect();
        let time = compared(cell(&BASE, &LATENCY), cell(&higher, &LATENCY), &LATENCY);
        assert_eq!(time.verdict, Verdict::Worse);
        assert!((time.ratio - 1.0 / 1.1).abs() < 1e-9);
        let rate = compared(cell(&BASE, &ITEMS), cell(&higher, &ITEMS), &ITEMS);
        assert_eq!(rate.verdict, Verdict::Better);
        assert!((rate.ratio - 1.1).abs() < 1e-9);
    }

    /// Eight items take twice the time of one: four times as many a second.
    #[test]
    fn cells_with_different_batches_are_compared_by_items() {
        let times = |factor: f64| BASE.map(|value| value * factor);
        let alone = |batch: u64, time: f64| CellSummary { batch: Some(batch), ..cell(&times(time), &LATENCY) };
        let rated = |batch: u64, time: f64| alone(batch, time).with_values(&ITEMS, &times(batch as f64 / time));
        let against = |other: CellSummary| {
            let summary = Summary { cells: vec![rated(1, 1.0), other], ..Summary::default() };
            compare_unasked(&summary, 0, 1, &ComparisonRules::default()).expect("common blocks")
        };
        let found = against(rated(8, 2.0));
        assert_eq!((found.metric, found.verdict), (MetricReference::of(&ITEMS), Verdict::Better));
        assert!((found.ratio - 4.0).abs() < 1e-9 && found.p.is_some());
        assert_eq!(against(rated(1, 2.0)).metric, MetricReference::LATENCY);
        // With cold caches there are latencies and no rates.
        let cold = against(alone(8, 2.0));
        assert_eq!((cold.verdict, cold.withheld()), (Verdict::Undecided, Some(Withheld::BatchesDiffer)));
    }

    #[test]
    fn pairs_are_made_by_block_and_lost_blocks_are_dropped() {
        let mut other = cell(&BASE, &LATENCY);
        let per_run = &mut other.metrics.get_mut(LATENCY.name).expect("latency").per_run;
        per_run.remove(2);
        assert_eq!(compared(cell(&BASE, &LATENCY), other, &LATENCY).blocks, 5);
    }

    #[test]
    fn no_verdict_on_wrong_outputs_many_failures_or_unsteady_runs() {
        let faster: Vec<f64> = BASE.iter().map(|value| value * 0.5).collect();
        let verdict = |change: &dyn Fn(&mut CellSummary)| {
            let mut other = cell(&faster, &LATENCY);
            change(&mut other);
            let found = compared(cell(&BASE, &LATENCY), other, &LATENCY);
            (found.verdict, found.withheld())
        };
        assert_eq!(verdict(&|_| {}), (Verdict::Better, None));
        let withheld = |reason| (Verdict::Undecided, Some(reason));
        let warn = |code: &'static str, runs: u32| {
            move |cell: &mut CellSummary| cell.warnings = BTreeMap::from([(code.to_owned(), runs)])
        };
        assert_eq!(verdict(&warn("W_OUTPUT_NONFINITE", 1)), withheld(Withheld::NotFinite));
        assert_eq!(verdict(&warn("W_NO_STEADY_STATE", 3)), (Verdict::Better, None));
        assert_eq!(verdict(&warn("W_NO_STEADY_STATE", 4)), withheld(Withheld::NotSteady));
        assert_eq!(verdict(&|cell| cell.runs.failed = 2), withheld(Withheld::ManyFailures));
    }

    #[test]
    fn a_quick_look_claims_only_what_is_beyond_its_margin() {
        let margin = ComparisonRules::default().margin.of_quick_look();
        let terms = ComparisonRules { is_quick: true, margin, ..ComparisonRules::default() };
        let against = |factor: f64| {
            let other: Vec<f64> = BASE.iter().map(|value| value * factor).collect();
            let cells = vec![cell(&BASE, &LATENCY), cell(&other, &LATENCY)];
            let summary = Summary { cells, ..Summary::default() };
            compare_cells(&summary, 0, 1, MetricReference::LATENCY, &terms).expect("common blocks")
        };
        assert_eq!((against(1.5).verdict, against(1.5).withheld()), (Verdict::Worse, None));
        for factor in [0.95, 1.0, 1.05] {
            let found = against(factor);
            assert_eq!((found.verdict, found.withheld()), (Verdict::Undecided, Some(Withheld::QuickLook)));
        }
    }

    /// Load that stays does not widen an interval; it changes the answer (method 8.1), of a quick look as of a whole record.
    #[test]
    fn a_quick_look_under_background_load_claims_what_a_whole_record_claims() {
        let judged = |factor: f64, runs: u32, is_quick: bool| {
            let other: Vec<f64> = BASE.iter().map(|value| value * factor).collect();
            let mut cells = vec![cell(&BASE, &LATENCY), cell(&other, &LATENCY)];
            let load = crate::summary::BackgroundLoad { runs, cores: 0.98, waiting_threads: None };
            cells.iter_mut().for_each(|cell| cell.findings.background_load = Some(load));
            let summary = Summary { cells, ..Summary::default() };
            let terms = ComparisonRules { is_quick, ..ComparisonRules::default() };
            let found = compare_cells(&summary, 0, 1, MetricReference::LATENCY, &terms).expect("common blocks");
            (found.verdict, found.withheld(), found.background_load)
        };
        assert_eq!(judged(1.5, 6, true), (Verdict::Worse, None, Some(0.98)));
        assert_eq!(judged(1.5, 6, true), judged(1.5, 6, false));
        assert_eq!(judged(1.5, 3, true), (Verdict::Worse, None, None), "half of the runs are not most");
        assert_eq!(judged(1.0, 6, true), (Verdict::Undecided, Some(Withheld::QuickLook), Some(0.98)));
    }

    #[test]
    fn tails_have_their_own_margin() {
        let terms = ComparisonRules {
            margin: Margin { default: Ratio(0.01), tail: Ratio(0.07) },
            ..ComparisonRules::default()
        };
        let margin = |text: &str| terms.margin_of(text.parse().expect("a reference"));
        assert_eq!((margin("latency"), margin("latency.mean")), (0.01, 0.01));
        assert_eq!((margin("latency.p95"), margin("latency.p99.9")), (0.07, 0.07));
    }
}
