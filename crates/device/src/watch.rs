//! One run as the parent sees it on the device: followed from before its worker starts until after it ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Gpu;
use super::monitor::{Point, is_slowed_for_heat, is_slowed_for_power};
use super::other_processes::{OtherProcesses, divide};
use super::packages::{Counters, Packages};
use super::sampler::{PERIOD, Sampler};
use base::metric::{self, Metric};

/// NVML does not say how often a GPU's energy counter moves; with steps of a tenth of a second a shorter window says little.
const LEAST_WINDOW: Duration = Duration::from_millis(500);

/// A run that is being followed.
#[derive(Debug)]
pub struct Watch {
    gpu: Option<GpuWatch>,
    packages: Option<PackageWatch>,
    /// When the window that is open began.
    opened: Option<Instant>,
    /// Time of all windows.
    sampled: Duration,
    other_workers: OtherWorkers,
}

/// Other workers of perfrun that are alive while one is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWorkers {
    None,
    /// Some that wait, so that the GPU's memory is not this one's alone.
    Waiting,
    /// Some at work on other devices, so that the processors' energy is not this one's alone.
    OnOtherDevices,
}

#[derive(Debug)]
struct GpuWatch {
    gpu: Gpu,
    /// `None` where a script has the readings.
    sampler: Option<Sampler>,
    memory_bytes: Option<u64>,
    /// Memory in use before the worker was started.
    memory_before: Option<u64>,
    before: Vec<u32>,
    energy: Meter<f64>,
}

#[derive(Debug)]
struct PackageWatch {
    packages: Packages,
    energy: Meter<Counters>,
}

/// What a counter rose by in all windows; unknown as soon as one window is.
#[derive(Debug)]
struct Meter<T> {
    open: Option<T>,
    joules: Option<f64>,
}

impl<T> Meter<T> {
    fn new() -> Self {
        Meter { open: None, joules: Some(0.0) }
    }

    fn close(&mut self, between: impl FnOnce(T) -> Option<f64>) {
        let risen = self.open.take().and_then(between);
        self.joules = self.joules.zip(risen).map(|(sum, risen)| sum + risen);
    }
}

impl Watch {
    /// Begins, right before a worker is started. `None` where there is nothing to look at.
    pub fn start(gpu: Option<Gpu>, packages: Option<&Packages>, other_workers: OtherWorkers) -> Option<Self> {
        let packages = packages.filter(|_| other_workers != OtherWorkers::OnOtherDevices);
        let packages = packages.map(|packages| PackageWatch { packages: packages.clone(), energy: Meter::new() });
        if gpu.is_none() && packages.is_none() {
            return None;
        }
        Some(Watch { gpu: gpu.map(GpuWatch::start), packages, opened: None, sampled: Duration::ZERO, other_workers })
    }

    /// The worker is about to take counted samples.
    pub fn open(&mut self) {
        if let Some(watch) = &mut self.gpu {
            watch.energy.open = watch.gpu.monitor.energy_joules(watch.gpu.number);
            watch.sampler.iter().for_each(|sampler| sampler.set_sampling(true));
        }
        if let Some(watch) = &mut self.packages {
            watch.energy.open = watch.packages.read();
        }
        self.opened = Some(Instant::now());
    }

    /// It has taken them.
    pub fn close(&mut self) {
        let Some(opened) = self.opened.take() else { return };
        let window = opened.elapsed();
        self.sampled += window;
        if let Some(watch) = &mut self.packages {
            let after = watch.packages.read();
            let packages = &watch.packages;
            watch.energy.close(|before| packages.between(&before, &after?, window.as_secs_f64()));
        }
        if let Some(watch) = &mut self.gpu {
            let after = watch.gpu.monitor.energy_joules(watch.gpu.number);
            watch.energy.close(|before| Some(after? - before).filter(|risen| *risen >= 0.0));
            watch.sampler.iter().for_each(|sampler| sampler.set_sampling(false));
        }
    }

    /// What was seen of a run whose counted samples took so long by its own clock.
    pub fn finish(self, sampled_ns: u64) -> Watched {
        let package_joules =
            self.packages.and_then(|watch| match watch.packages.scripted_joules(sampled_ns as f64 / 1e9) {
                Some(scripted) => Some(scripted),
                None => watch.energy.joules.filter(|_| !self.sampled.is_zero()),
            });
        let Some(watch) = self.gpu else { return Watched { package_joules, ..Watched::default() } };
        let memory_before = watch.memory_before.filter(|_| self.other_workers != OtherWorkers::Waiting);
        let memory_bytes = watch.memory_bytes;
        let (series, joules) = watch.finish(self.sampled, sampled_ns);
        Watched { series, memory_bytes, memory_before, joules, package_joules }
    }
}

