//! Where the time of an inference goes, by ONNX Runtime's own profiler.
//!
//! Input: the files that the profiler writes for runs (trace events as JSON). Output: the parts of nodes on the CPU and of
//! copies: what nodes on a device take is not.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use super::placement::CPU;
use super::trace::{COPIES, Events};
use crate::backend::{Failure, FailureKind, TimeShares};

/// The shares of the time of an inference, from the profiles in a folder. Short runs leave fewer files than there were: their
/// names end in a millisecond.
///
/// # Errors
///
/// Files that cannot be read, and a folder without any node.
pub(super) fn shares(folder: &Path, inference: Duration) -> Result<TimeShares, Failure> {
    let (mut cpu, mut copies, mut files) = (0.0, 0.0, 0_u32);
    for file in fs::read_dir(folder).map_err(unreadable)? {
        let file = file.and_then(|file| File::open(file.path())).map_err(unreadable)?;
        // Each run has a clock of its own.
        let mut events = Events::default();
        events.read(file).map_err(unreadable)?;
        for traced in &events.all().map_err(unreadable)?.0.nodes {
            let is_copy = COPIES.contains(&traced.node.operator.as_str());
            let part = match () {
                () if is_copy => &mut copies,
                () if traced.node.provider == CPU => &mut cpu,
                () => continue,
            };
            *part += traced.self_us.iter().sum::<f64>();
        }
        files += 1;
    }
    let all = inference.as_secs_f64() * 1e6 * f64::from(files);
    if files == 0 || all <= 0.0 {
        return Err(unreadable("it has no nodes"));
    }
    // Nodes that ran side by side sum to more than the time they took.
    Ok(TimeShares { cpu: (cpu / all).min(1.0), copies: (copies / all).min(1.0) })
}

fn unreadable(error: impl ToString) -> Failure {
    Failure::new(FailureKind::Internal, format!("the profile cannot be read: {}", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As ONNX Runtime 1.31.1 writes them, shortened.
    const PROFILE: &str = r#"[
        {"cat":"Session","pid":1,"tid":1,"dur":900,"ts":1,"ph":"X","name":"model_run","args":{}},
        {"cat":"Node","tid":1,"dur":100,"ts":2,"ph":"X","name":"a_kernel_time","args":{"op_name":"MatMul","provider":"WebGpuExecutionProvider"}},
        {"cat":"Node","tid":1,"dur":300,"ts":102,"ph":"X","name":"c_kernel_time","args":{"op_name":"MemcpyToHost","provider":"WebGpuExecutionProvider"}},
        {"cat":"Node","tid":1,"dur":150,"ts":410,"ph":"X","name":"m_kernel_time","args":{"op_name":"Mod","provider":"CPUExecutionProvider"}},
        {"cat":"Node","tid":1,"dur":200,"ts":402,"ph":"X","name":"l_kernel_time","args":{"op_name":"Loop","provider":"CPUExecutionProvider"}},
        {"cat":"Kernel","tid":7,"dur":90,"ts":200,"ph":"X","name":"gemm","args":{"parent_name":"a_kernel_time"}},
        {"cat":"Node","tid":1,"dur":9,"ts":405,"ph":"X","name":"m_fence_before","args":{"op_name":"Mod"}}
    ]"#;

    /// However many runs there were.
    #[test]
    fn nodes_on_the_cpu_and_copies_are_told_as_parts_of_the_runs_that_left_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        for run in ["one.json", "two.json"] {
            fs::write(folder.path().join(run), PROFILE).expect("a file");
            let found = shares(folder.path(), Duration::from_micros(1000)).expect("a profile");
            assert_eq!((found.cpu, found.copies), (0.2, 0.3));
        }
        let found = shares(folder.path(), Duration::from_micros(50)).expect("a profile");
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
