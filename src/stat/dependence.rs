//! No verdict from observations that follow each other (method 6.2).
//!
//! Input: what a verdict would rest on: the log ratios of pairs, or the observations of both sides, in their order.
//! Output: the reason for which there is none, if there is one.

use statistics::Dependence;

use super::judged::Reason;

/// How often independent observations may pass for dependent ones, in a comparison.
const LEVEL: f64 = 0.05;

/// Of the log ratios of pairs.
pub(super) fn of_pairs(log_ratios: &[f64]) -> Option<Reason> {
    let dependence = Dependence::of(log_ratios);
    dependence.is_established(LEVEL).then(|| Reason::DependentPairs { pairs: dependence.effective_n() })
}

/// Of both sides, either of which is enough; each is tested at half the level, so that both together keep it.
pub(super) fn of_sides(baseline: &[f64], candidate: &[f64]) -> Option<Reason> {
    let sides = [baseline, candidate].map(Dependence::of);
    let is_found = sides.iter().any(|side| side.is_established(LEVEL / 2.0));
    let [baseline, candidate] = sides.map(|side| side.effective_n());
    is_found.then_some(Reason::Dependent { baseline, candidate })
}
