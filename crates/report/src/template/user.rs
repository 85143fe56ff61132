//! A template of the user's own: `perfrun report RECORD --template FILE`.
//!
//! Input: a file, and the page that the reports are made from. Output: a text under the file's name without `.j2`. What is
//! wrong with a template is the user's to mend, so errors name the file and underline the line.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};
use minijinja::ErrorKind;
use minijinja::value::Serde;

use super::environment;
use super::reference::{FILTERS, filter_name, page_names};
use crate::Format;
use crate::page::Page;
use base::printable::{printable, printable_in_place};
use reading::nearest::nearest;
use reading::plain_file;

/// A template as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserTemplate {
    /// The file, as the user named it.
    path: PathBuf,
    /// Its file name, which decides how values are escaped.
    name: String,
    text: String,
}

/// What is wrong with a template.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum TemplateError {
    #[error("cannot read the template {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: the result would replace {what}")]
    #[diagnostic(help("a template is named after its result: `table.tex.j2` makes `table.tex`"))]
    Name { path: PathBuf, what: String },
    #[error("{path}:{line}: {reason}")]
    Fill {
        path: String,
        /// Line, from 1.
        line: usize,
        reason: String,
        #[source_code]
        excerpt: Arc<NamedSource<String>>,
        #[label]
        at: SourceSpan,
        #[help]
        help: Option<String>,
    },
}

/// Files and folders of a record other than its tables.
const RECORD_FILES: [&str; 8] =
    ["manifest.json", "sessions.json", "budget.json", "complete.json", "passes", "local.json", "journal", "logs"];

/// Endings that a template's name has and its result's has not.
const ENDINGS: [&str; 3] = [".j2", ".jinja2", ".jinja"];

impl UserTemplate {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is not UTF-8, or its name without `.j2` is that of one of the report's own files or
    /// the template's.
    pub fn read(path: &Path) -> Result<Self, TemplateError> {
        let text = plain_file::text(path).map_err(|source| TemplateError::Read { path: path.to_owned(), source })?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let template = UserTemplate { path: path.to_owned(), name, text };
        let output = template.output();
        let lower = output.to_lowercase();
        if output.is_empty() || Format::all().any(|format| format.file == lower) {
            return Err(template.in_the_way("a file of the report"));
        }
        // The report of a partial record lies among its data, which nothing may ever replace.
        if RECORD_FILES.contains(&lower.as_str()) || lower.ends_with(".parquet") {
            return Err(template.in_the_way("a file of a record"));
        }
        if lower.ends_with(".svg") {
            return Err(template.in_the_way("a figure of the report"));
        }
        Ok(template)
    }

    /// Name of the file that it makes: the template's, without `.j2`.
    pub fn output(&self) -> &str {
        ENDINGS.iter().find_map(|ending| self.name.strip_suffix(ending)).unwrap_or(&self.name)
    }

    /// Whether its result in `folder` would replace the template.
    pub fn would_replace_itself(&self, folder: &Path) -> bool {
        let same = |first: &Path, second: &Path| match (first.canonicalize(), second.canonicalize()) {
            (Ok(first), Ok(second)) => first == second,
            _ => false,
        };
        same(&folder.join(self.output()), &self.path)
    }

    /// The error that says what a result would replace.
    pub fn in_the_way(&self, what: &str) -> TemplateError {
        TemplateError::Name { path: self.path.clone(), what: what.to_owned() }
    }

    /// The filled template.
    ///
    /// # Errors
    ///
    /// What minijinja says about it, with the line.
    pub(crate) fn fill(&self, page: &Page<'_>) -> Result<String, TemplateError> {
        let filled = environment().and_then(|environment| {
            environment.template_from_named_str(self.output(), &self.text)?.render(Serde(page))
        });
        filled.map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &minijinja::Error) -> TemplateError {
        let line = error.line().unwrap_or(1).max(1);
        let detail = error.detail().unwrap_or_default();
        let (names, says_all) = match error.kind() {
            ErrorKind::UnknownFilter => (FILTERS.map(|(written, _)| filter_name(written).to_owned()).into(), true),
            ErrorKind::UndefinedError => (page_names(), true),
            kind => (Vec::new(), matches!(kind, ErrorKind::InvalidOperation | ErrorKind::TemplateNotFound)),
        };
        let reason = match detail {
            "" => error.kind().to_string(),
            detail if says_all => detail.to_owned(),
            detail => format!("{}: {detail}", error.kind()),
        };
        let range = error.range().filter(|range| self.text.get(range.clone()).is_some());
        let reason = match range.clone().and_then(|range| self.misused_filter(error.kind(), range)) {
            None => reason,
            Some(name) => {
                let problem = match error.kind() {
                    ErrorKind::CannotDeserialize => "what it is given is no cell",
                    _ => &reason,
                };
                let written = FILTERS.iter().find(|(written, _)| filter_name(written) == name);
                let written = written.map_or(String::new(), |(written, _)| format!("; write `{written}`"));
                format!("filter `{name}`: {problem}{written}")
            }
        };
        // "filter foo is unknown", "`foo` is undefined"
        let word = detail.split([' ', '`']).nth(1).unwrap_or_default();
        let meant = nearest(word, names.iter().map(String::as_str));
        let meant = meant.map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
        let help = (error.kind() != ErrorKind::SyntaxError).then(|| {
            format!(
                "{meant}docs/reference/template.md lists every name and filter; a value that may be absent is `none`"
            )
        });
        TemplateError::Fill {
            path: self.path.display().to_string(),
            line,
            reason,
            excerpt: Arc::new(NamedSource::new(
                printable(&self.path.display().to_string()),
                printable_in_place(&self.text).into_owned(),
            )),
            at: range.map_or_else(|| self.span_of(line), |range| (range.start, range.len()).into()),
            help,
        }
    }

