//! Records written by hand: no GPU has run these.

use super::super::spans::Span;
use super::*;

const CUDA: &str = "CUDAExecutionProvider";

/// A trace that begins at 1 ms of CUPTI's clock.
const CLOCK: TraceClock = TraceClock { start: 1_000_000, error_ns: 200 };

/// Nanoseconds on CUPTI's clock of a microsecond in the trace.
fn at(microsecond: u64) -> u64 {
    CLOCK.start + microsecond * 1000
}

fn node(path: &str, provider: &str, self_us: &[f64]) -> TracedNode {
    let node = Node { path: path.to_owned(), provider: provider.to_owned(), ..Node::default() };
    TracedNode {
        node,
        executions: self_us.len() as u64,
        self_us: self_us.to_vec(),
        is_launch: provider != CPU,
        on_device: None,
    }
}

/// Nodes `a` and `b` on the device, and `c` on the CPU, in thread 1: at 100, 200 and 300 us.
fn traced() -> (Trace, Spans) {
    let nodes = vec![node("a", CUDA, &[50.0]), node("b", CUDA, &[50.0]), node("c", CPU, &[40.0])];
    let mut spans = Spans::default();
    for (node, start) in [100, 200, 300].into_iter().enumerate() {
        spans.push(1, Span { start, end: start + 50, node, outer: None });
    }
    (Trace { nodes, ..Trace::default() }, spans)
}

/// Name, start and end in nanoseconds after the first mark, stream, correlation and node of a graph.
type Ran<'a> = (&'a str, u64, u64, u32, u32, u64);

fn recorded(marks: &[u64], work: &[Ran<'_>]) -> Recorded {
    let mut recorded = Recorded { marks: marks.to_vec(), ..Recorded::default() };
    for (name, start, end, stream, correlation, graph_node) in work.iter().copied() {
        let name = recorded.name(name);
        recorded.work.push(Work { name, start, end, stream, correlation, graph_node });
    }
    recorded
}

fn call(correlation: u32, microsecond: u64) -> Call {
    Call { correlation, thread: 1, start: at(microsecond), end: at(microsecond + 4) }
}

/// What was recorded with the trace: `a` launches two kernels, `b` one, a copy and a kernel come from between.
fn mapped() -> Recorded {
    let work = [
        ("conv", at(110), at(120), 7, 1, 0),
        ("add", at(121), at(125), 7, 2, 0),
        ("[CUDA memcpy DtoD]", at(170), at(171), 7, 3, 0),
        ("gemm", at(210), at(230), 7, 4, 0),
        ("late", at(240), at(241), 7, 9, 0),
    ];
    let mut mapped = recorded(&[at(0), at(400)], &work);
    mapped.calls = vec![call(1, 101), call(2, 140), call(3, 160), call(4, 248)];
    mapped
}

fn found(timed: &Recorded, inferences: usize, mapped: &Recorded) -> Result<Trace, String> {
    let (mut trace, spans) = traced();
    host_times(&mut trace, inferences);
    on_device(timed, inferences, mapped, (&trace, &spans), CLOCK).map(|(found, _)| found)
}

/// Path, microseconds on the device and of waits after it in each inference.
type Row<'a> = (&'a str, &'a [f64], Option<&'a [f64]>);

fn rows(trace: &Trace) -> Vec<Row<'_>> {
    let nodes = trace.nodes.iter();
    nodes
        .map(|traced| {
            let waits = traced.on_device.as_ref().map(|there| there.waits_us.as_slice());
            (traced.node.path.as_str(), traced.self_us.as_slice(), waits)
        })
        .collect()
}

