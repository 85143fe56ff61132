//! What git refuses, cannot find or does not have whole is said with its reason and its remedy.

use std::process::Command;

use super::{Repository, SPEC};
use crate::support::{Done, Project};

type Variables = &'static [(&'static str, &'static str)];

/// The variables that make git refuse, what perfrun says then, and the remedy.
const REFUSALS: [(Variables, &str, &str); 3] = [
    (
        &[
            ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ],
        "git refuses this repository, which another user owns",
        "git config --global --add safe.directory ",
    ),
    (&[("PATH", "/nowhere")], "git is not installed, or not on the path", "install git"),
    (&[("GIT_DIR", "/no/such")], "not a git repository: '/no/such'", "GIT_DIR is set"),
];

fn refused(project: &Project, variables: &[(&str, &str)], arguments: &[&str]) -> Done {
    let mut command = project.command(arguments);
    command.envs(variables.iter().copied());
    Done::from(command.output().unwrap())
}

#[test]
fn a_diff_says_why_git_says_nothing() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.6");
    repository.commit("second");
    for (variables, why, remedy) in REFUSALS {
        for arguments in [&["diff", "HEAD~1", "HEAD"][..], &["diff", "HEAD~1...HEAD"], &["diff"]] {
            let done = refused(&repository.0, variables, arguments).expect_code(2);
            let stderr = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(stderr.contains(why) && stderr.contains(remedy), "{}", done.stderr);
            assert_eq!(stderr.matches(why).count(), 1, "{}", done.stderr);
            assert!(!stderr.contains("is not a git repository"), "{}", done.stderr);
        }
        // Paths need no git.
        refused(&repository.0, variables, &["diff", "reports/x", "reports/x"]).expect_code(0);
        let history = refused(&repository.0, variables, &["history", "x"]).expect_code(0);
        assert!(history.stderr.contains("warning: ") && history.stderr.contains(why), "{}", history.stderr);
    }
}

#[test]
fn a_run_without_a_commit_says_why() {
    let repository = Repository::new(SPEC);
    for (variables, why, remedy) in REFUSALS {
        let done = refused(&repository.0, variables, &["experiments/x.yaml"]).expect_code(0);
        let stderr = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(stderr.contains("warning no commit is recorded: git") && stderr.contains(why), "{}", done.stderr);
        let page = repository.0.read("reports/x/report.md");
        assert!(page.contains("No commit was recorded: git"), "{page}");
        assert!(page.replace('\\', "").contains(why), "{page}");
        let root = repository.0.root().display().to_string();
        assert!(!page.contains(&root) && stderr.contains(remedy), "a report names no folder of a machine: {page}");
    }
    let done = repository.0.run(&["experiments/x.yaml"]).expect_code(0);
    assert!(!done.stderr.contains("no commit is recorded"), "{}", done.stderr);
    assert!(!repository.0.read("reports/x/report.md").contains("No commit was recorded"));
    // Where there is no repository there is nothing to refuse.
    let project = Project::with_spec(SPEC);
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(!done.stderr.contains("no commit is recorded"), "{}", done.stderr);
}

#[test]
fn a_history_in_a_shallow_clone_says_what_is_missing() {
    let repository = Repository::new(SPEC);
    repository.change("scale: 0.5", "scale: 0.6");
    repository.commit("second");
    let clone = Project::new();
    let from = format!("file://{}", repository.0.root().display());
    let mut git = Command::new("git");
    git.args(["clone", "-q", "--depth=1", &from, "clone"]).current_dir(clone.root());
    assert!(git.status().unwrap().success());
    for (arguments, code) in [(&["history", "x", "--committed"][..], 0), (&["site", "out"], 0)] {
        let mut command = clone.command(arguments);
        let done = Done::from(command.current_dir(clone.path("clone")).output().unwrap()).expect_code(code);
        assert!(done.stderr.contains("this clone is shallow"), "{}", done.stderr);
        assert!(done.stderr.contains("git fetch --unshallow"), "{}", done.stderr);
        let whole = repository.0.run(arguments).expect_code(code);
        assert!(!whole.stderr.contains("shallow"), "{}", whole.stderr);
    }
}

/// Alone it is what ends the command, unless a gate has to decide what that means.
#[test]
fn a_report_of_an_old_format_does_not_stop_the_others() {
    let repository = Repository::new(SPEC);
    repository.0.write("reports/old/results.json", r#"{ "format": 1, "experiment": "old" }"#);
    repository.commit("an old report");
    let why = "reports/old/results.json is of a format that is no longer read: format 1 (measure it again, or";
    let said = repository.diff(&["HEAD~1", "HEAD"]).expect_code(0).stdout;
    assert!(said.contains("x: ") && said.contains("old: not compared: ") && said.contains(why), "{said}");
    let said = repository.diff(&["HEAD~1", "HEAD", "--gate"]).expect_code(4).stdout;
    assert!(said.contains("old: not compared, so its gate fails: ") && said.contains(why), "{said}");
    repository.diff(&["HEAD~1", "HEAD", "--gate", "--allow-unjudged"]).expect_code(0);
    let cases = repository.diff(&["HEAD~1", "HEAD", "--gate", "--format", "junit"]).expect_code(4).stdout;
    assert!(cases.contains(r#"failures="1""#) && cases.contains("no longer read"), "{cases}");
    // Measured again: the older side alone has nothing to compare with.
    let again = repository.0.read("reports/x/results.json").replace(r#""experiment": "x""#, r#""experiment": "old""#);
    repository.0.write("reports/old/results.json", &again);
    let said = repository.diff(&["--gate"]).expect_code(0).stdout;
    assert!(said.contains("old: not compared: ") && !said.contains("only on"), "{said}");
    let said = repository.diff(&["--gate", "--experiment", "old"]).expect_code(0).stdout;
    assert!(said.contains("nothing to compare yet") && said.contains(why), "{said}");
    let refused = repository.diff(&["--experiment", "old"]).expect_code(2).stderr;
    assert!(refused.contains("format that is no longer"), "{refused}");
}
