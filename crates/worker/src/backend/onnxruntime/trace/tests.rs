mod devices;
mod recordings;

use std::fs::{self, File};
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// As ONNX Runtime wrote them.
const RECORDED: [&str; 9] = [
    "escapes-1.31.1",
    "fused-1.25.0",
    "if-loop-scan-1.25.0",
    "if-loop-scan-1.31.1",
    "if-loop-scan-runlevel-1.31.1",
    "names-1.31.1",
    "parallel-overlap-1.25.0",
    "squeezenet-threads-1.31.1",
    "values-1.25.0",
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces").join(format!("{name}.json"))
}

fn recorded(name: &str) -> Vec<Value> {
    serde_json::from_slice(&fs::read(path(name)).expect("a trace")).expect("JSON")
}

fn runs(events: &[Value]) -> usize {
    events.iter().filter(|event| event["name"] == "model_run").count()
}

fn last(events: &[Value], inferences: usize) -> Result<Trace, TraceError> {
    let mut read = Events::default();
    events.iter().for_each(|event| read.add(event));
    read.last(inferences)
}

fn error(text: &str, inferences: usize) -> String {
    let mut events = Events::default();
    let trace = events.read(text.as_bytes()).and_then(|()| events.last(inferences));
    trace.expect_err("no trace").to_string()
}

/// Path, operator, executions and own microseconds in each inference.
type Row<'a> = (&'a str, &'a str, u64, &'a [f64]);

fn rows(trace: &Trace) -> Vec<Row<'_>> {
    let nodes = trace.nodes.iter();
    nodes
        .map(|traced| {
            let TracedNode { node, executions, self_us, .. } = traced;
            (node.path.as_str(), node.operator.as_str(), *executions, self_us.as_slice())
        })
        .collect()
}

fn run(start: i64, duration: i64) -> Value {
    json!({"cat": "Session", "name": "model_run", "tid": 1, "ts": start, "dur": duration, "args": {}})
}

/// A node on the CPU, whose operator is its name up to the underscore.
fn node(name: &str, start: i64, duration: i64) -> Value {
    node_of(CPU, name, start, duration)
}

fn node_of(provider: &str, name: &str, start: i64, duration: i64) -> Value {
    let operator = name.split('_').next();
    let args = json!({"op_name": operator, "provider": provider, "node_index": "0"});
    json!({"cat": "Node", "name": format!("{name}_kernel_time"), "tid": 1, "ts": start, "dur": duration, "args": args})
}

fn kernel(parent: &str, start: i64, duration: i64) -> Value {
    let args = json!({"parent_name": format!("{parent}_kernel_time")});
    json!({"cat": "Kernel", "name": "gemm", "tid": 7, "ts": start, "dur": duration, "args": args})
}

