//! Records made up in memory: seeded latencies on a plan, so that no large file is committed.

use std::collections::BTreeMap;

use base::machine::host::Host;
use base::metric;
use experiment::{
    Aa, Axis, Backend, Compare, Device, Experiment, InputPoint, Matrix, Measure, Model, Precision, Require, Runs,
    Threads, Variant,
};
use judge::compare::{Judged, judge};
use judge::results::Results;
use judge::summary::{Summary, summarize};
use plan::{self, Plan, Skip, SkipKind};
use record::revision::Revision;
use record::{
    FORMAT, Invocation, Manifest, ModelFile, Outcome, PassFindings, Rehearsed, RunKind, RuntimeUsed, SpecSource,
    StoredRun,
};
use report::{Format, compose};
use statistics::Distribution;
use statistics::quantile::median;
use statistics::random::{Xoshiro256PlusPlus, key_seed};
use worker::backend::{Failure, FailureKind, Placement};
use worker::measure::Samples;
use worker::measure::stop::StopReason;
use worker::measure::warm::WarmupStatus;

/// A record in memory, with what is derived from it.
pub(super) struct Fixture {
    pub(super) manifest: Manifest,
    pub(super) runs: Vec<StoredRun>,
    pub(super) summary: Summary,
    pub(super) judged: Judged,
}

/// A report as texts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Texts {
    pub(super) markdown: String,
    pub(super) html: String,
    /// What the HTML reads like.
    pub(super) page: String,
    pub(super) json: String,
    pub(super) plots: Vec<(String, String)>,
}

/// How a cell behaves.
#[derive(Clone, Copy)]
pub(super) struct Behaviour {
    /// Typical duration of an iteration in nanoseconds.
    pub(super) median: f64,
    /// Standard deviation of the log of a run's own level.
    pub(super) run_sd: f64,
    /// Counted samples of a run.
    pub(super) samples: usize,
    /// Iterations of a sample.
    pub(super) iterations: u32,
    /// Factor on every third run: a choice made once a process.
    pub(super) every_third: f64,
    /// Relative change from the first counted sample to the last.
    pub(super) drift: f64,
    /// Peak memory in MiB.
    pub(super) memory: f64,
}

/// The axes of an experiment, everything else as usual.
pub(super) struct Axes<'a> {
    pub(super) models: &'a [&'a str],
    pub(super) batches: &'a [u64],
    pub(super) variants: &'a [&'a str],
    pub(super) devices: &'a [&'a str],
    pub(super) runs: u32,
}

impl Fixture {
    /// Two models, two batch sizes, three variants on a CPU and on a device that is not there: one cell fails in the
    /// rehearsal, one in some runs, one has too few samples for its percentiles, one comparison stays open.
    pub(super) fn choose() -> Self {
        let axes = Axes {
            models: &["resnet50", "mobilenetv2"],
            batches: &[1, 16],
            variants: &["fp32", "int8", "fp16"],
            devices: &["cpu", "cuda:0"],
            runs: 10,
        };
        let mut fixture = Fixture::new("choose", &axes, |path| match path {
            "resnet50/b1/fp32/cpu" => usual(18.42e6, 300),
            "resnet50/b1/int8/cpu" => usual(7.93e6, 600),
            "resnet50/b1/fp16/cpu" => usual(27.9e6, 200),
            "resnet50/b16/fp32/cpu" => usual(271.0e6, 30),
            "resnet50/b16/int8/cpu" => usual(109.0e6, 60),
            "mobilenetv2/b1/fp32/cpu" => usual(3.12e6, 800),
            "mobilenetv2/b1/int8/cpu" => Behaviour { run_sd: 0.04, ..usual(3.05e6, 800) },
            "mobilenetv2/b1/fp16/cpu" => usual(4.41e6, 700),
            "mobilenetv2/b16/fp32/cpu" => usual(44.1e6, 100),
            "mobilenetv2/b16/int8/cpu" => Behaviour { run_sd: 0.002, ..usual(44.2e6, 100) },
            _ => usual(61.0e6, 100),
        });
        fixture.skip_device("cuda:0");
        let message = "Could not find an implementation for Conv(22) node with name '/conv1/Conv'";
        let log = "2026-11-20 10:14:02 [E:onnxruntime] failed to load /home/alice/work/resnet50.onnx\nsession.cc:2117 Initialize: NOT_IMPLEMENTED : Conv(22) <float16>";
        fixture.fail_rehearsal("resnet50/b16/fp16/cpu", FailureKind::Operator, message, Some(log));
        fixture.fail_runs("mobilenetv2/b16/fp16/cpu", &[3], FailureKind::Timeout, "the run took longer than 10m");
        fixture.warn("mobilenetv2/b1/int8/cpu", "W_LATE_WARMUP", 3);
        fixture.warn("resnet50/b16/fp32/cpu", "W_SMT_SHARED", 10);
        fixture.warn("resnet50/b16/int8/cpu", "W_SMT_SHARED", 2);
        fixture.with_control(Aa::Auto, 1.0).summarized()
    }

