//! perfrun from the outside, in one binary: linking polars once is enough.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unreachable_pub,
    missing_docs,
    reason = "tests may panic and print"
)]

mod ab;
mod acceptance;
mod accuracy;
mod action;
mod bisect;
mod by_need;
mod calibrate;
mod check_it_yourself;
mod choosing;
mod cli;
mod conversions;
mod decoders;
mod dependencies;
mod designs;
mod devices;
mod diff;
mod docs;
mod documented;
mod ending;
mod foreign_text;
mod holding;
mod inputs;
mod judging;
mod keeping;
mod limits;
mod load;
mod memory;
mod monitors;
mod need;
mod onnxruntime;
mod own_metrics;
mod parallel;
mod pipeline;
mod planted;
mod profile;
mod programs;
mod records;
mod references;
mod report;
mod results;
mod runtimes;
mod screens;
mod search;
mod sharing;
mod site;
mod spec;
mod stat;
mod submit;
mod support;
mod system;
mod templates;
mod tidy;
mod variants;
mod worker;
