//! Arithmetic on the few elements that shapes are computed from.
//!
//! Input: a node whose inputs are known in part. Output: its elements, those that are known. Deliberately absent: large
//! tensors (see `value`), and operators that move elements without changing them (`layout`, `select`).

use std::cmp::Ordering;

use super::Value;
use super::shape::{Shape, product};
use super::site::Site;
use super::source_indices::SourceIndices;
use super::value::MOST_INTEGERS;
use crate::ElementType;
use crate::proto::NodeProto;

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
    let (count, node) = (count as usize, site.node);
    if node.op_type() == "Where" {
        return choose(value, &operands, count);
    }
    if operands.iter().any(|operand| operand.value.floats.is_some()) {
        let at = |index: usize| operands.iter().map(move |operand| operand.float(index));
        if let Some(compare) = comparison(node.op_type()) {
            let elements = (0..count).map(|index| {
                let numbers: Vec<f64> = at(index).collect::<Option<_>>()?;
                let [left, right] = numbers[..] else { return None };
                left.partial_cmp(&right).map(|order| i64::from(compare(order)))
            });
            return value.with_integers(Some(elements.collect()));
        }
        let Some(operation) = on_floats(node.op_type()) else { return value };
        let elements = (0..count).map(|index| in_turn(at(index), |left, right| Some(operation(left, right))));
        return value.clone().with_floats(Some(elements.collect()));
    }
    let Some(operation) = on_integers(node) else { return value };
    let at = |index: usize| operands.iter().map(move |operand| operand.integer(index));
    value.with_integers(Some((0..count).map(|index| in_turn(at(index), operation)).collect()))
}

/// The operation on the first two numbers, then on that result and the third number, and so on.
fn in_turn<T>(mut numbers: impl Iterator<Item = Option<T>>, operation: impl Fn(T, T) -> Option<T>) -> Option<T> {
    let first = numbers.next()??;
    numbers.try_fold(first, |sum, number| operation(sum, number?))
}

/// An input with the index of the element that each output element reads.
struct Operand<'a> {
    value: &'a Value,
    source: Vec<Option<usize>>,
}

impl<'a> Operand<'a> {
    fn of(value: &'a Value, sizes: &[u64]) -> Option<Self> {
        Some(Operand { value, source: SourceIndices::broadcast(&value.sizes()?, sizes)?.each().collect() })
    }

    fn integer(&self, index: usize) -> Option<i64> {
        self.value.integers.as_ref()?.get((*self.source.get(index)?)?).copied().flatten()
    }

