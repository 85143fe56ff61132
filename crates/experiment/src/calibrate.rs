//! An experiment turned into its own calibration: the baseline against itself and against copies that are slower by a
//! known share (method 8.2).

use super::{Aa, Compare, Design, Experiment, Require, Selector, Variant};
use base::quantity::Ratio;

/// The variant that is the A/A copy of the baseline.
const SAME: &str = "same";

/// Derives the calibration of `experiment`: every model and input with one variant, its A/A copy, and one copy for each of
/// `effects`.
///
/// The variant is the first, or the one that `compare.baseline` names. What narrows or asks is left out: selectors of
/// variants, questions, goals, tables, conditions, the budget; and so are data that are not timed.
pub fn calibration(experiment: &Experiment, effects: &[Ratio], design: Design) -> Experiment {
    let names_variants = |selector: &&Selector| selector.is_about::<Variant>();
    let named = experiment.compare.baseline.as_ref().filter(names_variants);
    let matcher = named.map(Selector::matcher);
    let is_named = |variant: &&Variant| matcher.as_ref().is_some_and(|names| names.allows_entry(*variant));
    let base = experiment.variants.iter().find(is_named);
    let base = base.or(experiment.variants.first()).cloned().unwrap_or_default();
    let mut variants = vec![base.clone(), Variant { name: SAME.to_owned(), ..base.clone() }];
    variants.extend(effects.iter().map(|effect| Variant { name: slower(*effect), slowdown: *effect, ..base.clone() }));
    let mut matrix = experiment.matrix.clone();
    matrix.exclude.retain(|selector| !names_variants(&selector));
    matrix.include.retain(|selector| !names_variants(&selector));
    let mut models = experiment.models.clone();
    let dataset = experiment.dataset.clone().filter(|_| experiment.times_dataset());
    if !experiment.times_dataset() {
        models.iter_mut().for_each(|model| model.dataset = None);
    }
    let mut inputs = experiment.inputs.clone();
    let own = models.iter_mut().filter_map(|model| model.inputs.as_mut()).flatten();
    // Of copies at rates of their own the latency says nothing.
    inputs.iter_mut().chain(own).for_each(|input| input.load = None);
    let mut measure = experiment.measure.clone();
    measure.design = design;
    Experiment {
        name: format!("{}-calibration", experiment.name),
        models,
        inputs,
        variants,
        matrix,
        measure,
        compare: Compare { baseline: Some(Selector::of(&base)), margin: experiment.compare.margin, aa: Aa::Off },
        profile: None,
        budget: None,
        require: Require { grade: None, ..experiment.require },
        choose: None,
        goals: Vec::new(),
        goals_strict: false,
        paths: Vec::new(),
        dataset,
        pareto: Vec::new(),
        tables: Vec::new(),
        ..experiment.clone()
    }
}

/// `slower-5pct`.
fn slower(effect: Ratio) -> String {
    let percent = effect.to_string();
    format!("slower-{}pct", percent.trim_end_matches('%').trim())
}
