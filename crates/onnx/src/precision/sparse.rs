//! Sparse weights as dense ones.
//!
//! Input: a graph with `sparse_initializer`s, or `Constant` nodes with a `sparse_value`. Output: the same graph in which
//! those that a converted operator reads are initialisers. ONNX Runtime makes them dense too when it loads the model.

use std::collections::HashSet;

use crate::proto::{GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::{ElementType, TensorError};

/// Makes dense what nodes of these operators read, in branches and bodies too, where each takes at most so many bytes; gives
/// their number.
///
/// # Errors
///
/// A damaged tensor.
pub(super) fn make_dense(graph: &mut GraphProto, wanting: &[&str], most: u64) -> Result<u64, TensorError> {
    let wants = |node: &&NodeProto| node.is_standard() && wanting.contains(&node.op_type());
    let nodes = graph.with_inner().into_iter().flat_map(|graph| &graph.node);
    let read = nodes.filter(wants).flat_map(|node| node.input.iter().cloned()).collect();
    make_read_dense(graph, &read, most)
}

fn make_read_dense(graph: &mut GraphProto, read: &HashSet<String>, most: u64) -> Result<u64, TensorError> {
    let mut dense = Vec::new();
    let mut take = |name: &str, sparse: &SparseTensorProto| -> Result<bool, TensorError> {
        let made = if read.contains(name) { densified(name, sparse, most)? } else { None };
        let is_made = made.is_some();
        dense.extend(made);
        Ok(is_made)
    };
    let mut kept = Vec::new();
    for sparse in std::mem::take(&mut graph.sparse_initializer) {
        if !take(sparse.name(), &sparse)? {
            kept.push(sparse);
        }
    }
    graph.sparse_initializer = kept;
    let (mut inside, mut nodes) = (0, Vec::with_capacity(graph.node.len()));
    for mut node in std::mem::take(&mut graph.node) {
        for inner in node.graphs_mut() {
            inside += make_read_dense(inner, read, most)?;
        }
        let is_made = match (sparse_value(&node), node.output.first()) {
            (Some(sparse), Some(output)) => take(output, sparse)?,
            _ => false,
        };
        if !is_made {
            nodes.push(node);
        }
    }
    graph.node = nodes;
    let made = dense.len() as u64;
    graph.initializer.extend(dense);
    Ok(made + inside)
}

fn sparse_value(node: &NodeProto) -> Option<&SparseTensorProto> {
    let is_constant = node.is_standard() && node.op_type() == "Constant";
    node.named_attribute("sparse_value").filter(|_| is_constant)?.sparse_tensor.as_deref()
}

/// `None` where it would be too large, or its form is not the standard's: float32 values, and for each its index in the
/// flattened tensor or along every dimension.
fn densified(name: &str, sparse: &SparseTensorProto, most: u64) -> Result<Option<TensorProto>, TensorError> {
    let (Some(values), Some(indices)) = (&sparse.values, &sparse.indices) else { return Ok(None) };
    let shape: Option<Vec<u64>> = sparse.dims.iter().map(|size| u64::try_from(*size).ok()).collect();
    let Some(shape) = shape else { return Ok(None) };
    let elements = shape.iter().try_fold(1_u64, |all, size| all.checked_mul(*size));
    let Some(elements) = elements.filter(|all| all.checked_mul(4).is_some_and(|bytes| bytes <= most)) else {
        return Ok(None);
    };
    if values.element() != ElementType::Float32 || indices.element() != ElementType::Int64 {
        return Ok(None);
    }
    let (values, form, indices) = (values.floats()?, indices.shape()?, indices.integers()?);
    let flat_indices: Option<Vec<u64>> = match form.as_slice() {
        [_] => indices.iter().map(|index| u64::try_from(*index).ok()).collect(),
        [_, rank] if *rank > 0 && *rank == shape.len() as u64 => {
            indices.chunks_exact(shape.len()).map(|index| flat(index, &shape)).collect()
        }
        _ => None,
    };
    let is_whole = |flat_indices: &Vec<u64>| {
        flat_indices.len() == values.len() && flat_indices.iter().all(|index| *index < elements)
    };
    let Some(flat_indices) = flat_indices.filter(is_whole) else { return Ok(None) };
    let mut dense = vec![0.0; elements as usize];
    flat_indices.iter().zip(values).for_each(|(index, value)| dense[*index as usize] = value);
    Ok(Some(TensorProto::of_floats(name, &shape, &dense)))
}

/// The index in the flattened tensor; `None` outside of it.
fn flat(index: &[i64], shape: &[u64]) -> Option<u64> {
    index.iter().zip(shape).try_fold(0_u64, |all, (index, size)| {
        let index = u64::try_from(*index).ok().filter(|index| index < size)?;
        all.checked_mul(*size)?.checked_add(index)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::proto::AttributeProto;

    fn sparse(name: &str, dims: &[i64], indices: (&[u64], &[i64])) -> SparseTensorProto {
        SparseTensorProto {
            values: Some(TensorProto::of_floats(name, &[2], &[5.0, 7.0])),
            indices: Some(TensorProto::of_integers("", indices.0, indices.1)),
            dims: dims.to_vec(),
        }
    }

    #[test]
    fn both_forms_of_indices_become_the_same_tensor() {
        for indices in [(&[2_u64][..], &[1_i64, 3][..]), (&[2, 2], &[0, 1, 1, 1])] {
            let dense = densified("w", &sparse("w", &[2, 2], indices), 1 << 10).unwrap().unwrap();
            assert_eq!((dense.floats().unwrap(), dense.dims), (vec![0.0, 5.0, 0.0, 7.0], vec![2, 2]));
        }
    }

    #[test]
    fn what_has_no_dense_form_stays() {
        let form =
            |dims: &[i64], indices: (&[u64], &[i64])| densified("w", &sparse("w", dims, indices), 1 << 10).unwrap();
        assert_eq!(form(&[2, 2], (&[2], &[1, 4])), None, "outside");
        assert_eq!(form(&[2, 2], (&[2, 2], &[0, 1, 0, 2])), None, "outside of its row");
        assert_eq!(form(&[2, 2], (&[1], &[1])), None, "an index is missing");
        assert_eq!(form(&[2, 2], (&[2, 1], &[0, 1])), None, "of another rank");
        assert_eq!(form(&[-1, 2], (&[2], &[0, 1])), None);
        assert_eq!(form(&[1 << 40, 1 << 40], (&[2], &[0, 1])), None, "too large");
        assert_eq!(form(&[1 << 10, 2], (&[2], &[0, 1])), None, "too large");
    }

    #[test]
    fn initialisers_and_constants_that_products_read_become_dense() {
        let value = AttributeProto {
            name: Some("sparse_value".to_owned()),
            sparse_tensor: Some(Box::new(sparse("", &[2, 2], (&[2], &[0, 3])))),
            ..Default::default()
        };
        let mut graph = GraphProto {
            node: vec![
                NodeProto::of("Constant", "c", &[], &["b"], vec![value]),
                NodeProto::of("MatMul", "p", &["x", "a"], &["h"], vec![]),
                NodeProto::of("MatMul", "q", &["h", "b"], &["k"], vec![]),
                NodeProto::of("Add", "r", &["k", "other"], &["y"], vec![]),
            ],
            sparse_initializer: vec![sparse("a", &[2, 2], (&[2], &[1, 2])), sparse("other", &[2, 2], (&[2], &[1, 2]))],
            ..Default::default()
        };
        assert_eq!(make_dense(&mut graph, &["MatMul"], 1 << 10).unwrap(), 2);
        let names: Vec<&str> = graph.initializer.iter().map(TensorProto::name).collect();
        assert_eq!((names, graph.node.len()), (vec!["a", "b"], 3));
        assert_eq!(graph.sparse_initializer[0].name(), "other");
    }
}
