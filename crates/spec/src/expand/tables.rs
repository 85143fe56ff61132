//! `tables`: pivots in which every cell of the matrix has a place of its own.

use std::collections::HashSet;

use super::metric;
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{CoordinateWord, MetricText, OneOrMany, TableForm};
use base::metric::MetricReference;
use experiment::{Axis as AxisName, Compare, Matrix, Space, TableSpec};

/// Reads `tables`.
pub(super) fn expand(
    forms: &[TableForm],
    axes: &Space,
    matrix: &Matrix,
    compare: &Compare,
    check: &mut Check<'_>,
) -> Vec<TableSpec> {
    let top = DocumentPath::top("tables");
    let mut tables = Vec::with_capacity(forms.len());
    let mut names = Vec::with_capacity(forms.len());
    for (index, form) in forms.iter().enumerate() {
        let place = top.index(index);
        let mut used = Vec::new();
        let rows = read_axes(&form.rows, axes, &place.key("rows"), &mut used, check);
        let columns = read_axes(&form.columns, axes, &place.key("columns"), &mut used, check);
        check_cover(&form.name.0, &used, axes, matrix, &place, check);
        let show = read_metrics(&form.show, &place.key("show"), axes, compare, check);
        names.push((place, form.name.0.clone()));
        tables.push(TableSpec { name: form.name.0.clone(), rows, columns, show });
    }
    check.duplicates("tables", &names, "give each its own `name`");
    tables
}

/// The axes of one side; an axis that stands anywhere in the table already is a problem.
fn read_axes(
    words: &OneOrMany<CoordinateWord>,
    known: &Space,
    place: &DocumentPath,
    used: &mut Vec<AxisName>,
    check: &mut Check<'_>,
) -> Vec<AxisName> {
    let mut axes = Vec::new();
    for (place, word) in words.places(place) {
        let axis = word.0;
        if axis.may_be_absent() && known.length(axis) == 0 && known.is_complete(axis) {
            let message = format!("the specification has no `{}`, so they distinguish nothing", axis.plural());
            check.error(&place, message, None);
        } else if used.contains(&axis) {
            let hint = "use an axis once, in `rows` or in `columns`".to_owned();
            check.error(&place, format!("`{}` is listed twice in this table", axis.singular()), hint);
        } else {
            used.push(axis);
            axes.push(axis);
        }
    }
    axes
}

/// Every axis of several entries must stand in the table, or several cells fall on one place.
fn check_cover(
    name: &str,
    used: &[AxisName],
    axes: &Space,
    matrix: &Matrix,
    place: &DocumentPath,
    check: &mut Check<'_>,
) {
    if check.is_damaged(&DocumentPath::top("matrix")) {
        return;
    }
    // An axis that walks with another one is known from it, unless added cells break the step.
    let walks_with_used = |axis: AxisName| {
        let mut zips = matrix.zip.iter().filter(|zip| zip.contains(&axis));
        matrix.include.is_empty() && zips.any(|zip| zip.iter().any(|other| used.contains(other)))
    };
    for axis in AxisName::ALL {
        let count = axes.most_entries(axis);
        let is_known = axes.is_complete(axis) && (axis != AxisName::Inputs || axes.is_complete(AxisName::Models));
        if count > 1 && is_known && !used.contains(&axis) && !walks_with_used(axis) {
            let word = axis.singular();
            let message = format!(
                "the table `{name}` has no `{word}`, so the cells of {count} {} would share one place",
                axis.plural()
            );
            check.error(place, message, format!("add `{word}` to its `rows` or `columns`"));
        }
    }
}

fn read_metrics(
    texts: &OneOrMany<MetricText>,
    place: &DocumentPath,
    axes: &Space,
    compare: &Compare,
    check: &mut Check<'_>,
) -> Vec<MetricReference> {
    let mut shown = Vec::new();
    let mut seen = HashSet::new();
    for (place, text) in texts.places(place) {
        let Some(reference) = metric::reference(text, &place, check) else { continue };
        if !seen.insert(reference.to_string()) {
            check.error(&place, format!("`{reference}` is listed twice"), None);
        }
        metric::check_speedup(reference, axes, compare, &place, check);
        shown.push(reference);
    }
    shown
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, problems};

    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "variants: [a, b]\ntables: [{ name: t, rows: variant }, { name: u, rows: [model], columns: variant, show: [speedup] }]";
        let tables = mock(text).tables;
        assert_eq!((tables[0].rows.as_slice(), tables[0].columns.len()), (&[AxisName::Variants][..], 0));
        assert_eq!(tables[0].show, [MetricReference::LATENCY]);
        assert_eq!(tables[1].columns, [AxisName::Variants]);
        assert!(tables[1].show[0].is_speedup());
    }

    #[test]
    fn an_axis_that_advances_with_another_is_known_from_it() {
        let axes = "variants: [a, b]\ninputs: { batch: [1, 8] }\ntables: [{ name: t, rows: [variant] }]\n";
        assert_eq!(problems(axes).len(), 1);
        assert_eq!(problems(&format!("{axes}matrix: {{ zip: [[variants, inputs]] }}")).len(), 0);
        let include = "include: [{ variant: a, input: b8 }]";
        assert_eq!(problems(&format!("{axes}matrix: {{ zip: [[variants, inputs]], {include} }}")).len(), 1);
    }

    #[test]
    fn inputs_of_one_each_need_no_place() {
        let text = "models: [{ name: x, inputs: { batch: 1 } }, { name: y, inputs: { batch: 8 } }]\n\
                    tables: [{ name: t, rows: [model] }]";
        assert_eq!(problems(text).len(), 0);
    }
}
