//! Load from YAML to answers: closed loops, rates and the largest one, on queues whose answers are known.

use serde_json::Value;

use crate::need::need;
use crate::support::{Done, Project};

fn spec(rest: &str) -> Project {
    Project::with_spec(&format!("models: [m]\ncompare: {{ aa: off }}\n{rest}"))
}

fn results(project: &Project) -> Value {
    serde_json::from_str(&project.read("reports/x/results.json")).unwrap()
}

fn said(done: &Done) -> String {
    done.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn interval(cell: &Value, metric: &str) -> [f64; 3] {
    ["low", "value", "high"].map(|key| cell["metrics"][metric][key].as_f64().unwrap_or(f64::NAN))
}

/// M/D/1 with services of 5 ms keeps p99 <= 20 ms up to 92.5 queries a second (a simulation of four million), and M/M/1
/// p99 <= 100 ms up to 1 / 5 ms - ln(100) / 100 ms.
#[test]
fn the_largest_rate_of_known_queues_is_found() {
    for (service, bound, words, rate) in
        [("noise: 0%", "20ms", "20 ms", 92.5), ("exponential: true", "100ms", "100 ms", 200.0 - 100_f64.ln() / 0.1)]
    {
        let project = spec(&format!(
            "runs: 10\nmeasure: {{ load: {{ rate: largest, bound: {{ p99: {bound} }} }} }}\n\
             backend: {{ mock: {{ median: 5ms, run_sd: 0%, {service} }} }}\n"
        ));
        let done = project.run(&["x.yaml"]).expect_code(0);
        assert!(said(&done).contains(&format!("with p99 <= {words}")), "{}", said(&done));
        let found = results(&project);
        let cell = &found["cells"][0];
        let [low, value, high] = interval(cell, "largest_rate_per_s");
        assert!(low <= rate && rate <= high, "{service}: {rate} in [{low}, {high}]");
        assert!((value / rate - 1.0).abs() < 0.06, "{service}: {value}");
        assert!((cell["load"]["predicted_per_s"].as_f64().unwrap() / rate - 1.0).abs() < 0.1);
        assert!(!cell["load"]["tried"].as_array().unwrap().is_empty());
        // What was measured near that rate is near the share that is allowed.
        assert!((0.004..0.02).contains(&interval(cell, "late_ratio")[1]));
    }
}

#[test]
fn a_service_that_is_slower_takes_less_and_a_copy_takes_as_much() {
    let project = spec(
        "variants: [one, same, { name: slower, mock: { scale: 1.05 } }]\nruns: 12\n\
         measure: { load: { rate: largest, bound: { p99: 20ms } } }\n\
         backend: { mock: { median: 5ms, noise: 1%, run_sd: 0.2% } }\n\
         goals: [{ metric: largest_rate, min: 60, where: { variant: one } }]\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(said(&done).contains("largest rate >= 60/s"), "{}", said(&done));
    let found = results(&project);
    let rows = found["comparisons"].as_array().unwrap();
    let verdict = |cell: usize| {
        let row = rows.iter().find(|row| row["cell"] == found["cells"][cell]["id"] && row["metric"] == "largest_rate");
        row.map(|row| row["verdict"].as_str().unwrap().to_owned())
    };
    assert!(verdict(1).is_some_and(|verdict| verdict != "better" && verdict != "worse"), "{rows:?}");
    assert_eq!(verdict(2).as_deref(), Some("worse"), "{rows:?}");
    // Latencies at rates of their own are of other work.
    assert!(rows.iter().all(|row| !row["metric"].as_str().unwrap().starts_with("latency")), "{rows:?}");
}

#[test]
fn callers_share_sessions_and_littles_law_holds() {
    let project = spec(
        "variants: [{ name: one, sessions: 1 }, { name: two, sessions: 2 }, each]\nruns: 5\n\
         measure: { load: { clients: [1, 4] } }\nbackend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    let found = results(&project);
    let rates = [200.0, 200.0, 200.0, 200.0, 400.0, 800.0];
    for (cell, rate) in found["cells"].as_array().unwrap().iter().zip(rates) {
        let throughput = interval(cell, "throughput_per_s")[1];
        assert!((throughput / rate - 1.0).abs() < 0.01, "{} {throughput}", cell["input"]);
        let little = cell["environment"]["little_ratio"][0].as_f64().unwrap();
        assert!((little - 1.0).abs() < 0.01, "{little}");
    }
    assert!(project.read("reports/x/report.html").contains("Mean latency against throughput"));
}

#[test]
fn a_rate_says_what_is_late_and_one_that_is_too_high_ends_early() {
    let project = spec(
        "runs: 5\nmeasure: { load: { rate: [50, 400], bound: { p99: 20ms } } }\n\
         backend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    let done = project.run(&["x.yaml"]).expect_code(0);
    let found = results(&project);
    let late = |cell: usize| interval(&found["cells"][cell], "late_ratio")[1];
    assert!(late(0) < 0.005 && late(1) > 0.5, "{} {}", late(0), late(1));
    assert_eq!(found["cells"][1]["codes"]["W_SATURATED"]["runs"], 5, "{}", said(&done));
}

/// A ratio to 0 does not show that more queries are late; the difference does.
#[test]
fn a_gate_on_late_queries_holds_at_zero_and_falls_above() {
    let measured = |median: &str| {
        let project = spec(&format!(
            "runs: 6\ngate: [{{ metric: late, worse_by: 1% }}]\n\
             measure: {{ load: {{ rate: 50, bound: {{ p99: 40ms }} }} }}\n\
             backend: {{ mock: {{ median: {median}, run_sd: 0%, noise: 0% }} }}\n"
        ));
        project.run(&["x.yaml"]).expect_code(0);
        project
    };
    let before = measured("5ms");
    for (median, verdict, code) in [("4ms", "equivalent", 0), ("19ms", "worse", 4)] {
        let mut after = results(&measured(median));
        // As if the files of the cell had changed.
        after["cells"][0]["definition"] = "another".into();
        before.write("after.json", &after.to_string());
        let done = before.run(&["diff", "reports/x/results.json", "after.json", "--gate", "--json"]).expect_code(code);
        let found: Value = serde_json::from_str(&done.stdout).unwrap();
        let rows = found["experiments"][0]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["metric"] == "late").unwrap_or_else(|| panic!("{rows:?}"));
        assert_eq!(row["verdict"], verdict, "{row}");
    }
}

/// Promises on latency are about the levels that have one, and two names of one metric are one row.
#[test]
fn what_is_near_the_largest_rate_is_no_promise_at_it() {
    let project = spec(
        "runs: 5\nmeasure: { load: { rate: [50, largest], bound: { p99: 20ms } } }\n\
         goals: [{ metric: latency.p99, max: 15ms }]\ngate: [{ metric: latency, worse_by: 2% }, { metric: largest_rate, worse_by: 2% }]\n\
         backend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    let found = results(&project);
    let cells = found["goals"][0]["cells"].as_array().unwrap_or_else(|| panic!("{}", found["goals"]));
    assert_eq!(cells.len(), 1, "{cells:?}");
    assert_eq!(cells[0]["cell"], found["cells"][0]["id"]);
    project.write(
        "after.json",
        &project.read("reports/x/results.json").replacen("\"record\":", "\"record\": \"another\", \"was\":", 1),
    );
    let done = project.run(&["diff", "reports/x/results.json", "after.json", "--gate", "--json"]).expect_code(0);
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let of_largest = |row: &&Value| row["input"] == "largest" && row["metric"] == "largest_rate";
    let rows = found["experiments"][0]["rows"].as_array().unwrap();
    assert_eq!(rows.iter().filter(of_largest).count(), 1, "{rows:?}");
    assert!(rows.iter().all(|row| row["input"] != "largest" || row["metric"] != "latency"), "{rows:?}");
}

/// Two queries at once every 100 ms: the second waits for the first.
#[test]
fn queries_come_as_a_file_says() {
    let project = spec(
        "runs: 5\nmeasure: { load: { arrivals: t.csv, bound: { p90: 8ms } } }\n\
         backend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    let pairs = (0..50).map(|pair| format!("{0}.{1},a\n{0}.{1},b\n", 1000 + pair / 10, pair % 10)).collect::<String>();
    project.write("t.csv", &("time,user\n".to_owned() + &pairs));
    project.run(&["x.yaml"]).expect_code(0);
    let found = results(&project);
    assert_eq!(found["cells"][0]["load"]["queries"]["rate"]["arrivals"], "trace");
    assert!((interval(&found["cells"][0], "late_ratio")[1] - 0.5).abs() < 0.02, "{}", found["cells"][0]["metrics"]);
    // At five times the rate the pairs are 20 ms apart, and the same are late.
    project.write("y.yaml", &project.read("x.yaml").replace("arrivals:", "rate: 100, arrivals:"));
    project.run(&["y.yaml"]).expect_code(0);
    let faster: Value = serde_json::from_str(&project.read("reports/y/results.json")).unwrap();
    assert_eq!(faster["cells"][0]["input"], "100rps");
    assert!((interval(&faster["cells"][0], "late_ratio")[1] - 0.5).abs() < 0.05, "{}", faster["cells"][0]["metrics"]);
    // The file belongs to what is measured.
    assert!(found["provenance"]["subject"]["input_files"].to_string().contains("t.csv"), "{}", found["provenance"]);
    let definition = |found: &Value| found["cells"][0]["definition"].clone();
    project.write("t.csv", &pairs.replace("1000.", "999."));
    project.run(&["x.yaml"]).expect_code(0);
    assert_ne!(definition(&found), definition(&results(&project)));
    project.write("t.csv", "1\n2\n1.5\n");
    let done = project.run(&["validate", "x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("`t.csv`: line 3 is earlier than the one before"), "{}", done.stderr);
}

#[test]
fn mlperfs_scenarios_have_their_numbers() {
    for (load, metric, value) in [
        ("single_stream", "early_stopping_ns", 5e6),
        ("multi_stream", "early_stopping_ns", 40e6),
        ("offline", "throughput_per_s", 200.0),
    ] {
        let project = spec(&format!(
            "runs: 5\nmeasure: {{ load: {load}, stop: {{ mode: samples, count: 700 }} }}\n\
             backend: {{ mock: {{ median: 5ms, run_sd: 0%, noise: 0% }} }}\n"
        ));
        project.run(&["x.yaml"]).expect_code(0);
        let found = interval(&results(&project)["cells"][0], metric)[1];
        assert!((found / value - 1.0).abs() < 0.01, "{load}: {found}");
    }
}

#[test]
fn a_bound_below_the_service_time_is_answered_in_plain_words() {
    let project = spec(
        "runs: 5\nmeasure: { load: { rate: largest, bound: { p99: 4ms } } }\n\
         backend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    let done = project.run(&["x.yaml"]);
    let said = said(&done) + &done.stderr;
    assert!(said.contains("no rate kept p99 <= 4 ms in 3 trials: p99 without any wait was 5.000 ms"), "{said}");
}

#[test]
fn one_disturbed_trial_leaves_no_cell_out() {
    // Four runs of ten take up to ten times as long, so that a trial alone may miss any bound.
    let names: Vec<String> = (0..8).map(|number| format!("v{number}")).collect();
    let project = spec(&format!(
        "variants: [{}]\nruns: 5\nmeasure: {{ load: {{ rate: largest, bound: {{ p99: 20ms }} }} }}\n\
         backend: {{ mock: {{ median: 5ms, run_sd: 0%, noise: 0%, disturbed: 40%, disturbance: 900% }} }}\n",
        names.join(", ")
    ));
    project.run(&["x.yaml"]);
    let found = results(&project);
    let is_skipped = |cell: &&Value| cell["status"] == "skipped";
    assert_eq!(found["cells"].as_array().unwrap().iter().filter(is_skipped).count(), 0, "{}", found["cells"]);
}

#[test]
fn a_quick_look_predicts_from_service_times() {
    let project = spec("runs: 9\nbackend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n");
    let done = project.run(&["x.yaml", "--quick", "--rate", "largest", "--p99", "20ms"]).expect_code(0);
    assert!(said(&done).contains("(predicted)"), "{}", said(&done));
}

/// What a specification says of the runs that it asks for itself does not stand in the way of a load.
#[test]
fn a_rate_on_the_command_line_takes_a_specification_that_stops_by_precision() {
    let project = spec(
        "runs: 5\nmeasure: { warmup: { max_time: 500ms }, stop: { max_time: 500ms } }\n\
         backend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    let done = project.run(&["x.yaml", "--rate", "50", "--p99", "20ms"]).expect_code(0);
    let warned = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(warned.contains("with this load a run goes on for its queries"), "{warned}");
    assert!(said(&done).contains("p99 <= 20 ms is kept at 50/s"), "{}", said(&done));
    // The percentile of the bound stands in the table.
    assert!(said(&done).contains(" p99, ms ") && !said(&done).contains(" p95, ms "), "{}", said(&done));
}

#[test]
fn the_only_one_that_can_be_chosen_by_its_rate_is_not_called_fastest() {
    let project = spec(
        "variants: [a, { name: bad, mock: { fail: { kind: panic } } }]\nruns: 5\n\
         measure: { load: { rate: largest, bound: { p99: 20ms } } }\n\
         backend: { mock: { median: 5ms, run_sd: 0%, noise: 0% } }\n",
    );
    let done = project.run(&["x.yaml"]);
    assert!(said(&done).contains("answer Largest rate: a."), "{}", said(&done));
}

/// Sessions of a real runtime, each on a thread of its own.
#[test]
fn sessions_of_a_real_runtime_serve_at_once() {
    need!(onnxruntime);
    let project = Project::with_spec(&format!(
        "models: {}/experiments/models/digits-cnn.onnx\ninputs: {{ batch: 1 }}\n\
         variants: [{{ name: own, sessions: 2, threads: 1 }}, {{ name: shared, sessions: 2, shared_session: true, threads: 1 }}]\n\
         runs: 2\ncompare: {{ aa: off }}\n\
         measure: {{ load: {{ rate: 200 }}, stop: {{ mode: samples, count: 200 }}, warmup: {{ mode: samples, count: 5 }} }}\n",
        env!("CARGO_MANIFEST_DIR")
    ));
    project.run(&["x.yaml"]).expect_code(0);
    for cell in results(&project)["cells"].as_array().unwrap() {
        assert_eq!((&cell["completed"], &cell["load"]["callers"]), (&2.into(), &2.into()));
        assert!(cell["metrics"]["service_ns"]["value"].as_f64().unwrap() > 0.0);
    }
}
