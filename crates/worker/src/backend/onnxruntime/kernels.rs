//! What CUPTI recorded, and the spans of nodes in ONNX Runtime's trace -> what each node took on the device (method 5.8).
//!
//! Pure. The inferences that are timed run without ONNX Runtime's profiler, which slows launches. Those of a second session
//! with it say which node each kernel belongs to: the one in whose span the call lies that launched it, and of a CUDA graph the
//! one that was running when it was captured. Kernels of the timed inferences are theirs in order, by their names.

mod viewer;

use std::collections::{BTreeMap, HashMap, HashSet};

use cpp_demangle::{DemangleOptions, Symbol};
use serde_json::Value;

use super::placement::CPU;
use super::spans::Spans;
use crate::backend::trace::{DeviceTrace, Node, Trace, TracedKernel, TracedNode, TracedOnDevice};
use statistics::quantile::median;

/// The provider of what no node asked for.
const ON_DEVICE: &str = "CUDAExecutionProvider";

/// A kernel, a copy or a fill, with its times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// Index of its name.
    pub(super) name: u32,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) stream: u32,
    /// The call that asked for it.
    pub(super) correlation: u32,
    /// Its node in a CUDA graph; 0 without one.
    pub(super) graph_node: u64,
}

/// A call of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) correlation: u32,
    pub(super) thread: i64,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A node of a CUDA graph, and when it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Captured {
    pub(super) graph_node: u64,
    pub(super) thread: i64,
    pub(super) at: u64,
}

/// What was recorded, on CUPTI's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Recorded {
    names: Vec<String>,
    indices: HashMap<String, u32>,
    pub(super) work: Vec<Work>,
    pub(super) calls: Vec<Call>,
    pub(super) captured: Vec<Captured>,
    /// Nodes of graphs that are copies, and of what.
    pub(super) clones: Vec<(u64, u64)>,
    /// When recording began, then when each inference was over.
    pub(super) marks: Vec<u64>,
    /// Records that CUPTI had no room for.
    pub(super) dropped: usize,
}

impl Recorded {
    /// The index of a name.
    pub(super) fn name(&mut self, name: &str) -> u32 {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        self.names.push(readable(name));
        self.indices.insert(name.to_owned(), index);
        index
    }

    fn name_of(&self, work: &Work) -> &str {
        self.names.get(work.name as usize).map_or("?", String::as_str)
    }

    /// The work of each of the last inferences, in the order in which it was asked for. Whoever marks the end of an inference has
    /// waited for its work.
    fn inferences(&self, wanted: usize) -> Result<Vec<Vec<Work>>, String> {
        if self.dropped > 0 {
            return Err(format!("CUPTI dropped {} records", self.dropped));
        }
        let first = self.marks.len().checked_sub(wanted + 1).ok_or("CUPTI saw fewer inferences than were timed")?;
        if !self.marks.is_sorted() {
            return Err("the system's clock was set back meanwhile".to_owned());
        }
        let mut sorted = self.work.clone();
        sorted.sort_unstable_by_key(|work| (work.start, work.end));
        let windows = self.marks[first..].windows(2).map(|marks| {
            let from = sorted.partition_point(|work| work.start < marks[0]);
            let to = sorted.partition_point(|work| work.start < marks[1]);
            let mut of_inference = sorted[from..to.max(from)].to_vec();
            of_inference.sort_by_key(|work| (work.correlation, work.graph_node, work.start));
            of_inference
        });
        let windows: Vec<Vec<Work>> = windows.collect();
        match windows.iter().filter(|work| work.is_empty()).count() {
            0 => Ok(windows),
            empty if empty == windows.len() => Err("CUPTI recorded nothing on the device".to_owned()),
            empty => Err(format!(
                "CUPTI recorded nothing in {empty} of {} inferences: a clock may have jumped",
                windows.len()
            )),
        }
    }
}

/// `onnxruntime::cuda::softmax<float>` of a name as C++ compilers write it; any other as it is.
fn readable(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = Symbol::new(name).ok();
    symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok()).unwrap_or_else(|| name.to_owned())
}

/// The clock of ONNX Runtime's trace on CUPTI's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceClock {
    /// When the trace begins, in nanoseconds of CUPTI's clock.
    pub(super) start: u64,
    pub(super) error_ns: u64,
}

