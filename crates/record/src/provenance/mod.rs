//! What may differ between two records, and what that means for comparing them: every stored fact once, with its class.
//!
//! Input: a manifest, or the machine alone. Output: facts by class, and in what two sides differ. Adding a fact is one
//! line in [`FIELDS`]. What belongs to one cell (its model's hash, its definition, its runtime) stands in the row of the
//! cell and is of the subject.

mod values;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Manifest;
use base::machine::host::Host;
use base::privacy::without_home;
use experiment::Axis;
use files::digest;
use worker::measure;

use values::{
    boundary, commands, datasets, default_threads, files, gpu_setup, gpus, idle_watts, input_files, inputs, memory_gib,
    models, plugins, quota, runtimes, script, specification, stdout,
};

/// What a difference in a fact means for a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What is compared: it may differ, and the difference is shown.
    Subject,
    /// What must be equal for a comparison to mean anything.
    Frame,
    /// What may matter: a difference is shown as a warning.
    Context,
}

/// Where a fact is read from.
#[derive(Clone, Copy)]
enum Source {
    Host(fn(&Host) -> Value),
    Manifest(fn(&Manifest) -> Value),
}

/// One fact.
#[derive(Clone, Copy)]
pub struct Field {
    /// Its name in `results.json`.
    pub name: &'static str,
    /// What a difference means.
    pub class: Class,
    pub meaning: &'static str,
    /// Where it is a list with rows for entries of an axis: the key of a row that names the entry. Only the row of its
    /// own entry says something about a cell.
    pub rows_by: Option<&'static str>,
    /// It differs from record to record by itself, so that a difference is not worth a word.
    pub is_passing: bool,
    source: Source,
}

impl Field {
    /// A list whose rows are for entries of the axis that this key names, or that the fact itself is called like.
    const fn by(self, key: &'static str) -> Self {
        Field { rows_by: Some(key), ..self }
    }

    /// It differs from record to record by itself.
    const fn passing(self) -> Self {
        Field { is_passing: true, ..self }
    }

    fn axis(&self) -> Option<Axis> {
        self.rows_by.and_then(|key| Axis::of_singular(key).or(Axis::of_plural(self.name)))
    }

    /// The part of a value that is about the entry `name(axis)`; `None` where no row is.
    pub fn about<'a>(&self, value: &'a Value, name: impl Fn(Axis) -> &'a str) -> Option<&'a Value> {
        let Some((axis, key)) = self.axis().zip(self.rows_by) else { return Some(value) };
        let Some(rows) = value.as_array() else { return Some(value) };
        let is_of_entry = |row: &&Value| match row.get(key) {
            // A runtime without a name is that of cells without a runtime.
            None | Some(Value::Null) => name(axis) == Axis::ABSENT,
            Some(entry) => entry.as_str() == Some(name(axis)),
        };
        rows.iter().find(is_of_entry)
    }
}

/// The fact of that name.
pub fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

const fn host(name: &'static str, class: Class, source: fn(&Host) -> Value, meaning: &'static str) -> Field {
    Field { name, class, meaning, rows_by: None, is_passing: false, source: Source::Host(source) }
}

const fn recorded(name: &'static str, class: Class, source: fn(&Manifest) -> Value, meaning: &'static str) -> Field {
    Field { name, class, meaning, rows_by: None, is_passing: false, source: Source::Manifest(source) }
}

use Class::{Context, Frame, Subject};

