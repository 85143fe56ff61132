//! "Check it yourself": the queries that reports and the reference show give the numbers of the report, in DuckDB, from the
//! raw samples alone.
//!
//! DuckDB and jq come from PyPI through pip into perfrun's cache, once.

use std::path::{Path, PathBuf};
use std::process::Command;

use prepare::runtime;
use serde_json::Value;

use crate::need::need;
use crate::support::Project;

/// Fixed versions, so that every machine asks the same ones.
const PACKAGES: [&str; 2] = ["duckdb==1.5.6", "jq==1.13.0"];

/// Gives the rows of a query as JSON.
const ASK: &str = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))";

/// Where DuckDB and jq lie.
pub fn install() -> Result<PathBuf, String> {
    install_from(&PACKAGES, &["--no-deps"])
}

/// Where packages of Python lie, with what they need.
pub fn install_packages(packages: &[&str]) -> Result<PathBuf, String> {
    install_from(packages, &[])
}

fn install_from(packages: &[&str], options: &[&str]) -> Result<PathBuf, String> {
    let version = python(&["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], Path::new("."), None)?;
    let cache = runtime::cache_folder().join("tests");
    let folder = cache.join(format!("{}-python{}", packages.join("-").replace("==", "-"), version.trim()));
    if folder.is_dir() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&cache).map_err(|error| error.to_string())?;
    let new = tempfile::tempdir_in(&cache).map_err(|error| error.to_string())?;
    let target = new.path().join("packages");
    let arguments = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let wheels = ["--only-binary", ":all:", "--target", target.to_str().unwrap_or_default()];
    python(&[&arguments[..], &wheels, options, packages].concat(), Path::new("."), None)?;
    // Another test may have been faster; either copy will do.
    let renamed = std::fs::rename(&target, &folder);
    if folder.is_dir() { Ok(folder) } else { Err(renamed.err().map_or_else(String::new, |error| error.to_string())) }
}

/// What python prints, or the end of what it complains about.
pub fn python(arguments: &[&str], folder: &Path, packages: Option<&Path>) -> Result<String, String> {
    let mut command = Command::new("python3");
    command.args(arguments).current_dir(folder);
    if let Some(packages) = packages {
        command.env("PYTHONPATH", packages);
    }
    let output = command.output().map_err(|error| format!("python3: {error}"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
        return Err(complaint);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The rows that a query gives in a folder.
pub fn ask(packages: &Path, folder: &Path, query: &str) -> Vec<Vec<Value>> {
    let rows = python(&["-c", ASK, query], folder, Some(packages)).unwrap_or_else(|error| panic!("{error}\n{query}"));
    serde_json::from_str(&rows).unwrap()
}

/// The first block of SQL after a heading.
fn query_after(text: &str, heading: &str) -> String {
    let (_, rest) = text.split_once(heading).unwrap();
    let (_, rest) = rest.split_once("```sql\n").unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

/// The file has five digits.
#[track_caller]
fn assert_same(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-4, "{found} and {expected}");
}

/// Two models, several iterations a sample, runs that fail, warm-up and its late rest: everything that a query must heed.
const SPEC: &str = "name: checked
backend: { mock: { median: 3us, run_sd: 2%, noise: 5%, warmup_excess: 60%, warmup_time: 80ms } }
models: [one, two]
variants:
  - base
  - { name: other, mock: { scale: 1.3, fail: { kind: crash, at: measure, runs: [1] } } }
runs: 6
measure: { warmup: { max_time: 200ms }, stop: { mode: samples, count: 101 } }
";

/// The record of [`SPEC`] with its report: its folder and `results.json`.
fn record() -> (Project, PathBuf, Value) {
    let project = Project::with_spec(SPEC);
    project.run(&["x.yaml", "--set", "seed=7"]).expect_code(3);
    let folder = project.record_folder("checked");
    let results = serde_json::from_str(&std::fs::read_to_string(folder.join("results.json")).unwrap()).unwrap();
    (project, folder, results)
}

fn latency(results: &Value, cell: usize) -> (f64, u64) {
    let estimate = &results["cells"][cell]["metrics"]["latency_ns"];
    (estimate["value"].as_f64().unwrap(), estimate["n"].as_u64().unwrap())
}

#[test]
fn the_query_of_a_report_gives_its_number() {
    let packages = need!(duckdb);
    let (_place, folder, results) = record();
    let html = std::fs::read_to_string(folder.join("report.html")).unwrap();
    let (_, after) = html.split_once("Check it yourself").unwrap();
    let (_, query) = after.split_once("<pre tabindex=\"0\">").unwrap();
    let query = query.split_once("</pre>").unwrap().0.replace("&#x27;", "'").replace("&#39;", "'");
    let rows = ask(packages, &folder, &query);
    assert_same(rows[0][0].as_f64().unwrap(), latency(&results, 0).0);
    assert!(results["cells"][0]["iterations"].as_u64() > Some(1), "several iterations a sample");
}

#[test]
fn the_query_of_the_reference_gives_every_number() {
    let packages = need!(duckdb);
    let (_place, folder, results) = record();
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/record.md");
    let query = query_after(&std::fs::read_to_string(reference).unwrap(), "## Check it yourself");
    let rows = ask(packages, &folder, &query);
    // By name, which is the order of the plan here.
    assert_eq!(rows.len(), 4);
    for (cell, row) in rows.iter().enumerate() {
        let (value, n) = latency(&results, cell);
        assert_same(row[4].as_f64().unwrap() * 1e6, value);
        assert_eq!(row[5].as_u64(), Some(n));
    }
}
