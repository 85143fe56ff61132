//! The page of the protocol: `docs/reference/worker-protocol.md`.

use std::fmt::Write as _;

use serde_json::Value;

use super::{Message, OLDEST_PROTOCOL, PROTOCOL};

const HEAD: &str = r#"# Worker protocol

<!-- Generated from the types by `worker::protocol::reference_markdown`; a test keeps it current. -->

perfrun measures each run in a fresh process, the worker, which it tells step by step what to do.
perfrun's own worker runs ONNX Runtime.
Any other program that speaks this protocol can be measured too, and compared with it:

```yaml
runtimes:
  - "1.31.1"
  - { name: ours, command: [./server-bench, --stdio] }
```

In Python you need none of this: [an adapter](../../adapters/python/README.md) is a class of 15 lines.

## Messages

A message is one JSON object on one line, at most 16 MiB long.
perfrun sends a command; the worker answers with any number of messages, the last of which ends the command.
Then comes the next command.
Times are whole nanoseconds.

- Unknown fields are ignored, on both sides. An unknown `type` is an error.
- Fields that are marked optional may be left out.
- [schemas/worker.schema.json](../../schemas/worker.schema.json) describes every message.

Messages run over a socket whose descriptor is in the environment variable `PERFRUN_FD`; read and write there.
What the program prints goes to its log, 512 KiB of it.
A program that does not know the variable uses standard input and output instead: perfrun greets on both, and goes on where the answer comes from.
Behind a `wrap` that closes descriptors, such as `sudo`, that is the only way.

perfrun decides what is measured when: it keeps deadlines, warms up, stops, and changes the order of variants.
A worker is ended with everything that it started as soon as its run is over, fails, or takes too long.

## A conversation

`>` is perfrun, `<` the worker.

```text
"#;

/// One run of a program, as the page shows it; a test holds both sides to it.
const CONVERSATION: &str = r#"> {"type":"hello","protocol":4,"oldest":4}
< {"type":"hello","protocol":4,"worker":"server-bench 1.2","capabilities":["prepare","slice","check"]}
> {"type":"prepare","cell":{"cell":"net/b1/ours/cpu","backend":{"kind":"program","model":"/tmp/net.onnx","device":"cpu","threads":1},"tensors":[{"name":"x","element":"float32","shape":[1,4],"values":"random","file":"/tmp/0.npy","seeds":[]}],"input_sets":2,"outputs":null}}
< {"type":"metrics","values":{"load_ns":35000000,"first_inference_ns":900000}}
< {"type":"ready","output_hash":"8f3b2c1d00aa7e55"}
> {"type":"slice","time":10000000,"samples":3,"iterations":1}
< {"type":"samples","phase":"measure","columns":{"start_ns":[1000000,1250000,1490000],"duration_ns":[240000,235000,236000],"input":[0,1,0]}}
< {"type":"done"}
> {"type":"check"}
< {"type":"metrics","values":{"cpu_time_ns":231000,"peak_rss_bytes":48000000}}
< {"type":"done","output_hash":"8f3b2c1d00aa7e55"}
> {"type":"finish"}
< {"type":"done"}
"#;

const NOTES: &str = r#"```

1. `hello`: the worker names the version that it speaks, between `oldest` and `protocol`, itself, and the commands that it understands. `prepare` and `slice` are needed. It may name its devices, a JSON Schema of its options, and versions of what it is made of.
2. `prepare`: load the model and run it once. Each tensor's `file` is a `.npy` whose first dimension counts the input sets; set `s` is entry `s` modulo that number, in the tensor's `shape` (bfloat16 as uint16). Report the time as `load_ns`, `build_ns` (compilation) and `first_inference_ns`.
3. `slice`: first run `iterations` inferences untimed, since another program had the caches. Then take samples until `time` has passed or there are `samples`, at least one. A sample is `iterations` inferences between two readings of a monotonic clock; input sets take turns. `start_ns` counts from the start of the first inference. Inputs are where the device can read them before the clock starts, and the result is there when it stops.
4. `check`: report what was used since `prepare`; `done` needs `output_hash`, up to 16 letters that change where the outputs for the first input set do.
5. `outputs` and `evaluate`, if announced, write outputs as files for comparisons and accuracy.
6. `failed` at any time ends the run: `{"type":"failed","failure":{"kind":"missing","message":"torch is not installed","remedy":"pip install torch"}}`.

perfrun's own worker understands `warm` and `measure` instead, in which it applies the rules of warm-up and stopping itself.

## Calls of a language model

