//! What a record says about the next one, on the terminal.

use std::time::Duration;

use super::duration;
use crate::judge::compare::proposal::{Needed, Proposal, for_every_cell};
use crate::report::format::percent;

/// A table of the cells, then of the comparisons.
pub fn describe(proposals: &[Proposal], needed: &[Needed], relative: f64) -> String {
    let widest = proposals.iter().map(|proposal| proposal.cell.len()).chain([4]).max().unwrap_or(4);
    let mut text = format!(
        "for an interval of ± {} of each estimate (95 %)\n{:<widest$}  {:>18}  {:>12}  {:>18}  {:>10}\n",
        percent(relative),
        "cell",
        "runs x samples now",
        "± now",
        "runs x samples",
        "time"
    );
    for proposal in proposals {
        let now = format!("{} x {}", proposal.runs_now, proposal.samples_now);
        let wanted =
            proposal.runs.map_or("no number is enough".to_owned(), |runs| format!("{runs} x {}", proposal.samples));
        let time = proposal.seconds.map_or(String::new(), |seconds| duration(Duration::from_secs_f64(seconds)));
        let precision = proposal.precision_now.map_or("-".to_owned(), percent);
        let line = format!("{:<widest$}  {now:>18}  {precision:>12}  {wanted:>18}  {time:>10}", proposal.cell);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if let Some((runs, seconds)) = for_every_cell(proposals) {
        let time = duration(Duration::from_secs_f64(seconds));
        text.push_str(&format!("\n`runs: {runs}` serves every cell, in about {time}\n"));
    }
    if !needed.is_empty() {
        text.push_str(&format!(
            "\nto find a difference of the size of the margin with 80 % power\n{:<widest$}  {:>12}  {:>12}  {:>14}\n",
            "cell", "blocks now", "find now", "blocks needed"
        ));
    }
    for needed in needed {
        let sees = needed.sees_now.map_or("-".to_owned(), percent);
        let blocks = needed.blocks.map_or("too many".to_owned(), |blocks| blocks.to_string());
        text.push_str(&format!("{:<widest$}  {:>12}  {sees:>12}  {blocks:>14}\n", needed.cell, needed.blocks_now));
    }
    text
}
