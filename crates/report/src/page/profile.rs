//! Where the time goes: between a cell and its baseline, and in each cell by operator and by node.

use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table, name_among};
use crate::format::{self, Column, bytes, magnitude, percent, scale};
use base::metric::{LATENCY, SERVICE, Unit};
use base::wording::{capitalized, count, grouped, list, some};
use experiment::Axis;
use judge::results::{
    CONFIDENCE, Cell, DROWNED, Estimated, Explanation, INFLATED, LEAST_RUNS, Memory, OperatorDifference, OperatorTime,
    Profile,
};
use plan::CellId;
use statistics::interval::Estimate;

/// The part of a page that these tables stand in.
pub(super) const PART: &str = "profile";

/// More comparisons, or cells, than these are left to `results.json`.
const MOST_TABLES: usize = 12;

/// What is in no node whose time is known.
fn rest_of(profiles: &[&Profile]) -> &'static str {
    let has_hidden = profiles.iter().any(|profile| profile.handed_over > 0);
    if has_hidden { "on the device, and outside nodes" } else { "runtime, outside nodes" }
}

/// The tables of all cells that were profiled.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let readable: Vec<&Explanation> =
        reader.results.explanations.iter().filter(|explanation| is_readable(reader, explanation)).collect();
    let explained = readable.iter().take(MOST_TABLES);
    let explained = explained
        .flat_map(|explanation| [Some(difference(reader, explanation)), node_differences(reader, explanation)])
        .flatten();
    let cells = reader.shown();
    let profiled: Vec<_> = cells.iter().filter_map(|cell| Some((*cell, cell.profile.as_ref()?))).collect();
    let times = profiled.iter().take(MOST_TABLES).flat_map(|(cell, profile)| {
        let name = reader.short_path(cell.id);
        let by_operator =
            Section::new(PART, &id("operators", cell), &format!("{name} by operator"), operators(cell, profile));
        let by_node = Section::new(PART, &id("nodes", cell), &format!("{name}, longest nodes"), nodes(cell, profile));
        let memory = profile.memory.as_ref();
        let memory = memory
            .map(|it| Section::new(PART, &id("memory", cell), &format!("{name}, memory"), memory_table(cell, it)));
        [Some(by_operator), Some(by_node).filter(|_| !profile.nodes.is_empty()), memory].into_iter().flatten()
    });
    let mut sections: Vec<Section> = explained.chain(times).collect();
    let all = [(profiled.len(), "cell"), (readable.len(), "comparison")];
    let more = all.into_iter().filter(|(all, _)| *all > MOST_TABLES);
    let more: Vec<String> = more.map(|(all, what)| count((all - MOST_TABLES) as u64, what)).collect();
    if let Some(last) = sections.last_mut().filter(|_| !more.is_empty()) {
        last.table.notes.push(format!("{} more; `results.json` has all.", list(&more)));
    }
    sections
}

fn id(what: &str, cell: &Cell) -> String {
    format!("{what}-{}", cell.id)
}

fn estimate(estimated: &Estimated) -> Estimate {
    estimated.estimate(CONFIDENCE)
}

/// Times of one table, in the unit of the longest: short ones have decimals.
fn column_of<'a>(times: impl Iterator<Item = &'a Estimated>) -> Column {
    let times: Vec<Estimate> = times.map(estimate).collect();
    let longest = times.iter().map(|time| time.value.abs()).fold(0.0, f64::max);
    Column::fit_to(scale(Unit::Nanoseconds, [longest]), &times)
}

/// `84 %`, `5.2 %`.
fn part_of(part: f64) -> String {
    let value = if part.abs() < 0.0005 { 0.0 } else { part * 100.0 };
    format!("{} %", format::fixed(value, if value.abs() < 9.95 { 1 } else { 0 }))
}

/// An inference of the plain processes over the latency, where the machine was about as fast.
const ABOUT_THE_SAME: std::ops::RangeInclusive<f64> = 0.75..=1.33;

/// What is shorter than this is nothing: the profiler's times are microseconds.
const LEAST_NS: f64 = 10.0;

fn time_text(column: &Column, estimated: &Estimated) -> String {
    if estimated.value.abs() < LEAST_NS { "~ 0".to_owned() } else { column.value(&estimate(estimated)) }
}

/// `-0.71 ± 0.02`.
fn signed_time(column: &Column, estimated: &Estimated) -> String {
    let text = time_text(column, estimated);
    if estimated.value > 0.0 && text.starts_with(|first: char| first.is_ascii_digit()) {
        format!("+{text}")
    } else {
        text
    }
}

