//! Where the time of cells goes: a bar for each, by operator.

use super::axis::{Axis, plain_label};
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PALE, PALETTE, shortened, text_width};
use super::{Figure, MOST_GROUPS, groups, row_name, slug, unused};
use crate::format::scale;
use crate::page::Reader;
use base::metric::Unit;
use judge::results::{Cell, OperatorTime, Profile, operator_group};

const WIDTH: f64 = 760.0;
const ROW: f64 = 30.0;
const TOP: f64 = 44.0;
const LEGEND: f64 = 22.0;
const BOTTOM: f64 = 46.0;

/// More cells of a group are left to the tables.
const MOST_ROWS: usize = 24;
const MOST_LETTERS: usize = 28;

/// A figure for each set of cells that are compared.
pub(super) fn draw(reader: &Reader<'_>) -> Vec<Figure> {
    let mut groups: Vec<Vec<(&Cell, &Profile)>> = groups(reader).into_iter().map(profiled).collect();
    groups.retain(|group| !group.is_empty());
    let colors = Colors::of(groups.iter().flatten().map(|(_, profile)| *profile));
    let mut plots: Vec<Figure> = Vec::new();
    for group in groups.iter().take(MOST_GROUPS) {
        let name = row_name(reader, group[0].0);
        let file = unused(&plots, &format!("operators-{}", slug(&name)));
        plots.push(figure(reader, group, &name, file, &colors));
    }
    plots
}

/// Those of which it is known where their time goes.
fn profiled(cells: Vec<&Cell>) -> Vec<(&Cell, &Profile)> {
    let known = cells.into_iter().filter_map(|cell| Some((cell, cell.profile.as_ref()?)));
    known.filter(|(_, profile)| profile.has_times() && !profile.is_drowned()).collect()
}

/// The operators that have a colour of their own, the same in every figure.
struct Colors(Vec<String>);

impl Colors {
    fn of<'p>(profiles: impl Iterator<Item = &'p Profile>) -> Self {
        let mut totals: Vec<(&str, f64)> = Vec::new();
        for profile in profiles {
            let all: f64 = profile.operators.iter().filter_map(|row| Some(row.time?.value)).sum();
            for row in &profile.operators {
                let (Some(operator), Some(time)) = (&row.operator, row.time) else { continue };
                let share = time.value / all.max(1.0);
                match totals.iter_mut().find(|(known, _)| *known == operator_group(operator)) {
                    Some((_, total)) => *total += share,
                    None => totals.push((operator_group(operator), share)),
                }
            }
        }
        totals.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Colors(totals.iter().take(PALETTE.len()).map(|(name, _)| (*name).to_owned()).collect())
    }

    fn part_index(&self, row: &OperatorTime) -> usize {
        let group = row.operator.as_deref().map(operator_group);
        self.0.iter().position(|known| Some(known.as_str()) == group).unwrap_or(self.0.len())
    }

    /// Names and colours in the order of the bars.
    fn legend(&self) -> Vec<(&str, Color)> {
        let operators = self.0.iter().map(String::as_str).zip(PALETTE);
        operators.chain([("other operators", GREY), ("outside nodes", PALE)]).collect()
    }

    /// The parts of a bar in that order.
    fn parts(&self, profile: &Profile) -> Vec<f64> {
        let mut parts = vec![0.0; self.0.len() + 2];
        for row in &profile.operators {
            parts[self.part_index(row)] += row.time.map_or(0.0, |time| time.value.max(0.0));
        }
        parts[self.0.len() + 1] = profile.between.map_or(0.0, |between| between.value.max(0.0));
        parts
    }
}

fn figure(reader: &Reader<'_>, group: &[(&Cell, &Profile)], name: &str, file: String, colors: &Colors) -> Figure {
    let rows: Vec<(String, Vec<f64>)> = group
        .iter()
        .take(MOST_ROWS)
        .map(|(cell, profile)| (reader.results.entry(&cell.names), colors.parts(profile)))
        .collect();
    let most = rows.iter().map(|(_, parts)| parts.iter().sum()).fold(0.0, f64::max);
    let unit = scale(Unit::Nanoseconds, [most]);
    let names = rows.iter().map(|(name, _)| text_width(&shortened(name, MOST_LETTERS))).fold(0.0, f64::max);
    let axis = Axis::from_zero(1.02 * most / unit.factor, names + 30.0, WIDTH - 24.0);
    let is_drawn = |index: usize| rows.iter().any(|(_, parts)| parts[index] > 0.0);
    let legend = colors.legend().into_iter().enumerate().filter(|(index, _)| is_drawn(*index));
    let legend: Vec<(&str, Color)> = legend.map(|(_, entry)| entry).collect();
    let lines = lines_of_legend(&legend);
    let top = TOP + LEGEND * lines.len() as f64;
    let bottom = top + ROW * rows.len() as f64;
    let title = format!("Time of an inference by operator: {name}");
    let described: Vec<String> = rows.iter().map(|(name, parts)| described(name, parts, colors)).collect();
    let mut canvas = Canvas::new(&title, &described.join("; "), WIDTH, bottom + BOTTOM);
    canvas.heading(&shortened(&title, 80), (14.0, 20.0));
    for (line, entries) in lines.iter().enumerate() {
        for (at, name, color) in entries {
            let y = TOP + LEGEND * line as f64;
            canvas.rectangle((*at, y - 6.0), (at + 12.0, y + 6.0), *color, 1.0);
            canvas.text(name, (at + 18.0, y), Anchor::Start, INK);
        }
    }
    axis.draw(&mut canvas, (top - 4.0, bottom), &format!("time, {}", unit.unit), plain_label);
    for (row, (name, parts)) in rows.iter().enumerate() {
        let y = top + ROW * (row as f64 + 0.5);
        canvas.text(&shortened(name, MOST_LETTERS), (names + 20.0, y), Anchor::End, INK);
        let mut from = 0.0;
        for (part, (operator, color)) in parts.iter().zip(colors.legend()) {
            let to = from + part / unit.factor;
            let said = format!("{operator}: {} {}", plain_label(part / unit.factor), unit.unit);
            canvas.named_rectangle((axis.position(from), y - 9.0), (axis.position(to), y + 9.0), color, &said);
            from = to;
        }
    }
    let caption = "Each bar is the measured latency, divided by the profile; fused and quantised forms of an operator count as the operator.".to_owned();
    Figure { svg: canvas.finish(), file, title, caption }
}

fn described(name: &str, parts: &[f64], colors: &Colors) -> String {
    let all: f64 = parts.iter().sum();
    let shares = parts.iter().zip(colors.legend()).filter(|(part, _)| **part > 0.0);
    let shares = shares.map(|(part, (operator, _))| format!("{operator} {:.0} %", 100.0 * part / all));
    format!("{name}: {}", shares.collect::<Vec<_>>().join(", "))
}

/// The entries of a legend with their positions, in as many lines as they need.
fn lines_of_legend(legend: &[(&str, Color)]) -> Vec<Vec<(f64, String, Color)>> {
    let mut lines: Vec<Vec<(f64, String, Color)>> = vec![Vec::new()];
    let mut at = 14.0;
    for (name, color) in legend {
        let name = shortened(name, MOST_LETTERS);
        let width = 18.0 + text_width(&name) + 18.0;
        if at + width > WIDTH && at > 14.0 {
            lines.push(Vec::new());
            at = 14.0;
        }
        lines.last_mut().expect("there is a line").push((at, name, *color));
        at += width;
    }
    lines
}