    /// One tiny model alone: nothing to compare, iterations share samples.
    pub(super) fn alone() -> Self {
        let axes = Axes { models: &["mlp"], batches: &[1, 8], variants: &["fp32"], devices: &["cpu"], runs: 10 };
        let tiny = |median| Behaviour { iterations: 32, ..usual(median, 400) };
        Fixture::new("alone", &axes, |path| if path.contains("/b1/") { tiny(3.2e3) } else { tiny(5.9e3) }).summarized()
    }

    /// Twelve variants of one model: more than stand side by side.
    pub(super) fn many_variants() -> Self {
        let names =
            ["base", "t1", "t2", "t4", "t8", "basic", "extended", "disabled", "no-spin", "arena", "prepack", "tuned"];
        let axes = Axes { models: &["bert"], batches: &[1], variants: &names, devices: &["cpu"], runs: 10 };
        let scales = [1.0, 2.9, 1.6, 1.02, 0.97, 1.1, 1.01, 1.4, 0.99, 1.0, 0.995, 0.82];
        let fixture = Fixture::new("threads", &axes, |path| {
            let variant = path.split('/').nth(2).unwrap_or_default();
            let index = names.iter().position(|name| *name == variant).unwrap_or_default();
            usual(12.5e6 * scales[index], 250)
        });
        fixture.summarized()
    }

    /// Three runs of each cell, interrupted, restricted: nothing may be judged.
    pub(super) fn interrupted() -> Self {
        let axes = Axes { models: &["cnn"], batches: &[1], variants: &["fp32", "tuned"], devices: &["cpu"], runs: 10 };
        let mut fixture =
            Fixture::new("quick", &axes, |path| usual(if path.contains("tuned") { 39.9e3 } else { 77.0e3 }, 400));
        fixture.runs.retain(|run| run.run < 3);
        fixture.manifest.findings.complete = false;
        fixture.manifest.restrictions = vec!["--only variant=fp32|tuned".to_owned()];
        fixture.summarized()
    }

    /// Devices are compared, far apart from each other, so that axes are logarithmic.
    pub(super) fn devices() -> Self {
        let axes = Axes {
            models: &["vgg19", "a-model-with-a-very-long-name.v2_final-export"],
            batches: &[1],
            variants: &["fp32"],
            devices: &["cpu", "cuda:0", "tensorrt:0"],
            runs: 8,
        };
        let mut fixture = Fixture::new("devices", &axes, |path| match path.rsplit('/').next() {
            Some("cpu") => usual(91.0e6, 80),
            Some("cuda:0") => usual(4.2e6, 400),
            _ => usual(2.9e6, 500),
        });
        fixture.skip_device("tensorrt:0");
        fixture.summarized()
    }

    /// Texts from elsewhere that would be markup.
    pub(super) fn hostile() -> Self {
        let axes = Axes { models: &["a.b_c-d"], batches: &[1], variants: &["fp32", "x"], devices: &["cpu"], runs: 5 };
        let mut fixture = Fixture::new("hostile", &axes, |_| usual(1.0e6, 100));
        let evil = "</script><script>alert(1)</script> | **x** `y` [z](http://example.org) & \"q\"";
        fixture.manifest.experiment.description = Some(format!("# {evil}"));
        fixture.manifest.spec.text = format!("name: hostile\n# ``` {evil}\n");
        fixture.fail_runs("a.b_c-d/b1/x/cpu", &[1], FailureKind::Internal, evil);
        fixture.manifest.background_cpus = 1.9;
        fixture.manifest.plan.product.idle_selectors = vec![evil.to_owned()];
        fixture.summarized()
    }

