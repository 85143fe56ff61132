//! What a core can do at most by its data sheet: for a first guess alone, before the machine was seen at work.

use super::{CPUS, cpu_fact, cpu_features};
use crate::machine::kernel::Kernel;

/// Float32 operations of one core in one cycle, two for each multiply-accumulate, by what the kernel says that it has:
/// two units of this width where they are usual. The widest first.
const OPERATIONS_PER_CYCLE: [(&str, f64); 6] =
    [("avx512f", 64.0), ("fma", 32.0), ("avx", 16.0), ("sve", 32.0), ("asimd", 16.0), ("sse2", 8.0)];

/// Float32 operations per second of one core; `None` where its clock or its units are not known.
pub fn nominal_peak_of_core(kernel: &Kernel) -> Option<f64> {
    let highest =
        kernel.number::<f64>(&format!("{CPUS}/cpu0/cpufreq/cpuinfo_max_freq")).map(|kilohertz| kilohertz * 1e3);
    let now = || cpu_fact(kernel, "cpu MHz")?.parse::<f64>().ok().map(|megahertz| megahertz * 1e6);
    let clock = highest.or_else(now).filter(|clock| clock.is_finite() && *clock > 0.0)?;
    let features = cpu_features(kernel)?;
    let has = |name: &str| features.split_whitespace().any(|feature| feature == name);
    let (_, operations) = OPERATIONS_PER_CYCLE.iter().find(|(name, _)| has(name))?;
    Some(clock * operations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    #[test]
    fn a_peak_is_clock_times_width() {
        let peak = |files: &[(&str, &str)]| nominal_peak_of_core(&FakeKernel::with(files).kernel());
        let wide = "cpu MHz\t\t: 2500.0\nflags\t\t: fpu sse2 avx fma avx512f\n";
        assert_eq!(peak(&[("proc/cpuinfo", wide)]), Some(160e9));
        let arm = [("proc/cpuinfo", "Features\t: fp asimd\n"), (MAX, "3000000")];
        assert_eq!(peak(&arm), Some(48e9));
        assert_eq!(peak(&[("proc/cpuinfo", "Features\t: fp asimd\n")]), None);
        assert_eq!(peak(&[("proc/cpuinfo", "cpu MHz\t\t: 2500.0\n")]), None);
        assert_eq!(peak(&[("proc/cpuinfo", "cpu MHz\t\t: 0\nflags\t\t: sse2\n")]), None);
    }

    const MAX: &str = "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";
}