/// The same kernels with other times and numbers, in two inferences.
fn timed() -> Recorded {
    let inference = |start: u64, first: u32| {
        [
            ("conv", start + 1_000, start + 3_000, 7, first, 0),
            ("add", start + 4_000, start + 5_000, 7, first + 1, 0),
            ("[CUDA memcpy DtoD]", start + 5_000, start + 6_000, 7, first + 2, 0),
            ("gemm", start + 8_000, start + 12_000, 7, first + 3, 0),
            ("late", start + 12_000, start + 12_500, 7, first + 4, 0),
        ]
    };
    let work: Vec<Ran<'_>> = [inference(5_000_000, 100), inference(6_000_000, 200)].concat();
    recorded(&[5_000_000, 6_000_000, 7_000_000], &work)
}

#[test]
fn a_kernel_belongs_to_the_node_whose_span_its_call_lies_in() {
    let trace = found(&timed(), 2, &mapped()).expect("times");
    let two = |value: f64| vec![value; 2];
    let expected = [
        ("a", two(3.0), Some(two(1.0))),
        ("b", two(4.0), Some(two(0.0))),
        ("c", two(40.0), None),
        ("copies between nodes", two(1.0), Some(two(2.0))),
        ("kernels of no known call", two(0.5), Some(two(0.0))),
    ];
    let rows: Vec<_> =
        rows(&trace).into_iter().map(|(path, us, waits)| (path, us.to_vec(), waits.map(<[f64]>::to_vec))).collect();
    assert_eq!(rows, expected);
    let device = trace.device.expect("asked for").expect("recorded");
    assert_eq!((device.busy_us, device.span_us, device.clock_error_ns), (two(8.5), two(11.5), 200));
    assert!(trace.nodes.iter().all(|traced| !traced.is_launch && traced.executions == 2));
    let launches: Vec<f64> = trace.nodes.iter().flat_map(|node| &node.on_device).map(|there| there.launch_us).collect();
    assert_eq!(launches, [8.0, 4.0, 0.0, 0.0]);
}

#[test]
fn kernels_of_a_replayed_graph_belong_to_the_node_that_was_captured() {
    let mut mapped =
        recorded(&[at(500), at(600)], &[("conv", at(510), at(520), 7, 50, 31), ("gemm", at(520), at(530), 7, 50, 32)]);
    // Captured as 11 and 12; the graph that runs has copies of copies.
    let captured = |graph_node, microsecond| Captured { graph_node, thread: 1, at: at(microsecond) };
    // CUPTI also reports a copy as created, when the graph is instantiated.
    mapped.captured = vec![captured(11, 110), captured(12, 210), captured(31, 390)];
    mapped.clones = vec![(21, 11), (31, 21), (32, 12)];
    let timed = recorded(&[0, 100], &[("gemm", 30, 60, 7, 9, 72), ("conv", 10, 30, 7, 9, 71)]);
    let trace = found(&timed, 1, &mapped).expect("times");
    let expected =
        [("a", &[0.02][..], Some(&[0.0][..])), ("b", &[0.03][..], Some(&[0.0][..])), ("c", &[40.0][..], None)];
    assert_eq!(rows(&trace), expected);
}

#[test]
fn kernels_that_overlap_are_counted_once() {
    // `conv` and `add` are of one node, on two streams, and `gemm` runs beside both.
    let work = [("conv", 0, 10_000, 7, 1, 0), ("add", 5_000, 12_000, 8, 2, 0), ("gemm", 8_000, 20_000, 9, 3, 0)];
    let mapped = {
        let at_start: Vec<Ran<'_>> = work
            .iter()
            .map(|(name, start, end, stream, call, node)| {
                (*name, at(100) + start, at(100) + end, *stream, *call, *node)
            })
            .collect();
        let mut mapped = recorded(&[at(0), at(400)], &at_start);
        mapped.calls = vec![call(1, 101), call(2, 110), call(3, 210)];
        mapped
    };
    let trace = found(&recorded(&[0, 30_000], &work), 1, &mapped).expect("times");
    assert_eq!(rows(&trace)[..2], [("a", &[12.0][..], Some(&[0.0][..])), ("b", &[12.0][..], Some(&[0.0][..]))]);
    let device = trace.device.expect("asked for").expect("recorded");
    assert_eq!((device.busy_us, device.span_us), (vec![20.0], vec![20.0]));
}

