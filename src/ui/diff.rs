//! What changed, for the terminal: the heading, what differs, the rows, the notices.

use crate::ui::{Ui, table};
use base::metric::LATENCY;
use report::diff::{Page, ReproductionPage, Uncompared};
use report::page::{Table, TableColumn, TableRow};

/// The pages one after the other, and what could not be compared.
pub(crate) fn render(pages: &[Page], Uncompared { nothing, alone, .. }: &Uncompared, is_all: bool, ui: &Ui) -> String {
    let nothing = nothing.iter().map(|it| ui.labelled_text("result", &format!("{}: {}", it.lead, it.text)));
    let mut parts: Vec<String> = nothing.chain(pages.iter().map(|page| page_text(page, is_all, ui))).collect();
    parts.extend((!alone.is_empty()).then(|| alone.join("\n") + "\n"));
    parts.join("\n")
}

/// Folded rows are counted where there are more of them.
const MOST_FOLDED: usize = 12;

fn page_text(page: &Page, is_all: bool, ui: &Ui) -> String {
    let [from, to] = &page.sides;
    let mut text = format!("{}: {from} -> {to}\n", page.experiment);
    text += &ui.labelled_text("result", &page.headline);
    text += &ui.labelled_lines("changed", &page.changed);
    text += &ui.labelled_lines("profile", &page.profile);
    text += &ui.labelled_lines("note", &page.notices);
    for failed in &page.failures {
        text += &ui.labelled_text("failed", &failed.text);
        text += &ui.labelled_lines("", failed.log.lines());
    }
    text += &page.sessions.as_ref().map_or(String::new(), |text| ui.labelled_text("sessions", text));
    let is_short = |rows: &&Table| is_all || rows.rows.len() <= MOST_FOLDED;
    let rest = page.rest.as_ref().map(|rest| &rest.table).filter(is_short);
    let unchanged = page.unchanged.as_ref().map(|rest| &rest.table).filter(|_| is_all);
    let mut rows = page.first.clone();
    rows.rows.extend(rest.iter().flat_map(|rest| rest.rows.iter().cloned()));
    for rows in [Some(&rows), page.claims.as_ref(), unchanged].into_iter().flatten() {
        if !rows.rows.is_empty() {
            text += &format!("\n{}\n", table::render(&overview(rows), ui.width()));
        }
    }
    let hidden =
        page.rest.iter().filter(|_| rest.is_none()).chain(page.unchanged.iter().filter(|_| unchanged.is_none()));
    let hidden: Vec<&str> = hidden.map(|folded| folded.title.as_str()).filter(|title| !title.is_empty()).collect();
    if !hidden.is_empty() {
        text += &format!("\n{} (--all shows them)\n", hidden.join(", "));
    }
    text
}

/// Which claims hold here.
pub(crate) fn reproduction(page: &ReproductionPage, ui: &Ui) -> String {
    let mut text = format!("{}: {}\n", page.experiment, page.headline);
    for (label, side) in ["there", "here"].into_iter().zip(&page.sides) {
        text += &ui.labelled_text(label, side);
    }
    text += &ui.labelled_lines("differs", &page.differs);
    if !page.claims.rows.is_empty() {
        text += &format!("\n{}\n", table::render(&overview(&page.claims), ui.width()));
    }
    text
}

/// The same for the terminal: every column that says something stands, the values first to fall away.
fn overview(table: &Table) -> Table {
    let last = table.columns.len().saturating_sub(1);
    let texts =
        |index: usize| table.rows.iter().map(move |row| row.cells.get(index).map_or("", |cell| cell.text.as_str()));
    let is_latency_alone =
        |index: usize| table.columns[index].title == "metric" && texts(index).all(|text| text == LATENCY.title);
    let kept: Vec<usize> = (0..table.columns.len()).filter(|index| !is_latency_alone(*index)).collect();
    let column = |index: &usize| {
        let is_optional = *index >= 2 && *index + 2 <= last;
        TableColumn { is_optional, ..table.columns[*index].clone() }
    };
    let rows = table.rows.iter().map(|row| kept.iter().map(|index| row.cells[*index].clone()).collect::<TableRow>());
    Table::of(kept.iter().map(column).collect(), rows)
}
