//! Input data: seeded, given or from files, the same for every variant and device (method 1.7).

use std::path::Path;

use half::{bf16, f16};
use serde_json::Number;

use super::{DecodeRequest, Failure, FailureKind, TensorRequest};
use experiment::Values;
use files::array::{Array, ArrayError, NpyReader};
use onnx::ElementType;
use statistics::random::Xoshiro256PlusPlus;

/// All input sets together hold at most this much (method 1.7).
pub const POOL_LIMIT_BYTES: u64 = 64 << 20;

/// Random integers are drawn from 0 up to this: small enough to be an index into most embedding tables and gathers.
const INTEGER_RANGE: u64 = 2;

/// What a string counts for in the limit of the pool.
const TEXT_BYTES: u64 = 32;

/// Letters of a generated word: from the first number up to the second.
const WORD_LETTERS: (u64, u64) = (3, 9);

/// Bytes of one tensor, or a failure where its type cannot be fed or its size is absurd.
///
/// # Errors
///
/// [`FailureKind::Shape`] with the tensor's name.
pub(crate) fn tensor_bytes(tensor: &TensorRequest) -> Result<u64, Failure> {
    let is_text = tensor.element == ElementType::String;
    let size = tensor.element.size_bytes().or(is_text.then_some(TEXT_BYTES)).ok_or_else(|| {
        let text = format!("input `{}` has type {}, which cannot be generated", tensor.name, tensor.element);
        Failure::new(FailureKind::Shape, text)
    })?;
    tensor.shape.iter().try_fold(size, |product, length| product.checked_mul(*length)).ok_or_else(|| {
        Failure::new(FailureKind::Shape, format!("input `{}` of shape {:?} is too large", tensor.name, tensor.shape))
    })
}

/// How many sets of these tensors are made: as many as wanted, within [`POOL_LIMIT_BYTES`], at least one.
///
/// # Errors
///
/// As `tensor_bytes`.
pub fn sets_within_limit(tensors: &[TensorRequest], wanted: u32) -> Result<usize, Failure> {
    let mut set_bytes: u64 = 0;
    for tensor in tensors {
        set_bytes = set_bytes.saturating_add(tensor_bytes(tensor)?);
    }
    let fitting = POOL_LIMIT_BYTES.checked_div(set_bytes).unwrap_or(u64::from(wanted));
    Ok(fitting.clamp(1, u64::from(wanted.max(1))) as usize)
}

/// Fills `bytes`, the little-endian elements of `tensor`, for the input set with index `set`.
///
/// Random floats are N(0,1) drawn as f32 (half precisions are those values rounded), booleans and integers are uniform
/// below 2.
///
/// # Errors
///
/// A file that cannot be read, and values that do not fit the type.
pub fn fill(tensor: &TensorRequest, set: usize, bytes: &mut [u8]) -> Result<(), Failure> {
    if let Some(path) = &tensor.file {
        let stored = stored(tensor, path, set)?;
        if bytes.len() != stored.bytes.len() {
            let text = format!("the file of `{}` has another shape", tensor.name);
            return Err(Failure::new(FailureKind::Shape, text));
        }
        bytes.copy_from_slice(&stored.bytes);
        return Ok(());
    }
    let size = tensor.element.size_bytes().unwrap_or(1) as usize;
    let (mut next, mut element) = (source(tensor, set)?, Vec::with_capacity(size));
    for target in bytes.chunks_exact_mut(size) {
        element.clear();
        next(&mut element);
        target.copy_from_slice(&element);
    }
    Ok(())
}

/// The strings of a tensor for the input set with index `set`; random ones are words of small letters.
///
/// # Errors
///
/// As [`fill`].
pub fn texts(tensor: &TensorRequest, set: usize) -> Result<Array, Failure> {
    let TensorRequest { name, element, shape, .. } = tensor;
    if let Some(path) = &tensor.file {
        return stored(tensor, path, set);
    }
    let (mut next, mut bytes) = (source(tensor, set)?, Vec::new());
    (0..tensor.elements()).for_each(|_| next(&mut bytes));
    Ok(Array { name: name.clone(), element: element.clone(), shape: shape.clone(), bytes, keys: Vec::new() })
}

