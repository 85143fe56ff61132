//! Which array of a dataset goes into which input of a model, and whether it fits.

use super::DatasetError;
use super::source::Source;
use experiment::Dataset;
use files::array::{Array, Head};
use onnx::{Dimension, ElementType, Signature, TensorType};

/// A dataset that fits a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// Items that are used.
    pub items: u64,
    /// One for each input of the model.
    pub inputs: Vec<FittedInput>,
}

/// The array for one input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedInput {
    pub input: String,
    pub array: String,
    pub element: ElementType,
    /// The shape of an item.
    pub item: Vec<u64>,
    /// Items that the model takes at once, if its file says so.
    pub batch: Option<u64>,
}

/// Finds an array for each input. Without a signature, as with the mock backend, every array that is no label is one.
pub(super) fn fit(dataset: &Dataset, source: &Source, signature: Option<&Signature>) -> Result<Fitted, DatasetError> {
    let labels = source.labels(dataset.labels.as_deref())?;
    let is_data = |head: &&Head| dataset.labels.as_ref() != Some(&head.name);
    let data: Vec<&Head> = source.heads.iter().filter(is_data).collect();
    let fitted = match signature {
        None => data.iter().filter(|head| !is_text(&head.element)).map(|head| as_it_is(head)).collect(),
        Some(Signature { inputs, outputs }) => {
            check_names(dataset, inputs, outputs)?;
            let fit_input = |input: &TensorType| {
                let head = array_for(dataset, source, &data, inputs, input)?;
                fit_one(head, input, source.is_flat())
            };
            inputs.iter().map(fit_input).collect::<Result<Vec<_>, DatasetError>>()?
        }
    };
    let used = fitted.iter().map(|input| source.head(&input.array)).collect::<Result<Vec<_>, _>>()?;
    let items = items(&used, labels)?;
    Ok(Fitted { items: dataset.items.map_or(items, |most| most.min(items)), inputs: fitted })
}

fn is_text(element: &ElementType) -> bool {
    *element == ElementType::String
}

fn as_it_is(head: &Head) -> FittedInput {
    let (name, item) = (head.name.clone(), head.shape.iter().skip(1).copied().collect());
    FittedInput { input: name.clone(), array: name, element: head.element.clone(), item, batch: None }
}

/// What the specification names must be there.
fn check_names(dataset: &Dataset, inputs: &[TensorType], outputs: &[TensorType]) -> Result<(), DatasetError> {
    let names = |tensors: &[TensorType]| tensors.iter().map(|tensor| tensor.name.clone()).collect::<Vec<String>>();
    if let Some(name) = dataset.inputs.keys().find(|name| !inputs.iter().any(|input| input.name == **name)) {
        return Err(DatasetError::NoInput { name: name.clone(), known: names(inputs) });
    }
    match &dataset.output {
        Some(name) if !outputs.iter().any(|output| output.name == *name) => {
            Err(DatasetError::NoOutput { name: name.clone(), known: names(outputs) })
        }
        _ => Ok(()),
    }
}

pub(super) fn array_for<'a>(
    dataset: &Dataset,
    source: &'a Source,
    data: &[&'a Head],
    inputs: &[TensorType],
    input: &TensorType,
) -> Result<&'a Head, DatasetError> {
    if let Some(array) = dataset.inputs.get(&input.name) {
        return source.head(array);
    }
    // Where items have numbers, their names are not an input too.
    let mut alike = data.iter().filter(|head| is_text(&head.element) == is_text(&input.element));
    match (data.iter().find(|head| head.name == input.name), alike.next(), alike.next()) {
        (Some(head), ..) => Ok(head),
        (None, Some(head), None) if inputs.len() == 1 => Ok(head),
        _ => Err(DatasetError::Nothing {
            input: input.to_string(),
            known: data.iter().map(|head| head.name.clone()).collect(),
        }),
    }
}

fn fit_one(head: &Head, input: &TensorType, is_flat: bool) -> Result<FittedInput, DatasetError> {
    if !Array::may_be_cast(&head.element, &input.element) {
        let (array, element) = (head.name.clone(), head.element.clone());
        return Err(DatasetError::Element { array, element, input: input.to_string() });
    }
    let misfit =
        || DatasetError::Shape { array: head.name.clone(), shape: head.shape.clone(), input: input.to_string() };
    let stored: Vec<u64> = head.shape.iter().skip(1).copied().collect();
    let (item, batch) = match &input.shape {
        None => (stored, None),
        Some(dimensions) => {
            let (first, rest) = dimensions.split_first().ok_or_else(misfit)?;
            let fits = |(dimension, length): (&Dimension, &u64)| !matches!(dimension, Dimension::Fixed(fixed) if fixed != length);
            let is_same = rest.len() == stored.len() && rest.iter().zip(&stored).all(fits);
            let item = if is_same { Some(stored) } else { reshaped(rest, &stored).filter(|_| is_flat) };
            (item.ok_or_else(misfit)?, fixed(first))
        }
    };
    let (input, array, element) = (input.name.clone(), head.name.clone(), input.element.clone());
    Ok(FittedInput { input, array, element, item, batch })
}

