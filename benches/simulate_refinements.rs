//! Whether two refinements that save time keep bias and coverage: a warm-up learned from the first blocks, and an end
//! of sampling once a run's own noise is small beside the spread of runs. `docs/simulations.md` says what came out.
//!
//! Whole experiments are played with scripted durations, the same for every policy, and judged by perfrun's own
//! statistics. Prints Markdown; the same seed gives the same tables everywhere.
//!
//! `cargo bench --bench simulate_refinements [-- REPLICATES [SETTING]]`; REPLICATES scales the number of experiments
//! (default 1.0), SETTING keeps the settings whose description contains it.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::time::Instant;

use statistics::random::{key_seed, stream_seed};

use rules::{EarlyEnd, Learned, Policy, carry_out};
use script::{Setting, Shape};
use totals::{HEAD, Row, SUMMARY_HEAD, Totals, summarise};

#[path = "simulate_refinements/looser.rs"]
mod looser;
#[path = "simulate_refinements/rules.rs"]
mod rules;
#[path = "simulate_refinements/script.rs"]
mod script;
#[path = "simulate_refinements/totals.rs"]
mod totals;

/// The true effect in every second experiment.
const EFFECT: f64 = 0.05;

const fn policy(name: &'static str, learned: Option<Learned>, early: Option<EarlyEnd>) -> Policy {
    Policy { name, learned, early }
}

const POLICIES: [Policy; 8] = [
    policy("current", None, None),
    policy("warm-up: as long as it took", Some(Learned::Duration), None),
    policy("warm-up: no trend", Some(Learned::LastTrend), None),
    policy("warm-up: pooled 2 %", Some(Learned::Pooled(0.02)), None),
    policy("warm-up: pooled 1 %", Some(Learned::Pooled(0.01)), None),
    policy("variance: proposed", None, Some(EarlyEnd::Proposed)),
    policy("variance: guarded", None, Some(EarlyEnd::Guarded)),
    policy("both: no trend, proposed", Some(Learned::LastTrend), Some(EarlyEnd::Proposed)),
];

fn simulate(setting: &Setting, policies: &[Policy], experiments: usize) -> Vec<Totals> {
    let mut all_totals: Vec<Totals> = policies.iter().map(|_| Totals::default()).collect();
    let seed = key_seed(42, &setting.describe());
    for experiment in 0..experiments {
        let has_effect = experiment % 2 == 1;
        let effect = if has_effect { EFFECT } else { 0.0 };
        let mut runs = setting.traces(effect, stream_seed(seed, experiment as u64));
        for (policy, totals) in policies.iter().zip(&mut all_totals) {
            totals.add(&carry_out(setting, policy, &mut runs, effect), has_effect);
        }
    }
    all_totals
}

/// The settings in which warm-up is what matters, and those in which noise is; with the policies worth trying there.
fn settings() -> Vec<(Setting, Vec<Policy>)> {
    let slow = Shape::Exponential { excess: 0.3, seconds: 2.0, factor: 1.0 };
    let quick = Shape::Exponential { excess: 0.05, seconds: 0.5, factor: 1.0 };
    let faint = Shape::Exponential { excess: 0.05, seconds: 2.0, factor: 1.0 };
    let varying = Shape::Exponential { excess: 0.1, seconds: 0.5, factor: 3.0 };
    let step = Shape::Step { excess: 0.1, seconds: 1.5 };
    let setting = |shape, (milliseconds, noise, correlation), run_deviation, shared| Setting {
        shape,
        milliseconds,
        noise,
        correlation,
        run_deviation,
        shared,
    };
    // Model time, coefficient of variation, correlation. 1.6 ms are 32 iterations of 50 us.
    let (calm, usual, noisy) = ((5.0, 0.01, 0.0), (5.0, 0.05, 0.6), (5.0, 0.15, 0.0));
    let (batched, batched_noisy, sticky) = ((1.6, 0.05, 0.9), (1.6, 0.15, 0.0), (5.0, 0.15, 0.9));
    let (long, long_usual, long_noisy) = ((100.0, 0.01, 0.0), (100.0, 0.05, 0.0), (100.0, 0.15, 0.6));
    let warming = [
        (Shape::Flat, vec![calm, usual, noisy, batched_noisy, long, long_usual]),
        (slow, vec![calm, noisy, long_noisy]),
        (quick, vec![calm, noisy, long_usual]),
        (faint, vec![usual, noisy, long_usual]),
        (varying, vec![usual, noisy, sticky, long_usual]),
        (step, vec![calm, noisy, long_usual]),
    ];
    let [current, took, no_trend, pooled, stricter, proposed, guarded, both] = POLICIES;
    let about_warmup = vec![current, took, no_trend, pooled, stricter];
    let about_noise = vec![current, proposed, guarded, both];
    let mut all = Vec::new();
    for (shape, models) in warming {
        all.extend(models.into_iter().map(|model| (setting(shape, model, [0.01; 2], false), about_warmup.clone())));
    }
    let mut noise = |shape, model, deviation, shared| {
        all.push((setting(shape, model, deviation, shared), about_noise.clone()));
    };
    for deviation in [[0.002; 2], [0.01; 2], [0.02; 2], [0.05; 2], [0.002, 0.05]] {
        noise(Shape::Flat, usual, deviation, false);
        noise(Shape::Flat, noisy, deviation, false);
        noise(Shape::Flat, (5.0, 0.05, 0.0), deviation, true);
    }
    noise(Shape::Flat, (20.0, 0.05, 0.0), [0.02; 2], false);
    noise(Shape::Flat, sticky, [0.05; 2], false);
    noise(Shape::Flat, long_usual, [0.02; 2], false);
    noise(Shape::Flat, usual, [0.01; 2], true);
    noise(Shape::Flat, noisy, [0.01; 2], true);
    noise(Shape::Flat, noisy, [0.05; 2], true);
    for (shape, model) in
        [(slow, noisy), (slow, usual), (faint, noisy), (faint, batched), (varying, noisy), (step, usual)]
    {
        noise(shape, model, [0.05; 2], false);
    }
    all
}

fn main() {
    // Cargo passes --bench, and a user what comes after two dashes.
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let scale: f64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let wanted = arguments.next().unwrap_or_default();
    let started = Instant::now();
    let mut summary: Vec<(&str, Vec<Row>)> = POLICIES.iter().map(|policy| (policy.name, Vec::new())).collect();
    println!("{HEAD}");
    for (setting, policies) in settings().into_iter().filter(|(setting, _)| setting.describe().contains(&wanted)) {
        // Half of the experiments compare equals. Those on slow models are cheap.
        let experiments = if setting.milliseconds >= 20.0 { 1600.0 } else { 800.0 };
        let all_totals = simulate(&setting, &policies, (experiments * scale).round().max(2.0) as usize);
        for (policy, totals) in policies.iter().zip(&all_totals) {
            let row = Row::new(totals, &all_totals[0]);
            println!("| {} | {} | {row} |", setting.describe(), policy.name);
            if let Some((_, rows)) = summary.iter_mut().find(|(name, _)| *name == policy.name) {
                rows.push(row);
            }
        }
    }
    println!("\n{SUMMARY_HEAD}");
    for (name, rows) in summary.iter().filter(|(_, rows)| !rows.is_empty()) {
        println!("| {name} | {} |", summarise(rows));
    }
    println!("\n{:.0} s", started.elapsed().as_secs_f64());
}
