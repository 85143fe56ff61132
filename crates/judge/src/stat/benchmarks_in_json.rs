//! JSON of benchmark tools, recognised by its keys: hyperfine, Google Benchmark, criterion and pytest-benchmark.
//!
//! Output: a series for each benchmark, in nanoseconds, in the order of the file. The formats are those of hyperfine 1.20
//! (`results[].times`, s), Google Benchmark 1.9 (`benchmarks[].real_time` in `time_unit`, a row for each repetition),
//! criterion 0.7 (`sample.json`: `times`, ns, of `iters` iterations) and pytest-benchmark 5 (`benchmarks[].stats.data`, s).
//! Deliberately absent: processor times and counters, which would be other metrics of the same benchmark.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::contents::Times;
use super::problem::{Fault, ReadError, Refusal};
use super::tool::{Tool, nanoseconds};
use super::{Contents, LeftOut};

/// Reads the benchmarks of a JSON object.
pub(super) fn parse(source: &str, bytes: &[u8]) -> Result<Contents, ReadError> {
    let finite = without_special_numbers(bytes);
    let file: File = serde_json::from_slice(&finite).map_err(|error| malformed(source, &error))?;
    file.contents().map_err(|refusal| refusal.of(source))
}

fn malformed(source: &str, error: &serde_json::Error) -> ReadError {
    let fault = if error.classify() == Category::Eof { Fault::Unfinished } else { Fault::Malformed };
    // Line and column are reported separately.
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what).to_owned();
    ReadError { source_name: source.to_owned(), position: Some((error.line(), error.column())), text, fault }
}

/// What the files of all tools have between them.
#[derive(Deserialize)]
struct File {
    results: Option<Vec<Command>>,
    benchmarks: Option<Vec<Benchmark>>,
    context: Option<serde_json::Value>,
    machine_info: Option<serde_json::Value>,
    iters: Option<Vec<Number>>,
    times: Option<Vec<Number>>,
    /// Only in criterion's `estimates.json`.
    median_abs_dev: Option<IgnoredAny>,
}

/// One command of hyperfine.
#[derive(Deserialize)]
struct Command {
    command: String,
    times: Option<Vec<Number>>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
}

/// One benchmark of pytest-benchmark, or one row of Google Benchmark.
#[derive(Deserialize)]
struct Benchmark {
    name: String,
    fullname: Option<String>,
    stats: Option<Stats>,
    run_type: Option<String>,
    real_time: Option<Number>,
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    error_message: Option<String>,
    #[serde(default)]
    skipped: bool,
    skip_message: Option<String>,
}

#[derive(Deserialize)]
struct Stats {
    data: Option<Vec<Number>>,
}

/// A number; what JSON has no number for is not one.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::<f64>::deserialize(deserializer).map(|value| Number(value.unwrap_or(f64::NAN)))
    }
}

impl File {
    fn contents(self) -> Result<Contents, Refusal> {
        match self {
            File { results: Some(commands), .. } => commands_of_hyperfine(commands),
            File { benchmarks: Some(benchmarks), machine_info, context, .. } => {
                if machine_info.is_some() || benchmarks.iter().any(|benchmark| benchmark.stats.is_some()) {
                    rounds_of_pytest(benchmarks, machine_info.as_ref())
                } else {
                    repetitions_of_google(benchmarks, context.as_ref())
                }
            }
            File { iters: Some(iterations), times: Some(times), .. } => sample_of_criterion(&iterations, &times),
            File { median_abs_dev: Some(_), .. } => Err(Refusal::of_file(Fault::NoSamples(Tool::Criterion))),
            _ => Err(Refusal::of_file(Fault::Object)),
        }
    }
}

fn commands_of_hyperfine(commands: Vec<Command>) -> Result<Contents, Refusal> {
    let mut contents = Contents::default();
    for Command { command, times, exit_codes } in commands {
        let times = times.ok_or(Refusal::of_file(Fault::NoSamples(Tool::Hyperfine)))?;
        let failed = exit_codes.iter().filter(|code| **code != Some(0)).count();
        if failed > 0 {
            let message = format!("{failed} of its {} runs failed", exit_codes.len());
            contents.left_out.push(LeftOut { benchmark: command.clone(), message, is_kept: true });
        }
        contents.add(Tool::Hyperfine, Some(command), times.into_iter().map(|Number(time)| time * 1e9).collect())?;
    }
    Ok(contents)
}

