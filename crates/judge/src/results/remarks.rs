//! What else there is to know about a record: sentences that rest on settings and files, not on numbers.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::Judged;
use crate::summary::{CellSummary, Summary};
use base::code::Code;
use base::metric::{LARGEST_RATE, LATENCY, Metric, MetricReference, PEAK_RSS};
use base::privacy::without_home;
use base::wording::{count, distinct, grouped, list, some};
use experiment::{Device, LowerPrecision, Model, Precision, Provider};
use plan::Cell;
use record::{CellFidelity, Manifest, ModelFile, VariantOrigin};

/// The reference of outputs that is no cell.
pub(super) const STORED_ON_CPU: &str = "the stored model on the CPU";

/// What else to know.
pub(super) fn remarks(manifest: &Manifest, summary: &Summary, judged: &Judged) -> Vec<String> {
    let idle =
        manifest.plan.product.idle_selectors.iter().map(|selector| format!("`matrix`: {selector} matched nothing."));
    let mut remarks: Vec<String> = idle.collect();
    remarks.extend(manifest.no_revision.iter().map(|none| format!("No commit was recorded: {}.", none.why)));
    remarks.extend(not_alone(manifest));
    let weighed = &manifest.experiment.pareto;
    remarks.extend((!weighed.is_empty() && judged.tradeoffs.is_empty()).then(|| {
        let metrics: Vec<String> = weighed.iter().map(MetricReference::title).collect();
        format!("`pareto` has nothing to compare: no two interchangeable cells have {}.", list(&metrics))
    }));
    remarks.extend(never_reported(manifest, summary));
    remarks.extend(of_stored(manifest));
    remarks.extend(of_conversions(manifest));
    remarks.extend(calibrated_on_scored(manifest, summary));
    remarks.extend(unverified(manifest, summary));
    remarks.extend(depends_on_load(manifest, summary));
    remarks.extend(unseen_peaks(manifest, summary));
    remarks.extend(retaken(summary));
    remarks.extend(measured_again(manifest, summary));
    remarks
}

/// Cells of groups in which something had failed: all of their runs are of later invocations.
fn measured_again(manifest: &Manifest, summary: &Summary) -> Option<String> {
    let later = manifest.findings.invocations.iter().find(|invocation| invocation.first_block > 0)?;
    let is_later = |cell: &CellSummary| {
        let runs = cell.metrics.get(LATENCY.name).map_or(&[][..], |latency| &latency.per_run);
        !runs.is_empty() && runs.iter().all(|(block, _)| *block >= later.first_block)
    };
    let again: Vec<&Cell> =
        cells(manifest, summary).filter(|(_, summary)| is_later(summary)).map(|(cell, _)| cell).collect();
    let names = some(again.iter().map(|cell| manifest.plan.path(cell)), 4);
    (!names.is_empty())
        .then(|| format!("Measured from {} on, after one of them had failed: {}.", later.started, list(&names)))
}

/// Why another perfrun may have measured at the same time.
fn not_alone(manifest: &Manifest) -> Option<String> {
    let why: BTreeSet<String> = manifest
        .findings
        .invocations
        .iter()
        .filter_map(|invocation| Some(without_home(invocation.not_alone.as_ref()?)))
        .collect();
    let reasons = list(&why.into_iter().collect::<Vec<_>>());
    (!reasons.is_empty())
        .then(|| format!("Other perfruns may have measured on this machine at the same time ({reasons})."))
}

/// Runs that heat slowed down and that were taken again.
fn retaken(summary: &Summary) -> Option<String> {
    let times = (summary.retaken > 0).then(|| count(u64::from(summary.retaken), "time"))?;
    Some(format!("Runs were taken again {times}, because heat slowed them down (`measure.retake`)."))
}

