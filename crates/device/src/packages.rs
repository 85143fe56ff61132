//! What processors draw, by the counters of their packages (RAPL).
//!
//! Linux shows them below `/sys/class/powercap`, since 2020 to root alone (CVE-2020-8694). Each counts microjoules and
//! begins anew at a limit that it states. Read twice around a window, never in between.

use base::machine::kernel::Kernel;

const FOLDER: &str = "sys/class/powercap";

/// No package draws more: a window in which a counter could have begun anew twice is not known.
const MOST_WATTS: f64 = 1000.0;

/// Where readings of the processors' energy come from.
#[derive(Clone, Debug)]
pub enum Packages {
    Rapl { kernel: Kernel, zones: Vec<Zone> },
    Scripted { watts: f64 },
}

/// The counter of a package.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    path: String,
    /// The value after which it begins anew, in microjoules.
    most: u64,
}

/// What all counters said at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counters(Vec<u64>);

impl Packages {
    /// Those of a machine.
    ///
    /// # Errors
    ///
    /// Why there are none, a fragment.
    pub fn here(kernel: &Kernel) -> Result<Self, &'static str> {
        let names = kernel.names(FOLDER).into_iter().filter(|name| name.starts_with("intel-rapl:"));
        let paths = names.map(|name| format!("{FOLDER}/{name}"));
        // Parts of a package are counted in the package, and `psys` has the packages in it.
        let is_package =
            |path: &String| kernel.text(&format!("{path}/name")).is_some_and(|name| name.starts_with("package"));
        let paths: Vec<String> = paths.filter(is_package).collect();
        if paths.is_empty() {
            return Err("the kernel exposes no energy counters of the processors");
        }
        let zone = |path: &String| {
            Some(Zone { most: kernel.number(&format!("{path}/max_energy_range_uj"))?, path: path.clone() })
        };
        let zones: Option<Vec<Zone>> = paths.iter().map(zone).collect();
        let packages = zones.map(|zones| Packages::Rapl { kernel: kernel.clone(), zones });
        packages
            .filter(|packages| packages.read().is_some())
            .ok_or("only root may read the energy counters of the processors")
    }

    /// All counters now; `None` where one cannot be read, and of a script, which has none.
    pub fn read(&self) -> Option<Counters> {
        match self {
            Packages::Scripted { .. } => None,
            Packages::Rapl { kernel, zones } => zones
                .iter()
                .map(|zone| kernel.number(&format!("{}/energy_uj", zone.path)))
                .collect::<Option<_>>()
                .map(Counters),
        }
    }

    /// What all packages drew between two looks `seconds` apart, in joules; `None` where a counter may have begun anew
    /// more than once.
    pub fn between(&self, before: &Counters, after: &Counters, seconds: f64) -> Option<f64> {
        match self {
            Packages::Scripted { watts } => Some(watts * seconds),
            Packages::Rapl { zones, .. } => {
                let of_zone = |(zone, (before, after)): (&Zone, (&u64, &u64))| {
                    let is_known = seconds * MOST_WATTS * 1e6 < zone.most as f64;
                    let risen = if after >= before {
                        after - before
                    } else {
                        zone.most.checked_sub(*before)?.checked_add(*after)?
                    };
                    is_known.then_some(risen as f64 / 1e6)
                };
                zones.iter().zip(before.0.iter().zip(&after.0)).map(of_zone).sum()
            }
        }
    }

    /// What a script says of so long a window.
    pub(crate) fn scripted_joules(&self, seconds: f64) -> Option<f64> {
        match self {
            Packages::Scripted { watts } => Some(watts * seconds),
            Packages::Rapl { .. } => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::machine::kernel::fake::FakeKernel;

    fn two_packages() -> FakeKernel {
        FakeKernel::with(&[
            ("sys/class/powercap/intel-rapl/enabled", "1"),
            ("sys/class/powercap/intel-rapl:0/name", "package-0\n"),
            ("sys/class/powercap/intel-rapl:0/energy_uj", "1000000"),
            ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850"),
            ("sys/class/powercap/intel-rapl:0:0/name", "core"),
            ("sys/class/powercap/intel-rapl:0:0/energy_uj", "7"),
            ("sys/class/powercap/intel-rapl:1/name", "package-1"),
            ("sys/class/powercap/intel-rapl:1/energy_uj", "262142328850"),
            ("sys/class/powercap/intel-rapl:1/max_energy_range_uj", "262143328850"),
            ("sys/class/powercap/intel-rapl:2/name", "psys"),
            ("sys/class/powercap/intel-rapl:2/energy_uj", "9"),
        ])
    }

    #[test]
    fn packages_add_up_and_counters_begin_anew() {
        let fake = two_packages();
        let packages = Packages::here(&fake.kernel()).unwrap();
        let before = packages.read().unwrap();
        fake.write(&[
            ("sys/class/powercap/intel-rapl:0/energy_uj", "3500000"),
            ("sys/class/powercap/intel-rapl:1/energy_uj", "500000"),
        ]);
        let after = packages.read().unwrap();
        // 2.5 J, and 1 J to the end with 0.5 J from the beginning.
        assert_eq!(packages.between(&before, &after, 5.0), Some(4.0));
        assert_eq!(packages.between(&before, &after, 300.0), None, "it may have begun anew twice");
    }

    #[test]
    fn what_is_not_there_is_told_from_what_may_not_be_read() {
        assert!(Packages::here(&FakeKernel::with(&[]).kernel()).unwrap_err().contains("exposes no"));
        let fake = FakeKernel::with(&[
            ("sys/class/powercap/intel-rapl:0/name", "package-0"),
            ("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "100"),
        ]);
        assert!(Packages::here(&fake.kernel()).unwrap_err().contains("only root"));
    }
}
