//! `perfrun a.onnx`: a first look at models without a specification, and how to keep it.
//!
//! One model is run as it is stored and, unless it is quantised, in int8; several are compared with each other. Nothing is written but the record.

use std::path::{Path, PathBuf};

use super::init::{self, Question};
use super::{run, specs, verify};
use crate::ui::Ui;
use crate::ui::cli::{Overrides, RunArgs};
use crate::ui::error::{Error, ExitCode};
use base::wording::list;
use experiment::{Experiment, InputPoint, Package};
use files::scratch::Scratch;
use prepare::runtime;
use reading::shell;
use record::ProjectRoot;

/// Whether models stand where specifications could.
pub(super) fn is_asked(arguments: &RunArgs) -> bool {
    let resumed = arguments.resume.iter().flatten();
    let mut words = arguments.specs.iter().chain(resumed).peekable();
    words.peek().is_some() && words.all(|path| specs::is_model(path))
}

/// Measures the models of the arguments, of which every one is a model.
pub(super) fn run(arguments: &RunArgs, ui: &Ui) -> Result<ExitCode, Error> {
    if arguments.resume.is_some() {
        let help = "run it again, which takes seconds, or render it with `perfrun report RECORD`";
        return Err(Error::refused("a quick look cannot be resumed", help));
    }
    Scratch::remove_left(&runtime::cache_folder());
    let interrupts = &super::interrupts()?;
    let mut models = init::models(&arguments.specs)?;
    let _links = init::link_unnameable(&mut models)?;
    let name = init::experiment_name(&models);
    // Room for what stands behind it; names are ASCII.
    let name = format!("{}-look", &name[..name.len().min(56)]);
    let mut text = init::specification(&name, &models, None, Question::Look);
    if !names_devices(&arguments.overrides) && verify::present(GPU).is_ok() && has_gpu_runtime(arguments, ui) {
        text.push_str(&with_gpu(&text, models.len()));
    }
    let overrides = Overrides { quick: true, ..arguments.overrides.clone() };
    // What messages call the text: there is no file. The record lies where perfrun runs, not where the models do.
    let shown = PathBuf::from(words(&arguments.specs));
    let project = ProjectRoot::here()?;
    let mut loaded = specs::parse(&shown, &text, Path::new("/"), &overrides)?;
    specs::obtain(&mut loaded, true, interrupts, ui)?;
    ui.warnings(&loaded.warnings);
    for line in init::stored(&models) {
        ui.labelled("model", &line);
    }
    for line in sizes(&loaded.experiment) {
        ui.labelled("inputs", &line);
    }
    let quick = RunArgs { overrides, kept_by: Some(kept_by(arguments)), ..arguments.clone() };
    // A load and devices are what was asked for, and no part of a whole; neither is `--quick`, since a look is always quick.
    let mut narrowed = Overrides { quick: false, ..arguments.overrides.clone() };
    narrowed.set.retain(|change| !change.starts_with("measure.load.") && !change.starts_with(DEVICES));
    let restrictions = specs::restrictions(&narrowed);
    run::measure_one((&shown, &project), &loaded, &quick, restrictions, interrupts, ui)
}

/// The command that writes a specification of the same models under the same load, and what else to write into it.
fn kept_by(arguments: &RunArgs) -> String {
    const LOAD: [(&str, &str); 2] = [("measure.load.rate=", "--rate"), ("measure.load.bound.p99=", "--p99")];
    let (mut command, mut remaining) = (format!("perfrun init {}", words(&arguments.specs)), Vec::new());
    for change in &arguments.overrides.set {
        match LOAD.iter().find_map(|(key, flag)| Some((flag, change.strip_prefix(*key)?))) {
            Some((flag, value)) => command += &format!(" {flag} {}", shell::word(value)),
            None => remaining.push(format!("`{change}`")),
        }
    }
    if remaining.is_empty() { command } else { format!("{command} (then set {} in its file)", list(&remaining)) }
}

/// The GPU that is looked at unasked, where it is.
const GPU: &str = "cuda";

/// How a change of the devices begins.
const DEVICES: &str = "devices=";

/// Whether there is a runtime for the GPU, fetched where that can be done: a look at the CPU alone is better than none.
fn has_gpu_runtime(arguments: &RunArgs, ui: &Ui) -> bool {
    let mut report_progress = |progress: &runtime::Progress| ui.labelled("runtime", &progress.to_string());
    let (named, cache) = (arguments.runtime.as_deref(), runtime::cache_folder());
    match runtime::find_or_install(named, Package::OnnxruntimeGpu, &cache, &mut report_progress) {
        Ok(_) => true,
        Err(error) => {
            ui.labelled("left out", &format!("{GPU}: {error}"));
            false
        }
    }
}

fn names_devices(overrides: &Overrides) -> bool {
    overrides.set.iter().any(|change| change.starts_with(DEVICES))
}

