//! Pressure stall information: how long tasks of the machine waited so far (Linux 4.20 and later).

use crate::machine::kernel::Kernel;

/// Microseconds since boot in which some task waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pressure {
    /// For a processor.
    pub(super) cpu: Option<u64>,
    pub(super) memory: Option<u64>,
    /// For input or output.
    pub(super) io: Option<u64>,
}

impl Pressure {
    pub(super) fn read(kernel: &Kernel) -> Self {
        let total = |resource: &str| {
            let text = kernel.text(&format!("proc/pressure/{resource}"))?;
            let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
            some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
        };
        Pressure { cpu: total("cpu"), memory: total("memory"), io: total("io") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    #[test]
    fn totals_are_those_of_some_task() {
        let text = "some avg10=96.21 avg60=96.75 avg300=84.04 total=3726402362\nfull avg10=0.00 avg60=0.00 total=17\n";
        let fake = FakeKernel::with(&[("proc/pressure/cpu", text), ("proc/pressure/io", "unsupported")]);
        let expected = Pressure { cpu: Some(3_726_402_362), memory: None, io: None };
        assert_eq!(Pressure::read(&fake.kernel()), expected);
    }
}
