//! `results.json`, which every report has: what other records are compared with.

use super::{ReportFormat, Source};
use crate::results;

pub(super) struct Json;

impl ReportFormat for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn file(&self) -> &'static str {
        results::FILE
    }

    fn meaning(&self) -> &'static str {
        results::FILE
    }

    fn source(&self) -> Source {
        Source::Results(|results| Ok(results.to_json().into_bytes()))
    }

    fn is_default(&self) -> bool {
        true
    }

    fn is_always_made(&self) -> bool {
        true
    }
}