/// What a GPU adds to the text of a look: one model is compared over both devices, and threads of the CPU are no matter on
/// the GPU.
fn with_gpu(text: &str, models: usize) -> String {
    let mut more = format!("devices: [cpu, {GPU}]\n");
    if models == 1 {
        more.push_str("compare: { baseline: { variant: ");
        more.push_str(if text.contains("name: stored }") { "stored" } else { "fp32" });
        more.push_str(", device: cpu } }\n");
    }
    if text.contains("-t1, ") {
        more.push_str("matrix: { exclude: [{ variant: \"*-t1\", device: \"cuda:0\" }] }\n");
    }
    more
}

/// The sizes that dimensions got which a model leaves open, `batch 1, sequence 128`, for each model where they differ.
fn sizes(experiment: &Experiment) -> Vec<String> {
    let calls = || experiment.inputs.iter().filter(|point| point.decode).map(|point| point.name.as_str());
    if calls().next().is_some() {
        let change = "`--set 'decode.at=[...]'` and `--set 'decode.prompt=[...]'` change them";
        return vec![format!("{}; {change}", calls().collect::<Vec<_>>().join(", "))];
    }
    let sizes = |point: &InputPoint| {
        let named = point.dimensions.iter().map(|(name, size)| format!("{name} {size}"));
        let shapes = point.shapes.iter().map(|(tensor, shape)| {
            let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
            format!("{tensor} {}", sizes.join("x"))
        });
        named.chain(shapes).collect::<Vec<String>>().join(", ")
    };
    let all = experiment.inputs.first().map(sizes);
    let of_models = experiment.models.iter().filter_map(|model| {
        let point = model.inputs.as_ref()?.first()?;
        Some(format!("{}: {}", model.name, sizes(point)))
    });
    let lines: Vec<String> = all.into_iter().filter(|all| !all.is_empty()).chain(of_models).collect();
    let first = experiment.inputs.first();
    let how = match first.and_then(|point| Some((&point.name, point.shapes.keys().next()?))) {
        Some((point, tensor)) => format!("; `--set 'inputs.{point}.shapes.{tensor}=[...]'` changes a shape"),
        None => "; `--set inputs.NAME=SIZE` changes one".to_owned(),
    };
    lines.into_iter().enumerate().map(|(index, line)| if index == 0 { line + &how } else { line }).collect()
}

/// The models as they were typed.
fn words(specs: &[PathBuf]) -> String {
    specs.iter().map(|word| shell::word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::cli::Conditions;

    /// Cells of a look with a GPU, by their paths.
    fn cells(models: &str, variants: &str) -> Vec<String> {
        let text = format!("backend: mock\nmodels: {models}\nvariants: [{variants}]\n");
        let text = format!("{text}{}", with_gpu(&text, models.matches(',').count() + 1));
        let loaded = spec::parse("look", &text, Path::new("/"), &[]).expect("a valid spec");
        let plan = plan::expand(&loaded.experiment).expect("a plan");
        plan.cells.iter().map(|cell| plan.path(cell)).collect()
    }

    #[test]
    fn a_gpu_is_looked_at_with_every_variant_but_those_of_fewer_threads() {
        let both = cells("[m]", "fp32, int8, { name: fp32-t1, threads: 1 }, { name: int8-t1, threads: 1 }");
        let on = |device: &str| both.iter().filter(|path| path.ends_with(device)).count();
        assert_eq!((on("/cpu"), on("/cuda:0")), (4, 2), "{both:?}");
        assert_eq!(cells("[m]", "{ name: stored }").len(), 2);
        assert_eq!(cells("[m, n]", "fp32").len(), 4);
    }

    #[test]
    fn devices_of_the_command_line_stand_in_place_of_the_gpu() {
        let set = |change: &str| Overrides { set: vec![change.to_owned()], ..Overrides::default() };
        assert!(names_devices(&set("devices=[cuda]")) && !names_devices(&set("runs=3")));
        let asked = Conditions { devices: vec!["cpu".to_owned(), "cuda:1".to_owned()], ..Conditions::default() };
        assert_eq!(Overrides::default().with(&asked).set, ["devices=[cpu, cuda:1]"]);
    }

    #[test]
    fn what_keeps_a_look_keeps_its_load() {
        let kept = |set: &[&str], rate: Option<&str>, p99: Option<&str>| {
            let set = set.iter().map(|change| (*change).to_owned()).collect();
            let (rate, p99) = (rate.map(str::to_owned), p99.map(str::to_owned));
            let load = Conditions { rate, p99, ..Conditions::default() };
            let overrides = Overrides { set, ..Overrides::default() }.with(&load);
            kept_by(&RunArgs { specs: vec!["my net.onnx".into()], overrides, ..RunArgs::default() })
        };
        assert_eq!(kept(&[], None, None), "perfrun init 'my net.onnx'");
        assert_eq!(kept(&[], Some("largest"), Some("20ms")), "perfrun init 'my net.onnx' --rate largest --p99 20ms");
        assert_eq!(
            kept(&["inputs.batch=4"], Some("50/s"), None),
            "perfrun init 'my net.onnx' --rate 50/s (then set `inputs.batch=4` in its file)"
        );
    }
}
