//! The ranks of values among each other (method 6.3, 6.7).
//!
//! Input: values in any order. Output: one rank for each, from 1; equal values share the mean of their ranks.

/// Ranks, and how many of them are shared.
pub(super) struct MidRanks {
    /// One rank, from 1, for each value in the order given.
    pub(super) ranks: Vec<f64>,
    /// The sum of t^3 - t over groups of t equal values.
    pub(super) tie_term: f64,
}

impl MidRanks {
    /// Of values, in their order.
    pub(super) fn of(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut ranks = MidRanks { ranks: vec![0.0; values.len()], tie_term: 0.0 };
        let mut below = 0;
        for ties in order.chunk_by(|&a, &b| values[a] == values[b]) {
            let rank = below as f64 + (ties.len() + 1) as f64 / 2.0;
            for &index in ties {
                ranks.ranks[index] = rank;
            }
            ranks.tie_term += (ties.len() as f64).powi(3) - ties.len() as f64;
            below += ties.len();
        }
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_ranks() {
        let ranks = MidRanks::of(&[3.0, 1.0, 3.0, 2.0]);
        assert_eq!((ranks.ranks, ranks.tie_term), (vec![3.5, 1.0, 3.5, 2.0], 6.0));
        assert!(MidRanks::of(&[]).ranks.is_empty());
    }
}
