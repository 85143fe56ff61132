//! Where the time goes: why one cell is faster than another, by operator and by node, then each cell's own.

use super::bars::{Bars, TOTAL};
use super::profile::{
    LEAST_SHARE, MOST_NAMED, PART, column_of, estimate, inference, part_of, rest_of, sections_of, shares, time_text,
    too_short,
};
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, name_among};
use crate::format::{self, Column, percent, scale};
use crate::mark::claimed;
use base::metric::Unit;
use base::wording::{count, grouped, list, some};
use experiment::Axis;
use judge::results::{Cell, Estimated, Explanation, LEAST_RUNS, OperatorDifference, Profile, WAITS};
use plan::CellId;
use statistics::interval::Estimate;

/// More comparisons, or cells, than these are left to `results.json`.
const MOST_TABLES: usize = 12;

/// The tables of all comparisons and cells that were profiled.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let readable: Vec<&Explanation> =
        reader.results.explanations.iter().filter(|explanation| is_readable(reader, explanation)).collect();
    let explained = readable.iter().take(MOST_TABLES);
    let explained = explained.flat_map(|explanation| of_comparison(reader, explanation));
    let cells = reader.shown();
    let profiled: Vec<_> = cells.iter().filter_map(|cell| Some((*cell, cell.profile.as_ref()?))).collect();
    let times = profiled.iter().take(MOST_TABLES);
    let times = times.flat_map(|(cell, profile)| sections_of(reader, cell, profile));
    let mut sections: Vec<Section> = explained.chain(times).collect();
    let all = [(profiled.len(), "cell"), (readable.len(), "comparison")];
    let more = all.into_iter().filter(|(all, _)| *all > MOST_TABLES);
    let more: Vec<String> = more.map(|(all, what)| count((all - MOST_TABLES) as u64, what)).collect();
    if let Some(last) = sections.last_mut().filter(|_| !more.is_empty()) {
        last.table.notes.push(format!("{} more; `results.json` has all.", list(&more)));
    }
    sections
}

/// The tables of one comparison.
fn of_comparison(reader: &Reader<'_>, explanation: &Explanation) -> impl Iterator<Item = Section> {
    [Some(difference(reader, explanation)), node_differences(reader, explanation)].into_iter().flatten()
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
    table.add_known(TableColumn::number("of the difference").meaning(PART_OF), |row| part(explanation, time(row)));
}

const PART_OF: &str = "part of the difference of both latencies";

fn part(explanation: &Explanation, time: &Estimated) -> Option<TableCell> {
    explanation.is_seen_again().then_some(())?;
    let part = time.value / explanation.difference_ns;
    part.is_finite().then(|| TableCell::number(part_of(part), part))
}

/// A row of bars: a change, or the latency that bars begin or end with.
struct Step {
    name: String,
    nodes: Option<[u64; 2]>,
    time: Estimated,
    is_total: bool,
}

/// From the baseline's latency to the cell's, by operator, and what is in none.
fn steps(reader: &Reader<'_>, explanation: &Explanation) -> Vec<Step> {
    let pair = pair(reader, explanation);
    let total = |cell: &&Cell| {
        let time = inference(cell)?;
        Some(Step { name: name_among(&pair, cell), nodes: None, time, is_total: true })
    };
    let change =
        |name: &str, nodes, time: &Estimated| Step { name: name.to_owned(), nodes, time: *time, is_total: false };
    let rows = explanation
        .rows
        .iter()
        .map(|row| change(row.name(), Some(row.nodes).filter(|nodes| *nodes != [0, 0]), &row.difference));
    let between = change(rest_of(&profiles_of(reader, explanation)), None, &explanation.between);
    let baseline = pair.last().and_then(total);
    let cell = pair.first().and_then(total);
    baseline.into_iter().chain(rows).chain([between]).chain(cell).collect()
}