/// Commands whose peak memory is below what can be seen of a process (method 1.11).
fn unseen_peaks(manifest: &Manifest, summary: &Summary) -> Option<String> {
    let is_unseen = |cell: &CellSummary| cell.runs.completed > 0 && !cell.metrics.contains_key(PEAK_RSS.name);
    let unseen = cells(manifest, summary).filter(|(_, summary)| is_unseen(summary));
    let names: BTreeSet<&str> = unseen.filter_map(|(cell, _)| manifest.plan.name(cell.model())).collect();
    let is_any = manifest.experiment.backend.runs_commands() && !names.is_empty();
    let names = list(&some(names.into_iter().map(str::to_owned).collect::<Vec<_>>().into_iter(), 4));
    is_any.then(|| {
        format!("Peak memory of {names} was not measured: it is less than a fork of perfrun's own worker takes.")
    })
}

/// Cells whose largest rate is not the one that service times of a closed loop predict (method 7.3).
fn depends_on_load(manifest: &Manifest, summary: &Summary) -> Option<String> {
    /// A smaller difference changes no decision.
    const APART: f64 = 0.05;
    let of_cell = |(cell, summary): (&Cell, &CellSummary)| {
        let predicted = manifest.rate_of(cell)?.predicted_per_s.filter(|_| !manifest.quick)?;
        let found = summary.estimate(&LARGEST_RATE)?;
        let is_apart = (predicted / found.value - 1.0).abs() > APART && !found.interval?.contains(predicted);
        let by = 100.0 * (found.value / predicted - 1.0).abs();
        let side = if found.value < predicted { "below" } else { "above" };
        is_apart.then(|| format!("{} ({by:.0} % {side})", manifest.plan.path(cell)))
    };
    let apart: Vec<String> = cells(manifest, summary).filter_map(of_cell).collect();
    let is_any = !apart.is_empty();
    let cells = list(&some(apart.into_iter(), 4));
    is_any.then(|| format!("The largest rate is not what a closed loop predicted, in {cells}: an inference takes a different time under load, or the prediction had too few to go by."))
}

/// Metrics of the specification that no measured cell has.
fn never_reported(manifest: &Manifest, summary: &Summary) -> Option<String> {
    summary.cells.iter().find(|cell| cell.runs.completed > 0)?;
    let has = |metric: &Metric| summary.cells.iter().any(|cell| cell.metrics.contains_key(metric.name));
    let declared = manifest.experiment.metrics.iter().map(|declared_metric| declared_metric.metric);
    let absent: Vec<String> =
        declared.filter(|metric| !has(metric)).map(|metric| format!("`{}`", metric.stem())).collect();
    let names = list(&absent);
    (!absent.is_empty()).then(|| format!("Nothing reported {names}, which `metrics` declares."))
}

/// What outputs were compared with, what changes those of models in fp32 on a device, and why outputs differ where the cause
/// is known, with what to do.
pub(super) fn differing(manifest: &Manifest, summary: &Summary) -> Vec<String> {
    let mut sentences = references(manifest);
    sentences.extend(varying(manifest));
    sentences.extend(training(manifest, summary));
    sentences.extend(lower_precision(manifest, summary));
    sentences.extend(random_calibration(manifest, summary));
    sentences.extend(saturating(manifest, summary));
    sentences
}

/// By cell what its outputs were compared with, where that is not the baseline's variant on the same device with the same
/// runtime; `None`: the stored model, which was run for this alone.
pub(super) fn other_references(manifest: &Manifest) -> BTreeMap<u32, Option<&Cell>> {
    let unusual = manifest.fidelity().into_iter().filter(|known| !manifest.is_usual_reference(known));
    unusual.map(|known| (known.cell, reference(manifest, known))).collect()
}

/// Models of which nothing is said about outputs, because those of the reference are not alike twice.
fn varying(manifest: &Manifest) -> Option<String> {
    let plan = &manifest.plan;
    let found = manifest.fidelity().into_iter().filter(|known| known.fidelity.reference_varies);
    let models: BTreeSet<&str> =
        found.filter_map(|known| plan.name(plan.cells.get(known.cell as usize)?.model())).collect();
    (!models.is_empty()).then(|| {
        format!(
            "{} gave other outputs for the same inputs in a second inference, as random numbers do: outputs are not judged.",
            list(&some(models.into_iter().map(str::to_owned), 4))
        )
    })
}

