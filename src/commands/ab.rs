//! `perfrun ab 'A' 'B'`: commands against each other, as a specification that no file has.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::admission::Wishes;
use super::measure::{Measurement, measure};
use super::{init, json_text, print, run, specs};
use crate::ui::cli::{AbArgs, Overrides, RunArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, duration};
use base::name;
use base::quantity::Ratio;
use base::wording::list;
use experiment::{Design, calibration};
use files::scratch::Scratch;
use judge::compare::{Calibration, calibrate};
use prepare::runtime;
use reading::shell;
use reading::yaml::scalar;
use record::ProjectRoot;
use report::Format;
use report::format::percent;
use spec::{Loaded, absolute};
use worker::Interrupts;

/// What a specification that is kept has besides.
const GATE: &str = "\n# For `perfrun diff --gate`. CPU time (user and system) is steady where others use the machine too; of a program that
# waits, or that spreads its work over cores, gate `latency`.
gate: [{ metric: cpu_time, worse_by: 5% }]
";

/// Where the time is limited, the number of blocks is not the limit.
const MOST_BLOCKS: u32 = 512;

/// What `--prove` plants and wants found.
const PLANTED: Ratio = Ratio(0.05);

pub(super) fn run(arguments: &AbArgs, ui: &Ui) -> Result<ExitCode, Error> {
    check_counts(arguments)?;
    if let Some(file) = &arguments.export_spec {
        return export(file, arguments, ui);
    }
    let compared = compare(arguments, ui);
    let cleaned = arguments.cleanup.as_ref().map_or(Ok(()), |command| clean_up(command, ui));
    let code = compared?;
    cleaned.map(|()| code)
}

/// Refuses options that are given for each command, but not for all of them.
fn check_counts(arguments: &AbArgs) -> Result<(), Error> {
    let commands = arguments.commands.len();
    if arguments.names.len() > commands {
        let message = format!("{} names for {commands} commands", arguments.names.len());
        return Err(Error::refused(message, "give one `--name` for each command, in their order"));
    }
    let prepares = arguments.prepare.len();
    if prepares > 1 && prepares != commands {
        let message = format!("{prepares} times `--prepare` for {commands} commands");
        return Err(Error::refused(message, "give it once for all of them, or once for each, in their order"));
    }
    Ok(())
}

/// Runs what is to be run at the end, in the shell.
fn clean_up(command: &str, ui: &Ui) -> Result<(), Error> {
    ui.labelled("cleanup", command);
    let mut shell = Command::new("sh");
    let started = shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = started.map_err(|source| Error::attempt("cannot start `sh` for --cleanup", source))?;
    match status.success() {
        true => Ok(()),
        false => Err(Error::refused(format!("`--cleanup {command}` failed, {status}"), "run it by hand")),
    }
}

fn compare(arguments: &AbArgs, ui: &Ui) -> Result<ExitCode, Error> {
    Scratch::remove_left(&runtime::cache_folder());
    let interrupts = &super::interrupts()?;
    let here = absolute(Path::new(""), Path::new("."));
    let project = ProjectRoot::here()?;
    let overrides = Overrides { set: arguments.set.clone(), ..Overrides::default() };
    let load =
        |arguments: &AbArgs| specs::parse(&shown(arguments), &specification("ab", None, arguments), &here, &overrides);
    if arguments.prove {
        let proven = proven(arguments)?;
        let loaded = load(&proven)?;
        let Some((found, took)) = prove(&loaded, &proven, &overrides, &project, interrupts, ui)? else {
            return Ok(ExitCode::Interrupted);
        };
        let (can_gate, line) = verdict(&found, took);
        let is_all = !can_gate || arguments.commands.is_empty();
        if !arguments.json {
            print(ui, &ui.labelled_text("proof", &line))?;
        } else {
            ui.labelled("proof", &line);
            if is_all {
                print(ui, &(json_text(&found)? + "\n"))?;
            }
        }
        if is_all {
            return Ok(if can_gate { ExitCode::Done } else { ExitCode::CheckFailed });
        }
    }
    let loaded = load(arguments)?;
    ui.warnings(&loaded.warnings);
    let words = words(&AbArgs { prove: false, set: Vec::new(), ..arguments.clone() });
    let changes: Vec<String> = arguments.set.iter().map(|change| format!("`{change}`")).collect();
    let more = if changes.is_empty() { String::new() } else { format!(" (then set {} in its file)", list(&changes)) };
    let as_run = RunArgs {
        overrides,
        output: arguments.output.clone(),
        json: arguments.json,
        wait: arguments.wait,
        format: Format::defaults().collect(),
        has_no_file: true,
        kept_by: Some(format!("perfrun ab --export-spec experiments/ab.yaml {words}{more}")),
        ..RunArgs::default()
    };
    let restrictions = specs::restrictions(&as_run.overrides);
    run::measure_one((&shown(arguments), &project), &loaded, &as_run, restrictions, interrupts, ui)
}

