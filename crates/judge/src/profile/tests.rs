use proptest::prelude::*;

use super::*;
use worker::backend::trace::{Arena, Kernel, Node, OnDevice, Resident};

fn estimate(value: f64) -> Estimate {
    Estimate { value, interval: Some(Interval::around(value, 0.01 * value)), n: 10, confidence: CONFIDENCE }
}

fn node(path: &str, operator: &str, self_ns: &[Option<f64>]) -> ProfiledNode {
    let node = Node {
        path: path.to_owned(),
        operator: operator.to_owned(),
        provider: "CPUExecutionProvider".to_owned(),
        ..Node::default()
    };
    ProfiledNode {
        node,
        executions: 1.0,
        self_ns: self_ns.to_vec(),
        total_us: vec![0.0; self_ns.len()],
        on_device: Vec::new(),
    }
}

/// A cell of this plain time, whose profiler costs so much inside each node and between two.
fn profile(cell: u32, plain_ns: f64, nodes: &[(&str, f64)], inside: f64, between: f64) -> CellProfile {
    const PROCESSES: usize = 5;
    let speed = |process: usize| 1.0 + 0.01 * process as f64;
    let each = |value: &dyn Fn(usize) -> f64| (0..PROCESSES).map(value).collect::<Vec<f64>>();
    let cost = (inside + between) * nodes.len() as f64;
    let times =
        |self_ns: f64| each(&|process| self_ns * speed(process) + inside).into_iter().map(Some).collect::<Vec<_>>();
    CellProfile {
        cell,
        processes: (0..PROCESSES as u32).collect(),
        inferences: vec![20; PROCESSES],
        plain_ns: each(&|process| plain_ns * speed(process)),
        profiled_ns: each(&|process| plain_ns * speed(process) + cost),
        nodes: nodes
            .iter()
            .enumerate()
            .map(|(index, (operator, self_ns))| node(&format!("n{index}"), operator, &times(*self_ns)))
            .collect(),
        ..CellProfile::default()
    }
}

fn value(time: &CellTime<'_>, operator: &str) -> f64 {
    time.estimate(&time.of_operator(operator).expect("it has the operator")).value
}

#[test]
fn what_the_profiler_costs_is_taken_off() {
    let profile = profile(0, 100_000.0, &[("Conv", 60_000.0), ("Relu", 30_000.0), ("Relu", 9_900.0)], 2_000.0, 2_500.0);
    let time = CellTime::of(&profile, Some(estimate(200_000.0))).expect("a profile");
    assert!((time.cost_ns - 1_966.0).abs() < 40.0, "{}", time.cost_ns);
    // Of a latency that is twice as long, since the machine was slower then.
    assert!((value(&time, "Conv") - 120_000.0).abs() < 200.0, "{}", value(&time, "Conv"));
    assert!((value(&time, "Relu") - 79_800.0).abs() < 400.0, "{}", value(&time, "Relu"));
    assert!(time.between.estimate().value.abs() < 400.0);
    assert!((1.13..1.14).contains(&time.slowdown.value), "{}", time.slowdown.value);
    assert_eq!((time.overlap, time.executions), (None, 3.0));
}

#[test]
fn a_node_is_never_less_than_nothing() {
    // What was added is more than the shortest node took.
    let profile = profile(0, 50_000.0, &[("Conv", 45_000.0), ("Relu", -500.0)], 1_000.0, 0.0);
    let time = CellTime::of(&profile, Some(estimate(50_000.0))).expect("a profile");
    assert!(value(&time, "Relu") >= -1.0, "{}", value(&time, "Relu"));
}

