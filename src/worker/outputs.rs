//! What a worker does with a model's outputs: looks at them, hashes them, writes them down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::protocol::Answer;
use crate::backend::{Backend, Failure, FailureKind, OutputTensor};
use crate::measure::stop::StopReason;
use crate::onnx::ElementType;
use crate::stats::random::fnv1a64;

/// The outputs for the first input set: computed again, because the last sample may have used another one.
pub(super) fn first_outputs(backend: &mut dyn Backend) -> Result<Vec<OutputTensor>, Failure> {
    backend.select(0);
    backend.iterate(1)?;
    backend.outputs()
}

/// What the outputs of all input sets have in common.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Their shapes, if they are the same for every set.
    pub(super) shapes: Option<BTreeMap<String, Vec<u64>>>,
    /// Outputs that hold NaN or infinity for some set, by name.
    pub(super) non_finite: Vec<String>,
}

/// Runs every input set once.
pub(super) fn survey(backend: &mut dyn Backend) -> Result<Survey, Failure> {
    let mut shapes: Vec<BTreeMap<String, Vec<u64>>> = Vec::new();
    let mut found = Vec::new();
    for set in 0..backend.input_sets() {
        backend.select(set);
        backend.iterate(1)?;
        let outputs = backend.outputs()?;
        found.extend(non_finite(&outputs));
        shapes.push(outputs.into_iter().map(|output| (output.name, output.shape)).collect());
    }
    let first = shapes.first().cloned();
    let is_constant = shapes.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(Survey { shapes: first.filter(|_| is_constant), non_finite: found })
}

/// What is found in the outputs after the last sample.
#[derive(Debug)]
pub(super) struct Checked {
    /// Hash of the outputs for the first input set.
    pub(super) output_hash: String,
    /// Outputs that hold NaN or infinity, by name.
    pub(super) non_finite: Vec<String>,
}

impl Checked {
    /// The end of a command.
    pub(super) fn into_answer(self, stop: Option<StopReason>) -> Answer {
        Answer::Done { warmup: None, stop, output_hash: Some(self.output_hash), non_finite: self.non_finite }
    }
}

/// Names of the outputs that hold NaN or infinity.
pub(super) fn non_finite(outputs: &[OutputTensor]) -> Vec<String> {
    outputs.iter().filter(|output| has_non_finite(output)).map(|output| output.name.clone()).collect()
}

/// FNV-1a over names, shapes and bytes of all outputs, as 16 hex digits.
pub(super) fn hash_outputs(outputs: &[OutputTensor]) -> String {
    let mut text = Vec::new();
    for output in outputs {
        text.extend_from_slice(format!("{}\0{:?}\0", output.name, output.shape).as_bytes());
        text.extend_from_slice(&fnv1a64(&output.bytes).to_le_bytes());
    }
    format!("{:016x}", fnv1a64(&text))
}

fn has_non_finite(output: &OutputTensor) -> bool {
    use half::{bf16, f16};
    let bytes = &output.bytes;
    match output.element {
        ElementType::Float32 => bytes.as_chunks::<4>().0.iter().any(|b| !f32::from_le_bytes(*b).is_finite()),
        ElementType::Float64 => bytes.as_chunks::<8>().0.iter().any(|b| !f64::from_le_bytes(*b).is_finite()),
        ElementType::Float16 => bytes.as_chunks::<2>().0.iter().any(|b| !f16::from_le_bytes(*b).is_finite()),
        ElementType::Bfloat16 => bytes.as_chunks::<2>().0.iter().any(|b| !bf16::from_le_bytes(*b).is_finite()),
        _ => false,
    }
}

/// Writes each output as `<index>.npy` (NumPy's format 1.0) with `names.json` beside them.
pub(super) fn write_outputs(folder: &Path, outputs: &[OutputTensor]) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        for (index, output) in outputs.iter().enumerate() {
            let mut file = BufWriter::new(File::create(folder.join(format!("{index}.npy")))?);
            file.write_all(&npy_header(output)?)?;
            file.write_all(&output.bytes)?;
            file.flush()?;
        }
        let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        std::fs::write(folder.join("names.json"), serde_json::to_vec(&names)?)
    };
    write().map_err(|error| Failure::new(FailureKind::Output, format!("{}: {error}", folder.display())))
}

/// The header of NumPy's `.npy` format, version 1.0, padded to a multiple of 64 bytes.
fn npy_header(output: &OutputTensor) -> io::Result<Vec<u8>> {
    let descriptor = match output.element {
        ElementType::Float32 => "<f4",
        ElementType::Float64 => "<f8",
        ElementType::Float16 => "<f2",
        ElementType::Int8 => "|i1",
        ElementType::Int16 => "<i2",
        ElementType::Int32 => "<i4",
        ElementType::Int64 => "<i8",
        ElementType::Uint8 => "|u1",
        ElementType::Uint16 | ElementType::Bfloat16 => "<u2",
        ElementType::Uint32 => "<u4",
        ElementType::Uint64 => "<u8",
        ElementType::Bool => "|b1",
        ElementType::String | ElementType::Other(_) => {
            return Err(io::Error::other(format!(
                "output `{}` of type {} has no .npy form",
                output.name, output.element
            )));
        }
    };
    let shape: String = output.shape.iter().map(|length| format!("{length}, ")).collect();
    let mut dictionary = format!("{{'descr': '{descriptor}', 'fortran_order': False, 'shape': ({shape}), }}");
    let unpadded = 10 + dictionary.len() + 1;
    dictionary.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    dictionary.push('\n');
    let length = u16::try_from(dictionary.len()).map_err(|_| io::Error::other("too many dimensions for .npy"))?;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(dictionary.as_bytes());
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(values: &[f32]) -> OutputTensor {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        OutputTensor { name: "y".to_owned(), element: ElementType::Float32, shape: vec![values.len() as u64], bytes }
    }

    #[test]
    fn non_finite_outputs_are_found() {
        assert!(!has_non_finite(&output(&[0.0, -1.0])));
        assert!(has_non_finite(&output(&[0.0, f32::NAN])));
        assert!(has_non_finite(&output(&[f32::INFINITY])));
    }

    #[test]
    fn the_hash_sees_values_names_and_shapes() {
        let one = hash_outputs(&[output(&[1.0, 2.0])]);
        assert_ne!(one, hash_outputs(&[output(&[1.0, 2.5])]));
        let mut reshaped = output(&[1.0, 2.0]);
        reshaped.shape = vec![1, 2];
        assert_ne!(one, hash_outputs(&[reshaped]));
        assert_eq!(one, hash_outputs(&[output(&[1.0, 2.0])]));
    }

    #[test]
    fn npy_headers_are_aligned_and_name_shape_and_type() {
        let header = npy_header(&output(&[1.0, 2.0])).expect("a header");
        assert_eq!(header.len() % 64, 0);
        let text = String::from_utf8_lossy(&header[10..]).into_owned();
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, ), }"), "{text}");
    }
}
