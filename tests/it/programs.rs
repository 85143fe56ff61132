//! Programs instead of perfrun's own worker: adapters in Python, from the specification to the report, and bad ones.

use std::path::PathBuf;
use std::process::Command;

use record::{Outcome, RunKind, StoredRun};

use crate::need::need;
use crate::support::Project;

const SHORT: &str = "measure: { warmup: { mode: samples, count: 2 }, stop: { mode: samples, count: 5 } }\n";

/// A function and an adapter that compute the same.
const FUNCTION: &str = "import numpy\nW = numpy.arange(12, dtype=numpy.float32).reshape(4, 3) - 5\ndef predict(x):\n    return {'y': x @ W}\n";
const ADAPTER: &str = r#"
import numpy, mine
class Adapter:
    def describe(self):
        return "own 1.0", {"numpy": numpy.__version__}, ["cpu"]
    def load(self, cell):
        self.options = cell.options
    def inputs(self, arrays):
        return arrays["x"].astype(numpy.float64)
    def call(self, x):
        return x @ mine.W
    def outputs(self, result):
        return {"y": result.astype(numpy.float32)}
"#;

/// `net` from Python on the CPU, as a function and by an adapter, with labels.
fn a_project(python: &str, rest: &str) -> Project {
    let text = format!(
        "models: [{{ name: net, python: 'mine:predict', takes: {{ x: [batch, 4] }} }}]\ninputs: {{ batch: 2 }}\n\
         dataset: {{ file: data.npz, labels: labels }}\nruntimes:\n  - {{ name: functions, adapter: callable, python: {python} }}\n  \
         - {{ name: own, adapter: own.py, python: {python} }}\n\
         variants: [{{ name: plain, runtime: functions }}, {{ name: other, runtime: own }}]\n{SHORT}{rest}"
    );
    let project = Project::with_spec(&text);
    project.write("mine.py", FUNCTION);
    project.write("own.py", ADAPTER);
    let data = "import numpy, mine; x = numpy.random.default_rng(0).standard_normal((20, 4)).astype('f'); \
                numpy.savez('data.npz', x=x, labels=(x @ mine.W).argmax(1))";
    assert!(Command::new(python).args(["-c", data]).current_dir(project.root()).status().unwrap().success());
    project
}

fn results(project: &Project) -> serde_json::Value {
    serde_json::from_str(&project.read("reports/x/results.json")).unwrap()
}

#[test]
fn an_adapter_goes_from_the_specification_to_the_verdict() {
    let python = need!(numpy);
    let project = a_project(python, "runs: 5\n");
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    for cell in results["cells"].as_array().unwrap() {
        assert_eq!((&cell["status"], &cell["metrics"]["latency_ns"]["n"]), (&"measured".into(), &5.into()), "{cell}");
        for metric in ["load_ns", "cpu_time_ns", "peak_rss_bytes"] {
            assert!(cell["metrics"][metric]["value"].as_f64().unwrap() > 0.0, "{metric}");
        }
        assert_eq!(cell["metrics"]["accuracy_top1_ratio"]["value"], 1.0);
    }
    assert!(results["cells"][1]["metrics"]["fidelity_cosine_ratio"]["value"].as_f64().unwrap() > 0.9999);
    assert_eq!(results["comparisons"][0]["metric"], "latency");
    let runtimes = &results["provenance"]["subject"]["runtimes"];
    assert_eq!((&runtimes[0]["name"], &runtimes[1]["version"]), (&"functions".into(), &"1.0".into()), "{runtimes}");
    assert!(runtimes[1]["build"].as_str().unwrap().contains("numpy"));
    let page = project.read("reports/x/report.md");
    assert!(page.contains("own (1.0)"), "{page}");
    // What a program imports nobody knows, so that nothing counts as unchanged.
    let diff = project.run(&["diff", "reports/x", "reports/x"]).expect_code(0);
    assert!(!diff.stdout.contains("unchanged"), "{}", diff.stdout);
}

