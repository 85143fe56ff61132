//! What bounds a cell, from the roofs of a record to its report (method 5.6).

use experiment::{Axis, Precision};
use judge::diagnosis::Bound;
use judge::results::Cell;
use report::page::overview;
use serde_json::{Value, json};

use super::fixture::{Axes, Fixture, usual};

const VARIANTS: [(&str, Precision, u32); 5] = [
    ("fp32-t1", Precision::Fp32, 1),
    ("fp32-t2", Precision::Fp32, 2),
    ("int8-t1", Precision::Int8, 1),
    ("fp16-t1", Precision::Fp16, 1),
    ("bf16-t1", Precision::Bf16, 1),
];

/// A perceptron with 25 million weights, and a network of as many multiplications and few weights.
fn fixture(peak: Value) -> Fixture {
    let names = VARIANTS.map(|(name, ..)| name);
    let axes = Axes { models: &["mlp", "cnn"], batches: &[1], variants: &names, devices: &["cpu"], runs: 8 };
    let mut fixture = Fixture::new("bounds", &axes, |path| {
        usual(
            match path {
                "mlp/b1/fp32-t1/cpu" => 12.0e6,
                "mlp/b1/fp32-t2/cpu" => 11.9e6,
                "mlp/b1/int8-t1/cpu" => 3.1e6,
                "cnn/b1/fp32-t1/cpu" => 10.0e6,
                "cnn/b1/fp32-t2/cpu" => 9.9e6,
                "cnn/b1/int8-t1/cpu" => 5.0e6,
                "cnn/b1/fp16-t1/cpu" => 7.5e6,
                _ => 11.0e6,
            },
            80,
        )
    });
    let manifest = &mut fixture.manifest;
    for (variant, (_, precision, threads)) in manifest.experiment.variants.iter_mut().zip(VARIANTS) {
        variant.precision = precision;
        variant.threads.intra = Some(threads);
    }
    let costs = [
        json!([{ "macs": 25_000_000, "bytes_moved": null,
            "products": { "weights": 25_000_000, "activations": 30_000, "largest_activations": 10_000, "nodes": 3 } }]),
        json!([{ "macs": 400_000_000, "bytes_moved": null,
            "products": { "weights": 500_000, "activations": 900_000, "largest_activations": 100_000, "nodes": 50 } }]),
    ];
    for (model, costs) in manifest.models.iter_mut().flatten().zip(costs) {
        model.costs = serde_json::from_value(costs).unwrap();
    }
    manifest.findings.peak = Some(serde_json::from_value(peak).unwrap());
    fixture.summarized()
}

fn roofs() -> Value {
    let peak = |threads: u32, arithmetic: &str, operations_per_s: f64| {
        json!({ "device": "cpu", "threads": threads, "arithmetic": arithmetic, "size": 512,
            "operations_per_s": operations_per_s })
    };
    let bandwidth = |threads: u32, of_bytes: u64, bytes_per_s: f64| json!({ "device": "cpu", "threads": threads, "of": "weights", "of_bytes": of_bytes, "bytes_per_s": bytes_per_s });
    json!({
        "peaks": [
            peak(1, "float32", 100e9), peak(1, "float16", 102e9), peak(1, "int8", 190e9), peak(2, "float32", 200e9),
        ],
        // With two threads less was seen than with one, as on a busy machine.
        "bandwidths": [bandwidth(1, 64 << 20, 10e9), bandwidth(2, 64 << 20, 7e9), bandwidth(1, 16 << 20, 10e9)],
        "launches": [{ "device": "cpu", "threads": 1, "call_ns": 1000.0, "node_ns": 250.0 }],
    })
}

#[track_caller]
fn check(fixture: &Fixture, path: &str, of_roof: Option<f64>, word: Option<&str>) {
    let plan = &fixture.manifest.plan;
    let index = plan.cells.iter().position(|cell| plan.path(cell) == path).unwrap();
    let found = fixture.summary.cells[index].diagnosis;
    let is_near = match (found.of_roof, of_roof) {
        (Some(found), Some(wanted)) => (found - wanted).abs() < 0.02,
        (found, wanted) => found == wanted,
    };
    assert!(is_near, "{path}: {:?}, not {of_roof:?}", found.of_roof);
    assert_eq!(found.bound.as_ref().map(Bound::word), word, "{path}");
}

