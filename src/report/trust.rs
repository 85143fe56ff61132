//! Whether the measurement itself can be believed: the controls and the grade in words (method 8.2 and 8.3).
//!
//! Input: manifest and judgement. Output: fragments and sentences that the terminal and every report share. A control
//! that does not exist, is too short or stays open is said to be so; only a control that is equivalent has passed.
//! Deliberately absent: what follows for the verdicts, which `judge` decides and the answer tells.

use schemars::JsonSchema;
use serde::Serialize;
use statistics::Claim;

use super::capitalized;
use super::effort;
use super::format::{self, count, judged_ratio, percent};
use crate::experiment::{Aa, Design, QUICK_MARGIN};
use crate::judge::compare::{Control, DetectableEffect, Judged};
use crate::judge::summary::LEAST_RUNS;
use crate::plan::Plan;
use crate::record::Manifest;
use crate::vocabulary::code::{BIASED, Code, part};

/// What the controls and the grade say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trust {
    /// How the controls ended.
    pub state: ControlState,
    /// `control passed`, `no control`: a fragment for one line.
    pub control: String,
    /// `noise floor 5 % (grade B)`; `None` without a control of enough blocks.
    pub grade: Option<String>,
    /// The same in sentences.
    pub sentences: Vec<String>,
}

/// How the controls of a record ended, the worst of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlState {
    /// Identical arms are equivalent.
    Passed,
    /// No difference was found, but it may be larger than the margin.
    Inconclusive,
    /// There are fewer blocks than a verdict takes.
    TooFewBlocks,
    /// There is none.
    Absent,
    /// Identical arms differ, though perhaps by less than the margin (`W_AA_BIAS`).
    Biased,
    /// Identical arms differ by more than the margin (`E_AA_FAILED`).
    Failed,
}

impl Trust {
    /// Whether identical arms were not found to differ.
    pub fn found_nothing(&self) -> bool {
        matches!(self.state, ControlState::Passed | ControlState::Inconclusive)
    }

    /// What is to be said about a record.
    pub fn of(manifest: &Manifest, judged: &Judged) -> Self {
        let state = state(manifest, judged);
        let mut sentences = controls(manifest, judged);
        sentences.extend(detectable(&judged.detectable_effect));
        sentences.extend(effort::sentence(&manifest.plan, &judged.efforts));
        Trust { state, control: control_words(state, judged), grade: grade_words(&judged.detectable_effect), sentences }
    }
}

/// `noise floor 5 % (grade B)`.
fn grade_words(seen: &DetectableEffect) -> Option<String> {
    Some(format!("noise floor {} (grade {})", format::noise_floor(seen.here?), seen.grade?.letter()))
}

fn state_of(control: &Control) -> ControlState {
    match control.paired.verdict.claim() {
        _ if control.interval.is_none() => ControlState::TooFewBlocks,
        Claim::Difference => ControlState::Failed,
        _ if control.is_biased => ControlState::Biased,
        Claim::Sameness => ControlState::Passed,
        Claim::Nothing => ControlState::Inconclusive,
    }
}

fn state(manifest: &Manifest, judged: &Judged) -> ControlState {
    if manifest.plan.controls.is_empty() {
        return ControlState::Absent;
    }
    // A control of which no block completed is not among those that were judged.
    judged.controls.iter().map(state_of).max().unwrap_or(ControlState::TooFewBlocks)
}

fn control_words(state: ControlState, judged: &Judged) -> String {
    let noun = if judged.controls.len() > 1 { "controls" } else { "control" };
    match state {
        ControlState::Passed => format!("{noun} passed"),
        ControlState::Inconclusive => format!("{noun} inconclusive"),
        ControlState::TooFewBlocks => format!("{noun} too short"),
        ControlState::Absent => "no control".to_owned(),
        ControlState::Biased => format!("{noun} biased"),
        ControlState::Failed => format!("{noun} failed"),
    }
}

/// What the controls say, one sentence for those that are well and one for each that is not.
fn controls(manifest: &Manifest, judged: &Judged) -> Vec<String> {
    let plan = &manifest.plan;
    match (plan.controls.as_slice(), judged.controls.as_slice()) {
        ([], _) => vec![without_control(manifest)],
        (_, []) => vec!["Control: none of its blocks completed.".to_owned()],
        ([_], [control]) => vec![one(plan, control)],
        (planned, several) => {
            let mut sentences = vec![counted(planned.len(), several)];
            let is_doubtful = |control: &&Control| state_of(control) >= ControlState::Biased;
            sentences.extend(several.iter().filter(is_doubtful).map(|control| one(plan, control)));
            sentences
        }
    }
}

fn without_control(manifest: &Manifest) -> String {
    if manifest.quick {
        return format!(
            "Quick look: no control, and only differences beyond {} are claimed. Run without `--quick` to decide.",
            percent(QUICK_MARGIN)
        );
    }
    let reason = match (manifest.experiment.measure.design, manifest.experiment.compare.aa) {
        (Design::Sequential, _) => " (`design: sequential`)",
        (_, Aa::Off) => " (`compare.aa: off`)",
        _ => "",
    };
    format!("No control{reason}: the measurement itself was not checked.")
}

