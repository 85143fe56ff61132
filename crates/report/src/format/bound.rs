//! What bounds a cell, in a few words.

use super::{fixed, percent, significant_decimals};
use judge::results::{Bound, WaitAfter};
use onnx::cost::Arithmetic;

/// `memory-bound, 81 % of 24.1 GB/s`, `launch-bound, 35 % of the time`, and the nodes that the device waits after.
pub fn bound(bound: &Bound, waits_after: &[WaitAfter]) -> String {
    let word = bound.word();
    match *bound {
        Bound::Throttling { runs, of } => format!("{word} in {runs} of {of} runs"),
        Bound::Fallback { share } => format!("{word}, {} of the time on the CPU", percent(share)),
        Bound::Copying { share } => format!("{word}, {} of the time", percent(share)),
        Bound::Launching { share } => {
            let after = names_of(waits_after).map(|names| format!(", waits after {names}"));
            format!("{word}, {} of the time{}", percent(share), after.unwrap_or_default())
        }
        Bound::Memory { share, bytes_per_s } => format!("{word}, {} of {}", percent(share), bandwidth(bytes_per_s)),
        Bound::Compute { share, operations_per_s, arithmetic } => {
            format!("{word}, {} of {}", percent(share), rate(operations_per_s, arithmetic))
        }
        Bound::Threads { threads, fewer, speedup } => {
            format!("{word}, {threads} threads {} of {fewer}", times(speedup))
        }
    }
}

fn names_of(waits_after: &[WaitAfter]) -> Option<String> {
    let names: Vec<&str> = waits_after.iter().map(|wait| wait.node.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// `memory 81 %`, `threads 0.98x`: where there is little room.
pub(crate) fn bound_in_short(bound: &Bound) -> String {
    let word = bound.word().trim_end_matches("-bound");
    match *bound {
        Bound::Throttling { .. } => word.to_owned(),
        Bound::Threads { speedup, .. } => format!("{word} {}", times(speedup)),
        Bound::Fallback { share }
        | Bound::Copying { share }
        | Bound::Launching { share }
        | Bound::Memory { share, .. }
        | Bound::Compute { share, .. } => format!("{word} {}", percent(share)),
    }
}

/// `24.1 GB/s`.
pub(super) fn bandwidth(bytes_per_s: f64) -> String {
    format!("{} GB/s", giga(bytes_per_s))
}

/// `95.3 GFLOP/s`, `192 GOP/s in int8`: integers have no floating point.
pub(super) fn rate(operations_per_s: f64, arithmetic: Arithmetic) -> String {
    let unit = match arithmetic {
        Arithmetic::Int8 => "GOP/s",
        Arithmetic::Float32 | Arithmetic::Tf32 | Arithmetic::Float16 | Arithmetic::Bfloat16 => "GFLOP/s",
    };
    format!("{} {unit} in {}", giga(operations_per_s), arithmetic.name())
}

fn giga(value: f64) -> String {
    let billions = value / 1e9;
    fixed(billions, significant_decimals(billions, 3).max(0))
}

/// `0.98x`.
fn times(ratio: f64) -> String {
    format!("{}x", fixed(ratio, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_word_with_its_number() {
        let said = |bounded_by: Bound| (bound(&bounded_by, &[]), bound_in_short(&bounded_by));
        let words = |long: &str, short: &str| (long.to_owned(), short.to_owned());
        let memory = Bound::Memory { share: 0.814, bytes_per_s: 24.12e9 };
        assert_eq!(said(memory), words("memory-bound, 81 % of 24.1 GB/s", "memory 81 %"));
        let compute = |arithmetic| Bound::Compute { share: 0.6, operations_per_s: 95.3e9, arithmetic };
        let of_float = compute(Arithmetic::Float32);
        assert_eq!(said(of_float), words("compute-bound, 60 % of 95.3 GFLOP/s in float32", "compute 60 %"));
        assert_eq!(bound(&compute(Arithmetic::Int8), &[]), "compute-bound, 60 % of 95.3 GOP/s in int8");
        let threads = Bound::Threads { threads: 2, fewer: 1, speedup: 0.978 };
        assert_eq!(said(threads), words("thread-bound, 2 threads 0.98x of 1", "thread 0.98x"));
        let throttled = Bound::Throttling { runs: 6, of: 10 };
        assert_eq!(said(throttled), words("throttled in 6 of 10 runs", "throttled"));
        let launches = Bound::Launching { share: 0.35 };
        assert_eq!(said(launches), words("launch-bound, 35 % of the time", "launch 35 %"));
        let after = ["conv_1", "fc"].map(|node| WaitAfter { node: node.to_owned(), share: 0.4 });
        assert_eq!(bound(&launches, &after), "launch-bound, 35 % of the time, waits after conv_1, fc");
        let fallback = Bound::Fallback { share: 0.38 };
        assert_eq!(said(fallback), words("fallback-bound, 38 % of the time on the CPU", "fallback 38 %"));
    }
}
