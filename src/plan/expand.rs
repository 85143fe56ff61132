//! The product of the axes, reduced by `exclude`, extended by `include`, and cut into groups.

use std::collections::{HashMap, HashSet};

use super::compared::Compared;
use super::select::CompiledSelector;
use super::{Cell, CellId, Coordinates, Group, ONLY_RUNTIME, Plan, Product};
use crate::spec::model::{Axis, Experiment, InputPoint, Selector};

/// The largest matrix that is planned. A million cells of ten runs at two seconds take eight months.
pub const MAX_CELLS: u64 = 1_000_000;

/// Why an experiment has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The product is larger than [`MAX_CELLS`].
    #[error("the matrix has {cells} cells ({product}); at most {MAX_CELLS} can be planned")]
    TooManyCells {
        /// Size of the product.
        cells: u64,
        /// The factors, as `20 models x 10 variants`.
        product: String,
    },
    /// Axes of a zip differ in length.
    #[error("`matrix.zip` walks {axes} together, but their lengths differ: {lengths}")]
    UnequalZip {
        /// The axes.
        axes: String,
        /// Their lengths.
        lengths: String,
    },
    /// A zip over inputs where a model brings its own.
    #[error("`matrix.zip` walks inputs with another axis, but model `{model}` has inputs of its own")]
    ZipOfOwnInputs {
        /// The model.
        model: String,
    },
    /// An `include` that does not name exactly one cell.
    #[error(
        "`matrix.include` {selector} names {found} cells; name each axis that has more than one entry, without globs"
    )]
    IncludeNotOne {
        /// The entry as written.
        selector: String,
        /// How many cells it names.
        found: usize,
    },
    /// An `include` of a cell that is there.
    #[error("`matrix.include` adds {cell}, which is in the matrix already")]
    IncludeTwice {
        /// The cell.
        cell: String,
    },
    /// A `compare.baseline` that is more than one cell of a group.
    #[error("`compare.baseline` {selector} names {cells}, which would be compared with each other; name one of them")]
    BaselineNotOne {
        /// The selector as written.
        selector: String,
        /// Two of the cells that it names.
        cells: String,
    },
    /// A `compare.baseline` that is no cell.
    #[error("`compare.baseline` {selector} matches no cell")]
    BaselineNone {
        /// The selector as written.
        selector: String,
    },
    /// Nothing is left.
    #[error("no cell is left: `matrix.exclude` takes all {total} out")]
    Empty {
        /// Cells of the product.
        total: u64,
    },
}

/// The indices of one cell, in the order of [`Axis::ALL`].
pub(super) type Point = [u32; Axis::ALL.len()];

/// Expands an experiment into its plan; pure, and byte for byte the same for the same experiment.
///
/// # Errors
///
/// When the matrix is too large or empty, a zip does not fit, or an `include` does not name exactly one new cell.
pub fn expand(experiment: &Experiment) -> Result<Plan, PlanError> {
    let axes = Axes::new(experiment);
    let wheels = axes.wheels(experiment)?;
    let mut product = axes.product(&wheels);
    if product.total > MAX_CELLS {
        return Err(PlanError::TooManyCells { cells: product.total, product: product.to_string() });
    }
    let mut points = axes.points(&wheels);
    axes.exclude(&experiment.matrix.exclude, &mut points, &mut product);
    axes.include(&experiment.matrix.include, &mut points, &mut product)?;
    if points.is_empty() {
        return Err(PlanError::Empty { total: product.total });
    }
    let compared = axes.compared(experiment.compare.baseline.as_ref());
    let (cells, mut groups) = axes.cells(&points, &compared);
    let baseline = axes.baseline(&compared, &points, &mut groups)?;
    let Axes { models, inputs, variants, devices, runtimes, .. } = axes;
    Ok(Plan {
        models,
        inputs,
        variants,
        devices,
        runtimes,
        cells,
        groups,
        baseline,
        skips: Vec::new(),
        product,
        runs: experiment.runs,
        rounds: 1,
        seed: experiment.seed,
        controls: Vec::new(),
    })
}

/// One factor of the product: axes that walk together.
struct Wheel {
    axes: Vec<Axis>,
}

pub(super) struct Axes {
    pub(super) models: Vec<String>,
    inputs: Vec<InputPoint>,
    pub(super) variants: Vec<String>,
    pub(super) devices: Vec<String>,
    /// Empty where the specification leaves the one to perfrun.
    pub(super) runtimes: Vec<String>,
    /// Indices into `inputs` for each model.
    inputs_of: Vec<Vec<u32>>,
    own_inputs: bool,
}

