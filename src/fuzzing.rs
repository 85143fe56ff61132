//! What fuzzers feed: each reader of a stranger's bytes, from the bytes to what is first done with them.
//!
//! Input: any bytes. Output: nothing; what is wrong with them is an error, which is dropped. Deliberately absent: the
//! targets, which are a line each in `fuzz/`, and processes, which `tests/campaign` starts.

use std::path::Path;
use std::time::UNIX_EPOCH;

use base::printable::printable;
use base::quantity::Nanos;
use experiment::{InputFile, Io, Mock, SamplesStop, SamplesWarmup, Stop, Trace, Warmup};
use judge::results;
use judge::stat::{self, Findings, StatOptions};
use onnx::cost::cost;
use onnx::infer::infer;
use onnx::precision::{
    BlockQuantization, DynamicQuantization, Half, HalfSettings, Keep, ProviderClass, prepare_static, quantize_blocks,
    quantize_dynamic, to_half,
};
use reading::plain_file;
use record::{Manifest, Record, archive};
use table::{FileError, ParquetFile, Table};
use worker::backend::CellRequest;
use worker::backend::onnxruntime::read_trace;
use worker::protocol::Command;

/// A model file: read, checked, costed, and converted in one of five ways.
pub fn model(bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let path = folder.path().join("model.onnx");
    if std::fs::write(&path, bytes).is_err() || onnx::read_header(&path).is_err() {
        return;
    }
    let Ok(model) = onnx::load(&path) else { return };
    if onnx::check_graph(&model).is_err() {
        return;
    }
    let types = infer(&model, &[]);
    let _cost = cost(&model, &types);
    let half = |target, provider| HalfSettings { target, io: Io::Keep, keep: Keep::new(&[]), provider };
    let _outcome = match bytes.len() % 5 {
        0 => to_half(model, &types, &half(Half::Fp16, ProviderClass::Cpu)).map(drop),
        1 => to_half(model, &types, &half(Half::Bf16, ProviderClass::Cuda)).map(drop),
        2 => quantize_dynamic(model, &DynamicQuantization::default()).map(drop),
        3 => quantize_blocks(model, &BlockQuantization::default()).map(drop),
        _ => prepare_static(model).map(drop),
    };
}

pub fn specification(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let file = InputFile { path: "t.csv".into(), sha256: String::new() };
        drop(Trace::read(file, text));
        let _outcome = spec::parse("x.yaml", text, Path::new("."), &[]).map(drop);
    }
}

/// What a worker says, a line each, in answer to a short run of the mock backend.
pub fn worker(bytes: &[u8]) {
    let cell = CellRequest::of_script("c", Mock::steady(Nanos(1_000)));
    let (count, iterations) = (5, 1);
    let commands = [
        Command::HELLO,
        Command::Prepare { cell: Box::new(cell) },
        Command::Warm { rule: Warmup::Samples(SamplesWarmup { count }), at_least: Nanos(0), iterations },
        Command::Measure { rule: Stop::Samples(SamplesStop { count, max_time: Nanos::from_secs(1) }), iterations },
        Command::Slice { time: Nanos(10_000), samples: 4, iterations, warms: false },
        Command::Check,
        Command::Finish,
    ];
    worker::overhear(&commands, bytes);
}

/// How a worker introduces itself.
pub fn hello(bytes: &[u8]) {
    worker::overhear(&[Command::HELLO], bytes);
}

/// What the machine's lock says of its holder.
pub fn lock(bytes: &[u8]) {
    let said = worker::lock::in_words(&String::from_utf8_lossy(bytes), UNIX_EPOCH);
    drop(printable(&said).into_owned());
}

/// An archive of a record, which is packed first: what cannot be unpacked ends at once. What it holds is read as a record.
pub fn archive(bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let (path, unpacked) = (folder.path().join("x.tar.zst"), folder.path().join("x"));
    let packed = zstd::encode_all(bytes, 1).and_then(|packed| std::fs::write(&path, packed));
    if packed.is_err() || std::fs::create_dir(&unpacked).is_err() || archive::unpack(&path, &unpacked).is_err() {
        return;
    }
    let tops = std::fs::read_dir(&unpacked).into_iter().flatten().flatten();
    for folder in tops.flat_map(|top| [top.path().join("record"), top.path()]) {
        let _read = Record::open(&folder);
    }
}

/// What ONNX Runtime's profiler wrote of one inference or more; what is kept of it is read again.
pub fn trace(bytes: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let [file, packed, kept] = ["trace.json", "kept.json.zst", "kept.json"].map(|name| folder.path().join(name));
    if std::fs::write(&file, bytes).is_err() || read_trace(&file, 1, Some(&packed)).is_err() {
        return;
    }
    let Ok(text) = plain_file::open(&packed).and_then(zstd::decode_all) else { return };
    if std::fs::write(&kept, text).is_ok() {
        drop(read_trace(&kept, 1, None));
    }
}

/// A file given to `perfrun stat`, compared with itself.
pub fn numbers(bytes: &[u8]) {
    let Ok(contents) = stat::read("x", bytes) else { return };
    let Ok(pairs) = stat::pairs(contents.series.clone(), Some(contents.series)) else { return };
    if let Ok(findings) = Findings::of(&pairs, &StatOptions::default(), None) {
        let _text = crate::ui::stat::render(&findings.with_left_out(contents.left_out), 80);
    }
}

/// A file of a record or of results; the first byte says which.
pub fn record(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let Ok(folder) = tempfile::tempdir() else { return };
    let write = |name: &str| std::fs::write(folder.path().join(name), bytes).is_ok();
    match kind % 3 {
        0 if write("runs.parquet") => {
            let take = |_: Table| Ok::<_, FileError>(());
            let file = ParquetFile::of(&folder.path().join("runs.parquet"));
            let _read = file.and_then(|file| file.parts(None, 8192, take));
        }
        1 if write(Manifest::FILE) => drop(Manifest::read(folder.path())),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            drop(results::parse(Path::new("results.json"), &text));
        }
    }
}
