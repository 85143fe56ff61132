//! `perfrun explain`: what a code, a key, a value, a metric or a term means.

use super::print;
use crate::ui::cli::ExplainArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, explain as words};
use spec::explain::{self, UnknownWordError};

pub(super) fn run(arguments: &ExplainArgs, ui: &Ui) -> Result<ExitCode, Error> {
    if arguments.words.is_empty() {
        let topics = explain::topics();
        return match (arguments.json, arguments.all) {
            (true, _) => super::print_json(ui, &topics),
            (false, true) => print(ui, &words::list(ui, &topics)),
            (false, false) => print(ui, &words::overview(ui, &topics)),
        };
    }
    let meanings = explain::meanings(&arguments.words.join(" ")).map_err(|unknown| refusal(&unknown))?;
    if arguments.json {
        return super::print_json(ui, &meanings[0]);
    }
    let texts: Vec<String> = meanings.iter().map(|meaning| words::describe(ui, meaning)).collect();
    print(ui, &texts.join("\n"))
}

fn refusal(unknown: &UnknownWordError) -> Error {
    let near: Vec<String> = unknown.near.iter().map(|word| format!("`{word}`")).collect();
    let hint = match near.as_slice() {
        [] => "`perfrun explain --all` lists everything that can be explained".to_owned(),
        [some @ .., last] if !some.is_empty() => format!("did you mean {} or {last}?", some.join(", ")),
        [only, ..] => format!("did you mean {only}?"),
    };
    Error::refused(unknown.to_string(), hint)
}
