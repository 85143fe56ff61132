//! What a duet needs beforehand: two cells in every group, both on the CPU, and two equal sets of cores (method 4.2).

use base::machine::host::cores::CoreSplitError;
use experiment::Experiment;
use plan::{Cell, Plan, Skip, SkipKind};

/// Why two cells cannot be measured at the same time.
#[derive(Clone, Debug, PartialEq, thiserror::Error, miette::Diagnostic)]
pub enum DuetError {
    #[error("`measure.design: duet` measures two cells side by side, but {} compared here: {}",
        if .cells.len() == 1 { "one is" } else { "more are" }, .cells.join(", "))]
    #[diagnostic(help("compare exactly two entries, or use `design: slices`, which takes any number"))]
    NotTwo { cells: Vec<String> },
    #[error("`measure.design: duet` runs on the CPU only, and {cell} does not")]
    #[diagnostic(help("take the device out of `devices`, or use `design: slices`"))]
    NotCpu { cell: String },
    #[error("variant `{variant}` asks for {threads} threads; in a duet each cell has {cores} of the cores")]
    #[diagnostic(help("ask for fewer threads, or use `design: slices`, in which a cell has all cores"))]
    Threads { variant: String, threads: u32, cores: usize },
    #[error("`measure.design: duet` needs two equal sets of cores: {0}")]
    #[diagnostic(help("use `design: slices`, in which the cells take turns"))]
    Cores(CoreSplitError),
    #[error("--only selects {cell} without its partner in the duet")]
    #[diagnostic(help("select both, or use another design"))]
    Alone { cell: String },
}

/// Checks the groups of a plan, and skips a cell whose partner is skipped.
///
/// # Errors
///
/// A group that is not two cells on the CPU.
pub(crate) fn check_groups(plan: &mut Plan) -> Result<(), DuetError> {
    let mut alone = Vec::new();
    for group in &plan.groups {
        let runs: Vec<&Cell> = group.cells.iter().map(|index| &plan.cells[*index as usize]).collect();
        let runs: Vec<&Cell> = runs.into_iter().filter(|cell| cell.skip.is_none()).collect();
        if runs.is_empty() {
            continue;
        }
        if group.cells.len() != 2 {
            let cells = group.cells.iter().map(|index| plan.path(&plan.cells[*index as usize])).collect();
            return Err(DuetError::NotTwo { cells });
        }
        if let Some(cell) = runs.iter().find(|cell| plan.coordinates(cell).device() != "cpu") {
            return Err(DuetError::NotCpu { cell: plan.path(cell) });
        }
        if runs.len() == 1 {
            let is_skipped = |index: &&u32| plan.cells[**index as usize].skip.is_some();
            let partner = group.cells.iter().find(is_skipped).map(|index| plan.path(&plan.cells[*index as usize]));
            let reason = format!("its partner in the duet, {}, is skipped", partner.unwrap_or_default());
            let first = group.cells.iter().find(|index| !is_skipped(index)).copied();
            alone.extend(first.map(|index| (index as usize, Skip { kind: SkipKind::Other, reason, remedy: None })));
        }
    }
    for (cell, skip) in alone {
        plan.mark_skipped(cell, skip);
    }
    Ok(())
}

/// Checks that a selection leaves no cell alone.
///
/// # Errors
///
/// [`DuetError::Alone`] with the first that is.
pub(crate) fn check_selection(plan: &Plan) -> Result<(), DuetError> {
    for group in &plan.groups {
        let mut runs = group.cells.iter().map(|index| &plan.cells[*index as usize]).filter(|cell| cell.skip.is_none());
        if let (Some(cell), None) = (runs.next(), runs.next()) {
            return Err(DuetError::Alone { cell: plan.path(cell) });
        }
    }
    Ok(())
}

/// Checks that no variant asks for more threads than a cell of a duet has cores.
///
/// # Errors
///
/// [`DuetError::Threads`] with the first that does.
pub(crate) fn check_threads(experiment: &Experiment, cores: usize) -> Result<(), DuetError> {
    for variant in &experiment.variants {
        if let Some(threads) = variant.threads.intra.filter(|threads| *threads as usize > cores) {
            return Err(DuetError::Threads { variant: variant.name.clone(), threads, cores });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(variants: &str, devices: &str) -> Plan {
        let text = format!("backend: mock\nmodels: [m]\nvariants: {variants}\ndevices: {devices}");
        let spec = spec::parse("test.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        plan::expand(&spec.experiment).expect("a plan")
    }

    #[test]
    fn a_duet_is_of_two() {
        assert_eq!(check_groups(&mut plan("[a, b]", "[cpu]")), Ok(()));
        let three = check_groups(&mut plan("[a, b, c]", "[cpu]")).map_err(|error| error.to_string());
        let says = "`measure.design: duet` measures two cells side by side, but more are compared here: m/default/a/cpu, m/default/b/cpu, m/default/c/cpu";
        assert_eq!(three, Err(says.to_owned()));
        assert!(matches!(check_groups(&mut plan("[a]", "[cpu]")), Err(DuetError::NotTwo { .. })));
    }

    #[test]
    fn a_duet_is_on_the_cpu() {
        let error = check_groups(&mut plan("[a, b]", "[cpu, cuda]"));
        assert_eq!(error, Err(DuetError::NotCpu { cell: "m/default/a/cuda:0".to_owned() }));
    }

    #[test]
    fn a_cell_is_skipped_with_its_partner() {
        let mut plan = plan("[a, b]", "[cpu]");
        plan.mark_skipped(1, Skip { kind: SkipKind::Other, reason: "no such operator".to_owned(), remedy: None });
        assert!(matches!(check_selection(&plan), Err(DuetError::Alone { cell }) if cell == "m/default/a/cpu"));
        check_groups(&mut plan).expect("a duet is left");
        let skip = plan.skip(&plan.cells[0]).expect("a reason");
        assert_eq!(skip.reason, "its partner in the duet, m/default/b/cpu, is skipped");
        assert_eq!((plan.runnable().count(), check_selection(&plan)), (0, Ok(())));
    }
}
