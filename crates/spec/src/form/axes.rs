//! Forms of the axes: models, inputs, variants and runtimes. Devices are texts.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::dataset::DatasetForm;
use super::decode::DecodeForm;
use super::range::RangeForm;
use super::scalar::{
    DimensionSize, DimensionText, ElementText, LARGEST_DIMENSION, Name, Setting, Sha256Text, VARIABLE_PATTERN,
};
use super::shorthand::{OneOrMany, Ordered, described};
use super::values::ValuesForm;
use experiment::{
    BatchSearch, CALIBRATION_ITEMS, CacheForm, CacheKind, Calibration, DecoderNames, Execution, GraphOptimization,
    INT4_BLOCK, Io, MOST_THREADS, MockVariant, Network, Package, Precision, Quantization, Threads,
};

/// An entry of `models`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ModelEntry {
    /// A path, a folder or a glob; with the mock backend also a name.
    Path(String),
    /// With its settings.
    Form(Box<ModelForm>),
}

/// A model with its own name, check sum or inputs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "model", extend("minProperties" = 1))]
pub(crate) struct ModelForm {
    /// What reports call it. Default: the file's name without its ending.
    pub(crate) name: Option<Name>,
    /// The ONNX file, relative to this file. Needed unless the backend is `mock`.
    pub(crate) path: Option<String>,
    /// Instead of a file: a built-in network with the exact published structure and random (seeded) weights.
    /// `zoo:NAME` is short for `{ zoo: NAME }`.
    pub(crate) zoo: Option<Network>,
    /// Classes of that network, if it is a classifier. Default: as published.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) classes: Option<u32>,
    /// The side of that network's images, which are square. Default: as published, 224.
    #[schemars(range(min = 1, max = 8192))]
    pub(crate) image: Option<u32>,
    /// How that network is given its key/value cache, if it is a decoder. Default: `grown`.
    pub(crate) cache: Option<CacheForm>,
    /// In place of a file: where to fetch it. It needs `sha256`.
    pub(crate) url: Option<String>,
    /// In place of a file: a function of Python that returns the model, as `module:function`. A PyTorch module is exported to
    /// ONNX once, with its weights, so that every runtime runs the same model. It needs `takes`. Beside `path` it is how Python
    /// makes the same model, for runtimes that take it so, and nothing is exported. A class of transformers is read by its
    /// `from_pretrained`, and a folder in `args` may be relative to this file.
    #[schemars(regex(pattern = PYTHON_PATTERN), example = &"torchvision.models:densenet121")]
    pub(crate) python: Option<String>,
    /// Arguments of that function, by name.
    pub(crate) args: Map<String, Value>,
    /// What a model from Python takes, by name in the order of its arguments: shapes, in which a name is a size that `inputs`
    /// sets (`{ x: [batch, 3, 32, 32] }`), or `{ shape, element }`.
    pub(crate) takes: Ordered<TakesEntry>,
    /// The expected SHA-256 of the file.
    pub(crate) sha256: Option<Sha256Text>,
    /// This model's own inputs, in place of the experiment's.
    pub(crate) inputs: Option<Inputs>,
    /// In place of them, the calls of this model as a language model.
    pub(crate) decode: Option<DecodeForm>,
    /// Names of its inputs and outputs as a language model, where perfrun does not know them, by the keys of
    /// `genai_config.json`: `{ inputs: { past_key_names: "k_%d" } }`. Default: by that file beside the model, else by usual
    /// names; `perfrun inspect` says what they are.
    pub(crate) decoder: Option<DecoderNames>,
    /// Your own files for variants, in place of a conversion, by variant or precision: `{ int8: models/mine-int8.onnx }`.
    pub(crate) files: Ordered<String>,
    /// This model's own data, in place of the experiment's.
    pub(crate) dataset: Option<DatasetForm>,
}

/// `torchvision.models:densenet121`
pub(crate) const PYTHON_PATTERN: &str = r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_.]*$";

/// One input of a model from Python.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TakesEntry {
    /// Numbers, as float32.
    Shape(Vec<DimensionText>),
    /// With its type.
    Form(TakesForm),
}