/// Adds the last columns of a table of differences.
fn add_difference<'r, R>(
    table: &mut Columns<'r, R>,
    explanation: &Explanation,
    column: &Column,
    time: fn(&'r R) -> &'r Estimated,
) {
    let meaning = "time of an inference, the cell's less the baseline's, with its 95 % interval over processes";
    table.add(TableColumn::number(column.heading("difference")).meaning(meaning), |row| {
        TableCell::number(signed_time(column, time(row)), time(row).value)
    });
    let meaning = "part of the difference of both latencies";
    table.add_known(TableColumn::number("of the difference").meaning(meaning), |row| {
        explanation.is_seen_again().then_some(())?;
        let part = time(row).value / explanation.difference_ns;
        part.is_finite().then(|| TableCell::number(part_of(part), part))
    });
}

/// Where the difference of a comparison comes from, by operator.
fn difference(reader: &Reader<'_>, explanation: &Explanation) -> Section {
    let total = Estimated { value: explanation.difference_ns, low: None, high: None, n: 0, supported: None };
    let named = explanation.rows.iter().map(|row| (row.name(), Some(row.nodes), &row.difference));
    let rest = (rest_of(&profiles_of(reader, explanation)), None, &explanation.between);
    let rows: Vec<_> = named.chain([rest, ("all", None, &total)]).collect();
    let column = column_of(explanation.rows.iter().map(|row| &row.difference).chain([&explanation.between]));

    let mut table = Columns::of(&rows);
    let meaning = "what does the same work on both sides: fused, quantised or plain";
    table.add(TableColumn::text("operator").meaning(meaning), |(name, ..)| TableCell::text(*name));
    let meaning = "of the baseline, and of the cell where these differ";
    table.add(TableColumn::number("nodes").meaning(meaning), |(_, nodes, _)| {
        TableCell::text(match nodes {
            Some([before, after]) if before == after => before.to_string(),
            Some([before, after]) => format!("{before} to {after}"),
            None => String::new(),
        })
    });
    add_difference(&mut table, explanation, &column, |(.., time)| time);
    let title = format!("{}, by operator", pair_of(reader, explanation));
    Section::new(
        PART,
        &format!("explained-{}", explanation.cell),
        &title,
        table.table(vec![explained_words(explanation)]),
    )
}

/// Which nodes a comparison's difference is in; nothing where none is known.
fn node_differences(reader: &Reader<'_>, explanation: &Explanation) -> Option<Section> {
    let column = column_of(explanation.nodes.iter().map(|node| &node.difference));
    let mut table = Columns::of(&explanation.nodes);
    let meaning = "by its path, else the next one with the same work and sizes on both sides";
    table.add(TableColumn::text("node").meaning(meaning), |node| {
        let [before, after] = node.nodes;
        let alone = || format!("without a partner: {before} of the baseline, {after} of the cell");
        let former = node.baseline_path.as_ref().map(|path| format!(" (was {path})")).unwrap_or_default();
        Some(TableCell::text(node.path.clone().unwrap_or_else(alone) + &former))
    });
    table.add(TableColumn::text("operator"), |node| TableCell::text(&node.operator));
    add_difference(&mut table, explanation, &column, |node| &node.difference);
    let title = format!("{}, by node", pair_of(reader, explanation));
    let section =
        || Section::new(PART, &format!("explained-nodes-{}", explanation.cell), &title, table.table(Vec::new()));
    (!explanation.nodes.is_empty()).then(section)
}

/// `squeezenet, b1: int8 against fp32`.
fn pair_of(reader: &Reader<'_>, explanation: &Explanation) -> String {
    let cells: Vec<&Cell> =
        [&explanation.cell, &explanation.baseline].into_iter().filter_map(|id| reader.cell(*id)).collect();
    let [cell, baseline] = cells.as_slice() else {
        return format!("{} against {}", explanation.cell, explanation.baseline);
    };
    let pair = format!("{} against {}", name_among(&cells, cell), name_among(&cells, baseline));
    // Without the names that all cells of the report share.
    let shared = |axis: &Axis| reader.has_several(*axis) && cell.names[*axis] == baseline.names[*axis];
    let shared_names: Vec<&str> =
        Axis::ALL.iter().filter(|axis| shared(axis)).map(|axis| cell.names[*axis].as_str()).collect();
    if shared_names.is_empty() { pair } else { format!("{}: {pair}", shared_names.join(", ")) }
}

/// `Operators explain 98 % of the difference of 4.19 ms. The plain processes of the profile differ by 4.05 ms.`
fn explained_words(explanation: &Explanation) -> String {
    let [difference, again] = [explanation.difference_ns, explanation.seen_again_ns]
        .map(|value| format::measured(Unit::Nanoseconds, value.abs(), None));
    match explanation.explained.filter(|_| explanation.is_seen_again()) {
        Some(explained) => format!(
            "Operators explain {} of the difference of {difference}. The plain processes of the profile differ by {again}.",
            percent(explained)
        ),
        None => {
            let sign = if explanation.seen_again_ns * explanation.difference_ns < 0.0 { "-" } else { "" };
            format!(
                "The latencies differ by {difference}, the plain processes of the profile by {sign}{again}: these rows may not be the reason."
            )
        }
    }
}