fn rounds_of_pytest(benchmarks: Vec<Benchmark>, machine: Option<&serde_json::Value>) -> Result<Contents, Refusal> {
    let mut contents = Contents::default();
    for benchmark in benchmarks {
        let data = benchmark.stats.and_then(|stats| stats.data);
        let data = data.ok_or(Refusal::of_file(Fault::NoSamples(Tool::PytestBenchmark)))?;
        // Two modules may have a test of the same name.
        let name = benchmark.fullname.unwrap_or(benchmark.name);
        contents.add(Tool::PytestBenchmark, Some(name), data.into_iter().map(|Number(time)| time * 1e9).collect())?;
    }
    let text = |pointer: &str| machine?.pointer(pointer)?.as_str().map(str::to_owned);
    contents.set_machine(text("/cpu/brand_raw").or_else(|| text("/node")).as_deref());
    Ok(contents)
}

/// One value for each repetition. The order of the file does not matter, since repetitions may be interleaved.
fn repetitions_of_google(rows: Vec<Benchmark>, context: Option<&serde_json::Value>) -> Result<Contents, Refusal> {
    let is_aggregate = |row: &Benchmark| row.run_type.as_deref() == Some("aggregate");
    if !rows.is_empty() && rows.iter().all(is_aggregate) {
        return Err(Refusal::of_file(Fault::NoSamples(Tool::GoogleBenchmark)));
    }
    let mut contents = Contents::default();
    let mut times = Times::default();
    for row in rows.into_iter().filter(|row| !is_aggregate(row)) {
        if row.error_occurred || row.skipped {
            let message = row.error_message.or(row.skip_message).unwrap_or_else(|| "it failed".to_owned());
            contents.leave_out(row.name, message);
            continue;
        }
        let unit = row.time_unit.as_deref().unwrap_or("ns");
        let factor = nanoseconds(unit).ok_or_else(|| Refusal::of_benchmark(unit, Fault::UnknownUnit))?;
        let Some(Number(time)) = row.real_time else {
            return Err(Refusal::of_benchmark(&row.name, Fault::NotFiniteIn));
        };
        times.add(row.name, time * factor);
    }
    contents.add_all(Tool::GoogleBenchmark, times)?;
    contents.set_machine(context.and_then(|context| context.pointer("/host_name")?.as_str()));
    Ok(contents)
}

/// Linear sampling has more iterations from sample to sample, flat sampling as many in each: the time of one is comparable.
fn sample_of_criterion(iterations: &[Number], times: &[Number]) -> Result<Contents, Refusal> {
    if iterations.len() != times.len() {
        return Err(Refusal::of_file(Fault::DifferentLengths));
    }
    let each = times.iter().zip(iterations).map(|(time, iterations)| time.0 / iterations.0).collect();
    let mut contents = Contents::default();
    contents.add(Tool::Criterion, None, each)?;
    Ok(contents)
}

