//! ONNX Runtime's trace -> the time of every node in every inference.
//!
//! Input: trace events as JSON, of a session or of single runs. Output: a [`Trace`].
//!
//! - Events are a tree by containment in time on each thread: older versions write an event when it ends, newer ones sort by
//!   start. A node's own time is its event less the events in it, since `If`, `Loop` and `Scan` hold their bodies.
//! - Starts and durations are whole microseconds, rounded down, so that the computed end of an event is never after its
//!   true one: what follows never starts before it, and what it holds may seem to end one microsecond after it.
//! - No field says which graph a node is in, and names and indices repeat in bodies. A node is identified by both and by the
//!   node that it runs in.
//! - Shapes and bytes are those of the first inference: later ones take one block for all that the runtime planned.
//! - The event of a node on another device holds the time that the host took to launch it. `Kernel` events hold its time on
//!   the device; only some builds write them. WebGPU writes `Api` events (`programs`).

mod programs;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufWriter, Read, Write};
use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use serde_json::error::Category;

use self::programs::Programs;
use super::placement::CPU;
use super::spans::{Span, Spans};
use crate::backend::trace::{Arena, Node, Trace, TracedNode};
use crate::backend::{Failure, FailureKind};
use files::json_array;
use reading::plain_file;

/// After so many events the profiler drops the rest.
const MOST_EVENTS: usize = 1_000_000;

/// What the name of a node's event ends in.
const NODE: &str = "_kernel_time";

/// The category of programs of WebGPU.
const PROGRAM: &str = "Api";

/// Operators that copy between host and device; the runtime adds them, and they wait for the copy.
pub(super) const COPIES: [&str; 2] = ["MemcpyToHost", "MemcpyFromHost"];

/// The last `inferences` of a trace, of which a compressed copy is kept where there is room.
///
/// # Errors
///
/// A file that cannot be read, and a trace that cannot be used.
pub fn read(file: &Path, inferences: usize, keep: Option<&Path>) -> Result<Trace, Failure> {
    let mut events = Events::default();
    let opened = plain_file::open(file).map_err(|error| failed(&error))?;
    events.read(opened).map_err(|error| failed(&error))?;
    let (warmup, offset) = (events.warmup(inferences), events.program_offset());
    let trace = events.last(inferences).map_err(|error| failed(&error))?;
    // What is known does not depend on the copy.
    let _not_kept = keep.map(|keep| copy(file, &warmup, offset, &[], keep));
    Ok(trace)
}

/// A whole trace, and when each node ran.
///
/// # Errors
///
/// As [`read`].
pub(super) fn read_all(file: &Path) -> Result<(Trace, Spans), Failure> {
    let mut events = Events::default();
    let opened = plain_file::open(file).map_err(|error| failed(&error))?;
    events.read(opened).and_then(|()| events.all()).map_err(|error| failed(&error))
}

fn failed(error: &dyn fmt::Display) -> Failure {
    Failure::new(FailureKind::Internal, format!("the profiler's trace: {error}"))
}

/// Writes a trace without its warm-up, which would be most of it, and with further events, compressed. Programs of WebGPU are
/// put later by an offset.
pub(super) fn copy(file: &Path, warmup: &Range<i64>, offset: i64, more: &[Value], to: &Path) -> io::Result<()> {
    let mut file = plain_file::open(file)?;
    plain_file::replace(to, |to| {
        let mut to = BufWriter::new(zstd::Encoder::new(to, zstd::DEFAULT_COMPRESSION_LEVEL)?);
        let (mut separator, mut written) = ("[\n", Ok(()));
        json_array::each_item(&mut file, &mut |mut event| {
            if let (PROGRAM, Some(start)) = (text(&event, "cat"), event["ts"].as_i64()) {
                event["ts"] = start.saturating_add(offset).into();
            }
            let is_kept = event["ts"].as_i64().is_some_and(|start| !warmup.contains(&start));
            if is_kept && written.is_ok() {
                let before = to.write_all(separator.as_bytes());
                written = before.and_then(|()| Ok(serde_json::to_writer(&mut to, &event)?));
                separator = ",\n";
            }
        })?;
        written?;
        for event in more {
            to.write_all(separator.as_bytes())?;
            serde_json::to_writer(&mut to, event)?;
            separator = ",\n";
        }
        to.write_all(b"\n]\n")?;
        to.into_inner()?.finish().map(drop)
    })
}

/// Why a trace cannot be used, a fragment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TraceError {
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    #[error("it is not valid JSON: {0}; before 1.31.0, ONNX Runtime does not escape the names of nodes")]
    Unescaped(String),
    #[error("it is empty or cut off")]
    Cut,
    #[error("ONNX Runtime drops events after {MOST_EVENTS}, and the trace has reached that")]
    Dropped,
    #[error("it has {found} inferences, not {wanted}")]
    Inferences { found: usize, wanted: usize },
    #[error("it has no nodes")]
    NoNodes,
}

