//! Arithmetic on the few elements that shapes are computed from.
//!
//! Input: a node whose inputs are known in part. Output: its elements, those that are known. Deliberately absent: large
//! tensors (see `value`), and operators that move elements without changing them (`layout`, `select`).

use super::Value;
use super::shape::{Shape, broadcast_sources, product};
use super::site::Site;
use super::value::MOST_INTEGERS;
use crate::onnx::ElementType;

/// The output of an operator on inputs that are stretched to `shape`.
pub(super) fn stretched(site: &Site<'_>, shape: Shape) -> Value {
    let value = Value::of_shape(shape.clone());
    let inputs: Option<Vec<&Value>> = (0..site.input_count()).map(|index| site.value(index)).collect();
    let count = product(&shape).filter(|elements| *elements <= MOST_INTEGERS);
    let (Some(inputs), Some(sizes), Some(count)) = (inputs, value.sizes(), count) else { return value };
    if !inputs.iter().any(|input| input.has_content()) {
        return value;
    }
    let operands: Option<Vec<Operand<'_>>> = inputs.iter().map(|input| Operand::of(input, &sizes)).collect();
    let Some(operands) = operands else { return value };
    let count = count as usize;
    let operator = site.node.op_type();
    if operator == "Where" {
        return choose(value, &operands, count);
    }
    let is_float = operands.iter().any(|operand| operand.value.floats.is_some());
    if is_float {
        let at = |index: usize| operands.iter().map(|operand| operand.float(index)).collect::<Option<Vec<f64>>>();
        if let Some(compare) = comparison(operator) {
            let elements = (0..count).map(|index| at(index).and_then(|numbers| compare_floats(compare, &numbers)));
            return value.with_integers(Some(elements.collect()));
        }
        let elements = (0..count).map(|index| at(index).and_then(|numbers| on_floats(operator, &numbers)));
        return value.clone().with_floats(Some(elements.collect()));
    }
    let at = |index: usize| operands.iter().map(|operand| operand.integer(index)).collect::<Option<Vec<i64>>>();
    let is_modulo_c = site.is_set("fmod");
    let elements = (0..count).map(|index| at(index).and_then(|numbers| on_integers(operator, &numbers, is_modulo_c)));
    value.with_integers(Some(elements.collect()))
}

/// An input with the place of each of its elements in the output.
struct Operand<'a> {
    value: &'a Value,
    sources: Vec<usize>,
}

impl<'a> Operand<'a> {
    fn of(value: &'a Value, sizes: &[u64]) -> Option<Self> {
        Some(Operand { value, sources: broadcast_sources(&value.sizes()?, sizes)? })
    }

    fn integer(&self, index: usize) -> Option<i64> {
        self.value.integers.as_ref()?.get(*self.sources.get(index)?).copied().flatten()
    }

    fn float(&self, index: usize) -> Option<f64> {
        self.value.floats.as_ref()?.get(*self.sources.get(index)?).copied().flatten()
    }
}