/// The specification that the arguments stand for; `cwd` is where commands run, if that is not the folder of its file.
fn specification(name: &str, cwd: Option<&Path>, arguments: &AbArgs) -> String {
    // A single `prepare` for all commands stands next to them.
    let of_each = if arguments.prepare.len() > 1 { arguments.prepare.as_slice() } else { &[] };
    let of_all = arguments.prepare.first().filter(|_| of_each.is_empty());
    let mut text = format!("name: {}\ncommands:\n", scalar(name));
    for (index, command) in arguments.commands.iter().enumerate() {
        let mut keys: Vec<String> =
            arguments.names.get(index).iter().map(|name| format!("name: {}", scalar(name))).collect();
        keys.push(format!("run: {}", scalar(command)));
        keys.extend(arguments.shell.then(|| "shell: true".to_owned()));
        keys.extend(of_each.get(index).map(|prepare| format!("prepare: {}", scalar(prepare))));
        keys.extend(arguments.ignore_failure.then(|| "exit_codes: any".to_owned()));
        text.push_str(&match keys.as_slice() {
            [_] => format!("  - {}\n", scalar(command)),
            keys => format!("  - {{ {} }}\n", keys.join(", ")),
        });
    }
    let cwd = cwd.map(|cwd| cwd.to_string_lossy().into_owned()).filter(|cwd| !cwd.is_empty());
    let (setup, stdout) = (arguments.setup.as_ref(), arguments.stdout.as_ref());
    let settings = [("cwd", cwd.as_ref()), ("setup", setup), ("prepare", of_all), ("stdout", stdout)];
    settings.iter().filter_map(|(key, value)| Some((key, (*value)?))).for_each(|(key, value)| {
        text.push_str(&format!("{key}: {}\n", scalar(value)));
    });
    text.push_str(&match (arguments.runs, arguments.budget) {
        (Some(runs), _) => format!("runs: {runs}\n"),
        (None, Some(_)) => format!("runs: {{ min: 8, max: {MOST_BLOCKS} }}\n"),
        (None, None) => String::new(),
    });
    text.extend(arguments.budget.map(|budget| format!("budget: {budget}\n")));
    let warmup = arguments.warmup.filter(|count| *count > 0);
    let warmup = warmup.map(|count| format!("measure: {{ warmup: {{ mode: samples, count: {count} }} }}\n"));
    text.extend(warmup);
    text
}

/// Writes the specification into a file that is not there, or to standard output.
fn export(file: &Path, arguments: &AbArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let here = absolute(Path::new(""), Path::new("."));
    let overrides = Overrides { set: arguments.set.clone(), ..Overrides::default() };
    let to_stdout = file == Path::new("-");
    let path = if to_stdout { here.join("ab.yaml") } else { absolute(Path::new(""), file) };
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = name::fitting_or(&path.file_stem().unwrap_or_default().to_string_lossy(), "ab");
    // The folder of a printed specification is unknown, so `cwd` is absolute.
    let cwd = if to_stdout { here } else { init::path_from(folder, &here) };
    let text = specification(&name, Some(cwd.as_path()), arguments) + GATE;
    if !to_stdout {
        // A folder that is made now holds nothing that could be wrong.
        std::fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))?;
    }
    specs::parse(file, &text, folder, &overrides)?;
    if !arguments.set.is_empty() {
        ui.note("`--set` is not written; put its keys into the file");
    }
    if to_stdout {
        return print(ui, &text);
    }
    init::write_new(file, &text)?;
    ui.note(&format!("wrote {}", file.display()));
    ui.note(&format!("next: perfrun {}", shell::word(&file.to_string_lossy())));
    Ok(ExitCode::Done)
}

/// What messages and reports call the specification: there is no file.
fn shown(arguments: &AbArgs) -> PathBuf {
    PathBuf::from(format!("ab {}", words(arguments)).trim_end())
}

