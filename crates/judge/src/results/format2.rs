//! Format 2, which 0.1.0 wrote until 2026-11-25: what has another name or shape there, brought into that of today.
//!
//! Input and output: the file as JSON. What format 2 does not hold stays absent.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use crate::compare::Withheld;

/// The file in the shape of today's format.
pub(super) fn upgraded(mut file: Value) -> Value {
    // What is no map is refused for its type.
    if !file.is_object() {
        return file;
    }
    let items = |value: &mut Value, name: &str, change: &dyn Fn(&mut Map<String, Value>)| {
        let rows = value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        rows.filter_map(Value::as_object_mut).for_each(change);
    };
    items(&mut file, "comparisons", &comparison);
    let sets = file["provenance"]["frame"]["input_sets"].as_u64().unwrap_or(1);
    items(&mut file, "cells", &|row| cell(row, sets));
    items(&mut file, "tradeoffs", &|tradeoff| {
        let is_dominated = |point: &Value| point["place"] == "dominated";
        let points = tradeoff.get("points").and_then(Value::as_array);
        let is_open = points.is_some_and(|points| points.iter().filter(|point| !is_dominated(point)).count() > 1);
        tradeoff.insert("open".to_owned(), json!(is_open));
    });
    reasons(&mut file);
    let controls = file["controls"].as_array().map_or(0, Vec::len);
    if let Some(rules) = file.get_mut("rules").and_then(Value::as_object_mut) {
        rules.insert("controls".to_owned(), json!(controls));
    }
    file["method"] = method(&file);
    file["format"] = json!(super::FORMAT);
    file
}

/// Why nothing may be said about cells, and the comparisons that decided a choice.
fn reasons(file: &mut Value) {
    let [cells, comparisons] = ["cells", "comparisons"].map(|name| file[name].as_array().cloned().unwrap_or_default());
    let mut known = Known::default();
    for cell in &cells {
        known.cells.entry(cell["id"].as_str().unwrap_or_default()).or_insert(cell);
    }
    for row in &comparisons {
        known.comparisons.entry(row["cell"].as_str().unwrap_or_default()).or_default().push(row);
    }
    let Some(file) = file.as_object_mut() else { return };
    rows(file, "tradeoffs")
        .for_each(|tradeoff| rows(tradeoff, "points").for_each(|point| known.add_detail(point, "why")));
    rows(file, "goals").for_each(|goal| rows(goal, "cells").for_each(|cell| known.add_detail(cell, "reason")));
    let Some(choice) = file.get_mut("choice").and_then(Value::as_object_mut) else { return };
    rows(choice, "bounds").for_each(|bound| rows(bound, "cells").for_each(|cell| known.add_detail(cell, "reason")));
    let metric = choice.get("metric").cloned();
    rows(choice, "contests").for_each(|ranking| {
        rows(ranking, "entrants").for_each(|candidate| known.add_detail(candidate, "why"));
        let candidates = ranking.get("entrants").and_then(Value::as_array).into_iter().flatten();
        let candidates: HashSet<&str> = candidates.filter_map(|candidate| candidate["cell"].as_str()).collect();
        let leader = ranking.get("best").and_then(|best| best[0].as_str());
        let of_leader = leader.and_then(|leader| known.comparisons.get(leader)).into_iter().flatten();
        let decided = of_leader.filter(|row| {
            let is_candidate = row["baseline"].as_str().is_some_and(|baseline| candidates.contains(baseline));
            Some(&row["metric"]) == metric.as_ref() && is_candidate
        });
        let evidence: Vec<&Value> = decided.copied().collect();
        let evidence = json!(evidence);
        ranking.insert("evidence".to_owned(), evidence);
    });
}

/// What the file says elsewhere, by the id of the cell.
#[derive(Default)]
struct Known<'a> {
    cells: HashMap<&'a str, &'a Value>,
    comparisons: HashMap<&'a str, Vec<&'a Value>>,
}

impl Known<'_> {
    /// The reason of that field with what today's format adds to it; without a reason where that is not known.
    fn add_detail(&self, row: &mut Map<String, Value>, field: &str) {
        let word = row.remove(field);
        let id = row.get("cell").and_then(Value::as_str).unwrap_or_default();
        let cell = self.cells.get(id);
        let reason = word.as_ref().and_then(Value::as_str).zip(cell).and_then(|(word, cell)| {
            let with_detail = |value: &Value| (!value.is_null()).then(|| json!({ word: value }));
            match word {
                "failed" => with_detail(&cell["failures"][0]["kind"]),
                "withheld" => {
                    let comparison = self.comparisons.get(id)?.first()?;
                    Withheld::named(comparison["reason"].as_str()?).and_then(|_| with_detail(&comparison["reason"]))
                }
                "too_few_runs" => with_detail(&cell["completed"]),
                "batched" => with_detail(&cell["iterations"]),
                "too_few_samples" => None,
                known => Some(json!(known)),
            }
        });
        row.extend(reason.map(|reason| (field.to_owned(), reason)));
    }
}

