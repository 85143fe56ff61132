//! Nodes that read nothing but stored tensors: the whole tensors that they make.
//!
//! Input: a node and its inputs as they stand in the file. Output: its outputs, of any size up to a limit. Shapes,
//! indices and arithmetic are those of the rules, which see shapes and short lists; here they meet all elements. Every
//! result is rounded to its element type. Deliberately absent: convolutions and what else the conversions have no use
//! for, random numbers, and results that wrap.

use super::elements::{Elements, Writer};
use super::shape::product;
use super::site::Site;
use super::source_indices::{Along, SourceIndices};
use super::value::{Moved, Order};
use super::{Value, dispatch, element, fold, reduce, slice};
use crate::proto::{NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// The most multiplications that a product of constants may take: seconds, not minutes.
const MOST_PRODUCTS: u64 = 1 << 32;

/// Indices of `Gather` that are followed: as many rows as the largest vocabulary has.
const MOST_INDICES: u64 = 1 << 20;

/// Before this version of the operator set, operators on two tensors stretched the second one in their own way.
const NUMPY_BROADCASTING: i64 = 7;

/// An output of a node.
pub(crate) enum Evaluated {
    /// The elements of the first input as they lie, in this shape.
    Same(Vec<u64>),
    /// A new tensor without a name.
    Made(Box<TensorProto>),
}

impl Evaluated {
    /// Whether it is a tensor of at least so many floating-point numbers; what lies as it lay counts as one.
    pub(crate) fn is_weight_from(&self, least: u64) -> bool {
        match self {
            Evaluated::Same(shape) => whole_product(shape).is_none_or(|elements| elements >= least),
            Evaluated::Made(tensor) => {
                tensor.is_float() && tensor.elements().is_ok_and(|elements| elements as u64 >= least)
            }
        }
    }
}

/// What a node makes of stored tensors; `None` where it cannot be computed here, or takes more than `most_bytes`.
///
/// # Errors
///
/// A damaged tensor.
pub(crate) fn evaluate(
    node: &NodeProto,
    opset: i64,
    inputs: &[Option<&TensorProto>],
    most_bytes: u64,
) -> Result<Option<Vec<Evaluated>>, TensorError> {
    if !node.is_standard() {
        return Ok(None);
    }
    if node.op_type() == "Constant" {
        return Ok(constant(node).map(|tensor| vec![Evaluated::Made(Box::new(tensor))]));
    }
    let values: Vec<Option<Value>> =
        inputs.iter().enumerate().map(|(index, tensor)| tensor.map(|tensor| value_of(node, index, tensor))).collect();
    let site = Site::new(node, opset, values.iter().map(Option::as_ref).collect());
    if let Some(moved) = dispatch::moved(&site) {
        let Some(from) = inputs.first().copied().flatten() else { return Ok(None) };
        return moved.into_iter().map(|moved| rearranged(moved, from, most_bytes)).collect();
    }
    let mut outputs = dispatch::outputs(&site).unwrap_or_default();
    outputs.truncate(node.output.len());
    element::complete(&site, &mut outputs);
    let [output] = &outputs[..] else { return Ok(None) };
    let (Some(element), Some(sizes), Some(count)) = (output.element.clone(), output.sizes(), output.elements()) else {
        return Ok(None);
    };
    let bytes = element.size_bytes().and_then(|width| count.checked_mul(width));
    if bytes.is_none_or(|bytes| bytes > most_bytes) {
        return Ok(None);
    }
    let elements: Vec<Option<Elements<'_>>> =
        inputs.iter().map(|tensor| tensor.map_or(Ok(None), Elements::of)).collect::<Result<_, _>>()?;
    let mut writer = Writer::new(element.clone(), count as usize);
    let short = output.integers.iter().filter(|_| !element.is_float());
    let done = match short.flatten().copied().collect::<Option<Vec<i64>>>().filter(|all| !all.is_empty()) {
        Some(integers) => integers.into_iter().try_for_each(|integer| writer.push_integer(integer)),
        None => Operation { site: &site, inputs: &elements, sizes: &sizes, count: count as usize }.write(&mut writer),
    };
    let is_whole = done.is_some() && Some(writer.bytes.len() as u64) == bytes;
    Ok(is_whole.then(|| vec![Evaluated::Made(Box::new(TensorProto::of_bytes("", &element, &sizes, writer.bytes)))]))
}

/// What is known of an input: its shape, and its elements where the rule of the node needs them.
fn value_of(node: &NodeProto, index: usize, tensor: &TensorProto) -> Value {
    let mut value = Value::of_tensor(tensor);
    let is_index = node.op_type() == "Gather" && index == 1;
    if is_index && value.integers.is_none() && value.elements().is_some_and(|count| count <= MOST_INDICES) {
        value.integers = tensor.integers().ok().map(|indices| indices.into_iter().map(Some).collect());
    }
    value
}

/// The tensor in the attribute of a `Constant`.
fn constant(node: &NodeProto) -> Option<TensorProto> {
    let attribute = node.attribute.first()?;
    match attribute.name() {
        "value" => attribute.t.as_deref().cloned(),
        "value_float" => Some(TensorProto::of_floats("", &[], &[attribute.f?])),
        "value_floats" => Some(TensorProto::of_floats("", &[attribute.floats.len() as u64], &attribute.floats)),
        "value_int" => Some(TensorProto::of_integers("", &[], &[attribute.i?])),
        "value_ints" => Some(TensorProto::of_integers("", &[attribute.ints.len() as u64], &attribute.ints)),
        _ => None,
    }
}

/// Elements of a tensor in another order.
fn rearranged(moved: Moved, from: &TensorProto, most_bytes: u64) -> Result<Option<Evaluated>, TensorError> {
    let (sizes, count) = (moved.shape.iter().copied().collect::<Option<Vec<u64>>>(), product(&moved.shape));
    let (Some(sizes), Some(count)) = (sizes, count) else { return Ok(None) };
    let indices = match moved.order {
        Order::Same => return Ok((count == from.elements()? as u64).then_some(Evaluated::Same(sizes))),
        Order::By(indices) if indices.count() == Some(count) => indices,
        Order::By(_) | Order::Unknown => return Ok(None),
    };
    let Some(elements) = Elements::of(from)? else { return Ok(None) };
    let bytes = elements.element.size_bytes().and_then(|width| count.checked_mul(width));
    if bytes.is_none_or(|bytes| bytes > most_bytes) {
        return Ok(None);
    }
    let made = |bytes| Evaluated::Made(Box::new(TensorProto::of_bytes("", &elements.element, &sizes, bytes)));
    Ok(elements.moved(&indices).map(made))
}

/// A node with one output that has to be computed.
struct Operation<'a> {
    site: &'a Site<'a>,
    inputs: &'a [Option<Elements<'a>>],
    /// Those of the output.
    sizes: &'a [u64],
    /// Its elements.
    count: usize,
}

