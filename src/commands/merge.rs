//! `perfrun merge`: several records of one specification as one record, with its report.

use std::collections::BTreeMap;
use std::path::Path;

use super::records;
use super::report::{Destination, Wanted, choose};
use super::submit::{self, Gathered, gather};
use crate::ui::Ui;
use crate::ui::cli::{MergeArgs, Shard};
use crate::ui::error::{Error, ExitCode};
use base::name::is_name;
use reading::plain_file;
use record::hold::Hold;
use record::merge::{MergeError, Part, merge};
use record::{MachineUsed, ProjectRoot, Record, provenance};
use report::Format;

pub(super) fn run(arguments: &MergeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let (mut parts, mut missing) = (Vec::new(), Vec::new());
    let mut is_of_shards = false;
    // Samples are read when the new record is written, from where archives were unpacked.
    let mut unpacked = Vec::new();
    for text in &arguments.records {
        let (name, path) = named(&project, text);
        if project.record(path).is_some() || !Path::new(path).is_dir() {
            let record = records::open(&project, path)?;
            Hold::check_free(&record.folder)?;
            parts.extend(parts_of(&project, record, name)?);
            continue;
        }
        is_of_shards = true;
        let gathered = gather(Path::new(path))?;
        let prefix = name.map_or_else(String::new, |name| format!("{name} "));
        for archive in &gathered.unreadable {
            ui.note(&format!("warning: {archive}"));
        }
        let known = submit::why_missing(Path::new(path));
        let why = |shard: &Shard| format!("{prefix}{}", why_missing(&gathered, *shard, &known));
        missing.extend(gathered.missing().iter().map(why));
        for found in gathered.complete() {
            parts.push(part_of(Record::open(&found.folder)?, name));
        }
        unpacked.push(gathered);
    }
    let parts = distinct(parts)?;
    match parts.as_slice() {
        [] => return Err(Error::refused("no shard is measured", missing.join("\n"))),
        [_] if !is_of_shards => {
            let help = "name at least two records, or the folder of a submitted job or of exported shards";
            return Err(Error::refused(format!("there is nothing to merge with {}", arguments.records[0]), help));
        }
        _ => {}
    }
    if is_of_shards && arguments.records.len() == 1 {
        warn_of_machines(&parts, ui);
    }
    let code = write(&project, &parts, arguments, ui)?;
    for line in &missing {
        ui.labelled("missing", line);
    }
    match missing.len() {
        0 => Ok(code),
        count => {
            let are = if count == 1 { "shard is" } else { "shards are" };
            ui.note(&format!("{count} {are} missing; the report has the others, and lies with the record"));
            Ok(code.worst(ExitCode::RunsFailed))
        }
    }
}

/// A record that is named twice, or lies in two places, is one.
///
/// # Errors
///
/// Under two names of machines.
fn distinct(parts: Vec<Part>) -> Result<Vec<Part>, Error> {
    let mut distinct: Vec<Part> = Vec::new();
    for part in parts {
        let is_same = |known: &&Part| known.manifest == part.manifest && known.runs == part.runs;
        match distinct.iter().find(is_same) {
            Some(known) if known.machine == part.machine => {}
            Some(known) => {
                let message = format!("{} and {} are names of one record", known.machine, part.machine);
                return Err(Error::refused(message, "name each record once: every machine has its own"));
            }
            None => distinct.push(part),
        }
    }
    Ok(distinct)
}

/// `3/8: cancelled ...`.
fn why_missing(gathered: &Gathered, shard: Shard, known: &BTreeMap<u32, String>) -> String {
    let found = gathered.shards.get(&shard.index);
    let left = found.map_or_else(|| "no record".to_owned(), |_| "its record is not complete".to_owned());
    match known.get(&shard.index) {
        Some(why) => format!("{shard}: {left}; {why}"),
        None => format!("{shard}: {left}"),
    }
}