    fn float(&self, index: usize) -> Option<f64> {
        self.value.floats.as_ref()?.get((*self.source.get(index)?)?).copied().flatten()
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

/// What a node does with two integers; `None` where it has no such arithmetic. Beyond 64 bits there is no result.
pub(super) fn on_integers(node: &NodeProto) -> Option<fn(i64, i64) -> Option<i64>> {
    fn truth(holds: bool) -> Option<i64> {
        Some(i64::from(holds))
    }
    Some(match node.op_type() {
        "Add" | "Sum" => i64::checked_add,
        "Sub" => i64::checked_sub,
        "Mul" => i64::checked_mul,
        "Div" => i64::checked_div,
        "Mod" if node.int("fmod").unwrap_or(0) != 0 => i64::checked_rem,
        // The sign of the divisor, as in Python.
        "Mod" => |left, right| {
            let rest = left.checked_rem(right)?;
            Some(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest })
        },
        "Pow" => |left, right| left.checked_pow(u32::try_from(right).ok()?),
        "Max" => |left, right| Some(left.max(right)),
        "Min" => |left, right| Some(left.min(right)),
        "And" => |left, right| truth(left != 0 && right != 0),
        "Or" => |left, right| truth(left != 0 || right != 0),
        "Xor" => |left, right| truth((left != 0) != (right != 0)),
        "Equal" => |left, right| truth(left == right),
        "Less" => |left, right| truth(left < right),
        "LessOrEqual" => |left, right| truth(left <= right),
        "Greater" => |left, right| truth(left > right),
        "GreaterOrEqual" => |left, right| truth(left >= right),
        _ => return None,
    })
}

/// The same for floating-point numbers. Rounded to float32 or less, a result is what arithmetic in that type gives.
pub(super) fn on_floats(operator: &str) -> Option<fn(f64, f64) -> f64> {
    Some(match operator {
        "Add" | "Sum" => |left, right| left + right,
        "Sub" => |left, right| left - right,
        "Mul" => |left, right| left * right,
        "Div" => |left, right| left / right,
        "Pow" => f64::powf,
        "Max" => |left, right| if left.is_nan() || left > right { left } else { right },
        "Min" => |left, right| if left.is_nan() || left < right { left } else { right },
        _ => return None,
    })
}

/// Whether a comparison holds for numbers of that order.
fn comparison(operator: &str) -> Option<fn(Ordering) -> bool> {
    Some(match operator {
        "Equal" => Ordering::is_eq,
        "Less" => Ordering::is_lt,
        "LessOrEqual" => Ordering::is_le,
        "Greater" => Ordering::is_gt,
        "GreaterOrEqual" => Ordering::is_ge,
        _ => return None,
    })
}

/// The output of an operator that changes every element of its first input for itself, with its elements; `None` where
/// they cannot be computed.
pub(super) fn each(site: &Site<'_>, value: &Value) -> Option<Value> {
    if !value.has_content() {
        return None;
    }
    let plain = Value::of(None, value.shape.clone());
    let operator = site.node.op_type();
    if operator == "Cast" {
        return Some(cast(site, value));
    }
    if let Some(integers) = &value.integers {
        let operation = on_integer(operator)?;
        return Some(plain.with_integers(Some(integers.iter().map(|integer| operation((*integer)?)).collect())));
    }
    let operation = on_float(operator)?;
    let floats = value.floats.iter().flatten().map(|float| Some(operation((*float)?)));
    Some(plain.with_floats(Some(floats.collect())))
}

/// What an operator does with one integer.
pub(super) fn on_integer(operator: &str) -> Option<fn(i64) -> Option<i64>> {
    Some(match operator {
        "Neg" => i64::checked_neg,
        "Abs" => i64::checked_abs,
        "Sign" => |integer| Some(integer.signum()),
        "Not" => |integer| Some(i64::from(integer == 0)),
        _ => return None,
    })
}

/// What an operator does with one floating-point number.
pub(super) fn on_float(operator: &str) -> Option<fn(f64) -> f64> {
    Some(match operator {
        "Neg" => |float| -float,
        "Abs" => f64::abs,
        "Floor" => f64::floor,
        "Ceil" => f64::ceil,
        "Round" => f64::round_ties_even,
        "Sqrt" => f64::sqrt,
        "Reciprocal" => f64::recip,
        "Exp" => f64::exp,
        "Log" => f64::ln,
        "Sin" => f64::sin,
        "Cos" => f64::cos,
        "Tanh" => f64::tanh,
        "Sigmoid" => |float| 1.0 / (1.0 + (-float).exp()),
        "Softplus" => |float| float.exp().ln_1p(),
        "Relu" => |float| float.max(0.0),
        _ => return None,
    })
}

/// `Cast` between integers, booleans and floats; narrow integers may wrap, and then nothing is known.
fn cast(site: &Site<'_>, value: &Value) -> Value {
    let plain = Value::of(None, value.shape.clone());
    let Some(to) = site.node.int("to").and_then(|code| i32::try_from(code).ok()).map(ElementType::from_code) else {
        return plain;
    };
    match (&value.integers, &value.floats) {
        (None, Some(floats)) if to.is_float() => plain.with_floats(Some(floats.clone())),
        (Some(integers), _) if to.is_float() => {
            plain.with_floats(Some(integers.iter().map(|integer| Some((*integer)? as f64)).collect()))
        }
        (Some(integers), _) => {
            plain.with_integers(Some(integers.iter().map(|integer| fitting(&to, (*integer)?)).collect()))
        }
        (None, Some(floats)) => {
            plain.with_integers(Some(floats.iter().map(|float| truncated(&to, (*float)?)).collect()))
        }
        (None, None) => plain,
    }
}

/// A floating-point number cast to an integer type: towards zero; `None` beyond what that holds.
pub(super) fn truncated(to: &ElementType, float: f64) -> Option<i64> {
    if *to == ElementType::Bool {
        return Some(i64::from(float != 0.0));
    }
    // 2^63 as a float is exact, and the largest int64 is just below it.
    let is_within = float.abs() < 9_223_372_036_854_775_808.0;
    is_within.then_some(float.trunc() as i64).and_then(|integer| fitting(to, integer))
}

/// An integer cast to another integer type; `None` where it wraps.
pub(super) fn fitting(to: &ElementType, integer: i64) -> Option<i64> {
    let is_within = match to {
        ElementType::Bool => return Some(i64::from(integer != 0)),
        ElementType::Int64 => true,
        ElementType::Int32 => i32::try_from(integer).is_ok(),
        ElementType::Uint32 => u32::try_from(integer).is_ok(),
        ElementType::Int16 => i16::try_from(integer).is_ok(),
        ElementType::Uint16 => u16::try_from(integer).is_ok(),
        ElementType::Int8 => i8::try_from(integer).is_ok(),
        ElementType::Uint8 => u8::try_from(integer).is_ok(),
        _ => false,
    };
    is_within.then_some(integer)
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;
    use crate::proto::TensorProto;

    #[test]
    fn integers_are_computed_as_a_runtime_does() {
        let on = |operator: &str, left: &[i64], right: &[i64]| case(operator, "").list(left).list(right);
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
