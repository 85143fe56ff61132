//! What a file of a benchmark tool holds, however it is written.

use std::collections::HashMap;

use serde::Serialize;

use super::problem::{Fault, Refusal};
use super::{Series, Tool};

/// All that a file holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// Each benchmark, in the order of the file; bare numbers are one.
    pub series: Vec<Series>,
    /// What its tool could not measure, or not well.
    pub left_out: Vec<LeftOut>,
}

/// A benchmark that failed, in part or as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub benchmark: String,
    /// Why, in the tool's words.
    pub message: String,
    /// Whether it is among the series nevertheless.
    pub is_kept: bool,
}

impl Contents {
    /// Bare numbers.
    pub(super) fn of_numbers(series: Series) -> Self {
        Contents { series: vec![series], left_out: Vec::new() }
    }

    /// Takes the times of a benchmark, in nanoseconds.
    pub(super) fn add(&mut self, tool: Tool, name: Option<String>, times: Vec<f64>) -> Result<(), Refusal> {
        if let Some(fault) = times.iter().find_map(|time| Fault::of_value(*time)) {
            let fault = if fault == Fault::NotFinite { Fault::NotFiniteIn } else { Fault::ExtremeIn };
            return Err(Refusal::of_benchmark(name.as_deref().unwrap_or(tool.name()), fault));
        }
        match name {
            Some(name) if times.is_empty() => self.leave_out(name, "it has no times".to_owned()),
            name => self.series.push(Series::of_benchmark(tool, name, times)),
        }
        Ok(())
    }

    /// Takes the times of several benchmarks.
    pub(super) fn add_all(&mut self, tool: Tool, times: Times) -> Result<(), Refusal> {
        times.times.into_iter().try_for_each(|(name, times)| self.add(tool, Some(name), times))
    }

    /// Names a benchmark without a time once, however many repetitions of it failed.
    pub(super) fn leave_out(&mut self, benchmark: String, message: String) {
        if self.left_out.last().is_none_or(|last| last.benchmark != benchmark) {
            self.left_out.push(LeftOut { benchmark, message, is_kept: false });
        }
    }

    pub(super) fn set_machine(&mut self, machine: Option<&str>) {
        for series in &mut self.series {
            series.machine = machine.map(str::to_owned);
        }
    }
}

/// Times of several benchmarks, a row each, in any order.
#[derive(Default)]
pub(super) struct Times {
    /// Where each name is in `times`.
    index_of: HashMap<String, usize>,
    times: Vec<(String, Vec<f64>)>,
}

impl Times {
    pub(super) fn add(&mut self, name: String, time: f64) {
        let index = *self.index_of.entry(name.clone()).or_insert_with(|| {
            self.times.push((name, Vec::new()));
            self.times.len() - 1
        });
        self.times[index].1.push(time);
    }
}