#[test]
fn only_the_last_inferences_count() {
    let events = [
        run(0, 5000),
        node("Conv_1", 10, 4000),
        node("Once_1", 4100, 100),
        run(6000, 500),
        node("Conv_1", 6010, 400),
        run(7000, 50),
        node("Conv_1", 7010, 10),
        node("Late_1", 7030, 7),
        run(8000, 50),
        node("Conv_1", 8010, 12),
    ];
    let expected: [Row<'_>; 2] = [("Conv_1", "Conv", 2, &[10.0, 12.0]), ("Late_1", "Late", 1, &[7.0, 0.0])];
    assert_eq!(rows(&last(&events, 2).expect("a trace")), expected);
}

#[test]
fn a_node_between_two_inferences_of_one_microsecond_counts_once() {
    let events =
        [run(0, 10), node("A_1", 0, 9), node("A_2", 10, 0), run(11, 9), node("A_1", 11, 9), node("A_2", 20, 1)];
    let expected: [Row<'_>; 2] = [("A_1", "A", 2, &[9.0, 9.0]), ("A_2", "A", 2, &[0.0, 1.0])];
    assert_eq!(rows(&last(&events, 2).expect("a trace")), expected);
}

/// Starts and durations are rounded down, each for itself.
#[test]
fn what_starts_in_the_same_microsecond_is_told_by_what_holds_others() {
    let mut events = vec![
        run(0, 50),
        node("Loop_1", 10, 2),
        node("A_1", 10, 2),
        node("If_1", 20, 5),
        node("If_2", 20, 3),
        node("A_2", 20, 3),
    ];
    for _ in 0..events.len() {
        events.rotate_left(1);
        let expected: [Row<'_>; 5] = [
            ("Loop_1", "Loop", 1, &[0.0]),
            ("Loop_1/A_1", "A", 1, &[2.0]),
            ("If_1", "If", 1, &[2.0]),
            ("If_1/If_2", "If", 1, &[0.0]),
            ("If_1/If_2/A_2", "A", 1, &[3.0]),
        ];
        assert_eq!(rows(&last(&events, 1).expect("a trace")), expected);
    }
    // A body that seems to end after what holds it, and the next node.
    let events = [run(0, 50), node("If_1", 10, 9), node("A_1", 12, 8), node("A_2", 20, 4)];
    let expected: [Row<'_>; 3] = [("If_1", "If", 1, &[1.0]), ("If_1/A_1", "A", 1, &[8.0]), ("A_2", "A", 1, &[4.0])];
    assert_eq!(rows(&last(&events, 1).expect("a trace")), expected);
}

#[test]
fn a_node_in_a_body_that_is_called_like_one_outside_has_its_own_shapes() {
    let (mut inner, mut outer) = (node("Neg_1", 5, 3), node("Neg_1", 30, 4));
    inner["args"]["input_type_shape"] = json!([{"float": [2]}]);
    outer["args"]["input_type_shape"] = json!([{"float": [300]}, {"int64": []}]);
    let trace = last(&[outer, node("Loop_1", 0, 20), inner, run(0, 50)], 1).expect("a trace");
    let expected: [Row<'_>; 3] =
        [("Loop_1", "Loop", 1, &[17.0]), ("Loop_1/Neg_1", "Neg", 1, &[3.0]), ("Neg_1", "Neg", 1, &[4.0])];
    assert_eq!(rows(&trace), expected);
    let inputs: Vec<String> = trace.nodes.iter().map(|traced| traced.node.inputs.join(" ")).collect();
    assert_eq!(inputs, ["", "float[2]", "float[300] int64[]"]);
}

#[test]
fn memory_is_that_after_the_nodes_of_the_outer_graph_whatever_their_names() {
    let with = |name: &str, start, duration, bytes: &str| {
        let mut node = node(name, start, duration);
        node["args"]["mem_bytes_requested_in_use"] = bytes.into();
        node
    };
    let events =
        [run(0, 90), with("/a/Conv_1", 5, 4, "70"), with("/Loop_1", 10, 20, "50"), with("/a/Neg_1", 12, 3, "90")];
    let trace = last(&events, 1).expect("a trace");
    let live: Vec<_> = trace.nodes.iter().map(|traced| (traced.node.path.as_str(), traced.node.live_bytes)).collect();
    assert_eq!(live, [("/a/Conv_1", Some(70)), ("/Loop_1", Some(50)), ("/Loop_1//a/Neg_1", None)]);
}

#[test]
fn what_is_no_trace_is_told() {
    let nodes = r#"[{"cat":"Session","name":"model_run","ts":0,"dur":9}]"#;
    for (text, inferences, expected) in [
        ("", 1, "it is empty or cut off"),
        ("[", 1, "it is empty or cut off"),
        ("[{\"cat\":\"Node\"", 1, "it is empty or cut off"),
        ("PERF", 1, "it cannot be read: expected value at line 1 column 1"),
        ("{}", 1, "it cannot be read: invalid type: map, expected an array at line 1 column 1"),
        ("[] []", 1, "it cannot be read: trailing characters at line 1 column 4"),
        ("[]", 1, "it has 0 inferences, not 1"),
        (nodes, 2, "it has 1 inferences, not 2"),
        (nodes, 1, "it has no nodes"),
        (nodes, 0, "it has no nodes"),
    ] {
        assert_eq!(error(text, inferences), expected, "{text}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept");
    let message = read(&folder.path().join("none"), 1, Some(&kept)).expect_err("no file").message;
    assert!(message.starts_with("the profiler's trace: No such file"), "{message}");
    // A copy that cannot be written takes nothing away.
    assert!(read(&path("names-1.31.1"), 1, Some(&kept.join("none"))).is_ok());
    assert!(!kept.exists());
}

#[test]
fn a_trace_from_which_events_were_dropped_is_not_used() {
    let truncated =
        json!({"cat": "Session", "name": "profile_truncated", "ts": 9, "dur": 0, "args": {"max_num_events": "9"}});
    let whole = [run(0, 9), node("A_1", 1, 2)];
    assert_eq!(last(&[whole.as_slice(), &[truncated]].concat(), 1), Err(TraceError::Dropped));
    let mut events = Events::default();
    let another = json!({});
    whole.iter().chain(std::iter::repeat_n(&another, MOST_EVENTS - 3)).for_each(|event| events.add(event));
    assert!(!events.were_dropped);
    events.add(&another);
    assert_eq!(events.last(1), Err(TraceError::Dropped));
}

/// Values that events hold, and others.
fn strange() -> impl Strategy<Value = Value> {
    let texts = [
        "",
        "Node",
        "Session",
        "Kernel",
        "Api",
        "a&b&c",
        "model_run",
        "a_kernel_time",
        "_kernel_time",
        "If",
        "Loop",
        CPU,
        "-7",
        "9",
    ];
    let numbers = [0, 1, 2, 3, 5, -1, i64::MIN, i64::MAX, i64::MAX - 1];
    let leaf = prop_oneof![
        6 => prop::sample::select(texts.to_vec()).prop_map(Value::from),
        6 => prop::sample::select(numbers.to_vec()).prop_map(Value::from),
        1 => any::<Option<f64>>().prop_map(|number| json!(number)),
        1 => any::<u64>().prop_map(Value::from),
        1 => any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("(float|op_name|provider|[a-z])", inner), 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

/// An event in which a field is missing or of another type now and then.
fn strange_event() -> impl Strategy<Value = Value> {
    let base =
        prop_oneof![Just(run(1, 5)), Just(node("If_1", 1, 3)), Just(node("A_1", 2, 0)), Just(kernel("A_1", 2, 1))];
    let keys = ["cat", "name", "tid", "ts", "dur", "args"].map(str::to_owned).to_vec();
    let change = (prop::sample::select(keys), prop::option::weighted(0.8, strange()));
    (base, prop::collection::vec(change, 0..3), strange(), 0..20).prop_map(|(mut event, changes, other, whole)| {
        for (key, value) in changes {
            match (value, event.as_object_mut()) {
                (Some(value), _) => event[key] = value,
                (None, Some(fields)) => drop(fields.remove(&key)),
                (None, None) => {}
            }
        }
        if whole == 0 { other } else { event }
    })
}

/// What holds of any trace that is read at all.
fn is_sound(found: &Result<Trace, TraceError>, inferences: usize) -> bool {
    let is_node = |traced: &TracedNode| {
        let has_times = traced.self_us.len() == inferences && traced.self_us.iter().all(|own| *own >= 0.0);
        traced.executions > 0 && has_times
    };
    found.as_ref().map_or(true, |trace| !trace.nodes.is_empty() && trace.nodes.iter().all(is_node))
}

proptest! {
    #[test]
    fn no_event_is_too_strange(events in prop::collection::vec(strange_event(), 0..12), inferences in 0_usize..4) {
        prop_assert!(is_sound(&last(&events, inferences), inferences));
    }

    #[test]
    fn no_byte_is_too_strange(
        name in prop::sample::select(&["escapes-1.31.1", "names-1.31.1", "values-1.25.0"][..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        inferences in 0_usize..3,
    ) {
        let mut bytes = fs::read(path(name)).expect("a trace");
        for (at, byte) in changes {
            *at.get_mut(&mut bytes) = byte;
        }
        let mut events = Events::default();
        let found = events.read(bytes.as_slice()).and_then(|()| events.last(inferences));
        prop_assert!(is_sound(&found, inferences));
    }
}
