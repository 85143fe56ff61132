//! Execution providers: everything that is said of each, once.
//!
//! A new provider is a row of [`PROVIDERS`]; one that comes as a plug-in has its package in `prepare::runtime` as well.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Device, Package, Variant};
use onnx::cost::Arithmetic;

/// What is said of an execution provider.
#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    /// Its name in specifications and records.
    pub name: &'static str,
    /// ONNX Runtime's name.
    pub runtime_name: &'static str,
    /// How several devices of the kind are told apart.
    pub devices: Devices,
    /// What brings it.
    pub supply: Supply,
    /// How a caller knows that the outputs are complete.
    pub completion: Completion,
    /// Its option that records the work of an inference once and replays it.
    pub graph_option: Option<&'static str>,
    /// The same where it takes no id of what it recorded, so that whatever is fed, it replays the first.
    pub one_graph_option: Option<&'static str>,
    /// Its options that keep the engine which it builds of a model: one that turns this on, and one for the folder.
    pub engine_cache: Option<[&'static str; 2]>,
    /// Where it computes float32 models in less, by the kind of its hardware.
    pub lower_precision: &'static [LowerPrecision],
    /// What a machine must have for it, where perfrun knows.
    pub needs: Option<&'static str>,
    /// This version of perfrun was seen to measure on it rightly.
    pub is_verified: bool,
}

/// A provider that computes float32 models in a lower precision by default, so that its outputs are not those of the
/// CPU's provider.
#[derive(Debug, PartialEq, Eq)]
pub struct LowerPrecision {
    /// On which hardware; `None` where its devices are not told apart by that.
    hardware: Option<Hardware>,
    /// In which numbers; `None` where that depends on the machine.
    pub to: Option<Arithmetic>,
    /// `computes fp32 models in bf16`.
    pub does: &'static str,
    /// The option that keeps float32, with its value.
    pub option: (&'static str, &'static str),
    /// An environment variable that keeps it too, with its value.
    env: Option<(&'static str, &'static str)>,
}

impl LowerPrecision {
    /// How float32 of a variant is computed in less on a device; `None` where its settings keep float32, or may.
    pub fn of(variant: &Variant, device: &Device) -> Option<&'static LowerPrecision> {
        let lower = Provider::lower_precision(device)?;
        let (option, kept) = lower.option;
        // What else a file of options says is not read.
        let is_kept = |given: &String| given == kept || given.contains('{') || (kept == "0" && !Provider::is_on(given));
        let given = variant.provider.get(&device.provider).and_then(|options| options.get(option));
        let is_kept_by_env = lower.env.is_some_and(|(name, kept)| variant.env.get(name).is_some_and(|of| of == kept));
        (!given.is_some_and(is_kept) && !is_kept_by_env).then_some(lower)
    }

    /// The option as it stands in a variant: `` `provider: { cuda: { use_tf32: 0 } }` ``.
    pub fn written(&self, device: &Device) -> String {
        let (name, value) = self.option;
        let quote = if value.contains('{') { "'" } else { "" };
        format!("`provider: {{ {}: {{ {name}: {quote}{value}{quote} }} }}`", device.provider)
    }
}

/// How several devices of one provider are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Devices {
    One,
    /// By number, which is passed to the provider as the option `device_id`.
    Numbered,
    /// By the kind of hardware.
    Hardware,
}

/// What brings a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// It is in every runtime.
    Runtime,
    /// It is compiled into the runtime of this package.
    Package(Package),
    /// A library of its own, which a runtime registers.
    Plugin(Plugin),
    /// No package that perfrun knows; a local build may have it.
    LocalBuild,
}

/// How the outputs of an inference are known to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The call returns when they are.
    Returns,
    /// The runtime offers no way to wait for the device (`SynchronizeOutputs` returns at once), so the outputs are copied
    /// to host memory within the clock.
    ReadBack,
    /// A stream of perfrun's is waited for.
    Stream,
}

/// A kind of hardware, as OpenVINO names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Hardware {
    /// A processor.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// A processor for neural networks.
    Npu,
}

impl Hardware {
    /// Every kind.
    pub const ALL: [Hardware; 3] = [Hardware::Cpu, Hardware::Gpu, Hardware::Npu];

    /// The word in labels.
    pub fn word(self) -> &'static str {
        match self {
            Hardware::Cpu => "CPU",
            Hardware::Gpu => "GPU",
            Hardware::Npu => "NPU",
        }
    }
}

/// A provider that comes as a library of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plugin {
    /// WebGPU through Dawn, for any GPU with a Vulkan driver.
    Webgpu,
    /// OpenVINO, for hardware of Intel.
    Openvino,
}

impl Plugin {
    /// Every plug-in that can be fetched.
    pub const ALL: [Plugin; 2] = [Plugin::Webgpu, Plugin::Openvino];

