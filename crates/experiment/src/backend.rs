//! What executes the models, as a specification says it.

use serde::{Deserialize, Serialize};

use super::Mock;

/// What executes the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", from = "Written")]
pub enum Backend {
    /// ONNX Runtime.
    Onnxruntime,
    /// A script in place of models: latencies on a clock of its own.
    Mock(Box<Mock>),
    /// The operating system: `commands` in place of models.
    Commands,
}

/// A backend by its name, or the mock backend with a script of its own.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Script { mock: Box<Mock> },
    Name(Name),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Onnxruntime,
    Mock,
    Commands,
}

impl From<Written> for Backend {
    fn from(written: Written) -> Self {
        match written {
            Written::Script { mock } => Backend::Mock(mock),
            Written::Name(Name::Onnxruntime) => Backend::Onnxruntime,
            Written::Name(Name::Mock) => Backend::Mock(Box::default()),
            Written::Name(Name::Commands) => Backend::Commands,
        }
    }
}

impl Backend {
    /// Whether `models` are files, which are read, converted and executed; else they are names.
    pub fn reads_models(&self) -> bool {
        match self {
            Backend::Onnxruntime => true,
            Backend::Mock(_) | Backend::Commands => false,
        }
    }

    /// Whether commands take the place of models.
    pub fn runs_commands(&self) -> bool {
        matches!(self, Backend::Commands)
    }

    /// The stored name.
    pub fn name(&self) -> &'static str {
        match self {
            Backend::Onnxruntime => "onnxruntime",
            Backend::Mock(_) => "mock",
            Backend::Commands => Backend::COMMANDS,
        }
    }

    /// The name of the one that runs commands.
    pub const COMMANDS: &'static str = "commands";
}