impl TraceClock {
    /// Of a trace that began at this moment of the system's clock, by what CUPTI's showed more than that before and after.
    ///
    /// # Errors
    ///
    /// Where one of both jumped, or ONNX Runtime's is another than the system's.
    pub(super) fn of(started_ns: u64, before: (i64, u64), after: (i64, u64)) -> Result<Self, String> {
        /// Clocks that are slewed together differ by less.
        const MOST_DRIFT_NS: u64 = 5_000;
        let error_ns = before.1.max(after.1);
        let drift = before.0.abs_diff(after.0);
        if drift > MOST_DRIFT_NS + 2 * error_ns {
            return Err(format!("a clock jumped by {} us meanwhile", drift / 1000));
        }
        Ok(TraceClock { start: started_ns.saturating_add_signed(before.0), error_ns })
    }

    /// Microseconds in the trace.
    fn microseconds(self, at: u64) -> i64 {
        (at as i64 - self.start as i64).div_euclid(1000)
    }
}

/// Whose work it is: a node by its index, or no node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Owner {
    Node(usize),
    /// It was asked for between nodes.
    KernelBetween,
    CopyBetween,
    /// No call is known that asked for it.
    Unknown,
}

impl Owner {
    /// The operator of a row without a node.
    fn operator(self) -> &'static str {
        match self {
            Owner::Node(_) | Owner::Unknown => "kernels of no known call",
            Owner::KernelBetween => "kernels between nodes",
            Owner::CopyBetween => "copies between nodes",
        }
    }

    fn between(name: &str) -> Self {
        if name.starts_with("[CUDA") { Owner::CopyBetween } else { Owner::KernelBetween }
    }
}

/// The work of an inference whose calls are known: name and owner, in order.
type Template = Vec<(String, Owner)>;

/// What the nodes of `trace` took on the device in each of the last `inferences` that were timed, and the events of a viewer's
/// trace for those that were not.
///
/// `mapped` is what was recorded with calls while the trace was made.
///
/// # Errors
///
/// Why there are no times of the device, a fragment.
pub(super) fn on_device(
    timed: &Recorded,
    inferences: usize,
    mapped: &Recorded,
    (trace, spans): (&Trace, &Spans),
    clock: TraceClock,
) -> Result<(Trace, Vec<Value>), String> {
    let owners = Owners::of(mapped, spans, clock);
    let mapped_inferences = mapped.marks.len().saturating_sub(1);
    let (mut templates, mut events): (Vec<Template>, _) = (Vec::new(), vec![viewer::device()]);
    for work in mapped.inferences(mapped_inferences)? {
        let owned: Vec<Owner> = work.iter().map(|work| owners.owner_of(work, mapped.name_of(work))).collect();
        let names = work.iter().map(|work| mapped.name_of(work).to_owned());
        let template: Template = names.zip(owned.iter().copied()).collect();
        events.extend(viewer::events(&work, &template, trace, clock));
        if !templates.contains(&template) {
            templates.push(template);
        }
    }
    let mut sums = Sums::new(inferences);
    for (inference, work) in timed.inferences(inferences)?.iter().enumerate() {
        let names: Vec<&str> = work.iter().map(|work| timed.name_of(work)).collect();
        sums.add(inference, work, &names, &owners_by_order(&names, &templates));
    }
    let launches = owners.launches(mapped, mapped_inferences);
    let whole = DeviceTrace { busy_us: sums.busy, span_us: sums.span, clock_error_ns: clock.error_ns };
    let mut found = Trace { device: Some(Ok(whole)), ..trace.clone() };
    put(&mut found, inferences, sums.owners, &launches);
    Ok((found, events))
}

/// Which node asked for what.
struct Owners<'a> {
    spans: &'a Spans,
    clock: TraceClock,
    calls: HashMap<u32, Call>,
    /// Nodes of graphs that are no copies.
    captured: HashMap<u64, Captured>,
    clones: HashMap<u64, u64>,
}

impl<'a> Owners<'a> {
    fn of(mapped: &Recorded, spans: &'a Spans, clock: TraceClock) -> Self {
        Owners {
            spans,
            clock,
            calls: mapped.calls.iter().map(|call| (call.correlation, *call)).collect(),
            captured: mapped.captured.iter().map(|captured| (captured.graph_node, *captured)).collect(),
            clones: mapped.clones.iter().copied().collect(),
        }
    }

    fn owner_of(&self, work: &Work, name: &str) -> Owner {
        let asked = match work.graph_node {
            0 => self.calls.get(&work.correlation).map(|call| (call.thread, middle(call))),
            node => self.captured.get(&self.original(node)).map(|captured| (captured.thread, captured.at)),
        };
        let Some((thread, at)) = asked else { return Owner::Unknown };
        match self.spans.node_at(thread, self.clock.microseconds(at)) {
            Some(node) => Owner::Node(node),
            None => Owner::between(name),
        }
    }

