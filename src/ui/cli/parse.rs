//! From the words that were typed to a command, or what is to be said in its place.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;

use clap::{CommandFactory, Parser};

use super::screen::first_of_command;
use super::{Cli, Command, ScreenArgs};
use base::printable::{printable, printable_line};
use reading::nearest::nearest;

/// What clap says in place of a command: help, the version, or what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The text, styled.
    pub text: String,
    /// It is a mistake, not an answer.
    pub is_mistake: bool,
}

/// Reads the command line; a first word that is neither a verb nor a question about perfrun stands for `run`.
///
/// # Errors
///
/// What is to be said in place of doing something, help and version among it.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Said> {
    let mut words: Vec<OsString> = arguments.into_iter().collect();
    if words.get(1..).is_some_and(|words| words == ["worker"]) {
        // Started for every run: describing all commands takes longer than the rest of its start.
        return Ok(Cli { command: Command::Worker, screen: ScreenArgs::default() });
    }
    if words.len() == 1 {
        return Err(Said { text: Cli::command().render_help().ansi().to_string(), is_mistake: true });
    }
    let questions = ["-h", "--help", "-V", "--version", "help"];
    let command = Cli::command();
    let is_known = |word: &OsString| {
        let text = word.to_string_lossy();
        questions.contains(&text.as_ref()) || command.get_subcommands().any(|verb| verb.get_name() == text)
    };
    let first = first_of_command(&words).filter(|word| !is_known(word));
    if let Some(word) = first {
        let verbs = command.get_subcommands().map(clap::Command::get_name);
        let meant = word
            .to_str()
            .filter(|text| !text.starts_with('-') && !Path::new(word).exists())
            .and_then(|word| nearest(word, verbs));
        if let Some(verb) = meant {
            let word = printable_line(&word.to_string_lossy()).into_owned();
            let text =
                format!("error: there is no command and no file `{word}`\n\n  tip: did you mean `perfrun {verb}`?\n");
            return Err(Said { text, is_mistake: true });
        }
        words.insert(1, "run".into());
    }
    join_negative_values(&mut words);
    Cli::try_parse_from(words).map_err(|error| {
        let mut text = error.render();
        if let Some(way) = way_to_say(&error) {
            text = format!("{}\n\n  tip: {way}\n", text.to_string().lines().next().unwrap_or_default()).into();
        }
        let plain = text.to_string();
        // Arguments may be anybody's file names.
        let text = match printable(&plain) {
            Cow::Borrowed(_) => text.ansi().to_string(),
            safe => safe.into_owned(),
        };
        Said { text, is_mistake: error.use_stderr() }
    })
}

/// `--margin -1%` as `--margin=-1%`: no option is called `-1`, and what the value must be is said best by its own check.
fn join_negative_values(words: &mut Vec<OsString>) {
    let is_negative = |word: &OsString| {
        let number = word.to_str().and_then(|word| word.strip_prefix('-'));
        number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    };
    let is_option = |word: &OsString| {
        word.to_str().is_some_and(|word| word.len() > 2 && word.starts_with("--") && !word.contains('='))
    };
    for index in (1..words.len()).rev() {
        if is_negative(&words[index]) && is_option(&words[index - 1]) {
            let value = words.remove(index);
            words[index - 1].push("=");
            words[index - 1].push(value);
        }
    }
}