/// The tokens that the cache of a sequence holds before a call of a decoder, the same whoever runs it.
pub(super) fn held_tokens(decode: &DecodeRequest, row: u64) -> Result<Vec<i64>, Failure> {
    let length = decode.call.context;
    let seeds = vec![decode.seeds.get(row as usize).copied().unwrap_or_default()];
    let values = Values::Range(0.into(), decode.vocabulary.into());
    let drawn = TensorRequest { values, ..TensorRequest::random("tokens", ElementType::Int64, &[length], seeds) };
    let mut bytes = vec![0; length as usize * 8];
    fill(&drawn, 0, &mut bytes)?;
    Ok(bytes.as_chunks().0.iter().map(|id| i64::from_le_bytes(*id)).collect())
}

/// What a file has for an input set: files that have fewer items than there are sets begin again.
fn stored(tensor: &TensorRequest, path: &Path, set: usize) -> Result<Array, Failure> {
    let TensorRequest { name, element, shape, .. } = tensor;
    let unreadable = |problem: ArrayError| Failure::new(FailureKind::Internal, problem.to_string());
    let mut reader = NpyReader::open(path).map_err(unreadable)?;
    let items = reader.head.shape.first().copied().unwrap_or(1).max(1);
    reader.skip_items(set as u64 % items).map_err(unreadable)?;
    let stored = reader.next_items(1).map_err(unreadable)?;
    let stored = Array { name: name.clone(), shape: shape.clone(), ..stored };
    let from = stored.element.clone();
    let misfit = || Failure::new(FailureKind::Shape, format!("the values of `{name}` are {from}, not {element}"));
    stored.cast(element).ok_or_else(misfit)
}

/// Appends the next element.
type Source<'a> = Box<dyn FnMut(&mut Vec<u8>) + 'a>;

/// What gives the elements of a tensor one after the other.
fn source(tensor: &TensorRequest, set: usize) -> Result<Source<'_>, Failure> {
    let element = &tensor.element;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(tensor.seeds.get(set).copied().unwrap_or_default());
    let is_float = element.is_float();
    let misfit = || {
        let reason = misfit(&tensor.values, element).unwrap_or_default();
        Failure::new(FailureKind::Shape, format!("the values of `{}`: {reason}", tensor.name))
    };
    Ok(match &tensor.values {
        Values::List(texts) => {
            let encode = |text: &String| encoded(text, element);
            let all: Vec<Vec<u8>> = texts.iter().map(encode).collect::<Option<_>>().ok_or_else(misfit)?;
            // Those of earlier sets come first.
            let before = (set as u64).saturating_mul(tensor.elements());
            let mut turn = (before % all.len().max(1) as u64) as usize;
            Box::new(move |bytes| {
                bytes.extend(all.get(turn).into_iter().flatten());
                turn = (turn + 1) % all.len().max(1);
            })
        }
        Values::Range(low, high) if is_float => {
            let (low, high) = low.as_f64().zip(high.as_f64()).ok_or_else(misfit)?;
            Box::new(move |bytes| push_float(low + random.unit() * (high - low), element, bytes))
        }
        Values::Range(low, high) => {
            let (low, high) = whole(low).zip(whole(high)).filter(|(low, high)| low < high).ok_or_else(misfit)?;
            Box::new(move |bytes| push_integer(integer_between(&mut random, low, high), element, bytes))
        }
        Values::Random if is_float => {
            Box::new(move |bytes| push_float(f64::from(random.normal() as f32), element, bytes))
        }
        Values::Random if *element == ElementType::String => Box::new(move |bytes| push_word(&mut random, bytes)),
        Values::Random => Box::new(move |bytes| push_integer(random.below(INTEGER_RANGE).into(), element, bytes)),
        Values::Zeros | Values::Dataset => constant(0, element),
        Values::Ones => constant(1, element),
    })
}

fn constant(value: u8, element: &ElementType) -> Source<'_> {
    match element {
        ElementType::String => Box::new(move |bytes| bytes.extend([b'0' + value, 0])),
        _ if element.is_float() => Box::new(move |bytes| push_float(f64::from(value), element, bytes)),
        _ => Box::new(move |bytes| push_integer(value.into(), element, bytes)),
    }
}

