//! Words and units that every other room uses: quantities, metrics, codes, and texts made safe to show.

pub mod quantity;

pub mod printable;

pub mod privacy;

pub(crate) mod nearest;

pub mod metric;

pub mod code;
