//! A sheet to draw on, in points; the only file that names plotters.

use plotters::prelude::*;
use plotters::style::Color as _;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::MARK;
use crate::report::ReportError;

/// A colour of the figures.
pub(super) type Color = RGBColor;

/// Text and axes.
pub(super) const INK: Color = RGBColor(0x22, 0x22, 0x22);
/// Secondary text.
pub(super) const GREY: Color = RGBColor(0x66, 0x66, 0x66);
/// Grid lines.
pub(super) const PALE: Color = RGBColor(0xe2, 0xe2, 0xe2);
/// The background: figures are read on light and dark pages alike.
const PAPER: Color = RGBColor(0xff, 0xff, 0xff);

/// The palette of Okabe and Ito (2008), distinguishable with any colour vision; without its yellow, which is too pale on
/// white, and after the grey of baselines.
pub(super) const PALETTE: [Color; 6] = [
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// Drawing units a point: the library rounds to whole units, which would be seen in curves.
const FINE: f64 = 4.0;

/// Size of text in points.
pub(super) const TEXT: f64 = 13.0;

/// Average width of a letter in text sizes: generous, since nobody knows the reader's font.
const LETTER: f64 = 0.6;

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// It begins there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

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
    shapes: Vec<Shape>,
}

/// What is on the sheet, drawn in order.
enum Shape {
    Line { from: (f64, f64), to: (f64, f64), color: Color, width: f64 },
    Box { from: (f64, f64), to: (f64, f64), color: Color, opacity: f64 },
    Area { points: Vec<(f64, f64)>, color: Color, opacity: f64 },
    Curve { points: Vec<(f64, f64)>, color: Color, width: f64 },
    Dot { at: (f64, f64), radius: f64, color: Color, opacity: f64 },
    Ring { at: (f64, f64), radius: f64, color: Color },
    Text { text: String, at: (f64, f64), anchor: Anchor, color: Color, weight: Weight },
}

#[derive(Clone, Copy)]
enum Weight {
    Normal,
    Bold,
}

impl Canvas {
    /// An empty sheet; the description tells what is drawn to readers that cannot see it.
    pub(super) fn new(title: &str, description: &str, width: f64, height: f64) -> Self {
        Canvas { width, height, title: title.to_owned(), description: description.to_owned(), shapes: Vec::new() }
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), color: Color, width: f64) {
        self.shapes.push(Shape::Line { from, to, color, width });
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
        self.shapes.push(Shape::Box { from, to, color, opacity });
    }

    pub(super) fn area(&mut self, points: Vec<(f64, f64)>, color: Color, opacity: f64) {
        self.shapes.push(Shape::Area { points, color, opacity });
    }

    pub(super) fn curve(&mut self, points: Vec<(f64, f64)>, color: Color, width: f64) {
        self.shapes.push(Shape::Curve { points, color, width });
    }

    pub(super) fn dot(&mut self, at: (f64, f64), radius: f64, color: Color, opacity: f64) {
        self.shapes.push(Shape::Dot { at, radius, color, opacity });
    }

    /// A dot that is empty inside.
    pub(super) fn ring(&mut self, at: (f64, f64), radius: f64, color: Color) {
        self.shapes.push(Shape::Ring { at, radius, color });
    }

    pub(super) fn text(&mut self, text: &str, at: (f64, f64), anchor: Anchor, color: Color) {
        self.shapes.push(Shape::Text { text: text.to_owned(), at, anchor, color, weight: Weight::Normal });
    }

    pub(super) fn heading(&mut self, text: &str, at: (f64, f64)) {
        self.shapes.push(Shape::Text {
            text: text.to_owned(),
            at,
            anchor: Anchor::Start,
            color: INK,
            weight: Weight::Bold,
        });
    }

    /// The figure as SVG, named for readers that cannot see it.
    ///
    /// # Errors
    ///
    /// When the drawing library refuses.
    pub(super) fn finish(self, file: &str) -> Result<String, ReportError> {
        let mut svg = String::new();
        self.draw(&mut svg).map_err(|reason| ReportError::Plot { plot: file.to_owned(), reason })?;
        // The library's first line is the opening tag; ours scales the drawing units back to points and names the figure.
        let body = svg.split_once('\n').map_or("", |(_, body)| body);
        // What is so by default need not be said several hundred times.
        let body = body.replace(" opacity=\"1\"", "").replace(" \"/>", "\"/>");
        let (width, height) = (self.width.round(), self.height.round());
        let (title, description) = (escape(&self.title), escape(&self.description));
        Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {MARK} width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{title}: {description}\">\n<title>{title}</title>\n{body}",
            width * FINE,
            height * FINE
        ))
    }

    fn draw(&self, svg: &mut String) -> Result<(), String> {
        let size = ((self.width.round() * FINE) as u32, (self.height.round() * FINE) as u32);
        let sheet = SVGBackend::with_string(svg, size).into_drawing_area();
        sheet.fill(&PAPER).map_err(|error| error.to_string())?;
        for shape in &self.shapes {
            shape.draw(&sheet).map_err(|error| error.to_string())?;
        }
        sheet.present().map_err(|error| error.to_string())
    }
}

