//! `perfrun a.onnx`: a first look at models without a specification, and how to keep it.
//!
//! One model is run as it is stored and, unless it is quantised, in int8; several are compared with each other. Nothing is written but the record.

use std::path::{Path, PathBuf};

use super::init::{self, Question};
use super::{run, specs};
use crate::ui::Ui;
use crate::ui::cli::{Overrides, RunArgs};
use crate::ui::error::{Error, ExitCode};
use base::wording::list;
use experiment::{Experiment, InputPoint};
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
    let text = init::specification(&name, &models, None, Question::Look);
    let overrides = Overrides { quick: true, ..arguments.overrides.clone() };
    // What messages call the text: there is no file. The record lies where perfrun runs, not where the models do.
    let shown = PathBuf::from(words(&arguments.specs));
    let place = ProjectRoot::here()?;
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
    // A load is what was asked for, and no part of a whole; neither is `--quick`, since a look is always quick.
    let mut narrowed = Overrides { quick: false, ..arguments.overrides.clone() };
    narrowed.set.retain(|change| !change.starts_with("measure.load."));
    let restrictions = specs::restrictions(&narrowed);
    run::one((&shown, &place), &loaded, &quick, restrictions, interrupts, ui)
}

/// The command that writes a specification of the same models under the same load, and what else to write into it.
fn kept_by(arguments: &RunArgs) -> String {
    const LOAD: [(&str, &str); 2] = [("measure.load.rate=", "--rate"), ("measure.load.bound.p99=", "--p99")];
    let (mut command, mut others) = (format!("perfrun init {}", words(&arguments.specs)), Vec::new());
    for change in &arguments.overrides.set {
        match LOAD.iter().find_map(|(key, flag)| Some((flag, change.strip_prefix(*key)?))) {
            Some((flag, value)) => command += &format!(" {flag} {}", shell::word(value)),
            None => others.push(format!("`{change}`")),
        }
    }
    if others.is_empty() { command } else { format!("{command} (then set {} in its file)", list(&others)) }
}

/// The sizes that dimensions got which a model leaves open, `batch 1, sequence 128`, for each model where they differ.
fn sizes(experiment: &Experiment) -> Vec<String> {
    let sizes = |point: &InputPoint| {
        let named = point.dimensions.iter().map(|(name, size)| format!("{name} {size}"));
        let shapes = point.shapes.iter().map(|(tensor, shape)| {
            let sizes: Vec<String> = shape.iter().map(u64::to_string).collect();
            format!("{tensor} {}", sizes.join("x"))
        });
        named.chain(shapes).collect::<Vec<String>>().join(", ")
    };
    let all = experiment.inputs.first().map(sizes);
    let own = experiment.models.iter().filter_map(|model| {
        let point = model.inputs.as_ref()?.first()?;
        Some(format!("{}: {}", model.name, sizes(point)))
    });
    let lines: Vec<String> = all.into_iter().filter(|all| !all.is_empty()).chain(own).collect();
    let how = "; `--set inputs.NAME=SIZE` changes one";
    lines.into_iter().enumerate().map(|(place, line)| if place == 0 { line + how } else { line }).collect()
}

/// The models as they were typed.
fn words(specs: &[PathBuf]) -> String {
    specs.iter().map(|word| shell::word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_keeps_a_look_keeps_its_load() {
        let kept = |set: &[&str], rate: Option<&str>, p99: Option<&str>| {
            let set = set.iter().map(|change| (*change).to_owned()).collect();
            let overrides = Overrides { set, ..Overrides::default() };
            let (rate, p99) = (rate.map(str::to_owned), p99.map(str::to_owned));
            let typed = RunArgs { specs: vec!["my net.onnx".into()], overrides, rate, p99, ..RunArgs::default() };
            kept_by(&typed.with_load())
        };
        assert_eq!(kept(&[], None, None), "perfrun init 'my net.onnx'");
        assert_eq!(kept(&[], Some("largest"), Some("20ms")), "perfrun init 'my net.onnx' --rate largest --p99 20ms");
        assert_eq!(
            kept(&["inputs.batch=4"], Some("50/s"), None),
            "perfrun init 'my net.onnx' --rate 50/s (then set `inputs.batch=4` in its file)"
        );
    }
}