impl GpuWatch {
    fn start(gpu: Gpu) -> Self {
        let memory_before = gpu.monitor.read(gpu.number).memory_bytes;
        let processes = gpu.monitor.processes(gpu.number).unwrap_or_default();
        let before: Vec<u32> = processes.into_iter().map(|process| process.pid).collect();
        let start = || Sampler::start(gpu.clone(), before.clone(), PERIOD);
        let sampler = gpu.monitor.environment().on_machine(start).flatten();
        let memory_bytes = gpu.monitor.facts(gpu.number).ok().and_then(|facts| facts.memory_bytes);
        GpuWatch { gpu, sampler, memory_bytes, memory_before, before, energy: Meter::new() }
    }

    /// The series, and the energy of the windows.
    fn finish(self, sampled: Duration, sampled_ns: u64) -> (Vec<Point>, Option<f64>) {
        let GpuWatch { gpu, sampler, before, energy, .. } = self;
        let Some(script) = gpu.monitor.script_of_run(gpu.number, sampled_ns) else {
            let series = sampler.map(Sampler::finish).unwrap_or_default();
            return (series, energy.joules.filter(|_| sampled >= LEAST_WINDOW));
        };
        let now = gpu.monitor.processes(gpu.number);
        let others = now.map_or_else(OtherProcesses::default, |now| divide(&before, &now, &|_| false));
        let first = others.at(0, false, gpu.monitor.read(gpu.number));
        let period = PERIOD.as_nanos() as u64;
        let times = (1_u64..).map(|number| number * period);
        let rest = script.readings.iter().zip(times).map(|(read, time)| others.at(time, true, *read));
        (std::iter::once(first).chain(rest).collect(), Some(script.joules))
    }
}

/// What was seen of a run on its device and its processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// In the order of time.
    pub series: Vec<Point>,
    /// Memory that the device has.
    memory_bytes: Option<u64>,
    /// Memory in use before the worker was started; `None` where that says nothing about the worker.
    memory_before: Option<u64>,
    /// What the device drew while samples were taken.
    joules: Option<f64>,
    /// What the processors drew then.
    package_joules: Option<f64>,
}

