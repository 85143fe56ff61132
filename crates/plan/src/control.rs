//! Which cells get an A/A copy: the check that the measurement itself passes (method 8.2).

use super::{Plan, RandomStream};
use experiment::Aa;
use statistics::random::Xoshiro256PlusPlus;

/// Chooses the cells that are measured twice, after every skip is known.
///
/// A group's control is its baseline, or its first cell that runs where the baseline does not. `auto` takes one group,
/// by the seed, among those that run; the choice among all groups is the same on every host.
pub fn place_controls(plan: &mut Plan, aa: Aa) {
    let control = |group: usize| {
        let group = &plan.groups[group];
        let runs = |cell: &u32| plan.cells[*cell as usize].skip.is_none();
        group.baseline.filter(runs).or_else(|| group.cells.iter().copied().find(runs))
    };
    let mut order: Vec<usize> = (0..plan.groups.len()).collect();
    plan.controls = match aa {
        Aa::Off => Vec::new(),
        Aa::Group => order.into_iter().filter_map(control).collect(),
        Aa::Auto => {
            Xoshiro256PlusPlus::seed_from_u64(RandomStream::Control.seed(plan.seed)).shuffle(&mut order);
            // A group in which something is compared says more than one in which nothing is.
            let compared = |group: &usize| plan.groups[*group].cells.len() > 1;
            // Of two sides, what is the same on both is what the machine shows itself by.
            let single =
                plan.product.is_of_pairs.then(|| order.iter().copied().find(|group| !compared(group))).flatten();
            let several = single.into_iter().chain(order.iter().copied().filter(compared));
            several.chain(order.iter().copied()).find_map(control).into_iter().collect()
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Skip, expand};

    fn plan() -> Plan {
        let text = "backend: mock\nmodels: [m, n]\nvariants: [a, b]";
        let spec = spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        expand(&spec.experiment).expect("a plan")
    }

    #[test]
    fn one_group_or_every_group_or_none() {
        let mut plan = plan();
        place_controls(&mut plan, Aa::Group);
        assert_eq!(plan.controls, [0, 2]);
        place_controls(&mut plan, Aa::Off);
        assert!(plan.controls.is_empty());
        place_controls(&mut plan, Aa::Auto);
        assert_eq!(plan.controls.len(), 1);
        assert!(plan.is_baseline(&plan.cells[plan.controls[0] as usize]));
    }

    #[test]
    fn a_cell_that_does_not_run_is_no_control() {
        let mut plan = plan();
        let skip = || Skip { kind: crate::SkipKind::Device, reason: "not here".to_owned(), remedy: None };
        for cell in [0, 2, 3] {
            plan.mark_skipped(cell, skip());
        }
        place_controls(&mut plan, Aa::Auto);
        assert_eq!(plan.controls, [1]);
        plan.mark_skipped(1, skip());
        place_controls(&mut plan, Aa::Group);
        assert!(plan.controls.is_empty());
    }

    #[test]
    fn a_calibration_is_the_baseline_and_slower_copies() {
        let text = "backend: mock\nmodels: [m]\nvariants: [a, b]\nruns: 6\nmatrix: { exclude: [{ variant: b }] }";
        let spec = spec::parse("x.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let derived = experiment::calibration(
            &spec.experiment,
            &[base::quantity::Ratio(0.03), base::quantity::Ratio(0.1)],
            experiment::Design::Blocks,
        );
        let names: Vec<&str> = derived.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["a", "same", "slower-3pct", "slower-10pct"]);
        assert_eq!((derived.runs, derived.name.as_str()), (spec.experiment.runs, "x-calibration"));
        assert!(derived.matrix.exclude.is_empty());
        let plan = expand(&derived).expect("a plan");
        assert_eq!(plan.baseline.map(|baseline| baseline.name), Some("a".to_owned()));
    }
}
