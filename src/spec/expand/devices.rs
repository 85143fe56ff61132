//! The devices axis: `cpu`, `cuda`, `tensorrt:1`, and ONNX Runtime's own names for the same.

use std::collections::HashSet;

use crate::experiment::Device;
use crate::spec::check::Check;
use crate::spec::document::Place;
use crate::spec::form::OneOrMany;
use crate::vocabulary::nearest::suggestion;

use super::Axis;

/// A provider: perfrun's name, ONNX Runtime's, and whether there can be several devices of the kind.
struct Provider {
    name: &'static str,
    runtime_name: &'static str,
    is_indexed: bool,
}

const fn provider(name: &'static str, runtime_name: &'static str, is_indexed: bool) -> Provider {
    Provider { name, runtime_name, is_indexed }
}

/// ONNX Runtime's providers (`GetAllExecutionProviderNames`), those with a `device_id` option indexed.
const PROVIDERS: [Provider; 17] = [
    provider("cpu", "CPUExecutionProvider", false),
    provider("cuda", "CUDAExecutionProvider", true),
    provider("tensorrt", "TensorrtExecutionProvider", true),
    provider("nv_tensorrt_rtx", "NvTensorRTRTXExecutionProvider", true),
    provider("rocm", "ROCMExecutionProvider", true),
    provider("migraphx", "MIGraphXExecutionProvider", true),
    provider("directml", "DmlExecutionProvider", true),
    provider("webgpu", "WebGpuExecutionProvider", true),
    provider("cann", "CANNExecutionProvider", true),
    provider("openvino", "OpenVINOExecutionProvider", false),
    provider("dnnl", "DnnlExecutionProvider", false),
    provider("xnnpack", "XnnpackExecutionProvider", false),
    provider("coreml", "CoreMLExecutionProvider", false),
    provider("qnn", "QNNExecutionProvider", false),
    provider("nnapi", "NnapiExecutionProvider", false),
    provider("acl", "ACLExecutionProvider", false),
    provider("vitisai", "VitisAIExecutionProvider", false),
];

/// The most devices of a kind that a machine can plausibly have.
const MOST_DEVICES: u32 = 1024;

/// Reads every device.
pub(super) fn expand(form: &OneOrMany<String>, check: &mut Check<'_>) -> Axis<Device> {
    let top = Place::top("devices");
    let mut axis = Axis::default();
    let mut seen = HashSet::new();
    for (place, text) in form.places(&top) {
        match read(text) {
            Ok((device, advice)) => {
                if let Some(advice) = advice {
                    check.warn(&place, format!("`{text}` is ONNX Runtime's name"), advice);
                }
                if seen.insert(device.clone()) {
                    axis.values.push(device);
                } else {
                    check.error(&place, format!("the device `{}` stands twice", device.label()), None);
                }
            }
            Err((message, hint)) => {
                check.error(&place, message, hint);
                axis.is_complete = false;
            }
        }
    }
    axis.is_complete &= !check.is_damaged(&top);
    axis
}

/// A device, with advice where another spelling is better; or what is wrong, with a hint.
fn read(text: &str) -> Result<(Device, Option<String>), (String, Option<String>)> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    let Some(provider) = PROVIDERS.iter().find(|known| known.name == name || known.runtime_name == name) else {
        return Err((format!("unknown device `{text}`"), unknown_hint(name)));
    };
    let index = match (number, provider.is_indexed) {
        (None, true) => Some(0),
        (None, false) => None,
        (Some(_), false) => {
            return Err((format!("`{}` has no numbers", provider.name), Some(format!("write `{}`", provider.name))));
        }
        (Some(number), true) => match number.parse() {
            Ok(index) if index < MOST_DEVICES && number.bytes().all(|byte| byte.is_ascii_digit()) => Some(index),
            _ => {
                let hint = format!("write for example `{}:0`", provider.name);
                return Err((format!("`{number}` is no number of a device"), Some(hint)));
            }
        },
    };
    let device = Device { provider: provider.name.to_owned(), index };
    let advice = (name != provider.name).then(|| format!("here it is `{}`", device.label()));
    Ok((device, advice))
}

/// `None` for a provider by perfrun's name; for anything else, what could be meant.
pub(super) fn unknown_provider(name: &str) -> Option<Option<String>> {
    if PROVIDERS.iter().any(|known| known.name == name) {
        return None;
    }
    let by_runtime_name = PROVIDERS.iter().find(|known| known.runtime_name == name);
    let without_number = name.split_once(':').map_or(name, |(provider, _)| provider);
    Some(match by_runtime_name {
        Some(known) => Some(format!("here it is `{}`", known.name)),
        None if PROVIDERS.iter().any(|known| known.name == without_number) => {
            Some(format!("options are for all devices of a provider: write `{without_number}`"))
        }
        None => unknown_hint(name),
    })
}

fn unknown_hint(name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    let meant = match lower.as_str() {
        "gpu" | "nvidia" => Some("cuda"),
        "trt" => Some("tensorrt"),
        "dml" => Some("directml"),
        "amd" => Some("migraphx"),
        "onednn" | "mkldnn" => Some("dnnl"),
        _ => PROVIDERS.iter().find(|known| lower == known.name).map(|known| known.name),
    };
    match meant {
        Some(meant) => Some(format!("did you mean `{meant}`?")),
        None => suggestion(name, PROVIDERS.iter().map(|known| known.name), "device"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_by_both_names() {
        for (text, label) in [
            ("cpu", "cpu"),
            ("cuda", "cuda:0"),
            ("cuda:1", "cuda:1"),
            ("tensorrt", "tensorrt:0"),
            ("openvino", "openvino"),
            ("CUDAExecutionProvider", "cuda:0"),
        ] {
            assert_eq!(read(text).unwrap().0.label(), label);
        }
        assert!(read("cuda").unwrap().1.is_none());
        assert_eq!(read("CoreMLExecutionProvider").unwrap().1.as_deref(), Some("here it is `coreml`"));
    }

    #[test]
    fn unknown_devices_are_errors_with_the_nearest() {
        let hint = |text: &str| read(text).unwrap_err().1.unwrap();
        assert_eq!(hint("gpu"), "did you mean `cuda`?");
        assert_eq!(hint("gpu:1"), "did you mean `cuda`?");
        assert_eq!(hint("CPU"), "did you mean `cpu`?");
        assert_eq!(hint("tensor_rt"), "did you mean `tensorrt`?");
        assert_eq!(hint("cpu:0"), "write `cpu`");
        assert_eq!(hint("cuda:x"), "write for example `cuda:0`");
        assert!(read("cuda:-1").is_err() && read("cuda:+1").is_err() && read("cuda:").is_err() && read("").is_err());
    }
}
