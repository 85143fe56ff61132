//! Sums over all outputs and input sets that are compared.

use super::equality::{OutputPairs, changed};
use super::relation::Relation;
use super::{Agreement, Equal, Fidelity, ItemsKept, agreement};
use experiment::FidelityLimits;
use files::array::Array;
use onnx::ElementType;

/// Whether elements of this type are classes or indices: equal or not, however far apart.
fn is_class(element: &ElementType) -> bool {
    use ElementType::{Bool, Int32, Int64, String, Uint32, Uint64};
    matches!(element, Bool | Int32 | Int64 | Uint32 | Uint64 | String)
}

/// Sums over everything that was compared.
#[derive(Default)]
pub(super) struct Sums {
    abs: f64,
    rel: f64,
    numbers: u64,
    angles: Vec<Angle>,
    max_abs: f64,
    sum_abs: f64,
    max_scaled: Option<f64>,
    sum_scaled: f64,
    scaled_elements: u64,
    max_scaled_ulp: Option<u64>,
    close: u64,
    agreement: Option<Agreement>,
    least_cosine: Option<f64>,
    items_kept: ItemsKept,
    /// Some numbers are no scores of items.
    has_unscored_numbers: bool,
    equal: Vec<Equal>,
    /// Each output with the reference's, where no limit says how like it has to be.
    relations: Option<Vec<Relation>>,
    misses: Vec<String>,
    misshaped: Vec<String>,
}

/// What the cosine of an output is made of, over all input sets: of the few numbers of one set it would be left to chance.
#[derive(Debug)]
struct Angle {
    output: String,
    product: f64,
    candidate_squared: f64,
    reference_squared: f64,
}

impl Angle {
    fn cosine(&self) -> f64 {
        cosine(self.product, self.candidate_squared, self.reference_squared)
    }
}

/// Whether nothing says how like the reference's outputs have to be.
fn has_no_limit(limits: &FidelityLimits) -> bool {
    *limits == FidelityLimits::default()
}

impl Sums {
    pub(super) fn new(limits: &FidelityLimits) -> Self {
        Sums {
            abs: limits.abs.unwrap_or(0.0),
            rel: limits.rel.unwrap_or(0.0),
            least_cosine: limits.cosine,
            relations: has_no_limit(limits).then(Vec::new),
            ..Sums::default()
        }
    }

    pub(super) fn miss(&mut self, what: String) {
        if !self.misses.contains(&what) {
            self.misses.push(what);
        }
    }

    /// A shape that depends on the input differs in another way for every set: the first is named.
    fn misshaped(&mut self, output: &Array, what: String) {
        if !self.misshaped.contains(&output.name) {
            self.misshaped.push(output.name.clone());
            self.miss(what);
        }
    }

    pub(super) fn add(&mut self, reference: &Array, candidate: &Array, all: OutputPairs<'_>) {
        let name = &reference.name;
        if reference.keys != candidate.keys {
            let lacks = |left: &Array, right: &Array| left.keys.iter().find(|key| !right.keys.contains(key)).cloned();
            let what = match (lacks(reference, candidate), lacks(candidate, reference)) {
                (Some(key), _) => format!("output `{name}` lacks the key `{key}`"),
                (None, Some(key)) => format!("output `{name}` has the key `{key}`, which the reference's lacks"),
                (None, None) => format!("output `{name}` has other keys than the reference's"),
            };
            return self.misshaped(reference, what);
        }
        if reference.shape != candidate.shape {
            let (found, expected) = (&candidate.shape, &reference.shape);
            let what = format!("output `{name}` has the shape {found:?}, the reference's {expected:?}");
            return self.misshaped(reference, what);
        }
        let is_text = |array: &Array| array.element == ElementType::String;
        if is_text(reference) != is_text(candidate) {
            let (found, expected) = (&candidate.element, &reference.element);
            return self.miss(format!("output `{name}` is {found}, the reference's {expected}"));
        }
        if is_class(&reference.element) {
            self.add_classes(reference, candidate, all);
        } else {
            self.add_numbers(reference, candidate);
        }
    }

