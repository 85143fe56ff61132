//! The rewriting: nodes in 8 bits between `QuantizeLinear` and `DequantizeLinear`.
//!
//! Input: nodes in order, and the plan. Output: new nodes and constants in the editor. Deliberately absent: deciding
//! (`plan` does), weights (`kernel`).
//!
//! A value that a node in 8 bits makes keeps its name behind its `DequantizeLinear`, so that nobody who reads it changes.
//! A value that is made in float32 keeps its name as it is, and nodes in 8 bits read a copy.

use std::collections::{BTreeMap, HashMap};

use super::StaticQuantization;
use super::plan::{NO_RANGE, Plan, Role, data_inputs};
use crate::precision::activation_ranges::Range;
use crate::precision::edit::{Editor, Rewrite, Weight, keep_inside};
use crate::precision::embedding::Lookup;
use crate::precision::keep::{ASKED, INSIDE_ASKED, Keep};
use crate::precision::quantize_dynamic::{self as dynamic, DynamicQuantization};
use crate::precision::report::ConversionReport;
use crate::precision::scales::{Affine, FULL_WEIGHT, REDUCED_WEIGHT};
use crate::proto::{NodeProto, TensorProto};
use crate::{ElementType, TensorError};

/// How branches and bodies are quantised, as reports say it.
const UNOBSERVED: &str = "calibration does not see values inside subgraphs of If, Loop and Scan; activations there get their \
                          scales at run time";

/// Why convolutions in them stay.
const UNOBSERVED_CONVOLUTION: &str = "calibration does not see values inside a subgraph, and convolutions with scales found at run time are slower than float32";

/// Scale and zero point of an activation, with the names of the constants that hold them.
#[derive(Clone, Debug)]
struct Levels {
    affine: Affine,
    scale: String,
    zero_point: String,
}

/// A weight in 8 bits, and the value that it has in the graph.
#[derive(Clone, Debug)]
pub(super) struct StoredWeight {
    pub(super) value: String,
    pub(super) scales: Vec<f32>,
}

pub(super) struct Work<'a> {
    pub(super) editor: Editor,
    pub(super) report: ConversionReport,
    ranges: &'a BTreeMap<String, Range>,
    /// The largest level of a weight.
    pub(super) largest: u8,
    /// What is in branches and bodies, and embeddings everywhere.
    pub(super) dynamic: dynamic::Made,
    levels: HashMap<String, Levels>,
    /// Values of float32 nodes, by name, as nodes in 8 bits read them.
    copies: HashMap<String, String>,
    /// Weights by the dimension of their output channels.
    pub(super) weights: HashMap<(Weight, usize), StoredWeight>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        editor: Editor,
        ranges: &'a BTreeMap<String, Range>,
        options: &StaticQuantization,
        keep: Keep,
    ) -> Self {
        let largest = if options.reduce_range { REDUCED_WEIGHT } else { FULL_WEIGHT };
        let StaticQuantization { reduce_range, embeddings } = *options;
        let inside = DynamicQuantization { keep, reduce_range, embeddings, convolutions: false };
        let mut dynamic = dynamic::Made::new(inside);
        dynamic.slower = UNOBSERVED_CONVOLUTION;
        Work {
            editor,
            report: ConversionReport::default(),
            ranges,
            largest,
            dynamic,
            levels: HashMap::new(),
            copies: HashMap::new(),
            weights: HashMap::new(),
        }
    }
}