    /// A/A comparisons that differ by 6 %: nothing may be claimed.
    pub(super) fn failed_control() -> Self {
        let axes =
            Axes { models: &["cnn"], batches: &[1, 8], variants: &["fp32", "int8"], devices: &["cpu"], runs: 10 };
        let behaviour = |path: &str| usual(if path.contains("int8") { 2.1e6 } else { 4.4e6 }, 200);
        Fixture::new("failed", &axes, behaviour).with_control(Aa::Group, 1.06).summarized()
    }

    /// A first look: five runs, no control, a wide margin.
    pub(super) fn quick_look() -> Self {
        let axes =
            Axes { models: &["cnn"], batches: &[1], variants: &["fp32", "int8", "tuned"], devices: &["cpu"], runs: 5 };
        let behaviour = |path: &str| match path.split('/').nth(2) {
            Some("int8") => usual(2.1e6, 60),
            Some("tuned") => usual(4.2e6, 60),
            _ => usual(4.4e6, 60),
        };
        let mut fixture = Fixture::new("look", &axes, behaviour);
        fixture.manifest.quick = true;
        fixture.manifest.restrictions = vec!["--quick".to_owned()];
        fixture.summarized()
    }

    /// Runs that fall into two kinds, runs that never come to rest, and late warm-up: what figures are for.
    pub(super) fn restless() -> Self {
        let variants = ["steady", "two-kinds", "drifting", "late"];
        let axes = Axes { models: &["rnn"], batches: &[1], variants: &variants, devices: &["cpu"], runs: 10 };
        let behaviour = |path: &str| match path.split('/').nth(2) {
            Some("two-kinds") => Behaviour { every_third: 1.24, ..usual(7.6e6, 300) },
            Some("drifting") => Behaviour { drift: 0.2, ..usual(8.3e6, 300) },
            _ => usual(8.0e6, 300),
        };
        let mut fixture = Fixture::new("restless", &axes, behaviour);
        fixture.late_warmup("rnn/b1/late/cpu", 40);
        fixture.warn("rnn/b1/drifting/cpu", "W_NO_STEADY_STATE", 4);
        fixture.warn("rnn/b1/late/cpu", "W_LATE_WARMUP", 10);
        fixture.with_control(Aa::Auto, 1.0).summarized()
    }

    /// A complete record in which every cell completes every run.
    pub(super) fn new(name: &str, axes: &Axes<'_>, behaviour: impl Fn(&str) -> Behaviour) -> Self {
        Fixture::of(experiment(name, axes), behaviour)
    }

    pub(super) fn of(experiment: Experiment, behaviour: impl Fn(&str) -> Behaviour) -> Self {
        Fixture::rerun(experiment, 7, behaviour)
    }

    /// The same experiment on another day: all that moves by chance follows from the seed.
    pub(super) fn rerun(experiment: Experiment, seed: u64, behaviour: impl Fn(&str) -> Behaviour) -> Self {
        let plan = plan::expand(&experiment).expect("a plan");
        let runs = runs(&plan, seed, behaviour);
        let manifest = manifest(experiment, plan);
        Fixture { manifest, runs, summary: Summary::default(), judged: Judged::default() }
    }

    /// Adds the A/A copies, which take `factor` times as long as the cells that they repeat.
    pub(super) fn with_control(mut self, aa: Aa, factor: f64) -> Self {
        self.manifest.experiment.compare.aa = aa;
        plan::place_controls(&mut self.manifest.plan, aa);
        for cell in self.manifest.plan.controls.clone() {
            let id = self.manifest.plan.cells[cell as usize].id;
            let of_cell = |run: &&StoredRun| run.cell == id && run.kind == RunKind::Main;
            let copies: Vec<StoredRun> = self.runs.iter().filter(of_cell).map(|run| aa_copy(run, factor)).collect();
            self.runs.extend(copies);
        }
        self
    }

