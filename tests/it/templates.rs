//! `perfrun report RECORD --template FILE`: the examples of the documents, and what goes wrong.

use std::path::{Path, PathBuf};

use crate::support::{Done, Project};

const SPEC: &str = "name: small
backend: { mock: { median: 5ms, run_sd: 1%, noise: 2% } }
models: [snake_case]
variants: [base, { name: heavier, mock: { scale: 1.3 } }, { name: broken, mock: { fail: { kind: crash, at: load } } }]
runs: 8
measure: { stop: { mode: samples, count: 40 } }
";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name)
}

/// A project with one record.
fn measured() -> (Project, String) {
    let project = Project::with_spec(SPEC);
    project.run(&["x.yaml"]).expect_code(3);
    let record = project.record_folder("small").display().to_string();
    (project, record)
}

/// Renders the record with templates that lie in the project.
fn report(project: &Project, record: &str, templates: &[&str]) -> Done {
    let mut arguments = vec!["report", record, "--output", "out"];
    arguments.extend(templates.iter().flat_map(|template| ["--template", *template]));
    project.run(&arguments)
}

#[test]
fn the_examples_of_the_documents_give_tables() {
    let (project, record) = measured();
    let examples = ["latency.tex.j2", "cells.csv.j2"].map(|name| example(name).display().to_string());
    let done = report(&project, &record, &[&examples[0], &examples[1]]).expect_code(0);
    assert!(done.stdout.contains("latency.tex") && done.stdout.contains("cells.csv"), "{}", done.stdout);
    let written =
        std::fs::read_dir(project.path("out")).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let (_, listed) = done.stdout.split_once("wrote ").unwrap();
    let unlisted: Vec<String> = written.filter(|name| !listed.contains(name.as_str())).collect();
    assert!(unlisted.is_empty() && listed.contains("speedup.svg"), "{unlisted:?} in {listed}");
    let latex = project.read("out/latency.tex");
    let row = latex.lines().find(|line| line.contains("heavier")).unwrap();
    assert!(row.contains(r"snake\_case & default & heavier & cpu & ") && row.contains(r" ms $\pm$ "), "{row}");
    assert!(row.contains("] slower") && row.ends_with(r"\\"), "{row}");
    assert!(latex.contains(r"broken & cpu & \multicolumn{2}{l}{failed ("), "{latex}");
    let csv = project.read("out/cells.csv");
    assert!(csv.starts_with("cell,status,metric,value,low,high,n,unit\nsnake_case/default/base/cpu,"), "{csv}");
    let latency = csv.lines().find(|line| line.contains("heavier/cpu") && line.contains("latency_ns")).unwrap();
    let fields: Vec<&str> = latency.split(',').collect();
    let [value, low, high] = [3, 4, 5].map(|index| fields[index].parse::<f64>().unwrap());
    assert!(low < value && value < high && fields[6..] == ["8", "ns"], "{latency}");
    assert!(csv.lines().all(|line| line.split(',').count() == 8), "{csv}");
}

#[test]
fn names_are_escaped_by_the_name_of_the_result() {
    let (project, record) = measured();
    for name in ["a.md.j2", "a.html.j2", "a.tex.j2", "a.txt"] {
        project.write(name, "{{ results.experiment }} {{ '<b>_&' }} {{ '<b>'|safe }}\n");
    }
    report(&project, &record, &["a.md.j2", "a.html.j2", "a.tex.j2", "a.txt"]).expect_code(0);
    assert_eq!(project.read("out/a.md"), "small \\<b>\\_& <b>\n");
    assert_eq!(project.read("out/a.html"), "small &lt;b&gt;_&amp; <b>\n");
    assert_eq!(project.read("out/a.tex"), "small \\textless{}b\\textgreater{}\\_\\& <b>\n");
    assert_eq!(project.read("out/a.txt"), "small <b>_& <b>\n");
}

#[test]
fn mistakes_name_file_and_line_and_nothing_is_written() {
    let (project, record) = measured();
    let cases = [
        ("{{ results.experiment }}\n{{ nothing }}\n", "bad.txt:2: `nothing` is undefined"),
        ("{% for cell in cells %}\n{{ cell.latency.text }}\n{% endfor %}\n", "bad.txt:2: "),
        ("a\nb\n{% if %}\n", "bad.txt:3: syntax error"),
        ("{{ results.experiment|shout }}\n", "bad.txt:1: filter shout is unknown"),
        ("\n{{ cells|path }}\n", "bad.txt:2: filter `path`: what it is given is no cell; write `cell|path`"),
    ];
    for (text, says) in cases {
        project.write("bad.txt", text);
        let done = report(&project, &record, &["bad.txt"]).expect_code(2);
        assert!(done.stderr.contains(says), "`{says}` is not in:\n{}", done.stderr);
        assert!(!project.path("out").exists());
    }
}

#[test]
fn a_result_replaces_neither_report_nor_template() {
    let (project, record) = measured();
    project.write("report.md.j2", "");
    project.write("out/own.txt", "{{ results.experiment }}");
    project.write("other/own.txt", "{{ results.experiment }}");
    for (templates, says) in [
        (&["report.md.j2"][..], "the result would replace a file of the report"),
        (&["out/own.txt"], "the result would replace the template"),
        (&["other/own.txt", "other/own.txt"], "the result would replace the result of another template"),
        (&["nothing.txt"], "cannot read the template nothing.txt"),
    ] {
        let done = report(&project, &record, templates).expect_code(2);
        assert!(done.stderr.contains(says), "`{says}` is not in:\n{}", done.stderr);
    }
    assert_eq!(project.read("out/own.txt"), "{{ results.experiment }}");
}