impl<'a> Operation<'a> {
    fn input(&self, index: usize) -> Option<&'a Elements<'a>> {
        self.inputs.get(index)?.as_ref()
    }

    /// The indices of an input's elements where it is broadcast to the output's shape.
    fn broadcast_indices(&self, index: usize) -> Option<SourceIndices> {
        SourceIndices::broadcast(&self.site.sizes(index)?, self.sizes)
    }

    fn write(&self, to: &mut Writer) -> Option<()> {
        match self.site.node.op_type() {
            "ConstantOfShape" => self.fill(to),
            "Concat" => self.join(to),
            "Cast" | "CastLike" => (0..self.count).try_for_each(|index| to.push_cast(self.input(0)?, index)),
            "Where" => self.choose(to),
            "Pad" => self.pad(to),
            "Clip" => self.clip(to),
            "MatMul" => self.multiply(to),
            "QuantizeLinear" => self.quantize(to),
            "DequantizeLinear" => self.dequantize(to),
            operator if operator.starts_with("Reduce") => self.reduce(to),
            _ if self.site.opset < NUMPY_BROADCASTING => None,
            _ if self.inputs.len() == 1 => self.each(to),
            _ => self.combine(to),
        }
    }

    /// One element as often as it fits.
    fn fill(&self, to: &mut Writer) -> Option<()> {
        let zero = TensorProto::of_floats("", &[1], &[0.0]);
        let element = Elements::of(self.site.node.tensor("value").unwrap_or(&zero)).ok()??;
        (element.element == to.element).then(|| to.bytes = element.bytes.repeat(self.count))
    }

    /// `Concat`.
    fn join(&self, to: &mut Writer) -> Option<()> {
        let axis = self.site.axis("axis", 1, self.sizes.len())?;
        let blocks = whole_product(&self.sizes[..axis])? as usize;
        let parts = self.inputs.iter().map(|part| part.as_ref().filter(|part| part.element == to.element));
        let parts: Vec<&Elements<'_>> = parts.collect::<Option<_>>()?;
        for block in 0..blocks {
            for part in &parts {
                let size = part.bytes.len() / blocks;
                to.bytes.extend_from_slice(part.bytes.get(block * size..(block + 1) * size)?);
            }
        }
        Some(())
    }