    /// Makes the first counted samples of a cell's runs slower, and marks them as late warm-up.
    fn late_warmup(&mut self, path: &str, samples: usize) {
        let id = self.manifest.plan.cells[self.cell(path)].id;
        for run in self.runs.iter_mut().filter(|run| run.cell == id) {
            run.late_warmup = samples as u32;
            for (index, duration) in run.data.measured.duration_ns.iter_mut().take(samples).enumerate() {
                *duration += (*duration as f64 * 0.5 * (-(index as f64) / 12.0).exp()) as u64;
            }
        }
    }

    /// Derives summary and comparisons from the runs as they are now.
    pub(super) fn summarized(mut self) -> Self {
        self.runs.sort_by_key(|run| (run.kind, run.block, run.cell));
        self.summary = summarize(&self.manifest, &self.runs).unwrap();
        self.judged = judge(&self.manifest, &self.summary);
        self
    }

    pub(super) fn render(&self) -> Texts {
        let formats: Vec<Format> = Format::defaults().collect();
        let rendered = compose(&self.results(), Some(&self.runs)).render(&formats).expect("a report");
        let mut texts = rendered.files.into_iter().map(|(_, bytes)| String::from_utf8(bytes).expect("a text"));
        let mut next = || texts.next().expect("every format");
        let (markdown, html, json) = (next(), next(), next());
        let page = crate::support::readable(&html);
        Texts { markdown, html, page, json, plots: rendered.plots.expect("figures of the Markdown report") }
    }

    /// Every figure, as templates of the user's own may show them.
    pub(super) fn figures(&self) -> Vec<(String, String)> {
        compose(&self.results(), Some(&self.runs)).figures()
    }

    /// The file of a format.
    pub(super) fn file(&self, format: &str) -> String {
        let format = Format::named(format).expect("a format");
        let rendered = compose(&self.results(), Some(&self.runs)).render(&[format]).expect("a report");
        let found = rendered.files.into_iter().find(|(of, _)| *of == format);
        String::from_utf8(found.expect("its file").1).expect("a text")
    }

    pub(super) fn results(&self) -> Results {
        judge::results::results(&self.manifest, &self.summary, &self.judged)
    }

    fn cell(&self, path: &str) -> usize {
        let plan = &self.manifest.plan;
        plan.cells.iter().position(|cell| plan.path(cell) == path).expect("a cell of the plan")
    }

    /// Skips the cells of a device as the plan does.
    pub(super) fn skip_device(&mut self, label: &str) {
        let reason = format!("{label}: no NVIDIA driver here");
        let skip = Skip { kind: SkipKind::Device, reason, remedy: None };
        for index in 0..self.manifest.plan.cells.len() {
            let cell = self.manifest.plan.cells[index];
            if self.manifest.plan.coordinates(&cell).device() == label {
                self.manifest.plan.mark_skipped(index, skip.clone());
                for run in self.runs.iter_mut().filter(|run| run.cell == cell.id) {
                    *run = StoredRun::not_started(run.cell, run.kind, run.run, 0, Outcome::Skipped);
                }
            }
        }
    }

    pub(super) fn fail_rehearsal(&mut self, path: &str, kind: FailureKind, message: &str, log: Option<&str>) {
        let id = self.manifest.plan.cells[self.cell(path)].id;
        for run in self.runs.iter_mut().filter(|run| run.cell == id) {
            *run = StoredRun::not_started(run.cell, run.kind, run.run, 0, Outcome::NotRun);
        }
        let mut rehearsal = StoredRun::not_started(id, RunKind::Rehearsal, 0, 0, Outcome::Failed);
        rehearsal.failure = Some(Failure::new(kind, message));
        rehearsal.log_tail = log.map(str::to_owned);
        self.runs.push(rehearsal);
    }

    fn fail_runs(&mut self, path: &str, numbers: &[u32], kind: FailureKind, message: &str) {
        let id = self.manifest.plan.cells[self.cell(path)].id;
        for run in self.runs.iter_mut().filter(|run| run.cell == id && numbers.contains(&run.run)) {
            *run = StoredRun::not_started(run.cell, run.kind, run.run, 0, Outcome::Failed);
            run.failure = Some(Failure::new(kind, message));
        }
    }

