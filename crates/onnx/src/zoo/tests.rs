use std::collections::HashSet;

use prost::Message;

use super::*;
use crate::TensorType;
use crate::proto::GraphProto;
use statistics::random::fnv1a64;

fn graph_of(architecture: &Architecture, settings: &Settings, most_rows: usize) -> GraphProto {
    assemble(architecture, settings, most_rows).unwrap().finish("", VERSION).graph.unwrap()
}

#[test]
fn counts_are_those_that_are_published() {
    for architecture in architectures() {
        let (parameters, macs) = (architecture.parameters, architecture.macs);
        assert_eq!(counts(architecture, &Settings::default()), Ok(Counts { parameters, macs }), "{architecture:?}");
    }
}

#[test]
fn every_float_initialiser_is_counted_but_running_statistics() {
    for architecture in architectures() {
        let graph = graph_of(architecture, &Settings::default(), 0);
        let counted =
            graph.initializer.iter().filter(|tensor| tensor.is_float() && !tensor.name().contains(".running_"));
        let parameters: usize = counted.map(|tensor| tensor.elements().unwrap()).sum();
        assert_eq!(parameters as u64, architecture.parameters, "{architecture:?}");
    }
}

#[test]
fn names_are_unique_and_values_come_before_their_use() {
    for architecture in architectures() {
        let graph = graph_of(architecture, &Settings::default(), 0);
        let inputs = graph.input.iter().map(|input| input.name());
        let mut known: HashSet<&str> = inputs.chain(graph.initializer.iter().map(|tensor| tensor.name())).collect();
        let mut names = HashSet::new();
        for node in &graph.node {
            assert!(names.insert(node.name()), "{architecture:?}: {} twice", node.name());
            assert!(node.input.iter().all(|input| known.contains(input.as_str())), "{}", node.name());
            assert!(node.output.iter().all(|output| known.insert(output)), "{}", node.name());
        }
        assert!(graph.output.iter().all(|output| known.contains(output.name())));
    }
}

#[test]
fn classes_change_the_head_alone() {
    let resnet = architecture("resnet18").unwrap();
    let ten = Settings { classes: Some(10), ..Settings::default() };
    let (usual, ten) = (graph_of(resnet, &Settings::default(), 2), graph_of(resnet, &ten, 2));
    let differ = usual.initializer.iter().zip(&ten.initializer).filter(|(usual, ten)| usual != ten);
    let names: Vec<&str> = differ.map(|(usual, _)| usual.name()).collect();
    assert_eq!(names, ["fc.weight", "fc.bias"]);
    let logits = TensorType::from(&ten.output[0]);
    assert_eq!(logits.to_string(), "logits: float32 [batch, 10]");
}

#[test]
fn settings_that_do_not_fit_are_problems() {
    let refused = |name: &str, classes: u32| {
        let settings = Settings { classes: Some(classes), ..Settings::default() };
        build(architecture(name).unwrap(), &settings).unwrap_err().to_string()
    };
    assert_eq!(refused("gpt2_small", 10), "`gpt2_small` is not a classifier, so `classes` does not apply");
    let most = "`vit_b_16` cannot have 4294967295 classes: at least 1, at most 100000";
    assert_eq!(refused("vit_b_16", u32::MAX), most);
    assert_eq!(refused("resnet50", 0), "`resnet50` cannot have 0 classes: at least 1, at most 100000");
    assert!(architecture("resnet51").is_none());
}

#[test]
fn another_seed_gives_other_weights() {
    let tiny = architecture("bert_tiny").unwrap();
    let (one, other) = (Settings::default(), Settings { seed: 43, ..Settings::default() });
    assert_ne!(graph_of(tiny, &one, 1), graph_of(tiny, &other, 1));
}

/// Raise [`VERSION`] with them: caches hold models by it.
#[test]
fn bytes_stay_as_they_are() {
    let hash = |model: ModelProto| format!("{:016x}", fnv1a64(&model.encode_to_vec()));
    let hashes: Vec<String> = architectures()
        .iter()
        .map(|architecture| {
            let builder = assemble(architecture, &Settings::default(), 2).unwrap();
            format!("{} {}", architecture.name, hash(builder.finish("", VERSION)))
        })
        .collect();
    let expected = [
        "densenet121 06eba5a83aeb2760",
        "resnet18 c520956a89676779",
        "resnet50 a9a86650cbd33947",
        "efficientnet_b0 1df1a449d06950af",
        "mobilenet_v2 3c007352ca90cbda",
        "vit_b_16 9a250d482e2338d4",
        "bert_base 6f41b7a29b2794db",
        "bert_tiny ccc3d68f7c673707",
        "gpt2_small 38e09aa85e04393b",
    ];
    assert_eq!(hashes, expected);
    assert_eq!(hash(build(architecture("bert_tiny").unwrap(), &Settings::default()).unwrap()), "f7fb300bb5551c05");
}
