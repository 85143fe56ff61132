//! A look at a GPU before anything is measured: what it is, what it draws while nothing of perfrun runs, whether its
//! clock is locked, and who else computes on it. From this, what `require` asks for is granted or refused.

use serde::{Deserialize, Serialize};

use super::Gpu;
pub use super::monitor::Facts;
use super::monitor::Process;
use base::code::percent;

/// Readings of a look, a tenth of a second apart: two seconds.
const READINGS: usize = 20;

/// Readings after which a clock that has not fallen is locked: ten seconds, since a GPU that has just worked takes some.
const PATIENCE: usize = 100;

/// A clock below this part of the highest is that of an idle GPU. The lowest that the driver lists is no measure of it: an
/// idle H100 stays at 345 MHz, with 210 the lowest and 1980 the highest.
const IDLE: f64 = 0.5;

/// A clock that moves by more than this while the GPU is idle is not locked.
const STEADY: f64 = 0.01;

/// Other processes occupy a GPU if they hold a larger share of its memory, or use a larger share of its time.
const OCCUPIED: f64 = 0.05;

/// What was seen of a GPU before the first block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    pub facts: Facts,
    /// Mean power while nothing of perfrun ran on it, over two seconds.
    pub idle_watts: Option<f64>,
    /// Whether its clock holds while it is idle; `None` where that was not looked for, or cannot be known.
    pub clocks_locked: Option<bool>,
    /// Which other processes occupy it, a fragment; `None`: none, as far as the driver reports.
    #[serde(rename = "others")]
    pub occupied_by: Option<String>,
}

/// Looks. `wait` lets a tenth of a second pass; false ends the look, with `None`. A clock is watched for up to ten
/// seconds where somebody asks whether it is locked.
pub fn look(gpu: &Gpu, asks_for_clocks: bool, wait: &mut dyn FnMut() -> bool) -> Result<Option<Look>, String> {
    let facts = gpu.monitor.facts(gpu.number)?;
    let (mut watts, mut clocks) = (Vec::new(), Vec::new());
    let most = facts.most_mhz.map(|mhz| f64::from(mhz) * 1e6);
    let mut used = None;
    while watts.len() < READINGS || (asks_for_clocks && !has_fallen(&clocks, most) && watts.len() < PATIENCE) {
        if !watts.is_empty() && gpu.monitor.environment().on_machine(&mut *wait) == Some(false) {
            return Ok(None);
        }
        let reading = gpu.monitor.read(gpu.number);
        watts.push(reading.power_watts);
        clocks.extend(reading.clock_cycles_per_s);
        used = reading.memory_bytes;
    }
    let idle: Vec<f64> = watts.iter().take(READINGS).flatten().copied().collect();
    let listed = gpu.monitor.processes(gpu.number);
    Ok(Some(Look {
        idle_watts: (!idle.is_empty()).then(|| idle.iter().sum::<f64>() / idle.len() as f64),
        clocks_locked: asks_for_clocks.then(|| is_locked(&clocks, most)).flatten(),
        occupied_by: occupied_by(&listed.unwrap_or_default(), used, facts.memory_bytes),
        facts,
    }))
}

fn has_fallen(clocks: &[f64], most: Option<f64>) -> bool {
    let (low, high) =
        (clocks.iter().copied().fold(f64::INFINITY, f64::min), clocks.iter().copied().fold(0.0, f64::max));
    most.is_some_and(|most| low < most * IDLE) || high - low > STEADY * high
}

/// NVML does not say whether a clock is locked, so its course does: one that is not locked falls while the GPU is idle.
/// `None` without a reading, and for a steady clock whose highest is unknown.
fn is_locked(clocks: &[f64], most: Option<f64>) -> Option<bool> {
    match has_fallen(clocks, most) {
        _ if clocks.is_empty() => None,
        true => Some(false),
        false => most.map(|_| true),
    }
}

