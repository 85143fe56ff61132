//! The values of facts, as a manifest or a host has them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use super::alike;
use crate::{DatasetFile, DeviceSeen, InferenceCost, Manifest, ModelFile, RuntimeUsed, VariantFile, VariantOrigin};
use base::machine::host::Host;
use device::look::Look;
use experiment::{Backend, InputPoint, Model};
use files::digest;

pub(super) fn memory_gib(host: &Host) -> Option<u64> {
    host.memory_bytes.map(|bytes| bytes.div_ceil(1 << 30))
}

pub(super) fn quota(host: &Host) -> Value {
    host.cpu_quota.map_or(json!("none"), |quota| json!(quota))
}

pub(super) fn default_threads(manifest: &Manifest) -> Value {
    let is_used = manifest.experiment.variants.iter().any(|variant| variant.threads.intra.is_none());
    let of_machines = match manifest.machines.as_slice() {
        [] => vec![json!(manifest.default_threads)],
        machines => machines.iter().map(|machine| json!(machine.default_threads)).collect(),
    };
    if is_used { alike(of_machines) } else { Value::Null }
}

pub(super) fn inputs(manifest: &Manifest) -> Value {
    // Where a file lies changes nothing that is fed.
    let fed = |input: &InputPoint| {
        let mut row = json!(input);
        if let Some(file) = &input.file {
            row["file"] = json!(file.sha256);
        }
        row
    };
    manifest.plan.inputs().iter().map(fed).collect()
}

pub(super) fn input_files(manifest: &Manifest) -> Value {
    let files: BTreeMap<&Path, &str> =
        manifest.experiment.input_files().map(|file| (file.path.as_path(), file.sha256.as_str())).collect();
    if files.is_empty() {
        return Value::Null;
    }
    files.into_iter().map(|(path, sha256)| json!({ "path": path, "sha256": sha256 })).collect()
}

pub(super) fn specification(manifest: &Manifest) -> Value {
    let spec = &manifest.spec;
    json!({ "path": spec.path, "sha256": spec.sha256, "overrides": spec.overrides, "text": spec.text })
}

pub(super) fn commands(manifest: &Manifest) -> Value {
    let models = manifest.experiment.models.iter();
    let rows: Vec<Value> = models
        .filter_map(|model| {
            let command = model.command.as_ref()?;
            let (line, prepare, setup) = (command.line(), &command.prepare, &command.setup);
            Some(json!({ "name": model.name, "line": line, "prepare": prepare, "setup": setup }))
        })
        .collect();
    if rows.is_empty() { Value::Null } else { Value::from(rows) }
}

pub(super) fn stdout(manifest: &Manifest) -> Value {
    let target = |model: &Model| Some(json!({ "model": model.name, "to": model.command.as_ref()?.stdout.to_string() }));
    let rows: Vec<Value> = manifest.experiment.models.iter().filter_map(target).collect();
    if rows.is_empty() { Value::Null } else { Value::from(rows) }
}

pub(super) fn models(manifest: &Manifest) -> Value {
    let plan = &manifest.plan;
    let model = |(name, file): (&String, &Option<ModelFile>)| {
        let file = file.as_ref()?;
        // What multiplying nodes move follows from the graph, as the rest does; earlier reports do not have it.
        let cost = |cost: &InferenceCost| json!({ "macs": cost.macs, "bytes_moved": cost.bytes_moved });
        let costs = plan.inputs().iter().zip(&file.costs);
        let costs = costs.filter_map(|(input, known)| Some((&input.name, cost(known.as_ref()?))));
        Some(json!({
            "name": name, "path": file.path, "sha256": file.sha256, "parts": known(&file.parts), "bytes": file.bytes, "producer": file.producer,
            "parameters": file.parameters, "opset": known(&file.opset), "operators": known(&file.operators),
            "costs": costs.collect::<BTreeMap<_, _>>(),
        }))
    };
    plan.names_of::<Model>().iter().zip(&manifest.models).filter_map(model).collect()
}

/// What is counted by name; nothing where nothing is known.
fn known<T: Serialize>(counts: &BTreeMap<String, T>) -> Value {
    if counts.is_empty() { Value::Null } else { json!(counts) }
}

