//! Every metric of every cell, what its runs met on the machine, what its samples look like, and the batches and rates that
//! were searched.

use super::cells::absence;
use super::load::known_end;
use super::notices::is_everywhere;
use super::profile::waits_after;
use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table};
use crate::batch_search::{end, tried};
use crate::format::{self, Column, percent};
use crate::mark::claimed;
use base::code::Severity;
use base::metric::{self, LARGEST_RATE, LATENCY, MetricReference, Statistic, Unit};
use judge::results::{Cell, CellLoad, CellShape, Search};
use record::TriedRate;
use statistics::course::Course;
use statistics::interval::Estimate;

/// All tables with a row for each cell.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let cells = reader.shown();
    let mut sections = vec![Section::new("metrics", "metrics", "Every metric", every_metric(reader, &cells))];
    sections.extend(
        searches(reader, &cells).map(|table| Section::new("searches", "batches", "Batches that were tried", table)),
    );
    sections.extend(rates(&cells).map(|table| Section::new("searches", "rates", "Rates that were tried", table)));
    sections
}

/// Every metric that the results have.
fn every_metric(reader: &Reader<'_>, cells: &[&Cell]) -> Table {
    let mut table = Columns::of(cells);
    table.add(TableColumn::text("cell"), |cell| {
        let why = (cell.completed == 0 || cell.is_invalid()).then(|| absence(cell));
        let path = reader.path(cell.id);
        Some(TableCell::text(why.map_or_else(|| path.clone(), |why| format!("{path}, {why}"))))
    });
    for metric in metrics_of(cells) {
        of_metric(&mut table, cells, metric);
    }
    let meaning = "operations of the model as stored, two for each multiply-accumulate, over the latency";
    table.add_known(TableColumn::number("GFLOP/s").meaning(meaning), |cell| {
        let macs = cell.macs.filter(|macs| *macs > 0 && cell.load.is_none())?;
        let rate = 2.0 * macs as f64 / cell.estimate(&LATENCY)?.value;
        Some(TableCell::number(format::fixed(rate, format::significant_decimals(rate, 3).max(0)), rate))
    });
    let meaning = "shortest possible time on this machine for the matrix products of the model and their memory traffic, by its measured peak rates, over the latency (method 5.6)";
    table.add_known(TableColumn::number("of roofline").meaning(meaning), |cell| {
        cell.roofline_share.map(|share| TableCell::number(percent(share), share))
    });
    let meaning = "what has to change before the cell can become much faster (method 5.6); empty if unknown";
    table.add_known(TableColumn::text("bound by").meaning(meaning), |cell| {
        cell.bound_by.as_ref().map(|bound| TableCell::text(format::bound(bound, waits_after(cell))))
    });
    table.add(TableColumn::number("samples").meaning("counted samples of all runs"), |cell| {
        (cell.samples > 0).then(|| TableCell::count(cell.samples))
    });
    table.add(TableColumn::number("iterations per sample").meaning("iterations averaged in one sample"), |cell| {
        (cell.completed > 0).then(|| TableCell::count(cell.iterations))
    });
    table.add(TableColumn::number("runs").meaning("completed processes"), |cell| {
        let text = match cell.planned() == cell.completed {
            true => cell.completed.to_string(),
            false => format!("{} of {}", cell.completed, cell.planned()),
        };
        Some(TableCell::number(text, f64::from(cell.completed)))
    });
    let meaning = "codes of the cell that not every cell has, with the number of runs that carry them; without one: of the cell as a whole";
    table.add_known(TableColumn::text("warnings").meaning(meaning), |cell| warnings(reader, cell));
    let mut notes = notes(cells);
    notes.extend(met(&mut table, cells));
    samples(&mut table, cells);
    let mut table = table.table(notes);
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.anchor = Some(cell.path());
    }
    table
}