/// One input of a model from Python, with its type.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "taken")]
pub(crate) struct TakesForm {
    /// Its shape; a name is a size that `inputs` sets.
    pub(crate) shape: Vec<DimensionText>,
    /// Type of its elements.
    pub(crate) element: ElementText,
}

described!(TakesEntry, "takes-entry", |generator| {
    let (shape, form) = (generator.subschema_for::<Vec<DimensionText>>(), generator.subschema_for::<TakesForm>());
    json_schema!({
        "description": "A shape of numbers in float32, or a map with the type.",
        "anyOf": [shape, form],
    })
});

/// The inputs axis.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Inputs {
    /// Sizes by dimension; lists multiply.
    Dimensions(Ordered<OneOrMany<SizeEntry>>),
    /// Named entries.
    Entries(Vec<InputEntry>),
}

/// What stands for the size of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum SizeEntry {
    /// One size.
    Size(DimensionSize),
    /// Several.
    Range(RangeForm),
    /// One that is found before anything is measured; of the batch only.
    Search(SearchForm),
}

/// A batch that is searched: the smallest whose throughput is within the margin of the best, for every cell. Batches of
/// 1, 2, 4 ... are tried, each in a fresh process, until memory runs out, a run has no time for its samples, or `to`;
/// where memory ran out, the largest that fits is found too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "batch-search")]
pub(crate) struct SearchForm {
    /// The batch is searched.
    pub(crate) search: SearchWord,
    /// Nothing larger is tried.
    #[serde(default = "most_searched")]
    #[schemars(range(min = 2, max = LARGEST_DIMENSION))]
    pub(crate) to: u64,
}

/// What can be searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SearchWord {
    /// The batch of the best throughput.
    Best,
}

impl JsonSchema for SearchWord {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "search".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": [BatchSearch::WORD] })
    }
}

fn most_searched() -> u64 {
    BatchSearch::MOST
}

impl<'de> Deserialize<'de> for SizeEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            size @ Value::Number(_) => serde_json::from_value(size).map(SizeEntry::Size),
            word @ Value::String(_) => {
                serde_json::from_value(word).map(|search| SizeEntry::Search(SearchForm { search, to: most_searched() }))
            }
            search if search.get("search").is_some() => serde_json::from_value(search).map(SizeEntry::Search),
            range => serde_json::from_value(range).map(SizeEntry::Range),
        }
        .map_err(D::Error::custom)
    }
}

described!(SizeEntry, "size-entry", |generator| {
    let (size, range) = (generator.subschema_for::<DimensionSize>(), generator.subschema_for::<RangeForm>());
    let search = generator.subschema_for::<SearchForm>();
    json_schema!({
        "description": "A size, a range of sizes, or for the batch `best`: the one that is found.",
        "anyOf": [size, { "type": "string", "enum": [BatchSearch::WORD] }, range, search],
    })
});

/// One input point.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "input")]
pub(crate) struct InputEntry {
    /// What reports call it.
    pub(crate) name: Name,
    /// Sizes of dimensions by name.
    #[serde(default)]
    pub(crate) dimensions: Ordered<DimensionSize>,
    /// Whole shapes by tensor.
    #[serde(default)]
    pub(crate) shapes: Ordered<Vec<DimensionSize>>,
    /// What fills the inputs: all of them, or by input.
    #[serde(default)]
    pub(crate) values: ValuesForm,
    /// A `.npz` file with an array for each input, by its name, or a `.npy` file for a model with one input; relative to
    /// this one. An array has the shape of its input, or several of them below each other: these are input sets, used in
    /// turn. With `batch`, longer arrays are cut into batches. Inputs below `values` need no array.
    #[serde(default)]
    #[schemars(length(min = 1))]
    pub(crate) file: Option<String>,
}

/// An entry of `variants`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum VariantEntry {
    /// A precision, which is its name too; with the mock backend any name.
    Precision(String),
    /// With its settings.
    Form(Box<VariantForm>),
}

