//! `commands`: what takes the place of models, and the keys that then mean nothing.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Axis, command_names};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::files::Depth;
use crate::form::{CommandEntry, CommandForm, ExperimentForm, OneOrMany};
use base::quantity::Nanos;
use experiment::{Command, Model, SamplesWarmup, Stdout, Stop, TimeStop, Warmup};
use reading::nearest::nearest;
use reading::shell;

/// What is about models alone, below the top and below `measure`.
const OF_MODELS: [&[&str]; 2] = [
    &["models", "inputs", "variants", "devices", "plugins", "runtimes", "dataset", "fidelity", "backend"],
    &["inputs", "cache", "boundary", "allow_fallback", "pipelined", "rebuild", "load", "profile"],
];

/// One execution is a fresh process already, so that one warms up, and a block stays short.
pub(super) const WARMUP: Warmup = Warmup::Samples(SamplesWarmup { count: 1 });

/// Half a second, or one execution where that takes longer.
pub(super) const STOP: Stop =
    Stop::Time(TimeStop { time: Nanos::from_millis(500), min_samples: 1, max_samples: 100_000 });

/// Whether commands are measured; says what of the specification does not go with that.
pub(super) fn are_measured(form: &ExperimentForm, check: &mut Check<'_>) -> bool {
    let [top, measure] = [DocumentPath::default(), DocumentPath::top("measure")];
    if !check.has(&top.key("commands")) {
        for key in ["cwd", "setup", "prepare", "paths", "stdout"].map(|key| top.key(key)) {
            refuse(&key, "goes with `commands`, and there are none", "leave it out", check);
        }
        if form.models.as_slice().is_empty() && !check.has(&top.key("models")) {
            let problem = check.at_key(&top, "`models` is missing");
            check.problems.push(problem.with_hint("add what is measured: `models: model.onnx`, or `commands`"));
        }
        return false;
    }
    for (place, keys) in [top, measure].iter().zip(OF_MODELS) {
        for key in keys {
            let way_out = if *key == "variants" { "write an entry of `commands` for each" } else { "leave it out" };
            refuse(&place.key(key), "has no effect on `commands`", way_out, check);
        }
    }
    true
}

fn refuse(place: &DocumentPath, why: &str, hint: &str, check: &mut Check<'_>) {
    if check.has(place) {
        let problem = check.at_key(place, format!("{} {why}", place.name()));
        check.problems.push(problem.with_hint(hint));
    }
}

/// Every command in the order of the file, as what stands on the axis of models.
pub(super) fn expand(form: &ExperimentForm, folder: &Path, check: &mut Check<'_>) -> Axis<Model> {
    let top = DocumentPath::top("commands");
    let mut axis = Axis { values: Vec::new(), is_complete: !check.is_damaged(&top) };
    let mut named = Vec::new();
    let cwd = existing(&DocumentPath::top("cwd"), form.cwd.as_ref(), folder, check);
    let cwd = cwd.unwrap_or_else(|| std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned()));
    for (place, entry) in form.commands.places(&top) {
        let own = match entry {
            CommandEntry::Line(line) => &CommandForm::of(line),
            CommandEntry::Form(form) => form.as_ref(),
        };
        match (!check.is_damaged(&place)).then(|| command(own, form, (folder, &cwd), &place, check)).flatten() {
            Some(command) => {
                named.extend(own.name.as_ref().map(|name| (place, name.0.clone())));
                let name = own.name.as_ref().map(|name| name.0.clone()).unwrap_or_default();
                axis.values.push(Model { command: Some(command), ..Model::new(name, None) });
            }
            None => axis.is_complete = false,
        }
    }
    check.duplicates("commands", &named, "give each its own `name`");
    command_names::name(&mut axis.values);
    axis
}