/// Where the difference of a comparison comes from: bars by operator, each from where the one above ends.
fn difference(reader: &Reader<'_>, explanation: &Explanation) -> Section {
    let steps = steps(reader, explanation);
    let changes: Vec<Estimate> = steps.iter().filter(|step| !step.is_total).map(|step| estimate(&step.time)).collect();
    let longest = steps.iter().map(|step| step.time.value.abs()).fold(0.0, f64::max);
    let column = Column::fit_to(scale(Unit::Nanoseconds, [longest]), &changes);
    let mut table = Columns::of(&steps);
    let meaning = "what does the same work on both sides: fused, quantised or plain";
    table.add(TableColumn::text("operator").meaning(meaning), |step| TableCell::text(&step.name));
    let meaning = "of the baseline, and of the cell where these differ";
    table.add(TableColumn::number("nodes").meaning(meaning), |step| {
        TableCell::text(match step.nodes {
            Some([before, after]) if before == after => before.to_string(),
            Some([before, after]) => format!("{before} to {after}"),
            None => String::new(),
        })
    });
    let meaning = "time of an inference: the baseline's, what each operator adds or saves, and the cell's, with 95 % intervals over processes";
    table.add(TableColumn::number(column.heading("time")).meaning(meaning), |step| {
        let text = match step.is_total {
            true => time_text(&column, &step.time),
            false => signed_time(&column, &step.time),
        };
        TableCell::number(text, step.time.value)
    });
    table.add_known(TableColumn::number("of the difference").meaning(PART_OF), |step| {
        part(explanation, &step.time).map(|part| if step.is_total { TableCell::text("") } else { part })
    });
    let bars =
        Bars::adding_up(&steps.iter().map(|step| bar(explanation, step, column.scale.factor)).collect::<Vec<_>>());
    let mut notes = vec!["Each bar begins where the one above ends.".to_owned(), explained_words(explanation)];
    if bars.is_cut {
        notes.insert(1, "The axis does not begin at zero.".to_owned());
    }
    let id = format!("explained-{}", explanation.cell);
    let section = Section::new(PART, &id, &title(reader, explanation), table.table(vec![notes.join(" ")]));
    Section { bars: Some(bars), ..section }
}

/// The length of a step in the unit of the table, and how it is meant: a cost or saving is claimed where its interval
/// excludes zero and the difference was seen again.
fn bar(explanation: &Explanation, step: &Step, factor: f64) -> (f64, &'static str) {
    let tone = match (step.is_total, is_known(&step.time) && explanation.is_seen_again()) {
        (true, _) => TOTAL,
        (_, false) => "open",
        (_, true) if step.time.value < 0.0 => "faster",
        (_, true) => "slower",
    };
    (step.time.value / factor, tone)
}

/// Whether enough processes say on which side of zero it is.
fn is_known(difference: &Estimated) -> bool {
    let ends = difference.low.zip(difference.high);
    difference.n as usize >= LEAST_RUNS && ends.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
}

/// `squeezenet: int8 against fp32, where the 9.2 ms go`
fn title(reader: &Reader<'_>, explanation: &Explanation) -> String {
    let amount = format::measured(Unit::Nanoseconds, explanation.difference_ns.abs(), None);
    let what = match explanation.difference_ns < 0.0 {
        _ if !is_difference(reader, explanation) || !explanation.is_seen_again() => "by operator".to_owned(),
        true => claimed(format!("where the {amount} go")),
        false => claimed(format!("where the {amount} come from")),
    };
    format!("{}, {what}", pair_of(reader, explanation))
}

/// Whether a verdict claims what is explained.
fn is_difference(reader: &Reader<'_>, explanation: &Explanation) -> bool {
    let row = reader.cell(explanation.cell).and_then(|cell| reader.against(cell));
    row.is_some_and(|row| row.baseline == explanation.baseline && row.is_judged() && row.verdict.is_difference())
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

/// The cell and its baseline.
fn pair<'a>(reader: &Reader<'a>, explanation: &Explanation) -> Vec<&'a Cell> {
    [&explanation.cell, &explanation.baseline].into_iter().filter_map(|id| reader.cell(*id)).collect()
}

