//! Conversions in processes of their own, seen from the process that waits for them.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::run::runner::Runner;
use files::scratch::Scratch;
use prepare::models::apart::{Reply, Request};
use prepare::models::{CacheError, Made, Ranges};
use reading::plain_file;
use worker::backend::{Failure, FailureKind};
use worker::exit::{self, OutOfMemoryKills};

/// As long as it takes; the first interrupt ends it.
const PATIENCE: Duration = Duration::MAX;

/// Runs the model in a file, whose outputs are what has to be observed, and says what ranges they have.
pub(crate) type Observe<'a> = &'a mut dyn FnMut(&Path, &mut Runner<'_>) -> Result<Ranges, String>;

/// From the cache, or converted now by `executable`, which is perfrun.
///
/// # Errors
///
/// Why there is no converted model: of the kind `model`, what is wrong with the model.
pub(crate) fn convert(
    executable: &Path,
    mut request: Request,
    observe: Observe<'_>,
    runner: &mut Runner<'_>,
) -> Result<Made, Failure> {
    if let Some(made) = request.cached() {
        return Ok(made);
    }
    let models = request.cache.join("models");
    let refused = |problem: String| Failure::new(FailureKind::Model, problem);
    let unusable = |source: io::Error| {
        Failure::new(FailureKind::Internal, CacheError::Io { path: models.clone(), source }.to_string())
    };
    let scratch = std::fs::create_dir_all(&models).and_then(|()| Scratch::within(&models)).map_err(unusable)?;
    loop {
        match ask(executable, &request, scratch.path(), runner)? {
            Reply::Made { was_damaged } => {
                let made = request.cached().ok_or_else(|| unusable(io::ErrorKind::NotFound.into()))?;
                return Ok(Made { was_cached: false, was_damaged, ..made });
            }
            Reply::Observe(model) => {
                request.ranges = Some(observe(&model, runner).map_err(refused)?);
            }
            Reply::Refused(problem) => return Err(refused(problem)),
        }
    }
}

fn ask(executable: &Path, request: &Request, folder: &Path, runner: &mut Runner<'_>) -> Result<Reply, Failure> {
    let text = serde_json::to_vec(request).expect("a request has string keys only");
    let failed = |problem: String| Failure::new(FailureKind::Internal, problem);
    std::fs::write(folder.join(Request::FILE), text).map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(executable);
    command.arg("convert-apart").arg(folder);
    let kills = OutOfMemoryKills::now();
    let ended = runner.run_command(command, PATIENCE).map_err(|error| failed(error.to_string()))?;
    let reply = plain_file::text(&folder.join(Reply::FILE)).ok().filter(|_| ended.status.success());
    let reply = reply.and_then(|text| serde_json::from_str(&text).ok());
    reply.ok_or_else(|| exit::explained("the conversion", ended.status, &ended.complaint, kills))
}
