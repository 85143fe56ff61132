//! When a comparison that goes on by need is looked at, and with which confidence (method 4.6).
//!
//! Input: the least and the most blocks. Output: the numbers of blocks after which there is an analysis, and the level that
//! each has. A fixed number of blocks is one analysis at the usual level: there is one rule for both.
//! Deliberately absent: whether an analysis decides anything.

use super::multiplicity::{LEVEL, confidence_among};
use super::planning::MINIMUM_RUNS;

/// One analysis of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Analysis {
    confidence: f64,
    is_one: bool,
}

/// When the blocks of a comparison establish its direction ([`super::direction`]).
pub(super) struct DirectionRule {
    /// Probability that chance gives such ranks.
    pub(super) level: f64,
    /// The quantile of Student's t beyond which an estimate is far.
    pub(super) far: f64,
    /// Fewer blocks give no far estimate.
    pub(super) fewest_of_far: usize,
}

impl Analysis {
    /// The shown interval of a difference has at least this confidence: of intervals that decided, 95 % must cover.
    const OF_DIFFERENCES: f64 = 0.998;

    /// The only analysis, of a number of blocks that was fixed before.
    pub fn single(confidence: f64) -> Self {
        Analysis { confidence, is_one: true }
    }

    /// The same among so many comparisons of one question: each has its share of the level (Bonferroni, method 6.8).
    pub fn among(self, comparisons: usize) -> Self {
        Analysis { confidence: confidence_among(self.confidence, comparisons), ..self }
    }

    /// Confidence of the interval by which so many blocks are judged: below eight a single analysis has four fifths of its
    /// level, because the deviation of so few is too small too often.
    pub fn confidence(self, blocks: usize) -> f64 {
        match self.is_one && blocks < 8 {
            true => 1.0 - 0.8 * (1.0 - self.confidence),
            false => self.confidence,
        }
    }

    /// Confidence of the shown interval of a difference.
    pub(super) fn shown_confidence(self, blocks: usize) -> f64 {
        self.confidence(blocks).max(Self::OF_DIFFERENCES)
    }

    /// Whether it is the only one.
    pub(super) fn is_one(self) -> bool {
        self.is_one
    }

    pub(super) fn direction(self) -> DirectionRule {
        match self.is_one {
            true => DirectionRule { level: 0.002, far: 0.99975, fewest_of_far: 12 },
            false => DirectionRule { level: 0.0005, far: 0.99995, fewest_of_far: 16 },
        }
    }
}

/// The interim analyses of a comparison of at least `least` and at most `most` blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterimAnalyses {
    least: u32,
    most: u32,
}

impl InterimAnalyses {
    /// Blocks that a quiet machine or a clear difference needs, which is where two numbers for a plan have to be one.
    pub const TYPICAL: u32 = 12;

    /// Looks after `least` blocks, after `most`, and in between after 8, 12, 16, 24, 32, 48 and so on; none before there can
    /// be a verdict.
    pub fn new(least: u32, most: u32) -> Self {
        InterimAnalyses { least: least.max(MINIMUM_RUNS as u32).min(most), most }
    }

    /// The numbers of blocks after which there is an analysis, in rising order.
    pub fn blocks(self) -> impl Iterator<Item = u32> {
        let doubling = (3..u32::BITS - 1).flat_map(|power| [1 << power, 3 << (power - 1)]);
        let between = doubling.filter(move |blocks| (self.least.saturating_add(1)..self.most).contains(blocks));
        let first = (self.least < self.most).then_some(self.least);
        first.into_iter().chain(between).chain([self.most])
    }

    /// Whether there is an analysis after so many blocks.
    pub fn is_after(self, blocks: u32) -> bool {
        self.blocks().any(|known| known == blocks)
    }

    /// The analysis that so many common blocks belong to: the last one at or before them. The level of one comparison is
    /// shared among the analyses in proportion to their number, since early ones rest on few blocks.
    pub fn analysis_of(self, blocks: usize) -> Analysis {
        let all = self.blocks().count() as f64;
        let number = self.blocks().filter(|known| *known as usize <= blocks).count().max(1) as f64;
        Analysis { confidence: 1.0 - LEVEL * number / (all * (all + 1.0) / 2.0), is_one: self.is_one() }
    }

    /// The confidence of intervals of single cells at every analysis: the level of one, shared among them (Bonferroni), so
    /// that looking more often finds no more false ones.
    pub fn confidence(self) -> f64 {
        1.0 - LEVEL / self.blocks().count() as f64
    }

    /// Whether there is a single one: the number of blocks is fixed.
    pub fn is_one(self) -> bool {
        self.least == self.most
    }

    /// The most blocks.
    pub fn most(self) -> u32 {
        self.most
    }

    /// About how many blocks are needed, before anything is known.
    pub fn typical(self) -> u32 {
        Self::TYPICAL.clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interim_analyses(least: u32, most: u32) -> Vec<u32> {
        InterimAnalyses::new(least, most).blocks().collect()
    }

    #[test]
    fn looks_lie_on_one_grid_between_the_bounds() {
        assert_eq!(interim_analyses(8, 32), [8, 12, 16, 24, 32]);
        assert_eq!(interim_analyses(5, 20), [5, 8, 12, 16, 20]);
        assert_eq!(interim_analyses(8, 100), [8, 12, 16, 24, 32, 48, 64, 96, 100]);
        assert_eq!(
            (interim_analyses(12, 12), interim_analyses(9, 8), interim_analyses(1, 3)),
            (vec![12], vec![8], vec![3])
        );
        assert!(InterimAnalyses::new(8, 32).is_after(24) && !InterimAnalyses::new(8, 32).is_after(20));
    }

    #[test]
    fn the_level_is_shared_among_the_looks() {
        assert!((InterimAnalyses::new(8, 32).confidence() - 0.99).abs() < 1e-12);
        assert!((InterimAnalyses::new(12, 12).confidence() - 0.95).abs() < 1e-12);
        assert!(InterimAnalyses::new(8, u32::MAX).confidence() < 1.0);
    }

    #[test]
    fn early_analyses_have_the_least_of_the_level() {
        let confidence_after = |blocks| InterimAnalyses::new(8, 32).analysis_of(blocks).confidence(blocks);
        for (blocks, number) in [(8, 1.0), (11, 1.0), (12, 2.0), (16, 3.0), (24, 4.0), (31, 4.0), (32, 5.0), (5, 1.0)] {
            assert!((confidence_after(blocks) - (1.0 - 0.05 * number / 15.0)).abs() < 1e-12, "{blocks}");
        }
        let fixed = |blocks| InterimAnalyses::new(12, 12).analysis_of(blocks).confidence(blocks);
        assert!((fixed(12) - 0.95).abs() < 1e-12 && (fixed(5) - 0.96).abs() < 1e-12);
    }

    #[test]
    fn a_plan_takes_the_typical_number_within_the_bounds() {
        let typical = |least, most| InterimAnalyses::new(least, most).typical();
        assert_eq!([typical(8, 32), typical(20, 40), typical(5, 6), typical(7, 7)], [12, 20, 6, 7]);
    }
}
