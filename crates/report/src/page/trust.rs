//! Whether the measurement itself can be believed: the controls and the grade (method 8.2 and 8.3). A control that does
//! not exist, is too short or stays open is said to be so; only one that is equivalent has passed.

use schemars::JsonSchema;
use serde::Serialize;

use super::Reader;
use crate::format::{judged_ratio, noise_floor, percent};
use crate::mark::claimed;
use base::code::{BIASED, Code, part};
use base::wording::{count, list};
use experiment::{Design, Grade, QUICK_MARGIN};
use judge::results::{Control, ControlOutcome, Effort, Results, Stopped};
use statistics::planning::MINIMUM_RUNS;

/// More groups than these are counted instead of named.
const MOST_NAMED: usize = 3;

/// What the controls and the grade say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trust {
    /// How the controls ended, the worst of them; `None` without one.
    pub state: Option<ControlOutcome>,
    /// `control passed`, `no control`: a fragment for one line.
    pub control: String,
    /// `noise floor 5 % (grade B)`; `None` without a control of enough blocks.
    pub grade: Option<String>,
    /// The same in sentences.
    pub sentences: Vec<String>,
}

/// How the controls of a record ended, the worst of them; `None` without one.
fn state(results: &Results) -> Option<ControlOutcome> {
    match results.rules.controls {
        0 => None,
        // A control of which no block completed is not among those that were judged.
        _ => Some(results.controls.iter().map(|it| it.outcome).max().unwrap_or(ControlOutcome::TooFewBlocks)),
    }
}

fn words(outcome: ControlOutcome) -> &'static str {
    match outcome {
        ControlOutcome::TooFewBlocks => "too short",
        other => other.name(),
    }
}

impl Trust {
    /// Whether no A/A comparison found a difference.
    pub fn found_nothing(&self) -> bool {
        matches!(self.state, Some(ControlOutcome::Passed | ControlOutcome::Undecided))
    }

    pub(super) fn of(reader: &Reader<'_>) -> Self {
        let results = reader.results;
        let state = state(results);
        let noun = if results.controls.len() > 1 { "controls" } else { "control" };
        let control = state.map_or_else(|| "no control".to_owned(), |state| format!("{noun} {}", words(state)));
        let grade = grade(results);
        let mut sentences = controls(reader);
        sentences.extend(grade.as_ref().map(|grade| {
            let floor = grade.replacen("noise", "Noise", 1);
            format!("{floor}: smaller differences may be missed.")
        }));
        sentences.extend(effort(reader));
        Trust { state, control, grade, sentences }
    }
}

/// `noise floor 5 % (grade B)`.
fn grade(results: &Results) -> Option<String> {
    let (here, grade) = (results.detectable_effect.here?, results.detectable_effect.grade?);
    // The floor is of the blocks that were measured, the grade of so many on every machine.
    let why = if Grade::of(here) == grade { String::new() } else { format!(", which is for {} blocks", Grade::BLOCKS) };
    Some(format!("noise floor {} (grade {}{why})", noise_floor(here), grade.letter()))
}

/// What the controls say, one sentence for those that are well and one for each that is not.
fn controls(reader: &Reader<'_>) -> Vec<String> {
    let results = reader.results;
    match (results.rules.controls, results.controls.as_slice()) {
        (0, _) => vec![without_control(results)],
        (_, []) => vec!["Control: none of its blocks completed.".to_owned()],
        (1, [control]) => vec![control_sentence(reader, control)],
        (planned, several) => {
            let mut sentences = vec![counted(planned as usize, several)];
            let doubtful = several.iter().filter(|control| control.outcome >= ControlOutcome::Biased);
            sentences.extend(doubtful.map(|control| control_sentence(reader, control)));
            sentences
        }
    }
}

/// Whether it is a quick look at models, which is quick without being asked and has no specification.
pub(super) fn is_look_at_models(results: &Results) -> bool {
    results.measured.quick && !results.measured.restrictions.iter().any(|flag| flag == "--quick")
}

/// How to measure in full what a quick look is a first impression of.
pub(super) fn in_full(results: &Results) -> &'static str {
    match is_look_at_models(results) {
        true => "Run `perfrun init MODEL`, then the specification that it writes,",
        false => "Run without `--quick`",
    }
}

fn without_control(results: &Results) -> String {
    if results.measured.quick {
        return format!(
            "Quick look: no control, and only differences beyond {} are claimed. {} to decide.",
            percent(QUICK_MARGIN),
            in_full(results)
        );
    }
    let reason = match (results.method.design, results.method.without_control) {
        (Design::Sequential, _) => " (`design: sequential`)",
        (_, true) => " (`compare.aa: off`)",
        _ => "",
    };
    format!("No control{reason}: the measurement itself was not checked.")
}

