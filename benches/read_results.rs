//! How long a `results.json` of ten thousand measured cells takes to be read and typed.
//!
//!     cargo bench --bench read_results
//!
//! Repeats the measured cells of a committed report. Wanted: below half a second.
#![allow(clippy::print_stdout, missing_docs, reason = "a bench prints")]

use std::path::Path;
use std::time::Instant;

use judge::results::{self, Status};

const CELLS: usize = 10_000;

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/quickstart/results.json");
    let mut results = results::read(&path).expect("a committed report");
    results.cells.retain(|cell| cell.status == Status::Measured);
    results.cells = results.cells.iter().cycle().take(CELLS).cloned().collect();
    let text = results.to_json();
    let mut seconds: Vec<f64> = (0..7)
        .map(|_| {
            let started = Instant::now();
            let read = results::parse(&path, &text).expect("what was just written");
            let taken = started.elapsed().as_secs_f64();
            assert_eq!(read.cells.len(), CELLS);
            taken
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "{CELLS} cells, {:.0} MB: {:.2} s (median of {}; {:.2} to {:.2})",
        text.len() as f64 / 1e6,
        seconds[seconds.len() / 2],
        seconds.len(),
        seconds[0],
        seconds[seconds.len() - 1]
    );
}