#[test]
fn cells_are_held_against_the_roof_of_their_own_numbers_bytes_and_threads() {
    let fixture = fixture(roofs());
    // 100 MB at 10 GB/s; the second thread could have used no less than one.
    check(&fixture, "mlp/b1/fp32-t1/cpu", Some(0.83), Some("memory-bound"));
    check(&fixture, "mlp/b1/fp32-t2/cpu", Some(0.84), Some("memory-bound"));
    // A quarter of the bytes.
    check(&fixture, "mlp/b1/int8-t1/cpu", Some(0.81), Some("memory-bound"));
    check(&fixture, "cnn/b1/fp32-t1/cpu", Some(0.80), Some("compute-bound"));
    check(&fixture, "cnn/b1/fp32-t2/cpu", Some(0.40), Some("thread-bound"));
    // 160 % of the roof of float32.
    check(&fixture, "cnn/b1/int8-t1/cpu", Some(0.84), Some("compute-bound"));
}

#[test]
fn nothing_is_said_without_a_roof_or_beyond_it() {
    let fixture = fixture(roofs());
    // No faster than float32, so float32 behind casts; and 107 % of its roof cannot be.
    check(&fixture, "mlp/b1/fp16-t1/cpu", Some(0.91), Some("memory-bound"));
    check(&fixture, "cnn/b1/fp16-t1/cpu", None, None);
    check(&fixture, "cnn/b1/bf16-t1/cpu", None, None);
    let none = self::fixture(json!({ "peaks": [] }));
    check(&none, "mlp/b1/fp32-t1/cpu", None, None);
    check(&none, "cnn/b1/fp32-t2/cpu", None, Some("thread-bound"));
}

#[test]
fn what_a_device_did_comes_before_its_roofs() {
    let mut fixture = fixture(roofs());
    let path = "cnn/b1/fp32-t1/cpu";
    let with = |fixture: Fixture| fixture.summarized();
    fixture.measured(path, "fallback_ratio", 0.38);
    let mut fixture = with(fixture);
    check(&fixture, path, Some(0.80), Some("fallback-bound"));
    fixture.measured(path, "fallback_ratio", 0.02);
    fixture.measured(path, "copy_ratio", 0.3);
    let mut fixture = with(fixture);
    check(&fixture, path, Some(0.80), Some("copy-bound"));
    fixture.measured(path, "copy_ratio", 0.0);
    fixture.measured(path, "device_time_ns", 6e6);
    let mut fixture = with(fixture);
    check(&fixture, path, Some(0.80), Some("launch-bound"));
    fixture.warn(path, "W_CPU_THROTTLED", 8);
    check(&with(fixture), path, Some(0.80), Some("throttled"));
}

#[test]
fn a_report_says_what_bounds_each_cell() {
    let fixture = fixture(roofs());
    let texts = fixture.render();
    for said in [
        "| of roofline | bound by |",
        "memory-bound, 83 % of 10.0 GB/s",
        "compute-bound, 84 % of 190 GOP/s in int8",
        "thread-bound, 2 threads 1.01x of 1",
    ] {
        assert!(texts.page.contains(said), "{said} in\n{}", texts.page);
    }
    let results = fixture.results();
    let row = |model: &str, variant: &str| {
        let is_wanted = |cell: &&Cell| cell.names[Axis::Models] == model && cell.names[Axis::Variants] == variant;
        results.cells.iter().find(is_wanted).unwrap().bound_by
    };
    let bound = row("mlp", "fp32-t1").unwrap();
    assert!(matches!(bound, Bound::Memory { bytes_per_s, .. } if bytes_per_s == 10e9), "{bound:?}");
    assert_eq!(row("cnn", "bf16-t1"), None);
    let shown = overview(&fixture.results(), &|_| false);
    let column = shown.columns.iter().position(|column| column.title == "bound by").unwrap();
    assert_eq!(shown.rows[0].cells[column].text, "memory 83 %");
}
