//! What a report that lies in a folder already says about itself.

use std::path::Path;

use serde::Deserialize;

use super::JSON_FILE;

/// The machine (its salted hash) whose report is in this folder; `None` where there is no report that can be read.
pub fn measured_on(folder: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct Results {
        manifest: Manifest,
    }
    #[derive(Deserialize)]
    struct Manifest {
        host: Host,
    }
    #[derive(Deserialize)]
    struct Host {
        machine: String,
    }
    let text = std::fs::read_to_string(folder.join(JSON_FILE)).ok()?;
    serde_json::from_str::<Results>(&text).ok().map(|results| results.manifest.host.machine)
}
