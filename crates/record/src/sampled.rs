//! The samples of one run with what is needed to read them: how many iterations each holds, which are late warm-up, and
//! where slices begin.

use std::borrow::Cow;
use std::ops::Range;

use worker::measure::Samples;

/// The samples of a run, borrowed from it or read from its file.
#[derive(Clone, Debug)]
pub struct Sampled<'a> {
    pub iterations: u32,
    /// Counted samples at the beginning that turned out to be warm-up still.
    pub late_warmup: u32,
    /// Counted samples of each slice; empty where they were not cut.
    pub(crate) slices: &'a [u32],
    /// Samples before the counted ones.
    pub warmup: Cow<'a, Samples>,
    /// Counted samples, late warm-up included.
    pub measured: Cow<'a, Samples>,
}

impl Sampled<'_> {
    /// Durations of the samples that statistics use, per iteration, in nanoseconds.
    pub fn durations(&self) -> impl Iterator<Item = f64> + '_ {
        let iterations = f64::from(self.iterations.max(1));
        self.measured.duration_ns.iter().skip(self.late_warmup as usize).map(move |total| *total as f64 / iterations)
    }

    /// Where each slice lies among the counted samples, without what is late warm-up; all of them are one slice where
    /// they were not cut. What a damaged file has too many or too few of is left out.
    fn slice_ranges(&self) -> Vec<Range<usize>> {
        let all = self.measured.len();
        let first = (self.late_warmup as usize).min(all);
        let whole = [all as u32];
        let lengths = if self.slices.is_empty() { &whole[..] } else { self.slices };
        let ranges = lengths.iter().scan(0_usize, |end, length| {
            let start = *end;
            *end = end.saturating_add(*length as usize);
            Some(start.clamp(first, all)..(*end).clamp(first, all))
        });
        ranges.collect()
    }

    /// [`Sampled::durations`] by slice; a slice that is late warm-up as a whole is empty.
    pub fn slice_durations(&self) -> Vec<Vec<f64>> {
        let iterations = f64::from(self.iterations.max(1));
        let durations = |range: Range<usize>| {
            let totals = self.measured.duration_ns.get(range).unwrap_or_default();
            totals.iter().map(|total| *total as f64 / iterations).collect()
        };
        self.slice_ranges().into_iter().map(durations).collect()
    }

    /// Time in which the samples that statistics use were taken, from the first to the last of each slice, gaps
    /// between samples included and slices of other workers excluded, in nanoseconds.
    pub fn active_ns(&self) -> u64 {
        self.slice_ranges().into_iter().map(|range| self.measured.part_span_ns(range)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled<'a>(durations: &[u64], slices: &'a [u32], late_warmup: u32) -> Sampled<'a> {
        // A tenth of a microsecond between samples.
        let starts = durations.iter().scan(0, |start, duration| {
            let begin = *start;
            *start += duration + 100;
            Some(begin)
        });
        let (start_ns, duration_ns) = (starts.collect(), durations.to_vec());
        let measured = Samples { start_ns, duration_ns, input: vec![0; durations.len()], ..Samples::default() };
        Sampled { iterations: 2, late_warmup, slices, warmup: Cow::default(), measured: Cow::Owned(measured) }
    }

    #[test]
    fn slices_leave_out_late_warm_up_and_the_time_between_them() {
        let run = sampled(&[40, 20, 20, 30, 30], &[2, 1, 2], 1);
        assert_eq!(run.slice_durations(), [vec![10.0], vec![10.0], vec![15.0, 15.0]]);
        assert_eq!(run.active_ns(), 20 + 20 + (30 + 100 + 30));
        assert!(run.slice_durations().concat().into_iter().eq(run.durations()));
    }

    #[test]
    fn samples_that_are_not_cut_are_one_slice() {
        let whole = sampled(&[40, 20, 20], &[], 1);
        assert_eq!((whole.slice_durations(), whole.active_ns()), (vec![vec![10.0, 10.0]], 140));
        assert_eq!(sampled(&[], &[], 0).active_ns(), 0);
    }

    #[test]
    fn slices_of_a_damaged_file_stay_within_its_samples() {
        let run = sampled(&[40, 20], &[1, u32::MAX, 7], 0);
        assert_eq!(run.slice_durations(), [vec![20.0], vec![10.0], vec![]]);
    }
}