/// What is kept of an event, since there may be a million.
#[derive(Clone, Copy)]
struct Event {
    thread: i64,
    start: i64,
    end: i64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// An inference.
    Run,
    /// A node, by the index of its facts. It may contain other nodes.
    Node { facts: usize, holds: bool, live_bytes: Option<u64> },
    /// Time on a device, of the nodes of this name.
    Kernel { parent: usize },
}

impl Event {
    /// By start. In the same microsecond, a node that contains other nodes comes before them, and a longer event before
    /// a shorter one.
    fn order(&self) -> impl Ord + use<> {
        let (facts, holds, live_bytes) = match self.what {
            What::Node { facts, holds, live_bytes } => (facts, holds, live_bytes),
            What::Run | What::Kernel { .. } => (0, false, None),
        };
        (self.start, !holds, Reverse(self.end), facts, live_bytes, self.thread)
    }

    fn microseconds(&self) -> f64 {
        self.end.saturating_sub(self.start) as f64
    }
}

/// What identifies a node in its graph: name, operator and index.
type Identity<'a> = (&'a str, &'a str, &'a str);

/// What an event says of its node: the same for nearly all events of a node.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct NodeFacts {
    /// Without the nodes around it, and without what is different in each execution.
    node: Node,
    /// Its index in its graph.
    index: String,
}

impl NodeFacts {
    fn of(name: &str, arguments: &Value) -> Self {
        let text = |key| text(arguments, key).to_owned();
        let number = |key| bytes(arguments, key).unwrap_or(0);
        let node = Node {
            path: name.to_owned(),
            operator: text("op_name"),
            provider: text("provider"),
            inputs: shapes(&arguments["input_type_shape"]),
            outputs: shapes(&arguments["output_type_shape"]),
            output_bytes: number("output_size"),
            parameter_bytes: number("parameter_size"),
            live_bytes: None,
        };
        NodeFacts { node, index: text("node_index") }
    }

    fn identity(&self) -> Identity<'_> {
        (&self.node.path, &self.node.operator, &self.index)
    }

    fn is_launch(&self) -> bool {
        self.node.provider != CPU && !COPIES.contains(&self.node.operator.as_str())
    }
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key].as_str().unwrap_or_default()
}

/// A number of bytes, which is written as a text.
fn bytes(arguments: &Value, key: &str) -> Option<u64> {
    arguments[key].as_str()?.parse().ok()
}

/// `float[1,3]` of `[{"float":[1,3]},{"int64":[]}]`, and so on; anything else is nothing.
fn shapes(described: &Value) -> Vec<String> {
    let shape = |(element, sizes): (&String, &Value)| {
        let sizes: Vec<String> =
            sizes.as_array()?.iter().filter_map(Value::as_i64).map(|size| size.to_string()).collect();
        Some(format!("{element}[{}]", sizes.join(",")))
    };
    described.as_array().into_iter().flatten().filter_map(Value::as_object).flatten().filter_map(shape).collect()
}

/// Every event of one or several files.
#[derive(Default)]
pub(super) struct Events {
    read: usize,
    were_dropped: bool,
    events: Vec<Event>,
    facts: HashMap<NodeFacts, usize>,
    parents: HashMap<String, usize>,
    programs: Programs,
    /// What is known of the arena, and from a node of when.
    arena: Option<(i64, Arena)>,
}

impl Events {
    /// Adds the events of a file.
    ///
    /// # Errors
    ///
    /// What is not JSON, or is cut.
    pub(super) fn read(&mut self, mut file: impl Read) -> Result<(), TraceError> {
        json_array::each_item(&mut file, &mut |event| self.add(&event)).map_err(|error| match error.classify() {
            Category::Eof => TraceError::Cut,
            // The runtime writes an event a line.
            Category::Syntax if error.line() > 1 => TraceError::Unescaped(error.to_string()),
            _ => TraceError::Unreadable(error.to_string()),
        })
    }

    fn add(&mut self, event: &Value) {
        self.read += 1;
        self.were_dropped |= self.read >= MOST_EVENTS;
        let (name, arguments) = (text(event, "name"), &event["args"]);
        let what = match text(event, "cat") {
            _ if self.were_dropped => return,
            "Session" if name == "model_run" => What::Run,
            "Session" if name == "profile_truncated" => {
                self.were_dropped = true;
                return;
            }
            "Node" => match name.strip_suffix(NODE) {
                Some(name) => self.node(name, arguments),
                // Older versions write fences around a node.
                None => return,
            },
            "Kernel" => {
                let next = self.parents.len();
                What::Kernel { parent: *self.parents.entry(text(arguments, "parent_name").to_owned()).or_insert(next) }
            }
            PROGRAM => {
                let times = event["ts"].as_i64().zip(event["dur"].as_i64());
                return times.into_iter().for_each(|(start, duration)| self.programs.add(name, start, duration));
            }
            _ => return,
        };
        // The profiler writes whole microseconds: other events are not its own.
        if let (Some(start), Some(duration)) = (event["ts"].as_i64(), event["dur"].as_i64()) {
            let thread = event["tid"].as_i64().unwrap_or(0);
            self.look_at_arena(start, arguments);
            self.events.push(Event { thread, start, end: start.saturating_add(duration.max(0)), what });
        }
    }