/// The commands and what is said of them, as they were typed.
fn words(arguments: &AbArgs) -> String {
    let option = |name: &str, value: &dyn std::fmt::Display| format!("{name} {}", shell::word(&value.to_string()));
    let mut words: Vec<String> = Vec::new();
    words.extend(arguments.setup.as_ref().map(|it| option("--setup", it)));
    words.extend(arguments.prepare.iter().map(|it| option("--prepare", it)));
    words.extend(arguments.stdout.as_ref().map(|it| option("--stdout", it)));
    words.extend(arguments.warmup.as_ref().map(|it| option("--warmup", it)));
    words.extend(arguments.ignore_failure.then(|| "--ignore-failure".to_owned()));
    words.extend(arguments.shell.then(|| "--shell".to_owned()));
    words.extend(arguments.runs.as_ref().map(|it| option("--runs", it)));
    words.extend(arguments.budget.as_ref().map(|it| option("--budget", it)));
    words.extend(arguments.set.iter().map(|it| option("--set", it)));
    for (index, command) in arguments.commands.iter().enumerate() {
        words.extend(arguments.names.get(index).map(|it| option("--name", it)));
        words.push(shell::word(command));
    }
    words.join(" ")
}

/// A loop in the shell that takes about 50 ms here.
fn busy_loop() -> Result<String, Error> {
    const TRIED: u32 = 20_000;
    const WANTED: Duration = Duration::from_millis(50);
    let text = |count: u32| format!("i=0; while [ $i -lt {count} ]; do i=$((i+1)); done");
    let mut fastest = Duration::MAX;
    for _ in 0..5 {
        let started = Instant::now();
        let status = Command::new("sh").args(["-c", &text(TRIED)]).stdin(Stdio::null()).status();
        status.map_err(|source| Error::attempt("cannot start `sh`", source))?;
        fastest = fastest.min(started.elapsed());
    }
    let count = f64::from(TRIED) * WANTED.as_secs_f64() / fastest.as_secs_f64().max(1e-4);
    Ok(text((count.round() as u32).clamp(TRIED, 100 * TRIED)))
}

/// What `--prove` measures: the first command, or a loop.
fn proven(arguments: &AbArgs) -> Result<AbArgs, Error> {
    let mut proven = AbArgs { prove: true, ..arguments.clone() };
    proven.commands.truncate(1);
    proven.names.truncate(1);
    proven.prepare.truncate(1);
    if proven.commands.is_empty() {
        proven.commands = vec![busy_loop()?];
        (proven.names, proven.shell) = (vec!["loop".to_owned()], true);
    }
    Ok(proven)
}

/// Measures the command together with an identical copy and one that is slower by [`PLANTED`]; nothing where the user
/// stopped it.
fn prove(
    loaded: &Loaded,
    arguments: &AbArgs,
    overrides: &Overrides,
    project: &ProjectRoot,
    interrupts: &Interrupts,
    ui: &Ui,
) -> Result<Option<(Calibration, Duration)>, Error> {
    let mut derived = loaded.clone();
    derived.experiment = calibration(&loaded.experiment, &[PLANTED], Design::Blocks);
    derived.experiment.budget = loaded.experiment.budget;
    let what = Measurement {
        loaded: &derived,
        file: &shown(arguments),
        project,
        wishes: Wishes { runtime: None, wait: arguments.wait, ..Wishes::default() },
        overrides,
        restrictions: vec!["ab --prove".to_owned()],
    };
    let started = Instant::now();
    let Some((job, code)) = measure(what, interrupts, ui)? else { return Ok(None) };
    if code != ExitCode::Done {
        let failed = job.record().runs.iter().find_map(|run| run.failure.as_ref());
        let why = failed.map_or_else(|| "nothing was measured".to_owned(), |failure| failure.message.clone());
        return Err(Error::refused(format!("the proof could not be measured: {why}"), "run the command by hand"));
    }
    let found = calibrate(&job.record().manifest, &job.record().runs)?;
    Ok(Some((found, started.elapsed())))
}

