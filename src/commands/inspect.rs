//! `perfrun inspect`: what model files want and give, and what one inference costs.

use std::fmt::{Display, Write};
use std::path::{Path, PathBuf};

use super::{json_text, print, shapes, zoo};
use crate::ui::Ui;
use crate::ui::cli::{InspectArgs, Size};
use crate::ui::error::{Error, ExitCode};
use base::name::fitting_or;
use experiment::{Values, ZOO};
use files::below::{OutOfBoundsError, files_below};
use onnx::cost::{Branch, Cost, OperatorCost};
use onnx::decoder::{Call, Decoder, DecoderError, model_of_folder};
use onnx::{ExtractError, Interface, ModelHeader, Resolved, ResolvedTensor, Stored};
use report::format;

pub(super) fn run(arguments: &InspectArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let mut code = ExitCode::Done;
    let (mut models, mut text) = (Vec::new(), String::new());
    let (files, sizes) = match &arguments.extract {
        None => (inspected(arguments)?, arguments.inputs.as_slice()),
        Some(node) => {
            let (file, nodes) = extract(node, arguments)?;
            text = format!("wrote {}: {}\n", file.display(), nodes.join(", "));
            (vec![(file.display().to_string(), file)], [].as_slice())
        }
    };
    for (title, path) in files {
        match onnx::read_header(&path) {
            Ok(header) => {
                let interface = Interface::read(&path, &header.signature, None);
                let graph = look_inside(&path, &interface, sizes);
                let decoder = interface.decoder().map(|decoder| match decoder {
                    Ok(decoder) => Ok(Decoder::clone(decoder)),
                    Err(problem) => Err(problem.clone()),
                });
                models.push(Model { title, path, header, graph, decoder });
            }
            Err(error) => {
                let error = Error::from(error);
                code = code.worst(error.exit_code());
                ui.error(error.into());
            }
        }
    }
    match arguments.json {
        true => text = json(&models)?,
        false => text.extend(models.iter().map(describe)),
    }
    print(ui, &text)?;
    Ok(code)
}

/// A model with what its graph says.
struct Model {
    /// What it is called on the terminal.
    title: String,
    path: PathBuf,
    header: ModelHeader,
    /// Or why nothing is said.
    graph: Result<Inside, String>,
    /// What it is as a language model with a cache, or why it cannot be called as one.
    decoder: Option<Result<Decoder, DecoderError>>,
}

/// Every file with what it is called: by its path, or as the network that was named.
///
/// # Errors
///
/// As [`model_files`]; a network that there is not, and settings of networks where none is named.
fn inspected(arguments: &InspectArgs) -> Result<Vec<(String, PathBuf)>, Error> {
    let network = |word: &'_ PathBuf| word.to_str().and_then(|text| text.strip_prefix(ZOO)).map(str::to_owned);
    let settings = &arguments.network;
    let has_settings = settings.classes.is_some() || settings.image.is_some() || settings.cache.is_some();
    if has_settings && !arguments.models.iter().any(|word| network(word).is_some()) {
        let message = "`--classes`, `--image` and `--cache` are of built-in networks";
        return Err(Error::refused(message, "leave them out, or name a network: `zoo:gpt-tiny`"));
    }
    let mut files = Vec::new();
    for word in &arguments.models {
        match network(word) {
            Some(name) => files.push((word.display().to_string(), zoo::file(&name, settings)?)),
            None => files.extend(
                model_files(std::slice::from_ref(word))?.into_iter().map(|file| (file.display().to_string(), file)),
            ),
        }
    }
    Ok(files)
}

/// What one inference costs, at which shapes.
struct Inside {
    /// What is done, where that is a call of a decoder: `step at 128`.
    call: Option<String>,
    inputs: Resolved,
    cost: Cost,
}

/// Reads the graph, checks it, and counts what one inference costs.
fn look_inside(path: &Path, interface: &Interface, sizes: &[Size]) -> Result<Inside, String> {
    let model = onnx::load_graph(path).map_err(|error| error.kind.to_string())?;
    onnx::check_graph(&model).map_err(|problem| problem.to_string())?;
    // Nothing is filled, so that no values are looked for.
    let call = usual_call(interface).filter(|_| sizes.is_empty());
    let resolved = match &call {
        Some(call) => interface.resolve_call(call),
        None => shapes::resolve(interface, sizes, Values::Zeros),
    };
    let inputs = resolved.map_err(|problem| {
        let remedy = shapes::remedy(&problem);
        format!("unknown: {problem} ({remedy})")
    })?;
    let cost = onnx::cost::cost(&model, &onnx::infer::infer(&model, &inputs.tensors));
    let call = call.map(|call| format!("one token behind {}", call.context));
    Ok(Inside { call, inputs, cost })
}

