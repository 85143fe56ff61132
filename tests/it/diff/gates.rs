//! What a gate comes to: passed, undecided, failed, nothing measured, alike in headline, JSON, JUnit and exit code.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Repository, SPEC};
use crate::support::{Done, Project};

/// Gate of 5 % on latency, with so much noise from run to run.
fn spec(run_sd: &str, rest: &str) -> String {
    SPEC.replace("run_sd: 0.5%", &format!("run_sd: {run_sd}"))
        + "gate: [{ metric: latency, worse_by: 5%"
        + rest
        + " }]\n"
}

/// What all outputs of one gate say: the headline, the outcome in JSON, failures and skipped cases, the exit code.
fn outcome(repository: &Repository, arguments: &[&str]) -> (String, Value, String, i32) {
    let files = ["--gate", "--output", "out", "--format", "md,json,junit"];
    let done = repository.diff(&[arguments, &files].concat());
    let json: Value = serde_json::from_str(&repository.0.read("out/diff.json")).unwrap();
    let page = repository.0.read("out/diff.md");
    let headline = page.lines().find_map(|line| line.strip_prefix("### perfrun: ")).unwrap_or_default().to_owned();
    assert!((done.stdout + &done.stderr).contains(&headline), "{headline}");
    let cases = repository.0.read("out/diff.junit.xml");
    let (_, counts) = cases.split_once("<testsuite ").unwrap();
    (headline, json["gate"].clone(), counts.split_once('>').unwrap().0.to_owned(), done.code)
}