    pub(super) fn fail_aa_copies(&mut self, numbers: &[u32], kind: FailureKind, message: &str) {
        for run in self.runs.iter_mut().filter(|run| run.kind == RunKind::AaCopy && numbers.contains(&run.run)) {
            *run = StoredRun::not_started(run.cell, run.kind, run.run, 0, Outcome::Failed);
            run.failure = Some(Failure::new(kind, message));
        }
    }

    /// Sets a metric of every run of a cell.
    pub(super) fn measured(&mut self, path: &str, metric: &str, value: f64) {
        let id = self.manifest.plan.cells[self.cell(path)].id;
        for run in self.runs.iter_mut().filter(|run| run.cell == id) {
            run.data.metrics.insert(metric.to_owned(), value);
        }
    }

    pub(super) fn warn(&mut self, path: &str, code: &str, runs: u32) {
        let id = self.manifest.plan.cells[self.cell(path)].id;
        for run in self.runs.iter_mut().filter(|run| run.cell == id && run.run < runs) {
            run.warnings.push(code.to_owned());
        }
    }
}

/// A quiet machine: runs differ by 0.6 %.
pub(super) fn usual(median: f64, samples: usize) -> Behaviour {
    Behaviour { median, run_sd: 0.006, samples, iterations: 1, every_third: 1.0, drift: 0.0, memory: 214.0 }
}

pub(super) fn experiment(name: &str, axes: &Axes<'_>) -> Experiment {
    let input = |batch: &u64| InputPoint {
        name: format!("b{batch}"),
        dimensions: BTreeMap::from([("batch".to_owned(), *batch)]),
        ..InputPoint::default()
    };
    let device = |label: &&str| match label.split_once(':') {
        Some((provider, index)) => Device { index: index.parse().ok(), ..Device::of(provider) },
        None => Device::of(label),
    };
    let model = |name: &&str| Model {
        name: (*name).to_owned(),
        path: Some(format!("models/{name}.onnx").into()),
        source: None,
        sha256: None,
        inputs: None,
        decoder: None,
        files: std::collections::BTreeMap::new(),
        dataset: None,
        command: None,
    };
    let variant = |name: &&str| Variant {
        name: (*name).to_owned(),
        precision: Precision::Fp32,
        threads: Threads { intra: name.strip_prefix('t').and_then(|number| number.parse().ok()), inter: None },
        ..Variant::default()
    };
    Experiment {
        paths: Vec::new(),
        metrics: Vec::new(),
        name: name.to_owned(),
        description: Some("Which precision and batch on this machine?".to_owned()),
        models: axes.models.iter().map(model).collect(),
        inputs: axes.batches.iter().map(input).collect(),
        variants: axes.variants.iter().map(variant).collect(),
        devices: axes.devices.iter().map(device).collect(),
        runtimes: Vec::new(),
        plugins: std::collections::BTreeMap::new(),
        runs: Runs::fixed(axes.runs),
        seed: 42,
        matrix: Matrix::default(),
        measure: Measure::default(),
        profile: None,
        backend: Backend::Onnxruntime,
        compare: Compare { aa: Aa::Off, ..Compare::default() },
        budget: None,
        require: Require::default(),
        choose: None,
        pareto: Vec::new(),
        dataset: None,
        fidelity: experiment::FidelitySettings::default(),
        goals: Vec::new(),
        goals_strict: false,
        gate: Vec::new(),
        pairs: Vec::new(),
        tables: Vec::new(),
    }
}

