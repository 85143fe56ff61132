//! `perfrun plan`: the matrix before anything is measured.

use super::forecast::forecasts;
use super::shards::Division;
use super::validate::check_runs;
use super::{libraries, print, print_json, records, specs};
use crate::run::prepare;
use crate::ui::cli::PlanArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, plan as listing, proposal as proposed};
use judge::compare::{judge, proposal};
use judge::summary::summarize_briefly;
use record::ProjectRoot;
use worker::Interrupts;

pub(super) fn run(arguments: &PlanArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let spec = match (&arguments.pilot, &arguments.spec) {
        (Some(record), _) => return propose(record, arguments, ui),
        (None, Some(spec)) => spec,
        (None, None) => return Err(Error::refused("no specification given", "name one, or a record with --pilot")),
    };
    let mut loaded = specs::load(spec, &arguments.overrides)?;
    // Nothing here is worth more than an end at once.
    let nobody = Interrupts::never().map_err(|source| Error::attempt("cannot catch signals", source))?;
    specs::obtain(&mut loaded, false, &nobody, ui)?;
    ui.warnings(&loaded.warnings);
    let mut prepared = prepare(&loaded.experiment)?;
    specs::print_unusual(&prepared, ui);
    specs::select(&mut prepared, &loaded, &arguments.overrides)?;
    if let Some(path) = &arguments.runtime {
        libraries::print_named(&loaded.experiment, path, ui)?;
    }
    if arguments.json {
        return print_json(ui, &prepared.plan);
    }
    let expected = forecasts(&loaded.experiment, &prepared, &ProjectRoot::of(spec)?);
    print(ui, &listing::describe(&loaded.experiment, &loaded.notes, &prepared, &expected))?;
    if let Some(shards) = arguments.shards {
        let project = ProjectRoot::of(spec)?;
        let division = Division::by_this_machine(&prepared, &loaded, shards, &project)?;
        let planned = division.planned(&prepared, &loaded.experiment, &project);
        print(ui, &listing::describe_shards(&planned, ui.width()))?;
    }
    check_runs(&prepared, |_| false).map(|()| ExitCode::Done)
}

/// What a record says about the next one.
fn propose(record: &str, arguments: &PlanArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let relative = arguments.precision.0;
    if !(relative > 0.0 && relative < 1.0) {
        let message = format!("--precision {} is out of range", arguments.precision);
        return Err(Error::refused(message, "use a share between 0% and 100%, such as `--precision 1%`"));
    }
    let record = records::open(&ProjectRoot::here()?, record)?;
    let proposals = proposal::propose(&record.manifest, &record.runs, relative)?;
    if proposals.is_empty() {
        return Err(Error::refused(
            "no cell of this record completed two runs",
            "use a record with more completed runs",
        ));
    }
    let summary = summarize_briefly(&record.manifest, &record.runs)?;
    let needed = proposal::blocks_needed(&record.manifest.plan, &judge(&record.manifest, &summary));
    if arguments.json {
        let value = serde_json::json!({ "precision": relative, "cells": proposals, "comparisons": needed });
        return print_json(ui, &value);
    }
    print(ui, &proposed::describe(&proposals, &needed, relative, ui.width()))
}
