//! How like the reference's the outputs are, cell by cell, and what conversions did to the models.

use onnx::precision::ConversionReport;

use super::tables::filled;
use super::{Table, TableCell, TableColumn, TableRow};
use crate::judge::summary::CellSummary;
use crate::plan::Cell;
use crate::quality::fidelity::{Agreement, Fidelity};
use crate::record::{Manifest, VariantFile, VariantOrigin};
use crate::report::Input;
use crate::report::format::{bytes, count, list, magnitude, percent};
use crate::vocabulary::privacy::without_home;

/// One row for each cell whose outputs were compared; `None` where none were.
pub(super) fn outputs(input: &Input<'_>) -> Option<Table> {
    let known: Vec<Option<&Fidelity>> = input.summary.cells.iter().map(|cell| cell.fidelity.as_ref()).collect();
    known.iter().flatten().next()?;
    let number = |title: &str, meaning: &str, value: &dyn Fn(&Fidelity) -> Option<(String, f64)>| {
        let cell = |fidelity: &Option<&Fidelity>| match fidelity.and_then(value) {
            Some((text, value)) => TableCell::number(text, value),
            None => TableCell::nothing(),
        };
        filled(title, meaning, known.iter().map(cell).collect())
    };
    let small = |f: &Fidelity, value: f64| f.cosine.map(|_| (format!("{value:.1e}"), value));
    let columns = vec![
        verdict(&known),
        number("cosine", "smallest over outputs of numbers", &|f| {
            f.cosine.map(|cosine| (format!("{cosine:.6}"), cosine))
        }),
        number("equal", "smallest share of equal elements, over outputs of whole numbers, booleans or texts", &|f| {
            f.least_equal().map(|equal| (percent(equal.share()), equal.share()))
        }),
        number("largest difference", "absolute", &|f| small(f, f.max_abs)),
        number("mean difference", "absolute", &|f| small(f, f.mean_abs)),
        number(
            "of the largest output",
            "largest difference over the largest magnitude of the reference's output",
            &|f| f.max_scaled.map(|scaled| (percent(scaled), scaled)),
        ),
        number("close", "share of elements within the limits", &|f| f.close.map(|close| (percent(close), close))),
        number("top-1", "items whose largest output is the reference's", &|f| {
            f.agreement.as_ref().map(|agreement| (percent(agreement.top1()), agreement.top1()))
        }),
        number("top-5", "mean share of the five largest outputs that are the reference's", &|f| {
            f.agreement.as_ref().and_then(Agreement::top5).map(|top5| (percent(top5), top5))
        }),
    ];
    let mut table = super::tables::table(input, columns, notes(input));
    // The reference itself, and what failed, has nothing to show.
    let shown: Vec<String> = input
        .manifest
        .plan
        .cells
        .iter()
        .zip(&known)
        .filter(|(_, fidelity)| fidelity.is_some())
        .map(|(cell, _)| input.manifest.plan.path(cell))
        .collect();
    table.rows.retain(|row| row.anchor.as_ref().is_some_and(|anchor| shown.contains(anchor)));
    table.rows.iter_mut().for_each(|row| row.anchor = None);
    Some(table)
}

/// How far the outputs are from the reference's in units of the last place.
pub(super) fn last_places(input: &Input<'_>) -> Option<Table> {
    let plan = &input.manifest.plan;
    let row = |(cell, summary): (&Cell, &CellSummary)| {
        let ulp = summary.fidelity.as_ref()?.max_scaled_ulp?;
        let cells = vec![TableCell::text(plan.path(cell)), TableCell::number(magnitude(ulp), ulp as f64)];
        Some(TableRow { anchor: None, cells })
    };
    let rows: Vec<TableRow> = plan.cells.iter().zip(&input.summary.cells).filter_map(row).collect();
    let column = |title: &str, is_numeric| TableColumn { title: title.to_owned(), meaning: None, is_numeric };
    let notes = vec![
        "The largest difference from the reference's output, in units of the last place of float32 at the magnitude of its largest element."
            .to_owned(),
    ];
    (!rows.is_empty()).then(|| Table { columns: vec![column("cell", false), column("ULP", true)], rows, notes })
}

fn verdict(known: &[Option<&Fidelity>]) -> super::tables::Filled {
    let cell = |fidelity: &Option<&Fidelity>| {
        fidelity.map_or_else(TableCell::nothing, |fidelity| TableCell::text(fidelity.words()))
    };
    let mut filled = filled("outputs", "whether they keep the limits", known.iter().map(cell).collect());
    filled.column.is_numeric = false;
    filled
}

fn notes(input: &Input<'_>) -> Vec<String> {
    let known = || input.summary.cells.iter().filter_map(|cell| cell.fidelity.as_ref());
    let sets = known().filter(|fidelity| fidelity.items_of_data.is_none()).map(|fidelity| fidelity.input_sets).max();
    let items = known().filter_map(|fidelity| fidelity.items_of_data).max();
    let same = [items.map(|items| count(items, "item") + " of the data"), sets.map(|sets| count(sets, "input set"))];
    let same: Vec<String> = same.into_iter().flatten().collect();
    let is_random = known().any(|fidelity| fidelity.items_of_data.is_none() && !fidelity.is_given);
    let random = is_random
        .then_some("With random inputs the top classes are meaningless: accuracy needs a `dataset` with labels.");
    let from = format!(
        "From the rehearsal: the outputs of each cell and of its reference for the same {}. Numbers are close if they differ by no more than `abs` + `rel` times the reference's; labels, indices, booleans and texts are equal or not. The limits are those of `fidelity`.",
        same.join(", or the same ")
    );
    std::iter::once(from).chain(random.map(str::to_owned)).chain(not_compared(input)).collect()
}

