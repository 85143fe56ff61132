//! Options of providers: their names checked where perfrun runs the provider, their use where it does not.

use std::collections::BTreeMap;

use super::{Axis, devices};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{ExperimentForm, Ordered, ProviderForm, VariantEntry};
use experiment::{Device, Provider};
use reading::nearest::nearest;

/// All options of the provider for processors; everything else is a session entry.
const CPU_OPTIONS: [&str; 1] = ["use_arena"];

/// Puts the options of `form` over those that a base has.
pub(super) fn overlay(
    options: &mut BTreeMap<String, BTreeMap<String, String>>,
    form: &Ordered<ProviderForm>,
    plugins: &Ordered<String>,
    place: &DocumentPath,
    check: &mut Check<'_>,
) {
    for (provider, form) in &form.0 {
        let place = place.key(provider);
        if let Some(hint) = devices::unknown_provider(provider, plugins) {
            let problem = check.at_key(&place, format!("unknown provider `{provider}`"));
            check.problems.push(match hint {
                Some(hint) => problem.with_hint(hint),
                None => problem,
            });
            continue;
        }
        let known = options.entry(provider.to_owned()).or_default();
        let one_graph = Provider::named(provider).and_then(|provider| provider.one_graph_option);
        for (name, setting) in &form.0.0 {
            let value = match provider.as_ref() {
                Device::CPU => cpu_option(name, &setting.0, &place.key(name), check),
                _ if one_graph.is_some_and(|option| option == name) && Provider::is_on(&setting.0) => {
                    let message = format!("`{name}` records the first inputs only, but perfrun uses several in turn");
                    let help = "CUDA graphs are measured with `devices: [cuda]` and `enable_cuda_graph: 1`";
                    check.error(&place.key(name), message, help.to_owned());
                    None
                }
                _ => Some(setting.0.clone()),
            };
            known.extend(value.map(|value| (name.clone(), value)));
        }
    }
}

/// ONNX Runtime's own spelling of the value, `0` or `1`.
fn cpu_option(name: &str, value: &str, place: &DocumentPath, check: &mut Check<'_>) -> Option<String> {
    if !CPU_OPTIONS.contains(&name) {
        let problem = check.at_key(place, format!("the provider `cpu` has no option `{name}`"));
        let hint = match nearest(name, CPU_OPTIONS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "it has only `use_arena`; session settings go into `session`".to_owned(),
        };
        check.problems.push(problem.with_hint(hint));
        return None;
    }
    match value {
        "0" | "false" => Some("0".to_owned()),
        "1" | "true" => Some("1".to_owned()),
        other => {
            check.error(place, format!("`{name}` is `{other}`; it must be 0 or 1"), None);
            None
        }
    }
}

/// Options of a provider that no device uses do nothing, which is said.
pub(super) fn check_used(form: &ExperimentForm, devices: &Axis<Device>, check: &mut Check<'_>) {
    if !devices.is_complete {
        return;
    }
    for (place, entry) in form.variants.places(&DocumentPath::top("variants")) {
        let VariantEntry::Form(variant) = entry else { continue };
        for (provider, _) in &variant.provider.0 {
            let is_used = devices.values.iter().any(|device| device.provider == *provider);
            if !is_used && devices::unknown_provider(provider, &form.plugins).is_none() {
                let place = place.key("provider").key(provider);
                let message = format!("these options of `{provider}` have no effect: no device is `{provider}`");
                check.warn(&place, message, format!("add `{provider}` to `devices`, or leave them out"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, problems, warnings};

    #[test]
    fn options_are_text_and_inherited() {
        let spec = "devices: [cpu, cuda]\nvariants:\n  - { name: a, provider: { cuda: { prefer_nhwc: 1, x: y } } }\n\
                    \x20 - { name: b, base: a, provider: { cuda: { x: z }, cpu: { use_arena: true } } }";
        let variants = mock(spec).variants;
        assert_eq!(variants[0].provider["cuda"]["prefer_nhwc"], "1");
        let cuda = &variants[1].provider["cuda"];
        assert_eq!((cuda["prefer_nhwc"].as_str(), cuda["x"].as_str()), ("1", "z"));
        assert_eq!(variants[1].provider["cpu"]["use_arena"], "1");
        assert!(warnings(spec).is_empty());
    }

    #[test]
    fn what_the_cpu_does_not_know_is_an_error() {
        let variant = |provider: &str| format!("variants: [{{ name: a, provider: {provider} }}]");
        assert_eq!(problems(&variant("{ cpu: { use_aerna: 1 } }")), ["the provider `cpu` has no option `use_aerna`"]);
        assert_eq!(problems(&variant("{ cpu: { use_arena: 2 } }")), ["`use_arena` is `2`; it must be 0 or 1"]);
        assert_eq!(problems(&variant("{ gpu: { x: 1 } }")), ["unknown provider `gpu`"]);
        assert_eq!(problems(&variant("{ \"cuda:0\": { x: 1 } }")), ["unknown provider `cuda:0`"]);
    }

    #[test]
    fn options_without_their_device_are_warned_of() {
        let spec = "variants: [{ name: a, provider: { cuda: { prefer_nhwc: 1 } } }]";
        assert_eq!(warnings(spec), ["these options of `cuda` have no effect: no device is `cuda`"]);
    }
}
