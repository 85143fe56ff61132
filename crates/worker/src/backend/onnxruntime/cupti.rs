//! CUPTI: what an NVIDIA GPU did, kernel by kernel, and the call that asked for it. Loaded for profiled cells alone.
//!
//! Source: `cupti_activity.h`, `cupti_callbacks.h` and `cupti_result.h` of CUDA 12.0 to 13.4 (CUPTI, "Activity API"). Records
//! are read as bytes, at places that are the same in all of these versions, so that no record of a newer one is a wrong type.
#![expect(unsafe_code, reason = "CUPTI hands over buffers of its own")]

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use libloading::Library;

use super::kernels::{Call, Captured, Recorded, Work};

/// Kinds of records, `CUpti_ActivityKind`.
const COPY: u32 = 1;
const FILL: u32 = 2;
const DRIVER: u32 = 4;
const RUNTIME: u32 = 5;
const KERNEL: u32 = 10;

/// `CUPTI_CB_DOMAIN_RESOURCE`, and two of its callbacks: a node of a CUDA graph is made, or copied from another.
const RESOURCE: u32 = 3;
const NODE_CREATED: u32 = 13;
const NODE_CLONED: u32 = 20;

/// As large as CUPTI's documentation recommends (1 to 10 MB).
const BUFFER: Layout = match Layout::from_size_align(8 << 20, 8) {
    Ok(layout) => layout,
    Err(_) => unreachable!(),
};

/// CUPTI's callbacks have no place for a value of ours.
static FILLED: Mutex<Filled> = Mutex::new(Filled { buffers: Vec::new(), captured: Vec::new(), clones: Vec::new() });

struct Filled {
    buffers: Vec<Buffer>,
    captured: Vec<Captured>,
    clones: Vec<(u64, u64)>,
}

/// A buffer of [`BUFFER`] that CUPTI has filled.
struct Buffer {
    start: *mut u8,
    used: usize,
}

// SAFETY: CUPTI no longer uses a buffer that it has returned, and `Buffer` is the only owner of the address.
unsafe impl Send for Buffer {}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `requested` allocated it with this layout.
        unsafe { dealloc(self.start, BUFFER) };
    }
}

fn filled() -> MutexGuard<'static, Filled> {
    FILLED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // SAFETY: CUPTI passes places for three values. Where memory runs out it gets none, and drops records, which it counts.
    unsafe {
        *buffer = alloc(BUFFER);
        *size = if (*buffer).is_null() { 0 } else { BUFFER.size() };
        *most_records = 0;
    }
}

extern "C" fn completed(_context: *mut c_void, _stream: u32, start: *mut u8, _size: usize, used: usize) {
    if !start.is_null() {
        filled().buffers.push(Buffer { start, used: used.min(BUFFER.size()) });
    }
}

/// The first members of `CUpti_GraphData`; the rest is not read.
#[repr(C)]
struct GraphData {
    graph: *const c_void,
    original_graph: *const c_void,
    node: *const c_void,
    original_node: *const c_void,
}

/// `CUpti_ResourceData`.
#[repr(C)]
struct ResourceData {
    context: *const c_void,
    handle: *const c_void,
    descriptor: *const GraphData,
}

/// Where CUPTI calls back, `api` is an [`Api`] that is never freed.
extern "C" fn called_back(api: *mut c_void, domain: u32, callback: u32, data: *const ResourceData) {
    if domain != RESOURCE || ![NODE_CREATED, NODE_CLONED].contains(&callback) || data.is_null() {
        return;
    }
    // SAFETY: `api` is what `open` passed; for these two callbacks CUPTI's data are those of a graph, and live during the call.
    let (api, graph) = unsafe { (&*api.cast::<Api>(), (*data).descriptor) };
    if graph.is_null() {
        return;
    }
    // SAFETY: as above.
    let (node, original) = unsafe { ((*graph).node, (*graph).original_node) };
    let Some(id) = api.graph_node(node) else { return };
    let mut filled = filled();
    match api.graph_node(original).filter(|_| callback == NODE_CLONED) {
        Some(original) => filled.clones.push((id, original)),
        None => filled.captured.push(Captured { graph_node: id, thread: thread(), at: api.now() }),
    }
}

