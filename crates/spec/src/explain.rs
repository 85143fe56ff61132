//! What a word of perfrun means: a code, a key of the specification, a metric, or a word of reports and screens.
//!
//! Input: the word. Output: its explanation, from the table, the schema or the metrics that the program itself uses, and
//! from the glossary, so that no explanation is written twice. Deliberately absent: layout.

mod key;

use serde::Serialize;

use base::code::{self, Code, CodeText};
use base::metric::{Direction, ENVIRONMENT, Kind, METRICS, Metric, MetricReference, SPEEDUP, Statistic};
use reading::nearest::nearest;

pub use key::{Choice, Key, keys};

/// What a word means.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Explanation {
    /// A code of a run, a cell or a record.
    Code(&'static CodeText),
    /// A key of the specification.
    Key(Key),
    /// Something that is measured.
    Metric(MetricText),
    /// A word of the glossary.
    Word(Word),
}

/// A word of reports and screens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Word {
    /// The word, with others that mean the same.
    pub word: String,
    /// What it means, as the glossary has it.
    pub meaning: String,
}

/// Rows of tables: words, and what they mean.
const GLOSSARY: &str = include_str!("../../../docs/glossary.md");

/// Every word of the glossary.
fn words() -> impl Iterator<Item = Word> {
    let rows = GLOSSARY.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.filter(|(word, _)| *word != "word");
    rows.map(|(word, meaning)| Word { word: word.replace('`', ""), meaning: meaning.replace('`', "") })
}

/// The word of the glossary that is, or is among, what is asked for.
fn glossary(asked: &str) -> Option<Word> {
    words().find(|known| known.word.split(", ").any(|word| word.eq_ignore_ascii_case(asked)))
}

/// A metric in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MetricText {
    /// As users refer to it: `latency`, `latency.p95`.
    pub reference: String,
    /// Stored name with its unit.
    pub stored: &'static str,
    /// Heading in reports.
    pub title: String,
    /// What exactly is measured.
    pub meaning: String,
    /// `lower`, `higher`, or nothing where neither is good.
    pub better: Option<&'static str>,
    /// It describes the machine around a run, and nothing is judged by it.
    pub is_of_environment: bool,
    /// Statistics that may follow a dot.
    pub statistics: Vec<&'static str>,
}

/// Everything that can be explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topics {
    /// Codes, the gravest first.
    pub codes: Vec<&'static str>,
    /// Keys of the specification.
    pub keys: Vec<String>,
    /// Metrics, as users refer to them.
    pub metrics: Vec<&'static str>,
    /// Metrics of the machine around a run.
    pub environment: Vec<&'static str>,
    /// Words of reports and screens.
    pub words: Vec<String>,
}

/// A word that means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing is named `{word}`")]
pub struct UnknownWordError {
    pub word: String,
    /// Words that may be meant.
    pub near: Vec<String>,
}

/// Everything that can be explained.
pub fn topics() -> Topics {
    let stems = |metrics: &'static [Metric]| metrics.iter().map(Metric::stem);
    Topics {
        codes: Code::ALL.iter().map(|code| code.name()).collect(),
        keys: keys().into_iter().map(|key| key.path).collect(),
        metrics: stems(METRICS).chain([SPEEDUP.stem()]).collect(),
        environment: stems(ENVIRONMENT).collect(),
        words: words().map(|known| known.word).collect(),
    }
}

/// What a word means. Codes may be in small letters; a key may be named by its last part where only one ends so.
///
/// # Errors
///
/// When nothing has this name; the nearest words are named.
pub fn explain(word: &str) -> Result<Explanation, UnknownWordError> {
    if let Some(code) = code::by_name(&word.to_uppercase()) {
        return Ok(Explanation::Code(code.text()));
    }
    let keys = keys();
    if let Some(key) = keys.iter().find(|key| key.path == word) {
        return Ok(Explanation::Key(key.clone()));
    }
    if let Some(metric) = metric(word) {
        return Ok(Explanation::Metric(metric));
    }
    if let Some(found) = glossary(word) {
        return Ok(Explanation::Word(found));
    }
    let ending: Vec<&Key> = keys.iter().filter(|key| key.path.rsplit('.').next() == Some(word)).collect();
    match ending.as_slice() {
        [] => {}
        [one] => return Ok(Explanation::Key((*one).clone())),
        several => {
            let near = several.iter().map(|key| key.path.clone()).collect();
            return Err(UnknownWordError { word: word.to_owned(), near });
        }
    }
    Err(UnknownWordError { word: word.to_owned(), near: near(word, &keys) })
}

