//! What a record comes down to: what the terminal shows, and what every page begins with.

use super::notices::notices;
use super::{Notices, Overview};
use crate::report::answer::{Sentence, answer, goals, rows, within};
use crate::report::{Input, Trust};

/// What a record comes down to.
#[derive(Clone, Debug, PartialEq)]
pub struct Conclusion {
    /// Every cell in one line.
    pub overview: Overview,
    /// Whether each goal of the specification is met.
    pub goals: Vec<Sentence>,
    /// The answer, made from verdicts alone.
    pub answer: Vec<Sentence>,
    /// How the bounds of the specification's question are kept.
    pub within: Vec<Sentence>,
    /// Whether the measurement itself can be believed.
    pub trust: Trust,
    /// What a reader has to know before the numbers.
    pub notices: Notices,
}

impl Conclusion {
    /// Subject, choice and reason, where the answer is more than one reads as sentences.
    pub fn answer_rows(&self) -> Option<Vec<&[String; 3]>> {
        rows(&self.answer)
    }

    /// That of a record, whose summary is without values that must not be used.
    pub fn new(input: &Input<'_>) -> Self {
        let plan = &input.manifest.plan;
        let judged = input.judged;
        Conclusion {
            overview: Overview::new(input.manifest, input.summary, &judged.comparisons),
            goals: goals(plan, judged),
            answer: answer(plan, input.summary, judged),
            within: judged.choice.iter().flat_map(|choice| within(plan, choice)).collect(),
            trust: Trust::of(input.manifest, judged),
            notices: notices(input),
        }
    }
}
