//! Conversions in processes of their own, seen from the measurement.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::activation_ranges;
use crate::run::Job;
use crate::run::job::VariantKey;
use crate::run::session::Session;
use files::scratch::Scratch;
use prepare::models::Made;
use prepare::models::apart::{Reply, Request};
use reading::plain_file;
use worker::exit::{self, OutOfMemoryKills};

/// As long as it takes; the first interrupt ends it.
const PATIENCE: Duration = Duration::MAX;

/// From the cache, or converted now.
pub(super) fn convert(
    job: &Job,
    key: VariantKey,
    mut request: Request,
    session: &mut Session<'_>,
) -> Result<Made, String> {
    if let Some(made) = request.cached() {
        return Ok(made);
    }
    let models = request.cache.join("models");
    let unusable = |error: std::io::Error| {
        format!(
            "cannot use perfrun's cache at {}: {error}; set PERFRUN_CACHE to a folder that can be written",
            models.display()
        )
    };
    let scratch = std::fs::create_dir_all(&models).and_then(|()| Scratch::within(&models)).map_err(unusable)?;
    loop {
        match ask(job, &request, scratch.path(), session)? {
            Reply::Made { was_damaged } => {
                let made = request.cached().ok_or("the cache lost the converted model")?;
                return Ok(Made { was_cached: false, was_damaged, ..made });
            }
            Reply::Observe(model) => {
                request.ranges = Some(activation_ranges::observe(job, key, &request.recipe, &model, session)?);
            }
            Reply::Refused(problem) => return Err(problem),
        }
    }
}

fn ask(job: &Job, request: &Request, folder: &Path, session: &mut Session<'_>) -> Result<Reply, String> {
    let text = serde_json::to_vec(request).expect("a request has string keys only");
    std::fs::write(folder.join(Request::FILE), text).map_err(|error| error.to_string())?;
    let mut command = Command::new(&job.executable);
    command.arg("convert-apart").arg(folder);
    let kills = OutOfMemoryKills::now();
    let ended = session.run_command(command, PATIENCE).map_err(|error| error.to_string())?;
    let reply = plain_file::text(&folder.join(Reply::FILE)).ok().filter(|_| ended.status.success());
    let reply = reply.and_then(|text| serde_json::from_str(&text).ok());
    reply.ok_or_else(|| exit::explained("the conversion", ended.status, &ended.complaint, kills).message)
}
