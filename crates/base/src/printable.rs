//! Texts from elsewhere, made safe to show: on a terminal, in Markdown, in HTML, in figures.
//!
//! Input: what a file, a library, a command or a specification says. Output: the same without characters that move a
//! cursor, change colours, turn the direction of writing, or cannot be seen. Deliberately absent: escaping for a format,
//! which templates do.
//!
//! Everything shown passes one of these at the border, whoever wrote it: `ui::Ui` for the terminal, `report::template` for
//! pages, `report::plots` for figures.

use std::borrow::Cow;
use std::io::{self, Write};

/// What replaces such a character.
const INSTEAD: char = '\u{fffd}';

/// Whether a character moves, colours, turns or hides. Line breaks and tabs do too, and stay where a text has lines.
fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Marks that turn or isolate the direction of writing.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Invisible: soft hyphens, spaces without width, other breaks of lines, fillers, annotations, tags.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{2028}' | '\u{2029}'
            | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e01ef}')
}

/// Each character of a text, and whether it may be shown. Joiners may where they join: in Persian, in emoji.
fn judged(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut before = None;
    let mut rest = text.chars().peekable();
    std::iter::from_fn(move || {
        let c = rest.next()?;
        let joins = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_treacherous(c));
        let is_fine = match c {
            '\n' | '\t' => true,
            '\u{200c}' | '\u{200d}' => joins(before) && joins(rest.peek().copied()),
            _ => !is_treacherous(c),
        };
        before = Some(c);
        Some((c, is_fine))
    })
}

/// Nothing but ASCII that may be shown: what nearly every text is, and quickly seen.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

/// The text with such characters replaced; line breaks and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) || judged(text).all(|(_, is_fine)| is_fine) {
        return Cow::Borrowed(text);
    }
    // A carriage return before a line break is how some systems end lines.
    let text = text.replace("\r\n", "\n");
    Cow::Owned(judged(&text).map(|(c, is_fine)| if is_fine { c } else { INSTEAD }).collect())
}

/// As [`printable`], for what must not begin a line of its own: a name in a table, in a comment, in an attribute.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    match printable(text) {
        Cow::Borrowed(text) if !text.contains(['\n', '\t']) => Cow::Borrowed(text),
        text => Cow::Owned(text.replace(['\n', '\t'], " ")),
    }
}

/// The last lines of a log that say something, at most so many, each [`printable_line`] of at most 300 characters.
pub fn last_lines(log: &str, most: usize) -> Vec<String> {
    const LONGEST: usize = 300;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(most)..].iter();
    last.map(|line| printable_line(&line.chars().take(LONGEST).collect::<String>()).into_owned()).collect()
}

/// As [`printable`], in as many bytes, so that byte positions in the text stay the same.
pub fn printable_in_place(text: &str) -> Cow<'_, str> {
    if let Cow::Borrowed(text) = printable(text) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    // At the end of a line it is no character of the text.
    for (c, is_fine) in judged(&text.replace("\r\n", " \n")) {
        match c.len_utf8() {
            _ if is_fine => safe.push(c),
            3 => safe.push(INSTEAD),
            bytes => safe.extend(std::iter::repeat_n('?', bytes)),
        }
    }
    Cow::Owned(safe)
}

/// JSON with such characters, which can only stand inside of its texts, as escapes that mean the same.
pub fn printable_json(json: String) -> String {
    if let Cow::Borrowed(_) = printable(&json) {
        return json;
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for (c, is_fine) in judged(&json) {
        if !is_fine {
            let units = c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            safe.push_str(&units);
        } else {
            safe.push(c);
        }
    }
    safe
}

/// [`printable_json`] on its way to a writer. Each piece is whole texts or what stands between them, as `serde_json` writes.
pub struct PrintableJson<W>(pub W);

impl<W: Write> Write for PrintableJson<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if is_plain(piece) {
            self.0.write_all(piece)?;
        } else {
            let text = str::from_utf8(piece).map_err(io::Error::other)?;
            self.0.write_all(printable_json(text.to_owned()).as_bytes())?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MEAN: &str = "a\u{1b}[31mb\u{7}\r\nc\td ü 日\u{202e}y\u{9b}z\u{200b}\u{feff}\u{e0041}";

    #[test]
    fn escapes_reversals_and_what_is_invisible_are_replaced_and_the_rest_stays() {
        let safe = "a\u{fffd}[31mb\u{fffd}\nc\td ü 日\u{fffd}y\u{fffd}z\u{fffd}\u{fffd}\u{fffd}";
        assert_eq!(printable(MEAN), safe);
        assert_eq!(printable_line(MEAN), safe.replace(['\n', '\t'], " "));
        assert!(matches!(printable_line("plain ü"), Cow::Borrowed("plain ü")));
    }

    #[test]
    fn joiners_and_windows_lines_are_fine() {
        for fine in ["\u{645}\u{6cc}\u{200c}\u{62e}", "\u{1f469}\u{200d}\u{1f4bb}"] {
            assert_eq!(printable(fine), fine);
        }
        assert_eq!(printable("a\u{200d}b"), "a\u{fffd}b");
        assert_eq!(printable_in_place("models:\r\n- m\r\n"), "models: \n- m \n");
    }

    #[test]
    fn places_stay_where_they_are() {
        let safe = printable_in_place(MEAN);
        assert_eq!((safe.len(), safe.find('日')), (MEAN.len(), MEAN.find('日')));
        assert!(!safe.chars().any(|c| !matches!(c, '\n' | '\t') && is_treacherous(c)));
    }

    #[test]
    fn json_means_the_same() {
        let texts = [MEAN, "\u{645}\u{200c}\u{62e} \" \u{200d}", "plain"];
        let json = serde_json::to_string_pretty(&texts).unwrap();
        let safe = printable_json(json.clone());
        assert!(!safe.replace("\u{645}\u{200c}", "").chars().any(|c| c != '\n' && is_treacherous(c)));
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), texts);
        assert!(json.contains('\u{202e}'));
        let mut written = Vec::new();
        serde_json::to_writer_pretty(PrintableJson(&mut written), &texts).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), safe);
    }
}
