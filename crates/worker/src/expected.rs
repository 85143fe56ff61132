//! Which answers belong to which command, and what its end must say: both sides hold on to this.

use std::time::Duration;

use super::protocol::{Answer, Command, CommandName, SamplePhase};
use crate::backend::Phase;
use crate::measure::{slice, stop, warm};
use base::quantity::Nanos;
use experiment::{SamplesWarmup, Stop, Warmup};

/// What may be answered to a command that is under way.
#[derive(Debug)]
pub(super) struct ExpectedAnswers {
    command: CommandName,
    warmup: Count,
    counted: Count,
    rule: Rule,
    /// A sample may be shorter than the clock's resolution, since it has one iteration.
    may_take_no_time: bool,
}

/// When samples end.
#[derive(Clone, Copy, Debug)]
enum Rule {
    Warm {
        rule: Warmup,
        at_least: Nanos,
    },
    Measure(Stop),
    /// No more queries than these.
    Load(usize),
    Slice {
        time: Nanos,
        samples: u32,
    },
    /// There are none.
    None,
}

/// Samples so far, and how many there may be.
#[derive(Debug)]
struct Count {
    taken: usize,
    most: usize,
}

impl ExpectedAnswers {
    /// Before the first answer.
    pub(super) fn of(command: &Command) -> Self {
        let rule = match *command {
            Command::Load { ref queries, .. } => Rule::Load(queries.most()),
            Command::Warm { rule, at_least, .. } => Rule::Warm { rule, at_least },
            Command::Measure { rule, .. } | Command::Profile { rule, .. } => Rule::Measure(rule),
            Command::Slice { time, samples, .. } => Rule::Slice { time, samples },
            _ => Rule::None,
        };
        let (warmup, counted) = match rule {
            Rule::Warm { rule: Warmup::Samples(SamplesWarmup { count }), .. } => (count as usize, 0),
            Rule::Measure(rule) => (warm::MOST_KEPT, rule.most_samples()),
            Rule::Load(most) => (0, most),
            Rule::Slice { samples, .. } => (warm::MOST_KEPT, samples as usize),
            Rule::Warm { .. } | Rule::None => (warm::MOST_KEPT, 0),
        };
        let count = |most: usize| Count { taken: 0, most };
        // Whatever was asked for, one is taken.
        let may_take_no_time = matches!(
            command,
            Command::Load { .. }
                | Command::Measure { iterations: 1, .. }
                | Command::Slice { iterations: 1, .. }
                | Command::Profile { .. }
        );
        let (warmup, counted) = (count(warmup), count(counted.max(1)));
        ExpectedAnswers { command: command.name(), warmup, counted, rule, may_take_no_time }
    }

    /// Takes note of an answer that is no failure, so long after the command; true if it ends the command. `None`: time is
    /// a script's.
    ///
    /// # Errors
    ///
    /// An answer that does not belong to the command, or an end that leaves something out, in words.
    pub(super) fn take(&mut self, answer: &Answer, waited: Option<Duration>) -> Result<bool, String> {
        use CommandName as C;
        match (self.command, answer) {
            (C::Hello, Answer::Hello { .. }) | (C::Prepare, Answer::Ready { .. }) => Ok(true),
            (C::Prepare, Answer::Phase { name: Phase::Load })
            | (C::Warm, Answer::Phase { name: Phase::Warm })
            | (C::Measure | C::Load | C::Slice | C::Profile, Answer::Phase { name: Phase::Measure })
            | (C::Prepare | C::Measure | C::Load | C::Check | C::Afterwards, Answer::Metrics { .. })
            | (C::Profile, Answer::Nodes { .. } | Answer::Memory { .. } | Answer::Device { .. })
            | (C::ActivationRanges, Answer::Ranges { .. }) => Ok(false),
            (C::Warm | C::Measure | C::Profile, Answer::Samples { phase: SamplePhase::Warmup, columns }) => {
                self.warmup.add(columns.len(), self.command).map(|()| false)
            }
            (
                C::Measure | C::Load | C::Slice | C::Profile,
                Answer::Samples { phase: SamplePhase::Measure, columns },
            ) => {
                if columns.duration_ns.contains(&0) && !self.may_take_no_time {
                    return Err(format!("`{}` gave a counted sample that took no time", self.command.word()));
                }
                self.counted.add(columns.len(), self.command).map(|()| false)
            }
            (C::Hello | C::Prepare, _) => Err(self.foreign(answer)),
            (_, Answer::Done { .. }) => self.end(answer, waited).map(|()| true),
            _ => Err(self.foreign(answer)),
        }
    }

