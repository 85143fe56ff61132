//! What is wrong with a file of numbers, and where.

use base::printable::printable_line;

use super::tool::Tool;

/// A text that is quoted is cut after so many characters.
const LONGEST_QUOTE: usize = 40;

/// What is made of each value takes 40 bytes: together less than 2 GiB.
pub(super) const MOST_VALUES: usize = 30_000_000;

/// Why bytes are no series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A text that is not a number.
    NotANumber,
    /// A number that is infinite, or not a number.
    NotFinite,
    /// A number whose powers no computer number holds.
    Extreme,
    NumberAmongRuns,
    RunAmongNumbers,
    /// An array within a run.
    TooDeep,
    /// A run without values.
    EmptyRun,
    /// Something where a comma or the end of an array belongs.
    NoSeparator,
    /// The file ends within an array.
    Unfinished,
    /// Something after the array.
    Trailing,
    /// A JSON object that no known tool writes.
    Object,
    /// Something that the format of a tool does not allow.
    Malformed,
    /// Means, but not the times that they are of.
    NoSamples(Tool),
    /// A benchmark's time that is infinite, or not a number.
    NotFiniteIn,
    /// A benchmark's time whose powers no computer number holds.
    ExtremeIn,
    /// A unit of time that is not known.
    UnknownUnit,
    /// Times of iterations whose numbers are not as many.
    DifferentLengths,
    /// All benchmarks failed.
    NoneMeasured,
    /// There is no value at all.
    NoValues,
    /// More values than memory is taken for.
    TooMany,
}

impl Fault {
    /// What is wrong with a number as a value of a series, if anything is: moments take its fourth power.
    pub(super) fn of_value(value: f64) -> Option<Fault> {
        const EXTREME: f64 = 1e70;
        let size = value.abs();
        match size {
            size if !size.is_finite() => Some(Fault::NotFinite),
            size if size > EXTREME || (size > 0.0 && size < 1.0 / EXTREME) => Some(Fault::Extreme),
            _ => None,
        }
    }
}

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.words())]
pub struct ReadError {
    /// The file as the user named it.
    pub source_name: String,
    /// Line and column of the fault, from 1; `None` where it is nowhere in particular.
    pub position: Option<(usize, usize)>,
    /// What stands there.
    pub text: String,
    /// What is wrong with it.
    pub fault: Fault,
}

impl miette::Diagnostic for ReadError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(self.hint()))
    }
}

impl ReadError {
    fn words(&self) -> String {
        let text = &self.text;
        let what = match self.fault {
            Fault::NotANumber => format!("`{text}` is not a number"),
            Fault::NotFinite => format!("`{text}` is not a finite number"),
            Fault::Extreme => format!("`{text}` is too large or too small to compute with"),
            Fault::NumberAmongRuns => format!("`{text}` is mixed with arrays"),
            Fault::RunAmongNumbers => "an array is mixed with numbers".to_owned(),
            Fault::TooDeep => "an array within a run".to_owned(),
            Fault::EmptyRun => "a run without values".to_owned(),
            Fault::NoSeparator => format!("expected `,` or `]`, found `{text}`"),
            Fault::Unfinished => "the file is cut short".to_owned(),
            Fault::Trailing => format!("`{text}` after the end of the array"),
            Fault::Malformed => text.clone(),
            Fault::NotFiniteIn => format!("`{text}` has a time that is no number"),
            Fault::ExtremeIn => format!("`{text}` has a time that is too large or too small to compute with"),
            Fault::UnknownUnit => format!("`{text}` is not a unit that perfrun knows"),
            Fault::Object => return format!("{} is not a file that perfrun can read", self.source_name),
            Fault::NoSamples(tool) => return format!("{} has no single times of {}", self.source_name, tool.name()),
            Fault::DifferentLengths => return format!("{} has not as many iterations as times", self.source_name),
            Fault::NoneMeasured => return format!("{}: every benchmark failed", self.source_name),
            Fault::NoValues => return format!("{} contains no values", self.source_name),
            Fault::TooMany => return format!("{} has more than {MOST_VALUES} values", self.source_name),
        };
        match self.position {
            Some((line, column)) => format!("{}:{line}:{column}: {what}", self.source_name),
            None => format!("{}: {what}", self.source_name),
        }
    }

