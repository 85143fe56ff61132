//! The help: what fits a screen of perfrun as a whole, and what of each command the documents have to name.

use clap::CommandFactory;

use super::Cli;
use crate::ui::error::exit_codes_help;

/// The commands by what they are for, as README has them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("measure", &["run", "ab", "init", "validate", "plan"]),
    ("see results", &["report", "list", "history", "site", "explain"]),
    ("compare", &["diff", "bisect", "stat"]),
    ("models", &["inspect", "convert", "zoo"]),
    ("share", &["submit", "merge", "export", "import", "reproduce", "clean"]),
    ("set up", &["doctor", "calibrate", "runtime", "completions", "schema"]),
];

/// The help of perfrun as a whole, which fits a screen of 24 lines.
pub(super) fn overview() -> String {
    let group = |(purpose, commands): &(&str, &[&str])| format!("  {purpose:<13}{}\n", commands.join(", "));
    format!(
        "\
{{about}}

Usage: perfrun SPEC|MODEL...     measure, as `perfrun run` does
       perfrun COMMAND --help    what a command does, its options, an example
       perfrun explain WORD      what a key, code, metric or variable means

Commands:
{}
Options:
{{options}}

Exit codes: {}",
        GROUPS.iter().map(group).collect::<String>(),
        exit_codes_help()
    )
}

/// A command as its help shows it.
pub struct Shown {
    /// `runtime install`.
    pub name: String,
    /// Its options, `--gpu`.
    pub options: Vec<String>,
    /// The lines below `Examples`, commands with comments behind them.
    pub examples: Vec<String>,
}

/// Every command that the help shows, with its subcommands.
pub fn shown() -> Vec<Shown> {
    let command = Cli::command();
    let mut found = Vec::new();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        found.push(Shown::of(verb, verb.get_name().to_owned()));
        for action in verb.get_subcommands() {
            found.push(Shown::of(action, format!("{} {}", verb.get_name(), action.get_name())));
        }
    }
    found
}

impl Shown {
    fn of(command: &clap::Command, name: String) -> Shown {
        let options = command.get_arguments().filter_map(|argument| argument.get_long());
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect();
        Shown { name, options: options.map(|long| format!("--{long}")).collect(), examples }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `perfrun NAME --help` prints in a terminal of 80 columns.
    fn helps() -> Vec<(String, String)> {
        let mut command = Cli::command().term_width(80);
        command.build();
        let whole = ("perfrun".to_owned(), command.render_help().to_string());
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let help = |verb: &clap::Command| (verb.get_name().to_owned(), verb.clone().render_help().to_string());
        std::iter::once(whole).chain(verbs.map(help)).collect()
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
        let mut all: Vec<String> = shown().into_iter().map(|command| command.name).collect();
        all.retain(|name| !name.contains(' '));
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
    }

    #[test]
    fn help_fits_a_screen_and_that_of_a_command_fits_two_and_a_half() {
        for (name, help) in helps() {
            let lines = help.trim_end().lines().count();
            let most = if name == "perfrun" { 23 } else { 59 };
            assert!(lines <= most, "{name} has {lines} lines\n{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 81), "{name}\n{help}");
        }
    }

    #[test]
    fn every_command_has_an_example_and_defaults_have_one_form() {
        for command in shown().iter().filter(|command| !command.name.contains(' ')) {
            let is_of_command = |line: &String| line.starts_with("perfrun");
            assert!(!command.examples.is_empty() && command.examples.iter().all(is_of_command), "{}", command.name);
        }
        for (name, help) in helps() {
            assert!(!help.contains("(default") && !help.contains("Default:"), "{name}\n{help}");
        }
    }
}
