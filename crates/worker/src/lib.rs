//! One run in one fresh process: the protocol, the child that speaks it, and the parent that listens.
//!
//! The parent sleeps on the pipe while the child measures. A crash, a kill or a hang of the child is one failed run.
//! Neither side trusts the other: which answers belong to which command stands in one table, which both hold on to, and
//! what a worker says is taken in only where it fits. Parent: [`run`] is one run from start to end, [`WorkerSession`]
//! one of several at a time. Child: [`child::serve`].

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod activation_ranges;
mod affinity;
pub mod backend;
mod batches;
pub mod child;
pub mod command;
mod driven;
mod evaluate;
pub mod exit;
mod expected;
mod group;
pub mod interrupt;
mod lines;
mod loaded;
pub mod lock;
mod log;
pub mod measure;
mod outputs;
mod parent;
mod pipe;
pub mod printed;
mod process;
pub mod protocol;
mod result;
mod session;
mod validator;
pub mod variables;

pub use batches::{Data, Feed};
pub use interrupt::Interrupts;
pub use outputs::{read_outputs, read_outputs_again};
pub use parent::{RunPlan, run};
pub use pipe::Ended;
pub use process::Launch;
pub use protocol::Afterwards;
pub use result::{RunData, WorkerRun};
pub use session::{StoppedAtOnce, WorkerSession};
pub use validator::overhear;
