//! The header of a model file: what it takes, gives, contains and comes from, without its weights.
//!
//! Input: a path. Output: a [`ModelHeader`], in milliseconds and little memory whatever the size of the file, because
//! weights are skipped by seeking. Deliberately absent: checking the graph (ONNX Runtime does when it loads it),
//! training graphs, and the whole model in memory (`proto::ModelProto::parse_from_bytes` gives that).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{OnnxError, OnnxErrorKind, pointer, recognise};
use super::external::Bounds;
use super::graph::{Contents, Walker};
use super::signature::Signature;
use super::stored::Stored;
use super::wire::Fault;
use reading::nearest::near_path;
use reading::plain_file;
use reading::stand_in;

/// What an ONNX file says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelHeader {
    /// Inputs and outputs.
    pub signature: Signature,
    /// The program that wrote the file, as it calls itself; may be empty.
    pub producer: String,
    /// That program's version; may be empty.
    pub producer_version: String,
    /// Version of the file format.
    pub ir_version: u64,
    /// Version of each operator set by domain; the standard's own is `ai.onnx`.
    pub opset_imports: BTreeMap<String, i64>,
    /// Name of the main graph; may be empty.
    pub graph_name: String,
    /// Nodes of the main graph by operator, operators of other domains written `domain.Operator`; a call of a function
    /// that the file defines counts once.
    pub operators: BTreeMap<String, u64>,
    /// Elements of all floating-point weights, in initialisers and `Constant` nodes, without the state of batch normalisations: see [`super::cost::parameters`].
    pub parameters: u64,
    /// What the weights are stored as, where that is not float32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Stored>,
    /// Nodes that compute what they do in training, by operator, in graphs and functions too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub training: BTreeMap<String, u64>,
    /// Size of the file, in bytes.
    pub file_bytes: u64,
    /// Files next to the model that hold weights, sorted.
    pub external_files: Vec<ExternalFile>,
}

impl ModelHeader {
    /// Number of nodes of the main graph.
    pub fn node_count(&self) -> u64 {
        self.operators.values().sum()
    }

    /// Size of the model with its external data, in bytes; `None` if some of that is missing.
    pub fn total_bytes(&self) -> Option<u64> {
        self.external_files.iter().try_fold(self.file_bytes, |total, file| total.checked_add(file.bytes?))
    }
}

/// A file that a model takes weights from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalFile {
    /// Its path as the model has it, relative to the model's folder.
    pub location: String,
    /// The path joined to the model's folder.
    pub path: PathBuf,
    /// Its size; `None`: there is no such file.
    pub bytes: Option<u64>,
}

/// Reads the header of the model at `path`.
///
/// # Errors
///
/// [`OnnxError`] for a path where nothing is, a file that is empty, a pointer of Git LFS or git-annex, not ONNX, cut off or damaged
/// (with the byte where that shows), or one that the operating system does not let us read. Missing external data is
/// not an error: see [`ExternalFile::bytes`].
pub fn read_header(path: &Path) -> Result<ModelHeader, OnnxError> {
    let fail = |kind| OnnxError { path: path.to_owned(), kind };
    let (file, bytes) = open(path).map_err(fail)?;
    let contents = read_contents(file, bytes).map_err(fail)?;
    header(contents, path, bytes).map_err(fail)
}

fn open(path: &Path) -> Result<(File, u64), OnnxErrorKind> {
    let missing_or_io = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => match stand_in::dangling(path) {
            Some((target, remedy)) => OnnxErrorKind::Dangling { target, remedy },
            None => OnnxErrorKind::Missing { near: near_path(path) },
        },
        io::ErrorKind::InvalidInput => OnnxErrorKind::NotAFile,
        _ => OnnxErrorKind::Io(error),
    };
    let file = plain_file::open(path).map_err(missing_or_io)?;
    let bytes = file.metadata().map_err(OnnxErrorKind::Io)?.len();
    Ok((file, bytes))
}