    /// The node that was captured, of which a graph that runs has a copy of a copy.
    fn original(&self, mut node: u64) -> u64 {
        // No chain of copies is longer than there are copies.
        for _ in 0..self.clones.len() {
            match self.clones.get(&node) {
                Some(original) => node = *original,
                None => break,
            }
        }
        node
    }

    /// Microseconds of an inference that each node's launches took on the host, the recording of them included.
    fn launches(&self, mapped: &Recorded, inferences: usize) -> HashMap<usize, f64> {
        let mut launches: HashMap<usize, f64> = HashMap::new();
        let first = mapped.marks.first().copied().unwrap_or(0);
        let launching: HashSet<u32> = mapped.work.iter().map(|work| work.correlation).collect();
        for call in mapped.calls.iter().filter(|call| call.start >= first && launching.contains(&call.correlation)) {
            if let Some(node) = self.spans.node_at(call.thread, self.clock.microseconds(middle(call))) {
                *launches.entry(node).or_default() += (call.end - call.start) as f64 / 1e3 / inferences.max(1) as f64;
            }
        }
        launches
    }
}

/// Starts and ends of spans are whole microseconds; a call is longer than that, and its middle surely within.
fn middle(call: &Call) -> u64 {
    call.start + (call.end - call.start) / 2
}

/// The owner of each kernel by its place in an inference whose calls are known: the one with the same kernels, or else the
/// first, as far as the kernels are the same. What lies between two kernels of one owner is that owner's.
fn owners_by_order(names: &[&str], templates: &[Template]) -> Vec<Owner> {
    let same = |template: &&Template| template.iter().map(|(name, _)| name.as_str()).eq(names.iter().copied());
    if let Some(template) = templates.iter().find(same) {
        return template.iter().map(|(_, owner)| *owner).collect();
    }
    let Some(template) = templates.first() else { return vec![Owner::Unknown; names.len()] };
    let mut owners: Vec<Option<Owner>> = vec![None; names.len()];
    for (ours, theirs) in common(names, template) {
        owners[ours] = Some(template[theirs].1);
    }
    let after: Vec<Option<Owner>> = {
        let mut next = None;
        let reversed = owners.iter().rev().map(|owner| {
            next = owner.or(next);
            next
        });
        let mut after: Vec<_> = reversed.collect();
        after.reverse();
        after
    };
    let mut before = None;
    let filled = owners.iter().zip(after).map(|(owner, after)| {
        before = owner.or(before);
        owner.or(before.filter(|before| Some(*before) == after)).unwrap_or(Owner::Unknown)
    });
    filled.collect()
}

