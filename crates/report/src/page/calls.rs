//! What calls of a language model say together, in words (method 6.13).

use super::Reader;
use crate::format::{self, percent};
use crate::mark::claimed;
use experiment::{AT, Axis, GENERATE, PROMPT, VERIFY};
use judge::results::{CONFIDENCE, CallRatio, CallsCompared, Cell, Estimated};

/// More lines are left to `results.json`.
const MOST: usize = 6;

/// A loop that takes no more or less than this agrees with its parts.
const AGREES: f64 = 0.02;

/// A line for each: `step-at-896: jumps by 5.1 % [4.2, 6.0] from 768 positions to 896`.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    // Where the two sides of an A/A comparison differ, any ratio may have the same cause.
    if reader.results.choice.as_ref().is_some_and(|choice| choice.failed_control.is_some()) {
        return Vec::new();
    }
    let found = &reader.results.decoding;
    let line = |ratio: &CallRatio| {
        let cell = reader.cell(ratio.cell)?;
        Some(format!("{}: {}", name(reader, cell), claimed(said(ratio))))
    };
    let more = found.len().saturating_sub(MOST);
    let more = (more > 0).then(|| format!("{more} more in results.json"));
    compared(reader).into_iter().chain(found.iter().take(MOST).filter_map(line)).chain(more).collect()
}

/// Of each variant, its step behind the longest context and its longest prompt: `int4: step-at-1024 1.90x [1.80, 2.00]
/// faster, prefill-1024 0.80x [0.75, 0.85] slower`.
fn compared(reader: &Reader<'_>) -> Vec<String> {
    let cells = reader.shown();
    let of = |key: &str, others: [&str; 3]| -> Vec<(&Cell, u64)> {
        let size = |cell: &&'_ Cell, key: &str| {
            let row = reader.input(cell).filter(|row| row["decode"] == true)?;
            row["dimensions"][key].as_u64()
        };
        let is_alone = |cell: &&&Cell| others.iter().all(|other| size(cell, other).is_none());
        cells.iter().filter(is_alone).filter_map(|cell| Some((*cell, size(cell, key)?))).collect()
    };
    let (steps, prompts) = (of(AT, [PROMPT, VERIFY, GENERATE]), of(PROMPT, [AT, VERIFY, GENERATE]));
    let longest = |calls: &[(&Cell, u64)]| calls.iter().map(|(_, size)| *size).max();
    let (Some(context), Some(prompt)) = (longest(&steps), longest(&prompts)) else { return Vec::new() };
    let axes = Axis::ALL.into_iter().filter(|axis| !axis.has_dimensions() && reader.has_several(*axis));
    let axes: Vec<Axis> = axes.collect();
    let judged =
        |cell: &Cell| Some(format!("{} {}", cell.names.input(), claimed(format::speedup(reader.against(cell)?))));
    let line = |step: &Cell| {
        let alike = |cell: &&Cell| {
            cell.batch == step.batch
                && Axis::ALL.iter().all(|axis| axis.has_dimensions() || cell.names[*axis] == step.names[*axis])
        };
        let prefill = prompts.iter().filter(|(_, size)| *size == prompt).map(|(cell, _)| *cell).find(alike)?;
        Some(format!("{}: {}, {}", step.names.on(&axes), judged(step)?, judged(prefill)?))
    };
    steps.iter().filter(|(_, size)| *size == context).filter_map(|(step, _)| line(step)).take(MOST).collect()
}

/// The input and what else distinguishes cells.
fn name(reader: &Reader<'_>, cell: &Cell) -> String {
    let axes = Axis::ALL.into_iter().filter(|axis| axis.has_dimensions() || reader.has_several(*axis));
    cell.names.on(&axes.collect::<Vec<_>>())
}

