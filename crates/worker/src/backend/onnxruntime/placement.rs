//! What the runtime says about itself and about where each node went.
#![expect(unsafe_code, reason = "version and placement are asked of the C API")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use ort::AsPointer;
use ort::session::Session;

use super::failures::take_status;
use crate::backend::{Failure, FailureKind};
use experiment::Device;

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

/// Where the runtime put the nodes of a session, as it says.
///
/// Some runtimes leave out nodes that they rewrite for a provider's layout (seen with WebGPU in 1.27.0): what is on the
/// CPU is complete, what is on a device may be less than there is.
#[derive(Debug, Default)]
pub(super) struct Assigned {
    /// Nodes of the optimised graph by the provider that took them; empty where the runtime does not say.
    pub(super) nodes: BTreeMap<String, u64>,
    /// Nodes by operator that are on the CPU in a session for another device.
    pub(super) fallback: BTreeMap<String, u64>,
}

/// ONNX Runtime's name of the provider for processors.
pub(super) const CPU: &str = "CPUExecutionProvider";

impl Assigned {
    /// Asks a session.
    pub(super) fn read(session: &Session, device: &Device) -> Self {
        let mut assigned = Assigned::default();
        for (provider, operators) in subgraphs(session) {
            if provider == CPU && !device.is_cpu() {
                for operator in &operators {
                    *assigned.fallback.entry(operator.clone()).or_insert(0) += 1;
                }
            }
            *assigned.nodes.entry(provider).or_insert(0) += operators.len() as u64;
        }
        assigned
    }
}

/// A session of which nodes are on the CPU is none where that is not allowed.
pub(super) fn refuse_fallback(session: &Session, device: &Device) -> Result<(), Failure> {
    let fallback = Assigned::read(session, device).fallback;
    if fallback.is_empty() {
        return Ok(());
    }
    let operators: Vec<String> = fallback.iter().map(|(operator, nodes)| format!("{nodes} {operator}")).collect();
    let text = format!("{} does not take {}, and `allow_fallback` is false", device.label(), operators.join(", "));
    Err(Failure::new(FailureKind::Operator, text))
}

/// Each assigned subgraph: its provider, and the operators of its nodes.
fn subgraphs(session: &Session) -> Vec<(String, Vec<String>)> {
    let api = ort::api();
    let mut subgraphs: *const *const ort::sys::OrtEpAssignedSubgraph = ptr::null();
    let mut count = 0_usize;
    // SAFETY: the session lives; the call fills the two out-parameters or returns a status, which is checked.
    let status = unsafe { (api.Session_GetEpGraphAssignmentInfo)(session.ptr().cast(), &mut subgraphs, &mut count) };
    if !succeeded(status) {
        return Vec::new();
    }
    let subgraph_nodes = |index: usize| {
        let mut name: *const c_char = ptr::null();
        let mut nodes: *const *const ort::sys::OrtEpAssignedNode = ptr::null();
        let mut length = 0_usize;
        // SAFETY: the runtime returned `count` subgraphs, which live as long as the session; both calls only fill
        // out-parameters.
        let statuses = unsafe {
            let subgraph = *subgraphs.add(index);
            [
                (api.EpAssignedSubgraph_GetEpName)(subgraph, &mut name),
                (api.EpAssignedSubgraph_GetNodes)(subgraph, &mut nodes, &mut length),
            ]
        };
        // Both are looked at: a status that is not released leaks.
        let have_succeeded = statuses.map(succeeded);
        if have_succeeded.contains(&false) {
            return None;
        }
        // SAFETY: the runtime returned `length` nodes, which live as long as the session.
        let operators = (0..length).map(|node| operator_of(unsafe { *nodes.add(node) })).collect();
        Some((text(name)?, operators))
    };
    (0..count).filter_map(subgraph_nodes).collect()
}

fn operator_of(node: *const ort::sys::OrtEpAssignedNode) -> String {
    let mut name: *const c_char = ptr::null();
    // SAFETY: the node is one of a living session; the call only fills the out-parameter.
    let status = unsafe { (ort::api().EpAssignedNode_GetOperatorType)(node, &mut name) };
    let name = if succeeded(status) { text(name) } else { None };
    name.unwrap_or_else(|| "?".to_owned())
}

/// Whether there is no status; one that is there is released.
fn succeeded(status: ort::sys::OrtStatusPtr) -> bool {
    if status.0.is_null() {
        return true;
    }
    let _reason = take_status(status);
    false
}

fn text(name: *const c_char) -> Option<String> {
    // SAFETY: a name that is not null is a text that ends in zero and is owned by the session.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}
