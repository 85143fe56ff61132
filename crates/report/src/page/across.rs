//! On how many machines of a merged record each comparison holds, and what to expect on another.

use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section};
use crate::format::{p_value, ratio, speedup, tone, verdict_word};
use crate::plots::Plots;
use base::wording::list;
use judge::results::{AcrossMachines, Held, MeanRatio, Results};
use plan::CellId;
use statistics::interval::Interval;
use statistics::random_effects::LEAST_MACHINES_TO_PREDICT;

/// More lines than these are in the table alone.
const MOST_LINES: usize = 8;
/// More machines than these are counted, not named.
const MOST_NAMED: usize = 2;

/// A line for each comparison: `resnet50/b1/int8/cpu: faster on 3 of 4 machines, 1.31x or more; slower on laptop (without VNNI), 0.85x or less.`
pub(super) fn lines(results: &Results) -> Vec<String> {
    results.across.iter().take(MOST_LINES).map(line).collect()
}

/// What is compared, and what holds of it.
pub(super) fn line(across: &AcrossMachines) -> String {
    format!("{}: {}.", across.path, words(across))
}

/// `faster on 3 of 4 machines, 1.31x or more; slower on laptop (without VNNI), 0.85x or less`
pub(super) fn words(across: &AcrossMachines) -> String {
    let mut parts: Vec<String> = across.held.iter().map(|held| held_words(across, held)).collect();
    let next = across.mean.and_then(|mean| Some((mean.next_low?, mean.next_high?)));
    parts.extend(next.map(|(low, high)| format!("expect {low:.2}x to {high:.2}x on another machine like these")));
    parts.join("; ")
}

/// What holds on which machines, with the bound that all of them keep.
fn held_words(across: &AcrossMachines, held: &Held) -> String {
    let word = match held.verdict.is_open() {
        true => "undecided".to_owned(),
        false => verdict_word(&across.metric, held.verdict),
    };
    let (count, all_machines) = (held.machines.len(), across.cells.len());
    let on = match count {
        all if all == all_machines => format!("all {all_machines} machines"),
        few if few <= MOST_NAMED => list(&held.machines),
        _ => format!("{count} of {all_machines} machines"),
    };
    // Rounded to the side on which it stays true.
    let bound = held.bound.map(|bound| match held.verdict.is_improvement() {
        true => format!(", {:.2}x or more", (bound * 100.0).floor() / 100.0),
        false => format!(", {:.2}x or less", (bound * 100.0).ceil() / 100.0),
    });
    let without = match held.without.is_empty() {
        true => String::new(),
        false => format!(" (without {})", list(&held.without)),
    };
    format!("{word} on {on}{without}{}", bound.unwrap_or_default())
}

/// The table with its figure, where a record has several machines.
pub(super) fn section(reader: &Reader<'_>, plots: &Plots) -> Option<Section> {
    let results = reader.results;
    let machines = results.machines();
    let mut table = Columns::of(&results.across);
    table.add(TableColumn::text("comparison"), |across| TableCell::text(across.path.clone()));
    table.add(TableColumn::number("mean").meaning("over machines, with its 95 % interval (method 6.11)"), |across| {
        let mean = across.mean?;
        Some(TableCell::number(ratio(mean.ratio, Some(Interval { low: mean.low, high: mean.high })), mean.ratio))
    });
    table.add(
        TableColumn::number("p").meaning("of equal ratios on all machines, by Cochran's Q; below 0.05 they differ"),
        |across| across.mean.map(|mean| TableCell::number(p_value(mean.p), mean.p)),
    );
    table.add(TableColumn::text("another machine").meaning("95 % interval for one that was not measured"), |across| {
        let MeanRatio { next_low, next_high, .. } = across.mean?;
        Some(TableCell::text(format!("{:.2}x to {:.2}x", next_low?, next_high?)))
    });
    for machine in &machines {
        let meaning = format!("speed-up on {machine} with its interval, and the verdict");
        table.add(TableColumn::number(*machine).meaning(meaning), |across| {
            let machine_of =
                |id: CellId| reader.cell(id).and_then(|cell| experiment::Device::machine_in(cell.names.device()));
            let row = results.rows_across(across).find(|row| machine_of(row.cell) == Some(machine))?;
            let mark = row.is_judged().then(|| tone(row.verdict));
            Some(TableCell::number(speedup(row), row.ratio).marked(mark))
        });
    }
    let note = format!(
        "Latencies do not carry over to another machine; what ratio to expect there takes at least {LEAST_MACHINES_TO_PREDICT} machines."
    );
    let section = Section::new("comparisons", "across-machines", "Across machines", table.table(vec![note]));
    let figure = plots.machines.clone();
    (!results.across.is_empty()).then_some(Section { figure, ..section })
}
