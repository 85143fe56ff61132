//! A GPU that a script plays: for tests, and to see what a report says without one.

use super::monitor::{Facts, Monitor, Point, Process, ScriptedRun, slowed};
use base::machine::environment::Environment;
use experiment::{MockDevice, MockSlowed};

const MEMORY: u64 = 16 << 30;
const MOST_MHZ: u32 = 1980;
const LEAST_MHZ: u32 = 210;
/// A process that is nobody's: above the kernel's largest number.
const STRANGER: u32 = u32::MAX;
const GPUS: u32 = 8;
/// As far apart as those of a real GPU.
const READING_NS: u64 = super::sampler::PERIOD.as_nanos() as u64;
const MOST_READINGS: u64 = 100;

#[derive(Debug)]
pub(super) struct Scripted {
    script: MockDevice,
}

impl Scripted {
    pub(super) fn new(script: MockDevice) -> Self {
        Scripted { script }
    }

    fn memory(&self, share: f64) -> u64 {
        (MEMORY as f64 * share) as u64
    }

    fn reading(&self, clock_mhz: u32) -> Point {
        let reasons = match self.script.slowed {
            None => 0,
            Some(MockSlowed::Heat) => slowed::FOR_HEAT,
            Some(MockSlowed::Power) => slowed::FOR_POWER,
        };
        Point {
            utilisation_ratio: Some(1.0),
            memory_utilisation_ratio: Some(0.5),
            memory_bytes: Some(self.memory(self.script.others_memory.0 + self.script.memory.0)),
            clock_cycles_per_s: Some(f64::from(clock_mhz) * 1e6),
            memory_clock_cycles_per_s: Some(2e9),
            power_watts: Some(self.script.watts),
            temperature_celsius: Some(self.script.celsius),
            clock_reasons: Some(reasons),
            ..Point::default()
        }
    }
}

impl Monitor for Scripted {
    fn count(&self) -> u32 {
        GPUS
    }

    fn facts(&self, gpu: u32) -> Result<Facts, String> {
        if gpu >= GPUS {
            return Err(format!("there are {GPUS} GPUs, and no number {gpu}"));
        }
        Ok(Facts {
            number: gpu,
            name: "a GPU of a script".to_owned(),
            memory_bytes: Some(MEMORY),
            most_mhz: Some(MOST_MHZ),
            least_mhz: Some(LEAST_MHZ),
            persistence: Some(self.script.persistence),
            ..Facts::default()
        })
    }

    fn read(&self, _gpu: u32) -> Point {
        let first = self.script.clocks.first().copied().unwrap_or(MOST_MHZ);
        Point {
            utilisation_ratio: Some(self.script.others.0),
            memory_utilisation_ratio: Some(0.0),
            memory_bytes: Some(self.memory(self.script.others_memory.0)),
            power_watts: Some(self.script.idle_watts),
            clock_reasons: Some(1),
            ..self.reading(if self.script.locked { first } else { LEAST_MHZ })
        }
    }

    fn processes(&self, _gpu: u32) -> Option<Vec<Process>> {
        let (memory, time) = (self.script.others_memory.0, self.script.others.0);
        let stranger = Process { pid: STRANGER, memory_bytes: Some(self.memory(memory)), utilisation: Some(time) };
        Some(if memory > 0.0 || time > 0.0 { vec![stranger] } else { Vec::new() })
    }

    fn energy_joules(&self, _gpu: u32) -> Option<f64> {
        None
    }

    fn lock_clock(&self, _gpu: u32, _mhz: u32) -> Result<(), String> {
        Err("a script has no clock".to_owned())
    }

    fn default_mhz(&self, _gpu: u32) -> Option<u32> {
        None
    }

    fn environment(&self) -> Environment {
        Environment::script()
    }

    fn script_of_run(&self, _gpu: u32, sampled_ns: u64) -> Option<ScriptedRun> {
        let clocks = if self.script.clocks.is_empty() { vec![MOST_MHZ] } else { self.script.clocks.clone() };
        // Every clock of the script is read, however short the run.
        let count = (sampled_ns / READING_NS).clamp(1, MOST_READINGS).max(clocks.len() as u64);
        let readings = clocks.iter().cycle().take(count as usize).map(|mhz| self.reading(*mhz)).collect();
        Some(ScriptedRun { readings, joules: self.script.watts * sampled_ns as f64 / 1e9 })
    }
}