/// Models that compute what they do in training.
fn training(manifest: &Manifest, summary: &Summary) -> Vec<String> {
    let is_run = |index: usize| {
        let of_model = cells(manifest, summary).filter(|(cell, _)| cell.model().index() == index);
        of_model.into_iter().any(|(_, summary)| summary.carries(Code::TrainingMode))
    };
    let sentence = |(index, (model, file)): (usize, (&Model, &Option<ModelFile>))| {
        let nodes = &file.as_ref().filter(|file| !file.training.is_empty() && is_run(index))?.training;
        let nodes: Vec<String> = nodes.iter().map(|(operator, nodes)| format!("{nodes} {operator}")).collect();
        Some(format!(
            "{} was exported in training mode ({}), so time and outputs are not those of inference: export it in inference mode.",
            model.name,
            list(&nodes)
        ))
    };
    manifest.experiment.models.iter().zip(&manifest.models).enumerate().filter_map(sentence).collect()
}

fn reference<'a>(manifest: &'a Manifest, known: &CellFidelity) -> Option<&'a Cell> {
    manifest.plan.cells.get(known.reference? as usize)
}

/// What outputs were compared with, where it is not the baseline's variant on the same device, and where that could not be
/// the stored model on the CPU.
fn references(manifest: &Manifest) -> Vec<String> {
    let plan = &manifest.plan;
    let compared = manifest.fidelity();
    let model = |cell: u32| Some(plan.name(plan.cells.get(cell as usize)?.model())?.to_owned());
    let name = |known: &CellFidelity| {
        let Some(cell) = reference(manifest, known) else { return STORED_ON_CPU.to_owned() };
        let at = plan.coordinates(cell);
        let runtime = plan.name(cell.runtime()).filter(|_| manifest.experiment.runtimes.len() > 1);
        let with = runtime.map(|name| format!(" with {name}")).unwrap_or_default();
        format!("{} on {}{with}", at.variant(), at.device())
    };
    // Why a model has no outputs as stored, and what its outputs are compared with instead.
    let mut failed: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let (mut references, mut models) = (BTreeSet::new(), BTreeSet::new());
    for known in &compared {
        let is_usual = manifest.is_usual_reference(known);
        match (model(known.cell), &known.no_reference) {
            (Some(model), Some(problem)) => {
                let baseline = || "the baseline's on the same device".to_owned();
                let instead = if is_usual { baseline() } else { format!("those of {}", name(known)) };
                failed.entry((model, without_home(problem))).or_default().insert(instead);
            }
            (Some(model), None) if !is_usual => {
                references.insert(name(known));
                models.insert(model);
            }
            _ => {}
        }
    }
    let mut sentences = Vec::new();
    for known in manifest.findings.outputs.iter().flat_map(|found| &found.not_compared) {
        match (model(known.cell), plan.cells.get(known.cell as usize)) {
            (Some(_), Some(cell)) if known.is_fed_other_values => {
                sentences.push(format!("Outputs of {} are not compared: {}.", plan.path(cell), known.problem));
            }
            (Some(model), _) => drop(failed.entry((model, without_home(&known.problem))).or_default()),
            _ => {}
        }
    }
    if !references.is_empty() {
        let models =
            if failed.is_empty() { String::new() } else { format!(" of {}", list(&some(models.into_iter(), 4))) };
        sentences
            .push(format!("Outputs{models} are compared with those of {}.", list(&some(references.into_iter(), 4))));
    }
    sentences.extend(failed.into_iter().map(|((model, problem), instead)| {
        let instead = match instead.is_empty() {
            true => "its outputs are compared with nothing".to_owned(),
            false => format!("its outputs are compared with {}", list(&some(instead.into_iter(), 4))),
        };
        format!("{model} has no outputs of {STORED_ON_CPU} ({problem}): {instead}.")
    }));
    sentences
}

