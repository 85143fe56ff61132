//! `matrix`: axes that walk together, and the cells left out or added; and how many cells there are.

use std::collections::HashMap;

use crate::spec::check::Check;
use crate::spec::document::Place;
use crate::spec::form::{MatrixForm, SelectorForm};
use crate::spec::model::{Axis as AxisName, Matrix, Model, Selector};
use crate::spec::nearest::list;
use crate::spec::selector::Vocabulary;

use super::axes::Axes;
use super::{MOST_CELLS, grouped, selection};

/// Reads `matrix`, checks its names, and refuses products that no machine could run.
pub(super) fn expand(form: &MatrixForm, axes: &Axes<'_>, check: &mut Check<'_>) -> Matrix {
    let top = Place::top("matrix");
    check_zip(&form.zip, axes, &top.key("zip"), check);
    let vocabulary = axes.vocabulary();
    let exclude = selectors(&form.exclude, &top.key("exclude"), &vocabulary, check);
    let include = selectors(&form.include, &top.key("include"), &vocabulary, check);
    for (index, selector) in include.iter().enumerate() {
        check_include(selector, axes, &top.key("include").index(index), check);
    }
    if !check.is_damaged(&top.key("zip")) {
        check_product(&form.zip, axes, check);
    }
    Matrix { zip: form.zip.clone(), exclude, include }
}

fn selectors(forms: &[SelectorForm], place: &Place, vocabulary: &Vocabulary, check: &mut Check<'_>) -> Vec<Selector> {
    let mut selectors = Vec::with_capacity(forms.len());
    for (index, form) in forms.iter().enumerate() {
        if check.is_full() {
            break;
        }
        selectors.push(selection::expand(form, &place.index(index), vocabulary, check));
    }
    selectors
}

/// An added cell is one point: an axis of several entries must be named.
fn check_include(selector: &Selector, axes: &Axes<'_>, place: &Place, check: &mut Check<'_>) {
    let named = |key: &str| selector.0.contains_key(key);
    let several = |axis: AxisName| axes.length(axis) > 1 && axes.is_complete(axis);
    let mut missing = Vec::new();
    for axis in AxisName::ALL.into_iter().filter(|axis| *axis != AxisName::Inputs) {
        if !named(axis.singular()) && several(axis) {
            missing.push(axis.singular());
        }
    }
    // A dimension may name the input as well, and models with inputs of their own may have one each.
    let names_input = selector.axes().contains(&AxisName::Inputs);
    let has_own_inputs = axes.models.values.iter().any(|model| model.inputs.is_some());
    if !names_input && !has_own_inputs && several(AxisName::Inputs) {
        missing.push("input");
    }
    if !missing.is_empty() {
        let message = format!("the cell to include is not said whole: {} may be one of several", list(&missing, "and"));
        check.error(place, message, "only an axis with one entry may be left out".to_owned());
    }
}

fn check_zip(zips: &[Vec<AxisName>], axes: &Axes<'_>, place: &Place, check: &mut Check<'_>) {
    let mut used: HashMap<AxisName, ()> = HashMap::new();
    for (index, zip) in zips.iter().enumerate() {
        let place = place.index(index);
        for (position, axis) in zip.iter().enumerate() {
            let place = place.index(position);
            if used.insert(*axis, ()).is_some() {
                check.error(&place, format!("`{}` is zipped twice", axis.plural()), "an axis walks once".to_owned());
            }
            let own = axes.models.values.iter().find(|model| model.inputs.is_some());
            if let (AxisName::Inputs, Some(model)) = (axis, own) {
                let message = format!("`inputs` cannot be zipped: the model `{}` has inputs of its own", model.name);
                check.error(&place, message, None);
            }
        }
        let complete = zip.iter().all(|axis| axes.is_complete(*axis));
        let lengths: Vec<usize> = zip.iter().map(|axis| axes.length(*axis)).collect();
        if complete && lengths.windows(2).any(|pair| pair[0] != pair[1]) {
            let sizes = zip.iter().zip(&lengths).map(|(axis, length)| format!("`{}` has {length}", axis.plural()));
            let message = format!("zipped axes need equally many entries: {}", sizes.collect::<Vec<_>>().join(", "));
            check.error(&place, message, None);
        }
    }
}

/// Counts the cells without making one.
fn check_product(zips: &[Vec<AxisName>], axes: &Axes<'_>, check: &mut Check<'_>) {
    let walks_along = |axis: AxisName| zips.iter().any(|zip| zip.iter().skip(1).any(|later| *later == axis));
    // Models with inputs of their own make the two axes one sum.
    let own = |model: &Model| model.inputs.as_ref().map_or(axes.inputs.values.len(), Vec::len) as u128;
    let has_own = axes.models.values.iter().any(|model| model.inputs.is_some());
    let mut factors: Vec<(u128, &str)> = Vec::new();
    if has_own {
        factors.push((axes.models.values.iter().map(own).sum(), "models with their inputs"));
    }
    for axis in AxisName::ALL {
        let in_sum = has_own && matches!(axis, AxisName::Models | AxisName::Inputs);
        // Without `runtimes` there is one all the same.
        let is_absent = axis == AxisName::Runtimes && axes.length(axis) == 0;
        if !in_sum && !is_absent && !walks_along(axis) {
            factors.push((axes.length(axis) as u128, axis.plural()));
        }
    }
    let cells = factors.iter().fold(1u128, |product, (count, _)| product.saturating_mul(*count));
    if cells > MOST_CELLS {
        let product: Vec<String> = factors.iter().map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
        let message =
            format!("{} = {} cells; the limit is {}", product.join(" x "), grouped(cells), grouped(MOST_CELLS));
        let largest = factors.iter().max_by_key(|(count, _)| *count).map_or("models", |(_, what)| *what);
        let place = Place::top(if largest.contains(' ') { "models" } else { largest });
        let problem =
            check.at_key(&place, message).with_hint("split the experiment, or `zip` axes that belong together");
        check.problems.push(problem);
    }
}
