//! What a calibration found, on the terminal.

use super::Ui;
use crate::judge::compare::Calibration;
use crate::report::calibration::{RULES, counted, heading, sentences};

/// The sentences, then what every rule said.
pub fn describe(calibration: &Calibration, ui: &Ui) -> String {
    let mut text = String::from("\n");
    text.push_str(&ui.labelled_lines("found", sentences(calibration)));
    let widest = RULES.iter().map(|(rule, _)| rule.len()).max().unwrap_or(0);
    text.push_str(&format!("\n{:<widest$}", "called different, from the same samples"));
    for effect in &calibration.effects {
        text.push_str(&format!("  {:>12}", heading(effect)));
    }
    for (rule, of) in RULES {
        text.push_str(&format!("\n{rule:<widest$}"));
        for effect in &calibration.effects {
            text.push_str(&format!("  {:>12}", counted(of(effect))));
        }
    }
    text.push('\n');
    text
}
