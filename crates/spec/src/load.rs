//! The stages of reading a spec, in order.
//!
//! Input: a path, or a text with its name and folder; and `--set` arguments. Output: [`Loaded`], or every problem.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check::Check;
use super::document::{Content, DocumentPath, Node, Step};
use super::error::{InvalidSpecError, SpecError};
use super::files::Depth;
use super::form::ExperimentForm;
use super::note::Note;
use super::problem::{MOST_PROBLEMS, Problem, Sources, Span};
use super::{coerce, expand, invisible, modes, overrides, schema, validate, yaml};
use base::conflict::conflict_line;
use base::name::fitting_or;
use experiment::Experiment;
use reading::nearest::near_path;
use reading::plain_file;

/// A spec is text by hand; what is larger is something else. Checked before anything is read.
const LARGEST_MIB: u64 = 16;

/// A spec that is valid.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What it says, shorthands expanded and defaults filled in.
    pub experiment: Experiment,
    /// The file's text, byte for byte.
    pub text: String,
    /// What is right but deserves a word.
    pub warnings: Vec<Problem>,
    /// What one key means for another, for `plan` to show.
    pub notes: Vec<Note>,
    /// The spec with overrides as JSON with sorted keys, without defaults: what a hash of it is taken of.
    pub canonical: Value,
    /// The folder that paths are relative to.
    pub folder: PathBuf,
}

/// Reads the spec at `path`, with `--set` arguments applied.
///
/// # Errors
///
/// Where the file cannot be read, and with every problem where it can.
pub fn load(path: &Path, overrides: &[String]) -> Result<Loaded, SpecError> {
    let text = read(path)?;
    // The parent of a bare file name is an empty path, which is no folder to look into.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    parse(&path.display().to_string(), &text, folder, overrides)
}

fn read(path: &Path) -> Result<String, SpecError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SpecError::Missing { path: path.to_owned(), hint: missing_hint(path) },
        _ => SpecError::Unreadable { path: path.to_owned(), source },
    };
    let too_large = || SpecError::TooLarge { path: path.to_owned(), limit_mib: LARGEST_MIB };
    let limit = LARGEST_MIB << 20;
    let file = plain_file::open_stream(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.len() > limit {
        return Err(too_large());
    }
    // A pipe has no length beforehand, so that reading is bounded too.
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        SpecError::NotUtf8 {
            path: path.to_owned(),
            byte: error.as_bytes().get(valid).copied().unwrap_or_default(),
            line: before.matches('\n').count() + 1,
            column: before.rsplit('\n').next().unwrap_or_default().chars().count() + 1,
        }
    })
}

fn missing_hint(path: &Path) -> Option<String> {
    Some(format!("did you mean `{}`?", near_path(path)?.display()))
}

/// Reads a spec from its text. `name` is what messages call the file, and its stem the default name of the experiment;
/// paths are relative to `folder`.
///
/// # Errors
///
/// With every problem of the text.
pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Loaded, SpecError> {
    parse_to(Depth::Contents, name, text, folder, overrides)
}

/// As [`parse`], of which the files need not be there: names are enough to know what a specification asks for.
///
/// # Errors
///
/// As [`parse`].
pub fn outline(name: &str, text: &str, folder: &Path) -> Result<Loaded, SpecError> {
    parse_to(Depth::Names, name, text, folder, &[])
}

