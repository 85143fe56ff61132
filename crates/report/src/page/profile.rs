//! Where the time of each cell goes, by operator and by node, and its memory.

use super::bars::Bars;
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table};
use crate::format::{self, Column, bytes, magnitude, percent, scale};
use base::metric::{LATENCY, SERVICE, Unit};
use base::wording::{capitalized, count};
use judge::results::{
    Bound, CONFIDENCE, Cell, DROWNED, Estimated, INFLATED, LEAST_RUNS, Memory, OperatorTime, Profile, WAITS, WaitAfter,
};
use statistics::interval::Estimate;

/// The part of a page that these tables stand in.
pub(super) const PART: &str = "profile";

/// What is in no node whose time is known.
pub(super) fn rest_of(profiles: &[&Profile]) -> &'static str {
    let has_hidden = profiles.iter().any(|profile| profile.handed_over > 0);
    if has_hidden { "on the device, and outside nodes" } else { "runtime, outside nodes" }
}

/// The tables of one cell.
pub(super) fn sections_of(reader: &Reader<'_>, cell: &Cell, profile: &Profile) -> impl Iterator<Item = Section> {
    let name = reader.short_path(cell.id);
    let title = format!("{name} by operator");
    let by_operator = Section::new(PART, &id("operators", cell), &title, operators(cell, profile));
    let by_operator = Section { bars: bars(profile), ..by_operator };
    let by_node = Section::new(PART, &id("nodes", cell), &format!("{name}, longest nodes"), nodes(cell, profile));
    let memory = profile.memory.as_ref();
    let memory =
        memory.map(|it| Section::new(PART, &id("memory", cell), &format!("{name}, memory"), memory_table(cell, it)));
    let by_kernel = Section::new(PART, &id("kernels", cell), &format!("{name}, longest kernels"), kernels(profile));
    let by_kernel = Some(by_kernel).filter(|_| !profile.kernels.is_empty());
    [Some(by_operator), Some(by_node).filter(|_| !profile.nodes.is_empty()), by_kernel, memory].into_iter().flatten()
}

fn id(what: &str, cell: &Cell) -> String {
    format!("{what}-{}", cell.id)
}

pub(super) fn estimate(estimated: &Estimated) -> Estimate {
    estimated.estimate(CONFIDENCE)
}

/// Times of one table, in the unit of the longest: short ones have decimals.
pub(super) fn column_of<'a>(times: impl Iterator<Item = &'a Estimated>) -> Column {
    let times: Vec<Estimate> = times.map(estimate).collect();
    let longest = times.iter().map(|time| time.value.abs()).fold(0.0, f64::max);
    Column::fit_to(scale(Unit::Nanoseconds, [longest]), &times)
}

/// `84 %`, `5.2 %`.
pub(super) fn part_of(part: f64) -> String {
    let value = if part.abs() < 0.0005 { 0.0 } else { part * 100.0 };
    format!("{} %", format::fixed(value, if value.abs() < 9.95 { 1 } else { 0 }))
}

/// An inference of the plain processes over the latency, where the machine was about as fast.
const ABOUT_THE_SAME: std::ops::RangeInclusive<f64> = 0.75..=1.33;

/// What is shorter than this is nothing: the profiler's times are microseconds.
const LEAST_NS: f64 = 10.0;

pub(super) fn time_text(column: &Column, estimated: &Estimated) -> String {
    if estimated.value.abs() < LEAST_NS { "~ 0".to_owned() } else { column.value(&estimate(estimated)) }
}

/// What one inference takes, without its wait for earlier ones.
pub(super) fn inference(cell: &Cell) -> Option<Estimated> {
    let served = cell.load.as_ref().map(|load| (SERVICE.name, f64::from(load.queries.inferences())));
    let (metric, inferences) = served.unwrap_or((LATENCY.name, 1.0));
    cell.metrics.get(metric).map(|found| Estimated {
        value: found.value / inferences,
        low: found.low.map(|end| end / inferences),
        high: found.high.map(|end| end / inferences),
        ..*found
    })
}

