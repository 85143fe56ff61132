//! How a record was measured: the settings that pages put into sentences.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{Aa, Axis, Backend, Boundary, Cache, Completion, Design, Measure, Provider, Stop, Warmup};
use crate::record::Manifest;
use crate::vocabulary::quantity::Nanos;

/// How a record was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Method {
    /// What executed the models: `onnxruntime` or `mock`; `commands` where these were run in place of models.
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
    /// `compare.aa: off`: identical arms were not measured.
    #[serde(skip_serializing_if = "super::is_false")]
    pub without_control: bool,
    /// Selectors of `matrix` that matched nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_selectors: Vec<String>,
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
        let is_run = |index: usize| plan.runnable().any(|(_, cell)| cell.device().place() == index);
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
            without_control: experiment.compare.aa == Aa::Off,
            idle_selectors: plan.product.idle_selectors.clone(),
        }
    }

    /// Whether runs go by need.
    pub(crate) fn is_by_need(&self) -> bool {
        self.interim_analyses.len() > 1
    }

    /// Whether commands take the place of models.
    pub(crate) fn runs_commands(&self) -> bool {
        self.backend == Backend::COMMANDS
    }

    /// What a page calls an axis.
    pub(crate) fn word(&self, axis: Axis) -> &'static str {
        // Of the axes only that of models is always told.
        if self.runs_commands() && axis.is_always_told() { "command" } else { axis.singular() }
    }

    /// Whether models are files.
    pub(crate) fn reads_models(&self) -> bool {
        self.backend == Backend::Onnxruntime.name()
    }
}
