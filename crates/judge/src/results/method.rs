//! How a record was measured: the settings that pages put into sentences.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::stored::Estimated;
use base::metric::MetricReference;
use base::quantity::Nanos;
use experiment::{
    Aa, Axis, Backend, Boundary, Cache, Completion, Design, Device, DeviceIndex, Measure, Provider, Stop, Warmup,
};
use plan::CellId;
use record::{Disturbed, Manifest, Trial};
use statistics::Verdict;

/// How a record was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Method {
    /// What executed the models: `onnxruntime` or `mock`; `commands` where these were run instead of models.
    pub backend: String,
    /// In which order, and how many at a time, the cells of a group ran.
    pub design: Design,
    /// Length of a slice, in nanoseconds, in the designs that have slices.
    pub slice_time: Nanos,
    /// What the caches held when a sample began.
    pub cache: Cache,
    /// Where tensors were when the clock started and ended.
    pub boundary: Boundary,
    /// Distinct input sets used in turn.
    pub inputs: u32,
    /// How a run warmed up; unknown of results of format 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Warmup>,
    /// When a run stopped sampling; unknown of results of format 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Blocks after which comparisons were looked at; one number where that is at the end alone.
    #[serde(rename = "looks")]
    pub interim_analyses: Vec<u32>,
    /// The most runs of a cell that were asked for.
    pub runs: u32,
    /// Session entries that every variant without its own got, because workers stayed resident.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub session: BTreeMap<String, String>,
    /// How the end of a device's work was waited for, by its name; of devices other than the CPU.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub completion: BTreeMap<String, Completion>,
    /// Devices that were tried together, in order, by each of the records that were merged: the cells of the first set that
    /// did not disturb each other ran at the same time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<Together>,
    /// `compare.aa: off`: there was no A/A comparison.
    #[serde(skip_serializing_if = "crate::stored::is_false")]
    pub without_control: bool,
    /// Selectors of `matrix` that matched nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_selectors: Vec<String>,
}

/// A set of devices that was tried: some cells alone, and while every other device was at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Together {
    /// Their labels.
    pub devices: Vec<String>,
    /// Whether no cell was disturbed, so that their cells ran at the same time.
    pub holds: bool,
    /// What was tried, by cell and metric.
    pub tried: Vec<ConcurrentCell>,
    /// Why there are no more blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A cell run at the same time as cells of other devices, against itself alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "BesideOthers")]
pub struct ConcurrentCell {
    /// Id of the cell.
    pub cell: CellId,
    /// As goals name it.
    pub metric: MetricReference,
    /// Its value while the others run over its value alone.
    pub ratio: Estimated,
    #[schemars(with = "String", description = format!("{}.", Verdict::listed()))]
    pub verdict: Verdict,
}

impl Together {
    /// That of a record.
    pub fn of(manifest: &Manifest, trial: &Trial) -> Self {
        let label = |device: &DeviceIndex| manifest.experiment.devices.get(device.index()).map(Device::label);
        let tried = |known: &Disturbed| {
            let cell = manifest.plan.cells.get(known.cell as usize)?.id;
            let Disturbed { metric, ratio, verdict, .. } = *known;
            Some(ConcurrentCell { cell, metric, ratio: Estimated::of(ratio), verdict })
        };
        Together {
            devices: trial.devices.iter().filter_map(label).collect(),
            holds: trial.holds,
            tried: trial.cells.iter().filter_map(tried).collect(),
            problem: trial.problem.clone(),
        }
    }
}

fn together(manifest: &Manifest) -> Vec<Together> {
    let trials = manifest.findings.side_by_side.iter().flat_map(|found| &found.trials);
    trials.map(|trial| Together::of(manifest, trial)).collect()
}

impl Default for Method {
    fn default() -> Self {
        let measure = Measure::default();
        Method {
            backend: "onnxruntime".to_owned(),
            design: measure.design,
            slice_time: measure.slice_time,
            cache: measure.cache,
            boundary: measure.boundary,
            inputs: measure.inputs,
            warmup: None,
            stop: None,
            interim_analyses: Vec::new(),
            runs: 0,
            session: BTreeMap::new(),
            completion: BTreeMap::new(),
            together: Vec::new(),
            without_control: false,
            idle_selectors: Vec::new(),
        }
    }
}

impl Method {
    /// That of a record.
    pub(super) fn of(manifest: &Manifest) -> Self {
        let (experiment, plan) = (&manifest.experiment, &manifest.plan);
        let Measure { warmup, stop, inputs, design, slice_time, cache, boundary, .. } = experiment.measure;
        let is_run = |index: usize| plan.runnable().any(|(_, cell)| cell.device().index() == index);
        let devices =
            experiment.devices.iter().enumerate().filter(|(index, device)| !device.is_cpu() && is_run(*index));
        let waits = |(_, device)| {
            let completion = Provider::of(device).map_or(Completion::ReadBack, |provider| provider.completion);
            (device.label(), completion)
        };
        Method {
            backend: experiment.backend.name().to_owned(),
            design,
            slice_time,
            cache,
            boundary,
            inputs,
            warmup: Some(warmup),
            stop: Some(stop),
            interim_analyses: experiment.interim_analyses().blocks().collect(),
            runs: experiment.runs.max,
            session: manifest.imposed_session.clone(),
            completion: devices.map(waits).collect(),
            together: together(manifest),
            without_control: experiment.compare.aa == Aa::Off,
            idle_selectors: plan.product.idle_selectors.clone(),
        }
    }

    /// Whether cells of different devices ran at the same time.
    pub fn is_parallel(&self) -> bool {
        self.together.iter().any(|trial| trial.holds)
    }

    /// Whether runs go by need.
    pub fn is_by_need(&self) -> bool {
        self.interim_analyses.len() > 1
    }

    /// Whether commands are run instead of models.
    pub fn runs_commands(&self) -> bool {
        self.backend == Backend::COMMANDS
    }

    /// What a page calls an axis.
    pub fn word(&self, axis: Axis) -> &'static str {
        // Of the axes only that of models is always named.
        if self.runs_commands() && axis.is_always_told() { "command" } else { axis.singular() }
    }

    /// Whether models are files.
    pub fn reads_models(&self) -> bool {
        self.backend == Backend::Onnxruntime.name()
    }
}
