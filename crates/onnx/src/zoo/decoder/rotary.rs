//! Rotary positions: halves of each head turned by the position of the token.
//!
//! Input: positions, and queries or keys `[batch, heads, sequence, head]`. Output: the same, turned, by plain operators; and the
//! tables that operators of their own take. Deliberately absent: scaling for longer contexts.

use super::super::builder::{Builder, Value};
use super::super::layers::{add, concat, mul};
use super::super::transformer::embedding;
use crate::proto::AttributeProto;

/// The context: positions in the rotary tables.
const POSITIONS: u64 = 2048;

/// Cosines and sines of every position, `[2048, head / 2]` each.
pub(super) fn tables(builder: &mut Builder, head: u64) -> [Value; 2] {
    let shape = [POSITIONS, head / 2];
    let tables = rotations(head / 2);
    [("cos", 0), ("sin", 1)].map(|(part, index)| {
        let numbers: Vec<f32> = tables.iter().map(|turn| turn[index] as f32).collect();
        builder.float_table(&format!("model.rotary_emb.{part}"), &shape, &numbers)
    })
}

/// Cosine and sine of `position x 10000^(-index / half)`, positions first (Su et al.: RoFormer, 2021). They are made of sums,
/// products and square roots, which give the same bits on every host; the half is a power of two.
fn rotations(half: u64) -> Vec<[f64; 2]> {
    let steps = (0..half.ilog2()).fold(10_000_f64, |base, _| base.sqrt());
    let frequencies = (0..half).scan(1.0, |angle, _| Some(std::mem::replace(angle, *angle / steps)));
    let turns: Vec<[f64; 2]> = frequencies.map(cosine_and_sine).collect();
    let mut here = vec![[1.0, 0.0]; turns.len()];
    let mut all = Vec::new();
    for _ in 0..POSITIONS {
        all.extend_from_slice(&here);
        for ([cosine, sine], [across, up]) in here.iter_mut().zip(&turns) {
            (*cosine, *sine) = (*cosine * across - *sine * up, *sine * across + *cosine * up);
        }
    }
    all
}

/// Of an angle from 0 to 1, by their series.
fn cosine_and_sine(angle: f64) -> [f64; 2] {
    let (mut sums, mut term) = ([0.0; 2], 1.0);
    for power in 0..20 {
        let sign = if power % 4 < 2 { 1.0 } else { -1.0 };
        sums[power % 2] += sign * term;
        term *= angle / (power + 1) as f64;
    }
    sums
}

/// Rows of a table, for every head and for both of its halves: `[batch, 1, sequence, head]`.
pub(super) fn turns(builder: &mut Builder, table: &Value, positions: &Value) -> Value {
    let name = table.name.clone();
    let rows = embedding(builder, table, positions, &format!("{name}.rows"));
    let rows = concat(builder, &[&rows, &rows], 2, &format!("{name}.halves"));
    let (axes, shape) = (builder.integers(&[1]), [rows.shape[0], 1, rows.shape[1], rows.shape[2]]);
    builder.node("Unsqueeze", &format!("{name}.by_head"), &[&rows, &axes], vec![], &shape)
}

/// `x cos + [-second, first] sin`, of the halves of each head.
pub(super) fn turned(builder: &mut Builder, x: &Value, [cosine, sine]: &[Value; 2], name: &str) -> Value {
    let half = vec![x.shape[0], x.shape[1], x.shape[2], x.shape[3] / 2];
    let halves = ["first", "second"].map(|part| (format!("{name}.{part}"), half.clone()));
    let axis = vec![AttributeProto::of_int("axis", -1)];
    let [first, second] = builder.node_of("Split", &format!("{name}.split"), &[x], axis, halves);
    let second = builder.node("Neg", &format!("{name}.negative"), &[&second], vec![], &half);
    let across = concat(builder, &[&second, &first], 3, &format!("{name}.across"));
    let across = mul(builder, &across, sine, &format!("{name}.sine"));
    let along = mul(builder, x, cosine, &format!("{name}.cosine"));
    add(builder, &along, &across, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotary_tables_are_cosines_and_sines() {
        for half in [16, 32] {
            let rotations = rotations(half);
            assert_eq!(rotations.len() as u64, POSITIONS * half);
            for (index, [cosine, sine]) in rotations.into_iter().enumerate() {
                let (position, pair) = (index as u64 / half, index as u64 % half);
                let angle = position as f64 * 10_000_f64.powf(-(pair as f64) / half as f64);
                assert!(
                    (cosine - angle.cos()).abs() < 1e-10 && (sine - angle.sin()).abs() < 1e-10,
                    "{position} {pair}"
                );
            }
        }
    }
}
