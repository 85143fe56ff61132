//! A table as templates get it: headings, texts, and what rows are sorted by.

use schemars::JsonSchema;
use serde::Serialize;

/// A plain table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Table {
    /// The columns; the first one names the row.
    pub columns: Vec<TableColumn>,
    /// The rows.
    pub rows: Vec<TableRow>,
    /// What the columns are, sentences.
    pub notes: Vec<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TableColumn {
    /// Heading.
    pub title: String,
    /// What exactly is shown.
    pub meaning: Option<String>,
    /// Whether the column holds numbers: aligned to the right, sorted by value.
    pub is_numeric: bool,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TableRow {
    /// Where others can point to.
    pub anchor: Option<String>,
    /// One cell a column.
    pub cells: Vec<TableCell>,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct TableCell {
    /// What is shown.
    pub text: String,
    /// What it is sorted by, where that is not the text.
    pub sort: Option<String>,
    /// Where it leads to, in HTML.
    pub link: Option<String>,
}

impl TableCell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        TableCell { text: text.into(), ..TableCell::default() }
    }

    /// Nothing to show: sorted after every number.
    pub(crate) fn nothing() -> Self {
        TableCell { text: "-".to_owned(), sort: Some(String::new()), link: None }
    }

    pub(crate) fn number(text: impl Into<String>, value: f64) -> Self {
        TableCell { text: text.into(), sort: Some(format!("{value}")), link: None }
    }

    /// The same, leading somewhere.
    pub(crate) fn to(self, link: impl Into<String>) -> Self {
        TableCell { link: Some(link.into()), ..self }
    }
}