/// Every fact, in the order of reports. The frame's facts about the host identify a machine.
#[rustfmt::skip]
pub const FIELDS: &[Field] = &[
    recorded("specification", Subject, specification, "path, text and overrides of the specification, and the SHA-256 of its parsed and canonical form"),
    recorded("models", Subject, models, "each model: path, SHA-256, size, parameters, versions of its operator sets, nodes by operator, and what one inference costs by input").by("name"),
    recorded("commands", Subject, commands, "each command instead of a model: name, line, and what is run before it; absent with models"),
    recorded("sources", Subject, |manifest| json!(manifest.sources), "what commands run: the tracked files of the project by their contents, and what the specification lists of them (`paths`); absent with models, and without git"),
    recorded("files", Subject, files, "files of variants that do not run the model's own file: SHA-256, origin, version of the converter"),
    recorded("datasets", Subject, datasets, "the data of each model: path, SHA-256, items").by("model"),
    recorded("input_files", Subject, input_files, "each file that inputs are fed from: path, SHA-256; absent without one"),
    recorded("runtimes", Subject, runtimes, "each ONNX Runtime library: version, build, package, SHA-256").by("name"),
    recorded("plugins", Subject, plugins, "each plug-in that brings a device or custom operators: package, version, SHA-256; absent without one").by("device"),
    recorded("script", Subject, script, "SHA-256 of the mock backend's script; absent with models and commands"),

    host("cpu", Frame, |host| json!(host.cpu), "processor, as it names itself"),
    host("cpu_revision", Frame, |host| json!(host.cpu_revision), "its family, model and stepping"),
    host("logical_cpus", Frame, |host| json!(host.logical_cpus), "logical processors of the machine"),
    host("allowed_cpus", Frame, |host| json!(host.allowed_cpus), "processors that workers may use"),
    host("allowed_cores", Frame, |host| json!(host.allowed_cores), "physical cores among them"),
    host("cpu_quota", Frame, quota, "CPU quota of the cgroup, in processors; `none` without a limit"),
    host("memory_gib", Frame, |host| json!(memory_gib(host)), "memory, rounded up to whole GiB, since kernels keep some for themselves"),
    host("system", Frame, |host| json!(host.system), "operating system and architecture"),
    recorded("default_threads", Frame, default_threads, "threads of cells whose variant does not set them; absent where every variant does"),
    recorded("inputs", Frame, inputs, "each input: dimensions, shapes, values, SHA-256 of its file").by("name"),
    recorded("design", Frame, |manifest| json!(manifest.experiment.measure.design), "how runs are laid out in time"),
    recorded("stdout", Frame, stdout, "where each command's standard output goes: `null`, `pipe`, `inherit` or a file; absent with models").by("model"),
    recorded("cache", Frame, |manifest| json!(manifest.experiment.measure.cache), "what caches hold when a sample begins"),
    recorded("boundary", Frame, boundary, "where tensors are when the clock starts and ends: `device` or `host`; absent on the CPU, where both are the same"),
    recorded("gpus", Frame, gpus, "each GPU that was measured on: device, name, memory in GiB, power limit in W, whether it is divided (MIG) and corrects errors (ECC); absent without one").by("device"),
    recorded("input_sets", Frame, |manifest| json!(manifest.experiment.measure.inputs), "distinct input sets"),
    recorded("timing", Frame, |_| json!(measure::TIMING_VERSION), "version of what is timed"),

    recorded("perfrun", Context, |manifest| json!(manifest.perfrun), "version of perfrun"),
    recorded("build_profile", Context, |manifest| json!(manifest.build_profile), "profile of cargo that perfrun was built with").passing(),
    recorded("commit", Context, |manifest| json!(manifest.revision.as_ref().map(|revision| &revision.commit)), "HEAD when the record began").passing(),
    recorded("dirty", Context, |manifest| json!(manifest.revision.as_ref().map(|revision| &revision.dirty)), "files of the experiment that differed from it; absent: unknown").passing(),
    host("host", Context, |host| json!(host.machine), "salted hash of the installation"),
    host("kernel", Context, |host| json!(host.kernel), "kernel release"),
    host("microcode", Context, |host| json!(host.microcode), "microcode of the processor"),
    host("governor", Context, |host| json!(host.governor), "frequency governor"),
    host("turbo", Context, |host| json!(host.turbo), "whether turbo (boost clocks) is on"),
    host("smt", Context, |host| json!(host.smt), "two hardware threads share a core"),
    host("virtual_machine", Context, |host| json!(host.virtual_machine), "whether this is a virtual machine"),
    host("memory_nodes", Context, |host| json!(host.memory_nodes), "NUMA nodes of the allowed processors"),
    host("last_level_cache_bytes", Context, |host| json!(host.last_level_cache_bytes), "last level of cache of the allowed processors"),
    host("clock_source", Context, |host| json!(host.clock_source), "the kernel's clock source"),
    host("aslr", Context, |host| json!(host.aslr), "address-space randomisation; 0 is off"),
    host("variables", Context, |host| json!(host.variables), "environment variables that change what a runtime does (`OMP_NUM_THREADS`, `LD_PRELOAD`, `NVIDIA_TF32_OVERRIDE` ...), by name, as workers inherited them when the record began"),
    recorded("others_cpus", Context, |manifest| json!(manifest.background_cpus), "processor time used by other processes when the record began, in processors").passing(),
    recorded("load", Context, |manifest| json!(manifest.load_average.map(|load| load.one_minute)), "load average of one minute then").passing(),
    recorded("gpu_setup", Context, gpu_setup, "driver of each of these GPUs, the latest CUDA that it supports, persistence mode, whether clocks were seen to be locked").by("device"),
    recorded("idle_watts", Context, idle_watts, "idle power of each of these GPUs and, as `packages`, of the processors").passing(),
    recorded("peaks", Context, |manifest| json!(manifest.peaks()), "highest measured operations per second of the machine, by device, threads and data type").passing(),
    recorded("bandwidths", Context, |manifest| json!(manifest.bandwidths()), "highest measured memory bandwidth in bytes per second, by device, threads and size").passing(),
    recorded("launching", Context, |manifest| json!(manifest.launches()), "measured overhead of an inference and of each of its nodes, in nanoseconds").passing(),
];