    /// The filter at a span of the text, if what is wrong is how it is used: minijinja does not say its name.
    fn misused_filter(&self, kind: ErrorKind, span: Range<usize>) -> Option<&str> {
        let is_misuse = matches!(
            kind,
            ErrorKind::InvalidOperation
                | ErrorKind::MissingArgument
                | ErrorKind::TooManyArguments
                | ErrorKind::CannotDeserialize
        );
        let is_filter = is_misuse && self.text[..span.start].trim_end().ends_with('|');
        self.text[span].split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|_| is_filter)
    }

    /// A line without the room around it, in bytes.
    fn span_of(&self, line: usize) -> SourceSpan {
        let start: usize = self.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
        let text = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let indent = text.len() - text.trim_start().len();
        (start + indent, text.trim().len()).into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn template(name: &str, text: &str) -> (tempfile::TempDir, Result<UserTemplate, TemplateError>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let read = UserTemplate::read(&path);
        (folder, read)
    }

    #[test]
    fn results_are_named_after_their_templates() {
        for (name, output) in [("a.tex.j2", "a.tex"), ("a.md.jinja", "a.md"), ("a.txt", "a.txt"), ("a.j2", "a")] {
            assert_eq!(template(name, "").1.unwrap().output(), output);
        }
        for name in ["report.md.j2", "results.json", ".j2"] {
            assert!(matches!(template(name, "").1, Err(TemplateError::Name { .. })), "{name}");
        }
    }

    #[test]
    fn a_result_never_replaces_what_others_made() {
        for name in ["report.md.j2", "Results.json", "samples.parquet.j2", "manifest.json.j2", "logs", "speedup.svg.j2"]
        {
            let (_folder, read) = template(name, "");
            assert!(matches!(read, Err(TemplateError::Name { .. })), "{name}");
        }
    }

    #[test]
    fn a_result_never_replaces_its_template() {
        let (folder, read) = template("a.tex", "");
        assert!(read.unwrap().would_replace_itself(folder.path()));
        let (folder, read) = template("a.tex.j2", "");
        assert!(!read.unwrap().would_replace_itself(folder.path()));
    }

    #[test]
    fn mistakes_name_their_line() {
        let (_folder, read) = template("a.txt", "first\n  {{ nothing }}\n");
        let template = read.unwrap();
        let environment = environment().unwrap();
        let error =
            environment.template_from_named_str(template.output(), &template.text).unwrap().render(()).unwrap_err();
        let TemplateError::Fill { line, .. } = template.explain(&error) else { panic!("a mistake of the template") };
        assert_eq!(line, 2);
        assert_eq!(template.span_of(2), (8, 13).into());
        assert_eq!(template.span_of(9), (22, 0).into());
    }

    #[test]
    fn every_filter_of_the_reference_is_one() {
        let environment = environment().unwrap();
        for (written, _) in FILTERS {
            let text = format!("{{{{ 1|{} }}}}", filter_name(written));
            let filled = environment.template_from_named_str("a.txt", &text).unwrap().render(());
            assert!(filled.is_err_and(|error| error.kind() != ErrorKind::UnknownFilter), "{written}");
        }
    }

    #[test]
    fn mistakes_with_filters_say_how_they_are_written() {
        let path = "write `cell|path`";
        for (text, reason, help) in [
            ("{{ cells|path }}", path, "docs/reference"),
            ("{{ 1|path }}", "filter `path`: what it is given is no cell; write `cell|path`", ""),
            ("{{ 'a'|code(3) }}", "filter `code`: too many arguments; write `text|code`", ""),
            ("{{ 'a'|fenced }}", "filter `fenced`: missing argument; write `text|fenced(\"yaml\")`", ""),
            ("{{ 1|code }}", "filter `code`: value is not a string; write `text|code`", ""),
            ("{{ cells|column('nope') }}", "filter `column`: ", ""),
            ("{{ 1.5|round('x') }}", "filter `round`: cannot convert string to i32", ""),
            ("{{ 'x'|replace }}", "filter `replace`: missing argument", ""),
            ("{{ 1 + 'x' }}", "tried to use + operator", ""),
            ("{{ cells|with('latency') }}", "filter `with`: `latency` is no number of results.json", ""),
            ("{{ 1|esitmates }}", "filter esitmates is unknown", "did you mean `estimates`? "),
            ("{{ notcies }}", "`notcies` is undefined", "did you mean `notices`? "),
        ] {
            let (_folder, read) = template("a.txt", text);
            let template = read.unwrap();
            let context = minijinja::context! { cells => [0; 0], cell => 1 };
            let environment = environment().unwrap();
            let error = environment.template_from_named_str("a.txt", text).unwrap().render(context).unwrap_err();
            let TemplateError::Fill { reason: found, help: remedy, .. } = template.explain(&error) else { panic!() };
            assert!(found.contains(reason), "{text}: {found}");
            assert!(remedy.unwrap().starts_with(help), "{text}");
        }
    }
}
