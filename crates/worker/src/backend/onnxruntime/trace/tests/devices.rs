use super::*;

const GPU: &str = "CUDAExecutionProvider";

fn launches(events: &[Value]) -> Vec<(String, bool, Vec<f64>)> {
    let nodes = last(events, 2).expect("a trace").nodes.into_iter();
    nodes.map(|traced| (traced.node.path, traced.is_launch, traced.self_us)).collect()
}

/// Two inferences after a warm-up: a product on the device, a copy back, a node on the CPU.
fn events() -> Vec<Value> {
    let inference = |start| {
        let [product, copy] = [("Gemm_1", 10), ("MemcpyToHost_1", 20)];
        let on_device = [product, copy].map(|(name, at)| node_of(GPU, name, start + at, 5));
        on_device.into_iter().chain([run(start, 90), node("Abs_1", start + 40, 3)])
    };
    [0, 100, 200].into_iter().flat_map(inference).collect()
}

#[test]
fn a_node_that_is_handed_over_has_no_time() {
    let expected = [("Gemm_1", true), ("MemcpyToHost_1", false), ("Abs_1", false)];
    let found = launches(&events());
    let found: Vec<(&str, bool)> = found.iter().map(|(path, is_launch, _)| (path.as_str(), *is_launch)).collect();
    assert_eq!(found, expected);
}

#[test]
fn kernels_are_its_time() {
    let mut events = events();
    // The last of an inference ends when the host is done with that.
    events.extend([kernel("Gemm_1", 15, 400), kernel("Gemm_1", 120, 30), kernel("Gemm_1", 198, 2)]);
    events.extend([kernel("Gemm_1", 290, 35), kernel("Abs_1", 150, 70), kernel("Other_1", 150, 70)]);
    let found = launches(&events);
    assert_eq!(found[0], ("Gemm_1".to_owned(), false, vec![32.0, 35.0]));
    assert_eq!(found[2], ("Abs_1".to_owned(), false, vec![3.0, 3.0]));
}

#[test]
fn kernels_before_the_inferences_that_count_are_no_time() {
    let mut events = events();
    events.push(kernel("Gemm_1", 15, 400));
    assert!(launches(&events)[0].1);
}

#[test]
fn kernels_are_those_of_a_node_in_a_body() {
    let events =
        [run(0, 50), node("Loop_1", 5, 20), node_of(GPU, "Gemm_1", 6, 4), kernel("Gemm_1", 9, 30), run(100, 50)];
    assert_eq!(launches(&events)[1], ("Loop_1/Gemm_1".to_owned(), false, vec![30.0, 0.0]));
}

/// As ONNX Runtime 1.27.0 writes them for WebGPU: the zero of their clock is the first program's start.
fn program(name: &str, start: i64, duration: i64) -> Value {
    json!({"cat": "Api", "name": name, "pid": -1, "tid": -1, "ts": start, "dur": duration, "args": {"cache_key": ""}})
}

#[test]
fn programs_of_a_node_are_its_times_in_their_order() {
    let mut events = events();
    // Weights are prepared once; then the node has two programs in each inference.
    events.push(program("Gemm_1&Gemm&Transpose", 0, 900));
    for (start, scale) in [(10, 1), (20, 2), (30, 3)] {
        events.push(program("Gemm_1&Gemm&MatMul", start, 20 * scale));
        events.push(program("Gemm_1&Gemm&Add", start + 5, scale));
    }
    events.extend([program("Gemm_1", 50, 900), program("Gemm_1&Gemm", 50, 900), program("a&b&c&d", 50, 900)]);
    let found = launches(&events);
    assert_eq!(found[0], ("Gemm_1".to_owned(), false, vec![42.0, 63.0]));
    // A copy back waits for them, and for how long is not its own time.
    assert_eq!((found[1].0.as_str(), found[1].1), ("MemcpyToHost_1", true));
    let product = last(&events, 2).expect("a trace").nodes.remove(0).on_device.expect("it has programs");
    let kernels: Vec<(&str, u64)> = product.kernels.iter().map(|it| (it.name.as_str(), it.executions)).collect();
    assert_eq!((kernels, product.launch_us), (vec![("Add", 2), ("MatMul", 2)], 5.0));
    // Where they ran in one inference of three it is not known in which.
    events.retain(|event| event["cat"] != "Api" || event["name"] == "Gemm_1&Gemm&Transpose");
    assert!(launches(&events)[0].1);
}

/// ONNX Runtime leaves out the name where a node has none, and calls its event by operator and index.
#[test]
fn programs_of_unnamed_nodes_are_those_of_the_only_one_of_their_operator() {
    let unnamed = |name: &str, index: i64, start: i64| {
        let args = json!({"op_name": "Softmax", "provider": GPU, "node_index": index.to_string()});
        json!({"cat": "Node", "name": format!("{name}_kernel_time"), "tid": 1, "ts": start, "dur": 3, "args": args})
    };
    let of_runs = |more: &dyn Fn(i64) -> Vec<Value>| {
        let inference = |start: i64| {
            let named = [run(start, 90), node_of(GPU, "Gemm_1", start + 10, 5), unnamed("Softmax_4", 4, start + 20)];
            named.into_iter().chain([program("Gemm_1&Gemm&MatMul", start, 20), program("&Softmax&Softmax", start, 9)])
        };
        let mut events: Vec<Value> = [0, 100, 200].into_iter().flat_map(inference).collect();
        events.extend([0, 100, 200].into_iter().flat_map(more));
        launches(&events)
    };
    let softmax = |found: Vec<(String, bool, Vec<f64>)>| {
        found.into_iter().filter(|row| row.0.starts_with("Softmax")).collect::<Vec<_>>()
    };
    let alone = softmax(of_runs(&|_| Vec::new()));
    assert_eq!(alone, [("Softmax_4".to_owned(), false, vec![9.0, 9.0])]);
    let of_two =
        softmax(of_runs(&|start| vec![unnamed("Softmax_5", 5, start + 30), program("&Softmax&Softmax", start, 9)]));
    assert!(of_two.len() == 2 && of_two.iter().all(|(_, is_launch, _)| *is_launch), "{of_two:?}");
}

#[test]
fn programs_are_copied_where_they_cannot_begin_before_their_nodes() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut events = events();
    events.extend([0, 100, 200].map(|start| program("Gemm_1&Gemm&MatMul", start - 40, 20)));
    let file = folder.path().join("trace.json");
    fs::write(&file, serde_json::to_vec(&events).expect("JSON")).expect("a file");
    let kept = folder.path().join("kept.json.zst");
    read(&file, 1, Some(&kept)).expect("a trace");
    let copied: Vec<Value> =
        serde_json::from_reader(zstd::Decoder::new(File::open(&kept).expect("it is there")).expect("zstd"))
            .expect("JSON");
    let starts: Vec<i64> =
        copied.iter().filter(|event| event["cat"] == "Api").filter_map(|event| event["ts"].as_i64()).collect();
    // The first inference is kept, and the last.
    assert_eq!(starts, [10, 210]);
}

#[test]
fn whose_kernels_they_are_is_unknown_where_a_name_repeats() {
    let events = [
        run(0, 50),
        node("Loop_1", 5, 20),
        node_of(GPU, "Gemm_1", 6, 4),
        node_of(GPU, "Gemm_1", 30, 4),
        kernel("Gemm_1", 9, 30),
        run(100, 50),
    ];
    let found = launches(&events);
    assert_eq!(
        found[1..],
        [("Loop_1/Gemm_1".to_owned(), true, vec![4.0, 0.0]), ("Gemm_1".to_owned(), true, vec![4.0, 0.0])]
    );
}
