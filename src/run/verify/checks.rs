//! What the runs of a verification say.

use std::fmt::Display;

use serde::Serialize;

use super::models::{SLOW, Size};
use super::{GROWTH, IN_FLIGHT, SETS, Seen, Tried};
use base::metric;
use experiment::{Device, LowerPrecision};
use judge::profile::UNCLOSED;
use quality::fidelity::Fidelity;
use worker::backend::trace::DeviceTime;
use worker::backend::{Failure, FailureKind};

/// Whether what must hold was seen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// Nothing here shows it.
    NotShown,
}

/// What must hold, and what was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Check {
    /// What must hold.
    pub(crate) what: &'static str,
    /// Whether it does.
    pub(crate) state: State,
    /// The numbers that say so.
    pub(crate) found: String,
}

/// The checks so far.
#[derive(Default)]
pub(super) struct Checks(pub(super) Vec<Check>);

/// Least cosine of outputs of the same arithmetic; TF32 keeps ten bits.
const ALIKE: f64 = 0.9999;

/// Nothing is exact: clocks and machines differ from one run to the next by less.
const SLACK: f64 = 0.9;

/// Whether one time is longer than the other, as two processes measured it.
fn beyond(longer: f64, shorter: f64) -> State {
    match () {
        () if longer > shorter * 1.03 => State::Passed,
        () if longer < shorter * SLACK => State::Failed,
        () => State::NotShown,
    }
}

fn ms(nanos: f64) -> String {
    let decimals = if nanos < 1e7 { 3 } else { 1 };
    format!("{:.decimals$} ms", nanos / 1e6)
}

impl Checks {
    fn add(&mut self, what: &'static str, holds: bool, found: impl Display) {
        let state = if holds { State::Passed } else { State::Failed };
        self.0.push(Check { what, state, found: found.to_string() });
    }

    /// Whether one takes longer than the other; not shown where they are too near to each other.
    fn differs(&mut self, what: &'static str, longer: f64, shorter: f64, found: String) {
        self.0.push(Check { what, state: beyond(longer, shorter), found });
    }

    pub(super) fn failed(&mut self, what: &'static str, failure: &Failure) {
        self.add(what, false, failure.in_short());
    }

    pub(super) fn session(&mut self, device: &Device, tried: &Tried) {
        const WHAT: &str = "a model runs, all of it on the device";
        let seen = match tried {
            Ok(seen) => seen,
            Err(failure) => return self.failed(WHAT, failure),
        };
        let placement = seen.run.data.placement.clone().unwrap_or_default();
        let nodes: Vec<String> = placement.nodes.iter().map(|(name, nodes)| format!("{nodes} on {name}")).collect();
        let elsewhere = placement.fallback.values().copied().fold(0, u64::saturating_add);
        // WebGPU of 1.27.0 leaves out the nodes that it rewrites.
        if nodes.is_empty() && elsewhere == 0 {
            let found = format!("the runtime lists no node, neither of {} nor of the CPU", device.label());
            return self.0.push(Check { what: WHAT, state: State::NotShown, found });
        }
        self.add(WHAT, elsewhere == 0, format!("nodes: {}", nodes.join(", ")));
    }

    pub(super) fn outputs(&mut self, what: &'static str, like: &Result<Fidelity, Failure>) {
        match like {
            Ok(like) => {
                let is_whole = like.elements > Some(0) && like.input_sets == u64::from(SETS) && like.misses.is_empty();
                let cosine = like.cosine.unwrap_or(0.0);
                let numbers = format!("cosine {cosine:.6}, largest difference {:.1e}", like.max_abs);
                let found = [vec![numbers], like.misses.clone()].concat().join("; ");
                self.add(what, is_whole && cosine >= ALIKE, found);
            }
            Err(failure) => self.failed(what, failure),
        }
    }

    /// Not shown where the convolution itself ran on the CPU.
    pub(super) fn convolution(
        &mut self,
        what: &'static str,
        tried: Result<(Result<Fidelity, Failure>, Seen), Failure>,
    ) {
        let (like, seen) = match tried {
            Ok(found) => found,
            Err(failure) => return self.failed(what, &failure),
        };
        if seen.run.data.placement.is_some_and(|placement| placement.fallback.contains_key("Conv")) {
            let found = "the provider leaves it to the CPU".to_owned();
            return self.0.push(Check { what, state: State::NotShown, found });
        }
        self.outputs(what, &like);
    }

    /// Whether what was looked at last does not hold.
    pub(super) fn has_failed_last(&self) -> bool {
        self.0.last().is_some_and(|check| check.state == State::Failed)
    }

