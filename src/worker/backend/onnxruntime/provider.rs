//! Execution providers: registered by name, and what each can do here.

use std::collections::BTreeMap;

use ort::ep;

use crate::experiment::Device;
use crate::plan::{Skip, SkipKind};
use crate::worker::backend::{Failure, FailureKind};

/// Why a device cannot be measured on, if so. No other machine would help, so there is no remedy.
pub fn why_not(device: &Device) -> Option<Skip> {
    let reason = || format!("{}: this version of perfrun measures on the CPU only", device.label());
    (device.provider != "cpu").then(|| Skip { kind: SkipKind::Device, reason: reason(), remedy: None })
}

/// The provider for processors. What it does not know is an error here too: an option that does nothing is never passed
/// over. Its memory arena is on unless an option says otherwise, as for everybody who uses ONNX Runtime; `ort` turns it
/// off where it registers the provider by name.
pub(super) fn cpu(options: &BTreeMap<String, String>) -> Result<ep::CPU, Failure> {
    let mut provider = ep::CPU::default().with_arena_allocator(true);
    for (name, value) in options {
        provider = match name.as_str() {
            "use_arena" => provider.with_arena_allocator(value == "1"),
            other => {
                let text = format!("the provider `cpu` has no option `{other}`");
                return Err(Failure::new(FailureKind::Provider, text));
            }
        };
    }
    Ok(provider)
}
