//! Kernels as events of a trace, below the nodes that they belong to, for Perfetto and `chrome://tracing`.

use serde_json::{Value, json};

use super::{Owner, Template, TraceClock, Work};
use crate::backend::trace::Trace;

/// The process that the device's streams are threads of: a number that no process has.
const DEVICE: u32 = 0;

/// The name of the device's rows.
pub(super) fn device() -> Value {
    json!({"name": "process_name", "ph": "M", "pid": DEVICE, "args": {"name": "GPU"}})
}

/// The events of one inference, on a row for each stream: around kernels of one node that follow each other, the node.
pub(super) fn events(work: &[Work], template: &Template, trace: &Trace, clock: TraceClock) -> Vec<Value> {
    let at = |nanos: u64| (nanos as i64 - clock.start as i64) as f64 / 1e3;
    let event = |category: &str, name: &str, stream: u32, start: u64, end: u64| {
        let duration = (end - start) as f64 / 1e3;
        json!({"cat": category, "name": name, "ph": "X", "pid": DEVICE, "tid": stream, "ts": at(start), "dur": duration})
    };
    let name_of = |owner: Owner| match owner {
        Owner::Node(node) => trace.nodes.get(node).map_or("?", |traced| traced.node.path.as_str()),
        other => other.operator(),
    };
    let mut order: Vec<(&Work, &(String, Owner))> = work.iter().zip(template).collect();
    order.sort_by_key(|(work, _)| (work.stream, work.start));
    let of_one = order.chunk_by(|(a, (_, owner)), (b, (_, next))| a.stream == b.stream && owner == next);
    let mut events = Vec::new();
    for group in of_one {
        let (Some((first, (_, owner))), Some((last, _))) = (group.first(), group.last()) else { continue };
        events.push(event("device", name_of(*owner), first.stream, first.start, last.end));
        events.extend(group.iter().map(|(work, (name, _))| event("kernel", name, work.stream, work.start, work.end)));
    }
    events
}
