//! The table: one row for each code, and the limits that rules and words share.
//!
//! A limit of a rule in [`statistics`] is taken from there; all other limits stand here.

use std::sync::LazyLock;

use super::Carrier::{self, Cell, Control, Record, Run, Stat};
use super::CodeText;
use super::Severity::{self, Block, Info, Invalid, Warn};
use super::words::{part, percent, spelt};
use crate::metric::{self, Metric};
use statistics::outlier::{OUTER_FENCE, slow_deviations};
use statistics::planning::MINIMUM_RUNS;
use statistics::shape::{MANY_OUTLIERS, NOISY, SKEWED};
use statistics::steady::{DRIFT_FLOOR, LEAST_DIFFERENCE};

/// Reading the clock above this makes short samples doubtful.
pub const SLOW_CLOCK_NS: f64 = 200.0;

/// From this share of the processors on, background load raises a code, before a record and during its runs.
pub const BUSY_MACHINE: f64 = 0.1;

/// Largest over smallest run median from which runs that were given as numbers raise a code.
pub const RUNS_APART: f64 = 1.1;

/// An A/A comparison is biased where its two sides are further apart than this part of the margin, if the interval
/// agrees.
pub const BIASED: f64 = 0.5;

/// Above this share of stolen time a run says little.
pub const NOISY_STEAL: f64 = 0.02;

/// From this share of a cell's time on, nodes that run on the CPU instead of its device are reported.
pub const CPU_SHARE_REPORTED: f64 = 0.01;

/// Above this share a cell is not judged as one of its device.
pub const CPU_SHARE_JUDGED: f64 = 0.05;

const STEAL: f64 = 0.005;
const CLOCK_CHANGE: f64 = 0.05;
const PRESSURE: f64 = 0.02;
const PREEMPTIONS: f64 = 10.0;
/// Pages from the disk cost tenths of a millisecond each: so many touch a tail, and no median.
const PAGES: f64 = 10.0;

/// From this share of the readings on, a device counts as slowed down.
const GPU_SLOWED: f64 = 0.05;
const GPU_CLOCK_CHANGE: f64 = 0.05;
const GPU_OTHERS: f64 = 0.05;
/// Libraries choose slower algorithms where the memory that the faster ones want is not free.
const GPU_MEMORY: f64 = 0.95;

/// Share of the time outside of a program's own clock from which its samples do not stand for what it does.
const UNTIMED: f64 = 0.3;

/// A metric of the environment, the value above which it raises a code, and the code.
///
/// A metric that is not there was not readable, or the clock was scripted: it raises nothing.
pub const LIMITS: [(Metric, f64, Code); 20] = [
    (metric::OTHER_CPU, BUSY_MACHINE, Code::Load),
    (metric::STEAL, STEAL, Code::Steal),
    (metric::THROTTLE_EVENTS, 0.0, Code::CpuThrottled),
    (metric::CLOCK_CHANGE, CLOCK_CHANGE, Code::FreqDrift),
    (metric::QUOTA_STOPS, 0.0, Code::CgroupThrottled),
    (metric::SWAPPED_PAGES, PAGES, Code::Swap),
    (metric::MEMORY_LIMIT_EVENTS, 0.0, Code::Swap),
    (metric::MAJOR_FAULTS, PAGES, Code::Swap),
    (metric::PRESSURE_CPU, PRESSURE, Code::Pressure),
    (metric::PREEMPTIONS, PREEMPTIONS, Code::Preempted),
    (metric::SHARED_CORES, 0.0, Code::SmtShared),
    (metric::MEMORY_NODES, 1.0, Code::NumaSpan),
    (metric::UNTIMED, UNTIMED, Code::Untimed),
    (metric::UNTIMED_LOAD, UNTIMED, Code::LoadUntimed),
    (metric::GPU_HEAT, GPU_SLOWED, Code::GpuThrottled),
    (metric::GPU_POWER_CAPPED, GPU_SLOWED, Code::GpuThrottled),
    (metric::GPU_CLOCK_CHANGE, GPU_CLOCK_CHANGE, Code::GpuClocks),
    (metric::GPU_OTHERS, GPU_OTHERS, Code::GpuShared),
    (metric::GPU_OTHERS_MEMORY, GPU_OTHERS, Code::GpuShared),
    (metric::GPU_MEMORY_USED, GPU_MEMORY, Code::GpuMemory),
];

