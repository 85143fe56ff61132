use std::collections::HashSet;

use prost::Message;

use super::*;
use crate::cost::cost;
use crate::infer::{infer, unmet};
use crate::proto::GraphProto;
use crate::sample::point;
use crate::{TensorType, resolve_inputs};
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
fn every_float_initialiser_is_counted_but_running_statistics_and_positions() {
    for architecture in architectures() {
        let graph = graph_of(architecture, &Settings::default(), 0);
        let counted =
            graph.initializer.iter().filter(|tensor| tensor.is_float() && !tensor.name().contains(".running_"));
        let counted = counted.filter(|tensor| !tensor.name().contains(".rotary_emb."));
        let parameters: usize = counted.map(|tensor| tensor.elements().unwrap()).sum();
        assert_eq!(parameters as u64, architecture.parameters, "{architecture:?}");
    }
}

#[test]
fn names_are_unique_and_values_come_before_their_use() {
    fn look<'a>(graph: &'a GraphProto, mut known: HashSet<&'a str>) {
        let inputs = graph.input.iter().map(|input| input.name());
        known.extend(inputs.chain(graph.initializer.iter().map(|tensor| tensor.name())));
        let mut names = HashSet::new();
        for node in &graph.node {
            assert!(names.insert(node.name()), "{} twice", node.name());
            assert!(
                node.input.iter().all(|input| input.is_empty() || known.contains(input.as_str())),
                "{}",
                node.name()
            );
            node.graphs().for_each(|inside| look(inside, known.clone()));
            assert!(node.output.iter().all(|output| known.insert(output)), "{}", node.name());
        }
        assert!(graph.output.iter().all(|output| known.contains(output.name())));
    }
    outlines().for_each(|model| look(model.graph.as_ref().unwrap(), HashSet::new()));
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

/// The smallest of DenseNet-121 is also torchvision's `min_size`.
#[test]
fn images_may_have_any_side_that_leaves_something_of_them() {
    let smallest: [(&str, u32); 6] = [
        ("densenet121", 29),
        ("resnet18", 1),
        ("resnet50", 1),
        ("efficientnet_b0", 1),
        ("mobilenet_v2", 1),
        ("vit_b_16", 16),
    ];
    assert_eq!(smallest.len(), architectures().iter().filter(|network| network.image.is_some()).count());
    let of_side = |image: u32| Settings { classes: Some(10), image: Some(image), ..Settings::default() };
    for (name, smallest) in smallest {
        let architecture = architecture(name).unwrap();
        let patch = architecture.image.unwrap().patch;
        for side in [smallest, 32, 64, 96, 160, 224, 225] {
            if !side.is_multiple_of(patch) {
                assert_eq!(
                    check(architecture, &of_side(side)),
                    Err(ZooError::Patches { architecture: name, patch, side })
                );
                continue;
            }
            let inputs =
                resolve_inputs(&signature(architecture, &of_side(side)).unwrap(), &point(&[("batch", 1)], &[]));
            let inputs = inputs.unwrap().tensors;
            assert_eq!(inputs[0].shape, [1, 3, side.into(), side.into()]);
            let model = assemble(architecture, &of_side(side), 0).unwrap().finish("", VERSION);
            assert!(unmet(&model, &inputs).is_empty(), "{name} {side}");
            let inferred = infer(&model, &inputs);
            assert_eq!(inferred.value("logits").and_then(|logits| logits.sizes()), Some(vec![1, 10]));
            let is_whole = |sizes: Vec<u64>| !sizes.contains(&0);
            for node in model.graph.iter().flat_map(|graph| &graph.node) {
                let sizes = inferred.value(&node.output[0]).and_then(|value| value.sizes());
                assert!(sizes.is_some_and(is_whole), "{name} {side} {}", node.name());
            }
            let macs = counts(architecture, &of_side(side)).unwrap().macs;
            assert_eq!(cost(&model, &inferred).macs, Some(macs), "{name} {side}");
        }
        let side = smallest - patch;
        assert_eq!(check(architecture, &of_side(side)), Err(ZooError::Image { architecture: name, side, smallest }));
    }
}

