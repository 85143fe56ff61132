//! How many fresh processes a cell gets: a number, or as many as its comparisons need between two bounds (method 4.6).

use serde::{Deserialize, Serialize};

use statistics::interim::InterimAnalyses;

/// Fresh processes for each cell. A fixed number is stored as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Runs {
    /// Never fewer.
    pub min: u32,
    /// Never more; the same where the number is fixed.
    pub max: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Fixed(u32),
    Word(Auto),
    ByNeed {
        #[serde(default = "least")]
        min: u32,
        #[serde(default = "most")]
        max: u32,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Auto {
    Auto,
}

fn least() -> u32 {
    Runs::AUTO.min
}

fn most() -> u32 {
    Runs::AUTO.max
}

impl Runs {
    /// More than this are a slip.
    pub const MOST: u32 = 100_000;

    /// What `auto` means.
    pub const AUTO: Runs = Runs { min: 8, max: 32 };

    pub fn fixed(number: u32) -> Self {
        Runs { min: number, max: number }
    }

    /// Whether nothing depends on what is found.
    pub fn are_fixed(self) -> bool {
        self.min >= self.max
    }

    /// When comparisons are looked at.
    pub fn interim_analyses(self) -> InterimAnalyses {
        InterimAnalyses::new(self.min, self.max)
    }
}

impl Default for Runs {
    fn default() -> Self {
        Runs::AUTO
    }
}

/// `10`, `8 to 32`.
impl std::fmt::Display for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.are_fixed() { write!(f, "{}", self.max) } else { write!(f, "{} to {}", self.min, self.max) }
    }
}

impl From<Written> for Runs {
    fn from(written: Written) -> Self {
        match written {
            Written::Fixed(number) => Runs::fixed(number),
            Written::Word(Auto::Auto) => Runs::AUTO,
            Written::ByNeed { min, max } => Runs { min, max },
        }
    }
}

impl From<Runs> for Written {
    fn from(Runs { min, max }: Runs) -> Self {
        if min >= max { Written::Fixed(max) } else { Written::ByNeed { min, max } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fixed_number_is_stored_as_a_number() {
        for (runs, stored) in [(Runs::fixed(10), json!(10)), (Runs::AUTO, json!({ "min": 8, "max": 32 }))] {
            assert_eq!(json!(runs), stored);
            assert_eq!(serde_json::from_value::<Runs>(stored).ok(), Some(runs));
        }
        assert_eq!((Runs::AUTO.to_string(), Runs::fixed(3).to_string()), ("8 to 32".to_owned(), "3".to_owned()));
    }
}