/// The nodes of a cell by operator, then the time outside them.
fn operators(cell: &Cell, profile: &Profile) -> Table {
    let between = profile.between.as_ref().filter(|_| profile.has_times());
    let waits = profile.waits.map(OperatorTime::waits);
    let rows: Vec<&OperatorTime> = profile.operators.iter().chain(&waits).collect();
    let column = column_of(rows.iter().filter_map(|row| row.time.as_ref()).chain(between));
    let latency = inference(cell).map(|it| it.value);
    // The last row is of no operator.
    let rows: Vec<Option<&OperatorTime>> = rows.into_iter().map(Some).chain(between.map(|_| None)).collect();
    let time_of = |row: Option<&'_ OperatorTime>| row.map_or(between, |row| row.time.as_ref()).map(|time| time.value);
    // Nodes shorter than what the profiler adds have shares, and no times.
    let tells_times = profile.has_times() && !profile.is_drowned();

    let mut table = Columns::of(&rows);
    table.add(TableColumn::text("operator").meaning("as executed, after the runtime's fusions"), |row| {
        TableCell::text(row.map_or_else(|| rest_of(&[profile]), OperatorTime::name))
    });
    // Waits are of no node.
    table.add(TableColumn::number("nodes"), |row| {
        row.filter(|row| row.nodes > 0).map(|row| TableCell::count(row.nodes))
    });
    table.add_known(
        TableColumn::number("executions").meaning("in an inference, where that is not once a node"),
        |row| {
            let executions = row.as_ref()?.executions?;
            Some(TableCell::number(
                format::fixed(executions, if executions.fract() == 0.0 { 0 } else { 1 }),
                executions,
            ))
        },
    );
    table.add_known(TableColumn::text("provider").meaning("what executes them"), |row| {
        Some(TableCell::text(provider(row.as_ref()?.provider.as_deref()?)))
    });
    table.add_known(TableColumn::number("share").meaning("part of the latency"), |row| {
        let time = time_of(*row)?;
        Some(TableCell::number(part_of(time / latency?), time))
    });
    let meaning = "their own time in an inference, what runs in them left out, with its 95 % interval over processes";
    table.add_known(TableColumn::number(column.heading("time")).meaning(meaning), |row| match row {
        Some(row) => tells_times.then(|| operator_time(&column, row, profile.cost_ns)),
        None => between.filter(|_| tells_times).map(|time| TableCell::number(time_text(&column, time), time.value)),
    });
    table.add_known(TableColumn::number("MACs").meaning("multiply-accumulates, by the shapes that ran"), |row| {
        let macs = row.as_ref()?.macs?;
        Some(TableCell::number(magnitude(macs), macs as f64))
    });
    table.add_known(TableColumn::number("GMAC/s").meaning("of those, by the time"), |row| {
        let time = time_of(*row).filter(|time| *time > 0.0 && tells_times)?;
        let rate = row.as_ref()?.macs? as f64 / time;
        Some(TableCell::number(format::fixed(rate, format::significant_decimals(rate, 3).max(0)), rate))
    });
    let meaning = "shortest possible time on this machine for their products and the bytes that they read and write, over their time";
    table.add_known(TableColumn::number("of roofline").meaning(meaning), |row| {
        let share = row.as_ref()?.roofline_share.filter(|_| tells_times)?;
        Some(TableCell::number(part_of(share), share))
    });
    on_device(&mut table, &rows);
    table.add(TableColumn::number("output bytes").meaning("bytes of their outputs"), |row| {
        row.filter(|row| row.nodes > 0).map(|row| TableCell::number(bytes(row.output_bytes), row.output_bytes as f64))
    });
    table.table(notes(profile, latency))
}

/// What the kernels of a device are and what launching them takes, where they were recorded.
fn on_device<'a>(table: &mut Columns<'_, Option<&'a OperatorTime>>, rows: &[Option<&'a OperatorTime>]) {
    let meaning = "nodes with a kernel on tensor cores, by the names of the kernels";
    table.add_known(TableColumn::text("tensor cores").meaning(meaning), |row| {
        let row = row.as_ref()?;
        Some(TableCell::text(format!("{} of {}", row.on_tensor_cores?, row.nodes)))
    });
    let launches: Vec<f64> = rows.iter().flatten().filter_map(|row| row.launch_ns).collect();
    let unit = scale(Unit::Nanoseconds, launches.iter().copied());
    let meaning = "time of the host in the calls that launch their kernels, with what recording them takes";
    table.add_known(TableColumn::number(format!("launches, {}", unit.unit)).meaning(meaning), |row| {
        let time = row.as_ref()?.launch_ns? / unit.factor;
        Some(TableCell::number(format::fixed(time, format::significant_decimals(time, 2).max(0)), time))
    });
}

