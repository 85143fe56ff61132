//! Embeddings: `Gather` on a large constant table.
//!
//! Input: the node. Output: the same `Gather` on a table in 8 bits and on the scales of its rows, and their product.
//! Deliberately absent: small tables, whose rows are read as fast in float32, and `Gather` along other axes.
//!
//! Every row has a scale: rows of frequent and rare words differ in size, and a scale for the whole table, as the tools of
//! ONNX Runtime use it, loses the small ones.

use std::collections::HashMap;

use half::f16;

use super::constants::axis_index;
use super::edit::{Editor, Weight};
use super::report::ConversionReport;
use super::scales::{UNUSUAL_WEIGHT, quantize_channels};
use crate::proto::{AttributeProto, NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// Elements of the smallest table that is worth two more nodes: 64 KiB.
const LEAST_ELEMENTS: u64 = 1 << 14;

/// In rows of fewer elements four bytes of scale are more than 1.5 % of the file, so it takes two. A scale of fp16 is exact
/// to a half of a thousandth, which is a sixteenth of a level at most.
const NARROW_ROW: u64 = 256;

/// The smallest number that fp16 has with all of its bits, and the largest.
const EXACT_IN_FP16: std::ops::RangeInclusive<f32> = 6.103_515_6e-5..=65504.0;

/// A weight in 8 bits.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// The initialiser with the integers.
    pub(crate) values: String,
    /// The one with a scale for each channel.
    pub(crate) scales: String,
}

impl Stored {
    /// Adds both initialisers to the graph that holds the weight of that name.
    pub(crate) fn add(
        editor: &mut Editor,
        report: &mut ConversionReport,
        name: &str,
        (shape, values): (&[u64], Vec<i8>),
        (scale_shape, scales): (&[u64], &[f32]),
    ) -> Self {
        report.weights.converted += values.len() as u64;
        let values = values.into_iter().map(|value| value as u8).collect();
        let values = TensorProto::of_bytes(&format!("{name}_quantized"), &ElementType::Int8, shape, values);
        let scales = TensorProto::of_floats(&format!("{name}_scale"), scale_shape, scales);
        Stored { values: editor.add_weight_beside(name, values), scales: editor.add_weight_beside(name, scales) }
    }
}

/// What became of a `Gather`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// New nodes stand for it.
    Converted,
    /// It stays, for a reason.
    Kept(&'static str),
    /// It does not read a table of weights.
    NotConcerned,
}

/// Weights in the order of the file, with one scale for each index of their first dimension.
#[derive(Debug)]
pub(crate) struct Tables {
    stored: HashMap<String, Stored>,
    /// The scales of rows as lookups read them, by the name of the table.
    lookups: HashMap<String, String>,
    largest: u8,
}

impl Tables {
    /// None yet; `largest` is the largest level of a weight.
    pub(crate) fn new(largest: u8) -> Self {
        Tables { stored: HashMap::new(), lookups: HashMap::new(), largest }
    }

    /// Whether a weight is stored already.
    pub(crate) fn holds(&self, name: &str) -> bool {
        self.stored.contains_key(name)
    }

    /// The weight in 8 bits; `None` if a value is not finite.
    pub(crate) fn rows(
        &mut self,
        editor: &mut Editor,
        report: &mut ConversionReport,
        name: &str,
    ) -> Result<Option<Stored>, TensorError> {
        if let Some(stored) = self.stored.get(name) {
            return Ok(Some(stored.clone()));
        }
        let shape = editor.form(&Weight { name: name.to_owned(), is_transposed: false })?.shape;
        let Some(values) = editor.floats(name).transpose()? else { return Ok(None) };
        let Some(channels) = quantize_channels(&values, &shape, 0, self.largest) else { return Ok(None) };
        drop(values);
        let scales = (&[channels.scales.len() as u64][..], &channels.scales[..]);
        let stored = Stored::add(editor, report, name, (&shape, channels.values), scales);
        self.stored.insert(name.to_owned(), stored.clone());
        Ok(Some(stored))
    }

    /// Converts a `Gather` on rows of a large float32 weight.
    pub(crate) fn gather(
        &mut self,
        editor: &mut Editor,
        report: &mut ConversionReport,
        node: &NodeProto,
    ) -> Result<Lookup, TensorError> {
        let ([table, indices], Some(output)) = (&node.input[..], node.output.first()) else {
            return Ok(Lookup::NotConcerned);
        };
        let Some(weight) = editor.weight(table) else { return Ok(Lookup::NotConcerned) };
        let form = editor.form(&weight)?;
        if !form.is_float32 {
            return Ok(Lookup::NotConcerned);
        }
        if form.shape.iter().product::<u64>() < LEAST_ELEMENTS {
            return Ok(Lookup::Kept("its table is small"));
        }
        let rank = form.shape.len();
        if weight.is_transposed || rank < 2 || axis_index(node.int("axis").unwrap_or(0), rank) != Some(0) {
            return Ok(Lookup::Kept("it does not take rows of a table"));
        }
        let Some(rows) = self.rows(editor, report, &weight.name)? else {
            return Ok(Lookup::Kept(UNUSUAL_WEIGHT));
        };
        let scales = self.scales(editor, &weight.name, &rows, &form.shape)?;
        report.casts += look_up(editor, node, [&rows.values, &scales], indices, output);
        Ok(Lookup::Converted)
    }