/// Verdicts hold within a machine; whoever asked for shards may not know that there were several.
fn warn_of_machines(parts: &[Part], ui: &Ui) {
    let mut machines: Vec<&str> = parts.iter().map(|part| part.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    if machines.len() > 1 {
        let names = machines.join(", ");
        ui.note(&format!(
            "warning: the shards were measured on different machines ({names}): each device carries its machine, and only cells of one machine are compared. To stay on one kind, submit with --option constraint=..."
        ));
    }
}

/// Merges, writes the record and its report.
fn write(project: &ProjectRoot, parts: &[Part], arguments: &MergeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    check_names(parts)?;
    let refused = |error: MergeError| Error::refused(error.to_string(), error.hint());
    // The name of the new record is part of it, and nothing is written before it is known that it can be made.
    merge(parts, String::new()).map_err(refused)?;
    let experiment = &parts[0].manifest.experiment.name;
    let folder = project.new_record(experiment, &record::now())?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (manifest, runs) = merge(parts, name).map_err(refused)?;
    let record = Record::write(folder, manifest, runs)?;
    let manifest = &record.manifest;
    let wanted = Wanted {
        output: arguments.output.as_deref(),
        replace: arguments.replace,
        machine: None,
        here: provenance::machine(&manifest.host),
    };
    // A report of several machines is written next to those of one machine.
    let now = plain_file::text(&project.root.join(&manifest.spec.path));
    let is_current = now.is_ok_and(|text| text == manifest.spec.text);
    if !is_current && arguments.output.is_none() {
        ui.note(&format!(
            "{} has changed since it was measured; the report goes into the record's folder",
            manifest.spec.path
        ));
    }
    let is_whole = is_current && manifest.restrictions.is_empty() && manifest.machines.len() == 1 && !manifest.quick;
    let target = choose(project, experiment, is_whole, &wanted);
    if let Some(note) = &target.note {
        ui.note(note);
    }
    let folder = target.folder.unwrap_or_else(|| record.folder.clone());
    let destination = Destination { is_of_run: true, ..Destination::replacing(&folder) };
    let written = super::report::write(&record, destination, &arguments.format, &[], ui)?;
    let goals = written.goals;
    Ok(super::run::outcome(&record).worst(goals))
}

/// The name of a machine, where one stands before a record or folder.
fn named<'a>(project: &ProjectRoot, text: &'a str) -> (Option<&'a str>, &'a str) {
    let named = text.split_once('=').filter(|(name, _)| is_name(name) && project.record(text).is_none());
    named.map_or((None, text), |(name, record)| (Some(name), record))
}

/// The record as a part; one that was merged from several machines is the records that it was made from.
fn parts_of(project: &ProjectRoot, record: Record, name: Option<&str>) -> Result<Vec<Part>, Error> {
    let machines = &record.manifest.machines;
    if machines.len() < 2 {
        return Ok(vec![part_of(record, name)]);
    }
    let of_machine = |machine: &MachineUsed| {
        let part = |record_name: &String| match project.record(record_name) {
            Some(folder) => Ok(part_of(Record::open(&folder)?, Some(&machine.name))),
            None => {
                let message = format!("{} was merged from {record_name}, which is not here", record.manifest.record);
                Err(Error::refused(
                    message,
                    "bring it here: `perfrun export` where it was measured, then `perfrun import`",
                ))
            }
        };
        machine.records.iter().map(part).collect::<Result<Vec<Part>, Error>>()
    };
    Ok(machines.iter().map(of_machine).collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect())
}

/// Adds what was measured on one more machine to a record of several, and writes the report of all into a folder.
///
/// # Errors
///
/// Records that the first was merged from and that are not here, and a machine that it has already.
pub(super) fn add_machine(
    project: &ProjectRoot,
    fleet: Record,
    (name, new): (Option<&str>, Record),
    output: &Path,
    ui: &Ui,
) -> Result<ExitCode, Error> {
    let mut parts = parts_of(project, fleet, None)?;
    parts.push(part_of(new, name));
    let (output, format) = (Some(output.to_owned()), Format::defaults().collect());
    write(project, &parts, &MergeArgs { records: Vec::new(), output, format, replace: true }, ui)
}

/// A record, with the name of its machine: as it is given, or made of the processor.
fn part_of(record: Record, name: Option<&str>) -> Part {
    let Record { manifest, runs, .. } = record;
    let default_name = || provenance::name_of_machine(&provenance::machine(&manifest.host));
    Part { machine: name.map_or_else(default_name, str::to_owned), manifest, runs }
}

/// One name is one machine.
fn check_names(parts: &[Part]) -> Result<(), Error> {
    for (index, part) in parts.iter().enumerate() {
        let Some(earlier) = parts[..index].iter().find(|earlier| earlier.machine == part.machine) else { continue };
        let machine = |part: &Part| provenance::machine(&part.manifest.host);
        if let Some(difference) = provenance::differences(&machine(earlier), &machine(part)).first() {
            let message = format!("the records of {} come from different machines ({difference})", part.machine);
            return Err(Error::refused(message, "give each machine its own name: NAME=RECORD"));
        }
    }
    Ok(())
}
