//! What executions of a command print: the specification's metrics, and how much it is.

use std::collections::BTreeMap;

use super::output::ExecutionOutput;
use crate::printed::numbers;
use base::metric::{OwnMetric, STDOUT, STDOUT_LEAST, STDOUT_READ};
use statistics::quantile::median;

/// What was found in the output of one execution after the other.
#[derive(Debug)]
pub(super) struct Printed {
    wanted: Vec<&'static str>,
    /// The executions count.
    pub(super) counts: bool,
    values: BTreeMap<&'static str, Vec<f64>>,
    /// The least and the most that an execution printed.
    bytes: Option<(u64, u64)>,
    nanos: u64,
    executions: u32,
}

impl Printed {
    pub(super) fn of(metrics: &[OwnMetric]) -> Self {
        let wanted = metrics.iter().map(|declared| declared.metric.stem()).collect();
        Printed { wanted, counts: false, values: BTreeMap::new(), bytes: None, nanos: 0, executions: 0 }
    }

    /// Takes what an execution printed.
    ///
    /// # Errors
    ///
    /// What no run can have, in words.
    pub(super) fn take(&mut self, output: &ExecutionOutput) -> Result<(), String> {
        for (name, found) in numbers(&String::from_utf8_lossy(&output.end), &self.wanted) {
            match found?.as_slice() {
                [value] if *value < 0.0 => {
                    return Err(format!("the command printed {value} for `{name}`, which cannot be negative"));
                }
                [value] if self.counts => self.values.entry(name).or_default().push(*value),
                [_] => {}
                several => return Err(format!("the command printed {} numbers for `{name}`", several.len())),
            }
        }
        if self.counts {
            let (least, most) = self.bytes.unwrap_or((output.bytes, output.bytes));
            self.bytes = Some((least.min(output.bytes), most.max(output.bytes)));
            self.nanos += output.nanos;
            self.executions += 1;
        }
        Ok(())
    }

    /// Of the executions that count: the median of each metric, and how much they printed.
    pub(super) fn metrics(&self) -> BTreeMap<String, f64> {
        let median_of = |(name, values): (&&str, &Vec<f64>)| Some(((*name).to_owned(), median(values)?));
        let mut metrics: BTreeMap<String, f64> = self.values.iter().filter_map(median_of).collect();
        if let Some((least, most)) = self.bytes {
            let each = self.nanos as f64 / f64::from(self.executions.max(1));
            let sizes = [(STDOUT, most as f64), (STDOUT_LEAST, least as f64), (STDOUT_READ, each)];
            metrics.extend(sizes.map(|(metric, value)| (metric.name.to_owned(), value)));
        }
        metrics
    }
}