fn parse_to(depth: Depth, name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Loaded, SpecError> {
    // A byte order mark is no column.
    let mut sources = Sources::new(name, text.strip_prefix('\u{feff}').unwrap_or(text));
    let invalid = |sources: &Sources, problems: Vec<Problem>| {
        SpecError::Invalid(InvalidSpecError::new(name, invisible::explain(sources, problems, false)))
    };
    let syntax = |problem: Problem| {
        let problems = match conflict(&sources) {
            Some(marker) => vec![marker],
            None => invisible::explain(&sources, vec![problem], true),
        };
        SpecError::Invalid(InvalidSpecError::new(name, problems))
    };
    if let Some(nul) = invisible::nul(&sources, 0) {
        return Err(SpecError::Invalid(InvalidSpecError::new(name, vec![nul])));
    }
    let (root, mut problems) = yaml::parse(&sources, 0, 0).map_err(syntax)?;
    let mut root = root.without_extensions();
    if let Some(problem) = not_a_map(&sources, &root) {
        return Err(syntax(problem));
    }
    for argument in overrides {
        problems.extend(overrides::apply(&mut root, &mut sources, folder, argument));
    }
    let mut json = coerce::to_json(&root);
    let canonical = coerce::canonical(&json);
    let mut violations = validate::validate(&sources, &root, &json);
    violations.extend(validate::too_long(&sources, &root, &mut json));
    let mut damaged = Vec::with_capacity(violations.len());
    if violations.len() >= MOST_PROBLEMS {
        problems.extend(violations.into_iter().map(|violation| violation.problem));
        return Err(invalid(&sources, problems));
    }
    for violation in violations {
        problems.push(violation.problem);
        damaged.extend(prune(&mut json, violation.place));
    }
    schema::visit(&mut json, &DocumentPath::default(), &schema::top(), &mut |value, _, shapes| {
        modes::fill(value, shapes);
    });
    let form: ExperimentForm = match serde_json::from_value(json) {
        Ok(form) => form,
        // What the schema lets through the forms take; where they do not, the user still gets a message.
        Err(_) if !problems.is_empty() => return Err(invalid(&sources, problems)),
        Err(error) => return Err(invalid(&sources, vec![sources.problem(root.span, error.to_string())])),
    };
    let stem = Path::new(name).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let default_name = fitting_or(&stem, &stem);
    let mut check = Check::new(&sources, &root, damaged);
    check.depth = depth;
    let experiment = expand::expand(&form, folder, &default_name, &mut check);
    problems.append(&mut check.problems);
    let (warnings, notes) = (std::mem::take(&mut check.warnings), std::mem::take(&mut check.notes));
    if !problems.is_empty() {
        return Err(invalid(&sources, problems));
    }
    Ok(Loaded { experiment, text: text.to_owned(), warnings, notes, canonical, folder: folder.to_owned() })
}

/// What a merge left, which explains any mistake in the syntax.
fn conflict(sources: &Sources) -> Option<Problem> {
    let text = sources.text(0);
    let line = conflict_line(text)?;
    let start = text.split_inclusive('\n').take(line - 1).map(str::len).sum();
    let marker = sources.problem(Span { source: 0, start, end: start + 7 }, "a conflict marker of git");
    Some(marker.with_hint("resolve the conflict: keep one side, or write what both mean"))
}

fn not_a_map(sources: &Sources, root: &Node) -> Option<Problem> {
    let hint = "a minimal spec is `models: model.onnx`";
    let start = Span { source: 0, start: 0, end: 0 };
    match &root.content {
        Content::Map(_) => None,
        _ if root.is_null() => Some(sources.problem(start, "the file is empty").with_hint(hint)),
        Content::Scalar(_) => {
            Some(sources.problem(root.span, "the file is one text, not a map of keys").with_hint(hint))
        }
        Content::List(_) => Some(sources.problem(root.span, "the file is a list, not a map of keys").with_hint(hint)),
    }
}

/// Takes the value at `place` out, or the nearest value around it that can be missing, and returns where.
fn prune(json: &mut Value, mut place: DocumentPath) -> Option<DocumentPath> {
    while !is_optional(&place) {
        place = place.parent()?;
    }
    let (Step::Key(key), parent) = (place.0.last()?.clone(), place.parent()?) else { return None };
    let mut value = json;
    for step in &parent.0 {
        value = match step {
            Step::Key(key) => value.get_mut(key)?,
            Step::Index(index) => value.get_mut(index)?,
        };
    }
    value.as_object_mut()?.shift_remove(&key);
    Some(place)
}

/// True for a key of a map that the forms can do without; entries of lists would change the places of those after them.
fn is_optional(place: &DocumentPath) -> bool {
    let Some(Step::Key(key)) = place.0.last() else { return false };
    if place.0.len() == 1 {
        return true;
    }
    let mut shapes = schema::top();
    for step in &place.0[..place.0.len() - 1] {
        shapes = match step {
            Step::Key(key) => schema::property(&shapes, key),
            Step::Index(_) => schema::items(&shapes),
        };
    }
    let requires = |shape: &Value| {
        shape.get("required").and_then(Value::as_array).is_some_and(|required| required.iter().any(|name| name == key))
    };
    !shapes.iter().any(|shape| requires(shape))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use base::quantity::{Nanos, Ratio};
    use experiment::{Backend, GraphOptimization, Measure, Runs, Threads, Values};

    use super::*;

    fn read(text: &str) -> Loaded {
        parse("x.yaml", text, Path::new(""), &[]).unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)))
    }

    fn mock(rest: &str) -> Experiment {
        read(&format!("backend: mock\nmodels: [any]\n{rest}")).experiment
    }

    fn names(rest: &str) -> Vec<String> {
        mock(rest).variants.into_iter().map(|variant| variant.name).collect()
    }

    /// As docs/reference/spec.md says.
    #[test]
    fn defaults_are_those_of_the_design() {
        let experiment = mock("");
        assert_eq!((experiment.name.as_str(), experiment.runs, experiment.seed), ("x", Runs::AUTO, 42));
        assert_eq!(experiment.inputs.len(), 1);
        assert_eq!((experiment.inputs[0].name.as_str(), &experiment.inputs[0].values), ("default", &Values::Random));
        assert_eq!(experiment.variants[0].name, "fp32");
        assert_eq!(experiment.devices[0].label(), "cpu");
        assert_eq!(experiment.measure.inputs, 8);
        assert_eq!(experiment.measure.timeout, Nanos::from_secs(600));
        let Measure { warmup, stop, .. } = Measure::default();
        assert_eq!((experiment.measure.warmup, experiment.measure.stop), (warmup, stop));
        let Backend::Mock(mock) = experiment.backend else { panic!("not the mock backend") };
        assert_eq!((mock.median, mock.run_sd, mock.noise), (Nanos::from_millis(5), Ratio(0.01), Ratio(0.02)));
    }

    #[test]
    fn dimensions_multiply_with_the_batch_first() {
        let points = mock("inputs: { sequence: [128, 256], batch: [1, 16] }").inputs;
        let names: Vec<_> = points.iter().map(|point| point.name.as_str()).collect();
        assert_eq!(names, ["b1-sequence128", "b1-sequence256", "b16-sequence128", "b16-sequence256"]);
        assert_eq!(points[3].dimensions["sequence"], 256);
    }

    #[test]
    fn lists_in_a_variant_multiply_and_name() {
        assert_eq!(names("variants: [{ threads: [1, 4] }]"), ["fp32-t1", "fp32-t4"]);
        assert_eq!(names("variants: [{ precision: [fp32], threads: [1, 4] }]"), ["fp32-t1", "fp32-t4"]);
        assert_eq!(
            names("variants: [{ name: x, threads: [1, { intra: 4, inter: 2 }], graph_optimization: [basic, all] }]"),
            ["x-t1-basic", "x-t1-all", "x-t4x2-basic", "x-t4x2-all"]
        );
        assert_eq!(names("variants: [{ name: x, threads: [2] }, fast]"), ["x", "fast"]);
    }

    #[test]
    fn a_base_gives_what_a_variant_does_not_say() {
        let variants = mock(
            "variants:\n\
             - { name: a, threads: { intra: 4, inter: 2 }, session: { x: 0, y: 1 }, env: { A: 1 } }\n\
             - { name: b, base: a, threads: 8, session: { y: 2 }, graph_optimization: basic }\n",
        )
        .variants;
        assert_eq!(variants[1].threads, Threads { intra: Some(8), inter: Some(2) });
        assert_eq!(variants[1].session["x"], "0");
        assert_eq!(variants[1].session["y"], "2");
        assert_eq!(variants[1].env["A"], "1");
        assert_eq!(variants[1].graph_optimization, Some(GraphOptimization::Basic));
        assert_eq!(variants[0].graph_optimization, None);
    }

    #[test]
    fn overrides_change_the_experiment_and_its_canonical_form_and_not_its_text() {
        let text = "backend: mock\nmodels: [any]\nruns: 3\n";
        let loaded = parse("x.yaml", text, Path::new(""), &["runs=5".to_owned()]).unwrap();
        assert_eq!(loaded.experiment.runs, Runs::fixed(5));
        assert_eq!(loaded.text, text);
        assert_eq!(loaded.canonical.to_string(), r#"{"backend":"mock","models":["any"],"runs":5}"#);
    }

    #[test]
    fn names_of_the_runtime_and_short_timeouts_are_warned_of() {
        let loaded = read("backend: mock\nmodels: [any]\ndevices: CUDAExecutionProvider\nmeasure: { timeout: 1s }\n");
        let warnings: Vec<_> = loaded.warnings.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(
            warnings,
            [
                "`CUDAExecutionProvider` is ONNX Runtime's name",
                "a run may take 10s to warm up and sample, but `timeout` is 1s",
            ]
        );
        assert!(loaded.warnings.iter().all(|warning| !warning.is_error()));
    }

    #[test]
    fn an_experiment_takes_its_name_from_the_file() {
        let parse = |file: &str| parse(file, "backend: mock\nmodels: [any]\n", Path::new(""), &[]);
        assert_eq!(parse("dir/my größte spec.yaml").unwrap().experiment.name, "my-grosste-spec");
        assert_eq!(parse("dir/(!).yaml").unwrap_err().problems()[0].hint.as_deref(), Some("add a `name`"));
    }

    #[test]
    fn keys_that_begin_with_x_hold_anchors() {
        let text = "x-fast: &fast { threads: 1 }\nbackend: mock\nmodels: [any]\nvariants: [{ name: a, <<: *fast }]\n";
        let loaded = read(text);
        assert_eq!(loaded.experiment.variants[0].threads.intra, Some(1));
        let plain = "backend: mock\nmodels: [any]\nvariants: [{ name: a, threads: 1 }]\n";
        assert_eq!(loaded.canonical, read(plain).canonical);
        assert_eq!(crate::measured(text), crate::measured(plain));
    }

    #[test]
    fn a_byte_order_mark_and_carriage_returns_are_no_matter() {
        assert_eq!(read("\u{feff}backend: mock\r\nmodels:\r\n  - any\r\n").experiment.models[0].name, "any");
    }

    #[test]
    fn experiments_survive_json() {
        let experiment = mock("inputs: { batch: 4 }\nvariants: [{ name: a, mock: { scale: 1.05 } }]");
        let json = serde_json::to_string(&experiment).unwrap();
        assert_eq!(serde_json::from_str::<Experiment>(&json).unwrap(), experiment);
    }
}
