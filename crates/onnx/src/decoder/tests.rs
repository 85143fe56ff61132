use super::*;
use crate::sample::signature;

/// As onnxruntime-genai, optimum and mobius write them.
const GROWN: [&str; 2] = [
    "input_ids:int64[batch_size,sequence_length] attention_mask:int64[batch_size,past_sequence_length+sequence_length] \
     position_ids:int64[batch_size,sequence_length] past_key_values.0.key[batch_size,2,past_sequence_length,16] \
     past_key_values.0.value[batch_size,2,past_sequence_length,16]",
    "logits[batch_size,sequence_length,512] present.0.key[batch_size,2,total,16] present.0.value[batch_size,2,total,16]",
];
const STATIC: [&str; 2] = [
    "input_ids:int64[batch,sequence] position_ids:int64[batch,sequence] write_indices:int64[batch] \
     nonpad_kv_seqlen:int64[batch] key_cache.0[batch,2,capacity,16] value_cache.0[batch,2,capacity,16]",
    "logits[batch,sequence,512] updated_key_cache.0[batch,2,capacity,16] updated_value_cache.0[batch,2,capacity,16]",
];
const MERGED: [&str; 2] = [
    "encoder_attention_mask:int64[batch,encoder] input_ids:int64[batch,new] encoder_hidden_states[batch,encoder,64] \
     past_key_values.0.decoder.key[batch,4,past,16] past_key_values.0.decoder.value[batch,4,past,16] \
     past_key_values.0.encoder.key[batch,4,encoder,16] past_key_values.0.encoder.value[batch,4,encoder,16] \
     use_cache_branch:bool[1]",
    "logits[batch,new,512] present.0.decoder.key[batch,4,total,16] present.0.decoder.value[batch,4,total,16] \
     present.0.encoder.key[batch,4,encoder,16] present.0.encoder.value[batch,4,encoder,16]",
];

fn decoder([inputs, outputs]: [&str; 2]) -> Result<Decoder, DecoderError> {
    recognise(&signature(inputs, outputs), None, Ok(None)).unwrap()
}

/// Shapes and integers of a call, without those of caches.
fn called(decoder: &Decoder, batch: u64, tokens: u64, context: u64) -> Vec<String> {
    let call = Call { batch, tokens, context, encoder: 7, generated: 0 };
    let shapes = decoder.shapes(&call, context).unwrap();
    let plain = shapes.into_iter().filter(|tensor| !tensor.name.contains("value"));
    plain.map(|tensor| format!("{} {:?} {:?}", tensor.name, tensor.shape, tensor.integers)).collect()
}

#[test]
fn a_call_decides_every_input() {
    let grown = decoder(GROWN).unwrap();
    assert_eq!(grown.to_string(), "1 layer, 2 heads of keys, head size 16, cache grown, vocabulary 512");
    assert_eq!(
        called(&grown, 3, 4, 100),
        [
            "input_ids [3, 4] Some(0..512)",
            "attention_mask [3, 104] Some(1..2)",
            "position_ids [3, 4] Some(100..104)",
            "past_key_values.0.key [3, 2, 100, 16] None",
        ]
        .map(|line| line.to_owned())
        .into_iter()
        .filter(|line| !line.contains("value"))
        .collect::<Vec<_>>()
    );
    let fixed = decoder(STATIC).unwrap();
    assert_eq!(fixed.caches, [CacheKind::Static]);
    let call = called(&fixed, 1, 1, 9);
    assert_eq!(call[2..4], ["write_indices [1] Some(9..10)", "nonpad_kv_seqlen [1] Some(10..11)"]);
}

#[test]
fn a_merged_model_begins_without_its_cache() {
    let merged = decoder(MERGED).unwrap();
    assert!(merged.has_encoder());
    let call = Call { batch: 1, tokens: 5, context: 0, encoder: 7, generated: 0 };
    let shapes = merged.shapes(&call, 0).unwrap();
    let of = |name: &str| shapes.iter().find(|tensor| tensor.name == name).unwrap().clone();
    assert_eq!(of("past_key_values.0.decoder.key").shape, [1, 4, 0, 16]);
    assert_eq!(of("past_key_values.0.encoder.key").shape, [1, 4, 0, 16]);
    assert_eq!(of("use_cache_branch").integers, Some(0..1));
    let later = merged.shapes(&Call { context: 5, tokens: 1, ..call }, 5).unwrap();
    assert_eq!(
        later.iter().find(|tensor| tensor.name == "past_key_values.0.encoder.key").unwrap().shape,
        [1, 4, 7, 16]
    );
}