/// One control by its cell.
fn control_sentence(reader: &Reader<'_>, control: &Control) -> String {
    let cell = reader.path(control.cell);
    let shown = judged_ratio(control.ratio, control.interval(), control.margin);
    let (apart, margin) = (percent(control.difference()), percent(control.margin));
    let code = control.code().map_or("", Code::name);
    claimed(match control.outcome {
        ControlOutcome::Passed => "Control (A/A comparison): equivalent.".to_owned(),
        ControlOutcome::Failed => format!(
            "Control failed ({code}): the two sides of the A/A comparison of {cell} differed by {apart} ({shown}), beyond the margin of {margin}."
        ),
        ControlOutcome::Biased => format!(
            "Control biased ({code}): the two sides of the A/A comparison of {cell} differed by {apart} ({shown}), more than {} of the margin; chance alone does that in 2 to 5 of 100 records.",
            part(BIASED)
        ),
        ControlOutcome::TooFewBlocks => format!(
            "Control (A/A comparison): {}, too few for a verdict, which needs {MINIMUM_RUNS}.",
            count(control.blocks, "common block")
        ),
        ControlOutcome::Undecided => format!(
            "Control (A/A comparison): undecided ({shown}); no difference was shown, but the interval is not within the margin of {margin} either."
        ),
    })
}

/// `Controls: 4 A/A comparisons: 3 equivalent, 1 undecided.`
fn counted(planned: usize, controls: &[Control]) -> String {
    let number = |state: ControlOutcome| controls.iter().filter(|control| control.outcome == state).count();
    let states = [
        (ControlOutcome::Passed, "equivalent"),
        (ControlOutcome::Undecided, "undecided"),
        (ControlOutcome::TooFewBlocks, "with too few blocks"),
        (ControlOutcome::Biased, "biased"),
        (ControlOutcome::Failed, "different"),
    ];
    let counts = states.into_iter().map(|(state, word)| (number(state), word)).filter(|(number, _)| *number > 0);
    let mut parts: Vec<String> = counts.map(|(number, word)| format!("{number} {word}")).collect();
    let missing = planned.saturating_sub(controls.len());
    parts.extend((missing > 0).then(|| format!("{missing} without a block")));
    format!("Controls: {}: {}.", count(planned as u64, "A/A comparison"), claimed(parts.join(", ")))
}

/// How many blocks the groups needed, one sentence; `None` where runs do not go by need (method 4.6).
fn effort(reader: &Reader<'_>) -> Option<String> {
    let efforts = &reader.results.efforts;
    let settled = [(Stopped::Decided, "decided"), (Stopped::GivenUp, "given up")];
    let is_open = |effort: &&Effort| settled.iter().all(|(stopped, _)| effort.stopped != *stopped);
    let open: Vec<&Effort> = efforts.iter().filter(is_open).collect();
    let mut parts = Vec::new();
    for (stopped, word) in settled {
        let groups: Vec<&Effort> = efforts.iter().filter(|effort| effort.stopped == stopped).collect();
        let of_groups = match efforts.len() {
            1 => String::new(),
            all => format!("{} of {} ", groups.len(), count(all as u64, "group")),
        };
        parts.extend((!groups.is_empty()).then(|| format!("{of_groups}{word} after {}", blocks(&groups))));
    }
    if let Some(first) = open.first() {
        let why = match first.stopped {
            Stopped::MostRuns => ", the most that `runs` allows",
            Stopped::Budget => ", when the budget was spent",
            _ => "",
        };
        let name = |effort: &&Effort| {
            let cells: Vec<_> = effort.cells.iter().filter_map(|id| reader.cell(*id)).collect();
            reader.shared_names(cells.iter().copied())
        };
        let names: Vec<String> = open.iter().map(name).collect();
        let names = match open.len() {
            _ if efforts.len() == 1 => String::new(),
            named if named <= MOST_NAMED => format!("{} ", list(&names)),
            several => format!("{several} of {} ", count(efforts.len() as u64, "group")),
        };
        parts.push(format!("{names}open after {}{why}", blocks(&open)));
    }
    (!parts.is_empty()).then(|| format!("Runs by need: {}.", parts.join("; ")))
}

/// `8 blocks`, `8 to 12 blocks`.
fn blocks(efforts: &[&Effort]) -> String {
    let least = efforts.iter().map(|effort| effort.blocks).min().unwrap_or(0);
    let most = efforts.iter().map(|effort| effort.blocks).max().unwrap_or(0);
    let most_words = count(most, "block");
    if least == most { most_words } else { format!("{least} to {most_words}") }
}