/// The metrics that some cell has, latency first, then in the order of the reference.
fn metrics_of(cells: &[&Cell]) -> Vec<MetricReference> {
    let mut names: Vec<&String> = cells.iter().flat_map(|cell| cell.metrics.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let rank = |metric: &MetricReference| metric::METRICS.iter().position(|known| known.name == metric.metric.name);
    let mut metrics: Vec<MetricReference> =
        names.into_iter().filter_map(|name| MetricReference::of_column(name)).collect();
    // Those of the specification come last.
    metrics.sort_by_key(|metric| (rank(metric).unwrap_or(usize::MAX), metric.metric.name, metric.statistic));
    metrics
}

fn of_metric<'r>(table: &mut Columns<'r, &Cell>, cells: &'r [&Cell], metric: MetricReference) {
    let estimates: Vec<Estimate> = cells.iter().filter_map(|cell| cell.estimate_of(metric)).collect();
    let is_latency = metric.metric.name == LATENCY.name;
    // Nothing but lower bounds says nothing.
    if !cells.iter().any(|cell| cell.estimate_of(metric).is_some() && cell.supports(metric)) {
        return;
    }
    let medians: Vec<Estimate> = cells.iter().filter_map(|cell| cell.estimate(&LATENCY)).collect();
    let column = match is_latency {
        true => Column::fit_to(Column::fit(metric.unit(), &medians).scale, &estimates),
        false => Column::fit(metric.unit(), &estimates),
    };
    let title = match (is_latency, metric.statistic) {
        (true, Statistic::Min) => "best case".to_owned(),
        (true, statistic) => statistic.name().to_owned(),
        (false, _) => metric.title(),
    };
    table.add_known(TableColumn::number(column.heading(&title)).meaning(metric.metric.meaning), |cell| {
        let Some(estimate) = cell.estimate_of(metric) else {
            let is_batched = is_latency && cell.completed > 0 && cell.iterations > 1;
            return is_batched.then(|| TableCell::absent(format::batched(cell.iterations)));
        };
        let text = match (cell.supports(metric), metric.metric.unit) {
            (true, Unit::Share) => format::score(metric.metric, estimate.value, estimate.n),
            (true, _) => column.value(&estimate),
            (false, _) => format!(">= {}", column.plain(estimate.value)),
        };
        Some(TableCell::number(text, estimate.value))
    });
}

/// `W_STEAL 4, W_BIMODAL_RUNS`. What casts no doubt is among the notes.
fn warnings(reader: &Reader<'_>, cell: &Cell) -> Option<TableCell> {
    let words = |(code, runs): (&String, Option<u32>)| match runs {
        Some(runs) => format!("{code} {runs}"),
        None => code.clone(),
    };
    let grave =
        cell.codes.iter().filter(|(code, seen)| seen.severity >= Severity::Warn && !is_everywhere(reader, code));
    let codes: Vec<String> = grave.map(|(code, seen)| words((code, seen.runs))).collect();
    (!codes.is_empty()).then(|| TableCell::text(codes.join(", ")))
}

fn notes(cells: &[&Cell]) -> Vec<String> {
    let mut notes = vec!["Trimmed means over runs, as above.".to_owned()];
    if cells.iter().any(|cell| cell.iterations > 1 && cell.completed > 0) {
        notes.push(
            "Where a sample is the mean of several iterations, their percentiles and best case are unknown.".to_owned(),
        );
    }
    let is_tail = |metric: &MetricReference| metric.statistic.is_tail();
    let supported = |cell: &Cell, metric: MetricReference| cell.estimate_of(metric).is_some() && cell.supports(metric);
    let tails: Vec<MetricReference> = metrics_of(cells).into_iter().filter(is_tail).collect();
    let (shown, left): (Vec<MetricReference>, Vec<MetricReference>) =
        tails.into_iter().partition(|metric| cells.iter().any(|cell| supported(cell, *metric)));
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|metric| metric.statistic.name()).collect();
        notes.push(format!("Left out: {} (too few samples).", format::list(&names)));
    }
    let has_bound = |metric: &MetricReference| {
        cells.iter().any(|cell| cell.estimate_of(*metric).is_some() && !cell.supports(*metric))
    };
    if shown.iter().any(has_bound) {
        notes.push(">=: a lower bound (too few samples).".to_owned());
    }
    notes
}