/// `Where`: condition, then, else. An element is known where the chosen one is, or where both are the same.
fn choose(value: Value, operands: &[Operand<'_>], count: usize) -> Value {
    let [condition, then, otherwise] = operands else { return value };
    let chosen = |index: usize| condition.integer(index).map(|truth| if truth != 0 { then } else { otherwise });
    let integers = (0..count).map(|index| match chosen(index) {
        Some(operand) => operand.integer(index),
        None => then.integer(index).filter(|integer| otherwise.integer(index) == Some(*integer)),
    });
    let floats = (0..count).map(|index| chosen(index)?.float(index));
    value.with_integers(Some(integers.collect())).with_floats(Some(floats.collect()))
}

fn on_integers(operator: &str, numbers: &[i64], is_modulo_c: bool) -> Option<i64> {
    if let (Some(compare), [one, two]) = (comparison(operator), numbers) {
        return Some(i64::from(compare.holds(one.cmp(two))));
    }
    match (operator, numbers) {
        ("Add" | "Sum", _) => numbers.iter().try_fold(0_i64, |sum, number| sum.checked_add(*number)),
        ("Sub", [one, two]) => one.checked_sub(*two),
        ("Mul", [one, two]) => one.checked_mul(*two),
        ("Div", [one, two]) => one.checked_div(*two),
        ("Mod", [one, two]) if is_modulo_c => one.checked_rem(*two),
        // The sign of the divisor, as in Python.
        ("Mod", [one, two]) => {
            let rest = one.checked_rem(*two)?;
            Some(if rest != 0 && (rest < 0) != (*two < 0) { rest + two } else { rest })
        }
        ("Pow", [one, two]) => one.checked_pow(u32::try_from(*two).ok()?),
        ("Max", _) => numbers.iter().copied().max(),
        ("Min", _) => numbers.iter().copied().min(),
        ("And", [one, two]) => Some(i64::from(*one != 0 && *two != 0)),
        ("Or", [one, two]) => Some(i64::from(*one != 0 || *two != 0)),
        ("Xor", [one, two]) => Some(i64::from((*one != 0) != (*two != 0))),
        _ => None,
    }
}

fn on_floats(operator: &str, numbers: &[f64]) -> Option<f64> {
    match (operator, numbers) {
        ("Add" | "Sum", _) => Some(numbers.iter().sum()),
        ("Sub", [one, two]) => Some(one - two),
        ("Mul", [one, two]) => Some(one * two),
        ("Div", [one, two]) => Some(one / two),
        ("Pow", [one, two]) => Some(one.powf(*two)),
        ("Max", _) => numbers.iter().copied().reduce(f64::max),
        ("Min", _) => numbers.iter().copied().reduce(f64::min),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Comparison {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

fn comparison(operator: &str) -> Option<Comparison> {
    match operator {
        "Equal" => Some(Comparison::Equal),
        "Less" => Some(Comparison::Less),
        "LessOrEqual" => Some(Comparison::LessOrEqual),
        "Greater" => Some(Comparison::Greater),
        "GreaterOrEqual" => Some(Comparison::GreaterOrEqual),
        _ => None,
    }
}

fn compare_floats(compare: Comparison, numbers: &[f64]) -> Option<i64> {
    let [one, two] = numbers else { return None };
    one.partial_cmp(two).map(|order| i64::from(compare.holds(order)))
}

/// The output of an operator that changes every element of its first input for itself, with its elements; `None` where
/// they cannot be computed.
pub(super) fn each(site: &Site<'_>, value: &Value) -> Option<Value> {
    if !value.has_content() {
        return None;
    }
    let plain = Value::of(None, value.shape.clone());
    let operator = site.node.op_type();
    match operator {
        "Identity" => Some(value.clone()),
        "Cast" => Some(cast(site, value)),
        _ if value.integers.is_some() => {
            let elements = value.integers.iter().flatten().map(|integer| unary_integer(operator, (*integer)?));
            Some(plain.with_integers(Some(elements.collect())))
        }
        _ => {
            let elements = value.floats.iter().flatten().map(|float| unary_float(operator, (*float)?));
            Some(plain.with_floats(Some(elements.collect())))
        }
    }
}

fn unary_integer(operator: &str, integer: i64) -> Option<i64> {
    match operator {
        "Neg" => integer.checked_neg(),
        "Abs" => integer.checked_abs(),
        "Sign" => Some(integer.signum()),
        "Not" => Some(i64::from(integer == 0)),
        _ => None,
    }
}

fn unary_float(operator: &str, float: f64) -> Option<f64> {
    match operator {
        "Neg" => Some(-float),
        "Abs" => Some(float.abs()),
        "Floor" => Some(float.floor()),
        "Ceil" => Some(float.ceil()),
        "Round" => Some(float.round_ties_even()),
        "Sqrt" => Some(float.sqrt()),
        "Reciprocal" => Some(float.recip()),
        _ => None,
    }
}

/// `Cast` between integers, booleans and floats; narrow integers may wrap, and then nothing is known.
fn cast(site: &Site<'_>, value: &Value) -> Value {
    let plain = Value::of(None, value.shape.clone());
    let Some(to) = site.node.int("to").and_then(|code| i32::try_from(code).ok()).map(ElementType::from_code) else {
        return plain;
    };
    let integers: Vec<Option<i64>> = match (&value.integers, &value.floats) {
        (Some(integers), _) => integers.clone(),
        (None, Some(floats)) if to == ElementType::Bool => {
            floats.iter().map(|float| Some(i64::from((*float)? != 0.0))).collect()
        }
        (None, Some(floats)) if !to.is_float() => floats.iter().map(|float| truncate((*float)?)).collect(),
        (None, Some(_)) => return plain.with_floats(value.floats.clone()),
        (None, None) => return plain,
    };
    if to.is_float() {
        return plain.with_floats(Some(integers.iter().map(|integer| Some((*integer)? as f64)).collect()));
    }
    let fits = |integer: i64| match to {
        ElementType::Bool => Some(i64::from(integer != 0)),
        ElementType::Int64 => Some(integer),
        ElementType::Int32 => i32::try_from(integer).ok().map(i64::from),
        ElementType::Uint8 => u8::try_from(integer).ok().map(i64::from),
        _ => i8::try_from(integer).ok().filter(|small| *small >= 0).map(i64::from),
    };
    plain.with_integers(Some(integers.iter().map(|integer| fits((*integer)?)).collect()))
}

/// Towards zero; `None` beyond what an int64 holds.
fn truncate(float: f64) -> Option<i64> {
    // 2^63 as a float is exact, and the largest int64 is just below it.
    (float.abs() < 9_223_372_036_854_775_808.0).then_some(float.trunc() as i64)
}

#[cfg(test)]
mod tests {
    use crate::onnx::infer::case::case;
    use crate::onnx::proto::TensorProto;

    #[test]
    fn integers_are_computed_as_a_runtime_does() {
        let on = |operator: &str, one: &[i64], two: &[i64]| case(operator, "").list(one).list(two);
        on("Add", &[1, 2], &[10]).gives("int64 [2] = 11, 12");
        on("Div", &[-7, 7], &[2]).gives("int64 [2] = -3, 3");
        on("Div", &[7], &[0]).gives("int64 [1]");
        on("Mod", &[-7, 7], &[3]).gives("int64 [2] = 2, 1");
        on("Mod", &[-7, 7], &[3]).int("fmod", 1).gives("int64 [2] = -1, 1");
        on("Mul", &[i64::MAX, 1], &[2]).gives("int64 [2] = ?, 2");
        on("Max", &[1, 5], &[3]).gives("int64 [2] = 3, 5");
        on("Equal", &[-1, 5], &[-1]).gives("bool [2] = 1, 0");
        case("Add", "a:int64[2000] b:int64[2000]").gives("int64 [2000]");
    }

    #[test]
    fn where_is_known_where_the_choice_is() {
        let choose = |condition: &[i64]| case("Where", "").list(condition).list(&[1, 2]).list(&[3, 4]);
        choose(&[1, 0]).gives("int64 [2] = 1, 4");
        case("Where", "c:bool[2]").list(&[1, 2]).list(&[1, 4]).gives("int64 [2] = 1, ?");
    }

    #[test]
    fn casts_truncate_and_what_does_not_fit_is_unknown() {
        case("Cast", "").floats(&[2.9, -2.9, 1e30]).int("to", 7).gives("int64 [3] = 2, -2, ?");
        case("Cast", "").list(&[3, 1 << 40]).int("to", 6).gives("int32 [2] = 3, ?");
        case("Cast", "").list(&[3, 0]).int("to", 9).gives("bool [2] = 1, 0");
        case("Cast", "").list(&[3]).int("to", 1).gives("float32 [1] = 3");
        case("Floor", "").weight(TensorProto::of_floats("", &[], &[2.5])).gives("float32 [] = 2");
        case("Not", "").list(&[0, 4]).gives("bool [2] = 1, 0");
    }
}
