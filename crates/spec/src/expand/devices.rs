//! The devices axis: `cpu`, `cuda`, `openvino:GPU`, ONNX Runtime's own names for the same, and plug-ins of the
//! specification's own.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::Axis;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{OneOrMany, Ordered};
use crate::wording::bad_name;
use base::name::is_name;
use experiment::{CUSTOM_OPS, Device, Devices, Hardware, PROVIDERS, Provider};
use reading::nearest::suggestion;

/// The most devices of a kind that a machine can plausibly have.
const MOST_DEVICES: u32 = 1024;

/// Reads `plugins`: the file of each by the name that `devices` can use.
pub(super) fn plugins(form: &Ordered<String>, folder: &Path, check: &mut Check<'_>) -> BTreeMap<String, PathBuf> {
    let mut plugins = BTreeMap::new();
    for (name, text) in &form.0 {
        let place = DocumentPath::top("plugins").key(name);
        if name == Device::CPU {
            let message = "`cpu` is part of every runtime and cannot be a plug-in".to_owned();
            check.error(&place, message, "give the plug-in another name; `devices` can use it".to_owned());
            continue;
        }
        if !is_name(name) {
            check.problems.push(bad_name(check.at_key(&place, ""), "a plug-in", name));
            continue;
        }
        match check.depth.existing(folder, text) {
            Ok(path) => drop(plugins.insert(name.clone(), path)),
            Err(problem) => check.error(&place, problem.message, problem.hint),
        }
    }
    plugins
}