/// The time of each operator after those above it, then that outside them.
fn bars(profile: &Profile) -> Option<Bars> {
    let times: Vec<_> = profile
        .operators
        .iter()
        .map(|row| row.time.as_ref())
        .chain(profile.waits.as_ref().map(Some))
        .chain([profile.between.as_ref()])
        .collect();
    let longest = times.iter().flatten().map(|time| time.value).fold(0.0, f64::max);
    let unit = scale(Unit::Nanoseconds, [longest]);
    let length = |time: Option<&Estimated>| time.map_or(0.0, |time| time.value.max(0.0)) / unit.factor;
    let is_told = profile.has_times() && !profile.is_drowned() && profile.between.is_some();
    is_told.then(|| Bars::adding_up(&times.into_iter().map(|time| (length(time), "open")).collect::<Vec<_>>()))
}

/// The time of an operator; marked as uncertain where the correction for the profiler's cost exceeds it.
fn operator_time(column: &Column, row: &OperatorTime, cost_ns: f64) -> TableCell {
    let Some(time) = &row.time else { return TableCell::absent("on the device") };
    let text = time_text(column, time);
    let executions = row.executions.unwrap_or(row.nodes as f64);
    let is_uncertain = time.value < cost_ns * executions && !text.starts_with('~');
    TableCell::number(if is_uncertain { format!("~ {text}") } else { text }, time.value)
}

/// `CUDA` of `CUDAExecutionProvider`.
fn provider(name: &str) -> &str {
    name.strip_suffix("ExecutionProvider").unwrap_or(name)
}

/// What the numbers are worth, sentences.
fn notes(profile: &Profile, latency: Option<f64>) -> Vec<String> {
    if let Some(why) = profile.unknown() {
        return vec![capitalized(&why) + "."];
    }
    let mut notes = Vec::new();
    if let Some(slowdown) = &profile.slowdown {
        notes.push(cost_words(profile, slowdown));
        notes.extend(waits_words(profile));
        if (profile.processes as usize) < LEAST_RUNS {
            notes.push(format!("Times have intervals, and reasons are named, from {LEAST_RUNS} pairs on."));
        }
        if profile.is_drowned() {
            notes.push(
                "It takes longer than the nodes, so that their times are unknown and the shares are rough.".to_owned(),
            );
        } else if slowdown.value > INFLATED && profile.waits.is_none() {
            notes.push("That is much: trust the shares more than the times.".to_owned());
        }
        let far = profile.plain_ns.zip(latency).filter(|(plain, latency)| !ABOUT_THE_SAME.contains(&(plain / latency)));
        notes.extend(far.map(|(plain, latency)| {
            format!(
                "In the profile's plain processes an inference took {}, {} the latency: the shares may not hold for it.",
                format::measured(Unit::Nanoseconds, plain, None),
                format::ratio(plain / latency, None)
            )
        }));
    }
    notes.extend(
        profile
            .overlap
            .map(|overlap| format!("Nodes overlap: their times add up to {} of the latency.", percent(overlap))),
    );
    if profile.handed_over > 0 {
        notes.push(format!(
            "{} of {} run on a device whose times are not known: they are in `{}`.",
            profile.handed_over,
            count(profile.all_nodes, "node"),
            rest_of(&[profile])
        ));
        notes.extend(profile.no_kernels.as_ref().map(|why| format!("No kernels were recorded: {why}.")));
    }
    notes.extend(profile.problem.as_ref().map(|problem| format!("Not every process was profiled: {problem}.")));
    notes
}

