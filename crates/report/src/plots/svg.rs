//! SVG as text: the five elements that figures are made of, in whole drawing units.

use std::fmt::{self, Display, Write as _};

use base::printable::printable_line;

/// A point on the sheet in drawing units, from the upper left corner.
pub(super) type At = (i32, i32);

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color(pub(super) u8, pub(super) u8, pub(super) u8);

impl Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02X}{:02X}{:02X}", self.0, self.1, self.2)
    }
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lettering {
    pub(super) anchor: Anchor,
    pub(super) color: Color,
    pub(super) is_bold: bool,
}

/// Elements one below the other, drawn in order.
///
/// Opacity is from 0 to 1; what cannot be seen is left out. Points beyond the sheet stand at its edge.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    width: i32,
    height: i32,
    elements: String,
}

impl Sheet {
    /// An empty sheet, filled with a colour.
    pub(super) fn new(width: i32, height: i32, paper: Color) -> Self {
        let mut sheet = Sheet { width, height, elements: String::new() };
        sheet.rectangle((0, 0), (width, height), paper, 1.0);
        sheet
    }

    /// What is drawn leads somewhere, and is called so where a pointer rests on it.
    pub(super) fn link(&mut self, target: Option<&str>, title: &str, draw: impl FnOnce(&mut Self)) {
        // Writing into a String cannot fail.
        let _ = match target {
            Some(target) => writeln!(self.elements, "<a href=\"{}\"><title>{}</title>", escape(target), escape(title)),
            None => writeln!(self.elements, "<g><title>{}</title>", escape(title)),
        };
        draw(self);
        self.elements.push_str(if target.is_some() { "</a>\n" } else { "</g>\n" });
    }

    pub(super) fn rectangle(&mut self, corner: At, opposite: At, fill: Color, opacity: f64) {
        let (corner, opposite) = (self.inside(corner), self.inside(opposite));
        let (x, y) = (corner.0.min(opposite.0), corner.1.min(opposite.1));
        let (width, height) = (corner.0.max(opposite.0) - x, corner.1.max(opposite.1) - y);
        let seen = Opacity(opacity);
        self.draw(
            opacity,
            format_args!(r#"rect x="{x}" y="{y}" width="{width}" height="{height}"{seen} fill="{fill}""#),
        );
    }

    pub(super) fn polyline(&mut self, points: &[At], stroke: Color, width: u32) {
        let points = self.points(points);
        self.draw(
            1.0,
            format_args!(r#"polyline fill="none" stroke="{stroke}" stroke-width="{width}" points="{points}""#),
        );
    }

    pub(super) fn polygon(&mut self, points: &[At], fill: Color, opacity: f64) {
        let (points, seen) = (self.points(points), Opacity(opacity));
        self.draw(opacity, format_args!(r#"polygon{seen} fill="{fill}" points="{points}""#));
    }

    /// A filled circle.
    pub(super) fn disc(&mut self, at: At, radius: u32, fill: Color, opacity: f64) {
        let ((x, y), seen) = (self.inside(at), Opacity(opacity));
        self.draw(opacity, format_args!(r#"circle cx="{x}" cy="{y}" r="{radius}"{seen} fill="{fill}""#));
    }

    /// A circle with nothing inside.
    pub(super) fn circle(&mut self, at: At, radius: u32, stroke: Color, width: u32) {
        let (x, y) = self.inside(at);
        self.draw(
            1.0,
            format_args!(
                r#"circle cx="{x}" cy="{y}" r="{radius}" fill="none" stroke="{stroke}" stroke-width="{width}""#
            ),
        );
    }

    /// A text whose middle height is at its point.
    pub(super) fn text(&mut self, text: &str, at: At, lettering: Lettering) {
        let (x, y) = self.inside(at);
        let Lettering { anchor, color, is_bold } = lettering;
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let weight = if is_bold { r#" font-weight="bold""# } else { "" };
        let text = escape(text);
        // Writing into a String cannot fail.
        let _ =
            writeln!(self.elements, r#"<text x="{x}" y="{y}" dy="0.5ex"{anchor} fill="{color}"{weight}>{text}</text>"#);
    }

    /// The elements; each begins a line.
    pub(super) fn elements(&self) -> &str {
        &self.elements
    }

    fn draw(&mut self, opacity: f64, element: fmt::Arguments<'_>) {
        if opacity > 0.0 {
            // Writing into a String cannot fail.
            let _ = writeln!(self.elements, "<{element}/>");
        }
    }

    fn inside(&self, (x, y): At) -> At {
        (x.min(self.width).max(0), y.min(self.height).max(0))
    }

    fn points(&self, points: &[At]) -> String {
        let point = |at: &At| {
            let (x, y) = self.inside(*at);
            format!("{x},{y}")
        };
        points.iter().map(point).collect::<Vec<_>>().join(" ")
    }
}

/// An attribute that is said only where it is not the default: figures have several hundred elements.
struct Opacity(f64);

impl Display for Opacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 1.0 { Ok(()) } else { write!(f, r#" opacity="{}""#, self.0) }
    }
}

/// A text inside an element or an attribute.
pub(super) fn escape(text: &str) -> String {
    printable_line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RED: Color = Color(0xd5, 0x5e, 0x00);

    fn drawn(draw: impl Fn(&mut Sheet)) -> String {
        let mut sheet = Sheet::new(100, 50, Color(255, 255, 255));
        draw(&mut sheet);
        let lines = sheet.elements().lines().skip(1);
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn elements_are_lines_and_what_is_default_is_not_said() {
        assert_eq!(
            drawn(|sheet| sheet.rectangle((30, 20), (10, 5), RED, 1.0)),
            r##"<rect x="10" y="5" width="20" height="15" fill="#D55E00"/>"##
        );
        assert_eq!(
            drawn(|sheet| sheet.polygon(&[(0, 0), (5, 5), (0, 5)], RED, 0.45)),
            r##"<polygon opacity="0.45" fill="#D55E00" points="0,0 5,5 0,5"/>"##
        );
        assert_eq!(
            drawn(|sheet| sheet.circle((5, 6), 3, RED, 2)),
            r##"<circle cx="5" cy="6" r="3" fill="none" stroke="#D55E00" stroke-width="2"/>"##
        );
    }

    #[test]
    fn what_is_beyond_the_sheet_stands_at_its_edge() {
        assert_eq!(
            drawn(|sheet| sheet.polyline(&[(-3, 10), (120, 60)], RED, 4)),
            r##"<polyline fill="none" stroke="#D55E00" stroke-width="4" points="0,10 100,50"/>"##
        );
    }

    #[test]
    fn what_cannot_be_seen_is_left_out() {
        assert_eq!(drawn(|sheet| sheet.disc((5, 5), 3, RED, 0.0)), "");
    }

    #[test]
    fn texts_are_escaped() {
        let lettering = Lettering { anchor: Anchor::End, color: RED, is_bold: true };
        assert_eq!(
            drawn(|sheet| sheet.text("<a> & 'b'", (5, 6), lettering)),
            r##"<text x="5" y="6" dy="0.5ex" text-anchor="end" fill="#D55E00" font-weight="bold">&lt;a&gt; &amp; 'b'</text>"##
        );
    }
}
