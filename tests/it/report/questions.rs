//! Records of specifications that ask a question: which cell to choose, by what, and in which tables.

use std::collections::BTreeMap;

use experiment::{Axis, Bound, Choose, Selector, TableSpec};
use worker::backend::FailureKind;

use super::fixture::{Axes, Behaviour, Fixture, experiment, usual};

impl Fixture {
    /// A question with bounds, and tables: one variant is best, one not told apart, one misses a bound, one has too few
    /// samples for its percentile, and memory is given for speed.
    pub(super) fn question() -> Self {
        let axes = Axes {
            models: &["resnet50", "mobilenetv2"],
            batches: &[1, 16],
            variants: &["fp32", "int8", "int8-arena", "fp16", "tuned"],
            devices: &["cpu", "cuda:0"],
            runs: 10,
        };
        let with = |median: f64, samples: usize, memory: f64| Behaviour { memory, ..usual(median, samples) };
        let mut fixture = Fixture::new("question", &axes, |path| {
            let (model, rest) = path.split_once('/').unwrap_or_default();
            let (input, rest) = rest.split_once('/').unwrap_or_default();
            let scale = if model == "resnet50" { 1.0 } else { 0.2 } * if input == "b1" { 1.0 } else { 14.0 };
            let samples = if input == "b1" { 300 } else { 40 };
            match rest.split('/').next().unwrap_or_default() {
                "fp32" => with(18.4e6 * scale, samples, 214.0),
                "int8" => with(7.9e6 * scale, samples, 160.0),
                "int8-arena" => with(7.95e6 * scale, samples, 121.0),
                "fp16" => with(27.9e6 * scale, samples, 308.0),
                _ => with(6.1e6 * scale, 40, 402.0),
            }
        });
        fixture.skip_device("cuda:0");
        fixture.fail_rehearsal("mobilenetv2/b16/fp16/cpu", FailureKind::Operator, "no kernel for Conv(22)", None);
        let bound = |metric: &str, max: f64, batch: &str| Bound {
            metric: metric.parse().expect("a metric"),
            min: None,
            max: Some(max),
            of: Selector(BTreeMap::from([("batch".to_owned(), vec![batch.to_owned()])])),
        };
        fixture.manifest.experiment.choose = Some(Choose {
            best: "latency".parse().expect("a metric"),
            then: vec!["peak_rss".parse().expect("a metric")],
            within: vec![bound("latency.p95", 20e6, "1"), bound("peak_rss", 350.0 * 1_048_576.0, "16")],
        });
        let table = |name: &str, rows: &[Axis], columns: &[Axis], show: &[&str]| TableSpec {
            name: name.to_owned(),
            rows: rows.to_vec(),
            columns: columns.to_vec(),
            show: show.iter().map(|metric| metric.parse().expect("a metric")).collect(),
        };
        fixture.manifest.experiment.tables = vec![
            table("t2", &[Axis::Models, Axis::Variants], &[Axis::Devices, Axis::Inputs], &["latency", "speedup"]),
            table("tails", &[Axis::Variants], &[Axis::Models, Axis::Inputs, Axis::Devices], &["latency.p95"]),
        ];
        fixture.summarized()
    }

    /// Batch sizes and variants are compared at once, and compete for the rate within a bound on latency.
    pub(super) fn batches() -> Self {
        let axes = Axes {
            models: &["resnet50"],
            batches: &[1, 4, 16],
            variants: &["fp32", "int8"],
            devices: &["cpu"],
            runs: 10,
        };
        let mut experiment = experiment("batches", &axes);
        let key = |key: &str, name: &str| (key.to_owned(), vec![name.to_owned()]);
        experiment.compare.baseline = Some(Selector(BTreeMap::from([key("batch", "1"), key("variant", "fp32")])));
        let bound = Bound {
            metric: "latency".parse().expect("a metric"),
            min: None,
            max: Some(120e6),
            of: Selector(BTreeMap::new()),
        };
        experiment.choose =
            Some(Choose { best: "items".parse().expect("a metric"), then: Vec::new(), within: vec![bound] });
        let fixture = Fixture::of(experiment, |path| {
            let precision = if path.contains("int8") { 0.45 } else { 1.0 };
            let batch = match path.split('/').nth(1) {
                Some("b1") => 18.4e6,
                Some("b4") => 68.0e6,
                _ => 268.0e6,
            };
            usual(batch * precision, 80)
        });
        fixture.summarized()
    }
}
