//! From observed activations to the ranges that 8 bits should cover.
//!
//! Input: values of activations, sample after sample; nothing is kept of them but extremes and counts. Output: a
//! [`Range`] for every activation, which always includes zero. Deliberately absent: running the model, and choosing data.
//!
//! [`Method::MinMax`] takes the extremes. [`Method::Percentile`] leaves out the same share of values at either end.
//! [`Method::Entropy`] leaves out what makes the quantised distribution most like the original one. The last two count
//! values in bins, which needs the extremes first, and so a second pass over the data:
//!
//! ```text
//! FirstPass::new(method)  --observe every sample-->  finish() -> Observed::Ranges
//!                                                             -> Observed::Again(SecondPass)  --observe--> ranges()
//! ```
//!
//! Sources: S. Migacz, 8-bit inference with TensorRT, GTC 2017 (entropy); `calibrate.py` of `onnxruntime.quantization`
//! (the same three methods); H. Wu et al., Integer quantization for deep learning inference, 2020, arXiv:2004.09602,
//! section 3.2 (how they compare).

mod divergence;
mod histogram;

use std::collections::BTreeMap;

use histogram::Histogram;

/// The values that an activation takes, as far as 8 bits should distinguish them.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct Range {
    /// At most 0.
    pub least: f32,
    /// At least 0.
    pub most: f32,
}

impl Range {
    /// The smallest range with both values and zero.
    pub fn new(least: f32, most: f32) -> Self {
        Range { least: least.min(0.0), most: most.max(0.0) }
    }

    /// The range that holds both.
    fn with(self, other: Range) -> Self {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// How a range is chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// All that was seen.
    MinMax,
    /// This share of what was seen, in percent: 99.99 leaves out 0.005 % at either end.
    Percentile(f64),
    /// What loses the least information.
    Entropy,
}

/// Values that are looked at together: the compiler makes vector instructions of a loop over an array of so many.
const LANES: usize = 16;

/// The range of the values, or `None` if one of them is not finite. There are billions of them to observe.
pub(crate) fn extremes(values: &[f32]) -> Option<Range> {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    let (mut least, mut most, mut zeros) = ([0.0_f32; LANES], [0.0_f32; LANES], [0.0_f32; LANES]);
    for chunk in chunks.iter().chain([&last]) {
        for lane in 0..LANES {
            let value = chunk[lane];
            least[lane] = if value < least[lane] { value } else { least[lane] };
            most[lane] = if value > most[lane] { value } else { most[lane] };
            // Zero, but NaN for infinities and NaN.
            zeros[lane] += value * 0.0;
        }
    }
    let is_finite = zeros.iter().all(|zero| *zero == 0.0);
    let range = || {
        let ends = least.iter().zip(&most).map(|(least, most)| Range { least: *least, most: *most });
        ends.fold(Range::default(), Range::with)
    };
    is_finite.then(range)
}

/// The pass that finds extremes.
#[derive(Clone, Debug)]
pub struct FirstPass {
    method: Method,
    /// `None` once a value was not finite: no range helps there.
    extremes: BTreeMap<String, Option<Range>>,
}

/// What the first pass gives.
#[derive(Clone, Debug)]
pub enum Observed {
    /// The ranges, for a method that needs the extremes only.
    Ranges(BTreeMap<String, Range>),
    /// The pass that counts; the same data again.
    Again(SecondPass),
}

impl FirstPass {
    /// Nothing observed yet.
    pub fn new(method: Method) -> Self {
        FirstPass { method, extremes: BTreeMap::new() }
    }

    /// Takes in values of an activation.
    pub fn observe(&mut self, tensor: &str, values: &[f32]) {
        let seen = extremes(values);
        match self.extremes.get_mut(tensor) {
            Some(range) => *range = range.zip(seen).map(|(range, seen)| range.with(seen)),
            None => drop(self.extremes.insert(tensor.to_owned(), seen)),
        }
    }