/// How many processes there were, and what the profiler costs.
fn cost_words(profile: &Profile, slowdown: &Estimated) -> String {
    let (pairs, inferences) = (count(profile.processes.into(), "pair"), profile.inferences);
    let times = format::ratio(slowdown.value, estimate(slowdown).interval).replacen('x', "", 1);
    match profile.waits {
        Some(_) => format!(
            "{pairs} of processes, with CUPTI and without, each of {inferences} or more inferences. A node's time is that of its kernels. With CUPTI an inference takes {times} times as long."
        ),
        None => {
            let taken_off = format!(
                "; {} were taken off each of {} of a node",
                format::measured(Unit::Nanoseconds, profile.cost_ns, None),
                count(profile.executions.round() as u64, "execution"),
            );
            let taken_off = if profile.cost_ns > 0.0 { taken_off } else { String::new() };
            format!(
                "{pairs} of processes, with the profiler and without, each of {inferences} or more inferences. The profiler makes an inference {times} times as long{taken_off}."
            )
        }
    }
}

/// `Of the device's idle time 60 % follows conv_1.`, and how exactly the clocks agree.
fn waits_words(profile: &Profile) -> Option<String> {
    let error = format::measured(Unit::Nanoseconds, profile.clock_error_ns? as f64, None);
    let after: Vec<String> =
        profile.waits_after.iter().map(|wait| format!("{} follows {}", percent(wait.share), wait.node)).collect();
    let after = Some(format!("Of the device's idle time {}. ", after.join(", "))).filter(|_| !after.is_empty());
    let excess = profile.excess.map(|excess| {
        let times = format::fixed(excess, 2);
        format!(" Kernels as recorded take {times} times as long as the device's own clock allows: compare nodes with each other, not with the latency.")
    });
    Some(format!(
        "{}Clocks of kernels and nodes agree within {error}.{}",
        after.unwrap_or_default(),
        excess.unwrap_or_default()
    ))
}

/// The longest nodes of a cell.
fn nodes(cell: &Cell, profile: &Profile) -> Table {
    let latency = inference(cell).map(|it| it.value);
    let column = column_of(profile.nodes.iter().map(|node| &node.time));
    let mut table = Columns::of(&profile.nodes);
    table.add(TableColumn::text("node").meaning("the nodes that it runs in, then its own name"), |node| {
        TableCell::text(&node.path)
    });
    table.add(TableColumn::text("operator"), |node| TableCell::text(&node.operator));
    let meaning = "its own time in an inference, with its 95 % interval over processes";
    table.add_known(TableColumn::number(column.heading("time")).meaning(meaning), |node| {
        (!profile.is_drowned()).then(|| TableCell::number(time_text(&column, &node.time), node.time.value))
    });
    table.add_known(TableColumn::number("share").meaning("part of the latency"), |node| {
        let part = node.time.value / latency.filter(|_| profile.is_drowned())?;
        Some(TableCell::number(part_of(part), part))
    });
    table.add_known(TableColumn::number("MACs"), |node| {
        Some(TableCell::number(magnitude(node.macs?), node.macs? as f64))
    });
    table.add(TableColumn::text("output").meaning("type and shape"), |node| node.output.as_ref().map(TableCell::text));
    let more = profile.all_nodes.saturating_sub(profile.nodes.len() as u64);
    let notes = (more > 0).then(|| format!("{} more; `profile.parquet` in the record has all.", count(more, "node")));
    table.table(notes.into_iter().collect())
}

/// The nodes that the device waits after, where its waits are much of what bounds a cell.
pub(super) fn waits_after(cell: &Cell) -> &[WaitAfter] {
    let launching = match cell.bound_by {
        Some(Bound::Launching { share }) => share,
        _ => return &[],
    };
    let waits =
        cell.profile.as_ref().and_then(|profile| Some((profile, profile.waits?.value / inference(cell)?.value)));
    waits.filter(|(_, share)| *share >= 0.5 * launching).map_or(&[], |(profile, _)| &profile.waits_after)
}

/// A kernel's name without arguments of its template, where they make it long, but for CUTLASS's, which are the name.
fn short_name(name: &str) -> String {
    const MOST: usize = 50;
    let template = name.find('<').filter(|_| name.len() > MOST && !name.starts_with("cutlass"));
    let name = template.map_or(name, |at| &name[..at]);
    if name.chars().count() > MOST { name.chars().take(MOST).collect::<String>() + "..." } else { name.to_owned() }
}