/// This thread, by the system's number.
fn thread() -> i64 {
    i64::from(rustix::thread::gettid().as_raw_nonzero().get())
}

type GetNextRecord = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> u32;
type Requested = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
type Completed = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type CalledBack = extern "C" fn(*mut c_void, u32, u32, *const ResourceData);

/// CUPTI's functions. Results are numbers: those of a newer version have no name here.
struct Api {
    get_result_string: unsafe extern "C" fn(u32, *mut *const c_char) -> u32,
    get_timestamp: unsafe extern "C" fn(*mut u64) -> u32,
    set_thread_id_type: unsafe extern "C" fn(u32) -> u32,
    subscribe: unsafe extern "C" fn(*mut *mut c_void, CalledBack, *const Api) -> u32,
    enable_domain: unsafe extern "C" fn(u32, *mut c_void, u32) -> u32,
    get_graph_node_id: unsafe extern "C" fn(*const c_void, *mut u64) -> u32,
    register_callbacks: unsafe extern "C" fn(Requested, Completed) -> u32,
    enable: unsafe extern "C" fn(u32) -> u32,
    flush_all: unsafe extern "C" fn(u32) -> u32,
    get_next_record: GetNextRecord,
    get_dropped: unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> u32,
}

impl Api {
    fn load(library: &Library) -> Result<Self, String> {
        fn get<F: Copy>(library: &Library, name: &str) -> Result<F, String> {
            // SAFETY: the type of each function is that of its declaration in CUPTI's headers.
            let function = unsafe { library.get::<F>(name.as_bytes()) };
            function.map(|function| *function).map_err(|_| format!("CUPTI has no `{name}`: it is too old"))
        }
        Ok(Api {
            get_result_string: get(library, "cuptiGetResultString")?,
            get_timestamp: get(library, "cuptiGetTimestamp")?,
            set_thread_id_type: get(library, "cuptiSetThreadIdType")?,
            subscribe: get(library, "cuptiSubscribe")?,
            enable_domain: get(library, "cuptiEnableDomain")?,
            get_graph_node_id: get(library, "cuptiGetGraphNodeId")?,
            register_callbacks: get(library, "cuptiActivityRegisterCallbacks")?,
            enable: get(library, "cuptiActivityEnable")?,
            flush_all: get(library, "cuptiActivityFlushAll")?,
            get_next_record: get(library, "cuptiActivityGetNextRecord")?,
            get_dropped: get(library, "cuptiActivityGetNumDroppedRecords")?,
        })
    }

    /// Nanoseconds on the clock of its records: since 1970, as the system's.
    fn now(&self) -> u64 {
        let mut now = 0;
        // SAFETY: it writes one number.
        unsafe { (self.get_timestamp)(&raw mut now) };
        now
    }

    fn graph_node(&self, node: *const c_void) -> Option<u64> {
        let mut id = 0;
        // SAFETY: a node that CUPTI has just told of.
        let is_known = !node.is_null() && unsafe { (self.get_graph_node_id)(node, &raw mut id) } == 0;
        is_known.then_some(id)
    }

    fn check(&self, result: u32) -> Result<(), String> {
        if result == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: it writes the address of a text that is never freed.
        let is_named = unsafe { (self.get_result_string)(result, &raw mut name) } == 0 && !name.is_null();
        // SAFETY: as above.
        let name = if is_named { unsafe { CStr::from_ptr(name) }.to_string_lossy() } else { "an error".into() };
        Err(refusal(result, &name))
    }
}

