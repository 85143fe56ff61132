//! What calls of a language model say together: what several tokens at once cost in steps, whether a greedy loop takes what
//! its parts take, and where the time of a step jumps over the context (method 6.13).
//!
//! Input: cells whose inputs are calls, with a value for each run. Output: ratios with intervals over blocks. Deliberately
//! absent: words, and verdicts between variants.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CONFIDENCE, Cell, Estimated, LEAST_RUNS, Results};
use base::metric::{ITL, ITL_SLOWEST, ITL_SLOWEST_TOKEN, LATENCY};
use experiment::{AT, Axis, CAPACITY, GENERATE, ModelIndex, OnAxis, PROMPT, VERIFY};
use plan::CellId;
use statistics::interval::{Estimate, mean_interval};
use statistics::quantile::median;
use statistics::trimmed_mean::trimmed_mean;

/// Two times of one model, in the same runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRatio {
    /// The cell that it is about.
    pub cell: CellId,
    /// What is divided by what.
    #[serde(flatten)]
    pub of: CallsCompared,
    /// The ratio, over blocks.
    pub ratio: Estimated,
}

/// What is divided by what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum CallsCompared {
    /// Several tokens at once over a step, at the same context.
    Verify {
        /// How many tokens.
        tokens: u64,
        /// The share of drafted tokens that must be right for it to pay, where drafting costs nothing; absent where it never
        /// does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        acceptance: Option<Estimated>,
        /// The model whose steps draft, and are counted in; absent where drafting costs nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft: Option<String>,
    },
    /// A greedy loop over its prompt and its steps, between contexts by a straight line.
    Loop,
    /// A step over the same step with a smaller cache allocated, where it takes longer.
    Capacity {
        /// Positions of the smaller one.
        from: u64,
    },
    /// The gap before a token over the median gap of its loop, where that token is the slowest in every run.
    SlowToken {
        /// The token, counted from 1.
        token: u64,
    },
    /// A step over what the steps at other contexts lead one to expect, where it jumps.
    Jump {
        /// The context of the last step before.
        from: u64,
        /// The context of the first step behind: that of the cell.
        to: u64,
    },
}

/// Ratios are left out whose interval is wider, as the log of its ends' ratio: a factor of two.
const WIDEST: f64 = std::f64::consts::LN_2;

/// Smaller jumps are not looked for.
const LEAST_JUMP: f64 = 0.01;

/// A token is slow whose gap is so many times the median one.
const SLOW: f64 = 1.5;

/// A step that takes so much longer with a larger cache follows its size.
const LEAST_GROWTH: f64 = 0.05;

/// Share of curves without a jump of which one is named, on either side.
const FALSE_JUMPS: f64 = 0.01;

/// A cell with what its input says.
struct Call<'a> {
    cell: &'a Cell,
    sizes: BTreeMap<&'a str, u64>,
    /// Median latency of each run, by block.
    latencies: BTreeMap<u64, f64>,
}

/// Everything that calls say together.
pub(super) fn decoding(results: &Results) -> Vec<CallRatio> {
    let rows = results.provenance.frame.get("inputs").and_then(|inputs| inputs.as_array());
    let rows: Vec<_> = rows.into_iter().flatten().filter(|row| row["decode"] == true).collect();
    let call_of = |cell: &'_ Cell| rows.iter().copied().find(|row| row["name"] == *cell.names.input());
    let mut groups: Vec<(Vec<String>, Vec<Call<'_>>)> = Vec::new();
    for cell in results.cells.iter().filter(|cell| !cell.is_invalid() && cell.load.is_none()) {
        let Some(row) = call_of(cell) else { continue };
        let sizes = row["dimensions"].as_object().into_iter().flatten();
        let sizes: BTreeMap<&str, u64> =
            sizes.filter_map(|(name, size)| Some((name.as_str(), size.as_u64()?))).collect();
        let call = Call { cell, sizes, latencies: latencies(cell) };
        let key = around(&call, &[AT, PROMPT, VERIFY, GENERATE]);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, calls)) => calls.push(call),
            None => groups.push((key, vec![call])),
        }
    }
    let calls: Vec<&Call<'_>> = groups.iter().flat_map(|(_, calls)| calls).collect();
    groups.iter().flat_map(|(_, calls)| of_group(calls)).chain(drafts(&calls)).chain(capacities(&calls)).collect()
}