type Sheet<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type DrawError<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

impl Shape {
    fn draw<'a>(&self, sheet: &Sheet<'a>) -> Result<(), DrawError<'a>> {
        match self {
            Shape::Line { from, to, color, width } => {
                sheet.draw(&PathElement::new([fine(*from), fine(*to)], color.stroke_width(units(*width))))
            }
            Shape::Box { from, to, color, opacity } => {
                sheet.draw(&Rectangle::new([fine(*from), fine(*to)], color.mix(*opacity).filled()))
            }
            Shape::Area { points, color, opacity } => {
                sheet.draw(&Polygon::new(fine_all(points), color.mix(*opacity).filled()))
            }
            Shape::Curve { points, color, width } => {
                sheet.draw(&PathElement::new(fine_all(points), color.stroke_width(units(*width))))
            }
            Shape::Dot { at, radius, color, opacity } => {
                sheet.draw(&Circle::new(fine(*at), units(*radius), color.mix(*opacity).filled()))
            }
            Shape::Ring { at, radius, color } => {
                sheet.draw(&Circle::new(fine(*at), units(*radius), PAPER.filled()))?;
                sheet.draw(&Circle::new(fine(*at), units(*radius), color.stroke_width(units(1.6))))
            }
            Shape::Text { text, at, anchor, color, weight } => {
                let across = match anchor {
                    Anchor::Start => HPos::Left,
                    Anchor::Middle => HPos::Center,
                    Anchor::End => HPos::Right,
                };
                let style = match weight {
                    Weight::Normal => FontStyle::Normal,
                    Weight::Bold => FontStyle::Bold,
                };
                // The SVG backend divides sizes by this number (plotters-svg 0.3.7), which turns them into letter heights.
                const LIBRARY_SIZE: f64 = 1.24;
                let font = FontDesc::new(FontFamily::SansSerif, TEXT * FINE * LIBRARY_SIZE, style);
                let style = TextStyle::from(font).color(color).pos(Pos::new(across, VPos::Center));
                sheet.draw(&Text::new(text.as_str(), fine(*at), style))
            }
        }
    }
}

fn fine((x, y): (f64, f64)) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

fn fine_all(points: &[(f64, f64)]) -> Vec<(i32, i32)> {
    points.iter().map(|point| fine(*point)).collect()
}

fn units(points: f64) -> u32 {
    (points * FINE).round().max(1.0) as u32
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_named_escaped_and_has_a_background() {
        let mut canvas = Canvas::new("a <b> & \"c\"", "d", 100.0, 50.0);
        canvas.text("<script>", (10.0, 10.0), Anchor::Start, INK);
        let svg = canvas.finish("x.svg").unwrap();
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("aria-label=\"a &lt;b&gt; &amp; &quot;c&quot;: d\""));
        assert!(!svg.contains("<script>"));
        assert!(svg.contains("fill=\"#FFFFFF\""));
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("abcdefghijklmnop", 9), "abcd…mnop");
        assert_eq!(shortened("abcdefghijklmnop", 9).chars().count(), 9);
    }
}
