//! What this machine offers and what would spoil a measurement, as text.

use std::fmt::Write;

use crate::host::{Host, Neighbour};

/// Facts about the machine, then what is good and what is not, each with what to do about it.
pub fn describe(host: &Host, neighbours: &[Neighbour], runtime: &str, devices: &[(String, Option<String>)]) -> String {
    let mut text = String::new();
    // Writing into a String cannot fail.
    let _ = facts(&mut text, host, runtime, devices);
    let findings = findings(host, neighbours);
    let (good, bad): (Vec<_>, Vec<_>) = findings.into_iter().partition(|finding| finding.remedy.is_none());
    let _ = writeln!(text, "\nfine");
    for finding in good {
        let _ = writeln!(text, "  {}", finding.text);
    }
    if !bad.is_empty() {
        let _ = writeln!(text, "\nworth knowing");
        for finding in bad {
            let _ = writeln!(text, "  {}", finding.text);
            let _ = writeln!(text, "      {}", finding.remedy.unwrap_or_default());
        }
    }
    text.push_str("\nperfrun changes no setting.\n");
    text
}

struct Finding {
    text: String,
    remedy: Option<&'static str>,
}

fn unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

fn facts(text: &mut String, host: &Host, runtime: &str, devices: &[(String, Option<String>)]) -> std::fmt::Result {
    writeln!(text, "processor  {}", unknown(host.cpu.as_ref()))?;
    writeln!(
        text,
        "           {} logical, {} cores usable (processors {}), quota {}, SMT {}",
        unknown(host.logical_cpus),
        unknown(host.allowed_cores),
        unknown(host.allowed_cpus.as_ref()),
        host.cpu_quota.map_or_else(|| "none".to_owned(), |quota| format!("{quota:.2}")),
        match host.smt {
            Some(true) => "on",
            Some(false) => "off",
            None => "unknown",
        }
    )?;
    writeln!(text, "threads    {} for cells whose variant sets none", host.default_threads())?;
    let memory = host.memory_bytes.map(crate::report::format::bytes);
    writeln!(text, "memory     {}", unknown(memory))?;
    writeln!(text, "system     {}, kernel {}", host.system, unknown(host.kernel.as_ref()))?;
    writeln!(text, "runtime    {runtime}")?;
    for (label, problem) in devices {
        match problem {
            None => writeln!(text, "device     {label}: usable")?,
            Some(reason) => writeln!(text, "device     {reason}")?,
        }
    }
    Ok(())
}

fn findings(host: &Host, neighbours: &[Neighbour]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |text: String, remedy: Option<&'static str>| findings.push(Finding { text, remedy });
    match host.clock_source.as_deref() {
        Some(source @ ("tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page")) => {
            say(format!("clock source {source}: cheap to read"), None);
        }
        Some(source) => say(
            format!("clock source {source}: reading it may take microseconds"),
            Some("another machine type, or the boot option clocksource=tsc where the processor allows it"),
        ),
        None => say("clock source: unknown".to_owned(), None),
    }
    match host.governor.as_deref() {
        Some("performance") => say("governor: performance".to_owned(), None),
        Some(other) => say(
            format!("governor: {other}; clocks follow the load"),
            Some("needs root: cpupower frequency-set -g performance; without: more runs"),
        ),
        None => say("governor: not visible here (usual in virtual machines)".to_owned(), None),
    }
    match host.turbo {
        Some(true) => say(
            "turbo is on: clocks depend on temperature and neighbours".to_owned(),
            Some("needs root: echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo (or 0 into cpufreq/boost)"),
        ),
        Some(false) => say("turbo: off".to_owned(), None),
        None => {}
    }
    if host.virtual_machine == Some(true) {
        say(
            "a virtual machine: other guests may take time from it".to_owned(),
            Some("without root: a dedicated instance, or more runs; blocks and pairs keep verdicts honest"),
        );
    }
    if host.aslr == Some(0) {
        say(
            "address-space randomisation is off: every run has the same layout, which is one sample of it".to_owned(),
            Some("needs root: sysctl kernel.randomize_va_space=2"),
        );
    }
    let used: f64 = neighbours.iter().map(|neighbour| neighbour.cpus).sum();
    if neighbours.is_empty() {
        say("nobody else uses the processor now".to_owned(), None);
    } else {
        let names: Vec<&str> = neighbours.iter().take(5).map(|neighbour| neighbour.name.as_str()).collect();
        say(
            format!("others use {used:.1} processors now: {}", names.join(", ")),
            Some("without root: perfrun run --wait 5m waits for quiet"),
        );
    }
    findings
}
