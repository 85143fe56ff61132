//! Tables as text: columns that are aligned, cut and wrapped to the width of the terminal.

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use base::printable::printable_line;
use report::page::{Table, TableCell, TableColumn, Tone};

/// Columns that the last text gets on the line of the other columns; where there are fewer it goes to lines of its own.
const LEAST_WRAPPED: usize = 24;

/// Columns before a text on a line of its own.
const INDENT: usize = 4;

/// The table, without a trailing newline. Where `width` does not hold all columns, those that are not essential fall away
/// from the right; then the last column is wrapped, if it holds text.
pub fn render(table: &Table, width: usize) -> String {
    strip_str(&styled(table, width)).to_string()
}

/// As [`render`], good news green and bad news red.
pub(crate) fn styled(table: &Table, width: usize) -> String {
    let mut grid =
        Grid { columns: table.columns.clone(), rows: table.rows.iter().map(|row| row.cells.clone()).collect() };
    let titles = grid.columns.iter_mut().map(|column| &mut column.title);
    let texts = grid.rows.iter_mut().flatten().map(|cell| &mut cell.text);
    for text in titles.chain(texts) {
        *text = printable_line(text).into_owned();
    }
    grid.name_groups_once();
    grid.remove_empty();
    while grid.width() > width {
        let Some(column) = grid.columns.iter().rposition(|column| column.is_optional) else { break };
        grid.remove(column);
    }
    grid.lines(width).join("\n")
}

/// The text in lines of this width; a word that is longer is broken.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let options = textwrap::Options::new(width.max(10)).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// The text, filled up with spaces; numbers stand at the right.
fn padded(cell: &TableCell, width: usize, is_numeric: bool) -> String {
    let gap = " ".repeat(width.saturating_sub(cell.text.width()));
    let text = painted(&cell.text, cell.tone);
    if is_numeric { gap + &text } else { text + &gap }
}

