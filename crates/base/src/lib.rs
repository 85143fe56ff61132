//! Words that most packages use: quantities, metrics, codes, and texts made safe to show; and the machine: what it is, what it
//! does meanwhile, and what its clock costs. What is unknown is `None`.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod code;
pub mod conflict;
pub mod machine;
pub mod metric;
pub mod name;
pub mod printable;
pub mod privacy;
pub mod quantity;
pub mod wording;