impl Work<'_> {
    /// Puts the next node in 8 bits, or back as it is.
    pub(super) fn take(&mut self, node: NodeProto, index: usize, plan: &Plan) -> Result<(), TensorError> {
        let Some(role) = plan.roles.get(index).copied().flatten() else {
            return self.leave(node, plan.kept.get(&index));
        };
        let mut new = node.clone();
        let n_data = data_inputs(&node, role).count();
        for input in new.input.iter_mut().take(n_data) {
            if !plan.made.contains(input)
                && let Some(copy) = self.copy(input, plan)
            {
                *input = copy;
            }
        }
        let is_stored = match role {
            Role::Convolution | Role::Product => match self.levels(&node.input[0], plan) {
                Some(levels) => self.kernel(&mut new, role, levels.affine.scale)?,
                None => Err(NO_RANGE),
            },
            _ => Ok(()),
        };
        if let Err(reason) = is_stored {
            self.report.keep(&node, reason);
            self.editor.put_back(node);
            return Ok(());
        }
        self.report.convert(&node);
        let made = node.output.first().filter(|output| plan.made.contains(*output));
        let made = made.and_then(|output| Some((output, self.levels(output, plan)?)));
        let exact = made.as_ref().map(|(output, _)| self.editor.fresh(&format!("{output}_exact")));
        if let Some(exact) = &exact {
            new.output[0].clone_from(exact);
        }
        self.editor.push(new);
        self.editor.release(&node);
        if let (Some((output, levels)), Some(exact)) = (&made, &exact) {
            self.through(exact, output, levels);
        }
        Ok(())
    }

    /// A node without a role: an embedding, or one that computes in float32.
    fn leave(&mut self, mut node: NodeProto, reason: Option<&String>) -> Result<(), TensorError> {
        let is_lookup = node.is_standard() && node.op_type() == "Gather";
        let lookup = match self.dynamic.tables().filter(|_| is_lookup) {
            Some(tables) => tables.gather(&mut self.editor, &mut self.report, &node)?,
            None => Lookup::NotConcerned,
        };
        match (lookup, reason) {
            (Lookup::Converted, _) => {
                self.report.convert(&node);
                self.editor.release(&node);
                return Ok(());
            }
            (Lookup::Kept(reason), _) => self.report.keep(&node, reason),
            (Lookup::NotConcerned, Some(reason)) => self.report.keep(&node, reason.as_str()),
            (Lookup::NotConcerned, None) => {}
        }
        match reason {
            Some(reason) if reason == ASKED => keep_inside(&node, INSIDE_ASKED, &mut self.report),
            _ => self.take_inside(&mut node)?,
        }
        self.editor.put_back(node);
        Ok(())
    }

    /// What quantises at run time.
    pub(super) fn inside(&mut self) -> dynamic::Work<'_> {
        dynamic::Work { editor: &mut self.editor, report: &mut self.report, made: &mut self.dynamic }
    }

    /// What is in the branches or the body of a node: its activations were not observed.
    fn take_inside(&mut self, node: &mut NodeProto) -> Result<(), TensorError> {
        let before = self.report.quantize_nodes;
        self.inside().take_inside(node)?;
        if self.report.quantize_nodes > before {
            self.report.note(UNOBSERVED);
        }
        Ok(())
    }

    /// The scale of a value, from the range of the value that it has its range from.
    fn levels(&mut self, value: &str, plan: &Plan) -> Option<Levels> {
        let source = plan.source(value)?;
        if let Some(levels) = self.levels.get(source) {
            return Some(levels.clone());
        }
        let range = self.ranges.get(source)?;
        let affine = Affine::of_range(range.least, range.most);
        let scale = TensorProto::of_floats(&format!("{source}_scale"), &[], &[affine.scale]);
        let zero_point = vec![affine.zero_point];
        let zero_point = TensorProto::of_bytes(&format!("{source}_zero_point"), &ElementType::Uint8, &[], zero_point);
        let levels =
            Levels { affine, scale: self.editor.add_weight(scale), zero_point: self.editor.add_weight(zero_point) };
        self.levels.insert(source.to_owned(), levels.clone());
        Some(levels)
    }

    /// What nodes in 8 bits read instead of a value that float32 nodes read as it is.
    fn copy(&mut self, value: &str, plan: &Plan) -> Option<String> {
        if let Some(copy) = self.copies.get(value) {
            return Some(copy.clone());
        }
        let levels = self.levels(value, plan)?;
        let copy = self.editor.fresh(&format!("{value}_dequantized"));
        self.through(value, &copy, &levels);
        self.copies.insert(value.to_owned(), copy.clone());
        Some(copy)
    }

    /// `QuantizeLinear` and `DequantizeLinear`.
    fn through(&mut self, from: &str, to: &str, levels: &Levels) {
        let integers = self.editor.fresh(&format!("{to}_quantized"));
        let (scale, zero_point) = (levels.scale.as_str(), levels.zero_point.as_str());
        let quantize = NodeProto::of("QuantizeLinear", &integers, &[from, scale, zero_point], &[&integers], vec![]);
        self.editor.push(quantize);
        let label = self.editor.fresh(&format!("{to}_dequantize"));
        self.editor.push(NodeProto::of("DequantizeLinear", &label, &[&integers, scale, zero_point], &[to], vec![]));
        self.report.quantize_nodes += 2;
    }
}
