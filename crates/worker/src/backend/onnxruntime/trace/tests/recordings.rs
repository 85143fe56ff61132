use std::collections::BTreeMap;

use super::*;

/// Nodes of the main graph and their microseconds, bodies included, by operator.
fn of_main_graph(trace: &Trace) -> BTreeMap<&str, (u64, f64)> {
    let mut sums: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for traced in &trace.nodes {
        let holds = |outer: &&TracedNode| {
            let is_before = traced.node.path.starts_with(&format!("{}/", outer.node.path));
            is_before && ["If", "Loop", "Scan"].contains(&outer.node.operator.as_str())
        };
        let outermost = trace.nodes.iter().filter(holds).min_by_key(|outer| outer.node.path.len());
        let sum = sums.entry(&outermost.unwrap_or(traced).node.operator).or_default();
        sum.0 += if outermost.is_none() { traced.executions } else { 0 };
        sum.1 += traced.self_us.iter().sum::<f64>();
    }
    sums
}

#[test]
fn sums_by_operator_are_those_of_a_reader_in_python() {
    let sums = fs::read(path("by_operator")).expect("sums");
    type Sums = BTreeMap<String, (u64, f64)>;
    let sums: BTreeMap<String, Vec<Sums>> = serde_json::from_slice(&sums).expect("JSON");
    for name in RECORDED {
        let (events, expected) = (recorded(name), &sums[&format!("{name}.json")]);
        assert_eq!(expected.len(), runs(&events), "{name}");
        for (inferences, expected) in (1..).zip(expected) {
            let trace = last(&events, inferences).expect("a trace");
            let expected = expected.iter().map(|(operator, sum)| (operator.as_str(), *sum)).collect();
            assert_eq!(of_main_graph(&trace), expected, "{name}, {inferences}");
        }
    }
}

#[test]
fn bodies_are_in_the_nodes_that_hold_them() {
    let trace = last(&recorded("if-loop-scan-1.31.1"), 1).expect("a trace");
    // The inner `If` takes another branch in its last execution.
    let expected: [Row<'_>; 17] = [
        ("main_abs", "Abs", 1, &[2.0]),
        ("the_loop", "Loop", 1, &[42.0]),
        ("the_loop/body_cond", "Identity", 3, &[6.0]),
        ("the_loop/body_less", "Less", 3, &[6.0]),
        ("the_loop/body_add", "Add", 3, &[5.0]),
        ("the_loop/inner_if", "If", 3, &[24.0]),
        ("the_loop/inner_if/then_mul", "Mul", 2, &[5.0]),
        ("the_loop/inner_if/Neg_1", "Neg", 2, &[2.0]),
        ("the_loop/main_abs", "Abs", 3, &[3.0]),
        ("the_loop/inner_if/else_sub", "Sub", 1, &[2.0]),
        ("main_reshape", "Reshape", 1, &[3.0]),
        ("the_scan", "Scan", 1, &[30.0]),
        ("the_scan/scan_add", "Add", 4, &[6.0]),
        ("the_scan/scan_mul", "Mul", 4, &[6.0]),
        ("top_if", "If", 1, &[6.0]),
        ("top_if/top_exp", "Exp", 1, &[2.0]),
        ("main_relu", "Relu", 1, &[2.0]),
    ];
    assert_eq!(rows(&trace), expected);
    let paths = |name, inferences| {
        let trace = last(&recorded(name), inferences).expect("a trace");
        trace.nodes.into_iter().map(|traced| (traced.node.path, traced.executions)).collect::<Vec<_>>()
    };
    let expected: Vec<(String, u64)> = expected.iter().map(|row| (row.0.to_owned(), row.2)).collect();
    assert_eq!(paths("if-loop-scan-1.25.0", 1), expected);
    assert_eq!(paths("if-loop-scan-runlevel-1.31.1", 1), expected);
    let thrice: Vec<(String, u64)> = expected.into_iter().map(|(path, count)| (path, 3 * count)).collect();
    assert_eq!(paths("if-loop-scan-1.25.0", 3), thrice);
}

#[test]
fn names_that_repeat_are_nodes_of_their_own() {
    let trace = last(&recorded("names-1.31.1"), 1).expect("a trace");
    let names: Vec<_> = rows(&trace).into_iter().map(|(path, operator, ..)| (path, operator)).collect();
    let expected = [
        ("Neg_0", "Neg"),
        ("Abs_1", "Abs"),
        ("same", "Neg"),
        ("the_if", "If"),
        ("the_if/same", "Abs"),
        ("the_if/Neg_1", "Neg"),
        ("Neg_0", "Neg"),
        ("/layer.0/attn/Abs", "Abs"),
        ("x_kernel_time", "Neg"),
        ("blank in name", "Abs"),
    ];
    assert_eq!(names, expected);
}

