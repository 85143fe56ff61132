//! Metrics that a specification declares: what commands, adapters and `score` commands report, from YAML to gates, histories
//! and exports.

use std::path::Path;

use serde_json::Value;

use crate::need::need;
use crate::support::Project;

const COMMANDS: &str = r#"
commands:
  - { name: old, run: "cat old.txt" }
  - { name: new, run: "cat new.txt" }
runs: 5
compare: { aa: off }
measure: { warmup: { mode: samples, count: 1 }, stop: { mode: samples, count: 2 } }
metrics:
  tokens: { unit: /s, better: higher }
  first_token: { unit: ms, better: lower }
  loss: { unit: nats }
  absent: {}
goals:
  - { metric: tokens, min: 150 }
choose: { best: tokens, within: [{ metric: first_token, max: 10ms }] }
pareto: [tokens, first_token]
tables: [{ name: losses, rows: model, columns: variant, show: [loss] }]
"#;

fn commands() -> Project {
    let project = Project::with_spec(COMMANDS);
    project.write("old.txt", "starting\n{\"tokens\": 100, \"first_token\": 12.5, \"loss\": 0.25}\n");
    project.write(
        "new.txt",
        "{\"tokens\": 1}\n{\"tokens\": 200, \"first_token\": 6, \"loss\": 0.5, \"other\": \"x\"}\nbye\n",
    );
    project
}

fn results(project: &Project) -> Value {
    serde_json::from_str(&project.read("reports/x/results.json")).unwrap()
}

#[test]
fn what_commands_print_takes_part_in_everything() {
    let project = commands();
    let done = project.run(&["x.yaml"]).expect_code(4);
    let said = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("MISSED: tokens/s >= 150/s: met by new; missed by old (100.0/s ± 0)"), "{said}");
    let results = results(&project);
    let metric = |cell: usize, name: &str| &results["cells"][cell]["metrics"][name];
    for (cell, tokens, nanoseconds) in [(0, 100, 12_500_000), (1, 200, 6_000_000)] {
        assert_eq!(
            (&metric(cell, "own.tokens[/s].higher")["value"], &metric(cell, "own.tokens[/s].higher")["n"]),
            (&tokens.into(), &5.into())
        );
        assert_eq!(metric(cell, "own.first_token[ns].lower")["value"], nanoseconds);
    }
    assert_eq!(results["choice"]["contests"][0]["best"][0], results["cells"][1]["id"]);
    assert_eq!(
        results["tradeoffs"][0]["metrics"],
        serde_json::json!(["own.tokens[/s].higher", "own.first_token[ns].lower"])
    );
    let absent = "Nothing reported `absent`, which `metrics` declares.";
    assert!(results["remarks"].as_array().unwrap().contains(&absent.into()), "{}", results["remarks"]);
    let page = project.page("reports/x");
    assert!(page.contains("0.2500") && page.contains("loss, nats"), "{page}");
    project.run(&["report", "reports/x", "--format", "bmf,latex,csv"]).expect_code(0);
    let bencher: Value = serde_json::from_str(&project.read("reports/x/results.bmf.json")).unwrap();
    assert!(bencher.to_string().contains("tokens"), "{bencher}");
    assert!(project.read("reports/x/results.tex").contains("tokens"));
    let template = "{% set of = results.cells|column('first_token') %}{{ of.heading }}: {{ of.numbers|join(', ') }}";
    project.write("own.txt.j2", template);
    project.run(&["report", "reports/x", "--output", "out", "--template", "own.txt.j2"]).expect_code(0);
    assert_eq!(project.read("out/own.txt").trim(), "first_token, ms: 12.50 ± 0, 6.000 ± 0");
}

