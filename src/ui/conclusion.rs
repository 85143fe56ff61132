//! What a record comes down to, on the terminal: the table, what failed, the answer, whether it can be believed, and at most
//! one line of what to doubt.

use super::{LABEL_WIDTH, Ui, table};
use base::printable::printable;
use report::page::{
    Answer, AnswerRow, Conclusion, FailureView, Notices, Table, TableCell, TableColumn, Trust, WarningView,
};

/// The table, then what is said about it, one label each: printable, with styles of ours.
pub(crate) fn render(conclusion: &Conclusion, ui: &Ui) -> String {
    let notices = &conclusion.notices;
    let table = table::styled(&conclusion.overview, ui.width());
    let mut text = String::new();
    text.push_str(&ui.labelled_lines("failed", failures(notices)));
    text.push_str(&ui.labelled_lines("goals", &conclusion.goals));
    let answer = &conclusion.answer;
    text.push_str(&ui.labelled_lines("answer", &answer.note));
    text.push_str(&answers(answer, ui));
    text.push_str(&ui.labelled_lines("within", &conclusion.within));
    text.push_str(&ui.labelled_lines("load", &conclusion.load));
    text.push_str(&ui.labelled_lines("calls", &conclusion.calls));
    text.push_str(&ui.labelled_lines("machines", &conclusion.across));
    text.push_str(&ui.labelled_lines("profile", &conclusion.profile));
    text.push_str(&ui.labelled_lines("outputs", &notices.remarks[..notices.differing]));
    text.push_str(&ui.labelled_text("trust", &trust(&conclusion.trust)));
    text.push_str(&ui.labelled_lines("partial", &notices.partial));
    text.push_str(&ui.labelled_lines("warnings", doubts(notices)));
    format!("\n{table}\n\n{}", printable(&text))
}

/// Many answers are a table, one line a subject with its reason, where the terminal is wide enough; else sentences.
fn answers(answer: &Answer, ui: &Ui) -> String {
    let rows = &answer.rows;
    let longest = |part: fn(&AnswerRow) -> &String| rows.iter().map(|row| part(row).chars().count()).max().unwrap_or(0);
    let width =
        LABEL_WIDTH + longest(|row| &row.subject) + 2 + longest(|row| &row.choice) + 2 + longest(|row| &row.because);
    if !answer.is_long || width > ui.width() {
        let line = |row: &AnswerRow| format!("{}: {}. {}", row.subject, row.choice, row.because);
        return ui.labelled_lines("answer", rows.iter().map(line));
    }
    let columns = vec![TableColumn::text(""); 4];
    let row = |(index, row): (usize, &AnswerRow)| {
        let label = format!("{:1$}", if index == 0 { "answer" } else { "" }, LABEL_WIDTH - 2);
        [&label, &row.subject, &row.choice, &row.because].map(|text| TableCell::text(text.clone())).to_vec()
    };
    table::render(&Table::of(columns, rows.iter().enumerate().map(row)), ui.width()) + "\n"
}

/// Every failed cell with its reason.
fn failures(notices: &Notices) -> Vec<String> {
    let line = |failure: &FailureView| {
        let FailureView { cells, kind, runs, in_short, remedy, .. } = failure;
        format!("{cells}: {kind}, {runs}: {in_short}; {remedy}")
    };
    let mut lines: Vec<String> = notices.failures.iter().map(line).collect();
    if !lines.is_empty() {
        lines.extend(notices.not_run.clone());
    }
    lines
}

/// What disturbed the runs, and the gravest of the warnings by its code; the report has all of them.
fn doubts(notices: &Notices) -> Option<String> {
    let (first, more) = match (&notices.cause, notices.warnings.as_slice()) {
        (Some(cause), rest) => (cause.clone(), rest.len()),
        (None, [first, rest @ ..]) => (in_short(first), rest.len()),
        (None, []) => return None,
    };
    Some(if more > 0 { format!("{first}; {more} more in the report") } else { first })
}

/// `W_BIMODAL_RUNS in 11 of 12 cells (perfrun explain W_BIMODAL_RUNS)`.
fn in_short(warning: &WarningView) -> String {
    let field = warning.place.split(':').next().unwrap_or_default();
    format!("{} in {field} (perfrun explain {})", warning.code, warning.code)
}

/// The control and the noise floor; of a control that found something, or of none, all that is known.
fn trust(trust: &Trust) -> String {
    if let (true, Some(grade)) = (trust.found_nothing(), &trust.grade) {
        return format!("{}, {grade}", trust.control);
    }
    // Labels begin with small letters, and end without a period.
    let text = trust.sentences.join(" ");
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_lowercase().collect::<String>()).unwrap_or_default();
    format!("{first}{}", letters.as_str().trim_end_matches('.'))
}