    /// What was in use before the first node, and the most that was held; older versions report neither.
    fn look_at_arena(&mut self, start: i64, arguments: &Value) {
        let number = |key| text(arguments, key).parse::<i64>().ok();
        let after = number("mem_bytes_requested_in_use").zip(number("mem_requested_in_use_delta"));
        let (Some((after, added)), Some(held)) = (after, number("mem_arena_held")) else { return };
        let [before_bytes, held_bytes] = [after.saturating_sub(added), held].map(|bytes| bytes.max(0) as u64);
        let (first, arena) = self.arena.get_or_insert((start, Arena { before_bytes, held_bytes }));
        arena.held_bytes = arena.held_bytes.max(held_bytes);
        if start < *first {
            (*first, arena.before_bytes) = (start, before_bytes);
        }
    }

    fn node(&mut self, name: &str, arguments: &Value) -> What {
        let facts = NodeFacts::of(name, arguments);
        let holds = ["If", "Loop", "Scan"].contains(&facts.node.operator.as_str());
        let next = self.facts.len();
        let facts = *self.facts.entry(facts).or_insert(next);
        What::Node { facts, holds, live_bytes: bytes(arguments, "mem_bytes_requested_in_use") }
    }

    /// The inferences in the order in which they began.
    fn runs(&self) -> Vec<Event> {
        let mut runs: Vec<Event> = self.events.iter().filter(|event| event.what == What::Run).copied().collect();
        runs.sort_by_key(|run| (run.start, run.end));
        runs
    }

    /// When what is between the first inference and the last ones began and ended.
    fn warmup(&self, inferences: usize) -> Range<i64> {
        let runs = self.runs();
        let start = |run: usize| runs.get(run).map_or(i64::MAX, |run| run.start);
        start(1)..start(runs.len().saturating_sub(inferences))
    }

    /// How many microseconds later programs of WebGPU ran than they say, at the least.
    fn program_offset(&self) -> i64 {
        let mut last: HashMap<usize, i64> = HashMap::new();
        for event in &self.events {
            if let What::Node { facts, .. } = event.what {
                let start = last.entry(facts).or_insert(event.start);
                *start = event.start.max(*start);
            }
        }
        let names = self.facts.iter().filter_map(|(facts, index)| Some((facts.node.path.as_str(), *last.get(index)?)));
        self.programs.offset(&names.collect())
    }

    /// What ran in all inferences, and when each node did.
    ///
    /// # Errors
    ///
    /// As [`Events::last`].
    pub(super) fn all(self) -> Result<(Trace, Spans), TraceError> {
        let inferences = self.runs().len();
        self.found(inferences)
    }

    /// What ran in the last `inferences`.
    ///
    /// # Errors
    ///
    /// Events that the profiler dropped, fewer inferences, and no node in them.
    pub(super) fn last(self, inferences: usize) -> Result<Trace, TraceError> {
        self.found(inferences).map(|(trace, _)| trace)
    }

    fn found(self, inferences: usize) -> Result<(Trace, Spans), TraceError> {
        if self.were_dropped {
            return Err(TraceError::Dropped);
        }
        let runs = self.runs();
        let Some(first) = runs.len().checked_sub(inferences) else {
            return Err(TraceError::Inferences { found: runs.len(), wanted: inferences });
        };
        let Events { mut events, facts, parents, programs, arena, .. } = self;
        // Their order in the file means nothing.
        let mut facts: Vec<(NodeFacts, usize)> = facts.into_iter().collect();
        facts.sort_unstable();
        let mut ranks = vec![0; facts.len()];
        facts.iter().enumerate().for_each(|(rank, (_, read))| ranks[*read] = rank);
        for event in &mut events {
            if let What::Node { facts, .. } = &mut event.what {
                *facts = ranks[*facts];
            }
        }
        events.sort_unstable_by_key(Event::order);
        let mut found = Found {
            facts: &facts,
            inferences,
            node_indices: HashMap::new(),
            nodes: Vec::new(),
            spans: Spans::default(),
        };
        for (position, run) in runs.iter().enumerate().filter(|(position, _)| *position == 0 || *position >= first) {
            // What it ends with may start a microsecond after its computed end.
            let end = run.end.saturating_add(2).min(runs.get(position + 1).map_or(i64::MAX, |next| next.start));
            let from = events.partition_point(|event| event.start < run.start);
            let to = events.partition_point(|event| event.start < end);
            found.add(position.checked_sub(first), &events[from..to]);
        }
        found.put_kernels(&runs[first..], &events, &parents);
        found.put_programs(programs, runs.len());
        found.nodes.retain(|traced| traced.executions > 0);
        let arena = arena.map(|(_, arena)| arena);
        let trace = Trace { nodes: found.nodes, arena, device: None };
        if trace.nodes.is_empty() { Err(TraceError::NoNodes) } else { Ok((trace, found.spans)) }
    }
}

