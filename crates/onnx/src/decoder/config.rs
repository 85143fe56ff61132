//! What lies beside a decoder: `genai_config.json` of onnxruntime-genai, `config.json` of transformers.
//!
//! Input: a model file, or a folder, and the names that a specification gives. Output: the numbers that are declared there,
//! each with `None` where it is not; names of tensors by pattern. Deliberately absent: whether the model agrees (`recognise`).

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::{DecoderError, NameOrigin};
use reading::plain_file;

/// The configuration of onnxruntime-genai.
const GENAI: &str = "genai_config.json";

/// The configuration of transformers.
const TRANSFORMERS: &str = "config.json";

/// What a configuration declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// The file.
    pub(super) file: PathBuf,
    pub(super) layers: Option<u64>,
    pub(super) heads: Option<u64>,
    pub(super) key_heads: Option<u64>,
    pub(super) head_size: Option<u64>,
    /// The width by the heads, which is what heads have where nothing else is said.
    pub(super) usual_head_size: Option<u64>,
    pub(super) vocabulary: Option<u64>,
    pub(super) context: Option<u64>,
    /// Whether past and present are one buffer (onnxruntime-genai).
    pub(super) shares_buffer: Option<bool>,
    /// Names of inputs and outputs, those of the specification first.
    pub(super) tensors: Vec<NamedTensor>,
}

/// What a tensor is called, or with `%d` for the layer, those of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTensor {
    /// What it is: a key of `genai_config.json`.
    pub(super) key: String,
    pub(super) name: String,
    pub(super) is_output: bool,
    /// Who says so; `None`: a configuration that is not of this very model file.
    pub(super) origin: Option<NameOrigin>,
}

impl NamedTensor {
    /// Whether it stands for the caches of all layers, as `past_key_names` does and `output_cross_qk_names` does not.
    pub(super) fn is_of_caches(&self) -> bool {
        self.key.ends_with("_names") && ["past_", "present_"].iter().any(|word| self.key.contains(word))
    }
}

