//! Where the time of an inference goes, by ONNX Runtime's own profiler.
//!
//! Input: the files that the profiler writes for runs (trace events as JSON). Output: the parts of nodes on the CPU and of
//! copies. A node of a device is there as long as the host takes to hand it over, so only those two are told.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use super::placement::CPU;
use crate::worker::backend::{Failure, FailureKind, TimeShares};

/// One event of a profile.
#[derive(Deserialize)]
struct Event {
    /// `Node` for nodes.
    cat: String,
    /// In microseconds.
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    args: Arguments,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Arguments {
    op_name: String,
    provider: String,
}

/// Operators that copy between host and device; the runtime adds them.
const COPIES: [&str; 2] = ["MemcpyToHost", "MemcpyFromHost"];

/// Operators whose time is that of the nodes inside them.
const CONTAINERS: [&str; 3] = ["If", "Loop", "Scan"];

/// The shares of a time that several runs took, from the profiles in a folder.
///
/// # Errors
///
/// Files that cannot be read, and a folder without any node.
pub(super) fn shares(folder: &Path, taken: Duration) -> Result<TimeShares, Failure> {
    let unreadable = |text: String| Failure::new(FailureKind::Internal, format!("the profile cannot be read: {text}"));
    let files = fs::read_dir(folder).map_err(|error| unreadable(error.to_string()))?;
    let (mut cpu, mut copies, mut nodes) = (0.0, 0.0, 0_usize);
    for file in files {
        let text = file.and_then(|file| fs::read(file.path())).map_err(|error| unreadable(error.to_string()))?;
        let events: Vec<Event> = serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
        for event in events.iter().filter(|event| event.cat == "Node" && !event.args.provider.is_empty()) {
            let operator = event.args.op_name.as_str();
            nodes += 1;
            if COPIES.contains(&operator) {
                copies += event.dur;
            } else if event.args.provider == CPU && !CONTAINERS.contains(&operator) {
                cpu += event.dur;
            }
        }
    }
    let all = taken.as_secs_f64() * 1e6;
    if nodes == 0 || all <= 0.0 {
        return Err(unreadable("it has no nodes".to_owned()));
    }
    // Nodes that ran side by side sum to more than the time they took.
    Ok(TimeShares { cpu: (cpu / all).min(1.0), copies: (copies / all).min(1.0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ONNX Runtime 1.31.1 writes them, shortened.
    const PROFILE: &str = r#"[
        {"cat":"Session","pid":1,"tid":1,"dur":900,"ts":1,"ph":"X","name":"model_run","args":{}},
        {"cat":"Node","dur":100,"ts":2,"ph":"X","name":"a_kernel_time","args":{"op_name":"MatMul","provider":"WebGpuExecutionProvider"}},
        {"cat":"Node","dur":300,"ts":3,"ph":"X","name":"c_kernel_time","args":{"op_name":"MemcpyToHost","provider":"WebGpuExecutionProvider"}},
        {"cat":"Node","dur":200,"ts":4,"ph":"X","name":"m_kernel_time","args":{"op_name":"Mod","provider":"CPUExecutionProvider"}},
        {"cat":"Node","dur":200,"ts":4,"ph":"X","name":"l_kernel_time","args":{"op_name":"Loop","provider":"CPUExecutionProvider"}},
        {"cat":"Node","dur":9,"ts":5,"ph":"X","name":"m_fence_before","args":{"op_name":"Mod"}}
    ]"#;

    #[test]
    fn nodes_on_the_cpu_and_copies_are_told_as_parts_of_the_time() {
        let folder = tempfile::tempdir().expect("a folder");
        for run in ["one.json", "two.json"] {
            fs::write(folder.path().join(run), PROFILE).expect("a file");
        }
        let found = shares(folder.path(), Duration::from_micros(2000)).expect("a profile");
        assert_eq!((found.cpu, found.copies), (0.2, 0.3));
        let found = shares(folder.path(), Duration::from_micros(100)).expect("a profile");
        assert_eq!((found.cpu, found.copies), (1.0, 1.0));
    }

    #[test]
    fn what_is_no_profile_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let failure = |folder: &Path| shares(folder, Duration::from_secs(1)).expect_err("no profile").message;
        assert_eq!(failure(folder.path()), "the profile cannot be read: it has no nodes");
        fs::write(folder.path().join("one.json"), "[{]").expect("a file");
        assert!(failure(folder.path()).starts_with("the profile cannot be read: "));
        assert!(failure(&folder.path().join("none")).starts_with("the profile cannot be read: "));
    }
}
