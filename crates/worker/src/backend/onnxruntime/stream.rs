//! A stream of a device that perfrun owns, gives to the provider, and waits for (method 1.5).
//!
//! The order of records and waits is here; the calls of the driver are behind [`Stream`], so that a script can stand in.

use std::ffi::c_void;

use crate::backend::Failure;

/// What events with nothing between them and copies take, medians in nanoseconds on the device's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    pub(super) events_ns: u64,
    pub(super) to_device_ns: u64,
    pub(super) to_host_ns: u64,
}

/// A stream with an event at its beginning and one at its end.
pub(super) trait Stream: Send {
    /// As the provider takes it.
    fn handle(&self) -> usize;

    /// Records the first event.
    fn start(&self) -> Result<(), Failure>;

    /// Records the second event and waits until it came.
    fn wait(&self) -> Result<(), Failure>;

    /// Time between the two on the device's clock, in nanoseconds; after the wait.
    fn elapsed_ns(&self) -> Result<u64, Failure>;

    /// Waits until nothing is left to do on the whole device, whatever stream it is on.
    fn drain(&self) -> Result<(), Failure>;

    /// Bytes of a tensor on the device.
    fn read(&self, address: *const c_void, bytes: usize) -> Result<Vec<u8>, Failure>;

    /// Copies bytes into a tensor on the device.
    fn write(&self, address: *const c_void, bytes: &[u8]) -> Result<(), Failure>;

    /// Events with nothing between them, and copies of tensors with these numbers of bytes from and to pinned memory, medians
    /// of `iterations`.
    fn costs(&self, inputs: &[usize], outputs: &[usize], iterations: u32) -> Result<Costs, Failure>;

    /// Overwrites the cache of the device.
    fn flush(&mut self) -> Result<(), Failure>;
}

/// Calls between the two events, and waits for the second: all of it is the timed region.
pub(super) fn timed(
    stream: &dyn Stream,
    times: u32,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    stream.start()?;
    for _ in 0..times {
        call()?;
    }
    stream.wait()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::FailureKind;
    use std::cell::RefCell;

    /// Writes down what is asked of it.
    #[derive(Default)]
    struct Script(RefCell<Vec<&'static str>>);

    impl Stream for Script {
        fn handle(&self) -> usize {
            1
        }

        fn start(&self) -> Result<(), Failure> {
            self.0.borrow_mut().push("start");
            Ok(())
        }

        fn wait(&self) -> Result<(), Failure> {
            self.0.borrow_mut().push("wait");
            Ok(())
        }

        fn elapsed_ns(&self) -> Result<u64, Failure> {
            Ok(0)
        }

        fn drain(&self) -> Result<(), Failure> {
            self.0.borrow_mut().push("drain");
            Ok(())
        }

        fn read(&self, _address: *const c_void, bytes: usize) -> Result<Vec<u8>, Failure> {
            Ok(vec![0; bytes])
        }

        fn write(&self, _address: *const c_void, _bytes: &[u8]) -> Result<(), Failure> {
            Ok(())
        }

        fn costs(&self, _inputs: &[usize], _outputs: &[usize], _iterations: u32) -> Result<Costs, Failure> {
            Ok(Costs::default())
        }

        fn flush(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_sample_begins_with_an_event_and_ends_when_the_last_one_came() {
        let script = Script::default();
        let call = || {
            script.0.borrow_mut().push("run");
            Ok(())
        };
        assert_eq!(timed(&script, 2, call), Ok(()));
        assert_eq!(*script.0.borrow(), ["start", "run", "run", "wait"]);
    }

    #[test]
    fn a_call_that_fails_is_not_waited_for() {
        let script = Script::default();
        let lost = || Err(Failure::new(FailureKind::Provider, "device lost"));
        assert!(timed(&script, 3, lost).is_err());
        assert_eq!(*script.0.borrow(), ["start"]);
    }
}