/// Reads what the model holds from any source of `size` bytes.
fn read_contents<R: Read + Seek>(mut source: R, size: u64) -> Result<Contents, OnnxErrorKind> {
    if size == 0 {
        return Err(OnnxErrorKind::Empty);
    }
    let mut head = Vec::new();
    source.by_ref().take(1024).read_to_end(&mut head).map_err(OnnxErrorKind::Io)?;
    if let Some(pointer) = pointer(&head) {
        return Err(pointer);
    }
    source.seek(SeekFrom::Start(0)).map_err(OnnxErrorKind::Io)?;

    let mut walker = Walker::new(source, size);
    let fault = walker.model().err();
    let contents = walker.contents;
    let not_onnx = |offset, detail| OnnxErrorKind::NotOnnx { offset, detail, instead: recognise(&head) };
    match fault {
        Some(Fault::Io(error)) => Err(OnnxErrorKind::Io(error)),
        // Every writer puts the version first, so that bytes which fail before it are something else altogether.
        Some(Fault::Truncated { offset, .. }) if contents.ir_version == 0 => {
            Err(not_onnx(offset, "a length beyond the end of the file".to_owned()))
        }
        Some(Fault::Damaged { offset, detail }) if contents.ir_version == 0 => Err(not_onnx(offset, detail)),
        Some(Fault::Truncated { offset, missing }) => Err(OnnxErrorKind::Truncated { offset, missing }),
        Some(Fault::Damaged { offset, detail }) => Err(OnnxErrorKind::Damaged { offset, detail }),
        None if contents.ir_version == 0 => Err(not_onnx(size, "no version of the format".to_owned())),
        None if !contents.has_graph => Err(OnnxErrorKind::Damaged { offset: size, detail: "no graph".to_owned() }),
        // The standard demands it from version 3 on. It is written after the graph: a cut there shows here only.
        None if contents.ir_version >= 3 && contents.opset_imports.is_empty() => {
            Err(OnnxErrorKind::Damaged { offset: size, detail: "no opset is declared".to_owned() })
        }
        None => Ok(contents),
    }
}

