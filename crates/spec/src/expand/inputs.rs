//! The inputs axis: sizes of dimensions multiplied, or named entries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Axis, dataset, range};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::files::Depth;
use crate::form::{FillForm, FillWord, InputEntry, Inputs, OneOrMany, RANGE, SizeEntry, ValuesForm};
use base::name::LONGEST;
use experiment::beyond_limit;
use experiment::{
    AT, BATCH, BatchSearch, CAPACITY, Combine, ENCODER, GENERATE, InputFile, InputPoint, Model, PROMPT, VERIFY, Values,
};
use files::digest;
use reading::yaml::scalar;

/// What stands for the size of a dimension, ranges written out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    Known(u64),
    Searched(BatchSearch),
}

/// The points of `inputs` at `place`; without any, one that sets nothing.
pub(super) fn expand(
    form: Option<&Inputs>,
    combine: Combine,
    place: &DocumentPath,
    folder: &Path,
    check: &mut Check<'_>,
) -> Axis<InputPoint> {
    let mut axis = match form {
        None => Axis { values: vec![unset()], is_complete: true },
        Some(Inputs::Dimensions(dimensions)) => multiply(&dimensions.0, combine, place, check),
        Some(Inputs::Entries(entries)) => read_entries(entries, place, folder, check),
    };
    axis.is_complete &= !check.is_damaged(place);
    axis
}

fn unset() -> InputPoint {
    point("default".to_owned(), BTreeMap::new())
}

fn point(name: String, dimensions: BTreeMap<String, u64>) -> InputPoint {
    InputPoint { name, dimensions, ..InputPoint::default() }
}

/// The combinations of the sizes, the last dimension fastest; the batch leads, whatever its place in the file.
fn multiply(
    dimensions: &[(String, OneOrMany<SizeEntry>)],
    combine: Combine,
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Axis<InputPoint> {
    let sizes =
        dimensions.iter().map(|(name, sizes)| (name.as_str(), read_sizes(name, sizes, &place.key(name), check)));
    let mut ordered: Vec<(&str, Vec<Size>)> = sizes.collect();
    let count = combine.count(ordered.iter().map(|(_, sizes)| sizes.len() as u128));
    if let Some(message) = beyond_limit("these sizes multiply", count, "inputs") {
        check.error(place, message, "use fewer sizes, or a list of entries".to_owned());
        return Axis::default().incomplete();
    }
    ordered.sort_by_key(|(name, _)| *name != BATCH);
    let mut points = vec![(unset(), 0)];
    points[0].0.name.clear();
    for (dimension, sizes) in &ordered {
        let mut next = Vec::with_capacity(points.len() * sizes.len());
        for (point, differences) in &points {
            for (index, size) in sizes.iter().enumerate() {
                let differences = differences + usize::from(index > 0);
                if !combine.has(differences) {
                    continue;
                }
                next.push((sized(point, dimension, *size), differences));
            }
        }
        points = next;
    }
    let mut points: Vec<InputPoint> = points.into_iter().map(|(point, _)| point).collect();
    name(&mut points, &ordered);
    // A range that is wrong has no sizes.
    Axis { values: points, is_complete: count > 0 }
}

/// The point with one more dimension.
fn sized(point: &InputPoint, dimension: &str, size: Size) -> InputPoint {
    let mut point = point.clone();
    match size {
        Size::Known(size) => drop(point.dimensions.insert(dimension.to_owned(), size)),
        Size::Searched(search) => point.search = Some(search),
    }
    point
}

/// Names the points by their sizes: `b16-sequence128`. Where a name would be too long, all have shorter ones: `b16-s128`,
/// then without the dimensions that have one size, then with numbers.
fn name(points: &mut [InputPoint], dimensions: &[(&str, Vec<Size>)]) {
    let whole: Vec<(&str, String)> = dimensions.iter().map(|(name, _)| (*name, label(name))).collect();
    let short = short_labels(dimensions.iter().map(|(name, _)| *name));
    let varies = |(index, _): &(usize, &(&str, String))| *index == 0 || dimensions[*index].1.len() > 1;
    let varying: Vec<(&str, String)> =
        short.iter().enumerate().filter(varies).map(|(_, labelled)| labelled.clone()).collect();
    for labels in [&whole, &short, &varying] {
        points.iter_mut().for_each(|point| point.name = name_of(point, labels));
        if points.iter().all(|point| point.name.len() <= LONGEST) {
            return;
        }
    }
    for (index, point) in points.iter_mut().enumerate() {
        point.name.truncate(LONGEST - 8);
        point.name = format!("{}-{}", point.name.trim_end_matches('-'), index + 1);
    }
}

fn name_of(point: &InputPoint, labels: &[(&str, String)]) -> String {
    let part = |(dimension, label): &(&str, String)| match point.dimensions.get(*dimension) {
        Some(size) => format!("{label}{size}"),
        None => format!("{label}-{}", BatchSearch::WORD),
    };
    labels.iter().map(part).collect::<Vec<_>>().join("-")
}

/// A label of few letters for each dimension, no two alike: the first letter, the first of each word, or with a number.
fn short_labels<'a>(dimensions: impl Iterator<Item = &'a str>) -> Vec<(&'a str, String)> {
    let mut taken = BTreeSet::from([label(BATCH)]);
    let short = |dimension: &'a str| {
        if dimension == BATCH {
            return (dimension, label(BATCH));
        }
        let words = dimension.split(|character: char| !character.is_ascii_alphanumeric());
        let initials: String = words.filter_map(|word| word.chars().next()).filter(char::is_ascii_alphabetic).collect();
        let initials = if initials.is_empty() { "d".to_owned() } else { initials.to_ascii_lowercase() };
        let numbered = (2..).map(|number| format!("{initials}{number}_"));
        let mut labels = [initials[..1].to_owned(), initials.clone()].into_iter().chain(numbered);
        let free = labels.find(|label| label.len() < LONGEST && taken.insert(label.clone()));
        (dimension, free.unwrap_or_else(|| initials[..1].to_owned()))
    };
    dimensions.map(short).collect()
}

