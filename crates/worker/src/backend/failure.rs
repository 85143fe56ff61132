//! Why a run failed: a kind that can be counted and a message that can be acted on.

use serde::{Deserialize, Serialize};

/// A failed run, as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// The runtime's own message, or ours where there is none.
    pub message: String,
    /// What to do about it, where whoever reports it knows: `pip install torch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Failure {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into(), remedy: None }
    }

    /// What happened, in a line: in words of ours where the runtime's are known, else the end of what it says.
    pub fn in_short(&self) -> String {
        if let Some(meaning) = find(&self.message).and_then(|known| known.meaning) {
            return meaning.to_owned();
        }
        // ONNX Runtime puts the position in its sources before its message.
        let text = self.message.trim();
        let text = text.rsplit_once(" was false. ").map_or(text, |(_, says)| says);
        text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
    }

    /// Whether a signal ended the worker, or the program that it measures. A shell reports such a signal as an exit
    /// code.
    pub(crate) fn is_of_signal(&self) -> bool {
        const WORDS: [&str; 4] = ["killed by signal", "exit code 130", "exit code 137", "exit code 143"];
        self.kind == FailureKind::Killed
            || self.kind == FailureKind::Command && WORDS.iter().any(|words| self.message.contains(words))
    }

    /// What to look at first.
    pub fn remedy(&self) -> &str {
        const NOT_KEPT: &str = "the program does not keep to the worker protocol: docs/reference/worker-protocol.md";
        // A wrapper's output is not the worker's.
        let is_of_wrapper =
            self.message.contains("which is not the protocol") || self.message.starts_with("behind `wrap");
        let keeps_not = self.kind == FailureKind::Protocol && !is_of_wrapper;
        self.own_remedy().unwrap_or(if keeps_not { NOT_KEPT } else { self.kind.remedy() })
    }

    /// What to do about this failure in particular.
    pub fn own_remedy(&self) -> Option<&str> {
        self.remedy.as_deref().or_else(|| find(&self.message).and_then(|known| known.remedy))
    }
}

/// The kinds of failure that a record knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The model file is missing or damaged.
    Model,
    /// A shape, an element type or a value of an input does not fit.
    Shape,
    /// An operator is not supported or failed.
    Operator,
    /// The provider or the runtime library could not be used.
    Provider,
    /// Memory ran out.
    OutOfMemory,
    /// A signal ended the process.
    Killed,
    /// The deadline passed.
    Timeout,
    /// The worker did not speak the protocol.
    Protocol,
    /// A command did not end as it should.
    Command,
    /// An output is not usable.
    Output,
    /// Something that the runtime needs is not installed.
    Missing,
    /// A fault of perfrun.
    Internal,
}

impl FailureKind {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Model => "model",
            FailureKind::Shape => "shape",
            FailureKind::Operator => "operator",
            FailureKind::Provider => "provider",
            FailureKind::OutOfMemory => "out_of_memory",
            FailureKind::Killed => "killed",
            FailureKind::Timeout => "timeout",
            FailureKind::Protocol => "protocol",
            FailureKind::Command => "command",
            FailureKind::Output => "output",
            FailureKind::Missing => "missing",
            FailureKind::Internal => "internal",
        }
    }

    /// What to look at first, of any failure of the kind.
    fn remedy(self) -> &'static str {
        match self {
            FailureKind::Model => "check the file with `perfrun inspect`",
            FailureKind::Shape => {
                "the inputs do not fit the model, which `perfrun inspect` describes: give other sizes in `inputs`, or \
                 `values: zeros` or `ones`"
            }
            FailureKind::Operator => {
                "the message is the runtime's own, and `perfrun inspect` shows the model's operators"
            }
            FailureKind::Provider => "`perfrun doctor` shows what this machine offers",
            FailureKind::OutOfMemory => "try a smaller batch, or exclude this cell",
            FailureKind::Killed => "the end of the worker's log is in the record",
            FailureKind::Timeout => "raise `measure.timeout`, or exclude this cell",
            FailureKind::Protocol => "something else wrote to the worker's standard output; check `wrap` and the log",
            FailureKind::Command => {
                "run it by hand; `exit_codes` (in `ab` `--ignore-failure`) allows other codes than 0"
            }
            FailureKind::Output => "the numbers of this cell cannot be trusted; look at the model's outputs",
            FailureKind::Missing => "install what the message names, or correct its path in the specification",
            FailureKind::Internal => "please report this with the record's folder",
        }
    }
}

/// What a runtime says while it loads or runs: by a phrase of its own the kind, and where the kind does not say enough,
/// what that means and what to do.
struct Phrase {
    phrase: &'static str,
    kind: FailureKind,
    meaning: Option<&'static str>,
    remedy: Option<&'static str>,
}

