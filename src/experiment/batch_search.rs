//! A batch that is searched, in place of a size (method 7.4).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{BATCH, InputPoint};

/// Asks for the best batch of every cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchSearch {
    /// Nothing larger is tried.
    pub to: u64,
}

impl BatchSearch {
    /// The word for it, as specifications and selectors have it.
    pub(crate) const WORD: &str = "best";

    /// Nothing larger is tried unless a specification says so: throughput is flat long before.
    pub(crate) const MOST: u64 = 4096;
}

impl InputPoint {
    /// The point with this batch.
    pub(crate) fn with_batch(&self, batch: u64) -> InputPoint {
        let mut point = self.clone();
        point.dimensions.insert(BATCH.to_owned(), batch);
        point
    }

    /// The point as far as it is known before a search: with the first batch that is tried.
    pub(crate) fn before_search(&self) -> Cow<'_, InputPoint> {
        if self.search.is_some() { Cow::Owned(self.with_batch(1)) } else { Cow::Borrowed(self) }
    }

    /// Whether another point is this one but for its batch, and how large the two batches are.
    pub(crate) fn batches_beside(&self, other: &InputPoint) -> Option<(u64, u64)> {
        let (own, others) = (self.dimensions.get(BATCH)?, other.dimensions.get(BATCH)?);
        let name = self.name.clone();
        (self.with_batch(*others) == InputPoint { name, ..other.clone() }).then_some((*own, *others))
    }
}
