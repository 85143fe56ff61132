//! Which shapes points give to signatures, and why some give none.

use proptest::prelude::*;

use super::*;
use crate::sample::{self, check, check_problem, point, resolve, signature};

#[test]
fn dimensions_are_set_by_name() {
    let dimensions = [("batch", 2), ("sequence", 128)];
    let expected = "[2, 128] [2, 128] | the dimension `batch` = 2";
    check("ids[batch,sequence] mask[batch,sequence]", &dimensions, &[], expected);
    check("past[batch,past]", &[("batch", 1), ("past", 0)], &[], "[1, 0] | the dimension `batch` = 1");
}

#[test]
fn names_have_the_sizes_that_they_stand_for() {
    let declared = signature("a[N,s] b[N,s,3]", "");
    let sizes = |first: &[u64]| dimension_sizes(&declared.inputs, [("a", first), ("b", &[2, 7, 3])].into_iter());
    assert_eq!(sizes(&[2, 7]), BTreeMap::from([("N".to_owned(), 2), ("s".to_owned(), 7)]));
    assert_eq!(sizes(&[2, 5]), BTreeMap::from([("N".to_owned(), 2)]));
}

#[test]
fn unknown_dimensions_name_the_nearest() {
    let reason = "no input of the model has a dimension `sequnce`";
    check_problem("x[N,sequence]", &[("batch", 1), ("sequnce", 8)], &[], reason, "write `sequence`");
    let reason = "no input of the model has a dimension `width`";
    check_problem("x[N,C]", &[("width", 8)], &[], reason, "dimensions that can be set by name: `batch`, `C`, `N`");
    check_problem(
        "x[1,3]",
        &[("width", 8)],
        &[],
        reason,
        "leave it out, or give whole shapes: no free dimension of the file has a name",
    );
}

#[test]
fn everything_without_a_size_is_named() {
    check_problem(
        "ids[N,sequence] mask[N,sequence]",
        &[("batch", 1)],
        &[],
        "`sequence` (dimension 1 of `ids`), `sequence` (dimension 1 of `mask`) have no size",
        "set them, for example `inputs: { sequence: 128 }`",
    );
    check_problem("x[?,3]", &[], &[], "dimension 0 of `x` has no size", "set them, for example `inputs: { batch: 1 }`");
    check_problem(
        "x[N,3,?,?]",
        &[],
        &[],
        "`N` (dimension 0 of `x`), dimension 2 of `x`, dimension 3 of `x` have no size",
        "give whole shapes, for example `inputs: [{ name: b1, shapes: { x: [1, 3, 128, 128] } }]`",
    );
    check_problem(
        "x[...]",
        &[],
        &[],
        "the file does not say how many dimensions these inputs have: `x`",
        "give whole shapes, for example `inputs: [{ name: b1, shapes: { x: [1, 128] } }]`",
    );
}

#[test]
fn names_that_are_arithmetic_have_the_value_of_it() {
    let check = |inputs: &str, dimensions: &[(&str, u64)], expected: &str| check(inputs, dimensions, &[], expected);
    check("mask[b,past+1] past[b,past]", &[("batch", 2), ("past", 7)], "[2, 8] [2, 7] | the dimension `b` = 2");
    check(
        "mask[b,past+1] past[b,past]",
        &[("batch", 2), ("past", 7), ("past+1", 9)],
        "[2, 9] [2, 7] | the dimension `b` = 2",
    );
    check(
        "x[batch_size*heads,s] y[s]",
        &[("batch", 2), ("heads", 4), ("s", 3)],
        "[8, 3] [3] | the dimension `batch_size` = 2",
    );
    check("y[s0,3] x[2*s0,3]", &[("batch", 4)], "[4, 3] [8, 3] | the leading dimension = 4");
    check("x[N,(enc//2)+1]", &[("batch", 1), ("enc", 9)], "[1, 5] | the dimension `N` = 1");
    check("x[N,image-height]", &[("batch", 1), ("image-height", 9)], "[1, 9] | the dimension `N` = 1");
    // Whole shapes say what all other sizes are computed from.
    sample::check("mask[N,past+1] past[N,past]", &[], &[("past", &[1, 5])], "[1, 6] [1, 5] | the dimension `N` = 1");
}

#[test]
fn of_what_is_computed_the_parts_are_asked_for() {
    check_problem(
        "mask[N,past+s] past[N,past]",
        &[("batch", 1)],
        &[],
        "`past+s` (dimension 1 of `mask`), `past` (dimension 1 of `past`) have no size",
        "set them, for example `inputs: { past: 128, s: 128 }`",
    );
    check_problem(
        "x[?,?,enc//2]",
        &[],
        &[],
        "dimension 0 of `x`, dimension 1 of `x`, `enc//2` (dimension 2 of `x`) have no size",
        "give whole shapes, for example `inputs: [{ name: b1, shapes: { x: [1, 128, 64] } }]`",
    );
    check_problem(
        "x[N,enc/2]",
        &[("batch", 1), ("enc", 7)],
        &[],
        "`enc/2` (dimension 1 of `x`) would be 3.5 with `enc` = 7",
        "give `enc` another size, or set `enc/2`",
    );
}

