//! Names of a graph: those that are taken, and new ones.

use std::collections::HashSet;

/// The names that something has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    /// Takes a name that nothing has yet: `base`, else `base_2`, `base_3` ...
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 1_u64;
        while !self.0.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// A name that is there already.
    pub(crate) fn take(&mut self, name: &str) {
        self.0.insert(name.to_owned());
    }
}

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Names(names.into_iter().collect())
    }
}
