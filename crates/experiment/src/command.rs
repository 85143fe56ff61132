//! A command that is measured in place of a model.

use std::collections::BTreeMap;
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
    /// A shell command before every execution, outside the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<String>,
    /// A shell command once before anything is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
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

    /// The same with its folder and input seen from a root, to be told from that of another tree.
    #[must_use]
    pub fn below(&self, root: &Path) -> Self {
        let seen = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
        Command { folder: seen(&self.folder), input: self.input.as_deref().map(seen), ..self.clone() }
    }

    /// A process of this command, as yet without output.
    pub fn process(&self, words: &[String]) -> std::process::Command {
        let (program, arguments) = words.split_first().map_or(("", words), |(first, rest)| (first.as_str(), rest));
        let mut process = std::process::Command::new(program);
        process.args(arguments).current_dir(&self.folder).envs(&self.env);
        process
    }
}
