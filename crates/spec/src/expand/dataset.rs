//! A dataset: where its files are, and whether its keys fit together.

use std::path::{Path, PathBuf};

use super::Axis;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::DatasetForm;
use base::metric::MetricReference;
use experiment::{AccuracyMetric, Dataset, Model};
use reading::nearest::nearest;

/// The formats that can be read.
const ENDINGS: [&str; 3] = ["npz", "npy", "parquet"];

/// Reads a dataset; `None` where a file of it cannot be had.
pub(super) fn expand(
    form: &DatasetForm,
    place: &DocumentPath,
    folder: &Path,
    check: &mut Check<'_>,
) -> Option<Dataset> {
    if check.is_damaged(&place.key("file")) {
        return None;
    }
    let file = file(&form.file, &ENDINGS, &place.key("file"), folder, check)?;
    let is_single = has_ending(&file, "npy");
    let labels = form.labels.as_ref();
    let labels_file = match labels.filter(|labels| has_ending(Path::new(labels), "npy")) {
        Some(labels) => Some(self::file(labels, &["npy"], &place.key("labels"), folder, check)?),
        None => None,
    };
    let labels = labels.filter(|_| labels_file.is_none()).cloned();
    if let (Some(name), true) = (&labels, is_single) {
        let message = format!("`labels` is `{name}`, but a `.npy` file has one array");
        check.error(&place.key("labels"), message, "name another `.npy` file".to_owned());
    }
    let metrics = metrics(form, place, check);
    check_use(form, &metrics, place, check);
    Some(Dataset {
        file,
        labels,
        labels_file,
        inputs: form.inputs.0.iter().cloned().collect(),
        output: form.output.clone(),
        metrics: (!form.metrics.is_empty()).then_some(metrics),
        items: form.items,
        score: form.score.clone(),
    })
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|known| known.eq_ignore_ascii_case(ending))
}

pub(super) fn file(
    text: &str,
    endings: &[&str],
    place: &DocumentPath,
    folder: &Path,
    check: &mut Check<'_>,
) -> Option<PathBuf> {
    if !endings.iter().any(|ending| has_ending(Path::new(text), ending)) {
        let known: Vec<String> = endings.iter().map(|ending| format!("`.{ending}`")).collect();
        let message = format!("`{text}` is not one of {}", known.join(", "));
        check.error(place, message, "NumPy's `savez` writes a `.npz`".to_owned());
        return None;
    }
    check.depth.one(folder, text).map_err(|problem| check.error(place, problem.message, problem.hint)).ok()
}

/// What is computed.
fn metrics(form: &DatasetForm, place: &DocumentPath, check: &mut Check<'_>) -> Vec<AccuracyMetric> {
    let known: Vec<AccuracyMetric> = AccuracyMetric::OF_LABELS
        .into_iter()
        .chain(check.metrics.iter().map(|own| AccuracyMetric::Own(own.metric)))
        .collect();
    let mut metrics = Vec::new();
    for (index, word) in form.metrics.iter().enumerate() {
        match known.iter().find(|metric| metric.name() == word) {
            Some(metric) => metrics.push(*metric),
            None => {
                let hint = match nearest(word, known.iter().map(|metric| metric.name())) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        format!(
                            "declare what `score` prints, at the top: `metrics: {{ {word}: {{ better: higher }} }}`"
                        )
                    }
                };
                check.error(&place.key("metrics").index(index), format!("there is no score `{word}`"), hint);
            }
        }
    }
    metrics
}

/// Refuses keys that would do nothing, and metrics that speak of different labels.
fn check_use(form: &DatasetForm, metrics: &[AccuracyMetric], place: &DocumentPath, check: &mut Check<'_>) {
    let has_labels = form.labels.is_some();
    let of_labels = metrics.iter().any(|metric| !metric.is_own());
    let idle = [("metrics", of_labels), ("output", form.output.is_some())];
    for (key, _) in idle.into_iter().filter(|(_, is_written)| *is_written && !has_labels) {
        let message = format!("`{key}` has no effect without `labels`");
        check.error(&place.key(key), message, "name the array that holds the labels".to_owned());
    }
    let own = metrics.iter().find(|metric| metric.is_own());
    match (own, form.score.is_empty()) {
        (Some(own), true) => {
            let message = format!("nothing computes `{}`: there is no `score` command", own.name());
            let hint = format!("add one that prints `{{\"{}\": 0.5}}`: `score: [python3, score.py]`", own.name());
            check.error(&place.key("metrics"), message, hint);
        }
        (None, false) if form.metrics.len() == metrics.len() => {
            let hint = "list them: `metrics: [map50]` here, and `metrics: { map50: { better: higher } }` at the top";
            check.error(&place.key("score"), "nothing says which numbers `score` prints", hint.to_owned());
        }
        _ => {}
    }
    let of_classes = |metric: &&AccuracyMetric| metric.among().is_some();
    let count = metrics.iter().filter(of_classes).count();
    if count > 0 && metrics.iter().any(|metric| metric.among().is_none() && !metric.is_own()) {
        let message = "metrics of classes and of values cannot be combined";
        check.error(&place.key("metrics"), message, "take `top1` and `top5`, or `mae`, `rmse` and `r2`".to_owned());
    }
    let repeated = (1..form.metrics.len()).find(|index| form.metrics[..*index].contains(&form.metrics[*index]));
    if let Some(index) = repeated {
        let message = format!("`{}` is listed twice", form.metrics[index]);
        check.error(&place.key("metrics").index(index), message, None);
    }
}

/// Refuses metrics that no dataset gives.
pub(super) fn check_metrics(
    asked: &[(DocumentPath, MetricReference)],
    of_all: Option<&Dataset>,
    models: &Axis<Model>,
    check: &mut Check<'_>,
) {
    if check.is_damaged(&DocumentPath::top("dataset")) || !models.is_complete {
        return;
    }
    let datasets: Vec<&Dataset> =
        of_all.into_iter().chain(models.values.iter().filter_map(|m| m.dataset.as_ref())).collect();
    for (place, reference) in asked {
        let of_data = AccuracyMetric::OF_LABELS.iter().find(|metric| metric.metric().name == reference.metric.name);
        let Some(metric) = of_data else { continue };
        let gives = |dataset: &&Dataset| {
            let is_listed = dataset.metrics.as_ref().is_none_or(|listed| listed.contains(metric));
            is_listed && dataset.has_labels()
        };
        if !datasets.iter().any(gives) {
            let message = format!("`{reference}` cannot be computed: no `dataset` has labels and this metric");
            let hint = format!("add `dataset: {{ file: data.npz, labels: labels, metrics: [{}] }}`", metric.name());
            check.error(place, message, hint);
        }
    }
}
