//! What nodes demand of the sizes of their inputs, where two do not go together.
//!
//! Input: a node with the sizes of its inputs. Output: [`Demand`]s that are not met: a size, and what another input, an
//! attribute or the operator asks for instead. Deliberately absent: which input of the model a size comes from.
//!
//! Only what every runtime refuses is a demand, so that an unmet one is certain. A size that is not known meets all.

use super::convolution;
use super::layout;
use super::matrix::{Equation, Label, swapped};
use super::shape::{Shape, Size, axis_at, multiply, product, size_of};
use super::site::{List, Site};

/// A size that a node cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    /// The node and those around it, by their indices.
    pub(crate) node: Vec<usize>,
    /// Its operator, with its name where it has one.
    pub(crate) named: String,
    /// The value whose size it is.
    pub(crate) value: String,
    /// Which dimension of it, from 0; `None`: its number of elements.
    pub(crate) axis: Option<usize>,
    /// The size.
    pub(crate) has: u64,
    /// What it would have to be.
    pub(crate) wants: Wants,
    /// What asks for it: a value, or an attribute.
    pub(crate) by: String,
}

/// What a size would have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// This.
    Size(u64),
    /// This or more.
    AtLeast(u64),
    /// A multiple of this.
    MultipleOf(u64),
}

impl Wants {
    fn is_met(self, size: u64) -> bool {
        match self {
            Wants::Size(wanted) => size == wanted,
            Wants::AtLeast(least) => size >= least,
            Wants::MultipleOf(factor) => factor == 0 || size.is_multiple_of(factor),
        }
    }
}

impl std::fmt::Display for Wants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wants::Size(size) => write!(f, "{size}"),
            Wants::AtLeast(size) => write!(f, "{size} or more"),
            Wants::MultipleOf(size) => write!(f, "a multiple of {size}"),
        }
    }
}

/// Demands of one node.
struct Unmet<'s, 'a> {
    site: &'s Site<'a>,
    node: &'s [usize],
    found: Vec<Demand>,
}

/// What the node demands in vain.
pub(super) fn unmet(site: &Site<'_>, node: &[usize]) -> Vec<Demand> {
    let mut unmet = Unmet { site, node, found: Vec::new() };
    let operator = site.node.op_type();
    // The rules do not know what older versions stretch.
    let is_known = matches!(site.node.domain(), "" | "ai.onnx" | "com.microsoft");
    if is_known && site.opset >= 7 {
        // What has no rule demands nothing that is known of here.
        let _ruled = unmet.of_operator(operator);
    }
    unmet.found
}

impl Unmet<'_, '_> {
    fn of_operator(&mut self, operator: &str) -> Option<()> {
        match operator {
            "Conv" | "ConvInteger" | "FusedConv" => self.convolution(1),
            "QLinearConv" => self.convolution(3),
            "ConvTranspose" => self.equal(0, 1, self.site.size(1, 0), 1),
            "MatMul" | "MatMulInteger" | "DynamicQuantizeMatMul" | "MatMulIntegerToFloat" => self.product(1),
            "QLinearMatMul" => self.product(3),
            "FusedMatMul" => self.fused_product(),
            "MatMulNBits" => {
                let last = self.last(0)?;
                self.demand(0, Some(last), self.site.node.int("K").and_then(size_of).map(Wants::Size), "K")
            }
            "Gemm" | "FusedGemm" => self.gemm(1, 2),
            "QGemm" => self.gemm(3, 6),
            "LSTM" | "GRU" | "RNN" => self.recurrent(),
            "BatchNormalization" | "InstanceNormalization" => self.equal(0, 1, self.site.size(1, 0), 1),
            "GroupNormalization" if self.site.opset >= 21 => self.equal(0, 1, self.site.size(1, 0), 1),
            "LayerNormalization" | "SimplifiedLayerNormalization" | "RMSNormalization" => self.scale(1),
            "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => self.scale(2),
            "Concat" => self.concat(),
            "Reshape" => self.reshape(),
            "Split" => self.split(),
            "Squeeze" => self.squeeze(),
            "Einsum" => self.einsum(),
            "Attention" if self.site.node.domain() == "com.microsoft" => {
                let last = self.last(0)?;
                self.equal(0, last, self.site.size(1, 0), 1)
            }
            "DepthToSpace" => self.blocks(&[1], 2),
            "SpaceToDepth" => self.blocks(&[2, 3], 1),
            "QuantizeLinear" | "DequantizeLinear" => self.per_axis(),
            _ if super::dispatch::stretches(operator) => self.stretch(),
            _ => None,
        }
    }

    /// The last dimension of an input.
    fn last(&self, index: usize) -> Option<usize> {
        self.site.shape(index)?.len().checked_sub(1)
    }

    /// A size of an input, or with no axis its elements, that has to be what `by` asks for.
    fn demand(&mut self, index: usize, axis: Option<usize>, wants: Option<Wants>, by: &str) -> Option<()> {
        let node = self.site.node;
        let shape = self.site.shape(index)?;
        let has = match axis {
            Some(axis) => *shape.get(axis)?,
            None => product(shape),
        }?;
        let wants = wants.filter(|wants| !wants.is_met(has))?;
        let named = node.described();
        let value = node.input.get(index)?.clone();
        self.found.push(Demand { node: self.node.to_vec(), named, value, axis, has, wants, by: by.to_owned() });
        Some(())
    }