A worker that says `decodes` in `hello` gets the cells of `decode` in a specification too. Without it they are skipped.

- `decode.call` is the call: `tokens` of each of `batch` sequences behind `context` positions; where `generated` is not 0, a greedy loop that emits so many tokens. `decode.decoder` names the input of ids (`role`) and the output of `logits`.
- `decode.held` is a `.npy` file with the tokens of the context, int64 `[batch, context]`: those that perfrun's own worker feeds. Fill the cache with them, and before every call take away what the one before added, both outside the clock.
- A loop's output is `tokens`, int64 `[batch, generated]`. In `check` it reports `ttft_ns`, `itl_ns`, `itl_p99_ns`, `itl_largest_ns`, `tpot_ns` and `output_tokens_per_s`, as [the guide](../language-models.md#metrics-of-a-loop) defines them, of the samples of slices without `warms`.

## What perfrun checks

A run fails where answers do not belong to the command, samples overlap or end later than perfrun's own clock, loading took longer than perfrun waited, or a number is negative or not finite.
Metrics that perfrun does not know are ignored.
A cell of another device than the CPU fails unless `placement.nodes` says where it ran.
Where more than 30 % of the time lies outside of the samples, the cell gets the code `W_UNTIMED` and no verdict: a device was not waited for, or copies were left out.
20 us between two samples, 100 ms a command and the untimed inferences are allowed for.
Load times are held against perfrun's clock in the same way (`W_LOAD_UNTIMED`), unless a cache was filled meanwhile.

"#;

/// The text of the page.
pub fn reference_markdown() -> String {
    let versions = format!("This is version {PROTOCOL}; perfrun speaks {OLDEST_PROTOCOL} to {PROTOCOL}.\n");
    let mut text = [HEAD, CONVERSATION, NOTES, &versions].concat();
    let schema = schemars::schema_for!(Message).to_value();
    let definitions = &schema["$defs"];
    for (title, name) in [("Commands", "Command"), ("Answers", "Answer")] {
        push(&mut text, format_args!("\n## {title}\n"));
        for message in definitions[name]["oneOf"].as_array().into_iter().flatten() {
            let word = message["properties"]["type"]["const"].as_str().unwrap_or_default();
            push(&mut text, format_args!("\n### `{word}`{}\n\n{}\n", kind_of(title), description(message)));
            fields(&mut text, message);
        }
    }
    text.push_str("\n## Parts\n");
    for name in [
        "CellRequest",
        "ProgramRequest",
        "PythonSource",
        "OnnxruntimeSettings",
        "DecodeRequest",
        "Call",
        "Decoder",
        "DecoderInput",
        "TensorRequest",
        "Data",
        "Feed",
        "Samples",
        "Placement",
        "Failure",
    ] {
        push(&mut text, format_args!("\n### {name}\n\n{}\n", description(&definitions[name])));
        fields(&mut text, &definitions[name]);
    }
    text
}

/// Commands and answers share words, and headings must differ.
fn kind_of(title: &str) -> &'static str {
    if title == "Answers" { ", answered" } else { "" }
}

fn fields(text: &mut String, definition: &Value) {
    let properties = definition["properties"].as_object();
    let mut rows = properties.into_iter().flatten().filter(|(name, _)| *name != "type").peekable();
    if rows.peek().is_none() {
        return;
    }
    let required = definition["required"].as_array();
    text.push_str("\n| field | | meaning |\n|---|---|---|\n");
    for (name, field) in rows {
        let is_needed = required.is_some_and(|names| names.iter().any(|needed| needed == name.as_str()));
        let need = if is_needed { "" } else { "optional" };
        push(text, format_args!("| `{name}` | {need} | {} |\n", description(field)));
    }
}

fn description(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

/// Writing to a string cannot fail.
fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("a String takes every text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Answer, Command};
    use crate::validator::ResponseValidator;

    #[test]
    fn the_conversation_keeps_to_the_protocol() {
        let (mut validator, mut is_over) = (ResponseValidator::default(), true);
        for line in CONVERSATION.lines() {
            let (who, message) = line.split_at(2);
            if who == "> " {
                assert!(is_over, "before {message}");
                let command: Command = serde_json::from_str(message).expect("a command");
                validator.expect(&command).expect("announced");
            } else {
                let answer: Answer = serde_json::from_str(message).expect("an answer");
                is_over = validator.accept(answer).expect("what belongs to the command");
            }
        }
        assert!(is_over);
        assert_eq!(validator.run.data.measured.len(), 3);
    }
}
