//! What lies within the clock on devices other than the CPU, as a sentence for each way of waiting for them.

use crate::experiment::{Boundary, Completion, Provider};
use crate::record::Manifest;
use crate::report::format;

/// The sentences; none where everything ran on the CPU.
pub(super) fn boundary(manifest: &Manifest) -> Option<String> {
    let experiment = &manifest.experiment;
    let is_run = |index: usize| manifest.plan.runnable().any(|(_, cell)| cell.device().place() == index);
    let mut ways: Vec<(Completion, Vec<String>)> = Vec::new();
    for (index, device) in experiment.devices.iter().enumerate() {
        let completion = Provider::of(device).map_or(Completion::ReadBack, |provider| provider.completion);
        if device.is_cpu() || !is_run(index) {
            continue;
        }
        match ways.iter_mut().find(|(known, _)| *known == completion) {
            Some((_, labels)) => labels.push(device.label()),
            None => ways.push((completion, vec![device.label()])),
        }
    }
    let sentence = |(completion, labels): &(Completion, Vec<String>)| {
        format!("On {} {}.", format::list(labels), within(experiment.measure.boundary, *completion))
    };
    let sentences: Vec<String> = ways.iter().map(sentence).collect();
    let placed = "The placement of each node was read from every session; the share of time in CPU nodes and in copies between nodes was profiled over ten inferences after the samples of the first run.";
    (!sentences.is_empty()).then(|| format!("{} {placed}", sentences.join(" ")))
}

/// What the clock holds.
fn within(boundary: Boundary, completion: Completion) -> &'static str {
    match (boundary, completion) {
        (Boundary::Host, _) => {
            "inputs and outputs were in host memory when the clock started and ended, so the copies are within it (`boundary: host`)"
        }
        (Boundary::Device, Completion::Stream) => {
            "inputs and outputs stayed on the device, and the clock ended when an event at the end of its stream had been waited for (`boundary: device`)"
        }
        (Boundary::Device, Completion::ReadBack) => {
            "inputs were on the device before the clock started; outputs were copied to host memory within it, since the runtime offers no way to wait for the device (`boundary: device`)"
        }
        (Boundary::Device, Completion::Returns) => {
            "inputs were where the model runs before the clock started, and a call returned when its outputs were complete (`boundary: device`)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_waiting_names_its_boundary() {
        for completion in [Completion::Returns, Completion::ReadBack, Completion::Stream] {
            for boundary in [Boundary::Host, Boundary::Device] {
                let text = within(boundary, completion);
                assert!(text.contains(&format!("`boundary: {}`", boundary.word())), "{text}");
            }
        }
    }
}
