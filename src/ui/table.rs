//! The table of a record as plain text: the view's overview, aligned and cut to the width.

use unicode_width::UnicodeWidthStr;

use crate::report::page::{Overview, OverviewColumn};
use crate::vocabulary::printable::printable_line;

/// The table, without a trailing newline; where `width` does not hold all columns, those that are not essential fall away
/// from the right.
pub fn render(overview: &Overview, width: usize) -> String {
    let line = |row: &Vec<String>| row.iter().map(|cell| printable_line(cell).into_owned()).collect();
    let mut grid = Grid { columns: overview.columns.clone(), rows: overview.rows.iter().map(line).collect() };
    grid.name_groups_once();
    while grid.width() > width {
        let Some(column) = grid.columns.iter().rposition(|column| !column.is_essential) else { break };
        grid.remove(column);
    }
    grid.text()
}

/// Words that a table ends its lines with, and how they are painted (SGR).
const PAINTED: [(&str, u8); 4] = [("] faster", 32), ("] slower", 31), ("outputs DIFFER", 31), ("failed:", 31)];

/// A table for a terminal with colours: good news green, bad news red.
pub fn painted(table: &str) -> String {
    let line = |line: &str| {
        let found = PAINTED.iter().filter_map(|(word, colour)| Some((line.rfind(word)?, word.len(), colour)));
        match found.max() {
            Some((at, length, colour)) => {
                let (before, rest) = line.split_at(at);
                let (word, after) = rest.split_at(length);
                let (bracket, word) = word.split_at(word.len() - word.trim_start_matches("] ").len());
                format!("{before}{bracket}\u{1b}[{colour}m{word}\u{1b}[0m{after}")
            }
            None => line.to_owned(),
        }
    };
    // The headings hold names.
    let mut lines = table.lines();
    let head = lines.next().unwrap_or_default().to_owned();
    std::iter::once(head).chain(lines.map(line)).collect::<Vec<String>>().join("\n")
}

struct Grid {
    columns: Vec<OverviewColumn>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn name_groups_once(&mut self) {
        for index in (1..self.rows.len()).rev() {
            if self.rows[index].first() == self.rows[index - 1].first() {
                self.rows[index].iter_mut().take(1).for_each(String::clear);
            }
        }
    }

    fn remove(&mut self, column: usize) {
        self.columns.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }

    fn heads(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.title.as_str()).collect()
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |(index, column): (usize, &OverviewColumn)| {
            let texts = self.rows.iter().map(|row| row[index].width());
            texts.chain([column.title.width()]).max().unwrap_or_default()
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    fn width(&self) -> usize {
        self.widths().iter().map(|width| width + 2).sum()
    }

    fn text(&self) -> String {
        let widths = self.widths();
        let line = |texts: Vec<&str>| {
            let mut line = String::new();
            for ((text, column), width) in texts.into_iter().zip(&self.columns).zip(&widths) {
                let gap = " ".repeat(width.saturating_sub(text.width()));
                line.push_str(&if column.is_numeric { format!("{gap}{text}") } else { format!("{text}{gap}") });
                line.push_str("  ");
            }
            line.trim_end().to_owned()
        };
        let rows = self.rows.iter().map(|row| row.iter().map(String::as_str).collect());
        std::iter::once(self.heads()).chain(rows).map(line).collect::<Vec<String>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overview() -> Overview {
        let column = |title: &str, is_numeric, is_essential| OverviewColumn {
            title: title.to_owned(),
            is_numeric,
            is_essential,
        };
        let row = |texts: [&str; 5]| texts.map(str::to_owned).to_vec();
        Overview {
            columns: vec![
                column("", false, true),
                column("", false, true),
                column("median, us", true, true),
                column("p95, us", true, false),
                column("against fp32", false, true),
            ],
            rows: vec![
                row(["mlp/b1", "fp32", "100 ± 2", "110", "-"]),
                row(["mlp/b1", "int8", "50 ± 1", "60", "2.00x"]),
            ],
        }
    }

    #[test]
    fn groups_are_named_once_and_numbers_stand_to_the_right() {
        assert_eq!(
            render(&overview(), 80),
            "              median, us  p95, us  against fp32\nmlp/b1  fp32     100 ± 2      110  -\n        int8      50 ± 1       60  2.00x"
        );
    }

    #[test]
    fn verdicts_are_painted_and_headings_are_not() {
        let text = painted("against ] faster\nfaster  2.00x [1.99, 2.01] faster\nfailed-net  1.00x equivalent");
        assert_eq!(
            text,
            "against ] faster\nfaster  2.00x [1.99, 2.01] \u{1b}[32mfaster\u{1b}[0m\nfailed-net  1.00x equivalent"
        );
    }

    #[test]
    fn what_is_essential_stands_in_any_width() {
        let narrow = render(&overview(), 45);
        assert!(!narrow.contains("p95") && narrow.contains("against fp32"));
        assert_eq!(render(&overview(), 1), narrow);
    }
}
