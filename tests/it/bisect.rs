//! `perfrun bisect` from YAML to the sentence: where a regression is planted, where there is none, and what goes wrong.

use crate::support::{Done, Project};

/// A script with runtimes of its own, whose first versions are as fast as each other.
fn a_project(runtimes: &str) -> Project {
    Project::with_spec(&format!(
        "backend: {{ mock: {{ median: 10ms, noise: 0.5%, run_sd: 0.2%, runtimes: {{ {runtimes} }} }} }}\n\
         models: [net]\nvariants: [{{ name: fp32, mock: {{ operators: {{ Conv: 60%, Gemm: 30% }} }} }}]\nruns: 8\n"
    ))
}

fn bisect(project: &Project, more: &[&str]) -> Done {
    project.run(&[&["bisect", "x.yaml", "--from", "1.27.0", "--to", "1.31.1"], more].concat())
}

/// `1.29.0 1.30.0`: the versions that were tried, in order.
fn tried(done: &Done) -> String {
    let steps = done.stderr.lines().filter(|line| line.starts_with("1.3") || line.starts_with("1.2"));
    steps.filter_map(|line| line.split_whitespace().next()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_planted_regression_is_found_at_its_version_with_its_operator() {
    const VERSIONS: [&str; 6] = ["1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.0", "1.31.1"];
    for first_bad in 1..VERSIONS.len() {
        let slow = "{ scale: 1.1, operators: { Conv: 54.5%, Gemm: 36.4% } }";
        let runtimes: Vec<String> = VERSIONS[first_bad..].iter().map(|version| format!("{version}: {slow}")).collect();
        let done = bisect(&a_project(&runtimes.join(", ")), &[]).expect_code(0);
        let (good, bad) = (VERSIONS[first_bad - 1], VERSIONS[first_bad]);
        for said in [
            format!("result     slower from {bad} on: net/default/fp32/cpu, 0.9"),
            format!(" slower, against {good}\n"),
            "operator   Gemm +".to_owned(),
            "node       gemm_0 (Gemm) +".to_owned(),
            "written    nothing: this backend has no model file".to_owned(),
        ] {
            assert!(done.stdout.contains(&said), "{said}\n{}\n{}", done.stdout, done.stderr);
        }
        assert!(tried(&done).split(' ').count() <= 3, "{}", done.stderr);
    }
}

#[test]
fn nothing_is_named_where_nothing_changed() {
    const PAIRS: usize = 50;
    let project = a_project("");
    let seeds: Vec<String> = (0..PAIRS).map(|seed| format!("s{seed}")).collect();
    // A cell each: what is drawn for it is its own.
    project.write("x.yaml", &project.read("x.yaml").replace("[net]", &format!("[{}]", seeds.join(", "))));
    let done = bisect(&project, &[]).expect_code(0);
    let said = format!("result     nothing slower was found from 1.27.0 to 1.31.1: {PAIRS} equivalent\n");
    assert_eq!((done.stdout.as_str(), tried(&done).as_str()), (said.as_str(), ""));
}

#[test]
fn the_slowest_cell_is_followed_and_others_are_told() {
    let project = a_project("1.31.1: { scale: 1.1 }");
    project.write("x.yaml", &project.read("x.yaml").replace("[net]", "[net, other]"));
    let done = bisect(&project, &[]).expect_code(0);
    assert!(done.stdout.contains("others     1 cell slower too, and not followed: "), "{}", done.stdout);
    let done = bisect(&project, &["--only", "model=other"]).expect_code(0);
    assert!(done.stdout.contains("slower from 1.31.1 on: other/default/fp32/cpu"), "{}", done.stdout);
    assert!(!done.stdout.contains("others"), "{}", done.stdout);
}

#[test]
fn what_stays_open_is_measured_again_and_then_the_estimate_counts() {
    // 2 % is the margin, so that no number of runs decides.
    let done = bisect(
        &a_project("1.29.0: { scale: 1.02 }, 1.30.0: { scale: 1.1 }, 1.31.0: { scale: 1.1 }, 1.31.1: { scale: 1.1 }"),
        &[],
    )
    .expect_code(0);
    assert!(done.stderr.contains("undecided, against 1.27.0; once more, with up to 16 runs"), "{}", done.stderr);
    assert!(done.stderr.contains("counts as no slower, by the estimate"), "{}", done.stderr);
    assert!(done.stdout.contains("slower from 1.30.0 on: "), "{}", done.stdout);
}

#[test]
fn a_second_step_is_told() {
    let done = bisect(
        &a_project("1.29.0: { scale: 1.1 }, 1.30.0: { scale: 1.1 }, 1.31.0: { scale: 1.3 }, 1.31.1: { scale: 1.3 }"),
        &[],
    );
    assert!(done.stdout.contains("slower from 1.29.0 on: "), "{}", done.stdout);
    let more = "more       it became slower again by 1.31.1, 0.7";
    assert!(done.stdout.contains(more) && done.stdout.contains("repeat with --from 1.29.0"), "{}", done.stdout);
    let rest = bisect(&a_project("1.31.1: { scale: 1.3 }"), &[]);
    assert!(!rest.stdout.contains("more  "), "{}", rest.stdout);
}

#[test]
fn a_version_that_fails_is_passed_over_with_its_reason() {
    let broken = "{ fail: { kind: error, at: load } }";
    let project = a_project(&format!(
        "1.29.0: {broken}, 1.30.0: {{ scale: 1.1 }}, 1.31.0: {{ scale: 1.1 }}, 1.31.1: {{ scale: 1.1 }}"
    ));
    let done = bisect(&project, &[]).expect_code(0);
    assert!(done.stderr.contains("passed over: scripted failure while it should load"), "{}", done.stderr);
    assert!(done.stdout.contains("slower from 1.30.0 on: "), "{}", done.stdout);
    let ends = project.run(&["bisect", "x.yaml", "--from", "1.28.0", "--to", "1.29.0"]).expect_code(3);
    assert!(ends.stdout.contains("nothing could be judged from 1.28.0 to 1.29.0: scripted failure"), "{}", ends.stdout);
}

#[test]
fn what_cannot_be_bisected_is_refused() {
    let project = a_project("");
    for (arguments, says) in [
        (["--from", "1.30", "--to", "1.31.1"], "`1.30` is no version of ONNX Runtime"),
        (["--from", "1.31.1", "--to", "1.31.1"], "are the same"),
        (["--from", "1.31.1", "--to", "nightly"], "`nightly` is no version of ONNX Runtime"),
    ] {
        let refused = project.run(&[&["bisect", "x.yaml"][..], &arguments].concat()).expect_code(2);
        assert!(refused.stderr.contains(says), "{says}: {}", refused.stderr);
    }
    let refused = bisect(&project, &["--output", "x.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("x.yaml is not a folder"), "{}", refused.stderr);
}

#[test]
fn the_report_of_a_profile_shows_the_nodes_that_differ() {
    let project = a_project("1.31.1: { scale: 1.1, operators: { FusedConv: 60%, Gemm: 30%, Cast: 5% } }");
    project.run(&["x.yaml", "--profile", "--set", "runtimes=[1.27.0, 1.31.1]", "--output", "out"]).expect_code(0);
    let page = project.page("out");
    for row in [
        "| fusedconv_0 (was conv_0) | FusedConv | +",
        "| gemm_0 | Gemm | +",
        "| without a partner: 0 of the baseline, 1 of the cell | | +",
    ] {
        assert!(page.contains(row), "{row}\n{page}");
    }
}