#[test]
fn nodes_that_overlap_and_nodes_on_a_device_are_told() {
    let overlapping = profile(0, 50_000.0, &[("Conv", 45_000.0), ("Conv", 45_000.0)], 0.0, 0.0);
    let time = CellTime::of(&overlapping, Some(estimate(50_000.0))).expect("a profile");
    assert!(time.overlap.is_some_and(|share| (1.75..1.85).contains(&share)), "{:?}", time.overlap);
    let mut on_device = profile(0, 50_000.0, &[("Conv", 45_000.0), ("Relu", 1_000.0)], 0.0, 0.0);
    on_device.nodes[0].self_ns = vec![None; 5];
    let time = CellTime::of(&on_device, Some(estimate(50_000.0))).expect("a profile");
    assert_eq!((&time.nodes[0], time.of_operator("Conv")), (&None, None));
    assert!((time.between.estimate().value - 49_000.0).abs() < 100.0);
    assert!(operators(&time).iter().any(|row| row.operator == "Conv" && row.time.is_none()));
}

#[test]
fn an_operator_is_unknown_where_one_of_its_nodes_is() {
    for unknown in 0..3 {
        let mut profile = profile(0, 50_000.0, &[("Conv", 9_000.0), ("Conv", 9_000.0), ("Conv", 9_000.0)], 0.0, 0.0);
        profile.nodes[unknown].self_ns = vec![None; 5];
        let time = CellTime::of(&profile, Some(estimate(50_000.0))).expect("a profile");
        assert_eq!(operators(&time)[0].time, None);
        assert!((time.between.estimate().value - 50_000.0).abs() < 1e-6);
    }
}

#[test]
fn fused_and_quantised_forms_are_one_operator() {
    for (operator, name) in [
        ("QLinearConv", "Conv"),
        ("FusedConv", "Conv"),
        ("Gemm", "MatMul"),
        ("MatMulNBits", "MatMul"),
        ("QLinearAdd", "Add"),
        ("NhwcMaxPool", "MaxPool"),
        ("QLinearAveragePool", "AveragePool"),
        ("Relu", "Relu"),
    ] {
        assert_eq!(group(operator), name);
    }
}

fn explained(baseline: &CellTime<'_>, cell: &CellTime<'_>) -> Option<Explanation> {
    let id = "0123456789abcdef".parse().expect("an id");
    explain(baseline, cell, [id, id])
}

#[test]
fn differences_are_paired_and_add_up() {
    let before = profile(0, 100_000.0, &[("Conv", 90_000.0), ("Relu", 9_000.0)], 1_000.0, 1_000.0);
    let after =
        profile(1, 60_000.0, &[("QLinearConv", 45_000.0), ("Relu", 9_000.0), ("Cast", 5_000.0)], 1_000.0, 1_000.0);
    let [baseline, candidate] = [(&before, 100_000.0), (&after, 60_000.0)]
        .map(|(profile, latency)| CellTime::of(profile, Some(estimate(latency))).expect("a profile"));
    let found = explained(&baseline, &candidate).expect("rows");
    let names: Vec<&str> = found.rows.iter().map(|row| row.name()).collect();
    assert_eq!(names, ["Conv, QLinearConv", "Cast", "Relu"]);
    let all: f64 = found.rows.iter().map(|row| row.difference.value).sum();
    assert!((all + found.between.value - found.difference_ns).abs() < 1.0);
    assert!(found.explained.is_some_and(|share| (0.98..1.02).contains(&share)), "{found:?}");
    assert_eq!(found.rows[1].nodes, [0, 1]);
    // Of processes that one side alone has nothing is paired.
    let other_processes = CellProfile { processes: (10..15).collect(), ..after.clone() };
    let apart = CellTime::of(&other_processes, Some(estimate(60_000.0))).expect("a profile");
    assert!(explained(&baseline, &apart).expect("rows").rows.iter().all(|row| row.difference.n == 0));
}

#[test]
fn operators_that_a_device_hides_are_in_no_row_of_a_comparison() {
    let nodes = [("Conv", 30_000.0), ("Relu", 10_000.0), ("Relu", 5_000.0)];
    let on_cpu = profile(0, 50_000.0, &nodes, 0.0, 0.0);
    let mut mixed = profile(1, 40_000.0, &nodes, 0.0, 0.0);
    mixed.nodes[2].self_ns = vec![None; 5];
    let mut on_device = mixed.clone();
    on_device.nodes.iter_mut().for_each(|node| node.self_ns = vec![None; 5]);
    let [cpu, mixed, device] = [(&on_cpu, 50_000.0), (&mixed, 40_000.0), (&on_device, 40_000.0)]
        .map(|(profile, latency)| CellTime::of(profile, Some(estimate(latency))).expect("a profile"));
    let found = explained(&cpu, &mixed).expect("a row");
    assert_eq!(found.rows.iter().map(|row| row.name()).collect::<Vec<_>>(), ["Conv"]);
    assert!((found.rows[0].difference.value + found.between.value + 10_000.0).abs() < 1.0);
    assert_eq!(found.nodes.len(), 1);
    assert_eq!(explained(&cpu, &device), None);
    assert_eq!(explained(&device, &device), None);
}

