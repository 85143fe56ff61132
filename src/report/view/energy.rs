//! How energy was measured, as sentences of the methods: where it comes from, and what was drawn without any work.

use crate::record::Manifest;
use crate::report::Input;
use crate::report::format::{amount, list};
use crate::vocabulary::metric::{DEVICE_ENERGY, Metric, PACKAGE_ENERGY, Unit};

/// `None` where no cell has energy.
pub(super) fn energy(input: &Input<'_>) -> Option<String> {
    let has = |metric: &Metric| input.summary.cells.iter().any(|cell| cell.estimate(metric).is_some());
    let counters =
        [(DEVICE_ENERGY, "the GPU's own counter"), (PACKAGE_ENERGY, "the counters of the processor packages (RAPL)")];
    let counters: Vec<&str> = counters.iter().filter(|(metric, _)| has(metric)).map(|(_, words)| *words).collect();
    if counters.is_empty() {
        return None;
    }
    let idle = idle(input.manifest);
    let before =
        if idle.is_empty() { String::new() } else { format!(" Before the first block, idle, {}.", list(&idle)) };
    Some(format!(
        "Energy per inference is the increase of {} while counted samples were taken, divided by their inferences; idle power is included.{before}",
        list(&counters)
    ))
}

/// `cuda:0 (NVIDIA H100) drew 50 W`.
fn idle(manifest: &Manifest) -> Vec<String> {
    let Some(found) = &manifest.findings.devices else { return Vec::new() };
    let of_gpu = |seen: &crate::record::DeviceSeen| {
        let label = manifest.experiment.devices.get(seen.device.place())?.label();
        let look = seen.look.as_ref()?;
        Some(format!("{label} ({}) drew {}", look.facts.name, amount(Unit::Watts, look.idle_watts?)))
    };
    let packages = found.packages_idle_watts.map(|watts| format!("the processors drew {}", amount(Unit::Watts, watts)));
    found.devices.iter().filter_map(of_gpu).chain(packages).collect()
}