    fn foreign(&self, answer: &Answer) -> String {
        let what = match answer {
            Answer::Phase { name } => format!("phase {name:?}").to_lowercase(),
            Answer::Samples { phase, .. } => format!("samples of {phase:?}").to_lowercase(),
            _ => answer.word().to_owned(),
        };
        format!("`{}` was answered with `{what}`, which does not belong to it", self.command.word())
    }

    /// An end says what its command is for, and nothing else.
    fn end(&self, answer: &Answer, waited: Option<Duration>) -> Result<(), String> {
        let Answer::Done { warmup, stop: reason, output_hash, non_finite } = answer else {
            return Err(self.foreign(answer));
        };
        let command = self.command;
        let word = command.word();
        let looks_at_outputs = matches!(command, CommandName::Measure | CommandName::Load | CommandName::Check);
        let samples = matches!(command, CommandName::Measure | CommandName::Load | CommandName::Profile);
        let parts = [
            ("how the warm-up ended", warmup.is_some(), command == CommandName::Warm),
            ("why sampling ended", reason.is_some(), samples),
            ("a hash of the outputs", output_hash.is_some(), looks_at_outputs),
        ];
        for (what, is_there, belongs) in parts {
            match (is_there, belongs) {
                (true, false) => return Err(format!("`{word}` ended with {what}, which does not belong to it")),
                (false, true) => return Err(format!("`{word}` ended without {what}")),
                _ => {}
            }
        }
        if !non_finite.is_empty() && !looks_at_outputs {
            return Err(format!("`{word}` ended with names of outputs, which do not belong to it"));
        }
        if command.takes_counted_samples() && self.counted.taken == 0 {
            return Err(format!("`{word}` ended without a counted sample"));
        }
        let wrong = match (self.rule, *warmup, *reason) {
            (Rule::Warm { rule, at_least }, Some(status), _) => {
                warm::contradiction(rule, at_least, status, self.warmup.taken, waited)
            }
            (Rule::Measure(rule), _, Some(reason)) => stop::contradiction(rule, reason, self.counted.taken, waited),
            (Rule::Slice { time, samples }, ..) => slice::contradiction(time, samples, self.counted.taken, waited),
            _ => None,
        };
        wrong.map_or(Ok(()), |wrong| Err(format!("`{word}` ended {wrong}")))
    }
}

