//! What can be wrong with a model file, and what to do about it.
//!
//! Input: a path and what was found there. Output: one error with a help text for `miette`.
//! Deliberately absent: what ONNX Runtime says of a model when it loads it; that is a failed run, not an error here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use reading::stand_in;

/// A model file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("model {}: {kind}", path.display())]
pub struct OnnxError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it; part of the message, and so not also a source.
    pub kind: OnnxErrorKind,
}

/// Why a model file cannot be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OnnxErrorKind {
    #[error("there is no such file")]
    Missing { near: Option<PathBuf> },
    #[error("this is not a file")]
    NotAFile,
    #[error("the file is empty")]
    Empty,
    #[error("this is a link to `{target}`, where nothing is")]
    Dangling { target: String, remedy: String },
    /// The stand-in that Git leaves where Git LFS or git-annex did not fetch the content.
    #[error("this is {what}, not the model itself")]
    Pointer {
        what: &'static str,
        fetch: &'static str,
        /// Size of the model in bytes; only pointers of Git LFS have it.
        bytes: Option<u64>,
    },
    #[error("this is not an ONNX file: {detail} (byte {offset})")]
    NotOnnx {
        offset: u64,
        detail: String,
        /// What the file is instead, when its first bytes show it.
        instead: Option<&'static str>,
    },
    #[error("the file is truncated: the content that starts at byte {offset} is missing {missing} bytes")]
    Truncated {
        offset: u64,
        /// How many bytes are missing.
        missing: u64,
    },
    #[error("the file is damaged at byte {offset}: {detail}")]
    Damaged { offset: u64, detail: String },
    #[error("its external data file `{location}` is missing")]
    ExternalDataMissing { location: String },
    /// A file that is not below the model's folder, which nobody expects a model to read.
    #[error("its external data file `{location}` is outside its folder{}", outside(.at))]
    ExternalDataOutside { location: String, at: Option<PathBuf> },
    #[error("its weights need {needed} bytes of `{location}` for the tensor `{tensor}`, which has {size}")]
    ExternalDataShort { location: String, tensor: String, needed: u64, size: u64 },
    #[error("its weight `{tensor}` has the {key} `{value}` in `{location}`, which is not a number of bytes")]
    ExternalDataRange {
        tensor: String,
        /// `offset` or `length`.
        key: &'static str,
        value: Box<str>,
        location: String,
    },
    #[error("its weight `{tensor}` has {found} bytes in `{location}`, but its shape asks for {expected}")]
    ExternalDataLength {
        tensor: String,
        /// What its shape asks for; the largest number where that is no shape.
        expected: u64,
        found: u64,
        location: String,
    },
    #[error("its external data `{location}` has {size} bytes, of which its weights use {used}")]
    ExternalDataUnused { location: String, used: u64, size: u64 },
    #[error("its external data `{location}` is not a file")]
    ExternalDataNotAFile { location: String },
    #[error("its weights are more than the {memory} bytes of memory that this machine has")]
    TooLarge {
        /// Memory of this machine.
        memory: u64,
    },
    #[error("its function `{function}` calls itself")]
    Recursion { function: String },
    /// A small file that stands for a huge graph.
    #[error("the calls of its functions stand for more than {most} nodes")]
    TooManyCalls { most: u64 },
    #[error("cannot read it: {0}")]
    Io(io::Error),
}

fn outside(at: &Option<PathBuf>) -> String {
    at.as_ref().map(|at| format!(", at {}", at.display())).unwrap_or_default()
}

impl miette::Diagnostic for OnnxError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        use OnnxErrorKind::{Damaged, NotOnnx, Truncated};
        let format = foreign_format(&self.path)
            .filter(|_| matches!(self.kind, NotOnnx { .. } | Damaged { .. } | Truncated { .. }));
        let help: Box<dyn fmt::Display> = match &self.kind {
            _ if let Some(format) = format => Box::new(format!("this looks like {format}")),
            OnnxErrorKind::Missing { near: Some(near) } => Box::new(format!("did you mean `{}`?", near.display())),
            OnnxErrorKind::Missing { near: None } => {
                Box::new("`perfrun inspect FOLDER` shows every model below a folder")
            }
            OnnxErrorKind::NotAFile => Box::new("name an .onnx file"),
            OnnxErrorKind::Dangling { remedy, .. } => Box::new(remedy),
            OnnxErrorKind::Pointer { fetch, bytes, .. } => {
                let size = bytes.map(|bytes| format!(" ({bytes} bytes)")).unwrap_or_default();
                Box::new(format!("fetch the model{size} with `{fetch}`"))
            }
            OnnxErrorKind::NotOnnx { instead, .. } => Box::new(format!("this looks like {}", (*instead)?)),
            OnnxErrorKind::Empty
            | OnnxErrorKind::Truncated { .. }
            | OnnxErrorKind::Damaged { .. }
            | OnnxErrorKind::ExternalDataRange { .. }
            | OnnxErrorKind::ExternalDataLength { .. } => Box::new("copy, download or export the model again"),
            OnnxErrorKind::Recursion { .. } => Box::new("ONNX forbids that; export the model again"),
            OnnxErrorKind::TooManyCalls { .. } => Box::new("export the model again, without functions"),
            OnnxErrorKind::TooLarge { .. } => Box::new("it needs a machine with more memory"),
            OnnxErrorKind::ExternalDataMissing { .. } | OnnxErrorKind::ExternalDataNotAFile { .. } => {
                Box::new("copy or fetch that file too; the model is incomplete without it")
            }
            OnnxErrorKind::ExternalDataShort { .. } => {
                Box::new("copy or fetch that file again, from where the model comes from")
            }
            OnnxErrorKind::ExternalDataUnused { .. } => Box::new("save the model again, with a file of its own"),
            OnnxErrorKind::ExternalDataOutside { .. } => Box::new(
                "neither perfrun nor ONNX Runtime reads it there; save the model again with its weights in the same folder",
            ),
            OnnxErrorKind::Io(_) => return None,
        };
        Some(help)
    }
}