#[test]
fn threads_that_overlap_add_up_to_more_than_the_inference() {
    let trace = last(&recorded("parallel-overlap-1.25.0"), 1).expect("a trace");
    assert!(trace.nodes.iter().all(|traced| !traced.node.path.contains('/')));
    let all: f64 = trace.nodes.iter().map(|traced| traced.self_us[0]).sum();
    assert_eq!(all, 45_586.0);
}

#[test]
fn shapes_and_bytes_are_told() {
    let trace = last(&recorded("values-1.25.0"), 1).expect("a trace");
    let node = |path: &str| &trace.nodes.iter().find(|traced| traced.node.path == path).expect(path).node;
    let (sum, empty) = (node("with_param"), node("on_empty"));
    assert_eq!((sum.inputs.join(" "), sum.outputs.join(" ")), ("float[2,3] float[3]".into(), "float[2,3]".into()));
    assert_eq!((sum.output_bytes, sum.parameter_bytes, sum.live_bytes), (24, 12, None));
    assert_eq!((empty.inputs.join(" "), empty.output_bytes), ("float[0,3]".into(), 0));
    assert_eq!(node("strings").inputs, ["string[2]", "int64[1]"]);
    assert!(node("seq_len").inputs.is_empty());
}

/// Later inferences take one block for all that was planned.
#[test]
fn live_bytes_are_those_of_the_first_inference() {
    let events = recorded("squeezenet-threads-1.31.1");
    let first: Vec<Option<u64>> = events
        .iter()
        .take_while(|event| event["name"] != "model_run")
        .filter(|event| event["cat"] == "Node")
        .map(|event| bytes(&event["args"], "mem_bytes_requested_in_use"))
        .collect();
    let trace = last(&events, 1).expect("a trace");
    assert_eq!(trace.nodes.iter().map(|traced| traced.node.live_bytes).collect::<Vec<_>>(), first);
    assert!(first.iter().all(Option::is_some));
}

#[test]
fn names_that_older_versions_do_not_escape_are_the_reason() {
    let text = fs::read_to_string(path("escapes-1.25.0")).expect("a trace");
    let first = error(&text.lines().filter(|line| !line.contains("model_loading")).collect::<Vec<_>>().join("\n"), 1);
    assert!(first.ends_with("does not escape the names of nodes"), "{first}");
    assert_eq!(
        error(&text, 1),
        "it is not valid JSON: expected `,` or `}` at line 4 column 87; before 1.31.0, ONNX Runtime does not escape the \
         names of nodes"
    );
    assert_eq!(rows(&last(&recorded("escapes-1.31.1"), 1).expect("a trace"))[0].0, "a\"b");
}

fn kept(name: &str, inferences: usize) -> (Trace, Vec<Value>, Trace) {
    let folder = tempfile::tempdir().expect("a folder");
    let [packed, plain] = ["trace.json.zst", "trace.json"].map(|file| folder.path().join(file));
    let trace = read(&path(name), inferences, Some(&packed)).expect("a trace");
    let text = zstd::decode_all(File::open(packed).expect("a copy")).expect("a packed file");
    fs::write(&plain, &text).expect("a file");
    (trace, serde_json::from_slice(&text).expect("JSON"), read(&plain, inferences, None).expect("a trace"))
}

#[test]
fn what_is_kept_is_the_trace_without_its_warm_up() {
    for name in RECORDED {
        let events = recorded(name);
        for inferences in 1..=runs(&events) {
            let (trace, kept, again) = kept(name, inferences);
            assert_eq!(trace, again, "{name}, {inferences}");
            assert_eq!(runs(&kept), runs(&events).min(inferences + 1), "{name}, {inferences}");
            // What viewers of traces ask for.
            let is_whole = |event: &Value| {
                let numbers = ["ts", "dur", "pid", "tid"].map(|key| event[key].is_u64());
                event["ph"] == "X" && event["name"].is_string() && numbers == [true; 4]
            };
            assert!(kept.iter().all(is_whole));
            let mut left = events.iter();
            assert!(kept.iter().all(|event| left.any(|known| known == event)), "{name}, {inferences}");
        }
        assert_eq!(kept(name, runs(&events)).1, events, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_the_file_means_nothing(
        (name, inferences, shuffled) in prop::sample::select(&RECORDED[..]).prop_flat_map(|name| {
            let events = recorded(name);
            (Just(name), 1..=runs(&events), Just(events).prop_shuffle())
        })
    ) {
        prop_assert_eq!(last(&shuffled, inferences), last(&recorded(name), inferences));
    }

    #[test]
    fn a_file_that_was_cut_is_an_error(name in prop::sample::select(&RECORDED[..]), at in any::<prop::sample::Index>()) {
        let text = fs::read_to_string(path(name)).expect("a trace");
        let cut = text.trim_end().get(..at.index(text.trim_end().len())).unwrap_or_default();
        prop_assert_eq!(Events::default().read(cut.as_bytes()), Err(TraceError::Cut));
    }
}