/// A whole number of at least `low` and less than `high`, which is larger.
fn integer_between(random: &mut Xoshiro256PlusPlus, low: i128, high: i128) -> i128 {
    // The one range of 2^64 numbers is that of a whole type.
    let drawn = match u64::try_from(high - low) {
        Ok(count) => random.below(count),
        Err(_) => random.next_u64(),
    };
    low + i128::from(drawn)
}

fn push_word(random: &mut Xoshiro256PlusPlus, bytes: &mut Vec<u8>) {
    let letters = WORD_LETTERS.0 + random.below(WORD_LETTERS.1 - WORD_LETTERS.0);
    (0..letters).for_each(|_| bytes.push(b'a' + random.below(26) as u8));
    bytes.push(0);
}

fn push_float(value: f64, element: &ElementType, bytes: &mut Vec<u8>) {
    match element {
        ElementType::Float64 => bytes.extend(value.to_le_bytes()),
        ElementType::Float16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
        ElementType::Bfloat16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
        _ => bytes.extend((value as f32).to_le_bytes()),
    }
}

fn push_integer(value: i128, element: &ElementType, bytes: &mut Vec<u8>) {
    // Little-endian two's complement: the lowest bytes are the number in every width that holds it.
    bytes.extend(&value.to_le_bytes()[..element.size_bytes().unwrap_or(1) as usize]);
}

/// The smallest and the largest number of an integer type, or of a boolean.
fn bounds(element: &ElementType) -> Option<(i128, i128)> {
    Some(match element {
        ElementType::Bool => (0, 1),
        ElementType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        ElementType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        ElementType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        ElementType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        ElementType::Uint8 => (0, u8::MAX.into()),
        ElementType::Uint16 => (0, u16::MAX.into()),
        ElementType::Uint32 => (0, u32::MAX.into()),
        ElementType::Uint64 => (0, u64::MAX.into()),
        _ => return None,
    })
}

/// The largest finite number of a floating-point type.
fn largest(element: &ElementType) -> f64 {
    match element {
        ElementType::Float64 => f64::MAX,
        ElementType::Float16 => f16::MAX.to_f64(),
        ElementType::Bfloat16 => bf16::MAX.to_f64(),
        _ => f32::MAX.into(),
    }
}

/// A number without a fraction, however it is written.
fn whole(number: &Number) -> Option<i128> {
    let float =
        || number.as_f64().filter(|value| value.fract() == 0.0 && value.abs() < 1e18).map(|value| value as i128);
    number.as_i128().or_else(float)
}

/// An element as bytes, from the text that a specification has for it.
fn encoded(text: &str, element: &ElementType) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if *element == ElementType::String {
        (!text.contains('\0')).then(|| bytes.extend(text.bytes().chain([0])))?;
    } else if element.is_float() {
        let value: f64 = text.parse().ok()?;
        (!value.is_finite() || value.abs() <= largest(element)).then(|| push_float(value, element, &mut bytes))?;
    } else {
        let value = match (element, text) {
            (ElementType::Bool, "false") => 0,
            (ElementType::Bool, "true") => 1,
            _ => text.parse().ok().or_else(|| whole(&text.parse::<Number>().ok()?))?,
        };
        let (low, high) = bounds(element)?;
        (low..=high).contains(&value).then(|| push_integer(value, element, &mut bytes))?;
    }
    Some(bytes)
}