/// What a model that is not ONNX is, by the ending of its file, and how to get an ONNX file of it.
pub fn foreign_format(path: &Path) -> Option<&'static str> {
    const FORMATS: [(&[&str], &str); 8] = [
        (
            &["pt", "pth", "pt2", "ckpt"],
            "a PyTorch file: export it with `torch.onnx.export(model, inputs, \"model.onnx\")`",
        ),
        (
            &["safetensors"],
            "weights without a graph: export their model with `optimum-cli export onnx --model FOLDER OUT`",
        ),
        (&["pb"], "a TensorFlow graph: `python -m tf2onnx.convert --saved-model FOLDER --output model.onnx`"),
        (&["h5", "keras"], "a Keras model: `python -m tf2onnx.convert --keras FILE --output model.onnx`"),
        (&["tflite"], "a TensorFlow Lite model: `python -m tf2onnx.convert --tflite FILE --output model.onnx`"),
        (&["gguf"], "a GGUF file, for llama.cpp: export the original with `optimum-cli export onnx --model NAME OUT`"),
        (&["pkl", "joblib"], "a pickled model: scikit-learn's are converted with `skl2onnx.to_onnx(model, inputs)`"),
        (
            &["engine", "plan", "trt"],
            "an engine of TensorRT: name the .onnx file that it was built from, with `devices: [tensorrt]`",
        ),
    ];
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    FORMATS.iter().find(|(endings, _)| endings.contains(&ending.as_str())).map(|(_, format)| *format)
}

/// What a file that is not ONNX is, by its first bytes.
pub(super) fn recognise(head: &[u8]) -> Option<&'static str> {
    const MAGIC: [(usize, &[u8], &str); 10] = [
        (0, b"PK\x03\x04", "a zip archive (PyTorch's .pt and .pth files are): export it with `torch.onnx.export`"),
        (0, b"\x80\x02", "a Python pickle (old .pt files are): export the model to ONNX"),
        (0, b"\x89HDF", "an HDF5 file (Keras's .h5 files are): export the model to ONNX"),
        (4, b"ORTM", "ONNX Runtime's own .ort format: name the .onnx file that it was made from"),
        (4, b"TFL3", "a TensorFlow Lite model: convert it to ONNX"),
        (0, b"GGUF", "a GGUF file: perfrun runs ONNX models only"),
        (0, b"\x1f\x8b", "a gzip archive: unpack it"),
        (0, b"\x7fELF", "a program or library"),
        (0, b"<", "a web page or XML, perhaps the error page of a failed download"),
        (0, b"{", "JSON"),
    ];
    let starts_here =
        |(at, magic, _): &&(usize, &[u8], &str)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic));
    let is_text = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    match MAGIC.iter().find(starts_here) {
        Some((_, _, name)) => Some(name),
        None if !head.is_empty() && head.iter().all(is_text) => Some("a text file"),
        None => None,
    }
}

/// What stands for a model, by its first bytes; that of Git LFS has the size.
pub(super) fn pointer(head: &[u8]) -> Option<OnnxErrorKind> {
    let (what, fetch) = stand_in::pointer(head)?;
    let text = String::from_utf8_lossy(head);
    let bytes = text.lines().find_map(|line| line.strip_prefix("size ")?.trim().parse().ok());
    Some(OnnxErrorKind::Pointer { what, fetch, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_formats_are_recognised_by_their_first_bytes() {
        assert_eq!(
            recognise(b"\x18\x00\x00\x00ORTM"),
            Some("ONNX Runtime's own .ort format: name the .onnx file that it was made from")
        );
        assert!(recognise(b"<!DOCTYPE html>").is_some_and(|name| name.contains("web page")));
        assert_eq!(recognise(b"hello\n"), Some("a text file"));
        assert_eq!(recognise(b""), None);
        assert_eq!(recognise(&[0x08, 0x07]), None);
    }

    #[test]
    fn other_formats_are_told_with_their_way_to_onnx() {
        let way = |name: &str| foreign_format(Path::new(name)).unwrap_or_default();
        for (name, wanted) in [
            ("a.pt", "torch.onnx.export"),
            ("A.PTH", "torch.onnx.export"),
            ("m.tflite", "--tflite"),
            ("m.gguf", "optimum"),
        ] {
            assert!(way(name).contains(wanted), "{name}");
        }
        assert_eq!((way("m.onnx"), way("pt"), way("x.yaml")), ("", "", ""));
        let kind = OnnxErrorKind::Damaged { offset: 1, detail: String::new() };
        let error = OnnxError { path: "m.safetensors".into(), kind };
        assert!(
            miette::Diagnostic::help(&error).is_some_and(|help| help.to_string().contains("weights without a graph"))
        );
    }

    #[test]
    fn git_lfs_pointers_tell_the_size() {
        let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
        assert!(matches!(super::pointer(pointer), Some(OnnxErrorKind::Pointer { bytes: Some(12345), .. })));
        assert!(super::pointer(b"version 1").is_none());
    }
}
