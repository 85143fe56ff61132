//! How long an inference of each cell will take, as far as it is known before anything is measured (method 4.3): by an
//! earlier report of this machine, else by what it costs and what the machine can do.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::earlier::reports_of_this_machine;
use crate::run::Prepared;
use base::machine::host;
use base::machine::host::peak::nominal_peak_of_core;
use base::machine::kernel::Kernel;
use base::metric::{self, Metric};
use base::quantity::Nanos;
use experiment::{Device, Experiment, InputIndex, ModelIndex};
use judge::results::{self, Results};
use onnx::ModelHeader;
use onnx::cost::Arithmetic;
use plan::{Cell, CellForecast, CellId, Source};
use record::ProjectRoot;
use worker::backend;

/// Of larger plans nothing is expected: planning stays fast.
const MOST_CELLS: usize = 10_000;

/// No more inferences than these are costed.
const MOST_COSTED: usize = 64;

/// The share of a large product's speed that networks achieve: 0.2 to 0.7 of five networks.
const EFFICIENCY: f64 = 0.5;

/// The share of the data sheet's speed that a large product achieves: clocks sink under wide vectors.
const NOMINAL: f64 = 0.8;

/// What nodes read and write in addition, in bytes per second: more than memory gives, for much of it is in caches.
const BYTES_PER_S: f64 = 25e9;

/// Speed of session creation, optimisation of the graph included, in bytes of the model per second.
const SESSION_CREATION_BYTES_PER_S: f64 = 0.25e9;

/// What is expected of each cell, by its index; of nothing where no run takes time.
pub(super) fn forecasts(
    experiment: &Experiment,
    prepared: &Prepared,
    project: &ProjectRoot,
) -> Vec<Option<CellForecast>> {
    let cells = &prepared.plan.cells;
    let here = || (cells.len() <= MOST_CELLS).then(|| Here::of(experiment, prepared, project));
    let here = backend::kind_of(&experiment.backend).environment().on_machine(here).flatten();
    here.map(|here| here.forecasts()).unwrap_or_default()
}

/// As [`forecasts`] by the costs of models alone, for a slow and a fast machine and some between, so that it is the same on
/// every host.
pub(super) fn forecasts_of_any_machine(experiment: &Experiment, prepared: &Prepared) -> Vec<Vec<Option<CellForecast>>> {
    let any = || (prepared.plan.cells.len() <= MOST_CELLS).then(|| Here::anywhere(experiment, prepared));
    match backend::kind_of(&experiment.backend).environment().on_machine(any).flatten() {
        Some(mut any) => any.at_peaks(&ANY_PEAKS),
        None => vec![Vec::new()],
    }
}

/// What is known here.
struct Here<'a> {
    experiment: &'a Experiment,
    prepared: &'a Prepared,
    reports: Vec<Results>,
    /// Cells of all reports by id, those of the newest report first.
    measured: HashMap<CellId, Vec<(usize, usize)>>,
    default_threads: u32,
    /// Operations per second of one thread by the data sheet.
    nominal_peak: Option<f64>,
}

/// What an inference costs.
#[derive(Clone, Copy)]
struct Work {
    macs: u64,
    bytes_moved: u64,
}

/// Operations per second of one thread, by the data sheet, from AVX2 at 2 GHz to two units of AVX-512 at 4 GHz, and threads.
const ANY_PEAKS: [f64; 3] = [64e9, 128e9, 256e9];
const ANY_THREADS: u32 = 4;

impl<'a> Here<'a> {
    /// Of each cell, by its index.
    fn forecasts(&self) -> Vec<Option<CellForecast>> {
        let cells = &self.prepared.plan.cells;
        let known: Vec<Option<CellForecast>> = cells.iter().map(|cell| self.by_report(cell)).collect();
        let costs = self.costs(|index| known[index].is_none());
        let forecast =
            |(index, known): (usize, &Option<CellForecast>)| known.or_else(|| self.by_costs(&cells[index], &costs));
        known.iter().enumerate().map(forecast).collect()
    }

