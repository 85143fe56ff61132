//! Words that every package uses: quantities, metrics, codes, and texts made safe to show; and the machine: what it is, what it
//! does meanwhile, and what its clock costs. What is unknown is `None`.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod machine;

pub mod quantity;

pub mod wording;

pub mod printable;

pub mod name;

pub mod privacy;

pub mod conflict;

pub mod metric;

pub mod code;