/// Reads every device; `plugins` are those that the specification brings.
pub(super) fn expand(form: &OneOrMany<String>, plugins: &Ordered<String>, check: &mut Check<'_>) -> Axis<Device> {
    let top = DocumentPath::top("devices");
    let mut axis = Axis::default();
    let mut seen = HashSet::new();
    for (place, text) in form.places(&top) {
        match read(text, plugins) {
            Ok((device, advice)) => {
                if let Some(advice) = advice {
                    check.warn(&place, format!("`{text}` is ONNX Runtime's name"), advice);
                }
                if seen.insert(device.clone()) {
                    axis.values.push(device);
                } else {
                    check.error(&place, format!("the device `{}` is listed twice", device.label()), None);
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

/// A device by its name alone; or what is wrong, with a hint.
///
/// # Errors
///
/// A name that no provider has.
pub fn device(text: &str) -> Result<Device, (String, Option<String>)> {
    read(text, &Ordered::default()).map(|(device, _)| device)
}

/// A device, with advice where another spelling is better; or what is wrong, with a hint.
fn read(text: &str, plugins: &Ordered<String>) -> Result<(Device, Option<String>), (String, Option<String>)> {
    let (name, unit) = match text.split_once(':') {
        Some((name, unit)) => (name, Some(unit)),
        None => (text, None),
    };
    let known = PROVIDERS.iter().find(|known| known.name == name || known.runtime_name == name);
    let Some(provider) = known else {
        if !has(plugins, name) {
            return Err((format!("unknown device `{text}`"), unknown_hint(name, unit)));
        }
        return match unit {
            None => Ok((Device::of(name), None)),
            Some(_) => Err(no_numbers(name)),
        };
    };
    let (index, hardware) = match (provider.devices, unit) {
        (Devices::One, None) => (None, None),
        (Devices::One, Some(_)) => return Err(no_numbers(provider.name)),
        (Devices::Numbered, unit) => (Some(number(provider, unit.unwrap_or("0"))?), None),
        (Devices::Hardware, unit) => (None, Some(hardware(provider, unit.unwrap_or(Hardware::Cpu.word()))?)),
    };
    let device = Device { index, hardware, ..Device::of(provider.name) };
    let advice = (name != provider.name).then(|| format!("perfrun calls it `{}`", device.label()));
    Ok((device, advice))
}

fn has(plugins: &Ordered<String>, name: &str) -> bool {
    name != CUSTOM_OPS && plugins.0.iter().any(|(known, _)| known == name)
}

fn no_numbers(name: &str) -> (String, Option<String>) {
    (format!("`{name}` takes no number"), Some(format!("write `{name}`")))
}

fn number(provider: &Provider, text: &str) -> Result<u32, (String, Option<String>)> {
    match text.parse() {
        Ok(index) if index < MOST_DEVICES && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(index),
        _ => {
            let hint = format!("write for example `{}:0`", provider.name);
            Err((format!("`{text}` is not a device number"), Some(hint)))
        }
    }
}

fn hardware(provider: &Provider, text: &str) -> Result<Hardware, (String, Option<String>)> {
    let words = Hardware::ALL.map(Hardware::word);
    Hardware::ALL.into_iter().find(|hardware| hardware.word() == text).ok_or_else(|| {
        let upper = text.to_uppercase();
        let meant = words.contains(&upper.as_str()).then(|| format!("write `{}:{upper}`", provider.name));
        (
            format!("`{text}` is not a hardware type of `{}`", provider.name),
            meant.or_else(|| Some(format!("write one of {}", words.join(", ")))),
        )
    })
}

/// `None` for a provider by perfrun's name or of the specification's own; for anything else, what could be meant.
pub(super) fn unknown_provider(name: &str, plugins: &Ordered<String>) -> Option<Option<String>> {
    if Provider::named(name).is_some() || has(plugins, name) {
        return None;
    }
    let by_runtime_name = PROVIDERS.iter().find(|known| known.runtime_name == name);
    let without_number = name.split_once(':').map_or(name, |(provider, _)| provider);
    Some(match by_runtime_name {
        Some(known) => Some(format!("perfrun calls it `{}`", known.name)),
        None if Provider::named(without_number).is_some() => {
            Some(format!("options are for all devices of a provider: write `{without_number}`"))
        }
        None => unknown_hint(name, None),
    })
}

fn unknown_hint(name: &str, unit: Option<&str>) -> Option<String> {
    let lower = name.to_lowercase();
    let meant = match lower.as_str() {
        "gpu" | "nvidia" => Some("cuda"),
        "trt" => Some("tensorrt"),
        "dml" => Some("directml"),
        "amd" => Some("migraphx"),
        "intel" => Some("openvino"),
        "vulkan" => Some("webgpu"),
        "onednn" | "mkldnn" => Some("dnnl"),
        _ => Provider::named(&lower).map(|known| known.name),
    };
    match meant {
        Some(meant) => {
            // A number is kept where the device has one.
            let has_numbers = Provider::named(meant).is_some_and(|known| known.devices == Devices::Numbered);
            let unit = unit.filter(|unit| has_numbers && unit.parse::<u32>().is_ok());
            let unit = unit.map(|unit| format!(":{unit}")).unwrap_or_default();
            Some(format!("did you mean `{meant}{unit}`?"))
        }
        None => suggestion(name, PROVIDERS.iter().map(|known| known.name), "device")
            .or_else(|| Some("a provider of your own is a device by its name in `plugins`".to_owned())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn none() -> Ordered<String> {
        Ordered::default()
    }

    #[test]
    fn a_plug_in_of_the_specification_is_a_device() {
        let own = Ordered(vec![("mine".to_owned(), "libmine.so".to_owned())]);
        assert_eq!(read("mine", &own).unwrap().0.label(), "mine");
        assert!(read("mine:0", &own).is_err() && read("mine", &none()).is_err());
        assert_eq!(unknown_provider("mine", &own), None);
    }

    #[test]
    fn devices_are_read_by_both_names() {
        for (text, label) in [
            ("cpu", "cpu"),
            ("cuda", "cuda:0"),
            ("cuda:1", "cuda:1"),
            ("tensorrt", "tensorrt:0"),
            ("openvino", "openvino:CPU"),
            ("openvino:NPU", "openvino:NPU"),
            ("webgpu", "webgpu"),
            ("CUDAExecutionProvider", "cuda:0"),
        ] {
            assert_eq!(read(text, &none()).unwrap().0.label(), label);
        }
        assert!(read("cuda", &none()).unwrap().1.is_none());
        assert_eq!(read("CoreMLExecutionProvider", &none()).unwrap().1.as_deref(), Some("perfrun calls it `coreml`"));
    }

    #[test]
    fn unknown_devices_are_errors_with_the_nearest() {
        let hint = |text: &str| read(text, &none()).unwrap_err().1.unwrap();
        assert_eq!(hint("gpu"), "did you mean `cuda`?");
        assert_eq!(hint("gpu:1"), "did you mean `cuda:1`?");
        assert_eq!(hint("CPU"), "did you mean `cpu`?");
        assert_eq!(hint("tensor_rt"), "did you mean `tensorrt`?");
        assert_eq!(hint("cpu:0"), "write `cpu`");
        assert_eq!(hint("cuda:x"), "write for example `cuda:0`");
        assert_eq!(hint("openvino:gpu"), "write `openvino:GPU`");
        assert_eq!(hint("openvino:0"), "write one of CPU, GPU, NPU");
        assert!(["cuda:-1", "cuda:+1", "cuda:", "", "openvino:"].iter().all(|text| read(text, &none()).is_err()));
    }
}