fn fixed(dimension: &Dimension) -> Option<u64> {
    match dimension {
        Dimension::Fixed(length) => Some(*length),
        Dimension::Named(_) | Dimension::Unknown => None,
    }
}

/// The dimensions of an item that is stored as so many numbers in a row.
fn reshaped(dimensions: &[Dimension], stored: &[u64]) -> Option<Vec<u64>> {
    let item: Vec<u64> = dimensions.iter().map(fixed).collect::<Option<_>>()?;
    (item.iter().product::<u64>() == stored.iter().product::<u64>()).then_some(item)
}

/// Every array, and the labels, must have the same number of items, and at least one.
fn items(used: &[&Head], labels: Option<&Head>) -> Result<u64, DatasetError> {
    let count = |head: &Head| head.shape.first().copied().unwrap_or(0);
    let mut all = used.iter().copied().chain(labels);
    let first = all.next().ok_or(DatasetError::Empty)?;
    if let Some(other) = all.find(|head| count(head) != count(first)) {
        return Err(DatasetError::Items {
            array: first.name.clone(),
            items: count(first),
            other: other.name.clone(),
            other_items: count(other),
        });
    }
    if count(first) == 0 { Err(DatasetError::Empty) } else { Ok(count(first)) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn head(name: &str, element: ElementType, shape: &[u64]) -> Head {
        Head { name: name.to_owned(), element, shape: shape.to_vec() }
    }

    fn input(dimensions: &[Dimension]) -> TensorType {
        TensorType { name: "x".to_owned(), element: ElementType::Float32, shape: Some(dimensions.to_vec()) }
    }

    fn batch() -> Dimension {
        Dimension::Named("batch".to_owned())
    }

    #[test]
    fn open_dimensions_take_what_is_stored_and_fixed_ones_must_fit() {
        use Dimension::{Fixed, Unknown};
        let images = head("x", ElementType::Float64, &[9, 3, 32, 32]);
        let open = fit_one(&images, &input(&[batch(), Fixed(3), Unknown, Unknown]), false).unwrap();
        assert_eq!((open.item.as_slice(), open.batch, open.element), (&[3, 32, 32][..], None, ElementType::Float32));
        let fixed = fit_one(&images, &input(&[Fixed(4), Fixed(3), Fixed(32), Fixed(32)]), false).unwrap();
        assert_eq!(fixed.batch, Some(4));
        assert!(fit_one(&images, &input(&[batch(), Fixed(1), Unknown, Unknown]), false).is_err());
        assert!(fit_one(&images, &input(&[batch(), Fixed(3072)]), true).is_ok(), "of a row the shape is not known");
        assert!(fit_one(&images, &input(&[batch(), Fixed(3072)]), false).is_err());
        let bytes = head("x", ElementType::Uint8, &[9, 3, 32, 32]);
        assert!(matches!(fit_one(&bytes, &input(&[batch()]), false), Err(DatasetError::Element { .. })));
    }

    #[test]
    fn rows_take_the_shape_of_the_input() {
        let rows = head("pixels", ElementType::Float32, &[9, 64]);
        let fixed = [batch(), Dimension::Fixed(1), Dimension::Fixed(8), Dimension::Fixed(8)];
        assert_eq!(fit_one(&rows, &input(&fixed), true).unwrap().item, [1, 8, 8]);
        let column = head("price", ElementType::Float32, &[9]);
        assert_eq!(fit_one(&column, &input(&[batch(), Dimension::Fixed(1)]), true).unwrap().item, [1]);
    }

    #[test]
    fn all_arrays_have_the_same_items() {
        let (three, four) = (head("a", ElementType::Float32, &[3]), head("b", ElementType::Int64, &[4]));
        assert_eq!(items(&[&three], None).unwrap(), 3);
        assert!(matches!(items(&[&three], Some(&four)), Err(DatasetError::Items { .. })));
        assert!(matches!(items(&[], None), Err(DatasetError::Empty)));
    }
}