/// What a call has in common with others, the model first: names on axes without sizes, and its sizes but for some.
fn around(call: &Call<'_>, but: &[&str]) -> Vec<String> {
    let others = Axis::ALL.into_iter().filter(|axis| !axis.has_dimensions() && *axis != ModelIndex::AXIS);
    let names = [ModelIndex::AXIS].into_iter().chain(others).map(|axis| call.cell.names[axis].clone());
    let sizes = call.sizes.iter().filter(|(name, _)| !but.contains(name)).map(|(name, size)| format!("{name}={size}"));
    names.chain(sizes).collect()
}

/// Several tokens at once with the steps of another, faster model that drafts all of them but the last.
fn drafts(calls: &[&Call<'_>]) -> Vec<CallRatio> {
    let but_model = |call: &Call<'_>| around(call, &[VERIFY]).split_off(1);
    let of_call = |verify: &&Call<'_>| {
        let tokens = *verify.sizes.get(VERIFY)?;
        let alike = calls.iter().filter(|call| is_step(call) && but_model(call) == but_model(verify));
        let (own, foreign): (Vec<&&Call<'_>>, Vec<_>) =
            alike.partition(|call| call.cell.names.model() == verify.cell.names.model());
        let step = *own.first()?;
        let with = |draft: &&&Call<'_>| {
            let drafted = |block: &u64| Some((tokens - 1) as f64 * draft.latencies.get(block)?);
            let logs = verify
                .latencies
                .iter()
                .filter_map(|(block, time)| Some(((time + drafted(block)?) / step.latencies.get(block)?).ln()));
            let ratio = ratio_of(logs.collect(), |logs| trimmed_mean(logs, CONFIDENCE))?;
            let acceptance = acceptance(&ratio, tokens);
            let draft = Some(draft.cell.names.model().to_owned());
            let of = CallsCompared::Verify { tokens, acceptance, draft };
            // A draft that is no faster than the target is none.
            acceptance?;
            Some(CallRatio { cell: verify.cell.id, of, ratio: Estimated::of(ratio) })
        };
        Some(foreign.iter().filter_map(with).collect::<Vec<_>>())
    };
    calls.iter().filter_map(of_call).flatten().collect()
}

