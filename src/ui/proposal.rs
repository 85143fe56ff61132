//! What a record says about the next one, on the terminal.

use std::time::Duration;

use super::{duration, table};
use experiment::Runs;
use judge::compare::proposal::{Needed, Proposal, for_every_cell, for_every_comparison};
use report::format::{count, percent};
use report::page::{Table, TableCell, TableColumn, TableRow};

/// A table of the cells, one of the comparisons, and what to write into the specification.
pub fn describe(proposals: &[Proposal], needed: &[Needed], relative: f64, width: usize) -> String {
    let mut text = format!("for ± {} of each estimate (95 %)\n{}\n", percent(relative), cells(proposals, width));
    if !needed.is_empty() {
        text.push_str("\nto find a difference of twice the margin (80 % power)\n");
        text.push_str(&comparisons(needed, width));
        text.push('\n');
    }
    text.push_str("\nin the specification\n");
    if !needed.is_empty() {
        let (key, words) = runs_for_comparisons(needed);
        text.push_str(&format!("  {key:<18}  {words}\n"));
    }
    let (key, words) = runs_for_cells(proposals, relative);
    text.push_str(&format!("  {key:<18}  {words}\n"));
    text
}

fn cells(proposals: &[Proposal], width: usize) -> String {
    let rows = proposals.iter().map(|proposal| {
        vec![
            proposal.cell.clone(),
            format!("{} x {}", proposal.runs_now, proposal.samples_now),
            proposal.precision_now.map_or("-".to_owned(), |precision| format!("± {}", percent(precision))),
            proposal.runs.map_or(NONE.to_owned(), |runs| format!("{runs} x {}", proposal.samples)),
            proposal.seconds.map_or(String::new(), time),
        ]
    });
    grid(["cell", "runs x samples", "achieved", "needed", "time"], rows.collect(), width)
}

fn comparisons(needed: &[Needed], width: usize) -> String {
    let rows = needed.iter().map(|needed| {
        vec![
            needed.cell.clone(),
            needed.blocks_now.to_string(),
            needed.detectable_now.map_or("-".to_owned(), percent),
            needed.blocks.map_or(NONE.to_owned(), |blocks| blocks.to_string()),
        ]
    });
    grid(["cell", "blocks", "detect", "needed"], rows.collect(), width)
}

/// Beyond what is reasonable.
const NONE: &str = "too many";

fn grid<const N: usize>(titles: [&str; N], rows: Vec<Vec<String>>, width: usize) -> String {
    let column = |(index, title): (usize, &str)| TableColumn {
        is_numeric: index > 0,
        is_optional: title == "time",
        ..TableColumn::text(title)
    };
    let columns = titles.into_iter().enumerate().map(column).collect();
    let rows = rows.into_iter().map(|row| row.into_iter().map(TableCell::from).collect::<TableRow>());
    table::render(&Table::of(columns, rows), width)
}

fn runs_for_comparisons(needed: &[Needed]) -> (String, String) {
    match for_every_comparison(needed) {
        Some(runs) if runs == Runs::AUTO => {
            ("runs: auto".to_owned(), format!("{runs} are enough for every comparison"))
        }
        Some(runs) => (format!("runs: {{ max: {} }}", runs.max), "is enough for every comparison".to_owned()),
        None => {
            let open = needed.iter().filter(|needed| needed.blocks.is_none()).count() as u64;
            ("-".to_owned(), format!("no practical number is enough for {}", count(open, "comparison")))
        }
    }
}

fn runs_for_cells(proposals: &[Proposal], relative: f64) -> (String, String) {
    match for_every_cell(proposals) {
        Some((runs, seconds)) => {
            let words = format!("± {} of every estimate, in about {}", percent(relative), time(seconds));
            (format!("runs: {runs}"), words)
        }
        None => {
            let open = proposals.iter().filter(|proposal| proposal.runs.is_none()).count() as u64;
            ("-".to_owned(), format!("no practical number gives ± {} for {}", percent(relative), count(open, "cell")))
        }
    }
}

fn time(seconds: f64) -> String {
    duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposal(cell: &str, runs: Option<usize>) -> Proposal {
        Proposal {
            cell: cell.to_owned(),
            runs_now: 12,
            samples_now: 1234,
            precision_now: Some(0.0123),
            samples: 400,
            runs,
            seconds: runs.map(|runs| runs as f64 * 1.5),
        }
    }

    fn needed(cell: &str, blocks: Option<usize>) -> Needed {
        Needed { cell: cell.to_owned(), blocks_now: 12, detectable_now: Some(0.0512), blocks }
    }

    #[test]
    fn what_is_enough_is_said_as_the_specification_writes_it() {
        let proposals = [proposal("mobilenet-v2/b16/fp32/cpu", Some(17)), proposal("mlp/b1/int8/cpu", Some(5))];
        let comparisons = [needed("mlp/b1/int8/cpu", Some(19))];
        let expected = [
            "for ± 1 % of each estimate (95 %)",
            "cell                       runs x samples  achieved    needed   time",
            "mobilenet-v2/b16/fp32/cpu       12 x 1234   ± 1.2 %  17 x 400   25 s",
            "mlp/b1/int8/cpu                 12 x 1234   ± 1.2 %   5 x 400  7.5 s",
            "",
            "to find a difference of twice the margin (80 % power)",
            "cell             blocks  detect  needed",
            "mlp/b1/int8/cpu      12   5.1 %      19",
            "",
            "in the specification",
            "  runs: auto          8 to 32 are enough for every comparison",
            "  runs: 17            ± 1 % of every estimate, in about 51 s",
        ];
        assert_eq!(describe(&proposals, &comparisons, 0.01, 80).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_no_number_reaches_is_said() {
        let proposals = [proposal("mlp/b1/fp32/cpu", None), proposal("mlp/b1/int8/cpu", Some(5))];
        let comparisons = [needed("mlp/b1/int8/cpu", None), needed("mlp/b1/fp16/cpu", Some(50))];
        let expected = [
            "for ± 1 % of each estimate (95 %)",
            "cell             runs x samples  achieved    needed   time",
            "mlp/b1/fp32/cpu       12 x 1234   ± 1.2 %  too many",
            "mlp/b1/int8/cpu       12 x 1234   ± 1.2 %   5 x 400  7.5 s",
            "",
            "to find a difference of twice the margin (80 % power)",
            "cell             blocks  detect    needed",
            "mlp/b1/int8/cpu      12   5.1 %  too many",
            "mlp/b1/fp16/cpu      12   5.1 %        50",
            "",
            "in the specification",
            "  -                   no practical number is enough for 1 comparison",
            "  -                   no practical number gives ± 1 % for 1 cell",
        ];
        assert_eq!(describe(&proposals, &comparisons, 0.01, 80).lines().collect::<Vec<_>>(), expected);
        let last = describe(&[], &comparisons[1..], 0.01, 80);
        assert!(last.contains("runs: { max: 50 }   is enough for every comparison"), "{last}");
    }
}
