//! What a look costs: 1,000 comparisons in 32 blocks, from the stored runs to which groups are settled (method 4.6).
//! Wanted: less than 100 ms.
//!
//! `cargo bench --bench look`
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use judge::compare::need::settled;
use judge::summary::summarize_asked;
use plan::expand;
use record::{Manifest, Outcome, RunKind, StoredRun};
use statistics::Xoshiro256PlusPlus;

const BLOCKS: u32 = 32;
const ROUNDS: usize = 20;

/// 500 groups of three cells: 1,000 comparisons.
fn record() -> (Manifest, Vec<StoredRun>) {
    let models: Vec<String> = (0..500).map(|number| format!("m{number}")).collect();
    let text = format!("backend: mock\nmodels: [{}]\nvariants: [a, b, c]\nruns: auto\n", models.join(", "));
    let experiment = spec::parse("look.yaml", &text, Path::new("."), &[]).unwrap().experiment;
    // What else a manifest holds does not matter here.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/records/format1");
    let plan = expand(&experiment).unwrap();
    let manifest = Manifest { plan, experiment, ..Manifest::read(&folder).unwrap() };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut runs = Vec::new();
    for (block, cell) in (0..BLOCKS).flat_map(|block| manifest.plan.cells.iter().map(move |cell| (block, cell))) {
        let mut run = StoredRun::not_started(cell.id, RunKind::Main, block, 0, Outcome::Completed);
        run.data.metrics.insert("latency_ns".to_owned(), 5e6 * (0.01 * random.normal()).exp());
        runs.push(run);
    }
    (manifest, runs)
}

fn main() {
    let (manifest, runs) = record();
    let mut milliseconds: Vec<f64> = Vec::new();
    let mut groups = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let summary = summarize_asked(&manifest, runs.iter()).unwrap();
        groups = settled(&manifest, &summary).into_iter().filter(|is_settled| *is_settled).count();
        milliseconds.push(started.elapsed().as_secs_f64() * 1e3);
    }
    milliseconds.sort_by(f64::total_cmp);
    println!(
        "a look at 1,000 comparisons in {BLOCKS} blocks: {:.1} ms (median of {ROUNDS}); {groups} of {} groups settled",
        milliseconds[ROUNDS / 2],
        manifest.plan.groups.len()
    );
}
