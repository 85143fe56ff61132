//! A table as every page shows it.

use schemars::JsonSchema;
use serde::Serialize;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Table {
    /// Its columns; the first one names the row.
    pub columns: Vec<TableColumn>,
    /// Its rows, one cell a column.
    pub rows: Vec<TableRow>,
    /// What is to be said below it, sentences.
    pub notes: Vec<String>,
}

impl Table {
    /// A table without notes.
    pub fn of(columns: Vec<TableColumn>, rows: impl IntoIterator<Item: Into<TableRow>>) -> Self {
        Table { columns, rows: rows.into_iter().map(Into::into).collect(), notes: Vec::new() }.sorted_by_text()
    }

    /// Without what cells are sorted by where their texts say the same: of many cells that is half a page.
    fn sorted_by_text(mut self) -> Self {
        for index in (0..self.columns.len()).filter(|index| self.columns[*index].is_numeric) {
            let mut cells: Vec<&mut TableCell> =
                self.rows.iter_mut().filter_map(|row| row.cells.get_mut(index)).collect();
            if sort_alike(&cells) {
                cells.iter_mut().for_each(|cell| cell.sort = None);
            }
        }
        self
    }
}

/// Whether the numbers that texts begin with are in the order of the values, in one unit.
fn sort_alike(cells: &[&mut TableCell]) -> bool {
    let value = |cell: &TableCell| cell.sort.as_ref().map_or(Some(f64::NAN), |sort| sort.parse().ok());
    let known: Option<Vec<(f64, f64, &str)>> = cells
        .iter()
        .filter(|cell| leading_number(&cell.text).is_some() || value(cell).is_some())
        .map(|cell| {
            let (shown, unit) = leading_number(&cell.text)?;
            Some((value(cell)?, shown, unit))
        })
        .collect();
    let Some(mut known) = known else { return false };
    known.sort_by(|a, b| a.0.total_cmp(&b.0));
    known.windows(2).all(|pair| pair[0].1 <= pair[1].1 && pair[0].2 == pair[1].2)
}

/// The number that a text begins with, as the page's script reads it, and what follows it up to a space.
fn leading_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start_matches(['<', '>', '=', ' ']);
    let is_of_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-' | '+' | 'e');
    let end = text.find(|letter| !is_of_number(letter)).unwrap_or(text.len());
    let unit = text[end..].trim_start().split([' ', '/']).next().unwrap_or_default();
    Some((text[..end].parse().ok()?, unit))
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TableColumn {
    /// Heading.
    pub title: String,
    /// What exactly is shown.
    pub meaning: Option<String>,
    /// Whether the column holds numbers: aligned to the right, sorted by value.
    pub is_numeric: bool,
    /// It has verdicts, which pages mark.
    pub is_verdict: bool,
    /// In the terminal it may fall away, where there is no room or no value; the last one first.
    #[serde(skip)]
    pub is_optional: bool,
}

impl TableColumn {
    pub fn text(title: impl Into<String>) -> Self {
        TableColumn { title: title.into(), meaning: None, is_numeric: false, is_verdict: false, is_optional: false }
    }

    pub fn number(title: impl Into<String>) -> Self {
        TableColumn { is_numeric: true, ..TableColumn::text(title) }
    }

    /// The same, with what exactly is shown.
    pub fn meaning(self, meaning: impl Into<String>) -> Self {
        TableColumn { meaning: Some(meaning.into()), ..self }
    }

    /// The same, which may fall away.
    pub fn optional(self) -> Self {
        TableColumn { is_optional: true, ..self }
    }
}

/// A row of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TableRow {
    /// Where links can point to.
    pub anchor: Option<String>,
    /// One cell a column.
    pub cells: Vec<TableCell>,
}

impl From<Vec<TableCell>> for TableRow {
    fn from(cells: Vec<TableCell>) -> Self {
        TableRow { anchor: None, cells }
    }
}

impl FromIterator<TableCell> for TableRow {
    fn from_iter<I: IntoIterator<Item = TableCell>>(cells: I) -> Self {
        TableRow { anchor: None, cells: cells.into_iter().collect() }
    }
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TableCell {
    /// What is shown.
    pub text: String,
    /// What it is sorted by, where that is not the text.
    pub sort: Option<String>,
    /// Where it leads to, in HTML.
    pub link: Option<String>,
    /// The mark of its verdict, in HTML: `faster`, `slower`, `same`, `open`.
    pub mark: Option<&'static str>,
    /// How it is meant, which the terminal has a colour for.
    #[serde(skip)]
    pub tone: Tone,
}

/// Whether a text is good or bad news.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither.
    #[default]
    Plain,
    /// It became better.
    Good,
    /// It became worse, failed or is wrong.
    Bad,
}

