//! The GPUs that were measured on, a fact each.

use super::Fact;
use crate::device::look::Look;
use crate::record::Manifest;
use crate::report::format::{self, amount};
use crate::vocabulary::metric::Unit;

/// In the order of the devices; what could not be looked at says why.
pub(super) fn devices(manifest: &Manifest) -> Vec<Fact> {
    let seen = manifest.findings.devices.iter().flat_map(|found| &found.devices);
    let fact = |seen: &crate::record::DeviceSeen| {
        let label = manifest.experiment.devices.get(seen.device.place())?.label();
        let text = match (&seen.look, &seen.problem) {
            (Some(look), _) => words(look),
            (None, problem) => format!("not looked at: {}", problem.as_deref().unwrap_or("unknown")),
        };
        Some(Fact::new(label, text))
    };
    seen.filter_map(fact).collect()
}

/// `NVIDIA H100, 80 GiB, at most 700 W, driver 580.65.06 (CUDA 13.0), ECC, clocks locked, idle at 50 W`; what is unknown
/// is left out.
fn words(look: &Look) -> String {
    let facts = &look.facts;
    let yes = |value: Option<bool>, word: &str| value.filter(|is| *is).map(|_| word.to_owned());
    let driver = facts.driver.as_ref().map(|driver| {
        let cuda = facts.cuda.as_ref().map_or(String::new(), |cuda| format!(" (CUDA {cuda})"));
        format!("driver {driver}{cuda}")
    });
    let parts = [
        Some(facts.name.clone()),
        facts.memory_bytes.map(format::bytes),
        facts.power_limit_watts.map(|watts| format!("at most {}", amount(Unit::Watts, watts))),
        driver,
        yes(facts.ecc, "ECC"),
        yes(facts.mig, "divided (MIG)"),
        look.clocks_locked.map(|is| if is { "clocks locked" } else { "clocks not locked" }.to_owned()),
        look.idle_watts.map(|watts| format!("idle at {}", amount(Unit::Watts, watts))),
        look.others.as_ref().map(|others| format!("before the record {others}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::look::Facts;

    #[test]
    fn what_is_known_of_a_gpu_is_one_line() {
        let facts = Facts {
            name: "NVIDIA H100".to_owned(),
            memory_bytes: Some(80 << 30),
            power_limit_watts: Some(700.0),
            driver: Some("580.65.06".to_owned()),
            cuda: Some("13.0".to_owned()),
            ecc: Some(true),
            mig: Some(false),
            ..Facts::default()
        };
        let look = Look { facts, idle_watts: Some(50.4), clocks_locked: Some(true), others: None };
        let text =
            "NVIDIA H100, 80.0 GiB, at most 700 W, driver 580.65.06 (CUDA 13.0), ECC, clocks locked, idle at 50.4 W";
        assert_eq!(words(&look), text);
    }
}
