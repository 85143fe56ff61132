//! `report.md`, for the repository, with the figure of the speed-ups beside it.

use super::{ReportFormat, Source};

pub(super) struct Markdown;

impl ReportFormat for Markdown {
    fn name(&self) -> &'static str {
        "md"
    }

    fn file(&self) -> &'static str {
        "report.md"
    }

    fn meaning(&self) -> &'static str {
        "report.md, one page"
    }

    fn source(&self) -> Source {
        Source::Template("report.md.j2", include_str!("../templates/report.md.j2"))
    }

    fn is_default(&self) -> bool {
        true
    }

    fn shows_figures(&self) -> bool {
        true
    }
}
