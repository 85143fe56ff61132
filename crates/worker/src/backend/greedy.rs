//! The tokens of a greedy loop: which they are, and when they came.
//!
//! Input: scores of a call, and clock readings. Output: the largest score's id for each sequence, and metrics by the field's
//! names (docs/reference/other-tools.md). Deliberately absent: the calls.

use std::collections::BTreeMap;

use half::{bf16, f16};

use super::TokenTimes;
use base::metric;
use files::array::Array;
use onnx::ElementType;
use statistics::quantile::{median, quantile_is_supported, quantile_sorted, sorted};

/// What generations emitted.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    batch: usize,
    /// Of the last generation, all sequences of one position after those of the position before.
    ids: Vec<i64>,
    /// Nanoseconds from the beginning of the last generation to each position.
    ends_ns: Vec<u64>,
    counted: Counted,
    is_counting: bool,
}

/// What is kept of the generations that count, in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Counted {
    /// Of each, to its first token.
    first_ns: Vec<f64>,
    /// Of each, the mean from one token to the next.
    mean_ns: Vec<f64>,
    /// Between any two tokens.
    gaps_ns: Vec<f64>,
    /// Of each, to its last token.
    total_ns: Vec<f64>,
    /// Emitted by each sequence of each.
    tokens: usize,
}

impl Tokens {
    /// Of so many sequences, each with so many new tokens.
    pub(super) fn new(batch: usize, each: usize) -> Self {
        Tokens {
            batch,
            ids: Vec::with_capacity(batch * each),
            ends_ns: Vec::with_capacity(each),
            counted: Counted::default(),
            is_counting: false,
        }
    }

    /// Whether generations from now on count. Where counting begins, none before it does.
    pub(super) fn count(&mut self, counts: bool) {
        if counts && !self.is_counting {
            self.counted = Counted::default();
            self.ends_ns.clear();
        }
        self.is_counting = counts;
    }

    /// Counts the last generation, once. Called between samples, so that it is in no sample's time.
    pub(super) fn settle(&mut self) {
        if self.is_counting {
            self.counted.add(&self.ends_ns);
        }
        self.ends_ns.clear();
    }

    /// A generation begins.
    pub(super) fn begin(&mut self) {
        self.settle();
        self.ids.clear();
    }

    /// Chooses the next token of each sequence by scores, little-endian `[batch, positions, vocabulary]`, those of the last
    /// position; returns the ids.
    pub(super) fn choose(&mut self, scores: &[u8], element: &ElementType, vocabulary: usize) -> &[i64] {
        let first = self.ids.len();
        let size = element.size_bytes().unwrap_or(1) as usize;
        let row = scores.len() / self.batch.max(1);
        for sequence in scores.chunks_exact(row.max(1)).take(self.batch) {
            let last = &sequence[sequence.len().saturating_sub(vocabulary * size)..];
            self.ids.push(largest(last, element) as i64);
        }
        &self.ids[first..]
    }

    /// The tokens that were chosen came so long after the beginning.
    pub(super) fn came(&mut self, nanos: u64) {
        self.ends_ns.push(nanos);
    }

    /// The ids of the last generation, `[batch, tokens]`.
    pub(super) fn array(&self) -> Array {
        let each = self.ids.len() / self.batch.max(1);
        let of_sequence = |sequence: usize| (0..each).map(move |position| self.ids[position * self.batch + sequence]);
        let bytes = (0..self.batch).flat_map(of_sequence).flat_map(i64::to_le_bytes).collect();
        let shape = vec![self.batch as u64, each as u64];
        Array { name: "tokens".to_owned(), element: ElementType::Int64, shape, bytes, keys: Vec::new() }
    }

    /// When the tokens of the last generation came; `None` before one.
    pub(super) fn times(&self) -> Option<TokenTimes> {
        let mut gaps: Vec<u64> = self.ends_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        let rank = (0.99 * gaps.len() as f64).ceil() as usize;
        let gap_ns = gaps.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        Some(TokenTimes { first_ns: *self.ends_ns.first()?, gap_ns })
    }

    /// Metrics of the generations that count, by stored name.
    pub(super) fn metrics(&mut self) -> BTreeMap<String, f64> {
        self.settle();
        self.counted.metrics()
    }
}