/// Nodes by name, operator, output and time, as a cell of that time.
fn cell_of(nodes: &[(&str, &str, &str, f64)]) -> CellProfile {
    let times: Vec<(&str, f64)> = nodes.iter().map(|(_, operator, _, self_ns)| (*operator, *self_ns)).collect();
    let all = nodes.iter().map(|(.., self_ns)| self_ns).sum();
    let mut profile = profile(0, all, &times, 0.0, 0.0);
    for (node, (path, _, output, _)) in profile.nodes.iter_mut().zip(nodes) {
        node.node.path = (*path).to_owned();
        node.node.outputs = vec![(*output).to_owned()];
    }
    profile
}

/// `a: 2 -> b: 5`, the path on both sides and by how much it takes longer, in microseconds.
fn matched(before: &[(&str, &str, &str, f64)], after: &[(&str, &str, &str, f64)]) -> Vec<String> {
    let (before, after) = (cell_of(before), cell_of(after));
    let [baseline, candidate] =
        [&before, &after].map(|profile| CellTime::of(profile, Some(estimate(profile.plain_ns[0]))).expect("a profile"));
    let row = |row: &NodeDifference| {
        let from = row.baseline_path.as_ref().or(row.path.as_ref());
        let names = row.path.as_ref().zip(from);
        let names = names.map_or_else(|| format!("{:?}", row.nodes), |(to, from)| format!("{from}>{to}"));
        format!("{names} {:+.0}", row.difference.value / 1e3)
    };
    explained(&baseline, &candidate).expect("rows").nodes.iter().map(row).collect()
}

#[test]
fn a_node_is_found_by_its_path_and_else_by_its_work_and_sizes_in_order() {
    let conv = |path, self_ns| (path, "Conv", "float[1,8]", self_ns);
    assert_eq!(matched(&[conv("a", 10e3), conv("b", 20e3)], &[conv("b", 21e3), conv("a", 15e3)]), ["a>a +5", "b>b +1"]);
    // Names may repeat: in turn.
    let found = matched(&[conv("a", 10e3), conv("a", 20e3)], &[conv("a", 13e3), conv("a", 21e3)]);
    assert_eq!(found, ["a>a +3", "a>a +1"]);
    let fused = [("x_nchwc", "FusedConv", "float[1,8]", 30e3), ("y_nchwc", "FusedConv", "float[1,4]", 9e3)];
    let plain = [("y", "Conv", "float[1,4]", 7e3), ("x", "Conv", "float[1,8]", 20e3)];
    assert_eq!(matched(&plain, &fused), ["x>x_nchwc +10", "y>y_nchwc +2"]);
    // What has no partner is one row, and all rows add up to the difference.
    let more = [("x", "Conv", "float[1,8]", 20e3), ("z", "Cast", "float[1,8]", 4e3), ("w", "Cast", "float[2]", 2e3)];
    assert_eq!(matched(&plain, &more), ["x>x +0", "[1, 2] -1"]);
}

