//! What must hold for every figure: small, named, readable, nothing on top of each other.

use experiment::Aa;
use report::plots;
use worker::backend::FailureKind;

use super::all;
use super::fixture::Fixture;

/// Every figure, with the name of its report: those with a file, and those of the HTML alone.
fn figures() -> Vec<(String, String)> {
    let mut figures = Vec::new();
    for (name, fixture) in all() {
        let rendered = fixture.render();
        figures.extend(rendered.plots.into_iter().map(|(file, svg)| (format!("{name}/{file}"), svg)));
        for (index, svg) in timelines(&rendered.html).into_iter().enumerate() {
            figures.push((format!("{name}/timeline {index}"), svg));
        }
    }
    figures
}

/// The figures of samples over time.
fn timelines(html: &str) -> Vec<String> {
    let all = html.split("<svg").skip(1).filter_map(|rest| Some(format!("<svg{}</svg>", rest.split_once("</svg>")?.0)));
    all.filter(|svg| svg.contains("<title>Samples over time")).collect()
}

/// A text with the rectangle that it may take: left, top, right, bottom.
struct Label {
    text: String,
    sides: [f64; 4],
}

/// The labels of a figure, and its width.
fn labels(svg: &str) -> (Vec<Label>, f64) {
    // A letter is at most this share of the text size wide on average in usual sans-serif fonts.
    const LETTER: f64 = 0.6;
    let attribute = |tag: &str, name: &str| -> f64 {
        let value = tag.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        value.and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    let size = attribute(svg, "font-size");
    let label = |text: &str| {
        let (tag, rest) = text.split_once('>').unwrap();
        let letters = rest.split("</text>").next().unwrap_or_default().trim().replace("&amp;", "&");
        let width = letters.chars().count() as f64 * size * LETTER;
        let (x, y) = (attribute(tag, "x"), attribute(tag, "y"));
        let (left, right) = match tag {
            tag if tag.contains("\"end\"") => (x - width, x),
            tag if tag.contains("\"middle\"") => (x - width / 2.0, x + width / 2.0),
            _ => (x, x + width),
        };
        // Small letters and digits: what reaches above and below them may stand in the next line's room.
        Label { text: letters, sides: [left, y - 0.4 * size, right, y + 0.4 * size] }
    };
    let view = svg.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let width = view.split_whitespace().nth(2).and_then(|number| number.parse().ok()).unwrap_or_default();
    (svg.split("<text").skip(1).map(label).collect(), width)
}

#[test]
fn figures_are_small_named_and_have_a_background() {
    let figures = figures();
    assert!(figures.len() > 20);
    for (file, svg) in figures {
        assert!(svg.len() < 60_000, "{file} has {} bytes", svg.len());
        assert!(plots::is_ours(&svg), "{file}");
        assert!(svg.contains("role=\"img\"") && svg.contains("<title>"), "{file}");
        assert!(svg.contains("fill=\"#FFFFFF\""), "{file} has no background");
        for points in svg.split("points=\"").skip(1) {
            let number = points.split('"').next().unwrap_or_default().split_whitespace().count();
            assert!(number <= 200, "{file} has a curve of {number} points");
        }
    }
}

#[test]
fn no_text_of_a_figure_leaves_the_sheet() {
    for (file, svg) in figures() {
        let (labels, width) = labels(&svg);
        assert!(!labels.is_empty(), "{file}");
        for Label { text, sides: [left, _, right, _] } in labels {
            assert!(left >= 0.0 && right <= width, "{file}: `{text}` reaches from {left} to {right} of {width}");
        }
    }
}

#[test]
fn no_two_texts_of_a_figure_overlap() {
    for (file, svg) in figures() {
        let labels = labels(&svg).0;
        for (index, one) in labels.iter().enumerate() {
            for other in &labels[index + 1..] {
                let apart = |low: usize, high: usize| {
                    one.sides[high] <= other.sides[low] || other.sides[high] <= one.sides[low]
                };
                assert!(apart(0, 2) || apart(1, 3), "{file}: `{}` and `{}`", one.text, other.text);
            }
        }
    }
}

#[test]
fn every_run_is_seen() {
    let figures = Fixture::restless().figures();
    let (_, svg) = figures.iter().find(|(file, _)| file.starts_with("latency")).unwrap();
    // Forty boxes: four cells of ten runs.
    assert_eq!(svg.matches("<polygon opacity=\"0.45\"").count(), 40);
    assert_eq!(svg.matches("10 runs").count(), 4);
}

#[test]
fn samples_over_time_are_of_the_doubtful_cells_and_in_the_html_alone() {
    let rendered = Fixture::restless().render();
    let figures = timelines(&rendered.html);
    assert_eq!(figures.len(), 2, "the two cells that carry warnings");
    let late = figures.iter().find(|svg| svg.contains("rnn/b1/late/cpu")).unwrap();
    assert!(late.contains("late warm-up, not counted") && late.contains("W_LATE_WARMUP"));
    assert!(figures.iter().any(|svg| svg.contains("rnn/b1/drifting/cpu") && !svg.contains("not counted")));
    assert!(!rendered.markdown.contains("Samples over time"));
    assert!(rendered.plots.iter().all(|(file, _)| !file.contains("timeline")));
}

#[test]
fn failed_runs_of_a_control_are_named_in_every_page() {
    let mut fixture = Fixture::choose().with_control(Aa::Group, 1.0);
    fixture.fail_aa_copies(&[1, 2], FailureKind::Killed, "the worker was killed by signal 9 (SIGKILL)");
    let texts = fixture.summarized().render();
    for text in [&texts.markdown, &texts.page, &texts.json] {
        assert!(text.contains("the worker was killed by signal 9 (SIGKILL)"), "{text}");
    }
    for text in [&texts.markdown, &texts.page] {
        assert!(text.contains("the control of resnet50/b1/fp32"), "{text}");
    }
}

#[test]
fn controls_have_a_figure_of_their_own() {
    let figures = Fixture::failed_control().figures();
    let (_, svg) = figures.iter().find(|(file, _)| file == "control.svg").unwrap();
    assert!(svg.contains("] failed") && svg.contains("margin 2 %"));
    assert!(Fixture::failed_control().render().html.contains("] failed"));
    assert!(Fixture::quick_look().figures().iter().all(|(file, _)| file != "control.svg"));
}
