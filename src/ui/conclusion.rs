//! What a record comes down to, on the terminal: the table, the answer, whether it can be believed, and what to doubt.

use super::{Ui, table};
use crate::report::Trust;
use crate::report::format::count;
use crate::report::view::{Conclusion, WarningView};

/// More kinds of warning than these are counted.
const MOST_WARNINGS: usize = 3;

/// The table, then what is said about it, one label each.
pub fn render(conclusion: &Conclusion, ui: &Ui) -> String {
    let mut text = format!("\n{}\n\n", table::render(&conclusion.overview, ui.width()));
    text.push_str(&ui.labelled_lines("goals", &conclusion.goals));
    text.push_str(&ui.labelled_lines("answer", &conclusion.answer));
    text.push_str(&ui.labelled_lines("within", &conclusion.within));
    text.push_str(&ui.labelled_text("trust", &trust(&conclusion.trust)));
    text.push_str(&ui.labelled_lines("partial", &conclusion.notices.partial));
    text.push_str(&ui.labelled_lines("disturbed", &conclusion.notices.cause));
    text.push_str(&ui.labelled_lines("warnings", warnings(&conclusion.notices.warnings)));
    text
}

/// What casts doubt, the gravest first.
fn warnings(warnings: &[WarningView]) -> Vec<String> {
    let sentence = |warning: &WarningView| {
        format!("{} ({}; {})", warning.meaning.trim_end_matches('.'), warning.code, warning.place)
    };
    let mut lines: Vec<String> = warnings.iter().take(MOST_WARNINGS).map(sentence).collect();
    if let more @ 1.. = warnings.len().saturating_sub(MOST_WARNINGS) {
        lines.push(format!("{} more in the report", count(more as u64, "kind")));
    }
    lines
}

/// The controls and the grade as one fragment: labels begin with small letters, and end without a period.
fn trust(trust: &Trust) -> String {
    let text = trust.sentences.join(" ");
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_lowercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}", letters.as_str().trim_end_matches('.'))
}
