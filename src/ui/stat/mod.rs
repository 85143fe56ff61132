//! What `perfrun stat` says: the answer in a sentence, then tables, then what to keep in mind.

mod grid;
mod one;
mod two;
mod words;

use std::path::Path;

use grid::shortened;

use super::table::wrap;
use crate::stat::{Contrast, Findings};
use crate::vocabulary::printable::printable;

/// Names longer than this are cut from the left, where paths say least.
const LONGEST_NAME: usize = 30;

/// What a table of two named columns needs beside the names.
const BESIDE_NAMES: usize = 14;

/// The text, each line ended and none wider than `width`.
pub fn render(findings: &Findings, width: usize) -> String {
    let findings = &with_short_names(findings, LONGEST_NAME.min(width.saturating_sub(BESIDE_NAMES) / 2));
    let mut blocks = match &findings.comparison {
        Some(contrast) => of_two(findings, contrast, width),
        None => of_one(findings, width),
    };
    let notes: Vec<String> = findings.series.iter().flat_map(|side| one::notes(side, findings)).collect();
    let notes: String = notes.iter().map(|note| indented(note, width)).collect();
    let meaning = match &findings.comparison {
        Some(contrast) => two::meaning(contrast, findings),
        None => findings.series.iter().flat_map(one::meaning).collect(),
    };
    let meaning: String = meaning.iter().map(|sentence| paragraph(sentence, width)).collect();
    blocks.extend([notes, meaning]);
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

fn of_one(findings: &Findings, width: usize) -> Vec<String> {
    let describe = |description| {
        [paragraph(&one::headline(description, findings), width), one::table(description, findings, width)]
    };
    findings.series.iter().flat_map(describe).collect()
}

fn of_two(findings: &Findings, contrast: &Contrast, width: usize) -> Vec<String> {
    let names = [0, 1].map(|side| findings.series[side].source.as_str());
    let mut blocks = vec![
        paragraph(&words::verdict(findings, contrast, names), width),
        two::sides(findings, names, width),
        two::evidence(contrast, findings, width),
    ];
    if let Some(rules) = &contrast.usual_rules {
        let heading = paragraph("What common rules report for these numbers:", width);
        blocks.push(heading + &two::usual(rules, width));
    }
    blocks
}

/// Files by their names alone where these differ, as they are shown, in so many columns at most.
fn with_short_names(findings: &Findings, longest: usize) -> Findings {
    let mut short = findings.clone();
    let file_name = |source: &str| {
        Path::new(source).file_name().map_or_else(|| source.to_owned(), |name| name.to_string_lossy().into_owned())
    };
    let names: Vec<String> = findings.series.iter().map(|side| file_name(&side.source)).collect();
    let differ = names.iter().enumerate().all(|(index, name)| !names[..index].contains(name));
    for (side, name) in short.series.iter_mut().zip(names) {
        side.source = shortened(&printable(if differ { &name } else { &side.source }), longest);
    }
    short
}

fn paragraph(text: &str, width: usize) -> String {
    wrap(text, width).iter().map(|line| format!("{line}\n")).collect()
}

fn indented(note: &str, width: usize) -> String {
    let lines = wrap(note, width.saturating_sub(6));
    let mark = |index: usize| if index == 0 { "note  " } else { "      " };
    lines.iter().enumerate().map(|(index, line)| format!("{}{line}\n", mark(index))).collect()
}
