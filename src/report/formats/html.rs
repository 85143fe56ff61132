//! `report.html`: one file, no network.

use super::{ReportFormat, Source};

pub(super) struct Html;

impl ReportFormat for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn file(&self) -> &'static str {
        "report.html"
    }

    fn meaning(&self) -> &'static str {
        "report.html, self-contained"
    }

    fn source(&self) -> Source {
        Source::Template("report.html.j2", include_str!("../templates/report.html.j2"))
    }

    fn is_default(&self) -> bool {
        true
    }
}