fn metric(word: &str) -> Option<MetricText> {
    let is_named = |metric: &&Metric| metric.stem() == word || metric.name == word;
    let is_titled = |metric: &&Metric| metric.title.eq_ignore_ascii_case(word);
    let of_environment = ENVIRONMENT.iter().find(is_named).map(MetricReference::of);
    let by_reference = || word.parse().or_else(|_| format!("{}.{word}", MetricReference::LATENCY).parse()).ok();
    let by_title = || METRICS.iter().chain(ENVIRONMENT).find(is_titled).map(MetricReference::of);
    let reference = of_environment.or_else(by_reference).or_else(by_title)?;
    let metric = reference.metric;
    let has_samples = metric.name == MetricReference::LATENCY.metric.name;
    Some(MetricText {
        reference: reference.to_string(),
        stored: metric.name,
        title: reference.title(),
        // The meaning of latency begins with its statistic.
        meaning: metric.meaning.replacen("median", reference.statistic.name(), 1),
        better: match metric.direction {
            Direction::LowerIsBetter => Some("lower"),
            Direction::HigherIsBetter => Some("higher"),
            Direction::Neutral => None,
        },
        is_of_environment: metric.kind == Kind::Environment,
        statistics: Statistic::NAMES.iter().filter(|_| has_samples).map(|(name, _)| *name).collect(),
    })
}

/// The nearest of all words, and of the last parts of keys.
fn near(word: &str, keys: &[Key]) -> Vec<String> {
    let topics = topics();
    let whole = topics.codes.iter().chain(&topics.metrics).chain(&topics.environment).copied();
    let words = topics.words.iter().flat_map(|words| words.split(", "));
    let whole: Vec<&str> = whole.chain(topics.keys.iter().map(String::as_str)).chain(words).collect();
    if let Some(found) = nearest(word, whole) {
        return vec![found.to_owned()];
    }
    // `steal` is not near `W_STEALING`, but `W_STAEL` without its prefix is near `STEAL`.
    let last = word.rsplit('.').next().unwrap_or(word);
    let lasts = keys.iter().filter_map(|key| key.path.rsplit('.').next());
    let Some(found) = nearest(last, lasts) else { return Vec::new() };
    let ends = |key: &&Key| key.path.rsplit('.').next() == Some(found);
    keys.iter().filter(ends).map(|key| key.path.clone()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn key(word: &str) -> Key {
        match explain(word) {
            Ok(Explanation::Key(key)) => key,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn everything_that_is_listed_is_explained() {
        let topics = topics();
        for word in topics.codes.iter().chain(&topics.metrics).chain(&topics.environment) {
            assert!(explain(word).is_ok(), "{word}");
        }
        for word in topics.words.iter().flat_map(|words| words.split(", ")) {
            assert!(explain(word).is_ok(), "{word}");
        }
        for verdict in statistics::Verdict::ALL {
            assert!(matches!(explain(verdict.name()), Ok(Explanation::Word(_))), "{}", verdict.name());
        }
        for word in ["faster", "grade", "noise floor", "control"] {
            assert!(matches!(explain(word), Ok(Explanation::Word(_))), "{word}");
        }
        for word in &topics.keys {
            assert!(!key(word).description.is_empty(), "{word}");
        }
    }

    #[test]
    fn codes_keys_and_metrics_are_told_apart() {
        assert!(matches!(explain("w_steal"), Ok(Explanation::Code(code)) if code.code == Code::Steal));
        assert_eq!(key("measure.warmup.min_time").default.as_deref(), Some("300ms"));
        assert_eq!(key("tolerance").path, "measure.warmup.tolerance");
        let Ok(Explanation::Metric(metric)) = explain("latency.p95") else { panic!() };
        assert_eq!((metric.reference.as_str(), metric.better), ("latency.p95", Some("lower")));
        assert!(metric.meaning.starts_with("p95 over a run's counted samples"), "{}", metric.meaning);
        assert!(matches!(explain("steal"), Ok(Explanation::Metric(metric)) if metric.is_of_environment));
        assert!(matches!(explain("speedup"), Ok(Explanation::Metric(_))));
        // As screens and reports have them.
        assert!(matches!(explain("p95"), Ok(Explanation::Metric(metric)) if metric.reference == "latency.p95"));
        assert!(matches!(explain("cpu time"), Ok(Explanation::Metric(metric)) if metric.stored == "cpu_time_ns"));
    }

    #[test]
    fn remedies_name_keys_that_there_are() {
        let keys: Vec<String> = topics().keys;
        let mut named = 0;
        for code in Code::ALL.iter().map(|code| code.text()) {
            let quoted = [&code.meaning, &code.effect, &code.remedy]
                .into_iter()
                .flat_map(|text| text.split('`').skip(1).step_by(2));
            for word in
                quoted.filter(|word| word.contains('.') && !word.contains(' ')).map(|word| word.trim_end_matches(':'))
            {
                // A setting of the kernel has dots too.
                assert!(word.starts_with("kernel.") || keys.iter().any(|key| key == word), "{}: {word}", code.code);
                named += 1;
            }
        }
        assert!(named > 5);
    }

    #[test]
    fn unknown_words_name_the_nearest() {
        let near = |word: &str| explain(word).unwrap_err().near;
        assert_eq!(near("W_STAEL"), ["W_STEAL"]);
        assert_eq!(near("measure.warmpu.min_time"), ["measure.warmup.min_time"]);
        assert_eq!(near("min_time"), ["measure.stop.min_time", "measure.warmup.min_time"]);
        assert_eq!(near("latancy"), ["latency"]);
        assert_eq!(near("qqqqqq"), [""; 0]);
    }
}
