//! Metrics of the user's own, which a specification declares under `metrics`.
//!
//! Their stored name says all that there is to know of them, so that records, reports and comparisons need no declaration:
//! `own.tokens[/s].higher` of runs, `score.map50.higher` of the `score` command. Users write the name alone; which metric that
//! is, the specification or the report at hand says.

use serde::{Deserialize, Serialize};

use super::{Direction, ENVIRONMENT, Kind, Metric, MetricReference, ReportedBy, Unit, interned};
use crate::printable::printable_line;

const LONGEST: usize = 64;
const LONGEST_UNIT: usize = 16;

/// Who reports them, and how their stored names begin.
const REPORTERS: [(ReportedBy, &str, &str); 2] = [
    (ReportedBy::EachRun, "own.", "as the program reports it"),
    (ReportedBy::Cell, "score.", "as the `score` command of the dataset prints it"),
];

/// Which way is good, and how their stored names end.
const ENDINGS: [(Direction, &str); 3] =
    [(Direction::HigherIsBetter, ".higher"), (Direction::LowerIsBetter, ".lower"), (Direction::Neutral, "")];

/// Units that are stored, by the text in stored names.
const STORED: [(&str, Unit); 5] = [
    ("ns", Unit::Nanoseconds),
    ("B", Unit::Bytes),
    ("/s", Unit::PerSecond),
    ("J", Unit::Joules),
    ("share", Unit::Share),
];

/// Units that are scaled, with the stored one and how many of it one is. Any other text is shown behind the number.
const SCALED: [(&str, &str, f64); 16] = [
    ("ns", "ns", 1.0),
    ("us", "ns", 1e3),
    ("µs", "ns", 1e3),
    ("ms", "ns", 1e6),
    ("s", "ns", 1e9),
    ("B", "B", 1.0),
    ("kB", "B", 1e3),
    ("MB", "B", 1e6),
    ("GB", "B", 1e9),
    ("KiB", "B", 1024.0),
    ("MiB", "B", 1_048_576.0),
    ("GiB", "B", 1_073_741_824.0),
    ("/s", "/s", 1.0),
    ("J", "J", 1.0),
    ("mJ", "J", 1e-3),
    ("%", "share", 0.01),
];

/// A metric that a specification declares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OwnMetric {
    /// Its stored name: `own.`, or `score.` of a dataset's command; the name; the stored unit in brackets; which way is better.
    #[serde(serialize_with = "stored_name", deserialize_with = "of_stored_name")]
    #[schemars(with = "String")]
    pub metric: &'static Metric,
    /// How many of the stored unit one of the reported unit is.
    pub factor: f64,
}

impl OwnMetric {
    /// Declares a metric.
    ///
    /// # Errors
    ///
    /// Why there can be no such metric, with what to write instead.
    pub fn declare(
        name: &str,
        unit: Option<&str>,
        direction: Direction,
        reported_by: ReportedBy,
    ) -> Result<Self, (String, String)> {
        check_name(name)?;
        unit.map_or(Ok(()), check_unit)?;
        let scaled = unit.and_then(|unit| SCALED.iter().find(|(text, ..)| *text == unit));
        let (unit, factor) = scaled.map_or((unit, 1.0), |(_, stored, factor)| (Some(*stored), *factor));
        let prefix = REPORTERS.iter().find(|(known, ..)| *known == reported_by).map_or("", |(_, prefix, _)| prefix);
        let ending = ENDINGS.iter().find(|(known, _)| *known == direction).map_or("", |(_, ending)| ending);
        let unit = unit.map(|unit| format!("[{unit}]")).unwrap_or_default();
        let metric = Metric::of_own(&format!("{prefix}{name}{unit}{ending}"));
        let metric = metric.ok_or_else(|| ("too many metrics are declared".to_owned(), String::new()))?;
        Ok(OwnMetric { metric, factor })
    }
}

/// The parts of a stored name.
struct Parts<'a> {
    reported_by: ReportedBy,
    meaning: &'static str,
    name: &'a str,
    /// As it stands in the brackets; empty for a plain number.
    unit: &'a str,
    direction: Direction,
}

fn parts(stored: &str) -> Option<Parts<'_>> {
    let (reported_by, rest, meaning) = REPORTERS
        .iter()
        .find_map(|(reported_by, prefix, meaning)| Some((*reported_by, stored.strip_prefix(prefix)?, *meaning)))?;
    let (rest, direction) = ENDINGS.iter().find_map(|(way, ending)| Some((rest.strip_suffix(ending)?, *way)))?;
    let (name, unit) = match rest.strip_suffix(']') {
        Some(inside) => inside.split_once('[').filter(|(_, unit)| check_unit(unit).is_ok())?,
        None => (rest, ""),
    };
    is_name(name).then_some(Parts { reported_by, meaning, name, unit, direction })
}

impl Metric {
    /// The metric of such a stored name; always the same one.
    pub fn of_own(stored: &str) -> Option<&'static Metric> {
        parts(stored)?;
        interned(stored, |name| {
            let Parts { reported_by, meaning, name: stem, unit: text, direction } = parts(name)?;
            let stored = STORED.iter().find(|(known, _)| *known == text).map(|(_, unit)| *unit);
            let unit = stored.unwrap_or(if text.is_empty() { Unit::Number } else { Unit::Named(text) });
            // As headings of rates have no unit of their own.
            let title = if unit == Unit::PerSecond { String::leak(format!("{stem}/s")) } else { stem };
            Some(Metric { name, title, unit, direction, kind: Kind::Model, reported_by, meaning })
        })
    }

    /// Whether a specification declares it.
    pub fn is_own(&self) -> bool {
        REPORTERS.iter().any(|(_, prefix, _)| self.name.starts_with(prefix))
    }

    /// The name that users write.
    pub(super) fn own_stem(&self) -> Option<&'static str> {
        self.is_own().then(|| parts(self.name)).flatten().map(|parts| parts.name)
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.len() <= LONGEST
        && name.chars().all(is_letter)
}