/// Why CUPTI does not record, a fragment.
fn refusal(result: u32, name: &str) -> String {
    let why = match result {
        // Also where a tool has started this process.
        39 => "another profiler (nsys, ncu, cuda-gdb) holds it in this process",
        33 | 40 => "the hypervisor does not allow it on this virtual GPU",
        35 => "the driver refuses this user; `NVreg_RestrictProfilingToAdminUsers` may be the reason",
        41 => "the GPU is in confidential computing mode",
        43 => "this CUPTI does not record on a MIG instance",
        45 => "this CUPTI does not record on WSL",
        _ => return format!("CUPTI: {name} ({result})"),
    };
    format!("CUPTI: {why} ({name})")
}

/// CUPTI, which records.
pub(super) struct Recorder {
    api: &'static Api,
    subscriber: *mut c_void,
    /// When each inference since [`Recorder::start`] was over, and when that was.
    marks: Vec<u64>,
}

impl Recorder {
    /// Opens the library and has kernels, copies and fills recorded. This comes before CUDA is initialised, or threads have
    /// other numbers than ONNX Runtime's.
    ///
    /// # Errors
    ///
    /// Why nothing is recorded, a fragment.
    pub(super) fn open(folders: &[PathBuf]) -> Result<Self, String> {
        let library = open_library(folders)?;
        let api: &'static Api = Box::leak(Box::new(Api::load(&library)?));
        // Its threads may call back until the process ends.
        std::mem::forget(library);
        let mut subscriber = std::ptr::null_mut();
        // SAFETY: the callbacks are functions, and `api` is never freed.
        unsafe {
            // `CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM`
            api.check((api.set_thread_id_type)(1))?;
            api.check((api.subscribe)(&raw mut subscriber, called_back, api))?;
            api.check((api.register_callbacks)(requested, completed))?;
        }
        let recorder = Recorder { api, subscriber, marks: Vec::new() };
        [KERNEL, COPY, FILL].into_iter().try_for_each(|kind| recorder.enable(kind))?;
        Ok(recorder)
    }

    fn enable(&self, kind: u32) -> Result<(), String> {
        // SAFETY: a number.
        self.api.check(unsafe { (self.api.enable)(kind) })
    }

    /// Has calls recorded too, and the nodes of CUDA graphs that are made from now on. It slows every call.
    pub(super) fn record_calls(&self) -> Result<(), String> {
        [DRIVER, RUNTIME].into_iter().try_for_each(|kind| self.enable(kind))?;
        // SAFETY: the subscriber is CUPTI's own.
        self.api.check(unsafe { (self.api.enable_domain)(1, self.subscriber, RESOURCE) })
    }

    /// Forgets what was recorded so far, but for nodes of graphs.
    pub(super) fn start(&mut self) {
        // Records that are not flushed lie before the first mark. [`Recorder::stop`] reports the error.
        let _not_flushed = self.flush();
        filled().buffers.clear();
        self.marks = vec![self.api.now()];
    }

    /// An inference is over, and its work done.
    pub(super) fn mark(&mut self) {
        self.marks.push(self.api.now());
    }

    fn flush(&self) -> Result<(), String> {
        // SAFETY: 1 is `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: buffers that are not full too.
        self.api.check(unsafe { (self.api.flush_all)(1) })
    }

    /// What was recorded since [`Recorder::start`].
    pub(super) fn stop(&mut self) -> Result<Recorded, String> {
        self.flush()?;
        let mut dropped = 0;
        // SAFETY: no context and no stream: all of them.
        self.api.check(unsafe { (self.api.get_dropped)(std::ptr::null_mut(), 0, &raw mut dropped) })?;
        let (buffers, captured, clones) = {
            let mut filled = filled();
            (std::mem::take(&mut filled.buffers), filled.captured.clone(), filled.clones.clone())
        };
        let marks = std::mem::take(&mut self.marks);
        let mut recorded = Recorded::default();
        (recorded.captured, recorded.clones, recorded.marks, recorded.dropped) = (captured, clones, marks, dropped);
        for buffer in &buffers {
            // SAFETY: CUPTI filled the first `used` bytes. Names of kernels live as long as their modules, and the session that
            // loaded these is still there.
            unsafe { read(self.api.get_next_record, buffer.start, buffer.used, &mut recorded) };
        }
        Ok(recorded)
    }