fn cells<'a>(manifest: &'a Manifest, summary: &'a Summary) -> impl Iterator<Item = (&'a Cell, &'a CellSummary)> {
    manifest.plan.cells.iter().zip(&summary.cells)
}

/// Devices that computed float32 models in less, by default, with the option that keeps float32.
fn lower_precision(manifest: &Manifest, summary: &Summary) -> Vec<String> {
    if !manifest.experiment.backend.reads_models() {
        return Vec::new();
    }
    let measured = cells(manifest, summary).filter(|(_, summary)| summary.runs.completed > 0);
    let remarks = measured.filter_map(|(cell, summary)| {
        let (variant, device) = manifest.settings_of(cell)?;
        let lower = LowerPrecision::of(variant, device).filter(|_| variant.precision == Precision::Fp32)?;
        // Where it depends on the processor, outputs that differ show it.
        (lower.to.is_some() || summary.outputs_differ()).then_some(())?;
        Some(format!("{} {}; a variant with {} keeps fp32.", device.label(), lower.does, lower.written(device)))
    });
    let sentences: BTreeSet<String> = remarks.collect();
    sentences.into_iter().collect()
}

/// What would say more about variants whose outputs differ, where both their ranges and the comparison come from random
/// inputs.
fn random_calibration(manifest: &Manifest, summary: &Summary) -> Option<String> {
    let at_random = |origin: &VariantOrigin| matches!(origin, VariantOrigin::Converted { recipe, .. } if recipe.is_calibrated_at_random());
    let is_random = |cell: &Cell| origins(manifest, cell).any(at_random);
    let differs = |summary: &CellSummary| {
        let fidelity = summary.fidelity.as_ref();
        fidelity.is_some_and(|fidelity| !fidelity.passes() && fidelity.items_of_data.is_none())
    };
    let found = cells(manifest, summary).filter(|(cell, summary)| differs(summary) && is_random(cell));
    let names: BTreeSet<&str> = found.filter_map(|(cell, _)| manifest.plan.name(cell.variant())).collect();
    let (was, its) = if names.len() == 1 { ("was", "its") } else { ("were", "their") };
    let names: Vec<&str> = names.into_iter().collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} {was} calibrated and compared on random inputs. A `dataset` calibrates on real items and compares {its} \
             outputs on them.",
            list(&names)
        )
    })
}

/// Variants whose accuracy is measured on items that their scales were calibrated on, too.
fn calibrated_on_scored(manifest: &Manifest, summary: &Summary) -> Vec<String> {
    let found = cells(manifest, summary).filter_map(|(cell, summary)| {
        summary.accuracy.first()?;
        let data = manifest.datasets.get(cell.model().index())?.as_ref()?;
        let scored = manifest.accuracy_of(cell)?.items;
        let of_data = |origin: &VariantOrigin| match origin {
            VariantOrigin::Converted { recipe, .. } => {
                recipe.calibrated_on_file().filter(|(_, hash)| *hash == data.sha256).map(|(items, _)| items)
            }
            VariantOrigin::Own { .. } => None,
        };
        let items = origins(manifest, cell).find_map(of_data)?.min(scored);
        let name = format!("{} of {}", manifest.plan.name(cell.variant())?, manifest.plan.name(cell.model())?);
        Some(((items, scored), name))
    });
    let sentence = |((items, scored), names): ((u64, u64), Vec<String>)| {
        let names = distinct(names);
        let (was, its) = if names.len() == 1 { ("was", "its") } else { ("were", "their") };
        let which = if items == scored { format!("all {scored}") } else { format!("{items} of the {scored}") };
        format!(
            "{} {was} calibrated on {which} items that {its} accuracy is measured on: on other items it may be lower.",
            list(&some(names.into_iter(), 4))
        )
    };
    grouped(found).into_iter().map(sentence).collect()
}

