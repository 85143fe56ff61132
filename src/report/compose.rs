//! What is asked for decides what is made: figures are drawn and put into words for the first page, and for none if there
//! is none.

use std::cell::OnceCell;

use super::formats::{Format, Source};
use super::view::Conclusion;
use super::{Input, Rendered, ReportError, TemplateError, UserTemplate, plots, template, view};
use crate::judge::summary::Summary;
use crate::report::results::{self, Results};

/// A report before it has a format: what all of them are made from, each part when it is first asked for.
#[derive(Debug)]
pub struct Composed<'a> {
    input: Input<'a>,
    shown: Summary,
    conclusion: Conclusion,
    results: Results,
    pages: OnceCell<Pages>,
}

/// The page that holds what the first page leaves out.
const HTML: &str = "report.html";

/// The template of the first page.
const FIRST_PAGE: &str = "report.md.j2";

/// What people read.
#[derive(Debug)]
struct Pages {
    report: view::Report,
    plots: plots::Plots,
}

/// What a record says, before anybody asks for a page of it.
///
/// # Errors
///
/// When the summary is not of the manifest's plan.
pub fn compose<'a>(input: &Input<'a>) -> Result<Composed<'a>, ReportError> {
    let (expected, found) = (input.manifest.plan.cells.len(), input.summary.cells.len());
    if expected != found {
        return Err(ReportError::Mismatch { expected, found });
    }
    // Values that are not to be used are in `results.json` with their codes, and shown nowhere.
    let shown = input.summary.shown();
    let conclusion = Conclusion::new(&Input { summary: &shown, ..*input });
    let results = results::results(input.manifest, input.summary, input.judged);
    Ok(Composed { input: *input, shown, conclusion, results, pages: OnceCell::new() })
}

impl Composed<'_> {
    /// What the record comes down to.
    pub fn conclusion(&self) -> &Conclusion {
        &self.conclusion
    }

    /// What the record says, for programs.
    pub fn results(&self) -> &Results {
        &self.results
    }

    /// The files of these formats, and of those that are always made.
    ///
    /// # Errors
    ///
    /// Errors of perfrun's own templates, which are its faults, and those of tables.
    pub fn render(&self, formats: &[Format]) -> Result<Rendered, ReportError> {
        let is_wanted = |format: &Format| format.is_always_made() || formats.contains(format);
        let wanted: Vec<Format> = Format::all().filter(is_wanted).collect();
        let has_html = wanted.iter().any(|format| format.file() == HTML);
        let content = |format: &Format| match format.source() {
            Source::Results(make) => make(&self.results),
            Source::Template(name, _) => {
                let report = view::Report { has_html, ..self.pages().report.clone() };
                Ok(template::render(name, &report)?.into_bytes())
            }
        };
        let files = wanted.iter().map(|format| Ok((*format, content(format)?))).collect::<Result<_, ReportError>>()?;
        let shows_figures = wanted.iter().any(|format| format.shows_figures());
        Ok(Rendered { files, plots: shows_figures.then(|| named(self.pages().plots.of_first_page())) })
    }

    /// The first page without what lies beside it: links and figures.
    ///
    /// # Errors
    ///
    /// A fault of the template.
    pub fn first_page_alone(&self) -> Result<String, ReportError> {
        let report = view::Report { has_html: false, has_files: false, ..self.pages().report.clone() };
        template::render(FIRST_PAGE, &report)
    }

    /// Name and SVG of every figure, for templates of the user's own, which may show any.
    pub fn figures(&self) -> Vec<(String, String)> {
        named(self.pages().plots.all())
    }

    /// A template of the user's own, filled with the same values.
    ///
    /// # Errors
    ///
    /// What is wrong with the template, with its line.
    pub fn fill(&self, template: &UserTemplate) -> Result<String, TemplateError> {
        template.fill(&self.pages().report)
    }

    /// The figures and the view, which are drawn and put into words once.
    fn pages(&self) -> &Pages {
        self.pages.get_or_init(|| {
            let shown = Input { summary: &self.shown, ..self.input };
            let plots = plots::draw(&shown);
            Pages { report: view::Report::new(&shown, self.conclusion.clone(), &plots), plots }
        })
    }
}

/// File name and text of each figure.
fn named<'a>(plots: impl Iterator<Item = &'a plots::Plot>) -> Vec<(String, String)> {
    plots.map(|plot| (plot.file.clone(), plot.svg.clone())).collect()
}

/// The files of the formats that are made from results alone; the others are left out.
///
/// # Errors
///
/// When a table cannot be made.
pub(crate) fn of_results(results: &Results, formats: &[Format]) -> Result<Rendered, ReportError> {
    let content = |format: &Format| match format.source() {
        Source::Results(make) => Some(make(results).map(|content| (*format, content))),
        Source::Template(..) => None,
    };
    let files = formats.iter().filter_map(content).collect::<Result<_, ReportError>>()?;
    Ok(Rendered { files, plots: None })
}