/// The sizes of a dimension, ranges written out; none where one of them is wrong.
pub(super) fn read_sizes(
    name: &str,
    entries: &OneOrMany<SizeEntry>,
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Vec<Size> {
    let mut seen = std::collections::HashSet::new();
    let (mut sizes, mut is_complete) = (Vec::new(), true);
    for (place, entry) in entries.places(place) {
        if check.is_damaged(&place) {
            is_complete = false;
            continue;
        }
        let written = match entry {
            SizeEntry::Size(size) => vec![size.0],
            SizeEntry::Range(form) => range::numbers(form, &place, check),
            SizeEntry::Search(form) => {
                if name != BATCH {
                    let hint = format!("write sizes of `{name}`; only `{BATCH}` is searched");
                    check.error(&place, format!("`{}` stands for a batch", BatchSearch::WORD), hint);
                }
                if sizes.iter().any(|size| matches!(size, Size::Searched(_))) {
                    check.error(&place, format!("`{}` is listed twice in `{name}`", BatchSearch::WORD), None);
                }
                sizes.push(Size::Searched(BatchSearch { to: form.to }));
                continue;
            }
        };
        is_complete &= !written.is_empty();
        if name == BATCH && written.contains(&0) {
            check.error(&place, "a batch of 0 holds nothing to measure", None);
        }
        if let Some(twice) = written.iter().copied().filter(|size| !seen.insert(*size)).min() {
            // What repeats a size is the shape of a tensor.
            let is_count = [BATCH, AT, PROMPT, VERIFY, GENERATE, CAPACITY, ENCODER].contains(&name);
            let hint = (!is_count).then(|| {
                format!(
                    "the shape of a tensor goes below `shapes`: `inputs: [{{ name: one, shapes: {{ {}: [...] }} }}]`",
                    scalar(name)
                )
            });
            check.error(&place, format!("{twice} is listed twice in `{name}`"), hint);
        }
        sizes.extend(written.into_iter().map(Size::Known));
    }
    if is_complete { sizes } else { Vec::new() }
}

/// A dimension's part of a name; models name dimensions in ways that names cannot hold (`past + 1`).
fn label(dimension: &str) -> String {
    if dimension == BATCH {
        return "b".to_owned();
    }
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let label: String = dimension.chars().map(|character| if fits(character) { character } else { '_' }).collect();
    if label.starts_with(|first: char| first.is_ascii_alphanumeric()) { label } else { format!("d{label}") }
}

fn read_entries(
    entries: &[InputEntry],
    place: &DocumentPath,
    folder: &Path,
    check: &mut Check<'_>,
) -> Axis<InputPoint> {
    let mut axis = Axis::default();
    let mut names = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let place = place.index(index);
        if check.is_damaged(&place) {
            axis.is_complete = false;
            continue;
        }
        for (dimension, size) in &entry.dimensions.0 {
            if dimension == BATCH && size.0 == 0 {
                check.error(&place.key("dimensions").key(BATCH), "a batch of 0 holds nothing to measure", None);
            }
        }
        let shapes = entry.shapes.0.iter();
        let (values, tensors) = values(&entry.values, &place.key("values"), check);
        let file = entry.file.as_ref().and_then(|text| file(text, &place.key("file"), folder, check));
        if entry.file.is_some() && matches!(entry.values, ValuesForm::All(_)) && check.has(&place.key("values")) {
            let hint = "leave one of them out, or say by input what is not in the file: `values: { mask: ones }`";
            check.error(&place.key("values"), "both `values` and `file` fill every input", hint.to_owned());
        }
        axis.values.push(InputPoint {
            name: entry.name.0.clone(),
            dimensions: entry.dimensions.0.iter().map(|(name, size)| (name.clone(), size.0)).collect(),
            shapes: shapes.map(|(name, sizes)| (name.clone(), sizes.iter().map(|size| size.0).collect())).collect(),
            values,
            tensors,
            file,
            search: None,
            decode: false,
            load: None,
        });
        names.push((place, entry.name.0.clone()));
    }
    check.duplicates("inputs", &names, "give each its own `name`");
    axis
}