/// A way to run the models. A list inside multiplies: `threads: [1, 4]` gives two variants.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "variant", extend("minProperties" = 1))]
pub(crate) struct VariantForm {
    /// What reports call it. Default: the base or the precision. What a list varies is added: `fp32-t4`, `fp32-basic`.
    pub(crate) name: Option<Name>,
    /// An earlier variant whose settings hold where this one says nothing.
    pub(crate) base: Option<String>,
    /// The arithmetic of the model: `fp32` is the model as stored, others are converted from it. Default: that of the
    /// base, or `fp32`, unless the name is that of another precision; then it is required.
    pub(crate) precision: Option<OneOrMany<Precision>>,
    /// How the model is converted to that precision.
    pub(crate) convert: Option<ConvertForm>,
    /// Threads inside an operator, or both counts. Default: chosen from the machine, and stated in the report.
    pub(crate) threads: Option<OneOrMany<ThreadsEntry>>,
    /// How many queries are served at once under `measure.load`, each by a session of its own. Default: one, and with
    /// `clients` as many as there are.
    #[schemars(range(min = 1, max = 256))]
    pub(crate) sessions: Option<u32>,
    /// Whether these queries are calls of one session instead. Default: false.
    pub(crate) shared_session: Option<bool>,
    /// How far ONNX Runtime rewrites the graph. Default: `all`.
    pub(crate) graph_optimization: Option<OneOrMany<GraphOptimization>>,
    /// Whether operators run one after the other or in parallel, which needs inter-op threads. Default: `parallel` with
    /// more than one inter-op thread.
    pub(crate) execution: Option<OneOrMany<Execution>>,
    /// How the cache of keys and values goes from one call of a decoder to the next. Default: as its file is made for.
    pub(crate) cache: Option<OneOrMany<CacheKind>>,
    /// Session entries by ONNX Runtime's own names, such as `session.intra_op.allow_spinning`.
    pub(crate) session: Ordered<Setting>,
    /// Options of providers, by device (`cpu`, `cuda`) and by ONNX Runtime's own names. That of `cpu` is `use_arena`, `1` unless set.
    pub(crate) provider: Ordered<ProviderForm>,
    /// Environment variables of the process that measures.
    #[schemars(extend("propertyNames" = { "pattern": VARIABLE_PATTERN }))]
    pub(crate) env: Ordered<Setting>,
    /// A command in front of the process that measures, such as `[numactl, -N0]`.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub(crate) wrap: Option<Vec<String>>,
    /// The entry of `runtimes` that this variant runs on, so that runtimes are compared like any variants. Variants that name
    /// none then run on the one entry that no variant names, or on ONNX Runtime. A released version, such as `1.30.0`, need not
    /// stand in `runtimes`.
    pub(crate) runtime: Option<Name>,
    /// Options of that runtime's adapter or program.
    pub(crate) options: Map<String, Value>,
    /// What the mock backend does differently here. Only with `backend: mock`.
    pub(crate) mock: Option<MockVariant>,
}

/// Options of one provider.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct ProviderForm(pub(crate) Ordered<Setting>);

described!(ProviderForm, "provider-options", |generator| {
    let setting = generator.subschema_for::<Setting>();
    json_schema!({
        "description": "Options of one provider, by ONNX Runtime's own names.",
        "type": "object",
        "minProperties": 1,
        "propertyNames": { "minLength": 1 },
        "examples": [{ "use_arena": 0 }],
        "additionalProperties": setting,
    })
});

/// How a model is converted.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "convert", extend("minProperties" = 1))]
pub(crate) struct ConvertForm {
    /// Whether inputs and outputs stay as they are, behind casts, or are converted too. With `fp16` and `bf16`. Default:
    /// `keep`.
    pub(crate) io: Option<Io>,
    /// Operators (`Softmax`) and nodes (by name) that stay as they are.
    pub(crate) keep: Option<Vec<String>>,
    /// How int8 activations get their scales: at run time, or beforehand from calibration data. Default: `auto`, static
    /// for models with convolutions.
    pub(crate) quantization: Option<Quantization>,
    /// How observed activations become a range, in static int8. Default: `min_max`.
    pub(crate) calibration: Option<Calibration>,
    /// Number of calibration items for static int8: of the dataset, else of the seeded input sets, of which there are 8 by default.
    #[schemars(range(min = 1, max = 100_000), default = "calibration_items")]
    pub(crate) items: Option<u32>,
    /// Whether int8 weights use only seven bits, for processors whose 8-bit products saturate. Default: false.
    pub(crate) reduce_range: Option<bool>,
    /// Weights of int4 that share a scale: a power of two from 16 to 256.
    #[schemars(range(min = 16, max = 256), default = "int4_block")]
    pub(crate) block: Option<u32>,
}

