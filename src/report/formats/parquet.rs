//! `results.parquet`, for data frames.

use super::{ReportFormat, Source};
use crate::results::tidy;

pub(super) struct Parquet;

impl ReportFormat for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn file(&self) -> &'static str {
        "results.parquet"
    }

    fn meaning(&self) -> &'static str {
        "results.parquet, as results.csv but typed"
    }

    fn source(&self) -> Source {
        Source::Results(|results| {
            let mut bytes = Vec::new();
            tidy(results)?.to_parquet(&mut bytes)?;
            Ok(bytes)
        })
    }
}