/// What fills every tensor, and what fills single ones.
fn values(form: &ValuesForm, place: &DocumentPath, check: &mut Check<'_>) -> (Values, BTreeMap<String, Values>) {
    match form {
        ValuesForm::All(form) => (fill(form, place, check), BTreeMap::new()),
        ValuesForm::ByTensor(forms) => {
            let mut one = |(tensor, form): &(String, FillForm)| (tensor.clone(), fill(form, &place.key(tensor), check));
            (Values::default(), forms.0.iter().map(&mut one).collect())
        }
    }
}

fn fill(form: &FillForm, place: &DocumentPath, check: &mut Check<'_>) -> Values {
    match form {
        FillForm::Word(FillWord::Random) => Values::Random,
        FillForm::Word(FillWord::Zeros) => Values::Zeros,
        FillForm::Word(FillWord::Ones) => Values::Ones,
        FillForm::Word(FillWord::Dataset) => Values::Dataset,
        FillForm::One(value) => Values::List(vec![value.0.clone()]),
        FillForm::List(values) => Values::List(values.iter().map(|value| value.0.clone()).collect()),
        FillForm::Range(form) => match form.range.as_slice() {
            [low, high] if low.as_f64() < high.as_f64() => Values::Range(low.clone(), high.clone()),
            [low, high] => {
                let message =
                    format!("there is nothing from {low} up to {high}: the second number itself is not drawn");
                let hint = (low == high).then(|| format!("for one value everywhere write `{low}`"));
                check.error(&place.key(RANGE), message, hint);
                Values::default()
            }
            _ => {
                let hint = "the smallest, and the one that all are less than: `{ range: [0, 30522] }`";
                check.error(&place.key(RANGE), "a range has two numbers", hint.to_owned());
                Values::default()
            }
        },
    }
}

/// The formats that can be read.
const ENDINGS: [&str; 2] = ["npz", "npy"];

