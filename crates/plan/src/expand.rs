//! The product of the axes, reduced by `exclude`, extended by `include`, and cut into groups.

use std::collections::{HashMap, HashSet};

use super::compared::Compared;
use super::{Cell, CellId, Group, Plan, PlanError, Product, pairs};
use experiment::{Axis, Combine, CompiledSelector, Experiment, Factor, Matrix, MatrixError, Point, Selector, Space};

/// Expands an experiment into its plan; pure, and byte for byte the same for the same experiment.
///
/// # Errors
///
/// When the matrix is too large or empty, a zip does not fit, or an `include` does not name exactly one new cell.
pub fn expand(experiment: &Experiment) -> Result<Plan, PlanError> {
    if !experiment.pairs.is_empty() {
        return pairs::expand(experiment);
    }
    let (space, matrix) = (Space::of(experiment), &experiment.matrix);
    if let Some((.., problem)) = space.check_zip(&matrix.zip).into_iter().next() {
        return Err(problem.into());
    }
    let factors = space.factors(&matrix.zip);
    let mut product = product(&space, &factors, matrix)?;
    if experiment.backend.runs_commands() {
        // The other axes have what nobody wrote.
        product.factors = vec![(product.total, "commands".to_owned())];
    }
    let mut points = match matrix.design {
        Combine::Product => points(&space, &factors),
        Combine::OneAtATime => one_at_a_time(&space, &factors, experiment.compare.baseline.as_ref()),
    };
    exclude(&space, &matrix.exclude, &mut points, &mut product);
    include(&space, &matrix.include, &mut points, &mut product)?;
    if points.is_empty() {
        return Err(PlanError::Empty { total: product.total });
    }
    let compared = Compared::of(&space, experiment.compare.baseline.as_ref());
    let (cells, mut groups) = cells(&space, &points, compared.as_ref());
    let baseline = compared.map(|compared| compared.baseline(&space, &points, &mut groups)).transpose()?;
    Ok(Plan {
        axes: space.entries,
        cells,
        groups,
        baseline,
        skips: Vec::new(),
        product,
        runs: experiment.interim_analyses().most(),
        rounds: 1,
        seed: experiment.seed,
        controls: Vec::new(),
    })
}

fn product(space: &Space, factors: &[Factor], matrix: &Matrix) -> Result<Product, MatrixError> {
    let factor = |factor: &Factor| {
        let words: Vec<&str> = factor.axes.iter().map(|axis| axis.plural()).collect();
        (space.steps(factor, &Point::default()).len() as u64, words.join("+"))
    };
    Ok(Product {
        factors: factors.iter().map(factor).collect(),
        uneven_inputs: space.is_uneven(factors),
        design: matrix.design,
        total: space.size(factors, matrix.design)?,
        ..Product::default()
    })
}

/// Every point of the product, the last factor fastest. The models' stands before that of their inputs.
fn points(space: &Space, factors: &[Factor]) -> Vec<Point> {
    let mut points: Vec<Point> = vec![Point::default()];
    for factor in factors {
        let mut next = Vec::new();
        for point in &points {
            next.extend(space.steps(factor, point).map(|step| step_to(*point, factor, step)));
        }
        points = next;
    }
    points
}

fn step_to(point: Point, factor: &Factor, step: u32) -> Point {
    factor.axes.iter().fold(point, |point, axis| point.with(*axis, step))
}

/// For each model the baseline, and every point that differs from it in one other factor alone; in plan order.
fn one_at_a_time(space: &Space, factors: &[Factor], baseline: Option<&Selector>) -> Vec<Point> {
    let baseline = baseline.map(|selector| CompiledSelector::new(selector, &space.entries));
    let is_baseline = |factor: &Factor, step: u32| {
        baseline.as_ref().is_none_or(|baseline| factor.axes.iter().all(|axis| baseline.allows(*axis, step)))
    };
    let (of_models, others): (Vec<&Factor>, Vec<&Factor>) =
        factors.iter().partition(|factor| factor.axes.contains(&Axis::Models));
    let models = of_models
        .iter()
        .flat_map(|factor| space.steps(factor, &Point::default()).map(|step| step_to(Point::default(), factor, step)));
    let mut points = Vec::new();
    for model in models {
        let centre = others.iter().try_fold(model, |point, factor| {
            let mut steps = space.steps(factor, &point);
            let first = steps.start;
            let step = steps.find(|step| is_baseline(factor, *step)).unwrap_or(first);
            (step < steps.end.max(first + 1)).then(|| step_to(point, factor, step))
        });
        let Some(centre) = centre else { continue };
        points.push(centre);
        for factor in &others {
            let away = space.steps(factor, &centre).map(|step| step_to(centre, factor, step));
            points.extend(away.filter(|point| *point != centre));
        }
    }
    points.sort_unstable();
    points
}