    /// What the last check found is right where the same work in float32 is.
    pub(super) fn in_float32(&mut self, lower: &LowerPrecision, device: &Device, like: &Result<Fidelity, Failure>) {
        let mut kept = Checks::default();
        kept.outputs("", like);
        if let (Some(check), Some(kept)) = (self.0.last_mut(), kept.0.pop()) {
            let Check { state, found, .. } = kept;
            check.state = state;
            check.found += &format!("; {} {}; with {}: {found}", device.label(), lower.does, lower.written(device));
        }
    }

    /// By size and nanoseconds.
    pub(super) fn waiting(&mut self, small: (Size, f64), large: (Size, f64)) {
        let found = format!("{}: {}, {}: {}", small.0, ms(small.1), large.0, ms(large.1));
        self.add("the clock waits for the device", large.1 >= GROWTH * small.1, found);
    }

    /// Work on a stream that is not perfrun's would go on when the clock has ended.
    pub(super) fn unfinished(&mut self, large: &Seen) {
        /// Or a twentieth of an inference.
        const HARDLY_NS: f64 = 20_000.0;
        const WHAT: &str = "no work is left when the clock stops";
        let Some(left) = large.metric(&metric::UNFINISHED) else { return self.add(WHAT, false, "unknown") };
        let found = format!("{} after {}", ms(left), ms(large.latency_ns));
        self.add(WHAT, left <= HARDLY_NS.max(0.05 * large.latency_ns), found);
    }

    pub(super) fn device_clock(&mut self, large: &Seen) {
        const WHAT: &str = "the device's clock agrees with the host's";
        let (Some(device), Some(most)) = (large.device_ns, large.most_on_device) else {
            return self.add(WHAT, false, "no time of the device");
        };
        let events =
            large.metric(&metric::EVENTS).map_or(String::new(), |nanos| format!("; nothing takes {}", ms(nanos)));
        let found = format!("{} of {}{events}", ms(device), ms(large.latency_ns));
        // Half a microsecond is the resolution of events.
        self.add(WHAT, most <= 1.0 + 1e3 / large.latency_ns.max(1.0) && device >= 0.5 * large.latency_ns, found);
    }

    /// That a profile finds the node that takes longest, and where kernels are recorded, that they take no longer than the
    /// device's own clock says.
    pub(super) fn slow_node(&mut self, tried: &Tried) {
        const WHAT: &str = "a profile finds the slow node";
        let seen = match tried {
            Ok(seen) => seen,
            Err(failure) => return self.failed(WHAT, failure),
        };
        let mut nodes: Vec<(&str, f64)> =
            seen.run.nodes.iter().filter_map(|it| Some((&*it.node.path, it.self_ns?))).collect();
        nodes.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let (&[longest, next, ..], true) = (nodes.as_slice(), nodes.len() == seen.run.nodes.len()) else {
            let found = match &seen.run.device {
                Some(DeviceTime::Unknown(why)) => format!("no times of nodes: {why}"),
                _ if seen.run.nodes.len() == 1 => "the provider runs the model as one node".to_owned(),
                _ => "the runtime reports no times of nodes on this device".to_owned(),
            };
            return self.0.push(Check { what: WHAT, state: State::NotShown, found });
        };
        let mut found = format!("{} {}, then {} {}", longest.0, ms(longest.1), next.0, ms(next.1));
        let mut holds = longest.0 == SLOW;
        if let (Some(DeviceTime::Recorded { busy_ns, .. }), Some(device_ns)) = (&seen.run.device, seen.device_ns) {
            found += &format!("; all kernels {} of {} by the device's clock", ms(*busy_ns), ms(device_ns));
            holds = holds && *busy_ns <= UNCLOSED * device_ns;
        }
        self.add(WHAT, holds, found);
    }

    pub(super) fn pipelined(&mut self, tried: &Tried) {
        const WHAT: &str = "several inferences in flight are no slower than one";
        match tried {
            Ok(seen) => {
                let (alone, together) = (1e9 / seen.latency_ns.max(1.0), seen.metric(&metric::PIPELINED));
                let found = format!("{:.0} a second, {} under way {:.0}", alone, IN_FLIGHT, together.unwrap_or(0.0));
                self.add(WHAT, together.is_some_and(|together| together >= SLACK * alone), found);
            }
            Err(failure) => self.failed(WHAT, failure),
        }
    }

