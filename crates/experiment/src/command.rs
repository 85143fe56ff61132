//! A command that is measured in place of a model.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use reading::shell;

/// A program with its arguments, and what surrounds each execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// The program and its arguments; no shell reads them.
    pub words: Vec<String>,
    /// Where it runs; absolute in memory.
    pub folder: PathBuf,
    /// Environment variables besides those of perfrun.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The file that is its standard input, absolute in memory; `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<PathBuf>,
    /// The exit codes of an execution that counts.
    pub exit_codes: Vec<i32>,
    /// Where its standard output goes. Absent in records of before there was a choice: nowhere.
    #[serde(default, skip_serializing_if = "Stdout::is_null")]
    pub stdout: Stdout,
    /// A shell command before every execution, outside the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// A shell command once before anything is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
}

/// Where the standard output of a command goes. Programs see the difference: `grep` stops at the first match where it is
/// `/dev/null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdout {
    /// To `/dev/null`.
    #[default]
    Null,
    /// Into a pipe that perfrun reads and counts.
    Pipe,
    /// To where perfrun's own messages go.
    Inherit,
    /// Into this file: by its name, below a folder of the record; for a worker by its path.
    File(PathBuf),
}

impl Stdout {
    fn is_null(&self) -> bool {
        *self == Stdout::Null
    }

    /// From a word or the name of a file.
    pub fn of(text: &str) -> Self {
        match text {
            "null" => Stdout::Null,
            "pipe" => Stdout::Pipe,
            "inherit" => Stdout::Inherit,
            file => Stdout::File(file.into()),
        }
    }
}

/// As a specification has it.
impl fmt::Display for Stdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stdout::Null => f.write_str("null"),
            Stdout::Pipe => f.write_str("pipe"),
            Stdout::Inherit => f.write_str("inherit"),
            Stdout::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Command {
    /// The words of `sh -c` for a text.
    pub fn of_shell(text: &str) -> Vec<String> {
        ["sh", "-c", text].map(str::to_owned).to_vec()
    }

    /// As one would type it.
    pub fn line(&self) -> String {
        self.words.iter().map(|word| shell::word(word)).collect::<Vec<_>>().join(" ")
    }

    /// The same with its folder and input seen from a root, to tell it apart from that of another tree.
    #[must_use]
    pub fn below(&self, root: &Path) -> Self {
        let seen = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
        Command { folder: seen(&self.folder), input: self.input.as_deref().map(seen), ..self.clone() }
    }

    /// A process of this command, as yet without input and output.
    pub fn process(&self, words: &[String]) -> std::process::Command {
        let (program, arguments) = words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
        let mut process = std::process::Command::new(program);
        process.args(arguments).current_dir(&self.folder).envs(&self.env);
        process
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_records_threw_output_away() {
        let older = r#"{ "words": ["true"], "folder": ".", "exit_codes": [0] }"#;
        let read: Command = serde_json::from_str(older).expect("an older command");
        assert_eq!(read.stdout, Stdout::Null);
        for stdout in ["null", "pipe", "inherit", "out.txt"].map(Stdout::of) {
            let text = serde_json::to_string(&Command { stdout: stdout.clone(), ..read.clone() }).expect("JSON");
            assert_eq!(serde_json::from_str::<Command>(&text).expect("it reads back").stdout, stdout, "{text}");
        }
    }
}
