//! `perfrun explain`: what a code, a key or a metric means.

use super::print;
use crate::ui::cli::ExplainArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, explain as words};
use spec::explain::{self, UnknownWordError};

pub(super) fn run(arguments: &ExplainArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let Some(word) = &arguments.word else {
        let topics = explain::topics();
        return if arguments.json { super::print_json(ui, &topics) } else { print(ui, &words::list(ui, &topics)) };
    };
    let explanation = explain::explain(word).map_err(|unknown| refusal(&unknown))?;
    if arguments.json { super::print_json(ui, &explanation) } else { print(ui, &words::describe(ui, &explanation)) }
}

fn refusal(unknown: &UnknownWordError) -> Error {
    let near: Vec<String> = unknown.near.iter().map(|word| format!("`{word}`")).collect();
    let hint = match near.as_slice() {
        [] => "`perfrun explain` lists everything that can be explained".to_owned(),
        [some @ .., last] if !some.is_empty() => format!("did you mean {} or {last}?", some.join(", ")),
        [only, ..] => format!("did you mean {only}?"),
    };
    Error::refused(unknown.to_string(), hint)
}