/// Names of the facts in which two sides must agree.
pub fn frame_names() -> Vec<&'static str> {
    FIELDS.iter().filter(|field| field.class == Frame).map(|field| field.name).collect()
}

/// Facts by name; what is unknown is absent.
pub type Facts = BTreeMap<String, Value>;

/// What was measured, on what, and where.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Provenance {
    /// A name for the machine, made of the facts that identify it.
    pub machine: String,
    /// What one compares: it may differ between two sides, and is named.
    pub subject: Facts,
    /// What must be equal on both sides, else they cannot be compared.
    pub frame: Facts,
    /// What may matter, and is named with a warning where it differs.
    pub context: Facts,
}

impl Provenance {
    /// That of a record.
    pub fn of(manifest: &Manifest) -> Self {
        let hosts = manifest.hosts();
        let mut found = Self::of_host(&manifest.host);
        if let [_, _, ..] = manifest.machines[..] {
            found = Provenance { machine: manifest.names_of_machines(), ..Provenance::default() };
        }
        for field in FIELDS {
            match field.source {
                Source::Manifest(read) => found.take(field, read(manifest)),
                Source::Host(read) => found.take(field, alike(hosts.iter().map(|host| read(host)).collect())),
            }
        }
        found
    }

    /// What the machine alone says.
    pub fn of_host(host: &Host) -> Self {
        let mut found = Provenance { machine: name_of_machine(&machine(host)), ..Provenance::default() };
        for field in FIELDS {
            if let Source::Host(read) = field.source {
                found.take(field, read(host));
            }
        }
        found
    }

    /// Takes the value of a field, if it is known.
    fn take(&mut self, field: &Field, value: Value) {
        let facts = match field.class {
            Subject => &mut self.subject,
            Frame => &mut self.frame,
            Context => &mut self.context,
        };
        if is_known(&value) {
            facts.insert(field.name.to_owned(), as_written(value));
        }
    }
}

/// What identifies a machine: the facts of the frame about the host.
pub fn machine(host: &Host) -> Facts {
    let fields = FIELDS.iter().filter(|field| field.class == Frame);
    let facts = fields.filter_map(|field| match field.source {
        Source::Host(read) => Some((field.name.to_owned(), read(host))),
        Source::Manifest(_) => None,
    });
    facts.filter(|(_, value)| is_known(value)).map(|(name, value)| (name, as_written(value))).collect()
}