#[test]
fn what_cannot_be_called_says_why() {
    let with = |inputs: &str| decoder([&format!("{} {inputs}", GROWN[0]), GROWN[1]]).unwrap_err().to_string();
    assert_eq!(with("past.7.key[b,2,p,16]"), "no output gives the cache `past.7.key` back");
    assert_eq!(with("pixels[b,3,224,224]"), "perfrun does not know what the input `pixels` of this decoder is for");
    let flat = GROWN[0]
        .replace("past_key_values.0.value[batch_size,2,past_sequence_length,16]", "past_key_values.0.value[...]");
    let problem = decoder([&flat, GROWN[1]]).unwrap_err();
    assert!(matches!(problem, DecoderError::Rank { .. }), "{problem}");
    let thin = GROWN[0]
        .replace("past_key_values.0.value[batch_size,2,past_sequence_length,16]", "past_key_values.0.value[p,16]");
    let problem = decoder([&thin, GROWN[1]]).unwrap_err();
    assert!(problem.to_string().starts_with("the cache `past_key_values.0.value` has the shape [p, 16]"), "{problem}");
    let open = GROWN[0].replace("2,past_sequence_length,16", "2,past_sequence_length,kv_cache_dim");
    let outputs = GROWN[1].replace("total,16", "total,kv_cache_dim");
    let problem = decoder([&open, &outputs]).unwrap_err();
    assert!(matches!(problem, DecoderError::Unsized { axis: 3, .. }), "{problem}");
    let fixed = GROWN[0].replace("2,past_sequence_length,16", "2,64,16");
    let problem = decoder([&fixed, GROWN[1]]).unwrap_err().to_string();
    assert!(problem.starts_with("the cache `past_key_values.0.key` always has 64 positions"), "{problem}");
    let fixed = GROWN[0].replace("past_sequence_length+sequence_length", "65");
    let problem = decoder([&fixed, GROWN[1]]).unwrap_err().to_string();
    assert!(problem.starts_with("the mask `attention_mask` always has 65 positions"), "{problem}");
    // Hidden states are no scores.
    let hidden = decoder([GROWN[0], &GROWN[1].replace("logits", "last_hidden_state")]).unwrap();
    let call = Call { batch: 1, tokens: 1, context: 2, encoder: 0, generated: 0 };
    assert!(hidden.vocabulary.is_none() && hidden.shapes(&call, 2).is_ok());
    assert_eq!(hidden.shapes(&Call { generated: 4, ..call }, 2).unwrap_err(), DecoderError::NoScores);
    let mut short = decoder(GROWN).unwrap();
    short.context = Some(2048);
    let problem =
        short.shapes(&Call { batch: 1, tokens: 1, context: 2048, encoder: 0, generated: 0 }, 2048).unwrap_err();
    assert_eq!(problem.to_string(), "position 2,049 is beyond the 2,048 that the model has");
}

#[test]
fn what_takes_no_tokens_or_has_no_cache_is_no_decoder() {
    let kind = |inputs: &str, outputs: &str| recognise(&signature(inputs, outputs), None, Ok(None)).is_some();
    assert!(!kind("input_ids:int64[b,s] attention_mask:int64[b,s]", "last_hidden_state[b,s,64]"));
    assert!(!kind("x[b,3,224,224]", "y[b,10]"));
    assert!(!kind("x[b,16] cache.0[b,2,8,8]", "y[b,16] new_cache.0[b,2,8,8]"));
}

#[test]
fn a_total_with_a_name_of_its_own_is_the_sum() {
    let inputs = "input_ids:int64[b,s] attention_mask:int64[b,total] past.0.key[b,2,p,8] past.0.value[b,2,p,8]";
    let signature = signature(inputs, "logits[b,s,9] present.0.key[b,2,total,8] present.0.value[b,2,total,8]");
    let settled = recognise(&signature, None, Ok(None)).unwrap().unwrap().settled(&signature);
    assert_eq!(settled.inputs[1].to_string(), "attention_mask: int64 [b, p + s]");
}

/// Where no output says how many tokens there are, the table of words does.
#[test]
fn ids_are_rows_of_the_table() {
    use crate::proto::{NodeProto, TensorProto};
    use crate::sample::model_of;
    use crate::{Interface, Signature};

    let inputs = "input_ids:int64[b,s] past.0.key[b,2,p,8] past.0.value[b,2,p,8]";
    let outputs = "last_hidden_state[b,s,4] present.0.key[b,2,t,8] present.0.value[b,2,t,8]";
    let table = TensorProto::of_floats("table", &[7, 4], &[0.5; 28]);
    let gather = NodeProto::of("Gather", "", &["table", "input_ids"], &["last_hidden_state"], Vec::new());
    let model = model_of(17, inputs, outputs, vec![table], vec![gather]);
    let Signature { inputs, outputs } = signature(inputs, outputs);
    let interface = Interface::of(model, Signature { inputs, outputs });
    let call = Call { batch: 2, tokens: 3, context: 5, encoder: 0, generated: 0 };
    assert_eq!(interface.resolve_call(&call).unwrap().tensors[0].integers, Some(0..7));
}

