//! What perfrun's loop adds to the bare C call, for the shortest model there is.
//!
//! Both sides run in this process, in turn: a loop over `RunWithBinding` with one pair of clock readings around many
//! calls, and perfrun's sampler with the iterations per sample that it would choose. Prints the ratio of the medians.
//!
//! `cargo bench --bench loop_overhead`
#![allow(missing_docs, unsafe_code, clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::time::Instant;

use base::machine::clock::{Clock, HostClock};
use experiment::{Package, Values};
use onnx::ElementType;
use ort::AsPointer;
use ort::environment::Environment;
use ort::memory::Allocator;
use ort::session::{RunOptions, Session};
use ort::value::Tensor;
use prepare::runtime;
use statistics::quantile::median;
use worker::backend::onnxruntime::OnnxRuntime;
use worker::backend::{Backend, BackendRequest, CellRequest, OnnxruntimeRequest, TensorRequest};
use worker::measure::Samples;
use worker::measure::batching::iterations_per_sample;
use worker::measure::sampler::Sampler;

const ROUNDS: usize = 30;
const CALLS: u32 = 20_000;

fn main() {
    let library =
        runtime::find_or_install(None, Package::default(), &runtime::cache_folder(), &mut |_| {}).unwrap().path;
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/models/one_node.onnx");
    let settings = OnnxruntimeRequest::on_cpu(&library, &model, 1);
    let tensor = TensorRequest {
        name: "x".to_owned(),
        element: ElementType::Float32,
        shape: vec![1],
        values: Values::Ones,
        file: None,
        seeds: vec![0; 8],
    };
    let request = CellRequest {
        cell: "one_node".to_owned(),
        backend: BackendRequest::Onnxruntime(settings.clone()),
        tensors: vec![tensor],
        input_sets: 8,
        outputs: Some([("y".to_owned(), vec![1])].into()),
        slowdown: 0.0,
        evict_bytes: None,
        cpus: None,
        profiled: false,
        callers: 1,
        shares_session: false,
        decode: None,
        metrics: Vec::new(),
    };
    let mut backend = OnnxRuntime::new(&request, &settings).unwrap();
    backend.load().unwrap();
    backend.bind().unwrap();
    let clock = HostClock::start();
    let quality = clock.calibrate();
    let bare = bare_session(backend.environment(), &settings);

    let (mut bare_ns, mut ours_ns) = (Vec::new(), Vec::new());
    let iterations = iterations_per_sample(1_000, quality);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        bare(CALLS);
        bare_ns.push(started.elapsed().as_nanos() as f64 / f64::from(CALLS));

        let mut samples = Samples::with_capacity((CALLS / iterations) as usize);
        let mut sampler = Sampler::new(&mut backend, &clock, clock.now());
        for _ in 0..CALLS / iterations {
            sampler.take(iterations, &mut samples).unwrap();
        }
        let per_iteration: Vec<f64> =
            samples.duration_ns.iter().map(|total| *total as f64 / f64::from(iterations)).collect();
        ours_ns.push(median(&per_iteration).unwrap());
    }
    let (bare, ours) = (median(&bare_ns).unwrap(), median(&ours_ns).unwrap());
    println!("clock: {} ns a reading, step {} ns", quality.overhead_ns, quality.resolution_ns);
    println!("bare loop over RunWithBinding: {bare:.0} ns a call");
    println!("perfrun, {iterations} iterations a sample: {ours:.0} ns an iteration");
    println!("ratio: {:.3} (wanted: below 1.10)", ours / bare);
}

/// A session of its own, bound alike, as a function that calls it.
fn bare_session(environment: &Environment, settings: &OnnxruntimeRequest) -> impl Fn(u32) + use<> {
    let session = Session::builder(environment)
        .unwrap()
        .with_intra_threads(1)
        .unwrap()
        .commit_from_file(settings.model.as_ref().unwrap())
        .unwrap();
    let input = Tensor::from_array(([1_usize], vec![1.0_f32])).unwrap();
    let output = Tensor::<f32>::new(&Allocator::default(), [1_usize]).unwrap();
    let mut binding = session.create_binding().unwrap();
    binding.bind_input("x", &input).unwrap();
    binding.bind_output("y", output).unwrap();
    let options = RunOptions::new().unwrap();
    let run = ort::api().RunWithBinding;
    move |calls| {
        // Everything that the pointers belong to is owned by this closure.
        let _owned = &input;
        for _ in 0..calls {
            // SAFETY: session, options and binding live in the closure, and no other thread uses them.
            let status = unsafe { run(session.ptr().cast_mut(), options.ptr(), binding.ptr()) };
            assert!(status.0.is_null());
        }
    }
}
