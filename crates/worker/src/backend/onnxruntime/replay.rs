//! Whether the work of an inference is recorded once and replayed (CUDA graphs; method 1.5).

use ort::session::RunOptions;

use super::failures::run_failure;
use super::request::OnnxruntimeRequest;
use crate::backend::{Failure, FailureKind};
use experiment::{Boundary, Provider};

/// ONNX Runtime's entry of a run that identifies recorded work.
const GRAPH_ID: &str = "gpu_graph_id";

/// The id of runs that are neither recorded nor replayed.
const NO_GRAPH: &str = "-1";

/// Calls until an input set is replayed: one as usual, one that is recorded, and one that is replayed.
pub(super) const CALLS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replay {
    /// The provider was not asked to.
    NotAsked,
    /// It was, and does so for every input set.
    Recorded,
    /// It was, and must not: what it is given does not stay where it is.
    Never,
}

/// What is known of the outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// They were allocated beforehand, and stay where they are.
    Allocated,
    /// This run looks for their shapes.
    LookedFor,
    /// Their shapes vary.
    Vary,
}

impl Replay {
    /// Whether calls are recorded: where the variant asks for it, and inputs and outputs stay where they are.
    ///
    /// # Errors
    ///
    /// Where it asks for it and tensors do not stay where they are.
    pub(super) fn of(settings: &OnnxruntimeRequest, outputs: Outputs) -> Result<Self, Failure> {
        if !Provider::asks_for_graph(&settings.device, &settings.provider_options) {
            return Ok(Replay::NotAsked);
        }
        if settings.boundary == Boundary::Host {
            let text = "no CUDA graph can be recorded with `measure.boundary: host`: inputs do not stay where they are";
            return Err(Failure::new(FailureKind::Provider, text));
        }
        match outputs {
            Outputs::Allocated => Ok(Replay::Recorded),
            Outputs::LookedFor => Ok(Replay::Never),
            Outputs::Vary => {
                let text = "no CUDA graph can be recorded: the shapes of the outputs vary";
                Err(Failure::new(FailureKind::Shape, text))
            }
        }
    }

    /// Options of the runs of one input set.
    pub(super) fn options(self, set: usize) -> Result<RunOptions, Failure> {
        let id = match self {
            Replay::NotAsked => None,
            // 0 is what runs have that say nothing.
            Replay::Recorded => Some((set + 1).to_string()),
            Replay::Never => Some(NO_GRAPH.to_owned()),
        };
        let mut options = RunOptions::new().map_err(|error| run_failure(&error))?;
        if let Some(id) = id {
            options.set(GRAPH_ID, id).map_err(|error| run_failure(&error))?;
        }
        Ok(options)
    }

    /// What calls do whose inputs or outputs are not those that were recorded.
    pub(super) fn without(self) -> Self {
        if self == Replay::NotAsked { self } else { Replay::Never }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Device;
    use std::path::Path;

    fn settings(provider: &str, option: &str, value: &str) -> OnnxruntimeRequest {
        let device = Device::of(provider);
        let provider_options = [(option.to_owned(), value.to_owned())].into();
        let on_cpu = OnnxruntimeRequest::on_cpu(Path::new("library"), Path::new("model"), 1);
        OnnxruntimeRequest { device, provider_options, ..on_cpu }
    }

    #[test]
    fn only_who_asks_for_a_graph_gets_one() {
        let replay = |provider, option, value| Replay::of(&settings(provider, option, value), Outputs::Allocated);
        assert_eq!(replay("cuda", "enable_cuda_graph", "1"), Ok(Replay::Recorded));
        assert_eq!(replay("cuda", "enable_cuda_graph", "True"), Ok(Replay::Recorded));
        assert_eq!(replay("cuda", "enable_cuda_graph", "0"), Ok(Replay::NotAsked));
        assert_eq!(replay("cpu", "enable_cuda_graph", "1"), Ok(Replay::NotAsked));
    }

    #[test]
    fn what_does_not_stay_where_it_is_is_not_recorded() {
        let asked = settings("cuda", "enable_cuda_graph", "1");
        assert_eq!(Replay::of(&asked, Outputs::LookedFor), Ok(Replay::Never));
        let failure = Replay::of(&asked, Outputs::Vary).expect_err("there is nothing to record");
        assert_eq!(failure.kind, FailureKind::Shape);
        let host = OnnxruntimeRequest { boundary: Boundary::Host, ..asked };
        assert!(Replay::of(&host, Outputs::Allocated).is_err());
        assert_eq!((Replay::Recorded.without(), Replay::NotAsked.without()), (Replay::Never, Replay::NotAsked));
    }
}