impl Axes {
    fn new(experiment: &Experiment) -> Self {
        let mut inputs = experiment.inputs.clone();
        let shared: Vec<u32> = (0..inputs.len() as u32).collect();
        let mut own_inputs = false;
        let inputs_of = experiment
            .models
            .iter()
            .map(|model| match &model.inputs {
                Some(own) => {
                    own_inputs = true;
                    let first = inputs.len() as u32;
                    inputs.extend(own.iter().cloned());
                    (first..inputs.len() as u32).collect()
                }
                None => shared.clone(),
            })
            .collect();
        Axes {
            models: experiment.models.iter().map(|model| model.name.clone()).collect(),
            inputs,
            variants: experiment.variants.iter().map(|variant| variant.name.clone()).collect(),
            devices: experiment.devices.iter().map(|device| device.label()).collect(),
            runtimes: experiment.runtimes.iter().map(|runtime| runtime.name.clone()).collect(),
            inputs_of,
            own_inputs,
        }
    }

    fn length(&self, axis: Axis) -> usize {
        match axis {
            Axis::Models => self.models.len(),
            Axis::Inputs => self.inputs_of.first().map_or(0, Vec::len),
            Axis::Variants => self.variants.len(),
            Axis::Devices => self.devices.len(),
            Axis::Runtimes => self.runtimes.len(),
        }
    }

    /// The factors in plan order; a zip stands where its first axis would.
    fn wheels(&self, experiment: &Experiment) -> Result<Vec<Wheel>, PlanError> {
        let mut wheels: Vec<Wheel> = Vec::new();
        for axis in Axis::ALL {
            // An axis that nobody wrote is no factor.
            if axis == Axis::Runtimes && self.runtimes.is_empty() {
                continue;
            }
            if wheels.iter().any(|wheel| wheel.axes.contains(&axis)) {
                continue;
            }
            let mut axes = experiment.matrix.zip.iter().find(|zip| zip.contains(&axis)).cloned().unwrap_or(vec![axis]);
            axes.sort();
            self.check_zip(&axes, experiment)?;
            wheels.push(Wheel { axes });
        }
        Ok(wheels)
    }

    fn check_zip(&self, axes: &[Axis], experiment: &Experiment) -> Result<(), PlanError> {
        if axes.len() < 2 {
            return Ok(());
        }
        if axes.contains(&Axis::Inputs)
            && let Some(model) = experiment.models.iter().find(|model| model.inputs.is_some())
        {
            return Err(PlanError::ZipOfOwnInputs { model: model.name.clone() });
        }
        let lengths: Vec<usize> = axes.iter().map(|axis| self.length(*axis)).collect();
        if lengths.iter().any(|length| *length != lengths[0]) {
            let texts = axes.iter().zip(&lengths).map(|(axis, length)| format!("{length} {}", axis.plural()));
            return Err(PlanError::UnequalZip {
                axes: join(axes, " and "),
                lengths: texts.collect::<Vec<_>>().join(", "),
            });
        }
        Ok(())
    }

    fn product(&self, wheels: &[Wheel]) -> Product {
        let alone = wheels.iter().any(|wheel| wheel.axes == [Axis::Inputs]);
        let uneven_inputs = self.own_inputs && alone;
        let factors: Vec<(u64, String)> =
            wheels.iter().map(|wheel| (self.length(wheel.axes[0]) as u64, join(&wheel.axes, "+"))).collect();
        let others = |skipped: &[Axis]| {
            wheels
                .iter()
                .filter(|wheel| !wheel.axes.iter().any(|axis| skipped.contains(axis)))
                .fold(1_u64, |product, wheel| product.saturating_mul(self.length(wheel.axes[0]) as u64))
        };
        let total = if uneven_inputs {
            let pairs: u64 = self.inputs_of.iter().map(|inputs| inputs.len() as u64).sum();
            pairs.saturating_mul(others(&[Axis::Models, Axis::Inputs]))
        } else {
            others(&[])
        };
        Product { factors, uneven_inputs, total, ..Product::default() }
    }