/// How the runs were measured and what they met, the median over runs; several where they differ. What to know of it.
fn met<'r>(table: &mut Columns<'r, &Cell>, cells: &'r [&Cell]) -> Option<String> {
    let mut names: Vec<&String> = cells.iter().flat_map(|cell| cell.environment.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let known = names.into_iter().filter_map(|name| metric::by_name(name));
    let mut shown = 0;
    for metric in known {
        // What is zero everywhere explains nothing.
        let is_nonzero = |cell: &&Cell| {
            cell.environment.get(metric.name).is_some_and(|values| values.iter().any(|value| *value != 0.0))
        };
        if !cells.iter().any(is_nonzero) {
            continue;
        }
        shown += 1;
        table.add(TableColumn::number(metric.title).meaning(metric.meaning), |cell| {
            let values = cell.environment.get(metric.name)?;
            let (first, last) = (*values.first()?, *values.last()?);
            let middle = values.get(values.len() / 2).copied().unwrap_or(first);
            let shown = |value: f64| match metric.unit {
                Unit::Ratio | Unit::Share => percent(value),
                unit => format::measured(unit, value, None),
            };
            let text = if values.len() == 1 {
                shown(first)
            } else {
                format!("{} ({} to {})", shown(middle), shown(first), shown(last))
            };
            Some(TableCell::number(text, middle))
        });
    }
    (shown > 0).then(|| "Of what runs met on the machine: the median over runs (smallest to largest).".to_owned())
}

/// What the samples of each cell look like: classified and shown, never dropped (method 2.5 and 5).
fn samples<'r>(table: &mut Columns<'r, &Cell>, cells: &'r [&Cell]) {
    if !cells.iter().any(|cell| cell.shape.is_some() && !cell.is_invalid()) {
        return;
    }
    let shape = |cell: &Cell| cell.shape.clone().filter(|_| !cell.is_invalid());
    let share = |share: f64| TableCell::number(if share == 0.0 { "0".to_owned() } else { percent(share) }, share);
    let meaning = "samples beyond 1.5 interquartile ranges from the quartiles of their run";
    table.add(TableColumn::number("outliers").meaning(meaning), |cell| shape(cell)?.outlier_share.map(share));
    let meaning = "samples beyond 3 interquartile ranges";
    table.add(TableColumn::number("severe").meaning(meaning), |cell| shape(cell)?.severe_outlier_share.map(share));
    let meaning = "peaks of the density of a run's samples; in brackets the runs that have several";
    table.add(TableColumn::number("groups").meaning(meaning), |cell| {
        let shape = shape(cell)?;
        let text = match shape.multimodal_runs {
            0 => "1".to_owned(),
            // Files of format 2 do not have how many.
            several if shape.most_modes == 0 => format!("several ({several} of {})", cell.completed),
            several => format!("up to {} ({several} of {})", shape.most_modes, cell.completed),
        };
        Some(TableCell::number(text, f64::from(shape.multimodal_runs)))
    });
    let meaning = "median over runs; beyond 2 in size there is a long tail";
    table.add(TableColumn::number("skewness").meaning(meaning), |cell| {
        shape(cell)?.skewness.map(|skewness| TableCell::number(format!("{skewness:.1}"), skewness))
    });
    let meaning = "median over runs of 1.4826 median absolute deviations over the median";
    table.add(TableColumn::number("scatter").meaning(meaning), |cell| {
        shape(cell)?.robust_variation.map(|share| TableCell::number(percent(share), share))
    });
    let meaning = "runs whose halves differ by more than noise and 1 %: slower is throttling, heat or background load; faster is late warm-up";
    table.add(TableColumn::number("drift").meaning(meaning), |cell| {
        let shape = shape(cell)?;
        let parts = [(shape.slower_runs, "slower"), (shape.faster_runs, "faster")].into_iter();
        let words: Vec<String> =
            parts.filter(|(runs, _)| *runs > 0).map(|(runs, word)| format!("{runs} {word}")).collect();
        let text = if words.is_empty() { "none".to_owned() } else { claimed(words.join(", ")) };
        Some(TableCell::number(text, f64::from(shape.slower_runs + shape.faster_runs)))
    });
    for (title, meaning, runs_of) in COUNTS {
        if cells.iter().any(|cell| shape(cell).is_some_and(|shape| runs_of(&shape) > 0)) {
            table.add(TableColumn::number(title).meaning(meaning), |cell| {
                let runs = runs_of(&shape(cell)?);
                let text = if runs == 0 { "0".to_owned() } else { format!("{runs} of {}", cell.completed) };
                Some(TableCell::number(text, f64::from(runs)))
            });
        }
    }
    table.add_known(
        TableColumn::text("course")
            .meaning("runs by how the duration developed over time, by change points (Barrett et al. 2017)"),
        |cell| {
            let courses = shape(cell)?.courses;
            let counts: Vec<String> =
                courses.iter().map(|(course, runs)| format!("{} {runs}", course.words())).collect();
            let uneven = courses.iter().filter(|(course, _)| **course != Course::Flat);
            let uneven: u64 = uneven.map(|(_, runs)| u64::from(*runs)).sum();
            (!counts.is_empty()).then(|| TableCell::number(counts.join(", "), uneven as f64))
        },
    );
}

