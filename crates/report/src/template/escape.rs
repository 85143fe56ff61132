//! Texts that mean nothing but themselves to Markdown (CommonMark 0.31 with GitHub's tables) and to HTML.
//!
//! In Markdown only what could be taken for markup is escaped, so that the file stays readable as plain text.

use base::printable::printable_line;

/// A text inside a line or a cell of a table.
pub(super) fn inline(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut escaped = String::with_capacity(text.len() + 8);
    for (index, letter) in letters.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| letters[index]);
        let after = letters.get(index + 1).copied();
        match letter {
            '\n' | '\r' | '\t' => escaped.push(' '),
            _ => {
                if is_markup(*letter, before, after) {
                    escaped.push('\\');
                }
                escaped.push(*letter);
            }
        }
    }
    escaped
}

fn is_markup(letter: char, before: Option<char>, after: Option<char>) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    match letter {
        '\\' | '`' | '*' | '|' | '~' => true,
        // A tag begins with a letter, `/`, `!` or `?`; what follows the text may be one of them.
        '<' => !after.is_some_and(|c| c == ' ' || c.is_ascii_digit()),
        // Between letters an underscore emphasises nothing, and names are full of them.
        '_' => !(is_word(before) && is_word(after)),
        // A link or a footnote needs what follows the bracket.
        ']' => matches!(after, Some('(' | '[' | ':')),
        '!' => after == Some('['),
        '[' => after == Some('^'),
        '&' => is_word(after) || after == Some('#'),
        _ => false,
    }
}

/// A text at the beginning of a line, where headings, lists and quotes begin.
pub(super) fn block(text: &str) -> String {
    let text = inline(text.trim_start());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mut result = text;
    if digits > 0 && result[digits..].starts_with(['.', ')']) {
        result.insert(digits, '\\');
    } else if result.starts_with(['#', '>', '+', '-', '=']) {
        result.insert(0, '\\');
    }
    result
}

/// A text as code inside a line. Not for cells of tables, which are cut at bars before code is looked for.
pub(super) fn code(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    let fence = "`".repeat(longest_run(&text, '`') + 1);
    let needs_room = text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty();
    if needs_room { format!("{fence} {text} {fence}") } else { format!("{fence}{text}{fence}") }
}

/// A text as a block of code.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches(['\n', '\r']))
}

