//! What a variant gets for each item of a dataset.

use crate::fidelity::largest;
use experiment::AccuracyMetric;
use files::array::Array;
use onnx::ElementType;

/// One number for each item: 1 or 0 for right or wrong, the absolute or the squared error for labels that are numbers, what
/// a `score` command says of it; or one number for all items, which only such a command gives.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemScores {
    pub values: Vec<f64>,
    /// Variance of the labels around their mean; `None` for classes.
    pub label_variance: Option<f64>,
}

/// Why outputs cannot be compared with labels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AccuracyError {
    #[error("`{name}` holds {element}; {wanted}")]
    Element { name: String, element: ElementType, wanted: &'static str },
    #[error("there are {labels} labels for {items} items of output `{output}`")]
    OtherItems { labels: usize, items: usize, output: String },
    #[error("output `{output}` has the shape {shape:?}; {wanted}")]
    Shape { output: String, shape: Vec<u64>, wanted: &'static str },
    #[error("label {label} of item {item} is not one of the {classes} classes of output `{output}`")]
    Label { label: String, item: usize, classes: usize, output: String },
    #[error("{what} `{name}` holds NaN for item {item}")]
    NotANumber {
        /// `output`, or `array` for labels.
        what: &'static str,
        name: String,
        item: usize,
    },
}

/// What would do for classes.
const SCORES: &str =
    "`top1` needs one score per class or one class per item; for other outputs write a `score` command";

/// What would do for numbers.
const VALUES: &str =
    "it must have as many values for each item as the labels; for other outputs write a `score` command";

/// What would do where one of both holds texts.
const SAME: &str = "labels and classes must both be texts or both whole numbers";

/// What would do for errors.
const NUMBERS: &str = "`mae`, `rmse` and `r2` need numbers";

impl ItemScores {
    /// Compares an output with the labels, both with one entry for each item along their first dimension.
    ///
    /// # Errors
    ///
    /// [`AccuracyError`]: shapes that do not fit, labels that are no class of the output, NaN.
    pub fn of(metric: AccuracyMetric, output: &Array, labels: &Array) -> Result<Self, AccuracyError> {
        let items = output.shape.first().map_or(0, |items| *items as usize);
        let labelled = labels.shape.first().map_or(0, |items| *items as usize);
        if items != labelled {
            return Err(AccuracyError::OtherItems { labels: labelled, items, output: output.name.clone() });
        }
        if items == 0 {
            return Ok(ItemScores { values: Vec::new(), label_variance: None });
        }
        for (what, array) in [("output", output), ("array", labels)] {
            if let Some(at) = array.numbers().iter().flatten().position(|value| value.is_nan()) {
                let (name, item) = (array.name.clone(), at / (array.len() / items).max(1));
                return Err(AccuracyError::NotANumber { what, name, item });
            }
        }
        if let Some(among) = metric.among() {
            return ItemScores::of_classes(among, output, labels);
        }
        let numbers = |array: &Array| {
            let (name, element) = (array.name.clone(), array.element.clone());
            array.numbers().ok_or(AccuracyError::Element { name, element, wanted: NUMBERS })
        };
        ItemScores::of_values(metric, output, &numbers(output)?, &numbers(labels)?, items)
    }

    fn of_classes(among: usize, output: &Array, labels: &Array) -> Result<Self, AccuracyError> {
        let shape =
            || AccuracyError::Shape { output: output.name.clone(), shape: output.shape.clone(), wanted: SCORES };
        let items = output.shape[0] as usize;
        if labels.len() != items
            || !output.len().is_multiple_of(items)
            || output.shape[1..].iter().filter(|n| **n > 1).count() > 1
        {
            return Err(shape());
        }
        let classes = output.len() / items;
        let is_score = output.element.is_float();
        let text = |array: &Array| array.element == ElementType::String;
        let differ = |array: &Array| {
            let (name, element) = (array.name.clone(), array.element.clone());
            AccuracyError::Element { name, element, wanted: SAME }
        };
        if !is_score && classes < 2 {
            // A model that gives the class itself; there are no five of them.
            let (found, expected) = (output.words().ok_or_else(shape)?, labels_of(labels));
            if among != 1 {
                return Err(shape());
            }
            if text(output) != text(labels) {
                return Err(differ(if text(output) { output } else { labels }));
            }
            let right = found.iter().zip(expected).map(|(class, label)| f64::from(u8::from(*class == label)));
            return Ok(ItemScores { values: right.collect(), label_variance: None });
        }
        let scores = output.numbers().filter(|_| classes > 1 || !output.keys.is_empty()).ok_or_else(shape)?;
        if output.keys.is_empty() && text(labels) {
            return Err(differ(labels));
        }
        let mut values = Vec::with_capacity(items);
        for (item, (scores, label)) in scores.chunks_exact(classes).zip(labels_of(labels)).enumerate() {
            let known = match output.keys.as_slice() {
                [] => label.parse().ok().filter(|class| *class < classes),
                keys => keys.iter().position(|key| *key == label),
            };
            let class =
                known.ok_or_else(|| AccuracyError::Label { label, item, classes, output: output.name.clone() })?;
            values.push(f64::from(u8::from(largest(scores, among).contains(&class))));
        }
        Ok(ItemScores { values, label_variance: None })
    }

    fn of_values(
        metric: AccuracyMetric,
        output: &Array,
        found: &[f64],
        labels: &[f64],
        items: usize,
    ) -> Result<Self, AccuracyError> {
        if found.len() != labels.len() {
            let (output, shape) = (output.name.clone(), output.shape.clone());
            return Err(AccuracyError::Shape { output, shape, wanted: VALUES });
        }
        let error = |(found, label): (&f64, &f64)| match metric {
            AccuracyMetric::Mae => (found - label).abs(),
            _ => (found - label).powi(2),
        };
        let errors: Vec<f64> = found.iter().zip(labels).map(error).collect();
        let each = (errors.len() / items).max(1);
        // Several values of one item are one item.
        let values = errors.chunks_exact(each).map(|errors| errors.iter().sum::<f64>() / each as f64).collect();
        let mean = labels.iter().sum::<f64>() / labels.len().max(1) as f64;
        let variance = labels.iter().map(|label| (label - mean).powi(2)).sum::<f64>() / labels.len().max(1) as f64;
        Ok(ItemScores { values, label_variance: Some(variance) })
    }
}

/// The labels in words: floats that are whole numbers, too, are classes.
fn labels_of(labels: &Array) -> Vec<String> {
    let numbers = || labels.numbers().unwrap_or_default().iter().map(f64::to_string).collect();
    labels.words().unwrap_or_else(numbers)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn floats(name: &str, shape: &[u64], values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: name.to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes, keys: Vec::new() }
    }

    fn classes(values: &[i64]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array {
            name: "labels".to_owned(),
            element: ElementType::Int64,
            shape: vec![values.len() as u64],
            bytes,
            keys: Vec::new(),
        }
    }

    #[test]
    fn the_largest_score_is_right_or_wrong() {
        let output = floats("y", &[2, 3], &[0.1, 0.7, 0.2, 0.5, 0.3, 0.2]);
        let item_scores = ItemScores::of(AccuracyMetric::Top1, &output, &classes(&[1, 2])).unwrap();
        assert_eq!(item_scores.values, [1.0, 0.0]);
        assert_eq!(ItemScores::of(AccuracyMetric::Top5, &output, &classes(&[1, 2])).unwrap().values, [1.0, 1.0]);
        let said = Array { name: "class".to_owned(), ..classes(&[1, 1]) };
        assert_eq!(ItemScores::of(AccuracyMetric::Top1, &said, &classes(&[1, 2])).unwrap().values, [1.0, 0.0]);
        assert!(ItemScores::of(AccuracyMetric::Top5, &said, &classes(&[1, 2])).is_err());
    }

    #[test]
    fn texts_are_classes_as_outputs_and_as_the_keys_of_scores() {
        let labels = Array::of_texts("labels", &[3], ["cat", "dog", "emu"].into_iter());
        let said = Array::of_texts("class", &[3, 1], ["cat", "emu", "emu"].into_iter());
        assert_eq!(ItemScores::of(AccuracyMetric::Top1, &said, &labels).unwrap().values, [1.0, 0.0, 1.0]);
        let keys: Vec<String> = ["cat", "dog", "emu"].map(str::to_owned).to_vec();
        let scores = floats("p", &[3, 3], &[0.6, 0.3, 0.1, 0.1, 0.4, 0.5, 0.1, 0.1, 0.8]);
        let scores = Array { keys, ..scores };
        assert_eq!(ItemScores::of(AccuracyMetric::Top1, &scores, &labels).unwrap().values, [1.0, 0.0, 1.0]);
        // Classes by number, as keys in any order of columns.
        let numbered = Array { keys: vec!["2".to_owned(), "5".to_owned(), "9".to_owned()], ..scores.clone() };
        assert_eq!(
            ItemScores::of(AccuracyMetric::Top1, &numbered, &classes(&[2, 5, 9])).unwrap().values,
            [1.0, 0.0, 1.0]
        );
        let message = |output: &Array, labels: &Array| {
            ItemScores::of(AccuracyMetric::Top1, output, labels).unwrap_err().to_string()
        };
        let both = "labels and classes must both be texts or both whole numbers";
        assert_eq!(message(&said, &classes(&[1, 2, 3])), format!("`class` holds string; {both}"));
        assert_eq!(
            message(&Array { keys: Vec::new(), ..scores.clone() }, &labels),
            format!("`labels` holds string; {both}")
        );
        assert_eq!(
            message(&scores, &classes(&[0, 1, 2])),
            "label 0 of item 0 is not one of the 3 classes of output `p`"
        );
        let error = ItemScores::of(AccuracyMetric::Mae, &said, &labels).unwrap_err().to_string();
        assert_eq!(error, "`class` holds string; `mae`, `rmse` and `r2` need numbers");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let output = floats("y", &[2, 3], &[0.1, 0.7, 0.2, 0.5, 0.3, 0.2]);
        let message =
            |labels: &[i64]| ItemScores::of(AccuracyMetric::Top1, &output, &classes(labels)).unwrap_err().to_string();
        assert_eq!(message(&[1]), "there are 1 labels for 2 items of output `y`");
        assert_eq!(message(&[1, 3]), "label 3 of item 1 is not one of the 3 classes of output `y`");
        let image = floats("y", &[1, 2, 2], &[0.0; 4]);
        assert!(
            ItemScores::of(AccuracyMetric::Top1, &image, &classes(&[1])).unwrap_err().to_string().contains("`score`")
        );
        let nan = floats("y", &[2, 2], &[0.0, 1.0, 0.0, f32::NAN]);
        let error = ItemScores::of(AccuracyMetric::Top1, &nan, &classes(&[0, 0])).unwrap_err();
        assert_eq!(error.to_string(), "output `y` holds NaN for item 1");
        let (values, labels) = (floats("y", &[2, 1], &[0.0, 1.0]), floats("price", &[2, 1], &[f32::NAN, 1.0]));
        let error = ItemScores::of(AccuracyMetric::Mae, &values, &labels).unwrap_err();
        assert_eq!(error.to_string(), "array `price` holds NaN for item 0");
    }

    #[test]
    fn errors_are_means_over_the_values_of_an_item() {
        let output = floats("y", &[2, 2], &[1.0, 3.0, 0.0, 0.0]);
        let labels = floats("labels", &[2, 2], &[0.0, 1.0, 0.0, 4.0]);
        let item_scores = |metric| ItemScores::of(metric, &output, &labels).unwrap();
        assert_eq!(item_scores(AccuracyMetric::Mae).values, [1.5, 2.0]);
        assert_eq!(item_scores(AccuracyMetric::Rmse).values, [2.5, 8.0]);
        assert_eq!(item_scores(AccuracyMetric::R2).label_variance, Some(2.6875));
    }
}
