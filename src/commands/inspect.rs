//! `perfrun inspect`: what model files want and give.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::print;
use crate::cli::InspectArgs;
use crate::error::{Error, ExitCode};
use crate::onnx::{self, ModelHeader, TensorType};
use crate::report::format;
use crate::ui::Ui;

pub(super) fn run(arguments: &InspectArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let mut code = ExitCode::Done;
    let mut headers = Vec::new();
    for path in model_files(&arguments.models)? {
        match onnx::read_header(&path) {
            Ok(header) => headers.push((path, header)),
            Err(error) => {
                let error = Error::from(error);
                code = code.worst(error.exit_code());
                ui.error(error.into());
            }
        }
    }
    let text =
        if arguments.json { json(&headers)? } else { headers.iter().map(|(path, h)| describe(path, h)).collect() };
    print(ui, &text)?;
    Ok(code)
}

/// The files that the paths stand for: files as they are, folders as every `.onnx` below them, sorted.
///
/// # Errors
///
/// A folder without models.
pub(super) fn model_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let below =
            WalkDir::new(path).sort_by_file_name().into_iter().filter_map(Result::ok).map(walkdir::DirEntry::into_path);
        let models: Vec<PathBuf> = below.filter(|file| file.extension().is_some_and(|end| end == "onnx")).collect();
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

fn describe(path: &Path, header: &ModelHeader) -> String {
    let mut text = format!("{}\n", path.display());
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
    line("parameters", &header.parameters.to_string());
    line("nodes", &header.node_count().to_string());
    for input in &header.signature.inputs {
        line("input", &tensor(input));
    }
    for output in &header.signature.outputs {
        line("output", &tensor(output));
    }
    text.push('\n');
    text
}

fn size(header: &ModelHeader) -> String {
    let own = format::bytes(header.file_bytes);
    if header.external_files.is_empty() {
        return own;
    }
    let files: Vec<&str> = header.external_files.iter().map(|file| file.location.as_str()).collect();
    match header.total_bytes() {
        Some(total) => format!("{} with external data in {}", format::bytes(total), files.join(", ")),
        None => format!("{own}; external data is missing: {}", files.join(", ")),
    }
}

/// `data: float32 [batch, 3, 224, 224]`.
pub(super) fn tensor(tensor: &TensorType) -> String {
    format!("{tensor}")
}

fn json(headers: &[(PathBuf, ModelHeader)]) -> Result<String, Error> {
    let values: Vec<serde_json::Value> = headers
        .iter()
        .map(|(path, header)| serde_json::json!({ "path": path.to_string_lossy(), "model": header }))
        .collect();
    let text = serde_json::to_string_pretty(&values).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(text + "\n")
}