    /// Of each cell by its costs alone, where a thread of the machine is so fast, and so on.
    fn at_peaks(&mut self, peaks: &[f64]) -> Vec<Vec<Option<CellForecast>>> {
        let costs = self.costs(|_| true);
        let cells = &self.prepared.plan.cells;
        let mut at_peak = |peak: &f64| {
            self.nominal_peak = Some(*peak);
            cells.iter().map(|cell| self.by_costs(cell, &costs)).collect()
        };
        peaks.iter().map(&mut at_peak).collect()
    }

    /// What the inferences of cells that run on the CPU cost.
    fn costs(&self, is_open: impl Fn(usize) -> bool) -> HashMap<(ModelIndex, InputIndex), Work> {
        let plan = &self.prepared.plan;
        let is_run = plan.run_somewhere();
        let asked = |(index, cell): (usize, &Cell)| {
            let is_asked = is_open(index) && is_run[index] && self.is_on_cpu(cell);
            is_asked.then_some((cell.model(), cell.input()))
        };
        costs(self.prepared, plan.cells.iter().enumerate().filter_map(asked).collect())
    }

    /// What is the same on every host.
    fn anywhere(experiment: &'a Experiment, prepared: &'a Prepared) -> Self {
        let (reports, measured, nominal_peak) = (Vec::new(), HashMap::new(), None);
        Here { experiment, prepared, reports, measured, default_threads: ANY_THREADS, nominal_peak }
    }

    fn of(experiment: &'a Experiment, prepared: &'a Prepared, project: &ProjectRoot) -> Self {
        let reports = reports_of_this_machine(project, &experiment.name);
        let mut measured: HashMap<CellId, Vec<(usize, usize)>> = HashMap::new();
        for (number, report) in reports.iter().enumerate() {
            for (index, cell) in report.cells.iter().enumerate().filter(|(_, cell)| !cell.metrics.is_empty()) {
                measured.entry(cell.id).or_default().push((number, index));
            }
        }
        let default_threads = host::describe().default_threads();
        let nominal_peak = nominal_peak_of_core(&Kernel::here());
        Here { experiment, prepared, reports, measured, default_threads, nominal_peak }
    }

    fn threads(&self, cell: &Cell) -> u32 {
        self.experiment.threads_of(cell.variant(), self.default_threads).max(1)
    }

    fn header(&self, cell: &Cell) -> Option<&ModelHeader> {
        self.prepared.models.get(cell.model().index())?.header.as_ref()
    }

    fn is_on_cpu(&self, cell: &Cell) -> bool {
        self.experiment.devices.get(cell.device().index()).is_some_and(|device| device.provider == "cpu")
    }

    /// What the newest report says that has this cell, with as many threads and a model of the same size.
    fn by_report(&self, cell: &Cell) -> Option<CellForecast> {
        let bytes = self.header(cell).and_then(ModelHeader::total_bytes);
        let name = self.prepared.plan.name(cell.model())?;
        let found = self.measured.get(&cell.id)?.iter().find_map(|(report, index)| {
            let report = &self.reports[*report];
            let there = &report.cells[*index];
            let is_same = there.threads == self.threads(cell) && bytes_of(report, name) == bytes;
            is_same.then_some(there)
        })?;
        measured(found)
    }

    /// Arithmetic, and then what is moved.
    fn by_costs(&self, cell: &Cell, costs: &HashMap<(ModelIndex, InputIndex), Work>) -> Option<CellForecast> {
        if !self.is_on_cpu(cell) {
            return None;
        }
        let work = costs.get(&(cell.model(), cell.input()))?;
        let peak = self.peak(self.threads(cell))?;
        let bytes = self.header(cell).and_then(ModelHeader::total_bytes)?;
        let seconds = 2.0 * work.macs as f64 / (EFFICIENCY * peak) + work.bytes_moved as f64 / BYTES_PER_S;
        let sample = nanos(seconds * 1e9);
        let session_creation = nanos(bytes as f64 / SESSION_CREATION_BYTES_PER_S * 1e9);
        let start = Nanos(session_creation.0.saturating_add(sample.0));
        Some(CellForecast { start, sample, noise: CellForecast::TYPICAL_NOISE, source: Source::Costs })
    }

