//! The names of networks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Built-in networks with the exact published structure and random (seeded) weights, untrained.
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
}

impl Network {
    /// Every network.
    pub const ALL: [Network; 9] = [
        Network::Densenet121,
        Network::Resnet18,
        Network::Resnet50,
        Network::EfficientnetB0,
        Network::MobilenetV2,
        Network::VitB16,
        Network::BertBase,
        Network::BertTiny,
        Network::Gpt2Small,
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
        }
    }

    /// The network of that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Network::ALL.into_iter().find(|network| network.name() == name)
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
    }
}
