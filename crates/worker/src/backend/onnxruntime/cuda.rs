//! CUDA's stream, its clock, and copies (method 1.5), through the driver's API; loaded only for NVIDIA's providers.
//!
//! Source: CUDA Driver API, "Event Management" and "Memory Management". docs/reference/gpus.md says what was proved on GPUs.
#![expect(unsafe_code, reason = "the driver's copies take raw addresses")]

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUevent_flags, is_culib_present};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

use super::OnnxruntimeRequest;
use super::stream::{Costs, Stream};
use crate::backend::failure::classify;
use crate::backend::{Failure, FailureKind};
use experiment::{Boundary, Completion, Provider};
use statistics::quantile::median;

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

/// The libraries of CUDA and cuDNN that ONNX Runtime's provider opens by name, now or at the first convolution, each after
/// those that it needs itself. NVRTC opens `libnvrtc-builtins` by name at its first compilation, and cuDNN's engines that
/// are compiled at run time use NVRTC (pytorch#167614).
const LIBRARIES: [&str; 16] = [
    "libcudart.so.",
    "libnvJitLink.so.",
    "libnvrtc-builtins.so.",
    "libnvrtc.so.",
    "libcublasLt.so.",
    "libcublas.so.",
    "libcurand.so.",
    "libcufft.so.",
    "libcudnn.so.9",
    "libcudnn_graph.so.9",
    "libcudnn_ops.so.9",
    "libcudnn_heuristic.so.9",
    "libcudnn_adv.so.9",
    "libcudnn_cnn.so.9",
    "libcudnn_engines_precompiled.so.9",
    "libcudnn_engines_runtime_compiled.so.9",
];

/// Every file of [`LIBRARIES`] in these folders, in that order; of several with one name the first folder's.
fn files_in(folders: &[PathBuf]) -> Vec<PathBuf> {
    let names_in = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names.into_iter().map(|name| (name.clone(), folder.join(name))).collect::<Vec<_>>()
    };
    let all: Vec<(String, PathBuf)> = folders.iter().flat_map(names_in).collect();
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for library in LIBRARIES {
        for (name, path) in all.iter().filter(|(name, _)| name.starts_with(library)) {
            if !found.iter().any(|(earlier, _)| earlier == name) {
                found.push((name.clone(), path.clone()));
            }
        }
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// Opens the driver's library, then CUDA's and cuDNN's from these folders, so that no search path must be set for them.
/// What no folder has is left to the system's loader.
///
/// # Errors
///
/// Without a driver, and for a library that is there and cannot be opened.
pub(super) fn open_libraries(folders: &[PathBuf]) -> Result<(), Failure> {
    // SAFETY: opening the driver's library runs its initialisers, which is what it is opened for.
    if !unsafe { is_culib_present() } {
        return Err(Failure::new(FailureKind::Provider, "CUDA: no driver library (libcuda.so.1)"));
    }
    files_in(folders).iter().try_for_each(|path| open_library(path))
}

fn open_library(path: &Path) -> Result<(), Failure> {
    let cannot = |error| Failure::new(FailureKind::Provider, format!("cannot open {}: {error}", path.display()));
    ort::util::preload_dylib(path).map_err(cannot)
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

    fn write(&self, address: *const c_void, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.drain()?;
        // SAFETY: the address is that of a tensor of at least so many bytes on this device, which nothing uses meanwhile.
        unsafe { result::memcpy_htod_sync(address as CUdeviceptr, bytes) }.map_err(failure)
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

/// The stream of a device whose provider takes one, after its libraries; none where copies are within the clock, which end
/// with the call.
pub(super) fn open_stream(settings: &OnnxruntimeRequest) -> Result<Option<Box<dyn Stream>>, Failure> {
    let has_stream = Provider::of(&settings.device).is_some_and(|provider| provider.completion == Completion::Stream);
    if !has_stream {
        return Ok(None);
    }
    open_libraries(&settings.cuda)?;
    if settings.boundary == Boundary::Host {
        return Ok(None);
    }
    Ok(Some(Box::new(CudaTimeline::open(settings.device.index.unwrap_or(0))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nvrtc_opens_by_name_is_opened_before_it() {
        let root = tempfile::tempdir().expect("a folder");
        let (toolkit, cudnn) = (root.path().join("cu13/lib"), root.path().join("cudnn/lib"));
        let files = [
            (&toolkit, "libnvrtc.so.13"),
            (&toolkit, "libnvrtc.alt.so.13"),
            (&toolkit, "libnvrtc-builtins.so.13.0"),
            (&toolkit, "libnvJitLink.so.13"),
            (&toolkit, "libcudart.so.13"),
            (&cudnn, "libcudnn.so.9"),
            (&cudnn, "libcudnn_graph.so.9"),
            (&cudnn, "libcudart.so.13"),
        ];
        for (folder, name) in files {
            std::fs::create_dir_all(folder).expect("a folder");
            std::fs::write(folder.join(name), "").expect("a file");
        }
        let found = files_in(&[toolkit.clone(), root.path().join("absent"), cudnn.clone()]);
        let wanted = [
            toolkit.join("libcudart.so.13"),
            toolkit.join("libnvJitLink.so.13"),
            toolkit.join("libnvrtc-builtins.so.13.0"),
            toolkit.join("libnvrtc.so.13"),
            cudnn.join("libcudnn.so.9"),
            cudnn.join("libcudnn_graph.so.9"),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn a_library_that_cannot_be_opened_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("libcudnn.so.9");
        std::fs::write(&path, "no library").expect("a file");
        let failure = open_library(&path).expect_err("it is no library");
        assert_eq!((failure.kind, failure.in_short().as_str()), (FailureKind::Provider, "cuDNN 9 cannot be loaded"));
    }
}
