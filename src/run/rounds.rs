//! How long members that take turns go on: the stopping rule of a run, over slices (method 3 and 4.2).
//!
//! Every member gets the same number of rounds. They end when every member is satisfied, or when one has used up the
//! time or the samples that a run may take. Rounds come in pairs, there and back, which cancels a drift within the
//! group.

use base::quantity::Nanos;
use experiment::{PrecisionStop, SamplesStop, Stop, TimeStop};
use worker::measure::stop::{StopReason, Stopping};

/// The bounds of the next slice, the same for every member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceBounds {
    pub(super) time: Nanos,
    /// Most samples of it.
    pub(super) samples: u32,
}

/// What one member has gathered.
#[derive(Debug)]
pub(super) struct Progress {
    stopping: Stopping,
    /// Time in which it was the one that ran.
    active: Nanos,
    taken: usize,
    reason: Option<StopReason>,
}

/// The rounds of one group.
#[derive(Debug)]
pub(super) struct Rounds {
    rule: Stop,
    /// Length of a slice.
    slice: Nanos,
    /// Rounds over which a number of samples is spread, where the rule asks for one and the members need not end a
    /// slice together.
    planned: Option<u32>,
    /// Rounds that are over.
    done: u32,
}

impl Progress {
    /// Before the first slice.
    pub(super) fn new(rule: Stop) -> Self {
        Progress { stopping: Stopping::new(rule), active: Nanos(0), taken: 0, reason: None }
    }

    /// Takes in a slice: all durations so far, the last `added` of which it took in `span`.
    pub(super) fn add(&mut self, bounds: SliceBounds, durations: &[u64], added: u32, span: Nanos) {
        // A slice that was not ended by its number of samples lasted its time, whatever lies before its first sample.
        let lasted = if added < bounds.samples { span.max(bounds.time) } else { span };
        self.active = Nanos(self.active.0.saturating_add(lasted.0));
        self.taken = durations.len();
        if self.reason.is_none() {
            self.reason = self.stopping.check(durations, self.active.0);
        }
    }

    /// Why this member ends, when its group does: where it was still wanting, the group's time was up.
    pub(super) fn reason(&self) -> StopReason {
        self.reason.unwrap_or(StopReason::TimeLimit)
    }
}

impl Rounds {
    /// Rounds of slices of `slice_time`, or shorter where a run is to take less than two.
    ///
    /// `slowest` is the longest sample of any member, if slices of equally many samples will do: then a rule that asks
    /// for a number of samples gets exactly that from each member.
    pub(super) fn new(rule: Stop, slice_time: Nanos, slowest: Option<Nanos>) -> Self {
        let slice = slice_time.min(Nanos(longest(rule).0 / 2)).max(Nanos(1));
        let planned = match (rule, slowest) {
            (Stop::Samples(SamplesStop { count, .. }), Some(slowest)) => {
                let fitting = (slice.0 / slowest.0.max(1)).clamp(1, u64::from(count.max(1)));
                Some(2 * u64::from(count.max(1)).div_ceil(2 * fitting) as u32)
            }
            _ => None,
        };
        Rounds { rule, slice, planned, done: 0 }
    }

    /// Whether the next round goes through the members in reverse.
    pub(super) fn is_reverse(&self) -> bool {
        self.done % 2 == 1
    }

    /// The bounds of the slices of the next round.
    pub(super) fn bounds<'a>(&self, members: impl Iterator<Item = &'a Progress> + Clone) -> SliceBounds {
        // Slices end with a whole sample, so some members are a little ahead; a slice is what the rest still lack.
        let active = members.clone().map(|member| member.active).min().unwrap_or(Nanos(0));
        let taken = members.map(|member| member.taken).max().unwrap_or(0) as u32;
        let left = Nanos(longest(self.rule).0.saturating_sub(active.0));
        match (self.rule, self.planned) {
            (Stop::Samples(SamplesStop { count, .. }), Some(rounds)) => {
                let rounds_left = rounds.saturating_sub(self.done).max(1);
                let samples = count.saturating_sub(taken).div_ceil(rounds_left).max(1);
                SliceBounds { time: left.max(Nanos(1)), samples }
            }
            (Stop::Samples(_), None) => SliceBounds { time: self.slice.min(left).max(Nanos(1)), samples: u32::MAX },
            (Stop::Precision(PrecisionStop { max_samples, .. }) | Stop::Time(TimeStop { max_samples, .. }), _) => {
                SliceBounds {
                    time: self.slice.min(left).max(Nanos(1)),
                    samples: max_samples.saturating_sub(taken).max(1),
                }
            }
        }
    }

    /// Counts a round; true if it was the last.
    pub(super) fn end_round<'a>(&mut self, mut members: impl Iterator<Item = &'a Progress> + Clone) -> bool {
        self.done += 1;
        let is_pair = self.done.is_multiple_of(2);
        let at_limit = |member: &Progress| match member.reason {
            Some(StopReason::TimeLimit) => true,
            Some(StopReason::Samples) => self.planned.is_some() || !matches!(self.rule, Stop::Samples(_)),
            _ => false,
        };
        let none_is_short =
            members.clone().all(|member| member.taken >= Stop::LEAST_SAMPLES || member.reason.is_some());
        let all_are_satisfied = members.clone().all(|member| member.reason.is_some());
        (is_pair && all_are_satisfied) || (none_is_short && members.any(at_limit))
    }
}

