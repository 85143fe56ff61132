//! What lies beside a decoder: `genai_config.json` of onnxruntime-genai, `config.json` of transformers.
//!
//! Input: a model file, or a folder. Output: the numbers that are declared there, each with `None` where it is not; names
//! of tensors by pattern. Deliberately absent: whether the model agrees (`recognise`).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::DecoderError;
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
    /// Names of past keys and values, then of an encoder's, with `%d` for the layer.
    pub(super) pasts: Vec<String>,
    /// Names of the outputs for them.
    pub(super) presents: Vec<String>,
    /// Names of inputs that are no caches, by the words that [`super::names`] knows them by.
    pub(super) inputs: Vec<(String, String)>,
    pub(super) logits: Option<String>,
}

impl Declared {
    /// What lies beside a model; in the folder above where an `onnx` folder holds the model alone.
    ///
    /// # Errors
    ///
    /// A file that is no JSON.
    pub fn beside(model: &Path) -> Result<Option<Self>, DecoderError> {
        let Some(folder) = model.parent() else { return Ok(None) };
        let mut folders = vec![folder.to_owned()];
        if folder.file_name().is_some_and(|name| name == "onnx") {
            folders.extend(folder.parent().map(Path::to_owned));
        }
        for folder in folders {
            for (name, read) in [(GENAI, genai as fn(&Value) -> Declared), (TRANSFORMERS, transformers)] {
                let file = folder.join(name);
                if let Some(value) = json(&file)? {
                    return Ok(Some(Declared { file, ..read(&value) }));
                }
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

/// What a model is called that a folder of onnxruntime-genai holds: as the folder, since its file is called `model.onnx`.
pub fn name_by_folder(model: &Path) -> Option<String> {
    let folder = model.parent()?;
    let name = folder.file_name()?.to_string_lossy().into_owned();
    (model_of_folder(folder)? == model).then_some(name)
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

fn genai(value: &Value) -> Declared {
    let (model, decoder) = (&value["model"], &value["model"]["decoder"]);
    let names = |side: &str, keys: [&str; 4]| -> Vec<String> {
        let named: Vec<Option<String>> = keys.iter().map(|key| text(&decoder[side][key])).collect();
        // Without the first two there is no order among them.
        let has_own = named.iter().take(2).all(Option::is_some);
        named.into_iter().map(Option::unwrap_or_default).filter(|_| has_own).collect()
    };
    let is_cache = |key: &str| key.starts_with("past_") || key.starts_with("cross_");
    let inputs = decoder["inputs"].as_object().into_iter().flatten();
    let inputs = inputs.filter(|(key, _)| !is_cache(key)).filter_map(|(key, name)| Some((key.clone(), text(name)?)));
    Declared {
        layers: number(decoder, &["num_hidden_layers"]),
        heads: number(decoder, &["num_attention_heads"]),
        key_heads: number(decoder, &["num_key_value_heads"]),
        head_size: number(decoder, &["head_size"]),
        vocabulary: number(model, &["vocab_size"]),
        context: number(model, &["context_length"]),
        shares_buffer: value["search"]["past_present_share_buffer"].as_bool(),
        pasts: names(
            "inputs",
            ["past_key_names", "past_value_names", "cross_past_key_names", "cross_past_value_names"],
        ),
        presents: names(
            "outputs",
            ["present_key_names", "present_value_names", "cross_present_key_names", "cross_present_value_names"],
        ),
        inputs: inputs.collect(),
        logits: text(&decoder["outputs"]["logits"]),
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
