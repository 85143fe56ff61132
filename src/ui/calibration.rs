//! A calibration as sentences and a table; the terminal and `calibration.md` show the same ones.

use super::{Ui, table};
use base::code::spelt;
use experiment::{Design, Grade};
use judge::compare::Calibration;
use judge::compare::calibration::{Count, Effect};
use report::format::{count, percent};
use report::page::{Table, TableCell, TableColumn, TableRow};

/// What of an effect a rule counted.
type Counted = fn(&Effect) -> Count;

/// The rules in the order of the table, with what each of them is.
const RULES: [(&str, Counted); 6] = [
    ("perfrun: paired runs, interval beyond the margin", |effect| effect.perfrun),
    ("perfrun: the interval excludes 1 (a hint, not a verdict)", |effect| effect.detected),
    ("Mann-Whitney on all iterations, p < 0.05", |effect| effect.pooled_mann_whitney),
    ("95 % intervals of all iterations do not overlap", |effect| effect.pooled_overlap),
    ("bootstrap of the mean of all iterations beyond 1 %", |effect| effect.pooled_change),
    ("Mann-Whitney on medians of runs, p < 0.05", |effect| effect.run_median_mann_whitney),
];

/// `identical` or `5 % slower`.
fn heading(effect: &Effect) -> String {
    if effect.effect.is_zero() { "identical".to_owned() } else { format!("{} slower", percent(effect.effect.0)) }
}

/// `2 of 40`, or nothing where the rule has no statistic.
fn counted(count: Count) -> String {
    if count.of == 0 { "-".to_owned() } else { format!("{} of {}", count.different, count.of) }
}

/// `2 of 40 comparisons`.
fn comparisons(count: Count) -> String {
    format!("{} {}", counted(count), if count.of == 1 { "comparison" } else { "comparisons" })
}

/// `12 runs`, `up to 32 runs (11.4 in the mean)`.
fn runs(calibration: &Calibration) -> String {
    let most = count(u64::from(calibration.runs), "run");
    calibration.mean_runs.map_or_else(|| most.clone(), |mean| format!("up to {most} ({mean:.1} on average)"))
}

/// What it comes down to, a sentence each.
fn sentences(calibration: &Calibration) -> Vec<String> {
    let mut sentences = Vec::new();
    let (order, pairs) = match calibration.design {
        Design::Sequential => ("one side after the other", "pairs"),
        _ => ("in interleaved blocks", "blocks"),
    };
    if let Some(identical) = calibration.effects.iter().find(|effect| effect.effect.is_zero()) {
        let alarms = identical.perfrun;
        let at_most = alarms.interval.map_or(String::new(), |interval| {
            format!(" (95 % interval of the rate: {} to {})", percent(interval.low), percent(interval.high))
        });
        sentences.push(format!(
            "Identical code, {} per side {order}, was called different in {}{at_most}.",
            runs(calibration),
            comparisons(alarms)
        ));
    }
    for effect in calibration.effects.iter().filter(|effect| !effect.effect.is_zero()) {
        sentences.push(format!(
            "A true slowdown of {} was found in {} at a margin of {}.",
            percent(effect.effect.0),
            comparisons(effect.perfrun),
            percent(calibration.margin)
        ));
    }
    match (calibration.grade, calibration.in_twelve_blocks, calibration.here) {
        (Some(grade), Some(twelve), Some(here)) => sentences.push(format!(
            "Grade {}: {} {pairs} detect a difference of {} with 80 % power, {} runs one of {}.",
            grade.letter(),
            spelt(Grade::BLOCKS as usize),
            percent(twelve),
            calibration.runs,
            percent(here)
        )),
        _ => sentences.push("No grade: at least two blocks of A/A comparisons are needed.".to_owned()),
    }
    sentences
}

