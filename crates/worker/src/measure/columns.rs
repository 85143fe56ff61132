//! What columns of samples must be, whoever sends them: a worker is another program.

use std::ops::Range;

use super::Samples;

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Longer than any run may reasonably take, so a clock went astray or a number is none.
pub(crate) const LONGEST_SAMPLE_NS: u64 = DAY_NS;

/// A century: nobody waits for the time of a script, but sums of two such numbers must stay far from the end of 64 bits.
pub(crate) const LATEST_START_NS: u64 = 36_525 * DAY_NS;

/// Why columns cannot be samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnError {
    #[error("its columns differ in length: {starts} starts, {durations} durations, {inputs} inputs")]
    Lengths { starts: usize, durations: usize, inputs: usize },
    #[error("it has {found} times of the device or of a load for {samples} samples")]
    Optional { found: usize, samples: usize },
    #[error("sample {index} starts at {start} ns, before the end of the one before it")]
    Backwards {
        /// Which, from 0.
        index: usize,
        start: u64,
    },
    #[error("sample {index} has an absurd time: it starts at {start} ns and takes {duration} ns")]
    Absurd {
        /// Which, from 0.
        index: usize,
        start: u64,
        duration: u64,
    },
}

impl Samples {
    /// Checks that all columns have a value for each sample; those that not all samples have may be empty.
    ///
    /// # Errors
    ///
    /// Columns of different lengths.
    pub fn check_lengths(&self) -> Result<(), ColumnError> {
        let (starts, durations, inputs) = (self.start_ns.len(), self.duration_ns.len(), self.input.len());
        if starts != durations || inputs != durations {
            return Err(ColumnError::Lengths { starts, durations, inputs });
        }
        let found = self.optional().into_iter().map(Vec::len).find(|found| *found != 0 && *found != durations);
        found.map_or(Ok(()), |found| Err(ColumnError::Optional { found, samples: durations }))
    }

    /// Checks samples that were taken after those in `before`, the last of which ended at `last_end`.
    ///
    /// Under a load they may overlap, in the order in which they were due.
    ///
    /// # Errors
    ///
    /// Columns that are no samples, or not the continuation of those.
    pub(crate) fn check_after(&self, before: &Samples, last_end: u64, may_overlap: bool) -> Result<(), ColumnError> {
        self.check_lengths()?;
        for (column, before_it) in self.optional().into_iter().zip(before.optional()) {
            let fits = before.is_empty() || self.is_empty() || column.is_empty() == before_it.is_empty();
            if !fits {
                return Err(ColumnError::Optional { found: column.len(), samples: self.len() });
            }
        }
        let mut last = last_end;
        for (index, (start, duration)) in self.start_ns.iter().zip(&self.duration_ns).enumerate() {
            let (start, duration) = (*start, *duration);
            let optional = self.optional().into_iter().filter_map(|column| column.get(index));
            let longest = optional.copied().fold(duration, u64::max);
            if start > LATEST_START_NS || longest > LONGEST_SAMPLE_NS {
                return Err(ColumnError::Absurd { index, start, duration: longest });
            }
            if start < last {
                return Err(ColumnError::Backwards { index, start });
            }
            last = if may_overlap { start } else { start + duration };
        }
        Ok(())
    }

    /// The same samples in parts of at most `most`, one at a time: all of them at once would be as large again. A single
    /// part is no copy.
    pub fn parts(mut self, most: usize) -> impl Iterator<Item = Samples> {
        let count = self.len();
        (0..count).step_by(most).map(move |first| {
            if count <= most {
                return std::mem::take(&mut self);
            }
            self.rows(first..count.min(first + most))
        })
    }

    /// The samples with these indices, all of which exist.
    pub fn rows(&self, rows: Range<usize>) -> Samples {
        Samples {
            start_ns: self.start_ns[rows.clone()].to_vec(),
            duration_ns: self.duration_ns[rows.clone()].to_vec(),
            input: self.input[rows.clone()].to_vec(),
            device_ns: part(&self.device_ns, &rows),
            service_ns: part(&self.service_ns, &rows),
            late_ns: part(&self.late_ns, &rows),
            first_token_ns: part(&self.first_token_ns, &rows),
            gap_ns: part(&self.gap_ns, &rows),
        }
    }

    /// Keeps the first `count` samples and returns the rest, which may be empty.
    pub fn split_off(&mut self, count: usize) -> Samples {
        let count = count.min(self.len());
        let [device_ns, service_ns, late_ns, first_token_ns, gap_ns] =
            self.optional_mut().map(|column| column.split_off(count.min(column.len())));
        Samples {
            start_ns: self.start_ns.split_off(count),
            duration_ns: self.duration_ns.split_off(count),
            input: self.input.split_off(count),
            device_ns,
            service_ns,
            late_ns,
            first_token_ns,
            gap_ns,
        }
    }
}

