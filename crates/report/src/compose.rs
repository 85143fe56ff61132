//! What is asked for decides what is made: figures are drawn and pages put into words for the first page, and for none if
//! there is none.

use std::cell::OnceCell;

use super::formats::Source;
use super::page::{Conclusion, Page};
use super::{Format, Rendered, ReportError, TemplateError, UserTemplate, plots, template};
use judge::results::Results;
use record::StoredRun;

/// A report before it has a format: what all of them are made from, each part when it is first asked for.
#[derive(Debug)]
pub struct Composed<'a> {
    results: &'a Results,
    samples: Option<&'a [StoredRun]>,
    plots: OnceCell<plots::Plots>,
}

/// The template of the first page.
const FIRST_PAGE: &str = "report.md.j2";

/// A report of these results; distributions and courses are drawn where there are samples.
pub fn compose<'a>(results: &'a Results, samples: Option<&'a [StoredRun]>) -> Composed<'a> {
    Composed { results, samples, plots: OnceCell::new() }
}

impl<'a> Composed<'a> {
    /// What the results come down to.
    pub fn conclusion(&self) -> Conclusion {
        Conclusion::new(self.results)
    }

    /// The files of these formats, and of those that are always made.
    ///
    /// # Errors
    ///
    /// Errors of perfrun's own templates, which are its faults, and those of tables.
    pub fn render(&self, formats: &[Format]) -> Result<Rendered, ReportError> {
        let formats: Vec<Format> = Format::all().filter(|it| it.is_always_made() || formats.contains(it)).collect();
        self.render_only(&formats, &[])
    }

    /// The files of these formats alone; `existing` are those that lie there already.
    ///
    /// # Errors
    ///
    /// As [`Composed::render`].
    pub fn render_only(&self, formats: &[Format], existing: &[Format]) -> Result<Rendered, ReportError> {
        let has_html = formats.iter().chain(existing).any(|format| format.is_whole_page());
        let page: OnceCell<Page<'_>> = OnceCell::new();
        let page = || page.get_or_init(|| Page { has_html, ..self.page() });
        let content = |format: &Format| match format.source {
            Source::Results(make) => make(self.results),
            Source::Template(name, _) => Ok(template::render(name, page())?.into_bytes()),
        };
        let files = formats.iter().map(|format| Ok((*format, content(format)?))).collect::<Result<_, ReportError>>()?;
        let shows_figures = formats.iter().any(|format| format.is_first_page());
        Ok(Rendered { files, plots: shows_figures.then(|| named(self.plots().of_first_page())) })
    }

    /// The first page without what lies next to it: links and figures.
    ///
    /// # Errors
    ///
    /// A fault of the template.
    pub fn first_page_alone(&self) -> Result<String, ReportError> {
        template::render(FIRST_PAGE, &Page { has_html: false, has_files: false, ..self.page() })
    }

    /// Name and SVG of every figure, for templates of the user's own, which may show any.
    pub fn figures(&self) -> Vec<(String, String)> {
        named(self.plots().all())
    }

    /// A template of the user's own, filled with the same values.
    ///
    /// # Errors
    ///
    /// What is wrong with the template, with its line.
    pub fn fill(&self, template: &UserTemplate) -> Result<String, TemplateError> {
        template.fill(&self.page())
    }

    fn page(&self) -> Page<'a> {
        Page::new(self.results, self.plots())
    }

    fn plots(&self) -> &plots::Plots {
        self.plots.get_or_init(|| plots::draw(self.results, self.samples))
    }
}

/// File name and text of each figure.
fn named<'a>(plots: impl Iterator<Item = &'a plots::Figure>) -> Vec<(String, String)> {
    plots.map(|plot| (plot.file.clone(), plot.svg.clone())).collect()
}