    /// The scales of rows, shaped as what is looked up in them is multiplied.
    fn scales(
        &mut self,
        editor: &mut Editor,
        table: &str,
        rows: &Stored,
        shape: &[u64],
    ) -> Result<String, TensorError> {
        if let Some(scales) = self.lookups.get(table) {
            return Ok(scales.clone());
        }
        let scales = editor.floats(&rows.scales).transpose()?.unwrap_or_default();
        let mut of_rows = vec![1; shape.len()];
        of_rows[0] = shape[0];
        let name = format!("{}_of_rows", rows.scales);
        let is_narrow = shape[1..].iter().product::<u64>() < NARROW_ROW;
        let is_half = is_narrow && scales.iter().all(|scale| EXACT_IN_FP16.contains(scale));
        let scales = if is_half {
            let bytes = scales.iter().flat_map(|scale| f16::from_f32(*scale).to_le_bytes()).collect();
            TensorProto::of_bytes(&name, &ElementType::Float16, &of_rows, bytes)
        } else {
            TensorProto::of_floats(&name, &of_rows, &scales)
        };
        let scales = editor.add_weight_beside(&rows.scales, scales);
        self.lookups.insert(table.to_owned(), scales.clone());
        Ok(scales)
    }
}

/// Adds the nodes, and says how many of them are casts.
fn look_up(editor: &mut Editor, node: &NodeProto, tables: [&str; 2], indices: &str, output: &str) -> u64 {
    let label = node.label();
    let names = [label.clone(), editor.fresh(&format!("{output}_scales"))];
    let mut casts = 0;
    let mut operands = Vec::with_capacity(2);
    for (table, name) in tables.into_iter().zip(names) {
        let found = editor.fresh(&format!("{name}_found"));
        let is_float = editor.tensor(table).is_some_and(|tensor| tensor.element() == ElementType::Float32);
        editor.push(NodeProto::of("Gather", &name, &[table, indices], &[&found], vec![]));
        if is_float {
            operands.push(found);
            continue;
        }
        let cast = editor.fresh(&format!("{name}_cast"));
        let to_float = vec![AttributeProto::of_int("to", 1)];
        editor.push(NodeProto::of("Cast", &cast, &[&found], &[&cast], to_float));
        operands.push(cast);
        casts += 1;
    }
    let label = format!("{label}_rescale");
    editor.push(NodeProto::of("Mul", &label, &[&operands[0], &operands[1]], &[output], vec![]));
    casts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::precision::quantize_dynamic::tests::{converted, model, tensor};
    use crate::precision::{ConversionError, DynamicQuantization, quantize_dynamic};

    fn lookup(rows: u64) -> crate::proto::ModelProto {
        let table: Vec<f32> = (0..rows * 8).map(|index| if index < 8 { 0.5 } else { 127.0 }).collect();
        let gather = NodeProto::of("Gather", "e", &["w", "x"], &["y"], vec![]);
        model(vec![gather], vec![TensorProto::of_floats("w", &[rows, 8], &table)])
    }

    #[test]
    fn every_row_has_its_own_scale() {
        let (graph, _, operators) = converted(lookup(2048), &DynamicQuantization::default());
        assert_eq!(operators, "Gather Cast Gather Cast Mul");
        let scales = tensor(&graph, "w_scale_of_rows");
        assert_eq!((scales.element(), scales.floats().unwrap()[1]), (ElementType::Float16, 1.0));
        let tiny = TensorProto::of_floats("w", &[2048, 8], &[1e-4; 2048 * 8]);
        let gather = NodeProto::of("Gather", "e", &["w", "x"], &["y"], vec![]);
        let (graph, _, operators) = converted(model(vec![gather], vec![tiny]), &DynamicQuantization::default());
        assert_eq!(tensor(&graph, "w_scale_of_rows").element(), ElementType::Float32);
        assert_eq!(operators, "Gather Cast Gather Mul");
    }

    #[test]
    fn wide_rows_have_scales_in_float32() {
        let table: Vec<f32> = (0..256 * 256).map(|index| if index < 256 { 0.5 } else { 127.0 }).collect();
        let gather = NodeProto::of("Gather", "e", &["w", "x"], &["y"], vec![]);
        let model = model(vec![gather], vec![TensorProto::of_floats("w", &[256, 256], &table)]);
        let (graph, _, _) = converted(model, &DynamicQuantization::default());
        let scales = tensor(&graph, "w_scale_of_rows");
        assert_eq!(
            (scales.dims.clone(), scales.floats().unwrap()[..2].to_vec()),
            (vec![256, 1], vec![0.5 / 127.0, 1.0])
        );
        assert_eq!(graph.initializer.len(), 2);
    }

    #[test]
    fn small_and_unwanted_tables_stay() {
        let Err(ConversionError::NothingToConvert { kept }) = quantize_dynamic(lookup(8), &Default::default()) else {
            panic!()
        };
        assert_eq!(kept[0].reason, "its table is small");
        let off = DynamicQuantization { embeddings: false, ..Default::default() };
        let nothing = ConversionError::NothingToConvert { kept: vec![] };
        assert_eq!(quantize_dynamic(lookup(2048), &off).unwrap_err(), nothing);
    }
}
