//! CUDA's stream, its clock, and copies (method 1.5), through the driver's API; loaded only for NVIDIA's providers.
//!
//! Written from the documentation of the driver (CUDA Driver API, "Event Management" and "Memory Management") and not yet
//! seen on a GPU: docs/gpu.md says what proves it.
#![expect(unsafe_code, reason = "the driver's copies take raw addresses")]

use std::ffi::c_void;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUevent_flags, is_culib_present};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

use super::failures::provider_failure;
use super::stream::{Costs, Stream};
use crate::experiment::CUDA_FOLDER;
use crate::statistics::quantile::median;
use crate::worker::backend::failure::classify;
use crate::worker::backend::{Failure, FailureKind};

/// A stream of perfrun's own, which is not the null stream: ONNX Runtime takes that for none.
pub(super) struct CudaTimeline {
    stream: Arc<CudaStream>,
    start: CudaEvent,
    end: CudaEvent,
    /// What is overwritten to empty the cache of the device, once it is asked for.
    scratch: Option<cudarc::driver::CudaSlice<u8>>,
}

fn failure(error: DriverError) -> Failure {
    let message = format!("CUDA: {error}");
    Failure::new(classify(&message, FailureKind::Provider), message)
}

/// Opens the driver's library and, where perfrun fetched them, CUDA's, which lie beside the folder of the runtime: so nobody
/// sets a path for them.
pub(super) fn open_libraries(runtime: &Path) -> Result<(), Failure> {
    // SAFETY: opening the driver's library runs its initialisers, which is what it is opened for.
    if !unsafe { is_culib_present() } {
        return Err(Failure::new(FailureKind::Provider, "CUDA: no driver library (libcuda.so.1)"));
    }
    let folder = runtime.parent().and_then(Path::parent).map(|cache| cache.join(CUDA_FOLDER));
    match folder.filter(|folder| folder.is_dir()) {
        Some(folder) => ort::ep::cuda::preload_dylibs(Some(&folder), Some(&folder)).map_err(provider_failure),
        None => Ok(()),
    }
}

impl CudaTimeline {
    /// A stream on the GPU of this number, in PCI order.
    ///
    /// The driver's library is there: [`open_libraries`] came before.
    pub(super) fn open(index: u32) -> Result<Self, Failure> {
        let context = CudaContext::new(index as usize).map_err(failure)?;
        let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).map_err(failure);
        let (start, end) = (event()?, event()?);
        Ok(CudaTimeline { stream: context.new_stream().map_err(failure)?, start, end, scratch: None })
    }

    /// Nanoseconds of a copy, by events around it.
    fn time(&self, copy: impl FnOnce() -> Result<(), DriverError>) -> Result<u64, Failure> {
        self.start()?;
        copy().map_err(failure)?;
        self.wait()?;
        self.elapsed_ns()
    }
}

impl Stream for CudaTimeline {
    fn handle(&self) -> usize {
        self.stream.cu_stream() as usize
    }

    fn start(&self) -> Result<(), Failure> {
        self.start.record(&self.stream).map_err(failure)
    }

    fn wait(&self) -> Result<(), Failure> {
        self.end.record(&self.stream).map_err(failure)?;
        self.end.synchronize().map_err(failure)
    }

    fn elapsed_ns(&self) -> Result<u64, Failure> {
        let milliseconds = self.start.elapsed_ms(&self.end).map_err(failure)?;
        Ok((f64::from(milliseconds) * 1e6).round() as u64)
    }

    fn drain(&self) -> Result<(), Failure> {
        self.stream.context().synchronize().map_err(failure)
    }

    fn read(&self, address: *const c_void, bytes: usize) -> Result<Vec<u8>, Failure> {
        let mut values = vec![0_u8; bytes];
        if bytes > 0 {
            self.drain()?;
            // SAFETY: the address is that of a tensor of so many bytes on this device, nothing that writes it is under way,
            // and the vector has as many.
            unsafe { result::memcpy_dtoh_sync(&mut values, address as CUdeviceptr) }.map_err(failure)?;
        }
        Ok(values)
    }

    fn costs(&self, inputs: &[usize], outputs: &[usize], iterations: u32) -> Result<Costs, Failure> {
        let most = inputs.iter().chain(outputs).copied().max().unwrap_or(0).max(1);
        /// Not write-combined, which the host reads slowly.
        const CACHED: u32 = 0;
        // SAFETY: what is in the two buffers is never looked at.
        let (device, mut host) = unsafe {
            let host = self.stream.context().alloc_pinned_with_flags::<u8>(most, CACHED).map_err(failure)?;
            (self.stream.alloc::<u8>(most).map_err(failure)?, host)
        };
        let address = {
            use cudarc::driver::DevicePtr;
            device.device_ptr(&self.stream).0
        };
        let host = host.as_mut_slice().map_err(failure)?;
        let stream = self.stream.cu_stream();
        let (mut events, mut to_device, mut to_host) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..iterations.max(1) {
            events.push(self.time(|| Ok(()))? as f64);
            let copies = || {
                // SAFETY: both buffers have at least as many bytes as any tensor and live until the copy was waited for.
                inputs
                    .iter()
                    .try_for_each(|bytes| unsafe { result::memcpy_htod_async(address, &host[..*bytes], stream) })
            };
            to_device.push(self.time(copies)? as f64);
            let copies = || {
                let mut each = outputs.iter();
                // SAFETY: as above.
                each.try_for_each(|bytes| unsafe { result::memcpy_dtoh_async(&mut host[..*bytes], address, stream) })
            };
            to_host.push(self.time(copies)? as f64);
        }
        let typical = |times: &[f64]| median(times).unwrap_or(0.0) as u64;
        Ok(Costs { events_ns: typical(&events), to_device_ns: typical(&to_device), to_host_ns: typical(&to_host) })
    }

    fn flush(&mut self) -> Result<(), Failure> {
        /// Twice the cache of the largest GPU known here (50 MiB of an H100, 126 MB of a B200).
        const BYTES: usize = 256 << 20;
        if self.scratch.is_none() {
            // SAFETY: it is written before anybody could read it, and nobody does.
            self.scratch = Some(unsafe { self.stream.alloc::<u8>(BYTES) }.map_err(failure)?);
        }
        if let Some(scratch) = &mut self.scratch {
            self.stream.memset_zeros(scratch).map_err(failure)?;
        }
        self.drain()
    }
}
