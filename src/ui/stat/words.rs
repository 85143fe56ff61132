//! Sentences about series.

use statistics::Claim;

use crate::report::format::{count, judged_ratio, percent};
use crate::stat::{Contrast, Findings, Level, Reason};

/// The answer: what may be claimed of the candidate, with the evidence.
pub(super) fn verdict(findings: &Findings, contrast: &Contrast, names: [&str; 2]) -> String {
    let [baseline, candidate] = names;
    let margin = percent(findings.terms.margin);
    let (word, preposition) = (contrast.verdict.name(), contrast.verdict.preposition());
    let relation = match contrast.verdict.claim() {
        Claim::Difference => format!("{candidate} is {word} {preposition} {baseline}"),
        Claim::Sameness => format!("{candidate} is {word} {preposition} {baseline} within {margin}"),
        Claim::Nothing => format!("{candidate} {preposition} {baseline} is {word}"),
    };
    let subject = match contrast.observations.level {
        Level::Runs => "its run medians",
        Level::Values => "its values",
    };
    let evidence = contrast.ratio.map(|found| {
        format!(
            "{subject} are {} those of {baseline}",
            judged_ratio(found.value, found.interval, findings.terms.margin)
        )
    });
    let remark = match contrast.verdict.claim() {
        Claim::Difference => Some(format!("beyond the margin of {margin}")),
        _ => contrast.reason.map(|found| reason(found, findings, contrast)),
    };
    let separator = if contrast.reason.is_some() { "; " } else { ", " };
    let parts: Vec<String> = evidence.into_iter().chain(remark).collect();
    format!("{relation}: {}.", parts.join(separator))
}

/// What would turn an inconclusive comparison into a verdict.
fn reason(reason: Reason, findings: &Findings, contrast: &Contrast) -> String {
    let (one, side) = match (findings.terms.paired, contrast.observations.level) {
        (true, _) => ("pair", ""),
        (false, Level::Runs) => ("run", " on each side"),
        (false, Level::Values) => ("value", " on each side"),
    };
    let would_decide = |more: usize| format!("about {}{side} would decide", count(more as u64, &format!("more {one}")));
    match reason {
        Reason::TooFew { needed } => format!("a verdict needs {}{side}", count(needed as u64, one)),
        Reason::SizeNotEstablished { more } => {
            let more = more.map_or(String::new(), |more| format!("; {}", would_decide(more)));
            format!("different, but possibly by less than {}{more}", percent(findings.terms.margin))
        }
        Reason::NotEnoughData { more: Some(more), .. } => would_decide(more),
        Reason::NotEnoughData { detectable_effect, more: None } => {
            let remedy = if contrast.unpaired.is_some() && findings.terms.session_spread > 0.0 {
                "; interleaved pairs detect smaller ones"
            } else {
                ""
            };
            let effect = percent(detectable_effect);
            format!("more {one}s would hardly help: only differences of {effect} or more are detectable{remedy}")
        }
        Reason::Dependent { baseline, candidate } => {
            let remedy = match contrast.observations.level {
                Level::Runs => "interleave the measurements and add `--paired`",
                Level::Values => "give them as runs (an array of arrays), or one value for each process",
            };
            format!(
                "the {one}s are autocorrelated, worth only {baseline:.0} and {candidate:.0} independent ones; {remedy}"
            )
        }
        Reason::DependentPairs { pairs } => format!(
            "the pairs are autocorrelated, worth only {pairs:.0} of {}; use new processes for each pair",
            contrast.observations.baseline
        ),
        Reason::NotPositive => "a ratio needs values above zero".to_owned(),
    }
}

/// `p99`, `p99.9`, `median`.
pub(super) fn quantile_name(probability: f64) -> String {
    if probability == 0.5 {
        return "median".to_owned();
    }
    // Twelve digits hide the binary remainder of a product by a hundred.
    let percent = format!("{:.12}", probability * 100.0);
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Values that support a tail percentile: the smallest n with p^n <= 0.025 (method 5.2).
pub(super) fn needed_for(probability: f64) -> u64 {
    (0.025_f64.ln() / probability.ln()).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::quantile::quantile_is_supported;

    #[test]
    fn needed_numbers_are_those_of_the_rule() {
        for probability in [0.9, 0.95, 0.99, 0.999] {
            let needed = needed_for(probability) as f64;
            assert!(quantile_is_supported(needed, probability) && !quantile_is_supported(needed - 1.0, probability));
        }
        assert_eq!(["p90", "p99.9", "median"], [0.9, 0.999, 0.5].map(quantile_name).each_ref().map(String::as_str));
    }
}
