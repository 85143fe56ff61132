//! What a library must have: a function by which it is opened, and an age.

use experiment::OLDEST_RUNTIME;

/// The function by which ONNX Runtime is opened.
pub(super) const RUNTIME: &str = "OrtGetApiBase";

/// The function by which a plug-in provider is opened.
pub(super) const PLUGIN: &str = "CreateEpFactories";

/// The oldest version that would do, in words.
pub(super) fn oldest() -> String {
    let [major, minor] = OLDEST_RUNTIME;
    format!("{major}.{minor}")
}
