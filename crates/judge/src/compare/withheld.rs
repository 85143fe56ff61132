//! What forbids a verdict (method 6.1).

use schemars::JsonSchema;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

use super::ComparisonRules;
use crate::summary::CellSummary;
use base::code::Code;
use base::metric::MetricReference;
use statistics::{LogRatio, Verdict};

/// Why there is no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// Outputs with NaN or infinity: what was timed is not the model's work.
    NotFinite,
    /// Samples too short for a cold cache, which allows one iteration a sample.
    NotResolved,
    /// More than a fifth of the runs failed or were given up.
    ManyFailures,
    /// More than half of the runs never became steady.
    NotSteady,
    /// Much of the time went to nodes on the CPU instead of the device.
    OnCpu,
    /// Much of the time lies outside of what the runtime's program timed.
    Untimed,
    /// Queries came faster than they were served.
    Saturated,
    /// Too few queries for its queue.
    ShortLoad,
    /// At the rate of the runs too few queries were late, or too many, for the largest rate of both.
    RateBeyond,
    /// The two have different batches, so that one inference of the one is not one of the other, and no rate of items.
    BatchesDiffer,
    /// The two sides of an A/A comparison differed by more than the margin.
    ControlFailed,
    /// Between two commits: outputs of the newer side alone are known to differ beyond their limits, so that it does other
    /// work.
    OutputsDiffer,
    /// Most runs of a quick look met background load, under which earlier versions gave no verdict.
    #[serde(rename = "other_load")]
    BackgroundLoad,
    /// Nothing within the wide margin of a quick look is judged.
    QuickLook,
}

impl Withheld {
    /// Whether the ratio itself means nothing: what was timed is not the model's work, or was not timed; or it is of ends alone.
    pub fn hides_the_value(self) -> bool {
        use Withheld::{BatchesDiffer, NotFinite, NotResolved, RateBeyond, Untimed};
        matches!(self, NotFinite | NotResolved | BatchesDiffer | Untimed | RateBeyond)
    }

    /// Whether more runs may make it judged: of more a smaller share may have failed, or never become steady.
    pub(super) fn may_heal(self) -> bool {
        matches!(self, Withheld::ManyFailures | Withheld::NotSteady)
    }

    /// That of the stored word.
    pub fn named(word: &str) -> Option<Self> {
        Self::deserialize(StrDeserializer::<serde::de::value::Error>::new(word)).ok()
    }

    /// The reason as a fragment.
    pub fn words(self) -> &'static str {
        match self {
            Withheld::NotFinite => "outputs with NaN or infinity",
            Withheld::NotResolved => "samples too short for a cold cache",
            Withheld::ManyFailures => "more than a fifth of the runs failed",
            Withheld::NotSteady => "most runs never reached a steady state",
            Withheld::OnCpu => "too much of the time was spent on the CPU",
            Withheld::Untimed => "much of the time lies outside of the program's clock",
            Withheld::Saturated => "more queries came than could be served",
            Withheld::ShortLoad => "too short: fewer queries than the queue needs",
            Withheld::RateBeyond => "the largest rate of one of them lies beyond those that were looked at",
            Withheld::BatchesDiffer => "measured at different batch sizes; compare items/s instead",
            Withheld::ControlFailed => "the control failed",
            Withheld::OutputsDiffer => "outputs differ beyond their limits",
            Withheld::BackgroundLoad => "background load during most runs of a quick look",
            Withheld::QuickLook => "quick look",
        }
    }
}

/// What of a cell forbids verdicts about it.
pub(super) fn withheld(cell: &CellSummary) -> Option<Withheld> {
    let runs = cell.runs;
    let lost = runs.failed + runs.not_run;
    if cell.carries(Code::OutputNonFinite) {
        Some(Withheld::NotFinite)
    } else if cell.carries(Code::ColdUnresolved) {
        Some(Withheld::NotResolved)
    } else if lost * 5 > lost + runs.completed {
        Some(Withheld::ManyFailures)
    } else if cell.codes().contains_key(Code::Untimed.name()) {
        Some(Withheld::Untimed)
    } else if cell.codes().contains_key(Code::Saturated.name()) {
        Some(Withheld::Saturated)
    } else if cell.codes().contains_key(Code::ShortLoad.name()) {
        Some(Withheld::ShortLoad)
    } else if cell.fallback.is_too_much() {
        Some(Withheld::OnCpu)
    } else if cell.is_mostly_unsteady() {
        Some(Withheld::NotSteady)
    } else {
        None
    }
}

impl ComparisonRules {
    /// What a quick look leaves open: what lies within its margin. Under background load it claims what a whole record
    /// would, and both say so.
    pub(super) fn withheld(&self, paired: &LogRatio, reference: MetricReference) -> Option<Withheld> {
        // An interval beyond the margin is open for want of runs, and says so itself.
        let of_interval = Verdict::from_interval(paired.interval, self.margin_of(reference).ln_1p());
        let is_open = self.is_quick && paired.interval.is_some() && !paired.verdict.is_difference();
        (is_open && !of_interval.is_difference()).then_some(Withheld::QuickLook)
    }
}
