//! What a terminal of 80 columns and 24 lines shows at the end of a run, on a quiet machine and on a busy one.
//!
//! `tests/screens.py` makes images of the same runs and of their report.md.

use std::process::Command;

use anstream::adapter::strip_str;

use crate::support::{Project, check_snapshot};

/// The specification of the screens, and what the machine is like.
const SPEC: &str = include_str!("../fixtures/specs/screens.yaml");
const BUSY: &str = "disturbed: 30%, disturbance: 60%, run_sd: 6%";

/// What is shown on standard output by a terminal of 80 columns, without colours.
fn screen(quiet: bool) -> String {
    let project = Project::new();
    let spec = if quiet { SPEC.to_owned() } else { SPEC.replace("run_sd: 0.4%", BUSY) };
    project.write("experiments/precisions.yaml", &spec);
    shown(&project, "experiments/precisions.yaml")
}

/// What perfrun shows there with these arguments.
fn shown(project: &Project, arguments: &str) -> String {
    let perfrun = env!("CARGO_BIN_EXE_perfrun");
    let typed = format!("stty cols 80 rows 24; {perfrun} {arguments} 2>/dev/null");
    let output = Command::new("script")
        .args(["-qec", &typed, "/dev/null"])
        .current_dir(project.root())
        .env("NO_COLOR", "1")
        .env("PERFRUN_WAIT", "0s")
        .output()
        .expect("script of util-linux");
    let shown = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    assert!(output.status.success(), "{shown}");
    shown
}

fn check(name: &str, screen: &str) {
    check_size(screen);
    check_snapshot(&format!("screen_{name}"), &portable(screen));
}

fn check_size(screen: &str) {
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    assert!(screen.lines().count() <= 24, "{} lines:\n{screen}", screen.lines().count());
}

/// How many cores a share of the processors is depends on the machine.
fn portable(screen: &str) -> String {
    const USED: &str = "other processes used ";
    let parts = screen.split_once(USED).and_then(|(before, after)| Some((before, after.split_once(" in ")?.1)));
    parts.map_or_else(|| screen.to_owned(), |(before, after)| format!("{before}{USED}CORES in {after}"))
}

#[test]
fn a_quiet_machine_fits_a_screen() {
    check("quiet", &screen(true));
}

#[test]
fn a_busy_machine_fits_a_screen() {
    check("busy", &screen(false));
}

#[test]
fn what_can_be_explained_fits_a_screen() {
    check_size(&shown(&Project::new(), "explain"));
}

/// The picture of README shows what this version says of the committed report: its text stands beside it.
#[test]
fn the_picture_of_the_terminal_is_of_the_committed_report() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let picture = std::fs::read_to_string(root.join("docs/screens/terminal.txt")).unwrap();
    let project = Project::new();
    let report = root.join("reports/quickstart").display().to_string();
    let typed =
        format!("stty cols 100 rows 60; {} report {report} --output out --format csv", env!("CARGO_BIN_EXE_perfrun"));
    let output = Command::new("script")
        .args(["-qec", &typed, "/dev/null"])
        .current_dir(project.root())
        .env("NO_COLOR", "1")
        .output()
        .expect("script of util-linux");
    let shown = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    // The table is the last thing that a run draws; where files went differs.
    let shown = shown.split("\nwrote ").next().unwrap().trim_start();
    assert!(shown.contains("\nanswer ") && picture.contains(shown), "{picture}\nis not\n{shown}");
}

/// Help, an error and a table with good news, on pipes.
#[test]
fn colour_is_forced_or_turned_off_and_changes_no_text() {
    let project = Project::with_spec(SPEC);
    project.run(&["x.yaml", "--runs", "8"]).expect_code(0);
    let record = project.record_folder("x").display().to_string();
    for arguments in [&["--help"][..], &["missing.yaml"], &["--nonsense"], &["report", &record, "--output", "out"]] {
        let said = |name: &str| {
            let output = project.command(arguments).env_remove("NO_COLOR").env(name, "1").output().unwrap();
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
        };
        let [plain, forced] = [said("NO_COLOR"), said("CLICOLOR_FORCE")];
        assert!(!plain.concat().contains('\u{1b}') && forced.concat().contains("\u{1b}["), "{forced:?}");
        assert_eq!(forced.map(|text| strip_str(&text).to_string()), plain);
    }
}
