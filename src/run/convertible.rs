//! What the models say of the conversions that variants ask for, before anything is converted.
//!
//! Input: an experiment, its opened models, and the plan. Output: words of `keep` that name nothing, and the variants for
//! which a model has nothing to convert. Deliberately absent: the conversions themselves, which a pass of the rehearsal
//! makes.

use std::collections::{BTreeMap, BTreeSet};

use super::error::PrepareError;
use super::model::PreparedModel;
use experiment::{Experiment, ModelIndex, Precision, VariantIndex};
use onnx::precision::{ModelNames, ProviderClass};
use onnx::proto::ModelProto;
use plan::{Plan, Skip, SkipKind};
use prepare::models::{Recipe, nothing_to_convert};
use reading::yaml::scalar;

/// A variant of a model for a kind of device.
type Key = (ModelIndex, VariantIndex, ProviderClass);

/// The variants of models that have nothing to convert.
///
/// # Errors
///
/// A word of `keep` that names nothing in any model that its variant converts.
pub(super) fn examine(
    experiment: &Experiment,
    models: &[PreparedModel],
    plan: &Plan,
) -> Result<BTreeMap<Key, Skip>, PrepareError> {
    let converted = converted(experiment, models, plan);
    let needed: BTreeSet<ModelIndex> = converted.iter().map(|(model, ..)| *model).collect();
    let graphs: BTreeMap<ModelIndex, (&PreparedModel, ModelProto)> = needed
        .into_iter()
        .filter_map(|index| {
            let model = models.get(index.index())?;
            Some((index, (model, onnx::load_graph(model.path()?).ok()?)))
        })
        .collect();
    check_keep(experiment, &converted, &graphs)?;
    let skip = |key: Key| {
        let (model, variant, provider) = key;
        let (prepared, graph) = graphs.get(&model)?;
        let (header, path) = prepared.header.as_ref().zip(prepared.path())?;
        let named = &experiment.variants[variant];
        // On which data is part of a recipe, and decides nothing here.
        let recipe = Recipe::of(named.precision, &named.convert, header, provider, "")?;
        let problem = nothing_to_convert(path, graph, header.total_bytes()?, &recipe)?;
        let (model, variant) = (&experiment.models[model].name, &named.name);
        Some((
            key,
            Skip {
                kind: SkipKind::Conversion,
                reason: format!("{model} as {variant}: {problem}"),
                remedy: Some(format!(
                    "leave it out: `matrix: {{ exclude: [{{ model: {}, variant: {} }}] }}`",
                    scalar(model),
                    scalar(variant)
                )),
            },
        ))
    };
    Ok(converted.into_iter().filter_map(skip).collect())
}

/// What perfrun would convert.
fn converted(experiment: &Experiment, models: &[PreparedModel], plan: &Plan) -> BTreeSet<Key> {
    if !experiment.backend.reads_models() {
        return BTreeSet::new();
    }
    let key = |cell: &plan::Cell| {
        let variant = &experiment.variants[cell.variant()];
        let model = models.get(cell.model().index())?;
        let is_converted = variant.precision != Precision::Fp32 && model.declared.file_for(variant).is_none();
        let provider = &experiment.devices[cell.device()].provider;
        is_converted.then(|| (cell.model(), cell.variant(), ProviderClass::of(provider)))
    };
    plan.cells.iter().filter_map(key).collect()
}

fn check_keep(
    experiment: &Experiment,
    converted: &BTreeSet<Key>,
    graphs: &BTreeMap<ModelIndex, (&PreparedModel, ModelProto)>,
) -> Result<(), PrepareError> {
    let mut by_model: BTreeMap<ModelIndex, ModelNames> = BTreeMap::new();
    let variants: BTreeSet<VariantIndex> = converted.iter().map(|(_, variant, _)| *variant).collect();
    for variant in variants {
        let named = &experiment.variants[variant];
        let models: BTreeSet<ModelIndex> =
            converted.iter().filter(|(_, converted, _)| *converted == variant).map(|(model, ..)| *model).collect();
        // A model that cannot be read may have what is named.
        if named.convert.keep.is_empty() || !models.iter().all(|model| graphs.contains_key(model)) {
            continue;
        }
        let mut all = ModelNames::default();
        for model in models {
            let names = by_model.entry(model).or_insert_with(|| ModelNames::of(graphs[&model].1.clone()));
            all.extend(names.clone());
        }
        if let Some((problem, help)) = all.unknown(&named.convert.keep) {
            return Err(PrepareError::Keep { variant: named.name.clone(), problem, help });
        }
    }
    Ok(())
}
