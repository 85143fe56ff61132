//! The commit that introduces perfrun, and what is written whatever happens.

use super::{Repository, SPEC};
use crate::support::{Done, Project};

/// A repository whose first commit has no perfrun, and whose second one adds a specification and, if measured, its report.
fn introduced(is_measured: bool) -> Repository {
    let repository = Repository(Project::new());
    repository.0.write("README.md", "a project");
    repository.git(&["init", "-q", "-b", "main"]);
    repository.commit("before");
    repository.0.write("experiments/x.yaml", SPEC);
    if is_measured {
        repository.measure();
    }
    repository.commit("perfrun");
    repository
}

#[test]
fn the_commit_that_introduces_perfrun_passes_its_gate() {
    for (is_measured, arguments) in
        [(false, &["HEAD~1...HEAD", "--gate", "--remeasure"][..]), (true, &["HEAD~1...HEAD", "--gate"])]
    {
        let repository = introduced(is_measured);
        let files = ["--output", "out", "--format", "md,html,json,junit"];
        let done = repository.diff(&[arguments, &files].concat()).expect_code(0);
        assert!(done.stdout.contains("nothing to compare yet"), "{}", done.stdout);
        assert!(done.stdout.contains("x: only on the newer side"), "{}", done.stdout);
        let page = repository.0.read("out/diff.md");
        assert!(page.starts_with("<!-- perfrun diff -->\n### perfrun: nothing to compare yet\n"), "{page}");
        assert!(repository.0.read("out/diff.html").contains("Nothing to compare yet"));
        let json: serde_json::Value = serde_json::from_str(&repository.0.read("out/diff.json")).unwrap();
        assert_eq!((&json["gate"], &json["new"][0]), (&"passed".into(), &"x".into()));
        assert!(json["nothing"].as_str().unwrap().contains("nothing to compare yet"), "{json}");
        let cases = repository.0.read("out/diff.junit.xml");
        assert!(cases.contains(r#"failures="0""#) && cases.contains("only on the newer side"), "{cases}");
    }
}

#[test]
fn commits_without_any_report_have_nothing_to_compare_yet() {
    let done = introduced(false).diff(&["HEAD~1...HEAD", "--gate"]).expect_code(3);
    assert!(done.stdout.contains("neither side has a report: run"), "{}", done.stdout);
    // A folder that was named is another matter.
    let repository = introduced(false);
    assert!(
        repository.diff(&["experiments", "experiments"]).expect_code(2).stderr.contains("neither side has a report")
    );
}

#[test]
fn what_ends_a_diff_is_written_where_files_are_wanted() {
    let repository = introduced(false);
    let mut command = repository.0.command(&["diff", "nope...HEAD", "--gate", "--output", "out"]);
    command.env("GITHUB_STEP_SUMMARY", repository.0.path("summary.md"));
    let done = Done::from(command.output().unwrap()).expect_code(2);
    assert!(done.stderr.contains("`nope` is not a revision"), "{}", done.stderr);
    for page in ["out/diff.md", "summary.md"] {
        let page = repository.0.read(page);
        assert!(page.starts_with("<!-- perfrun diff -->\n### perfrun: nothing was compared\n"), "{page}");
        assert!(page.contains("`nope` is not a revision"), "{page}");
    }
    let json: serde_json::Value = serde_json::from_str(&repository.0.read("out/diff.json")).unwrap();
    assert_eq!(json["gate"], "failed", "{json}");
}

#[test]
fn a_step_summary_that_cannot_be_written_is_a_warning() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.65");
    for wrong in ["/no/such/file", "experiments"] {
        let mut command = repository.0.command(&["diff", "--gate", "--output", "out"]);
        command.env("GITHUB_STEP_SUMMARY", wrong);
        let done = Done::from(command.output().unwrap()).expect_code(4);
        assert!(done.stdout.contains("gate failed. 2 slower"), "{}", done.stdout);
        assert!(repository.0.read("out/diff.md").contains("2 slower"));
        let is_warning = |line: &str| line.starts_with("warning: ") && line.contains("GITHUB_STEP_SUMMARY");
        assert!(done.stderr.lines().any(is_warning), "{}", done.stderr);
        let mut command = repository.0.command(&["experiments/x.yaml"]);
        command.env("GITHUB_STEP_SUMMARY", wrong);
        let done = Done::from(command.output().unwrap()).expect_code(0);
        assert!(done.stderr.lines().any(is_warning), "{}", done.stderr);
        assert!(done.stdout.contains("reports/x/report.md"), "{}", done.stdout);
    }
}

#[test]
fn a_run_appends_its_first_page_to_the_step_summary() {
    let project = Project::with_spec(SPEC);
    project.write("summary.md", "before\n");
    let mut command = project.command(&["x.yaml"]);
    command.env("GITHUB_STEP_SUMMARY", project.path("summary.md"));
    Done::from(command.output().unwrap()).expect_code(0);
    let summary = project.read("summary.md");
    assert!(summary.starts_with("before\n# x\n"), "{summary}");
    assert!(summary.contains("| one | default | fp32 |") && summary.contains("faster"), "{summary}");
    // What lies next to the report does not lie next to the summary.
    assert!(!summary.contains(".svg") && !summary.contains("](report.html)") && !summary.contains("](results.json)"));
    assert!(project.read("reports/x/report.md").contains("](results.json)"));
}

#[test]
fn specifications_are_measured_again_wherever_reports_say_that_they_lie() {
    let repository = Repository(Project::new());
    repository.0.write("bench/deep/x.yaml", SPEC);
    repository.git(&["init", "-q", "-b", "main"]);
    repository.0.run(&["bench/deep/x.yaml"]).expect_code(0);
    repository.commit("first");
    repository.0.write("bench/deep/x.yaml", &SPEC.replace("scale: 0.5", "scale: 0.65"));
    let done = repository.diff(&["HEAD", "--remeasure", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("gate failed. 2 slower, 2 unchanged"), "{}", done.stdout);
    repository.commit("slower");
    let done = repository.diff(&["HEAD~1...HEAD", "--remeasure", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("gate failed. 2 slower, 2 unchanged"), "{}", done.stdout);
    // A report cannot lead out of the repository.
    repository.edit(|results| results["provenance"]["subject"]["specification"]["path"] = "../../etc/x.yaml".into());
    repository.commit("led astray");
    let done = repository.diff(&["HEAD", "--remeasure", "--gate"]).expect_code(3);
    assert!(done.stdout.contains("neither side has a specification"), "{}", done.stdout);
}