/// Who holds memory or uses time of a GPU on which perfrun runs nothing.
fn occupied_by(listed: &[Process], used: Option<u64>, all: Option<u64>) -> Option<String> {
    let all = all.filter(|all| *all > 0)? as f64;
    let share = |process: &Process| process.memory_bytes.map_or(0.0, |bytes| bytes as f64 / all);
    let busy = listed
        .iter()
        .filter(|process| share(process) > OCCUPIED || process.utilisation.is_some_and(|part| part > OCCUPIED));
    let names: Vec<String> = busy.map(|process| process.pid.to_string()).collect();
    if !names.is_empty() {
        let (noun, verb) = if names.len() == 1 { ("process", "computes") } else { ("processes", "compute") };
        return Some(format!("{noun} {} {verb} on it", names.join(", ")));
    }
    // In a container the driver lists no processes from outside, but their memory counts as used.
    let held = used? as f64 / all;
    (held > OCCUPIED).then(|| format!("other processes hold {} of its memory", percent((held * 100.0).round() / 100.0)))
}

/// What a specification requires of every GPU that it measures on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub locked_clocks: bool,
    pub nobody_else: bool,
}

/// Why a GPU is not as required: the key as it is written, what was found, and what to do; `None`: it is.
pub fn why_refused(label: &str, look: &Look, wanted: Wanted) -> Option<(String, String)> {
    let name = format!("{label} ({})", look.facts.name);
    if wanted.locked_clocks && look.clocks_locked != Some(true) {
        let found = match look.clocks_locked {
            Some(false) => "its clock is not locked: it drops while the GPU is idle",
            _ => "its clocks cannot be read",
        };
        let remedy = "`perfrun doctor --fix` locks it as root, or prints the command";
        return Some((format!("`require: {{ gpu_clocks: locked }}`: {name}: {found}"), remedy.to_owned()));
    }
    let occupied_by = look.occupied_by.as_ref().filter(|_| wanted.nobody_else)?;
    let remedy = "stop them (`nvidia-smi` lists processes), or take another GPU";
    Some((format!("`require: {{ foreign_processes: none }}`: {name}: {occupied_by}"), remedy.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_clock_holds_while_idle() {
        let most = Some(1980e6);
        assert_eq!(is_locked(&[1410e6; 20], most), Some(true));
        assert_eq!(is_locked(&[1410e6, 1410e6, 345e6], most), Some(false));
        assert_eq!(is_locked(&[345e6; 20], most), Some(false), "an idle H100");
        assert_eq!(is_locked(&[1410e6, 1380e6], most), Some(false), "it moves");
        assert_eq!(is_locked(&[1410e6], None), None);
        assert_eq!(is_locked(&[], most), None);
    }

    #[test]
    fn others_are_in_the_way_above_a_share() {
        let process =
            |share: f64, utilisation| Process { pid: 7, memory_bytes: Some((share * 1000.0) as u64), utilisation };
        let found = |listed: &[Process], used: u64| occupied_by(listed, Some(used), Some(1000));
        assert_eq!(found(&[process(0.05, Some(0.05))], 50), None);
        assert_eq!(found(&[process(0.06, None)], 60).as_deref(), Some("process 7 computes on it"));
        assert_eq!(found(&[process(0.0, Some(0.5))], 0).as_deref(), Some("process 7 computes on it"));
        assert_eq!(found(&[], 60).as_deref(), Some("other processes hold 6 % of its memory"));
        assert_eq!(occupied_by(&[], Some(60), None), None);
    }

    #[test]
    fn what_cannot_be_told_meets_no_requirement() {
        let look = Look { facts: Facts::default(), idle_watts: None, clocks_locked: None, occupied_by: None };
        let wanted = |locked_clocks, nobody_else| Wanted { locked_clocks, nobody_else };
        assert!(
            why_refused("cuda:0", &look, wanted(true, false)).is_some_and(|(text, _)| text.contains("cannot be read"))
        );
        assert_eq!(why_refused("cuda:0", &look, wanted(false, true)), None);
    }
}