/// The sentences, then what every rule said.
pub fn describe(calibration: &Calibration, ui: &Ui) -> String {
    let mut text = String::from("\n");
    text.push_str(&ui.labelled_lines("found", sentences(calibration)));
    let mut columns = vec![TableColumn::text("called different, from the same samples")];
    columns.extend(calibration.effects.iter().map(|effect| TableColumn::number(heading(effect))));
    let rows = RULES.map(|(rule, outcome)| {
        let counts = calibration.effects.iter().map(|effect| counted(outcome(effect)));
        [rule.to_owned()].into_iter().chain(counts).map(TableCell::from).collect::<TableRow>()
    });
    text + &format!("\n{}\n", table::render(&Table::of(columns, rows), ui.width()))
}

/// `calibration.md`.
pub(crate) fn markdown(calibration: &Calibration) -> String {
    let mut text = format!("# Calibration for {}\n\n", calibration.experiment);
    for sentence in sentences(calibration) {
        text.push_str(&sentence);
        text.push('\n');
    }
    text.push_str("\n| rule | ");
    text.push_str(&calibration.effects.iter().map(heading).collect::<Vec<_>>().join(" | "));
    text.push_str(" |\n|---|");
    text.push_str(&"--:|".repeat(calibration.effects.len()));
    text.push('\n');
    for (rule, outcome) in RULES {
        let counts: Vec<String> = calibration.effects.iter().map(|effect| counted(outcome(effect))).collect();
        text.push_str(&format!("| {rule} | {} |\n", counts.join(" | ")));
    }
    text.push_str("\nThe number of comparisons that each rule called different, from the same samples.\n");
    text.push_str(
        "\n| cell | comparisons | bias | block deviation | detectable with 80 % power |\n|---|--:|--:|--:|--:|\n",
    );
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), percent);
    for noise in &calibration.noise {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            noise.cell,
            noise.comparisons,
            shown(noise.bias.map(f64::exp_m1)),
            shown(noise.block_deviation),
            shown(noise.detectable_effect)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::quantity::Ratio;

    fn calibration() -> Calibration {
        let count = |different| Count { different, of: 40, interval: None };
        let effect = |effect, found| Effect {
            effect: Ratio(effect),
            comparisons: 40,
            verdicts: Default::default(),
            detected: count(found),
            perfrun: count(found),
            pooled_mann_whitney: count(40),
            pooled_overlap: count(30),
            pooled_change: Count::default(),
            run_median_mann_whitney: count(3),
        };
        Calibration {
            frame: Default::default(),
            format: 1,
            experiment: "x".to_owned(),
            machine: "0123".to_owned(),
            design: Design::Blocks,
            runs: 10,
            mean_runs: None,
            margin: 0.02,
            noise: Vec::new(),
            block_deviation: Some(0.01),
            in_twelve_blocks: Some(0.041),
            here: Some(0.036),
            grade: Some(Grade::B),
            effects: vec![effect(0.0, 0), effect(0.05, 36)],
        }
    }

    #[test]
    fn rules_by_p_name_their_level() {
        let by_p: Vec<&str> = RULES.iter().map(|(words, _)| *words).filter(|words| words.contains("p <")).collect();
        let level = format!("p < {}", statistics::naive_comparisons::LEVEL);
        assert!(by_p.len() == 2 && by_p.iter().all(|words| words.ends_with(&level)));
    }

    #[test]
    fn sentences_say_alarms_findings_and_grade() {
        let sentences = sentences(&calibration());
        assert_eq!(
            sentences,
            [
                "Identical code, 10 runs per side in interleaved blocks, was called different in 0 of 40 comparisons.",
                "A true slowdown of 5 % was found in 36 of 40 comparisons at a margin of 2 %.",
                "Grade B: 12 blocks detect a difference of 4.1 % with 80 % power, 10 runs one of 3.6 %.",
            ]
        );
    }

    #[test]
    fn the_table_has_a_column_for_each_effect() {
        let text = markdown(&calibration());
        assert!(text.contains("| rule | identical | 5 % slower |"), "{text}");
        assert!(text.contains("| Mann-Whitney on all iterations, p < 0.05 | 40 of 40 | 40 of 40 |"), "{text}");
        assert!(text.contains("| bootstrap of the mean of all iterations beyond 1 % | - | - |"), "{text}");
    }
}
