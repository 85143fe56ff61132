//! Goldens of what a report shows: one page of each format as a whole, and beyond it each table and each kind of sentence
//! by itself, so that a change of one changes one small file.

use super::fixture::Fixture;
use super::{all, check};
use crate::support::readable;

/// A page of Markdown by what it says: the answer, the tables, what else is to be known, the facts below.
fn parts(markdown: &str) -> [String; 4] {
    let blocks: Vec<&str> = markdown.trim_end().split("\n\n").collect();
    let is_table = |block: &&str| block.starts_with('|');
    let first = blocks.iter().position(is_table).unwrap();
    let last = blocks.iter().rposition(is_table).unwrap();
    let facts = blocks.iter().position(|block| block.starts_with("- **Measured:**")).unwrap();
    [&blocks[1..first], &blocks[first..=last], &blocks[last + 1..facts], &blocks[facts..]].map(|blocks| {
        let shown = blocks.iter().filter(|block| !block.starts_with("!["));
        shown.copied().collect::<Vec<_>>().join("\n\n")
    })
}

#[test]
fn markdown_reads_as_intended() {
    check("choose.md", &Fixture::choose().render().markdown);
    let mut texts = [const { String::new() }; 4];
    for (name, fixture) in all().into_iter().filter(|(name, _)| *name != "choose") {
        for (text, part) in texts.iter_mut().zip(parts(&fixture.render().markdown)) {
            if !part.is_empty() {
                text.push_str(&format!("# {name}\n\n{part}\n\n"));
            }
        }
    }
    for (kind, text) in ["answers", "tables", "notices", "facts"].into_iter().zip(texts) {
        check(&format!("{kind}.md"), &text);
    }
}

#[test]
fn html_reads_as_intended() {
    // Style, script and figures are looked at, not diffed; the golden holds what a reader reads.
    let without = |text: String, open: &str, close: &str| {
        let mut rest = text.as_str();
        let mut kept = String::new();
        while let Some((before, after)) = rest.split_once(open) {
            kept.push_str(before);
            // A drawing may hold others.
            let mut inner = after;
            let mut depth = 1;
            while depth > 0 {
                let Some((within, rest)) = inner.split_once(close) else { break };
                depth += within.matches(open).count();
                depth -= 1;
                inner = rest;
            }
            rest = inner;
        }
        kept + rest
    };
    let html = Fixture::alone().render().html;
    let text = without(without(without(html, "<style>", "</style>"), "<script>", "</script>"), "<svg", "</svg>");
    check("alone.html", &text);
    // Headings that can be linked to begin the parts.
    let html = Fixture::choose().render().html;
    let mut begins: Vec<usize> = ["<h2 id=\"", "<h3 id=\"", "<details class=\"part\" id=\""]
        .iter()
        .flat_map(|begin| html.match_indices(begin).map(|(project, _)| project))
        .collect();
    begins.sort_unstable();
    assert!(begins.len() > 10, "{begins:?}");
    check("html_answer", &readable(&html[..begins[0]]));
    for (index, begin) in begins.iter().enumerate() {
        let part = &html[*begin..begins.get(index + 1).copied().unwrap_or(html.len())];
        let name = part.split(" id=\"").nth(1).unwrap().split('"').next().unwrap();
        check(&format!("html_{name}"), &readable(part));
    }
}

#[test]
fn files_for_other_tools_read_as_intended() {
    for format in ["junit", "bmf", "github-action-benchmark"] {
        check(&format!("choose.{format}"), &Fixture::choose().file(format));
    }
    // Every cell has the same macros.
    let latex = |fixture: Fixture, of: &str| {
        let text = fixture.file("latex");
        let lines = text.lines().filter(|line| !line.starts_with("\\@namedef") || line.contains(of));
        lines.collect::<Vec<_>>().join("\n")
    };
    check("choose.latex", &latex(Fixture::choose(), "/resnet50/b1/int8/"));
    // Names that mean something to TeX and XML.
    check("hostile.latex", &latex(Fixture::hostile(), "/latency}"));
    check("hostile.junit", &Fixture::hostile().file("junit"));
}
