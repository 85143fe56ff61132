//! Execution providers: each registered in the one way that its kind has, with an error where it cannot be had.
#![expect(unsafe_code, reason = "ONNX Runtime registers most providers by name through its C API alone")]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::path::Path;

use ort::AsPointer;
use ort::device::Device as OfferedDevice;
use ort::environment::Environment;
use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider, ExecutionProvider, ExecutionProviderDispatch};
use ort::memory::DeviceType;
use ort::session::builder::SessionBuilder;

use super::failures::{provider_failure, strip, take_status};
use super::{OnnxruntimeRequest, engines};
use crate::backend::{Failure, FailureKind};
use experiment::{Device, Devices, Hardware, Provider};

fn failure(text: impl Into<String>) -> Failure {
    Failure::new(FailureKind::Provider, text)
}

/// Makes the devices of a plug-in known to the environment.
pub(super) fn register_plugin(environment: &Environment, device: &Device, library: &Path) -> Result<(), Failure> {
    environment.register_ep_library(&device.provider, library).map_err(|error| {
        let Failure { kind, message, .. } = provider_failure(error);
        Failure::new(kind, format!("the plug-in {} cannot be used: {message}", library.display()))
    })
}

/// Registers the provider of a device with a session. The provider for processors takes what it does not take.
pub(super) fn register(
    builder: SessionBuilder,
    environment: &Environment,
    settings: &OnnxruntimeRequest,
    stream: Option<usize>,
) -> Result<SessionBuilder, Failure> {
    let (device, options) = (&settings.device, &settings.provider_options);
    // `ort` panics at one.
    if options.iter().any(|(key, value)| key.contains('\0') || value.contains('\0')) {
        return Err(failure("an option holds a zero byte"));
    }
    if device.is_cpu() {
        let provider = cpu(options)?.build().error_on_failure();
        return builder.with_execution_providers([provider]).map_err(|error| provider_failure(strip(error)));
    }
    if settings.plugin.is_some() {
        return of_plugin(builder, environment, device, options);
    }
    let provider = Provider::of(device).ok_or_else(|| failure(format!("`{}` is not a provider", device.provider)))?;
    let mut options = options.clone();
    if let (Devices::Numbered, Some(index)) = (provider.devices, device.index) {
        options.insert("device_id".to_owned(), index.to_string());
    }
    if let Some(hardware) = device.hardware {
        options.insert("device_type".to_owned(), hardware.word().to_owned());
    }
    if let Some(stream) = stream {
        options.insert("has_user_compute_stream".to_owned(), "1".to_owned());
        options.insert("user_compute_stream".to_owned(), stream.to_string());
    }
    engines::keep(settings, &mut options);
    match provider.runtime_name {
        ep::CUDA::NAME => dispatch(builder, set_all(ep::CUDA::default(), &options).build()),
        ep::TensorRT::NAME => dispatch(builder, set_all(ep::TensorRT::default(), &options).build()),
        ep::CANN::NAME => dispatch(builder, set_all(ep::CANN::default(), &options).build()),
        _ => by_name(builder, provider, &options),
    }
}

/// A provider with all options, by ONNX Runtime's own names.
fn set_all<P: ArbitrarilyConfigurableExecutionProvider>(provider: P, options: &BTreeMap<String, String>) -> P {
    options.iter().fold(provider, |provider, (key, value)| provider.with_arbitrary_config(key, value))
}

/// Registers one of the providers that have functions of their own, or fails.
fn dispatch(builder: SessionBuilder, provider: ExecutionProviderDispatch) -> Result<SessionBuilder, Failure> {
    let registered = builder.with_execution_providers([provider.error_on_failure()]);
    registered.map_err(|error| provider_failure(strip(error)))
}

