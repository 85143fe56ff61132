//! Texts from elsewhere, made safe to show: on a terminal, in Markdown, in HTML.
//!
//! Input: what a library, a wrapper or a specification says. Output: the same without characters that move a cursor,
//! change colours or turn the direction of writing. Deliberately absent: escaping for a format, which templates do.

/// The text with control and direction characters replaced; line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let safe = |c: char| match c {
        '\n' | '\t' => c,
        // Controls, and the marks that turn or isolate the direction of writing.
        _ if c.is_control() => '\u{fffd}',
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        _ => c,
    };
    // A carriage return before a line break is how some systems end lines.
    text.replace("\r\n", "\n").chars().map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_reversals_are_replaced_and_the_rest_stays() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\r\nc\td ü 日"), "a\u{fffd}[31mb\u{fffd}\nc\td ü 日");
        assert_eq!(printable("x\u{202e}y\u{9b}z"), "x\u{fffd}y\u{fffd}z");
    }
}
