//! Explanations as text.

use super::Ui;
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
    say("terms of reports", &topics.words.iter().map(String::as_str).collect::<Vec<_>>());
    say("keys of a specification", &topics.keys.iter().map(String::as_str).collect::<Vec<_>>());
    text
}