/// A text in HTML, inside elements and attributes.
pub(super) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A text in LaTeX: special letters by their commands, and the few signs of reports that are not in every font.
pub(super) fn latex(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    for letter in printable_line(text).chars() {
        match letter {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', letter]),
            '\\' => escaped.push_str(r"\textbackslash{}"),
            '~' => escaped.push_str(r"\textasciitilde{}"),
            '^' => escaped.push_str(r"\textasciicircum{}"),
            '<' => escaped.push_str(r"\textless{}"),
            '>' => escaped.push_str(r"\textgreater{}"),
            '±' => escaped.push_str(r"$\pm$"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A name that a macro of LaTeX can have: any letter may stand in it but those that TeX acts upon. Letter by letter, so
/// that names which differ stay different.
pub(super) fn tex_name(text: &str) -> String {
    let safe = |letter: char| match letter {
        letter if "\\{}%#^~$& ".contains(letter) || letter.is_control() => format!("-u{:x}-", u32::from(letter)),
        letter => letter.to_string(),
    };
    text.chars().map(safe).collect()
}

/// A sentence of ours whose backticks are meant: what stands between two of them is code.
pub(super) fn prose(text: &str) -> String {
    between_backticks(text, inline, code)
}

/// As [`prose`], as HTML.
pub(super) fn prose_html(text: &str) -> String {
    between_backticks(text, html, |code| format!("<code>{}</code>", html(code)))
}

fn between_backticks(text: &str, plain: impl Fn(&str) -> String, code: impl Fn(&str) -> String) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // One backtick has no partner.
        return plain(text);
    }
    let piece = |(index, part): (usize, &&str)| if index % 2 == 0 { plain(part) } else { code(part) };
    parts.iter().enumerate().map(piece).collect()
}

/// The path of a cell as HTML that may break after each part.
pub(super) fn path_html(text: &str) -> String {
    html(text).replace('/', "/<wbr>")
}

fn longest_run(text: &str, letter: char) -> usize {
    let (mut longest, mut current) = (0, 0);
    for here in text.chars() {
        current = if here == letter { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    longest
}

/// Words and numbers for HTML: numbers stay with their unit and brackets stay whole, with the signs of print (`µs`, `−`, `→`).
pub(super) fn spaced_html(text: &str) -> String {
    const UNBROKEN: char = '\u{a0}';
    let letters: Vec<char> = text.chars().collect();
    let mut shown = String::with_capacity(text.len());
    let mut depth = 0_u32;
    for (index, letter) in letters.iter().copied().enumerate() {
        let previous = index.checked_sub(1).map(|before| letters[before]);
        let next = letters.get(index + 1).copied();
        let is_number = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let begins_unit = next.is_some_and(|next| next.is_ascii_alphabetic() || matches!(next, '%' | '±' | '°'));
        let is_unit = begins_unit && unit_at(&letters[index + 1..]);
        shown.push(match letter {
            ' ' if depth > 0 || (is_number(previous) && is_unit) || previous == Some('±') => UNBROKEN,
            '-' if is_number(next) && previous.is_none_or(|before| matches!(before, ' ' | '[' | '(')) => '−',
            'u' if next == Some('s') && previous == Some(' ') && index > 1 && is_number(Some(letters[index - 2])) => {
                'µ'
            }
            other => other,
        });
    }
    html(&shown.replace(" -> ", " → "))
}

/// Whether a unit stands there.
fn unit_at(letters: &[char]) -> bool {
    const UNITS: [&str; 17] =
        ["%", "±", "°C", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "pp", "J", "mJ", "uJ", "W", "k/s"];
    let word: String = letters.iter().take_while(|letter| !matches!(letter, ' ' | ',' | ';' | ')' | '.')).collect();
    UNITS.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_is_harmless() {
        let cases = [
            ("a|b", r"a\|b"),
            ("<script>", r"\<script>"),
            ("**bold** `code`", r"\*\*bold\*\* \`code\`"),
            ("_x_ and snake_case", r"\_x\_ and snake_case"),
            ("[text](link) ![image](x)", r"[text\](link) \![image\](x)"),
            ("&lt; & &#60;", r"\&lt; & \&#60;"),
            ("a\nb", "a b"),
        ];
        for (text, expected) in cases {
            assert_eq!(inline(text), expected);
        }
    }

    #[test]
    fn numbers_stay_readable() {
        for text in
            ["39.9 us ± 0.2", "2.67x [2.64, 2.70] faster", ">= 281", "n/a (batched x32)", "b16-sequence128", "< 0.0001"]
        {
            assert_eq!(inline(text), text);
        }
    }

    #[test]
    fn lines_do_not_become_headings_lists_or_quotes() {
        let cases =
            [("# a", r"\# a"), ("1. a", r"1\. a"), ("> a", r"\> a"), ("- a", r"\- a"), ("2 a", "2 a"), ("  a", "a")];
        for (text, expected) in cases {
            assert_eq!(block(text), expected);
        }
    }

    #[test]
    fn backticks_of_sentences_are_code() {
        assert_eq!(prose("Raise `a_b` of <x>."), r"Raise `a_b` of \<x>.");
        assert_eq!(prose_html("Raise `a<b` of <x>."), "Raise <code>a&lt;b</code> of &lt;x&gt;.");
        assert_eq!(prose("a ` b"), r"a \` b");
    }

    #[test]
    fn names_mean_themselves_in_latex() {
        assert_eq!(latex("snake_case 50 % & ±"), r"snake\_case 50 \% \& $\pm$");
        assert_eq!(latex(r"a\b{c} < ^~"), r"a\textbackslash{}b\{c\} \textless{} \textasciicircum{}\textasciitilde{}");
    }

    #[test]
    fn code_is_fenced_by_more_than_it_holds() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(fenced("x\n```\ny\n", "yaml"), "````yaml\nx\n```\ny\n````");
        assert_eq!(html("<a> & 'b'"), "&lt;a&gt; &amp; &#39;b&#39;");
    }
}
