//! What the runtime says about itself and about where each node went.
#![expect(unsafe_code, reason = "version and placement are asked of the C API")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use ort::AsPointer;
use ort::session::Session;

use super::failures::take_status;

/// The version that a library reports for itself; `ort` asks it too, but keeps the answer.
pub(super) fn library_version(path: &Path) -> Option<String> {
    // SAFETY: the library was opened before, so its initialisers have run; opening it again only counts.
    let library = unsafe { libloading::Library::new(path) }.ok()?;
    // SAFETY: every ONNX Runtime library exports this symbol with this signature.
    let base = unsafe {
        let get: libloading::Symbol<'_, unsafe extern "C" fn() -> *const ort::sys::OrtApiBase> =
            library.get(b"OrtGetApiBase\0").ok()?;
        get()
    };
    if base.is_null() {
        return None;
    }
    // SAFETY: the base is a static of the library, and its version a NUL-terminated static text.
    let version = unsafe { CStr::from_ptr(((*base).GetVersionString)()) };
    version.to_str().ok().map(str::to_owned)
}

/// Nodes of the optimised graph by the provider that took them; empty where the runtime does not say.
pub(super) fn nodes_by_provider(session: &Session) -> BTreeMap<String, u64> {
    let api = ort::api();
    let mut subgraphs: *const *const ort::sys::OrtEpAssignedSubgraph = ptr::null();
    let mut count = 0_usize;
    let mut nodes = BTreeMap::new();
    // SAFETY: the session lives; the call fills the two out-parameters or returns a status, which is checked.
    let status = unsafe { (api.Session_GetEpGraphAssignmentInfo)(session.ptr().cast(), &mut subgraphs, &mut count) };
    if !status.0.is_null() {
        let _reason = take_status(status);
        return nodes;
    }
    for index in 0..count {
        let mut name: *const c_char = ptr::null();
        let mut assigned: *const *const ort::sys::OrtEpAssignedNode = ptr::null();
        let mut length = 0_usize;
        // SAFETY: the runtime returned `count` subgraphs, which live as long as the session; both calls only fill
        // out-parameters.
        let statuses = unsafe {
            let subgraph = *subgraphs.add(index);
            [
                (api.EpAssignedSubgraph_GetEpName)(subgraph, &mut name),
                (api.EpAssignedSubgraph_GetNodes)(subgraph, &mut assigned, &mut length),
            ]
        };
        let mut failed = false;
        for status in statuses {
            if !status.0.is_null() {
                let _reason = take_status(status);
                failed = true;
            }
        }
        if failed || name.is_null() {
            continue;
        }
        // SAFETY: a name that is not null is a NUL-terminated string owned by the session.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        *nodes.entry(name).or_insert(0) += length as u64;
    }
    nodes
}
