//! `statistics.md`: what decides nothing, for those who want to check or cite it.

use super::{ReportFormat, Source};

pub(super) struct Statistics;

impl ReportFormat for Statistics {
    fn name(&self) -> &'static str {
        "statistics"
    }

    fn file(&self) -> &'static str {
        "statistics.md"
    }

    fn meaning(&self) -> &'static str {
        "statistics.md, effect sizes and tests that decide nothing"
    }

    fn source(&self) -> Source {
        Source::Template("statistics.md.j2", include_str!("../templates/statistics.md.j2"))
    }
}
