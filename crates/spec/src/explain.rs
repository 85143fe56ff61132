//! What a word of perfrun means: a code, a key of the specification or one of its values, a metric, or a word of reports
//! and screens.
//!
//! Input: the word. Output: its explanation, from the table, the schema or the metrics that the program itself uses, and
//! from the glossary, so that no explanation is written twice. Deliberately absent: layout.

mod key;

use std::collections::HashSet;

use serde::Serialize;

use base::code::{self, Code, CodeText};
use base::metric::{Direction, ENVIRONMENT, Kind, METRICS, Metric, MetricReference, SPEEDUP, Statistic};
use base::wording::distinct;
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
    /// A value that a key can have.
    Value(ValueText),
}

/// A value in words: `int4` of `variants.precision`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValueText {
    /// As it is written in a specification.
    pub value: String,
    /// The key that can have it.
    pub key: String,
    /// What it says there.
    pub meaning: String,
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
const GLOSSARY: &str = include_str!("../../../docs/reference/glossary.md");

/// Every word of the glossary.
fn words() -> impl Iterator<Item = Word> {
    let rows = GLOSSARY.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rows = rows.filter(|(word, _)| *word != "word");
    rows.map(|(word, meaning)| Word { word: word.replace('`', ""), meaning: meaning.replace('`', "") })
}

/// The word of the glossary that is, or is among, what is asked for, also as files spell it: `not_run`.
fn glossary(asked: &str) -> Option<Word> {
    let is_it = |word: &str| word.eq_ignore_ascii_case(asked) || word.eq_ignore_ascii_case(&asked.replace('_', " "));
    words().find(|known| known.word.split(", ").any(is_it))
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
    /// Values of keys that say something, such as `int4`.
    pub values: Vec<String>,
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
    let keys = keys();
    Topics {
        codes: Code::ALL.iter().map(|code| code.name()).collect(),
        metrics: stems(METRICS).chain([SPEEDUP.stem()]).collect(),
        environment: stems(ENVIRONMENT).collect(),
        words: words().map(|known| known.word).collect(),
        values: distinct(values(&keys).map(|found| found.value)),
        keys: keys.into_iter().map(|key| key.path).collect(),
    }
}

/// Every value that a key of users has, with what it says there.
fn values(keys: &[Key]) -> impl Iterator<Item = ValueText> {
    let of_key = |key: &Key| {
        let (path, about) = (key.path.clone(), key.description.clone());
        key.choices.clone().into_iter().map(move |choice| ValueText {
            value: choice.value,
            key: path.clone(),
            meaning: if choice.meaning.is_empty() { about.clone() } else { choice.meaning },
        })
    };
    keys.iter().filter(|key| !is_of_mock(key)).flat_map(of_key)
}

/// Scripts of the mock backend are for tests: elsewhere the same word says something else.
fn is_of_mock(key: &Key) -> bool {
    key.path.split('.').any(|part| part == "mock")
}

/// What a word means; of several meanings the first of [`meanings`].
///
/// # Errors
///
/// As [`meanings`].
pub fn explain(word: &str) -> Result<Explanation, UnknownWordError> {
    meanings(word).map(|mut found| found.swap_remove(0))
}

/// Everything that a word means, one thing at least: `load` is a metric, a word of reports and a key. Codes may be in small
/// letters; a key may be named by its last part where what ends so says one thing.
///
/// # Errors
///
/// When nothing has this name; the nearest words are named.
pub fn meanings(word: &str) -> Result<Vec<Explanation>, UnknownWordError> {
    let keys = keys();
    let code = code::by_name(&word.to_uppercase()).map(|code| Explanation::Code(code.text()));
    let key = keys.iter().find(|key| key.path == word).map(|key| Explanation::Key(key.clone()));
    let direct = [code, key, metric(word).map(Explanation::Metric), glossary(word).map(Explanation::Word)];
    let mut found: Vec<Explanation> = direct.into_iter().flatten().collect();
    let ending = ending(word, &keys);
    match ending.as_slice() {
        [one] if one.path != word => found.push(Explanation::Key((*one).clone())),
        // `dataset.labels` is the same below a model.
        [first, others @ ..]
            if found.is_empty() && others.iter().all(|key| key.path.ends_with(&format!(".{}", first.path))) =>
        {
            found.push(Explanation::Key((*first).clone()));
        }
        _ => {}
    }
    if found.is_empty() {
        let named = values(&keys).filter(|known| known.value.eq_ignore_ascii_case(word));
        let mut said = HashSet::new();
        found.extend(named.filter(|known| said.insert(known.meaning.clone())).map(Explanation::Value));
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let near =
        if ending.is_empty() { near(word, &keys) } else { ending.into_iter().map(|key| key.path.clone()).collect() };
    Err(UnknownWordError { word: word.to_owned(), near })
}

/// The keys whose last part is the word; those of the mock backend where no other has it.
fn ending<'a>(word: &str, keys: &'a [Key]) -> Vec<&'a Key> {
    let all = keys.iter().filter(|key| key.path.rsplit('.').next() == Some(word));
    let (of_mock, of_users): (Vec<&Key>, Vec<&Key>) = all.partition(|key| is_of_mock(key));
    if of_users.is_empty() { of_mock } else { of_users }
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
    let written = topics.keys.iter().chain(&topics.values).map(String::as_str);
    let whole: Vec<&str> = whole.chain(written).chain(words).collect();
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
        for word in &topics.values {
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
    fn values_and_words_of_several_meanings_are_explained() {
        for precision in ["fp16", "INT4"] {
            let Ok(Explanation::Value(value)) = explain(precision) else { panic!("{precision}") };
            assert_eq!(value.key, "variants.precision");
            assert!(value.meaning.starts_with("Weights "), "{}", value.meaning);
        }
        // Two keys that say the same.
        assert_eq!(key("labels").path, "dataset.labels");
        for word in ["batch", "bound by", "Bound by", "memory-bound", "throttled"] {
            assert!(matches!(explain(word), Ok(Explanation::Word(_))), "{word}");
        }
        let load = meanings("load").unwrap();
        assert!(
            matches!(load.as_slice(), [Explanation::Metric(_), Explanation::Word(_), Explanation::Key(key)] if key.path == "measure.load"),
            "{load:?}"
        );
        let sequential = meanings("sequential").unwrap();
        let keys: Vec<&str> = sequential
            .iter()
            .filter_map(|found| match found {
                Explanation::Value(value) => Some(value.key.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(keys, ["measure.design", "variants.execution"]);
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