/// Names of a decoder's inputs and outputs where perfrun does not know them, by the keys of `genai_config.json` of
/// onnxruntime-genai. They come before those of a file beside the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "decoder", extend("minProperties" = 1))]
pub struct DecoderNames {
    /// Of inputs.
    #[serde(skip_serializing_if = "is_default")]
    pub inputs: DecoderInputNames,
    /// Of outputs.
    #[serde(skip_serializing_if = "is_default")]
    pub outputs: DecoderOutputNames,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A part that is called so in `genai_config.json`, or as exporters call it.
macro_rules! names {
    ($(#[$of_type:meta])* $type:ident, $schema:tt { $($(#[$about:meta])* $field:ident,)* }) => {
        $(#[$of_type])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        #[schemars(rename = $schema, extend("minProperties" = 1))]
        pub struct $type {
            $($(#[$about])*
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schemars(length(min = 1))]
            pub $field: Option<String>,)*
        }
    };
}

names!(
    /// Names of a decoder's inputs. Those of caches have `%d` for the number of the layer.
    DecoderInputNames, "decoder-inputs" {
    /// Ids of the tokens.
    input_ids,
    /// 1 for every position that is seen.
    attention_mask,
    /// Positions of the tokens.
    position_ids,
    /// Keys of earlier tokens: `past.%d.key`.
    past_key_names,
    /// Values of earlier tokens: `past.%d.value`.
    past_value_names,
    /// Both in one tensor: `past_%d`.
    past_names,
    /// Keys of what an encoder has made.
    cross_past_key_names,
    /// Values of what an encoder has made.
    cross_past_value_names,
    /// Number of positions with the new ones.
    total_sequence_length,
    /// Index of the last position of each sequence.
    seqlens_k,
    /// Where new positions are written in a cache of fixed length.
    write_indices,
    /// Whether the cache is read, in a merged model.
    use_cache_branch,
    /// What an encoder has made.
    encoder_hidden_states,
    /// 1 for every position of it that is seen.
    encoder_attention_mask,
});

names!(
    /// Names of a decoder's outputs. Those of caches have `%d` for the number of the layer.
    DecoderOutputNames, "decoder-outputs" {
    /// Scores of the next token.
    logits,
    /// Keys with the new ones: `present.%d.key`.
    present_key_names,
    /// Values with the new ones: `present.%d.value`.
    present_value_names,
    /// Both in one tensor: `present_%d`.
    present_names,
    /// Keys of what an encoder has made.
    cross_present_key_names,
    /// Values of what an encoder has made.
    cross_present_value_names,
});

impl Declared {
    /// What lies beside a model, and the names of a specification, which come first.
    ///
    /// # Errors
    ///
    /// A file that is no JSON.
    pub fn of(model: &Path, own: Option<&DecoderNames>) -> Result<Option<Self>, DecoderError> {
        let beside = Declared::beside(model)?;
        let Some(own) = own else { return Ok(beside) };
        let mut declared = beside.unwrap_or_default();
        // As a configuration has them; plain texts are always JSON.
        let value = serde_json::to_value(own).unwrap_or_default();
        let mut names = tensors(&value, Some(&NameOrigin::Specification));
        let is_new =
            |old: &NamedTensor| !names.iter().any(|name| (&name.key, name.is_output) == (&old.key, old.is_output));
        declared.tensors.retain(is_new);
        names.append(&mut declared.tensors);
        Ok(Some(Declared { tensors: names, ..declared }))
    }

    /// Names of the caches among the inputs, or the outputs: what a key says, and a pattern.
    pub(super) fn caches(&self, is_output: bool) -> impl Iterator<Item = (&str, &str)> {
        let of_caches = self.tensors.iter().filter(move |name| name.is_output == is_output && name.is_of_caches());
        of_caches.map(|name| (name.key.as_str(), name.name.as_str()))
    }

    /// What lies beside a model; in the folder above where an `onnx` folder holds the model alone.
    fn beside(model: &Path) -> Result<Option<Self>, DecoderError> {
        for folder in folders_of(model) {
            let file = folder.join(GENAI);
            if let Some(value) = json(&file)? {
                let decoder = &value["model"]["decoder"];
                let is_of_model = text(&decoder["filename"]).is_some_and(|name| folder.join(name) == model);
                let origin = is_of_model.then(|| NameOrigin::File(file.clone()));
                return Ok(Some(Declared { file, tensors: tensors(decoder, origin.as_ref()), ..genai(&value) }));
            }
            let file = folder.join(TRANSFORMERS);
            if let Some(value) = json(&file)? {
                return Ok(Some(Declared { file, ..transformers(&value) }));
            }
        }
        Ok(None)
    }
}

/// The model file of a folder of onnxruntime-genai: what its configuration calls the decoder's.
pub fn model_of_folder(folder: &Path) -> Option<PathBuf> {
    let value = json(&folder.join(GENAI)).ok().flatten()?;
    let name = text(&value["model"]["decoder"]["filename"])?;
    let file = folder.join(&name);
    // A name that leads out of the folder is no model of it.
    let is_below = Path::new(&name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    (is_below && file.is_file()).then_some(file)
}

/// What a model of a folder of onnxruntime-genai or optimum is called: as the folder, since those of all models have the
/// same names, such as `model.onnx` and `decoder_model_merged.onnx`.
pub fn name_by_folder(model: &Path) -> Option<String> {
    /// Words of names that say nothing of the network.
    const PLAIN: [&str; 17] = [
        "model",
        "decoder",
        "with",
        "past",
        "merged",
        "optimized",
        "quantized",
        "fp32",
        "fp16",
        "int8",
        "uint8",
        "q8",
        "int4",
        "uint4",
        "q4",
        "q4f16",
        "bnb4",
    ];
    let model = std::path::absolute(model).ok()?;
    let stem = model.file_stem()?.to_str()?;
    let is_plain = stem.split(['_', '-']).all(|word| PLAIN.contains(&word));
    let holds = |folder: &Path| {
        (is_plain && folder.join(TRANSFORMERS).is_file()) || model_of_folder(folder).is_some_and(|own| own == model)
    };
    let mut folders = folders_of(&model).into_iter();
    Some(folders.find(|folder| holds(folder))?.file_name()?.to_string_lossy().into_owned())
}

/// The folder of a model, and the one above where an `onnx` folder holds the model alone.
fn folders_of(model: &Path) -> Vec<PathBuf> {
    let Some(folder) = model.parent() else { return Vec::new() };
    let above = folder.parent().filter(|_| folder.file_name().is_some_and(|name| name == "onnx"));
    [Some(folder), above].into_iter().flatten().map(Path::to_owned).collect()
}

/// The content of a file; `None` where there is none.
fn json(file: &Path) -> Result<Option<Value>, DecoderError> {
    /// Configurations have a few kilobytes.
    const MOST_BYTES: u64 = 4 << 20;
    if !fs::metadata(file).is_ok_and(|about| about.is_file() && about.len() <= MOST_BYTES) {
        return Ok(None);
    }
    let unreadable = |problem: String| DecoderError::Unreadable { file: file.to_owned(), problem };
    let text = plain_file::text(file).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map(Some).map_err(|error| unreadable(error.to_string()))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of these fields that is a number.
fn number(value: &Value, names: &[&str]) -> Option<u64> {
    names.iter().find_map(|name| value[name].as_u64())
}

/// The names below `inputs` and `outputs`.
fn tensors(decoder: &Value, origin: Option<&NameOrigin>) -> Vec<NamedTensor> {
    let of_side = |(side, is_output): (&str, bool)| {
        let names = decoder[side].as_object().into_iter().flatten();
        let named = names.filter_map(|(key, name)| {
            Some(NamedTensor { key: key.clone(), name: text(name)?, is_output, origin: origin.cloned() })
        });
        named.collect::<Vec<_>>()
    };
    [("inputs", false), ("outputs", true)].into_iter().flat_map(of_side).collect()
}

fn genai(value: &Value) -> Declared {
    let (model, decoder) = (&value["model"], &value["model"]["decoder"]);
    Declared {
        layers: number(decoder, &["num_hidden_layers"]),
        heads: number(decoder, &["num_attention_heads"]),
        key_heads: number(decoder, &["num_key_value_heads"]),
        head_size: number(decoder, &["head_size"]),
        vocabulary: number(model, &["vocab_size"]),
        context: number(model, &["context_length"]),
        shares_buffer: value["search"]["past_present_share_buffer"].as_bool(),
        ..Declared::default()
    }
}

fn transformers(value: &Value) -> Declared {
    // Of a model of texts and images, the part that is this.
    let own = if value["text_config"].is_object() { &value["text_config"] } else { value };
    let is_second = own["is_encoder_decoder"] == true;
    let heads = match is_second {
        true => number(own, &["decoder_attention_heads", "num_heads", "num_attention_heads"]),
        false => number(own, &["num_attention_heads", "n_head", "num_heads"]),
    };
    let width = number(own, &["hidden_size", "n_embd", "d_model"]);
    Declared {
        layers: match is_second {
            true => number(own, &["num_decoder_layers", "decoder_layers", "num_layers"]),
            false => number(own, &["num_hidden_layers", "n_layer", "num_layers"]),
        },
        heads,
        key_heads: number(own, &["num_key_value_heads"]),
        head_size: number(own, &["head_dim", "d_kv"]),
        usual_head_size: width.zip(heads).and_then(|(width, heads)| width.checked_div(heads)),
        vocabulary: number(own, &["vocab_size"]),
        context: number(own, &["max_position_embeddings", "n_positions", "n_ctx", "max_target_positions"]),
        ..Declared::default()
    }
}