#[test]
fn memory_is_what_was_there_before_loading_and_what_was_added() {
    let mut profile = profile(0, 1_000.0, &[("Conv", 900.0), ("Relu", 50.0)], 0.0, 0.0);
    assert_eq!(memory(&profile), None);
    let at = |before_load_bytes, loaded_bytes, peak_bytes| Resident { before_load_bytes, loaded_bytes, peak_bytes };
    profile.resident = vec![at(10, 50, 60), at(12, 50, 64), at(11, 51, 62)];
    profile.arena = Some(Arena { before_bytes: 20, held_bytes: 40 });
    profile.nodes[0].node.live_bytes = Some(35);
    profile.nodes[1].node.live_bytes = Some(24);
    profile.nodes[0].node.path = "/layer.0/Conv".to_owned();
    let found = memory(&profile).expect("it is known");
    assert_eq!((found.before_load, found.loading, found.running), (11.0, 39.0, 12.0));
    let arena = found.arena.expect("an arena");
    assert_eq!((arena.weights, arena.activations, arena.node.as_str(), arena.held), (20, 15, "/layer.0/Conv", 40));
    assert_eq!(arena.live, [15, 4]);
}

#[test]
fn a_damaged_profile_is_none() {
    let whole = profile(0, 1_000.0, &[("Conv", 900.0)], 0.0, 0.0);
    let spoilt: [fn(&mut CellProfile); 6] = [
        |profile| profile.processes.clear(),
        |profile| profile.plain_ns.truncate(4),
        |profile| profile.profiled_ns[0] = f64::NAN,
        |profile| profile.plain_ns[0] = 0.0,
        |profile| profile.nodes[0].self_ns.truncate(4),
        |profile| profile.nodes[0].executions = 0.0,
    ];
    for spoil in spoilt {
        let mut profile = whole.clone();
        spoil(&mut profile);
        assert_eq!(CellTime::of(&profile, Some(estimate(1_000.0))), None);
    }
    assert_eq!(CellTime::of(&whole, None), None);
}

proptest! {
    #[test]
    fn parts_add_up_whatever_the_times(
        plain in 1e3_f64..1e9,
        shares in prop::collection::vec(0.0_f64..2.0, 1..8),
        cost in 0.0_f64..1e5,
        latency in 1e3_f64..1e9,
    ) {
        let nodes: Vec<(&str, f64)> = shares.iter().map(|share| ("Conv", plain * share)).collect();
        let profile = profile(0, plain, &nodes, cost, cost);
        let time = CellTime::of(&profile, Some(estimate(latency))).expect("a profile");
        let all = Part::sum(time.nodes.iter().flatten().chain([&time.between])).estimate().value;
        prop_assert!((all - latency).abs() <= 1e-6 * latency, "{all} {latency}");
    }
}

#[test]
fn what_the_profiler_costs_in_a_body_is_not_the_loops() {
    // A loop of no time of its own over twenty products, whose profiler costs 2 us in each and 3 us between two.
    let mut profile = profile(0, 200_000.0, &[("Loop", 60_000.0), ("MatMul", 200_000.0)], 0.0, 0.0);
    profile.profiled_ns = profile.plain_ns.iter().map(|plain| plain + 20.0 * 5_000.0).collect();
    profile.nodes[0].node.path = "/a/loop".to_owned();
    profile.nodes[1].node.path = "/a/loop//a/product".to_owned();
    profile.nodes[1].executions = 20.0;
    profile.nodes[1].self_ns =
        profile.nodes[1].self_ns.iter().map(|self_ns| self_ns.map(|self_ns| self_ns + 40_000.0)).collect();
    let time = CellTime::of(&profile, Some(estimate(200_000.0))).expect("a profile");
    assert!(value(&time, "Loop") < 500.0, "{}", value(&time, "Loop"));
    assert!((value(&time, "MatMul") - 200_000.0).abs() < 4_000.0, "{}", value(&time, "MatMul"));
}

#[test]
fn a_difference_is_as_uncertain_as_the_latencies() {
    let [baseline, candidate] = [30_000.0, 20_000.0].map(|self_ns| profile(0, self_ns, &[("Conv", self_ns)], 0.0, 0.0));
    let wide = |value: f64| Estimate { interval: Some(Interval::around(value, 0.2 * value)), ..estimate(value) };
    let baseline = CellTime::of(&baseline, Some(wide(30_000.0))).expect("a profile");
    let candidate = CellTime::of(&candidate, Some(wide(20_000.0))).expect("a profile");
    let found = explained(&baseline, &candidate).expect("a row").rows[0].difference;
    assert!((found.estimate(0.95).interval.expect("an interval").half_width() - 7_211.0).abs() < 20.0, "{found:?}");
}