fn rows<'a>(object: &'a mut Map<String, Value>, name: &str) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    object.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// What was computed in addition to the verdict stood in a row of its own.
fn comparison(row: &mut Map<String, Value>) {
    let Some(Value::Object(mut details)) = row.remove("details") else { return };
    let deviation = details.remove("winsorised_deviation").or_else(|| details.remove("standard_deviation"));
    row.extend(deviation.map(|deviation| ("deviation".to_owned(), deviation)));
    row.extend(details.remove("detectable").map(|detectable| ("detectable".to_owned(), detectable)));
}

fn cell(cell: &mut Map<String, Value>, sets: u64) {
    let runs = cell.get("runs").and_then(|runs| runs["block"].as_array()).map_or(0, Vec::len);
    cell.insert("completed".to_owned(), json!(runs));
    let failed: u64 = rows(cell, "failures")
        .filter(|row| !row.contains_key("rehearsal"))
        .filter_map(|row| row.get("runs")?.as_u64())
        .fold(0, u64::saturating_add);
    cell.insert("failed".to_owned(), json!(failed));
    let threads = cell.get("threads").cloned().unwrap_or(json!(1));
    if let Some(load) = cell.get_mut("other_load").and_then(Value::as_object_mut)
        && load.remove("inflates") == Some(json!(true))
    {
        load.insert("waiting_threads".to_owned(), threads.clone());
    }
    let cosine = cell.get("metrics").and_then(|metrics| metrics["fidelity_cosine"]["value"].as_f64());
    // Where nothing is known of a bound that today's format names, it is left out.
    let bounded = cell.remove("bound_by").and_then(|old| bound_by(&old, &threads));
    cell.extend(bounded.map(|bound| ("bound_by".to_owned(), bound)));
    let shape = cell.remove("shape").map(|old| shape(&old));
    cell.extend(shape.map(|shape| ("shape".to_owned(), shape)));
    let fidelity = cell.remove("fidelity").map(|old| fidelity(&old, cosine, sets));
    cell.extend(fidelity.map(|fidelity| ("fidelity".to_owned(), fidelity)));
    let changes = cell.get_mut("score_changes").and_then(Value::as_object_mut);
    for change in changes.into_iter().flat_map(|all| all.values_mut()).filter_map(Value::as_object_mut) {
        if let (Some(low), Some(high)) = (change.remove("low"), change.remove("high")) {
            change.insert("interval".to_owned(), json!({ "low": low, "high": high }));
        }
    }
}

fn bound_by(old: &Value, threads: &Value) -> Option<Value> {
    let (value, detail) = (&old["value"], &old["of"]);
    Some(match old["word"].as_str()? {
        "fallback-bound" => json!({ "by": "fallback", "share": value }),
        "copy-bound" => json!({ "by": "copying", "share": value }),
        "launch-bound" => json!({ "by": "launching", "share": value }),
        "memory-bound" => json!({ "by": "memory", "share": value, "bytes_per_s": detail }),
        "thread-bound" => json!({ "by": "threads", "threads": threads, "fewer": detail, "speedup": value }),
        _ => return None,
    })
}

fn shape(old: &Value) -> Value {
    let count = |name: &str| old[name].as_u64().unwrap_or(0);
    json!({
        "robust_variation": old["scatter"], "skewness": old["skewness"], "outlier_share": old["outliers"],
        "severe_outlier_share": old["severe_outliers"], "multimodal_runs": count("runs_in_groups"),
        "slower_runs": count("runs_slower"), "faster_runs": count("runs_faster"),
        "slow_first_runs": count("runs_first_slow"), "unsettled_runs": count("runs_unsettled"),
        "imprecise_runs": count("runs_imprecise"),
    })
}

fn fidelity(old: &Value, cosine: Option<f64>, sets: u64) -> Value {
    let equal = old["equal"].as_object().into_iter().flatten();
    let equal = equal.map(|(output, found)| {
        json!({ "output": output, "elements": found["elements"], "equal": found["equal"], "tied": found["tied"] })
    });
    json!({
        "input_sets": sets, "items_of_data": old["items"], "cosine": cosine,
        "max_abs": old["max_abs"].as_f64().unwrap_or(0.0), "max_scaled": old["max_scaled"],
        "close": old["close"], "agreement": null, "equal": equal.collect::<Vec<_>>(),
        "misses": old["misses"].as_array().cloned().unwrap_or_default(), "is_judged": true,
    })
}

/// What the facts and rules say of it.
fn method(file: &Value) -> Value {
    let frame = &file["provenance"]["frame"];
    let mut method = Map::new();
    for (name, value) in [
        ("design", &frame["design"]),
        ("cache", &frame["cache"]),
        ("boundary", &frame["boundary"]),
        ("inputs", &frame["input_sets"]),
    ] {
        if !value.is_null() {
            method.insert(name.to_owned(), value.clone());
        }
    }
    let runs = &file["rules"]["runs"];
    let interim_analyses = match file["rules"]["runs_min"].is_null() {
        true => json!([runs]),
        false => json!([file["rules"]["runs_min"], runs]),
    };
    let has_library = file["provenance"]["subject"]["runtimes"].as_array().is_some_and(|all| !all.is_empty());
    method.insert("backend".to_owned(), json!(if has_library { "onnxruntime" } else { "mock" }));
    method.insert("runs".to_owned(), runs.clone());
    method.insert("looks".to_owned(), interim_analyses);
    Value::Object(method)
}