/// `squeezenet, b1: int8 against fp32`.
fn pair_of(reader: &Reader<'_>, explanation: &Explanation) -> String {
    let cells = pair(reader, explanation);
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
    let has_waits = explanation.rows.iter().any(|row| row.name() == WAITS);
    let what = if has_waits { "Operators and the device's waits" } else { "Operators" };
    match explanation.explained.filter(|_| explanation.is_seen_again()) {
        Some(explained) => format!(
            "{what} explain {} of the difference of {difference}. The plain processes of the profile differ by {again}.",
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

/// A line for each comparison with a difference, or for each cell where there is none, and why there is no profile.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    const MOST_LINES: usize = 6;
    let cells = reader.shown();
    let differs = |explanation: &&Explanation| is_difference(reader, explanation) && is_readable(reader, explanation);
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

/// Those of a comparison's two cells.
fn profiles_of<'a>(reader: &Reader<'a>, explanation: &Explanation) -> Vec<&'a Profile> {
    pair(reader, explanation).into_iter().filter_map(|cell| cell.profile.as_ref()).collect()
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
    let first = explanation.rows.iter().find(saved).filter(|row| is_known(&row.difference))?;
    let saved_ns = estimate(&first.difference);
    let interval = saved_ns.interval.map(|interval| interval.map(f64::abs));
    let saved_ns = Estimate { value: saved_ns.value.abs(), interval, ..saved_ns };
    let saved = match saved_ns.value > explanation.difference_ns.abs() {
        true => format!("all of it in {}", first.in_short()),
        false => format!("saves {} in {}", format::at_least(Unit::Nanoseconds, &saved_ns, 2), first.in_short()),
    };
    // Baseline, cell.
    let [of_faster, of_slower] = if explanation.cell == faster { [1, 0] } else { [0, 1] };
    let count = |nodes: [u64; 2], side: usize| format!("{} of {}", nodes[side], first.nodes[side]);
    let tensor_cores = first.on_tensor_cores.filter(|nodes| nodes[of_faster] > nodes[of_slower]);
    let tensor_cores = tensor_cores.map(|nodes| {
        format!(
            " (tensor cores, by kernel names: {} nodes, against {})",
            count(nodes, of_faster),
            count(nodes, of_slower)
        )
    });
    Some(saved + &tensor_cores.unwrap_or_default())
}

/// `Conv -9.0 ms, MatMul -0.9 ms; QuantizeLinear +0.8 ms`: what a cell saves and what that costs, by the operators of which
/// that is known, where the difference is claimed and was seen again.
pub(super) fn operators(reader: &Reader<'_>, cell: CellId, baseline: CellId) -> Option<String> {
    let is_of_pair = |explanation: &&Explanation| (explanation.cell, explanation.baseline) == (cell, baseline);
    let explanation = reader.results.explanations.iter().find(is_of_pair)?;
    let is_shown =
        is_difference(reader, explanation) && is_readable(reader, explanation) && explanation.is_seen_again();
    is_shown.then_some(())?;
    let unit = scale(Unit::Nanoseconds, [explanation.difference_ns.abs()]);
    let decimals = format::significant_decimals(explanation.difference_ns / unit.factor, 2).max(0);
    let least = LEAST_SHARE * explanation.difference_ns.abs();
    let rows =
        || explanation.rows.iter().filter(|row| is_known(&row.difference) && row.difference.value.abs() >= least);
    let words = |row: &OperatorDifference| {
        format!("{} {} {}", row.in_short(), format::signed(row.difference.value / unit.factor, decimals), unit.unit)
    };
    let side = |is_saved: bool| {
        let rows = rows().filter(|row| (row.difference.value < 0.0) == is_saved).take(MOST_NAMED).map(words);
        rows.collect::<Vec<_>>().join(", ")
    };
    let sides = [side(true), side(false)];
    let sides: Vec<String> = sides.into_iter().filter(|side| !side.is_empty()).collect();
    (!sides.is_empty()).then(|| claimed(sides.join("; ")))
}
