//! `--quick`: the same matrix, measured just long enough for a first look.

use super::{Aa, AdaptiveWarmup, Experiment, PrecisionStop, Runs, Stop, StopStatistic, TimeStop, Warmup};
use base::quantity::{Nanos, Ratio};

/// Fewest runs that allow a verdict.
const RUNS: u32 = 5;

/// Items of a dataset that are scored.
const ITEMS: u64 = 256;

/// Cuts an experiment down: 5 runs, a short warm-up, short sampling, no control, no cool-down, few items of a dataset,
/// no search for a batch.
///
/// Its margin is wide, since a few short runs do not see how the machine changes over minutes.
pub fn quick(experiment: &mut Experiment) {
    experiment.runs = Runs::fixed(RUNS);
    experiment.compare.aa = Aa::Off;
    experiment.compare.margin = experiment.compare.margin.of_quick_look();
    experiment.require.grade = None;
    let own = experiment.models.iter_mut().filter_map(|model| model.inputs.as_mut()).flatten();
    for search in experiment.inputs.iter_mut().chain(own).filter_map(|input| input.search.as_mut()) {
        search.to = 1;
    }
    for dataset in experiment.datasets_mut() {
        dataset.items = Some(dataset.items.map_or(ITEMS, |items| items.min(ITEMS)));
    }
    let measure = &mut experiment.measure;
    measure.cooldown = Nanos(0);
    measure.warmup = Warmup::Adaptive(AdaptiveWarmup {
        min_time: Nanos::from_millis(100),
        max_time: Nanos::from_millis(500),
        min_samples: 2,
        tolerance: Ratio(0.02),
    });
    let loads = experiment.models.iter().filter_map(|model| model.inputs.as_ref()).flatten();
    if experiment.inputs.iter().chain(loads).any(|input| input.load.is_some()) {
        measure.stop = Stop::Time(TimeStop { time: Nanos::from_secs(1), min_samples: 50, max_samples: 100_000 });
        return;
    }
    measure.stop = Stop::Precision(PrecisionStop {
        statistic: StopStatistic::Median,
        relative: Ratio(0.01),
        confidence: Ratio(0.95),
        min_samples: 5,
        max_samples: 100_000,
        min_time: Nanos::from_millis(200),
        max_time: Nanos::from_millis(500),
    });
}
