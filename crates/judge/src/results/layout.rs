//! The text of the file: one fact a line, so that changes are seen line by line and a row is read at a glance.

use serde::Serialize;
use serde_json::Value;

use super::Results;
use base::printable::printable_json;

/// What is longer is broken into lines, unless it is a list of numbers, which stays one column.
const WIDTH: usize = 110;

impl Results {
    /// The text of the file. The same results give the same bytes.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_value(self).expect("results have string keys only");
        let mut text = String::new();
        write(&value, 0, &mut text);
        text.push('\n');
        printable_json(text)
    }
}

fn write(value: &Value, indent: usize, text: &mut String) {
    let is_column =
        value.as_array().is_some_and(|items| items.iter().all(|item| !item.is_object() && !item.is_array()));
    let most = if is_column { usize::MAX } else { WIDTH.saturating_sub(indent) };
    if let Some(line) = on_one_line(value, most) {
        text.push_str(&line);
        return;
    }
    match value {
        Value::Object(fields) => {
            let item = |text: &mut String, (name, field): (&String, &Value)| {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push_str(": ");
                write(field, indent + 1, text);
            };
            lines(fields.iter(), ['{', '}'], [indent + 1, indent], text, item);
        }
        Value::Array(items) => {
            // Rows stand no deeper than their list: they are most of the file.
            lines(items.iter(), ['[', ']'], [indent, indent], text, |text, item| write(item, indent, text));
        }
        // A text is as long as it is.
        other => text.push_str(&other.to_string()),
    }
}

/// The items, each on a line of its own, between brackets; both indented by so many spaces.
fn lines<T>(
    items: impl Iterator<Item = T>,
    [open, close]: [char; 2],
    [of_items, of_close]: [usize; 2],
    text: &mut String,
    write: impl Fn(&mut String, T),
) {
    text.push(open);
    for (index, item) in items.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', of_items));
        write(text, item);
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', of_close));
    text.push(close);
}

/// The value on one line, unless that takes more than so many bytes.
fn on_one_line(value: &Value, most: usize) -> Option<String> {
    let mut line = Line { bytes: Vec::new(), most };
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut line, Short)).ok()?;
    String::from_utf8(line.bytes).ok()
}

/// Bytes up to a limit, beyond which nobody goes on writing.
struct Line {
    bytes: Vec<u8>,
    most: usize,
}

impl std::io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Compact, with whole numbers as such: `38227`, not `38227.0`.
struct Short;

impl serde_json::ser::Formatter for Short {
    fn write_f64<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, value: f64) -> std::io::Result<()> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if value.fract() == 0.0 && value.abs() < EXACT {
            return write!(writer, "{}", value as i64);
        }
        serde_json::ser::CompactFormatter.write_f64(writer, value)
    }
}