/// Variants in int8 whose outputs differ on a processor whose products of 8 bits saturate.
fn saturating(manifest: &Manifest, summary: &Summary) -> Option<String> {
    manifest.hosts().into_iter().find(|host| host.saturates_int8())?;
    let of_full_range = |origin: &VariantOrigin| matches!(origin, VariantOrigin::Converted { recipe, .. } if recipe.is_int8_of_full_range());
    let is_full = |cell: &Cell| {
        let on_cpu = manifest.settings_of(cell).is_some_and(|(_, device)| device.is_cpu());
        on_cpu && origins(manifest, cell).any(of_full_range)
    };
    let found = cells(manifest, summary).filter(|(cell, summary)| summary.outputs_differ() && is_full(cell));
    let names: BTreeSet<&str> = found.filter_map(|(cell, _)| manifest.plan.name(cell.variant())).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: sums of 8-bit products can saturate on x86 without VNNI; a variant with `convert: {{ reduce_range: \
             true }}` avoids that.",
            list(&names.into_iter().collect::<Vec<_>>())
        )
    })
}

/// Where the files of a cell's model in its variant come from.
fn origins<'a>(manifest: &'a Manifest, cell: &Cell) -> impl Iterator<Item = &'a VariantOrigin> {
    let of_cell = (cell.model(), cell.variant());
    let files = manifest.variant_files().iter().filter(move |file| (file.model, file.variant) == of_cell);
    files.map(|file| &file.origin)
}

/// Devices with numbers on which this version was never seen to measure rightly.
fn unverified(manifest: &Manifest, summary: &Summary) -> Option<String> {
    let experiment = &manifest.experiment;
    if !experiment.backend.reads_models() {
        return None;
    }
    let is_measured = |index: usize| {
        cells(manifest, summary).any(|(cell, summary)| cell.device().index() == index && summary.runs.completed > 0)
    };
    let is_verified = |device: &Device| Provider::of(device).is_some_and(|provider| provider.is_verified);
    let devices = experiment.devices.iter().enumerate();
    let doubtful = devices.filter(|(index, device)| !is_verified(device) && is_measured(*index));
    let labels: Vec<String> = doubtful.map(|(_, device)| device.label()).collect();
    let first = labels.first()?;
    Some(format!(
        "{}: not verified for this version of perfrun; verify with `perfrun doctor --device {first} --verify`.",
        list(&labels)
    ))
}

/// Models that do not hold float32, with the variants that run them as they are stored.
fn of_stored(manifest: &Manifest) -> Vec<String> {
    let of_model = |(model, file): (&Model, &Option<ModelFile>)| {
        let stored = file.as_ref()?.stored.as_ref()?;
        let variants = manifest.experiment.variants.iter().filter(|variant| model.is_run_as_stored(variant));
        let names: Vec<String> = variants.map(|variant| variant.name.clone()).collect();
        let (word, run) = if names.len() == 1 { ("Variant", "runs") } else { ("Variants", "run") };
        let names = list(&some(names.into_iter(), 4));
        let cost = match stored.is_widened() {
            true => ", which each inference widens to float32 where the runtime does not fuse that with the product",
            false => "",
        };
        let sentence =
            format!("{word} {names} {run} {} as stored: it holds {}{cost}.", model.name, stored.in_sentence());
        (!names.is_empty()).then_some(sentence)
    };
    manifest.experiment.models.iter().zip(&manifest.models).filter_map(of_model).collect()
}

/// What conversions say of themselves, once for each variant.
fn of_conversions(manifest: &Manifest) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for file in manifest.variant_files() {
        let VariantOrigin::Converted { report: Some(report), .. } = &file.origin else { continue };
        let variant = manifest.plan.name(file.variant).unwrap_or_default();
        let notes = report.notes.iter().map(|note| format!("{variant}: {note}."));
        remarks.extend(notes.filter(|note| !remarks.contains(note)).collect::<Vec<_>>());
    }
    remarks
}