    /// The device that it brings.
    pub fn device(self) -> &'static str {
        match self {
            Plugin::Webgpu => "webgpu",
            Plugin::Openvino => "openvino",
        }
    }

    /// The package in which it is released.
    pub fn package(self) -> &'static str {
        match self {
            Plugin::Webgpu => "onnxruntime-ep-webgpu",
            Plugin::Openvino => "onnxruntime-ep-openvino",
        }
    }

    /// What a machine must have for it.
    pub fn needs(self) -> &'static str {
        match self {
            Plugin::Webgpu => {
                "a GPU that /sys/class/drm lists; where a container hides it, `runtimes: [{ version: 1.27.0, package: \
                 onnxruntime-webgpu }]` finds it through its Vulkan driver"
            }
            Plugin::Openvino => "hardware of Intel",
        }
    }

    /// The version that perfrun uses, so that everyone measures the same one.
    pub fn version(self) -> &'static str {
        match self {
            Plugin::Webgpu => "0.4.0",
            Plugin::Openvino => "1.8.1",
        }
    }
}

/// Where CUDA's libraries lie that perfrun fetched: a folder next to those of the runtimes.
pub const CUDA_FOLDER: &str = "cuda-13-linux-x86_64";

const VULKAN: &str = "a GPU with a recent Vulkan driver, and the loader (`apt install libvulkan1`)";
const NVIDIA: &str = "an NVIDIA GPU with its driver, CUDA 13 and cuDNN 9";

