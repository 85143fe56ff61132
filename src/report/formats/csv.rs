//! `results.csv`, for spreadsheets.

use super::{ReportFormat, Source};
use crate::results::tidy;

pub(super) struct Csv;

impl ReportFormat for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn file(&self) -> &'static str {
        "results.csv"
    }

    fn meaning(&self) -> &'static str {
        "results.csv, one row for each cell and metric"
    }

    fn source(&self) -> Source {
        Source::Results(|results| Ok(tidy(results)?.to_csv()?.into_bytes()))
    }
}
