//! Operator profiles from YAML to the report: parts that add up, a planted operator that is found, and what goes wrong.

use serde_json::Value;

use crate::need::need;
use crate::support::Project;

/// Two variants of a script, of 10 ms and of 6 ms.
const TWO: &str = "\
backend: { mock: { median: 10ms, noise: 0.5%, run_sd: 0.2% } }
models: [net]
variants:
  - { name: fp32, mock: { operators: { Conv: 80%, Relu: 15% } } }
  - { name: int8, mock: { scale: 0.6, operators: { QLinearConv: 75%, QuantizeLinear: 10%, Relu: 10% } } }
runs: 8
";

fn results(project: &Project, file: &str) -> Value {
    serde_json::from_str(&project.read(file)).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// The sum of a field of rows.
fn sum(rows: &Value, field: &str) -> f64 {
    rows.as_array().unwrap().iter().map(|row| number(&row[field]["value"])).sum()
}

#[track_caller]
fn assert_near(one: f64, other: f64) {
    assert!((one - other).abs() <= 1e-3 * other.abs(), "{one} is not {other}");
}

#[test]
fn the_parts_add_up_to_the_latency_and_to_the_difference() {
    let project = Project::with_spec(TWO);
    let done = project.run(&["x.yaml", "--profile"]).expect_code(0);
    let line = "profile    int8 against fp32, -4.0 ms: Conv -3.5, Relu -0.9, QuantizeLinear +0.6";
    assert!(done.stdout.contains(line), "{}", done.stdout);
    let first = project.read("reports/x/report.md");
    assert!(first.contains("1.66x faster than fp32, saves 3.") && first.contains(" ms in Conv"), "{first}");
    let results = results(&project, "reports/x/results.json");
    for cell in results["cells"].as_array().unwrap() {
        let profile = &cell["profile"];
        let all = sum(&profile["operators"], "time") + number(&profile["between"]["value"]);
        assert_near(all, number(&cell["metrics"]["latency_ns"]["value"]));
        assert!(number(&profile["slowdown"]["value"]) > 0.99, "{profile}");
        let memory = &profile["memory"];
        let parts = ["before_load", "loading", "running"].map(|part| number(&memory[part]));
        assert_eq!(parts.iter().sum::<f64>(), f64::from(32 << 20));
    }
    let explained = &results["explanations"][0];
    let difference = number(&explained["difference_ns"]);
    assert_near(sum(&explained["rows"], "difference") + number(&explained["between"]["value"]), difference);
    assert_eq!(explained["rows"][0]["operator"], "Conv, QLinearConv");
    assert!((0.9..=1.1).contains(&number(&explained["explained"])), "{explained}");
    let page = project.page("reports/x");
    for expected in [
        "Where does the time go?",
        "| Conv, QLinearConv | 1 | −3.49",
        "| runtime, outside nodes |",
        "fp32, longest nodes",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    for column in [
        "operator",
        "nodes",
        "share",
        "time",
        "difference",
        "of the difference",
        "output bytes",
        "node",
        "output",
        "part",
        "memory",
        "MACs",
        "GMAC/s",
    ] {
        project.run(&["explain", column]).expect_code(0);
    }
}

#[test]
fn nodes_too_short_for_the_profiler_have_shares_and_no_times() {
    let project = Project::with_spec(TWO);
    project.run(&["x.yaml", "--profile"]).expect_code(0);
    // As where the profiler makes an inference three times as long.
    let mut drowned = results(&project, "reports/x/results.json");
    for cell in drowned["cells"].as_array_mut().unwrap() {
        cell["profile"]["slowdown"]["value"] = 3.0.into();
    }
    project.write("drowned/results.json", &drowned.to_string());
    project.run(&["report", "drowned/results.json", "--output", "out"]).expect_code(0);
    let (before, after) = (project.page("reports/x"), project.page("out"));
    let table = |page: &str| {
        let lines = page.lines().skip_while(|line| !line.ends_with("fp32 by operator")).skip(1);
        lines.take_while(|line| line.starts_with('|')).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    assert!(table(&before).contains("time, ms"), "{before}");
    let shares = table(&after);
    assert!(shares.contains("share") && shares.contains("| Conv | 1 | 8") && !shares.contains("time, ms"), "{after}");
    assert!(!after.contains("int8 against fp32, by operator"), "{after}");
    assert!(!after.contains("Conv -3.5"), "{after}");
}

#[test]
fn a_planted_operator_is_named_first() {
    const PLANTED: usize = 20;
    let variants: String = (0..PLANTED)
        .map(|index| {
            let part = 1.0 + index as f64;
            let (scale, part) = (1.0 + part / 100.0, part / (100.0 + part) * 100.0);
            let rest = 100.0 - part;
            format!(
                "  - {{ name: v{index}, mock: {{ scale: {scale:.4}, operators: {{ Conv: {:.4}%, Gemm: {:.4}%, Planted{index}: {part:.4}% }} }} }}\n",
                rest * 0.6,
                rest * 0.3
            )
        })
        .collect();
    let project = Project::with_spec(&format!(
        "backend: {{ mock: {{ median: 10ms, noise: 0.5%, run_sd: 0.2% }} }}\nmodels: [net]\nvariants:\n  - {{ name: base, mock: {{ operators: {{ Conv: 60%, Gemm: 30% }} }} }}\n{variants}runs: 5\nmeasure: {{ profile: true }}\n"
    ));
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project, "reports/x/results.json");
    let explanations = results["explanations"].as_array().unwrap();
    let first: Vec<&str> = explanations.iter().filter_map(|found| found["rows"][0]["operator"].as_str()).collect();
    let planted: Vec<String> = (0..PLANTED).map(|index| format!("Planted{index}")).collect();
    // Of 1 % of the latency the noise of a run may be as much.
    let found = first.iter().zip(&planted).filter(|(first, planted)| *first == planted).count();
    assert!(found >= PLANTED - 1 && first.len() == PLANTED, "{first:?}");
}

#[test]
fn without_a_profile_a_record_is_as_it_was() {
    let project = Project::with_spec(TWO);
    project.run(&["x.yaml", "--output", "plain"]).expect_code(0);
    project.run(&["x.yaml", "--output", "profiled", "--profile"]).expect_code(0);
    let (plain, profiled) = (results(&project, "plain/results.json"), results(&project, "profiled/results.json"));
    assert!(!project.read("plain/results.json").contains("\"profile"), "nothing is said of what was not asked for");
    let same = |cells: &Value| -> Vec<Value> {
        let fields = |cell: &Value| ["id", "definition", "metrics", "runs"].map(|field| cell[field].clone());
        cells.as_array().unwrap().iter().map(|cell| fields(cell).to_vec().into()).collect()
    };
    assert_eq!(same(&plain["cells"]), same(&profiled["cells"]), "the profile is in no statistic");
}

#[test]
fn a_profile_that_fails_leaves_the_measurement() {
    for kind in ["error", "crash", "garbage"] {
        let runs: Vec<String> = (8..40).map(|run| run.to_string()).collect();
        let fail = format!("fail: {{ kind: {kind}, at: measure, runs: [{}] }}", runs.join(", "));
        let project = Project::with_spec(&TWO.replace("scale: 0.6,", &format!("scale: 0.6, {fail},")));
        let done = project.run(&["x.yaml", "--profile"]).expect_code(0);
        assert!(done.stdout.contains("int8: no profile: "), "{}", done.stdout);
        let results = results(&project, "reports/x/results.json");
        let cells = results["cells"].as_array().unwrap();
        assert_eq!(
            (cells[0]["profile"]["processes"].clone(), cells[1]["status"].clone()),
            (5.into(), "measured".into())
        );
        assert!(results["explanations"].is_null());
    }
}

#[test]
fn a_diff_names_the_operators() {
    let project = Project::with_spec(TWO);
    project.run(&["x.yaml", "--profile", "--output", "old"]).expect_code(0);
    project.write(
        "x.yaml",
        &TWO.replace("name: fp32, mock: { ", "name: fp32, mock: { scale: 1.3, ")
            .replace("Conv: 80%, Relu: 15%", "Conv: 60%, Relu: 38%"),
    );
    project.run(&["x.yaml", "--profile", "--output", "new"]).expect_code(0);
    let done = project.run(&["diff", "old", "new"]).expect_code(0);
    assert!(done.stdout.contains("fp32: Relu +3.44 ms"), "{}", done.stdout);
    let json: Value = serde_json::from_str(&project.run(&["diff", "old", "new", "--json"]).stdout).unwrap();
    assert!(json.to_string().contains("\"operator\":\"Relu\""), "{json}");
}

#[test]
fn goals_and_gates_may_name_the_time_of_an_operator() {
    let asked =
        "goals: [{ metric: operator.Conv.self, max: 7ms }]\ngate: [{ metric: operator.Conv.self, worse_by: 5% }]\n";
    let project = Project::with_spec(&format!("{TWO}{asked}"));
    let refused = project.run(&["x.yaml"]).expect_code(2);
    assert!(refused.stderr.contains("`operator.Conv.self` comes from a profile"), "{}", refused.stderr);
    let missed = project.run(&["x.yaml", "--profile", "--output", "old"]).expect_code(4);
    let expected = "MISSED: Conv time <= 7 ms: met by int8; missed by fp32";
    assert!(missed.stdout.contains(expected), "{}", missed.stdout);
    project.write("x.yaml", &format!("{TWO}{asked}").replace("Conv: 80%, Relu: 15%", "Conv: 90%, Relu: 5%"));
    project.run(&["x.yaml", "--profile", "--output", "new"]).expect_code(4);
    let fallen = project.run(&["diff", "old", "new", "--gate", "--metric", "operator.Conv.self"]).expect_code(4);
    assert!(fallen.stdout.contains("Conv time"), "{}", fallen.stdout);
    project.write("x.yaml", &format!("{TWO}goals: [{{ metric: operator.Softmax.self, max: 7ms }}]\n"));
    let unknown = project.run(&["x.yaml", "--profile", "--output", "unknown"]).expect_code(0);
    assert!(unknown.stdout.contains("(no profile has a time of Softmax)"), "{}", unknown.stdout);
}

#[test]
fn a_profile_is_kept_where_a_record_is_moved_or_merged() {
    let project = Project::with_spec(&TWO.replace("models: [net]", "models: [net, other]"));
    for shard in ["1/2", "2/2"] {
        project.run(&["x.yaml", "--profile", "--shard", shard]).expect_code(0);
    }
    let records: Vec<String> = std::fs::read_dir(project.path(".perfrun/records/x"))
        .unwrap()
        .map(|entry| entry.unwrap().path().to_string_lossy().into_owned())
        .collect();
    for (index, record) in records.iter().enumerate() {
        assert!(std::path::Path::new(record).join("profile.parquet").is_file());
        project.run(&["export", record, &format!("{index}.tar.zst")]).expect_code(0);
    }
    project.run(&["merge", &records[0], &records[1], "--output", "merged"]).expect_code(0);
    let results = results(&project, "merged/results.json");
    assert_eq!(results["explanations"].as_array().map(Vec::len), Some(2), "{}", results["explanations"]);
}

#[test]
fn a_size_of_a_profile_is_checked() {
    let with = |profile: &str| {
        let project = Project::with_spec(&format!("{TWO}measure: {{ profile: {profile} }}\n"));
        let done = project.run(&["validate", "x.yaml"]);
        (done.code, done.stderr)
    };
    for good in ["true", "false", "{ processes: 3 }", "{ inferences: 50 }"] {
        assert_eq!(with(good).0, 0, "{good}");
    }
    for (bad, says) in [("{ processes: 0 }", "processes"), ("{ process: 3 }", "process"), ("yes please", "profile")] {
        let (code, said) = with(bad);
        assert!(code == 2 && said.contains(says), "{bad}: {said}");
    }
}

/// A scripted GPU whose kernels are recorded: nodes have the device's times, and its waits are a row.
#[test]
fn kernels_waits_and_the_rest_add_up_on_a_gpu() {
    let variants = "variants:\n  - { name: fp32, mock: { on_device: 90%, operators: { Conv: 60%, Relu: 20% } } }\n  - { name: fp16, mock: { scale: 0.5, on_device: 90%, operators: { Conv: 30%, Relu: 20% } } }\n";
    let project = Project::with_spec(&format!(
        "backend: {{ mock: {{ median: 10ms, noise: 0.5%, run_sd: 0.2% }} }}\nmodels: [net]\ndevices: [cuda]\n{variants}runs: 5\nmeasure: {{ profile: true }}\n"
    ));
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stdout.contains("device waits for the host"), "{}", done.stdout);
    let results = results(&project, "reports/x/results.json");
    for cell in results["cells"].as_array().unwrap() {
        let profile = &cell["profile"];
        let latency = number(&cell["metrics"]["latency_ns"]["value"]);
        let waits = number(&profile["waits"]["value"]);
        let parts = sum(&profile["operators"], "time") + waits + number(&profile["between"]["value"]);
        assert_near(parts, latency);
        let device = number(&cell["metrics"]["device_time_ns"]["value"]);
        assert_near(sum(&profile["operators"], "time") + waits, device);
        assert_eq!(profile["kernels"][0]["name"], "scripted");
        assert_eq!(profile["waits_after"][0]["node"], "conv_0");
    }
    let rows = results["explanations"][0]["rows"].to_string();
    assert!(rows.contains("device waits for the host"), "{rows}");
    let page = project.page("reports/x");
    for text in [
        "device waits for the host",
        "longest kernels",
        "Of the device's idle time 75 % follows conv_0, 25 % follows relu_0.",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

/// The same of a real model, with the profiler's own trace.
#[test]
fn a_real_model_is_profiled() {
    let library = need!(onnxruntime);
    let project = Project::with_spec(
        "models: [\"zoo:bert_tiny\"]\ninputs: { batch: 1, sequence: 16 }\nvariants: [fp32, { name: plain, graph_optimization: disabled }]\nruns: 5\nmeasure: { profile: { processes: 2 }, warmup: { max_time: 200ms }, stop: { mode: samples, count: 20 } }\n",
    );
    let run = project.command(&["x.yaml"]).env("ORT_DYLIB_PATH", library).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let results = results(&project, "reports/x/results.json");
    for cell in results["cells"].as_array().unwrap() {
        let profile = &cell["profile"];
        let all = sum(&profile["operators"], "time") + number(&profile["between"]["value"]);
        assert_near(all, number(&cell["metrics"]["latency_ns"]["value"]));
        assert!(profile["operators"].to_string().contains("MatMul"), "{profile}");
        let trace = project.run(&["report", "x", "--trace", cell["id"].as_str().unwrap()]).expect_code(0);
        let events: Value = serde_json::from_str(&trace.stdout).unwrap();
        let runs = events.as_array().unwrap().iter().filter(|event| event["name"] == "model_run").count();
        assert!(runs as u64 >= profile["inferences"].as_u64().unwrap(), "{runs}");
    }
    let none = project.run(&["report", "x", "--trace", "nothing"]).expect_code(2);
    assert!(none.stderr.contains("no cell `nothing` has a trace"), "{}", none.stderr);
}
