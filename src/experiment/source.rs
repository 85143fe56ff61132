//! Where a model comes from that is no file of the user's.

use onnx::zoo::Network;
use serde::{Deserialize, Serialize};

/// A source of a model file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// perfrun makes it.
    Zoo {
        /// Which network.
        network: Network,
        /// Classes of its classifier; `None`: as published.
        classes: Option<u32>,
    },
    /// It is fetched, and must have the check sum of the model.
    Url(String),
}

/// What stands before the name of a network: `zoo:resnet50`.
pub(crate) const ZOO: &str = "zoo:";
