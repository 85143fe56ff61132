//! The user's own scores: a command that reads saved outputs and prints numbers.

use std::borrow::Cow;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use super::{ItemScoresFound, Reference};
use crate::run::Job;
use crate::run::dataset::ModelData;
use crate::run::runner::Runner;
use base::metric::Metric;
use base::printable::printable_line;
use base::privacy::without_home;
use base::wording::count;
use experiment::AccuracyMetric;
use files::array::{Array, save_npy};
use quality::accuracy::ItemScores;
use worker::command::Finished;
use worker::printed::numbers;
use worker::read_outputs;

/// Characters of what a failed command says last.
const LONGEST_COMPLAINT: usize = 300;

/// What the command finds as `outputs.json`.
#[derive(Debug, Serialize)]
struct Contents {
    /// Items that were run.
    items: u64,
    outputs: Vec<Saved>,
}

#[derive(Debug, Serialize)]
struct Saved {
    /// The output's name in the model.
    name: String,
    /// Its element type.
    element: String,
    /// Of maps, the keys of the last dimension.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    keys: Vec<String>,
    /// One file with all items, or one for each call where their shapes differ.
    files: Vec<String>,
}

/// Starts the command with the folder of the outputs as its last argument and returns the metrics that it printed; why
/// there are none, in words.
pub(super) fn run(
    job: &Job,
    unit: Reference,
    data: &ModelData,
    written: &Path,
    runner: &mut Runner<'_>,
) -> ItemScoresFound {
    let folder = written.join("score");
    // Without the home folder, because committed reports contain this text.
    let described = |problem: String| without_home(&format!("`score: [{}]`{problem}", data.dataset.score.join(", ")));
    let Some((program, arguments)) = data.dataset.score.split_first() else { return ItemScoresFound::default() };
    if let Err(problem) = save(written, &folder, data.fitted.items) {
        return ItemScoresFound::of_problem(format!("the outputs for `score`: {problem}"));
    }
    let coordinates = job.plan().coordinates(job.cell(unit.index()));
    let (variant, device) = match unit {
        Reference::Cell(_) => (coordinates.variant(), coordinates.device()),
        Reference::Stored(_) => ("reference", "cpu"),
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(&folder)
        .current_dir(&job.spec_folder)
        .env("PERFRUN_DATASET", &data.dataset.file)
        .env("PERFRUN_MODEL", coordinates.model())
        .env("PERFRUN_VARIANT", variant)
        .env("PERFRUN_DEVICE", device);
    let timeout = job.measure().timeout.to_duration();
    let done = runner.run_command(command, timeout).map_err(|problem| format!(": {problem}"));
    match done.and_then(|done| numbers_of(job, &done, data)) {
        Ok(found) => ItemScoresFound { problems: found.problems.into_iter().map(described).collect(), ..found },
        Err(problem) => ItemScoresFound::of_problem(described(problem)),
    }
}

/// Writes one file for each output, with all items, or one for each call.
fn save(written: &Path, folder: &Path, items: u64) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let sets = read_outputs(written).map_err(|problem| problem.to_string())?;
    let count = sets.first().map_or(0, Vec::len);
    let mut outputs = Vec::new();
    for index in 0..count {
        let calls: Vec<&Array> = sets.iter().filter_map(|set| set.get(index)).collect();
        let Some(first) = calls.first() else { continue };
        let arrays = files(index, &calls, items);
        for (name, array) in &arrays {
            save_npy(array, &folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
        }
        let files = arrays.iter().map(|(name, _)| name.clone()).collect();
        let (name, element, keys) = (first.name.clone(), first.element.to_string(), first.keys.clone());
        outputs.push(Saved { name, element, keys, files });
    }
    let text = serde_json::to_vec_pretty(&Contents { items, outputs }).map_err(|error| error.to_string())?;
    std::fs::write(folder.join("outputs.json"), text).map_err(|error| error.to_string())
}

/// A name without what a file's name should not have.
fn file_name(name: &str) -> String {
    let keep = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' };
    name.chars().map(keep).collect()
}

/// One output as files: one with an entry for each item, else one for each call. A number of entries that is by chance that
/// of the items does not count: every call must have the same, but for the last.
fn files<'a>(index: usize, calls: &[&'a Array], items: u64) -> Vec<(String, Cow<'a, Array>)> {
    let stem = format!("{index}-{}", file_name(&calls[0].name));
    let entries = |call: &&Array| call.shape.first().copied();
    let is_even = calls.split_last().is_some_and(|(last, whole)| {
        whole.iter().all(|call| entries(call) == entries(&calls[0])) && entries(last) <= entries(&calls[0])
    });
    let has_all = calls.iter().filter_map(entries).sum::<u64>() == items;
    match Array::stacked(calls.iter().copied()).filter(|_| is_even && has_all) {
        Some(all) => vec![(format!("{stem}.npy"), Cow::Owned(all))],
        None => {
            let of_call = |(call, array): (usize, &&'a Array)| (format!("{stem}-{call}.npy"), Cow::Borrowed(*array));
            calls.iter().enumerate().map(of_call).collect()
        }
    }
}

/// The values of every metric that the dataset expects of a command, if it ended well: one, or one for each item; with what
/// is wrong about some.
fn numbers_of(job: &Job, done: &Finished, data: &ModelData) -> Result<ItemScoresFound, String> {
    if !done.status.success() {
        let last = done.complaint.trim().lines().last().unwrap_or_default();
        let last: String = last.chars().take(LONGEST_COMPLAINT).collect();
        return Err(format!(": {}: {}", done.status, printable_line(&last)));
    }
    if done.left_out > 0 {
        let more = count(done.left_out, "byte");
        return Err(format!(" printed {more} more than perfrun reads: print the numbers alone"));
    }
    let wanted: Vec<&str> = data.dataset.own_metrics().map(|metric| metric.stem()).collect();
    let mut printed = numbers(&done.printed, &wanted);
    let mut found = ItemScoresFound::default();
    for metric in data.dataset.own_metrics() {
        let name = metric.stem();
        let values = printed.remove(name).unwrap_or_else(|| {
            let start: String = done.printed.trim().chars().take(60).collect();
            Err(format!("it printed no number `{name}`, such as {{\"{name}\": 0.41}}, but `{start}`"))
        });
        match values.and_then(|values| checked(job, metric, values, data.fitted.items)) {
            Ok(values) => {
                found.scores.push((AccuracyMetric::Own(metric), ItemScores { values, label_variance: None }));
            }
            Err(problem) => found.problems.push(format!(": {}", printable_line(&problem))),
        }
    }
    Ok(found)
}

/// In the stored unit.
fn checked(job: &Job, metric: &'static Metric, mut values: Vec<f64>, items: u64) -> Result<Vec<f64>, String> {
    /// No score is larger.
    const MOST: f64 = 1e18;
    let name = metric.stem();
    if values.len() != 1 && values.len() as u64 != items {
        return Err(format!("it printed {} values of `{name}` for {}", values.len(), count(items, "item")));
    }
    let declared = job.manifest().experiment.metrics.iter().find(|declared| declared.metric == metric);
    values.iter_mut().for_each(|value| *value *= declared.map_or(1.0, |declared| declared.factor));
    match values.iter().find(|value| value.abs() > MOST) {
        Some(large) => Err(format!("it printed {large:e} for `{name}`, and nothing is that large")),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_outputs_become_names_of_files() {
        assert_eq!(file_name("model/Identity:0"), "model_Identity_0");
    }

    #[test]
    fn outputs_that_vary_keep_their_calls_apart() {
        let rows = |rows: u64| Array {
            name: "boxes".to_owned(),
            element: onnx::ElementType::Float32,
            shape: vec![rows, 6],
            bytes: vec![0; rows as usize * 24],
            keys: Vec::new(),
        };
        let named = |calls: &[u64], items: u64| -> Vec<(String, u64)> {
            let arrays: Vec<Array> = calls.iter().map(|count| rows(*count)).collect();
            let calls: Vec<&Array> = arrays.iter().collect();
            files(0, &calls, items).into_iter().map(|(name, array)| (name, array.shape[0])).collect()
        };
        let file = |name: &str, rows: u64| (name.to_owned(), rows);
        assert_eq!(named(&[4, 4, 1], 9), [file("0-boxes.npy", 9)]);
        let apart = [file("0-boxes-0.npy", 1), file("0-boxes-1.npy", 0), file("0-boxes-2.npy", 2)];
        assert_eq!(named(&[1, 0, 2], 3), apart, "as many boxes as images, by chance");
        assert_eq!(named(&[5], 1), [file("0-boxes-0.npy", 5)]);
    }
}
