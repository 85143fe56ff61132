#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::proto::AttributeProto;

const ROOM: u64 = 1 << 20;

fn floats(shape: &[u64], values: &[f32]) -> TensorProto {
    TensorProto::of_floats("", shape, values)
}

fn integers(values: &[i64]) -> TensorProto {
    TensorProto::of_integers("", &[values.len() as u64], values)
}

fn made(operator: &str, attributes: Vec<AttributeProto>, inputs: &[TensorProto]) -> Option<TensorProto> {
    let names = vec!["i"; inputs.len()];
    let node = NodeProto::of(operator, "", &names, &["o"], attributes);
    let inputs: Vec<Option<&TensorProto>> = inputs.iter().map(Some).collect();
    match evaluate(&node, 17, &inputs, ROOM).unwrap()?.swap_remove(0) {
        Evaluated::Made(tensor) => Some(*tensor),
        Evaluated::Same(shape) => {
            let dims = shape.iter().map(|size| *size as i64).collect();
            Some(TensorProto { dims, ..inputs[0]?.clone() })
        }
    }
}

#[track_caller]
fn check(made: Option<TensorProto>, shape: &[i64], values: &[f32]) {
    let made = made.unwrap();
    assert_eq!((made.dims.as_slice(), made.floats().unwrap()), (shape, values.to_vec()));
}