    /// A size of an input that has to be `size`, which input `by` has.
    fn equal(&mut self, index: usize, axis: usize, size: Size, by: usize) -> Option<()> {
        let by = self.site.node.input.get(by)?.clone();
        self.demand(index, Some(axis), size.map(Wants::Size), &by)
    }

    fn convolution(&mut self, weights: usize) -> Option<()> {
        if self.site.is_set("channels_last") {
            return None;
        }
        let channels = multiply(self.site.size(weights, 1), size_of(self.site.int_or("group", 1)));
        let _same = self.equal(0, 1, channels, weights);
        // An image that is smaller than the window, its padding included.
        let by = self.site.node.input.get(weights)?.clone();
        for (index, least) in convolution::least_sizes(self.site, weights)?.into_iter().enumerate() {
            let _small = self.demand(0, Some(index + 2), least.map(Wants::AtLeast), &by);
        }
        Some(())
    }

    /// `numpy.matmul`.
    fn product(&mut self, right: usize) -> Option<()> {
        let (left_shape, right_shape) = (self.site.shape(0)?.to_vec(), self.site.shape(right)?.to_vec());
        self.matrices(&left_shape, 0, &right_shape, right)
    }

    fn fused_product(&mut self) -> Option<()> {
        if self.site.is_set("transBatchA") || self.site.is_set("transBatchB") {
            return None;
        }
        let (left, right) = (swapped(self.site, 0, "transA")?, swapped(self.site, 1, "transB")?);
        // Which dimension it is follows from the shapes as they are.
        let axis = left.len().checked_sub(if self.site.is_set("transA") && left.len() > 1 { 2 } else { 1 })?;
        self.equal(0, axis, *right.get(right.len().saturating_sub(2))?, 1)
    }

    fn matrices(&mut self, left: &[Size], left_at: usize, right: &[Size], right_at: usize) -> Option<()> {
        let rows = *right.get(right.len().saturating_sub(2))?;
        let _inner = self.equal(left_at, left.len().checked_sub(1)?, rows, right_at);
        let batches = |shape: &[Size]| shape.len().saturating_sub(2);
        self.stretch_pair((left_at, &left[..batches(left)]), (right_at, &right[..batches(right)]))
    }

    fn gemm(&mut self, right: usize, bias: usize) -> Option<()> {
        let axis = usize::from(!self.site.is_set("transA"));
        let _inner = self.equal(0, axis, *swapped(self.site, right, "transB")?.first()?, right);
        // The bias is stretched to the product, which is not stretched to it.
        let columns = *swapped(self.site, right, "transB")?.get(1)?;
        let last = self.last(bias)?;
        let wants = columns.filter(|_| self.site.size(bias, last) != Some(1));
        self.equal(bias, last, wants, right)
    }

    /// X is `[steps, batch, features]`, W `[directions, gates x hidden, features]`, a state `[directions, batch, hidden]`.
    fn recurrent(&mut self) -> Option<()> {
        let _features = self.equal(0, 2, self.site.size(1, 2), 1);
        let (batch, hidden) = if self.site.is_set("layout") { (0, 2) } else { (1, 2) };
        for state in [5, 6].into_iter().filter(|state| self.site.has(*state)) {
            let _batch = self.equal(state, batch, self.site.size(0, batch), 0);
            let _hidden = self.equal(state, hidden, self.site.size(2, 2), 2);
        }
        Some(())
    }

    /// The last size is that of the scale.
    fn scale(&mut self, scale: usize) -> Option<()> {
        let last = self.last(scale)?;
        let wants = self.site.size(scale, last).filter(|size| *size != 1);
        self.equal(0, self.last(0)?, wants, scale)
    }

    /// All sizes but that of the axis are alike. An empty tensor may have any.
    fn concat(&mut self) -> Option<()> {
        let first = self.site.shape(0)?;
        let axis = axis_at(self.site.int_or("axis", 1), first.len())?;
        let inputs = 0..self.site.input_count();
        if inputs.clone().any(|index| self.site.shape(index).is_none_or(|shape| shape.contains(&Some(0)))) {
            return None;
        }
        for index in
            inputs.skip(1).filter(|index| self.site.shape(*index).is_some_and(|shape| shape.len() == first.len()))
        {
            for (other_axis, size) in first.iter().enumerate().filter(|(other_axis, _)| *other_axis != axis) {
                let _same = self.equal(index, other_axis, *size, 0);
            }
        }
        Some(())
    }