/// What disturbs a run from outside. One line names the cause, instead of one warning for each (method 14).
pub(crate) const DISTURBANCES: [Code; 11] = [
    Code::Load,
    Code::Steal,
    Code::CpuThrottled,
    Code::FreqDrift,
    Code::CgroupThrottled,
    Code::Swap,
    Code::Pressure,
    Code::Preempted,
    Code::GpuThrottled,
    Code::GpuClocks,
    Code::GpuShared,
];

/// Codes of runs of earlier versions that nothing raises any more: a column has their content now (method 5.5).
pub(super) const RETIRED: [&str; 2] = ["W_WARMUP_TREND", "W_PRECISION_NOT_REACHED"];

// The gravest first; among equally grave ones, first those that more often cause others.
codes! {
    OutputNonFinite, "W_OUTPUT_NONFINITE", Invalid, [Run, Cell] {
        seen: "An output contains NaN or infinity: the timed computation may not be the intended one.",
        effect: "The time is withheld, and no verdict is given.",
        remedy: "Do not use these times; check the model and its inputs.",
    }
    ColdUnresolved, "W_COLD_UNRESOLVED", Invalid, [Run] {
        seen: "With cold caches a sample is one iteration, which is too short for this machine's clock.",
        effect: "The time would be mostly clock overhead; it is withheld, and no verdict is given.",
        remedy: "Measure a larger input, or use `measure.cache: warm`.",
    }
    AaFailed, "E_AA_FAILED", Block, [Control] {
        seen: "The two sides of an A/A comparison were judged different.",
        effect: "All verdicts that depend on this control are withdrawn.",
        remedy: "Look for what the two sides do not share (background load, temperature, order), and measure again.",
    }
    FewRuns, "W_FEW_RUNS", Block, [Cell, Stat] {
        seen: format!("Fewer than {} runs completed.", spelt(MINIMUM_RUNS)),
        effect: "No interval and no verdict: too few runs to estimate their spread.",
        remedy: format!("Set `runs` to {} or more, or leave it out.", MINIMUM_RUNS),
        stat: format!("fewer than {} runs give no verdict", spelt(MINIMUM_RUNS)),
    }
    NoSteadyState, "W_NO_STEADY_STATE", Block, [Run, Stat] {
        seen: "The latency was still changing in the second half of the samples: no steady state was reached.",
        effect: "The median does not describe a steady state; no verdict is given if more than half of the runs are affected.",
        remedy: "Raise `measure.warmup.max_time` or `measure.stop.max_time`, and look for background load on the machine.",
        stat: "the values still changed in their second half: there is no steady state",
    }
    Untimed, "W_UNTIMED", Block, [Run] {
        seen: format!(
            "More than {} of the time in which samples were taken lies outside of what the runtime's program timed.",
            percent(UNTIMED),
        ),
        effect: "The program may time less than one inference: a device that is not waited for, or copies outside of its clock. No verdict is given.",
        remedy: "Wait for the device inside the timed call, and copy inputs and outputs where the other runtimes do.",
    }
    Saturated, "W_SATURATED", Block, [Run] {
        seen: "Queries came faster than they could be served.",
        effect: "Latencies grow for as long as such a run lasts, which ends early; no verdict is given.",
        remedy: "Use a lower rate, more sessions, or `rate: largest` to find the rate that keeps a bound.",
    }
    ShortLoad, "W_SHORT_LOAD", Block, [Run] {
        seen: "The run had fewer queries than 60 relaxation times of its queue.",
        effect: "A queue that is nearly full changes too slowly for its late share to be known; no verdict is given.",
        remedy: "Give runs more queries, `measure.stop: { mode: samples, count: 64000, max_time: 1h }`, or use a tighter bound.",
    }
    CpuFallback, "W_CPU_FALLBACK", Block, [Cell] {
        seen: format!(
            "Nodes of the model ran on the CPU instead of the cell's device, and took at least {} of the time, including copies to and from the device.",
            percent(CPU_SHARE_REPORTED),
        ),
        effect: format!(
            "Part of the time is spent on the CPU; if the CPU nodes alone took more than {}, no verdict is given.",
            percent(CPU_SHARE_JUDGED),
        ),
        remedy: "Replace the listed operators, try another runtime version, or set `measure.allow_fallback: false` to refuse such cells.",
    }
    TrainingMode, "W_TRAINING_MODE", Warn, [Cell] {
        seen: "The model was exported in training mode: a `Dropout` or `BatchNormalization` of it computes what it does in training.",
        effect: "Time and outputs are not those of inference: `Dropout` draws random numbers, `BatchNormalization` averages over the batch.",
        remedy: "Export it again in inference mode, in PyTorch after model.eval().",
    }
    WeightsWidened, "W_WEIGHTS_WIDENED", Warn, [Cell] {
        seen: "The weights are 8-bit numbers behind `DequantizeLinear`, and activations are not quantised.",
        effect: "Where the runtime does not fuse the two, each inference widens every weight to float32, and takes longer than that of the float32 model.",
        remedy: "`--profile` shows the time of `DequantizeLinear`. Add the variant `int8`, which converts such weights to 8-bit products, or run the float32 model.",
    }
    Load, "W_LOAD", Warn, [Run, Record] {
        seen: format!(
            "Other processes used more than {} of the processors during the run, or just before the record began.",
            part(BUSY_MACHINE),
        ),
        effect: "Times are longer and noisier than on a quiet machine; verdicts are less affected, since runs are paired within blocks.",
        remedy: "Stop them, or wait for a quiet machine with `--wait 5m`; `require: { quiet: true }` refuses to measure otherwise.",
    }
    Steal, "W_STEAL", Warn, [Run] {
        seen: format!(
            "The hypervisor gave more than {} of the run's processor time to other guests.",
            percent(STEAL),
        ),
        effect: format!(
            "Times are longer by what was taken; above {} the run counts as noisy.",
            percent(NOISY_STEAL),
        ),
        remedy: "Use a dedicated machine, or more runs.",
    }
    CpuThrottled, "W_CPU_THROTTLED", Warn, [Run] {
        seen: "A processor was throttled during the run by its temperature or its power limit.",
        effect: "The times are those of a slower processor than the one in the report.",
        remedy: "Improve the cooling, turn turbo off, or use fewer threads; perfrun waits up to `measure.cooldown` between blocks.",
    }
    FreqDrift, "W_FREQ_DRIFT", Warn, [Run] {
        seen: format!(
            "The processor's clock changed by more than {} between the beginning and the end of the samples.",
            percent(CLOCK_CHANGE),
        ),
        effect: "The samples mix two clock speeds; part of a difference between cells may come from the clock.",
        remedy: "Turn turbo off and set the governor to `performance` (`perfrun doctor` prints the commands).",
    }
    CgroupThrottled, "W_CGROUP_THROTTLED", Warn, [Run] {
        seen: "The CPU quota of the cgroup was used up during the run, and its processes were throttled until the next period.",
        effect: "Samples include pauses of up to a period (usually 100 ms); tails reflect the quota, not the model.",
        remedy: "Raise the quota of the container, or set `threads` below it.",
    }
    GpuShared, "W_GPU_SHARED", Warn, [Run] {
        seen: format!(
            "Another process held more than {0} of the GPU's memory, or used more than {0} of its time, during the run.",
            percent(GPU_OTHERS),
        ),
        effect: "Times, power and memory include the other process.",
        remedy: "Stop it (`nvidia-smi` lists processes), or take another GPU; `require: { foreign_processes: none }` refuses to measure.",
    }
    GpuThrottled, "W_GPU_THROTTLED", Warn, [Run] {
        seen: format!(
            "The GPU was throttled by heat or by its power limit in more than {} of the readings while sampling; the report says which.",
            percent(GPU_SLOWED),
        ),
        effect: "The times are those of a slower GPU, and depend on its temperature.",
        remedy: "Improve the cooling, or lock the clock at a speed that the GPU can sustain: `perfrun doctor --fix`.",
    }
    GpuClocks, "W_GPU_CLOCKS", Warn, [Run] {
        seen: format!("The GPU's clock changed by more than {} while sampling.", percent(GPU_CLOCK_CHANGE)),
        effect: "The samples mix several clock speeds; part of a difference between cells may come from the clock.",
        remedy: "Lock the clocks: `perfrun doctor --fix`; `require: { gpu_clocks: locked }` refuses to measure otherwise.",
    }
    GpuMemory, "W_GPU_MEMORY", Warn, [Run] {
        seen: format!("More than {} of the GPU's memory was in use during the run.", percent(GPU_MEMORY)),
        effect: "With little free memory the runtime may choose slower algorithms, and larger inputs fail.",
        remedy: "Free memory on the GPU, or measure a smaller batch.",
    }
    Quota, "W_QUOTA", Warn, [Cell] {
        seen: "The cell uses more threads than the CPU quota of the cgroup allows.",
        effect: "The threads are throttled repeatedly when the quota is used up.",
        remedy: "Set `threads` to the quota or below, or raise the quota of the container.",
    }
    Oversubscribed, "W_OVERSUBSCRIBED", Warn, [Cell] {
        seen: "Sessions times threads are more than the processors.",
        effect: "Sessions wait for each other's threads, and latencies depend on the scheduler.",
        remedy: "Use fewer `sessions`, `clients` or `threads`.",
    }
    LateIssue, "W_LATE_ISSUE", Warn, [Run] {
        seen: "One query in a hundred began later than it was due, with somebody free to serve it, by more than 1 % of the bound (without one: of the median latency).",
        effect: "Latencies include that time, which is perfrun's or the scheduler's and not the model's.",
        remedy: "Look for background load, or leave a processor free: fewer `sessions` or `threads`.",
    }
    Little, "W_LITTLE", Warn, [Run] {
        seen: "Throughput times mean latency differs from the number of callers by more than 5 %.",
        effect: "Time is lost between queries, or the run is too short for its latencies.",
        remedy: "Look for background load, or raise `measure.stop.time`.",
    }
    Swap, "W_SWAP", Warn, [Run] {
        seen: format!(
            "More than {} pages moved between memory and disk during the run, or the cgroup reached its memory limit.",
            spelt(PAGES as usize),
        ),
        effect: "Some samples waited for the disk; a few pages affect only the tails, many affect everything.",
        remedy: "Free memory, use a smaller input, or lower `measure.inputs`.",
    }
    Pressure, "W_PRESSURE", Warn, [Run] {
        seen: format!(
            "Some task on the machine was waiting for a processor for more than {} of the run.",
            percent(PRESSURE),
        ),
        effect: "Samples may include waiting time; the worker's own surplus threads count too.",
        remedy: "Stop other work, or use no more threads than there are cores.",
    }
    Preempted, "W_PREEMPTED", Warn, [Run] {
        seen: format!(
            "Worker threads were preempted more than {} times a second.",
            spelt(PREEMPTIONS as usize),
        ),
        effect: "Samples include the time that other tasks ran; tails are affected first.",
        remedy: "Stop other work, use fewer threads, or pin the worker: `wrap: [taskset, -c, \"2-5\"]`.",
    }
    LoadUntimed, "W_LOAD_UNTIMED", Warn, [Run] {
        seen: format!(
            "More than {} of the time that loading took lies outside of the load, build and first inference that the runtime's program reports.",
            percent(UNTIMED),
        ),
        effect: "The load time may be that of another step or of another model; latencies are not affected.",
        remedy: "Report as `load_ns` and `build_ns` all that happens between the command `prepare` and its answer.",
    }
    SmtShared, "W_SMT_SHARED", Warn, [Run] {
        seen: "Two busy threads of the worker ran on one physical core.",
        effect: "They share its execution units, so the run is slower than with one core per thread.",
        remedy: "Set `threads` to the number of cores or below, or pin one hardware thread of each core with `wrap: [taskset, ...]`.",
    }
    NumaSpan, "W_NUMA_SPAN", Warn, [Run] {
        seen: "The worker may run on processors of several NUMA nodes and is not pinned to one.",
        effect: "Memory may be local in one run and remote in the next, so runs differ.",
        remedy: "Pin it: `wrap: [numactl, -N0, -m0]`.",
    }
    ClockSlow, "W_CLOCK_SLOW", Warn, [Run, Record] {
        seen: format!(
            "Reading the clock takes more than {} ns, or the kernel does not read the time from the processor.",
            SLOW_CLOCK_NS,
        ),
        effect: "Short samples are less accurate; perfrun batches more iterations per sample to keep the overhead below 0.1 %.",
        remedy: "Use a machine whose kernel reads the time from the processor (clock source `tsc`, `kvm-clock` or `arch_sys_counter`).",
    }
    AaBias, "W_AA_BIAS", Warn, [Control] {
        seen: format!(
            "The two sides of an A/A comparison differ by more than {} of the margin, and the interval excludes equality.",
            part(BIASED),
        ),
        effect: "Only a hint: 2 to 5 of 100 controls do this by chance.",
        remedy: "Nothing if it happens once; otherwise look for what the two sides do not share.",
    }
    BimodalRuns, "W_BIMODAL_RUNS", Warn, [Cell, Stat] {
        seen: "The medians of the runs fall into two groups.",
        effect: "The estimate lies between them, where no run is; the interval is wide.",
        remedy: "A choice made once per process (algorithm, NUMA node, thread placement) is likely: pin it.",
        stat: format!(
            "the runs disagree: their medians fall into groups, or lie more than {} apart",
            percent(RUNS_APART - 1.0),
        ),
    }
    LateWarmup, "W_LATE_WARMUP", Warn, [Run, Stat] {
        seen: format!(
            "The median of the first counted samples differed from that of the rest by more than {}, and not by chance or spikes.",
            percent(LEAST_DIFFERENCE),
        ),
        effect: "They are stored and marked as late warm-up, and left out of the statistics.",
        remedy: "Nothing if it is rare; otherwise raise `measure.warmup.min_time`.",
        stat: format!(
            "the median of the first values differs from that of the rest by more than {}; they are not left out",
            percent(LEAST_DIFFERENCE),
        ),
    }
    Drift, "W_DRIFT", Warn, [Stat] {
        seen: format!(
            "The second half of the samples differs from the first by more than {}: the machine or the model changed meanwhile.",
            percent(DRIFT_FLOOR),
        ),
        effect: "The run's median does not describe a steady state.",
        remedy: "Look at clock speed, temperature and background load; `perfrun doctor` shows them.",
        stat: format!(
            "the median of the second half differs from that of the first by more than {}",
            percent(DRIFT_FLOOR),
        ),
    }
    FirstSampleSlow, "W_FIRST_SAMPLE_SLOW", Warn, [Stat] {
        seen: format!(
            "The first counted sample lies more than {} robust standard deviations above the median.",
            spelt(slow_deviations()),
        ),
        effect: "The median is not affected; the mean and the maximum are.",
        remedy: "Nothing if it is rare; otherwise raise `measure.warmup.min_time`.",
        stat: format!(
            "the first value lies more than {} robust standard deviations above the median",
            spelt(slow_deviations()),
        ),
    }
    Noisy, "W_NOISY", Warn, [Stat] {
        seen: format!(
            "The samples of a run scatter by more than {} around their median (robust coefficient of variation).",
            percent(NOISY),
        ),
        effect: "Medians need more samples, and percentiles describe the disturbance as much as the model.",
        remedy: "Look for background load; use fewer threads; raise `measure.stop.max_time`.",
        stat: format!("the values spread by more than {} (robust)", percent(NOISY)),
    }
    Outliers, "W_OUTLIERS", Info, [Stat] {
        seen: format!(
            "More than {} of the samples lie beyond the outer fences ({} interquartile ranges from the quartiles).",
            percent(MANY_OUTLIERS), spelt(OUTER_FENCE as usize),
        ),
        effect: "The median is not affected; the mean, the standard deviation and the tail percentiles are.",
        remedy: "Nothing for medians. For tails look for background load, and measure longer.",
        stat: format!("more than {} of the values are severe outliers", percent(MANY_OUTLIERS)),
    }
    Multimodal, "W_MULTIMODAL", Info, [Stat] {
        seen: "The samples of a run fall into two or more groups.",
        effect: "The median belongs to the larger group; a shift between the groups looks like a change of speed.",
        remedy: "Look at the distribution in the report: clock steps, memory effects and background load do this.",
        stat: "the distribution has several modes, so that no single number describes it",
    }
    Skewed, "W_SKEWED", Info, [Stat] {
        seen: format!("The distribution of the samples has a long tail on one side (skewness beyond {}).", SKEWED),
        effect: "The mean is not representative; the headline is a median anyway.",
        remedy: "Nothing for medians; report percentiles instead of means.",
        stat: "the distribution is skewed: use the median, not the mean",
    }
    NondeterministicOutput, "W_NONDETERMINISTIC_OUTPUT", Info, [Run] {
        seen: "The same input gave other outputs after the last sample than after the first.",
        effect: "None on the time; outputs cannot be compared byte by byte.",
        remedy: "Expected for models that draw random numbers; otherwise a non-deterministic order of reductions is likely.",
    }
    Governor, "W_GOVERNOR", Info, [Record] {
        seen: "The frequency governor of an allowed processor is not `performance`.",
        effect: "The clock follows the load, so short or idle phases run slower; runs scatter more.",
        remedy: "As root: `cpupower frequency-set -g performance`. Without root: more runs.",
    }
    GpuPersistence, "W_GPU_PERSISTENCE", Info, [Record] {
        seen: "Persistence mode of the GPU is off, so the driver may unload whenever nothing uses the GPU.",
        effect: "A worker may have to wait for the driver: `load` and `first inference` are longer and vary more. perfrun keeps the driver loaded while it measures.",
        remedy: "As root: `nvidia-smi -pm 1`, or run the daemon nvidia-persistenced.",
    }
    AslrOff, "W_ASLR_OFF", Info, [Record] {
        seen: "Address-space randomisation is off, so every process has the same memory layout.",
        effect: "All runs share one layout, so the interval does not include its effect.",
        remedy: "As root: `sysctl kernel.randomize_va_space=2`.",
    }
}