/// Steps whose time follows what is allocated, not what is in it: of each with the largest cache that over the smallest.
fn capacities(calls: &[&Call<'_>]) -> Vec<CallRatio> {
    let mut alike: BTreeMap<Vec<String>, Vec<&Call<'_>>> = BTreeMap::new();
    for call in calls.iter().copied().filter(|call| call.sizes.contains_key(CAPACITY) && is_step(call)) {
        alike.entry(around(call, &[CAPACITY])).or_default().push(call);
    }
    let found = alike.into_values().filter_map(|mut calls| {
        calls.sort_by_key(|call| call.sizes.get(CAPACITY));
        let (smallest, largest) = (calls.first()?, calls.last()?);
        let from = *smallest.sizes.get(CAPACITY)?;
        let ratio = ratio_over(
            largest,
            |block| smallest.latencies.get(&block).copied(),
            |logs| trimmed_mean(logs, CONFIDENCE),
        )?;
        let follows = ratio.value > 1.0 + LEAST_GROWTH && ratio.interval.is_some_and(|interval| interval.low > 1.0);
        let of = CallsCompared::Capacity { from };
        follows.then(|| CallRatio { cell: largest.cell.id, of, ratio: Estimated::of(ratio) })
    });
    found.collect()
}

/// Whether it is one token behind a cache.
fn is_step(call: &Call<'_>) -> bool {
    ![PROMPT, VERIFY, GENERATE].iter().any(|name| call.sizes.contains_key(*name))
}

fn latencies(cell: &Cell) -> BTreeMap<u64, f64> {
    let column = |name: &str| cell.runs.get(name).cloned().unwrap_or_default();
    let pairs = column("block").into_iter().zip(column(LATENCY.name));
    pairs.filter_map(|(block, latency)| Some((block? as u64, latency?))).collect()
}

/// What the calls of one model, variant and batch say.
fn of_group(calls: &[Call<'_>]) -> Vec<CallRatio> {
    let has = |call: &Call<'_>, name: &str| call.sizes.contains_key(name);
    let mut steps: Vec<&Call<'_>> = calls.iter().filter(|call| is_step(call)).collect();
    steps.sort_by_key(|call| call.sizes.get(AT));
    let step_at = |at: u64| steps.iter().copied().find(|step| step.sizes.get(AT) == Some(&at));
    let usual = |logs: &[f64]| trimmed_mean(logs, CONFIDENCE);
    let mut found = Vec::new();
    for call in calls {
        let size = |name: &str| call.sizes.get(name).copied();
        if let (Some(tokens), Some(step)) = (size(VERIFY), size(AT).and_then(step_at)) {
            let ratio = ratio_over(call, |block| step.latencies.get(&block).copied(), usual);
            found.extend(ratio.map(|ratio| CallRatio {
                cell: call.cell.id,
                of: CallsCompared::Verify { tokens, acceptance: acceptance(&ratio, tokens), draft: None },
                ratio: Estimated::of(ratio),
            }));
        }
        if let (Some(generated @ 2..), Some(prompt)) = (size(GENERATE), size(PROMPT)) {
            let prefill = calls
                .iter()
                .find(|other| other.sizes.get(PROMPT) == Some(&prompt) && !has(other, AT) && !has(other, GENERATE));
            let parts = |block: u64| {
                let first = *prefill?.latencies.get(&block)?;
                // The last token is emitted and never fed.
                let later: Option<f64> =
                    (prompt..prompt + generated - 1).map(|at| interpolated(&steps, at, block)).sum();
                Some(first + later?)
            };
            let ratio = ratio_over(call, parts, usual);
            found.extend(ratio.map(|ratio| CallRatio {
                cell: call.cell.id,
                of: CallsCompared::Loop,
                ratio: Estimated::of(ratio),
            }));
        }
    }
    found.extend(calls.iter().filter_map(slow_token));
    found.extend(jumps(&steps));
    found
}

/// A token that is slower than others in every run of a loop, which a mean hides.
fn slow_token(call: &Call<'_>) -> Option<CallRatio> {
    let column = |name: &str| call.cell.runs.get(name).into_iter().flatten().copied().collect::<Option<Vec<f64>>>();
    let tokens = column(ITL_SLOWEST_TOKEN.name)?;
    let token = tokens.first().filter(|first| tokens.iter().all(|token| token == *first))?;
    let logs = column(ITL_SLOWEST.name)?.iter().zip(column(ITL.name)?).map(|(gap, usual)| (gap / usual).ln()).collect();
    let ratio = ratio_of(logs, |logs| trimmed_mean(logs, CONFIDENCE))?;
    let is_slow = ratio.value >= SLOW && ratio.interval.is_some_and(|interval| interval.low > 1.0);
    let of = CallsCompared::SlowToken { token: *token as u64 };
    is_slow.then(|| CallRatio { cell: call.cell.id, of, ratio: Estimated::of(ratio) })
}

/// The time of a call over another time of the same block.
fn ratio_over(
    call: &Call<'_>,
    other: impl Fn(u64) -> Option<f64>,
    estimate: impl Fn(&[f64]) -> Option<Estimate>,
) -> Option<Estimate> {
    let logs = call.latencies.iter().filter_map(|(block, time)| Some((time / other(*block)?).ln()));
    ratio_of(logs.collect(), estimate)
}

/// The ratio with these logs, one of each run.
fn ratio_of(mut logs: Vec<f64>, estimate: impl Fn(&[f64]) -> Option<Estimate>) -> Option<Estimate> {
    logs.retain(|log| log.is_finite());
    let found = estimate(&logs).filter(|_| logs.len() >= LEAST_RUNS)?;
    // A ratio that may be anything says nothing.
    let width = found.interval.map(|interval| interval.high - interval.low);
    if width.is_none_or(|width| width > WIDEST) {
        return None;
    }
    Some(Estimate {
        value: found.value.exp(),
        interval: found.interval.map(|interval| interval.map(f64::exp)),
        ..found
    })
}

/// The time of a step at a context, from the measured ones around it.
fn interpolated(steps: &[&Call<'_>], at: u64, block: u64) -> Option<f64> {
    let context = |step: &&Call<'_>| step.sizes.get(AT).copied().unwrap_or(0);
    let behind = steps.iter().position(|step| context(step) >= at)?;
    let (to, end) = (context(&steps[behind]), *steps[behind].latencies.get(&block)?);
    if to == at {
        return Some(end);
    }
    let before = steps.get(behind.checked_sub(1)?)?;
    let (from, begin) = (context(before), *before.latencies.get(&block)?);
    Some(begin + (end - begin) * (at - from) as f64 / (to - from) as f64)
}

/// The acceptance at which several tokens at once pay: a round of k tokens, of which the last is the target's own, emits
/// (1 - a^k) / (1 - a) on average where each draft is right with probability a (Leviathan, Kalman and Matias: Fast Inference
/// from Transformers via Speculative Decoding, 2023, equation 1).
fn acceptance(ratio: &Estimate, tokens: u64) -> Option<Estimated> {
    let at = |steps: f64| {
        let emitted = |share: f64| (0..tokens).map(|position| share.powi(position as i32)).sum::<f64>();
        // In so few steps it pays however often a draft is wrong, and in more than there are tokens never.
        if steps <= 1.0 || steps >= tokens as f64 {
            return if steps <= 1.0 { 0.0 } else { 1.0 };
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..50 {
            let middle: f64 = (low + high) / 2.0;
            if emitted(middle) < steps { low = middle } else { high = middle }
        }
        high
    };
    let never = ratio.value >= tokens as f64;
    let value = at(ratio.value);
    let interval = ratio.interval.map(|interval| interval.map(at));
    (!never).then(|| Estimated::of(Estimate { value, interval, ..*ratio }))
}

/// Where the time of a step jumps: by more than the steps at other contexts lead one to expect, with all of an interval that
/// holds for all places together.
fn jumps(steps: &[&Call<'_>]) -> Vec<CallRatio> {
    let pairs = steps.len().saturating_sub(1);
    if pairs < 3 {
        return Vec::new();
    }
    let context = |step: &Call<'_>| step.sizes.get(AT).copied().unwrap_or(0) as f64;
    // Errors of three places and more lie in each number, which is why it is a mean of all blocks; of 200 curves
    // without a jump one has a place named.
    let confidence = 1.0 - FALSE_JUMPS / pairs as f64;
    let found = (0..pairs).filter_map(|place| {
        let (before, behind) = (steps[place], steps[place + 1]);
        let expected = |block: u64| {
            let slope = |pair: usize| {
                let (one, other) = (steps[pair], steps[pair + 1]);
                let rise = other.latencies.get(&block)? - one.latencies.get(&block)?;
                Some(rise / (context(other) - context(one)))
            };
            let slopes: Vec<f64> = (0..pairs).filter(|pair| *pair != place).map(slope).collect::<Option<_>>()?;
            let usual = median(&slopes)?;
            Some(before.latencies.get(&block)? + usual * (context(behind) - context(before)))
        };
        let ratio = ratio_over(behind, expected, |logs| mean_interval(logs, confidence))?;
        let is_jump = ratio.value > 1.0 + LEAST_JUMP && ratio.interval.is_some_and(|interval| interval.low > 1.0);
        let (from, to) = (context(before) as u64, context(behind) as u64);
        let of = CallsCompared::Jump { from, to };
        is_jump.then(|| CallRatio { cell: behind.cell.id, of, ratio: Estimated::of(ratio) })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::AxisMap;
    use statistics::random::Xoshiro256PlusPlus;

    /// A call with latencies of 12 blocks.
    fn call<'a>(cell: &'a Cell, sizes: &[(&'a str, u64)], latency: impl Fn(usize) -> f64) -> Call<'a> {
        let latencies = (0..12).map(|block| (block as u64, latency(block))).collect();
        Call { cell, sizes: sizes.iter().copied().collect(), latencies }
    }

    fn kinds(found: &[CallRatio]) -> Vec<&CallsCompared> {
        found.iter().map(|ratio| &ratio.of).collect()
    }

    #[test]
    fn several_tokens_pay_from_an_acceptance_on() {
        let cell = Cell::default();
        let step = call(&cell, &[(AT, 64)], |block| 100.0 + block as f64);
        let verify = call(&cell, &[(AT, 64), (VERIFY, 4)], |block| 1.75 * (100.0 + block as f64));
        let found = of_group(&[step, verify]);
        let [CallRatio { of: CallsCompared::Verify { tokens: 4, acceptance: Some(acceptance), .. }, ratio, .. }] =
            &found[..]
        else {
            panic!("{found:?}")
        };
        assert!((ratio.value - 1.75).abs() < 1e-3);
        // 1 + a + a^2 + a^3 is 1.75.
        let emitted: f64 = (0..4).map(|position| acceptance.value.powi(position)).sum();
        assert!((emitted - 1.75).abs() < 1e-3, "{}", acceptance.value);
        let step = call(&cell, &[(AT, 64)], |_| 100.0);
        let cheap = call(&cell, &[(AT, 64), (VERIFY, 4)], |block| 99.0 + block as f64 / 4.0);
        let found = of_group(&[step, cheap]);
        let CallsCompared::Verify { acceptance: Some(least), .. } = &found[0].of else { panic!("{found:?}") };
        assert_eq!((least.low, least.value < 0.02), (Some(0.0), true), "{least:?}");
        let step = call(&cell, &[(AT, 64)], |_| 100.0);
        let dear = call(&cell, &[(AT, 64), (VERIFY, 4)], |_| 450.0);
        let found = of_group(&[step, dear]);
        assert!(matches!(found[0].of, CallsCompared::Verify { acceptance: None, .. }), "{found:?}");
    }

    #[test]
    fn a_draft_model_is_counted_in() {
        let named = |model: &str| Cell {
            names: AxisMap::<String>::default().with(ModelIndex::AXIS, model.to_owned()),
            ..Cell::default()
        };
        let (target, small) = (named("target"), named("small"));
        let step = call(&target, &[(AT, 64)], |block| 100.0 + block as f64);
        let verify = call(&target, &[(AT, 64), (VERIFY, 4)], |block| 1.2 * (100.0 + block as f64));
        let draft = |part: f64| call(&small, &[(AT, 64)], move |block| part * (100.0 + block as f64));
        let (fast, slow) = (draft(0.1), draft(1.5));
        let found = drafts(&[&step, &verify, &fast]);
        let [CallRatio { of: CallsCompared::Verify { draft: Some(draft), .. }, ratio, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert!(draft == "small" && (ratio.value - 1.5).abs() < 1e-3, "{found:?}");
        assert!(drafts(&[&step, &verify, &slow]).is_empty() && drafts(&[&step, &verify]).is_empty());
    }

    #[test]
    fn a_loop_is_what_its_parts_are() {
        let cell = Cell::default();
        let steps = [16, 32].map(|at| call(&cell, &[(AT, at)], move |_| at as f64));
        let prefill = call(&cell, &[(PROMPT, 16)], |_| 100.0);
        // Steps at 16 to 24: 180.
        let own = call(&cell, &[(PROMPT, 16), (GENERATE, 10)], |_| 280.0 * 1.1);
        let [one, other] = steps;
        let found = of_group(&[one, other, prefill, own]);
        assert_eq!(kinds(&found), [&CallsCompared::Loop]);
        assert!((found[0].ratio.value - 1.1).abs() < 1e-3, "{found:?}");
        // Beyond the contexts that were measured nothing is known.
        let [one, prefill] = [call(&cell, &[(AT, 16)], |_| 1.0), call(&cell, &[(PROMPT, 16)], |_| 1.0)];
        let own = call(&cell, &[(PROMPT, 16), (GENERATE, 10)], |_| 1.0);
        assert!(of_group(&[one, prefill, own]).is_empty());
    }

    #[test]
    fn a_step_that_follows_what_is_allocated_is_named() {
        let cell = Cell::default();
        let step = |capacity: u64, at: u64, latency: f64| {
            call(&cell, &[(AT, at), (CAPACITY, capacity)], move |block| latency + block as f64 / 100.0)
        };
        let follows = [step(4096, 128, 290.0), step(1280, 128, 100.0), step(2048, 128, 150.0)];
        let found = capacities(&follows.iter().collect::<Vec<_>>());
        assert_eq!(kinds(&found), [&CallsCompared::Capacity { from: 1280 }]);
        assert!((found[0].ratio.value - 2.9).abs() < 0.01, "{found:?}");
        let others = [step(4096, 128, 101.0), step(1280, 128, 100.0), step(4096, 64, 300.0)];
        assert!(capacities(&others.iter().collect::<Vec<_>>()).is_empty());
    }

    #[test]
    fn a_token_that_is_slow_in_every_run_is_named() {
        let loop_of = |tokens: [f64; 5], slowest: f64| {
            let column = |values: [f64; 5]| values.map(Some).to_vec();
            let runs =
                [(ITL.name, [10.0; 5]), (ITL_SLOWEST.name, [slowest, 1.01 * slowest, slowest, slowest, slowest])];
            let runs = runs.into_iter().chain([(ITL_SLOWEST_TOKEN.name, tokens)]);
            let runs = runs.map(|(name, values)| (name.to_owned(), column(values))).collect();
            let cell = Cell { runs, ..Cell::default() };
            slow_token(&call(&cell, &[(PROMPT, 16), (GENERATE, 40)], |_| 1.0))
                .map(|found| (found.of, found.ratio.value))
        };
        let found = loop_of([33.0; 5], 130.0).expect("it is 13 times as slow");
        assert!(found.0 == CallsCompared::SlowToken { token: 33 } && (found.1 - 13.0).abs() < 0.1, "{found:?}");
        assert_eq!(loop_of([33.0, 33.0, 4.0, 33.0, 33.0], 130.0), None, "another one each time is noise");
        assert_eq!(loop_of([33.0; 5], 12.0), None);
    }

    /// A step that is 5 % slower from 777 on, with noise of 1 %, in 20 of 20; and none without.
    #[test]
    fn a_jump_is_found_at_its_place_and_nowhere_else() {
        let cell = Cell::default();
        let contexts = [128, 256, 384, 512, 640, 768, 896, 1024];
        for (seed, planted) in (0..20).flat_map(|seed| [(seed, true), (seed, false)]) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let noise: Vec<Vec<f64>> =
                contexts.iter().map(|_| (0..12).map(|_| 1.0 + 0.01 * random.normal()).collect()).collect();
            let calls: Vec<Call<'_>> = contexts
                .iter()
                .zip(&noise)
                .map(|(at, noise)| {
                    let slower = if planted && *at >= 777 { 1.05 } else { 1.0 };
                    call(&cell, &[(AT, *at)], move |block| (1000.0 + *at as f64 / 4.0) * slower * noise[block])
                })
                .collect();
            let found = of_group(&calls);
            match planted {
                true => assert_eq!(kinds(&found), [&CallsCompared::Jump { from: 768, to: 896 }], "seed {seed}"),
                false => assert!(found.is_empty(), "seed {seed}: {found:?}"),
            }
        }
    }
}
