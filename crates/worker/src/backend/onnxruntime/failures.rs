//! What the runtime reports, as failures.
#![expect(unsafe_code, reason = "a status is the C API's")]

use std::ffi::CStr;

use super::OnnxruntimeRequest;
use crate::backend::failure::classify;
use crate::backend::{Failure, FailureKind};

/// Turns a status into a failure and releases it.
pub(super) fn take_status(status: ort::sys::OrtStatusPtr) -> Failure {
    let api = ort::api();
    // SAFETY: the status is not null and is released exactly once, here; its message lives until then.
    let message = unsafe {
        let text = CStr::from_ptr((api.GetErrorMessage)(status.0)).to_string_lossy().into_owned();
        (api.ReleaseStatus)(status.0);
        text
    };
    Failure::new(classify(&message, FailureKind::Operator), message)
}

/// A builder error without the builder in it.
pub(super) fn strip(error: ort::Error<ort::session::builder::SessionBuilder>) -> ort::Error {
    ort::Error::new(error.message())
}

pub(super) fn provider_failure(error: ort::Error) -> Failure {
    let message = error.to_string();
    Failure::new(classify(&message, FailureKind::Provider), message)
}

pub(super) fn run_failure(error: &ort::Error) -> Failure {
    let message = error.to_string();
    Failure::new(classify(&message, FailureKind::Operator), message)
}

/// A provider that replays what it recorded writes into the memory of the call that it recorded.
pub(super) fn without_value(output: &str, settings: &OnnxruntimeRequest) -> Failure {
    let options: Vec<String> =
        settings.provider_options.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let with = if options.is_empty() { String::new() } else { format!(", with {}", options.join(", ")) };
    let device = settings.device.label();
    Failure::new(FailureKind::Output, format!("{device} returned no value for output `{output}`{with}"))
}