/// A step of a decoder behind a prompt of usual length.
fn usual_call(interface: &Interface) -> Option<Call> {
    const USUAL: u64 = 128;
    let decoder = interface.decoder()?.ok()?;
    let context = decoder.context.map_or(USUAL, |most| USUAL.min(most.saturating_sub(1)));
    let (batch, tokens) = (decoder.fixed_batch().unwrap_or(1), decoder.fixed_tokens().unwrap_or(1));
    Some(Call { batch, tokens, context, encoder: USUAL, generated: 0 })
}

/// Writes the model of one node; the file, and the nodes in it.
///
/// # Errors
///
/// Several models, a file that is there already, no such node, or one of whose values not enough is known.
fn extract(node: &str, arguments: &InspectArgs) -> Result<(PathBuf, Vec<String>), Error> {
    let files = inspected(arguments)?;
    let [(_, path)] = &files[..] else {
        return Err(Error::refused("`--extract` takes one model", "name the file that the node is in"));
    };
    let output = arguments.output.clone().unwrap_or_else(|| PathBuf::from(stem_of(node) + ".onnx"));
    let header = onnx::read_header(path)?;
    let inputs = shapes::resolve(&Interface::read(path, &header.signature, None), &arguments.inputs, Values::Zeros)
        .map_err(|problem| refused(path, &problem, shapes::remedy(&problem)))?;
    let nodes = write_node((path, &inputs.tensors), (node, None), &output)?;
    Ok((output, nodes))
}

/// The name of a node's files.
pub(super) fn stem_of(node: &str) -> String {
    // Of a name without a letter that every file system takes nothing is left.
    fitting_or(node, "node")
}

/// Writes the model of one node of a model that is fed such inputs, executed as this operator where that is known; the nodes
/// in it.
///
/// # Errors
///
/// As [`extract`].
pub(super) fn write_node(
    (path, inputs): (&Path, &[ResolvedTensor]),
    (node, operator): (&str, Option<&str>),
    output: &Path,
) -> Result<Vec<String>, Error> {
    if output.exists() {
        let message = format!("{} already exists", output.display());
        return Err(Error::refused(message, "name another file or folder, or remove it first"));
    }
    let model = onnx::load(path)?;
    let repair = || "repair or export the model again".to_owned();
    onnx::check_graph(&model).map_err(|problem| refused(path, &problem, repair()))?;
    let extracted =
        onnx::extract(&model, inputs, node, operator).map_err(|problem| refused(path, &problem, missing(&problem)))?;
    onnx::save(extracted.model, output).map_err(|source| Error::write(output, source))?;
    Ok(extracted.nodes)
}

fn refused(path: &Path, problem: &dyn Display, help: String) -> Error {
    Error::refused(format!("model {}: {problem}", path.display()), help)
}

/// What to do where a node cannot be extracted.
fn missing(problem: &ExtractError) -> String {
    match problem {
        ExtractError::NoNode { nearest: Some(nearest), .. } => format!("did you mean `{nearest}`?"),
        ExtractError::NoNode { nearest: None, .. } => "name a node as the model file or a profile does, or a value that it \
             produces; nodes that ONNX Runtime adds (`ReorderOutput`), and fusions that keep no name (`Gelu`), are in no \
             model"
            .to_owned(),
        ExtractError::Unknown { .. } => {
            "write the types and shapes of values into the model (`onnx.shape_inference`), then try again".to_owned()
        }
    }
}

/// The files that the paths stand for: files as they are, folders of onnxruntime-genai as their decoder, others as every
/// `.onnx` below them, sorted.
///
/// # Errors
///
/// A folder without models, or one that is too large to be searched.
pub(super) fn model_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        if let Some(decoder) = model_of_folder(path) {
            files.push(decoder);
            continue;
        }
        let models = files_below(path, None, |file| file.extension().is_some_and(|end| end == "onnx"))
            .map_err(|beyond| Error::refused(beyond.to_string(), OutOfBoundsError::HINT))?;
        if models.is_empty() {
            return Err(Error::refused(
                format!("no .onnx file below {}", path.display()),
                "name a model file, or its folder",
            ));
        }
        files.extend(models);
    }
    Ok(files)
}