/// ONNX Runtime's providers that can be registered through its C API, those with a `device_id` option numbered.
pub static PROVIDERS: [Provider; 13] = [
    Provider {
        completion: Completion::Returns,
        is_verified: true,
        ..row("cpu", "CPUExecutionProvider", Devices::One, Supply::Runtime)
    },
    Provider {
        completion: Completion::Stream,
        graph_option: Some("enable_cuda_graph"),
        lower_precision: &[LowerPrecision {
            hardware: None,
            to: Some(Arithmetic::Tf32),
            does: "multiplies fp32 in TF32, with 10 bits of the fraction in place of 23",
            option: ("use_tf32", "0"),
            env: Some(("NVIDIA_TF32_OVERRIDE", "0")),
        }],
        needs: Some(NVIDIA),
        is_verified: true,
        ..row("cuda", "CUDAExecutionProvider", Devices::Numbered, Supply::Package(Package::OnnxruntimeGpu))
    },
    Provider {
        completion: Completion::Stream,
        one_graph_option: Some("trt_cuda_graph_enable"),
        engine_cache: Some(["trt_engine_cache_enable", "trt_engine_cache_path"]),
        needs: Some("an NVIDIA GPU with its driver, CUDA 13, cuDNN 9 and TensorRT 10"),
        ..row("tensorrt", "TensorrtExecutionProvider", Devices::Numbered, Supply::Package(Package::OnnxruntimeGpu))
    },
    Provider {
        needs: Some(VULKAN),
        is_verified: true,
        ..row("webgpu", "WebGpuExecutionProvider", Devices::One, Supply::Plugin(Plugin::Webgpu))
    },
    Provider {
        // Its own `precision` is ignored by the plug-in, which says so in the log.
        lower_precision: &[
            LowerPrecision {
                hardware: Some(Hardware::Cpu),
                to: None,
                does: "computes fp32 models in bf16 where the processor has AMX or AVX512-BF16",
                option: ("load_config", r#"{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}"#),
                env: None,
            },
            LowerPrecision {
                hardware: Some(Hardware::Gpu),
                to: Some(Arithmetic::Float16),
                does: "computes fp32 models in fp16",
                option: ("load_config", r#"{"GPU": {"INFERENCE_PRECISION_HINT": "f32"}}"#),
                env: None,
            },
        ],
        ..row("openvino", "OpenVINOExecutionProvider", Devices::Hardware, Supply::Plugin(Plugin::Openvino))
    },
    Provider {
        one_graph_option: Some("enable_cuda_graph"),
        ..row("nv_tensorrt_rtx", "NvTensorRTRTXExecutionProvider", Devices::Numbered, Supply::LocalBuild)
    },
    row("migraphx", "MIGraphXExecutionProvider", Devices::Numbered, Supply::LocalBuild),
    row("directml", "DmlExecutionProvider", Devices::Numbered, Supply::LocalBuild),
    row("cann", "CANNExecutionProvider", Devices::Numbered, Supply::LocalBuild),
    row("xnnpack", "XnnpackExecutionProvider", Devices::One, Supply::LocalBuild),
    row("coreml", "CoreMLExecutionProvider", Devices::One, Supply::LocalBuild),
    row("qnn", "QNNExecutionProvider", Devices::One, Supply::LocalBuild),
    row("vitisai", "VitisAIExecutionProvider", Devices::One, Supply::LocalBuild),
];

/// A provider of which nothing is known: reading its outputs back is right whatever it does.
const fn row(name: &'static str, runtime_name: &'static str, devices: Devices, supply: Supply) -> Provider {
    Provider {
        name,
        runtime_name,
        devices,
        supply,
        completion: Completion::ReadBack,
        graph_option: None,
        one_graph_option: None,
        engine_cache: None,
        lower_precision: &[],
        needs: None,
        is_verified: false,
    }
}

/// The name in `plugins` of a library of custom operators, which is no device.
pub const CUSTOM_OPS: &str = "custom_ops";

impl Provider {
    /// The provider of a device; `None` where a specification brings it as a plug-in of its own.
    pub fn of(device: &Device) -> Option<&'static Provider> {
        Provider::named(&device.provider)
    }

    /// The provider of perfrun's name.
    pub fn named(name: &str) -> Option<&'static Provider> {
        PROVIDERS.iter().find(|known| known.name == name)
    }

    /// How the provider of a device computes float32 models in less, if it does.
    pub fn lower_precision(device: &Device) -> Option<&'static LowerPrecision> {
        Provider::of(device)?.lower_precision.iter().find(|lower| lower.hardware == device.hardware)
    }

    /// Whether an option is on, as ONNX Runtime reads it.
    pub fn is_on(value: &str) -> bool {
        ["1", "true", "True"].contains(&value)
    }

    /// Whether a variant replays its work from a graph on a device.
    pub fn replays(variant: &Variant, device: &Device) -> bool {
        variant.provider.get(&device.provider).is_some_and(|options| Provider::asks_for_graph(device, options))
    }

    /// Whether these options of a device's provider turn its graphs on.
    pub fn asks_for_graph(device: &Device, options: &BTreeMap<String, String>) -> bool {
        let option = Provider::of(device).and_then(|provider| provider.graph_option);
        option.and_then(|option| options.get(option)).is_some_and(|value| Provider::is_on(value))
    }

    /// The plug-in that brings it, if one does.
    pub fn plugin(&self) -> Option<Plugin> {
        match self.supply {
            Supply::Plugin(plugin) => Some(plugin),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_only_processors_need_nothing() {
        for (index, provider) in PROVIDERS.iter().enumerate() {
            let earlier = &PROVIDERS[..index];
            assert!(earlier.iter().all(|known| known.name != provider.name));
            assert!(earlier.iter().all(|known| known.runtime_name != provider.runtime_name));
            let is_cpu = provider.name == Device::CPU;
            assert_eq!(provider.supply == Supply::Runtime, is_cpu);
            assert_eq!(provider.completion == Completion::Returns, is_cpu);
        }
    }

    #[test]
    fn what_keeps_float32_is_written_as_in_a_variant() {
        let written = |device: &Device| Some(Provider::lower_precision(device)?.written(device));
        let openvino = |hardware| Device { hardware: Some(hardware), ..Device::of("openvino") };
        assert_eq!(written(&Device::of("cuda")).as_deref(), Some("`provider: { cuda: { use_tf32: 0 } }`"));
        assert_eq!(
            written(&openvino(Hardware::Cpu)).as_deref(),
            Some(r#"`provider: { openvino: { load_config: '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}' } }`"#)
        );
        assert_eq!((written(&openvino(Hardware::Npu)), written(&Device::cpu())), (None, None));
    }

    #[test]
    fn float32_is_computed_in_less_unless_a_variant_keeps_it() {
        let cuda = Device::of("cuda");
        let with = |option: &str, value: &str, env: &str| Variant {
            provider: BTreeMap::from([("cuda".to_owned(), BTreeMap::from([(option.to_owned(), value.to_owned())]))]),
            env: BTreeMap::from([("NVIDIA_TF32_OVERRIDE".to_owned(), env.to_owned())]),
            ..Variant::default()
        };
        let to = |variant: &Variant, device: &Device| LowerPrecision::of(variant, device).and_then(|lower| lower.to);
        assert_eq!(to(&Variant::default(), &cuda), Some(Arithmetic::Tf32));
        assert_eq!(to(&with("use_tf32", "1", "1"), &cuda), Some(Arithmetic::Tf32));
        assert_eq!(to(&with("use_tf32", "0", "1"), &cuda), None);
        assert_eq!(to(&with("use_tf32", "false", "1"), &cuda), None);
        assert_eq!(to(&with("prefer_nhwc", "1", "0"), &cuda), None);
        assert_eq!(to(&with("use_tf32", "0", "1"), &Device::cpu()), None);
        let openvino = Device { hardware: Some(Hardware::Gpu), ..Device::of("openvino") };
        assert_eq!(to(&Variant::default(), &openvino), Some(Arithmetic::Float16));
        let config = BTreeMap::from([("load_config".to_owned(), r#"{"GPU": {}}"#.to_owned())]);
        let provider = BTreeMap::from([("openvino".to_owned(), config)]);
        assert_eq!(to(&Variant { provider, ..Variant::default() }, &openvino), None);
    }

    #[test]
    fn a_kind_of_hardware_has_one_word() {
        for hardware in Hardware::ALL {
            assert_eq!(serde_json::to_value(hardware).ok(), Some(hardware.word().into()));
        }
    }
}