    /// The ranges, or the pass that finds them.
    pub fn finish(self) -> Observed {
        let finite = self.extremes.into_iter().filter_map(|(tensor, range)| Some((tensor, range?)));
        if self.method == Method::MinMax {
            return Observed::Ranges(finite.collect());
        }
        let histograms = finite.map(|(tensor, range)| (tensor, Histogram::new(range)));
        Observed::Again(SecondPass { method: self.method, histograms: histograms.collect() })
    }
}

/// The pass that counts values.
#[derive(Clone, Debug)]
pub struct SecondPass {
    method: Method,
    histograms: BTreeMap<String, Histogram>,
}

impl SecondPass {
    /// Takes in values of an activation; those beyond the extremes of the first pass count as these.
    pub fn observe(&mut self, tensor: &str, values: &[f32]) {
        if let Some(histogram) = self.histograms.get_mut(tensor) {
            histogram.add(values);
        }
    }

    /// The ranges.
    pub fn ranges(&self) -> BTreeMap<String, Range> {
        let range = |histogram: &Histogram| match self.method {
            Method::MinMax => histogram.range(),
            Method::Percentile(percentile) => histogram.middle(percentile / 100.0),
            Method::Entropy => divergence::least_divergent(histogram),
        };
        self.histograms.iter().map(|(tensor, histogram)| (tensor.clone(), range(histogram))).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn ranges(method: Method, samples: &[&[f32]]) -> BTreeMap<String, Range> {
        let mut first = FirstPass::new(method);
        samples.iter().for_each(|values| first.observe("t", values));
        match first.finish() {
            Observed::Ranges(ranges) => ranges,
            Observed::Again(mut second) => {
                samples.iter().for_each(|values| second.observe("t", values));
                second.ranges()
            }
        }
    }

    #[test]
    fn extremes_are_those_of_all_samples_and_hold_zero() {
        assert_eq!(ranges(Method::MinMax, &[&[1.0, 2.0], &[-3.0]])["t"], Range { least: -3.0, most: 2.0 });
        assert_eq!(ranges(Method::MinMax, &[&[1.0, 2.0]])["t"], Range { least: 0.0, most: 2.0 });
        assert_eq!(ranges(Method::MinMax, &[&[]])["t"], Range::default());
    }

    #[test]
    fn every_place_of_a_long_activation_counts() {
        for index in [0, 15, 16, 47, 99] {
            let mut values = vec![0.25; 100];
            values[index] = -8.0;
            assert_eq!(extremes(&values), Some(Range { least: -8.0, most: 0.25 }));
            for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                values[index] = odd;
                assert_eq!(extremes(&values), None);
            }
        }
    }

    #[test]
    fn an_activation_of_zeros_has_the_range_zero_by_every_method() {
        for method in [Method::MinMax, Method::Percentile(99.9), Method::Entropy] {
            assert_eq!(ranges(method, &[&[0.0; 8]])["t"], Range::default());
            assert_eq!(ranges(method, &[&[]])["t"], Range::default());
        }
    }

    #[test]
    fn a_lone_outlier_is_left_out_by_percentile_and_entropy() {
        let mut values: Vec<f32> = (0..20_000).map(|index| (index % 1000) as f32 / 1000.0).collect();
        values.push(100.0);
        for method in [Method::Percentile(99.9), Method::Entropy] {
            let range = ranges(method, &[&values])["t"];
            assert!(range.least == 0.0 && range.most > 0.9 && range.most < 30.0, "{method:?} {range:?}");
        }
        assert_eq!(ranges(Method::Percentile(100.0), &[&values])["t"].most, 100.0);
    }

    #[test]
    fn an_activation_that_is_not_finite_has_no_range_and_others_have() {
        for method in [Method::MinMax, Method::Percentile(99.9), Method::Entropy] {
            let mut first = FirstPass::new(method);
            for values in [[1.0, 2.0], [f32::INFINITY, 0.0], [3.0, 4.0]] {
                first.observe("odd", &values);
                first.observe("t", &[1.0, 2.0]);
            }
            let ranges = match first.finish() {
                Observed::Ranges(ranges) => ranges,
                Observed::Again(mut second) => {
                    ["odd", "t"].iter().for_each(|tensor| second.observe(tensor, &[f32::NAN, 1.0, 2.0]));
                    second.ranges()
                }
            };
            assert_eq!(ranges.keys().collect::<Vec<_>>(), ["t"]);
        }
    }
}