/// The longest kernels of a cell, in all nodes together.
fn kernels(profile: &Profile) -> Table {
    let longest = profile.kernels.first().map_or(0.0, |kernel| kernel.time_ns);
    let unit = scale(Unit::Nanoseconds, [longest]);
    let mut table = Columns::of(&profile.kernels);
    table.add(TableColumn::text("kernel").meaning("as the device's library names it"), |kernel| {
        TableCell::text(short_name(&kernel.name))
    });
    table.add_known(TableColumn::text("tensor cores").meaning("by its name"), |kernel| {
        kernel.tensor_cores.then(|| TableCell::text("yes"))
    });
    table.add(TableColumn::text("operators"), |kernel| TableCell::text(kernel.operators.join(", ")));
    table.add(TableColumn::number("executions").meaning("in an inference"), |kernel| {
        TableCell::number(
            format::fixed(kernel.executions, i32::from(kernel.executions.fract() != 0.0)),
            kernel.executions,
        )
    });
    table.add(
        TableColumn::number(format!("time, {}", unit.unit)).meaning("in an inference, mean over processes"),
        |kernel| {
            let time = kernel.time_ns / unit.factor;
            TableCell::number(format::fixed(time, format::significant_decimals(longest / unit.factor, 3).max(0)), time)
        },
    );
    table.table(Vec::new())
}

/// What the memory of a cell is made of.
fn memory_table(cell: &Cell, memory: &Memory) -> Table {
    let peak = memory.peak();
    let rows = [
        ("libraries, inputs and the process", memory.before_load),
        ("loading the model", memory.loading),
        ("running it", memory.running),
        ("peak", peak),
    ];
    let mut table = Columns::of(&rows);
    table.add(TableColumn::text("part"), |(name, _)| TableCell::text(*name));
    let meaning = "what it added to the largest resident memory of the plain processes";
    table.add(TableColumn::number("memory").meaning(meaning), |(_, value)| {
        TableCell::number(bytes(*value as u64), *value)
    });
    table.add(TableColumn::number("share"), |(_, value)| {
        let part = value / peak.max(1.0);
        Some(TableCell::number(part_of(part), part))
    });
    let location = if cell.is_on_cpu() { "In the runtime's arena" } else { "In the runtime's arena on the device" };
    let notes = memory.arena.as_ref().map(|arena| {
        let [weights, activations, held] = [arena.weights, arena.activations, arena.held].map(bytes);
        format!(
            "{location}: {weights} of weights as far as they are in it, and at most {activations} of activations, at the end of {}; {held} held, in use or not.",
            arena.node
        )
    });
    table.table(notes.into_iter().collect())
}

/// Rows of at least this part are named where there is little room, and at most so many.
pub(super) const LEAST_SHARE: f64 = 0.05;
pub(super) const MOST_NAMED: usize = 4;

/// `Conv 84 %, outside nodes 9 %; the profiler adds 8 %`.
pub(super) fn shares(cell: &Cell, profile: &Profile) -> String {
    let latency = inference(cell).map_or(f64::INFINITY, |it| it.value);
    let operators = profile.operators.iter().filter_map(|row| Some((row.name(), row.time?.value)));
    let waits = profile.waits.map(|waits| (WAITS, waits.value));
    let rest = if profile.handed_over > 0 { "on the device or outside nodes" } else { "outside nodes" };
    let rest = profile.between.map(|between| (rest, between.value));
    let mut rows: Vec<(&str, f64)> = operators.chain(waits).chain(rest).collect();
    rows.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let is_named = |(position, (_, time)): &(usize, (&str, f64))| *position == 0 || *time >= LEAST_SHARE * latency;
    let rows = rows.into_iter().enumerate().filter(is_named).take(MOST_NAMED);
    let rows: Vec<String> = rows.map(|(_, (name, time))| format!("{name} {}", percent(time / latency))).collect();
    let slowdown = profile.slowdown.filter(|slowdown| slowdown.value > INFLATED);
    let slowdown = slowdown.map(|slowdown| format!("; the profiler adds {}", percent(slowdown.value - 1.0)));
    rows.join(", ") + &slowdown.unwrap_or_default()
}

pub(super) fn too_short() -> String {
    format!("nodes too short for the profiler, which makes an inference more than {DROWNED} times as long")
}