/// The bytes with null for `NaN` and `Infinity`, which C++ and Python write and JSON does not know.
fn without_special_numbers(bytes: &[u8]) -> Cow<'_, [u8]> {
    const SPECIAL: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut cleaned = Vec::new();
    let (mut at, mut taken, mut is_text) = (0, 0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if is_text => at += 1,
            b'"' => is_text = !is_text,
            b'-' | b'I' | b'N' if !is_text => {
                if let Some(special) = SPECIAL.iter().find(|special| bytes[at..].starts_with(special)) {
                    cleaned.extend_from_slice(&bytes[taken..at]);
                    cleaned.extend_from_slice(b"null");
                    taken = at + special.len();
                    at = taken - 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    if taken == 0 {
        return Cow::Borrowed(bytes);
    }
    cleaned.extend_from_slice(&bytes[taken..]);
    Cow::Owned(cleaned)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Named = (Option<String>, Vec<f64>);

    fn read(text: &str) -> Result<Vec<Named>, String> {
        let contents = parse("x.json", text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(contents
            .series
            .iter()
            .map(|series| (series.benchmark().map(str::to_owned), series.values().to_vec()))
            .collect())
    }

    fn named(name: &str, values: &[f64]) -> Named {
        (Some(name.to_owned()), values.to_vec())
    }

    #[test]
    fn every_tool_is_known_by_its_keys() {
        let hyperfine = r#"{"results": [{"command": "a b", "mean": 1, "times": [2, 0.5], "exit_codes": [0, 0]}]}"#;
        assert_eq!(read(hyperfine).unwrap(), [named("a b", &[2e9, 5e8])]);
        let google = r#"{"context": {"host_name": "h"}, "benchmarks": [
            {"name": "x", "run_type": "iteration", "real_time": 2, "time_unit": "us"},
            {"name": "y", "run_type": "iteration", "real_time": 7},
            {"name": "x", "run_type": "iteration", "real_time": 3, "time_unit": "us", "counter": NaN},
            {"name": "x_mean", "run_type": "aggregate", "real_time": 2.5, "time_unit": "us"}]}"#;
        assert_eq!(read(google).unwrap(), [named("x", &[2000.0, 3000.0]), named("y", &[7.0])]);
        assert_eq!(parse("x", google.as_bytes()).unwrap().series[0].machine.as_deref(), Some("h"));
        let criterion = r#"{"sampling_mode": "Linear", "iters": [2.0, 4.0], "times": [10.0, 24.0]}"#;
        assert_eq!(read(criterion).unwrap(), [(None, vec![5.0, 6.0])]);
        let pytest = r#"{"machine_info": {"node": "n", "cpu": {"brand_raw": "c"}},
            "benchmarks": [{"name": "f", "fullname": "t.py::f", "stats": {"data": [1e-6], "ops": Infinity}}]}"#;
        assert_eq!(read(pytest).unwrap(), [named("t.py::f", &[1e-6 * 1e9])]);
        assert_eq!(parse("x", pytest.as_bytes()).unwrap().series[0].machine.as_deref(), Some("c"));
    }

    #[test]
    fn what_failed_is_left_out_by_its_name() {
        let rows = r#"{"benchmarks": [
            {"name": "x", "run_type": "iteration", "real_time": 0, "error_occurred": true, "error_message": "no file"},
            {"name": "x", "run_type": "iteration", "real_time": 0, "error_occurred": true, "error_message": "no file"},
            {"name": "y", "run_type": "iteration", "real_time": 1}]}"#;
        let contents = parse("x", rows.as_bytes()).unwrap();
        let left_out = LeftOut { benchmark: "x".to_owned(), message: "no file".to_owned(), is_kept: false };
        assert_eq!((contents.left_out, contents.series.len()), (vec![left_out], 1));
        let failed = r#"{"results": [{"command": "a", "times": [1, 1], "exit_codes": [0, null]}]}"#;
        let contents = parse("x", failed.as_bytes()).unwrap();
        assert_eq!((contents.left_out[0].message.as_str(), contents.series.len()), ("1 of its 2 runs failed", 1));
    }

    #[track_caller]
    fn check_refusal(text: &str, words: &str) {
        assert_eq!(read(text).unwrap_err(), words);
    }

    #[test]
    fn files_without_usable_times_are_refused() {
        check_refusal(r#"{"cells": []}"#, "x.json is not a file that perfrun can read");
        check_refusal("{\"results\": [\n{\"command\"", "x.json:2:10: the file is cut short");
        check_refusal(r#"{"results": 3}"#, "x.json:1:13: invalid type: integer `3`, expected a sequence");
        check_refusal(r#"{"results": [{"command": "a"}]}"#, "x.json has no single times of hyperfine");
        check_refusal(
            r#"{"results": [{"command": "a", "times": [1, null]}]}"#,
            "x.json: `a` has a time that is no number",
        );
        let aggregates = r#"{"benchmarks": [{"name": "x_mean", "run_type": "aggregate", "real_time": 1}]}"#;
        check_refusal(aggregates, "x.json has no single times of Google Benchmark");
        let unit = r#"{"benchmarks": [{"name": "x", "real_time": 1, "time_unit": "fs"}]}"#;
        check_refusal(unit, "x.json: `fs` is not a unit that perfrun knows");
        let saved = r#"{"machine_info": {}, "benchmarks": [{"name": "x", "stats": {"mean": 1}}]}"#;
        check_refusal(saved, "x.json has no single times of pytest-benchmark");
        check_refusal(r#"{"median_abs_dev": {}}"#, "x.json has no single times of criterion");
        check_refusal(r#"{"iters": [1], "times": []}"#, "x.json has not as many iterations as times");
        check_refusal(r#"{"iters": [0], "times": [1]}"#, "x.json: `criterion` has a time that is no number");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[{}\\[\\],:\"0-9eNaInfity\\\\. -]{0,60}") {
            let _outcome = parse("x", text.as_bytes());
        }

        #[test]
        fn only_what_stands_outside_texts_is_replaced(name in "[a-zN\\\\\"-]{0,12}") {
            let text = serde_json::json!({ "NaN -Infinity": name, "b": 1 }).to_string();
            prop_assert_eq!(without_special_numbers(text.as_bytes()), text.as_bytes());
        }
    }
}
