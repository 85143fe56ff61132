//! What a diff may show, and what it prints with a number.

use serde_json::{Value, json};

use super::{Repository, SPEC, latency};

/// Sets the runs of every cell that is wanted, with the values that stand for them.
fn set_runs(results: &mut Value, metric: &str, of: impl Fn(&Value, usize) -> Option<f64>) {
    for cell in results["cells"].as_array_mut().unwrap() {
        let known = cell.clone();
        for (index, run) in cell["runs"][metric].as_array_mut().unwrap().iter_mut().enumerate() {
            if let Some(value) = of(&known, index) {
                *run = json!(value);
            }
        }
    }
}

/// Another definition, so that the bytes of the cells are not the same on both sides.
fn changed(results: &mut Value) {
    for cell in results["cells"].as_array_mut().unwrap() {
        cell["definition"] = json!("another");
    }
}

#[test]
fn a_stale_side_shows_no_number_of_other_files() {
    let repository = Repository::new(SPEC);
    // A commit that changes what is measured, and forgets to measure.
    let text = repository.0.read("experiments/x.yaml");
    repository.0.write("experiments/x.yaml", &text.replace("scale: 0.5", "scale: 0.9"));
    repository.commit("forgotten");
    for arguments in [&["HEAD~1", "HEAD"][..], &["HEAD~1", "HEAD", "--allow", "all"], &["HEAD~1", "HEAD", "--gate"]] {
        let rows = repository.rows(arguments);
        assert!(!rows.is_empty() && rows.iter().all(|row| row["candidate"].is_null()), "{rows:?}");
        assert!(rows.iter().all(|row| row["baseline"].is_object()), "{rows:?}");
        assert_eq!(latency(&rows, "one", "int8")["reason"]["kind"], "stale");
    }
    let page = repository.diff(&["HEAD~1", "HEAD", "--format", "md"]).expect_code(0).stdout;
    assert!(page.contains("is out of date: experiments/x.yaml changed since it was measured"), "{page}");
    let row = page.lines().find(|line| line.starts_with("| one/int8 |")).unwrap_or_else(|| panic!("{page}"));
    assert_eq!(row.matches(" ms").count(), 1, "the older side alone: {row}");
    // The other way round it is the older side.
    let rows = repository.rows(&["HEAD", "HEAD~1"]);
    assert!(rows.iter().all(|row| row["baseline"].is_null() && row["candidate"].is_object()), "{rows:?}");
    // Nor does it claim a speed-up.
    repository.edit(|results| results["provenance"]["frame"]["cpu"] = json!("another"));
    repository.commit("another machine");
    let page = repository.diff(&["HEAD~2", "HEAD", "--format", "md"]).expect_code(0).stdout;
    assert!(!page.contains("one/int8 against one/fp32"), "{page}");
}

#[test]
fn what_is_slower_and_perhaps_by_less_is_undecided() {
    // One cell of ten is worse by a little more than the gate allows, which chance does to one of ten.
    let models: Vec<String> = (0..10).map(|index| format!("m{index}")).collect();
    let spec = format!(
        "backend: {{ mock: {{ run_sd: 0.5%, noise: 2% }} }}\nmodels: [{}]\nruns: 10\ncompare: {{ aa: off }}\n\
         gate: [{{ metric: latency, worse_by: 3% }}]\nmeasure: {{ stop: {{ mode: samples, count: 100 }} }}\n",
        models.join(", ")
    );
    let repository = Repository::new(&spec);
    let grade = |results: &mut Value| results["detectable_effect"]["grade"] = json!("A");
    repository.edit(|results| {
        grade(results);
        set_runs(results, "latency_ns", |_, index| Some(5e6 + 1e4 * (index as f64 - 4.5)));
    });
    repository.commit("level");
    let mut said = Vec::new();
    // By how much depends on what sessions are taken to do, so several are tried.
    for percent in 4..30 {
        repository.edit(|results| {
            changed(results);
            set_runs(results, "latency_ns", |cell, index| {
                let slower = if cell["model"] == "m3" { 1.0 + f64::from(percent) / 100.0 } else { 1.0 };
                Some((5e6 + 1e4 * (index as f64 - 4.5)) * slower)
            });
        });
        said.push(repository.diff(&["--gate", "--format", "md"]).stdout);
    }
    let open = said.iter().find(|page| page.contains("slower, gate 3 % undecided"));
    assert!(open.is_some_and(|page| page.contains("gate undecided.")), "{}", said.join("\n"));
    assert!(said.last().is_some_and(|page| page.contains("slower, gate 3 % failed")), "{}", said.join("\n"));
}