impl TableCell {
    pub fn text(text: impl Into<String>) -> Self {
        TableCell { text: text.into(), ..TableCell::default() }
    }

    /// Nothing to show: sorted after every number.
    pub fn nothing() -> Self {
        TableCell::absent("-")
    }

    /// Why there is no number: sorted after every number.
    pub fn absent(why: impl Into<String>) -> Self {
        TableCell { text: why.into(), sort: Some(String::new()), ..TableCell::default() }
    }

    pub fn number(text: impl Into<String>, value: f64) -> Self {
        TableCell { text: text.into(), sort: Some(short(value)), ..TableCell::default() }
    }

    pub fn count(number: impl Into<u64>) -> Self {
        let number = number.into();
        TableCell::number(number.to_string(), number as f64)
    }

    /// The same, with the mark of a verdict.
    pub(crate) fn marked(self, mark: Option<&'static str>) -> Self {
        TableCell { mark, ..self }
    }

    /// The same, leading somewhere.
    pub fn to(self, link: impl Into<String>) -> Self {
        TableCell { link: Some(link.into()), ..self }
    }
}

/// Six digits of a number, in the shorter notation.
fn short(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    let texts = [format!("{rounded}"), format!("{rounded:e}")];
    texts.into_iter().min_by_key(String::len).unwrap_or_default()
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        TableCell::text(text)
    }
}

impl<C: Into<TableCell>> From<Option<C>> for TableCell {
    fn from(cell: Option<C>) -> Self {
        cell.map_or_else(TableCell::nothing, C::into)
    }
}

/// A table in the making, column by column, of rows that are known.
pub(super) struct Columns<'r, R> {
    rows: &'r [R],
    columns: Vec<TableColumn>,
    cells: Vec<Vec<TableCell>>,
}

impl<'r, R> Columns<'r, R> {
    pub(super) fn of(rows: &'r [R]) -> Self {
        Columns { rows, columns: Vec::new(), cells: vec![Vec::new(); rows.len()] }
    }

    /// A column in which every row has something to show or not.
    pub(super) fn add<C: Into<TableCell>>(&mut self, column: TableColumn, cell: impl Fn(&'r R) -> C) {
        self.columns.push(column);
        for (cells, row) in self.cells.iter_mut().zip(self.rows) {
            cells.push(cell(row).into());
        }
    }

    /// The same, but for a column of nothing.
    pub(super) fn add_known(&mut self, column: TableColumn, cell: impl Fn(&'r R) -> Option<TableCell>) {
        if self.rows.iter().any(|row| cell(row).is_some()) {
            self.add(column, cell);
        }
    }

    pub(super) fn table(self, notes: Vec<String>) -> Table {
        Table { columns: self.columns, rows: self.cells.into_iter().map(TableRow::from).collect(), notes }
            .sorted_by_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a column of these texts and values is still told to be sorted by.
    fn sorts(cells: &[(&str, f64)]) -> Vec<Option<String>> {
        let rows = cells.iter().map(|(text, value)| vec![TableCell::number(*text, *value)]);
        let rows = rows.chain([vec![TableCell::nothing()]]);
        let table = Table::of(vec![TableColumn::number("x")], rows);
        table.rows.into_iter().take(cells.len()).map(|row| row.cells[0].sort.clone()).collect()
    }

    #[test]
    fn what_texts_say_in_order_is_not_said_again() {
        assert_eq!(
            sorts(&[("2.0 ms ± 0.1", 2_000_000.0), (">= 10 ms", 1e7), ("< 3 ms", 2_500_000.0)]),
            [None, None, None]
        );
        assert_eq!(sorts(&[("0.72x [0.7, 0.8]", 0.72), ("-1.2x", -1.2)]), [None, None]);
    }

    #[test]
    fn what_texts_do_not_say_is_said_in_six_digits() {
        let said = |texts: [&str; 2]| texts.map(|text| Some(text.to_owned()));
        assert_eq!(sorts(&[("2 ms", 2_000_000.0), ("10 us", 10_000.0)]), said(["2e6", "1e4"]), "two units");
        assert_eq!(sorts(&[("none", 0.0), ("2 slower", 2.0)]), said(["0", "2"]), "no number");
        assert_eq!(
            sorts(&[("< 0.0001", 1.010_512_3e-26), ("0.00001", 1e-9)]),
            said(["1.01051e-26", "1e-9"]),
            "an order"
        );
    }
}