    /// CUPTI's clock less the system's in nanoseconds, and how exactly that is known.
    pub(super) fn clock_offset(&self) -> (i64, u64) {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
        let look = || {
            let (before, now, after) = (system(), self.api.now() as i64, system());
            let half = (after - before) / 2;
            (now - (before + half), half.unsigned_abs() + 1)
        };
        (0..16).map(|_| look()).min_by_key(|(_, error)| *error).unwrap_or_default()
    }
}

/// NVIDIA's wheel is in one of the folders; the toolkit has it beside its other libraries.
fn open_library(folders: &[PathBuf]) -> Result<Library, String> {
    let is_cupti = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("libcupti.so."))
    };
    let files = |folder: &PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).find(is_cupti)
    };
    let toolkit = ["libcupti.so.13", "libcupti.so.12", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so"];
    let found: Vec<PathBuf> = folders.iter().find_map(files).into_iter().collect();
    let candidates = if found.is_empty() { toolkit.map(PathBuf::from).to_vec() } else { found };
    let mut why = None;
    for path in &candidates {
        // SAFETY: opening the library runs its initialisers, which is what it is opened for.
        match unsafe { Library::new(path) } {
            Ok(library) => return Ok(library),
            Err(error) if Path::new(path).is_file() => why = Some(format!("cannot open {}: {error}", path.display())),
            Err(_) => {}
        }
    }
    Err(why.unwrap_or_else(|| {
        "there is no CUPTI (libcupti.so): `perfrun runtime install --gpu --with-cuda` fetches it".to_owned()
    }))
}

/// Adds the records of a buffer, as CUPTI walks it.
///
/// # Safety
///
/// So many bytes at `start` are records, and their names are texts.
unsafe fn read(next: GetNextRecord, start: *mut u8, used: usize, recorded: &mut Recorded) {
    let mut record = std::ptr::null_mut();
    // SAFETY: by this function's own.
    while unsafe { next(start, used, &raw mut record) } == 0 {
        let offset = (record as usize).wrapping_sub(start as usize);
        let Some(length) = used.checked_sub(offset).filter(|_| !record.is_null()) else { return };
        // SAFETY: the record lies within the buffer, and CUPTI has finished writing to it.
        let bytes = unsafe { std::slice::from_raw_parts(record, length) };
        // SAFETY: by this function's own.
        if unsafe { add(bytes, recorded) }.is_none() {
            return;
        }
    }
}

/// Adds the record at the start of these bytes; `None` where they are too few for it.
///
/// # Safety
///
/// The name of a kernel is the address of a text.
unsafe fn add(bytes: &[u8], recorded: &mut Recorded) -> Option<()> {
    let short = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let work = |name: u32, stream: usize, correlation: usize, graph_node: usize| {
        let (start, end) = (long(16)?, long(24)?);
        let (stream, correlation, graph_node) = (short(stream)?, short(correlation)?, long(graph_node)?);
        Some(Work { name, start, end: end.max(start), stream, correlation, graph_node })
    };
    match short(0)? {
        KERNEL => {
            let name = long(104)? as usize as *const c_char;
            // SAFETY: by this function's own.
            let name = if name.is_null() { "?".into() } else { unsafe { CStr::from_ptr(name) }.to_string_lossy() };
            let name = recorded.name(&name);
            recorded.work.push(work(name, 48, 92, 144)?);
        }
        COPY => {
            let name = recorded.name(copy_name(*bytes.get(4)?));
            recorded.work.push(work(name, 40, 44, 64)?);
        }
        FILL => {
            let name = recorded.name("[CUDA memset]");
            recorded.work.push(work(name, 40, 44, 64)?);
        }
        DRIVER | RUNTIME => {
            let (start, end, thread, correlation) = (long(8)?, long(16)?, i64::from(short(28)?), short(32)?);
            recorded.calls.push(Call { correlation, thread, start, end: end.max(start) });
        }
        _ => {}
    }
    Some(())
}

