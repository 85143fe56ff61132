//! What perfrun ends with: the codes, what each means, and which one is returned where several apply.
//!
//! The help and the reference take their words from here.

use std::fmt::Write as _;

/// What perfrun ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCode {
    Done,
    /// Internal fault.
    Internal,
    /// What the user can mend.
    UserError,
    /// Some runs failed, or what was asked for could not be measured.
    RunsFailed,
    /// A gate fell: a goal was missed.
    CheckFailed,
    /// Interrupted, with everything finished so far kept.
    Interrupted,
    /// The answer for `git bisect run`.
    Bisect(Bisected),
}

/// What `diff --bisect` answers `git bisect run` about a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bisected {
    Worse,
    /// Not known: git tries another commit.
    Undecided,
    /// Something else happened: git stops.
    Stop,
}

impl ExitCode {
    /// All of them; where several apply, the first one is returned.
    pub const ALL: [ExitCode; 6] = [
        ExitCode::Interrupted,
        ExitCode::Internal,
        ExitCode::UserError,
        ExitCode::CheckFailed,
        ExitCode::RunsFailed,
        ExitCode::Done,
    ];

    /// The number that the shell sees.
    pub const fn number(self) -> u8 {
        match self {
            ExitCode::Done => 0,
            ExitCode::Internal | ExitCode::Bisect(Bisected::Worse) => 1,
            ExitCode::UserError => 2,
            ExitCode::RunsFailed => 3,
            ExitCode::CheckFailed => 4,
            ExitCode::Bisect(Bisected::Undecided) => 125,
            ExitCode::Bisect(Bisected::Stop) => 129,
            ExitCode::Interrupted => 130,
        }
    }

    /// What it means in two words.
    fn short(self) -> &'static str {
        match self {
            ExitCode::Done => "done",
            ExitCode::Internal => "bug",
            ExitCode::UserError => "input",
            ExitCode::RunsFailed => "runs failed",
            ExitCode::CheckFailed => "gate or goal",
            ExitCode::Interrupted => "stopped",
            ExitCode::Bisect(_) => "bisect",
        }
    }

    /// What it means, a fragment.
    pub fn meaning(self) -> &'static str {
        match self {
            ExitCode::Done => "done",
            ExitCode::Internal => "internal error",
            ExitCode::UserError => {
                "input or usage error: command line, specification, missing file, unwritable folder, required device \
                 not available"
            }
            ExitCode::RunsFailed => "some runs failed, an accuracy could not be computed, or nothing could be measured",
            ExitCode::CheckFailed => "a gate failed, or a goal was missed",
            ExitCode::Interrupted => "interrupted; everything finished so far is kept",
            ExitCode::Bisect(_) => "exit code for `git bisect run`",
        }
    }

    /// When that is, a fragment with code in back quotes.
    pub fn examples(self) -> &'static str {
        match self {
            ExitCode::Done => "every run that was started has completed",
            ExitCode::Internal => "a bug in perfrun; please report it",
            ExitCode::UserError => {
                "a mistake on the command line, a record of a newer format, no ONNX Runtime library, an absent device with \
                 `--require-devices`, a machine that is in use with `--no-wait` or does not meet `require`, an unknown revision"
            }
            ExitCode::RunsFailed => {
                "an unsupported operator, a crash, a timeout, a dataset that cannot be scored, a device that cannot be used, a check of `doctor --verify` that failed"
            }
            ExitCode::CheckFailed => {
                "something became worse than `gate` allows, or could not be judged (`diff --gate`, `stat --fail-on`); a whole interval lies \
                 beyond a bound of `goals`, or a goal is undecided with `goals_strict: true` (not after a quick look)"
            }
            ExitCode::Interrupted => "Ctrl-C or SIGTERM while waiting or measuring",
            ExitCode::Bisect(_) => "`diff --bisect`",
        }
    }

    /// The one that is returned when several apply.
    pub fn worst(self, other: Self) -> Self {
        Self::ALL.into_iter().find(|code| *code == self || *code == other).unwrap_or(self)
    }

    fn by_number() -> [ExitCode; 6] {
        let mut codes = Self::ALL;
        codes.sort_by_key(|code| code.number());
        codes
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        std::process::ExitCode::from(code.number())
    }
}

/// The line of the help.
pub(crate) fn exit_codes_help() -> String {
    ExitCode::by_number().map(|code| format!("{} {}", code.number(), code.short())).join(", ")
}

/// The reference of exit codes: `docs/reference/exit-codes.md`.
pub fn exit_codes_markdown() -> String {
    let mut text = String::from(concat!(
        "# Exit codes\n\n",
        "<!-- Generated from the table by `perfrun::ui::error::exit_codes_markdown`; a test keeps it current. -->\n\n",
        "| code | meaning | examples |\n",
        "|---|---|---|\n",
    ));
    for code in ExitCode::by_number() {
        // Writing into a String cannot fail.
        let _ = writeln!(text, "| {} | {} | {} |", code.number(), code.meaning(), code.examples());
    }
    let order = ExitCode::ALL.map(|code| code.number().to_string()).join(", ");
    let _ = write!(text, "\nIf several apply, the exit code is the first of {order}.\n");
    text.push_str(concat!(
        "With several specifications it is the most severe of them.\n\n",
        "Skipped cells do not count as failures, as long as something was measured.\n",
        "A failed run does not end a record: the other runs go on, and the report is written.\n",
        "For `git bisect run`, `diff --bisect` exits with 0 (not worse), 1 (worse), 125 (undecided) or 129 (any error).\n\n",
        "Failed runs are counted by kind in the report; [record.md](record.md#failures) lists the kinds.\n\n",
        "Messages and progress go to standard error.\n",
        "Standard output holds data only: the table, a plan, a schema, a path.\n",
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruption_beats_faults_and_faults_beat_failures() {
        assert_eq!(ExitCode::RunsFailed.worst(ExitCode::UserError), ExitCode::UserError);
        assert_eq!(ExitCode::Interrupted.worst(ExitCode::Internal), ExitCode::Interrupted);
        assert_eq!(ExitCode::Done.worst(ExitCode::Done), ExitCode::Done);
    }

    #[test]
    fn the_help_lists_every_code_once_in_rising_order() {
        let help = exit_codes_help();
        let numbers: Vec<&str> = help.split(", ").filter_map(|part| part.split_whitespace().next()).collect();
        assert_eq!(numbers, ["0", "1", "2", "3", "4", "130"]);
    }
}