fn calibration_items() -> u32 {
    CALIBRATION_ITEMS
}

fn int4_block() -> u32 {
    INT4_BLOCK
}

/// Thread counts, as a number, a range or a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ThreadsEntry {
    /// Inside an operator.
    Intra(u32),
    /// Several counts inside an operator.
    Range(RangeForm),
    /// Both.
    Form(Threads),
}

described!(ThreadsEntry, "threads", |generator| {
    let (form, range) = (generator.subschema_for::<Threads>(), generator.subschema_for::<RangeForm>());
    json_schema!({
        "description": "Threads inside an operator, a range of such counts, or a map with both counts.",
        "anyOf": [{ "type": "integer", "minimum": 1, "maximum": MOST_THREADS }, range, form],
    })
});

/// An entry of `runtimes`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum RuntimeEntry {
    /// A version; with the mock backend also a name.
    Version(String),
    /// With its settings.
    Form(RuntimeForm),
}

/// A version of ONNX Runtime, a local build of it, or another program: an adapter for a framework of Python, or any command
/// that speaks the worker protocol.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "runtime", extend("minProperties" = 1))]
pub(crate) struct RuntimeForm {
    /// What reports call it. Default: the version; for a local build the name of its folder, or `local`.
    pub(crate) name: Option<Name>,
    /// A released version, with all three numbers. perfrun fetches it once and checks it.
    #[schemars(example = "1.31.1")]
    pub(crate) version: Option<String>,
    /// The package that the version comes in. Default: the one for the device, which is `onnxruntime` for `cpu`.
    pub(crate) package: Option<Package>,
    /// In place of a version: a local build, the file libonnxruntime.so or a folder that holds it, relative to this file.
    #[schemars(length(min = 1))]
    pub(crate) path: Option<String>,
    /// An adapter for a framework of Python: `pytorch`, `onnxruntime` (its Python API), `openvino` and `callable` come with
    /// perfrun; a path is a Python file of yours, relative to this one.
    #[schemars(length(min = 1), example = &"pytorch")]
    pub(crate) adapter: Option<String>,
    /// The Python that runs the adapter: a command, or a path relative to this file. Default: `python3`.
    #[schemars(length(min = 1), example = &"venv/bin/python")]
    pub(crate) python: Option<String>,
    /// A program that speaks the worker protocol, with its arguments. A first word with a slash is a path, relative to this
    /// file.
    #[schemars(length(min = 1), inner(length(min = 1)))]
    pub(crate) command: Option<Vec<String>>,
}

described!(RuntimeEntry, "runtime-entry", |generator| {
    let form = generator.subschema_for::<RuntimeForm>();
    json_schema!({
        "description": "A version with all three numbers, or a map with settings.",
        "anyOf": [{ "type": "string", "minLength": 1, "examples": ["1.31.1"] }, form],
    })
});

described!(ModelEntry, "model-entry", |generator| {
    let form = generator.subschema_for::<ModelForm>();
    json_schema!({
        "description": "A path, a folder or a glob, `zoo:NAME` for a network that perfrun makes, or a map with settings.",
        "anyOf": [{ "type": "string", "minLength": 1 }, form],
    })
});

described!(VariantEntry, "variant-entry", |generator| {
    let form = generator.subschema_for::<VariantForm>();
    json_schema!({
        "description": "A precision (`fp32`: the model as stored; `fp16`, `bf16`, `int8` and `int4` are converted from it), or a map with settings.",
        "anyOf": [{ "type": "string", "minLength": 1, "examples": ["fp16"] }, form],
    })
});

described!(Inputs, "inputs", |generator| {
    let sizes = <OneOrMany<SizeEntry>>::json_schema(generator);
    let entry = generator.subschema_for::<InputEntry>();
    json_schema!({
        "description": "Sizes of dimensions by name, where lists and ranges multiply (`b16-sequence128`), or a list of entries.",
        "anyOf": [
            {
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "minLength": 1 },
                "additionalProperties": sizes,
            },
            { "type": "array", "minItems": 1, "items": entry },
        ],
    })
});
