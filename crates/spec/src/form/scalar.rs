//! The texts that a spec is made of: names, durations, ratios, settings of any scalar type.
//!
//! They stay text here; `expand` reads them, where it can say at which place one is wrong. Every pattern stands in the
//! schema, so that an editor knows it too.

use schemars::json_schema;
use serde::{Deserialize, Serialize};

use super::shorthand::described;

/// What every name looks like: it becomes part of file names, addresses and tables.
pub(crate) const NAME_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/// A number and a unit of time.
pub(crate) const DURATION_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|min|h)$";

/// A number, in percent or not.
pub(crate) const RATIO_PATTERN: &str = r"^[0-9]+(\.[0-9]+)?%?$";

/// Arrivals by a rule, or a file of times.
pub(crate) const ARRIVALS_PATTERN: &str = r"^(poisson|constant|.+\.(csv|txt))$";

/// Queries a second, a minute or an hour, or the largest that keeps a bound.
pub(crate) const RATE_PATTERN: &str = r"^([0-9]+(\.[0-9]+)?(/s|/min|/h)?|largest)$";

/// A SHA-256 in hexadecimal digits.
pub(crate) const SHA256_PATTERN: &str = "^[0-9a-fA-F]{64}$";

/// What the shell calls an environment variable.
pub(crate) const VARIABLE_PATTERN: &str = "^[A-Za-z_][A-Za-z0-9_]*$";

/// The largest size of a dimension that any runtime takes without overflow on the way.
pub(crate) const LARGEST_DIMENSION: u64 = i32::MAX as u64;

macro_rules! text {
    ($(#[$documentation:meta])* $type:ident, $name:literal, $schema:tt) => {
        $(#[$documentation])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub(crate) struct $type(pub(crate) String);

        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                $type(text.to_owned())
            }
        }

        described!($type, $name, |_| json_schema!($schema));
    };
}

text!(
    /// A name of the author's own.
    Name,
    "name",
    {
        "description": "Letters, digits, `.`, `_` and `-`; begins with a letter or a digit; at most 64 characters.",
        "type": "string",
        "pattern": NAME_PATTERN,
    }
);

text!(
    /// A rate of queries.
    RateText,
    "rate",
    {
        "description": "Queries a second (`50/s`, or `50`), a minute (`/min`) or an hour (`/h`); `largest` is found.",
        "type": ["string", "number"],
        "pattern": RATE_PATTERN,
        "examples": ["50/s", "largest"],
    }
);

text!(
    /// When queries come at a rate.
    ArrivalsText,
    "arrivals",
    {
        "description": "`poisson`, `constant`, or a file of times in seconds, one on each line or in the first column of a CSV file.",
        "type": "string",
        "pattern": ARRIVALS_PATTERN,
        "examples": ["poisson", "constant", "trace.csv"],
    }
);

text!(
    /// A metric with the statistic that is meant.
    MetricText,
    "metric",
    {
        "description": "A metric's name, and for latency a statistic after a dot. \
                        Without one it is the median.",
        "type": "string",
        "minLength": 1,
        "examples": ["latency", "latency.p95", "peak_rss"],
    }
);

text!(
    /// A value in the unit of a metric.
    BoundText,
    "quantity",
    {
        "description": "A value in the metric's own unit: a duration for times (`20ms`), a size for memory (`64MiB`), \
                        a plain number for rates (`100`, a second), a ratio for ratios (`1.5` or `150%`).",
        "type": ["string", "number"],
        "minLength": 1,
        "examples": ["20ms", "64MiB", 100, 1.5],
    }
);

text!(
    /// A difference between two values of a metric.
    DifferenceText,
    "difference",
    {
        "description": "Relative (`5%`), in percentage points of a share (`0.5pp`), or a value of the metric (`1MiB`, `2ms`).",
        "type": ["string", "number"],
        "minLength": 1,
        "examples": ["5%", "0.5pp", "1MiB"],
    }
);

text!(
    /// Where standard output goes.
    StdoutText,
    "stdout",
    {
        "description": "`null`, `pipe`, `inherit`, or the name of a file below `stdout/` in the record's folder.",
        "type": "string",
        "pattern": NAME_PATTERN,
        "examples": ["pipe", "null"],
    }
);

text!(
    /// A SHA-256.
    Sha256Text,
    "sha256",
    {
        "description": "SHA-256 in 64 hexadecimal digits.",
        "type": "string",
        "pattern": SHA256_PATTERN,
    }
);

text!(
    /// A setting that is handed on as text whatever it looks like.
    Setting,
    "setting",
    {
        "description": "Any scalar; it is handed on as it is written.",
        "type": ["string", "number", "boolean"],
    }
);

text!(
    /// A name or a glob in a selector.
    Pattern,
    "pattern",
    {
        "description": "A name, or a glob: `*` any characters, `?` one, `{a,b}` either.",
        "type": ["string", "number"],
        "minLength": 1,
    }
);

text!(
    /// A size, or the name of one.
    DimensionText,
    "dimension",
    {
        "description": "A size, or a name that stands for one.",
        "type": ["integer", "string"],
        "minimum": 1,
        "minLength": 1,
    }
);

text!(
    /// The type of a tensor's elements.
    ElementText,
    "element",
    {
        "description": "Type of the elements.",
        "type": "string",
        "enum": ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"],
    }
);

/// The size of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct DimensionSize(pub(crate) u64);

described!(DimensionSize, "size", |_| {
    json_schema!({
        "description": "Size of a dimension.",
        "type": "integer",
        "minimum": 0,
        "maximum": LARGEST_DIMENSION,
    })
});