/// Names that say nothing, and where they are said.
mod named {
    use super::*;
    use crate::decoder::DecoderNames;

    const PLAIN: [&str; 2] = [
        "tokens:int64[b,s] seen:int64[b,p+s] k_in.0[b,2,p,8] v_in.0[b,2,p,8] k_in.1[b,2,p,8] v_in.1[b,2,p,8]",
        "out[b,s,9] k_out.0[b,2,t,8] v_out.0[b,2,t,8] k_out.1[b,2,t,8] v_out.1[b,2,t,8]",
    ];
    const NAMES: &str = r#"{ "inputs": { "input_ids": "tokens", "attention_mask": "seen", "past_key_names": "k_in.%d",
        "past_value_names": "v_in.%d" }, "outputs": { "logits": "out", "present_key_names": "k_out.%d",
        "present_value_names": "v_out.%d" } }"#;

    /// What it is with these names in the specification and this `genai_config.json`.
    fn recognised(own: Option<&str>, config: Option<&str>) -> Option<Result<Decoder, String>> {
        let folder = tempfile::tempdir().unwrap();
        if let Some(decoder) = config {
            let decoder = decoder.replacen('{', r#"{ "filename": "m.onnx", "#, 1);
            let text = format!(r#"{{ "model": {{ "context_length": 77, "decoder": {decoder} }} }}"#);
            std::fs::write(folder.path().join("genai_config.json"), text).unwrap();
        }
        let own: Option<DecoderNames> = own.map(|own| serde_json::from_str(own).unwrap());
        let declared = Declared::of(&folder.path().join("m.onnx"), own.as_ref());
        let place = format!("{}/", folder.path().display());
        let told = |problem: DecoderError| format!("{problem}; {}", problem.remedy()).replace(&place, "");
        recognise(&signature(PLAIN[0], PLAIN[1]), None, declared).map(|decoder| decoder.map_err(told))
    }

    #[test]
    fn a_specification_and_a_configuration_name_tensors_alike() {
        assert!(recognised(None, None).is_none());
        let mut own = recognised(Some(NAMES), None).unwrap().unwrap();
        assert_eq!(own.to_string(), "2 layers, 2 heads of keys, head size 8, cache grown, vocabulary 9");
        // Whisper's has names of scores of attention that most exports lack.
        let beside = NAMES.replacen("\"logits\"", r#""output_cross_qk_names": "qk_%d", "logits""#, 1);
        let beside = recognised(None, Some(&beside)).unwrap().unwrap();
        own.context = Some(77);
        assert_eq!(own, beside);
        let presents: Vec<&str> = own.pasts().filter_map(|past| past.present.as_deref()).collect();
        assert_eq!(presents, ["k_out.0", "v_out.0", "k_out.1", "v_out.1"]);
    }

    #[test]
    fn a_name_of_the_specification_comes_before_that_of_a_file() {
        let stale = NAMES.replace("k_in.%d", "key_%d").replace("tokens", "words");
        let own = r#"{ "inputs": { "past_key_names": "k_in.%d", "input_ids": "tokens" } }"#;
        assert_eq!(recognised(Some(own), Some(&stale)), recognised(None, Some(NAMES)));
    }

    #[test]
    fn a_name_that_nothing_has_is_told_with_those_that_are_there() {
        let problem = |own: Option<&str>, config: Option<&str>| recognised(own, config).unwrap().unwrap_err();
        assert_eq!(
            problem(None, Some(&NAMES.replace("k_in.%d", "key_%d"))),
            "genai_config.json says inputs.past_key_names: `key_%d`, which no input of the model is called; known inputs: \
             `k_in.%d` and `v_in.%d`"
        );
        assert_eq!(
            problem(Some(&NAMES.replace("v_out.%d", "vout.%d")), None),
            "`decoder` says outputs.present_value_names: `vout.%d`, which no output of the model is called; did you mean \
             `v_out.%d`?"
        );
        assert_eq!(
            problem(Some(r#"{ "outputs": { "logits": "oot" } }"#), Some(NAMES)),
            "`decoder` says outputs.logits: `oot`, which no output of the model is called; did you mean `out`?"
        );
        // Without a number nothing tells the layers apart.
        assert!(problem(Some(&NAMES.replace("k_in.%d", "k_in.0")), None).contains("past_key_names: `k_in.0`, which"));
    }

    /// Beside a model that the file does not name, names are of another one.
    #[test]
    fn a_configuration_of_another_file_need_not_match() {
        let other = NAMES.replace("k_in.%d", "key_%d").replacen('{', r#"{ "filename": "other.onnx", "#, 1);
        let problem = recognised(None, Some(&other)).unwrap().unwrap_err();
        assert!(problem.starts_with("perfrun does not know what the input `k_in.0`"), "{problem}");
    }
}