fn exclude(space: &Space, selectors: &[Selector], points: &mut Vec<Point>, product: &mut Product) {
    let before = points.len();
    for selector in selectors {
        let compiled = CompiledSelector::new(selector, &space.entries);
        let count = points.len();
        points.retain(|point| !compiled.matches(point));
        if points.len() == count {
            product.idle_selectors.push(format!("exclude {selector}"));
        }
    }
    product.excluded = (before - points.len()) as u64;
}

fn include(
    space: &Space,
    selectors: &[Selector],
    points: &mut Vec<Point>,
    product: &mut Product,
) -> Result<(), PlanError> {
    if selectors.is_empty() {
        return Ok(());
    }
    let mut present: HashSet<Point> = points.iter().copied().collect();
    for selector in selectors {
        let point = space.included(selector)?;
        if !present.insert(point) {
            return Err(PlanError::IncludeTwice { cell: space.entries.coordinates(&point).path() });
        }
        points.push(point);
        product.included += 1;
    }
    Ok(())
}

/// Cells with their ids, and the groups of those that differ on the compared axes alone.
fn cells(space: &Space, points: &[Point], compared: Option<&Compared>) -> (Vec<Cell>, Vec<Group>) {
    let compared = compared.map_or(&[][..], |compared| &compared.axes);
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of: HashMap<Point, u32> = HashMap::with_capacity(points.len());
    let mut cells = Vec::with_capacity(points.len());
    for (index, at) in points.iter().enumerate() {
        let key = compared.iter().fold(*at, |key, axis| key.with(*axis, u32::MAX));
        let group = *group_of.entry(key).or_insert_with(|| {
            groups.push(Group { cells: Vec::new(), baseline: None, part: 0 });
            groups.len() as u32 - 1
        });
        groups[group as usize].cells.push(index as u32);
        let id = CellId::of(&space.entries.coordinates(at));
        cells.push(Cell { id, at: *at, group, skip: None });
    }
    (cells, groups)
}

impl std::fmt::Display for Product {
    /// `2 models x 2 inputs x 3 variants`; one at a time `2 models x (baseline + 1 input + 2 variants)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.design == Combine::OneAtATime {
            return self.fmt_one_at_a_time(f);
        }
        let factors: Vec<String> = self
            .factors
            .iter()
            .map(|(length, name)| match length {
                1 => format!("1 {}", name.strip_suffix('s').unwrap_or(name)),
                _ if self.uneven_inputs && name == "inputs" => "their inputs".to_owned(),
                _ => format!("{length} {name}"),
            })
            .collect();
        f.write_str(&factors.join(" x "))
    }
}