    fn add_classes(&mut self, reference: &Array, candidate: &Array, all: OutputPairs<'_>) {
        let changed = changed(reference, candidate);
        let (elements, tied) = (reference.len() as u64, all.tied(reference, &changed));
        let of_set =
            Equal { output: reference.name.clone(), elements, equal: elements - changed.len() as u64 + tied, tied };
        match self.equal.iter_mut().find(|known| known.output == of_set.output) {
            Some(known) => known.add(&of_set),
            None => self.equal.push(of_set),
        }
        if let Some(relation) = self.relation(&reference.name) {
            relation.add_classes(reference, candidate);
        }
    }

    fn add_numbers(&mut self, reference: &Array, candidate: &Array) {
        let (Some(expected), Some(found)) = (reference.numbers(), candidate.numbers()) else { return };
        if found.iter().zip(&expected).any(|(a, b)| !(a.is_finite() && b.is_finite()) && a != b) {
            return self.miss(format!("output `{}` holds NaN or infinity", reference.name));
        }
        let step = if reference.element.is_float() { 0.0 } else { 1.0 };
        let (mut largest, mut sum) = (0.0_f64, 0.0);
        let (mut product, mut candidate_squared, mut reference_squared) = (0.0, 0.0, 0.0);
        for (a, b) in found.iter().zip(&expected) {
            // Equal infinities are equal.
            let difference = if a == b { 0.0 } else { (a - b).abs() };
            sum += difference;
            largest = largest.max(difference);
            self.close += u64::from(difference <= (self.abs + self.rel * b.abs()).max(step));
            if a.is_finite() && b.is_finite() {
                product += a * b;
                candidate_squared += a * a;
                reference_squared += b * b;
            }
        }
        self.sum_abs += sum;
        self.max_abs = self.max_abs.max(largest);
        self.scale(&expected, largest, sum, reference.element.is_float());
        self.numbers += expected.len() as u64;
        if let Some(relation) = self.relation(&reference.name) {
            relation.add_numbers(&expected, &found);
        }
        match self.angles.iter_mut().find(|angle| angle.output == reference.name) {
            Some(angle) => {
                angle.product += product;
                angle.candidate_squared += candidate_squared;
                angle.reference_squared += reference_squared;
            }
            None => self.angles.push(Angle {
                output: reference.name.clone(),
                product,
                candidate_squared,
                reference_squared,
            }),
        }
        match agreement::of_scores(reference, &expected, &found) {
            Some(agreement) => {
                self.agreement.get_or_insert_default().add(agreement);
                self.add_items(reference, &expected, &found);
            }
            None => self.has_unscored_numbers = true,
        }
    }

    fn relation(&mut self, output: &str) -> Option<&mut Relation> {
        let relations = self.relations.as_mut()?;
        let known = relations.iter().position(|relation| relation.output == output).unwrap_or_else(|| {
            relations.push(Relation::new(output));
            relations.len() - 1
        });
        relations.get_mut(known)
    }

    /// What has nothing to do with the reference's, in words.
    fn unrelated(&self) -> Vec<String> {
        let has_several = self.angles.len() + self.equal.len() > 1;
        let of_output = |relation: &Relation| {
            let angle = self.angles.iter().find(|angle| angle.output == relation.output);
            let what = match angle {
                Some(angle) => relation.unrelated_numbers(angle.cosine()),
                None => relation.unrelated_classes(),
            };
            let output = if has_several { format!("{}: ", relation.output) } else { String::new() };
            Some(format!("{output}{}", what?))
        };
        self.relations.iter().flatten().filter_map(of_output).collect()
    }

