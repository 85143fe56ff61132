//! The names of networks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Built-in networks with random (seeded) weights, untrained. Structures are exactly as published; `gpt-tiny` and `gpt-small`
/// have Llama's in sizes of perfrun's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "network")]
pub enum Network {
    /// DenseNet-121, 8.0 M parameters.
    Densenet121,
    /// ResNet-18, 11.7 M parameters.
    Resnet18,
    /// ResNet-50, 25.6 M parameters.
    Resnet50,
    /// EfficientNet-B0, 5.3 M parameters.
    #[serde(rename = "efficientnet_b0")]
    EfficientnetB0,
    /// MobileNetV2, 3.5 M parameters.
    #[serde(rename = "mobilenet_v2")]
    MobilenetV2,
    /// ViT-B/16, 86.6 M parameters.
    #[serde(rename = "vit_b_16")]
    VitB16,
    /// BERT-base, 109.5 M parameters; sizes of batch and sequence.
    BertBase,
    /// A BERT of two layers, 4.4 M parameters; sizes of batch and sequence.
    BertTiny,
    /// GPT-2 small with a key/value cache, 124.4 M parameters; sizes of batch, sequence and past_sequence.
    #[serde(rename = "gpt2_small")]
    Gpt2Small,
    /// A Llama-like decoder with a key/value cache: 4 layers of width 256, vocabulary 4,096, 5.1 M parameters; sizes depend on
    /// `cache`, of `grown` batch_size, sequence_length and past_sequence_length.
    #[serde(rename = "gpt-tiny")]
    GptTiny,
    /// The same with 12 layers of width 768, vocabulary 32,000, 124.7 M parameters.
    #[serde(rename = "gpt-small")]
    GptSmall,
}

impl Network {
    /// Every network.
    pub const ALL: [Network; 11] = [
        Network::Densenet121,
        Network::Resnet18,
        Network::Resnet50,
        Network::EfficientnetB0,
        Network::MobilenetV2,
        Network::VitB16,
        Network::BertBase,
        Network::BertTiny,
        Network::Gpt2Small,
        Network::GptTiny,
        Network::GptSmall,
    ];

    /// The word of specifications.
    pub fn name(self) -> &'static str {
        match self {
            Network::Densenet121 => "densenet121",
            Network::Resnet18 => "resnet18",
            Network::Resnet50 => "resnet50",
            Network::EfficientnetB0 => "efficientnet_b0",
            Network::MobilenetV2 => "mobilenet_v2",
            Network::VitB16 => "vit_b_16",
            Network::BertBase => "bert_base",
            Network::BertTiny => "bert_tiny",
            Network::Gpt2Small => "gpt2_small",
            Network::GptTiny => "gpt-tiny",
            Network::GptSmall => "gpt-small",
        }
    }

    /// The network of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Network::ALL.into_iter().find(|network| network.name() == name)
    }
}

/// How a decoder is given the keys and values of earlier tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "cache-form")]
pub enum CacheForm {
    /// As Optimum exports it: `past_key_values.N.key` in, `present.N.key` with the new tokens out, plain operators.
    Grown,
    /// As onnxruntime-genai's builder writes it: the same names, `GroupQueryAttention`, and one buffer for past and present.
    Shared,
    /// As Mobius writes it: `key_cache.N` of a fixed `capacity`, into which `TensorScatter` writes; ONNX operator set 24.
    Static,
    /// As Optimum merges decoders: `use_cache_branch` chooses a branch of an `If`, with the cache or without it.
    Merged,
}

impl CacheForm {
    /// Every form.
    pub const ALL: [CacheForm; 4] = [CacheForm::Grown, CacheForm::Shared, CacheForm::Static, CacheForm::Merged];

    /// The word of specifications.
    pub fn name(self) -> &'static str {
        match self {
            CacheForm::Grown => "grown",
            CacheForm::Shared => "shared",
            CacheForm::Static => "static",
            CacheForm::Merged => "merged",
        }
    }

    /// The form of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        CacheForm::ALL.into_iter().find(|form| form.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_one_name_everywhere() {
        for network in Network::ALL {
            assert_eq!(serde_json::to_value(network).ok(), Some(network.name().into()));
        }
        for form in CacheForm::ALL {
            assert_eq!(serde_json::to_value(form).ok(), Some(form.name().into()));
        }
    }
}