#[test]
fn shapes_win_and_must_agree_with_the_file() {
    check("x[N,3,?,?]", &[], &[("x", &[16, 3, 9, 9])], "[16, 3, 9, 9] | the dimension `N` = 16");
    check("x[...]", &[], &[("x", &[2, 2])], "[2, 2] | the leading dimension = 2");
    check("a[N,s] b[N,s]", &[("s", 7)], &[("a", &[2, 5])], "[2, 5] [2, 7] | the dimension `N` = 2");
    check_problem("data[N]", &[], &[("dat", &[1])], "the model has no input `dat`", "write `data`");
    let reason = "the shape [1, 2] of `x` has 2 dimensions, and the file says [N, 3, 8]";
    check_problem("x[N,3,8]", &[], &[("x", &[1, 2])], reason, "give one size for each dimension of the file");
    let reason = "dimension 1 of `x` is fixed at 3 in the file, but the spec asks for 4";
    check_problem("x[N,3]", &[], &[("x", &[1, 4])], reason, "export it with a dynamic dimension, or write 3 there");
}

#[test]
fn a_key_that_shapes_leaves_nothing_for_is_a_problem() {
    let reason = "`batch: 4` has no effect: `shapes` gives every input that has this dimension another size";
    let remedy = "leave `batch` out, or remove the input it is meant for from `shapes`";
    check_problem("x[N,3]", &[("batch", 4)], &[("x", &[8, 3])], reason, remedy);
    check_problem("x[?,3]", &[("batch", 4)], &[("x", &[8, 3])], reason, remedy);
    check("x[N,3]", &[("batch", 8)], &[("x", &[8, 3])], "[8, 3] | the dimension `N` = 8");
}

#[test]
fn what_cannot_be_filled_or_held_is_a_problem() {
    let mut texts = signature("x[N]", "");
    texts.inputs[0].element = ElementType::String;
    assert!(resolve_inputs(&texts, &point(&[("batch", 1)], &[])).is_ok());
    let sequence = ElementType::Other("sequence(float32)".to_owned());
    texts.inputs[0].element = sequence.clone();
    let problem = resolve_inputs(&texts, &point(&[("batch", 1)], &[])).unwrap_err();
    assert_eq!(problem, ShapeError::UnsupportedType { tensor: "x".to_owned(), element: sequence });
    for batch in [u64::MAX, 1 << 62, 1 << 40] {
        let problem = resolve("x[N,1024,1024]", &[("batch", batch)], &[]).unwrap_err();
        assert!(matches!(problem, ShapeError::TooLarge { .. }));
    }
    assert!(matches!(resolve("x[0,N]", &[("batch", u64::MAX)], &[]), Err(ShapeError::TooLarge { .. })));
    check("x[0,N]", &[("batch", 1 << 62)], &[], "[0, 4611686018427387904] | the dimension `N` = 4611686018427387904");
}

proptest! {
    #[test]
    fn resolved_shapes_keep_what_the_file_fixes(
        shapes in prop::collection::vec(prop::collection::vec(prop_oneof![
            (0_u64..4).prop_map(Dimension::Fixed),
            "[abN]".prop_map(Dimension::Named),
            Just(Dimension::Unknown),
        ], 0..4), 0..4),
        dimensions in
            prop::collection::btree_map(prop_oneof![Just("batch".to_owned()), "[abN]"], any::<u64>(), 0..4),
    ) {
        let element = ElementType::Int64;
        let tensor = |(index, shape)| {
            TensorType { name: format!("t{index}"), element: element.clone(), shape: Some(shape) }
        };
        let signature = Signature { inputs: shapes.into_iter().enumerate().map(tensor).collect(), outputs: vec![] };
        let input = crate::sample::Point { dimensions: dimensions.clone(), ..point(&[], &[]) };
        match resolve_inputs(&signature, &input) {
            Ok(resolved) => {
                prop_assert_eq!(resolved.tensors.len(), signature.inputs.len());
                for (tensor, declared) in resolved.tensors.iter().zip(&signature.inputs) {
                    prop_assert!(tensor.elements() <= 1 << 37);
                    for (size, dimension) in tensor.shape.iter().zip(declared.dimensions()) {
                        match dimension {
                            Dimension::Fixed(fixed) => prop_assert_eq!(size, fixed),
                            Dimension::Named(name) => {
                                prop_assert!(dimensions.get(name).is_none_or(|given| given == size));
                            }
                            Dimension::Unknown => prop_assert_eq!(Some(size), dimensions.get("batch")),
                        }
                    }
                }
            }
            Err(problem) => prop_assert!(!problem.to_string().is_empty() && !problem.remedy().is_empty()),
        }
    }
}