impl Counted {
    fn add(&mut self, ends_ns: &[u64]) {
        let (Some(first), Some(last)) = (ends_ns.first(), ends_ns.last()) else { return };
        self.first_ns.push(*first as f64);
        self.total_ns.push(*last as f64);
        self.tokens = ends_ns.len();
        if ends_ns.len() > 1 {
            self.mean_ns.push((last - first) as f64 / (ends_ns.len() - 1) as f64);
        }
        self.gaps_ns.extend(ends_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64));
    }

    /// The token, from 1, with the largest median gap before it, and that gap: one that is slow in every generation.
    fn slowest_token(&self) -> Option<(usize, f64)> {
        let each = self.tokens.checked_sub(1).filter(|gaps| *gaps > 0)?;
        let of_token = |gap: usize| {
            let gaps: Vec<f64> = self.gaps_ns.iter().skip(gap).step_by(each).copied().collect();
            Some((gap + 2, median(&gaps)?))
        };
        (0..each).filter_map(of_token).max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn metrics(&self) -> BTreeMap<String, f64> {
        let gaps_ns = sorted(&self.gaps_ns);
        let slowest = self.slowest_token();
        let has_p99 = quantile_is_supported(gaps_ns.len() as f64, 0.99);
        let p99 = quantile_sorted(&gaps_ns, 0.99).filter(|_| has_p99);
        let rate = median(&self.total_ns).map(|total| self.tokens as f64 * 1e9 / total);
        let found = [
            (metric::TTFT, median(&self.first_ns)),
            (metric::ITL, quantile_sorted(&gaps_ns, 0.5)),
            (metric::ITL_P99, p99),
            (metric::ITL_LARGEST, gaps_ns.last().copied()),
            (metric::ITL_SLOWEST, slowest.map(|(_, gap_ns)| gap_ns)),
            (metric::ITL_SLOWEST_TOKEN, slowest.map(|(token, _)| token as f64)),
            (metric::TPOT, median(&self.mean_ns)),
            (metric::OUTPUT_TOKENS, rate),
        ];
        found.into_iter().filter_map(|(metric, value)| Some((metric.name.to_owned(), value?))).collect()
    }
}