    /// `Where`.
    fn choose(&self, to: &mut Writer) -> Option<()> {
        let (condition, then, otherwise) = (self.input(0)?, self.input(1)?, self.input(2)?);
        let width = to.element.size_bytes()? as usize;
        let indices = [self.broadcast_indices(0)?, self.broadcast_indices(1)?, self.broadcast_indices(2)?];
        let [condition_indices, then_indices, else_indices] = indices.each_ref().map(SourceIndices::each);
        for ((holds, then_at), else_at) in condition_indices.zip(then_indices).zip(else_indices) {
            let (from, index) = if condition.integer(holds?)? != 0 { (then, then_at?) } else { (otherwise, else_at?) };
            to.bytes.extend_from_slice(from.bytes.get(index * width..(index + 1) * width)?);
        }
        Some(())
    }

    /// `Pad` with a constant.
    fn pad(&self, to: &mut Writer) -> Option<()> {
        let (from, width) = (self.input(0)?, to.element.size_bytes()? as usize);
        let fill = match (self.site.has(2), self.site.node.float("value")) {
            (true, _) => self.input(2)?.bytes.get(..width)?.to_vec(),
            (false, None | Some(0.0)) => vec![0; width],
            (false, Some(_)) => return None,
        };
        if self.count == 0 || self.site.node.text("mode").is_some_and(|mode| mode != "constant") {
            return None;
        }
        let sizes = self.site.sizes(0)?;
        let mut indices = SourceIndices::of(&sizes);
        for (axis, before, _) in slice::pads(self.site)? {
            let of_axis = indices.0[axis].clone();
            let at = |index: u64| {
                let index = u64::try_from(i64::try_from(index).ok()?.checked_sub(before)?).ok()?;
                of_axis.at(index).filter(|_| index < sizes[axis])
            };
            indices.0[axis] = Along::Listed((0..self.sizes[axis]).map(at).collect());
        }
        for index in indices.each() {
            to.bytes.extend_from_slice(match index {
                Some(index) => from.bytes.get(index * width..(index + 1) * width)?,
                None => &fill,
            });
        }
        Some(())
    }

    /// `Clip`, whose bounds are attributes up to operator set 10 and inputs from 11 on.
    fn clip(&self, to: &mut Writer) -> Option<()> {
        let from = self.input(0)?;
        let bound = |name: &str, index: usize| match self.input(index) {
            Some(bound) => bound.float(0),
            None => self.site.node.float(name).map(f64::from),
        };
        let (least, most) = (bound("min", 1).unwrap_or(f64::NEG_INFINITY), bound("max", 2).unwrap_or(f64::INFINITY));
        (0..self.count).try_for_each(|index| to.push_float(from.float(index)?.max(least).min(most)))
    }

    /// Operators on each element for itself.
    fn each(&self, to: &mut Writer) -> Option<()> {
        let (from, operator) = (self.input(0)?, self.site.node.op_type());
        if to.element.is_float() {
            let operation = fold::on_float(operator)?;
            (0..self.count).try_for_each(|index| to.push_float(operation(from.float(index)?)))
        } else {
            let operation = fold::on_integer(operator)?;
            (0..self.count).try_for_each(|index| to.push_integer(operation(from.integer(index)?)?))
        }
    }

    /// Operators on two elements, or on several one after the other.
    fn combine(&self, to: &mut Writer) -> Option<()> {
        let node = self.site.node;
        let (floats, integers) = (fold::on_floats(node.op_type()), fold::on_integers(node));
        let first = self.input(0)?;
        let mut sum: Option<Elements<'_>> = None;
        for index in 1..self.inputs.len() {
            let (left, left_indices) = match &sum {
                Some(sum) => (sum, SourceIndices::of(self.sizes)),
                None => (first, self.broadcast_indices(0)?),
            };
            let (right, right_indices) = (self.input(index)?, self.broadcast_indices(index)?);
            let mut next = Writer::new(to.element.clone(), self.count);
            for (left_index, right_index) in left_indices.each().zip(right_indices.each()) {
                if to.element.is_float() {
                    next.push_float(floats?(left.float(left_index?)?, right.float(right_index?)?))?;
                } else {
                    next.push_integer(integers?(left.integer(left_index?)?, right.integer(right_index?)?)?)?;
                }
            }
            sum = Some(Elements { element: next.element, bytes: next.bytes.into() });
        }
        to.bytes = sum?.bytes.into_owned();
        Some(())
    }

    /// `MatMul` with a right operand of two dimensions.
    fn multiply(&self, to: &mut Writer) -> Option<()> {
        let (left, right) = (self.input(0)?, self.input(1)?);
        let [depth, columns] = self.site.sizes(1)?[..] else { return None };
        let rows = (self.count as u64).checked_div(columns)?;
        let is_small = rows.checked_mul(depth)?.checked_mul(columns)? <= MOST_PRODUCTS;
        if !is_small || !to.element.is_float() || self.site.sizes(0)?.last() != Some(&depth) {
            return None;
        }
        let (depth, columns) = (depth as usize, columns as usize);
        let right: Vec<f64> = (0..depth * columns).map(|index| right.float(index)).collect::<Option<_>>()?;
        let mut row = vec![0.0; columns];
        for index in 0..rows as usize {
            row.fill(0.0);
            for (along, right) in right.chunks_exact(columns).enumerate() {
                let factor = left.float(index * depth + along)?;
                row.iter_mut().zip(right).for_each(|(sum, value)| *sum += factor * value);
            }
            row.iter().try_for_each(|sum| to.push_float(*sum))?;
        }
        Some(())
    }

