//! Whether two sets of scores put the same classes first.

use serde::{Deserialize, Serialize};

use files::array::Array;

/// How often two sets of scores agree on what is largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Agreement {
    /// Items: rows of scores.
    pub items: u64,
    /// Items whose largest score is of the same class.
    pub same_first: u64,
    /// Classes that both have among their five largest, over all items; 0 where there are no more than five classes.
    pub shared_of_five: u64,
    /// Items with more than five classes.
    pub items_of_five: u64,
}

impl Agreement {
    /// Share of items with the same class first.
    pub fn top1(&self) -> f64 {
        if self.items == 0 { 1.0 } else { self.same_first as f64 / self.items as f64 }
    }

    /// Mean share of the five largest that are the same; `None` with five classes or fewer.
    pub fn top5(&self) -> Option<f64> {
        (self.items_of_five > 0).then(|| self.shared_of_five as f64 / (5.0 * self.items_of_five as f64))
    }

    pub(super) fn add(&mut self, more: Agreement) {
        self.items = self.items.saturating_add(more.items);
        self.same_first = self.same_first.saturating_add(more.same_first);
        self.shared_of_five = self.shared_of_five.saturating_add(more.shared_of_five);
        self.items_of_five = self.items_of_five.saturating_add(more.items_of_five);
    }
}

/// The agreement of an output whose rows are scores of classes: a float output of two dimensions, or of three by the name
/// `logits`, with at least two classes.
pub(super) fn of_scores(output: &Array, reference: &[f64], candidate: &[f64]) -> Option<Agreement> {
    let is_scores = match output.shape.as_slice() {
        [_, classes] => *classes >= 2,
        [_, _, classes] => *classes >= 2 && output.name == "logits",
        _ => false,
    };
    if !is_scores || !output.element.is_float() {
        return None;
    }
    let classes = *output.shape.last()? as usize;
    let mut agreement = Agreement::default();
    for (expected, found) in reference.chunks_exact(classes).zip(candidate.chunks_exact(classes)) {
        agreement.items += 1;
        agreement.same_first += u64::from(largest(expected, 1) == largest(found, 1));
        if classes > 5 {
            let (expected, found) = (largest(expected, 5), largest(found, 5));
            agreement.shared_of_five += expected.iter().filter(|class| found.contains(class)).count() as u64;
            agreement.items_of_five += 1;
        }
    }
    Some(agreement)
}

/// Indices of the largest scores, the largest first; of equal ones the first.
pub fn largest(scores: &[f64], count: usize) -> Vec<usize> {
    let mut first: Vec<usize> = Vec::with_capacity(count + 1);
    for (index, score) in scores.iter().enumerate() {
        let rank = first.iter().position(|smaller| scores[*smaller] < *score).unwrap_or(first.len());
        if rank < count {
            first.insert(rank, index);
            first.truncate(count);
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx::ElementType;

    #[test]
    fn the_largest_come_first_and_ties_keep_their_order() {
        assert_eq!(largest(&[1.0, 5.0, 5.0, 3.0], 3), [1, 2, 3]);
        assert_eq!(largest(&[], 5), Vec::<usize>::new());
    }

    #[test]
    fn agreement_counts_items_and_classes() {
        let output = Array {
            name: "y".to_owned(),
            element: ElementType::Float32,
            shape: vec![2, 6],
            bytes: vec![0; 48],
            keys: Vec::new(),
        };
        let reference = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0];
        let candidate = [9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 0.0, 8.0, 7.0, 6.0, 5.0, 4.0];
        let agreement = of_scores(&output, &reference, &candidate).unwrap_or_default();
        assert_eq!((agreement.top1(), agreement.top5()), (0.5, Some(0.9)));
        let vector = Array { shape: vec![12], ..output };
        assert_eq!(of_scores(&vector, &reference, &candidate), None);
    }
}
