//! `perfrun merge`: several records of one specification as one record, with its report.

use std::path::Path;

use reading::plain_file;

use super::report::{Destination, Wanted, choose};
use super::submit::{self, Gathered, gather};
use crate::record::merge::{MergeError, Part, merge};
use crate::record::{ProjectRoot, Record, provenance};
use crate::ui::Ui;
use crate::ui::cli::{MergeArgs, Shard};
use crate::ui::error::{Error, ExitCode};
use crate::vocabulary::name::is_name;

pub(super) fn run(arguments: &MergeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let place = ProjectRoot::here()?;
    let [one] = &arguments.records[..] else {
        let parts = arguments.records.iter().map(|text| part(&place, text)).collect::<Result<Vec<_>, Error>>()?;
        return write(&place, &parts, arguments, ui);
    };
    let folder = Path::new(one);
    if place.record(one).is_some() || !folder.is_dir() {
        let help = "name at least two records, or the folder of a submitted job or of exported shards";
        return Err(Error::refused(format!("there is nothing to merge with {one}"), help));
    }
    let gathered = gather(folder)?;
    let missing: Vec<String> = gathered.missing().iter().map(|shard| why_missing(folder, &gathered, *shard)).collect();
    let parts = gathered.complete().into_iter().map(|found| Ok(part_of(Record::open(&found.folder)?, None)));
    let parts = parts.collect::<Result<Vec<_>, Error>>()?;
    if parts.is_empty() {
        let help = missing.join("\n");
        return Err(Error::refused(format!("no shard of {one} is measured"), help));
    }
    tell_machines(&parts, ui);
    let code = write(&place, &parts, arguments, ui)?;
    let count = missing.len();
    for line in &missing {
        ui.labelled("missing", line);
    }
    if count > 0 {
        let are = if count == 1 { "is" } else { "are" };
        ui.note(&format!(
            "{count} of {} shards {are} missing; the report has the others, and lies with the record",
            gathered.of
        ));
        return Ok(code.worst(ExitCode::RunsFailed));
    }
    Ok(code)
}

/// `3/8: cancelled ...`.
fn why_missing(folder: &Path, gathered: &Gathered, shard: Shard) -> String {
    let found = gathered.shards.get(&shard.index);
    let left = found.map_or_else(|| "no record".to_owned(), |_| "its record is not complete".to_owned());
    match submit::why_missing(folder, shard) {
        Some(why) => format!("{shard}: {left}; {why}"),
        None => format!("{shard}: {left}"),
    }
}

/// Verdicts hold within a machine; whoever asked for shards may not know that there were several.
fn tell_machines(parts: &[Part], ui: &Ui) {
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
fn write(place: &ProjectRoot, parts: &[Part], arguments: &MergeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    check_names(parts)?;
    let refused = |error: MergeError| Error::refused(error.to_string(), error.hint());
    // The name of the new record is part of it, and nothing is written before it is known that it can be made.
    merge(parts, String::new()).map_err(refused)?;
    let experiment = &parts[0].manifest.experiment.name;
    let folder = place.new_record(experiment, &jiff::Timestamp::now())?;
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
    // A report of several machines stands beside those of one.
    let now = plain_file::text(&place.root.join(&manifest.spec.path));
    let is_current = now.is_ok_and(|text| text == manifest.spec.text);
    if !is_current && arguments.output.is_none() {
        ui.note(&format!(
            "{} has changed since it was measured; the report goes into the record's folder",
            manifest.spec.path
        ));
    }
    let is_whole = is_current && manifest.restrictions.is_empty() && manifest.machines.len() == 1 && !manifest.quick;
    let target = choose(place, experiment, is_whole, &wanted);
    if let Some(note) = &target.note {
        ui.note(note);
    }
    let folder = target.folder.unwrap_or_else(|| record.folder.clone());
    let destination = Destination { is_of_run: true, ..Destination::replacing(&folder) };
    let written = super::report::write(&record, destination, &arguments.format, &[], ui)?;
    let goals = if written.misses_goals { ExitCode::CheckFailed } else { ExitCode::Done };
    Ok(super::run::outcome(&record).worst(goals))
}

/// A record, and the name of its machine: as it is given, or made of the processor.
fn part(place: &ProjectRoot, text: &str) -> Result<Part, Error> {
    let named = text.split_once('=').filter(|(name, _)| is_name(name) && place.record(text).is_none());
    let record = super::records::open(place, named.map_or(text, |(_, record)| record))?;
    Ok(part_of(record, named.map(|(name, _)| name)))
}

fn part_of(record: Record, name: Option<&str>) -> Part {
    let Record { manifest, runs, .. } = record;
    let own = || provenance::name_of_machine(&provenance::machine(&manifest.host));
    Part { machine: name.map_or_else(own, str::to_owned), manifest, runs }
}

/// One name is one machine.
fn check_names(parts: &[Part]) -> Result<(), Error> {
    for (index, part) in parts.iter().enumerate() {
        let Some(other) = parts[..index].iter().find(|other| other.machine == part.machine) else { continue };
        let machine = |part: &Part| provenance::machine(&part.manifest.host);
        if let Some(difference) = provenance::differences(&machine(other), &machine(part)).first() {
            let message = format!("the records of {} come from different machines ({difference})", part.machine);
            return Err(Error::refused(message, "give each machine its own name: NAME=RECORD"));
        }
    }
    Ok(())
}
