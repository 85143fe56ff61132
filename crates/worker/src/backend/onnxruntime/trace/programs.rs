//! Programs of WebGPU in a trace -> what each node took on the device.
//!
//! ONNX Runtime writes an event for each, `node&operator&program`, by the device's clock, whose zero may be another than the
//! trace's. Of unnamed nodes it has the operator alone.

use std::collections::HashMap;

use super::Identity;
use crate::backend::trace::{TracedKernel, TracedNode, TracedOnDevice};

/// Every execution of programs: start and duration in microseconds, by `node&operator`, then by program.
#[derive(Default)]
pub(super) struct Programs(HashMap<String, HashMap<String, Vec<(i64, f64)>>>);

impl Programs {
    pub(super) fn add(&mut self, name: &str, start: i64, duration: i64) {
        let Some((node, program)) = name.rsplit_once('&').filter(|(node, _)| node.contains('&')) else { return };
        let programs = self.0.entry(node.to_owned()).or_default();
        programs.entry(program.to_owned()).or_default().push((start, duration.max(0) as f64));
    }

    /// How much earlier the last program of a node says that it started than the node last did on the host, which cannot be.
    pub(super) fn offset(&self, last_starts: &HashMap<&str, i64>) -> i64 {
        let early = self.0.iter().filter_map(|(node, programs)| {
            let last = programs.values().flatten().map(|(start, _)| *start).max()?;
            Some(last_starts.get(node.rsplit_once('&')?.0)?.saturating_sub(last))
        });
        early.fold(0, i64::max)
    }

    /// Puts times on the device in the place of those of launches, in the last `inferences` of so many runs. A program that
    /// ran less often than there are runs prepares weights.
    pub(super) fn put(
        mut self,
        nodes: &mut [TracedNode],
        launches: &[(Identity<'_>, usize)],
        runs: usize,
        inferences: usize,
    ) {
        if self.0.is_empty() {
            return;
        }
        let mut indices: HashMap<String, Vec<usize>> = HashMap::new();
        for ((name, operator, index), node) in launches {
            let of_name = format!("{name}&{operator}");
            let is_unnamed = *name == format!("{operator}_{index}") && !self.0.contains_key(&of_name);
            indices.entry(if is_unnamed { format!("&{operator}") } else { of_name }).or_default().push(*node);
        }
        for (name, indices) in indices {
            let programs = self.0.remove(&name).unwrap_or_default();
            let is_idle = programs.is_empty();
            let kernels = programs.into_iter().filter_map(|(name, times)| kernel(name, times, runs, inferences));
            let mut kernels: Vec<TracedKernel> = kernels.collect();
            // It is unknown whose programs they are, or in which inferences they ran; without any a node did nothing there.
            if !is_idle && (indices.len() > 1 || kernels.is_empty()) {
                continue;
            }
            kernels.sort_by(|a, b| a.name.cmp(&b.name));
            for index in indices {
                replace_launches(&mut nodes[index], kernels.clone(), inferences);
            }
        }
        // A copy back waits for the programs before it.
        nodes
            .iter_mut()
            .filter(|traced| traced.node.operator == "MemcpyToHost")
            .for_each(|traced| traced.is_launch = true);
    }
}

fn kernel(name: String, mut times: Vec<(i64, f64)>, runs: usize, inferences: usize) -> Option<TracedKernel> {
    let in_each = times.len() / runs.max(1);
    times.sort_by_key(|(start, _)| *start);
    let last = times.get(times.len() - in_each * inferences..).filter(|_| in_each > 0)?;
    let us = last.chunks(in_each).map(|times| times.iter().map(|(_, us)| us).sum()).collect();
    Some(TracedKernel { name, executions: last.len() as u64, us })
}

fn replace_launches(traced: &mut TracedNode, kernels: Vec<TracedKernel>, inferences: usize) {
    let launch_us = traced.self_us.iter().sum::<f64>() / inferences.max(1) as f64;
    traced.is_launch = false;
    traced.self_us = (0..inferences).map(|inference| kernels.iter().map(|kernel| kernel.us[inference]).sum()).collect();
    traced.on_device = Some(TracedOnDevice { launch_us, waits_us: vec![0.0; inferences], kernels });
}