fn command(
    own: &CommandForm,
    all: &ExperimentForm,
    (folder, cwd): (&Path, &Path),
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Option<Command> {
    let before = check.problems.len();
    let run = if check.has(&place.key("run")) { place.key("run") } else { place.clone() };
    let words = match (&own.run, own.shell) {
        (OneOrMany::One(text), true) => Command::of_shell(text),
        (OneOrMany::Many(_), true) => {
            check.error(&run, "a shell reads one text, and this is a list", "write the command as one text".to_owned());
            return None;
        }
        (OneOrMany::Many(words), false) => words.clone(),
        (OneOrMany::One(text), false) => {
            if let Some(syntax) = shell::syntax(text) {
                check.warn(
                    &run,
                    format!("`{syntax}` is passed to the program as it stands: no shell runs this command"),
                    "`shell: true`, or `--shell` with `perfrun ab`, has a shell run it; quotes around it say that it is meant so",
                );
            }
            shlex::split(text).unwrap_or_default()
        }
    };
    if words.first().is_none_or(String::is_empty) {
        check.error(&run, "this is no command", "a quote is open, or nothing is there".to_owned());
        return None;
    }
    let env: BTreeMap<String, String> =
        own.env.0.iter().map(|(key, setting)| (key.clone(), setting.0.clone())).collect();
    let command = Command {
        words,
        folder: existing(&place.key("cwd"), own.cwd.as_ref(), folder, check).unwrap_or_else(|| cwd.to_owned()),
        env,
        input: own.input.as_ref().and_then(|text| {
            let found = check.depth.one(folder, text);
            found.map_err(|problem| check.error(&place.key("input"), problem.message, problem.hint)).ok()
        }),
        exit_codes: own.exit_codes.codes(),
        stdout: stdout(own, all, place, check),
        prepare: own.prepare.clone().or_else(|| all.prepare.clone()),
        setup: own.setup.clone().or_else(|| all.setup.clone()),
    };
    // What `setup` makes need not be there yet.
    if command.setup.is_none() && check.depth == Depth::Contents {
        check_program(&command, &run, check);
    }
    (check.problems.len() == before).then_some(command)
}

/// What commands are built from and read; it need not be there, since a commit may remove it.
pub(super) fn paths(form: &ExperimentForm, folder: &Path) -> Vec<PathBuf> {
    let of = |text: &String| std::path::absolute(folder.join(text)).unwrap_or_else(|_| folder.join(text));
    form.paths.as_slice().iter().map(of).collect()
}

/// Where its output goes; says where nothing would be there of what `metrics` are read from.
fn stdout(own: &CommandForm, all: &ExperimentForm, place: &DocumentPath, check: &mut Check<'_>) -> Stdout {
    let (place, text) = match &own.stdout {
        Some(text) => (place.key("stdout"), Some(text)),
        None => (DocumentPath::top("stdout"), all.stdout.as_ref()),
    };
    let stdout = text.map_or(Stdout::Pipe, |text| Stdout::of(&text.0));
    if !all.metrics.0.is_empty() && matches!(stdout, Stdout::Null | Stdout::Inherit) {
        let message = format!("`metrics` are read from standard output, which goes to `{stdout}`");
        check.error(&place, message, "write `pipe`, or the name of a file".to_owned());
    }
    stdout
}

/// A folder that is written, if it is and is there.
fn existing(place: &DocumentPath, text: Option<&String>, folder: &Path, check: &mut Check<'_>) -> Option<PathBuf> {
    let found = check.depth.existing(folder, text?);
    found.map_err(|problem| check.error(place, problem.message, problem.hint)).ok()
}

/// Says that a program is not there, and which one was perhaps meant.
fn check_program(command: &Command, place: &DocumentPath, check: &mut Check<'_>) {
    let program = &command.words[0];
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        let path = command.folder.join(program);
        if !is_program(&path) {
            let (why, hint) = match path.exists() {
                true => ("may not be executed", "`chmod +x` lets it run".to_owned()),
                false => ("is not there", format!("it is looked for in {}", command.folder.display())),
            };
            check.error(place, format!("the program `{program}` {why}"), hint);
        }
        return;
    }
    let path = command.env.get("PATH").map(Into::into).or_else(|| env::var_os("PATH")).unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).map(|entry| command.folder.join(entry)).collect();
    if folders.iter().any(|entry| is_program(&entry.join(program))) {
        return;
    }
    let programs: Vec<String> = folders
        .iter()
        .flat_map(fs::read_dir)
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    let hint = nearest(program, programs.iter().map(String::as_str)).map_or_else(
        || "programs of a folder are written with it: `./program`; for what a shell knows: `shell: true`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    check.error(place, format!("there is no program `{program}`"), hint);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{SpecError, parse};
    use experiment::Model;

    fn read(text: &str) -> Result<Vec<Model>, Vec<String>> {
        match parse("x.yaml", text, Path::new("/"), &[]) {
            Ok(loaded) => Ok(loaded.experiment.models),
            Err(SpecError::Invalid(invalid)) => {
                Err(SpecError::Invalid(invalid).problems().iter().map(|it| it.message.clone()).collect())
            }
            Err(other) => Err(vec![other.to_string()]),
        }
    }

    #[test]
    fn exit_codes_are_a_list_or_any() {
        let codes = |text: &str| -> Vec<usize> {
            let models = read(&format!("setup: 'true'\ncommands: {text}")).expect("a valid spec");
            models.into_iter().filter_map(|model| Some(model.command?.exit_codes.len())).collect()
        };
        assert_eq!(codes("[a, { run: b, exit_codes: any }, { run: c, exit_codes: [0, 3] }]"), [1, 256, 2]);
    }

    #[test]
    fn words_are_those_of_a_shell_that_expands_nothing() {
        let models = read("setup: 'true'\ncommands: [\"a 'b c' $d *\", { run: [a, 'b c'] }]").expect("a valid spec");
        let words: Vec<_> = models.into_iter().filter_map(|model| Some(model.command?.words)).collect();
        assert_eq!(words, [vec!["a", "b c", "$d", "*"], vec!["a", "b c"]]);
    }

    #[test]
    fn output_goes_into_a_pipe_unless_a_command_or_all_say_otherwise() {
        let goes = |text: &str| -> Vec<String> {
            let models = read(&format!("setup: 'true'\n{text}")).expect("a valid spec");
            models.into_iter().filter_map(|model| Some(model.command?.stdout.to_string())).collect()
        };
        assert_eq!(goes("commands: [a, { run: b, stdout: null }]"), ["pipe", "null"]);
        assert_eq!(
            goes("commands: [a, { run: b, stdout: pipe }, { run: c, stdout: o.txt }]\nstdout: null"),
            ["null", "pipe", "o.txt"]
        );
        let problems = |text: &str| read(text).expect_err("an invalid spec");
        assert_eq!(problems("commands: 'true'\nstdout:"), ["`stdout` has no value; it must be a text"]);
        assert_eq!(problems("commands: 'true'\nstdout: ../x"), ["`stdout` is `../x`, which cannot be a name"]);
        let metrics = "commands: 'true'\nmetrics: { n: { unit: s } }\nstdout: inherit";
        assert_eq!(problems(metrics), ["`metrics` are read from standard output, which goes to `inherit`"]);
    }

    #[test]
    fn what_is_no_command_or_goes_with_models_is_refused() {
        let problems = |text: &str| read(text).expect_err("an invalid spec");
        assert_eq!(problems("commands: ['true', \"'\"]"), ["this is no command"]);
        assert_eq!(problems("commands: [trueish-program]"), ["there is no program `trueish-program`"]);
        assert_eq!(problems("commands: [./none]"), ["the program `./none` is not there"]);
        assert_eq!(problems("commands: 'true'\nvariants: [fp16]"), ["`variants` has no effect on `commands`"]);
        let measure = "commands: 'true'\nmeasure: { profile: true }";
        assert_eq!(problems(measure), ["`profile` has no effect on `commands`"]);
        assert_eq!(
            problems("backend: mock\nmodels: [m]\nprepare: sync").first().map(String::as_str),
            Some("`prepare` goes with `commands`, and there are none")
        );
        let pipe = parse("x.yaml", "commands: cat x | wc", Path::new("/"), &[]).expect("a valid spec");
        assert_eq!(pipe.warnings[0].message, "`|` is passed to the program as it stands: no shell runs this command");
        for meant in ["[{ run: 'cat x | wc', shell: true }]", "[{ run: [cat, x, '|'] }]", "[\"grep 'a|b' x\"]"] {
            let read = parse("x.yaml", &format!("commands: {meant}"), Path::new("/"), &[]);
            assert!(read.expect("a valid spec").warnings.is_empty(), "{meant}");
        }
        assert_eq!(problems("runs: 5"), ["`models` is missing"]);
    }
}
