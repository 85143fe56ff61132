//! `perfrun export --to mlflow|wandb`: a record's results through the client of a tracking server, which is Python's.

use std::path::Path;
use std::process::Command;

use super::records;
use crate::ui::cli::ExportArgs;
use crate::ui::error::{Error, ExitCode};
use files::scratch::Scratch;
use prepare::{programs, runtime};
use record::ProjectRoot;
use report::{self, Format};

/// Hands report and results to the client, whose output is this command's.
pub(super) fn export(client: &str, arguments: &ExportArgs) -> Result<ExitCode, Error> {
    let record = records::open(&ProjectRoot::here()?, &arguments.record)?;
    let results = records::results_of(&record)?;
    let cannot = |source| Error::attempt("cannot write the report to a temporary folder", source);
    let scratch = Scratch::new().map_err(cannot)?;
    let rendered = report::compose(&results, Some(&record.runs)).render(&Format::defaults().collect::<Vec<_>>())?;
    let files = rendered.files.iter().map(|(format, bytes)| (format.file.to_owned(), bytes.as_slice()));
    let plots = rendered.plots.iter().flatten().map(|(name, svg)| (name.clone(), svg.as_bytes()));
    for (name, bytes) in files.chain(plots) {
        std::fs::write(scratch.path().join(name), bytes).map_err(cannot)?;
    }
    let mut words = vec![client.into(), scratch.path().join(judge::results::FILE).into_os_string()];
    words.extend(arguments.project.iter().flat_map(|project| ["--project".into(), project.into()]));
    words.extend(arguments.folder.iter().flat_map(|folder| ["--folder".into(), folder.into()]));
    words.extend(arguments.again.then(|| "--again".into()));
    let python = Path::new("python3");
    let cache = runtime::cache_folder();
    let command =
        programs::python_command(python, "track", words, &cache).map_err(|source| Error::write(&cache, source))?;
    let ended = Command::new(&command[0]).args(&command[1..]).status();
    let ended = ended.map_err(|source| Error::attempt("cannot start python3, whose client is used", source))?;
    Ok(match ended.code() {
        Some(0) => ExitCode::Done,
        Some(130) => ExitCode::Interrupted,
        Some(_) | None => ExitCode::UserError,
    })
}