    /// As many elements before as after. What is copied cancels out, so that where one dimension is left, all of it is known.
    fn reshape(&mut self) -> Option<()> {
        let target = layout::target(self.site, 1)?;
        let by = self.site.node.input.get(1).cloned().unwrap_or_else(|| "shape".to_owned());
        let shape = self.site.shape(0)?.to_vec();
        let is_kept = |index: &usize| target.get(*index) == Some(&layout::Target::Kept);
        let left: Vec<usize> = (0..shape.len()).filter(|index| !is_kept(index)).collect();
        let asked: Shape = target.iter().filter_map(|target| target.size().map(Some)).collect();
        let asked = product(&asked)?;
        let has_rest = target.contains(&layout::Target::Rest);
        let copies_all = (0..target.len()).all(|index| !is_kept(&index) || index < shape.len());
        match left.as_slice() {
            _ if !copies_all => None,
            [only] if !has_rest => self.demand(0, Some(*only), Some(Wants::Size(asked)), &by),
            [only] if asked > 0 => self.demand(0, Some(*only), Some(Wants::MultipleOf(asked)), &by),
            _ if left.len() < shape.len() => None,
            _ if !has_rest => self.demand(0, None, Some(Wants::Size(asked)), &by),
            _ if asked > 0 => self.demand(0, None, Some(Wants::MultipleOf(asked)), &by),
            _ => None,
        }
    }

    fn split(&mut self) -> Option<()> {
        let axis = axis_at(self.site.int_or("axis", 0), self.site.shape(0)?.len())?;
        let sizes = match self.site.list("split", 1) {
            List::Known(sizes) => sizes,
            List::Absent if self.site.opset < 18 => {
                let parts = self.site.node.output.len() as u64;
                return self.demand(0, Some(axis), Some(Wants::MultipleOf(parts)), "number of outputs");
            }
            _ => return None,
        };
        let sum = sizes.iter().try_fold(0_i64, |sum, size| sum.checked_add(*size)).and_then(size_of)?;
        let by = self.site.node.input.get(1).cloned().unwrap_or_else(|| "split".to_owned());
        self.demand(0, Some(axis), Some(Wants::Size(sum)), &by)
    }

    /// Only sizes of 1 can be left out.
    fn squeeze(&mut self) -> Option<()> {
        let rank = self.site.shape(0)?.len();
        for axis in self.site.list("axes", 1).axes(rank)? {
            let _one = self.demand(0, Some(axis), Some(Wants::Size(1)), "axes");
        }
        Some(())
    }

    /// A label has one size.
    fn einsum(&mut self) -> Option<()> {
        let shapes: Option<Vec<&[Size]>> = (0..self.site.input_count()).map(|index| self.site.shape(index)).collect();
        let terms = Equation::operands(self.site.node.text("equation")?, &shapes?)?;
        let mut first: Vec<(Label, usize, Size)> = Vec::new();
        for (operand, labels) in terms.iter().enumerate() {
            for (axis, label) in labels.iter().enumerate() {
                match first.iter().find(|(known, ..)| known == label) {
                    Some((_, by, size)) => {
                        let (by, wants) = (*by, size.filter(|size| *size != 1));
                        if self.site.size(operand, axis) != Some(1) {
                            let _same = self.equal(operand, axis, wants, by);
                        }
                    }
                    None => first.push((*label, operand, self.site.size(operand, axis))),
                }
            }
        }
        Some(())
    }

    /// Dimensions that are taken apart in blocks; `power` 2 where a block is a square.
    fn blocks(&mut self, axes: &[usize], power: u32) -> Option<()> {
        let factor = size_of(self.site.node.int("blocksize")?)?.checked_pow(power)?;
        for axis in axes {
            let _whole = self.demand(0, Some(*axis), Some(Wants::MultipleOf(factor)), "blocksize");
        }
        Some(())
    }

    /// A scale for each index along the axis.
    fn per_axis(&mut self) -> Option<()> {
        let is_list = self.site.shape(1)?.len() == 1 && self.site.int_or("block_size", 0) == 0;
        let axis = axis_at(self.site.int_or("axis", 1), self.site.shape(0)?.len())?;
        let wants = self.site.size(1, 0).filter(|size| is_list && *size != 1);
        self.equal(0, axis, wants, 1)
    }

    /// All inputs are stretched to one shape.
    fn stretch(&mut self) -> Option<()> {
        let count = self.site.input_count();
        for (left, right) in (0..count).flat_map(|left| (left + 1..count).map(move |right| (left, right))) {
            let (Some(first), Some(second)) = (self.site.shape(left), self.site.shape(right)) else { continue };
            let (first, second) = (first.to_vec(), second.to_vec());
            let _both = self.stretch_pair((left, &first), (right, &second));
        }
        Some(())
    }

    /// The leading dimensions of two inputs that are stretched to each other. What has fewer has ones before them.
    fn stretch_pair(&mut self, left: (usize, &[Size]), right: (usize, &[Size])) -> Option<()> {
        let rank = left.1.len().min(right.1.len());
        for back in 1..=rank {
            let (first, second) = (left.1.len() - back, right.1.len() - back);
            match (left.1[first], right.1[second]) {
                (Some(1), _) | (_, Some(1)) => {}
                (_, size) => {
                    let _both = self.equal(left.0, first, size, right.0);
                }
            }
        }
        Some(())
    }
}
