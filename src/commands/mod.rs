//! One file per verb: from arguments to an exit code.

mod ab;
mod admission;
mod archive;
mod bisect;
mod calibrate;
mod convert;
mod diff;
mod doctor;
mod earlier;
mod explain;
mod fix;
mod forecast;
mod history;
mod init;
mod inspect;
mod libraries;
pub mod limits;
mod list;
mod look;
mod measure;
mod merge;
mod once;
mod plan;
mod points;
mod quiet;
mod records;
mod report;
mod reproduce;
mod run;
mod runtime;
mod shapes;
mod shards;
mod site;
mod specs;
mod stat;
mod step_summary;
mod submit;
mod trace;
mod track;
mod validate;
mod verify;
mod zoo;

use crate::ui::Ui;
use crate::ui::cli;
use crate::ui::cli::{Command, CompletionsArgs, SchemaArgs, SchemaName};
use crate::ui::error::{Error, ExitCode};
use base::printable::printable_json;
use judge::results;
use worker::Interrupts;

/// Carries out a command.
///
/// # Errors
///
/// What ended it; the caller prints it and exits with its code.
pub fn dispatch(command: Command, ui: &Ui) -> Result<ExitCode, Error> {
    if !matches!(command, Command::Worker) {
        limits::size_pool()?;
    }
    match command {
        Command::Run(mut arguments) => {
            arguments.conditions.devices.iter().try_for_each(|device| verify::present(device).map(drop))?;
            arguments.overrides = arguments.overrides.with(&arguments.conditions);
            if look::is_asked(&arguments) { look::run(&arguments, ui) } else { run::run(&arguments, ui) }
        }
        Command::Ab(arguments) => ab::run(&arguments, ui),
        Command::Validate(arguments) => validate::run(&arguments, ui),
        Command::Plan(mut arguments) => {
            arguments.overrides = arguments.overrides.with(&arguments.conditions);
            plan::run(&arguments, ui)
        }
        Command::Report(arguments) => report::run(&arguments, ui),
        Command::Diff(arguments) => diff::run(&arguments, ui),
        Command::Bisect(arguments) => bisect::run(&arguments, ui),
        Command::History(arguments) => history::run(&arguments, ui),
        Command::Site(arguments) => site::run(&arguments, ui),
        Command::Reproduce(arguments) => reproduce::run(&arguments, ui),
        Command::Merge(arguments) => merge::run(&arguments, ui),
        Command::Submit(arguments) => submit::run(&arguments, ui),
        Command::List(arguments) => list::list(&arguments, ui),
        Command::Clean(arguments) => list::clean(&arguments, ui),
        Command::Export(arguments) => match &arguments.to {
            Some(client) => track::export(client, &arguments),
            None => archive::export(&arguments, ui),
        },
        Command::Import(arguments) => archive::import(&arguments, ui),
        Command::Stat(arguments) => stat::run(&arguments, ui),
        Command::Inspect(arguments) => inspect::run(&arguments, ui),
        Command::Convert(arguments) => convert::run(&arguments, ui),
        Command::Zoo(arguments) => zoo::run(&arguments, ui),
        Command::Init(arguments) => init::run(&arguments, ui),
        Command::Schema(SchemaArgs { name }) => print(ui, &schema(name)),
        Command::Runtime(arguments) => runtime::run(&arguments, ui),
        Command::Calibrate(arguments) => calibrate::run(&arguments, ui),
        Command::Doctor(arguments) if arguments.fix => fix::run(ui),
        Command::Doctor(arguments) => match &arguments.device {
            Some(device) => verify::run(device, &arguments, ui),
            None => doctor::run(&arguments, ui),
        },
        Command::Explain(arguments) => explain::run(&arguments, ui),
        Command::Completions(CompletionsArgs { shell }) => {
            print(ui, &String::from_utf8_lossy(&cli::completions(shell)))
        }
        Command::ConvertApart { folder } => convert::apart(&folder),
        Command::Worker => match worker::child::serve() {
            Ok(()) => Ok(ExitCode::Done),
            Err(source) => Err(Error::attempt("the worker cannot communicate with its parent process", source)),
        },
    }
}

fn schema(name: SchemaName) -> String {
    match name {
        SchemaName::Experiment => spec::schema_text(),
        SchemaName::Results => results::schema_text(),
        SchemaName::Diff => judge::diff::schema_text(),
        SchemaName::History => judge::history::schema_text(),
        SchemaName::Reproduction => ::report::reproduction::schema_text(),
        SchemaName::Worker => worker::protocol::schema_text(),
    }
}

/// Prints a value as indented JSON and ends well.
fn print_json<T: serde::Serialize>(ui: &Ui, value: &T) -> Result<ExitCode, Error> {
    ui.json(value).map_err(|error| match error.is_io() {
        true => Error::attempt("cannot write to standard output", error.into()),
        false => Error::Internal(error.to_string()),
    })?;
    Ok(ExitCode::Done)
}

/// A value as indented JSON that a terminal may be shown.
fn json_text<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(value).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(printable_json(text))
}

/// Ctrl-C, caught from now on.
fn interrupts() -> Result<Interrupts, Error> {
    Interrupts::catch(ExitCode::Interrupted.number()).map_err(|source| limits::cannot_start_threads(&source))
}

/// Prints data and ends well.
fn print(ui: &Ui, text: &str) -> Result<ExitCode, Error> {
    ui.data(text).map_err(|source| Error::attempt("cannot write to standard output", source))?;
    Ok(ExitCode::Done)
}
