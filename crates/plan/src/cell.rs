//! One point of the matrix.

use serde::{Deserialize, Serialize};

use super::CellId;
use experiment::{DeviceIndex, InputIndex, ModelIndex, Point, RuntimeIndex, VariantIndex};

/// One point of the matrix. Indices point into the axes of the [`super::Plan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Identity across records: a hash of the names.
    pub id: CellId,
    /// Indices on the axes.
    #[serde(flatten)]
    pub at: Point,
    /// Index into [`super::Plan::groups`].
    pub group: u32,
    /// Index into [`super::Plan::skips`], if this cell is not to be run.
    pub skip: Option<u32>,
}

impl Cell {
    pub fn model(&self) -> ModelIndex {
        ModelIndex::of(&self.at)
    }

    /// Index of its input among [`super::Plan::inputs`].
    pub fn input(&self) -> InputIndex {
        InputIndex::of(&self.at)
    }

    pub fn variant(&self) -> VariantIndex {
        VariantIndex::of(&self.at)
    }

    pub fn device(&self) -> DeviceIndex {
        DeviceIndex::of(&self.at)
    }

    /// Index of its runtime; the first where the specification leaves the one to perfrun.
    pub fn runtime(&self) -> RuntimeIndex {
        RuntimeIndex::of(&self.at)
    }

    /// Whether another cell is this one but for its input.
    pub fn differs_in_input_alone(&self, other: &Cell) -> bool {
        self.at.without_input() == other.at.without_input()
    }
}
