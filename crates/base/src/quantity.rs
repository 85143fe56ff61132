//! Durations, sizes and ratios as types, with the texts that users write and read.
//!
//! Input: texts such as `200ms`, `64MiB`, `1%`. Output: integers in base units, or formatted texts. In JSON a duration or a
//! ratio is stored as a number, and read from that or from its text, so that a specification and a record share their types.
//! Deliberately absent: floating-point seconds.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// A duration in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "InJson<u64>")]
pub struct Nanos(pub u64);

impl Nanos {
    /// From whole milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis * 1_000_000)
    }

    /// From whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Nanos(seconds * 1_000_000_000)
    }

    /// Rounded down; 0 below 0, the largest number above that.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Nanos((seconds * 1e9) as u64)
    }

    /// In seconds, for arithmetic of statistics only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// At most 584 years.
    pub fn from_duration(time: std::time::Duration) -> Self {
        Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// As the standard library's type.
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    #[error("`{text}` is not a {what}; write for example {example}")]
    Malformed { text: String, what: &'static str, example: &'static str },
    #[error("`{text}` is negative; a {what} is not")]
    Negative { text: String, what: &'static str },
    #[error("`{text}` is too large for a {what}")]
    TooLarge { text: String, what: &'static str },
}

/// Splits `12.5ms` into its number and its unit, with the errors that all quantities share.
fn split(text: &str, what: &'static str, example: &'static str) -> Result<(f64, String), QuantityError> {
    let trimmed = text.trim();
    let malformed = || QuantityError::Malformed { text: trimmed.to_owned(), what, example };
    let end =
        trimmed.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(trimmed.len());
    let number: f64 = trimmed[..end].replace('_', "").parse().map_err(|_| malformed())?;
    if number < 0.0 {
        return Err(QuantityError::Negative { text: trimmed.to_owned(), what });
    }
    Ok((number, trimmed[end..].trim().to_owned()))
}

impl FromStr for Nanos {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const WHAT: &str = "duration";
        const EXAMPLE: &str = "`200ms`, `3s` or `10m`";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        let scale = match unit.as_str() {
            "ns" => 1.0,
            "us" | "µs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" | "min" => 60e9,
            "h" => 3600e9,
            _ => return Err(QuantityError::Malformed { text: text.trim().to_owned(), what: WHAT, example: EXAMPLE }),
        };
        let nanos = (number * scale).round();
        if nanos >= u64::MAX as f64 {
            return Err(QuantityError::TooLarge { text: text.trim().to_owned(), what: WHAT });
        }
        Ok(Nanos(nanos as u64))
    }
}

/// The shortest text that reads back as the same duration: `300ms`, `5s`, `10m`.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        match units.iter().find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}ns", self.0),
        }
    }
}

/// A rate in events a second: `50/s`, `50`, `3000/min`, `10/h`.
pub fn per_second(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? / seconds)
}

/// A ratio; `1%` is 0.01.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "InJson<f64>")]
pub struct Ratio(pub f64);

/// A quantity in JSON.
#[derive(Deserialize)]
#[serde(untagged)]
enum InJson<Number> {
    Stored(Number),
    Written(String),
}

macro_rules! quantity_in_json {
    ($quantity:ident, $number:ty, $description:literal) => {
        impl TryFrom<InJson<$number>> for $quantity {
            type Error = QuantityError;

            fn try_from(json: InJson<$number>) -> Result<Self, QuantityError> {
                match json {
                    InJson::Stored(number) => Ok($quantity(number)),
                    InJson::Written(text) => text.parse(),
                }
            }
        }

        impl JsonSchema for $quantity {
            fn schema_name() -> Cow<'static, str> {
                stringify!($quantity).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let mut schema = <$number>::json_schema(generator);
                schema.insert("description".to_owned(), $description.into());
                schema
            }
        }
    };
}

quantity_in_json!(Nanos, u64, "A duration in nanoseconds.");
quantity_in_json!(Ratio, f64, "A ratio; `1%` is 0.01.");

impl Ratio {
    /// Whether it is nothing at all.
    pub fn is_zero(&self) -> bool {
        self.0 == 0.0
    }

