//! Language models with a cache, of every form, through ONNX Runtime on the CPU.

use std::path::{Path, PathBuf};

use experiment::Values;
use files::array::{Array, save_npy};
use onnx::decoder::{CacheKind, Call, Decoder, Role};
use onnx::zoo::{CacheForm, Network, Settings, architecture_of, build};
use onnx::{ElementType, Interface};
use worker::backend::{BackendRequest, CellRequest, DecodeRequest, OnnxruntimeRequest, TensorRequest, inputs};

use crate::need::need;
use crate::onnxruntime::{floats, run_request};
use crate::support::Project;

const VOCABULARY: usize = 4096;

/// The small network in one form, as a file.
fn network(folder: &Path, form: CacheForm) -> PathBuf {
    let settings = Settings { cache: Some(form), ..Settings::default() };
    let model = build(architecture_of(Network::of_name("gpt-tiny").unwrap()), &settings).unwrap();
    let file = folder.join(format!("{form:?}.onnx").to_lowercase());
    onnx::save(model, &file).unwrap();
    file
}

fn decoder(file: &Path) -> Decoder {
    let header = onnx::read_header(file).unwrap();
    let interface = Interface::read(file, &header.signature, None);
    interface.decoder().unwrap().map(|decoder| Decoder::clone(decoder)).unwrap()
}

/// The scores of the last token of a call, whose tokens are those of a sequence from the call's context on.
fn scores(library: &Path, file: &Path, call: Call, cache: CacheKind, sequence: &[i64], state: &Path) -> Vec<f32> {
    let decoder = decoder(file);
    let (cache, positions) = decoder.cache(Some(cache), &call, None).unwrap();
    let ids = &sequence[call.context as usize..(call.context + call.tokens) as usize];
    let shapes = decoder.shapes(&call, call.context).unwrap();
    let plain = decoder.inputs.iter().zip(&shapes).filter(|(input, _)| !input.role.is_cache());
    let tensors = plain.map(|(input, shape)| TensorRequest {
        values: match input.role {
            Role::Ids => Values::List(ids.iter().map(i64::to_string).collect()),
            _ => Values::Random.filling(shape),
        },
        ..TensorRequest::random(&input.name, input.element.clone(), &shape.shape, vec![0])
    });
    let settings = OnnxruntimeRequest::on_cpu(library, file, 1);
    let mut request = CellRequest::new("test", BackendRequest::Onnxruntime(settings), tensors.collect());
    let vocabulary = VOCABULARY as i64;
    let (state, seeds, held, teacher) = (state.to_owned(), vec![SEED], None, None);
    request.decode = Some(DecodeRequest { decoder, call, cache, positions, state, seeds, vocabulary, held, teacher });
    let (done, folder) = run_request(request);
    assert_eq!(done.failure, None, "{cache:?} {call:?}");
    let all = floats(folder.path(), 0);
    assert_eq!(all.len(), VOCABULARY * call.tokens as usize, "caches are no outputs to compare");
    all[all.len() - VOCABULARY..].to_vec()
}

const SEED: u64 = 7;