fn painted(text: &str, tone: Tone) -> String {
    let style = match tone {
        Tone::Plain => Style::new(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
    };
    format!("{style}{text}{style:#}")
}

struct Grid {
    columns: Vec<TableColumn>,
    rows: Vec<Vec<TableCell>>,
}

impl Grid {
    fn name_groups_once(&mut self) {
        for index in (1..self.rows.len()).rev() {
            if self.rows[index].first() == self.rows[index - 1].first() {
                self.rows[index].iter_mut().take(1).for_each(|cell| cell.text.clear());
            }
        }
    }

    /// Removes columns without a value, unless they must stand.
    fn remove_empty(&mut self) {
        for index in (0..self.columns.len()).rev() {
            let column = &self.columns[index];
            let is_bare = column.title.is_empty() || column.is_optional;
            if is_bare && self.rows.iter().all(|row| row[index].text.is_empty()) {
                self.remove(index);
            }
        }
    }

    fn remove(&mut self, column: usize) {
        self.columns.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |(index, column): (usize, &TableColumn)| {
            let texts = self.rows.iter().map(|row| row[index].text.width());
            texts.chain([column.title.width()]).max().unwrap_or_default()
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    fn width(&self) -> usize {
        total(&self.widths())
    }

    /// Headings, if there are any, and rows.
    fn lines(&self, width: usize) -> Vec<String> {
        let widths = self.widths();
        let is_wide = total(&widths) > width;
        let heads: Vec<TableCell> = self.columns.iter().map(|column| column.title.clone().into()).collect();
        let heads = Some(&heads).filter(|heads| heads.iter().any(|head| !head.text.is_empty()));
        heads.into_iter().chain(&self.rows).flat_map(|row| self.row(row, &widths, width, is_wide)).collect()
    }

    fn row(&self, row: &[TableCell], widths: &[usize], width: usize, is_wide: bool) -> Vec<String> {
        let columns = row.iter().zip(&self.columns).zip(widths);
        let mut texts = columns.map(|((cell, column), width)| padded(cell, *width, column.is_numeric));
        match (row.split_last(), self.columns.last()) {
            (Some((last, rest)), Some(column)) if is_wide && !column.is_numeric => {
                let line: String = texts.by_ref().take(rest.len()).map(|text| text + GAP).collect();
                with_last(line, last, total(&widths[..rest.len()]), width)
            }
            _ => fitted(&texts.collect::<Vec<_>>().join(GAP), width),
        }
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + GAP.len()).sum()
}

/// What stands between two columns.
const GAP: &str = "  ";

/// The line, of so many columns, with the last text wrapped below itself or, where there is no room, on lines of its own.
fn with_last(line: String, last: &TableCell, before: usize, width: usize) -> Vec<String> {
    let is_on_line = width.saturating_sub(before) >= LEAST_WRAPPED.min(last.text.width());
    let indent = if is_on_line { before } else { INDENT };
    let mut pieces = wrap(&last.text, width.saturating_sub(indent)).into_iter().map(|piece| painted(&piece, last.tone));
    let first = if is_on_line { pieces.next().unwrap_or_default() } else { String::new() };
    let mut lines = fitted(&(line + &first), width);
    lines.extend(pieces.filter(|piece| !piece.is_empty()).map(|piece| " ".repeat(indent) + &piece));
    lines
}

/// The line, broken where it is too wide.
fn fitted(line: &str, width: usize) -> Vec<String> {
    let line = line.trim_end();
    if textwrap::core::display_width(line) > width { wrap(line, width) } else { vec![line.to_owned()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview() -> Table {
        let columns = vec![
            TableColumn::text(""),
            TableColumn::text(""),
            TableColumn::number("median, us"),
            TableColumn::number("p95, us").optional(),
            TableColumn::text("against fp32"),
        ];
        let rows = [["mlp/b1", "fp32", "100 ± 2", "110", "-"], ["mlp/b1", "int8", "50 ± 1", "60", "2.00x"]];
        Table::of(columns, rows.map(|texts| texts.map(TableCell::text).to_vec()))
    }

    #[test]
    fn headings_and_texts_hold_nothing_that_a_terminal_obeys() {
        let mut shown = overview();
        shown.columns[4].title = "against \u{202e}x\n".to_owned();
        shown.rows[0].cells[1] = "\u{1b}[31mfp32".to_owned().into();
        let text = render(&shown, 100);
        assert!(!text.contains(['\u{202e}', '\u{1b}']) && text.lines().count() == 3, "{text:?}");
    }

    #[test]
    fn groups_are_named_once_and_numbers_stand_to_the_right() {
        assert_eq!(
            render(&overview(), 80),
            "              median, us  p95, us  against fp32\nmlp/b1  fp32     100 ± 2      110  -\n        int8      50 ± 1       60  2.00x"
        );
    }

    #[test]
    fn good_news_are_green_bad_news_red_and_nothing_else_is_styled() {
        let mut overview = overview();
        for (row, tone) in overview.rows.iter_mut().zip([Tone::Bad, Tone::Good]) {
            row.cells[4].tone = tone;
        }
        let text = styled(&overview, 80);
        assert!(
            text.ends_with("110  \u{1b}[31m-\u{1b}[0m\n        int8      50 ± 1       60  \u{1b}[32m2.00x\u{1b}[0m"),
            "{text:?}"
        );
        assert_eq!(text.matches('\u{1b}').count(), 4);
    }

    #[test]
    fn escapes_of_others_are_no_styles() {
        let mut overview = overview();
        overview.rows[0].cells[0] = "\u{1b}[31mred".to_owned().into();
        assert!(!styled(&overview, 80).contains('\u{1b}'));
    }

    #[test]
    fn what_is_essential_stands_in_any_width() {
        let narrow = render(&overview(), 45);
        assert!(!narrow.contains("p95") && narrow.contains("against fp32"));
        assert!(render(&overview(), 1).contains("2.00x"));
    }

    #[test]
    fn the_last_text_is_wrapped_beside_the_others_or_below_them() {
        let mut overview = overview();
        let verdict = "2.00x [1.98, 2.02] faster, under background load (0.98 of a core)";
        overview.rows[1].cells[4] = TableCell { tone: Tone::Good, ..TableCell::text(verdict) };
        for width in [40, 60, 80, 120] {
            let text = render(&overview, width);
            assert!(text.lines().all(|line| line.width() <= width), "{width}:\n{text}");
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert!(words(&text).ends_with(&words(verdict)), "{width}:\n{text}");
        }
        let wrapped =
            "int8      50 ± 1  2.00x [1.98, 2.02] faster,\n                          under background load (0.98";
        assert!(render(&overview, 54).contains(wrapped), "{}", render(&overview, 54));
    }

    #[test]
    fn what_is_empty_takes_no_room() {
        let mut overview = overview();
        overview.rows.iter_mut().for_each(|row| row.cells[3] = TableCell::default());
        assert!(!render(&overview, 80).contains("p95"), "a heading alone is nothing");
        overview.columns.iter_mut().for_each(|column| column.title.clear());
        assert_eq!(render(&overview, 80), "mlp/b1  fp32  100 ± 2  -\n        int8   50 ± 1  2.00x");
    }
}