/// A profiler of the device slows the host: what waits are is known from the plain processes.
#[test]
fn nodes_waits_and_the_rest_add_up_on_a_device() {
    let on_gpu = |cell: u32, conv: f64, device_ns: f64| {
        let mut profile = profile(cell, 1_000_000.0, &[("Conv", conv), ("Relu", 100_000.0)], 0.0, 40_000.0);
        profile.plain_ns = vec![1_000_000.0; 5];
        for node in &mut profile.nodes {
            node.self_ns = vec![node.self_ns[0]; 5];
            node.on_device = vec![OnDevice::default(); 5];
        }
        let (plain_ns, busy_ns) = (Some(device_ns), conv + 100_000.0);
        let device = DeviceProfile { plain_ns, profiled_ns: None, busy_ns, span_ns: 900_000.0, clock_error_ns: 0 };
        profile.device = vec![device; 5];
        profile
    };
    let (before, after) = (on_gpu(0, 400_000.0, 900_000.0), on_gpu(1, 150_000.0, 800_000.0));
    let time = CellTime::of(&before, Some(estimate(2_000_000.0))).expect("a profile");
    let waits = time.waits.as_ref().expect("they are known").estimate().value;
    assert_eq!((time.cost_ns, value(&time, "Conv"), value(&time, "Relu")), (0.0, 800_000.0, 200_000.0));
    assert!((waits - 800_000.0).abs() < 1.0 && (time.between.estimate().value - 200_000.0).abs() < 1.0);
    // Kernels that run side by side leave more time to wait, and a node on the CPU has a row of its own.
    let mut beside = before.clone();
    beside.device.iter_mut().for_each(|device| device.busy_ns = 400_000.0);
    let waits_of = |profile: &CellProfile| {
        let time = CellTime::of(profile, Some(estimate(1_000_000.0))).expect("a profile");
        time.waits.as_ref().expect("they are known").estimate().value
    };
    assert!((waits_of(&beside) - 500_000.0).abs() < 1.0, "{}", waits_of(&beside));
    beside.nodes[1].on_device.clear();
    assert!((waits_of(&beside) - 400_000.0).abs() < 1.0, "{}", waits_of(&beside));
    // Kernels cannot take longer than the device's own clock says, without CUPTI or with it.
    assert_eq!(time.excess, None);
    beside.device.iter_mut().for_each(|device| device.busy_ns = 990_000.0);
    let excess_of =
        |profile: &CellProfile| CellTime::of(profile, Some(estimate(1_000_000.0))).expect("a profile").excess;
    assert_eq!(excess_of(&beside), Some(1.1));
    beside.device.iter_mut().for_each(|device| (device.busy_ns, device.profiled_ns) = (1.0, Some(750_000.0)));
    assert_eq!(excess_of(&beside), Some(1.2));
    beside.device.iter_mut().for_each(|device| device.profiled_ns = Some(890_000.0));
    assert_eq!(excess_of(&beside), None, "within 3 %");
    let mut after = after;
    let kernel = Kernel { name: "sm90_xmma_gemm_f16f16_tensor16x8x16".to_owned(), executions: 1.0, ns: 150_000.0 };
    after.nodes[0].on_device[3].kernels.push(kernel);
    let faster = CellTime::of(&after, Some(estimate(1_000_000.0))).expect("a profile");
    let ids = [0, 1].map(|_| plan::CellId::default());
    let explained = explain(&time, &faster, ids).expect("it is known");
    let parts: f64 = explained.rows.iter().map(|row| row.difference.value).sum();
    assert!((parts + explained.between.value + 1_000_000.0).abs() < 1.0, "{explained:?}");
    let conv = explained.rows.iter().find(|row| row.name() == "Conv").expect("a row");
    assert_eq!((conv.nodes, conv.on_tensor_cores), ([1, 1], Some([0, 1])));
    assert!(explained.rows.iter().any(|row| row.name() == WAITS && (row.difference.value + 250_000.0).abs() < 1.0));
}