    pub(super) fn cold(&mut self, warm: &Tried, cold: &Tried) {
        const WHAT: &str = "cold caches make the device slower";
        match (warm, cold) {
            (Ok(warm), Ok(cold)) => {
                let nanos = |seen: &Seen| seen.device_ns.unwrap_or(0.0);
                let found = format!("warm {}, cold {}", ms(nanos(warm)), ms(nanos(cold)));
                self.differs(WHAT, nanos(cold), nanos(warm), found);
            }
            (Err(failure), _) | (_, Err(failure)) => self.failed(WHAT, failure),
        }
    }

    pub(super) fn graph(&mut self, plain: &Seen, tried: &Result<(Result<Fidelity, Failure>, Seen), Failure>) {
        const WHAT: &str = "a recorded CUDA graph has the same outputs and is faster";
        match tried {
            Ok((like, replayed)) => {
                self.outputs(WHAT, like);
                if let Some(check) = self.0.last_mut() {
                    if check.state == State::Passed {
                        check.state = beyond(plain.latency_ns, replayed.latency_ns);
                    }
                    check.found += &format!("; {}, {} without", ms(replayed.latency_ns), ms(plain.latency_ns));
                }
            }
            Err(failure) => self.failed(WHAT, failure),
        }
    }

    pub(super) fn boundary(&mut self, device: &Seen, host: &Tried, has_stream: bool) {
        const WHAT: &str = "copies are within `boundary: host`";
        let host = match host {
            Ok(host) => host.latency_ns,
            Err(failure) => return self.failed(WHAT, failure),
        };
        let mut found = format!("device {}, host {}", ms(device.latency_ns), ms(host));
        if !has_stream {
            // Outputs are read back either way, and on a device that shares the host's memory copies are short: what they
            // take is not known, so only a host that takes longer shows them.
            const HALF: f64 = 0.5;
            let state = match () {
                () if host < HALF * device.latency_ns => State::Failed,
                () if beyond(host, device.latency_ns) == State::Passed => State::Passed,
                () => State::NotShown,
            };
            found += "; how long copies take is unknown";
            return self.0.push(Check { what: WHAT, state, found });
        }
        let (Some(to), Some(from)) = (device.metric(&metric::TO_DEVICE), device.metric(&metric::TO_HOST)) else {
            return self.add(WHAT, false, "no time of copies");
        };
        found += &format!("; from and to pinned memory {} and {}", ms(to), ms(from));
        self.add(WHAT, host - device.latency_ns >= 0.5 * (to + from), found);
    }

    /// Whether nodes were on the CPU, so that there is something to refuse.
    pub(super) fn fallback(&mut self, tried: &Tried) -> bool {
        const WHAT: &str = "nodes on the CPU are found and timed";
        let seen = match tried {
            Ok(seen) => seen,
            Err(failure) => {
                self.failed(WHAT, failure);
                return false;
            }
        };
        let operators = seen.run.data.placement.clone().unwrap_or_default().fallback;
        if operators.is_empty() {
            let found = "the provider takes every node".to_owned();
            self.0.push(Check { what: WHAT, state: State::NotShown, found });
            return false;
        }
        let share = seen.metric(&metric::FALLBACK);
        let names: Vec<&str> = operators.keys().map(String::as_str).collect();
        let found = match share {
            Some(share) => format!("{}, {:.1} % of the time", names.join(", "), 100.0 * share),
            None => format!("{}, and no time of it", names.join(", ")),
        };
        self.add(WHAT, share.is_some_and(|share| share > 0.0), found);
        true
    }

    /// What must fail, for this reason.
    pub(super) fn refused(&mut self, what: &'static str, kind: FailureKind, tried: &Tried) {
        match tried {
            Ok(_) => self.add(what, false, "it ran"),
            Err(failure) => self.add(what, failure.kind == kind, failure.in_short()),
        }
    }

