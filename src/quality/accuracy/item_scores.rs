//! What a variant gets for each item of a dataset.

use crate::data::array::Array;
use crate::experiment::AccuracyMetric;
use crate::quality::fidelity::largest;

/// One number for each item: 1 or 0 for right or wrong, the absolute or the squared error for labels that are numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ItemScores {
    /// By item.
    pub values: Vec<f64>,
    /// Variance of the labels around their mean; `None` for classes.
    pub label_variance: Option<f64>,
}

/// Why outputs cannot be compared with labels.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum AccuracyProblem {
    /// Texts and the like.
    #[error("`{name}` is not numeric")]
    NoNumbers {
        /// The array.
        name: String,
    },
    /// The labels are for other items.
    #[error("there are {labels} labels for {items} items of output `{output}`")]
    OtherItems {
        /// Number of labels.
        labels: usize,
        /// Number of items.
        items: usize,
        /// The output.
        output: String,
    },
    /// There is nothing to compare them with.
    #[error("output `{output}` has the shape {shape:?}; {wanted}")]
    Shape {
        /// The output.
        output: String,
        /// Its shape.
        shape: Vec<u64>,
        /// What would do.
        wanted: &'static str,
    },
    /// No class of the model.
    #[error("label {label} of item {item} is not one of the {classes} classes of output `{output}`")]
    Label {
        /// The label.
        label: f64,
        /// Which item.
        item: usize,
        /// Classes of the output.
        classes: usize,
        /// The output.
        output: String,
    },
    /// NaN is neither right nor wrong.
    #[error("{what} `{name}` holds NaN for item {item}")]
    NotANumber {
        /// `output`, or `array` for labels.
        what: &'static str,
        /// Its name.
        name: String,
        /// Which item.
        item: usize,
    },
}

/// What would do for classes.
const SCORES: &str =
    "`top1` needs one score per class or one class per item; for other outputs write a `score` command";

/// What would do for numbers.
const VALUES: &str =
    "it must have as many values for each item as the labels; for other outputs write a `score` command";

impl ItemScores {
    /// Compares an output with the labels, both with one entry for each item along their first dimension.
    ///
    /// # Errors
    ///
    /// [`AccuracyProblem`]: shapes that do not fit, labels that are no class of the output, NaN.
    pub(crate) fn of(metric: AccuracyMetric, output: &Array, labels: &Array) -> Result<Self, AccuracyProblem> {
        let numbers = |array: &Array| array.numbers().ok_or(AccuracyProblem::NoNumbers { name: array.name.clone() });
        let (found, expected) = (numbers(output)?, numbers(labels)?);
        let items = output.shape.first().map_or(0, |items| *items as usize);
        let labelled = labels.shape.first().map_or(0, |items| *items as usize);
        if items != labelled {
            return Err(AccuracyProblem::OtherItems { labels: labelled, items, output: output.name.clone() });
        }
        if items == 0 {
            return Ok(ItemScores { values: Vec::new(), label_variance: None });
        }
        for (values, what, array) in [(&found, "output", output), (&expected, "array", labels)] {
            if let Some(at) = values.iter().position(|value| value.is_nan()) {
                let (name, item) = (array.name.clone(), at / (values.len() / items).max(1));
                return Err(AccuracyProblem::NotANumber { what, name, item });
            }
        }
        match metric.among() {
            Some(among) => ItemScores::of_classes(among, output, &found, &expected),
            None => ItemScores::of_values(metric, output, &found, &expected, items),
        }
    }

    fn of_classes(among: usize, output: &Array, found: &[f64], labels: &[f64]) -> Result<Self, AccuracyProblem> {
        let shape =
            || AccuracyProblem::Shape { output: output.name.clone(), shape: output.shape.clone(), wanted: SCORES };
        let items = output.shape[0] as usize;
        if labels.len() != items
            || !found.len().is_multiple_of(items)
            || output.shape[1..].iter().filter(|n| **n > 1).count() > 1
        {
            return Err(shape());
        }
        let classes = found.len() / items;
        if classes < 2 {
            // A model that gives the class itself; there are no five of them.
            let says_class = !output.element.is_float() && among == 1;
            let right = found.iter().zip(labels).map(|(class, label)| f64::from(u8::from(class == label)));
            let values: Option<Vec<f64>> = says_class.then(|| right.collect());
            return Ok(ItemScores { values: values.ok_or_else(shape)?, label_variance: None });
        }
        let mut values = Vec::with_capacity(items);
        for (item, (scores, label)) in found.chunks_exact(classes).zip(labels).enumerate() {
            if label.fract() != 0.0 || *label < 0.0 || *label >= classes as f64 {
                return Err(AccuracyProblem::Label { label: *label, item, classes, output: output.name.clone() });
            }
            let is_right = largest(scores, among).contains(&(*label as usize));
            values.push(f64::from(u8::from(is_right)));
        }
        Ok(ItemScores { values, label_variance: None })
    }

    fn of_values(
        metric: AccuracyMetric,
        output: &Array,
        found: &[f64],
        labels: &[f64],
        items: usize,
    ) -> Result<Self, AccuracyProblem> {
        if found.len() != labels.len() {
            let (output, shape) = (output.name.clone(), output.shape.clone());
            return Err(AccuracyProblem::Shape { output, shape, wanted: VALUES });
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::onnx::ElementType;

    fn floats(name: &str, shape: &[u64], values: &[f32]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: name.to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes }
    }

    fn classes(values: &[i64]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: "labels".to_owned(), element: ElementType::Int64, shape: vec![values.len() as u64], bytes }
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