    fn hint(&self) -> String {
        let separator = [',', ';', '\t'].into_iter().find(|separator| self.text.contains(*separator));
        let hint = match self.fault {
            Fault::NotANumber if separator.is_some() => {
                // A tab is what `cut` takes for granted.
                let option = match separator {
                    Some(',') => " -d,",
                    Some(';') => " -d';'",
                    _ => "",
                };
                return format!(
                    "give one value a line, with a point for decimals; one column of a table: `cut{option} -f2 FILE | \
                     perfrun stat -`"
                );
            }
            Fault::NotANumber => {
                "give one value a line; the first line may name the column, `#` begins a comment, and `--unit` names the unit"
            }
            Fault::NotFinite => "leave out what was not measured, or say in a comment (`#`) why it is missing",
            Fault::Extreme => "give the values in another unit: between 1e-70 and 1e70, or 0",
            Fault::Object => {
                "give the JSON of hyperfine, Google Benchmark, criterion (`sample.json`) or pytest-benchmark, or numbers of your \
                 own: `jq .times FILE | perfrun stat -`; for a record of perfrun, `perfrun report`"
            }
            Fault::NoSamples(tool) => return format!("a verdict needs the single times; {}", tool.keep_values()),
            Fault::NotFiniteIn | Fault::ExtremeIn => "leave that benchmark out, or measure it again",
            Fault::UnknownUnit => "the units of time are ns, us, ms and s",
            Fault::Unfinished => "write it again: perhaps the tool was interrupted",
            Fault::Malformed | Fault::DifferentLengths => "give the file as its tool wrote it",
            Fault::NoneMeasured => "look at what the tool itself says; its file has the message of each",
            Fault::Trailing => "give one array; `jq -s . FILE` makes one of several, each of which is then a run",
            Fault::TooMany => "use a random sample of it",
            Fault::NoValues => {
                "give one value a line, a JSON array of numbers, or the file of a tool that ran a benchmark"
            }
            _ => "give an array of numbers, or an array of arrays of numbers, which are runs",
        };
        hint.to_owned()
    }
}

/// A fault of the file of a tool, before the file has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The benchmark or the unit; empty where the file as a whole is meant.
    text: String,
    fault: Fault,
}

impl Refusal {
    pub(super) fn of_file(fault: Fault) -> Self {
        Refusal { text: String::new(), fault }
    }

    pub(super) fn of_benchmark(name: &str, fault: Fault) -> Self {
        Refusal { text: quoted(name), fault }
    }

    pub(super) fn of(self, source: &str) -> ReadError {
        ReadError { source_name: source.to_owned(), position: None, text: self.text, fault: self.fault }
    }
}

/// A text as a terminal may be shown it, not too long.
fn quoted(text: &str) -> String {
    let text = printable_line(text);
    let mut quoted: String = text.chars().take(LONGEST_QUOTE).collect();
    if text.chars().nth(LONGEST_QUOTE).is_some() {
        quoted.push('…');
    }
    quoted
}

/// A fault at an offset, before it has a file, a line and a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) fault: Fault,
}

impl Problem {
    /// The fault of a piece of `bytes`.
    pub(super) fn of(bytes: &[u8], piece: &[u8], fault: Fault) -> Self {
        // Both are slices of one file.
        let offset = piece.as_ptr() as usize - bytes.as_ptr() as usize;
        Problem { offset, length: piece.len(), fault }
    }

    /// Finds line and column.
    pub(super) fn locate(self, source: &str, bytes: &[u8]) -> ReadError {
        let before = &bytes[..self.offset.min(bytes.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        let rest = &bytes[before.len()..];
        let text = quoted(&String::from_utf8_lossy(&rest[..self.length.min(rest.len())]));
        ReadError { source_name: source.to_owned(), position: Some((line, column)), text, fault: self.fault }
    }
}