#[test]
fn gates_and_histories_name_declared_metrics() {
    let project = commands();
    let text = COMMANDS.to_owned() + "gate: [{ metric: loss, worse_by: 5% }]\n";
    project.write("x.yaml", &text.replace("unit: nats", "unit: nats, better: lower"));
    project.run(&["x.yaml"]).expect_code(4);
    std::fs::rename(project.path("reports/x"), project.path("before")).unwrap();
    project.write("new.txt", "{\"tokens\": 190, \"first_token\": 7, \"loss\": 0.75}\n");
    project.run(&["x.yaml"]).expect_code(4);
    let done = project.run(&["diff", "before", "reports/x", "--gate"]).expect_code(4);
    assert!(done.stdout.contains("0.500 nats") && done.stdout.contains("0.750 nats"), "{}", done.stdout);
    let margin = ["diff", "before", "reports/x", "--metric", "loss", "--margin", "loss=0.5 nats"];
    let within = project.run(&margin).expect_code(0).stdout;
    assert!(within.contains("equivalent"), "{within}");
    let done = project.run(&["diff", "before", "reports/x", "--metric", "lss"]).expect_code(2);
    assert!(done.stderr.contains("there is no metric `lss`"), "{}", done.stderr);
    let history = project.run(&["history", "x", "--metric", "first_token", "--json"]).expect_code(0);
    let history: Value = serde_json::from_str(&history.stdout).unwrap();
    let newest = |cell: usize| history["series"][cell]["values"].as_array().unwrap().last().unwrap()["value"].clone();
    assert_eq!((newest(0), newest(1)), (12.5e6.into(), 7e6.into()));
    project.run(&["history", "x", "--metric", "last_token"]).expect_code(2);
    project.run(&["site", "--metric", "tokens"]).expect_code(0);
    assert!(project.read("site/x/index.html").contains("tokens/s"));
}

#[test]
fn values_that_cannot_be_are_a_failed_run() {
    let project = commands();
    project.write("new.txt", "{\"tokens\": -1}\n");
    let done = project.run(&["x.yaml"]).expect_code(4);
    let said = "the command printed -1 for `tokens`, which cannot be negative";
    assert!(done.stdout.contains(said), "{}", done.stdout);
}

#[test]
fn an_adapter_reports_them_with_its_own() {
    let python = need!(numpy);
    let project = Project::with_spec(&format!(
        "models: [{{ name: net, python: 'mine:predict', takes: {{ x: [batch, 4] }} }}]\ninputs: {{ batch: 2 }}\n\
         runtimes: [{{ name: own, adapter: own.py, python: {python} }}]\nvariants: [{{ name: a, runtime: own }}]\nruns: 5\n\
         metrics: {{ energy: {{ unit: mJ, better: lower }} }}\n\
         measure: {{ warmup: {{ mode: samples, count: 2 }}, stop: {{ mode: samples, count: 5 }} }}\n"
    ));
    project.write("mine.py", "def predict(x):\n    return {'y': x}\n");
    project.write(
        "own.py",
        "class Adapter:\n    def describe(self):\n        return 'own 1', {}, ['cpu']\n    def load(self, cell):\n        pass\n    \
         def inputs(self, arrays):\n        return arrays['x']\n    def call(self, x):\n        return x\n    \
         def outputs(self, result):\n        return {'y': result}\n    \
         def metrics(self):\n        return {'energy': 250.0, 'nobody_knows': 1.0}\n",
    );
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    let metrics = &results["cells"][0]["metrics"];
    assert_eq!((&metrics["own.energy[J].lower"]["value"], &metrics["nobody_knows"]), (&0.25.into(), &Value::Null));
    assert!(project.page("reports/x").contains("energy, mJ"));
}

/// Two specifications and two commits may mean different things by one name.
#[test]
fn a_name_means_what_its_own_specification_says() {
    let project = commands();
    let other = COMMANDS.replace("unit: ms, better: lower", "unit: s, better: higher").replace("max: 10ms", "min: 10s");
    project.write("specs/a.yaml", COMMANDS);
    project.write("specs/b.yaml", &other);
    for name in ["old.txt", "new.txt"] {
        project.write(&format!("specs/{name}"), &project.read(name));
    }
    project.run(&["specs"]).expect_code(4);
    let value = |name: &str, column: &str| {
        let results: Value = serde_json::from_str(&project.read(&format!("reports/{name}/results.json"))).unwrap();
        results["cells"][0]["metrics"][column]["value"].clone()
    };
    assert_eq!(value("a", "own.first_token[ns].lower"), 12_500_000);
    assert_eq!(value("b", "own.first_token[ns].higher"), 12_500_000_000_u64);
    // Sides that mean different things by it are not compared.
    project.run(&["x.yaml"]).expect_code(4);
    std::fs::rename(project.path("reports/x"), project.path("before")).unwrap();
    project.write("x.yaml", &other);
    project.run(&["x.yaml"]).expect_code(4);
    let compared = |side: &str, metric: &str| -> Vec<Value> {
        let done = project.run(&["diff", side, "reports/x", "--metric", metric, "--json"]);
        let diff: Value = serde_json::from_str(&done.stdout).unwrap();
        let rows = diff["experiments"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|experiment| experiment["rows"].as_array().unwrap());
        rows.map(|row| row["verdict"].clone()).collect()
    };
    assert_eq!(compared("before", "tokens").iter().filter(|verdict| verdict.is_string()).count(), 2);
    assert!(compared("before", "first_token").iter().all(Value::is_null));
    // A file whose keys stand in another order is the same file.
    let sorted: Value = serde_json::from_str(&project.read("reports/a/results.json")).unwrap();
    project.write("sorted/results.json", &serde_json::to_string(&sorted).unwrap());
    project.run(&["report", "sorted", "--format", "csv"]).expect_code(0);
}

