//! Texts as a user is to write them into a specification.
//!
//! Input: any text. Output: a YAML scalar that every reader reads as this text, within `{ }` and `[ ]` too. Deliberately
//! absent: reading YAML.

/// Words that readers of one version of YAML or another take for something else than a text.
const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];

/// Letters that show as nothing.
const FILLERS: [char; 5] = ['\u{115f}', '\u{1160}', '\u{2800}', '\u{3164}', '\u{ffa0}'];

/// A text as a YAML scalar on one line: plain where nothing can take it for something else, otherwise in double quotes.
pub fn scalar(text: &str) -> String {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic())
        || ["/", "./", "../"].iter().any(|start| text.starts_with(start));
    let is_plain = begins
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-'))
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        // `inf` and `nan`.
        && text.parse::<f64>().is_err();
    if is_plain {
        return text.to_owned();
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\'' => quoted.push(c),
            c if c.escape_debug().len() == 1 && !FILLERS.contains(&c) => quoted.push(c),
            c if u32::from(c) <= 0xffff => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_something_else_is_quoted() {
        for plain in ["mlp-1.onnx", "/tmp/a_b/m.onnx", "../models/m.onnx", "./m.onnx", "none", "e3"] {
            assert_eq!(scalar(plain), plain);
        }
        for quoted in
            ["", "no", "NULL", "~", "1.0", "1e3", ".5", ".inf", "inf", "...", "a: b", "a #b", "*a", "- a", "a,b"]
        {
            assert_eq!(scalar(quoted), format!("\"{quoted}\""));
        }
        assert_eq!(
            scalar("a\"b\\c\td\u{200b}\u{1f600}\u{e0001}ß'"),
            "\"a\\\"b\\\\c\\u0009d\\u200b\u{1f600}\\U000e0001ß'\""
        );
    }
}
