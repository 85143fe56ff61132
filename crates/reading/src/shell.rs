//! Words of commands that a user is to copy.

/// A word as a POSIX shell reads it: as it is, or in single quotes.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,^".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_take_apart_is_quoted() {
        for plain in ["models/mlp-1.onnx", "--set", "runs=8", "a@b", "größe.yaml"] {
            assert_eq!(word(plain), plain);
        }
        assert_eq!(word(""), "''");
        assert_eq!(word("my model.onnx"), "'my model.onnx'");
        assert_eq!(word("it's $HOME"), r"'it'\''s $HOME'");
    }
}