/// As NVIDIA's tools call a copy (`CUpti_ActivityMemcpyKind`).
fn copy_name(kind: u8) -> &'static str {
    match kind {
        1 => "[CUDA memcpy HtoD]",
        2 => "[CUDA memcpy DtoH]",
        8 => "[CUDA memcpy DtoD]",
        9 => "[CUDA memcpy HtoH]",
        10 => "[CUDA memcpy PtoP]",
        _ => "[CUDA memcpy]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of so many bytes with these numbers of four and of eight bytes.
    fn record(length: usize, short: &[(usize, u32)], long: &[(usize, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; length];
        short.iter().for_each(|(at, value)| bytes[*at..at + 4].copy_from_slice(&value.to_ne_bytes()));
        long.iter().for_each(|(at, value)| bytes[*at..at + 8].copy_from_slice(&value.to_ne_bytes()));
        bytes
    }

    /// As the headers of CUDA 13.0 lay them out: `CUpti_ActivityKernel10`, `Memcpy6`, `Memset4` and `API`.
    fn records() -> Vec<Vec<u8>> {
        let name = c"gemm".as_ptr() as u64;
        vec![
            record(216, &[(0, KERNEL), (48, 7), (92, 11)], &[(16, 100), (24, 150), (104, name), (144, 5)]),
            record(96, &[(0, COPY), (4, 2), (40, 7), (44, 12)], &[(8, 4096), (16, 160), (24, 170)]),
            record(88, &[(0, FILL), (40, 8), (44, 13)], &[(16, 180), (24, 175)]),
            record(40, &[(0, RUNTIME), (28, 42), (32, 11)], &[(8, 50), (16, 60)]),
            record(40, &[(0, 17)], &[]),
        ]
    }

    #[test]
    fn kernels_copies_fills_and_calls_are_read_and_other_records_passed_over() {
        let mut recorded = Recorded::default();
        // SAFETY: the name of the kernel is a text.
        records().iter().for_each(|bytes| unsafe { add(bytes, &mut recorded) }.expect("it is whole"));
        let work = |name: &str, start, end, stream, correlation, graph_node| {
            let name = Recorded::name(&mut recorded.clone(), name);
            Work { name, start, end, stream, correlation, graph_node }
        };
        let expected = [
            work("gemm", 100, 150, 7, 11, 5),
            work("[CUDA memcpy DtoH]", 160, 170, 7, 12, 0),
            // A clock that went back is no time below zero.
            work("[CUDA memset]", 180, 180, 8, 13, 0),
        ];
        assert_eq!(recorded.work, expected);
        assert_eq!(recorded.calls, [Call { correlation: 11, thread: 42, start: 50, end: 60 }]);
    }

    #[test]
    fn a_record_that_is_cut_off_is_not_read() {
        // Up to the end of the last field that is read.
        for (bytes, least) in records().iter().zip([152, 72, 72, 36]) {
            for length in 0..=least {
                let mut recorded = Recorded::default();
                // SAFETY: the name of the kernel is a text.
                let added = unsafe { add(&bytes[..length], &mut recorded) };
                assert_eq!(added.is_some(), length == least, "{length}");
                assert_eq!(recorded.work.len() + recorded.calls.len(), usize::from(length == least));
            }
        }
    }

    #[test]
    fn a_refusal_says_why() {
        for (result, why) in
            [(39, "another profiler"), (35, "refuses this user"), (43, "MIG"), (999, "CUPTI_ERROR_UNKNOWN (999)")]
        {
            assert!(refusal(result, "CUPTI_ERROR_UNKNOWN").contains(why), "{result}");
        }
    }

    #[test]
    fn a_library_that_cannot_be_opened_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("libcupti.so.13");
        std::fs::write(&path, "no library").expect("a file");
        let why = open_library(&[folder.path().to_owned()]).expect_err("it is no library");
        assert!(why.starts_with(&format!("cannot open {}: ", path.display())), "{why}");
    }
}