/// The longest time that a run may sample.
pub(super) fn longest(rule: Stop) -> Nanos {
    match rule {
        Stop::Precision(PrecisionStop { max_time, .. }) | Stop::Samples(SamplesStop { max_time, .. }) => max_time,
        Stop::Time(rule) => rule.time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::quantity::Ratio;
    use experiment::StopStatistic;
    use statistics::Xoshiro256PlusPlus;

    fn precision(max_time: Nanos, max_samples: u32) -> Stop {
        Stop::Precision(PrecisionStop {
            statistic: StopStatistic::Median,
            relative: Ratio(0.01),
            confidence: Ratio(0.95),
            min_samples: 50,
            max_samples,
            min_time: Nanos(0),
            max_time,
        })
    }

    /// Lets members take turns whose samples take as long as given, in nanoseconds, and vary by a share.
    /// Returns the samples that each took and why it ended, and the number of rounds.
    fn play(mut rounds: Rounds, rule: Stop, members: &[(u64, f64)]) -> (Vec<(usize, StopReason)>, u32) {
        let mut progress: Vec<Progress> = members.iter().map(|_| Progress::new(rule)).collect();
        let mut taken: Vec<Vec<u64>> = vec![Vec::new(); members.len()];
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        loop {
            let bounds = rounds.bounds(progress.iter());
            for ((progress, taken), (typical, noise)) in progress.iter_mut().zip(&mut taken).zip(members) {
                let (mut span, mut added) = (0, 0);
                while added < bounds.samples && (added == 0 || span < bounds.time.0) {
                    let swing = noise * (2.0 * random.unit() - 1.0);
                    let duration = (*typical as f64 * (1.0 + swing)) as u64;
                    taken.push(duration);
                    span += duration;
                    added += 1;
                }
                progress.add(bounds, taken, added, Nanos(span));
            }
            if rounds.end_round(progress.iter()) {
                let ended = progress.iter().zip(&taken).map(|(progress, taken)| (taken.len(), progress.reason()));
                return (ended.collect(), rounds.done);
            }
        }
    }

    #[test]
    fn a_noisy_member_keeps_the_others_going() {
        let rule = precision(Nanos(1_000_000), 100_000);
        let alone = play(Rounds::new(rule, Nanos(10_000), None), rule, &[(100, 0.0)]);
        assert_eq!(alone, (vec![(200, StopReason::Precision)], 2));
        let (members, rounds) = play(Rounds::new(rule, Nanos(10_000), None), rule, &[(100, 0.0), (100, 0.4)]);
        assert_eq!(members[0].1, StopReason::Precision);
        assert_eq!((members[0].0, members[1].1, rounds % 2), (rounds as usize * 100, StopReason::Precision, 0));
        assert!(rounds > 2, "{members:?}");
    }

    #[test]
    fn time_ends_every_member_and_five_samples_are_always_taken() {
        let rule = precision(Nanos(25_000), 100_000);
        let (members, rounds) = play(Rounds::new(rule, Nanos(10_000), None), rule, &[(1_000, 0.4), (7_000, 0.0)]);
        assert_eq!(members[0].1, StopReason::TimeLimit);
        assert!(members[1].0 >= Stop::LEAST_SAMPLES && members[0].0 > Stop::LEAST_SAMPLES, "{members:?} in {rounds}");
        let rule = Stop::Time(TimeStop { time: Nanos(40_000), min_samples: 5, max_samples: 1_000 });
        let (members, rounds) = play(Rounds::new(rule, Nanos(10_000), None), rule, &[(100, 0.0), (1_000, 0.0)]);
        assert_eq!((members, rounds), (vec![(400, StopReason::Time), (40, StopReason::Time)], 4));
    }

    #[test]
    fn the_most_samples_are_not_passed() {
        let rule = Stop::Time(TimeStop { time: Nanos(1_000_000), min_samples: 5, max_samples: 150 });
        let (members, _) = play(Rounds::new(rule, Nanos(10_000), None), rule, &[(100, 0.0), (1_000, 0.0)]);
        assert_eq!(members, [(150, StopReason::Samples), (20, StopReason::TimeLimit)]);
    }

    #[test]
    fn a_number_of_samples_is_taken_in_equal_slices_there_and_back() {
        let rule = Stop::Samples(SamplesStop { count: 61, max_time: Nanos(1_000_000_000) });
        let rounds = Rounds::new(rule, Nanos(10_000), Some(Nanos(1_000)));
        let (members, rounds) = play(rounds, rule, &[(100, 0.0), (1_000, 0.0)]);
        assert_eq!((members, rounds), (vec![(61, StopReason::Samples); 2], 8));
    }

    #[test]
    fn members_that_run_at_the_same_time_go_on_until_both_have_their_number() {
        let rule = Stop::Samples(SamplesStop { count: 60, max_time: Nanos(1_000_000_000) });
        let (members, rounds) = play(Rounds::new(rule, Nanos(10_000), None), rule, &[(100, 0.0), (1_000, 0.0)]);
        assert_eq!((members, rounds), (vec![(600, StopReason::Samples), (60, StopReason::Samples)], 6));
    }

    #[test]
    fn a_run_that_is_shorter_than_a_slice_still_has_two() {
        let rule = precision(Nanos(8_000), 100_000);
        let (members, rounds) = play(Rounds::new(rule, Nanos(500_000), None), rule, &[(100, 0.0), (100, 0.0)]);
        assert_eq!((members, rounds), (vec![(80, StopReason::Precision); 2], 2));
    }
}
