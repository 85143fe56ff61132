//! The request to a worker for a run of the mock backend.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backend::CellFacts;
use experiment::{Mock, MockFailure, MockVariant, Provider};

/// A run of the mock backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MockRequest {
    /// The script.
    pub script: Mock,
    /// Factor on the script's median.
    pub scale: f64,
    /// Relative standard deviation by which outputs differ from other variants'.
    #[serde(default)]
    pub differ: f64,
    /// Share of the time that a node on the CPU takes, on another device.
    #[serde(default)]
    pub on_cpu: Option<f64>,
    /// Share of the time that the clock of another device shows.
    #[serde(default)]
    pub on_device: Option<f64>,
    /// It builds an engine while it loads.
    #[serde(default)]
    pub builds_engine: bool,
    /// The largest batch that fits.
    #[serde(default)]
    pub fits: Option<u64>,
    /// Items of one inference; 0 where unknown.
    #[serde(default)]
    pub batch: u64,
    /// Positions that the cache of a language model holds before a call.
    #[serde(default)]
    pub context: u64,
    /// Share of the time that each operator takes, for a profile.
    #[serde(default)]
    pub operators: Vec<(String, f64)>,
    /// A failure to play in this run.
    pub fail: Option<MockFailure>,
    /// Seed of this run.
    pub seed: u64,
}

impl MockRequest {
    /// A script of one run, as it stands.
    pub fn alone(script: Mock) -> Self {
        MockRequest { script, scale: 1.0, seed: 1, ..MockRequest::default() }
    }

    /// The same run while cells of other devices run.
    pub(in crate::backend) fn alongside_other_devices(&mut self) {
        self.scale *= 1.0 + self.script.beside.0;
    }

    /// The script of one run.
    pub(super) fn of_cell(script: &Mock, facts: &CellFacts<'_>) -> Self {
        let (of_variant, none) = (&facts.variant.mock, MockVariant::default());
        let of_runtime = facts.runtime.and_then(|runtime| script.runtimes.get(&runtime.name)).unwrap_or(&none);
        let scale = |mock: &MockVariant| mock.scale.map_or(1.0, |scale| scale.0);
        let context = facts.call.map_or(0, |call| call.context);
        let jump = of_runtime.jump.or(of_variant.jump).filter(|jump| facts.call.is_some() && context >= jump.from);
        let operators =
            [of_runtime, of_variant].into_iter().map(|mock| &mock.operators).find(|operators| !operators.is_empty());
        // The rehearsal plays only failures that every run has, as a real model would.
        let plays = |fail: &MockFailure| fail.runs.is_empty() || facts.run.is_some_and(|run| fail.runs.contains(&run));
        MockRequest {
            script: Mock { runtimes: BTreeMap::new(), ..script.clone() },
            scale: scale(of_variant)
                * scale(of_runtime)
                * (1.0 + facts.variant.slowdown.0)
                * jump.map_or(1.0, |jump| 1.0 + jump.by.0),
            differ: of_runtime.differ.or(of_variant.differ).map_or(0.0, |differ| differ.0),
            on_cpu: of_runtime.on_cpu.or(of_variant.on_cpu).filter(|_| !facts.device.is_cpu()).map(|share| share.0),
            on_device: of_runtime
                .on_device
                .or(of_variant.on_device)
                .filter(|_| !facts.device.is_cpu())
                .map(|share| share.0),
            builds_engine: Provider::of(facts.device).is_some_and(|provider| provider.engine_cache.is_some())
                && (facts.run.is_none() || facts.engines.is_none()),
            fits: of_runtime.fits.or(of_variant.fits).or(script.fits),
            batch: facts.batch.unwrap_or(0),
            context,
            operators: operators.into_iter().flatten().map(|(name, share)| (name.clone(), share.0)).collect(),
            fail: of_runtime.fail.clone().or(of_variant.fail.clone()).filter(plays),
            seed: facts.seed,
        }
    }
}
