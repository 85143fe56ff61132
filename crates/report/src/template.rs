//! A page through the templates. What is undefined is an error; what is a name is escaped.
//!
//! Escaping follows the template's file name: `report.html.j2` as HTML, `report.md.j2` as Markdown, `x.tex.j2` as LaTeX, so
//! that a template cannot forget it. Users' own templates are filled in the same way.

mod escape;
mod numbers;
mod reference;
mod user;

pub use reference::reference_markdown;
pub use user::{TemplateError, UserTemplate};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};
use serde::Serialize;

use super::ReportError;
use super::formats::{Format, Source};
use base::printable::{printable, printable_line};

/// How minijinja learns which texts to escape as what.
const MARKDOWN_ESCAPES: &str = "markdown";
const LATEX_ESCAPES: &str = "latex";

/// What templates include in addition to each other, embedded in the program.
const PARTS: [(&str, &str); 15] = [
    ("first.html.j2", include_str!("templates/first.html.j2")),
    ("report.css", include_str!("templates/report.css")),
    ("page.js", include_str!("templates/page.js")),
    ("filter.js", include_str!("templates/filter.js")),
    ("parts.md.j2", include_str!("templates/parts.md.j2")),
    ("parts.html.j2", include_str!("templates/parts.html.j2")),
    ("cases.xml.j2", include_str!("templates/cases.xml.j2")),
    ("diff.junit.xml.j2", include_str!("templates/diff.junit.xml.j2")),
    ("diff.md.j2", include_str!("templates/diff.md.j2")),
    ("diff.html.j2", include_str!("templates/diff.html.j2")),
    ("site_head.html.j2", include_str!("templates/site_head.html.j2")),
    ("site.html.j2", include_str!("templates/site.html.j2")),
    ("site_experiment.html.j2", include_str!("templates/site_experiment.html.j2")),
    ("site_point.html.j2", include_str!("templates/site_point.html.j2")),
    ("reproduction.md.j2", include_str!("templates/reproduction.md.j2")),
];

/// A template of perfrun's own, filled with what it shows: a report, or what changed between two of them.
///
/// # Errors
///
/// A template that does not fit, which is a fault of perfrun.
pub(crate) fn render<T: Serialize>(name: &str, page: &T) -> Result<String, ReportError> {
    let failed = |source| ReportError::Template { template: name.to_owned(), source };
    let environment = environment().map_err(failed)?;
    environment.get_template(name).and_then(|template| template.render(Serde(page))).map_err(failed)
}

fn environment<'a>() -> Result<Environment<'a>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // Errors know their position in the text, in a release build too.
    environment.set_debug(true);
    environment
        .set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build()?);
    environment.set_auto_escape_callback(escaping);
    environment.set_formatter(write_value);
    environment.add_filter("block", |text: &str| Value::from_safe_string(escape::block(text)));
    environment.add_filter("code", |text: &str| Value::from_safe_string(escape::code(text)));
    environment
        .add_filter("fenced", |text: &str, language: &str| Value::from_safe_string(escape::fenced(text, language)));
    environment.add_filter("prose", |text: &str| Value::from_safe_string(escape::prose(text)));
    environment.add_filter("prose_html", |text: &str| Value::from_safe_string(escape::prose_html(text)));
    environment.add_filter("spaced", |text: &str| Value::from_safe_string(escape::spaced_html(text)));
    environment.add_filter("path_html", |text: &str| Value::from_safe_string(escape::path_html(text)));
    environment.add_filter("html", |text: &str| {
        // A line break would end the element's line, and with it what Markdown takes for HTML.
        Value::from_safe_string(escape::html(&text.replace(['\n', '\r'], " ")))
    });
    environment.add_filter("line", |text: &str| printable_line(text).into_owned());
    environment.add_filter("tex_name", |text: &str| Value::from_safe_string(escape::tex_name(text)));
    numbers::add_filters(&mut environment);
    let of_formats = Format::all().filter_map(|format| match format.source {
        Source::Template(name, text) => Some((name, text)),
        Source::Results(_) => None,
    });
    for (name, text) in of_formats.chain(PARTS) {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

fn escaping(name: &str) -> AutoEscape {
    match name.trim_end_matches(".j2").rsplit('.').next() {
        Some("html" | "htm" | "xml" | "svg") => AutoEscape::Html,
        Some("md" | "markdown") => AutoEscape::Custom(MARKDOWN_ESCAPES.into()),
        Some("tex") => AutoEscape::Custom(LATEX_ESCAPES.into()),
        _ => AutoEscape::None,
    }
}

fn write_value(output: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    let text = value.to_string();
    let text = printable(&text).into_owned();
    let escaped = match state.auto_escape() {
        _ if value.is_safe() => text,
        AutoEscape::Html => escape::html(&text),
        AutoEscape::Custom(name) if name == LATEX_ESCAPES => escape::latex(&text),
        AutoEscape::Custom(_) => escape::inline(&text),
        _ => text,
    };
    output.write_str(&escaped).map_err(minijinja::Error::from)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn file_names_decide_how_names_are_escaped() {
        let mut environment = environment().unwrap();
        environment.add_template("x.html.j2", "{{ name }}").unwrap();
        environment.add_template("x.md.j2", "{{ name }} {{ name|code }}").unwrap();
        environment.add_template("x.tex.j2", "{{ name }}").unwrap();
        environment.add_template("x.csv.j2", "{{ name }}").unwrap();
        let context = minijinja::context! { name => "<b>|*" };
        let render = |name: &str| environment.get_template(name).unwrap().render(&context).unwrap();
        assert_eq!(render("x.html.j2"), "&lt;b&gt;|*");
        assert_eq!(render("x.md.j2"), r"\<b>\|\* `<b>|*`");
        assert_eq!(
            (render("x.tex.j2"), render("x.csv.j2")),
            (r"\textless{}b\textgreater{}|*".to_owned(), "<b>|*".to_owned())
        );
    }

    #[test]
    fn what_is_undefined_is_an_error() {
        let mut environment = environment().unwrap();
        environment.add_template("x.md.j2", "{{ nothing }}").unwrap();
        assert!(environment.get_template("x.md.j2").unwrap().render(()).is_err());
    }
}