/// A file with arrays, and what is in it.
pub(super) fn file(text: &str, place: &DocumentPath, folder: &Path, check: &mut Check<'_>) -> Option<InputFile> {
    let path = dataset::file(text, &ENDINGS, place, folder, check)?;
    if check.depth == Depth::Names {
        return Some(InputFile { path, sha256: String::new() });
    }
    match digest::of_file(&path) {
        Ok(sha256) => Some(InputFile { path, sha256 }),
        Err(error) => {
            check.error(place, format!("`{text}` cannot be read: {error}"), None);
            None
        }
    }
}

/// Refuses items of a dataset where a model that shares the inputs has none.
pub(super) fn check_dataset(inputs: &Axis<InputPoint>, models: &Axis<Model>, has_dataset: bool, check: &mut Check<'_>) {
    let lacks = models.values.iter().find(|model| model.inputs.is_none() && model.dataset.is_none());
    let Some(model) = lacks.filter(|_| !has_dataset && inputs.is_complete && models.is_complete) else { return };
    for (index, _) in inputs.values.iter().enumerate().filter(|(_, point)| point.takes_dataset()) {
        let message = format!("`dataset` has no items: the model `{}` has no `dataset`", model.name);
        let hint = "add `dataset: { file: data.npz }`, or name a file here: `file: inputs.npz`";
        check.error(&DocumentPath::top("inputs").index(index).key("values"), message, hint.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::mock;

    use super::*;

    #[test]
    fn a_range_stands_for_its_numbers_wherever_sizes_are_listed() {
        let names = |spec: &str| mock(spec).inputs.into_iter().map(|input| input.name).collect::<Vec<_>>();
        assert_eq!(names("inputs: { batch: { from: 1, to: 8, times: 2 } }"), ["b1", "b2", "b4", "b8"]);
        let with_batch = names("inputs: { sequence: [16, { from: 32, to: 96, plus: 32 }], batch: 2 }");
        assert_eq!(with_batch, ["b2-sequence16", "b2-sequence32", "b2-sequence64", "b2-sequence96"]);
        let alone = names("matrix: { design: one_at_a_time }\ninputs: { batch: [1, 8], sequence: [16, 32, 64] }");
        assert_eq!(alone, ["b1-sequence16", "b1-sequence32", "b1-sequence64", "b8-sequence16"]);
    }

    #[test]
    fn names_that_would_be_too_long_are_shortened_and_stay_apart() {
        let names = |spec: &str| mock(spec).inputs.into_iter().map(|input| input.name).collect::<Vec<_>>();
        let t5 = "batch: [1, 8], decoder_sequence_length: 128, encoder_sequence_length_out: 128, past_decoder_sequence_length: [0, 128]";
        let short = ["b1-d128-e128-p0", "b1-d128-e128-p128", "b8-d128-e128-p0", "b8-d128-e128-p128"];
        assert_eq!(names(&format!("inputs: {{ {t5} }}")), short);
        let alike = "batch: best, past_sequence_length_of_decoder: 1, present_sequence_length_of_decoder: 2, \"past sequence_length + of_decoder\": 3";
        assert_eq!(names(&format!("inputs: {{ {alike} }}")), ["b-best-p1-pslod2-pslod2_3"]);
        // So many that only what varies has room, and so many sizes that not even that has.
        let many = |sizes: &str, count: usize| {
            let sizes: Vec<String> =
                (0..count).map(|index| format!("длинное_имя_размерности_{index}: {sizes}")).collect();
            names(&format!("matrix: {{ design: one_at_a_time }}\ninputs: {{ batch: [1, 2], {} }}", sizes.join(", ")))
        };
        assert_eq!(many("128", 20), ["b1", "b2"]);
        let numbered = many("[100000, 200000]", 12);
        assert_eq!((numbered.len(), numbered.iter().collect::<BTreeSet<_>>().len()), (14, 14));
        assert!(numbered.iter().all(|name| base::name::is_name(name)), "{numbered:?}");
    }

    #[test]
    fn labels_are_parts_of_names() {
        assert_eq!(label("batch"), "b");
        assert_eq!(label("sequence"), "sequence");
        assert_eq!(label("past + 1"), "past___1");
        assert_eq!(label("_x"), "d_x");
    }
}
