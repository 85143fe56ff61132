//! The code of a file without its tests.

/// `text` without the items under `#[cfg(test)]`; everything else stays, also what follows them.
pub(super) fn without_tests(text: &str) -> String {
    parts(text).0
}

/// Names of modules in files of their own that are tests: `#[cfg(test)] mod name;`.
pub(super) fn test_modules(text: &str) -> Vec<String> {
    let name = |item: String| {
        let words = item.strip_suffix(';')?.rsplit_once("mod ")?.1.trim().to_owned();
        words.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(words)
    };
    parts(text).1.into_iter().filter_map(name).collect()
}

/// Functions under `#[test]`.
pub(super) fn test_functions(text: &str) -> Vec<String> {
    split(text, |rest| rest.starts_with("#[test]")).1
}

/// Every word outside of lines of comment.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_')))
}

/// Whether some token of a code is this word.
pub(super) fn has_word(code: &str, word: &str) -> bool {
    let mut rest = code;
    while !rest.is_empty() {
        let (token, behind) = rest.split_at(token_length(rest));
        if token == word {
            return true;
        }
        rest = behind;
    }
    false
}

/// The code without test items, and the test items.
fn parts(text: &str) -> (String, Vec<String>) {
    split(text, is_test_attribute)
}

/// The code without the items under an attribute, and these items.
fn split(text: &str, is_start: impl Fn(&str) -> bool) -> (String, Vec<String>) {
    let (mut kept, mut items) = (String::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let length = if is_start(rest) {
            let length = item_length(rest);
            items.push(rest[..length].to_owned());
            length
        } else {
            let length = token_length(rest);
            kept.push_str(&rest[..length]);
            length
        };
        at += length;
    }
    (kept, items)
}

fn is_test_attribute(rest: &str) -> bool {
    ["#[cfg(test)", "#[cfg(all(test,"].iter().any(|attribute| rest.starts_with(attribute))
}

/// Length of an attribute with the item behind it: to a `;`, to the end of a block, or, for a field or a match arm, to a
/// comma.
fn item_length(rest: &str) -> usize {
    let (mut at, mut depth, mut in_attribute, mut is_item) = (0, 0_i32, false, false);
    while at < rest.len() {
        let token = &rest[at..at + token_length(&rest[at..])];
        match token {
            "#" if depth == 0 => in_attribute = true,
            "(" | "[" | "{" => depth += 1,
            // The end of what the item stands in, where no comma came before.
            ")" | "]" | "}" if depth == 0 => return at,
            ")" | "]" | "}" => {
                depth -= 1;
                let is_over = depth == 0 && token == "}" && !in_attribute;
                in_attribute &= depth > 0;
                let follows = rest[at + 1..].trim_start();
                if is_over && !follows.starts_with([';', '.', '?']) {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            "," if depth == 0 && !is_item => return at + 1,
            "fn" | "mod" | "use" | "impl" | "struct" | "enum" | "trait" | "const" | "static" | "type" | "let"
                if depth == 0 =>
            {
                is_item = true;
            }
            _ => {}
        }
        at += token.len();
    }
    rest.len()
}

/// Length of the first token: a comment, a text, a character, a word, or a single character of anything else.
fn token_length(rest: &str) -> usize {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    let prefix = rest.len() - rest.trim_start_matches(['b', 'c', 'r']).len();
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return comment_length(rest);
    }
    if prefix <= 2
        && let Some(length) = text_length(&rest[prefix..], rest[..prefix].contains('r'))
    {
        return prefix + length;
    }
    if rest.starts_with('\'') {
        return character_length(rest);
    }
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    word.max(first)
}

fn comment_length(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        match rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// Length of a text in quotes, behind its prefix; `None` if there is none.
fn text_length(rest: &str, is_raw: bool) -> Option<usize> {
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    if !rest[hashes..].starts_with('"') || (hashes > 0 && !is_raw) {
        return None;
    }
    if is_raw {
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = &rest[hashes + 1..];
        return Some(inner.find(&end).map_or(rest.len(), |at| hashes + 1 + at + end.len()));
    }
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    Some(end.map_or(rest.len(), |(at, _)| at + 1))
}

/// Length of a character in quotes; 1 where the quote begins a lifetime.
fn character_length(rest: &str) -> usize {
    let mut inner = rest[1..].chars();
    match (inner.next(), inner.next()) {
        (Some('\\'), _) => rest[3.min(rest.len())..].find('\'').map_or(rest.len(), |at| at + 4),
        (Some(character), Some('\'')) => 2 + character.len_utf8(),
        _ => 1,
    }
}

#[test]
fn code_after_a_test_item_is_read() {
    let text = r##"
        #[cfg(test)]
        mod vectors;
        use one::{Two, Three};
        #[cfg(test)]
        use tests::{Hidden, Four};
        #[cfg(test)]
        #[allow(dead_code)]
        pub const HIDDEN: [u8; 2] = [b'}', b'"'];
        struct Kept { a: u8, #[cfg(test)] hidden: u8, b: u8 }
        #[cfg(test)]
        pub(crate) fn hidden<'a, T>(text: &'a str) -> T { let x = "}"; /* } */ r#"}"# }
        fn kept() { let text = "#[cfg(test)] mod kept_too {"; }
        #[cfg(all(test, unix))]
        mod tests { fn hidden() { if true { '\'' } else { '{' } } }
        fn last() {}
    "##;
    let code = without_tests(text);
    for word in ["Three", "Kept", "b: u8", "fn kept", "kept_too", "fn last"] {
        assert!(code.contains(word), "{word} is gone: {code}");
    }
    assert!(!code.to_lowercase().contains("hidden") && !code.contains("vectors"), "{code}");
    assert_eq!(test_modules(text), ["vectors"]);
}

#[test]
fn words_of_tests_are_found() {
    let text = "#[test]\nfn one() { let x = \"return\"; // return\n}\nfn two() { return }\n#[test]\nfn three() { if x { return; } }";
    let tests = test_functions(text);
    assert_eq!(tests.iter().map(|test| has_word(test, "return")).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn nothing_is_lost_without_tests() {
    let text = "//! It's a file.\nfn quote() -> char { '\\'' }\nfn life<'a>(x: &'a str) -> &'a str { x } // \"";
    assert_eq!(without_tests(text), text);
}