impl Product {
    fn fmt_one_at_a_time(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counted = |length: u64, name: &str| match length {
            1 => {
                let words: Vec<&str> = name.split('+').map(|word| word.strip_suffix('s').unwrap_or(word)).collect();
                format!("1 {}", words.join("+"))
            }
            _ => format!("{length} {name}"),
        };
        let mut away = vec!["baseline".to_owned()];
        for (length, name) in &self.factors {
            if name.split('+').any(|axis| axis == Axis::Models.plural()) {
                write!(f, "{} x ", counted(*length, name))?;
            } else if self.uneven_inputs && name == Axis::Inputs.plural() {
                away.push("their other inputs".to_owned());
            } else if *length > 1 {
                away.push(counted(length - 1, name));
            }
        }
        write!(f, "({})", away.join(" + "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Baseline;

    fn experiment(yaml: &str) -> Experiment {
        let text = format!("backend: mock\n{yaml}");
        spec::parse("test.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec").experiment
    }

    fn paths(plan: &Plan) -> Vec<String> {
        plan.cells.iter().map(|cell| plan.path(cell)).collect()
    }

    #[test]
    fn the_matrix_is_the_product_of_its_axes() {
        let plan =
            expand(&experiment("models: [m, n]\ninputs: { batch: [1, 8] }\nvariants: [a, b, c]")).expect("a plan");
        assert_eq!(plan.cells.len(), 12);
        assert_eq!(plan.groups.len(), 4);
        assert_eq!(plan.product.to_string(), "2 models x 2 inputs x 3 variants x 1 device");
        assert_eq!(paths(&plan)[..4], ["m/b1/a/cpu", "m/b1/b/cpu", "m/b1/c/cpu", "m/b8/a/cpu"]);
        let baseline = Baseline { axes: vec![Axis::Variants], name: "a".to_owned(), is_default: true };
        assert_eq!(plan.baseline, Some(baseline));
    }

    #[test]
    fn one_at_a_time_steps_away_from_the_baseline_in_one_factor_alone() {
        let spec = "models: [m, n]\ninputs: { batch: [1, 8] }\nvariants: [a, b, c]\nmatrix: { design: one_at_a_time }";
        let plan = expand(&experiment(spec)).expect("a plan");
        assert_eq!(paths(&plan)[..4], ["m/b1/a/cpu", "m/b1/b/cpu", "m/b1/c/cpu", "m/b8/a/cpu"]);
        assert_eq!(plan.cells.len(), 8);
        assert_eq!(
            (plan.product.total, plan.product.to_string().as_str()),
            (8, "2 models x (baseline + 1 input + 2 variants)")
        );
        let named = format!("{spec}\ncompare: {{ baseline: {{ variant: b, input: b8 }} }}");
        let plan = expand(&experiment(&named)).expect("a plan");
        assert_eq!(paths(&plan)[..4], ["m/b1/b/cpu", "m/b8/a/cpu", "m/b8/b/cpu", "m/b8/c/cpu"]);
        assert_eq!(plan.groups.len(), 2);
    }

    #[test]
    fn one_at_a_time_models_keep_their_own_inputs_and_a_zip_is_one_step() {
        let spec = "models: [m, { name: n, inputs: { batch: [4, 5] } }]\ninputs: { batch: 1 }\nvariants: [a, b]\n\
            devices: [cpu, cuda]\nmatrix: { design: one_at_a_time, zip: [[variants, devices]] }";
        let plan = expand(&experiment(spec)).expect("a plan");
        assert_eq!(paths(&plan), ["m/b1/a/cpu", "m/b1/b/cuda:0", "n/b4/a/cpu", "n/b4/b/cuda:0", "n/b5/a/cpu"]);
        assert_eq!(plan.product.to_string(), "2 models x (baseline + their other inputs + 1 variant+device)");
        assert_eq!(plan.product.total, 5);
    }

    #[test]
    fn a_zip_counts_as_one_axis() {
        let spec = "models: [m, n]\ninputs: { batch: [1, 8] }\nmatrix: { zip: [[models, inputs]] }";
        let plan = expand(&experiment(spec)).expect("a plan");
        assert_eq!(paths(&plan), ["m/b1/fp32/cpu", "n/b8/fp32/cpu"]);
        assert_eq!(plan.product.to_string(), "2 models+inputs x 1 variant x 1 device");
    }

    #[test]
    fn exclude_takes_out_and_include_adds() {
        let spec = "models: [m, n]\nvariants: [a, b]\nmatrix:\n  exclude: [{ model: n }]\n  include: [{ model: n, variant: b }]";
        let plan = expand(&experiment(spec)).expect("a plan");
        assert_eq!(paths(&plan), ["m/default/a/cpu", "m/default/b/cpu", "n/default/b/cpu"]);
        assert_eq!((plan.product.excluded, plan.product.included), (2, 1));
    }

    #[test]
    fn an_include_that_is_there_already_is_an_error() {
        let spec = "models: [m]\nvariants: [a, b]\nmatrix: { include: [{ variant: b }] }";
        assert!(matches!(expand(&experiment(spec)), Err(PlanError::IncludeTwice { .. })));
    }

    #[test]
    fn a_model_may_bring_its_own_inputs() {
        let spec = "models: [m, { name: n, inputs: { batch: 4, sequence: [16, 32] } }]\ninputs: { batch: [1, 8, 9] }";
        let plan = expand(&experiment(spec)).expect("a plan");
        let expected =
            ["m/b1/fp32/cpu", "m/b8/fp32/cpu", "m/b9/fp32/cpu", "n/b4-sequence16/fp32/cpu", "n/b4-sequence32/fp32/cpu"];
        assert_eq!(paths(&plan), expected);
        assert_eq!(plan.product.total, 5);
    }
}