/// The places of a longest common subsequence, as pairs; of very different sequences, what they begin and end with.
fn common(names: &[&str], template: &Template) -> Vec<(usize, usize)> {
    const MOST: usize = 4_000_000;
    let is_same = |ours: usize, theirs: usize| names[ours] == template[theirs].0;
    let shorter = names.len().min(template.len());
    let head = (0..shorter).take_while(|at| is_same(*at, *at)).count();
    let is_same_end = |at: &usize| is_same(names.len() - 1 - at, template.len() - 1 - at);
    let tail = (0..shorter - head).take_while(is_same_end).count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|at| (at, at)).collect();
    pairs.extend((0..tail).map(|at| (names.len() - 1 - at, template.len() - 1 - at)));
    let (rows, columns) = (names.len() - head - tail, template.len() - head - tail);
    if rows.saturating_mul(columns) > MOST {
        return pairs;
    }
    // The longest from each place on.
    let mut longest = vec![vec![0_u32; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            longest[row][column] = match is_same(head + row, head + column) {
                true => longest[row + 1][column + 1] + 1,
                false => longest[row + 1][column].max(longest[row][column + 1]),
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows && column < columns {
        if is_same(head + row, head + column) {
            pairs.push((head + row, head + column));
            (row, column) = (row + 1, column + 1);
        } else if longest[row + 1][column] >= longest[row][column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}

/// Microseconds of an owner in each inference.
struct OwnerSums {
    /// While one of its kernels ran.
    device: Vec<f64>,
    /// While the device had nothing to do, after it.
    waits: Vec<f64>,
    kernels: BTreeMap<String, TracedKernel>,
}

impl OwnerSums {
    fn none(inferences: usize) -> Self {
        let none = vec![0.0; inferences];
        OwnerSums { device: none.clone(), waits: none, kernels: BTreeMap::new() }
    }

    fn on_device(self, launch_us: f64) -> TracedOnDevice {
        TracedOnDevice { launch_us, waits_us: self.waits, kernels: self.kernels.into_values().collect() }
    }
}

struct Sums {
    inferences: usize,
    busy: Vec<f64>,
    span: Vec<f64>,
    owners: BTreeMap<Owner, OwnerSums>,
}

impl Sums {
    fn new(inferences: usize) -> Self {
        let none = vec![0.0; inferences];
        Sums { inferences, busy: none.clone(), span: none, owners: BTreeMap::new() }
    }

    /// Adds the work of one inference.
    fn add(&mut self, inference: usize, work: &[Work], names: &[&str], owners: &[Owner]) {
        let mut order: Vec<usize> = (0..work.len()).collect();
        order.sort_by_key(|at| (work[*at].start, work[*at].end));
        // Until when each owner's work, and any work, has been counted.
        let mut counted: HashMap<Owner, u64> = HashMap::new();
        let mut all: Option<(u64, Owner)> = None;
        for at in order {
            let (Work { start, end, .. }, owner) = (work[at], owners[at]);
            let idle = all.filter(|(until, _)| *until < start);
            if let Some((until, last)) = idle.and_then(|(until, last)| Some((until, self.owners.get_mut(&last)?))) {
                last.waits[inference] += microseconds(until, start);
            }
            let until = all.map_or(start, |(until, _)| until);
            self.busy[inference] += microseconds(until.max(start), end);
            self.span[inference] += microseconds(until, end);
            if all.is_none_or(|(until, _)| end >= until) {
                all = Some((end, owner));
            }
            let sums = self.owners.entry(owner).or_insert_with(|| OwnerSums::none(self.inferences));
            let until = counted.entry(owner).or_insert(start);
            sums.device[inference] += microseconds((*until).max(start), end);
            *until = end.max(*until);
            let kernel = sums.kernels.entry(names[at].to_owned()).or_insert_with(|| TracedKernel {
                name: names[at].to_owned(),
                executions: 0,
                us: vec![0.0; self.inferences],
            });
            kernel.executions += 1;
            kernel.us[inference] += microseconds(start, end);
        }
    }
}

/// None where the end comes first.
fn microseconds(start: u64, end: u64) -> f64 {
    end.saturating_sub(start) as f64 / 1e3
}

/// Gives each node of a trace of all inferences its median on the host, as the time in each of so many inferences: those that
/// were timed had no trace.
pub(super) fn host_times(trace: &mut Trace, inferences: usize) {
    // A graph that is replayed runs no node.
    let has_run = |run: &usize| trace.nodes.iter().any(|traced| traced.self_us.get(*run).is_some_and(|us| *us > 0.0));
    let runs = (0..trace.nodes.first().map_or(0, |traced| traced.self_us.len())).filter(has_run).count().max(1);
    for traced in &mut trace.nodes {
        traced.executions = (traced.executions as f64 / runs as f64 * inferences as f64).round().max(1.0) as u64;
        traced.self_us = vec![median(&traced.self_us).unwrap_or(0.0); inferences];
    }
}

/// Replaces the times of nodes that are not on the CPU by those of the device. What no node asked for is a node of its own.
fn put(trace: &mut Trace, inferences: usize, mut owners: BTreeMap<Owner, OwnerSums>, launches: &HashMap<usize, f64>) {
    for (index, traced) in trace.nodes.iter_mut().enumerate() {
        let sums = owners.remove(&Owner::Node(index));
        if sums.is_none() && traced.node.provider == CPU {
            continue;
        }
        let sums = sums.unwrap_or_else(|| OwnerSums::none(inferences));
        (traced.is_launch, traced.self_us) = (false, sums.device.clone());
        traced.on_device = Some(sums.on_device(launches.get(&index).copied().unwrap_or(0.0)));
    }
    for (owner, sums) in owners {
        let operator = owner.operator().to_owned();
        trace.nodes.push(TracedNode {
            node: Node { path: operator.clone(), operator, provider: ON_DEVICE.to_owned(), ..Node::default() },
            executions: inferences as u64,
            self_us: sums.device.clone(),
            is_launch: false,
            on_device: Some(sums.on_device(0.0)),
        });
    }
}

#[cfg(test)]
mod tests;