fn said(found: &CallRatio) -> String {
    let ratio = format::ratio(found.ratio.value, found.ratio.estimate(CONFIDENCE).interval);
    match &found.of {
        CallsCompared::Verify { draft: Some(draft), acceptance: Some(acceptance), .. } => {
            let share = share(acceptance);
            format!("takes {ratio} of a step with its drafts by {draft}, which pay from an acceptance of {share} on")
        }
        CallsCompared::Verify { tokens, acceptance: None, .. } => {
            format!("takes {ratio} of a step, so no draft for {tokens} tokens pays")
        }
        CallsCompared::Verify { .. } if found.ratio.high.is_some_and(|high| high <= 1.0) => {
            format!("takes {ratio} of a step, so a free draft pays at any acceptance")
        }
        CallsCompared::Verify { tokens, .. } if found.ratio.high.is_none_or(|high| high >= *tokens as f64) => {
            format!("takes {ratio} of a step, so it is open whether a free draft pays")
        }
        CallsCompared::Verify { acceptance: Some(acceptance), .. } => {
            let share = share(acceptance);
            format!("takes {ratio} of a step, so a free draft pays from an acceptance of {share} on")
        }
        CallsCompared::Loop if agrees(&found.ratio) => {
            format!("takes as long as its prompt and its steps, {ratio} of them together")
        }
        CallsCompared::Loop => format!("takes {ratio} of its prompt and its steps together"),
        CallsCompared::Capacity { from } => {
            format!(
                "takes {ratio} of the same step with a cache of {from}: it follows what is allocated, not what is in it"
            )
        }
        CallsCompared::SlowToken { token } => {
            format!("token {token} is the slowest in every run, {ratio} of the median gap")
        }
        CallsCompared::Jump { from, to } => {
            let by = |value: f64| Estimated { value: value - 1.0, ..found.ratio };
            let shifted = Estimated {
                low: found.ratio.low.map(|low| low - 1.0),
                high: found.ratio.high.map(|high| high - 1.0),
                ..by(found.ratio.value)
            };
            format!("jumps by {} between {from} and {to} positions", share(&shifted))
        }
    }
}

/// Whether all of the interval lies within what agrees.
fn agrees(ratio: &Estimated) -> bool {
    let is_near = |end: Option<f64>| end.is_some_and(|end| (end - 1.0).abs() <= AGREES);
    is_near(ratio.low) && is_near(ratio.high)
}

/// `24 % [20, 28]`
fn share(estimated: &Estimated) -> String {
    let ends = estimated.low.zip(estimated.high);
    let ends = ends.map(|(low, high)| format!(" [{}, {}]", number(low), number(high)));
    format!("{}{}", percent(estimated.value), ends.unwrap_or_default())
}

fn number(share: f64) -> String {
    percent(share).trim_end_matches([' ', '%']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(of: CallsCompared, [value, low, high]: [f64; 3]) -> CallRatio {
        let ratio = Estimated { value, low: Some(low), high: Some(high), n: 12, supported: None };
        CallRatio { cell: Default::default(), of, ratio }
    }

    #[test]
    fn calls_are_told_in_steps() {
        let acceptance = Estimated { value: 0.24, low: Some(0.2), high: Some(0.28), n: 12, supported: None };
        let verify =
            |acceptance, ratios| said(&ratio(CallsCompared::Verify { tokens: 4, acceptance, draft: None }, ratios));
        let by_small =
            CallsCompared::Verify { tokens: 4, acceptance: Some(acceptance), draft: Some("small".to_owned()) };
        assert_eq!(
            said(&ratio(by_small, [1.31, 1.25, 1.37])),
            "takes 1.31x [1.25, 1.37] of a step with its drafts by small, which pay from an acceptance of 24 % [20, 28] on"
        );
        assert_eq!(
            verify(Some(acceptance), [1.31, 1.25, 1.37]),
            "takes 1.31x [1.25, 1.37] of a step, so a free draft pays from an acceptance of 24 % [20, 28] on"
        );
        assert_eq!(verify(None, [4.6, 4.5, 4.7]), "takes 4.60x [4.50, 4.70] of a step, so no draft for 4 tokens pays");
        let near = "takes as long as its prompt and its steps, 1.00x [0.99, 1.01] of them together";
        assert_eq!(said(&ratio(CallsCompared::Loop, [1.0, 0.99, 1.01])), near);
        assert_eq!(
            said(&ratio(CallsCompared::Capacity { from: 1280 }, [2.9, 2.8, 3.0])),
            "takes 2.90x [2.80, 3.00] of the same step with a cache of 1280: it follows what is allocated, not what is in it"
        );
        let slow = ratio(CallsCompared::SlowToken { token: 33 }, [13.0, 12.0, 14.0]);
        assert_eq!(said(&slow), "token 33 is the slowest in every run, 13.0x [12.0, 14.0] of the median gap");
        let open = "takes 1.00x [0.90, 1.10] of its prompt and its steps together";
        assert_eq!(said(&ratio(CallsCompared::Loop, [1.0, 0.9, 1.1])), open);
        assert_eq!(
            said(&ratio(CallsCompared::Jump { from: 768, to: 896 }, [1.051, 1.042, 1.06])),
            "jumps by 5.1 % [4.2, 6] between 768 and 896 positions"
        );
    }
}