/// ``Not compared: output `probabilities` of classifier (sequence(map(int64, float32))).``
fn not_compared(input: &Input<'_>) -> Option<String> {
    let models = input.manifest.experiment.models.iter().zip(&input.manifest.models);
    let of_models = models.filter_map(|(model, file)| Some((&model.name, &file.as_ref()?.not_compared)));
    let outputs: Vec<String> = of_models
        .flat_map(|(model, outputs)| {
            outputs.iter().map(move |(name, element)| format!("output `{name}` of {model} ({element})"))
        })
        .collect();
    (!outputs.is_empty()).then(|| format!("Not compared: {}.", outputs.join(", ")))
}

/// What was made of the models for variants; `None` where every variant is run with the model as stored.
pub(super) fn variant_files(manifest: &Manifest) -> Option<Table> {
    manifest.variant_files().first()?;
    let titles = [
        ("model", false),
        ("variant", false),
        ("file", false),
        ("size", true),
        ("in the new precision", false),
        ("left as it was", false),
        ("added", false),
        ("SHA-256", false),
    ];
    let column = |(title, is_numeric): (&str, bool)| TableColumn { title: title.to_owned(), meaning: None, is_numeric };
    let rows = manifest.variant_files().iter().map(|file| row(manifest, file)).collect();
    let notes = manifest.variant_files().iter().flat_map(|file| file_notes(manifest, file)).collect();
    Some(Table { columns: titles.into_iter().map(column).collect(), rows, notes })
}

fn row(manifest: &Manifest, file: &VariantFile) -> TableRow {
    const SHORT_HASH: usize = 12;
    let report = report_of(file);
    let origin = match &file.origin {
        VariantOrigin::Converted { converter, .. } => format!("converted (version {converter})"),
        VariantOrigin::Own { path } => without_home(path),
    };
    let size = file.bytes.map_or_else(TableCell::nothing, |size| TableCell::number(bytes(size), size as f64));
    let hash = file.sha256.as_deref().map(|hash| hash.get(..SHORT_HASH).unwrap_or(hash));
    let words =
        |words: Option<String>| TableCell::text(words.filter(|words| !words.is_empty()).unwrap_or("-".to_owned()));
    let cells = vec![
        TableCell::text(manifest.plan.name(file.model).unwrap_or_default().to_owned()),
        TableCell::text(manifest.plan.name(file.variant).unwrap_or_default().to_owned()),
        TableCell::text(origin),
        size,
        words(report.map(converted)),
        words(report.map(kept)),
        words(report.map(added)),
        TableCell::text(hash.unwrap_or("-")),
    ];
    TableRow { anchor: None, cells }
}

fn report_of(file: &VariantFile) -> Option<&ConversionReport> {
    match &file.origin {
        VariantOrigin::Converted { report, .. } => report.as_ref(),
        VariantOrigin::Own { .. } => None,
    }
}

/// `54 Conv, 1 Gemm; 25.5 M weights`.
fn converted(report: &ConversionReport) -> String {
    let mut parts: Vec<String> = Vec::new();
    let nodes: Vec<String> = report.converted.iter().map(|(operator, nodes)| format!("{nodes} {operator}")).collect();
    if !nodes.is_empty() {
        parts.push(nodes.join(", "));
    }
    let weights = &report.weights;
    if weights.converted > 0 {
        let share = weights.converted as f64 / (weights.converted + weights.kept).max(1) as f64;
        parts.push(format!("{} of the weights", percent(share)));
    }
    parts.join("; ")
}

/// `12 Conv, 6 Add (the CPU provider has no fp16 arithmetic)`, reason by reason.
fn kept(report: &ConversionReport) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for kept in &report.kept {
        let nodes = format!("{} {}", kept.nodes, kept.operator);
        match reasons.iter_mut().find(|(reason, _)| *reason == kept.reason) {
            Some((_, known)) => known.push(nodes),
            None => reasons.push((&kept.reason, vec![nodes])),
        }
    }
    let words: Vec<String> =
        reasons.into_iter().map(|(reason, nodes)| format!("{} ({reason})", nodes.join(", "))).collect();
    words.join("; ")
}

fn added(report: &ConversionReport) -> String {
    let added = [(report.casts, "cast"), (report.quantize_nodes, "quantising node")];
    let words: Vec<String> =
        added.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| count(number, what)).collect();
    list(&words)
}

/// What else a conversion says of itself, and why one failed.
fn file_notes(manifest: &Manifest, file: &VariantFile) -> Vec<String> {
    let [model, variant] =
        [manifest.plan.name(file.model), manifest.plan.name(file.variant)].map(Option::unwrap_or_default);
    let what = format!("{model} as {variant}");
    let notes = report_of(file).map(|report| report.notes.as_slice()).unwrap_or_default();
    let mut lines: Vec<String> = notes.iter().map(|note| format!("{what}: {note}.")).collect();
    if let VariantOrigin::Converted { recipe, .. } = &file.origin {
        lines.extend(recipe.calibrated().map(|calibrated| format!("{what}: {}.", without_home(&calibrated))));
    }
    lines.extend(file.problem.as_ref().map(|problem| format!("{what}: {}.", without_home(problem))));
    lines
}
