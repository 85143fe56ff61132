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
        Table { columns, rows: rows.into_iter().map(Into::into).collect(), notes: Vec::new() }
    }
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
        TableCell { text: text.into(), sort: Some(format!("{value}")), ..TableCell::default() }
    }

    pub fn count(number: impl Into<u64>) -> Self {
        let number = number.into();
        TableCell::number(number.to_string(), number as f64)
    }

    /// The same, leading somewhere.
    pub fn to(self, link: impl Into<String>) -> Self {
        TableCell { link: Some(link.into()), ..self }
    }
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
    }
}