fn header(contents: Contents, path: &Path, file_bytes: u64) -> Result<ModelHeader, OnnxErrorKind> {
    let initialisers: BTreeSet<String> = contents.initialisers;
    // Before version 4 every initialiser is listed among the inputs; later ones that are listed have a default.
    let inputs = contents.inputs.into_iter().filter(|input| !initialisers.contains(&input.name)).collect();
    let bounds = Bounds::of(path);
    let external = |location: String| {
        let path = bounds.path(&location)?;
        let bytes = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
        Ok(ExternalFile { location, path, bytes })
    };
    Ok(ModelHeader {
        signature: Signature { inputs, outputs: contents.outputs },
        producer: contents.producer,
        producer_version: contents.producer_version,
        ir_version: contents.ir_version,
        opset_imports: contents.opset_imports,
        graph_name: contents.graph_name,
        operators: contents.operators,
        parameters: contents.parameters.total(),
        stored: contents.held.stored(),
        training: contents.training.nodes(),
        file_bytes,
        external_files: contents.external_data.into_iter().map(external).collect::<Result<_, OnnxErrorKind>>()?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;
    use prost::Message;

    use super::*;
    use crate::cost::parameters::parameters;
    use crate::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};
    use crate::sample::{external_weight, model, node};

    fn read_bytes(bytes: &[u8]) -> Result<Contents, OnnxErrorKind> {
        read_contents(Cursor::new(bytes), bytes.len() as u64)
    }

    fn read_model(model: &ModelProto) -> ModelHeader {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        read_header(&path).unwrap()
    }

    #[test]
    fn a_header_tells_what_the_model_takes_and_holds() {
        let header = read_model(&model());
        let texts = |tensors: &[crate::TensorType]| tensors.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(texts(&header.signature.inputs), ["x: float32 [N, 3]"]);
        assert_eq!(texts(&header.signature.outputs), ["y: float32 [N, 10]"]);
        assert_eq!((header.producer.as_str(), header.producer_version.as_str()), ("tests", "1.2"));
        assert_eq!((header.ir_version, header.graph_name.as_str()), (8, "main"));
        assert_eq!(header.opset_imports, BTreeMap::from([("ai.onnx".to_owned(), 17)]));
        let operators = [("Constant", 1), ("ConstantOfShape", 1), ("If", 2), ("com.microsoft.FusedConv", 1)];
        assert_eq!(header.operators, operators.map(|(name, count)| (name.to_owned(), count)).into());
        assert_eq!(header.node_count(), 5);
        // w 2x3, sparse 5, branch 3; neither the small `Constant`, nor the int64 shape, nor the fill value.
        assert_eq!(header.parameters, 6 + 5 + 3);
        assert_eq!(header.total_bytes(), Some(header.file_bytes));
        assert_eq!(header.stored, None);
    }

    #[test]
    fn a_header_tells_what_quantised_weights_are_stored_as() {
        let bits = |bits: i64| AttributeProto { name: Some("bits".to_owned()), i: Some(bits), ..Default::default() };
        let stored = |nodes: Vec<NodeProto>| {
            let graph = GraphProto { node: nodes, ..model().graph.into_iter().next().unwrap_or_default() };
            read_model(&ModelProto { graph: Some(graph), ..model() }).stored.map(|stored| stored.in_sentence())
        };
        let packed = stored(vec![node("MatMulNBits", "com.microsoft", vec![bits(8)])]);
        assert_eq!(packed.as_deref(), Some("int8 weights (MatMulNBits)"));
        let pairs = ["QuantizeLinear", "DequantizeLinear"].map(|operator| node(operator, "", Vec::new()));
        assert_eq!(stored(pairs.into()).as_deref(), Some("int8 (QDQ)"));
    }

    #[test]
    fn external_data_is_named_with_its_size_or_its_absence() {
        let folder = tempfile::tempdir().unwrap();
        let mut model = model();
        let graph = model.graph.as_mut().unwrap();
        graph.initializer.push(external_weight("a", "weights.bin"));
        graph.initializer.push(external_weight("b", "weights.bin"));
        graph.node[0].attribute[0].t = Some(external_weight("c", "absent.bin").into());
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        File::create(folder.path().join("weights.bin")).unwrap().set_len(4_000_000).unwrap();
        let header = read_header(&path).unwrap();
        let found: Vec<_> = header.external_files.iter().map(|file| (file.location.as_str(), file.bytes)).collect();
        assert_eq!(found, [("absent.bin", None), ("weights.bin", Some(4_000_000))]);
        assert_eq!(header.external_files[1].path, folder.path().join("weights.bin"));
        assert_eq!(header.total_bytes(), None);
        let missing = header.check_files(&path).unwrap_err().kind.to_string();
        assert_eq!(missing, "its external data file `absent.bin` is missing");
        // The weight in a `Constant` node counts, though its file is missing.
        assert_eq!(header.parameters, 6 + 5 + 3 + 3_000_000);
    }

    #[test]
    fn parameters_are_those_of_the_whole_model_without_the_state_of_batch_normalisations() {
        let mut model = model();
        let inputs = ["x", "scale", "bias", "mean", "variance"];
        let normalize = NodeProto::of("BatchNormalization", "", &inputs, &["y"], vec![]);
        let graph = model.graph.as_mut().unwrap();
        graph.initializer.extend(inputs[1..].iter().map(|name| TensorProto::of_floats(name, &[10], &[1.0; 10])));
        graph.node.push(normalize.clone());
        // The same in a branch, where the names are those of its own.
        let branch = graph.node[1].attribute[0].g.as_mut().unwrap();
        branch.initializer.push(TensorProto::of_floats("mean", &[10], &[1.0; 10]));
        branch.node.push(normalize);
        let weight = AttributeProto::of_tensor("value", TensorProto::of_floats("", &[8, 8], &[1.0; 64]));
        graph.node.push(NodeProto::of("Constant", "", &[], &["in a node"], vec![weight]));
        // A function has none.
        let body = model.functions[0].node[0].attribute[0].clone();
        let branch = GraphProto { initializer: body.t.as_deref().into_iter().cloned().collect(), ..Default::default() };
        model.functions[0].node[0].attribute.push(AttributeProto::of_graph("then_branch", branch));
        assert_eq!(read_model(&model).parameters, 6 + 5 + 3 + 20 + 64);
        assert_eq!(parameters(&model), 6 + 5 + 3 + 20 + 64);
    }

    #[test]
    fn packed_and_negative_dimensions_are_counted_without_overflow() {
        let mut model = model();
        let graph = model.graph.as_mut().unwrap();
        graph.initializer =
            vec![TensorProto { dims: vec![i64::MAX, i64::MAX], data_type: Some(1), ..Default::default() }];
        assert_eq!(read_model(&model).parameters, u64::MAX);
        // Field 1 of `TensorProto` packed: 0x0a, length 2, 3 and 5; then data_type float.
        let tensor = [0x0a, 2, 3, 5, 0x10, 1];
        let graph = [&[0x2a, 6], &tensor[..], &[0x2a, 15, 0x08], &[0xff; 9], &[0x01, 0x08, 4, 0x10, 1]].concat();
        let bytes = [&[0x08, 8, 0x3a, graph.len() as u8], &graph[..], &[0x42, 2, 0x10, 17]].concat();
        assert_eq!(read_bytes(&bytes).unwrap().parameters.total(), 15);
    }

    #[test]
    fn what_is_not_a_model_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let kind = |bytes: &[u8]| {
            let path = folder.path().join("x.onnx");
            std::fs::write(&path, bytes).unwrap();
            read_header(&path).unwrap_err().kind
        };
        assert!(matches!(read_header(&folder.path().join("no.onnx")).unwrap_err().kind, OnnxErrorKind::Missing { .. }));
        assert!(matches!(read_header(folder.path()).unwrap_err().kind, OnnxErrorKind::NotAFile));
        assert!(matches!(kind(b""), OnnxErrorKind::Empty));
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 99\n";
        assert!(matches!(kind(pointer), OnnxErrorKind::Pointer { bytes: Some(99), .. }));
        assert!(
            matches!(kind(b"PK\x03\x04rest"), OnnxErrorKind::NotOnnx { instead: Some(name), .. } if name.contains("zip"))
        );
        assert!(matches!(kind(b"\n\n\n"), OnnxErrorKind::NotOnnx { instead: Some("a text file"), .. }));
        assert!(matches!(kind(&[0x08, 8]), OnnxErrorKind::Damaged { offset: 2, .. }));
    }

    #[test]
    fn a_cut_is_told_with_its_place_wherever_it_is() {
        let bytes = model().encode_to_vec();
        // Functions come last, after everything that a model must have; this one is written with its tag and length.
        let functions = bytes.len() - model().functions[0].encoded_len() - 3;
        for end in 1..bytes.len() {
            match read_bytes(&bytes[..end]).map(|_| ()) {
                Err(OnnxErrorKind::Truncated { offset, missing }) => assert!(offset <= end as u64 && missing > 0),
                Err(OnnxErrorKind::Damaged { offset, .. }) => assert_eq!(offset, end as u64),
                Err(OnnxErrorKind::NotOnnx { .. }) => assert!(end < 2),
                Ok(()) => assert_eq!(end, functions),
                other => panic!("cut at {end}: {other:?}"),
            }
        }
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let mut graph = GraphProto::default();
        for _ in 0..90 {
            let attribute = AttributeProto { g: Some(graph.into()), ..Default::default() };
            graph = GraphProto { node: vec![node("If", "", vec![attribute])], ..Default::default() };
        }
        let model = ModelProto { ir_version: Some(8), graph: Some(graph), ..Default::default() };
        let error = read_bytes(&model.encode_to_vec()).unwrap_err();
        assert!(matches!(error, OnnxErrorKind::Damaged { detail, .. } if detail.contains("nested")));
    }

    #[test]
    fn what_nothing_looks_into_is_written_back() {
        // Field 26 of `ModelProto`, the configuration of several devices.
        let bytes = [&model().encode_to_vec()[..], &[0xd2, 0x01, 3, 1, 2, 3]].concat();
        let again = ModelProto::decode(bytes.as_slice()).unwrap().encode_to_vec();
        assert_eq!(again, bytes);
        assert!(read_bytes(&bytes).is_ok());
    }

    /// As PyTorch writes it for a module in training, by an initialiser or a `Constant` node, whole or packed.
    #[test]
    fn nodes_that_train_are_counted() {
        let truth = |name: &str, value: u8| TensorProto::of_bytes(name, &crate::ElementType::Bool, &[], vec![value]);
        let packed = TensorProto { raw_data: None, int32_data: vec![1], ..truth("packed", 1) };
        let constant =
            AttributeProto { name: Some("value".to_owned()), t: Some(Box::new(truth("", 1))), ..Default::default() };
        let dropout = |switch: &str| NodeProto::of("Dropout", "d", &["x", "ratio", switch], &["y"], vec![]);
        let normalisation = |mode| {
            let mode = vec![AttributeProto::of_int("training_mode", mode)];
            NodeProto::of("BatchNormalization", "b", &["x", "s", "b", "m", "v"], &["y"], mode)
        };
        let graph = GraphProto {
            node: vec![
                NodeProto::of("Constant", "c", &[], &["made"], vec![constant]),
                dropout("on"),
                dropout("packed"),
                dropout("made"),
                NodeProto::of("Identity", "i", &["on"], &["again"], vec![]),
                dropout("again"),
                dropout("off"),
                NodeProto::of("Dropout", "d", &["x"], &["y"], vec![]),
                normalisation(0),
                normalisation(1),
            ],
            initializer: vec![truth("on", 1), truth("off", 0), packed],
            ..Default::default()
        };
        let training = read_model(&ModelProto { graph: Some(graph), ..model() }).training;
        assert_eq!(training, [("BatchNormalization".to_owned(), 1), ("Dropout".to_owned(), 4)].into());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = model().encode_to_vec();
            for (position, byte) in changes {
                let at = position.index(bytes.len());
                bytes[at] = byte;
            }
            let _either = read_bytes(&bytes).is_ok();
            bytes.truncate(cut.index(bytes.len()));
            let _either = read_bytes(&bytes).is_ok();
        }

        #[test]
        fn random_bytes_are_no_model(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            // A valid version and graph by chance would take more luck than a test run has.
            prop_assert!(read_bytes(&bytes).is_err());
        }
    }
}
