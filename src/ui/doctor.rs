//! What this machine offers and what would spoil a measurement, as text.

use std::fmt::Write;

use super::Ui;
use base::machine::host::Host;
use base::machine::probe::check::{Check, State};

/// What `doctor` shows.
pub struct Facts<'a> {
    /// The machine.
    pub host: &'a Host,
    /// The library that a run would use, in words.
    pub runtime: &'a str,
    /// A line for each device.
    pub devices: Vec<String>,
    /// Everything that was looked at.
    pub checks: &'a [Check],
}

/// Facts about the machine, then three lists: what is well, what root can change, and what anybody can do.
pub fn describe(ui: &Ui, facts: &Facts<'_>) -> String {
    let mut text = String::new();
    machine(ui, &mut text, facts);
    let with = |state: State| facts.checks.iter().filter(move |check| check.state == state);
    list(&mut text, "ok", with(State::Ok).map(|check| (check, None)));
    list(&mut text, "needs root", with(State::Off).filter_map(|check| Some((check, Some(check.with_root?)))));
    list(&mut text, "without root", with(State::Off).filter_map(|check| Some((check, Some(check.without_root?)))));
    let unknown: Vec<&str> = with(State::Unknown).map(|check| check.what).collect();
    if !unknown.is_empty() {
        // Writing into a String cannot fail.
        let _ =
            writeln!(text, "\nnot visible here (usual in virtual machines and containers)\n  {}", unknown.join(", "));
    }
    text.push_str("\nNo setting was changed.\n");
    text
}

fn list<'a>(text: &mut String, title: &str, items: impl Iterator<Item = (&'a Check, Option<&'a str>)>) {
    let mut items = items.peekable();
    if items.peek().is_none() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    for (check, remedy) in items {
        let _ = writeln!(text, "  {}: {}", check.what, check.found.as_deref().unwrap_or("unknown"));
        if let Some(remedy) = remedy {
            let _ = writeln!(text, "      {remedy}");
        }
    }
}

fn unknown<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

fn machine(ui: &Ui, text: &mut String, facts: &Facts<'_>) {
    let host = facts.host;
    let processors = format!(
        "{} logical, {} cores usable (processors {}), quota {}, SMT {}",
        unknown(host.logical_cpus),
        unknown(host.allowed_cores),
        unknown(host.allowed_cpus.as_ref()),
        host.cpu_quota.map_or_else(|| "none".to_owned(), |quota| format!("{quota:.2}")),
        match host.smt {
            Some(true) => "on",
            Some(false) => "off",
            None => "unknown",
        }
    );
    let memory = host.memory_bytes.map(report::format::bytes);
    let mut say = |label: &str, line: &str| text.push_str(&ui.labelled_text(label, line));
    say("processor", &unknown(host.cpu.as_ref()));
    say("", &processors);
    say("threads", &format!("{} by default", host.default_threads()));
    say("memory", &unknown(memory));
    say("system", &format!("{}, kernel {}", host.system, unknown(host.kernel.as_ref())));
    say("runtime", facts.runtime);
    for device in &facts.devices {
        say("device", device);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(what: &'static str, state: State) -> Check {
        Check {
            what,
            source: "/proc",
            found: (state != State::Unknown).then(|| "found".to_owned()),
            state,
            code: None,
            with_root: Some("command as root"),
            without_root: Some("what anybody can do"),
        }
    }

    #[test]
    fn three_lists_and_what_cannot_be_seen() {
        let checks = [check("good", State::Ok), check("bad", State::Off), check("hidden", State::Unknown)];
        let host = base::machine::host::describe();
        let facts = Facts { host: &host, runtime: "none", devices: vec!["cpu: usable".to_owned()], checks: &checks };
        let text = describe(&Ui::detect(), &facts);
        let lists = text.split_once("\nok\n").map(|(_, lists)| lists).unwrap_or_default();
        assert_eq!(
            lists,
            "  good: found\n\nneeds root\n  bad: found\n      command as root\n\nwithout root\n  bad: found\n      \
             what anybody can do\n\nnot visible here (usual in virtual machines and containers)\n  hidden\n\n\
             No setting was changed.\n"
        );
    }
}