    /// Whether it is more than nothing and less than all, as margins, tolerances and confidences are.
    pub fn is_proper(&self) -> bool {
        self.0 > 0.0 && self.0 < 1.0
    }
}

impl FromStr for Ratio {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const WHAT: &str = "ratio";
        const EXAMPLE: &str = "`1%` or `0.01`";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        match unit.as_str() {
            "%" => Ok(Ratio(number / 100.0)),
            "" => Ok(Ratio(number)),
            _ => Err(QuantityError::Malformed { text: text.trim().to_owned(), what: WHAT, example: EXAMPLE }),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Twelve decimals hide the binary remainder of percentages without losing any that a person would write.
        let percent = format!("{:.12}", self.0 * 100.0);
        write!(f, "{}%", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Binary and decimal units; the binary ones are those that [`Bytes`] prints.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("B", 1),
];

impl FromStr for Bytes {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        const WHAT: &str = "size";
        const EXAMPLE: &str = "`64MiB` or `2GiB`";
        let (number, unit) = split(text, WHAT, EXAMPLE)?;
        let Some((_, scale)) = SIZES.iter().find(|(name, _)| *name == unit) else {
            return Err(QuantityError::Malformed { text: text.trim().to_owned(), what: WHAT, example: EXAMPLE });
        };
        let bytes = (number * *scale as f64).round();
        if bytes >= u64::MAX as f64 {
            return Err(QuantityError::TooLarge { text: text.trim().to_owned(), what: WHAT });
        }
        Ok(Bytes(bytes as u64))
    }
}

/// The shortest text that reads back as the same size: `64MiB`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, size): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*size);
        match SIZES[..4].iter().find(whole) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => write!(f, "{}B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print() {
        for (text, nanos) in
            [("200ms", 200_000_000), ("3s", 3_000_000_000), ("10m", 600_000_000_000), ("1.5us", 1_500), ("0s", 0)]
        {
            assert_eq!(text.parse::<Nanos>(), Ok(Nanos(nanos)));
        }
        assert_eq!(Nanos(200_000_000).to_string(), "200ms");
        assert_eq!(Nanos(90_000_000_000).to_string(), "90s");
        assert_eq!(Nanos(600_000_000_000).to_string(), "10m");
        assert_eq!(Nanos(0).to_string(), "0ns");
    }

    #[test]
    fn negative_and_unknown_durations_are_errors() {
        assert!(matches!("-5s".parse::<Nanos>(), Err(QuantityError::Negative { .. })));
        assert!(matches!("5 weeks".parse::<Nanos>(), Err(QuantityError::Malformed { .. })));
        assert!(matches!("5".parse::<Nanos>(), Err(QuantityError::Malformed { .. })));
        assert!(matches!("99999999999h".parse::<Nanos>(), Err(QuantityError::TooLarge { .. })));
    }

    #[test]
    fn sizes_read_and_print() {
        for (text, bytes) in [("64MiB", 64 << 20), ("1.5GiB", 3 << 29), ("2MB", 2_000_000), ("7B", 7)] {
            assert_eq!(text.parse::<Bytes>(), Ok(Bytes(bytes)));
        }
        assert_eq!(Bytes(64 << 20).to_string(), "64MiB");
        assert_eq!(Bytes(2_000_000).to_string(), "2000000B");
        assert_eq!(Bytes(0).to_string(), "0B");
        assert!(matches!("64".parse::<Bytes>(), Err(QuantityError::Malformed { .. })));
        assert!(matches!("64mb".parse::<Bytes>(), Err(QuantityError::Malformed { .. })));
        assert!(matches!("-1MiB".parse::<Bytes>(), Err(QuantityError::Negative { .. })));
    }

    #[test]
    fn ratios_read_and_print() {
        assert_eq!("1%".parse::<Ratio>(), Ok(Ratio(0.01)));
        assert_eq!("0.95".parse::<Ratio>(), Ok(Ratio(0.95)));
        assert_eq!(Ratio(0.07).to_string(), "7%");
        assert_eq!(Ratio(0.025).to_string(), "2.5%");
    }
}