fn manifest(experiment: Experiment, plan: Plan) -> Manifest {
    let hash = |text: &str| format!("{:016x}", key_seed(1, text)).repeat(4);
    let model = |name: &String| {
        Some(ModelFile {
            path: format!("models/{name}.onnx"),
            sha256: hash(name),
            parts: std::collections::BTreeMap::new(),
            bytes: 102_146_113,
            producer: Some("pytorch 2.9.0".to_owned()),
            parameters: Some(25_530_472),
            stored: None,
            training: std::collections::BTreeMap::new(),
            opset: [("ai.onnx".to_owned(), 17)].into(),
            operators: [("Conv".to_owned(), 53), ("Relu".to_owned(), 49)].into(),
            not_compared: std::collections::BTreeMap::new(),
            costs: Vec::new(),
            batch_sizes: plan.inputs().iter().map(|input| input.dimensions.get("batch").copied()).collect(),
        })
    };
    let text = format!(
        "name: {}\nmodels: models/*.onnx\ninputs: {{ batch: [1, 16] }}\nvariants: [fp32, int8, fp16]\n",
        experiment.name
    );
    Manifest {
        sources: None,
        machines: Vec::new(),
        format: FORMAT,
        perfrun: "0.1.0".to_owned(),
        build_profile: None,
        record: "20261120T101112Z-0a1b2c3d".to_owned(),
        spec: SpecSource {
            path: format!("experiments/{}.yaml", experiment.name),
            sha256: hash(&text),
            text,
            overrides: Vec::new(),
        },
        restrictions: Vec::new(),
        definitions: plan.cells.iter().map(|cell| hash(&plan.path(cell))).collect(),
        revision: Some(Revision {
            commit: "3f2a91c05d7e8b6a4c1f0e9d8c7b6a5f4e3d2c1b".to_owned(),
            dirty: Some(vec![format!("experiments/{}.yaml", experiment.name)]),
        }),
        no_revision: None,
        host: host(),
        models: plan.names(Axis::Models).iter().map(model).collect(),
        datasets: Vec::new(),
        runtime: Some(RuntimeUsed {
            version: Some("1.31.1".to_owned()),
            build: Some("ORT Build Info: git-branch=rel-1.31.1, build type=Release".to_owned()),
            package: None,
            package_sha256: None,
            origin: "the cache".to_owned(),
            sha256: hash("library"),
        }),
        runtimes: Vec::new(),
        plugins: std::collections::BTreeMap::new(),
        default_threads: 4,
        imposed_session: Default::default(),
        core_sets: None,
        background_cpus: 0.0,
        load_average: None,
        quick: false,
        findings: findings(&experiment, &plan),
        experiment,
        plan,
    }
}

fn findings(experiment: &Experiment, plan: &Plan) -> PassFindings {
    PassFindings {
        rehearsal: Some(Rehearsed {
            iterations: vec![1; plan.groups.len()],
            libraries: Vec::new(),
            too_large: Vec::new(),
        }),
        invocations: vec![Invocation {
            started: "2026-11-20T10:11:12Z".to_owned(),
            boot: Some("5ad0c0de".to_owned()),
            command: format!("perfrun experiments/{}.yaml", experiment.name),
            perfrun: "0.1.0".to_owned(),
            not_alone: None,
            first_block: 0,
        }],
        complete: true,
        ..PassFindings::default()
    }
}

fn host() -> Host {
    Host {
        machine: "b1946ac92492d234".to_owned(),
        cpu: Some("AMD EPYC 7R13 Processor".to_owned()),
        cpu_revision: None,
        microcode: Some("0xa0011d5".to_owned()),
        logical_cpus: Some(8),
        allowed_cpus: Some("0-7".to_owned()),
        allowed_cores: Some(4),
        cpu_quota: None,
        smt: Some(true),
        governor: None,
        turbo: Some(true),
        virtual_machine: Some(true),
        memory_bytes: Some(33_285_996_544),
        memory_nodes: Some(1),
        system: "linux x86_64".to_owned(),
        kernel: Some("6.8.0-1021".to_owned()),
        clock_source: Some("tsc".to_owned()),
        aslr: Some(2),
        units: Vec::new(),
        last_level_cache_bytes: Some(32 << 20),
        variables: None,
    }
}

fn runs(plan: &Plan, seed: u64, behaviour: impl Fn(&str) -> Behaviour) -> Vec<StoredRun> {
    let mut runs = Vec::new();
    for cell in &plan.cells {
        let path = plan.path(cell);
        let behaviour = behaviour(&path);
        let batch = plan.input_of(cell).dimensions.get("batch").copied().unwrap_or(1);
        for run in 0..plan.runs {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(key_seed(seed, &format!("{path}/{run}")));
            runs.push(completed(
                StoredRun::not_started(cell.id, RunKind::Main, run, 0, Outcome::Completed),
                behaviour,
                batch,
                &mut random,
            ));
        }
    }
    runs
}

