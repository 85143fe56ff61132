//! What a run used and what it met on the machine.
//!
//! [`usage()`] and [`own`] are read by a worker about itself, [`machine`] by the parent around a worker; [`check`] says what
//! of a machine would spoil a measurement, and [`cooldown`] waits for a processor that is too hot. Everything is read
//! from the kernel's text files, relative to a root. What cannot be read is `None`, never zero and never an error.
//! Deliberately absent: changes of any setting.

pub mod check;
mod control_group;
pub mod cooldown;
pub mod machine;
pub mod own;
mod pressure;
mod processors;
mod threads;
mod usage;

pub use machine::MachineState;
pub use own::{OwnState, OwnTotals};
pub use usage::{Usage, peak_resident_bytes, usage};

/// Later minus earlier, where both are known; counters that were reset count from zero.
fn risen(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}
