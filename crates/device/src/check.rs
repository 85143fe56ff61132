//! What `perfrun doctor` reports of GPUs and of the processors' energy counters.

use super::monitor::{Facts, Monitor};
use super::packages::Packages;
use base::code::Code;
use base::machine::kernel::Kernel;
use base::machine::probe::check::{Check, State};

/// Everything that is looked at. Nothing of GPUs where no driver is.
pub fn checks() -> Vec<Check> {
    let gpus = super::nvidia().ok().map(|monitor| facts_of(monitor.as_ref())).unwrap_or_default();
    let energy = [energy(Packages::here(&Kernel::here()).err())];
    let gpus = (!gpus.is_empty()).then(|| [persistence(&gpus), instances(&gpus)]);
    gpus.into_iter().flatten().chain(energy).collect()
}

fn facts_of(monitor: &dyn Monitor) -> Vec<Facts> {
    (0..monitor.count()).filter_map(|gpu| monitor.facts(gpu).ok()).collect()
}

fn energy(problem: Option<&'static str>) -> Check {
    let is_for_root = problem.is_some_and(|problem| problem.contains("root"));
    Check {
        what: "energy counters",
        source: "/sys/class/powercap/intel-rapl:*/energy_uj",
        found: problem.map_or(Some("readable".to_owned()), |problem| is_for_root.then(|| problem.to_owned())),
        state: match problem {
            None => State::Ok,
            Some(_) if is_for_root => State::Off,
            Some(_) => State::Unknown,
        },
        code: None,
        with_root: Some(
            "chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj    (other users can then learn what runs)",
        ),
        without_root: None,
    }
}

/// The GPUs of which something holds, or all where it holds of none.
fn named(gpus: &[Facts], is_off: impl Fn(&Facts) -> bool) -> (State, Vec<&str>) {
    let off: Vec<&str> = gpus.iter().filter(|facts| is_off(facts)).map(|facts| facts.name.as_str()).collect();
    match off.is_empty() {
        true => (State::Ok, gpus.iter().map(|facts| facts.name.as_str()).collect()),
        false => (State::Off, off),
    }
}

fn persistence(gpus: &[Facts]) -> Check {
    let (state, names) = named(gpus, |facts| facts.persistence == Some(false));
    let word = if state == State::Ok { "on" } else { "off" };
    Check {
        what: "GPU persistence mode",
        source: "NVML",
        found: Some(format!("{word} ({})", names.join(", "))),
        state,
        code: Some(Code::GpuPersistence),
        with_root: Some("nvidia-smi -pm 1"),
        without_root: None,
    }
}

fn instances(gpus: &[Facts]) -> Check {
    let (state, names) = named(gpus, |facts| facts.mig == Some(true));
    let word = if state == State::Ok { "whole" } else { "divided: others may share memory bandwidth and power" };
    Check {
        what: "GPU instances (MIG)",
        source: "NVML",
        found: Some(format!("{word} ({})", names.join(", "))),
        state,
        code: None,
        with_root: Some("nvidia-smi -mig 0    (nothing may run on it)"),
        without_root: Some("keep the other instances idle"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_off_is_named_with_its_remedy() {
        let gpu = |name: &str, persistence, mig| Facts {
            name: name.to_owned(),
            persistence: Some(persistence),
            mig: Some(mig),
            ..Facts::default()
        };
        let gpus = [gpu("A", true, false), gpu("B", false, true)];
        let found = persistence(&gpus);
        assert_eq!((found.state, found.found.as_deref()), (State::Off, Some("off (B)")));
        assert_eq!(persistence(&gpus[..1]).state, State::Ok);
        assert_eq!((instances(&gpus).state, instances(&gpus[..1]).state), (State::Off, State::Ok));
    }

    #[test]
    fn counters_that_are_not_there_are_told_from_those_that_root_alone_may_read() {
        assert_eq!(energy(None).state, State::Ok);
        assert_eq!(energy(Some("the kernel shows none")).state, State::Unknown);
        assert_eq!(energy(Some("root alone may read them")).state, State::Off);
    }
}