    pub(super) fn monitor(&mut self, problem: Option<&String>, large: &Seen) {
        const WHAT: &str = "the driver reports what the device does";
        if let Some(problem) = problem {
            return self.add(WHAT, false, problem);
        }
        let values = large.run.watched.as_ref().map(|watched| watched.metrics(large.run.data.measured.len() as u64));
        let value = |metric: &metric::Metric| values.as_ref()?.get(metric.name).copied();
        let all = [
            value(&metric::GPU_CLOCK).map(|hertz| format!("{:.0} MHz", hertz / 1e6)),
            value(&metric::GPU_POWER).map(|watts| format!("{watts:.0} W")),
            value(&metric::DEVICE_MEMORY).map(|bytes| format!("{:.0} MiB", bytes / f64::from(1 << 20))),
            value(&metric::DEVICE_ENERGY).map(|joules| format!("{:.2} mJ an inference", joules * 1e3)),
        ];
        let is_whole = all.iter().all(Option::is_some);
        let found: Vec<String> = all.into_iter().flatten().collect();
        self.add(WHAT, is_whole, if found.is_empty() { "nothing".to_owned() } else { found.join(", ") });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use experiment::{FidelityLimits, Hardware, Provider};
    use files::array::Array;
    use onnx::ElementType;
    use quality::fidelity;
    use worker::backend::Placement;

    fn seen(latency_ns: f64) -> Seen {
        Seen { latency_ns, ..Seen::default() }
    }

    fn state(check: impl FnOnce(&mut Checks)) -> State {
        let mut checks = Checks::default();
        check(&mut checks);
        checks.0[0].state
    }

    #[test]
    fn a_clock_that_does_not_wait_is_found() {
        let size = |rows| Size { rows, width: 512 };
        assert_eq!(state(|checks| checks.waiting((size(32), 1e5), (size(8192), 4e5))), State::Passed);
        assert_eq!(state(|checks| checks.waiting((size(32), 1e5), (size(8192), 1.1e5))), State::Failed);
        let left = |nanos| {
            let mut large = seen(1e6);
            large.run.data.metrics.insert(metric::UNFINISHED.name.to_owned(), nanos);
            state(|checks| checks.unfinished(&large))
        };
        assert_eq!((left(5e3), left(9e5)), (State::Passed, State::Failed));
        assert_eq!(state(|checks| checks.unfinished(&seen(1e6))), State::Failed);
    }

    #[test]
    fn a_device_cannot_take_longer_than_who_waits_for_it() {
        let clock_state = |device, most| {
            let large = Seen { device_ns: Some(device), most_on_device: Some(most), ..seen(1e6) };
            state(|checks| checks.device_clock(&large))
        };
        assert_eq!(clock_state(9e5, 0.95), State::Passed);
        assert_eq!(clock_state(9e5, 1.2), State::Failed);
        // Events that are stamped at once: the clock of the host in disguise, or none.
        assert_eq!(clock_state(1e5, 0.1), State::Failed);
        assert_eq!(state(|checks| checks.device_clock(&seen(1e6))), State::Failed);
    }

    #[test]
    fn a_convolution_that_ran_on_the_cpu_shows_nothing() {
        let output = |last: f32| {
            let bytes = [1.0, last].into_iter().flat_map(f32::to_le_bytes).collect();
            vec![
                vec![Array {
                    name: "y".to_owned(),
                    element: ElementType::Float32,
                    shape: vec![2],
                    bytes,
                    keys: Vec::new()
                }];
                SETS as usize
            ]
        };
        let convolution_state = |last: f32, placement: Option<Placement>| {
            let like = fidelity::compare(&output(1.0), &output(last), &FidelityLimits::default());
            let mut seen = seen(1.0);
            seen.run.data.placement = placement;
            state(|checks| checks.convolution("x", Ok((Ok(like), seen))))
        };
        let elsewhere = |operator: &str| {
            Some(Placement { fallback: BTreeMap::from([(operator.to_owned(), 1)]), ..Placement::default() })
        };
        assert_eq!(
            (convolution_state(1.0, None), convolution_state(1.0, elsewhere("Cast"))),
            (State::Passed, State::Passed)
        );
        assert_eq!(convolution_state(1.0, elsewhere("Conv")), State::NotShown);
        assert_eq!(convolution_state(0.9, None), State::Failed);
        let failure = Failure::new(FailureKind::Provider, "cuDNN is not available.");
        assert_eq!(state(|checks| checks.convolution("x", Err(failure))), State::Failed);
    }

    #[test]
    fn a_profile_names_the_slow_node_or_shows_nothing() {
        use worker::backend::trace::{Node, NodeTime};
        let node = |(path, self_ns): &(&str, Option<f64>)| NodeTime {
            node: Node { path: (*path).to_owned(), ..Node::default() },
            executions: 1.0,
            self_ns: *self_ns,
            ..NodeTime::default()
        };
        let profile = |nodes: &[(&str, Option<f64>)], device: Option<DeviceTime>| {
            let mut seen = Seen { device_ns: Some(1e6), ..seen(1.1e6) };
            (seen.run.nodes, seen.run.device) = (nodes.iter().map(node).collect(), device);
            state(|checks| checks.slow_node(&Ok(seen)))
        };
        let recorded = |busy_ns| Some(DeviceTime::Recorded { busy_ns, span_ns: 1e6, clock_error_ns: 1 });
        let found = [("small", Some(1e4)), (SLOW, Some(8e5)), ("narrowing", Some(2e4))];
        assert_eq!([profile(&found, None), profile(&found, recorded(8.3e5))], [State::Passed; 2]);
        assert_eq!(profile(&found, recorded(1.1e6)), State::Failed);
        assert_eq!(profile(&[("small", Some(9e5)), (SLOW, Some(8e5))], None), State::Failed);
        let unknown = Some(DeviceTime::Unknown("CUPTI is not there".to_owned()));
        let shown = [
            profile(&[("one", Some(1e6))], None),
            profile(&[("small", None), (SLOW, None)], unknown),
            profile(&[], None),
        ];
        assert_eq!(shown, [State::NotShown; 3]);
    }

    #[test]
    fn what_must_be_refused_is_refused_for_its_reason() {
        let failure = |kind| Err(Failure::new(kind, "text"));
        let kind = FailureKind::Provider;
        assert_eq!(state(|checks| checks.refused("x", kind, &failure(kind))), State::Passed);
        assert_eq!(state(|checks| checks.refused("x", kind, &failure(FailureKind::Killed))), State::Failed);
        assert_eq!(state(|checks| checks.refused("x", kind, &Ok(seen(1.0)))), State::Failed);
    }

    #[test]
    fn what_a_provider_takes_shows_no_node_elsewhere() {
        let mut checks = Checks::default();
        assert!(!checks.fallback(&Ok(seen(1.0))));
        assert_eq!(checks.0[0].state, State::NotShown);
    }

    #[test]
    fn what_is_too_near_is_not_shown() {
        assert_eq!(beyond(1.1e5, 1e5), State::Passed);
        assert_eq!(beyond(1e5, 1e5), State::NotShown);
        assert_eq!(beyond(1e5, 1.5e5), State::Failed);
    }

    #[test]
    fn copies_take_time() {
        let host = |nanos| Ok(seen(nanos));
        let mut device = seen(1e6);
        for metric in [metric::TO_DEVICE, metric::TO_HOST] {
            device.run.data.metrics.insert(metric.name.to_owned(), 1e6);
        }
        assert_eq!(state(|checks| checks.boundary(&device, &host(3e6), true)), State::Passed);
        assert_eq!(state(|checks| checks.boundary(&device, &host(1e6), true)), State::Failed);
        // Without a stream the time of copies is unknown: a host that is faster, or as fast, shows none.
        let unknown = |nanos| state(|checks| checks.boundary(&seen(1e6), &host(nanos), false));
        assert_eq!(unknown(1.2e6), State::Passed);
        assert_eq!([1.01e6, 1e6, 0.8e6].map(unknown), [State::NotShown; 3]);
        assert_eq!(unknown(0.4e6), State::Failed);
    }

    /// OpenVINO on a processor with AMX.
    #[test]
    fn outputs_in_a_lower_precision_are_right_where_those_in_float32_are() {
        let device = Device { hardware: Some(Hardware::Cpu), ..Device::of("openvino") };
        let lower = Provider::lower_precision(&device).expect("one");
        let like = |cosine: f64, misses: &[&str]| {
            let bytes = [1.0_f32, 0.0].iter().flat_map(|number| number.to_le_bytes()).collect();
            let (name, element, shape) = ("y".to_owned(), ElementType::Float32, vec![2]);
            let reference = [vec![Array { name, element, shape, bytes, keys: Vec::new() }]];
            let found = fidelity::compare(&reference, &reference, &FidelityLimits::default());
            let misses = misses.iter().map(|miss| (*miss).to_owned()).collect();
            Ok(Fidelity { cosine: Some(cosine), misses, input_sets: u64::from(SETS), ..found })
        };
        let check = |kept: Result<Fidelity, Failure>| {
            let mut checks = Checks::default();
            checks.outputs("outputs are those of the CPU", &like(0.99995, &["12.50 % of the elements are close"]));
            checks.in_float32(lower, &device, &kept);
            checks.0.remove(0)
        };
        let right = check(like(1.0, &[]));
        assert_eq!(right.state, State::Passed);
        assert!(right.found.contains("12.50 % of the elements are close; openvino:CPU computes fp32 models in bf16"));
        assert!(right.found.contains("INFERENCE_PRECISION_HINT") && right.found.contains(": cosine 1.000000"));
        assert_eq!(check(like(0.9, &["cosine"])).state, State::Failed);
        assert_eq!(check(Err(Failure::new(FailureKind::Provider, "refused"))).state, State::Failed);
    }
}