#[test]
fn an_adapter_is_interrupted_and_resumed() {
    let python = need!(numpy);
    let project = a_project(python, "runs: 3\n");
    // The interrupt comes in the second block, from below; the run under way ends before perfrun does.
    let interrupts = "import os, signal\nif os.path.exists('count'):\n    n = int(open('count').read()) + 1\n    open('count', 'w').write(str(n))\n    if n == 6:\n        os.kill(os.getppid(), signal.SIGINT)\n";
    project.write("own.py", &format!("{interrupts}{ADAPTER}"));
    project.write("count", "0");
    project.run(&["x.yaml"]).expect_code(130);
    std::fs::remove_file(project.path("count")).unwrap();
    project.run(&["x.yaml", "--resume"]).expect_code(0);
    let record = project.record("x");
    assert_eq!(record.manifest.findings.invocations.len(), 2);
    assert!(record.runs.iter().all(|run| run.outcome == Outcome::Completed));
    // Another adapter would be another program.
    std::fs::remove_dir_all(project.path(".perfrun/records")).unwrap();
    project.write("count", "0");
    project.run(&["x.yaml"]).expect_code(130);
    project.write("own.py", ADAPTER);
    let refused = project.run(&["x.yaml", "--resume"]).expect_code(2);
    assert!(refused.stderr.contains("the program of the runtime `own`"), "{}", refused.stderr);
}

/// What an adapter does in one method, and what its run fails with.
const BAD: [(&str, &str, &str); 10] = [
    ("call", "raise ValueError('no such operator')", "ValueError: no such operator"),
    ("load", "raise MemoryError('too large')", "too large"),
    ("call", "os._exit(3)", "status 3"),
    ("call", "os.kill(os.getpid(), 9)", "signal"),
    ("call", "os.close(worker.number)", "status 1"),
    ("load", "worker.send('nonsense')", "is not the protocol"),
    ("load", "worker.send('{\"type\":\"done\"}')", "does not belong to it"),
    ("call", "worker.send('x' * (17 << 20))", "a line of more than 16 MiB"),
    (
        "call",
        "worker.send('{\"type\":\"samples\",\"phase\":\"measure\",\"columns\":{\"start_ns\":[9],\"duration_ns\":[-5],\"input\":[0]}}')",
        "is not the protocol",
    ),
    ("load", "worker.send('{\"type\":\"metrics\",\"values\":{\"load_ns\":1e300}}')", "for `load_ns`"),
];

/// The adapter's way around the package to the socket.
const AROUND: &str = "import gc, os\nfrom perfrun import channel\nclass worker:\n    channel = next(o for o in gc.get_objects() if isinstance(o, channel.Channel))\n    \
    number = channel._out\n    def send(text):\n        os.write(worker.number, text.encode() + b'\\n')\n";

#[test]
fn bad_adapters_are_failed_runs_with_their_reason_and_the_rest_goes_on() {
    let python = need!(numpy);
    let project = a_project(python, "runs: 1\n");
    for (index, (method, does, _)) in BAD.iter().enumerate() {
        let class = format!(
            "class Bad(Adapter):\n    def {method}(self, *given):\n        {does}\n        return super().{method}(*given)\nAdapter = Bad\n"
        );
        project.write(&format!("bad{index}.py"), &format!("{AROUND}{ADAPTER}{class}"));
    }
    let runtimes: String =
        (0..BAD.len()).map(|index| format!("  - {{ adapter: bad{index}.py, python: {python} }}\n")).collect();
    let variants: String = (0..BAD.len()).map(|index| format!("  - {{ runtime: bad{index} }}\n")).collect();
    project.write(
        "y.yaml",
        &format!(
            "models: [{{ name: net, python: 'mine:predict', takes: {{ x: [batch, 4] }} }}]\ninputs: {{ batch: 2 }}\nruns: 1\n\
             {SHORT}runtimes:\n  - {{ name: functions, adapter: callable, python: {python} }}\n{runtimes}variants:\n  \
             - {{ name: plain, runtime: functions }}\n{variants}"
        ),
    );
    project.run(&["y.yaml"]).expect_code(3);
    let record = project.record("y");
    let messages: Vec<String> =
        record.runs.iter().filter_map(|run| run.failure.as_ref()).map(|it| it.message.clone()).collect();
    for (method, does, says) in &BAD {
        assert!(
            messages.iter().any(|message| message.contains(says)),
            "{method}: {does}: no `{says}` in {messages:#?}"
        );
    }
    let completed = record.runs.iter().filter(|run| run.outcome == Outcome::Completed);
    assert!(completed.count() >= 2, "the good one was rehearsed and measured");
}

#[test]
fn what_is_missing_is_a_skip_and_an_error_where_it_is_required() {
    let python = need!(numpy);
    let project = a_project(python, "runs: 1\n");
    project.write("own.py", "import nowhere\n");
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("own: nowhere is not installed"), "{}", done.stderr);
    assert!(done.stderr.contains("-m pip install nowhere"), "{}", done.stderr);
    let refused = project.run(&["x.yaml", "--require-devices"]).expect_code(2);
    assert!(refused.stderr.contains("own: nowhere is not installed"), "{}", refused.stderr);
    let text = project.read("x.yaml").replace(&format!("own.py, python: {python}"), "own.py, python: ./no/python");
    project.write("x.yaml", &text);
    project.run(&["validate", "x.yaml"]).expect_code(0);
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("own: cannot start"), "{}", done.stderr);
}