#[test]
fn kernels_of_another_path_go_to_their_neighbours_node_or_to_none() {
    let template: Template = [("x", 0), ("y", 0), ("z", 1), ("x", 1), ("w", 2)]
        .map(|(name, node)| (name.to_owned(), Owner::Node(node)))
        .to_vec();
    let owners = |names: &[&str]| owners_by_order(names, std::slice::from_ref(&template));
    let [a, b, c] = [0, 1, 2].map(Owner::Node);
    assert_eq!(owners(&["x", "y", "z", "x", "w"]), [a, a, b, b, c]);
    // Another algorithm, with a kernel more, within one node.
    assert_eq!(owners(&["x", "split", "y", "z", "x", "w"]), [a, a, a, b, b, c]);
    // Between two nodes the owner is unknown.
    assert_eq!(owners(&["x", "y", "split", "z", "x", "w"]), [a, a, Owner::Unknown, b, b, c]);
    assert_eq!(owners(&["x", "y", "w"]), [a, a, c]);
    assert_eq!(owners(&["q"]), [Owner::Unknown]);
    assert_eq!(owners_by_order(&["q"], &[]), [Owner::Unknown]);
}

#[test]
fn what_cannot_be_trusted_is_no_time() {
    let why = |timed: &Recorded, inferences| found(timed, inferences, &mapped()).expect_err("no times");
    assert_eq!(why(&Recorded { dropped: 3, ..timed() }, 2), "CUPTI dropped 3 records");
    assert_eq!(why(&timed(), 3), "CUPTI saw fewer inferences than were timed");
    assert_eq!(why(&recorded(&[1, 2, 3], &[]), 2), "CUPTI recorded nothing on the device");
    let half = recorded(&[0, 100, 200], &[("conv", 10, 20, 7, 1, 0)]);
    assert_eq!(why(&half, 2), "CUPTI recorded nothing in 1 of 2 inferences: a clock may have jumped");
    assert_eq!(
        why(&Recorded { marks: vec![300, 200, 100], ..timed() }, 2),
        "the system's clock was set back meanwhile"
    );
}

#[test]
fn a_clock_that_jumps_is_noticed() {
    let clock = |before, after| TraceClock::of(1_000_000, before, after);
    assert_eq!(clock((250, 100), (300, 180)), Ok(TraceClock { start: 1_000_250, error_ns: 180 }));
    assert_eq!(clock((0, 100), (90_000, 100)), Err("a clock jumped by 90 us meanwhile".to_owned()));
}

#[test]
fn a_viewer_shows_kernels_below_their_nodes() {
    let (trace, spans) = traced();
    let (_, events) = on_device(&timed(), 2, &mapped(), (&trace, &spans), CLOCK).expect("times");
    let shown: Vec<(&str, &str, f64, f64)> = events
        .iter()
        .skip(1)
        .map(|event| {
            let text = |key: &str| event[key].as_str().expect("a text");
            (text("cat"), text("name"), event["ts"].as_f64().expect("a time"), event["dur"].as_f64().expect("a time"))
        })
        .collect();
    let first = [("device", "a", 110.0, 15.0), ("kernel", "conv", 110.0, 10.0), ("kernel", "add", 121.0, 4.0)];
    assert_eq!(shown[..3], first);
    assert_eq!(shown.len(), 9);
}

#[test]
fn names_are_readable() {
    let names = [
        ("_ZN11onnxruntime4cuda7softmaxIfEEvPT_i", "onnxruntime::cuda::softmax<float>"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("[CUDA memset]", "[CUDA memset]"),
        ("_Zbroken", "_Zbroken"),
        ("", ""),
    ];
    for (name, expected) in names {
        assert_eq!(readable(name), expected);
    }
}