/// How to say here what other tools have an option for.
fn way_to_say(error: &clap::Error) -> Option<String> {
    const WAYS: [(&[&str], &str); 9] = [
        (&["--margin", "--threshold"], "`--set compare.margin=3%`"),
        (
            &["--batch", "--batch-size", "--batch_size"],
            "`--set inputs.batch=8`, with the dimension's name that `perfrun inspect` shows",
        ),
        (
            &["--input-shape", "--input_shape", "--shape", "--shapes"],
            "`--set inputs.batch=8 --set inputs.sequence=128`, with the names of dimensions that `perfrun inspect` shows",
        ),
        (
            &["--threads", "--num-threads", "--num_threads", "--intra-op"],
            "`--set variants.fp32.threads=2`, with the variant's name that `perfrun plan` shows",
        ),
        (&["--device", "--devices", "--provider", "--ep", "--backend"], "`--set 'devices=[cpu, cuda]'`"),
        (&["--precision", "--fp16", "--int8", "--variants"], "`--set 'variants=[fp32, fp16, int8]'`"),
        (
            &["--iterations", "--iters", "--repeat", "--repetitions", "-n"],
            "`--runs 12` for processes, `--set measure.stop.min_samples=1000` for inferences in each",
        ),
        (
            &["--duration", "--time", "--min-time"],
            "`--set measure.stop.min_time=5s` for each run, `--budget 10m` for all together",
        ),
        (&["--warmup", "--warm-up", "--warmup-runs"], "`--set measure.warmup.min_time=1s`"),
    ];
    let found = error.get(clap::error::ContextKind::InvalidArg)?;
    let (clap::error::ErrorKind::UnknownArgument, clap::error::ContextValue::String(word)) = (error.kind(), found)
    else {
        return None;
    };
    WAYS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, way)| (*way).to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::ui::cli::{Command, ReportArgs, RunArgs};

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_first_word_that_is_no_verb_is_a_specification() {
        let cli = parse(words("perfrun x.yaml --runs 3")).expect("valid");
        assert!(matches!(cli.command, Command::Run(RunArgs { specs, .. }) if specs == [PathBuf::from("x.yaml")]));
        let cli = parse(words("perfrun --runs 3 x.yaml")).expect("valid");
        assert!(matches!(cli.command, Command::Run(_)));
        for typed in ["perfrun plan x.yaml -vv", "perfrun -vv plan x.yaml"] {
            let cli = parse(words(typed)).expect("valid");
            assert!(matches!(cli.command, Command::Plan(_)) && cli.screen.verbose == 2, "{typed}");
        }
        let cli = parse(words("perfrun --color never -q x.yaml --no-progress")).expect("valid");
        let screen = &cli.screen;
        assert!(matches!(cli.command, Command::Run(_)) && screen.quiet && screen.no_progress);
        assert!(parse(words("perfrun -q -v x.yaml")).is_err());
        let cli = parse(words("perfrun -v x.yaml")).expect("valid");
        assert!(matches!(cli.command, Command::Run(_)) && cli.screen.verbose == 1);
    }

    #[test]
    fn options_of_other_tools_are_answered_with_ours() {
        for (typed, way) in
            [("m.onnx --batch 8", "--set inputs.batch=8"), ("plan x.yaml --threads 2", "variants.fp32.threads=2")]
        {
            let Err(said) = parse(words(&format!("perfrun {typed}"))) else { panic!("{typed}") };
            assert!(said.is_mistake && said.text.contains(way), "{}", said.text);
            assert!(!said.text.contains("as a value"), "{}", said.text);
        }
        for (typed, tip) in [
            ("repot x", "did you mean `perfrun report`?"),
            ("explian p95", "did you mean `perfrun explain`?"),
            ("x.yaml --margin -1%", "`--set compare.margin=3%`"),
            ("stat a.txt --margin -1%", "`-1%` is negative; a ratio is not"),
            ("stat a.txt --margin 2", "2 is 100 % or more; write `2%`"),
            ("diff --margin -1%", "`-1%` is negative; a ratio is not"),
            ("x.yaml --runs -1", "-1 is not in 1..=100000"),
            ("x.yaml --budget -1s", "`-1s` is negative; a duration is not"),
        ] {
            let Err(said) = parse(words(&format!("perfrun {typed}"))) else { panic!("{typed}") };
            assert!(said.is_mistake && said.text.contains(tip), "{typed}: {}", said.text);
        }
        let cli = parse(words("perfrun plan -- -1.yaml")).expect("valid");
        assert!(matches!(cli.command, Command::Plan(_)), "a file of that name");
        for typed in ["--runtime /x y.yaml", "--runs 3 y.yaml"] {
            assert!(matches!(parse(words(&format!("perfrun {typed}"))).expect(typed).command, Command::Run(_)));
        }
        let list = ["perfrun", "report", "x", "--format", "md, html"].map(OsString::from);
        let cli = parse(list).expect("valid");
        assert!(matches!(cli.command, Command::Report(ReportArgs { format, .. }) if format.len() == 2));
        assert!(matches!(parse(words("perfrun look.onnx")).expect("valid").command, Command::Run(_)));
        let Err(said) = parse(words("perfrun x.yaml --nonsense")) else { panic!("an unknown option") };
        assert!(said.text.contains("--help"), "{}", said.text);
    }
}
