//! What executions of a command print of the specification's metrics.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::process::Stdio;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::printed::numbers;
use base::metric::OwnMetric;
use statistics::quantile::median;

/// Bytes that are looked at, at the end: numbers come last.
const LOOKED_AT: u64 = 1 << 20;

/// Standard output of one execution after the other, in memory, and what was found in it.
#[derive(Debug)]
pub(super) struct Printed {
    file: File,
    wanted: Vec<&'static str>,
    /// The executions count.
    pub(super) counts: bool,
    values: BTreeMap<&'static str, Vec<f64>>,
}

impl Printed {
    pub(super) fn of(metrics: &[OwnMetric]) -> io::Result<Self> {
        let file = File::from(memfd_create("printed", MemfdFlags::CLOEXEC)?);
        let wanted = metrics.iter().map(|own| own.metric.stem()).collect();
        Ok(Printed { file, wanted, counts: false, values: BTreeMap::new() })
    }

    pub(super) fn stdout(&self) -> io::Result<Stdio> {
        self.file.try_clone().map(Stdio::from)
    }

    /// Takes what the last execution printed, and makes room for the next.
    ///
    /// # Errors
    ///
    /// What no run can have, in words.
    pub(super) fn take(&mut self) -> Result<(), String> {
        let text = self.text().map_err(|error| format!("what the command printed: {error}"))?;
        for (name, found) in numbers(&text, &self.wanted) {
            match found?.as_slice() {
                [value] if *value < 0.0 => {
                    return Err(format!("the command printed {value} for `{name}`, which cannot be negative"));
                }
                [value] if self.counts => self.values.entry(name).or_default().push(*value),
                [_] => {}
                several => return Err(format!("the command printed {} numbers for `{name}`", several.len())),
            }
        }
        Ok(())
    }

    fn text(&mut self) -> io::Result<String> {
        let length = self.file.metadata()?.len();
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(length.saturating_sub(LOOKED_AT)))?;
        self.file.read_to_end(&mut bytes)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The median over the executions that count.
    ///
    /// # Errors
    ///
    /// As [`Printed::take`].
    pub(super) fn medians(&mut self) -> Result<BTreeMap<String, f64>, String> {
        self.take()?;
        let of = |(name, values): (&&str, &Vec<f64>)| Some(((*name).to_owned(), median(values)?));
        Ok(self.values.iter().filter_map(of).collect())
    }
}