#[test]
fn options_are_checked_where_they_stand() {
    let project = Project::new();
    project.write("own.py", "");
    project.write("own.json", r#"{"options":{"type":"object","properties":{"depth":{"type":"integer"}}}}"#);
    let refused = |variant: &str, says: &str| {
        let text = format!(
            "models: [{{ name: net, python: 'm:f', takes: {{ x: [4] }} }}]\nruntimes: [{{ name: torch, adapter: pytorch }}, {{ adapter: own.py }}, 1.31.1]\n\
             variants: [{{ name: a, runtime: torch }}, {{ name: o, runtime: own }}, {variant}]\n"
        );
        project.write("x.yaml", &text);
        let done = project.run(&["validate", "x.yaml"]).expect_code(2);
        assert!(done.stderr.contains(says), "`{says}` is not in {}", done.stderr);
    };
    refused("{ runtime: torch, options: { mod: compile } }", "`mod` is no option of `torch`");
    refused(
        "{ runtime: torch, options: { mode: fast } }",
        "choose one of `eager`, `torchscript`, `compile` and `export`",
    );
    refused(
        "{ runtime: torch, graph_optimization: basic }",
        "`graph_optimization` has no effect on the runtime `torch`",
    );
    refused("{ runtime: own, options: { depth: deep } }", "\"deep\" is not of type \"integer\"");
    refused("{ name: b, options: { mode: eager } }", "`options` has no effect on ONNX Runtime");
    refused("{ runtime: trch }", "did you mean `torch`?");
    project.write("x.yaml", "models: [m.onnx]\nruntimes: [{ adapter: pytorhc }]\n");
    let done = project.run(&["validate", "x.yaml"]).expect_code(2);
    assert!(done.stderr.contains("did you mean `pytorch`?"), "{}", done.stderr);
}

/// A mistake of published benchmarks, planted in an adapter, and the code that reports it.
const PLANTED: [(&str, &str, &str); 4] = [
    // The device is not waited for: a thread works on after `call`, and the outputs wait for it.
    (
        "no_wait",
        "import threading, time\nclass Planted(Adapter):\n    busy = []\n    def call(self, x):\n        result = super().call(x)\n        \
         self.busy[:] = [0.6]\n        return result\n    def outputs(self, result):\n        time.sleep(sum(self.busy)); self.busy.clear()\n        return super().outputs(result)\n",
        "W_UNTIMED",
    ),
    // Another model's load time.
    (
        "load_time",
        "import time\nclass Planted(Adapter):\n    def load(self, cell):\n        super().load(cell)\n    def inputs(self, arrays):\n        \
         time.sleep(2.0 if not hasattr(self, 'slow') else 0); self.slow = True\n        return super().inputs(arrays)\n",
        "W_LOAD_UNTIMED",
    ),
    // Copies between samples, outside of the clock.
    (
        "copies",
        "import time\nfrom perfrun import worker\n_clock = time.perf_counter_ns\nclass Planted(Adapter):\n    count = 0\n    def call(self, x):\n        return super().call(x)\n    def device_ns(self):\n        time.sleep(0.1)\n        return 1\n",
        "W_UNTIMED",
    ),
    // It was to run on a device, and ran on the CPU.
    (
        "silent_cpu",
        "class Planted(Adapter):\n    def describe(self):\n        return 'own 1.0', {}, ['cpu', 'webgpu']\n",
        "where it ran",
    ),
];

#[test]
fn mistakes_of_published_benchmarks_are_told() {
    let python = need!(numpy);
    // At once, since they sleep most of the time.
    std::thread::scope(|scope| {
        for planted in PLANTED {
            scope.spawn(move || mistake_is_told(python, planted));
        }
    });
}

fn mistake_is_told(python: &str, (name, class, expected): (&str, &str, &str)) {
    let project = a_project(python, "");
    project.write("own.py", &format!("{ADAPTER}{class}Adapter = Planted\n"));
    let device = if name == "silent_cpu" { "webgpu" } else { "cpu" };
    project.write(
        "x.yaml",
        &format!(
            "models: [{{ name: net, python: 'mine:predict', takes: {{ x: [batch, 4] }} }}]\ninputs: {{ batch: 2 }}\nruns: 1\n\
             {SHORT}devices: {device}\nruntimes: [{{ adapter: own.py, python: {python} }}]\n"
        ),
    );
    let done = project.run(&["x.yaml"]);
    let record = project.record("x");
    let of_block = record.runs.last().unwrap();
    let codes = &of_block.warnings;
    let failed =
        record.runs.iter().filter_map(|run| run.failure.as_ref()).any(|failure| failure.message.contains(expected));
    assert!(codes.iter().any(|code| code == expected) || failed, "{name}: {codes:?} {}", done.stderr);
}

#[test]
fn a_network_of_torch_and_its_export_agree() {
    let python = need!(torch);
    let _library: &PathBuf = need!(onnxruntime);
    let project = Project::with_spec(&format!(
        "models:\n  - name: squeezenet\n    python: torchvision.models:squeezenet1_1\n    args: {{ weights: null, num_classes: 10 }}\n    \
         takes: {{ x: [batch, 3, 64, 64] }}\ninputs: {{ batch: 2 }}\nruns: 1\n{SHORT}runtimes: [1.31.1, {{ name: torch, adapter: pytorch, python: {python} }}]\n\
         variants:\n  - {{ name: eager, runtime: torch }}\n  - {{ name: script, runtime: torch, options: {{ mode: torchscript }} }}\n  - {{ name: ort, runtime: 1.31.1 }}\n"
    ));
    project.run(&["x.yaml"]).expect_code(0);
    let results = results(&project);
    let cells = results["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    // The export on ONNX Runtime is the reference.
    for cell in &cells[..2] {
        assert!(cell["metrics"]["fidelity_cosine_ratio"]["value"].as_f64().unwrap() > 0.9999, "{cell}");
    }
    assert!(cells[1]["metrics"]["build_ns"]["value"].as_f64().unwrap() > 0.0, "compiling is told apart from loading");
}

/// An adapter that runs calls of a decoder with 4,096 tokens: the next token is the sum of all before.
const SUMS: &str = r#"
import numpy
class Adapter:
    def describe(self):
        return "sums 1.0", {}, ["cpu"]
    def load(self, cell):
        self.decode = cell.decode
    def inputs(self, arrays):
        return arrays[self.decode.ids]
    def fill(self, ids):
        self.held = ids
    def rewind(self):
        self.sums = self.held.sum(1)
    def call(self, ids):
        logits = numpy.zeros((*ids.shape, 4096), numpy.float32)
        for at, tokens in enumerate(ids.T):
            self.sums = self.sums + tokens
            logits[range(len(tokens)), at, self.sums % 4096] = 1
        return logits
    def first(self, ids):
        self.last = self.call(ids)[:, -1].argmax(-1)
        return self.last
    def next(self):
        return self.first(self.last[:, None])
    def outputs(self, logits):
        return {self.decode.logits: logits}
"#;

#[test]
fn calls_of_a_decoder_run_in_adapters_that_say_so() {
    let python = need!(numpy);
    let runtimes: String =
        ["sums.py", "own.py"].iter().map(|file| format!("  - {{ adapter: {file}, python: {python} }}\n")).collect();
    let project = Project::with_spec(&format!(
        "models: zoo:gpt-tiny\ndecode: {{ prompt: 8, at: 6, batch: 2, generate: 4 }}\nruns: 1\n{SHORT}runtimes:\n{runtimes}\
         variants: [{{ name: sums, runtime: sums }}, {{ name: plain, runtime: own }}]\n"
    ));
    project.write("sums.py", SUMS);
    project.write("mine.py", FUNCTION);
    project.write("own.py", ADAPTER);
    let done = project.run(&["x.yaml"]).expect_code(0);
    assert!(done.stderr.contains("own runs no calls of a decoder"), "{}", done.stderr);
    let record = project.record("x");
    let is_main = |run: &&StoredRun| run.kind == RunKind::Main && run.outcome == Outcome::Completed;
    let ran: Vec<_> = record.runs.iter().filter(is_main).collect();
    assert_eq!(ran.len(), 3);
    for run in ran {
        let tokens = ["ttft_ns", "itl_ns", "itl_largest_ns", "itl_slowest_ns", "tpot_ns", "output_tokens_per_s"];
        let found = tokens.map(|metric| run.data.metrics.get(metric).is_some_and(|value| *value > 0.0));
        let rehearsal = record.runs.iter().find(|it| it.cell == run.cell && it.kind == RunKind::Rehearsal).unwrap();
        let shapes = rehearsal.data.output_shapes.as_ref().unwrap();
        let is_loop = shapes.contains_key("tokens");
        assert_eq!(found, [is_loop; 6], "{shapes:?}");
        assert!(is_loop && shapes["tokens"] == [2, 4] || [1, 8].contains(&shapes["logits"][1]), "{shapes:?}");
    }
}
