//! What the devices of the experiment are and draw while nothing of perfrun runs, before anything else runs on them; and
//! whether they are as `require` asks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Pass;
use crate::run::runner::{RunError, Runner};
use crate::run::{Job, Refusal};
use device::look::{Wanted, look, why_refused};
use experiment::DeviceIndex;
use record::{DeviceSeen, DevicesSeen};

/// From one reading to the next.
const NAP: Duration = Duration::from_millis(100);

/// How long the processors are left alone where no GPU takes longer.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// Looks at every device on which a cell is run.
pub(super) struct Devices;

impl Pass for Devices {
    type Found = DevicesSeen;

    fn is_wanted(job: &Job) -> bool {
        let has_gpu = || used(job).iter().any(|index| gpu_of(job, *index).is_some());
        let idles = job.monitors.packages().is_some() && !job.manifest().quick;
        // A record that has blocks was let through when it began.
        !job.has_begun() && !job.has_nothing_to_run() && (idles || has_gpu())
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<DevicesSeen, RunError> {
        let (began, before) = (Instant::now(), job.monitors.packages().and_then(|packages| packages.read()));
        let require = job.experiment().require;
        let wanted = Wanted { locked_clocks: require.gpu_clocks_locked, nobody_else: require.no_foreign_processes };
        let mut devices = Vec::new();
        for index in used(job) {
            let Some(gpu) = gpu_of(job, index) else { continue };
            let found = gpu.and_then(|gpu| look(&gpu, wanted.locked_clocks, &mut || runner.nap(NAP)));
            let seen = match found {
                Ok(Some(look)) => DeviceSeen { device: index, look: Some(look), problem: None },
                Ok(None) => return Err(RunError::Interrupted),
                Err(problem) => DeviceSeen { device: index, look: None, problem: Some(problem) },
            };
            grant(job, &seen, wanted)?;
            devices.push(seen);
        }
        while before.is_some() && began.elapsed() < LEAST_IDLE {
            runner.go_on()?;
            runner.nap(NAP);
        }
        let packages_idle_watts = job.monitors.packages().and_then(|packages| {
            let seconds = began.elapsed().as_secs_f64();
            Some(packages.between(&before?, &packages.read()?, seconds)? / seconds)
        });
        Ok(DevicesSeen { devices, packages_idle_watts })
    }
}

/// The devices on which a cell is run.
fn used(job: &Job) -> Vec<DeviceIndex> {
    let mut devices: Vec<DeviceIndex> = job.plan().runnable().map(|(_, cell)| cell.device()).collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

fn gpu_of(job: &Job, device: DeviceIndex) -> Option<Result<device::Gpu, String>> {
    job.monitors.gpu_of(&job.experiment().devices[device], &BTreeMap::new())
}

/// The GPUs on which cells are run and which a monitor can read.
pub(in crate::run) fn gpus(job: &Job) -> impl Iterator<Item = device::Gpu> {
    used(job).into_iter().filter_map(|device| gpu_of(job, device)?.ok())
}

/// Lets a device through, or ends the execution: what is unknown meets no requirement.
fn grant(job: &Job, seen: &DeviceSeen, wanted: Wanted) -> Result<(), RunError> {
    let label = job.experiment().devices[seen.device].label();
    let refused = match (&seen.look, &seen.problem) {
        (Some(look), _) => why_refused(&label, look, wanted),
        (None, problem) if wanted.locked_clocks || wanted.nobody_else => {
            let why = problem.as_deref().unwrap_or("unknown");
            Some((format!("`require`: {label} cannot be inspected: {why}"), "see `perfrun doctor`".to_owned()))
        }
        _ => None,
    };
    refused.map_or(Ok(()), |(found, remedy)| Err(RunError::Refused(Refusal::Found { found, remedy })))
}