    /// Every point of the product, the last wheel fastest.
    fn points(&self, wheels: &[Wheel]) -> Vec<Point> {
        let mut points: Vec<Point> = vec![Point::default()];
        for wheel in wheels {
            let mut next = Vec::new();
            for point in &points {
                let steps = if wheel.axes == [Axis::Inputs] {
                    self.inputs_of[point[0] as usize].len()
                } else {
                    self.length(wheel.axes[0])
                };
                for step in 0..steps as u32 {
                    let mut longer = *point;
                    for axis in &wheel.axes {
                        longer[*axis as usize] = step;
                    }
                    if wheel.axes == [Axis::Inputs] {
                        longer[1] = self.inputs_of[point[0] as usize][step as usize];
                    }
                    next.push(longer);
                }
            }
            points = next;
        }
        points
    }

    pub(super) fn compile(&self, selector: &Selector) -> CompiledSelector {
        CompiledSelector::new(selector, &self.models, &self.inputs, &self.variants, &self.devices, &self.runtimes)
    }

    fn exclude(&self, selectors: &[Selector], points: &mut Vec<Point>, product: &mut Product) {
        let before = points.len();
        for selector in selectors {
            let compiled = self.compile(selector);
            let count = points.len();
            points.retain(|point| !compiled.matches_indices(*point));
            if points.len() == count {
                product.idle_selectors.push(format!("exclude {selector}"));
            }
        }
        product.excluded = (before - points.len()) as u64;
    }

    fn include(&self, selectors: &[Selector], points: &mut Vec<Point>, product: &mut Product) -> Result<(), PlanError> {
        if selectors.is_empty() {
            return Ok(());
        }
        let mut present: HashSet<Point> = points.iter().copied().collect();
        for selector in selectors {
            let compiled = self.compile(selector);
            let named: Vec<Point> =
                self.all_points().filter(|point| compiled.matches_indices(*point)).take(2).collect();
            let [point] = named[..] else {
                return Err(PlanError::IncludeNotOne { selector: selector.to_string(), found: named.len() });
            };
            if !present.insert(point) {
                return Err(PlanError::IncludeTwice { cell: self.coordinates(point).path() });
            }
            points.push(point);
            product.included += 1;
        }
        Ok(())
    }

    /// The full product, zips ignored: what an `include` may name.
    fn all_points(&self) -> impl Iterator<Item = Point> + '_ {
        (0..self.models.len() as u32).flat_map(move |model| {
            self.inputs_of[model as usize].iter().flat_map(move |&input| {
                (0..self.variants.len() as u32).flat_map(move |variant| {
                    (0..self.devices.len() as u32).flat_map(move |device| {
                        let runtimes = 0..self.runtimes.len().max(1) as u32;
                        runtimes.map(move |runtime| [model, input, variant, device, runtime])
                    })
                })
            })
        })
    }

    pub(super) fn coordinates(&self, [model, input, variant, device, runtime]: Point) -> Coordinates<'_> {
        Coordinates {
            model: &self.models[model as usize],
            input: &self.inputs[input as usize].name,
            variant: &self.variants[variant as usize],
            device: &self.devices[device as usize],
            runtime: self.runtimes.get(runtime as usize).map_or(ONLY_RUNTIME, String::as_str),
        }
    }

    /// Cells with their ids, and the groups of those that differ on the compared axes alone.
    fn cells(&self, points: &[Point], compared: &Option<Compared>) -> (Vec<Cell>, Vec<Group>) {
        let compared = compared.as_ref().map_or(&[][..], |compared| &compared.axes);
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of: HashMap<Point, u32> = HashMap::with_capacity(points.len());
        let mut cells = Vec::with_capacity(points.len());
        for (index, point) in points.iter().enumerate() {
            let mut key = *point;
            for axis in compared {
                key[*axis as usize] = u32::MAX;
            }
            let group = *group_of.entry(key).or_insert_with(|| {
                groups.push(Group { cells: Vec::new(), baseline: None });
                groups.len() as u32 - 1
            });
            groups[group as usize].cells.push(index as u32);
            let [model, input, variant, device, runtime] = *point;
            let id = CellId::of(&self.coordinates(*point));
            cells.push(Cell { id, model, input, variant, device, runtime, group, skip: None });
        }
        (cells, groups)
    }
}

fn join(axes: &[Axis], separator: &str) -> String {
    axes.iter().map(|axis| axis.plural()).collect::<Vec<_>>().join(separator)
}

impl std::fmt::Display for Product {
    /// `2 models x 2 inputs x 3 variants`, factors of one left out where others remain.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Baseline;

    fn experiment(yaml: &str) -> Experiment {
        let text = format!("backend: mock\n{yaml}");
        crate::spec::parse("test.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec").experiment
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