    /// Counts the items of which the scores keep the least cosine.
    fn add_items(&mut self, reference: &Array, expected: &[f64], found: &[f64]) {
        let columns = reference.shape.last().map_or(1, |columns| (*columns).max(1) as usize);
        let product = |left: &[f64], right: &[f64]| left.iter().zip(right).map(|(a, b)| a * b).sum::<f64>();
        for (a, b) in found.chunks_exact(columns).zip(expected.chunks_exact(columns)) {
            let cosine = cosine(product(a, b), product(a, a), product(b, b));
            self.items_kept.items += 1;
            self.items_kept.kept += u64::from(self.least_cosine.is_none_or(|least| cosine >= least));
        }
    }

    /// Adds the differences of one output relative to its magnitude.
    fn scale(&mut self, reference: &[f64], largest: f64, sum: f64, is_float: bool) {
        let finite = reference.iter().map(|value| value.abs()).filter(|value| value.is_finite());
        let magnitude = finite.fold(0.0, f64::max);
        if magnitude == 0.0 {
            return;
        }
        self.max_scaled = Some(self.max_scaled.unwrap_or(0.0).max(largest / magnitude));
        self.sum_scaled += sum / magnitude;
        self.scaled_elements += reference.len() as u64;
        if is_float {
            let units = (largest / unit_in_last_place(magnitude)).round() as u64;
            self.max_scaled_ulp = Some(self.max_scaled_ulp.unwrap_or(0).max(units));
        }
    }

    pub(super) fn result(mut self, input_sets: u64, limits: &FidelityLimits) -> Fidelity {
        self.unrelated().into_iter().for_each(|what| self.miss(what));
        let share = |count: u64, all: u64| if all == 0 { 1.0 } else { count as f64 / all as f64 };
        let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        let widest = self.angles.iter().min_by(|left, right| left.cosine().total_cmp(&right.cosine()));
        let has_several = self.angles.len() + self.equal.len() > 1;
        let has_limits = (limits.abs.is_some() || limits.rel.is_some()) && self.numbers > 0;
        let is_classifier = !self.equal.is_empty()
            && !self.has_unscored_numbers
            && self.items_kept.items > 0
            && self.least_cosine.is_some();
        let mut found = Fidelity {
            language: None,
            input_sets,
            items_of_data: None,
            is_given: false,
            reference_varies: false,
            elements: Some(self.numbers + self.equal.iter().map(|equal| equal.elements).sum::<u64>()),
            cosine: widest.map(Angle::cosine),
            cosine_of: widest.filter(|_| has_several).map(|angle| angle.output.clone()),
            max_abs: self.max_abs,
            mean_abs: Some(mean(self.sum_abs, self.numbers)),
            max_scaled: self.max_scaled,
            mean_scaled: (self.scaled_elements > 0).then(|| mean(self.sum_scaled, self.scaled_elements)),
            max_scaled_ulp: self.max_scaled_ulp,
            close: has_limits.then(|| share(self.close, self.numbers)),
            agreement: self.agreement,
            items_kept: is_classifier.then_some(self.items_kept),
            equal: self.equal,
            misses: self.misses,
            is_judged: self.numbers > 0 && (limits.cosine.is_some() || limits.close.is_some() || limits.top1.is_some()),
        };
        found.judge(limits);
        found
    }
}

/// Cosine of two vectors from their products; two zeros are alike, one is not.
fn cosine(product: f64, left_squared: f64, right_squared: f64) -> f64 {
    match (left_squared > 0.0, right_squared > 0.0) {
        (true, true) => (product / (left_squared.sqrt() * right_squared.sqrt())).clamp(-1.0, 1.0),
        (false, false) => 1.0,
        _ => 0.0,
    }
}

/// The distance between adjacent float32 numbers at this magnitude.
pub(super) fn unit_in_last_place(magnitude: f64) -> f64 {
    // IEEE 754 binary32: exponents are stored plus 127, fractions have 23 bits; subnormals have the least exponent.
    let exponent = ((magnitude as f32).to_bits() >> 23) & 0xff;
    2.0_f64.powi(exponent.max(1) as i32 - 127 - 23)
}
