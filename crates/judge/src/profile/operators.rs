//! The nodes of a cell by operator.

use std::collections::BTreeMap;

use super::kernels::is_on_tensor_cores;
use super::{CellTime, Part};
use onnx::cost::macs_of_shapes;
use record::profiled::ProfiledNode;

/// The nodes of one operator on one provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    pub operator: String,
    pub provider: String,
    pub nodes: u64,
    /// How often they ran in an inference.
    pub executions: f64,
    /// `None`: the profiler saw them being handed to a device only.
    pub time: Option<Part>,
    /// Multiply-accumulates of an inference; `None` where those of a node are unknown.
    pub macs: Option<u64>,
    /// Bytes of their outputs in an inference.
    pub output_bytes: u64,
    /// Bytes of their inputs and outputs in an inference, and of the largest node; `None` where those of a node are unknown.
    pub moved: Option<(f64, u64)>,
    /// Where kernels were recorded.
    pub launched: Option<Launched>,
}

/// What launching the kernels of nodes takes, and what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Launched {
    /// Nanoseconds of the host in the calls that launch them, the recording of them included: the mean over processes.
    pub launch_ns: f64,
    /// Nodes with a kernel on tensor cores.
    pub on_tensor_cores: u64,
}

impl Launched {
    fn add(&mut self, node: &ProfiledNode) {
        self.launch_ns += node.on_device.iter().map(|there| there.launch_ns).sum::<f64>() / node.on_device.len() as f64;
        self.on_tensor_cores += u64::from(is_on_tensor_cores(node));
    }
}

/// The rows of a cell: the longest first, then by name.
pub fn operators(time: &CellTime<'_>) -> Vec<Operator> {
    let mut rows: BTreeMap<(&str, &str), Operator> = BTreeMap::new();
    for (node, part) in time.profile.nodes.iter().zip(&time.nodes) {
        let key = (node.node.operator.as_str(), node.node.provider.as_str());
        let row = rows.entry(key).or_insert_with(|| Operator {
            operator: key.0.to_owned(),
            provider: key.1.to_owned(),
            nodes: 0,
            executions: 0.0,
            time: None,
            macs: Some(0),
            output_bytes: 0,
            moved: Some((0.0, 0)),
            launched: None,
        });
        row.nodes += 1;
        row.executions += node.executions;
        row.time = part.as_ref().map(|part| Part::sum(row.time.iter().chain([part])));
        if !node.on_device.is_empty() {
            row.launched.get_or_insert_default().add(node);
        }
        row.macs = row.macs.zip(macs(node)).and_then(|(sum, node_macs)| sum.checked_add(node_macs));
        row.output_bytes += (node.node.output_bytes as f64 * node.executions) as u64;
        row.moved = row
            .moved
            .zip(moved_bytes(node))
            .map(|((all, largest), bytes)| (all + bytes as f64 * node.executions, largest.max(bytes)));
    }
    let mut rows: Vec<Operator> = rows.into_values().collect();
    let length = |row: &Operator| row.time.as_ref().map_or(0.0, |part| part.estimate().value);
    rows.sort_by(|a, b| length(b).total_cmp(&length(a)));
    rows
}

/// Multiply-accumulates of a node in an inference, by the shapes that the profiler saw.
pub fn macs(node: &ProfiledNode) -> Option<u64> {
    let shapes = |texts: &[String]| texts.iter().map(|text| shape(text)).collect::<Option<Vec<_>>>();
    let once = macs_of_shapes(&node.node.operator, &shapes(&node.node.inputs)?, &shapes(&node.node.outputs)?)?;
    Some((once as f64 * node.executions) as u64)
}

/// Bytes of the inputs and outputs of a node, by the shapes that the profiler saw.
fn moved_bytes(node: &ProfiledNode) -> Option<u64> {
    let values = node.node.inputs.iter().chain(&node.node.outputs);
    values.map(|text| bytes(text)).try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?))
}

fn bytes(text: &str) -> Option<u64> {
    let element = match text.split_once('[')?.0 {
        "double" | "int64" | "uint64" => 8,
        "float" | "int32" | "uint32" => 4,
        "float16" | "bfloat16" | "int16" | "uint16" => 2,
        "int8" | "uint8" | "bool" => 1,
        _ => return None,
    };
    shape(text)?.iter().try_fold(element, |product: u64, size| product.checked_mul(*size))
}

/// The sizes in `float[1,3,224,224]`.
pub(super) fn shape(text: &str) -> Option<Vec<u64>> {
    let (_, sizes) = text.strip_suffix(']')?.split_once('[')?;
    sizes.split(',').filter(|size| !size.is_empty()).map(|size| size.parse().ok()).collect()
}

/// What operators are called that do the same work in another form: fused, quantised, or in another layout.
pub fn group(operator: &str) -> &str {
    const CONVOLUTIONS: [&str; 8] =
        ["FusedConv", "QLinearConv", "ConvInteger", "NhwcConv", "NhwcFusedConv", "NchwcConv", "QConv", "DeformConv"];
    const PRODUCTS: [&str; 14] = [
        "Gemm",
        "FusedGemm",
        "QGemm",
        "FusedMatMul",
        "TransposeMatMul",
        "MatMulInteger",
        "MatMulInteger16",
        "QLinearMatMul",
        "DynamicQuantizeMatMul",
        "MatMulIntegerToFloat",
        "MatMulNBits",
        "MatMulBnb4",
        "MatMulFpQ4",
        "GemmFastGelu",
    ];
    const POOLS: [&str; 2] = ["QLinearAveragePool", "NhwcMaxPool"];
    match operator {
        _ if CONVOLUTIONS.contains(&operator) => "Conv",
        _ if PRODUCTS.contains(&operator) => "MatMul",
        _ if POOLS.contains(&operator) => operator.trim_start_matches("QLinear").trim_start_matches("Nhwc"),
        _ => operator.strip_prefix("QLinear").unwrap_or(operator),
    }
}
