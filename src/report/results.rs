//! `results.json`: what `diff` reads at any revision of a repository.
//!
//! The manifest, the summary with one value a run, and the comparisons: everything that a comparison with another record
//! takes, and nothing of the samples. Format 1; keys stand in the order of the types, numbers read back exactly.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use super::Input;
use super::privacy::without_home;
use crate::compare::Judged;
use crate::store::{FORMAT, Manifest};
use crate::summary::Summary;

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Version of the file.
    pub format: u32,
    /// What was planned, where and with what; the specification's text is in it.
    pub manifest: Manifest,
    /// What each cell's runs say, with one value a run.
    pub summary: Summary,
    /// What is judged: comparisons, families, controls, sight.
    #[serde(flatten)]
    pub judged: Judged,
}

impl Results {
    /// The results of a record, with the home folder taken out of texts that other programs wrote.
    pub fn new(input: &Input<'_>) -> Self {
        let mut manifest = input.manifest.clone();
        manifest.spec.text = without_home(&manifest.spec.text);
        for session in &mut manifest.sessions {
            session.command = without_home(&session.command);
        }
        for skip in &mut manifest.plan.skips {
            skip.reason = without_home(&skip.reason);
        }
        for known in &mut manifest.accuracy {
            known.problem = known.problem.as_deref().map(without_home);
        }
        // The summary has it, cell by cell.
        manifest.fidelity.clear();
        let mut summary = input.summary.clone();
        for failure in summary.cells.iter_mut().flat_map(|cell| &mut cell.failures) {
            failure.failure.message = without_home(&failure.failure.message);
            failure.log_tail = failure.log_tail.as_deref().map(without_home);
        }
        Results { format: FORMAT, manifest, summary, judged: input.judged.clone() }
    }

    /// The text of the file: indented, with innermost lists on one line, so that it is small and its changes are seen.
    pub fn to_json(&self) -> String {
        let mut bytes = Vec::new();
        let mut serializer = Serializer::with_formatter(&mut bytes, Layout::default());
        self.serialize(&mut serializer).expect("results have string keys only, and a vector takes every byte");
        bytes.push(b'\n');
        String::from_utf8(bytes).expect("JSON is UTF-8")
    }
}

/// Indented by one space, since the file is committed and deep, and with every list on one line.
struct Layout {
    pretty: PrettyFormatter<'static>,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { pretty: PrettyFormatter::with_indent(b" ") }
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _writer: &mut W) -> io::Result<()> {
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.pretty.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.pretty.end_object_value(writer)
    }
}