/// The nodes found so far.
struct Found<'a> {
    facts: &'a [(NodeFacts, usize)],
    inferences: usize,
    /// The index of each node in `nodes`, by the index of the node around it and by its identity.
    node_indices: HashMap<(Option<usize>, Identity<'a>), usize>,
    nodes: Vec<TracedNode>,
    spans: Spans,
}

/// A node that is running.
struct Open {
    index: usize,
    end: i64,
    /// Of the inferences that count.
    span: Option<usize>,
}

impl<'a> Found<'a> {
    /// Adds the events of one inference, in order. An inference that does not count adds nodes, but no times.
    fn add(&mut self, inference: Option<usize>, events: &[Event]) {
        let mut threads: HashMap<i64, Vec<Open>> = HashMap::new();
        for event in events {
            let What::Node { facts, live_bytes, .. } = event.what else { continue };
            let open = threads.entry(event.thread).or_default();
            while open.last().is_some_and(|outer| outer.end <= event.start) {
                open.pop();
            }
            let (outer, outer_span) = open.last().map(|outer| (outer.index, outer.span)).unzip();
            let index = self.index_of(outer, facts, live_bytes);
            let span = inference.map(|_| {
                let span = Span { start: event.start, end: event.end, node: index, outer: outer_span.flatten() };
                self.spans.push(event.thread, span)
            });
            open.push(Open { index, end: event.end, span });
            let Some(inference) = inference else { continue };
            let microseconds = event.microseconds();
            self.nodes[index].executions += 1;
            self.nodes[index].self_us[inference] += microseconds;
            if let Some(outer) = outer {
                let held = &mut self.nodes[outer].self_us[inference];
                *held = (*held - microseconds).max(0.0);
            }
        }
    }

    fn index_of(&mut self, outer: Option<usize>, facts: usize, live_bytes: Option<u64>) -> usize {
        let facts = &self.facts[facts].0;
        *self.node_indices.entry((outer, facts.identity())).or_insert_with(|| {
            // Inner nodes allocate within the node around them.
            let live_bytes = live_bytes.filter(|_| outer.is_none());
            let mut node = Node { live_bytes, ..facts.node.clone() };
            if let Some(outer) = outer {
                node.path = format!("{}/{}", self.nodes[outer].node.path, node.path);
            }
            let self_us = vec![0.0; self.inferences];
            self.nodes.push(TracedNode { node, executions: 0, self_us, is_launch: facts.is_launch(), on_device: None });
            self.nodes.len() - 1
        })
    }

    fn put_programs(&mut self, programs: Programs, runs: usize) {
        let launches = self.node_indices.iter().filter(|(_, index)| self.nodes[**index].is_launch);
        let launches: Vec<(Identity<'_>, usize)> = launches.map(|((_, identity), index)| (*identity, *index)).collect();
        programs.put(&mut self.nodes, &launches, runs, self.inferences);
    }

    /// Replaces the time of a launch by the time on the device, where only one node has the name. A kernel may start
    /// when its inference has ended on the host, so those are shared out among the inferences by the starts of these.
    fn put_kernels(&mut self, runs: &[Event], events: &[Event], parents: &HashMap<String, usize>) {
        if parents.is_empty() {
            return;
        }
        let mut launches: HashMap<usize, Vec<usize>> = HashMap::new();
        for ((_, (name, ..)), index) in self.node_indices.iter().filter(|(_, index)| self.nodes[**index].is_launch) {
            if let Some(parent) = parents.get(&format!("{name}{NODE}")) {
                launches.entry(*parent).or_default().push(*index);
            }
        }
        for event in events {
            let What::Kernel { parent } = event.what else { continue };
            let after = runs.partition_point(|run| run.start <= event.start);
            if let (Some([index]), Some(inference)) = (launches.get(&parent).map(Vec::as_slice), after.checked_sub(1)) {
                let traced = &mut self.nodes[*index];
                if std::mem::take(&mut traced.is_launch) {
                    traced.self_us.fill(0.0);
                }
                traced.self_us[inference] += event.microseconds();
            }
        }
    }
}

#[cfg(test)]
mod tests;