#[test]
fn three_outcomes_are_said_alike_everywhere() {
    for (run_sd, scale, fail, expected, code) in [
        ("0.2%", "0.505", "", "passed", 0),
        ("0.2%", "0.56", "", "failed", 4),
        ("12%", "0.505", "", "undecided", 0),
        ("12%", "0.505", ", fail_undecided: true", "failed", 4),
    ] {
        let repository = Repository::new(&spec(run_sd, fail));
        repository.git(&["tag", "before"]);
        let text = repository.0.read("experiments/x.yaml");
        repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", &format!("scale: {scale}")));
        repository.commit("another");
        let (headline, gate, cases, found) = outcome(&repository, &["before...HEAD", "--remeasure"]);
        assert_eq!((gate, found), (json!(expected), code), "{headline}");
        assert!(headline.starts_with(&format!("gate {expected}. ")), "{headline}");
        assert_eq!(cases.contains(r#"failures="0""#), expected != "failed", "{cases}");
        let page = repository.0.read("out/diff.md");
        assert_eq!(page.contains("cannot be seen here, the gate is 5 %"), expected == "undecided", "{page}");
        if expected == "undecided" {
            assert!(!cases.contains(r#"skipped="0""#), "what is undecided did not pass: {cases}");
            let (_, gate, _, code) = outcome(&repository, &["before...HEAD", "--remeasure", "--fail-on", "undecided"]);
            assert_eq!((gate, code), (json!("failed"), 4));
        }
    }
}

/// The newer side does other work, however fast it is.
#[test]
fn a_gate_does_not_pass_where_outputs_keep_their_limits_no_longer() {
    let repository = Repository::new(&spec("0.2%", ""));
    repository.git(&["tag", "before"]);
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.4, differ: 60%"));
    repository.commit("another");
    let (headline, gate, _, code) = outcome(&repository, &["before...HEAD", "--remeasure"]);
    let page = repository.0.read("out/diff.md");
    assert!(page.contains("not judged: outputs differ beyond their limits"), "{page}");
    assert!(gate != json!("passed") && !page.contains("faster") && code != 0, "{headline}: {gate}, {code}");
}

/// A change that may be better by any amount, but no worse than is allowed, passes.
#[test]
fn what_is_better_by_an_unknown_amount_passes() {
    let repository = Repository::new(&spec("8%", ""));
    repository.git(&["tag", "before"]);
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.4"));
    repository.commit("faster");
    let (headline, gate, ..) = outcome(&repository, &["before...HEAD", "--remeasure"]);
    assert_eq!(gate, json!("passed"), "{headline}");
}

#[test]
fn the_interval_that_is_shown_is_the_one_that_decides() {
    let repository = Repository::new(&spec("1%", ""));
    repository.git(&["tag", "before"]);
    for scale in ["0.52", "0.525", "0.53", "0.54"] {
        let text = repository.0.read("experiments/x.yaml");
        let (before, after) = text.split_once("scale: ").unwrap();
        let (_, after) = after.split_once(' ').unwrap();
        repository.0.write("experiments/x.yaml", &format!("{before}scale: {scale} {after}"));
        repository.commit(scale);
        let mut rows = repository.rows(&["before", "HEAD", "--remeasure", "--gate"]);
        rows.retain(|row| row["change"]["low"].is_number() && row["gate"].is_object());
        assert!(!rows.is_empty());
        for row in rows {
            let [low, high] = ["low", "high"].map(|key| row["change"][key].as_f64().unwrap());
            // One that fails near the bound is shown from there on.
            let expected = match (low >= 0.05 - 1e-9, high <= 0.05) {
                (true, _) => "falls",
                (_, true) => "holds",
                _ => "undecided",
            };
            assert_eq!(row["gate"]["outcome"], json!(expected), "{row}");
        }
    }
}

/// A repository of a program, a script that it runs, and a document.
fn program(rest: &str) -> Repository {
    let repository = Repository(Project::new());
    repository.0.write("src/tool.sh", "exit 0\n");
    repository.0.write("src/build.sh", "exit 0\n");
    repository.0.write("README.md", "a tool\n");
    repository.0.write(".gitignore", "out/\n.perfrun/\n");
    repository.0.write("experiments/x.yaml", &format!("cwd: ..\ncommands: [sh src/tool.sh]\nruns: 5\n{rest}"));
    repository.git(&["init", "-q", "-b", "main"]);
    repository.measure();
    repository.commit("first");
    repository.git(&["tag", "before"]);
    repository
}

#[test]
fn what_commands_run_is_part_of_what_a_report_stands_for() {
    let repository = program("");
    repository.0.write("README.md", "words\n");
    repository.commit("documents");
    let (headline, gate, cases, code) = outcome(&repository, &["before...HEAD"]);
    assert!(headline.starts_with("gate passed. same report on both sides ("), "{headline}");
    assert!(gate == json!("passed") && code == 0 && cases.contains(r#"failures="0""#), "{cases}");
    repository.0.write("src/tool.sh", "exit 0 # slower\n");
    repository.commit("forgot to measure");
    for arguments in [&["before...HEAD"][..], &["before"]] {
        let (headline, gate, ..) = outcome(&repository, arguments);
        assert_eq!(gate, json!("failed"), "{headline}");
        let page = repository.0.read("out/diff.md");
        assert!(page.contains("src/tool.sh changed since it was measured; measure again, or use"), "{page}");
    }
    // A report that an earlier perfrun wrote is held against the commit that changed it last.
    repository.git(&["checkout", "-q", "-B", "old", "before"]);
    repository.edit(|results| drop(results["provenance"]["subject"].as_object_mut().unwrap().remove("sources")));
    repository.commit("an old report");
    repository.git(&["tag", "-f", "before"]);
    assert_eq!(outcome(&repository, &["before...HEAD"]).1, json!("passed"));
    repository.0.write("src/tool.sh", "exit 0 # slower\n");
    repository.commit("forgot to measure");
    assert_eq!(outcome(&repository, &["before...HEAD"]).1, json!("failed"));
}

#[test]
fn a_change_that_is_measured_before_it_is_committed_is_fresh() {
    let repository = program("");
    repository.0.write("src/tool.sh", "exit 0 # the same\n");
    repository.measure();
    let results: Value = serde_json::from_str(&repository.0.read("reports/x/results.json")).unwrap();
    assert_eq!(results["provenance"]["context"]["dirty"], json!(["src/tool.sh"]));
    repository.commit("both at once");
    let done = repository.diff(&["before...HEAD"]);
    assert!(!done.stdout.contains("changed since"), "{}", done.stdout);
}

#[test]
fn listed_paths_are_what_counts() {
    let repository = program("paths: [../src]\n");
    repository.0.write("Makefile", "all:\n");
    repository.commit("another file");
    assert_eq!(outcome(&repository, &["before...HEAD"]).1, json!("passed"));
    repository.0.write("src/new.sh", "exit 1\n");
    repository.commit("a listed one");
    assert_eq!(outcome(&repository, &["before...HEAD"]).1, json!("failed"));
    let refused = Project::with_spec("models: [m]\nbackend: mock\npaths: [src]\n").run(&["x.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("`paths` goes with `commands`"), "{}", refused.stderr);
}

#[test]
fn commands_of_which_nothing_changed_are_not_measured_again() {
    let repository = program("gate: [{ metric: peak_rss, worse_by: 10% }]\n");
    repository.0.write("README.md", "words\n");
    repository.commit("documents");
    let done = repository.diff(&["before...HEAD", "--remeasure", "--gate"]).expect_code(0);
    assert!(done.stdout.contains("gate passed. 1 unchanged"), "{}", done.stdout);
    // A metric that both sides gate is one row.
    let rows = repository.rows(&["before", "HEAD", "--remeasure", "--gate"]);
    assert_eq!(rows.iter().filter(|row| row["metric"] == "peak_rss").count(), 1, "{rows:?}");
    repository.0.write("src/tool.sh", "exit 0 # another\n");
    repository.commit("the tool");
    let done = repository.diff(&["before...HEAD", "--remeasure", "--gate"]);
    assert!(done.stderr.contains("1 of 1 cells changed"), "{}", done.stderr);
}

#[test]
fn a_build_that_breaks_is_told_with_its_side_and_the_compilers_words() {
    let repository = program("setup: sh src/build.sh\n");
    let build = "echo 'tool.c:19: error: expected expression' >&2; echo 'make: Error 1' >&2; exit 2\n";
    repository.0.write("src/build.sh", build);
    repository.commit("does not build");
    let (headline, gate, cases, code) = outcome(&repository, &["before...HEAD", "--remeasure"]);
    assert_eq!((headline.as_str(), gate, code), ("gate failed. Nothing was measured", json!("failed"), 4));
    let (page, commit) = (repository.0.read("out/diff.md"), repository.git(&["rev-parse", "--short", "HEAD"]));
    assert!(
        page.contains("tool.c:19: error: expected expression") && page.contains(&format!("in {commit}:")),
        "{page}"
    );
    assert!(cases.contains(r#"failures="1""#) && !page.contains("perfrun-scratch"), "{cases} {page}");
    assert!(repository.0.read("out/diff.junit.xml").contains("expected expression"));
    // Without a gate it is an error like any other. No line break hides a folder's name from being replaced.
    let said = repository.diff(&["before...HEAD", "--remeasure"]).expect_code(2).stderr;
    assert!(said.contains(&format!("{commit}:")) && !said.contains("scratch"), "{said}");
}

/// A job that is cancelled has reported what was measured until then, and has not passed.
#[test]
fn what_was_measured_before_it_was_stopped_is_told() {
    let repository = program("");
    let count = repository.0.path("count");
    let script = format!(
        "echo x >> {0}\nif [ $(wc -l < {0}) -gt 40 ]; then echo $$ > {0}.new; mv {0}.new {0}.pid; exec sleep 600; fi\n",
        count.display()
    );
    repository.0.write("src/tool.sh", &script);
    repository.commit("the tool");
    let arguments = ["diff", "before...HEAD", "--remeasure", "--gate", "--output", "out", "--format", "md,json,junit"];
    let mut child = repository.0.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !repository.0.path("count.pid").exists() {
        assert!(child.try_wait().unwrap().is_none(), "{}", Done::from(child.wait_with_output().unwrap()).stderr);
        std::thread::yield_now();
    }
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::TERM).unwrap();
    let done = Done::from(child.wait_with_output().unwrap()).expect_code(130);
    let json: Value = serde_json::from_str(&repository.0.read("out/diff.json")).unwrap();
    assert_eq!(json["stopped"], json!(["x"]));
    assert!(json["gate"] != json!("passed") && !json["experiments"].as_array().unwrap().is_empty(), "{json}");
    for text in [done.stdout, repository.0.read("out/diff.md"), repository.0.read("out/diff.junit.xml")] {
        assert!(text.contains("stopped before its"), "{text}");
    }
}

#[test]
fn runs_that_fail_are_told_with_their_side_and_last_words() {
    let repository = program("gate: [{ metric: latency, worse_by: 400% }]\n");
    repository.0.write("src/tool.sh", "echo 'no such table' >&2; exit 3\n");
    repository.commit("fails");
    let (headline, gate, ..) = outcome(&repository, &["before...HEAD", "--remeasure"]);
    assert_eq!(gate, json!("failed"), "{headline}");
    let json: Value = serde_json::from_str(&repository.0.read("out/diff.json")).unwrap();
    let failure = &json["experiments"][0]["failures"][0];
    assert!(failure["message"].as_str().unwrap().contains("exit code 3"), "{failure}");
    for file in ["out/diff.md", "out/diff.junit.xml"] {
        let page = repository.0.read(file);
        assert!(page.contains("exit code 3") && page.contains("no such table"), "{page}");
    }
}

#[test]
fn a_specification_that_moved_is_compared_with_its_old_self() {
    let repository = Repository::new(&spec("0.2%", ""));
    repository.git(&["tag", "before"]);
    repository.git(&["mv", "experiments/x.yaml", "experiments/moved.yaml"]);
    repository.commit("moved");
    let (headline, gate, ..) = outcome(&repository, &["before...HEAD", "--remeasure"]);
    assert_eq!((headline.as_str(), gate), ("gate passed. 4 unchanged", json!("passed")));
    // Its report is still that of what is measured.
    let (headline, gate, ..) = outcome(&repository, &["before...HEAD"]);
    assert!(headline.contains("same report on both sides") && gate == json!("passed"), "{headline}");
    // Moved and changed, git still takes it for the same file.
    let text = repository.0.read("experiments/moved.yaml");
    repository.0.write("experiments/moved.yaml", &text.replace("scale: 0.5", "scale: 0.6"));
    repository.commit("slower");
    assert_eq!(outcome(&repository, &["before...HEAD", "--remeasure"]).1, json!("failed"));
}

#[test]
fn a_specification_that_nobody_asked_for_may_be_broken() {
    let repository = Repository::new(&spec("0.2%", ""));
    repository.0.write("experiments/broken.yaml", "models: [m]\nvariants: [\n");
    repository.commit("broken");
    repository.git(&["tag", "before"]);
    repository.diff(&["before", "HEAD", "--remeasure", "--experiment", "x"]).expect_code(0);
    let said = repository.diff(&["before", "HEAD", "--remeasure"]).expect_code(2);
    assert!(said.stderr.contains("before:experiments/broken.yaml"), "{}", said.stderr);
}

#[test]
fn rows_are_accepted_by_the_names_in_the_table() {
    let repository = Repository::new(&spec("0.2%", ""));
    repository.git(&["tag", "before"]);
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.6"));
    let lines = "Perfrun-Accept: one/int8 latency worth it\nPerfrun-Accept: three/int8 latency nothing";
    repository.commit(&format!("slower\n\n{lines}"));
    let done: Done = repository.diff(&["before...HEAD", "--remeasure", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("accepted: worth it"), "{}", done.stdout);
    let said: String = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("Perfrun-Accept names no row: three/int8 latency; the rows are one/"), "{said}");
}

/// A line of one experiment is no mistake in another one; one of none is.
#[test]
fn a_line_that_accepts_a_row_of_another_experiment_is_no_mistake() {
    let repository = Repository::new(&spec("0.2%", ""));
    let other = spec("0.2%", "").replace("[one, two]", "[three]");
    repository.0.write("experiments/y.yaml", &other);
    repository.commit("another");
    repository.git(&["tag", "before"]);
    for name in ["x", "y"] {
        let text = repository.0.read(&format!("experiments/{name}.yaml"));
        repository.0.write(&format!("experiments/{name}.yaml"), &text.replace("scale: 0.5", "scale: 0.6"));
    }
    repository.commit("slower\n\nPerfrun-Accept: one/int8 latency worth it\nPerfrun-Accept: nine/int8 latency nothing");
    let said = repository.diff(&["before...HEAD", "--remeasure", "--gate"]).expect_code(4).stdout;
    assert!(!said.contains("names no row: one/int8"), "{said}");
    assert_eq!(said.matches("names no row: nine/int8 latency").count(), 2, "{said}");
}

/// What was measured before it was tracked counts by its content, and words of commands that are no files are not stored.
#[test]
fn the_record_names_the_files_of_commands_alone() {
    let repository = program("setup: sh src/build.sh\n");
    let results: Value = serde_json::from_str(&repository.0.read("reports/x/results.json")).unwrap();
    let sources = &results["provenance"]["subject"]["sources"];
    assert_eq!(sources["named"], json!(["src/tool.sh", "src/build.sh"]));
    assert!(sources["untracked"]["src/tool.sh"].is_string(), "{sources}");
}

#[test]
fn a_report_that_git_ignores_is_said_when_it_is_written() {
    let repository = Repository(Project::new());
    repository.0.write(".gitignore", "reports/\n");
    repository.0.write("experiments/x.yaml", &spec("0.2%", ""));
    repository.git(&["init", "-q", "-b", "main"]);
    let done = repository.0.run(&["experiments/x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("git ignores reports/x"), "{}", done.stderr);
}

#[test]
fn a_gate_that_finds_no_report_measured_nothing() {
    let repository = Repository(Project::new());
    repository.0.write("README.md", "a project");
    repository.git(&["init", "-q", "-b", "main"]);
    repository.commit("before");
    let done = repository.diff(&["HEAD", "HEAD", "--gate"]).expect_code(3);
    assert!(done.stdout.contains("neither side has a report"), "{}", done.stdout);
    repository.diff(&["HEAD", "HEAD"]).expect_code(0);
}
