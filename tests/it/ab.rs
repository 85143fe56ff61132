//! Commands instead of models: real programs, in real worker processes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use record::{Outcome, Record};

use super::support::{Done, Project, check_snapshot};

/// Short blocks: what is tested is no time.
const SHORT: &str = "runs: 2\nmeasure: { stop: { mode: samples, count: 2 } }\ncompare: { aa: off }\n";

fn a_project(commands: &str) -> Project {
    Project::with_spec(&format!("{commands}\n{SHORT}"))
}

fn measured(commands: &str) -> (Project, Record) {
    let project = a_project(commands);
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    (project, record)
}

/// What became of the only command, which fails in the rehearsal.
fn failure(command: &str) -> String {
    let project = a_project(&format!("commands:\n  - {command}\n"));
    let Done { stderr, .. } = project.run(&["x.yaml"]).expect_code(3);
    let line = stderr.lines().position(|line| line.contains("  failed   ")).expect("a failed rehearsal");
    let rest: Vec<&str> = stderr.lines().skip(line).take_while(|line| !line.starts_with("time")).collect();
    rest.join("\n").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_command_has_times_and_no_rates() {
    let (project, record) = measured("commands: ['true', { name: sum, run: 'echo $((1 + 1))', shell: true }]");
    let completed: Vec<_> = record.runs.iter().filter(|run| run.outcome == Outcome::Completed).collect();
    assert_eq!(completed.len(), 2 + 4, "the rehearsal and two runs of each");
    for run in completed.iter().filter(|run| !run.data.measured.is_empty()) {
        let has = |name: &str| run.data.metrics.contains_key(name);
        assert!(has("latency_ns") && has("user_time_ns") && has("system_time_ns") && has("cpu_time_ns"));
        assert!(!has("throughput_per_s") && !has("items_per_s"), "{:?}", run.data.metrics);
        assert_eq!(run.data.measured.len(), 2);
    }
    let page = project.read("reports/x/report.md");
    assert!(
        page.contains("| command | time |") && page.contains("- **With:** true; sh -c 'echo $((1 + 1))'"),
        "{page}"
    );
}

#[test]
fn a_command_runs_where_and_with_what_it_is_told() {
    let check = "read line && [ \"$line$WORD\" = oneone ] && [ -f here ] && rm fresh";
    let commands = format!(
        "commands:\n  - {{ name: c, run: [sh, -c, '{check}'], cwd: folder, env: {{ WORD: one }}, input: in.txt }}\n\
         prepare: touch fresh\nsetup: echo once >> setup.txt\n"
    );
    let project = a_project(&commands);
    project.write("folder/here", "");
    project.write("in.txt", "one\n");
    project.run(&["x.yaml"]).expect_code(0);
    assert_eq!(project.read("folder/setup.txt"), "once\n", "of all runs together");
    let record = project.record("x");
    assert_eq!(record.manifest.findings.setup.as_ref().map(|setup| setup.took_ns.len()), Some(1));
    let stored = record.manifest.experiment.models[0].command.clone().unwrap();
    assert_eq!((stored.folder.to_str(), stored.input.unwrap().to_str()), (Some("folder"), Some("in.txt")));
}

#[test]
fn what_a_command_does_wrong_is_a_failed_run_with_the_reason() {
    let says = |command: &str, why: &str| {
        let failed = failure(command);
        assert!(failed.contains(why), "{failed}");
    };
    says(
        "{ name: c, run: 'echo one >&2; echo two >&2; exit 3', shell: true }",
        "failed c: the command ended with exit code 3: two (command)",
    );
    says("{ name: c, run: 'kill -KILL $$', shell: true }", "was killed by signal 9 (SIGKILL)");
    says("{ name: c, run: ./absent, setup: 'true' }", "cannot start `./absent`: No such file");
    says("{ name: c, run: 'printf \"a\\0b\" >&2; exit 1', shell: true }", "ended with exit code 1: a");
    says("{ name: c, run: 'true', prepare: 'echo no >&2; false' }", "`prepare` ended with exit code 1: no");
    says(
        "{ name: c, run: 'head -c 9000000 /dev/zero >&2; head -c 9000000 /dev/zero; echo end >&2; exit 9', shell: true }",
        "ended with exit code 9: ",
    );
}

#[test]
fn a_command_that_hangs_ends_with_the_deadline() {
    let project = Project::with_spec(&format!(
        "commands:\n  - cat fifo\nsetup: mkfifo fifo\n{}",
        SHORT.replace("measure: {", "measure: { timeout: 1s, warmup: { mode: samples, count: 1 },")
    ));
    let done = project.run(&["x.yaml"]).expect_code(3);
    assert!(done.stderr.contains("(timeout)"), "{}", done.stderr);
}

#[test]
fn what_cannot_be_set_up_is_not_measured() {
    let project = a_project("commands: ./tool\nsetup: echo broken >&2 && exit 2");
    let done = project.run(&["x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("`setup: echo broken >&2 && exit 2` failed, exit status: 2, in "), "{}", done.stderr);
    assert!(project.record("x").runs.is_empty());
}

#[test]
fn other_exit_codes_can_be_good_ones() {
    measured("commands: [{ name: none, run: 'grep -q nothing /dev/null', exit_codes: [1] }]");
}

#[test]
fn output_goes_where_it_is_told_to() {
    let commands = "commands:\n  - { name: piped, run: '[ -p /dev/stdout ] && echo once', shell: true }\n  \
        - { name: thrown, run: '[ -c /dev/stdout ]', shell: true, stdout: null }\n  \
        - { name: kept, run: '[ -f /dev/stdout ] && echo kept', shell: true, stdout: out.txt }\n  \
        - { name: shown, run: 'echo \"it is shown\"', shell: true, stdout: inherit }";
    let project = a_project(commands);
    let done = project.run(&["x.yaml", "--json"]).expect_code(0);
    assert!(done.stderr.lines().any(|line| line == "it is shown"), "{}", done.stderr);
    let results: serde_json::Value = serde_json::from_str(&done.stdout).expect("nothing but JSON");
    let record = project.record("x");
    assert_eq!(project.read(record.folder.join("stdout/kept/out.txt").to_str().unwrap()), "kept\n");
    let printed = |cell: usize| results["cells"][cell]["environment"]["stdout_bytes"][0].as_f64();
    assert_eq!([0, 1, 2, 3].map(printed), [Some(5.0), None, Some(5.0), None]);
    let frame = &results["provenance"]["frame"]["stdout"];
    assert_eq!(frame[2], serde_json::json!({ "model": "kept", "to": "out.txt" }));
}

#[test]
fn commands_that_print_differently_much_are_asked_whether_they_do_the_same() {
    let grows = "echo x >> n; cat n";
    let commands = format!("commands:\n  - {{ name: grows, run: '{grows}', shell: true }}\n  - 'true'\n");
    let project = a_project(&commands);
    let said = project.run(&["x.yaml"]).expect_code(0).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("outputs The output of grows differs between executions: "), "{said}");
    assert!(said.contains("and true prints 0 B: do they do the same work?"), "{said}");
}

#[test]
fn a_command_has_ended_when_its_process_has_whoever_keeps_its_output() {
    let commands = "commands:\n  - { name: leaves, run: 'sleep 1000 & echo done', shell: true }\n  \
        - { name: writes, run: 'yes & echo done', shell: true }\n  - { name: closes, run: 'exec >&-', shell: true }\n  \
        - { name: binary, run: 'head -c 300000 /dev/urandom', shell: true }";
    let (_place, record) = measured(commands);
    let printed = |cell: usize| {
        let of_cell = record.runs.iter().filter(|run| run.cell == record.manifest.plan.cells[cell].id);
        of_cell.filter_map(|run| run.data.metrics.get("stdout_bytes").copied()).collect::<Vec<f64>>()
    };
    assert!(!printed(0).is_empty() && printed(0).iter().all(|bytes| *bytes == 5.0));
    assert!(printed(2).iter().all(|bytes| *bytes == 0.0) && printed(3).iter().all(|bytes| *bytes == 300_000.0));
}

#[test]
fn what_was_measured_into_the_void_is_not_compared_with_what_went_into_a_pipe() {
    let (project, _) = measured("commands: 'true'");
    let mut older: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    older["provenance"]["frame"].as_object_mut().unwrap().remove("stdout").expect("it is recorded");
    project.write("older/results.json", &older.to_string());
    let done = project.run(&["diff", "older/results.json", "reports/x/results.json"]).expect_code(0);
    assert!(done.stdout.contains("stdout"), "{}", done.stdout);
    assert!(!done.stdout.contains("undecided"), "{}", done.stdout);
}

#[test]
fn ab_is_a_specification_that_can_be_kept() {
    let project = Project::new();
    let export = [
        "ab",
        "--name",
        "old",
        "true",
        "false",
        "--prepare",
        "sync",
        "--stdout",
        "null",
        "--export-spec",
        "experiments/t.yaml",
    ];
    project.run(&export).expect_code(0);
    check_snapshot("ab_specification", &project.read("experiments/t.yaml"));
    project.run(&["validate", "experiments/t.yaml"]).expect_code(0);
    let plan = project.run(&["plan", "experiments/t.yaml"]).expect_code(0).stdout;
    assert!(plan.contains("old is measured twice") && !plan.contains("default/fp32/cpu"), "{plan}");
    let again = project.run(&export).expect_code(2);
    assert!(again.stderr.contains("experiments/t.yaml already exists"), "{}", again.stderr);
}

#[test]
fn ab_prints_its_specification() {
    let project = Project::new();
    let done = project.run(&["ab", "true", "false", "-w", "2", "--export-spec", "-"]).expect_code(0);
    assert!(done.stdout.starts_with("name: ab\ncommands:\n") && done.stdout.contains("count: 2"), "{}", done.stdout);
    project.write("kept/ab.yaml", &done.stdout);
    project.run(&["validate", "kept/ab.yaml"]).expect_code(0);
    assert!(!project.path("-").exists());
}

#[test]
fn ab_has_the_options_of_hyperfine() {
    let project = Project::new();
    let few = ["--runs", "2", "--set", "measure.stop.count=2", "--set", "compare.aa=off"];
    let ab = |arguments: &[&str]| project.run(&[&["ab"], &few[..], arguments].concat());
    let prepare = ["--prepare", "touch first", "-p", "touch second", "--cleanup", "touch cleaned"];
    ab(&[&prepare[..], &["--ignore-failure", "--warmup", "2", "--command-name", "no", "false", "true"]].concat())
        .expect_code(0);
    for made in ["first", "second", "cleaned"] {
        assert!(project.path(made).is_file(), "{made}");
    }
    // What failed is cleaned up too, and a cleanup that fails is reported.
    fs::remove_file(project.path("cleaned")).unwrap();
    ab(&["-c", "touch cleaned", "false", "true"]).expect_code(3);
    assert!(project.path("cleaned").is_file());
    let failed = ab(&["-c", "exit 4", "true", "true"]).expect_code(2).stderr;
    assert!(failed.contains("`--cleanup exit 4` failed"), "{failed}");
    let two = ab(&["-p", "a", "-p", "b", "true"]).expect_code(2).stderr;
    assert!(two.contains("2 times `--prepare` for 1 commands"), "{two}");
}

#[test]
fn ab_compares_and_writes_nothing_but_its_record() {
    let project = Project::new();
    let set = ["--set", "measure.stop={ mode: samples, count: 2 }", "--set", "compare.aa=off"];
    let arguments = [&["ab", "--runs", "5", "--name", "a", "true", "true"][..], &set].concat();
    let done = project.run(&arguments).expect_code(0);
    assert!(
        done.stdout.contains("against a") && done.stderr.contains("keep it    perfrun ab --export-spec"),
        "{}",
        done.stdout
    );
    assert!(!project.path("reports").exists());
    fs::remove_dir_all(project.path(".perfrun/records")).unwrap();
    let json = project.run(&[&arguments[..], &["--json"]].concat()).expect_code(0).stdout;
    let results: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["method"]["backend"], "commands");
    assert_eq!(results["cells"].as_array().map(Vec::len), Some(2));
    let judged: Vec<&str> =
        results["comparisons"].as_array().unwrap().iter().filter_map(|row| row["metric"].as_str()).collect();
    assert!(judged.contains(&"latency") && judged.contains(&"cpu_time"), "{judged:?}");
}

#[test]
fn a_peak_of_memory_is_right_or_not_there() {
    // The last line is all that `tail` reads.
    let holds = "head -c 33554432 /dev/zero | tail -n 1 > /dev/null";
    let project = Project::with_spec(&format!(
        "commands: ['true', {{ name: holds, run: '{holds}', shell: true, prepare: 'true' }}]\n{SHORT}"
    ));
    project.run(&["x.yaml"]).expect_code(0);
    let record = project.record("x");
    let is_measured = |run: &&record::StoredRun| run.outcome == Outcome::Completed && !run.data.measured.is_empty();
    for run in record.runs.iter().filter(is_measured) {
        let peak = run.data.metrics.get("peak_rss_bytes");
        match record.manifest.plan.cells.iter().position(|cell| cell.id == run.cell) {
            Some(0) => assert_eq!(peak, None, "`true` takes less than a fork of a worker"),
            _ => assert!(peak.is_some_and(|peak| (33e6..45e6).contains(peak)), "{peak:?}"),
        }
    }
    let page = project.page("reports/x");
    assert!(page.contains("Peak memory of true was not measured"), "{page}");
}

#[test]
fn ab_warns_of_what_only_a_shell_would_do() {
    let project = Project::new();
    let few = ["--runs", "5", "--set", "measure.stop={ mode: samples, count: 1 }", "--set", "compare.aa=off"];
    let said = |arguments: &[&str]| project.run(&[&["ab"], arguments, &few].concat()).expect_code(0).stderr;
    let plain = |text: String| text.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let piped = plain(said(&["echo hi | wc -c", "echo hi"]));
    assert!(piped.contains("`|` is passed to the program as it stands: no shell runs this command"), "{piped}");
    assert!(piped.contains("`--shell` with `perfrun ab`"), "{piped}");
    for meant in [&["--shell", "echo hi | wc -c", "echo hi"][..], &["echo 'a|b'", "echo hi"]] {
        assert!(!said(meant).contains("no shell runs this"), "{meant:?}");
    }
}

#[test]
fn ab_says_what_is_wrong_before_anything_runs() {
    let project = Project::new();
    let said = |arguments: &[&str]| project.run(arguments).expect_code(2).stderr;
    let texts = [
        said(&["ab"]),
        said(&["ab", "./none", "true"]),
        said(&["ab", "--name", "a", "--name", "b", "true"]),
        said(&["ab", "true 'open"]),
    ];
    check_snapshot("ab_mistakes", &texts.join("\n").replace(project.root().to_str().unwrap(), "HERE"));
}

#[test]
fn a_proof_says_in_a_line_whether_five_percent_can_be_gated() {
    let project = Project::new();
    let arguments =
        ["ab", "--prove", "true", "--runs", "5", "--set", "measure.stop={ mode: samples, count: 1 }", "--json"];
    let done = project.run(&arguments);
    // How quiet this machine is nobody knows.
    let line = done.stderr.lines().find(|line| line.starts_with("proof")).unwrap_or_default();
    match done.code {
        0 => assert!(line.contains("yes: 5 % found in 5 blocks"), "{line}"),
        _ => assert!(done.code == 4 && line.contains("cannot gate 5 %"), "{} {line}", done.code),
    }
    assert!(!done.stdout.is_empty() || done.code == 4);
}

/// Runs git in a folder that becomes a repository.
fn git(project: &Project, arguments: &[&str]) {
    let settings = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").args(settings).args(arguments).current_dir(project.root()).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn both_revisions_are_built_and_measured_in_worktrees_of_their_own() {
    let project = Project::new();
    // What is built says of which revision it is, and runs only there.
    let tool = "#!/bin/sh\n[ -f built-VERSION ] && [ -d .git ] || [ -f .git ]\n";
    let spec = "commands: [{ name: tool, run: ./tool.sh }]\ncwd: ..\nsetup: touch built-$(cat version)\nruns: 5\n\
                measure: { stop: { mode: samples, count: 1 } }\ngate: [{ metric: latency, worse_by: 10000% }]\n";
    git(&project, &["init", "-q"]);
    project.write("experiments/x.yaml", spec);
    for version in ["1", "2"] {
        project.write("version", version);
        project.write("tool.sh", &tool.replace("VERSION", version));
        fs::set_permissions(project.path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        git(&project, &["add", "experiments", "version", "tool.sh"]);
        git(&project, &["commit", "-q", "-m", version]);
    }
    let done = project.run(&["diff", "HEAD~1", "HEAD", "--remeasure", "--gate", "--json"]).expect_code(0);
    assert_eq!(done.stderr.matches("setup      touch built-").count(), 2, "{}", done.stderr);
    let diff: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let text = diff.to_string();
    let reason = &diff["experiments"][0]["rows"][0]["reason"]["kind"];
    assert!(reason != "unchanged" && diff["experiments"][0]["gate"]["judged"] == 1, "{text}");
    let record = project.record("x");
    let main = record.runs.iter().filter(|run| run.outcome == Outcome::Completed && !run.data.measured.is_empty());
    assert!(main.count() >= 10, "five runs of each side");
    assert!(!project.path("built-2").exists(), "nothing is built where the user works");
    let listed = Command::new("git").args(["worktree", "list"]).current_dir(project.root()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 1, "and no worktree is left");
}

/// A time to wait that cannot be read is refused where one is waited for.
#[test]
fn what_is_complete_is_reported_without_waiting_for_a_quiet_machine() {
    let (project, _) = measured("commands: ['true']");
    let started = |arguments: &[&str]| {
        let mut command = project.command(arguments);
        Done::from(command.env("PERFRUN_WAIT", "never").output().unwrap())
    };
    started(&["x.yaml"]).expect_code(2);
    let done = started(&["x.yaml", "--once"]).expect_code(0);
    assert!(done.stderr.contains("has measured this already"), "{}", done.stderr);
}

#[test]
fn a_record_without_runs_says_why_and_names_one_that_has_some() {
    let (project, _) = measured("commands: ['true']");
    let older = project.record_folder("x");
    project.write("x.yaml", &format!("commands: ['true']\nsetup: exit 3\n{SHORT}"));
    project.run(&["x.yaml"]).expect_code(2);
    let said = project.run(&["report", "latest"]).expect_code(0).stderr;
    assert!(said.contains("has no runs: `setup: exit 3` failed or was stopped"), "{said}");
    let older = older.file_name().unwrap().to_string_lossy().into_owned();
    assert!(said.contains(&format!("the newest with any: `perfrun report .perfrun/records/x/{older}`")), "{said}");
}
