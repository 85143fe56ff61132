//! Words of commands that a user is to copy, and what of a command only a shell would act upon.

/// A word as a POSIX shell reads it: as it is, or in single quotes.
pub fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,^".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The first piece of a command line that a shell would act upon, and that a program gets as it stands: an operator at the
/// beginning or the end of a word (`|`, `2>&1`, `;`), a variable or another command (`$HOME`, `$(`, a backtick), a pattern
/// (`*`), a home folder (`~/`). Nothing that is quoted or behind a backslash; variables in double quotes are one.
pub fn syntax(text: &str) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    let begins_word = |at: usize| at == 0 || letters[at - 1].is_whitespace();
    let (mut quote, mut is_escaped) = (None, false);
    for (at, letter) in letters.iter().enumerate() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (quote, letter) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '\\') => is_escaped = true,
            (_, '`') => return Some("`".to_owned()),
            (_, '$') => match letters.get(at + 1) {
                Some(next) if "{(".contains(*next) => return Some(format!("${next}")),
                Some(next) if next.is_ascii_alphabetic() || *next == '_' => {
                    let is_name = |letter: &&char| letter.is_ascii_alphanumeric() || **letter == '_';
                    return Some(std::iter::once(&'$').chain(letters[at + 1..].iter().take_while(is_name)).collect());
                }
                _ => {}
            },
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(*letter),
            (None, '*') => return Some("*".to_owned()),
            (None, '~') if begins_word(at) && letters.get(at + 1).is_none_or(|next| *next == '/') => {
                return Some("~".to_owned());
            }
            (None, letter) if is_operator(*letter) => {
                // Each run of them once, from its beginning.
                if at > 0 && is_operator(letters[at - 1]) {
                    continue;
                }
                let operator: String = letters[at..].iter().take_while(|letter| is_operator(**letter)).collect();
                let behind = letters.get(at + operator.len());
                let numbers = letters[..at].iter().rev().take_while(|letter| letter.is_ascii_digit()).count();
                if begins_word(at - numbers) || behind.is_none_or(|next| next.is_whitespace()) {
                    return Some(operator);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_operator(letter: char) -> bool {
    "|&;<>".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_shell_acts_upon_is_found_outside_of_quotes() {
        for (text, found) in [
            ("echo hi | wc -c", "|"),
            ("make && ./run", "&&"),
            ("cd x; ls", ";"),
            ("sort <in", "<"),
            ("sort x >out", ">"),
            ("run 2>&1", ">&"),
            ("run &", "&"),
            ("echo $HOME/x", "$HOME"),
            ("echo \"$A b\"", "$A"),
            ("echo ${A}", "${"),
            ("echo $(date)", "$("),
            ("echo `date`", "`"),
            ("cat *.txt", "*"),
            ("ls ~/x", "~"),
            ("ls ~", "~"),
        ] {
            assert_eq!(syntax(text).as_deref(), Some(found), "{text}");
        }
    }

    #[test]
    fn what_a_program_is_to_get_is_no_syntax() {
        for text in [
            "rg 'a|b' x",
            "rg \"a|b\" x",
            "rg a\\|b x",
            "rg a|b x",
            "awk '{ print $1; }' x",
            "grep foo$ x",
            "find . -name '*.rs'",
            "find . -exec stat {} \\;",
            "curl http://host/?a=1&b=2",
            "sed 's/<b>/~/' x",
            "jq \".a > 3\" x",
            "git show HEAD~ HEAD~1",
            "echo it\\'s",
            "open 'quote",
            "",
        ] {
            assert_eq!(syntax(text), None, "{text}");
        }
    }

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
