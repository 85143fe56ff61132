//! Forms of `commands`.

use schemars::{JsonSchema, json_schema};
use serde::{Deserialize, Serialize};

use super::scalar::{Name, Setting, StdoutText, VARIABLE_PATTERN};
use super::shorthand::{OneOrMany, Ordered, described};

/// An entry of `commands`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CommandEntry {
    /// The command as one would type it.
    Line(String),
    /// With its settings.
    Form(Box<CommandForm>),
}

/// A command with its settings.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "command")]
pub(crate) struct CommandForm {
    /// What reports call it. Default: the program's name, with the words that differ where several have the same.
    pub(crate) name: Option<Name>,
    /// The command: one text, which is split into words as a shell does, or a list of words. No shell runs it.
    pub(crate) run: OneOrMany<String>,
    /// Whether `sh -c` runs the text, so that pipes, variables and `*` work; the start of the shell is then timed too.
    #[serde(default)]
    pub(crate) shell: bool,
    /// The folder in which it runs, relative to this file. Default: that of the experiment.
    pub(crate) cwd: Option<String>,
    /// Environment variables.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": VARIABLE_PATTERN }))]
    pub(crate) env: Ordered<Setting>,
    /// The file that it reads as standard input, relative to this file. Default: nothing.
    pub(crate) input: Option<String>,
    /// Exit codes of a good execution, or `any`; any other is a failed run.
    #[serde(default = "success")]
    pub(crate) exit_codes: ExitCodesForm,
    /// Where its standard output goes. Default: that of the experiment.
    pub(crate) stdout: Option<StdoutText>,
    /// A shell command before every execution, outside the clock. Default: that of the experiment.
    pub(crate) prepare: Option<String>,
    /// A shell command once before anything is measured, in the same folder. Default: that of the experiment.
    pub(crate) setup: Option<String>,
}

impl CommandForm {
    /// That of a command of which no more is said.
    pub(crate) fn of(line: &str) -> Self {
        CommandForm {
            name: None,
            run: OneOrMany::One(line.to_owned()),
            shell: false,
            cwd: None,
            env: Ordered::default(),
            input: None,
            exit_codes: success(),
            stdout: None,
            prepare: None,
            setup: None,
        }
    }
}

fn success() -> ExitCodesForm {
    ExitCodesForm::These(vec![0])
}

/// Exit codes of a good execution.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExitCodesForm {
    /// Every one.
    Any,
    /// These.
    #[serde(untagged)]
    These(Vec<i32>),
}

impl ExitCodesForm {
    /// Each of them.
    pub(crate) fn codes(&self) -> Vec<i32> {
        match self {
            ExitCodesForm::Any => (0..=255).collect(),
            ExitCodesForm::These(codes) => codes.clone(),
        }
    }
}

described!(ExitCodesForm, "exit-codes", |_| {
    json_schema!({
        "description": "Exit codes of a good execution: a list, or `any`.",
        "anyOf": [
            { "type": "string", "enum": ["any"] },
            { "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 }, "minItems": 1 },
        ],
    })
});

described!(CommandEntry, "command-entry", |generator| {
    let form = generator.subschema_for::<CommandForm>();
    json_schema!({
        "description": "A command as one would type it, or one with settings.",
        "anyOf": [{ "type": "string", "minLength": 1 }, form],
    })
});