#[test]
fn numbers_that_never_vary_are_compared_as_they_are_and_zero_too() {
    let project = commands();
    let text = COMMANDS
        .replace("choose: { best: tokens, within: [{ metric: first_token, max: 10ms }] }", "choose: { best: loss }");
    project.write("x.yaml", &(text.replace("unit: nats", "better: lower") + "gate: [{ metric: loss, worse_by: 1 }]\n"));
    project.write("old.txt", "{\"loss\": 3, \"tokens\": 1, \"first_token\": 1}");
    project.write("new.txt", "{\"loss\": 0, \"tokens\": 1, \"first_token\": 1}");
    project.run(&["x.yaml"]).expect_code(4);
    let before = results(&project);
    assert_eq!(before["choice"]["contests"][0]["best"], serde_json::json!([before["cells"][1]["id"]]));
    std::fs::rename(project.path("reports/x"), project.path("before")).unwrap();
    for (loss, code, said) in [(0.0, 0, "gate passed"), (0.5, 0, "gate passed"), (50.0, 4, "gate failed")] {
        project.write("new.txt", &format!("{{\"loss\": {loss}, \"tokens\": 1, \"first_token\": 1}}"));
        project.run(&["x.yaml", "--replace"]).expect_code(4);
        let done = project.run(&["diff", "before", "reports/x", "--gate"]).expect_code(code);
        assert!(done.stdout.contains(said), "{loss}: {}", done.stdout);
    }
}

/// What is said of a specification with these keys.
fn said(rest: &str) -> String {
    let project = Project::with_spec(&format!("backend: mock\nmodels: [m]\n{rest}"));
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/data/digits-test.npz");
    std::fs::copy(data, project.path("d.npz")).unwrap();
    let done = project.run(&["validate", "x.yaml"]).expect_code(2);
    done.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

#[test]
fn declarations_that_say_nothing_are_refused_at_their_line() {
    for (rest, text) in [
        ("metrics: { latency: {} }", "`latency` is a metric of perfrun's own"),
        ("metrics: { latency_p95: { unit: ms } }", "`latency_p95` is a metric of perfrun's own"),
        ("metrics: { a: { unit: KB } }", "did you mean `kB`?"),
        ("pareto: [latency, 'own.a.higher']", "there is no metric `own.a.higher`"),
        ("metrics: { a.b: {} }", "`a.b` is no name of a metric"),
        ("metrics: { a: { unit: '' } }", "is no unit"),
        ("metrics: { a: { better: more } }", "`higher` or `lower`"),
        ("metrics: { tokens: {} }\npareto: [latency, tokens]", "say in `metrics` what is better: `better: higher`"),
        ("metrics: { tokens: { better: higher } }\npareto: [latency, tokenz]", "did you mean `tokens`?"),
        ("metrics: { tokens: { unit: ms, better: lower } }\ngoals: [{ metric: tokens, max: 5 }]", "add a unit: `5ms`"),
        ("goals: [{ metric: undeclared, max: 5 }]", "there is no metric `undeclared`"),
    ] {
        let said = said(rest);
        assert!(said.contains(text), "{rest}: {said}");
    }
    let data = |rest: &str, dataset: &str| said(&format!("{rest}\ndataset: {{ file: d.npz, {dataset} }}"));
    let own_metrics = "metrics: { map50: { better: higher } }";
    for (rest, dataset, text) in [
        (own_metrics, "metrics: [map50]", "nothing computes `map50`: there is no `score` command"),
        (own_metrics, "score: [sh, s.sh]", "nothing says which numbers `score` prints"),
        ("", "metrics: [map75], score: [sh, s.sh]", "there is no score `map75`"),
        (own_metrics, "metrics: [map5], score: [sh, s.sh]", "did you mean `map50`?"),
    ] {
        let said = data(rest, dataset);
        assert!(said.contains(text), "{rest} {dataset}: {said}");
    }
}