/// Why a type cannot have these values, if so.
pub fn misfit(values: &Values, element: &ElementType) -> Option<String> {
    let limits = || match bounds(element) {
        Some((low, high)) => format!(" ({low} to {high})"),
        None => String::new(),
    };
    match values {
        Values::List(texts) => {
            let wrong = texts.iter().find(|text| encoded(text, element).is_none())?;
            Some(format!("`{wrong}` is not a valid {element}{}", limits()))
        }
        Values::Range(..) if *element == ElementType::String => {
            Some("a range has numbers, and the input takes strings; list texts, or name a file".to_owned())
        }
        Values::Range(low, high) if element.is_float() => {
            let most = largest(element);
            let wrong = [low, high].into_iter().find(|bound| bound.as_f64().is_none_or(|bound| bound.abs() > most))?;
            Some(format!("{wrong} is out of the range of {element} ({:e} to {most:e})", -most))
        }
        Values::Range(low, high) => {
            if let Some(wrong) = [low, high].into_iter().find(|bound| whole(bound).is_none()) {
                return Some(format!("{wrong} is not a whole number, and the input takes {element}"));
            }
            let (least, most) = bounds(element)?;
            let (low, high) = (whole(low)?, whole(high)? - 1);
            let wrong = [low, high].into_iter().find(|bound| !(least..=most).contains(bound))?;
            Some(format!("{wrong} is out of the range of {element}{}", limits()))
        }
        Values::Random | Values::Zeros | Values::Ones | Values::Dataset => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(element: ElementType, shape: &[u64], values: Values) -> TensorRequest {
        TensorRequest { name: "x".to_owned(), element, shape: shape.to_vec(), values, file: None, seeds: vec![1, 2] }
    }

    fn range(low: &str, high: &str) -> Values {
        Values::Range(low.parse().expect("a number"), high.parse().expect("a number"))
    }

    fn list(texts: &[&str]) -> Values {
        Values::List(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    fn filled(tensor: &TensorRequest, set: usize) -> Array {
        if tensor.element == ElementType::String {
            return texts(tensor, set).expect("it can be filled");
        }
        let (name, element, shape) = (tensor.name.clone(), tensor.element.clone(), tensor.shape.clone());
        let mut bytes = vec![0xff; tensor_bytes(tensor).expect("a size") as usize];
        fill(tensor, set, &mut bytes).expect("it can be filled");
        Array { name, element, shape, bytes, keys: Vec::new() }
    }

    #[test]
    fn random_floats_are_seeded_and_standard_normal() {
        let tensor = tensor(ElementType::Float32, &[10_000], Values::Random);
        let first = filled(&tensor, 0).bytes;
        assert_eq!(first, filled(&tensor, 0).bytes);
        assert_ne!(first, filled(&tensor, 1).bytes);
        let values: Vec<f64> =
            first.as_chunks::<4>().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|v| v * v).sum::<f64>() / values.len() as f64;
        assert!(mean.abs() < 0.05, "mean {mean}");
        assert!((square - 1.0).abs() < 0.05, "second moment {square}");
    }

    #[test]
    fn integers_stay_below_their_bound_in_every_width() {
        for element in [ElementType::Int64, ElementType::Int32, ElementType::Uint8, ElementType::Bool] {
            let size = element.size_bytes().expect("a fixed size") as usize;
            let tensor = tensor(element, &[64], Values::Random);
            let bytes = filled(&tensor, 0).bytes;
            assert_eq!(bytes.len(), 64 * size);
            assert!(bytes.chunks_exact(size).all(|value| value[0] < 2 && value[1..].iter().all(|byte| *byte == 0)));
        }
    }

    /// The first values as perfrun has drawn them since its first report: a change would end every comparison.
    #[test]
    fn seeded_values_stay_what_they_are() {
        let floats = filled(&tensor(ElementType::Float32, &[3], Values::Random), 0).numbers();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        assert_eq!(floats, Some((0..3).map(|_| f64::from(random.normal() as f32)).collect()));
        let integers = filled(&tensor(ElementType::Int64, &[9], Values::Random), 0).numbers();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        assert_eq!(integers, Some((0..9).map(|_| random.below(2) as f64).collect()));
    }

    #[test]
    fn ranges_are_half_open_in_every_type() {
        let numbers = |element, low: &str, high: &str| {
            filled(&tensor(element, &[4000], range(low, high)), 1).numbers().expect("numbers")
        };
        for element in [ElementType::Int8, ElementType::Int32, ElementType::Int64] {
            let found = numbers(element, "-2", "3");
            assert!(found.iter().all(|value| (-2.0..3.0).contains(value)));
            assert!((-2..3).all(|value| found.contains(&f64::from(value))), "each of them is drawn");
        }
        assert!(numbers(ElementType::Int64, "0", "30522").iter().any(|value| *value > 30_000.0));
        assert!(numbers(ElementType::Bool, "1", "2").iter().all(|value| *value == 1.0));
        let floats = numbers(ElementType::Float64, "-0.5", "0.5");
        assert!(floats.iter().all(|value| (-0.5..0.5).contains(value)));
        let mean = floats.iter().sum::<f64>() / 4000.0;
        assert!(mean.abs() < 0.05, "uniform: {mean}");
        let whole_type = filled(&tensor(ElementType::Uint64, &[64], range("0", "18446744073709551615")), 0);
        assert!(whole_type.numbers().expect("numbers").iter().any(|value| *value > 1e19));
    }

    #[test]
    fn lists_go_on_from_set_to_set() {
        let listed = |element, texts: &[&str], set| filled(&tensor(element, &[2], list(texts)), set);
        assert_eq!(listed(ElementType::Int64, &["1", "128"], 1).numbers(), Some(vec![1.0, 128.0]));
        assert_eq!(listed(ElementType::Float16, &["0.5"], 0).numbers(), Some(vec![0.5, 0.5]));
        assert_eq!(listed(ElementType::Bool, &["true", "0", "1"], 1).numbers(), Some(vec![1.0, 1.0]));
        let texts = listed(ElementType::String, &["a", "big world", "c"], 1);
        assert_eq!(texts.texts().collect::<Vec<_>>(), ["c", "a"]);
    }

    #[test]
    fn strings_are_words_and_are_seeded() {
        let tensor = tensor(ElementType::String, &[50], Values::Random);
        let (first, other) = (filled(&tensor, 0), filled(&tensor, 1));
        assert_eq!(first, filled(&tensor, 0));
        assert_ne!(first, other);
        let is_word = |text: &str| (3..9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase());
        assert_eq!(first.texts().filter(|text| is_word(text)).count(), 50);
    }

    #[test]
    fn what_a_type_cannot_have_is_told() {
        let problem = |values: Values, element: ElementType| misfit(&values, &element);
        assert_eq!(problem(range("0", "256"), ElementType::Uint8), None);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(problem(range("0", "257"), ElementType::Uint8), text("256 is out of the range of uint8 (0 to 255)"));
        assert_eq!(problem(range("-1", "2"), ElementType::Bool), text("-1 is out of the range of bool (0 to 1)"));
        let half = "0.5 is not a whole number, and the input takes int64";
        assert_eq!(problem(range("0", "0.5"), ElementType::Int64), text(half));
        assert_eq!(problem(range("0", "1e3"), ElementType::Int64), None);
        let large = "100000.0 is out of the range of float16 (-6.5504e4 to 6.5504e4)";
        assert_eq!(problem(range("0", "100000.0"), ElementType::Float16), text(large));
        assert!(problem(range("0", "1"), ElementType::String).is_some_and(|why| why.contains("list texts")));
        assert_eq!(
            problem(list(&["1", "x"]), ElementType::Int32).as_deref(),
            Some("`x` is not a valid int32 (-2147483648 to 2147483647)")
        );
        assert_eq!(
            problem(list(&["300"]), ElementType::Uint8).as_deref(),
            Some("`300` is not a valid uint8 (0 to 255)")
        );
        assert_eq!(problem(list(&["anything"]), ElementType::String), None);
        assert!(fill(&tensor(ElementType::Uint8, &[1], list(&["300"])), 0, &mut [0]).is_err());
    }

    #[test]
    fn the_pool_shrinks_before_it_passes_its_limit() {
        let small = tensor(ElementType::Float32, &[16], Values::Random);
        let large = tensor(ElementType::Float32, &[8 << 20], Values::Random);
        assert_eq!(sets_within_limit(&[small], 8), Ok(8));
        assert_eq!(sets_within_limit(std::slice::from_ref(&large), 8), Ok(2));
        assert_eq!(sets_within_limit(&[tensor(ElementType::Float32, &[1 << 30], Values::Random)], 8), Ok(1));
        assert!(sets_within_limit(&[tensor(ElementType::Float32, &[u64::MAX, 2], Values::Random)], 8).is_err());
        assert_eq!(sets_within_limit(&[], 8), Ok(8));
    }
}