/// The tokens that a cache is filled with for this seed.
fn sequence(length: u64) -> Vec<i64> {
    let range = Values::Range(0.into(), VOCABULARY.into());
    let drawn =
        TensorRequest { values: range, ..TensorRequest::random("x", ElementType::Int64, &[length], vec![SEED]) };
    let mut bytes = vec![0; length as usize * 8];
    inputs::fill(&drawn, 0, &mut bytes).unwrap();
    bytes.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

/// The cache is filled in two parts, kept in a file, and read from there by what comes second.
#[test]
fn a_prompt_is_as_many_steps_in_every_form_and_with_every_cache() {
    let library = need!(onnxruntime);
    let folder = tempfile::tempdir().unwrap();
    let tokens = sequence(600);
    let call = |tokens, context| Call { batch: 1, tokens, context, encoder: 0, generated: 0 };
    for form in [CacheForm::Grown, CacheForm::Shared, CacheForm::Static, CacheForm::Merged] {
        let file = network(folder.path(), form);
        for kind in decoder(&file).caches {
            let state = folder.path().join(format!("{form:?}-{kind}-state"));
            let at = |call| scores(library, &file, call, kind, &tokens, &state);
            let whole = at(call(600, 0));
            assert!(!state.exists(), "nothing is filled for an empty cache");
            let step = at(call(1, 599));
            assert!(cosine(&whole, &step) > 0.9999, "{form:?} {kind}: {}", cosine(&whole, &step));
            assert!(state.exists());
            let again = at(call(1, 599));
            assert_eq!(step, again, "{form:?} {kind}");
            std::fs::remove_file(&state).unwrap();
            let several = at(call(4, 596));
            assert!(cosine(&whole, &several) > 0.9999, "{form:?} {kind}");
        }
    }
}

/// Ids of prompts, as a file.
fn prompts(project: &Project, ids: &[i64], length: u64) {
    let bytes = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
    let shape = vec![ids.len() as u64 / length, length];
    let array = Array { name: "ids".to_owned(), element: ElementType::Int64, shape, bytes, keys: Vec::new() };
    save_npy(&array, &project.path("prompts.npy")).unwrap();
}

const FORMS: &str = "\
models: [{ zoo: gpt-tiny }, { zoo: gpt-tiny, cache: shared }, { zoo: gpt-tiny, cache: static }, { zoo: gpt-tiny, cache: merged }]
decode: { prompt: 12, prompts: prompts.npy, generate: 16, batch: [1, 3] }
variants: [{ name: own }, { name: grown, cache: grown }, { name: shared, cache: shared }, { name: copied, cache: copied }]
runs: 1
measure: { warmup: { mode: samples, count: 1 }, stop: { mode: samples, count: 2 } }
compare: { aa: off }
matrix: { exclude: [{ input: \"*prefill*\" }] }
";

#[test]
fn greedy_tokens_do_not_depend_on_form_or_cache() {
    let _library = need!(onnxruntime);
    let project = Project::with_spec(FORMS);
    prompts(&project, &sequence(36), 12);
    project.run(&["x.yaml", "--wait", "0s"]).expect_code(0);
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let cells = results["cells"].as_array().unwrap();
    for batch in ["b1", "b3"] {
        let of_batch = cells.iter().filter(|cell| cell["input"].as_str().unwrap().starts_with(batch));
        let mut hashes: Vec<&str> = of_batch.filter_map(|cell| cell["output_hash"].as_str()).collect();
        // Grown and merged have two kinds, shared three, static one, and each its own again.
        assert_eq!(hashes.len(), 11, "{batch}");
        hashes.dedup();
        assert_eq!(hashes.len(), 1, "{batch}");
    }
    let first = cells.iter().find(|cell| cell["output_hash"].is_string()).unwrap();
    let metrics = first["metrics"].as_object().unwrap();
    for name in ["ttft_ns", "itl_ns", "itl_largest_ns", "tpot_ns", "output_tokens_per_s"] {
        assert!(metrics[name]["value"].as_f64().unwrap() > 0.0, "{name}");
    }
}

const PRECISIONS: &str = "\
models: zoo:gpt-tiny
decode: { prompt: 12, prompts: prompts.npy, generate: 16 }
variants: [fp32, int4]
runs: 1
measure: { warmup: { mode: samples, count: 1 }, stop: { mode: samples, count: 2 } }
compare: { aa: off }
goals: [{ metric: fidelity_kl, max: 0.5 }]
";

/// Where loops part, what follows differs anyway: they are compared by what they choose behind the same tokens.
#[test]
fn int4_is_told_by_divergence_perplexity_and_tokens() {
    let _library = need!(onnxruntime);
    let project = Project::with_spec(PRECISIONS);
    prompts(&project, &sequence(36), 12);
    project.run(&["x.yaml", "--wait", "0s"]).expect_code(0);
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let of = |input: &str| {
        let is_it = |cell: &&serde_json::Value| cell["variant"] == "int4" && cell["input"] == input;
        results["cells"].as_array().unwrap().iter().find(is_it).unwrap()["fidelity"].clone()
    };
    let prefill = of("prefill-12");
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    assert_eq!((&prefill["input_sets"], &prefill["language"]["sequences"]), (&3.into(), &3.into()), "{prefill}");
    let divergence = number(&prefill["language"]["divergence"]["value"]);
    assert!(divergence > 0.01 && divergence < 1.0, "{prefill}");
    let perplexity = &prefill["language"]["perplexity"];
    let ratio = number(&perplexity["own"]["value"]) / number(&perplexity["reference"]["value"]);
    assert!((number(&perplexity["ratio"]["value"]) - ratio).abs() < 1e-3, "{perplexity}");
    let loops = of("generate-16-from-12");
    let (tokens, greedy) = (&loops["equal"][0], &loops["language"]["greedy"]);
    assert_eq!((&tokens["output"], &tokens["elements"], &greedy["tokens"]), (&"tokens".into(), &48.into(), &48.into()));
    assert!(number(&tokens["equal"]) > number(&greedy["before_difference"]), "{loops}");
    assert!(number(&loops["language"]["divergence"]["value"]) > 0.01, "{loops}");
    // The reference's own perplexity is known too, and a goal is about what can have its metric.
    let reference = results["cells"].as_array().unwrap().iter().find(|cell| cell["variant"] == "fp32").unwrap();
    assert_eq!(reference["metrics"]["perplexity"]["value"], perplexity["reference"]["value"]);
    assert_eq!(results["goals"][0]["cells"].as_array().unwrap().len(), 2, "{}", results["goals"]);
    let report = project.read("reports/x/report.md");
    assert!(report.contains("not judged, KL 0."), "{report}");
}

#[test]
fn a_batch_takes_as_many_prompts_as_it_has_sequences() {
    let project = Project::with_spec("models: zoo:gpt-tiny\ndecode: { prompt: 4, batch: 3, prompts: prompts.npy }\n");
    prompts(&project, &sequence(8), 4);
    let text = project.run(&["plan", "x.yaml"]).expect_code(2).stderr;
    let text = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(text.contains("has 2 prompts, and a batch takes 3"), "{text}");
}

/// Within an hour no first token is late, and within a microsecond every one is.
#[test]
fn a_loop_is_late_by_its_first_token() {
    let _library = need!(onnxruntime);
    let late = |bound: &str| {
        let project = Project::with_spec(&format!(
            "models: zoo:gpt-tiny\ndecode: {{ prompt: 8, at: 4, generate: 4 }}\nruns: 1\ncompare: {{ aa: off }}\n\
             measure: {{ load: {{ rate: 20/s, bound: {bound} }}, stop: {{ mode: samples, count: 20 }} }}\n\
             goals: [{{ metric: ttft, max: 1h }}]\n"
        ));
        project.run(&["x.yaml", "--wait", "0s"]).expect_code(0);
        let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
        let cells = results["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 1, "steps have no first token");
        let value = |name: &str| cells[0]["metrics"][name]["value"].as_f64().unwrap();
        assert!(value("ttft_ns") < value("latency_ns"), "{cells:?}");
        value("late_ratio")
    };
    assert_eq!(late("{ ttft_p99: 1h, itl_p99: 1h }"), 0.0);
    assert_eq!(late("{ ttft_p99: 1us }"), 1.0);
    assert_eq!(late("{ ttft_p99: 1h, itl_p99: 1us }"), 1.0);
}

const CONFIG: &str = r#"{ "model": { "context_length": 2048, "vocab_size": 4096, "decoder": {
    "filename": "model.onnx", "head_size": 32, "num_attention_heads": 8, "num_hidden_layers": 4, "num_key_value_heads": 2,
    "inputs": { "past_key_names": "past_key_values.%d.key", "past_value_names": "past_key_values.%d.value" },
    "outputs": { "present_key_names": "present.%d.key", "present_value_names": "present.%d.value" } } },
  "search": { "past_present_share_buffer": true } }"#;

/// A folder of onnxruntime-genai, `chat`, with the network in the form that shares its buffers.
fn folder_of_genai(project: &Project) {
    let model = network(project.root(), CacheForm::Shared);
    project.write("chat/genai_config.json", CONFIG);
    std::fs::rename(model, project.path("chat/model.onnx")).unwrap();
}

#[test]
fn a_folder_of_genai_is_its_decoder() {
    let project = Project::new();
    folder_of_genai(&project);
    let text = project.run(&["inspect", "chat"]).expect_code(0).stdout;
    let line = "decoder    4 layers, 8 heads, 2 of keys, head size 32, cache grown or shared, vocabulary 4,096, context \
                2,048; its cache takes 2.00 KiB for each token";
    assert!(text.contains(line), "{text}");
    // A size that the configuration and the attributes fix is not asked for.
    assert!(!text.contains("unknown"), "{text}");
    let text = project.run(&["init", "chat", "-o", "-"]).expect_code(0).stdout;
    assert!(text.contains("name: chat\n"), "{text}");
    assert!(text.contains("decode: { prompt: [128, 1024], at: [128, 1024], batch: [1, 4] }"), "{text}");
    let spec = "models: chat\ndecode: { prompt: 8, at: [16, 2048], verify: 4, batch: [1, 2], capacity: 4 }\n";
    project.write(
        "x.yaml",
        &format!(
            "{spec}variants: [{{ name: own }}, {{ name: grown, cache: grown }}, {{ name: still, cache: static }}]\n"
        ),
    );
    let with_encoder = "models: chat\ndecode: { at: 4, encoder: 16 }\n";
    project.write("y.yaml", with_encoder);
    let of_encoder = project.run(&["plan", "y.yaml"]).stdout;
    let done = project.run(&["plan", "x.yaml"]);
    let text = of_encoder + &done.stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for reason in [
        "a cache of 4 positions cannot hold 17",
        "position 2,049 is beyond the 2,048 that the model has",
        "`capacity` has no effect on a cache that is grown",
        "`encoder` has no effect: no encoder comes before it",
        "its cache cannot be static: it writes at no index (TensorScatter)",
        "GroupQueryAttention takes several tokens behind a cache of one sequence only, and the batch is 2",
    ] {
        assert!(text.contains(reason), "{reason}\n{text}");
    }
}

#[test]
fn what_contradicts_a_decoder_is_named_with_a_remedy() {
    let project = Project::new();
    folder_of_genai(&project);
    project.write("x.yaml", "models: chat\ndecode: { prompt: 8, at: 16 }\n");
    let refused = |config: &str| {
        project.write("chat/genai_config.json", config);
        let done = project.run(&["x.yaml", "--wait", "0s"]).expect_code(2);
        done.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
    };
    let wrong = [
        (
            CONFIG.replace("\"head_size\": 32", "\"head_size\": 64"),
            "says head size 64, and `past_key_values.0.key` has 32",
        ),
        (
            CONFIG.replace("\"num_hidden_layers\": 4", "\"num_hidden_layers\": 5"),
            "says layers 5, and its outputs have 4",
        ),
        (CONFIG.replace("4096", "5000"), "says a vocabulary of 5000, and `logits` has 4096"),
        (CONFIG.replace("2048", "4096"), "says a context of 4096, and `"),
        ("{".to_owned(), "genai_config.json cannot be read"),
        (
            CONFIG.replace("past_key_values.%d.key", "k_%d"),
            "genai_config.json says inputs.past_key_names: `k_%d`, which no input of the model is called",
        ),
    ];
    for (config, reason) in wrong {
        let text = refused(&config);
        assert!(text.contains(reason) && text.contains("help:"), "{reason}\n{text}");
    }
    project.write("chat/genai_config.json", CONFIG);
    prompts(&project, &[1, 2, 3, 4096], 4);
    project.write("x.yaml", "models: chat\ndecode: { prompt: 4, prompts: prompts.npy }\n");
    let text = project.run(&["x.yaml", "--wait", "0s"]).expect_code(2).stderr;
    let text = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    assert!(text.contains("has the id 4096 for the input `input_ids`, whose vocabulary has 4096"), "{text}");
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-mlp.onnx");
    project.write("x.yaml", &format!("models: {}\ndecode: {{ at: 4 }}\n", image.display()));
    let text = project.run(&["x.yaml", "--wait", "0s"]).expect_code(2).stderr;
    assert!(text.contains("no tokens with a cache of earlier ones"), "{text}");
}

#[test]
fn a_specification_names_the_tensors_of_a_decoder() {
    let project = Project::new();
    folder_of_genai(&project);
    // A file of another model; what the specification says comes before it.
    project.write("chat/genai_config.json", &CONFIG.replace("past_key_values.%d.key", "k_%d"));
    let spec = |names: &str| {
        format!("models: {{ path: chat, decoder: {{ inputs: {{ {names} }} }} }}\ndecode: {{ prompt: 8, at: 16 }}\n")
    };
    project.write("x.yaml", &spec("past_key_names: past_key_values.%d.key"));
    let text = project.run(&["plan", "x.yaml"]).expect_code(0).stdout;
    assert!(text.contains("chat/step-at-16/fp32/cpu\n") && !text.contains("skipped"), "{text}");
    project.write("x.yaml", &spec("past_key_names: past_key_values.%d.keys, input_ids: input_ids"));
    let text = project.run(&["plan", "x.yaml"]).expect_code(2).stderr;
    let text = text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ");
    let said = "model `chat`: `decoder` says inputs.past_key_names: `past_key_values.%d.keys`, which no input of the model is \
                called help: did you mean `past_key_values.%d.key`?";
    assert!(text.contains(said), "{text}");
}

#[test]
fn networks_are_inspected_as_files_are() {
    let project = Project::new();
    let text = project.run(&["inspect", "zoo:gpt-tiny", "--cache", "merged"]).expect_code(0).stdout;
    assert!(text.starts_with("zoo:gpt-tiny\n"), "{text}");
    for line in [
        "cache grown, vocabulary 4,096, context 2,048; its cache takes 2.00 KiB for each token\n",
        "of If `use_cache` its `then_branch`, which one token behind 128 takes\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    project.run(&["inspect", "zoo:gpt-tny"]).expect_code(2);
    let text = project.run(&["inspect", "x.onnx", "--image", "32"]).expect_code(2).stderr;
    assert!(text.contains("`--classes`, `--image` and `--cache` are of built-in networks"), "{text}");
}

/// From YAML to the line of the report: a step that is 5 % slower from one context on, for 20 curves (a model each, with noise of
/// its own) with it and 20 without.
#[test]
fn a_planted_jump_is_found_at_its_place_and_nowhere_else() {
    const CURVES: usize = 20;
    let models: Vec<String> = (0..CURVES).map(|curve| format!("s{curve}")).collect();
    let project = Project::with_spec(&format!(
        "backend: {{ mock: {{ median: 1ms, position: 300ns, noise: 1%, run_sd: 0.3% }} }}\n\
         models: [{}]\n\
         variants: [{{ name: even }}, {{ name: jumps, mock: {{ jump: {{ from: 777, by: 5% }} }} }}]\n\
         decode: {{ at: [0, {{ from: 128, to: 1024, plus: 128 }}] }}\n\
         runs: 5\ncompare: {{ aa: off }}\nmeasure: {{ stop: {{ mode: samples, count: 20 }} }}\n",
        models.join(", ")
    ));
    let done = project.run(&["x.yaml", "--wait", "0s"]).expect_code(0);
    let results: serde_json::Value = serde_json::from_str(&project.read("reports/x/results.json")).unwrap();
    let cells = results["cells"].as_array().unwrap();
    let name = |id: &serde_json::Value| {
        let cell = cells.iter().find(|cell| cell["id"] == *id).unwrap();
        ["input", "variant"].map(|key| cell[key].as_str().unwrap().to_owned()).join("/")
    };
    let found = results["decoding"].as_array().unwrap();
    let jumps: Vec<String> = found
        .iter()
        .map(|ratio| format!("{} {}: {} to {}", ratio["of"], name(&ratio["cell"]), ratio["from"], ratio["to"]))
        .collect();
    assert_eq!(jumps, vec!["\"jump\" step-at-896/jumps: 768 to 896".to_owned(); CURVES]);
    assert!(done.stdout.contains("between 768 and 896 positions\n"), "{}", done.stdout);
}