impl Watched {
    /// As metrics of a run of so many counted inferences, by stored name; what is unknown is left out.
    pub fn metrics(&self, inferences: u64) -> BTreeMap<String, f64> {
        let each = |joules: Option<f64>| joules.filter(|_| inferences > 0).map(|joules| joules / inferences as f64);
        let sampling = |field: fn(&Point) -> Option<f64>| -> Vec<f64> {
            self.series.iter().filter(|point| point.sampling).filter_map(field).collect()
        };
        let whole = |field: fn(&Point) -> Option<f64>| -> Vec<f64> { self.series.iter().filter_map(field).collect() };
        let share = |is_slowed: fn(u64) -> bool| {
            let reasons = self.series.iter().filter(|point| point.sampling).filter_map(|point| point.clock_reasons);
            mean(&reasons.map(|reasons| f64::from(u8::from(is_slowed(reasons)))).collect::<Vec<f64>>())
        };
        let of_memory = |bytes: Option<f64>| Some(bytes? / self.memory_bytes.filter(|bytes| *bytes > 0)? as f64);
        let used = most(&whole(|point| point.memory_bytes.map(|bytes| bytes as f64)));
        let before = self.memory_before.map(|bytes| bytes as f64);
        let held_by_others = most(&whole(|point| point.others_memory_bytes.map(|bytes| bytes as f64)));
        let clocks = sampling(|point| point.clock_cycles_per_s);
        let values: [(Metric, Option<f64>); 14] = [
            (metric::DEVICE_MEMORY, used.zip(before).map(|(used, before)| (used - before).max(0.0))),
            (metric::DEVICE_ENERGY, each(self.joules)),
            (metric::PACKAGE_ENERGY, each(self.package_joules)),
            (metric::GPU_UTILISATION, mean(&sampling(|point| point.utilisation_ratio))),
            (metric::GPU_CLOCK, mean(&clocks)),
            (metric::GPU_CLOCK_CHANGE, change(&clocks)),
            (metric::GPU_MEMORY_CLOCK, mean(&sampling(|point| point.memory_clock_cycles_per_s))),
            (metric::GPU_POWER, mean(&sampling(|point| point.power_watts))),
            (metric::GPU_POWER_CAPPED, share(is_slowed_for_power)),
            (metric::GPU_TEMPERATURE, most(&whole(|point| point.temperature_celsius))),
            (metric::GPU_HEAT, share(is_slowed_for_heat)),
            (metric::GPU_MEMORY_USED, of_memory(used)),
            (metric::GPU_OTHERS, most(&whole(|point| point.others_ratio))),
            // Where the driver lists no processes, memory that was in use before the worker started is that of others.
            (metric::GPU_OTHERS_MEMORY, of_memory(greater(held_by_others, before))),
        ];
        values.into_iter().filter_map(|(metric, value)| Some((metric.name.to_owned(), value?))).collect()
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

fn greater(left: Option<f64>, right: Option<f64>) -> Option<f64> {
    left.into_iter().chain(right).reduce(f64::max)
}

/// From the largest to the smallest of several, over the largest.
fn change(values: &[f64]) -> Option<f64> {
    let largest = most(values).filter(|largest| *largest > 0.0 && values.len() > 1)?;
    let smallest = values.iter().copied().reduce(f64::min)?;
    Some((largest - smallest) / largest)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn point(sampling: bool, mhz: f64, reasons: u64) -> Point {
        Point {
            sampling,
            clock_cycles_per_s: Some(mhz * 1e6),
            clock_reasons: Some(reasons),
            memory_bytes: Some(if sampling { 700 } else { 100 }),
            temperature_celsius: Some(if sampling { 60.0 } else { 61.0 }),
            ..Point::default()
        }
    }

    fn watched() -> Watched {
        Watched {
            series: vec![point(false, 210.0, 1), point(true, 1500.0, 0), point(true, 1200.0, 0x4)],
            memory_bytes: Some(1000),
            memory_before: Some(100),
            joules: Some(50.0),
            package_joules: None,
        }
    }

    #[test]
    fn means_are_of_what_was_read_while_sampling_and_peaks_of_the_whole_run() {
        let found = watched().metrics(100);
        let value = |metric: Metric| found.get(metric.name).copied();
        assert_eq!(value(metric::DEVICE_ENERGY), Some(0.5));
        assert_eq!(value(metric::DEVICE_MEMORY), Some(600.0));
        assert_eq!(value(metric::GPU_CLOCK), Some(1350.0e6));
        assert_eq!(value(metric::GPU_CLOCK_CHANGE), Some(0.2));
        assert_eq!((value(metric::GPU_POWER_CAPPED), value(metric::GPU_HEAT)), (Some(0.5), Some(0.0)));
        assert_eq!(value(metric::GPU_TEMPERATURE), Some(61.0));
        assert_eq!(value(metric::GPU_MEMORY_USED), Some(0.7));
        assert_eq!(value(metric::GPU_OTHERS_MEMORY), Some(0.1), "who was there before is not the worker");
        for unknown in [metric::PACKAGE_ENERGY, metric::GPU_POWER, metric::GPU_OTHERS] {
            assert_eq!(value(unknown), None, "{} is unknown, not zero", unknown.name);
        }
    }

    #[test]
    fn one_reading_has_no_range_and_none_no_metric() {
        let mut short = watched();
        short.series.truncate(2);
        assert!(!short.metrics(1).contains_key(metric::GPU_CLOCK_CHANGE.name));
        assert!(Watched::default().metrics(7).is_empty());
        assert!(!watched().metrics(0).contains_key(metric::DEVICE_ENERGY.name));
    }

    #[test]
    fn windows_add_up_and_one_unknown_makes_the_sum_unknown() {
        let mut meter = Meter { open: Some(3.0), joules: Some(0.0) };
        meter.close(|before| Some(5.0 - before));
        assert_eq!(meter.joules, Some(2.0));
        meter.open = Some(5.0);
        meter.close(|before| Some(9.0 - before));
        assert_eq!(meter.joules, Some(6.0));
        meter.close(|before| Some(10.0 - before));
        assert_eq!(meter.joules, None, "the counter could not be read when the window opened");
    }
}