/// Forty samples that fade from twice the level.
fn warmup(level: f64) -> Samples {
    let mut samples = Samples::default();
    let mut start = 90_000_000;
    for index in 0..40 {
        let duration = (level * (1.0 + (-f64::from(index) / 8.0).exp())) as u64;
        samples.start_ns.push(start);
        samples.duration_ns.push(duration);
        samples.input.push(0);
        start += duration;
    }
    samples
}

/// A run of the same program in the same block, with noise of its own.
fn aa_copy(run: &StoredRun, factor: f64) -> StoredRun {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(key_seed(11, &format!("{}/{}", run.cell, run.run)));
    let factor = factor * (0.012 * random.normal()).exp();
    let mut copy = StoredRun { kind: RunKind::AaCopy, ..run.clone() };
    for duration in &mut copy.data.measured.duration_ns {
        *duration = (*duration as f64 * factor) as u64;
    }
    if let Some(value) = copy.data.metrics.get_mut(metric::LATENCY.name) {
        *value *= factor;
    }
    copy
}

fn completed(mut run: StoredRun, behaviour: Behaviour, batch: u64, random: &mut Xoshiro256PlusPlus) -> StoredRun {
    // The machine drifts from block to block, alike for every cell; a run has a level of its own.
    let drift = 1.0 + 0.01 * (f64::from(run.block) * 0.7).sin();
    let kind = if run.run % 3 == 2 { behaviour.every_third } else { 1.0 };
    let level = behaviour.median * drift * kind * (behaviour.run_sd * random.normal()).exp();
    let mut samples = Samples::default();
    run.data.warmup = warmup(level * f64::from(behaviour.iterations));
    let mut start =
        run.data.warmup.start_ns.last().zip(run.data.warmup.duration_ns.last()).map_or(0, |(at, took)| at + took);
    for index in 0..behaviour.samples {
        let burst = if random.unit() < 0.02 { 1.0 + 0.3 * random.unit() } else { 1.0 };
        let along = 1.0 + behaviour.drift * index as f64 / behaviour.samples as f64;
        let noise = (0.015 * random.normal()).exp() * burst * along;
        let duration = (level * noise * f64::from(behaviour.iterations)) as u64;
        samples.start_ns.push(start);
        samples.duration_ns.push(duration);
        samples.input.push(0);
        start += duration + 90;
    }
    run.iterations = behaviour.iterations;
    run.data.warmup_status = Some(WarmupStatus::Converged);
    run.data.stop_reason = Some(StopReason::Precision);
    run.data.measured = samples;
    run.data.output_hash = Some("00f1e2d3c4b5a697".to_owned());
    run.data.placement = Some(Placement {
        runtime_version: Some("1.31.1".to_owned()),
        build: None,
        nodes: BTreeMap::from([("CPUExecutionProvider".to_owned(), 122)]),
        input_pool_bytes: 4_816_896,
        ..Placement::default()
    });
    let durations: Vec<f64> = run.held().durations().collect();
    run.shape = Distribution::of(&durations, run.iterations);
    let typical = median(&durations).unwrap_or_default();
    let vary = |random: &mut Xoshiro256PlusPlus, value: f64, share: f64| value * (share * random.normal()).exp();
    let rate = 1e9 / (typical * 1.004);
    let values = [
        (metric::LATENCY, typical),
        (metric::THROUGHPUT, rate),
        (metric::ITEMS, rate * batch as f64),
        (metric::SPAWN, vary(random, 9.1e6, 0.05)),
        (metric::LOAD, vary(random, 182.0e6, 0.03)),
        (metric::FIRST_INFERENCE, vary(random, typical * 3.1, 0.08)),
        (metric::TIME_TO_STEADY, vary(random, 512.0e6, 0.1)),
        (metric::PEAK_RSS, vary(random, behaviour.memory * 1_048_576.0, 0.004).round()),
        (metric::CPU_TIME, vary(random, typical * 3.8, 0.01)),
        (metric::CPU_UTILISATION, vary(random, 3.8, 0.004)),
        (metric::CLOCK_OVERHEAD, 20.0),
        (metric::CLOCK_RESOLUTION, 10.0),
        (metric::WARMUP_SAMPLES, 48.0),
        (metric::INPUT_POOL, 4_816_896.0),
    ];
    run.data.metrics = values.into_iter().map(|(metric, value)| (metric.name.to_owned(), value)).collect();
    run
}