const fn phrase(phrase: &'static str, kind: FailureKind) -> Phrase {
    Phrase { phrase, kind, meaning: None, remedy: None }
}

const fn device(phrase: &'static str, meaning: &'static str, remedy: &'static str) -> Phrase {
    Phrase { phrase, kind: FailureKind::Provider, meaning: Some(meaning), remedy: Some(remedy) }
}

const CUDA_LIBRARIES: &str = "`perfrun runtime install --gpu --with-cuda` fetches CUDA 13 and cuDNN 9 and loads them; \
    if they are installed already, make them visible to the loader (`ldconfig`, LD_LIBRARY_PATH)";

const WHOLE_PACKAGE: &str = "`perfrun runtime install --gpu` fetches all of ONNX Runtime's libraries";

const fn advised(phrase: &'static str, kind: FailureKind, remedy: &'static str) -> Phrase {
    Phrase { phrase, kind, meaning: None, remedy: Some(remedy) }
}

/// The runtime has no kernel for a node.
const fn unsupported(phrase: &'static str) -> Phrase {
    advised(phrase, FailureKind::Operator, UNSUPPORTED)
}

const UNSUPPORTED: &str = "another runtime version or provider may support it";

const UNREGISTERED: &str = "an operator of your own needs its library: `--set plugins.custom_ops=$PWD/FILE`, or \
                            `plugins: { custom_ops: FILE }` in a specification; one of the standard's or of ONNX Runtime's \
                            may need a newer version";

/// The first that occurs decides. Those of CUDA are the texts of `cudaGetErrorString`.
#[rustfmt::skip]
const PHRASES: &[Phrase] = &[
    device("insufficient for CUDA runtime version", "the NVIDIA driver is too old for CUDA 13", "CUDA 13 needs driver 580 or newer: `nvidia-smi` prints the one that is here"),
    device("no CUDA-capable device", "there is no NVIDIA GPU that this process may use", "see `nvidia-smi -L`, CUDA_VISIBLE_DEVICES, and in a container `--gpus all`"),
    device("invalid device ordinal", "there is no device with that number", "`perfrun doctor` lists the devices, which are numbered from 0"),
    device("devices are busy or unavailable", "the GPU is busy or in exclusive mode", "`nvidia-smi` shows who uses it and its compute mode"),
    device("libcuda.so", "the NVIDIA driver library was not found", "install the driver; in a container start it with `--gpus all`"),
    device("libcudnn", "cuDNN 9 cannot be loaded", CUDA_LIBRARIES),
    device("libcublas", "cuBLAS of CUDA 13 cannot be loaded", CUDA_LIBRARIES),
    device("libnvrtc", "NVRTC of CUDA 13 cannot be loaded, with which cuDNN compiles kernels", CUDA_LIBRARIES),
    device("No valid execution plans built", "cuDNN cannot run one of the model's convolutions: it could not compile a kernel", CUDA_LIBRARIES),
    device("cuDNN is not available", "cuDNN 9 cannot be loaded", CUDA_LIBRARIES),
    device("libcudart", "the runtime of CUDA 13 cannot be loaded", CUDA_LIBRARIES),
    device("libcufft", "cuFFT of CUDA 13 cannot be loaded", CUDA_LIBRARIES),
    device("libcurand", "cuRAND of CUDA 13 cannot be loaded", CUDA_LIBRARIES),
    device("libnvinfer", "TensorRT 10 cannot be loaded", "`pip install 'tensorrt-cu13<11'`, and add its libraries to LD_LIBRARY_PATH"),
    device("providers_cuda.so: cannot open", "the runtime's own library for CUDA is not next to it", WHOLE_PACKAGE),
    device("providers_tensorrt.so: cannot open", "the runtime's own library for TensorRT is not next to it", WHOLE_PACKAGE),
    device("No supported adapters", "WebGPU finds no GPU with a Vulkan driver", "install the GPU's Vulkan driver and the loader (`apt install libvulkan1`); VK_DRIVER_FILES may name the driver's manifest"),
    device("Couldn't load Vulkan", "there is no Vulkan loader", "`apt install libvulkan1`"),
    device("below the minimum required version", "the plug-in needs a newer ONNX Runtime", "name a newer version in `runtimes`, or another file in `plugins`"),
    device("CreateEpFactories", "the file is no plug-in provider of ONNX Runtime", "name the provider's own library in `plugins`"),
    device("device lost", "the device was lost while it worked", "see `dmesg`: a GPU resets because of heat, power or a fault"),
    advised("returned no value for output", FailureKind::Output, "leave out the option by which the provider replays recorded work: perfrun reads the outputs of every call"),
    advised("Too many open files", FailureKind::Internal, "raise the limit of open files: `ulimit -n 1024`"),
    Phrase {
        phrase: "Resource temporarily unavailable",
        kind: FailureKind::Internal,
        meaning: Some("no process or thread can be started"),
        remedy: Some("raise the limit of processes and threads (`ulimit -u`), or end some of this user's"),
    },
    advised("No space left on device", FailureKind::Internal, "make room on the disk, or set PERFRUN_CACHE or TMPDIR to another folder"),
    phrase("STATUS_ALLOC_FAILED", FailureKind::OutOfMemory),
    phrase("bad_alloc", FailureKind::OutOfMemory),
    phrase("Failed to allocate memory", FailureKind::OutOfMemory),
    phrase("out of memory", FailureKind::OutOfMemory),
    phrase("Available memory of", FailureKind::OutOfMemory),
    advised("the conversion was killed", FailureKind::Killed, "if it was for memory, `dmesg` says so: give it more; then run again"),
    advised("cannot use perfrun's cache", FailureKind::Internal, "`perfrun doctor` shows whether the cache can be used"),
    unsupported("NOT_IMPLEMENTED"),
    advised("is not a registered function/op", FailureKind::Operator, UNREGISTERED),
    unsupported("Could not find an implementation"),
    unsupported("No Op registered"),
    unsupported("Failed to find kernel"),
    // A library of a device, or the nodes that a provider has fused, failed: for whatever reason.
    phrase("CUDNN failure", FailureKind::Operator),
    phrase("CUBLAS failure", FailureKind::Operator),
    phrase("CUDA failure", FailureKind::Operator),
    phrase("CUDA error", FailureKind::Operator),
    phrase("ExecutionProvider_", FailureKind::Operator),
    phrase("This is an invalid model", FailureKind::Model),
    phrase("Invalid rank for input", FailureKind::Shape),
    phrase("Got invalid dimensions for input", FailureKind::Shape),
    phrase("Unexpected input data type", FailureKind::Shape),
    phrase("shape mismatch", FailureKind::Shape),
    phrase("Protobuf parsing failed", FailureKind::Model),
    phrase("Load model from", FailureKind::Model),
    phrase("INVALID_PROTOBUF", FailureKind::Model),
    // A kernel that is there refused what it was given: a shape, an index, a divisor.
    phrase("status code returned while running", FailureKind::Shape),
];

