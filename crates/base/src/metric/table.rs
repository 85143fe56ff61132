//! The table of metrics.

use super::{Direction, Kind, Metric, ReportedBy, Unit};

/// Defines the metrics of a list, and the list: stored name, heading, unit, which way is good, what it is about, who reports its
/// value, and what exactly is measured.
macro_rules! metrics {
    ($(#[$of_list:meta])* $list:ident: $(
        $(#[$doc:meta])*
        $visible:vis const $constant:ident =
            ($name:expr, $title:expr, $unit:ident, $direction:ident, $kind:ident, $reported_by:ident): $meaning:expr;
    )+) => {
        $(
            $(#[$doc])*
            $visible const $constant: Metric = Metric {
                name: $name,
                title: $title,
                unit: Unit::$unit,
                direction: Direction::$direction,
                kind: Kind::$kind,
                reported_by: ReportedBy::$reported_by,
                meaning: $meaning,
            };
        )+

        $(#[$of_list])*
        pub const $list: &[Metric] = &[$($constant),+];
    };
}

// Three sources say where the time of an inference on another device goes: the device's own clock, the runtime's profiler, and
// measurements after the samples. The parent reads power and memory of the device ten times a second; means and shares are of
// the readings during counted samples.
metrics! {
    /// Every metric of a model, in the order of reports; those of its environment are [`ENVIRONMENT`].
    METRICS:
    /// Median duration of one inference.
    pub const LATENCY = ("latency_ns", "latency", Nanoseconds, LowerIsBetter, Model, EachRun):
        "median over a run's counted samples of the time that one inference takes, inputs and outputs bound beforehand; service time of a closed loop, one stream; under a load the time from when a query was due to its answer";
    /// Inferences per second of one stream.
    pub const THROUGHPUT = ("throughput_per_s", "batches/s", PerSecond, HigherIsBetter, Model, EachRun):
        "inferences completed per second between the first and the last counted sample, one stream or, under a load, all callers; gaps count, but not those of a program that takes its samples in slices";
    /// Items per second of one stream.
    pub const ITEMS = ("items_per_s", "items/s", PerSecond, HigherIsBetter, Model, EachRun):
        "throughput times the batch size, and the tokens of a language model";
    /// Prompt and first token.
    pub const TTFT = ("ttft_ns", "time to first token", Nanoseconds, LowerIsBetter, Model, EachRun):
        "of a greedy loop: from the beginning to the choice of the first token, median over a run's generations";
    /// From one token to the next.
    pub const ITL = ("itl_ns", "inter-token latency", Nanoseconds, LowerIsBetter, Model, EachRun):
        "of a greedy loop: from the choice of a token to that of the next, median over all such gaps of a run";
    /// One gap in a hundred is longer.
    pub const ITL_P99 = ("itl_p99_ns", "inter-token latency p99", Nanoseconds, LowerIsBetter, Model, EachRun):
        "99th percentile of the same gaps";
    /// No gap is longer.
    pub const ITL_LARGEST = ("itl_largest_ns", "largest gap", Nanoseconds, LowerIsBetter, Model, EachRun):
        "the largest of the same gaps";
    /// The token that takes longest.
    pub const ITL_SLOWEST = ("itl_slowest_ns", "slowest token", Nanoseconds, LowerIsBetter, Model, EachRun):
        "of a greedy loop: the largest over its tokens of the median gap before that token over a run's generations";
    /// Which one that is.
    pub const ITL_SLOWEST_TOKEN = ("itl_slowest_token", "which token is slowest", Count, Neutral, Model, EachRun):
        "the token of that gap, counted from 1";
    /// Mean gap of a generation.
    pub const TPOT = ("tpot_ns", "time per output token", Nanoseconds, LowerIsBetter, Model, EachRun):
        "of a greedy loop: from the first to the last token, over the tokens but the first; median over a run's generations";
    /// Of one sequence.
    pub const OUTPUT_TOKENS = ("output_tokens_per_s", "output tokens/s", PerSecond, HigherIsBetter, Model, EachRun):
        "of a greedy loop: tokens that one sequence emits over the whole time with its prompt; median over a run's generations; a batch emits as many times more";
    /// The largest rate of queries that keeps the bound.
    pub const LARGEST_RATE = ("largest_rate_per_s", "largest rate", PerSecond, HigherIsBetter, Model, EachRun):
        "largest rate of queries at which the share of late ones is the one that the bound allows; over processes the rate at which their mean share is, with an interval by inverted t tests; of one process the rate at which its own share is";
    /// Queries that were later than the bound.
    pub const LATE_SHARE = ("late_ratio", "late queries", Share, LowerIsBetter, Model, EachRun):
        "share of queries whose answer came later after they were due than the bound allows";
    /// What an inference takes once it has begun.
    pub const SERVICE = ("service_ns", "service", Nanoseconds, LowerIsBetter, Model, EachRun):
        "median time of a query under the load from its beginning to its answer, without its wait";
    /// MLPerf's percentile.
    pub const EARLY_STOPPING = ("early_stopping_ns", "early stopping", Nanoseconds, LowerIsBetter, Model, EachRun):
        "estimate of the percentile by MLPerf's early stopping: p90 of single stream, p99 of multi stream";
    /// From starting the worker process to its first answer.
    pub const SPAWN = ("spawn_ns", "spawn", Nanoseconds, LowerIsBetter, Procedure, EachRun):
        "from starting the worker process to its first answer";
    /// Session creation.
    pub const LOAD = ("load_ns", "load", Nanoseconds, LowerIsBetter, Model, EachRun):
        "session creation, graph optimisation included; the file was read once before, so it is in the page cache";
    pub const FIRST_INFERENCE = ("first_inference_ns", "first inference", Nanoseconds, LowerIsBetter, Model, EachRun):
        "the first inference of the process; not part of any other statistic";
    /// Until the run was steady.
    pub const TIME_TO_STEADY =
        ("time_to_steady_ns", "time to steady state", Nanoseconds, LowerIsBetter, Model, EachRun):
        "from the start of the first inference to the first counted sample, where the warm-up converged";
    /// Peak resident memory.
    pub const PEAK_RSS = ("peak_rss_bytes", "peak memory", Bytes, LowerIsBetter, Model, EachRun):
        "largest resident set of the worker process (VmHWM), runtime library and input pool included; of commands that of the command";
    /// What a further session adds.
    pub const SESSION_MEMORY = ("session_memory_bytes", "memory per session", Bytes, LowerIsBetter, Model, EachRun):
        "growth of the worker's largest resident set by each session after the first, inputs included";
    /// Processor time per inference.
    pub const CPU_TIME = ("cpu_time_ns", "CPU time", Nanoseconds, LowerIsBetter, Model, EachRun):
        "processor time of all threads of the worker per inference while sampling";
    /// Processor time of a command in user mode.
    pub const USER_TIME = ("user_time_ns", "user time", Nanoseconds, LowerIsBetter, Model, EachRun):
        "processor time in user mode of a command and what it waits for, per execution";
    /// Processor time of a command in the kernel.
    pub const SYSTEM_TIME = ("system_time_ns", "system time", Nanoseconds, LowerIsBetter, Model, EachRun):
        "processor time in the kernel of a command and what it waits for, per execution";
    /// Processor time over wall time.
    pub const CPU_UTILISATION = ("cpu_utilisation_ratio", "CPU utilisation", Ratio, Neutral, Model, EachRun):
        "processor time over wall time while sampling; 2.0 is two processors fully used";
    /// The device's own clock.
    pub const DEVICE_TIME = ("device_time_ns", "device time", Nanoseconds, LowerIsBetter, Model, EachRun):
        "median over a run's counted samples of the time that one inference takes on the device's own clock, between two events on its stream; gaps in which the device waits for the host count";
    /// What an inference takes besides.
    pub const LAUNCH = ("launch_overhead_ns", "launch overhead", Nanoseconds, LowerIsBetter, Model, EachRun):
        "median over a run's counted samples of latency minus device time: launching the work and waking up after it";
    /// Inputs to the device.
    pub const TO_DEVICE = ("h2d_ns", "inputs to device", Nanoseconds, LowerIsBetter, Model, OneRun):
        "copying the inputs of one inference from pinned host memory to the device, median of ten copies after the samples of the first run that completed; in no latency";
    /// Outputs to the host.
    pub const TO_HOST = ("d2h_ns", "outputs to host", Nanoseconds, LowerIsBetter, Model, OneRun):
        "copying the outputs of one inference from the device to pinned host memory, median of ten copies after the samples of the first run that completed; in no latency";
    /// Several inferences at once.
    pub const PIPELINED = ("pipelined_per_s", "pipelined batches/s", PerSecond, HigherIsBetter, Model, EachRun):
        "inferences per second where `measure.pipelined` of them are in flight on the device, median of ten rounds after the samples; not usable as a latency";
    /// Building what a device runs.
    pub const BUILD = ("build_ns", "engine build", Nanoseconds, LowerIsBetter, Model, EachRun):
        "session creation and first inference, in one of which the provider builds an engine: in the rehearsal, whose engine all runs load, or in every run with `measure.rebuild: per_run`";
    /// Time in nodes on the CPU.
    pub const FALLBACK = ("fallback_ratio", "time on the CPU", Share, LowerIsBetter, Model, OneRun):
        "share of an inference on another device that was spent in nodes on the CPU, from the runtime's profile of ten inferences after the samples of the first completed run";
    /// Time in copies that the runtime put between nodes.
    pub const COPIES = ("copy_ratio", "time in copies", Share, LowerIsBetter, Model, OneRun):
        "share of an inference on another device that was spent in copies that the runtime inserted between nodes, including waits for the device, from the same profile";
    pub const DEVICE_MEMORY = ("device_memory_bytes", "device memory", Bytes, LowerIsBetter, Model, EachRun):
        "peak device memory in use during the run, minus what was in use before its worker started; read ten times a second, context and library included";
    /// Memory of PyTorch's allocator.
    pub(crate) const PEAK_ALLOCATED = ("peak_allocated_bytes", "allocated", Bytes, LowerIsBetter, Model, EachRun):
        "peak of the device memory in tensors during the samples, as the framework's allocator counts it; reset before them";
    pub(crate) const PEAK_RESERVED = ("peak_reserved_bytes", "reserved", Bytes, LowerIsBetter, Model, EachRun):
        "peak of the device memory that the framework's allocator held during the samples, free blocks included";
    /// Energy of the device per inference.
    pub const DEVICE_ENERGY = ("device_energy_joules", "device energy", Joules, LowerIsBetter, Model, EachRun):
        "increase of the device's energy counter while counted samples were taken, per inference; includes idle power";
    /// Energy of the processor packages per inference.
    pub const PACKAGE_ENERGY = ("package_energy_joules", "package energy", Joules, LowerIsBetter, Model, EachRun):
        "increase of the energy counters of all processor packages (RAPL) while counted samples were taken, per inference; includes idle power and other processes";
    /// Reading the clock.
    pub const CLOCK_OVERHEAD = ("clock_overhead_ns", "clock overhead", Nanoseconds, Neutral, Procedure, EachRun):
        "median time between two clock readings; reported, never subtracted";
    /// Smallest step of the clock.
    pub const CLOCK_RESOLUTION = ("clock_resolution_ns", "clock resolution", Nanoseconds, Neutral, Procedure, EachRun):
        "smallest step of the clock";
    /// Events of the device's clock.
    pub const EVENTS = ("event_overhead_ns", "event overhead", Nanoseconds, Neutral, Procedure, OneRun):
        "device time between two consecutive events on its stream, median of ten; part of device time, never subtracted";
    /// What was left to do.
    pub const UNFINISHED = ("unfinished_ns", "unfinished work", Nanoseconds, Neutral, Procedure, OneRun):
        "time to synchronise the whole device right after an inference has been waited for, median of ten; near zero if the clock covers all of the work";
    pub const SAMPLES = ("samples", "samples", Count, Neutral, Model, EachRun):
        "counted samples, without late warm-up";
    /// Samples before the counted ones.
    pub const WARMUP_SAMPLES = ("warmup_samples", "warm-up samples", Count, Neutral, Procedure, EachRun):
        "samples taken before the counted ones";
    /// The most that a command prints.
    pub const STDOUT = ("stdout_bytes", "output", Bytes, Neutral, Procedure, EachRun):
        "what a command writes to standard output, the most of a run's counted executions; unknown with `stdout: null` and `inherit`";
    /// The least.
    pub const STDOUT_LEAST = ("stdout_least_bytes", "least output", Bytes, Neutral, Procedure, EachRun):
        "the least of the same";
    /// What reading it takes.
    pub const STDOUT_READ = ("stdout_read_ns", "reading output", Nanoseconds, Neutral, Procedure, EachRun):
        "time in which perfrun's own worker takes the output of a command out of the pipe, per execution, most of it while the command runs; taken off nothing";
    /// How precise a run was when it stopped.
    pub const PRECISION = ("precision_ratio", "precision within a run", Ratio, Neutral, Procedure, EachRun):
        "relative half-width of the interval of the run's median or mean, from the rule that stops sampling";
    /// Bytes held by the inputs.
    pub const INPUT_POOL = ("input_pool_bytes", "input pool", Bytes, Neutral, Procedure, EachRun):
        "bytes of all input sets together, part of the peak memory";
    /// How late queries are begun.
    pub const LATENESS = ("lateness_ns", "lateness", Nanoseconds, Neutral, Procedure, EachRun):
        "99th percentile of the time from when a query was due, and somebody was free to serve it, to its beginning";
    /// Little's law.
    pub const LITTLE = ("little_ratio", "Little's law", Ratio, Neutral, Procedure, EachRun):
        "throughput times mean latency over the number of callers; 1 where no time is lost between queries";
    /// Size of the model file that the cell is run with.
    pub const MODEL_SIZE = ("model_size_bytes", "model size", Bytes, LowerIsBetter, Model, Cell):
        "size of the model file that the cell is run with, external data included; the same in every run";
    /// How like the reference's the outputs are, by their angle.
    pub const FIDELITY_COSINE = ("fidelity_cosine_ratio", "cosine of outputs", Ratio, HigherIsBetter, Model, Cell):
        "smallest cosine of an output of numbers with the reference's, for all input sets of the rehearsal together; the same in every run";
    /// How many elements are the reference's, of outputs that are classes.
    pub const FIDELITY_EQUAL = ("fidelity_equal_ratio", "equal elements", Share, HigherIsBetter, Model, Cell):
        "smallest share of equal elements of an output of whole numbers, booleans or texts, for all input sets of the rehearsal together; the same in every run";
    /// How often the largest score is the reference's.
    pub const FIDELITY_TOP1 = ("fidelity_top1_ratio", "top-1 agreement", Share, HigherIsBetter, Model, Cell):
        "share of the rehearsal's items whose largest output is the reference's, for outputs that are scores of classes; the same in every run";
    /// How far distributions over the next token are from the reference's.
    pub const FIDELITY_KL = ("fidelity_kl", "KL divergence", Number, LowerIsBetter, Model, Cell):
        "of a language model: divergence of the next token's distribution from the reference's, in nats a token; its interval is over sequences; the same in every run";
    /// How well given tokens are predicted.
    pub const PERPLEXITY = ("perplexity", "perplexity", Number, Neutral, Model, Cell):
        "of a language model that is fed prompts: exponential of the mean negative log-likelihood of their tokens; its interval is over prompts; the same in every run";
    /// How often the largest score is that of the label.
    pub const ACCURACY_TOP1 = ("accuracy_top1_ratio", "top-1 accuracy", Share, HigherIsBetter, Model, Cell):
        "share of the dataset's items whose largest output is the label's; its interval is Wilson's over items; the same in every run";
    /// How often the label is among the five largest scores.
    pub const ACCURACY_TOP5 = ("accuracy_top5_ratio", "top-5 accuracy", Share, HigherIsBetter, Model, Cell):
        "share of the dataset's items whose label is among the five largest outputs; its interval is Wilson's over items; the same in every run";
    /// Mean absolute error.
    pub const MAE = ("mae", "mean absolute error", Number, LowerIsBetter, Model, Cell):
        "mean over the dataset's items of the absolute difference from the label, in the label's unit; its interval is over items; the same in every run";
    /// Root of the mean squared error.
    pub const RMSE = ("rmse", "root mean squared error", Number, LowerIsBetter, Model, Cell):
        "root of the mean over the dataset's items of the squared difference from the label, in the label's unit; its interval is over items; the same in every run";
    /// Share of the labels' variance that is explained.
    pub const R2 = ("r2", "R2", Number, HigherIsBetter, Model, Cell):
        "1 minus the mean squared error over the variance of the labels; its interval is over items, for these labels; the same in every run";
}

// What a run met on the machine. These are stored with each run like any other, have no good direction, and are no metric
// references: nothing is judged by them. They explain codes. Most are differences between two looks; those "of the run" are
// taken by the parent right before the worker starts and right after it ends, those "while sampling" by the worker around its
// samples.
metrics! {
    /// Every metric of the environment, in the order of reports.
    ENVIRONMENT:
    /// What other processes used.
    pub const OTHER_CPU = ("other_cpu_ratio", "other processes", Ratio, Neutral, Environment, EachRun):
        "share of the allowed processors' time that processes other than perfrun and its worker used during the run; unknown where several workers are alive at once";
    /// Time that a hypervisor took.
    pub const STEAL = ("steal_ratio", "steal", Ratio, Neutral, Environment, EachRun):
        "share of the allowed processors' time that the hypervisor gave to other guests during the run";
    /// Processors that slowed down.
    pub const THROTTLE_EVENTS = ("throttle_events", "throttling", Count, Neutral, Environment, EachRun):
        "number of times that an allowed processor or its package was throttled by heat or power during the run";
    /// The processor's clock.
    pub const CLOCK = ("clock_cycles_per_s", "clock", PerSecond, Neutral, Environment, EachRun):
        "mean clock of the processors on which the worker's busy threads were, right after the last sample";
    /// Change of the processor's clock.
    pub const CLOCK_CHANGE = ("clock_change_ratio", "change of clock", Ratio, Neutral, Environment, EachRun):
        "absolute change of that clock from right before the first to right after the last sample";
    /// Waiting for a processor.
    pub const PRESSURE_CPU = ("pressure_cpu_ratio", "CPU pressure", Ratio, Neutral, Environment, EachRun):
        "share of the run in which some task of the machine waited for a processor (PSI, some)";
    /// Waiting for memory.
    pub const PRESSURE_MEMORY = ("pressure_memory_ratio", "memory pressure", Ratio, Neutral, Environment, EachRun):
        "share of the run in which some task of the machine waited for memory (PSI, some)";
    /// Waiting for the disk.
    pub const PRESSURE_IO = ("pressure_io_ratio", "I/O pressure", Ratio, Neutral, Environment, EachRun):
        "share of the run in which some task of the machine waited for input or output (PSI, some)";
    /// Processor taken away.
    pub const PREEMPTIONS = ("preemptions_per_s", "preemptions", PerSecond, Neutral, Environment, EachRun):
        "involuntary context switches per second and busy thread of the worker while sampling";
    /// Threads that share a core.
    pub(crate) const SHARED_CORES =
        ("threads_sharing_core", "threads sharing a core", Count, Neutral, Environment, EachRun):
        "busy threads of the worker that were on a physical core with another one, right after the last sample";
    pub(crate) const MEMORY_NODES = ("memory_nodes", "NUMA nodes", Count, Neutral, Environment, EachRun):
        "NUMA nodes of the processors that the worker may use";
    /// Periods in which the quota ran out.
    pub const QUOTA_STOPS = ("quota_stops", "quota throttling", Count, Neutral, Environment, EachRun):
        "periods of the run in which a cgroup used up its CPU quota and its processes were throttled";
    /// Time stopped by the quota.
    pub(crate) const QUOTA_STOPPED =
        ("quota_stopped_ratio", "throttled by quota", Ratio, Neutral, Environment, EachRun):
        "processor time for which tasks were throttled by the CPU quota of a cgroup, over the time of the run";
    /// Pages moved to or from the disk.
    pub const SWAPPED_PAGES = ("swapped_pages", "swapped pages", Count, Neutral, Environment, EachRun):
        "pages moved between memory and swap during the run";
    /// Times that a memory limit was met.
    pub const MEMORY_LIMIT_EVENTS =
        ("memory_limit_events", "memory limit events", Count, Neutral, Environment, EachRun):
        "number of times that the cgroup reached a memory limit during the run (`high`, `max`, `oom`, `oom_kill`)";
    /// Pages read from the disk.
    pub const MAJOR_FAULTS = ("major_faults", "major faults", Count, Neutral, Environment, EachRun):
        "pages that the worker had to wait for from the disk while sampling";
    /// Samples that do not add up.
    pub const UNTIMED = ("untimed_ratio", "outside the clock", Ratio, Neutral, Environment, EachRun):
        "of a program that is not perfrun's own: share of the time in which samples were taken, by perfrun's clock, that the program's samples do not account for";
    /// Loading that does not add up.
    pub const UNTIMED_LOAD = ("untimed_load_ratio", "loading outside the clock", Ratio, Neutral, Environment, EachRun):
        "of a program that is not perfrun's own: share of the time that it took to load, by perfrun's clock, that its load, build and first inference do not account for";
    /// How busy the device was.
    pub const GPU_UTILISATION = ("gpu_utilisation_ratio", "GPU utilisation", Ratio, Neutral, Environment, EachRun):
        "share of the sampling time in which a kernel of any process ran on the device";
    /// The clock of the device.
    pub const GPU_CLOCK = ("gpu_clock_cycles_per_s", "GPU clock", PerSecond, Neutral, Environment, EachRun):
        "mean clock of the device's multiprocessors while sampling";
    pub const GPU_CLOCK_CHANGE =
        ("gpu_clock_change_ratio", "change of GPU clock", Ratio, Neutral, Environment, EachRun):
        "largest minus smallest clock of the device's multiprocessors while sampling, over the largest";
    /// The clock of the device's memory.
    pub const GPU_MEMORY_CLOCK =
        ("gpu_memory_clock_cycles_per_s", "GPU memory clock", PerSecond, Neutral, Environment, EachRun):
        "mean clock of the device's memory while sampling";
    /// Power of the device.
    pub const GPU_POWER = ("gpu_power_watts", "GPU power", Watts, Neutral, Environment, EachRun):
        "mean power of the whole device while sampling";
    /// Slowed down by the power limit.
    pub const GPU_POWER_CAPPED =
        ("gpu_power_capped_ratio", "GPU throttled by power", Ratio, Neutral, Environment, EachRun):
        "share of the readings while sampling in which the device was throttled by its power limit or its supply";
    /// Temperature of the device.
    pub const GPU_TEMPERATURE = ("gpu_temperature_celsius", "GPU temperature", Celsius, Neutral, Environment, EachRun):
        "highest temperature of the device's chip during the run";
    /// Slowed down by heat.
    pub const GPU_HEAT = ("gpu_heat_ratio", "GPU throttled by heat", Ratio, Neutral, Environment, EachRun):
        "share of the readings while sampling in which the device was throttled by its temperature";
    /// How full the device's memory was.
    pub const GPU_MEMORY_USED = ("gpu_memory_used_ratio", "GPU memory in use", Ratio, Neutral, Environment, EachRun):
        "largest share of the device's memory in use during the run, by any process";
    /// What other processes used of the device's time.
    pub const GPU_OTHERS = ("gpu_others_ratio", "other processes on the GPU", Ratio, Neutral, Environment, EachRun):
        "largest share of the device's time that processes other than the worker used during the run";
    /// What other processes held of the device's memory.
    pub const GPU_OTHERS_MEMORY =
        ("gpu_others_memory_ratio", "GPU memory of others", Ratio, Neutral, Environment, EachRun):
        "largest share of the device's memory that processes other than the worker held during the run";
}