    /// `ReduceSum` and its family.
    fn reduce(&self, to: &mut Writer) -> Option<()> {
        let (from, operator, axes) = (self.input(0)?, self.site.node.op_type(), reduce::axes(self.site)?);
        let sizes = self.site.sizes(0)?;
        let count = whole_product(
            &(0..sizes.len()).filter(|axis| axes.contains(axis)).map(|axis| sizes[axis]).collect::<Vec<u64>>(),
        )?;
        let SourceIndices(along) = SourceIndices::of(&sizes);
        let (reduced, kept): (Vec<_>, Vec<_>) =
            along.into_iter().enumerate().partition(|(axis, _)| axes.contains(axis));
        let indices = SourceIndices(kept.into_iter().chain(reduced).map(|(_, along)| along).collect());
        let (start, add): (f64, fn(f64, f64) -> f64) = match operator {
            "ReduceSum" | "ReduceMean" => (0.0, |sum, value| sum + value),
            "ReduceL1" => (0.0, |sum, value| sum + value.abs()),
            "ReduceL2" | "ReduceSumSquare" => (0.0, |sum, value| sum + value * value),
            "ReduceMax" => (f64::NEG_INFINITY, fold::on_floats("Max")?),
            "ReduceMin" => (f64::INFINITY, fold::on_floats("Min")?),
            "ReduceProd" => (1.0, |product, value| product * value),
            _ => return None,
        };
        if count == 0 {
            return None;
        }
        let mut indices = indices.each();
        for _ in 0..self.count {
            let sum = indices
                .by_ref()
                .take(count as usize)
                .try_fold(start, |sum, index| Some(add(sum, from.float(index?)?)))?;
            to.push_float(match operator {
                "ReduceMean" => sum / count as f64,
                "ReduceL2" => sum.sqrt(),
                _ => sum,
            })?;
        }
        Some(())
    }

    /// The indices of scales and zero points: one for all, or one for each index along the axis.
    fn scale_indices(&self) -> Option<SourceIndices> {
        let is_one = match self.site.sizes(1)?[..] {
            [] | [1] => true,
            [_] => false,
            _ => return None,
        };
        let axis = if is_one { None } else { Some(self.site.axis("axis", 1, self.sizes.len())?) };
        if axis.is_some_and(|axis| self.site.size(1, 0) != Some(self.sizes[axis])) || self.site.is_set("block_size") {
            return None;
        }
        let along = self.sizes.iter().enumerate();
        Some(SourceIndices(along.map(|(at, size)| Along::steps(*size, 0, i64::from(axis == Some(at)))).collect()))
    }

    fn zero_point(&self, index: usize) -> Option<i64> {
        if self.site.has(2) { self.input(2)?.integer(index) } else { Some(0) }
    }

    /// `DequantizeLinear`: `(x - zero point) * scale`.
    fn dequantize(&self, to: &mut Writer) -> Option<()> {
        let (from, scale, scale_indices) = (self.input(0)?, self.input(1)?, self.scale_indices()?);
        scale_indices.each().enumerate().try_for_each(|(index, scale_index)| {
            let steps = from.integer(index)?.checked_sub(self.zero_point(scale_index?)?)?;
            to.push_float(f64::from(steps as f32) * scale.float(scale_index?)?)
        })
    }

    /// `QuantizeLinear`: `round(x / scale) + zero point`, ties to even, bounded by the element type.
    fn quantize(&self, to: &mut Writer) -> Option<()> {
        let (from, scale, scale_indices) = (self.input(0)?, self.input(1)?, self.scale_indices()?);
        let (least, most) = match to.element {
            ElementType::Int8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
            ElementType::Uint8 => (0, i64::from(u8::MAX)),
            ElementType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
            ElementType::Uint16 => (0, i64::from(u16::MAX)),
            _ => return None,
        };
        scale_indices.each().enumerate().try_for_each(|(index, scale_index)| {
            let steps = (from.float(index)? as f32 / scale.float(scale_index?)? as f32).round_ties_even();
            // The conversion from float saturates.
            to.push_integer((steps as i64).saturating_add(self.zero_point(scale_index?)?).clamp(least, most))
        })
    }
}

fn whole_product(sizes: &[u64]) -> Option<u64> {
    sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
}

#[cfg(test)]
mod tests;