/// One control by its cell.
fn one(plan: &Plan, control: &Control) -> String {
    let cell = plan.cells.get(control.cell).map(|cell| plan.path(cell)).unwrap_or_default();
    let shown = judged_ratio(control.ratio, control.interval, control.paired.margin);
    let apart = percent(control.difference());
    let margin = percent(control.paired.margin);
    let code = control.code().map_or("", Code::name);
    match state_of(control) {
        ControlState::Passed => "Control: two identical arms, equivalent.".to_owned(),
        ControlState::Failed => format!(
            "Control failed ({code}): two identical arms of {cell} differed by {apart} ({shown}), beyond the margin of {margin}."
        ),
        ControlState::Biased => format!(
            "Control biased ({code}): two identical arms of {cell} differed by {apart} ({shown}), more than {} of the margin; chance alone does that in 2 to 5 of 100 records.",
            part(BIASED)
        ),
        ControlState::TooFewBlocks => format!(
            "Control: {} of two identical arms, too few for a verdict, which needs {LEAST_RUNS}.",
            count(control.paired.blocks as u64, "common block")
        ),
        ControlState::Inconclusive | ControlState::Absent => format!(
            "Control: two identical arms, inconclusive ({shown}): no difference was shown, but the interval is not within the margin of {margin} either."
        ),
    }
}

/// `Controls: 4 pairs of identical arms: 3 equivalent, 1 inconclusive.`
fn counted(planned: usize, controls: &[Control]) -> String {
    let number = |state: ControlState| controls.iter().filter(|control| state_of(control) == state).count();
    let states = [
        (ControlState::Passed, "equivalent"),
        (ControlState::Inconclusive, "inconclusive"),
        (ControlState::TooFewBlocks, "with too few blocks"),
        (ControlState::Biased, "biased"),
        (ControlState::Failed, "different"),
    ];
    let mut parts: Vec<String> = states
        .into_iter()
        .map(|(state, word)| (number(state), word))
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let missing = planned.saturating_sub(controls.len());
    parts.extend((missing > 0).then(|| format!("{missing} without a block")));
    format!("Controls: {} of identical arms: {}.", count(planned as u64, "pair"), parts.join(", "))
}

fn detectable(seen: &DetectableEffect) -> Option<String> {
    Some(format!("{}: smaller differences may be missed.", capitalized(&grade_words(seen)?)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::experiment::Grade;
    use statistics::interval::Interval;
    use statistics::paired::compare_paired;

    fn plan() -> Plan {
        let text = "backend: mock\nmodels: [m, n]\nvariants: [a, b]";
        let experiment = crate::spec::parse("test.yaml", text, std::path::Path::new("."), &[]).unwrap().experiment;
        crate::plan::expand(&experiment).unwrap()
    }

    /// A control whose arms differ by `shift` on the log scale, give or take `spread`.
    fn control(shift: f64, spread: f64, blocks: usize) -> Control {
        let logs: Vec<f64> =
            (0..blocks).map(|block| shift + spread * if block % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let paired = compare_paired(&logs, 0.02, 0.95).unwrap();
        let excludes_one = paired.interval.is_some_and(|interval| !interval.contains(0.0));
        Control {
            cell: 0,
            ratio: (-paired.theta).exp(),
            interval: paired.interval.map(|log| Interval { low: (-log.high).exp(), high: (-log.low).exp() }),
            is_biased: excludes_one && shift.abs() > 0.02_f64.ln_1p() / 2.0,
            paired,
        }
    }

    #[test]
    fn one_control_in_words() {
        let plan = plan();
        let words = |shift, spread, blocks| one(&plan, &control(shift, spread, blocks));
        assert_eq!(words(0.0, 0.001, 10), "Control: two identical arms, equivalent.");
        assert_eq!(
            words(0.03, 0.001, 10),
            "Control failed (E_AA_FAILED): two identical arms of m/default/a/cpu differed by 3 % (0.970x [0.969, 0.972]), beyond the margin of 2 %."
        );
        assert!(words(0.011, 0.001, 10).starts_with("Control biased (W_AA_BIAS)"));
        assert!(words(0.0, 0.1, 10).starts_with("Control: two identical arms, inconclusive (1.00x ["));
        assert_eq!(
            words(0.0, 0.1, 3),
            "Control: 3 common blocks of two identical arms, too few for a verdict, which needs 5."
        );
    }

    #[test]
    fn the_worst_of_several_controls_counts() {
        let controls = [control(0.0, 0.001, 10), control(0.0, 0.001, 10), control(0.03, 0.001, 10)];
        assert_eq!(controls.iter().map(state_of).max(), Some(ControlState::Failed));
        assert_eq!(
            counted(4, &controls),
            "Controls: 4 pairs of identical arms: 2 equivalent, 1 different, 1 without a block."
        );
    }

    #[test]
    fn the_grade_says_what_is_seen() {
        let seen = DetectableEffect {
            grade: Some(Grade::B),
            in_twelve_blocks: Some(0.041),
            here: Some(0.032),
            noisy_runs: 2,
            ..DetectableEffect::default()
        };
        assert_eq!(grade_words(&seen).unwrap(), "noise floor 5 % (grade B)");
        assert_eq!(detectable(&seen).unwrap(), "Noise floor 5 % (grade B): smaller differences may be missed.");
        assert_eq!(detectable(&DetectableEffect::default()), None);
    }
}
