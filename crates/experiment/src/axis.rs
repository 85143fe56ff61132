//! The axes of the matrix: everything that is said of each, once.
//!
//! Adding an axis begins here, with its variant and its row of [`FACTS`]. What treats axes alike goes over
//! [`Axis::ALL`]; what treats one otherwise asks for a fact, and few files name one (`tests/it/tidy.rs` lists them).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the matrix multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "axis")]
pub enum Axis {
    /// `models`
    Models,
    /// `inputs`
    Inputs,
    /// `variants`
    Variants,
    /// `devices`
    Devices,
    /// `runtimes`
    Runtimes,
}

/// What is said of an axis.
struct Facts {
    /// The word for one entry, as selectors, tables, results and ids have it.
    singular: &'static str,
    /// The key of the specification and of a stored plan.
    plural: &'static str,
    /// What its entries go by.
    called: &'static str,
    /// What its key in a selector selects.
    selects: &'static str,
    /// Its turn where nothing says what is compared: the first axis that has more than one entry; `None`: not unasked.
    compared: Option<u8>,
    /// It says what is run; the others say how.
    is_workload: bool,
    /// Names contain it even where it is the same for all.
    is_always_told: bool,
    /// Its entries have dimensions, by which selectors name them too.
    has_dimensions: bool,
    /// A specification may leave it out; it has no entries then, and its label is [`Axis::ABSENT`].
    may_be_absent: bool,
    /// It is part of every cell's id and of what is written of a cell, absent or not. Not so for an axis that is added:
    /// ids are for ever, and what a specification without it gives stays as it is.
    is_always_written: bool,
}

/// What is true of an axis where its row says nothing else.
const USUAL: Facts = Facts {
    singular: "",
    plural: "",
    called: "Name",
    selects: "",
    compared: None,
    is_workload: false,
    is_always_told: false,
    has_dimensions: false,
    may_be_absent: false,
    is_always_written: true,
};

/// In the order of [`Axis::ALL`].
const FACTS: [Facts; Axis::ALL.len()] = [
    Facts {
        singular: "model",
        plural: "models",
        selects: "Names of models.",
        compared: Some(3),
        is_workload: true,
        is_always_told: true,
        ..USUAL
    },
    Facts {
        singular: "input",
        plural: "inputs",
        selects: "Names of inputs.",
        is_workload: true,
        has_dimensions: true,
        ..USUAL
    },
    Facts { singular: "variant", plural: "variants", selects: "Names of variants.", compared: Some(1), ..USUAL },
    Facts {
        singular: "device",
        plural: "devices",
        called: "Label",
        selects: "Devices; `cuda` selects every `cuda:N`.",
        compared: Some(4),
        ..USUAL
    },
    Facts {
        singular: "runtime",
        plural: "runtimes",
        selects: "Names of runtimes.",
        compared: Some(2),
        may_be_absent: true,
        ..USUAL
    },
];

impl Axis {
    /// Every axis, in plan order.
    pub const ALL: [Axis; 5] = [Axis::Models, Axis::Inputs, Axis::Variants, Axis::Devices, Axis::Runtimes];

    /// The label of an axis that the specification leaves out.
    pub const ABSENT: &str = "-";

    /// The words for one entry, in plan order.
    pub const SINGULARS: [&str; Axis::ALL.len()] = Axis::words(false);

    /// The keys of the specification, in plan order.
    pub(crate) const PLURALS: [&str; Axis::ALL.len()] = Axis::words(true);

    const fn words(are_plural: bool) -> [&'static str; Axis::ALL.len()] {
        let mut words = [""; Axis::ALL.len()];
        let mut index = 0;
        while index < words.len() {
            words[index] = if are_plural { FACTS[index].plural } else { FACTS[index].singular };
            index += 1;
        }
        words
    }

    fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// The word for one entry of the axis, as selectors and tables use it.
    pub fn singular(self) -> &'static str {
        self.facts().singular
    }

    /// The key of the specification.
    pub fn plural(self) -> &'static str {
        self.facts().plural
    }

    /// What its entries go by: `Name`, `Label`.
    pub fn called(self) -> &'static str {
        self.facts().called
    }

    /// What its key in a selector selects: a sentence.
    pub fn selects(self) -> &'static str {
        self.facts().selects
    }

    /// Whether it is what is compared where nothing says it, if it has several entries.
    pub fn is_compared_first(self) -> bool {
        Axis::compared_unasked().first() == Some(&self)
    }

    /// Whether it says what is run, not how.
    pub fn is_workload(self) -> bool {
        self.facts().is_workload
    }

    /// Whether names contain it even where it is the same for all.
    pub fn is_always_told(self) -> bool {
        self.facts().is_always_told
    }

    /// Whether selectors name its entries by their dimensions too.
    pub fn has_dimensions(self) -> bool {
        self.facts().has_dimensions
    }

    /// Whether a specification may leave it out.
    pub fn may_be_absent(self) -> bool {
        self.facts().may_be_absent
    }

    /// Whether it is part of the id of a cell, and of what is written of it, where the specification leaves it out.
    pub fn is_always_written(self) -> bool {
        self.facts().is_always_written
    }

    pub fn of_singular(word: &str) -> Option<Self> {
        Axis::ALL.into_iter().find(|axis| axis.singular() == word)
    }

    pub fn of_plural(key: &str) -> Option<Self> {
        Axis::ALL.into_iter().find(|axis| axis.plural() == key)
    }

    /// Where nothing says what is compared, the first of these that has more than one entry.
    pub fn compared_unasked() -> Vec<Axis> {
        let mut axes: Vec<Axis> = Axis::ALL.into_iter().filter(|axis| axis.facts().compared.is_some()).collect();
        axes.sort_by_key(|axis| axis.facts().compared);
        axes
    }
}

/// What is of one axis: its entries, and indices that lead to them.
pub trait OnAxis {
    const AXIS: Axis;
}

/// What an axis is made of.
pub trait Entry: OnAxis {
    /// Its name among the others, or its label.
    fn label(&self) -> String;
}

/// The names of entries, in their order.
pub fn labels<T: Entry>(entries: &[T]) -> Vec<String> {
    entries.iter().map(Entry::label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_stand_in_plan_order_and_words_are_unique() {
        for (index, axis) in Axis::ALL.into_iter().enumerate() {
            assert_eq!(axis as usize, index);
            assert_eq!(serde_json::to_value(axis).ok(), Some(axis.plural().into()));
            assert_eq!(Axis::of_singular(axis.singular()), Some(axis));
        }
    }

    #[test]
    fn what_is_compared_unasked_has_an_order() {
        let first = [Axis::Variants, Axis::Runtimes, Axis::Models, Axis::Devices];
        assert_eq!(Axis::compared_unasked()[..first.len()], first);
    }
}
