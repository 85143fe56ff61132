//! The table of a record as plain text: the view's overview, aligned and cut to the width.

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

use crate::report::view::{Overview, OverviewCell, OverviewColumn, Tone};
use crate::vocabulary::printable::printable_line;

/// The table, without a trailing newline; where `width` does not hold all columns, those that are not essential fall away
/// from the right.
pub fn render(overview: &Overview, width: usize) -> String {
    strip_str(&styled(overview, width)).to_string()
}

/// As [`render`], good news green and bad news red.
pub fn styled(overview: &Overview, width: usize) -> String {
    let mut grid = Grid { columns: overview.columns.clone(), rows: overview.rows.clone() };
    for cell in grid.rows.iter_mut().flatten() {
        cell.text = printable_line(&cell.text).into_owned();
    }
    grid.name_groups_once();
    while grid.width() > width {
        let Some(column) = grid.columns.iter().rposition(|column| !column.is_essential) else { break };
        grid.remove(column);
    }
    grid.text()
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => AnsiColor::Green.on_default(),
        Tone::Bad => AnsiColor::Red.on_default(),
    }
}

struct Grid {
    columns: Vec<OverviewColumn>,
    rows: Vec<Vec<OverviewCell>>,
}

impl Grid {
    fn name_groups_once(&mut self) {
        for index in (1..self.rows.len()).rev() {
            if self.rows[index].first() == self.rows[index - 1].first() {
                self.rows[index].iter_mut().take(1).for_each(|cell| cell.text.clear());
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
        let widest = |(index, column): (usize, &OverviewColumn)| {
            let texts = self.rows.iter().map(|row| row[index].text.width());
            texts.chain([column.title.width()]).max().unwrap_or_default()
        };
        self.columns.iter().enumerate().map(widest).collect()
    }

    fn width(&self) -> usize {
        self.widths().iter().map(|width| width + 2).sum()
    }

    fn text(&self) -> String {
        let widths = self.widths();
        let line = |cells: &[OverviewCell]| {
            let mut line = String::new();
            for ((cell, column), width) in cells.iter().zip(&self.columns).zip(&widths) {
                let (style, text) = (style(cell.tone), cell.text.trim_end());
                let gap = " ".repeat(width.saturating_sub(text.width()));
                let styled = format!("{style}{text}{style:#}");
                line.push_str(&if column.is_numeric { format!("{gap}{styled}") } else { format!("{styled}{gap}") });
                line.push_str("  ");
            }
            line.trim_end().to_owned()
        };
        let heads: Vec<OverviewCell> = self.columns.iter().map(|column| column.title.clone().into()).collect();
        std::iter::once(&heads).chain(&self.rows).map(|row| line(row)).collect::<Vec<String>>().join("\n")
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
        let row = |texts: [&str; 5]| texts.map(|text| text.to_owned().into()).to_vec();
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
    fn good_news_are_green_bad_news_red_and_nothing_else_is_styled() {
        let mut overview = overview();
        for (row, tone) in overview.rows.iter_mut().zip([Tone::Bad, Tone::Good]) {
            row[4].tone = tone;
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
        overview.rows[0][0] = "\u{1b}[31mred".to_owned().into();
        assert!(!styled(&overview, 80).contains('\u{1b}'));
    }

    #[test]
    fn what_is_essential_stands_in_any_width() {
        let narrow = render(&overview(), 45);
        assert!(!narrow.contains("p95") && narrow.contains("against fp32"));
        assert_eq!(render(&overview(), 1), narrow);
    }
}