/// A column of runs that show something: heading, what exactly, and how many.
type Count = (&'static str, &'static str, fn(&CellShape) -> u32);

const COUNTS: [Count; 3] = [
    ("slow first", "runs whose first counted sample lies ten robust standard deviations above the median", |shape| {
        shape.slow_first_runs
    }),
    ("unsettled", "runs whose duration was still changing when the warm-up time was over", |shape| {
        shape.unsettled_runs
    }),
    ("imprecise", "runs that reached a limit before the requested precision", |shape| shape.imprecise_runs),
];

/// One row for each cell that looked for its largest rate; `None` where none did.
fn rates(cells: &[&Cell]) -> Option<Table> {
    let searched: Vec<(&Cell, &CellLoad)> = cells
        .iter()
        .filter_map(|cell| Some((*cell, cell.load.as_ref().filter(|load| load.queries.is_largest())?)))
        .collect();
    searched.first()?;
    let mut table = Columns::of(&searched);
    let rate = |per_s: f64| TableCell::number(format::amount(Unit::PerSecond, per_s), per_s);
    table.add(TableColumn::text("cell"), |(cell, _)| cell.path());
    table.add(TableColumn::number("predicted").meaning("by service times of a closed loop alone"), |(_, load)| {
        load.predicted_per_s.map(rate)
    });
    table.add(TableColumn::number("runs at").meaning("the rate of the cell's runs"), |(_, load)| load.per_s.map(rate));
    table.add(TableColumn::number("largest rate").meaning("by the runs"), |(cell, _)| {
        let end = || known_end(cell, MetricReference::of(&LARGEST_RATE)).map(TableCell::text);
        cell.estimate(&LARGEST_RATE).map(|found| rate(found.value)).or_else(end)
    });
    table.add(
        TableColumn::text("tried").meaning("rate, share of late queries, and the rate that its service times support"),
        |(_, load)| {
            let words = |tried: &TriedRate| {
                let late = tried.late.map_or(String::new(), |late| format!(": {} late", percent(late)));
                let supports =
                    tried.supports_per_s.map(|per_s| format!(", supports {}", format::amount(Unit::PerSecond, per_s)));
                format!("{}{late}{}", format::amount(Unit::PerSecond, tried.per_s), supports.unwrap_or_default())
            };
            let tried = load.tried.iter().map(words).collect::<Vec<_>>().join("; ");
            Some(TableCell::text(tried))
        },
    );
    Some(table.table(vec![
            "Where the rate by the runs is not the predicted one, queries take a different time under load than in a closed loop, or the prediction had too few to go by."
                .to_owned(),
        ]))
}

/// One row for each cell whose batch was searched; `None` where none was.
fn searches(reader: &Reader<'_>, cells: &[&Cell]) -> Option<Table> {
    let searched: Vec<(&Cell, &Search)> =
        cells.iter().filter_map(|cell| Some((*cell, cell.search.as_ref()?))).collect();
    searched.first()?;
    let margin = percent(reader.results.rules.margin);
    let mut table = Columns::of(&searched);
    table.add(TableColumn::text("cell").meaning("whose batch was searched"), |(cell, _)| cell.path());
    let meaning = format!("measured at: the smallest within {margin} of the best throughput");
    table.add(TableColumn::number("batch").meaning(meaning), |(cell, _)| cell.batch.map(TableCell::count));
    table.add(TableColumn::number("largest").meaning("largest batch found to fit"), |(_, search)| {
        let fit = search.tried.iter().filter(|tried| tried.items_per_s.is_some());
        fit.map(|tried| tried.batch).max().map(TableCell::count)
    });
    table.add(TableColumn::text("end").meaning("why nothing larger was tried"), |(_, search)| {
        end(search.end, &search.tried)
    });
    let meaning = "each in a fresh process, by the median of a short run";
    table.add(TableColumn::text("tried (items/s)").meaning(meaning), |(_, search)| tried(&search.tried));
    Some(table.table(vec![
        "Each throughput of a search is from one short run, and not part of any statistic: the cell was measured at the batch that was chosen."
            .to_owned(),
    ]))
}
