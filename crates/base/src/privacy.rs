//! Texts of other programs, without what names a user.
//!
//! Messages of runtimes and logs of workers hold absolute paths. A committed report must not hold a home folder
//! (ARCHITECTURE.md, privacy), so its part of a path becomes `~`. Pure: the current user's name is not asked for.

/// `/home/<name>`, `/Users/<name>` and `/root` at the beginning of a path become `~`.
pub fn without_home(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    let mut before: Option<char> = None;
    while let Some(here) = rest.chars().next() {
        let starts_path = before.is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~')));
        let home = if starts_path { home_length(rest) } else { None };
        let taken = match home {
            Some(length) => {
                result.push('~');
                length
            }
            None => {
                result.push(here);
                here.len_utf8()
            }
        };
        before = rest[..taken].chars().next_back();
        rest = &rest[taken..];
    }
    result
}

/// Bytes of the home folder that `text` begins with.
fn home_length(text: &str) -> Option<usize> {
    let ends = |length: usize| text[length..].chars().next().is_none_or(|c| !is_name(c));
    if text.starts_with("/root") && ends("/root".len()) {
        return Some("/root".len());
    }
    let parent = ["/home/", "/Users/"].into_iter().find(|parent| text.starts_with(parent))?;
    let name: usize = text[parent.len()..].chars().take_while(|c| is_name(*c)).map(char::len_utf8).sum();
    (name > 0).then_some(parent.len() + name)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '@' | '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_folders_are_not_named() {
        let cases = [
            ("Load model from /home/alice/work/m.onnx failed", "Load model from ~/work/m.onnx failed"),
            ("\"/Users/a.b-c/x\"", "\"~/x\""),
            ("/root/.cache/perfrun:/home/bob", "~/.cache/perfrun:~"),
            ("file:///home/bob/x", "file://~/x"),
        ];
        for (text, expected) in cases {
            assert_eq!(without_home(text), expected);
        }
    }

    #[test]
    fn other_paths_stay() {
        for text in ["/onnxruntime_src/core/graph.cc:146", "/rootless/x", "data/home/x", "/home/", "", "ü/root"] {
            assert_eq!(without_home(text), text);
        }
    }
}
