//! A plan as text.

mod settings;
mod shards;
mod time;

use std::fmt::Write;

use crate::run::Prepared;
use experiment::{Design, Experiment, Model};
use plan::{CellForecast, Group, Plan, PlannedRun, block_order};
use report::format::count;
use spec::Note;
use worker::backend;

pub(crate) use settings::{equal_variants, named_model};
pub use shards::PlannedShard;
pub(crate) use shards::describe_shards;

/// More cells than this are counted, not listed.
const MOST_LISTED: usize = 200;

/// Product, settings, cells, skips, order and time of a prepared experiment.
///
/// `expected` is what is known of each cell beforehand, by its index.
pub fn describe(
    experiment: &Experiment,
    notes: &[Note],
    prepared: &Prepared,
    expected: &[Option<CellForecast>],
) -> String {
    let plan = &prepared.plan;
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = product(&mut text, experiment, plan);
    let _ = settings::describe(&mut text, experiment, notes, plan, expected);
    let _ = batch_dimensions(&mut text, prepared);
    let _ = cells(&mut text, prepared, experiment.backend.runs_commands());
    let _ = skips(&mut text, plan);
    let _ = order(&mut text, experiment, plan);
    let environment = backend::kind_of(&experiment.backend).environment();
    let _ = match environment.on_machine(|| time::describe(&mut text, experiment, plan, expected)) {
        Some(written) => written,
        None => writeln!(text, "\ntime\n  seconds: scripted times are not waited for"),
    };
    text
}

/// `2 models x 2 inputs x 3 variants = 12 cells; 4 excluded`.
pub(crate) fn product_line(plan: &Plan) -> String {
    let product = &plan.product;
    let mut line = format!("{} = {}", product, count(product.total, "cell"));
    if product.excluded > 0 {
        let _ = write!(line, "; {} excluded", product.excluded);
    }
    if product.included > 0 {
        let _ = write!(line, "; {} included", product.included);
    }
    let skipped = plan.cells.iter().filter(|cell| cell.skip.is_some()).count();
    if skipped > 0 {
        let _ = write!(line, "; {skipped} skipped");
    }
    line
}

fn product(text: &mut String, experiment: &Experiment, plan: &Plan) -> std::fmt::Result {
    writeln!(text, "{:<10} {}", experiment.name, product_line(plan))?;
    for idle in &plan.product.idle_selectors {
        writeln!(text, "{:<11}{idle} matches no cell", "warning")?;
    }
    Ok(())
}

/// Which dimension `batch` means, for each model where it is not plain.
fn batch_dimensions(text: &mut String, prepared: &Prepared) -> std::fmt::Result {
    for (model, name) in prepared.models.iter().zip(prepared.plan.names_of::<Model>()) {
        if let Some(choice) = model.shapes.values().find_map(|shapes| shapes.batch.as_ref()) {
            writeln!(text, "{:<11}{name}: {choice}", "batch")?;
        }
    }
    Ok(())
}

fn cells(text: &mut String, prepared: &Prepared, are_commands: bool) -> std::fmt::Result {
    let plan = &prepared.plan;
    writeln!(text, "\ncells")?;
    for (index, cell) in plan.cells.iter().enumerate().take(MOST_LISTED) {
        let state = match plan.skip(cell) {
            Some(skip) => format!("skipped: {}", skip.reason),
            None if plan.is_baseline(cell) => "baseline".to_owned(),
            None => String::new(),
        };
        let name = plan.shown(cell, are_commands);
        writeln!(text, "{}", format!("  {index:>4}  {}  {name}  {state}", cell.id).trim_end())?;
    }
    if plan.cells.len() > MOST_LISTED {
        writeln!(text, "  ... and {} more; --json lists all", plan.cells.len() - MOST_LISTED)?;
    }
    Ok(())
}

fn skips(text: &mut String, plan: &Plan) -> std::fmt::Result {
    if plan.skips.is_empty() {
        return Ok(());
    }
    writeln!(text, "\nskipped")?;
    for (index, skip) in plan.skips.iter().enumerate() {
        let count = plan.cells.iter().filter(|cell| cell.skip == Some(index as u32)).count();
        writeln!(text, "  {count:>4}  {}", skip.reason)?;
        if let Some(remedy) = &skip.remedy {
            writeln!(text, "        {remedy}")?;
        }
    }
    Ok(())
}

fn order(text: &mut String, experiment: &Experiment, plan: &Plan) -> std::fmt::Result {
    if experiment.measure.design == Design::Sequential {
        return Ok(());
    }
    let is_run = |group: &&Group| group.cells.iter().any(|cell| plan.cells[*cell as usize].skip.is_none());
    let groups = plan.groups.iter().filter(is_run).count() as u64;
    let blocks = match experiment.interim_analyses().is_one() {
        true => count(u64::from(plan.runs), "block"),
        false => format!("{} blocks", experiment.runs),
    };
    writeln!(text, "\norder")?;
    writeln!(
        text,
        "  {}, each with one run of every cell in {}, in a balanced order (seed {})",
        blocks,
        count(groups, "group"),
        plan.seed
    )?;
    if plan.cells.len() > MOST_LISTED {
        return Ok(());
    }
    for block in 0..plan.runs.min(2) {
        let indices: Vec<String> = block_order(plan, block).iter().map(member_label).collect();
        writeln!(text, "  block {block}: {}", indices.join(" "))?;
    }
    Ok(())
}

/// The index of the member's cell; an A/A copy has a prime.
fn member_label(member: &PlannedRun) -> String {
    format!("{}{}", member.cell, if member.is_aa_copy { "'" } else { "" })
}
