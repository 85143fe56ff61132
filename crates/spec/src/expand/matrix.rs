//! `matrix`: axes that walk together, and the cells left out or added; what is wrong with them, at its place.

use super::selection;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{MatrixForm, SelectorForm};
use experiment::{Axis as AxisName, Matrix, MatrixError, Selector, Space, Vocabulary};

/// Reads `matrix`, checks its names, and refuses products that no machine could run.
pub(super) fn expand(form: &MatrixForm, axes: &Space, check: &mut Check<'_>) -> Matrix {
    let top = DocumentPath::top("matrix");
    check_zip(&form.zip, axes, &top.key("zip"), check);
    let vocabulary = axes.vocabulary();
    let exclude = selectors(&form.exclude, &top.key("exclude"), &vocabulary, check);
    let include = selectors(&form.include, &top.key("include"), &vocabulary, check);
    for (index, selector) in include.iter().enumerate() {
        check_include(selector, axes, &vocabulary, &top.key("include").index(index), check);
    }
    if !check.is_damaged(&top.key("zip")) {
        check_product(form, axes, check);
    }
    Matrix { design: form.design, zip: form.zip.clone(), exclude, include }
}

fn selectors(
    forms: &[SelectorForm],
    place: &DocumentPath,
    vocabulary: &Vocabulary,
    check: &mut Check<'_>,
) -> Vec<Selector> {
    let mut selectors = Vec::with_capacity(forms.len());
    for (index, form) in forms.iter().enumerate() {
        if check.is_full() {
            break;
        }
        selectors.push(selection::expand(form, &place.index(index), vocabulary, check));
    }
    selectors
}

/// An added cell is one point: what leaves that open, or names what is not known, is not counted.
fn check_include(
    selector: &Selector,
    axes: &Space,
    vocabulary: &Vocabulary,
    place: &DocumentPath,
    check: &mut Check<'_>,
) {
    let is_judged = |problem: &MatrixError| match problem {
        MatrixError::IncludeUnsaid { .. } => true,
        _ => axes.are_complete() && selector.check(vocabulary).is_empty(),
    };
    if let Some(problem) = axes.included(selector).err().filter(is_judged) {
        check.error(place, problem.to_string(), problem.hint().map(str::to_owned));
    }
}

fn check_zip(zips: &[Vec<AxisName>], axes: &Space, place: &DocumentPath, check: &mut Check<'_>) {
    for (group, position, problem) in axes.check_zip(zips) {
        let group = place.index(group);
        let place = position.map_or(group.clone(), |position| group.index(position));
        check.error(&place, problem.to_string(), problem.hint().map(str::to_owned));
    }
}

/// Refuses products that no machine could run, without making a cell.
fn check_product(form: &MatrixForm, axes: &Space, check: &mut Check<'_>) {
    let Err(problem) = axes.size(&axes.factors(&form.zip), form.design) else { return };
    let place = match &problem {
        MatrixError::TooManyCells { largest, .. } => DocumentPath::top(largest.plural()),
        _ => DocumentPath::top("matrix"),
    };
    let described = check.at_key(&place, problem.to_string());
    check.problems.push(match problem.hint() {
        Some(hint) => described.with_hint(hint),
        None => described,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::{Axis, Combine};

    fn space(yaml: &str) -> Space {
        let text = format!("backend: mock\n{yaml}");
        let loaded = crate::parse("x.yaml", &text, std::path::Path::new(""), &[]).expect("a valid spec");
        Space::of(&loaded.experiment)
    }

    #[test]
    fn inputs_of_models_are_a_sum_that_a_zip_does_not_multiply() {
        let space =
            space("models: [m, { name: n, inputs: { batch: [4, 5] } }]\nvariants: [a, b]\ninputs: { batch: 1 }");
        assert_eq!(space.size(&space.factors(&[]), Combine::Product), Ok(6));
        // In either order of the zip.
        for zip in [vec![Axis::Models, Axis::Variants], vec![Axis::Variants, Axis::Models]] {
            assert!(space.check_zip(std::slice::from_ref(&zip)).is_empty());
            assert_eq!(space.size(&space.factors(&[zip]), Combine::Product), Ok(3));
        }
        let zip = [vec![Axis::Models, Axis::Inputs]];
        assert!(matches!(space.check_zip(&zip)[0], (0, Some(1), MatrixError::ZipOfOwnInputs { .. })));
    }

    #[test]
    fn an_include_names_one_cell() {
        let space = space("models: [m, { name: n, inputs: { batch: [4, 5] } }]\nvariants: [a, b]");
        let named = |text: &str| space.included(&experiment::parse_selector(text).expect("a selector"));
        let point = named("model=n,variant=b,batch=5").expect("one cell");
        assert_eq!(space.entries.coordinates(&point).path(), "n/b5/b/cpu");
        assert!(named("model=m,variant=a").is_ok());
        assert_eq!(named("model=m"), Err(MatrixError::IncludeUnsaid { axes: vec!["variant"] }));
        for (text, cells) in [("model=n,variant=a", 2), ("model=m,variant=*", 2), ("model=m,variant=a,batch=4", 0)] {
            assert!(matches!(named(text), Err(MatrixError::IncludeNotOne { found, .. }) if found == cells), "{text}");
        }
    }
}