    /// Operations per second of so many threads, seen here, or by the data sheet.
    fn peak(&self, threads: u32) -> Option<f64> {
        let seen = self.reports.iter().find_map(|report| {
            let peaks = report.provenance.context.get("peaks")?.as_array()?;
            // Earlier reports have no other device and no other numbers, and do not say so.
            let is = |peak: &Value, field: &str, value: &str| peak.get(field).is_none_or(|known| known == value);
            let of_cpu =
                |peak: &&Value| is(peak, "device", Device::CPU) && is(peak, "arithmetic", Arithmetic::Float32.name());
            let peaks = peaks.iter().filter(of_cpu).filter_map(|peak| {
                Some((peak["threads"].as_u64().filter(|threads| *threads > 0)?, peak["operations_per_s"].as_f64()?))
            });
            // Of another number of threads, each does as much.
            let (of_threads, operations) =
                peaks.min_by_key(|(of_threads, _)| of_threads.abs_diff(u64::from(threads)))?;
            Some(operations * f64::from(threads) / of_threads as f64)
        });
        let peak = seen.or_else(|| Some(NOMINAL * self.nominal_peak? * f64::from(threads)));
        peak.filter(|peak| peak.is_finite() && *peak > 0.0)
    }
}

/// Bytes of a model of a report.
fn bytes_of(report: &Results, model: &str) -> Option<u64> {
    let models = report.provenance.subject.get("models")?.as_array()?;
    models.iter().find(|known| known["name"] == model)?["bytes"].as_u64()
}

fn measured(cell: &results::Cell) -> Option<CellForecast> {
    let estimate = |metric: Metric| cell.metrics.get(metric.name).map(|estimate| estimate.value);
    let seen = |metric: Metric| {
        let values = cell.environment.get(metric.name)?;
        values.get(values.len() / 2).copied()
    };
    let inference = estimate(metric::LATENCY).filter(|latency| *latency > 0.0)?;
    let start = [seen(metric::SPAWN), estimate(metric::LOAD), estimate(metric::FIRST_INFERENCE)];
    let samples = cell.runs.get("samples").map(|samples| samples.iter().flatten().copied().collect::<Vec<f64>>());
    let samples = samples.and_then(|samples| statistics::median(&samples));
    let noise =
        seen(metric::PRECISION).zip(samples).map(|(precision, samples)| CellForecast::noise_of(precision, samples));
    Some(CellForecast {
        start: nanos(start.into_iter().flatten().sum()),
        sample: nanos(inference * f64::from(cell.iterations.max(1))),
        noise: noise.filter(|noise| noise.is_finite()).unwrap_or(CellForecast::TYPICAL_NOISE),
        source: Source::Report,
    })
}

/// What each of these inferences costs; nothing for those whose cost is not known.
fn costs(
    prepared: &Prepared,
    inferences: BTreeSet<(ModelIndex, InputIndex)>,
) -> HashMap<(ModelIndex, InputIndex), Work> {
    let mut costs = HashMap::new();
    let mut loaded = None;
    for (model, input) in inferences.into_iter().take(MOST_COSTED) {
        if loaded.as_ref().is_none_or(|(known, _)| *known != model) {
            loaded = Some((model, read_graph(prepared, model)));
        }
        let Some((_, Some(graph))) = &loaded else { continue };
        let Some(shapes) = prepared.models[model.index()].shapes.get(&input) else { continue };
        let cost = onnx::cost::cost(graph, &onnx::infer::infer(graph, &shapes.tensors));
        if let Some(macs) = cost.macs {
            costs.insert((model, input), Work { macs, bytes_moved: cost.bytes_moved.unwrap_or(0) });
        }
    }
    costs
}

fn read_graph(prepared: &Prepared, model: ModelIndex) -> Option<onnx::proto::ModelProto> {
    onnx::load_graph(prepared.models.get(model.index())?.path()?).ok()
}