impl Count {
    fn add(&mut self, samples: usize, command: CommandName) -> Result<(), String> {
        self.taken = self.taken.saturating_add(samples);
        if self.taken > self.most {
            return Err(format!("`{}` gave more than {} samples", command.word(), self.most));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use experiment::{AdaptiveWarmup, SamplesStop, TimeWarmup};
    use std::collections::BTreeMap;

    use super::*;
    use crate::measure::Samples;
    use crate::measure::stop::StopReason;
    use crate::measure::warm::WarmupStatus;
    use crate::protocol::Afterwards;
    use base::quantity::Nanos;

    fn samples(phase: SamplePhase, number: u64) -> Answer {
        let start_ns: Vec<u64> = (0..number).collect();
        let input = vec![0; start_ns.len()];
        let columns =
            Samples { duration_ns: start_ns.iter().map(|_| 1).collect(), start_ns, input, ..Samples::default() };
        Answer::Samples { phase, columns }
    }

    fn done(warmup: bool, stop: bool, outputs: bool) -> Answer {
        Answer::Done {
            warmup: warmup.then_some(WarmupStatus::Fixed),
            stop: stop.then_some(StopReason::Samples),
            output_hash: outputs.then(|| "0".repeat(16)),
            non_finite: Vec::new(),
        }
    }

    fn hello() -> Answer {
        crate::protocol::greeting("w", Vec::new())
    }

    fn ready() -> Answer {
        Answer::Ready { placement: Default::default(), output_shapes: None, output_hash: None, non_finite: Vec::new() }
    }

    /// Commands with the answers that end them.
    fn commands() -> Vec<(Command, Answer)> {
        let (iterations, at_least, time) = (1, Nanos(0), Nanos(1));
        let path = String::new;
        let data = || crate::Data { feeds: Vec::new(), items: 0 };
        let calibration = experiment::Calibration::MinMax;
        vec![
            (Command::Hello { protocol: 4, oldest: 4 }, hello()),
            (
                Command::Warm { rule: Warmup::Samples(SamplesWarmup { count: 3 }), at_least, iterations },
                done(true, false, false),
            ),
            (
                Command::Measure { rule: Stop::Samples(SamplesStop { count: 3, max_time: time }), iterations },
                done(false, true, true),
            ),
            (
                Command::Load {
                    queries: crate::measure::load::Queries::Open { due_ns: vec![0, 1, 2], give_up_ns: 9 },
                    inferences: 1,
                },
                done(false, true, true),
            ),
            (Command::Slice { time, samples: 3, iterations, warms: false }, Answer::done()),
            (Command::Check, done(false, false, true)),
            (Command::Afterwards(Afterwards::default()), Answer::done()),
            (
                Command::Profile { rule: Stop::Samples(SamplesStop { count: 3, max_time: time }), trace: None },
                done(false, true, false),
            ),
            (Command::Outputs { path: path() }, Answer::done()),
            (Command::ActivationRanges { calibration, data: None }, Answer::done()),
            (Command::Evaluate { data: data(), items_in_file: 1, path: path() }, Answer::done()),
            (Command::Finish, Answer::done()),
        ]
    }

    #[test]
    fn a_command_ends_with_its_own_end_and_with_no_other() {
        let ends = [
            hello(),
            ready(),
            done(true, false, false),
            done(false, true, true),
            done(false, false, true),
            done(false, true, false),
        ];
        for (command, expected_end) in commands() {
            let mut expected = ExpectedAnswers::of(&command);
            if command.name().takes_counted_samples() {
                assert!(
                    expected.take(&expected_end, None).is_err_and(|text| text.contains("without a counted sample"))
                );
                assert_eq!(expected.take(&samples(SamplePhase::Measure, 3), None), Ok(false));
            }
            if command.name() == CommandName::Warm {
                let text = expected.take(&expected_end, None).expect_err("no warm-up");
                assert_eq!(text, "`warm` ended after 0 samples, not 3");
                assert_eq!(expected.take(&samples(SamplePhase::Warmup, 3), None), Ok(false));
            }
            assert_eq!(expected.take(&expected_end, None), Ok(true), "{command:?}");
            for end in ends.iter().chain([&Answer::done()]).filter(|end| **end != expected_end) {
                let text = expected.take(end, None).expect_err("an end of another command");
                assert!(text.starts_with(&format!("`{}` ", command.name().word())), "{text}");
            }
        }
    }

    #[test]
    fn what_was_not_asked_for_does_not_belong() {
        let ranges = Answer::Ranges { values: BTreeMap::new() };
        let nodes = Answer::Nodes { nodes: Vec::new() };
        let metrics = Answer::Metrics { values: BTreeMap::new() };
        let late = Answer::Phase { name: Phase::Load };
        let counted = samples(SamplePhase::Measure, 1);
        let allowed = |command: &Command, answer: &Answer| ExpectedAnswers::of(command).take(answer, None).is_ok();
        for (command, _) in commands() {
            let name = command.name();
            assert_eq!(allowed(&command, &ranges), name == CommandName::ActivationRanges, "{name:?}");
            assert_eq!(allowed(&command, &nodes), name == CommandName::Profile, "{name:?}");
            assert_eq!(allowed(&command, &counted), name.takes_counted_samples(), "{name:?}");
            assert_eq!(
                allowed(&command, &metrics),
                matches!(name, CommandName::Measure | CommandName::Load | CommandName::Check | CommandName::Afterwards),
                "{name:?}"
            );
            assert!(!allowed(&command, &late), "{name:?}");
        }
        let text =
            ExpectedAnswers::of(&Command::Finish).take(&counted, None).expect_err("nothing is counted at the end");
        assert_eq!(text, "`finish` was answered with `samples of measure`, which does not belong to it");
    }

    #[test]
    fn nobody_gives_more_samples_than_were_asked_for_nor_empty_ones() {
        for (command, _) in commands() {
            let mut expected = ExpectedAnswers::of(&command);
            let phase = if command.name() == CommandName::Warm { SamplePhase::Warmup } else { SamplePhase::Measure };
            if expected.take(&samples(phase, 3), None).is_ok() {
                assert!(
                    expected.take(&samples(phase, 1), None).is_err_and(|text| text.ends_with("more than 3 samples"))
                );
            }
        }
        let mut empty = samples(SamplePhase::Measure, 1);
        if let Answer::Samples { columns, .. } = &mut empty {
            columns.duration_ns[0] = 0;
        }
        let slice = |iterations| Command::Slice { time: Nanos(1), samples: 1, iterations, warms: false };
        assert!(ExpectedAnswers::of(&slice(2)).take(&empty, None).is_err_and(|text| text.ends_with("took no time")));
        assert!(ExpectedAnswers::of(&slice(1)).take(&empty, None).is_ok(), "a code reports a clock that is too coarse");
    }

    #[test]
    fn a_warm_up_and_a_slice_end_after_what_was_asked_for() {
        let (at_least, iterations, time) = (Nanos(20_000_000), 1, Nanos(10_000_000));
        let tolerance = base::quantity::Ratio(0.02);
        let adaptive = Warmup::Adaptive(AdaptiveWarmup {
            min_time: time,
            max_time: Nanos::from_secs(1),
            min_samples: 20,
            tolerance,
        });
        let end = |command: Command, phase, taken: u64, status, waited_ms| {
            let mut expected = ExpectedAnswers::of(&command);
            assert_eq!(expected.take(&samples(phase, taken), None), Ok(false));
            let end = Answer::Done { warmup: status, stop: None, output_hash: None, non_finite: Vec::new() };
            expected.take(&end, Some(Duration::from_millis(waited_ms))).err()
        };
        let warm = |rule, taken, status, waited_ms| {
            let command = Command::Warm { rule, at_least, iterations };
            end(command, SamplePhase::Warmup, taken, Some(status), waited_ms)
        };
        use WarmupStatus::{Converged, Fixed};
        let by_time = Warmup::Time(TimeWarmup { time });
        assert_eq!((warm(by_time, 3, Fixed, 10), warm(adaptive, 3, Converged, 20)), (None, None));
        assert_eq!(warm(by_time, 2, Fixed, 10).as_deref(), Some("`warm` ended after 2 samples, not 3"));
        assert_eq!(warm(by_time, 9, Fixed, 9).as_deref(), Some("`warm` ended after 9.0ms, not 10ms"));
        assert_eq!(warm(adaptive, 9, Converged, 19).as_deref(), Some("`warm` ended after 19.0ms, not 20ms"));
        let other = "`warm` ended with the status `fixed`, which its rule does not have";
        assert_eq!(warm(adaptive, 9, Fixed, 20).as_deref(), Some(other));
        let slice = |taken, waited_ms| {
            end(
                Command::Slice { time, samples: 4, iterations, warms: false },
                SamplePhase::Measure,
                taken,
                None,
                waited_ms,
            )
        };
        assert_eq!((slice(4, 1), slice(1, 10)), (None, None));
        assert_eq!(slice(1, 1).as_deref(), Some("`slice` ended after 1 samples and 1.0ms, not 4 or 10ms"));
    }
}
