//! `perfrun zoo`: the networks that perfrun makes.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::{print, print_json};
use crate::ui::cli::{NetworkArgs, ZooAction, ZooArgs};
use crate::ui::error::{Error, ExitCode};
use crate::ui::{Ui, table};
use experiment::Network;
use onnx::zoo::{self, Architecture, Settings};
use prepare::models;
use prepare::runtime;
use reading::nearest::nearest;
use reading::plain_file;
use record::write_with;
use report::format::fixed;
use report::page::{Table, TableCell, TableColumn};

pub(super) fn run(arguments: &ZooArgs, ui: &Ui) -> Result<ExitCode, Error> {
    match &arguments.action {
        ZooAction::List { json: true } => print_json(ui, &zoo::architectures().iter().map(as_json).collect::<Vec<_>>()),
        ZooAction::List { json: false } => print(ui, &listing(ui)),
        ZooAction::Export { network, output, settings } => export(network, output.as_deref(), settings, ui),
    }
}

fn as_json(architecture: &Architecture) -> serde_json::Value {
    json!({
        "name": architecture.name,
        "title": architecture.title,
        "parameters": architecture.parameters,
        "macs": architecture.macs,
        "input": architecture.input,
        "classes": architecture.classes,
        "image": architecture.image.map(|image| image.side),
        "caches": architecture.caches,
        "source": architecture.source,
    })
}

fn listing(ui: &Ui) -> String {
    let millions = |number: u64| format!("{} M", fixed(number as f64 / 1e6, 1));
    let columns = vec![
        TableColumn::text("network"),
        TableColumn::number("parameters"),
        TableColumn::number("MACs"),
        TableColumn::text("usual input"),
    ];
    let row = |architecture: &Architecture| {
        let (parameters, macs) = (millions(architecture.parameters), millions(architecture.macs));
        [architecture.name.to_owned(), parameters, macs, architecture.input.to_owned()].map(TableCell::from).to_vec()
    };
    table::render(&Table::of(columns, zoo::architectures().iter().map(row)), ui.width())
        + "\n\nIn a specification: `models: zoo:resnet50`. Weights are random (seeded), not trained:\nspeed and memory are realistic, outputs are meaningless.\n"
}

/// The network of that name.
///
/// # Errors
///
/// When perfrun makes none, with the nearest that it makes.
pub(super) fn network(name: &str) -> Result<Network, Error> {
    Network::of_name(name).ok_or_else(|| {
        let message = format!("there is no built-in network `{name}`");
        let near = nearest(name, Network::ALL.map(Network::name)).map(|near| format!("did you mean `{near}`?"));
        Error::refused(message, near.unwrap_or_else(|| "`perfrun zoo list` lists them".to_owned()))
    })
}

/// The file of a network, in the cache.
///
/// # Errors
///
/// As [`network`]; settings that it cannot have, and a cache that cannot be written.
pub(super) fn file(name: &str, settings: &NetworkArgs) -> Result<PathBuf, Error> {
    let NetworkArgs { classes, image, cache } = *settings;
    let settings = Settings { classes, image, cache, ..Settings::default() };
    let mut no_progress = |_: models::Progress<'_>| {};
    Ok(models::network_file(name, network(name)?, &settings, &runtime::cache_folder(), &mut no_progress)?)
}

fn export(name: &str, output: Option<&Path>, settings: &NetworkArgs, ui: &Ui) -> Result<ExitCode, Error> {
    network(name)?;
    let output = output.map_or_else(|| PathBuf::from(format!("{name}.onnx")), Path::to_path_buf);
    if output.exists() {
        let message = format!("{} already exists", output.display());
        return Err(Error::refused(message, "name another file with `-o`, or remove it first"));
    }
    let path = file(name, settings)?;
    let mut file = plain_file::open(&path).map_err(|source| Error::read(&path, source))?;
    write_with(&output, |mut copy| io::copy(&mut file, &mut copy).map(drop))?;
    print(ui, &format!("wrote {}\n", output.display()))
}
