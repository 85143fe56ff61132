//! The YAML parser's errors in plain words.
//!
//! Input: an error of `serde-saphyr`. Output: what is wrong and what to do, for somebody who does not know the grammar.

use serde_saphyr::Error;

/// What is wrong, and a hint that may be empty.
pub(super) fn explain(error: &Error) -> (String, &'static str) {
    let error = cause(error);
    let rendered = error.to_string();
    let raw = rendered.split(" at line ").next().unwrap_or_default();
    match error {
        Error::MultipleDocuments { .. } => {
            ("a second document begins here".to_owned(), "one file is one experiment; write a file for each")
        }
        Error::DuplicateMappingKey { key, .. } => {
            (format!("`{}` is listed twice in the same map", key.as_deref().unwrap_or("a key")), "keep one of the two")
        }
        Error::UnsupportedTag { tag, .. } => (format!("the tag `{tag}` is not supported"), "leave the tag out"),
        Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            ("`<<` merges a map, but this is not a map".to_owned(), "write `<<: *name` where `&name` marks a map")
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("this alias refers to the value that contains it".to_owned(), "")
        }
        Error::NullIntoString { .. } => ("a key is empty".to_owned(), "write `key: value`"),
        Error::Unexpected { expected: "string scalar", .. } => ("a key is a text, not a list or a map".to_owned(), ""),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            "the spec is too large or too deeply nested from here on".to_owned(),
            "repeat less with aliases (`*name`), nest less, or split the file",
        ),
        _ => plain_words(raw),
    }
}

/// The error itself, without the excerpt or the alias that it is wrapped in.
fn cause(error: &Error) -> &Error {
    match error.without_snippet() {
        Error::AliasError { error, .. } => cause(error),
        other => other,
    }
}

/// The scanner's messages that users meet, with what to do; the rest as they are.
fn plain_words(raw: &str) -> (String, &'static str) {
    let known: [(&str, &str, &str); 13] = [
        (
            "mapping values are not allowed",
            "a `: ` that is not expected here",
            "indent the keys of one map alike; quote a text that contains `: `",
        ),
        (
            "expected ':'",
            "this line is neither `key: value` nor an entry of a list",
            "a key is followed by a colon and a space, an entry begins with a dash and a space",
        ),
        ("tabs disallowed", "a tab indents this line", "indent with spaces"),
        ("tab", "a tab where only spaces are allowed", "indent with spaces"),
        ("unclosed bracket '['", "this `[` is never closed", "add the `]`"),
        ("unclosed bracket '{'", "this `{` is never closed", "add the `}`"),
        ("illegal placement of ':'", "a `: ` that is not expected here", "is a `]`, a `}` or a quote missing above?"),
        (
            "flow mapping",
            "syntax error in this map in braces",
            "put commas between its entries, and texts with `,`, `[`, `]`, `{` or `}` in quotes",
        ),
        (
            "flow sequence",
            "syntax error in this list in brackets",
            "put commas between its entries, and texts with `,`, `[`, `]`, `{` or `}` in quotes",
        ),
        (
            "quoted scalar",
            "syntax error in this quoted text",
            "is its closing quote missing? in double quotes a backslash is written twice",
        ),
        (
            "unknown anchor",
            "this `*` starts an alias, but no anchor above has its name",
            "put a glob such as `*.onnx` in quotes; mark what an alias repeats with `&name`",
        ),
        (
            "block sequence entries are not allowed",
            "a list cannot begin here",
            "put `- ` on a line of its own, or write `[a, b]`",
        ),
        ("unexpected character", "a text cannot begin with this character", "put the text in quotes"),
    ];
    match known.iter().find(|(part, ..)| raw.contains(part)) {
        Some((_, message, hint)) => ((*message).to_owned(), hint),
        None => (format!("not YAML: {raw}"), ""),
    }
}
