//! The memory of the machine that is measured: what perfrun takes of it, and what becomes of a conversion for which it is
//! too little.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use onnx::proto::{GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto};
use onnx::{Dimension, ElementType};

use crate::need::need;
use crate::support::{Done, Project};

/// Memory of a process that no file holds, in bytes.
fn own_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
}

/// 3.2 million samples took 500 MiB.
#[test]
fn samples_do_not_stay_in_memory() {
    let project = Project::with_spec(
        "backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 8\ncompare: { aa: off }\n\
         measure: { stop: { mode: samples, count: 200000, max_time: 1h } }\n",
    );
    let mut child = project.command(&["x.yaml"]).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let blocks: Vec<u64> = lines.filter(|line| line.contains("runs done")).map(|_| own_memory(child.id())).collect();
    assert!(child.wait().unwrap().success());
    let (first, last) = (blocks[0], *blocks.last().unwrap());
    assert!(blocks.len() == 8 && last < 64 << 20 && last < first + (16 << 20), "{blocks:?}");
}

/// A model with a product of 256 MB.
fn write_large_model(project: &Project) {
    const SIZE: u64 = 8192;
    let value =
        |name: &str| ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(&[1, SIZE].map(Dimension::Fixed)));
    let weights = TensorProto::of_bytes("w", &ElementType::Float32, &[SIZE, SIZE], vec![1; (4 * SIZE * SIZE) as usize]);
    let graph = GraphProto {
        name: Some("large".to_owned()),
        node: vec![NodeProto::of("MatMul", "product", &["x", "w"], &["y"], vec![])],
        initializer: vec![weights],
        input: vec![value("x")],
        output: vec![value("y")],
        ..Default::default()
    };
    let opset = OperatorSetIdProto { version: Some(17), ..Default::default() };
    let model = ModelProto { ir_version: Some(8), graph: Some(graph), opset_import: vec![opset], ..Default::default() };
    onnx::save(model, &project.path("large.onnx")).unwrap();
}

#[test]
fn a_conversion_without_memory_fails_its_cells_alone() {
    let _library = need!(onnxruntime);
    let project = Project::with_spec(
        "models: [large.onnx]\nvariants: [fp32, fp16]\nruns: 1\ncompare: { aa: off }\n\
         measure: { warmup: { mode: samples, count: 3 }, stop: { mode: samples, count: 5 } }\n",
    );
    write_large_model(&project);
    // Stacks of threads are in what is limited.
    let kilobytes = 284_000 + 8_000 * std::thread::available_parallelism().unwrap().get().min(16);
    let perfrun = project.command(&["x.yaml"]);
    let mut shell = Command::new("sh");
    let script = format!("ulimit -v {kilobytes}; exec '{}' x.yaml", perfrun.get_program().display());
    shell.args(["-c", &script]).current_dir(project.root());
    shell.envs(perfrun.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.env("PERFRUN_CACHE", project.path("cache"));
    // Further arenas would reserve 64 MB each, in some runs more of them than in others.
    shell.env("MALLOC_ARENA_MAX", "1");
    let runtimes = prepare::runtime::cache_folder().join("runtimes");
    std::fs::create_dir(project.path("cache")).unwrap();
    std::os::unix::fs::symlink(runtimes, project.path("cache/runtimes")).unwrap();
    let done = Done::from(shell.output().unwrap()).expect_code(3);
    let wanted = format!(
        "large/default/fp16/cpu: model `large` as `fp16`: out of memory, limit {} MB: the conversion was killed",
        kilobytes * 1024 / 1_000_000
    );
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(&wanted), "{}", done.stderr);
    let left: Vec<_> =
        std::fs::read_dir(project.path("cache/models")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with(".perfrun-scratch-")), "{left:?}");
}