pub(super) fn files(manifest: &Manifest) -> Value {
    let plan = &manifest.plan;
    let file = |file: &VariantFile| {
        let origin = match &file.origin {
            VariantOrigin::Converted { recipe, converter, .. } => json!({ "converter": converter, "recipe": recipe }),
            VariantOrigin::Own { path } => json!({ "path": path }),
        };
        json!({
            "model": plan.name(file.model), "variant": plan.name(file.variant),
            "provider": file.provider, "origin": origin, "sha256": file.sha256, "parts": known(&file.parts), "bytes": file.bytes, "problem": file.problem,
        })
    };
    manifest.variant_files().iter().map(file).collect()
}

pub(super) fn datasets(manifest: &Manifest) -> Value {
    let named = manifest.plan.names_of::<Model>().iter().zip(&manifest.datasets);
    let dataset = |(model, data): (&String, &Option<DatasetFile>)| {
        let data = data.as_ref()?;
        Some(
            json!({ "model": model, "path": data.path, "sha256": data.sha256, "parts": known(&data.parts), "items": data.items }),
        )
    };
    named.filter_map(dataset).collect()
}

pub(super) fn runtimes(manifest: &Manifest) -> Value {
    // What is no library of ONNX Runtime.
    let program = |name: Option<&str>| {
        let runtime = manifest.experiment.runtimes.iter().find(|runtime| Some(runtime.name.as_str()) == name)?;
        runtime.program.as_ref().map(|_| true)
    };
    // Where variants name their runtimes.
    let variants = |name: Option<&str>| {
        let named =
            manifest.experiment.variants.iter().filter(|variant| name.is_some() && variant.runtime.as_deref() == name);
        let names: Vec<&str> = named.map(|variant| variant.name.as_str()).collect();
        (!names.is_empty()).then_some(names)
    };
    let library = |(name, used): (Option<&str>, RuntimeUsed)| {
        json!({
            "name": name, "version": used.version, "build": used.build, "package": used.package, "sha256": used.sha256,
            "program": program(name), "variants": variants(name),
        })
    };
    manifest.libraries().map(library).collect()
}

pub(super) fn plugins(manifest: &Manifest) -> Value {
    let plugin = |(device, used): (&String, &RuntimeUsed)| json!({ "device": device, "package": used.package, "version": used.version, "sha256": used.sha256 });
    if manifest.plugins.is_empty() { Value::Null } else { manifest.plugins.iter().map(plugin).collect() }
}

/// Of the mock backend: what runs in place of models.
pub(super) fn script(manifest: &Manifest) -> Value {
    match &manifest.experiment.backend {
        Backend::Mock(script) => json!(digest::of_text(&json!(script).to_string())),
        Backend::Onnxruntime | Backend::Commands => Value::Null,
    }
}

/// One value for each GPU that was looked at, in the order of the devices.
fn of_gpus(manifest: &Manifest, value: impl Fn(&str, &Look) -> Value) -> Value {
    let seen = manifest.findings.devices.iter().flat_map(|found| &found.devices);
    let of_gpu = |seen: &DeviceSeen| {
        let label = manifest.experiment.devices.get(seen.device.index())?.label();
        Some(value(&label, seen.look.as_ref()?))
    };
    let values: Vec<Value> = seen.filter_map(of_gpu).collect();
    if values.is_empty() { Value::Null } else { Value::Array(values) }
}

pub(super) fn gpus(manifest: &Manifest) -> Value {
    of_gpus(manifest, |device, Look { facts, .. }| {
        let memory = facts.memory_bytes.map(|bytes| bytes.div_ceil(1 << 30));
        json!({
            "device": device, "name": facts.name, "memory_gib": memory, "power_limit_watts": facts.power_limit_watts,
            "mig": facts.mig, "ecc": facts.ecc,
        })
    })
}

pub(super) fn gpu_setup(manifest: &Manifest) -> Value {
    of_gpus(manifest, |device, Look { facts, clocks_locked, .. }| {
        json!({
            "device": device, "driver": facts.driver, "cuda": facts.cuda, "persistence": facts.persistence,
            "clocks_locked": clocks_locked,
        })
    })
}

pub(super) fn idle_watts(manifest: &Manifest) -> Value {
    let gpus = of_gpus(manifest, |device, look| json!({ "device": device, "watts": look.idle_watts }));
    let packages = manifest.findings.devices.as_ref().and_then(|found| found.packages_idle_watts);
    if gpus.is_null() && packages.is_none() { Value::Null } else { json!({ "gpus": gpus, "packages": packages }) }
}

pub(super) fn boundary(manifest: &Manifest) -> Value {
    let experiment = &manifest.experiment;
    json!(experiment.devices.iter().any(|device| !device.is_cpu()).then_some(experiment.measure.boundary))
}