/// The provider for processors. What it does not know is an error here too: an option that does nothing is never passed
/// over. Its memory arena is on unless an option says otherwise, as for everybody who uses ONNX Runtime; `ort` turns it
/// off where it registers the provider by name.
fn cpu(options: &BTreeMap<String, String>) -> Result<ep::CPU, Failure> {
    let mut provider = ep::CPU::default().with_arena_allocator(true);
    for (name, value) in options {
        provider = match name.as_str() {
            "use_arena" => provider.with_arena_allocator(value == "1"),
            other => return Err(failure(format!("the provider `cpu` has no option `{other}`"))),
        };
    }
    Ok(provider)
}

/// A provider that is compiled into the runtime.
fn by_name(
    mut builder: SessionBuilder,
    provider: &Provider,
    options: &BTreeMap<String, String>,
) -> Result<SessionBuilder, Failure> {
    let texts = |texts: &mut dyn Iterator<Item = &String>| -> Result<Vec<CString>, Failure> {
        texts.map(|text| CString::new(text.as_str()).map_err(|_| failure("an option holds a zero byte"))).collect()
    };
    let (keys, values) = (texts(&mut options.keys())?, texts(&mut options.values())?);
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).collect::<Vec<*const c_char>>();
    let (keys, values) = ((pointers(&keys), keys), (pointers(&values), values));
    let name = CString::new(provider.runtime_name).map_err(|_| failure("a name holds a zero byte"))?;
    // SAFETY: the builder lives; the name and the `options.len()` keys and values are texts that end in zero and outlive
    // the call, which copies them.
    let status = unsafe {
        (ort::api().SessionOptionsAppendExecutionProvider)(
            builder.ptr_mut(),
            name.as_ptr(),
            keys.0.as_ptr(),
            values.0.as_ptr(),
            options.len(),
        )
    };
    if status.0.is_null() { Ok(builder) } else { Err(Failure { kind: FailureKind::Provider, ..take_status(status) }) }
}

/// The device of a plug-in: the one of its number or kind of hardware among those that it offers here.
fn of_plugin(
    builder: SessionBuilder,
    environment: &Environment,
    device: &Device,
    options: &BTreeMap<String, String>,
) -> Result<SessionBuilder, Failure> {
    let wanted = Provider::of(device).map(|provider| provider.runtime_name);
    // Of a plug-in of the specification's own, perfrun does not know the name: it brings what no other does.
    let is_its = |offered: &OfferedDevice<'_>| match (offered.ep(), wanted) {
        (Ok(name), Some(wanted)) => name == wanted,
        (Ok(name), None) => !is_built_in(name),
        (Err(_), _) => false,
    };
    let offered: Vec<OfferedDevice<'_>> = environment.devices().filter(is_its).collect();
    let kinds: Vec<&str> = offered.iter().map(|offered| hardware_of(offered).word()).collect();
    let fits = |offered: &OfferedDevice<'_>| device.hardware.is_none_or(|hardware| hardware_of(offered) == hardware);
    let position = offered.iter().enumerate().filter(|(_, offered)| fits(offered)).map(|(position, _)| position);
    let Some(position) = position.clone().nth(device.index.unwrap_or(0) as usize) else {
        let text = match kinds.is_empty() {
            true => "the plug-in finds no device here".to_owned(),
            false => format!("the plug-in finds {} here, and no `{}`", kinds.join(", "), device.label()),
        };
        return Err(failure(text));
    };
    let chosen = environment.devices().filter(is_its).nth(position);
    let name = offered[position].ep().map_err(provider_failure)?;
    let options: Vec<(String, String)> =
        options.iter().map(|(key, value)| (format!("{name}.{key}"), value.clone())).collect();
    builder.with_devices(chosen, Some(&options)).map_err(|error| provider_failure(strip(error)))
}

/// Whether a provider is one that perfrun knows, and so not what an unknown plug-in brings.
fn is_built_in(runtime_name: &str) -> bool {
    experiment::PROVIDERS.iter().any(|provider| provider.runtime_name == runtime_name)
}

fn hardware_of(offered: &OfferedDevice<'_>) -> Hardware {
    match offered.hardware_device().ty() {
        DeviceType::GPU => Hardware::Gpu,
        DeviceType::NPU => Hardware::Npu,
        _ => Hardware::Cpu,
    }
}