fn find(message: &str) -> Option<&'static Phrase> {
    let lower = message.to_lowercase();
    PHRASES.iter().find(|known| lower.contains(&known.phrase.to_lowercase()))
}

/// The kind of failure that a message describes.
pub fn classify(message: &str, otherwise: FailureKind) -> FailureKind {
    find(message).map_or(otherwise, |known| known.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_runtime_are_classified() {
        let cases = [
            ("Load model from x.onnx failed:Protobuf parsing failed.", FailureKind::Model),
            ("Failed to allocate memory for requested buffer of size 16", FailureKind::OutOfMemory),
            ("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0", FailureKind::OutOfMemory),
            ("CUDA: DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")", FailureKind::OutOfMemory),
            ("Could not find an implementation for Foo(1) node", FailureKind::Operator),
            ("Got invalid dimensions for input: data", FailureKind::Shape),
            ("anything else", FailureKind::Internal),
        ];
        for (message, kind) in cases {
            assert_eq!(classify(message, FailureKind::Internal), kind, "{message}");
        }
    }

    #[test]
    fn an_operator_of_ones_own_needs_its_library() {
        let message = "Load model from m.onnx failed:Fatal error: my.dom:MyOp(-1) is not a registered function/op";
        let failure = Failure::new(classify(message, FailureKind::Internal), message);
        assert_eq!(failure.kind, FailureKind::Operator);
        assert!(failure.remedy().contains("`--set plugins.custom_ops=$PWD/FILE`"), "{}", failure.remedy());
    }

    #[test]
    fn what_cudnn_lacks_is_said() {
        // pytorch#167602; onnxruntime/core/providers/cuda/cudnn_loader.cc.
        let plans = "CUDNN_FE failure 11: [cudnn_frontend] Error: No valid execution plans built.";
        let compiler = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.";
        let absent = "cuDNN is not available. Install cuDNN, update the system library search path, or set enable_cudnn=0 to force native CUDA paths where available.";
        for (message, meaning) in
            [(plans, "compile a kernel"), (compiler, "NVRTC"), (absent, "cuDNN 9 cannot be loaded")]
        {
            let failure = Failure::new(classify(message, FailureKind::Operator), message);
            assert_eq!(failure.kind, FailureKind::Provider, "{message}");
            assert!(failure.in_short().contains(meaning), "{}", failure.in_short());
            assert!(failure.remedy().contains("--with-cuda"), "{}", failure.remedy());
        }
    }

    #[test]
    fn a_missing_library_is_told_from_one_that_lacks_another() {
        let says = |why: &str| {
            let text = format!("Failed to load library /x/libonnxruntime_providers_tensorrt.so with error: {why}");
            Failure::new(classify(&text, FailureKind::Operator), text).in_short()
        };
        let missing = says("/x/libonnxruntime_providers_tensorrt.so: cannot open shared object file");
        assert!(missing.contains("library for TensorRT is not next to it"), "{missing}");
        let other = says("libnvinfer.so.10: cannot open shared object file");
        assert!(other.contains("TensorRT 10 cannot be loaded"), "{other}");
    }

    #[test]
    fn a_kernel_that_refuses_its_inputs_is_not_the_runtimes_fault() {
        let node = |operator: &str, says: &str| {
            let text =
                format!("Non-zero status code returned while running {operator} node. Name:'n' Status Message: {says}");
            Failure::new(classify(&text, FailureKind::Operator), text)
        };
        for (operator, says) in [
            ("Gather", "indices element out of data bounds, idx=1 must be within the inclusive range [-1,0]"),
            ("Mod", "element_wise_ops.cc:2256 operator() Integer modulo by zero"),
            ("Conv", "Input channels C is not equal to kernel channels * group. C: 128 kernel channels: 4 group: 1"),
            ("MatMul", "matmul_helper.h:59 Compute MatMul dimension mismatch"),
            (
                "Add",
                "BroadcastIterator axis == 1 was false. Attempting to broadcast an axis by a dimension other than 1. 4 by 8",
            ),
            (
                "Reshape",
                "The input tensor cannot be reshaped to the requested shape. Input shape:{1,8}, requested shape:{3,3}",
            ),
            ("LSTM", "Input W must have shape {1,64,9}. Actual:{1,64,8}"),
            ("TopK", "k argument [9] should not be greater than specified axis dim value [4]"),
        ] {
            let failure = node(operator, says);
            assert_eq!(failure.kind, FailureKind::Shape, "{says}");
            assert!(failure.remedy().contains("the inputs do not fit the model"), "{says}");
        }
        for (says, kind) in [
            ("Failed to allocate memory for requested buffer of size 16", FailureKind::OutOfMemory),
            ("CUDNN failure 8: CUDNN_STATUS_EXECUTION_FAILED", FailureKind::Operator),
            ("[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : mode", FailureKind::Operator),
        ] {
            assert_eq!(node("Conv", says).kind, kind, "{says}");
        }
        let fused = node("OpenVINOExecutionProvider_OpenVINO-EP-subgraph_1", "Exception from core");
        assert_eq!(fused.kind, FailureKind::Operator);
        assert!(node("Resize", "NOT_IMPLEMENTED").remedy().contains("another runtime version"));
        assert!(!fused.remedy().contains("another runtime version"));
    }

    #[test]
    fn a_signal_is_told_by_the_system_by_a_command_and_by_its_shell() {
        let is_of_signal = |kind, message: &str| Failure::new(kind, message).is_of_signal();
        assert!(is_of_signal(FailureKind::Killed, "the worker was killed by signal 9 (SIGKILL)"));
        assert!(is_of_signal(FailureKind::Command, "the command was killed by signal 15 (SIGTERM)"));
        assert!(is_of_signal(FailureKind::Command, "the command ended with exit code 143"));
        assert!(!is_of_signal(FailureKind::Command, "the command ended with exit code 3"));
        assert!(!is_of_signal(FailureKind::Timeout, "the run did not end"));
    }

    #[test]
    fn what_a_device_lacks_is_said_with_its_own_remedy() {
        let webgpu = "/src/webgpu_context.cc:65 Initialize status == Success was false. Failed to get a WebGPU adapter: No supported adapters";
        let failure = Failure::new(classify(webgpu, FailureKind::Internal), webgpu);
        assert_eq!(failure.kind, FailureKind::Provider);
        assert_eq!(failure.in_short(), "WebGPU finds no GPU with a Vulkan driver");
        assert!(failure.remedy().contains("VK_DRIVER_FILES"));
        let other = Failure::new(FailureKind::Provider, "/src/a.cc:1 f x was false. It has none.\nstack");
        assert_eq!((other.in_short().as_str(), other.remedy()), ("It has none", FailureKind::Provider.remedy()));
    }
}