/// The value as it is stored: whole numbers without a point, so that they read back as they are; no home folders; and in
/// rows nothing that is unknown.
fn as_written(value: Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0) {
            Some(float) if float.abs() < 1e15 => Value::from(float as i64),
            _ => Value::Number(number),
        },
        Value::String(text) => Value::String(without_home(&text)),
        Value::Array(values) => values.into_iter().map(as_written).collect(),
        Value::Object(fields) => {
            let known = fields.into_iter().filter(|(_, value)| is_known(value));
            known.map(|(name, value)| (name, as_written(value))).collect()
        }
        other => other,
    }
}

/// What machines say, once where all say the same.
fn alike(mut values: Vec<Value>) -> Value {
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        values.pop().unwrap_or(Value::Null)
    } else {
        Value::Array(values)
    }
}

/// `null` means unknown; an empty list means that there is none.
fn is_known(value: &Value) -> bool {
    !value.is_null()
}

/// A fact that is not the same on two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The fact.
    pub name: String,
    /// Its value on the first side.
    pub first: Value,
    /// Its value on the second side.
    pub second: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        write!(f, "{}: {}, here {}", self.name, word(&self.first), word(&self.second))
    }
}

/// The facts that both sides know and in which they differ. What one side does not know is no difference.
pub fn differences(first: &Facts, second: &Facts) -> Vec<Difference> {
    let differ = |(name, value): (&String, &Value)| {
        let theirs = second.get(name).filter(|theirs| *theirs != value)?;
        Some(Difference { name: name.clone(), first: value.clone(), second: theirs.clone() })
    };
    first.iter().filter_map(differ).collect()
}

/// A name that says what a machine is, and distinguishes it from others: `amd-epyc-2c-1f2e`.
pub fn name_of_machine(machine: &Facts) -> String {
    let cpu = machine.get("cpu").and_then(Value::as_str).unwrap_or("unknown");
    let words = cpu.split(|letter: char| !letter.is_ascii_alphanumeric());
    let says_something = |word: &&str| !matches!(*word, "" | "R" | "TM" | "CPU" | "Processor" | "processor");
    let name = words.filter(says_something).take(4).map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-");
    let cores = machine.get("allowed_cores").and_then(Value::as_u64).unwrap_or(0);
    format!("{name}-{cores}c-{}", &digest::of_text(&json!(machine).to_string())[..4])
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::machine::host;

    fn facts(pairs: &[(&str, Value)]) -> Facts {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn rows_are_those_of_an_axis() {
        assert!(FIELDS.iter().all(|field| field.rows_by.is_some() == field.axis().is_some()));
    }

    #[test]
    fn a_machine_is_what_it_is_made_of_and_not_its_installation() {
        let mut here = host::describe();
        let one = machine(&here);
        here.machine = "another".to_owned();
        here.kernel = Some("another".to_owned());
        here.memory_bytes = here.memory_bytes.map(|bytes| bytes - 4096);
        assert_eq!(differences(&one, &machine(&here)), []);
        here.cpu = Some("AMD EPYC 7R13 Processor".to_owned());
        here.cpu_quota = Some(0.125);
        let other = machine(&here);
        let differences = differences(&one, &other);
        assert_eq!(differences.iter().map(|found| found.name.as_str()).collect::<Vec<_>>(), ["cpu", "cpu_quota"]);
        assert!(name_of_machine(&other).starts_with("amd-epyc-7r13-"));
        assert_ne!(name_of_machine(&one), name_of_machine(&other));
    }

    #[test]
    fn what_one_side_does_not_know_is_no_difference() {
        let (known, unknown) =
            (facts(&[("cpu", json!("x")), ("cpu_quota", json!(2.0))]), facts(&[("cpu", json!("x"))]));
        assert_eq!(differences(&known, &unknown), []);
        assert_eq!(differences(&unknown, &known), []);
        assert_eq!(differences(&known, &facts(&[("cpu", json!("y"))])).len(), 1);
    }

    #[test]
    fn every_fact_has_one_name() {
        let names: std::collections::BTreeSet<&str> = FIELDS.iter().map(|field| field.name).collect();
        assert_eq!(names.len(), FIELDS.len());
    }
}