fn check_name(name: &str) -> Result<(), (String, String)> {
    if !is_name(name) {
        let hint = format!("use a letter, then up to {} letters, digits and _", LONGEST - 1);
        return Err((format!("`{}` is no name of a metric", printable_line(name)), hint));
    }
    let is_of_environment = ENVIRONMENT.iter().any(|metric| metric.stem() == name || metric.name == name);
    let is_known = is_of_environment || name.parse::<MetricReference>().is_ok();
    match is_known || MetricReference::of_column(&format!("{name}_ns")).is_some() {
        true => Err((format!("`{name}` is a metric of perfrun's own"), "use another name".to_owned())),
        false => Ok(()),
    }
}

fn check_unit(unit: &str) -> Result<(), (String, String)> {
    let known = || SCALED.iter().map(|(text, ..)| *text);
    let meant = known().find(|text| text.eq_ignore_ascii_case(unit) && *text != unit);
    let is_shown = (1..=LONGEST_UNIT).contains(&unit.chars().count())
        && unit == printable_line(unit)
        && unit == unit.trim()
        && !unit.contains(['[', ']'])
        && !unit.starts_with(|letter: char| letter.is_ascii_digit());
    let problem = || format!("`{}` is no unit", printable_line(unit));
    match meant {
        Some(meant) => Err((problem(), format!("did you mean `{meant}`?"))),
        None if is_shown => Ok(()),
        None => {
            let known: Vec<&str> = known().collect();
            Err((problem(), format!("use {}, or a word of up to {LONGEST_UNIT} characters", known.join(", "))))
        }
    }
}

fn stored_name<S: serde::Serializer>(metric: &&'static Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.name)
}

fn of_stored_name<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<&'static Metric, D::Error> {
    let name = String::deserialize(deserializer)?;
    Metric::of_own(&name).ok_or_else(|| serde::de::Error::custom(format!("{name:?} is no declared metric")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declare(name: &str, unit: Option<&str>) -> Result<OwnMetric, (String, String)> {
        OwnMetric::declare(name, unit, Direction::LowerIsBetter, ReportedBy::EachRun)
    }

    #[test]
    fn a_stored_name_says_what_was_declared() {
        let own = declare("first_token", Some("ms")).expect("a name");
        assert_eq!((own.metric.name, own.metric.stem(), own.factor), ("own.first_token[ns].lower", "first_token", 1e6));
        let reference: MetricReference = own.metric.name.parse().expect("a metric");
        assert_eq!(MetricReference::of_column(&reference.column()), Some(reference));
        assert_eq!((reference.to_string(), reference.key()), ("first_token".to_owned(), own.metric.name.to_owned()));
        assert!(std::ptr::eq(reference.metric, own.metric), "nothing is made twice");
        assert!("first_token".parse::<MetricReference>().is_err(), "only the specification knows it by that");
        let read: OwnMetric = serde_json::from_str(&serde_json::to_string(&own).expect("a text")).expect("the same");
        assert_eq!(read, own);
    }

    #[test]
    fn every_unit_and_direction_reads_back_as_itself() {
        for unit in SCALED.iter().map(|(text, ..)| Some(*text)).chain([None, Some("dB"), Some("tokens/s")]) {
            for (direction, _) in ENDINGS {
                for (reported_by, ..) in REPORTERS {
                    let own = OwnMetric::declare("a_per_s", unit, direction, reported_by).expect("a name");
                    let again = Metric::of_own(own.metric.name).expect("a metric");
                    assert_eq!((again.stem(), again.direction, again.reported_by), ("a_per_s", direction, reported_by));
                    assert_eq!(
                        matches!(again.unit, Unit::Named(_)),
                        matches!(unit, Some("dB" | "tokens/s")),
                        "{unit:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_stored_name_is_no_metric() {
        for text in [
            "own.",
            "own.a[",
            "own.a]",
            "own.a[].higher",
            "own.a b",
            "own.a[\u{1b}]",
            "own.a.better",
            "a.higher",
            "score.1",
        ] {
            assert!(Metric::of_own(text).is_none(), "{text}");
        }
    }

    #[test]
    fn names_and_units_that_mean_something_else_are_refused() {
        let problem = |name: &str, unit: Option<&str>| declare(name, unit).expect_err("refused").0;
        for name in ["latency", "latency_ns", "latency_p95", "speedup", "steal"] {
            assert_eq!(problem(name, None), format!("`{name}` is a metric of perfrun's own"));
        }
        for name in ["", "1st", "a.b", "mAP@50", "größe", &"x".repeat(65)] {
            assert_eq!(problem(name, None), format!("`{name}` is no name of a metric"));
        }
        for unit in ["", "5", " dB", "a[b]", "KB", "MS", "a word that is too long"] {
            assert_eq!(problem("a", Some(unit)), format!("`{unit}` is no unit"));
        }
        assert!(declare("a", Some("KB")).is_err_and(|(_, hint)| hint == "did you mean `kB`?"));
    }
}
