//! Locking the clocks of GPUs, where this user may: the one setting that perfrun changes, and only when it is asked to.

use super::monitor::Monitor;

/// Of the highest clock: most GPUs hold this part below their power limit. The default applications clock alone does not
/// serve: that of H100 and H200 is the highest, and NVML no longer has it from CUDA 13 on.
const PART_OF_THE_HIGHEST: f64 = 0.75;

/// What became of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locked {
    pub name: String,
    /// The clock that it was to get, in MHz.
    pub mhz: Option<u32>,
    /// Why it has not got it, a fragment.
    pub outcome: Result<(), String>,
    /// What does the same by hand, as root.
    pub by_hand: Option<String>,
    /// What takes it back.
    pub undo: String,
}

/// Locks the clock of every GPU, at the lower of the maker's default and three quarters of the highest.
pub fn lock_all(monitor: &dyn Monitor) -> Vec<Locked> {
    (0..monitor.count()).map(|gpu| lock(monitor, gpu)).collect()
}

fn lock(monitor: &dyn Monitor, gpu: u32) -> Locked {
    let facts = monitor.facts(gpu);
    let name = facts.as_ref().map_or_else(|_| format!("GPU {gpu}"), |facts| format!("GPU {gpu} ({})", facts.name));
    // `nvidia-smi` also takes the bus address, which is unambiguous; the numbers depend on the environment.
    let id = facts.as_ref().ok().and_then(|facts| facts.pci.clone()).unwrap_or_else(|| gpu.to_string());
    let most = facts.as_ref().ok().and_then(|facts| facts.most_mhz);
    let mhz = clock(monitor.default_mhz(gpu), most);
    let outcome = match (&facts, mhz) {
        (Err(problem), _) => Err(problem.clone()),
        (_, None) => Err("its clocks cannot be read".to_owned()),
        (_, Some(mhz)) => monitor.lock_clock(gpu, mhz),
    };
    let by_hand = mhz.map(|mhz| format!("nvidia-smi -i {id} -pm 1 && nvidia-smi -i {id} -lgc {mhz},{mhz}"));
    let keeps = facts.is_ok_and(|facts| facts.persistence == Some(true));
    let undo = match keeps {
        true => format!("nvidia-smi -i {id} -rgc"),
        false => format!("nvidia-smi -i {id} -rgc && nvidia-smi -i {id} -pm 0"),
    };
    Locked { name, mhz, outcome, by_hand, undo }
}

fn clock(default: Option<u32>, most: Option<u32>) -> Option<u32> {
    let part = most.map(|most| (f64::from(most) * PART_OF_THE_HIGHEST) as u32);
    [default, part].into_iter().flatten().filter(|mhz| *mhz > 0).min()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::monitor::{Facts, Point, Process};

    /// Two GPUs, of which the second may be set by root alone.
    #[derive(Debug, Default)]
    struct Two(Mutex<Vec<(u32, u32)>>);

    impl Monitor for Two {
        fn count(&self) -> u32 {
            2
        }
        fn facts(&self, gpu: u32) -> Result<Facts, String> {
            let persistence = Some(gpu == 0);
            let (name, pci) = ("A".to_owned(), Some(format!("00000000:0{gpu}:00.0")));
            Ok(Facts { number: gpu, name, pci, most_mhz: Some(2000), persistence, ..Facts::default() })
        }
        fn read(&self, _gpu: u32) -> Point {
            Point::default()
        }
        fn processes(&self, _gpu: u32) -> Option<Vec<Process>> {
            None
        }
        fn energy_joules(&self, _gpu: u32) -> Option<f64> {
            None
        }
        fn lock_clock(&self, gpu: u32, mhz: u32) -> Result<(), String> {
            if gpu == 1 {
                return Err("no permission".to_owned());
            }
            self.0.lock().expect("one thread").push((gpu, mhz));
            Ok(())
        }
        fn default_mhz(&self, gpu: u32) -> Option<u32> {
            (gpu == 0).then_some(1095)
        }
    }

    #[test]
    fn what_may_be_locked_is_and_everything_says_how_to_take_it_back() {
        let monitor = Two::default();
        let found = lock_all(&monitor);
        assert_eq!(*monitor.0.lock().expect("one thread"), [(0, 1095)]);
        let [first, second] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((first.outcome.is_ok(), first.undo.as_str()), (true, "nvidia-smi -i 00000000:00:00.0 -rgc"));
        assert_eq!((second.mhz, second.outcome.clone()), (Some(1500), Err("no permission".to_owned())));
        let by_hand = "nvidia-smi -i 00000000:01:00.0 -pm 1 && nvidia-smi -i 00000000:01:00.0 -lgc 1500,1500";
        assert_eq!(second.by_hand.as_deref(), Some(by_hand));
        assert!(second.undo.ends_with("-pm 0"), "persistence was off before");
    }

    #[test]
    fn without_any_clock_nothing_is_set() {
        assert_eq!(
            (clock(None, None), clock(Some(0), Some(1000)), clock(Some(900), None)),
            (None, Some(750), Some(900))
        );
    }

    #[test]
    fn a_default_at_the_highest_clock_is_not_taken() {
        // H100: 1980 MHz is both. A100: 1095 of 1410.
        assert_eq!((clock(Some(1980), Some(1980)), clock(Some(1095), Some(1410))), (Some(1485), Some(1057)));
    }
}
