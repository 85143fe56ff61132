//! Explanations as text.

use super::{LABEL_WIDTH, Ui};
use base::code::{Code, Severity};
use spec::explain::{Explanation, Key, MetricText, Topics};

/// What a word means: its name first, then labelled lines.
pub fn describe(ui: &Ui, explanation: &Explanation) -> String {
    match explanation {
        Explanation::Code(code) => {
            let mut text = format!("{} ({})\n", code.code, code.severity.name());
            let lines = [("meaning", &code.meaning), ("effect", &code.effect), ("remedy", &code.remedy)];
            lines.iter().for_each(|(label, line)| text.push_str(&ui.labelled_text(label, line)));
            text
        }
        Explanation::Key(key) => describe_key(ui, key),
        Explanation::Metric(metric) => describe_metric(ui, metric),
        Explanation::Word(word) => format!("{}\n{}", word.word, ui.labelled_text("meaning", &word.meaning)),
        Explanation::Value(value) => {
            format!("{} (value of {})\n{}", value.value, value.key, ui.labelled_text("meaning", &value.meaning))
        }
    }
}

fn describe_key(ui: &Ui, key: &Key) -> String {
    let mut text = format!("{} (key of a specification)\n", key.path);
    let mut say = |label: &str, line: &str| {
        if !line.is_empty() {
            text.push_str(&ui.labelled_text(label, line));
        }
    };
    say("meaning", &key.description);
    if key.choices.is_empty() {
        say("value", &key.value);
    }
    for (index, choice) in key.choices.iter().enumerate() {
        let meaning = if choice.meaning.is_empty() { String::new() } else { format!(": {}", choice.meaning) };
        say(if index == 0 { "values" } else { "" }, &format!("{}{meaning}", choice.value));
    }
    say("default", key.default.as_deref().unwrap_or_default());
    if !key.modes.is_empty() {
        say("only with", &format!("mode: {}", key.modes.join(", ")));
    }
    say("keys", &key.keys.join(", "));
    text
}

fn describe_metric(ui: &Ui, metric: &MetricText) -> String {
    let better = match (metric.better, metric.is_of_environment) {
        (Some(better), _) => format!(", {better} is better"),
        (None, true) => " of the machine during a run; never used for verdicts".to_owned(),
        (None, false) => ", neither direction is better".to_owned(),
    };
    let mut text = format!("{} (metric{better})\n", metric.reference);
    text.push_str(&ui.labelled_text("meaning", &format!("{}.", capital(&metric.meaning))));
    text.push_str(&ui.labelled_text("stored as", metric.stored));
    if !metric.statistics.is_empty() {
        let names = format!("{}; written after a dot: {}.p95", metric.statistics.join(", "), "latency");
        text.push_str(&ui.labelled_text("statistics", &names));
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// What kinds of words can be explained, with as many of each as a terminal of 24 lines has room for.
pub fn overview(ui: &Ui, topics: &Topics) -> String {
    let mut text = String::from("`perfrun explain WORD` says what a word means; `--all` lists every word.\n\n");
    let mut keys = topics.keys.clone();
    // Keys of the top level lead to those below them.
    keys.sort_by_key(|key| key.matches('.').count());
    // Those of variants come last, and are the most used.
    let values: Vec<&str> = topics.values.iter().rev().map(String::as_str).collect();
    let groups = [
        ("codes", 2, topics.codes.clone()),
        ("metrics", 3, topics.metrics.clone()),
        ("machine", 2, topics.environment.clone()),
        ("terms", 3, texts(&topics.words)),
        ("keys", 6, texts(&keys)),
        ("values", 2, values),
    ];
    for (label, rows, words) in groups {
        text.push_str(&ui.labelled_text(label, &as_many(&words, rows * row(ui))));
    }
    text + "\n" + &ui.labelled_text("such as", "`perfrun explain W_STEAL`, or `measure.stop`, `int4`, `bound by`")
}

fn texts(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

/// The width of a row without room for one more long word.
fn row(ui: &Ui) -> usize {
    /// Longer than all but a few words.
    const WORD: usize = 20;
    ui.width().saturating_sub(LABEL_WIDTH + WORD).max(WORD)
}

/// As many of the words as have room, and how many more there are.
fn as_many(words: &[&str], room: usize) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        let remaining = format!("... {} more", words.len() - index);
        if text.len() + word.len() + remaining.len() > room {
            return text + &remaining;
        }
        text.push_str(&format!("{word}  "));
    }
    text.trim_end().to_owned()
}

/// Everything that can be explained.
pub fn list(ui: &Ui, topics: &Topics) -> String {
    let mut text = String::from("`perfrun explain WORD` explains one of these.\n");
    let mut say = |title: &str, words: &[&str]| {
        text.push_str(&format!("\n{title}\n"));
        text.push_str(&ui.labelled_text("", &words.join("  ")));
    };
    for severity in Severity::ALL {
        let of_severity = Code::ALL.iter().filter(|code| code.severity() == severity).map(|code| code.name());
        say(&format!("codes: {}", severity.name()), &of_severity.collect::<Vec<_>>());
    }
    say("metrics", &topics.metrics);
    say("metrics of the machine during a run", &topics.environment);
    say("terms of reports", &texts(&topics.words));
    say("keys of a specification", &texts(&topics.keys));
    say("values of keys", &texts(&topics.values));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_fit_a_screen() {
        for width in [80, 120] {
            let ui = Ui { width, ..Ui::detect() };
            let text = overview(&ui, &spec::explain::topics());
            assert!(text.lines().count() < 24, "{text}");
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
            for said in ["codes", "E_AA_FAILED", "latency", "variants", "fp16", " more"] {
                assert!(text.contains(said), "{said} in\n{text}");
            }
        }
    }
}
