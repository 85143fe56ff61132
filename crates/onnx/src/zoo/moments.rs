//! What is known of activations without running the network.
//!
//! Input: mean and standard deviation of the channels that go into a layer. Output: those of the channels that come out,
//! near enough. They let weights be scaled to what they meet, and give BatchNormalization the running statistics that
//! training would have seen; otherwise small errors of scale multiply from layer to layer. Deliberately absent: functions
//! other than the square root, since the numbers go into weights that must be the same on every host.
//!
//! What networks ask of their normalisations decides how far rounding moves their outputs. Behind a normalisation about
//! zero a rectifier lets a perturbation grow against the signal by `sqrt(pi / (pi - 1))`, 1.21, in every layer (Yang et
//! al.: A Mean Field Theory of Batch Normalization, ICLR 2019), so that a deep random network is chaotic, which a trained
//! one is not. About one deviation it grows by 1.06. Further open is no better: the larger the mean of what a layer meets,
//! the more its rounded weights shift all outputs alike.

/// Mean and standard deviation over inputs and positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moments {
    pub(super) mean: f64,
    /// The standard deviation.
    pub(super) deviation: f64,
}

/// Of the largest of nine adjacent values: nine normal numbers would give 1.49 and 0.60, but adjacent values are alike.
const LARGEST_OF_NINE: Moments = Moments { mean: 1.45, deviation: 0.66 };

impl Moments {
    /// A mean of zero, a deviation of one.
    pub(super) const NORMAL: Self = Moments { mean: 0.0, deviation: 1.0 };

    /// So far above zero that rectification leaves most as it is, and perturbations hardly grow.
    pub(super) const OPEN: Self = Moments { mean: 1.0, deviation: 1.0 };

    /// Before rectification and pooling, which makes much of the mean: the largest of adjacent values has a larger one,
    /// and their mean has a smaller deviation relative to it.
    pub(super) const POOLED: Self = Moments { mean: -0.5, deviation: 1.0 };

    /// What a residual branch adds to its input: little, as training leaves it, so that neither the sum nor what rounding
    /// does to it grows with depth (Zhang, Dauphin and Ma: Fixup Initialization, ICLR 2019, begin with nothing).
    pub(super) const BRANCH: Self = Moments { mean: 0.0, deviation: 0.2 };

    /// So far below zero that few positions stay after rectification, as in the last layer of trained classifiers. The
    /// means of channels then differ more from image to image.
    pub(super) const SPARSE: Self = Moments { mean: -1.5, deviation: 1.0 };

    /// A mean of zero.
    pub(super) fn centred(deviation: f64) -> Self {
        Moments { mean: 0.0, deviation }
    }

    /// Of `max(x, 0)` for a normal number. Right for a mean of zero (0.399 and 0.584 deviations) and for a large one,
    /// within some percent between.
    pub(super) fn rectified(self) -> Self {
        let Moments { mean, deviation } = self;
        let distance = if deviation > 0.0 { mean / deviation } else { 0.0 };
        let share = 0.584 + if distance > 0.0 { 0.416 * (distance / 1.5).min(1.0) } else { 0.32 * distance.max(-1.5) };
        Moments {
            mean: (mean + (mean * mean + std::f64::consts::FRAC_2_PI * deviation * deviation).sqrt()) / 2.0,
            deviation: share * deviation,
        }
    }

    /// Of `x sigmoid(x)` for a normal number with a deviation near one, and a mean of at most 1.5 deviations.
    pub(super) fn gated(self) -> Self {
        let Moments { mean, deviation } = self;
        let distance = if deviation > 0.0 { (mean / deviation).clamp(-1.5, 1.5) } else { 0.0 };
        Moments {
            mean: (0.207 + 0.5 * distance + 0.155 * distance * distance) * deviation,
            deviation: (0.56 + 0.27 * distance) * deviation,
        }
    }

    /// Of the sum of two numbers that know nothing of each other.
    pub(super) fn plus(self, other: Self) -> Self {
        let deviation = (self.deviation * self.deviation + other.deviation * other.deviation).sqrt();
        Moments { mean: self.mean + other.mean, deviation }
    }

    /// Of the number times a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        Moments { mean: self.mean * factor, deviation: self.deviation * factor }
    }

    /// Of the largest of nine adjacent values.
    pub(super) fn largest_of_nine(self) -> Self {
        let largest = LARGEST_OF_NINE.times(self.deviation);
        Moments { mean: self.mean + largest.mean, ..largest }
    }

    /// Of the mean of a whole channel, of 49 positions or more.
    pub(super) fn mean_of_all(self) -> Self {
        Moments { deviation: 0.27 * self.deviation, ..self }
    }

    /// Of the mean of four adjacent values, of which rectification before left a few that stand alone.
    pub(super) fn mean_of_four(self) -> Self {
        Moments { deviation: 0.5 * self.deviation, ..self }
    }
}

/// The deviation that a filter over all these channels meets.
pub(super) fn joint_deviation(channels: &[Moments]) -> f64 {
    let sum: f64 = channels.iter().map(|channel| channel.deviation * channel.deviation).sum();
    let mean = sum / channels.len().max(1) as f64;
    if mean > 0.0 { mean.sqrt() } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::random::Xoshiro256PlusPlus;

    /// Of many numbers.
    fn seen(function: impl Fn(f64) -> f64) -> Moments {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let values: Vec<f64> = (0..20_000).map(|_| function(random.normal())).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Moments { mean, deviation: (squares / values.len() as f64).sqrt() }
    }

    fn assert_near(left: Moments, right: Moments, tolerance: f64) {
        let is_near = |left: f64, right: f64| (left - right).abs() <= tolerance;
        assert!(is_near(left.mean, right.mean) && is_near(left.deviation, right.deviation), "{left:?} {right:?}");
    }

    #[test]
    fn moments_behind_an_activation_are_those_that_are_seen() {
        for (mean, tolerance) in [(0.0, 0.02), (0.5, 0.04), (1.0, 0.08), (3.0, 0.08), (-0.5, 0.04), (-1.5, 0.08)] {
            let normal = Moments { mean, deviation: 1.0 };
            assert_near(normal.rectified(), seen(|z| (z + mean).max(0.0)), tolerance);
            let half = Moments { mean: mean / 2.0, deviation: 0.5 };
            assert_near(half.rectified(), normal.rectified().times(0.5), 1e-12);
        }
        for mean in [-1.5, -1.0, 0.0, 1.0, 1.5] {
            let normal = Moments { mean, deviation: 1.0 };
            assert_near(normal.gated(), seen(|z| (z + mean) / (1.0 + (-z - mean).exp())), 0.03);
        }
    }

    #[test]
    fn deviations_add_as_squares() {
        let sum = Moments { mean: 1.0, deviation: 3.0 }.plus(Moments { mean: 2.0, deviation: 4.0 });
        assert_eq!(sum, Moments { mean: 3.0, deviation: 5.0 });
        let channels = [Moments::centred(1.0), Moments::centred(7.0)];
        assert_eq!((joint_deviation(&channels), joint_deviation(&[])), (5.0, 1.0));
        assert_eq!(Moments { mean: -1.0, deviation: 2.0 }.largest_of_nine(), Moments { mean: 1.9, deviation: 1.32 });
        let nothing = Moments::centred(0.0);
        assert_eq!((nothing.rectified(), nothing.gated()), (nothing, nothing));
    }
}