/// Whether a gate of 5 % can stand on this, and that in a line.
fn verdict(found: &Calibration, took: Duration) -> (bool, String) {
    let found_of = |effect: Ratio| found.effects.iter().find(|it| it.effect == effect);
    let is_found = found_of(PLANTED).is_some_and(|it| it.perfrun.different > 0);
    let identical = found_of(Ratio(0.0));
    let word = identical.and_then(|it| it.verdicts.keys().next()).map_or("not measured", String::as_str);
    let is_alike = identical.is_some_and(|it| it.comparisons > 0 && it.perfrun.different == 0);
    let blocks = found.mean_runs.unwrap_or(f64::from(found.runs));
    if is_found && is_alike {
        let line = format!("yes: {} found in {blocks:.0} blocks ({}), A/A {word}", percent(PLANTED.0), duration(took));
        return (true, line);
    }
    let least = match found.here {
        Some(least) => format!("; differences below {} cannot be told apart here", percent(least)),
        None => String::new(),
    };
    let why =
        if is_alike { format!("a slowdown of {} was not found", percent(PLANTED.0)) } else { format!("A/A {word}") };
    (false, format!("cannot gate {}: {why} in {blocks:.0} blocks ({}){least}", percent(PLANTED.0), duration(took)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(commands: &[&str]) -> AbArgs {
        AbArgs { commands: commands.iter().map(|it| (*it).to_owned()).collect(), ..AbArgs::default() }
    }

    #[test]
    fn the_arguments_are_a_specification() {
        assert_eq!(
            specification("ab", None, &arguments(&["true", "rg x"])),
            "name: ab\ncommands:\n  - \"true\"\n  - \"rg x\"\n"
        );
        let all = AbArgs {
            names: vec!["old".to_owned()],
            shell: true,
            setup: Some("make".to_owned()),
            runs: Some(8),
            ..arguments(&["./old | wc"])
        };
        let text = specification("ab", None, &all);
        assert_eq!(
            text,
            "name: ab\ncommands:\n  - { name: old, run: \"./old | wc\", shell: true }\nsetup: make\nruns: 8\n"
        );
        let loaded = spec::parse("ab", &text, Path::new("/"), &[]).expect("a valid spec");
        assert_eq!(loaded.experiment.models[0].command.as_ref().map(|it| it.words.len()), Some(3));
        let of_hyperfine = AbArgs {
            prepare: vec!["a".to_owned(), "b".to_owned()],
            warmup: Some(3),
            ignore_failure: true,
            ..arguments(&["./a", "./b"])
        };
        assert_eq!(
            specification("ab", None, &of_hyperfine),
            "name: ab\ncommands:\n  - { run: ./a, prepare: a, exit_codes: any }\n  \
             - { run: ./b, prepare: b, exit_codes: any }\nmeasure: { warmup: { mode: samples, count: 3 } }\n"
        );
        assert_eq!(words(&of_hyperfine), "--prepare a --prepare b --warmup 3 --ignore-failure ./a ./b");
        let limited = AbArgs { budget: Some("2m".parse().expect("a time")), ..arguments(&["./a"]) };
        let text = specification("ab", None, &limited);
        assert_eq!(text, "name: ab\ncommands:\n  - ./a\nruns: { min: 8, max: 512 }\nbudget: 2m\n");
        assert_eq!(words(&all), "--setup make --shell --runs 8 --name old './old | wc'");
    }

    /// A calibration of one round: what perfrun said of the identical copy and of the slower one.
    fn calibration(identical: &str, slower: &str) -> Calibration {
        let effect = |effect: f64, verdict: &str| {
            let is_different = u64::from(["better", "worse"].contains(&verdict));
            let count = serde_json::json!({ "different": is_different, "of": 1, "interval": null });
            serde_json::json!({
                "effect": effect, "comparisons": 1, "verdicts": { verdict: 1 }, "detected": count, "perfrun": count,
                "pooled_mann_whitney": count, "pooled_overlap": count, "pooled_change": count,
                "run_median_mann_whitney": count,
            })
        };
        serde_json::from_value(serde_json::json!({
            "format": 2, "experiment": "ab", "machine": "m", "design": "blocks", "runs": 32, "mean_runs": 9.0,
            "margin": 0.02, "noise": [], "block_deviation": 0.01, "in_twelve_blocks": 0.04, "here": 0.031,
            "grade": null, "effects": [effect(0.0, identical), effect(0.05, slower)],
        }))
        .expect("a calibration")
    }

    #[test]
    fn a_machine_can_gate_if_it_finds_what_is_planted_and_nothing_else() {
        let said = |identical: &str, slower: &str| verdict(&calibration(identical, slower), Duration::from_secs(28));
        assert_eq!(said("equivalent", "worse"), (true, "yes: 5 % found in 9 blocks (28 s), A/A equivalent".to_owned()));
        assert!(said("undecided", "worse").0, "no false positive");
        let (can_gate, line) = said("equivalent", "undecided");
        assert!(!can_gate && line.starts_with("cannot gate 5 %: a slowdown of 5 % was not found in 9 blocks (28 s); "));
        assert!(line.ends_with("differences below 3.1 % cannot be told apart here"), "{line}");
        assert!(!said("worse", "worse").0, "a false alarm");
    }
}