#[test]
fn the_side_changes_the_input_and_the_position_embeddings_alone() {
    for architecture in architectures().iter().filter(|architecture| architecture.image.is_some()) {
        let small = Settings { image: Some(32), ..Settings::default() };
        let (usual, small) = (graph_of(architecture, &Settings::default(), 1), graph_of(architecture, &small, 1));
        let differ = usual.initializer.iter().zip(&small.initializer).filter(|(usual, small)| usual != small);
        let names: Vec<&str> = differ.map(|(usual, _)| usual.name()).collect();
        let positions = if architecture.name == "vit_b_16" { vec!["encoder.pos_embedding"] } else { vec![] };
        assert_eq!((names, usual.node), (positions, small.node));
        assert_eq!(TensorType::from(&small.input[0]).to_string(), "input: float32 [batch, 3, 32, 32]");
    }
}

#[test]
fn settings_that_do_not_fit_are_problems() {
    let image = |name: &str, image: u32| {
        let settings = Settings { image: Some(image), ..Settings::default() };
        let problem = build(architecture(name).unwrap(), &settings).unwrap_err();
        assert_eq!(problem.setting(), "image");
        problem.to_string()
    };
    assert_eq!(image("bert_tiny", 32), "`bert_tiny` takes no images, so `image` does not apply");
    let small = "`densenet121` cannot take images of 28 x 28: at least 29, at most 8192";
    assert_eq!(image("densenet121", 28), small);
    let large = "`resnet18` cannot take images of 4294967295 x 4294967295: at least 1, at most 8192";
    assert_eq!(image("resnet18", u32::MAX), large);
    let patches = "`vit_b_16` takes images in patches of 16 x 16, so their side is a multiple of 16, not 225";
    assert_eq!(image("vit_b_16", 225), patches);
    let refused = |name: &str, classes: u32| {
        let settings = Settings { classes: Some(classes), ..Settings::default() };
        build(architecture(name).unwrap(), &settings).unwrap_err().to_string()
    };
    assert_eq!(refused("gpt2_small", 10), "`gpt2_small` is not a classifier, so `classes` does not apply");
    let most = "`vit_b_16` cannot have 4294967295 classes: at least 1, at most 100000";
    assert_eq!(refused("vit_b_16", u32::MAX), most);
    assert_eq!(refused("resnet50", 0), "`resnet50` cannot have 0 classes: at least 1, at most 100000");
    let cache = |name: &str, cache: CacheForm| {
        let settings = Settings { cache: Some(cache), ..Settings::default() };
        check(architecture(name).unwrap(), &settings).map_err(|problem| (problem.setting(), problem.to_string()))
    };
    let none = "`resnet50` has no cache of keys and values, so `cache` does not apply".to_owned();
    assert_eq!(cache("resnet50", CacheForm::Grown), Err(("cache", none)));
    let other = "the cache of `gpt2_small` has one form, `grown`, not `static`".to_owned();
    assert_eq!(cache("gpt2_small", CacheForm::Static), Err(("cache", other)));
    assert_eq!((cache("gpt2_small", CacheForm::Grown), cache("gpt-tiny", CacheForm::Static)), (Ok(()), Ok(())));
    assert!(architecture("resnet51").is_none());
}

#[test]
fn another_seed_gives_other_weights() {
    let tiny = architecture("bert_tiny").unwrap();
    let (first, second) = (Settings::default(), Settings { seed: 43, ..Settings::default() });
    assert_ne!(graph_of(tiny, &first, 1), graph_of(tiny, &second, 1));
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
    let forms = CacheForm::ALL.map(|cache| {
        let settings = Settings { cache: Some(cache), ..Settings::default() };
        let model = assemble(architecture("gpt-tiny").unwrap(), &settings, 2).unwrap().finish("", VERSION);
        format!("{} {}", cache.name(), hash(model))
    });
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
        "gpt-tiny 04d4ff83c674a041",
        "gpt-small 3dfb2c7cb3baf0d0",
    ];
    assert_eq!(hashes, expected);
    let expected =
        ["grown 04d4ff83c674a041", "shared 1f30fc9c8667e0d9", "static 0f15e7f19f5eb142", "merged 9a22ac81d9744cf8"];
    assert_eq!(forms, expected);
    assert_eq!(hash(build(architecture("bert_tiny").unwrap(), &Settings::default()).unwrap()), "f7fb300bb5551c05");
}
