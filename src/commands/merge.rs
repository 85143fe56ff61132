//! `perfrun merge`: several records of one specification as one record, with its report.

use reading::plain_file;

use super::report::{Wanted, choose};
use crate::record::merge::{MergeError, Part, merge};
use crate::record::{ProjectRoot, Record, provenance};
use crate::ui::Ui;
use crate::ui::cli::MergeArgs;
use crate::ui::error::{Error, ExitCode};
use crate::vocabulary::name::is_name;

pub(super) fn run(arguments: &MergeArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let place = ProjectRoot::here()?;
    let parts = arguments.records.iter().map(|text| part(&place, text)).collect::<Result<Vec<_>, Error>>()?;
    check_names(&parts)?;
    let refused = |error: MergeError| Error::refused(error.to_string(), error.hint());
    // The name of the new record is part of it, and nothing is written before it is known that it can be made.
    merge(&parts, String::new()).map_err(refused)?;
    let experiment = &parts[0].manifest.experiment.name;
    let folder = place.new_record(experiment, &jiff::Timestamp::now())?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (manifest, runs) = merge(&parts, name).map_err(refused)?;
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
    let target = choose(&place, experiment, is_whole, &wanted);
    if let Some(note) = &target.note {
        ui.note(note);
    }
    let folder = target.folder.unwrap_or_else(|| record.folder.clone());
    let written =
        super::report::write(&record, super::report::Destination::replacing(&folder), &arguments.format, &[], ui)?;
    let goals = if written.misses_goals { ExitCode::CheckFailed } else { ExitCode::Done };
    Ok(super::run::outcome(&record).worst(goals))
}

/// A record, and the name of its machine: as it is given, or made of the processor.
fn part(place: &ProjectRoot, text: &str) -> Result<Part, Error> {
    let named = text.split_once('=').filter(|(name, _)| is_name(name) && place.record(text).is_none());
    let record = super::records::open(place, named.map_or(text, |(_, record)| record))?;
    let Record { manifest, runs, .. } = record;
    let own = || provenance::name_of_machine(&provenance::machine(&manifest.host));
    Ok(Part { machine: named.map_or_else(own, |(name, _)| name.to_owned()), manifest, runs })
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
