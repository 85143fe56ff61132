//! Characters that cannot be seen or look like others, as they come with text from web pages and word processors: where a
//! problem stands, they are often its cause, and no other message leads to them.
//!
//! Input: problems with their texts. Output: the same, with such characters of their lines. Deliberately absent: any objection
//! to them where nothing is wrong, as in a description.

use super::problem::{Problem, Sources, Span};

/// More of them help nobody.
const MOST: usize = 5;

/// What the user should do: nothing shows where it is but the mark below the line.
const PASTED: &str = "such characters come with text from web pages and word processors";

/// Problems with the characters on their lines that are their likely cause. Of a mistake in the syntax, beyond which nothing
/// is read, such a character before it is the cause, and stands alone.
pub(super) fn explain(sources: &Sources, problems: Vec<Problem>, is_syntax: bool) -> Vec<Problem> {
    let mut found: Vec<(Span, char)> = Vec::new();
    for problem in &problems {
        let (source, line, _) = problem.order();
        let mut here = in_lines(sources, source, line..=line);
        if here.is_empty() && is_syntax {
            here = in_lines(sources, source, 1..=line);
            here.drain(..here.len().saturating_sub(1));
        }
        found.extend(here);
    }
    found.sort();
    found.dedup();
    found.truncate(MOST);
    let problems_found = found.into_iter().map(|(span, c)| problem_of(sources, span, c));
    if is_syntax {
        let found: Vec<Problem> = problems_found.collect();
        return if found.is_empty() { problems } else { found };
    }
    problems.into_iter().chain(problems_found).collect()
}

/// The first NUL byte, which no YAML has, quoted or not.
pub(super) fn nul(sources: &Sources, source: usize) -> Option<Problem> {
    let start = sources.text(source).find('\0')?;
    Some(problem_of(sources, Span { source, start, end: start + 1 }, '\0'))
}

fn problem_of(sources: &Sources, span: Span, c: char) -> Problem {
    let (name, instead) = kind(c).unwrap_or(("a character that cannot be seen", ""));
    let instead = if instead.is_empty() { "remove it".to_owned() } else { format!("write {instead} in its place") };
    let hint = if c == '\0' { "remove it; a text file has none".to_owned() } else { format!("{instead}; {PASTED}") };
    sources.problem(span, format!("{name} (U+{:04X})", u32::from(c))).with_hint(hint)
}

/// The characters in these lines, from 1, but for those in comments.
fn in_lines(sources: &Sources, source: usize, lines: std::ops::RangeInclusive<usize>) -> Vec<(Span, char)> {
    let mut found = Vec::new();
    let mut start = 0;
    for (number, line) in sources.text(source).split_inclusive('\n').enumerate() {
        if lines.contains(&(number + 1)) {
            let mut before = ' ';
            for (at, c) in line.char_indices() {
                if c == '#' && before.is_whitespace() {
                    break;
                }
                if kind(c).is_some() {
                    let start = start + at;
                    found.push((Span { source, start, end: start + c.len_utf8() }, c));
                }
                before = c;
            }
        }
        start += line.len();
    }
    found
}

/// What a character is, and what to write in its place; nothing where it is removed.
fn kind(c: char) -> Option<(&'static str, &'static str)> {
    Some(match c {
        '\0' => ("a NUL byte", ""),
        '\u{a0}' | '\u{202f}' => ("a no-break space", "a plain space"),
        '\u{2000}'..='\u{200a}' | '\u{205f}' | '\u{3000}' | '\u{1680}' => ("a space of another width", "a plain space"),
        '\u{200b}' => ("a space without width", ""),
        '\u{200c}' | '\u{200d}' | '\u{2060}' => ("a joiner without width", ""),
        '\u{feff}' => ("a byte order mark", ""),
        '\u{ad}' => ("a soft hyphen", ""),
        '\u{2028}' | '\u{2029}' => ("a line separator", "a line break"),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            ("a mark that turns the direction of writing", "")
        }
        '\u{201c}'..='\u{201f}' | '«' | '»' => ("a typographic quotation mark", "`\"`"),
        '\u{2018}'..='\u{201b}' => ("a typographic quotation mark", "`'`"),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => ("a typographic dash", "`-`"),
        '：' => ("a full-width colon", "`:`"),
        '，' => ("a full-width comma", "`,`"),
        '\t' | '\n' | '\r' => return None,
        c if c.is_control() => ("a control character", ""),
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use crate::parse;

    /// What is said of a text that cannot be read: message, line and column of each problem.
    fn problems(text: &str) -> Vec<(String, usize, usize)> {
        let error = parse("x.yaml", text, Path::new(""), &[]).unwrap_err();
        error.problems().iter().map(|it| (it.message.clone(), it.line, it.column)).collect()
    }

    #[test]
    fn what_cannot_be_seen_is_named_at_its_place() {
        let first = |text: &str| problems(text).into_iter().next().unwrap();
        let named = |name: &str, line, column| (name.to_owned(), line, column);
        assert_eq!(first("models:\u{a0}m.onnx\ninputs: {b: 1}\n"), named("a no-break space (U+00A0)", 1, 8));
        assert_eq!(first("models: m\ndescription: a\0b\n"), named("a NUL byte (U+0000)", 2, 15));
        assert_eq!(first("models: [m]\ndescription: \"a\0b\"\n"), named("a NUL byte (U+0000)", 2, 16));
        assert_eq!(
            first("models: [m]\n<<<<<<< HEAD\nruns: 3\n=======\nruns: 4\n>>>>>>> topic\n"),
            named("a conflict marker of git", 2, 1)
        );
    }

    #[test]
    fn a_problem_is_told_with_what_cannot_be_seen_on_its_line() {
        let has = |text: &str, name: &str, line| {
            let found = problems(text);
            assert!(found.iter().any(|it| it.0 == name && it.1 == line), "{text:?}: {found:?}");
        };
        let mock = "backend: mock\nmodels: [m]\n";
        has(&format!("{mock}runs\u{feff}: 3\n"), "a byte order mark (U+FEFF)", 3);
        has(
            &format!("{mock}variants: [{{ name: a, precision: int8\u{200b} }}]\n"),
            "a space without width (U+200B)",
            3,
        );
        has(&format!("{mock}runs: \u{201c}x\u{201d}\n"), "a typographic quotation mark (U+201C)", 3);
        has(&format!("{mock}seed\u{ff1a} 3\nruns: 3\n"), "a full-width colon (U+FF1A)", 3);
        has("models: no\u{ad}such.onnx\n", "a soft hyphen (U+00AD)", 1);
    }

    #[test]
    fn they_are_no_matter_where_nothing_is_wrong() {
        let text =
            "backend: mock # a \u{201c}mock\u{201d}\nmodels: [m]\ndescription: 10\u{a0}% \u{2013} \u{201c}so\u{201d}\n";
        assert!(parse("x.yaml", text, Path::new(""), &[]).is_ok());
        let wrong = problems(&format!("{text}runs: many # 10\u{a0}%\n"));
        assert!(wrong.iter().all(|it| it.1 == 4 && !it.0.contains("U+")), "{wrong:?}");
    }
}
