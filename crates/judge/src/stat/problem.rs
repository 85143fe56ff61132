//! What is wrong with a file of numbers, and where.

use base::printable::printable_line;

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
    /// A JSON object.
    Object,
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
    pub place: Option<(usize, usize)>,
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
            Fault::Unfinished => "the array does not end".to_owned(),
            Fault::Trailing => format!("`{text}` after the end of the array"),
            Fault::Object => "an object is not a series of numbers".to_owned(),
            Fault::NoValues => return format!("{} contains no values", self.source_name),
            Fault::TooMany => return format!("{} has more than {MOST_VALUES} values", self.source_name),
        };
        match self.place {
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
                "extract its numbers: `jq '.results[0].times' FILE | perfrun stat -`; for a record of perfrun, `perfrun report`"
            }
            Fault::Trailing => "give one array; `jq -s . FILE` makes one of several, each of which is then a run",
            Fault::TooMany => "use a random sample of it",
            Fault::NoValues => "give one value a line, or a JSON array of numbers",
            _ => "give an array of numbers, or an array of arrays of numbers, which are runs",
        };
        hint.to_owned()
    }
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
        let read = String::from_utf8_lossy(&rest[..self.length.min(rest.len())]);
        let text = printable_line(&read);
        let is_long = text.chars().count() > LONGEST_QUOTE;
        let mut text: String = text.chars().take(LONGEST_QUOTE).collect();
        if is_long {
            text.push('…');
        }
        ReadError {
            source_name: source.to_owned(),
            place: (!matches!(self.fault, Fault::NoValues | Fault::TooMany)).then_some((line, column)),
            text,
            fault: self.fault,
        }
    }
}
