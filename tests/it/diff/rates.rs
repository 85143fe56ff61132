//! How often a gate is right: over many commits with scripted noise, of which `.ci/run slow` tries 200.

use serde_json::Value;

use super::Repository;

const SPEC: &str = "backend: { mock: { NOISE } }
seed: SEED
models: [tool]
variants: [fp32, { name: new, mock: { scale: 0.5 } }]
measure: { stop: { mode: samples, count: 100 } }
gate: [{ metric: latency, worse_by: 3% }]
";

/// A level for each run, some runs that something disturbs, and slow waves of noise within a run.
const NOISES: [&str; 3] =
    ["run_sd: 3%, noise: 5%", "run_sd: 0.5%, disturbed: 30%, disturbance: 60%", "noise: 15%, ar1: 0.95"];

/// How many commits are tried.
fn tries() -> usize {
    std::env::var("PERFRUN_GATES").map_or(6, |tries| tries.parse().expect("a number"))
}

/// The gates of so many commits that take `scale` instead of 0.5: what each came to, and the row that changed.
fn gates(noises: &[&str], scale: &str) -> Vec<(String, Value)> {
    let repository = Repository::new(&SPEC.replace("NOISE", noises[0]).replace("SEED", "1"));
    let gate_of_commit = |index: usize| {
        let spec = SPEC.replace("NOISE", noises[index % noises.len()]).replace("SEED", &(2 + index).to_string());
        repository.git(&["checkout", "-q", "-B", "older", "main"]);
        repository.0.write("experiments/x.yaml", &spec);
        repository.commit("older");
        repository.0.write("experiments/x.yaml", &spec.replace("scale: 0.5", scale));
        repository.commit("newer");
        let done = repository.diff(&["HEAD~1", "HEAD", "--remeasure", "--budget", "3m", "--gate", "--json"]);
        let json: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|_| panic!("{}", done.stderr));
        let rows = json["experiments"][0]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["variant"] == "new" && row["metric"] == "latency").unwrap();
        assert_eq!(json["experiments"][0]["failures"].as_array().map_or(0, Vec::len), 0, "{json}");
        (json["gate"].as_str().unwrap().to_owned(), row.clone())
    };
    (0..tries()).map(gate_of_commit).collect()
}

/// Both sides take the same time, and differ by a number in the script.
#[test]
fn gates_of_commits_that_change_nothing_never_fail() {
    let found = gates(&NOISES, "scale: 0.50000001");
    let fell: Vec<&Value> = found.iter().filter(|(gate, _)| gate == "failed").map(|(_, row)| row).collect();
    assert!(fell.is_empty(), "{} of {} failed: {fell:?}", fell.len(), found.len());
    let count = |outcome: &str| found.iter().filter(|(gate, _)| gate == outcome).count();
    println!("{} gates: {} passed, {} undecided", found.len(), count("passed"), count("undecided"));
}

/// Of gates that say that they find 5 %, nine of ten find it.
#[test]
fn what_can_be_seen_is_seen() {
    let found = gates(&["run_sd: 1.2%, noise: 3%"], "scale: 0.525");
    let sees = |row: &Value| row["gate"]["detectable"].as_f64().is_some_and(|effect| effect <= 0.05);
    let seen: Vec<&str> = found.iter().filter(|(_, row)| sees(row)).map(|(gate, _)| gate.as_str()).collect();
    let fell = seen.iter().filter(|gate| **gate == "failed").count();
    println!("{} of {} gates find 5 %: {fell} failed", seen.len(), found.len());
    assert!(!seen.is_empty() && found.iter().all(|(gate, _)| gate != "passed"), "{found:?}");
    assert!(fell * 10 + 10 >= seen.len() * 9, "{fell} of {}: {found:?}", seen.len());
}
