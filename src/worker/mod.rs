//! One run in one fresh process: the protocol, the child that speaks it, and the parent that listens.
//!
//! The parent sleeps on the pipe while the child measures. A crash, a kill or a hang of the child is one failed run.

pub mod child;
mod exit;
pub mod interrupt;
pub mod lock;
mod log;
pub mod parent;
pub mod protocol;

pub use interrupt::Interrupts;
pub use parent::{Launch, RunPlan, WorkerRun, run};
