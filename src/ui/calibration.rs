//! What a calibration found, on the terminal.

use super::{Ui, table};
use crate::judge::compare::Calibration;
use crate::report::calibration::{RULES, counted, heading, sentences};
use crate::report::page::{Overview, OverviewColumn};

/// The sentences, then what every rule said.
pub fn describe(calibration: &Calibration, ui: &Ui) -> String {
    let mut text = String::from("\n");
    text.push_str(&ui.labelled_lines("found", sentences(calibration)));
    let mut columns = vec![OverviewColumn::text("called different, from the same samples")];
    columns.extend(calibration.effects.iter().map(|effect| OverviewColumn::number(heading(effect))));
    let rows = RULES.map(|(rule, of)| {
        let counts = calibration.effects.iter().map(|effect| counted(of(effect)));
        [rule.to_owned()].into_iter().chain(counts).map(Into::into).collect()
    });
    text + &format!("\n{}\n", table::render(&Overview { columns, rows: rows.to_vec() }, ui.width()))
}
