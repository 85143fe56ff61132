//! Operators that make a tensor from a shape or a number, and those that return the shape of one.
//!
//! Input: a node. Output: its shape, and its elements where they are integers. Deliberately absent: constants.

use super::Value;
use super::shape::size_of;
use super::site::{Outputs, Site, single_output};
use super::value::MOST_INTEGERS;
use crate::ElementType;

/// The sizes of the input from `start` to `end`, as elements.
pub(super) fn shape(site: &Site<'_>) -> Outputs {
    let Some(shape) = site.shape(0) else { return single_output(vec![None]) };
    let rank = shape.len() as i64;
    let bound = |name: &str, default: i64| {
        let bound = site.int_or(name, default);
        let bound = if bound < 0 { bound.saturating_add(rank) } else { bound };
        bound.clamp(0, rank) as usize
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    let sizes = shape.get(start..end).unwrap_or_default();
    let elements = sizes.iter().map(|size| i64::try_from((*size)?).ok()).collect();
    Some(vec![Value::of_list(ElementType::Int64, elements)])
}

/// The number of elements.
pub(super) fn size(site: &Site<'_>) -> Outputs {
    let elements = site.value(0).and_then(Value::elements).and_then(|elements| i64::try_from(elements).ok());
    Some(vec![Value::of_scalar(ElementType::Int64, elements)])
}

/// One number about something that is no tensor.
pub(super) fn scalar(_: &Site<'_>) -> Outputs {
    single_output(vec![])
}

/// A number for each word of a table, instead of the words.
pub(super) fn counted_words(site: &Site<'_>) -> Outputs {
    let mut shape = site.shape(0)?.to_vec();
    let last = site.node.ints("ngram_indexes")?.iter().max()?;
    *shape.last_mut()? = last.checked_add(1).and_then(size_of);
    single_output(shape)
}

/// From, to and step.
pub(super) fn range(site: &Site<'_>) -> Outputs {
    let float = |index: usize| site.floats(index)?.first().copied();
    if let (Some(start), Some(limit), Some(delta)) = (float(0), float(1), float(2)) {
        let count = ((limit - start) / delta).ceil();
        return single_output(vec![(count < u64::MAX as f64).then_some(count.max(0.0) as u64)]);
    }
    let (Some(start), Some(limit), Some(delta)) = (site.scalar(0), site.scalar(1), site.scalar(2)) else {
        return single_output(vec![None]);
    };
    let count = i128::from(limit) - i128::from(start);
    let delta = i128::from(delta);
    if delta == 0 {
        return single_output(vec![None]);
    }
    let count = ((count + delta - delta.signum()) / delta).max(0);
    let value = Value::of_shape(vec![u64::try_from(count).ok()]);
    if count > i128::from(MOST_INTEGERS) {
        return Some(vec![value]);
    }
    let elements = (0..count).map(|index| i64::try_from(i128::from(start) + index * delta).ok()).collect();
    Some(vec![value.with_integers(Some(elements))])
}

/// The attribute's shape.
pub(super) fn random(site: &Site<'_>) -> Outputs {
    single_output(site.node.ints("shape")?.iter().map(|size| size_of(*size)).collect())
}

/// As many samples as the attribute says, for each row.
pub(super) fn multinomial(site: &Site<'_>) -> Outputs {
    single_output(vec![site.size(0, 0), size_of(site.int_or("sample_size", 1))])
}

/// As many elements as the input says.
pub(super) fn window(site: &Site<'_>) -> Outputs {
    single_output(vec![site.scalar(0).and_then(size_of)])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn shapes_become_elements() {
        case("Shape", "x[2,N,4]").gives("int64 [3] = 2, ?, 4");
        case("Shape", "x[2,N,4]").int("start", -2).int("end", 9).gives("int64 [2] = ?, 4");
        case("Shape", "x[...]").gives("int64 [?]");
        case("Size", "x[2,3]").gives("int64 [] = 6");
        case("Size", "x[2,N]").gives("int64 []");
        case("TfIdfVectorizer", "x:int32[3,12]").ints("ngram_indexes", &[0, 6, 3]).gives("float32 [3, 7]");
        case("OptionalHasElement", "x[2]").opset(18).gives("bool []");
    }

    #[test]
    fn ranges_have_as_many_elements_as_steps() {
        case("Range", "").scalar(1).scalar(8).scalar(3).gives("int64 [3] = 1, 4, 7");
        case("Range", "").scalar(8).scalar(0).scalar(-3).gives("int64 [3] = 8, 5, 2");
        case("Range", "").scalar(0).scalar(9).scalar(0).gives("int64 [?]");
        case("Range", "").scalar(i64::MIN).scalar(i64::MAX).scalar(1).gives("int64 [18446744073709551615]");
        case("RandomNormal", "").ints("shape", &[2, 3]).gives("float32 [2, 3]");
        case("HannWindow", "").scalar(5).gives("float32 [5]");
    }
}
