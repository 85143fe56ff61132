//! The worker protocol: commands and answers, one JSON object a line (page: `docs/reference/worker-protocol.md`, schema:
//! `schemas/worker.schema.json`).
//!
//! Unknown fields are ignored, unknown types are an error. Every command is answered by any number of messages and ends
//! with `done`, `ready`, `hello` or `failed`; which belong to which command stands in `worker::expected`.

mod answer;
mod command;
mod reference;

pub use answer::Answer;
pub(crate) use answer::SamplePhase;
pub(crate) use command::CommandName;
pub use command::{Afterwards, Command};
pub use reference::reference_markdown;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The newest version that perfrun speaks.
pub(crate) const PROTOCOL: u32 = 4;

/// The oldest version that perfrun speaks.
pub(crate) const OLDEST_PROTOCOL: u32 = 4;

impl Command {
    /// How perfrun begins.
    pub const HELLO: Command = Command::Hello { protocol: PROTOCOL, oldest: OLDEST_PROTOCOL };
}

/// The answer of a worker that speaks the newest version and says no more of itself.
pub fn greeting(worker: &str, capabilities: Vec<CommandName>) -> Answer {
    let (worker, about) = (worker.to_owned(), BTreeMap::new());
    Answer::Hello { protocol: PROTOCOL, worker, capabilities, devices: None, options: None, about, decodes: false }
}

/// Both halves of the protocol, for the schema.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// From the parent.
    Command(Command),
    /// From the worker.
    Answer(Answer),
}

/// The JSON Schema of both halves, as committed in `schemas/worker.schema.json`.
pub fn schema_text() -> String {
    let schema = schemars::schema_for!(Message);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_tagged_and_unknown_fields_are_ignored() {
        let command = Command::Hello { protocol: 4, oldest: 4 };
        let text = serde_json::to_string(&command).expect("plain JSON");
        assert_eq!(text, r#"{"type":"hello","protocol":4,"oldest":4}"#);
        let newer = r#"{"type":"hello","protocol":4,"oldest":4,"colour":"green"}"#;
        assert_eq!(serde_json::from_str::<Command>(newer).expect("a hello"), command);
    }

    #[test]
    fn unknown_types_are_errors() {
        assert!(serde_json::from_str::<Answer>(r#"{"type":"surprise"}"#).is_err());
        assert!(serde_json::from_str::<Answer>(r#"{"type":"phase","name":"lunch"}"#).is_err());
    }

    #[test]
    fn a_worker_may_understand_more_than_this_version_asks() {
        let newer = r#"{"type":"hello","protocol":4,"worker":"w","capabilities":["warm","of_later","finish"]}"#;
        let hello = serde_json::from_str::<Answer>(newer).expect("a hello");
        let Answer::Hello { worker, capabilities, .. } = hello else { panic!("{hello:?}") };
        assert_eq!((worker.as_str(), &capabilities[..]), ("w", &[CommandName::Warm][..]));
    }

    #[test]
    fn names_are_the_words_of_the_protocol() {
        for name in CommandName::CAPABILITIES.into_iter().chain([CommandName::Hello, CommandName::Finish]) {
            assert_eq!(serde_json::to_value(name).expect("plain JSON"), name.word());
        }
        let tag = |answer: &Answer| serde_json::to_value(answer).expect("plain JSON")["type"].clone();
        for answer in [Answer::done(), Answer::Metrics { values: BTreeMap::new() }] {
            assert_eq!(tag(&answer), answer.word());
        }
        assert_eq!(serde_json::to_value(Command::Check).expect("plain JSON")["type"], Command::Check.name().word());
    }
}
