//! What is said of the log ratio of two sides: estimate, interval, verdict, and what it would take where the verdict is
//! out (method 6.1, 6.2).
//!
//! Input: the estimate with its error. Output: a [`LogRatio`], the same with pairs and without. Deliberately absent: where
//! the error comes from (`paired`, `unpaired`).

use super::direction::Directions;
use super::interim::Analysis;
use super::interval::{Interval, is_confidence};
use super::minimum_effect::MinimumEffect;
use super::outlook::Outlook;
use super::planning::MINIMUM_RUNS;
use super::satterthwaite::CombinedUncertainty;
use super::verdict::Verdict;

/// Why a comparison is undecided, and what would help; without pairs, blocks are runs on each side.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Hint {
    /// There are fewer blocks than any verdict takes.
    TooFewBlocks {
        /// The number that it takes.
        needed: usize,
    },
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished {
        /// About how many more blocks it takes; `None` when no reasonable number does.
        #[serde(default)]
        more_blocks: Option<usize>,
    },
    /// The interval is too wide to decide.
    NotEnoughData {
        /// The relative effect that these blocks find with 80% power.
        detectable_effect: f64,
        /// About how many more blocks it takes; `None` when no reasonable number does.
        more_blocks: Option<usize>,
    },
}

impl Hint {
    /// About how many more blocks it takes; `None` when no reasonable number does.
    pub fn more_blocks(self) -> Option<usize> {
        match self {
            Hint::TooFewBlocks { .. } => None,
            Hint::SizeNotEstablished { more_blocks } | Hint::NotEnoughData { more_blocks, .. } => more_blocks,
        }
    }
}

/// The log ratio candidate / baseline, above zero where the candidate is worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogRatio {
    /// Common blocks; without pairs, runs of the side that has fewer.
    pub blocks: usize,
    /// The estimate: the trimmed mean (25 %) of the blocks, or of the logs of one side less that of the other.
    pub theta: f64,
    /// Its standard error; `None` for a single block.
    pub(crate) error: Option<CombinedUncertainty>,
    /// Its interval, of a difference the one that holds for those that were decided (method 6.1); `None` when there are too
    /// few blocks for a verdict.
    pub interval: Option<Interval>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Margin as a relative difference, such as 0.02; on the log scale it is ln(1 + margin) to both sides.
    pub margin: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it is undecided; `None` for the other verdicts, and where the hint was not computed.
    pub hint: Option<Hint>,
    /// Winsorised standard deviation of the log ratios of blocks; `None` for a single block, and without pairs.
    pub winsorised_deviation: Option<f64>,
    /// The relative effect that these blocks find with 80% power; `None` for a single block.
    pub detectable_effect: Option<f64>,
    /// The tests against the margin; `None` when there are too few blocks for a verdict.
    pub(crate) minimum_effect: Option<MinimumEffect>,
}

/// Whether verdicts can be given by such terms: a margin of at least zero, and 0 < `confidence` < 1.
pub(crate) fn are_terms(margin: f64, confidence: f64) -> bool {
    margin >= 0.0 && margin.is_finite() && is_confidence(confidence)
}

/// What is known of an estimate in addition to its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    /// Its error.
    pub(crate) error: CombinedUncertainty,
    /// The error by which a difference is claimed, where that is another.
    pub(crate) of_differences: CombinedUncertainty,
    /// Which differences may be claimed at all.
    pub(crate) directions: Directions,
}

/// An estimate nearer to the margin than so many half widths of its interval is shown from the margin on: among those that
/// were decided, estimates near the margin are too large.
const NEAR_THE_MARGIN: f64 = 3.0;

impl Evidence {
    /// The verdict on an estimate, and the interval that is shown with it.
    fn verdict(&self, theta: f64, blocks: usize, log_margin: f64, analysis: Analysis) -> (Verdict, Interval) {
        let confidence = analysis.confidence(blocks);
        let interval = self.error.interval(theta, confidence);
        let half = self.of_differences.interval(0.0, confidence).high;
        let wide = self.of_differences.interval(0.0, analysis.shown_confidence(blocks)).high;
        // In the direction of the difference, so that there is one case.
        let shown = |theta: f64| {
            let is_near = theta < log_margin + NEAR_THE_MARGIN * half;
            Interval { low: if is_near { log_margin } else { log_margin.max(theta - wide) }, high: theta + wide }
        };
        match Verdict::from_interval(Interval { low: theta - half, high: theta + half }, log_margin) {
            Verdict::Worse if self.directions.worse => (Verdict::Worse, shown(theta)),
            Verdict::Better if self.directions.better => (Verdict::Better, shown(-theta).map(|end| -end)),
            _ => match Verdict::from_interval(interval, log_margin) {
                Verdict::Equivalent => (Verdict::Equivalent, interval),
                _ => (Verdict::Undecided, interval),
            },
        }
    }
}

impl LogRatio {
    /// Judges an estimate over so many blocks.
    pub(crate) fn judged(
        (theta, blocks): (f64, usize),
        evidence: Option<Evidence>,
        margin: f64,
        analysis: Analysis,
    ) -> Self {
        let log_margin = margin.ln_1p();
        let known = evidence.filter(|_| blocks >= MINIMUM_RUNS);
        let judged = known.map(|evidence| evidence.verdict(theta, blocks, log_margin, analysis));
        LogRatio {
            blocks,
            theta,
            error: evidence.map(|evidence| evidence.error),
            interval: judged.map(|(_, interval)| interval),
            confidence: analysis.confidence(blocks),
            margin,
            verdict: judged.map(|(verdict, _)| verdict).unwrap_or_default(),
            hint: None,
            winsorised_deviation: None,
            detectable_effect: None,
            minimum_effect: known.map(|evidence| MinimumEffect::of(theta, &evidence.of_differences, log_margin)),
        }
    }

    /// p value of a difference beyond the margin, two-sided; it belongs to the interval.
    pub fn p(&self) -> Option<f64> {
        self.minimum_effect.map(|test| test.p_min_effect)
    }

    /// Whether the candidate is worse by no more than the margin: its interval may reach beyond the other one.
    pub fn is_no_worse(&self) -> bool {
        let is_below = |interval: Interval| interval.high <= self.margin.ln_1p();
        self.verdict.is_no_worse() || (self.verdict.is_open() && self.interval.is_some_and(is_below))
    }

    /// What would turn an undecided comparison into a verdict, by the error that more blocks leave. `most` are those of
    /// the side that has more.
    pub(crate) fn hint(&self, most: usize, error: impl Fn(usize) -> Option<CombinedUncertainty>) -> Option<Hint> {
        if !self.verdict.is_open() {
            return None;
        }
        let Some(interval) = self.interval else { return Some(Hint::TooFewBlocks { needed: MINIMUM_RUNS }) };
        let LogRatio { theta, margin, confidence, .. } = *self;
        let more_blocks = Outlook { theta, margin, confidence, observations: most }.fewest_more(error);
        if !interval.contains(0.0) {
            return Some(Hint::SizeNotEstablished { more_blocks });
        }
        Some(Hint::NotEnoughData { detectable_effect: self.detectable_effect?, more_blocks })
    }
}