/// The index of the largest score, the first of several; NaN is none.
fn largest(scores: &[u8], element: &ElementType) -> usize {
    fn first_largest(scores: impl Iterator<Item = f32>) -> usize {
        let (mut best, mut at) = (f32::NEG_INFINITY, 0);
        for (index, score) in scores.enumerate() {
            if score > best {
                (best, at) = (score, index);
            }
        }
        at
    }
    match element {
        ElementType::Float16 => {
            first_largest(scores.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32()))
        }
        ElementType::Bfloat16 => {
            first_largest(scores.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()))
        }
        ElementType::Float64 => {
            first_largest(scores.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as f32))
        }
        _ => first_largest(scores.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(rows: &[[f32; 3]]) -> Vec<u8> {
        rows.iter().flatten().flat_map(|score| score.to_le_bytes()).collect()
    }

    #[test]
    fn the_last_position_of_every_sequence_decides() {
        let mut tokens = Tokens::new(2, 2);
        let prompt = scores(&[[9.0, 0.0, 0.0], [0.0, 1.0, 1.0], [9.0, 0.0, 0.0], [f32::NAN, 0.0, 2.0]]);
        assert_eq!(tokens.choose(&prompt, &ElementType::Float32, 3), [1, 2]);
        let step = scores(&[[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]]);
        assert_eq!(tokens.choose(&step, &ElementType::Float32, 3), [0, 1]);
        let array = tokens.array();
        assert_eq!((array.shape.as_slice(), array.numbers()), (&[2, 2][..], Some(vec![1.0, 0.0, 2.0, 1.0])));
        let halves: Vec<u8> = [1.0, 3.0, 2.0].iter().flat_map(|score| f16::from_f32(*score).to_le_bytes()).collect();
        assert_eq!(largest(&halves, &ElementType::Float16), 1);
    }

    /// A prompt of 20 tokens, two sequences. Formulas: AIPerf's Metrics Reference; GenAI-Perf's `llm_profile_data_parser.py`;
    /// `llama-bench.cpp`, `get_ts`; onnxruntime-genai's `benchmark_e2e.py`; optimum-benchmark's `inference/scenario.py`;
    /// llm_bench's `metrics_print.py` with OpenVINO GenAI's `perf_metrics.cpp`.
    #[test]
    fn one_trace_gives_what_other_tools_print() {
        let ends_ms = [100.0, 110.0, 120.0, 160.0, 170.0];
        let (prompt, batch, emitted) = (20.0, 2.0, ends_ms.len() as f64);
        let mut tokens = Tokens::new(2, ends_ms.len());
        tokens.count(true);
        tokens.begin();
        ends_ms.iter().for_each(|end| tokens.came((end * 1e6) as u64));
        let metrics = tokens.metrics();
        let ms = |metric: &metric::Metric| metrics[metric.name] / 1e6;
        let (first, tpot, whole_s) = (ms(&metric::TTFT), ms(&metric::TPOT), ends_ms[4] / 1e3);
        let guide = include_str!("../../../../docs/reference/other-tools.md");
        for (printed, value) in [
            ("| perfrun | `ttft` | | ", format!("{first} ms")),
            ("| | `itl` and `itl_largest` ", format!("{} and {} ms", ms(&metric::ITL), ms(&metric::ITL_LARGEST))),
            ("| | `tpot` ", format!("{tpot} ms")),
            ("| | `output_tokens` ", format!("{:.1}/s", metrics[metric::OUTPUT_TOKENS.name])),
            ("| | tokens/s of `generate` ", format!("{:.1}/s", batch * emitted / whole_s)),
            ("Inter Token Latency ", format!("{} ms", (ends_ms[4] - ends_ms[0]) / (emitted - 1.0))),
            ("Output Token Throughput Per User ", format!("{:.1}/s", 1e3 / tpot)),
            ("Output Token Throughput |", format!("{:.1}/s", batch * emitted / whole_s)),
            ("Inter Chunk Latency, p50 ", format!("{} ms", ms(&metric::ITL))),
            ("`pp20` ", format!("{}/s", prompt / first * 1e3)),
            ("`tg4 @ d20` ", format!("{:.1}/s", 4.0 / ((ends_ms[4] - ends_ms[0]) / 1e3))),
            ("Token Generation Throughput ", format!("{:.1}/s", batch / tpot * 1e3)),
            ("Prompt Processing Throughput ", format!("{}/s", batch * (batch * prompt) / first * 1e3)),
            ("Wall Clock Throughput ", format!("{:.1}/s", batch * (prompt + emitted) / whole_s)),
            ("`decode` throughput ", format!("{:.1}/s", batch * (emitted - 1.0) / ((ends_ms[4] - ends_ms[0]) / 1e3))),
            ("`generate` throughput, in samples/s, ", format!("{:.1}/s", batch * (emitted - 1.0) / whole_s)),
            ("2nd token latency ", format!("{} ms", tpot / batch)),
            ("2nd tokens throughput ", format!("{:.1}/s", batch * 1e3 / (tpot / batch))),
        ] {
            let row = guide.lines().find(|line| line.contains(printed));
            assert!(row.is_some_and(|row| row.ends_with(&format!("| {value} |"))), "{printed}: {value}, {row:?}");
        }
    }

    /// Three generations, of which two count, computed by hand.
    #[test]
    fn metrics_follow_from_when_tokens_came() {
        let mut tokens = Tokens::new(1, 4);
        let generation = |tokens: &mut Tokens, ends: &[u64]| {
            tokens.begin();
            ends.iter().for_each(|end| tokens.came(*end));
        };
        generation(&mut tokens, &[1, 2, 3, 4]);
        // The last one of the warm-up counts as little as those before it.
        tokens.count(true);
        generation(&mut tokens, &[100, 110, 120, 160]);
        generation(&mut tokens, &[200, 210, 220, 260]);
        assert_eq!(tokens.times(), Some(TokenTimes { first_ns: 200, gap_ns: 40 }));
        let metrics = tokens.metrics();
        let of = |metric: &metric::Metric| metrics[metric.name];
        assert_eq!((of(&metric::TTFT), of(&metric::TPOT), of(&metric::ITL)), (150.0, 20.0, 10.0));
        assert_eq!(of(&metric::ITL_LARGEST), 40.0);
        assert_eq!((of(&metric::ITL_SLOWEST), of(&metric::ITL_SLOWEST_TOKEN)), (40.0, 4.0));
        assert_eq!(of(&metric::OUTPUT_TOKENS), 4.0 * 1e9 / 210.0);
    }
}