/// Some rows of a column that may be empty.
fn part(column: &[u64], rows: &Range<usize>) -> Vec<u64> {
    column.get(rows.clone()).map_or(Vec::new(), <[u64]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(start_ns: &[u64], duration_ns: &[u64]) -> Samples {
        let input = vec![0; start_ns.len()];
        Samples { start_ns: start_ns.to_vec(), duration_ns: duration_ns.to_vec(), input, ..Samples::default() }
    }

    fn alone(samples: &Samples) -> Result<(), ColumnError> {
        samples.check_after(&Samples::default(), 0, false)
    }

    #[test]
    fn columns_of_one_length_in_the_order_of_time_are_samples() {
        assert_eq!(alone(&Samples::default()), Ok(()));
        assert_eq!(alone(&samples(&[0, 1, 1, 5], &[1, 0, 4, LONGEST_SAMPLE_NS])), Ok(()));
    }

    #[test]
    fn columns_that_differ_in_length_are_none() {
        let shorter = Samples { duration_ns: vec![1], ..samples(&[0, 1], &[1, 1]) };
        assert_eq!(alone(&shorter), Err(ColumnError::Lengths { starts: 2, durations: 1, inputs: 2 }));
        let without_input = Samples { input: Vec::new(), ..samples(&[0], &[1]) };
        assert_eq!(alone(&without_input), Err(ColumnError::Lengths { starts: 1, durations: 1, inputs: 0 }));
    }

    #[test]
    fn times_of_the_device_are_there_for_all_samples_or_none() {
        let with = Samples { device_ns: vec![1, 1], ..samples(&[0, 1], &[1, 1]) };
        let without = samples(&[2], &[1]);
        assert_eq!(alone(&with), Ok(()));
        assert_eq!(with.check_after(&with.clone(), 0, false), Ok(()));
        let half = Samples { device_ns: vec![1], ..with.clone() };
        assert_eq!(alone(&half), Err(ColumnError::Optional { found: 1, samples: 2 }));
        assert_eq!(without.check_after(&with, 1, false), Err(ColumnError::Optional { found: 0, samples: 1 }));
        assert_eq!(
            with.check_after(&samples(&[0], &[1]), 0, false),
            Err(ColumnError::Optional { found: 2, samples: 2 })
        );
        assert_eq!(Samples::default().check_after(&with, 1, false), Ok(()));
    }

    #[test]
    fn time_does_not_run_backwards_nor_away() {
        assert_eq!(alone(&samples(&[5, 4], &[1, 1])), Err(ColumnError::Backwards { index: 1, start: 4 }));
        assert_eq!(alone(&samples(&[5, 6], &[2, 1])), Err(ColumnError::Backwards { index: 1, start: 6 }));
        let later = samples(&[7], &[1]);
        assert_eq!(samples(&[5, 6], &[9, 9]).check_after(&Samples::default(), 5, true), Ok(()));
        assert!(samples(&[6, 5], &[9, 9]).check_after(&Samples::default(), 5, true).is_err());
        assert_eq!(
            later.check_after(&Samples::default(), 8, false),
            Err(ColumnError::Backwards { index: 0, start: 7 })
        );
        for (start, duration) in [(0, LONGEST_SAMPLE_NS + 1), (u64::MAX, 1), (LATEST_START_NS + 1, 1)] {
            let absurd = ColumnError::Absurd { index: 0, start, duration };
            assert_eq!(alone(&samples(&[start], &[duration])), Err(absurd));
        }
        let on_device = Samples { device_ns: vec![u64::MAX], ..samples(&[0], &[1]) };
        assert!(matches!(alone(&on_device), Err(ColumnError::Absurd { .. })));
    }

    #[test]
    fn the_loop_has_room_for_what_every_sample_has() {
        let room = Samples::with_capacity(9);
        assert!([&room.start_ns, &room.duration_ns, &room.device_ns].iter().all(|column| column.capacity() >= 9));
    }

    #[test]
    fn parts_together_are_the_whole() {
        let whole = Samples { device_ns: (0..7).collect(), ..samples(&[0, 1, 2, 3, 4, 5, 6], &[1; 7]) };
        let parts: Vec<Samples> = whole.clone().parts(3).collect();
        assert_eq!(parts.iter().map(Samples::len).collect::<Vec<_>>(), [3, 3, 1]);
        // A part that is cut off the front of a column keeps room for the whole.
        assert!(parts.iter().all(|part| part.start_ns.capacity() <= 3));
        let mut joined = Samples::default();
        parts.into_iter().for_each(|part| joined.append(part));
        assert_eq!(joined, whole);
        assert_eq!(whole.clone().parts(7).collect::<Vec<_>>(), [whole]);
        assert_eq!(Samples::default().parts(3).count(), 0);
    }
}
