//! A sheet to draw on, in points.

use super::MARK;
pub(super) use super::svg::{Anchor, Color};
use super::svg::{At, Lettering, Sheet, escape};

/// Text and axes.
pub(super) const INK: Color = Color(0x22, 0x22, 0x22);
/// Secondary text.
pub(super) const GREY: Color = Color(0x66, 0x66, 0x66);
/// Grid lines.
pub(super) const PALE: Color = Color(0xe2, 0xe2, 0xe2);
/// The background: figures are read on light and dark pages alike.
const PAPER: Color = Color(0xff, 0xff, 0xff);

/// What is better, in the colour that pages have for it; readable on white as text is.
pub(super) const BETTER: Color = Color(0x00, 0x56, 0x9b);
/// What is worse.
pub(super) const WORSE: Color = Color(0xa8, 0x43, 0x00);

/// The palette of Okabe and Ito (2008), distinguishable with any colour vision; without its yellow, which is too pale on
/// white, and after the grey of baselines.
pub(super) const PALETTE: [Color; 6] = [
    Color(0x00, 0x72, 0xb2),
    Color(0xd5, 0x5e, 0x00),
    Color(0x00, 0x9e, 0x73),
    Color(0xcc, 0x79, 0xa7),
    Color(0xe6, 0x9f, 0x00),
    Color(0x56, 0xb4, 0xe9),
];

/// Drawing units a point: whole numbers are short, and steps of a quarter are not seen in curves.
const FINE: f64 = 4.0;

/// Size of text in points.
pub(super) const TEXT: f64 = 13.0;

/// Average width of a letter in text sizes: generous, since nobody knows the reader's font.
const LETTER: f64 = 0.6;

/// Width in points that a text of the usual size may take.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * TEXT * LETTER
}

/// A text of at most `most` letters: the middle of a longer one is left out, since names differ at their ends.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= most {
        return text.to_owned();
    }
    let tail = (most - 1) / 2;
    let head = most - 1 - tail;
    letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
}

/// One figure in the making. Coordinates are points from the upper left corner.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    title: String,
    description: String,
    sheet: Sheet,
}

impl Canvas {
    /// An empty sheet; the description says what is drawn to readers that cannot see it.
    pub(super) fn new(title: &str, description: &str, width: f64, height: f64) -> Self {
        let (width, height) = (width.round(), height.round());
        let sheet = Sheet::new((width * FINE) as i32, (height * FINE) as i32, PAPER);
        Canvas { width, height, title: title.to_owned(), description: description.to_owned(), sheet }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: Color, width: f64) {
        self.sheet.polyline(&[fine(from), fine(to)], color, units(width));
    }

    /// A row of short strokes.
    pub(super) fn dashes(&mut self, from: (f64, f64), to: (f64, f64), color: Color) {
        const DASH: f64 = 5.0;
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let strokes = (length / (2.0 * DASH)).ceil() as usize;
        let at = |distance: f64| {
            let share = (distance / length).min(1.0);
            (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share)
        };
        for stroke in 0..strokes {
            let begin = stroke as f64 * 2.0 * DASH;
            self.line(at(begin), at(begin + DASH), color, 1.0);
        }
    }

    pub(super) fn rectangle(&mut self, from: (f64, f64), to: (f64, f64), color: Color, opacity: f64) {
        self.sheet.rectangle(fine(from), fine(to), color, opacity);
    }

    pub(super) fn area(&mut self, points: &[(f64, f64)], color: Color, opacity: f64) {
        self.sheet.polygon(&fine_all(points), color, opacity);
    }

    pub(super) fn curve(&mut self, points: &[(f64, f64)], color: Color, width: f64) {
        self.sheet.polyline(&fine_all(points), color, units(width));
    }

    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color, opacity: f64) {
        self.sheet.disc(fine(at), units(radius), color, opacity);
    }

    pub(super) fn diamond(&mut self, (x, y): (f64, f64), radius: f64, color: Color) {
        self.area(&[(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)], color, 1.0);
    }

    /// A dot that leads somewhere, and says what it is.
    pub(super) fn linked_dot(&mut self, at: (f64, f64), radius: f64, color: Color, target: Option<&str>, title: &str) {
        self.sheet.link(target, title, |sheet| sheet.disc(fine(at), units(radius), color, 1.0));
    }

    /// A ring of dots.
    pub(super) fn dotted_ring(&mut self, (x, y): (f64, f64), radius: f64, color: Color) {
        const DOTS: u32 = 8;
        self.sheet.disc(fine((x, y)), units(radius), PAPER, 1.0);
        for dot in 0..DOTS {
            let (sin, cos) = (std::f64::consts::TAU * f64::from(dot) / f64::from(DOTS)).sin_cos();
            self.dot((x + radius * cos, y + radius * sin), 0.9, color, 1.0);
        }
    }

    /// A dot that is empty inside.
    pub(super) fn ring(&mut self, at: (f64, f64), radius: f64, color: Color) {
        self.sheet.disc(fine(at), units(radius), PAPER, 1.0);
        self.sheet.circle(fine(at), units(radius), color, units(1.6));
    }

    pub(super) fn text(&mut self, text: &str, at: (f64, f64), anchor: Anchor, color: Color) {
        self.lettering(text, at, anchor, color, false);
    }

    pub(super) fn heading(&mut self, text: &str, at: (f64, f64)) {
        self.lettering(text, at, Anchor::Start, INK, true);
    }

    /// A text that may be bold.
    pub(super) fn lettering(&mut self, text: &str, at: (f64, f64), anchor: Anchor, color: Color, is_bold: bool) {
        self.sheet.text(text, fine(at), Lettering { anchor, color, is_bold });
    }

    /// The figure as SVG, named for readers that cannot see it.
    pub(super) fn finish(self) -> String {
        let Canvas { width, height, .. } = self;
        let (title, description) = (escape(&self.title), escape(&self.description));
        // What has links is no image to a screen reader.
        let role = if self.sheet.elements().contains("<a ") { "group" } else { "img" };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {MARK} width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"{}\" role=\"{role}\" aria-label=\"{title}: {description}\">\n<title>{title}</title>\n{}</svg>\n",
            width * FINE,
            height * FINE,
            TEXT * FINE,
            self.sheet.elements()
        )
    }
}

fn fine((x, y): (f64, f64)) -> At {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

fn fine_all(points: &[(f64, f64)]) -> Vec<At> {
    points.iter().map(|point| fine(*point)).collect()
}

fn units(points: f64) -> u32 {
    (points * FINE).round().max(1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_named_escaped_and_has_a_background() {
        let mut canvas = Canvas::new("a <b> & \"c\"", "d", 100.0, 50.0);
        canvas.text("<script>", (10.0, 10.0), Anchor::Start, INK);
        let svg = canvas.finish();
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("aria-label=\"a &lt;b&gt; &amp; &quot;c&quot;: d\""));
        assert!(!svg.contains("<script>"));
        assert!(svg.contains("fill=\"#FFFFFF\""));
    }

    /// The style of pages says these colours anew for dark ones.
    #[test]
    fn the_style_knows_the_colours_that_are_not_of_data() {
        let style = include_str!("../templates/report.css");
        for color in [INK, GREY, PALE, PAPER, BETTER, WORSE] {
            assert!(style.contains(&format!("[fill=\"{color}\"]")), "{color}");
            assert!(style.contains(&format!("[stroke=\"{color}\"]")), "{color}");
        }
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("abcdefghijklmnop", 9), "abcd…mnop");
        assert_eq!(shortened("abcdefghijklmnop", 9).chars().count(), 9);
    }
}