/// What one inference takes, without its wait for earlier ones.
fn inference(cell: &Cell) -> Option<f64> {
    let served = cell.load.as_ref().map(|load| (SERVICE.name, f64::from(load.queries.inferences())));
    let (metric, inferences) = served.unwrap_or((LATENCY.name, 1.0));
    cell.metrics.get(metric).map(|found| found.value / inferences)
}

/// The nodes of a cell by operator, then the time outside them.
fn operators(cell: &Cell, profile: &Profile) -> Table {
    let between = profile.between.as_ref().filter(|_| profile.has_times());
    let column = column_of(profile.operators.iter().filter_map(|row| row.time.as_ref()).chain(between));
    let latency = inference(cell);
    // The last row is of no operator.
    let rows: Vec<Option<&OperatorTime>> = profile.operators.iter().map(Some).chain(between.map(|_| None)).collect();
    let time_of = |row: Option<&'_ OperatorTime>| row.map_or(between, |row| row.time.as_ref()).map(|time| time.value);
    // Nodes shorter than what the profiler adds have shares, and no times.
    let tells_times = profile.has_times() && !profile.is_drowned();

    let mut table = Columns::of(&rows);
    table.add(TableColumn::text("operator").meaning("as executed, after the runtime's fusions"), |row| {
        TableCell::text(row.map_or_else(|| rest_of(&[profile]), OperatorTime::name))
    });
    table.add(TableColumn::number("nodes"), |row| row.map(|row| TableCell::count(row.nodes)));
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
    table.add(TableColumn::number("output bytes").meaning("bytes of their outputs"), |row| {
        row.map(|row| TableCell::number(bytes(row.output_bytes), row.output_bytes as f64))
    });
    table.table(notes(profile, latency))
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
        let interval = estimate(slowdown).interval;
        notes.push(format!(
            "{} of processes, with the profiler and without, each of {} or more inferences. The profiler makes an inference {} times as long; {} were taken off each of {} of a node.",
            count(profile.processes.into(), "pair"),
            profile.inferences,
            format::ratio(slowdown.value, interval).replacen('x', "", 1),
            format::measured(Unit::Nanoseconds, profile.cost_ns, None),
            count(profile.executions.round() as u64, "execution"),
        ));
        if (profile.processes as usize) < LEAST_RUNS {
            notes.push(format!("Times have intervals, and reasons are named, from {LEAST_RUNS} pairs on."));
        }
        if profile.is_drowned() {
            notes.push(
                "It takes longer than the nodes, so that their times are unknown and the shares are rough.".to_owned(),
            );
        } else if slowdown.value > INFLATED {
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
            "{} of {} run on a device whose times this build of the runtime does not report: they are in `{}`.",
            profile.handed_over,
            count(profile.all_nodes, "node"),
            rest_of(&[profile])
        ));
    }
    notes.extend(profile.problem.as_ref().map(|problem| format!("Not every process was profiled: {problem}.")));
    notes
}

/// The longest nodes of a cell.
fn nodes(cell: &Cell, profile: &Profile) -> Table {
    let latency = inference(cell);
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

/// A line for each comparison with a difference, or for each cell where there is none, and why there is no profile.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    const MOST_LINES: usize = 6;
    let cells = reader.shown();
    let differs = |explanation: &&Explanation| {
        let row = reader.cell(explanation.cell).and_then(|cell| reader.against(cell));
        row.is_some_and(|row| row.baseline == explanation.baseline && row.verdict.is_difference())
            && is_readable(reader, explanation)
    };
    let explained: Vec<&Explanation> = reader.results.explanations.iter().filter(differs).collect();
    let mut unknown = Vec::new();
    let mut times = Vec::new();
    for (cell, profile) in cells.iter().filter_map(|cell| Some((*cell, cell.profile.as_ref()?))) {
        let name = reader.short_path(cell.id);
        let why = profile.unknown().or_else(|| profile.is_drowned().then(too_short));
        match why {
            None if explained.is_empty() => times.push(format!("{name}: {}", shares(cell, profile))),
            None => {}
            Some(why) => unknown.push((why, name)),
        }
    }
    let unknown = grouped(unknown).into_iter();
    let unknown = unknown.map(|(why, names)| format!("{}: {why}", some(names.into_iter(), 3).join(", ")));
    let explained = explained.iter().map(|explanation| explained_line(reader, explanation));
    let mut lines: Vec<String> = explained.chain(times).chain(unknown).collect();
    if lines.len() > MOST_LINES {
        let more = lines.split_off(MOST_LINES - 1).len();
        lines.push(format!("{more} more in the report"));
    }
    lines
}