fn describe(model: &Model) -> String {
    let Model { title, header, graph, decoder, .. } = model;
    let mut text = format!("{title}\n");
    let producer = format!("{} {}", header.producer, header.producer_version);
    let opsets: Vec<String> =
        header.opset_imports.iter().map(|(domain, version)| format!("{domain} {version}")).collect();
    let mut line = |label: &str, value: &str| {
        if !value.trim().is_empty() {
            // Writing into a String cannot fail.
            let _ = writeln!(text, "  {label:<11}{}", value.trim());
        }
    };
    line("producer", &producer);
    line("opset", &format!("{} (IR {})", opsets.join(", "), header.ir_version));
    line("size", &size(header));
    line("parameters", &exact(header.parameters));
    line("weights", &header.stored.as_ref().map(Stored::to_string).unwrap_or_default());
    line("nodes", &header.node_count().to_string());
    let training: Vec<String> = header.training.iter().map(|(operator, nodes)| format!("{nodes} {operator}")).collect();
    if !training.is_empty() {
        line("training", &format!("{} in training mode; export it in inference mode", training.join(", ")));
    }
    for input in &header.signature.inputs {
        line("input", &input.to_string());
    }
    for output in &header.signature.outputs {
        line("output", &output.to_string());
    }
    match decoder {
        Some(Ok(decoder)) => {
            let bytes = format::bytes(decoder.bytes_per_token());
            line("decoder", &format!("{decoder}; its cache takes {bytes} for each token"));
        }
        Some(Err(problem)) => line("decoder", &format!("cannot be called: {problem} ({})", problem.remedy())),
        None => {}
    }
    match graph {
        Ok(inside) => inside_lines(inside).iter().for_each(|(label, value)| line(label, value)),
        Err(reason) => line("inference", reason),
    }
    text.push('\n');
    text
}

/// What one inference costs, and which operators it is spent on.
fn inside_lines(inside: &Inside) -> Vec<(&'static str, String)> {
    let Inside { call, inputs, cost } = inside;
    let shape = |tensor: &ResolvedTensor| format!("{} {:?}", tensor.name, tensor.shape);
    let shapes: Vec<String> = inputs.tensors.iter().map(shape).collect();
    let macs = match cost.macs {
        Some(macs) => format!("{}MACs, {}FLOPs", spaced(macs), spaced(2 * macs)),
        None => "unknown MACs".to_owned(),
    };
    let moved = cost.bytes_moved.map_or("unknown bytes".to_owned(), format::bytes);
    let with = match call {
        Some(call) => format!("for {call}"),
        None => format!("with {}", shapes.join(", ")),
    };
    let mut lines = vec![("inference", format!("{macs}, {moved} read and written by nodes, {with}"))];
    if cost.unknown_nodes > 0 {
        let nodes = format::count(cost.unknown_nodes, "node");
        lines.push(("", format!("{nodes} of unknown cost: {}", cost.unknown.join(", "))));
    }
    lines.extend(cost.branches.iter().map(|branch| ("", of_branch(branch, call.as_deref()))));
    let counted = |operator: &OperatorCost| {
        let macs = operator.macs.filter(|macs| *macs > 0).map(|macs| format!(" ({}MACs)", spaced(macs)));
        format!("{} {}{}", operator.nodes, operator.operator, macs.unwrap_or_default())
    };
    let operators: Vec<String> = cost.operators.iter().map(counted).collect();
    lines.push(("operators", operators.join(", ")));
    lines
}

/// Which branch of an `If` is counted.
fn of_branch(counted: &Branch, call: Option<&str>) -> String {
    let Branch { node, branch, is_taken } = counted;
    match (is_taken, call) {
        (true, Some(call)) => format!("of If `{node}` its `{branch}`, which {call} takes"),
        (true, None) => format!("of If `{node}` its `{branch}`, which it takes"),
        (false, _) => format!("of If `{node}` its `{branch}`, which costs more: the inputs do not decide"),
    }
}

/// `7978856 (7.98 M)`.
fn exact(number: u64) -> String {
    match format::magnitude(number) {
        short if short == number.to_string() => short,
        short => format!("{number} ({short})"),
    }
}

/// `4.09 G`, `120 `: what stands before a unit.
fn spaced(number: u64) -> String {
    let text = format::magnitude(number);
    if text.contains(' ') { text } else { text + " " }
}

fn size(header: &ModelHeader) -> String {
    let own_size = format::bytes(header.file_bytes);
    if header.external_files.is_empty() {
        return own_size;
    }
    let files: Vec<&str> = header.external_files.iter().map(|file| file.location.as_str()).collect();
    match header.total_bytes() {
        Some(total) => format!("{} with external data in {}", format::bytes(total), files.join(", ")),
        None => format!("{own_size}; external data is missing: {}", files.join(", ")),
    }
}

fn json(models: &[Model]) -> Result<String, Error> {
    let value = |model: &Model| {
        let Model { path, header, graph, decoder, .. } = model;
        let mut value = serde_json::json!({ "path": path.to_string_lossy(), "model": header });
        match decoder {
            Some(Ok(decoder)) => value["decoder"] = serde_json::json!(decoder),
            Some(Err(problem)) => value["decoder_problem"] = problem.to_string().into(),
            None => {}
        }
        match graph {
            Ok(Inside { inputs, cost, .. }) => {
                value["inference"] = serde_json::json!({ "inputs": inputs.tensors, "cost": cost })
            }
            Err(reason) => value["problem"] = reason.as_str().into(),
        }
        value
    };
    let values: Vec<serde_json::Value> = models.iter().map(value).collect();
    Ok(json_text(&values)? + "\n")
}
