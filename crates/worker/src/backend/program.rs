//! Programs that are not perfrun: the request for a cell, and the files that they read their inputs from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::inputs::{fill, held_tokens, sets_within_limit, tensor_bytes, texts};
use super::{CellFacts, CellRequest, DecodeRequest, Failure, FailureKind, TensorRequest};
use experiment::{GraphOptimization, PythonModel};
use files::array::{Array, save_npy};
use files::scratch::Scratch;
use onnx::ElementType;

/// A cell of a program that speaks the protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramRequest {
    /// The ONNX file, converted where the variant asks for it; none where the program makes the model itself.
    pub model: Option<PathBuf>,
    /// The model as Python makes it, if it does.
    #[serde(default)]
    pub source: Option<PythonSource>,
    /// Where to run it, by perfrun's label: `cpu`, `cuda:0`.
    pub device: String,
    /// Threads inside an operator.
    pub threads: u32,
    /// The variant's options, as the specification has them.
    #[serde(default)]
    pub options: Map<String, Value>,
    /// Settings of ONNX Runtime, for a program that has one.
    #[serde(default)]
    pub settings: OnnxruntimeSettings,
    /// Folders in which the user's own modules are: that of the specification.
    #[serde(default)]
    pub path: Vec<PathBuf>,
}

/// A model that Python makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PythonSource {
    /// `module:function`
    pub call: String,
    /// The function's arguments by name.
    pub args: Map<String, Value>,
    /// The weights that the exported ONNX file has, as the exporter wrote them; none where nothing was exported.
    #[serde(default)]
    pub weights: Option<PathBuf>,
}

/// What a variant says of a session of ONNX Runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnnxruntimeSettings {
    /// Graph optimisation level; none: all.
    #[serde(default)]
    pub graph_optimization: Option<GraphOptimization>,
    /// Session entries by ONNX Runtime's own names.
    #[serde(default)]
    pub session: BTreeMap<String, String>,
    /// Options of the device's provider, by ONNX Runtime's own names.
    #[serde(default)]
    pub provider: BTreeMap<String, String>,
}

impl ProgramRequest {
    /// The request to a program for a run.
    pub(super) fn of_cell(facts: &CellFacts<'_>) -> Self {
        let CellFacts { variant, device, .. } = facts;
        let source = facts.source.map(|python| PythonSource {
            call: python.call.clone(),
            args: python.args.clone(),
            weights: facts
                .model
                .filter(|_| python.is_exported())
                .map(|model| model.with_file_name(PythonModel::WEIGHTS))
                .filter(|path| path.is_file()),
        });
        ProgramRequest {
            model: facts.model.map(Path::to_owned),
            source,
            device: device.label(),
            threads: facts.threads,
            options: variant.options.clone(),
            settings: OnnxruntimeSettings {
                graph_optimization: variant.graph_optimization,
                session: facts.session.clone(),
                provider: variant.provider.get(&device.provider).cloned().unwrap_or_default(),
            },
            path: facts.folder.map(Path::to_owned).into_iter().collect(),
        }
    }
}

/// Writes the input sets of a request as the program reads them, one file for each tensor with the sets along its first
/// dimension, and the tokens that a decoder's cache holds, and names the files in the request. They live as long as what is
/// returned.
///
/// # Errors
///
/// Types that cannot be fed, files of the user's that do not fit, a temporary folder that cannot be written.
pub(crate) fn write_inputs(request: &mut CellRequest) -> Result<Scratch, Failure> {
    let unwritable = |error: std::io::Error| {
        Failure::new(FailureKind::Internal, format!("the inputs cannot be written: {error}; set TMPDIR"))
    };
    let folder = Scratch::new().map_err(unwritable)?;
    let sets = sets_within_limit(&request.tensors, request.input_sets)?;
    for (index, tensor) in request.tensors.iter_mut().enumerate() {
        let path = folder.path().join(format!("{index}.npy"));
        save_npy(&all_sets(tensor, sets)?, &path).map_err(unwritable)?;
        tensor.file = Some(path);
    }
    request.input_sets = sets as u32;
    if let Some(decode) = &mut request.decode {
        let path = folder.path().join("held.npy");
        save_npy(&held(decode)?, &path).map_err(unwritable)?;
        decode.held = Some(path);
    }
    Ok(folder)
}

