//! `LSTM`, `GRU` and `RNN`.
//!
//! Input: a node; X is `[steps, batch, features]`, or batch first with `layout: 1`. Output: the shapes of Y, Y_h and Y_c.
//! Deliberately absent: nothing.

use super::Value;
use super::shape::{Shape, Size, size_of};
use super::site::{Outputs, Site};

/// Every hidden state, the last one, and the last cell state of an LSTM.
pub(super) fn recurrent(site: &Site<'_>) -> Outputs {
    let is_batch_first = site.is_set("layout");
    let (steps, batch) = if is_batch_first { (1, 0) } else { (0, 1) };
    let (steps, batch) = (site.size(0, steps), site.size(0, batch));
    let directions: Size = Some(if site.node.text("direction") == Some("bidirectional") { 2 } else { 1 });
    // Without the attribute, the recurrence weights [directions, gates x hidden, hidden] say it.
    let hidden = site.node.int("hidden_size").and_then(size_of).or_else(|| site.size(2, 2));
    let every: Shape =
        if is_batch_first { vec![batch, steps, directions, hidden] } else { vec![steps, directions, batch, hidden] };
    let last = if is_batch_first { vec![batch, directions, hidden] } else { vec![directions, batch, hidden] };
    let last = Value::of_shape(last);
    Some(vec![Value::of_shape(every), last.clone(), last])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn states_have_directions_and_a_hidden_size() {
        let inputs = "x[6,N,8] w[2,64,8] r[2,64,16]";
        let lstm = case("LSTM", inputs).text("direction", "bidirectional").outputs(3);
        lstm.gives("float32 [6, 2, ?, 16]; float32 [2, ?, 16]; float32 [2, ?, 16]");
        let gru = case("GRU", "x[2,6,8] w[1,48,8] r[1,48,16]").int("layout", 1).int("hidden_size", 16).outputs(2);
        gru.gives("float32 [2, 6, 1, 16]; float32 [2, 1, 16]");
    }
}
