//! One sentence of the answer, and when sentences become a table.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::report::capitalized;
use crate::report::view::table::{Table, TableCell, TableColumn, TableRow};

/// One sentence of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sentence {
    /// What it comes down to: `resnet50: int8.`
    pub lead: String,
    /// The evidence.
    pub text: String,
    /// As much of it as three lines of a terminal hold, what matters most first; at least its first clause.
    pub in_short: String,
    #[serde(skip)]
    row: [String; 3],
}

/// Characters of a sentence: three lines of a terminal of 80 columns, behind their label.
const MOST_CHARACTERS: usize = 3 * 69;

/// More sentences than these become a table.
const MOST_SENTENCES: usize = 4;

impl Sentence {
    /// A sentence that is no row of a table.
    pub(super) fn new(lead: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        Sentence { lead: lead.into(), in_short: text.clone(), text, row: Default::default() }
    }

    /// What one chooses for a subject, which may be empty, with clauses that begin with what matters most. The first
    /// `least` of them stand in the short form too, however long they are.
    pub(super) fn about(subject: &str, choice: &str, clauses: &[String], least: usize) -> Self {
        let lead = match subject {
            "" => format!("{}.", capitalized(choice)),
            subject => format!("{subject}: {choice}."),
        };
        let mut room = MOST_CHARACTERS.saturating_sub(lead.chars().count());
        let fits = |clause: &&String| {
            let length = clause.chars().count() + "; ".len();
            let fits = length <= room;
            room = room.saturating_sub(length);
            fits
        };
        let shown = clauses.iter().take_while(fits).count().max(least).max(1).min(clauses.len());
        let [in_short, text] = [&clauses[..shown], clauses].map(|clauses| format!("{}.", clauses.join("; ")));
        let why = clauses[..least.max(1).min(clauses.len())].join("; ");
        let row = [subject.to_owned(), choice.to_owned(), why];
        Sentence { lead, text, in_short, row }
    }
}

/// The sentences as a table, where they are more than one reads as sentences.
pub(in crate::report) fn table(sentences: &[Sentence]) -> Option<Table> {
    let column = |title: &str| TableColumn { title: title.to_owned(), meaning: None, is_numeric: false };
    let row = |row: &[String; 3]| TableRow { anchor: None, cells: row.iter().map(TableCell::text).collect() };
    let rows = rows(sentences)?.into_iter().map(row).collect();
    Some(Table { columns: ["", "answer", "why"].map(column).to_vec(), rows, notes: Vec::new() })
}

/// Subject, choice and first clauses of each sentence, where they are more than one reads as sentences.
pub(in crate::report) fn rows(sentences: &[Sentence]) -> Option<Vec<&[String; 3]>> {
    let is_long = sentences.len() > MOST_SENTENCES && sentences.iter().all(|sentence| !sentence.row[0].is_empty());
    is_long.then(|| sentences.iter().map(|sentence| &sentence.row).collect())
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.lead, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_three_lines() {
        let clauses: Vec<String> = (0..9).map(|number| format!("clause {number} of thirty characters")).collect();
        let sentence = Sentence::about("m", "int8", &clauses, 0);
        assert!(sentence.in_short.starts_with("clause 0 of thirty characters; clause 1"), "{}", sentence.in_short);
        assert!(sentence.in_short.ends_with("; clause 5 of thirty characters."), "{}", sentence.in_short);
        assert!(sentence.text.ends_with("; clause 8 of thirty characters."), "{}", sentence.text);
        let all = Sentence::about("m", "int8", &clauses, 8);
        assert!(all.in_short.ends_with("; clause 7 of thirty characters."), "{}", all.in_short);
        let long = Sentence::about("m", "int8", &["x".repeat(400)], 1);
        assert_eq!(long.text.len(), 401);
    }

    #[test]
    fn five_subjects_are_a_table() {
        let sentences: Vec<Sentence> =
            (0..5).map(|number| Sentence::about(&format!("m{number}"), "int8", &["2x faster".to_owned()], 1)).collect();
        assert!(rows(&sentences[..4]).is_none());
        let rows = rows(&sentences).expect("a table");
        assert_eq!(rows[4], &["m4".to_owned(), "int8".to_owned(), "2x faster".to_owned()]);
    }
}
