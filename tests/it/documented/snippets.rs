//! Snippets of specifications and of Python.

use std::process::Command;

use super::blocks::{Block, Page, pages};
use super::root;
use crate::need::need;
use crate::support::{Done, Project};

/// Snippets of YAML that are no part of a specification: the page, a line, and who reads it.
const FOREIGN: &[(&str, &str, &str)] = &[
    ("docs/changes.md", "# .github/workflows/perf.yml", "GitHub"),
    ("docs/changes.md", "# .github/workflows/perf-comment.yml", "GitHub"),
    ("docs/experiment.md", "repos:", "pre-commit"),
];

/// What a snippet takes for granted of the specification around it: the page, a part of the snippet, and the rest.
const AROUND: &[(&str, &str, &str)] = &[
    ("docs/changes.md", "metric: speedup", "variants: [fp32, int8]"),
    ("docs/load.md", "largest_rate", "measure: { load: { rate: largest, bound: { p99: 20ms } } }"),
];

/// The whole specification of a snippet, and the row of [`AROUND`] that it needs.
fn whole(page: &Page, block: &Block) -> (String, Option<&'static str>) {
    let around = AROUND.iter().find(|(of, part, _)| *of == page.path && block.text.contains(part));
    let mut text = around.map_or(String::new(), |(_, _, rest)| format!("{rest}\n")) + &block.text;
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    if !has("models:") && !has("commands:") {
        text += "models: model.onnx\n";
    }
    (text, around.map(|(_, part, _)| *part))
}

/// The problems without those of missing files, which pages name as examples.
fn problems(said: &str) -> Vec<&str> {
    let of_files = ["there is no file ", "there is no folder ", "x.yaml has "];
    let messages = said.lines().filter_map(|line| line.strip_prefix("  × "));
    // Nor sizes, which a part leaves to the rest of its specification.
    let is_about_the_part = |line: &&str| {
        !of_files.iter().any(|words| line.starts_with(words))
            && !line.ends_with(" has no size")
            && !line.ends_with(" have no size")
    };
    messages.filter(is_about_the_part).collect()
}

#[test]
fn every_part_of_a_specification_in_the_documents_is_valid() {
    let project = Project::new();
    let mut checked = 0;
    let mut used: Vec<&str> = Vec::new();
    for page in pages() {
        let is_part = |block: &&Block| block.info.starts_with("yaml") && !block.text.starts_with("# spec");
        for block in page.blocks.iter().filter(is_part) {
            let is_foreign = |(of, line, _): &&(&str, &str, &str)| *of == page.path && block.text.starts_with(line);
            if let Some((_, line, _)) = FOREIGN.iter().find(is_foreign) {
                used.push(line);
                continue;
            }
            let (text, around) = whole(&page, block);
            used.extend(around);
            project.write("x.yaml", &text);
            let Done { code, stderr, .. } = project.run(&["validate", "x.yaml"]);
            assert!(code == 0 || stderr.contains("  × "), "{}\n{stderr}", page.path);
            assert_eq!(problems(&stderr), Vec::<&str>::new(), "{}:\n{text}\n{stderr}", page.path);
            checked += 1;
        }
    }
    for (page, part, _) in FOREIGN.iter().chain(AROUND) {
        assert!(used.contains(part), "{page} shows `{part}` no more");
    }
    assert!(checked > 25, "{checked}");
}

#[test]
fn every_snippet_of_python_in_the_documents_compiles() {
    let python = need!(numpy);
    let mut checked = 0;
    for page in pages() {
        for block in page.blocks.iter().filter(|block| block.info == "python") {
            let compile = "import sys; compile(sys.argv[1], sys.argv[2], 'exec')";
            let done = Command::new(python).args(["-c", compile, &block.text, &page.path]).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            checked += 1;
        }
    }
    assert!(checked > 1, "{checked}");
}

/// What a page shows of a committed report, behind a line that links to it and ends with a colon: the report, and the lines.
fn excerpts(text: &str) -> Vec<(String, Vec<&str>)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let linked = line.split_once("](").filter(|_| line.ends_with(':')).and_then(|(_, rest)| {
            let path = rest.split_once(')')?.0.trim_start_matches("../");
            path.starts_with("reports/").then(|| path.to_owned())
        });
        if let Some(report) = linked {
            let shown = lines.by_ref().skip_while(|line| line.is_empty() || line.starts_with("```"));
            found.push((report, shown.take_while(|line| !line.is_empty() && !line.starts_with("```")).collect()));
        }
    }
    found
}

#[test]
fn what_pages_show_of_committed_reports_stands_in_them() {
    let plain =
        |text: &str| text.replace(['*', '●', '○', '◌', '◆', '\\'], "").split_whitespace().collect::<Vec<_>>().join(" ");
    let mut checked = 0;
    for page in pages() {
        for (path, shown) in excerpts(&std::fs::read_to_string(root().join(&page.path)).unwrap()) {
            let report = std::fs::read_to_string(root().join(&path)).unwrap();
            let rows: Vec<String> = report.lines().filter(|line| line.starts_with('|')).map(plain).collect();
            if shown[0].starts_with('|') {
                // Below the headings and the line under them.
                for row in &shown[2..] {
                    let cells: Vec<String> = row.split('|').map(plain).filter(|cell| !cell.is_empty()).collect();
                    let is_row = rows.iter().any(|known| cells.iter().all(|cell| known.contains(cell.as_str())));
                    assert!(is_row, "{}: {path} has no row {row}", page.path);
                }
            } else {
                assert!(plain(&report).contains(&plain(&shown.join(" "))), "{}: {path} lacks {shown:?}", page.path);
            }
            checked += 1;
        }
    }
    assert!(checked > 3, "{checked} excerpts of reports");
}

/// The names of numbers in a paper are those of the committed report.
#[test]
fn the_numbers_of_the_paper_on_a_page_are_in_the_report() {
    let page = pages().into_iter().find(|page| page.path == "docs/reports.md").unwrap();
    let paper = page.blocks.iter().find(|block| block.info == "latex").unwrap();
    let project = Project::new();
    let report = root().join("reports/quickstart").display().to_string();
    project.run(&["report", &report, "--format", "latex", "--output", "."]).expect_code(0);
    let table = project.read("results.tex");
    let names: Vec<&str> = paper.text.split("\\perfrun{").skip(1).filter_map(|rest| rest.split('}').next()).collect();
    assert_eq!(names.len(), 4);
    for name in names {
        assert!(table.contains(&format!("perfrun@{name}}}")), "results.tex has no {name}");
    }
}