/// The tokens that the cache of every sequence holds, `[batch, context]`.
fn held(decode: &DecodeRequest) -> Result<Array, Failure> {
    let rows: Vec<Vec<i64>> = (0..decode.call.batch).map(|row| held_tokens(decode, row)).collect::<Result<_, _>>()?;
    let bytes = rows.iter().flatten().flat_map(|id| id.to_le_bytes()).collect();
    let shape = vec![decode.call.batch, decode.call.context];
    Ok(Array { name: "held".to_owned(), element: ElementType::Int64, shape, bytes, keys: Vec::new() })
}

fn all_sets(tensor: &TensorRequest, sets: usize) -> Result<Array, Failure> {
    let TensorRequest { name, element, shape, .. } = tensor;
    let mut bytes = Vec::new();
    for set in 0..sets {
        if *element == ElementType::String {
            bytes.extend(texts(tensor, set)?.bytes);
        } else {
            let begin = bytes.len();
            bytes.resize(begin + tensor_bytes(tensor)? as usize, 0);
            fill(tensor, set, &mut bytes[begin..])?;
        }
    }
    let shape = std::iter::once(sets as u64).chain(shape.iter().copied()).collect();
    Ok(Array { name: name.clone(), element: element.clone(), shape, bytes, keys: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BackendRequest;
    use files::array::read_npy;

    #[test]
    fn a_program_gets_the_tokens_that_the_cache_of_perfruns_own_worker_holds() {
        let decode = crate::backend::request::decoding(2, 5);
        let backend = BackendRequest::Program(ProgramRequest::default());
        let mut request = CellRequest::new("c", backend, Vec::new());
        request.decode = Some(decode.clone());
        let _folder = write_inputs(&mut request).expect("a folder");
        let held = request.decode.and_then(|decode| decode.held).expect("a file");
        let held = read_npy(&held).expect("an array");
        let rows: Vec<i64> = (0..2).flat_map(|row| held_tokens(&decode, row).expect("tokens")).collect();
        assert_eq!(
            (held.shape.as_slice(), held.numbers()),
            (&[2, 5][..], Some(rows.iter().map(|id| *id as f64).collect()))
        );
        assert!(rows[..5] != rows[5..] && rows.iter().all(|id| (0..100).contains(id)), "{rows:?}");
    }

    #[test]
    fn inputs_are_those_that_a_worker_of_perfrun_makes() {
        let float = TensorRequest::random("x", ElementType::Float32, &[2, 3], vec![7, 8]);
        let text = TensorRequest::random("t", ElementType::String, &[2], vec![1, 2]);
        let backend = BackendRequest::Program(ProgramRequest { device: "cpu".to_owned(), ..ProgramRequest::default() });
        let request = CellRequest::new("c", backend, vec![float.clone(), text.clone()]);
        let mut request = CellRequest { input_sets: 2, ..request };
        let folder = write_inputs(&mut request).expect("a folder");
        let read = |index: usize| read_npy(request.tensors[index].file.as_deref().expect("a file")).expect("an array");
        assert_eq!(read(0).shape, [2, 2, 3]);
        let mut second = vec![0; 24];
        fill(&float, 1, &mut second).expect("random numbers");
        assert_eq!(read(0).bytes[24..], second);
        let words: Vec<String> = texts(&text, 1).expect("words").texts().map(str::to_owned).collect();
        assert!(read(1).texts().skip(2).eq(words.iter().map(String::as_str)));
        drop(folder);
        assert!(!request.tensors[0].file.as_deref().is_some_and(Path::exists));
    }
}