#[test]
fn a_machine_that_changed_is_noted_with_a_gate_too() {
    let gate = "gate: [{ metric: latency, worse_by: 5% }, { metric: peak_rss, worse_by: 5% }, { metric: load, worse_by: 50% }]\n";
    let repository = Repository::new(&format!("{SPEC}{gate}"));
    repository.edit(|results| {
        for cell in results["cells"].as_array_mut().unwrap() {
            let runs = cell["runs"]["latency_ns"].as_array_mut().unwrap();
            runs.iter_mut().for_each(|run| *run = json!(run.as_f64().unwrap() * 1.6));
        }
    });
    for arguments in [&[][..], &["--gate"]] {
        let text = repository.diff(arguments).expect_code(0).stdout;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("between the sides: conditions changed"), "{arguments:?}: {text}");
    }
}

#[test]
fn load_is_not_judged_by_one_of_its_modes() {
    let repository = Repository::new(SPEC);
    let load = |repository: &Repository, arguments: &[&str]| {
        let rows = repository.rows(arguments);
        let row = rows.iter().find(|row| row["metric"] == "load" && row["variant"] == "fp32").unwrap().clone();
        (row["verdict"].clone(), row["reason"]["kind"].clone())
    };
    let measured = |repository: &Repository, modes: [f64; 2]| {
        repository.edit(|results| {
            changed(results);
            set_runs(results, "load_ns", |_, index| Some(modes[usize::from(index % 3 == 0)] + 1e4 * index as f64));
        });
    };
    let undecided = (json!("undecided"), json!("two_modes"));
    // The older side met one mode, the newer one the other; then a side met both.
    for modes in [[80e6, 80e6], [20e6, 80e6]] {
        measured(&repository, modes);
        assert_eq!(load(&repository, &[]), undecided, "{modes:?}");
        let page = repository.diff(&["--all", "--metric", "load"]).expect_code(0).stdout;
        assert!(page.contains("its runs have two modes"), "{page}");
    }
    // A gate does not fall by it either.
    let gate = "gate: [{ metric: load, worse_by: 5% }]\n";
    repository.0.write("experiments/x.yaml", &(SPEC.to_owned() + gate));
    repository.diff(&["--gate"]).expect_code(0);
    measured(&repository, [20e6, 20e6]);
    assert_ne!(load(&repository, &[]), undecided);
}

#[test]
fn cells_without_memory_are_test_cases() {
    let spec = "backend: { mock: { item: 1ms, fits: 2 } }\nmodels: [m]\nvariants: [v]\nruns: 5\ncompare: { aa: off }\n\
                inputs: { batch: [1, 4, 8] }\n";
    let repository = Repository(crate::support::Project::new());
    repository.0.write("experiments/x.yaml", spec);
    repository.git(&["init", "-q", "-b", "main"]);
    repository.0.run(&["experiments/x.yaml", "--format", "json,junit"]).expect_code(3);
    repository.commit("first");
    let junit = repository.0.read("reports/x/results.junit.xml");
    let case = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("{name} in {text}"));
        line.to_owned()
    };
    assert!(case(&junit, "m/b1/v/cpu").ends_with("/>"), "{junit}");
    assert!(case(&junit, "m/b4/v/cpu").contains("<failure message=\"out_of_memory"), "{junit}");
    assert!(case(&junit, "m/b8/v/cpu").contains("<skipped message="), "{junit}");
    // On both sides they have no numbers, and are cases all the same; no gate falls by them.
    repository.0.run(&["experiments/x.yaml"]).expect_code(3);
    for arguments in [&["--format", "junit"][..], &["--format", "junit", "--gate"]] {
        let text = repository.diff(arguments).expect_code(0).stdout;
        assert!(case(&text, "\"m/b4\"").contains("failed here (out of memory)"), "{text}");
        assert!(case(&text, "\"m/b8\"").contains("<skipped message="), "{text}");
    }
}

#[test]
fn conflict_markers_are_said_with_what_resolves_them() {
    let repository = Repository::new(SPEC);
    let text = repository.0.read("reports/x/results.json");
    let conflict = format!("<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> topic\n");
    repository.0.write("reports/x/results.json", &conflict);
    for arguments in [&["diff"][..], &["report", "reports/x", "--format", "csv"]] {
        let done = repository.0.run(arguments).expect_code(2);
        let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("has conflict markers of git") && said.contains("git checkout --theirs"), "{said}");
        assert!(!said.contains("expected value"), "{said}");
    }
    repository.0.write("experiments/x.yaml", &format!("<<<<<<< HEAD\n{SPEC}=======\n{SPEC}>>>>>>> topic\n"));
    let done = repository.0.run(&["validate", "experiments/x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("a conflict marker of git"), "{}", done.stderr);
}