/// Rows of at least this part are named where there is little room, and at most so many.
const LEAST_SHARE: f64 = 0.05;
const MOST_NAMED: usize = 4;

/// `int8 against fp32, -0.64 ms: Conv -0.71, Concat +0.08`.
fn explained_line(reader: &Reader<'_>, explanation: &Explanation) -> String {
    let unit = scale(Unit::Nanoseconds, [explanation.difference_ns.abs()]);
    let scaled_text = |value: f64| {
        let scaled = value / unit.factor;
        format::signed(scaled, format::significant_decimals(explanation.difference_ns / unit.factor, 2).max(0))
    };
    let named = explanation.rows.iter().map(|row| (row.in_short(), row.difference.value));
    let mut rows: Vec<(&str, f64)> = named.chain([("outside nodes", explanation.between.value)]).collect();
    rows.retain(|(_, value)| value.abs() >= LEAST_SHARE * explanation.difference_ns.abs());
    rows.sort_by(|(_, a), (_, b)| b.abs().total_cmp(&a.abs()));
    let rows: Vec<String> =
        rows.into_iter().take(MOST_NAMED).map(|(name, value)| format!("{name} {}", scaled_text(value))).collect();
    let doubt = if explanation.is_seen_again() {
        String::new()
    } else {
        format!(" (in the profile {})", scaled_text(explanation.seen_again_ns))
    };
    format!(
        "{}, {} {}{doubt}: {}",
        pair_of(reader, explanation),
        scaled_text(explanation.difference_ns),
        unit.unit,
        rows.join(", ")
    )
}

/// `Conv 84 %, Concat 5 %; the profiler adds 8 %`.
fn shares(cell: &Cell, profile: &Profile) -> String {
    let latency = inference(cell).unwrap_or(f64::INFINITY);
    let rows = profile.operators.iter().filter_map(|row| Some((row.operator.as_deref()?, row.time?.value / latency)));
    let rows = rows.filter(|(_, share)| *share >= LEAST_SHARE).take(MOST_NAMED);
    let rows: Vec<String> = rows.map(|(operator, share)| format!("{operator} {}", percent(share))).collect();
    let slowdown = profile.slowdown.filter(|slowdown| slowdown.value > INFLATED);
    let slowdown = slowdown.map(|slowdown| format!("; the profiler adds {}", percent(slowdown.value - 1.0)));
    rows.join(", ") + &slowdown.unwrap_or_default()
}

/// Those of a comparison's two cells.
fn profiles_of<'a>(reader: &Reader<'a>, explanation: &Explanation) -> Vec<&'a Profile> {
    [&explanation.baseline, &explanation.cell].into_iter().filter_map(|id| reader.cell(*id)?.profile.as_ref()).collect()
}

fn too_short() -> String {
    format!("nodes too short for the profiler, which makes an inference more than {DROWNED} times as long")
}

/// Whether on both sides the profiler took less than the nodes.
fn is_readable(reader: &Reader<'_>, explanation: &Explanation) -> bool {
    !profiles_of(reader, explanation).into_iter().any(Profile::is_drowned)
}

/// `saves 9.0 ms in Conv`, `all of it in Conv` where other operators took some of that again: the first reason why one cell
/// is faster than another, where operators explain most of the difference.
pub(super) fn reason(reader: &Reader<'_>, faster: CellId, slower: CellId) -> Option<String> {
    let is_of_pair = |explanation: &&Explanation| {
        [(faster, slower), (slower, faster)].contains(&(explanation.cell, explanation.baseline))
    };
    let explanation = reader.results.explanations.iter().find(is_of_pair)?;
    (explanation.is_reason() && is_readable(reader, explanation)).then_some(())?;
    // Less than the other's.
    let sign = if explanation.cell == faster { -1.0 } else { 1.0 };
    let saved = |row: &&OperatorDifference| row.difference.value * sign > 0.0;
    let first = explanation.rows.iter().find(saved).filter(|row| {
        let ends = row.difference.low.zip(row.difference.high);
        row.difference.n as usize >= LEAST_RUNS && ends.is_some_and(|(low, high)| low * sign > 0.0 && high * sign > 0.0)
    })?;
    let saved_ns = estimate(&first.difference);
    let interval = saved_ns.interval.map(|interval| interval.map(f64::abs));
    let saved_ns = Estimate { value: saved_ns.value.abs(), interval, ..saved_ns };
    Some(match saved_ns.value > explanation.difference_ns.abs() {
        true => format!("all of it in {}", first.in_short()),
        false => format!("saves {} in {}", format::at_least(Unit::Nanoseconds, &saved_ns, 2), first.in_short()),
    })
}
