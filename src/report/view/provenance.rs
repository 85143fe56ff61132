//! Where the numbers come from: machine, runtime, files, commit, commands. Nothing here names a user or a host.

use super::{Fact, FactGroup, Table, TableCell, TableColumn, TableRow};
use crate::experiment::{Axis, Cache, Design, VariantIndex};
use crate::judge::compare::Terms;
use crate::machine::host::Host;
use crate::machine::kernel::Load;
use crate::record::{Bandwidth, Launching, MachineUsed, Manifest, ModelFile, Peak, Stream};
use crate::report::format::{self, count};
use crate::report::{Input, Trust};
use crate::vocabulary::metric::{MetricReference, Unit};
use crate::vocabulary::privacy::without_home;
use crate::worker::backend;

/// Digits of a hash that a reader compares; the whole one is in `results.json`.
const SHORT_HASH: usize = 12;

/// Measured, on, with, judged: the four things to know about any number.
pub(super) fn facts(input: &Input<'_>, trust: &Trust) -> Vec<Fact> {
    let manifest = input.manifest;
    let plan = &manifest.plan;
    let day = manifest.findings.sessions.first().and_then(|session| session.started.get(..10)).unwrap_or("unknown day");
    let runs = || input.summary.cells.iter().map(|cell| cell.runs).filter(|runs| runs.planned() > 0);
    let completed = runs().map(|runs| runs.completed).max().unwrap_or(0);
    let fewest = runs().map(|runs| runs.completed).filter(|completed| *completed > 0).min().unwrap_or(0);
    let most = plan.runs;
    let processes = match manifest.experiment.looks().is_one() {
        true if most == 1 => "1 process".to_owned(),
        true if completed < most => format!("{completed} of {most} processes"),
        false if fewest < completed => format!("{fewest} to {completed} processes"),
        _ => format!("{completed} processes"),
    };
    let cells = format!("{} x {processes}", count(plan.runnable().count() as u64, "cell"));
    let measured = [day.to_owned(), commit(manifest), cells, format!("record {}", manifest.record)].join(", ");
    let on = |host: &Host| {
        let cores = host.allowed_cores.map(|cores| count(u64::from(cores), "core"));
        let system = format!("{} {}", capital(&host.system), host.kernel.as_deref().unwrap_or(""));
        let parts = [host.cpu.clone(), cores, Some(system.trim().to_owned())];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let on: Vec<String> = match manifest.machines.as_slice() {
        [] | [_] => vec![on(&manifest.host)],
        machines => machines.iter().map(|machine| format!("{}: {}", machine.name, on(&machine.host))).collect(),
    };
    let judged = judged(input, trust);
    vec![
        Fact::new("measured", measured),
        Fact::new("on", on.join("; ")),
        Fact::new("with", with(manifest)),
        Fact::new("judged", judged),
    ]
}

/// Against what, by which margin, how much can be seen, and whether identical arms were found alike.
fn judged(input: &Input<'_>, trust: &Trust) -> String {
    let manifest = input.manifest;
    let against = match &manifest.plan.baseline {
        Some(baseline) => {
            let margin = Terms::of(manifest).margin_of(MetricReference::LATENCY);
            format!("against {} ({}), margin {}", baseline.name, baseline.axes_words(), format::percent(margin))
        }
        None => "not compared: one variant, one model, one device".to_owned(),
    };
    let quick = manifest.quick.then(|| "quick look".to_owned());
    let parts = [Some(against), quick, trust.grade.clone(), Some(trust.control.clone())];
    parts.into_iter().flatten().collect::<Vec<String>>().join(", ")
}

fn commit(manifest: &Manifest) -> String {
    manifest.revision.as_ref().map_or_else(|| "no commit".to_owned(), ToString::to_string)
}

fn with(manifest: &Manifest) -> String {
    let runtime =
        format::runtimes(manifest).unwrap_or_else(|| "scripted latencies (mock backend), no model was run".to_owned());
    let plan = &manifest.plan;
    let is_run = |device: usize| plan.runnable().any(|(_, cell)| cell.device().place() == device);
    let used: Vec<&String> = plan
        .names(Axis::Devices)
        .iter()
        .enumerate()
        .filter(|(index, _)| is_run(*index))
        .map(|(_, label)| label)
        .collect();
    let devices = format::list(&used);
    let measure = &manifest.experiment.measure;
    let design = match measure.design {
        Design::Blocks => None,
        Design::Slices => Some("slices of resident workers"),
        Design::Duet => Some("duet: two workers side by side"),
        Design::Sequential => Some("one cell after the other"),
    };
    let caches = (measure.cache == Cache::Cold).then_some("cold caches");
    let parts = [Some(runtime), Some(devices), Some(format::threads(manifest))];
    let labels = [design, caches].map(|label| label.map(str::to_owned));
    parts.into_iter().chain(labels).flatten().collect::<Vec<_>>().join(", ")
}

/// `1 to 4 threads (one: 1, tuned: 4)`: those of every variant that is run, where they differ.
fn threads_by_variant(manifest: &Manifest) -> String {
    let plan = &manifest.plan;
    let mut own: Vec<(VariantIndex, u32)> =
        plan.runnable().map(|(_, cell)| (cell.variant(), manifest.threads_of(cell))).collect();
    own.sort_unstable();
    own.dedup();
    let is_one = own.windows(2).all(|pair| pair[0].1 == pair[1].1);
    let named: Vec<String> = own
        .iter()
        .map(|(variant, threads)| format!("{}: {threads}", plan.name(*variant).unwrap_or_default()))
        .collect();
    let all = format::threads(manifest);
    if is_one { all } else { format!("{all} ({})", named.join(", ")) }
}

/// Machine, runtime, origin.
pub(super) fn groups(input: &Input<'_>) -> Vec<FactGroup> {
    let manifest = input.manifest;
    let mut groups: Vec<FactGroup> = match manifest.machines.as_slice() {
        [] | [_] => vec![FactGroup {
            title: "Machine".to_owned(),
            facts: machine(&manifest.host, manifest.others_cpus, manifest.load),
        }],
        machines => machines.iter().map(of_machine).collect(),
    };
    if let Some(first) = groups.first_mut() {
        first.facts.extend(devices(manifest));
    }
    groups.extend(super::environment::environment(input));
    groups.push(FactGroup { title: "Runtime".to_owned(), facts: runtime(input) });
    groups.push(FactGroup { title: "Origin".to_owned(), facts: origin(manifest) });
    groups
}

fn of_machine(machine: &MachineUsed) -> FactGroup {
    let facts = self::machine(&machine.host, machine.others_cpus, machine.load);
    FactGroup { title: format!("Machine {}", machine.name), facts }
}

fn machine(host: &Host, others_cpus: f64, load: Option<Load>) -> Vec<Fact> {
    let unknown = || "unknown".to_owned();
    let text = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let yes_no = |value: Option<bool>, yes: &str, no: &str| {
        value.map_or_else(unknown, |value| if value { yes } else { no }.to_owned())
    };
    let number = |value: Option<u32>| value.map_or_else(unknown, |value| value.to_string());
    vec![
        Fact::new("processor", text(&host.cpu)),
        Fact::new("microcode", text(&host.microcode)),
        Fact::new("logical processors", number(host.logical_cpus)),
        Fact::new("allowed processors", text(&host.allowed_cpus)),
        Fact::new("allowed physical cores", number(host.allowed_cores)),
        Fact::new(
            "processor quota",
            host.cpu_quota.map_or_else(|| "none".to_owned(), |quota| format!("{quota} processors")),
        ),
        Fact::new("hardware threads", yes_no(host.smt, "two per core", "one per core")),
        Fact::new("frequency governor", text(&host.governor)),
        Fact::new("turbo", yes_no(host.turbo, "on", "off")),
        Fact::new("virtual machine", yes_no(host.virtual_machine, "yes", "no")),
        Fact::new("memory", host.memory_bytes.map_or_else(unknown, format::bytes)),
        Fact::new("NUMA nodes", number(host.memory_nodes)),
        Fact::new("system", host.system.clone()),
        Fact::new("kernel", text(&host.kernel)),
        Fact::new("clock source", text(&host.clock_source)),
        Fact::new(
            "address randomisation",
            host.aslr.map_or_else(unknown, |level| if level == 0 { "off".to_owned() } else { format!("on ({level})") }),
        ),
        Fact::new("CPU used by others before", format!("{others_cpus:.1} processors")),
        Fact::new("load average before (1 min)", load.map_or_else(unknown, |load| format!("{:.2}", load.one_minute))),
        Fact::new("machine id (hash)", host.machine.clone()),
    ]
}

/// What devices are, and what they were seen to do at most.
fn devices(manifest: &Manifest) -> Vec<Fact> {
    let mut facts = super::devices::devices(manifest);
    facts.extend(manifest.peaks().iter().map(peak));
    facts.extend(manifest.bandwidths().iter().map(bandwidth));
    facts.extend(manifest.launches().iter().map(launching));
    facts
}

/// `peak, cpu, 2 threads: 92.1 GFLOP/s in float32, ...`.
fn peak(peak: &Peak) -> Fact {
    let rate = format::rate(peak.operations_per_s, peak.arithmetic);
    let size = peak.size;
    let value = format!("{rate}, the fastest matrix product of {size} rows and columns");
    Fact::new(seen("peak", &peak.device, peak.threads), value)
}

/// `bandwidth, cpu, 2 threads: 14.2 GB/s, ...`.
fn bandwidth(seen: &Bandwidth) -> Fact {
    let rate = format::bandwidth(seen.bytes_per_s);
    let within = format::bytes(seen.of_bytes);
    let value = match seen.of {
        Stream::Weights => format!("{rate} in a vector-matrix product with a matrix of {within}"),
        Stream::Activations => format!("{rate} in a sum of vectors, {within} in total"),
    };
    Fact::new(self::seen("bandwidth", &seen.device, seen.threads), value)
}

/// `starting nodes, cpu, 1 thread: 270 ns each, ...`.
fn launching(seen: &Launching) -> Fact {
    let [node, call] = [seen.node_ns, seen.call_ns].map(|time| format::amount(Unit::Nanoseconds, time));
    let value = format!("{node} each, and {call} per inference, measured with nodes that compute almost nothing");
    Fact::new(self::seen("starting nodes", &seen.device, seen.threads), value)
}

fn seen(what: &str, device: &str, threads: u32) -> String {
    format!("{what}, {device}, {}", count(u64::from(threads), "thread"))
}

fn runtime(input: &Input<'_>) -> Vec<Fact> {
    let manifest = input.manifest;
    let mut facts = Vec::new();
    for (name, used) in manifest.libraries() {
        // Of several, each fact says of which.
        let of = name.map(|name| format!(" of {name}")).unwrap_or_default();
        let version = name.map_or_else(|| used.version.clone(), |_| Some(format::library(manifest, name, &used)));
        facts.push(Fact::new("ONNX Runtime", version.unwrap_or_else(|| "unknown".to_owned())));
        facts.extend(used.build.as_ref().map(|build| Fact::new(format!("build{of}"), without_home(build))));
        let found = if name.is_some() { format!("library{of} found in") } else { "found in".to_owned() };
        facts.push(Fact::new(found, used.origin.replace('`', "")));
        facts.push(Fact::new(format!("SHA-256 of the library{of}"), used.sha256.clone()));
    }
    if manifest.libraries().next().is_none() {
        let backend = backend::of(&manifest.experiment.backend);
        facts.push(match backend.library() {
            Some(name) => Fact::new(name, "unknown"),
            None => Fact::new("backend", backend.description()),
        });
    }
    facts.push(Fact::new("threads", threads_by_variant(manifest)));
    let nodes = nodes(input);
    if !nodes.is_empty() {
        facts.push(Fact::new("nodes by provider", nodes));
    }
    let dynamic = input.summary.cells.iter().filter(|cell| cell.dynamic_outputs).count();
    if dynamic > 0 {
        let cells = count(dynamic as u64, "cell");
        facts.push(Fact::new(
            "outputs",
            format!("allocated by the runtime inside the timed region in {cells}, since their shapes vary"),
        ));
    }
    facts
}

/// Which providers executed nodes, as read back from the runtime: the smallest and largest number over the cells.
fn nodes(input: &Input<'_>) -> String {
    let mut ranges: std::collections::BTreeMap<&str, (u64, u64)> = std::collections::BTreeMap::new();
    for (provider, number) in input.summary.cells.iter().flat_map(|cell| &cell.nodes) {
        let range = ranges.entry(provider).or_insert((*number, *number));
        *range = (range.0.min(*number), range.1.max(*number));
    }
    let text = |(provider, (least, most)): (&str, (u64, u64))| {
        if least == most {
            format!("{provider}: {most} per model")
        } else {
            format!("{provider}: {least} to {most} per model")
        }
    };
    ranges.into_iter().map(text).collect::<Vec<_>>().join("; ")
}

fn origin(manifest: &Manifest) -> Vec<Fact> {
    let mut facts = vec![
        Fact::new("perfrun", manifest.perfrun.clone()),
        Fact::new("record", manifest.record.clone()),
        Fact::new("specification", manifest.spec.path.clone()),
        Fact::new("SHA-256 of the specification", manifest.spec.sha256.clone()),
    ];
    match &manifest.revision {
        Some(revision) => {
            facts.push(Fact::new("commit", revision.commit.clone()));
            facts.push(Fact::new("changed files", without_home(&revision.changed_files())));
        }
        None => facts.push(Fact::new("commit", "none")),
    }
    facts.push(Fact::new("seed", manifest.plan.seed.to_string()));
    for (index, session) in manifest.findings.sessions.iter().enumerate() {
        let name =
            if manifest.findings.sessions.len() == 1 { "session".to_owned() } else { format!("session {}", index + 1) };
        let boot = session.boot.as_ref().map(|boot| format!(", boot {boot}")).unwrap_or_default();
        facts.push(Fact::new(&name, format!("{}{boot}: {}", session.started, without_home(&session.command))));
    }
    facts
}

/// The model files.
pub(super) fn models(manifest: &Manifest) -> Option<Table> {
    manifest.models.iter().flatten().next()?;
    let titles = [
        ("model", false),
        ("file", false),
        ("size", true),
        ("parameters", true),
        ("MACs", true),
        ("SHA-256", false),
        ("made by", false),
    ];
    let column = |(title, is_numeric): (&str, bool)| TableColumn { title: title.to_owned(), meaning: None, is_numeric };
    let row = |(name, file): (&String, &Option<ModelFile>)| {
        let cells = match file {
            None => vec![
                TableCell::text(name.clone()),
                TableCell::text("unreadable"),
                TableCell::nothing(),
                TableCell::nothing(),
                TableCell::nothing(),
                TableCell::nothing(),
                TableCell::nothing(),
            ],
            Some(file) => vec![
                TableCell::text(name.clone()),
                TableCell::text(without_home(&file.path)),
                TableCell::number(format::bytes(file.bytes), file.bytes as f64),
                file.parameters
                    .map_or_else(TableCell::nothing, |number| TableCell::number(number.to_string(), number as f64)),
                macs(file),
                TableCell::text(file.sha256.get(..SHORT_HASH).unwrap_or(&file.sha256)),
                TableCell::text(file.producer.clone().unwrap_or_else(|| "-".to_owned())),
            ],
        };
        TableRow { anchor: None, cells }
    };
    let rows = manifest.plan.names(Axis::Models).iter().zip(&manifest.models).map(row).collect();
    let has_macs =
        manifest.models.iter().flatten().any(|file| file.costs.iter().flatten().any(|cost| cost.macs.is_some()));
    let note = "MACs are multiply-accumulates of one inference of the model as stored, at the first input: convolutions, matrix products, recurrent cells and attention.";
    let notes = has_macs.then(|| note.to_owned()).into_iter().collect();
    Some(Table { columns: titles.into_iter().map(column).collect(), rows, notes })
}

/// Multiply-accumulates of one inference at the first input that they are known for.
fn macs(file: &ModelFile) -> TableCell {
    let known = file.costs.iter().flatten().find_map(|cost| cost.macs);
    known.map_or_else(TableCell::nothing, |macs| TableCell::number(format::magnitude(macs), macs as f64))
}

fn capital(text: &str) -> String {
    let first = text.split_whitespace().next().unwrap_or(text);
    let mut letters = first.chars();
    letters.next().map(|letter| letter.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