/// Whole nanoseconds; what is no time is none.
fn nanos(value: f64) -> Nanos {
    Nanos(value.max(0.0) as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::commands::earlier::tests::write;

    fn cell(metrics: serde_json::Value, rest: serde_json::Value) -> results::Cell {
        let mut cell = serde_json::json!({
            "id": "0123456789abcdef", "definition": "", "model": "m", "input": "b1", "variant": "fp32", "device": "cpu",
            "runtime": "-", "status": "measured", "threads": 1, "iterations": 2, "metrics": metrics,
        });
        cell.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        serde_json::from_value(cell).unwrap()
    }

    #[test]
    fn a_report_says_how_long_a_run_takes() {
        let value = |value: f64| serde_json::json!({ "value": value, "n": 3 });
        let metrics = serde_json::json!({
            "latency_ns": value(1e6), "load_ns": value(7e6), "first_inference_ns": value(3e6),
        });
        let rest = serde_json::json!({
            "runs": { "samples": [300, null, 400, 500] },
            "environment": { "spawn_ns": [1e6, 5e6, 9e6], "precision_ratio": [0.01] },
        });
        let found = measured(&cell(metrics.clone(), rest)).unwrap();
        assert_eq!((found.start, found.sample, found.source), (Nanos(15_000_000), Nanos(2_000_000), Source::Report));
        assert!((found.noise - CellForecast::noise_of(0.01, 400.0)).abs() < 1e-12);
        let little = measured(&cell(metrics, serde_json::json!({}))).unwrap();
        assert_eq!((little.start, little.noise), (Nanos(10_000_000), CellForecast::TYPICAL_NOISE));
        assert_eq!(measured(&cell(serde_json::json!({}), serde_json::json!({}))), None);
    }

    #[test]
    fn what_is_no_time_is_none() {
        assert_eq!([-1.0, f64::NAN, 2.5, f64::INFINITY].map(nanos), [0, 0, 2, u64::MAX].map(Nanos));
    }

    #[test]
    fn a_model_file_is_costed_for_every_input_and_told_by_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-cnn.onnx");
        let text = format!("models: {model}\ninputs: {{ batch: [1, 64] }}\n");
        let loaded = spec::parse("x.yaml", &text, folder.path(), &[]).unwrap();
        let prepared = crate::run::prepare(&loaded.experiment).unwrap();
        let project = ProjectRoot { root: folder.path().to_owned() };
        let mut here = Here::of(&loaded.experiment, &prepared, &project);
        let cells = &prepared.plan.cells;
        let costs = costs(&prepared, cells.iter().map(|cell| (cell.model(), cell.input())).collect());
        here.nominal_peak = None;
        assert_eq!(here.by_costs(&cells[0], &costs), None);
        here.nominal_peak = Some(100e9);
        let sample = |index: usize| here.by_costs(&cells[index], &costs).unwrap().sample.0;
        assert!(sample(0) > 0 && sample(1) > 40 * sample(0), "{} {}", sample(0), sample(1));
        assert_eq!(here.by_report(&cells[0]), None);
    }

    #[test]
    fn a_report_counts_for_a_model_of_as_many_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments/models/digits-cnn.onnx");
        let text = format!("models: {model}\ninputs: {{ batch: 1 }}\nvariants: [{{ name: fp32, threads: 1 }}]\n");
        let loaded = spec::parse("x.yaml", &text, folder.path(), &[]).unwrap();
        let prepared = crate::run::prepare(&loaded.experiment).unwrap();
        let project = ProjectRoot { root: folder.path().to_owned() };
        let cells = &prepared.plan.cells;
        let mut there = cell(serde_json::json!({ "latency_ns": { "value": 1e6, "n": 3 } }), serde_json::json!({}));
        there.id = cells[0].id;
        let bytes = std::fs::metadata(model).unwrap().len();
        for (bytes, source) in [(bytes + 1, Source::Costs), (bytes, Source::Report)] {
            let models = format!(r#"[{{ "name": "digits-cnn", "bytes": {bytes} }}]"#);
            write(&project.report("x"), "2026-01-01T00:00:00Z", true, &models, serde_json::json!([there]));
            let found = forecasts(&loaded.experiment, &prepared, &project);
            // Without a clock or a known unit the data sheet says nothing.
            let is_known = nominal_peak_of_core(&Kernel::here()).is_some() || source == Source::Report;
            assert_eq!(found[0].map(|expected| expected.source), is_known.then_some(source));
        }
    }
}