#[test]
fn elements_are_moved_whatever_their_type() {
    let weight = floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let of_weight =
        |operator: &str, rest: &[TensorProto]| made(operator, vec![], &[&[weight.clone()][..], rest].concat());
    check(of_weight("Transpose", &[]), &[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    check(
        of_weight("Slice", &[integers(&[-1]), integers(&[-9]), integers(&[1]), integers(&[-2])]),
        &[2, 2],
        &[3.0, 1.0, 6.0, 4.0],
    );
    check(of_weight("Gather", &[integers(&[1, -2, 1])]), &[3, 3], &[4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(of_weight("Unsqueeze", &[integers(&[1])]), &[2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(
        of_weight("Tile", &[integers(&[1, 2])]),
        &[2, 6],
        &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 4.0, 5.0, 6.0],
    );
    check(made("Expand", vec![], &[floats(&[2, 1], &[7.0, 8.0]), integers(&[1, 2])]), &[2, 2], &[7.0, 7.0, 8.0, 8.0]);
    let bytes = TensorProto::of_bytes("", &ElementType::Int8, &[3], vec![1, 2, 3]);
    let turned = made("Gather", vec![], &[bytes, integers(&[2, 0])]).unwrap();
    assert_eq!(turned.integers().unwrap(), [3, 1]);
    let joined =
        made("Concat", vec![AttributeProto::of_int("axis", 1)], &[weight.clone(), floats(&[2, 1], &[7.0, 8.0])]);
    check(joined, &[2, 4], &[1.0, 2.0, 3.0, 7.0, 4.0, 5.0, 6.0, 8.0]);
}

#[test]
fn elements_are_padded_and_bounded() {
    let weight = floats(&[1, 2], &[1.0, 2.0]);
    let padded = made("Pad", vec![], &[weight.clone(), integers(&[1, 0, 0, 1]), floats(&[], &[9.0])]);
    check(padded, &[2, 3], &[9.0, 9.0, 9.0, 1.0, 2.0, 9.0]);
    let cut = made("Pad", vec![], &[weight.clone(), integers(&[0, -1, 0, 1])]);
    check(cut, &[1, 2], &[2.0, 0.0]);
    let reflected = vec![AttributeProto::of_text("mode", "reflect")];
    assert_eq!(made("Pad", reflected, &[weight.clone(), integers(&[0, 1, 0, 0])]), None);
    check(made("Clip", vec![], &[weight.clone(), floats(&[], &[1.5])]), &[1, 2], &[1.5, 2.0]);
    check(made("Clip", vec![AttributeProto::of_float("max", 1.5)], &[weight]), &[1, 2], &[1.0, 1.5]);
}

#[test]
fn a_large_index_is_followed() {
    let indices: Vec<i64> = (0..3000).rev().collect();
    let values: Vec<f32> = (0..3000).map(|value| value as f32).collect();
    let turned = made("Gather", vec![], &[floats(&[3000], &values), integers(&indices)]).unwrap();
    assert_eq!(turned.floats().unwrap()[..2], [2999.0, 2998.0]);
}

#[test]
fn results_are_rounded_to_their_type_after_every_operation() {
    let half = |value: f32| half::f16::from_f32(value).to_le_bytes().to_vec();
    let fp16 = |value: f32| TensorProto::of_bytes("", &ElementType::Float16, &[1], half(value));
    // 2048 + 1 is a tie between 2048 and 2050, and 2048 is even: three of them in turn stay there.
    check(made("Sum", vec![], &[fp16(2048.0), fp16(1.0), fp16(1.0)]), &[1], &[2048.0]);
    check(made("Cast", vec![AttributeProto::of_int("to", 1)], &[fp16(0.1)]), &[1], &[0.099_975_586]);
    let (one, third) = (floats(&[1], &[1.0]), floats(&[1], &[3.0]));
    check(made("Div", vec![], &[one.clone(), third]), &[1], &[1.0_f32 / 3.0]);
    let scaled = made("Mul", vec![], &[floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]), floats(&[2, 1], &[0.5, 2.0])]);
    check(scaled, &[2, 2], &[0.5, 1.0, 6.0, 8.0]);
    let large = made("Cast", vec![AttributeProto::of_int("to", 1)], &[integers(&[(1 << 24) + 1])]);
    check(large, &[1], &[16_777_216.0]);
    let wraps = made("Cast", vec![AttributeProto::of_int("to", 3)], &[integers(&[300])]);
    assert_eq!(wraps, None);
}

#[test]
fn reductions_products_and_levels_are_computed() {
    let weight = floats(&[2, 2], &[3.0, 4.0, 6.0, 8.0]);
    let norm = made("ReduceL2", vec![AttributeProto::of_ints("axes", &[1])], std::slice::from_ref(&weight));
    check(norm, &[2, 1], &[5.0, 10.0]);
    let mean = vec![AttributeProto::of_ints("axes", &[0]), AttributeProto::of_int("keepdims", 0)];
    check(made("ReduceMean", mean, std::slice::from_ref(&weight)), &[2], &[4.5, 6.0]);
    check(made("MatMul", vec![], &[floats(&[1, 2], &[1.0, 10.0]), weight.clone()]), &[1, 2], &[63.0, 84.0]);
    let levels = TensorProto::of_bytes("", &ElementType::Int8, &[2, 2], vec![1, 2, 255, 4]);
    let scales = floats(&[2], &[0.5, 2.0]);
    let zeros = TensorProto::of_bytes("", &ElementType::Int8, &[2], vec![0, 1]);
    check(made("DequantizeLinear", vec![], &[levels, scales.clone(), zeros.clone()]), &[2, 2], &[0.5, 2.0, -0.5, 6.0]);
    let quantized = made("QuantizeLinear", vec![], &[weight, scales, zeros]).unwrap();
    assert_eq!(quantized.integers().unwrap(), [6, 3, 12, 5]);
}

#[test]
fn what_is_too_large_or_unknown_stays_a_node() {
    let shape = integers(&[1 << 30, 1 << 30]);
    assert!(made("ConstantOfShape", vec![], std::slice::from_ref(&shape)).is_none());
    assert!(made("Expand", vec![], &[floats(&[1], &[1.0]), shape]).is_none());
    assert!(made("Tile", vec![], &[floats(&[1], &[1.0]), integers(&[i64::MAX])]).is_none());
    assert!(made("Conv", vec![], &[floats(&[1, 1, 1], &[1.0]), floats(&[1, 1, 1], &[1.0])]).is_none());
    assert!(made("RandomNormal", vec![AttributeProto::of_ints("shape", &[2])], &[]).is_none());
    let damaged = TensorProto { dims: vec![3], ..floats(&[2], &[1.0, 2.0]) };
    let node = NodeProto::of("Neg", "", &["i"], &["o"], vec![]);
    assert!(evaluate(&node, 17, &[Some(&damaged)], ROOM).is_err());
}

fn tensor() -> impl Strategy<Value = TensorProto> {
    let shape = prop::collection::vec(0_u64..4, 0..4);
    (shape, 0_u8..5, prop::collection::vec(-4_i64..9, 27)).prop_map(|(shape, kind, numbers)| {
        let numbers = &numbers[..shape.iter().product::<u64>() as usize];
        let bytes = || numbers.iter().map(|number| *number as u8).collect();
        match kind {
            0 => TensorProto::of_integers("", &shape, numbers),
            1 => TensorProto::of_bytes("", &ElementType::Int8, &shape, bytes()),
            2 => TensorProto::of_bytes("", &ElementType::Bool, &shape, bytes()),
            _ => floats(&shape, &numbers.iter().map(|number| *number as f32).collect::<Vec<_>>()),
        }
    })
}

proptest! {
    #[test]
    fn a_node_on_any_tensors_is_computed_or_left(
        operator in any::<prop::sample::Index>(),
        inputs in prop::collection::vec(tensor(), 0..5),
        attributes in prop::collection::vec((0..ATTRIBUTES.len(), prop::collection::vec(-4_i64..9, 1..4)), 0..3),
        outputs in 1_usize..3,
        opset in 1_i64..24,
    ) {
        let names = crate::operators::operator_names(opset);
        let attributes = attributes.into_iter().map(|(name, numbers)| {
            let mut attribute = AttributeProto::of_ints(ATTRIBUTES[name], &numbers);
            attribute.i = numbers.first().copied();
            attribute
        });
        let given = vec!["i"; inputs.len()];
        let made = vec!["o"; outputs];
        let node = NodeProto::of(names[operator.index(names.len())], "", &given, &made, attributes.collect());
        let inputs: Vec<Option<&TensorProto>> = inputs.iter().map(Some).collect();
        for output in evaluate(&node, opset, &inputs, ROOM).unwrap().into_iter().flatten() {
            if let Evaluated::Made(tensor) = output {
                prop_assert!(tensor.bytes().is_ok_and(|bytes| bytes.len() as u64 <= ROOM));
            }
        }
    }
}

/// Names of attributes that rules read.
const ATTRIBUTES: [&str; 12] =
    ["axis", "axes", "perm", "keepdims", "to", "split", "starts", "ends", "shape", "pads", "block_size", "fmod"];
