//! What people see while an experiment runs: header, rehearsal, bar, table.
//!
//! On a terminal the table is redrawn after every block, at most once a second; elsewhere there is one line a block.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};

use super::plan::product_line;
use super::quiet::Quiet;
use super::{LABEL_WIDTH, Ui, duration, table};
use crate::run::event::Event;
use base::metric::{MetricReference, Unit};
use base::printable::printable;
use base::wording::{list, some};
use experiment::{Runs, Stdout};
use judge::compare::{ComparisonRules, Judged, verdicts};
use judge::results::{self, Together};
use judge::summary::{LEAST_RUNS, summarize_briefly};
use plan::{Cell, CellId, Plan, Skip, SkipKind};
use record::revision::NoRevision;
use record::{BudgetUsed, CellRate, Manifest, Outcome, RunKind, StoredRun};
use report::format::{amount, count, percent};
use report::page::{accuracy_lines, executed_by, overview};
use report::{batch_search, together};
use worker::backend;

/// Listens to the runner.
#[derive(Debug)]
pub struct Live<'a> {
    ui: &'a Ui,
    /// Who else uses the machine.
    busy: Option<String>,
    bar: Option<ProgressBar>,
    /// When the first block of this invocation began, and how many have ended.
    blocks: Option<(Instant, u32)>,
    has_shown_interrupt: bool,
    /// Models that were converted, or found converted.
    conversions: usize,
    /// When something was said last.
    quiet: Quiet,
    /// Nothing is redrawn, since commands print here too.
    is_shared: bool,
    /// Commands are measured.
    runs_commands: bool,
}

/// So many cells are named where there are at least two more.
const MOST_NAMED: usize = 4;

/// How long a conversion takes until it is worth a line.
const NOTICEABLE: Duration = Duration::from_secs(2);

impl<'a> Live<'a> {
    /// A listener that writes through `ui`; `busy` says who else uses the machine.
    pub fn new(ui: &'a Ui, busy: Option<String>) -> Self {
        let quiet = Quiet::new();
        Live {
            ui,
            busy,
            bar: None,
            blocks: None,
            has_shown_interrupt: false,
            conversions: 0,
            quiet,
            is_shared: false,
            runs_commands: false,
        }
    }

    /// Whether there is a terminal to redraw.
    fn is_terminal(&self) -> bool {
        self.ui.is_terminal() && !self.is_shared
    }

    /// What it writes through.
    pub fn ui(&self) -> &'a Ui {
        self.ui
    }

    /// Takes one event.
    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        self.quiet.hear(event);
        match event {
            Event::Started { manifest, already_done } => self.start(manifest, *already_done),
            Event::PassBegan { .. } => {}
            Event::Converting { model, precision } => self.converting(model, precision.name()),
            Event::Converted { model, precision, was_cached, was_damaged, took } => {
                self.converted(model, precision.name(), *was_cached, *took);
                if *was_damaged {
                    let what = format!("{model} in {} was damaged: converted again", precision.name());
                    self.ui.labelled("cache", &what);
                }
            }
            Event::BatchTried { cell, tried } => self.spin("searching", format!("{cell}: batch {}", tried.batch)),
            Event::Searched { manifest } => self.searched(manifest),
            Event::RateFound { cell, rate } => self.rate_found(cell, rate),
            Event::Rehearsed { done, total, run } => self.rehearsed(*done, *total, run),
            Event::RehearsalEnded { plan, rehearsals, took } => self.rehearsal(plan, rehearsals, *took),
            Event::Scoring { what, done, total } => {
                let bar = self.bar(*total as u64, what);
                bar.set_length(*total as u64);
                bar.set_position(*done as u64);
                if done == total {
                    self.finish();
                }
            }
            Event::Profiling { done, total } => {
                if *done == 0 {
                    self.ui
                        .labelled("profiling", &format!("{total} pairs of processes, with the profiler and without"));
                }
                self.bar(*total as u64, "profiling").set_position(*done as u64);
                if done == total {
                    self.finish();
                }
            }
            Event::Scored { manifest, took } => {
                self.finish();
                let mut lines = accuracy_lines(&manifest.plan, manifest.accuracy());
                if let Some(last) = lines.last_mut() {
                    last.push_str(&format!("; {}", duration(*took)));
                }
                lines.iter().for_each(|line| self.ui.labelled("accuracy", line));
            }
            Event::SettingUp { text } => self.ui.labelled("setup", text),
            Event::CheckingGrade { required, runs } => {
                let letter = required.letter();
                let text = format!("grade {letter}: checking first with {runs} runs of one cell against itself");
                self.ui.labelled("require", &text);
            }
            Event::TryingTogether { done, most, cells } => {
                if *done == 0 {
                    let text = format!("trying {cells} cells alone and at the same time, {} blocks", Runs::AUTO);
                    self.ui.labelled("parallel", &text);
                }
                self.bar(u64::from(*most), "trying").set_position(u64::from(*done));
            }
            Event::TriedTogether { manifest, trial } => {
                let path = |id: CellId| {
                    let cell = manifest.plan.cells.iter().find(|cell| cell.id == id);
                    cell.map(|cell| manifest.plan.path(cell)).unwrap_or_default()
                };
                self.finish();
                self.ui.labelled("parallel", &together::found(&Together::of(manifest, trial), &path));
            }
            Event::Planned { manifest, cells, estimate, longest, budget, total } => {
                self.planned(manifest, *cells, estimate.zip(*longest), *budget, *total);
            }
            Event::RunEnded { done, total } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(*total as u64);
                    bar.set_position(*done as u64);
                }
            }
            Event::BlockEnded { manifest, runs, done, blocks, going_on, groups } => {
                let progress = progress(manifest, *done, *blocks, groups - going_on.len(), *groups);
                self.block(manifest, runs, &progress, going_on, blocks.saturating_sub(*done));
            }
            Event::Tick => {
                if let Some(bar) = &self.bar {
                    bar.tick();
                }
                // A bar shows the time.
                if (self.bar.is_none() || !self.is_terminal())
                    && let Some(quiet) = self.quiet.overdue()
                {
                    self.ui.labelled(self.quiet.label, &format!("still at work, {} so far", duration(quiet)));
                }
            }
            Event::Interrupted => self.interrupted(),
        }
    }

    /// Takes the bar away, so that what follows stands on lines of its own.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn start(&mut self, manifest: &Manifest, already_done: usize) {
        let ui = self.ui;
        let mut commands = manifest.experiment.models.iter().filter_map(|model| model.command.as_ref());
        self.is_shared = commands.any(|command| command.stdout == Stdout::Inherit);
        self.runs_commands = manifest.experiment.backend.runs_commands();
        ui.labelled(&format!("{:<10} ", manifest.experiment.name), &product_line(&manifest.plan));
        if manifest.quick {
            let margin = percent(ComparisonRules::of(manifest).margin_of(MetricReference::LATENCY));
            let runs = manifest.plan.runs;
            ui.labelled(
                "quick look",
                &format!("{runs} short runs per cell, no control; only differences beyond {margin} are claimed"),
            );
        }
        for (index, skip) in manifest.plan.skips.iter().enumerate() {
            let count = manifest.plan.cells.iter().filter(|cell| cell.skip == Some(index as u32)).count();
            let remedy = skip.remedy.as_ref().map_or(String::new(), |remedy| format!("; {remedy}"));
            ui.labelled("skipped", &format!("{count}: {}{remedy}", skip.reason));
        }
        ui.labelled("machine", &machine(manifest));
        if let Some(NoRevision { why, remedy }) = &manifest.no_revision {
            let remedy = remedy.as_ref().map_or(String::new(), |remedy| format!("; {remedy}"));
            ui.labelled("warning", &format!("no commit is recorded: {why}{remedy}"));
        }
        if let Some(busy) = &self.busy {
            ui.labelled("", busy);
        }
        let is_again = manifest.findings.invocations.last().is_some_and(|invocation| invocation.first_block > 0);
        let again = if is_again { "what failed, with what it is compared with, as another record; " } else { "" };
        if is_again || already_done > 0 {
            ui.labelled("resuming", &format!("{again}keeping {already_done} runs of earlier sessions"));
        }
    }

    fn converting(&mut self, model: &str, precision: &str) {
        self.spin("converting", format!("{model} to {precision}"));
    }

    /// What was found of each cell whose batch was searched.
    fn searched(&mut self, manifest: &Manifest) {
        self.finish();
        for search in manifest.findings.search.iter().flat_map(|found| &found.searches) {
            let cell = manifest.plan.cells.get(search.cell as usize).map(|cell| manifest.plan.path(cell));
            self.ui.labelled("batch", &format!("{}: {}", cell.unwrap_or_default(), batch_search::found(search)));
        }
    }

    /// The rate near which the runs of a cell are, or why there is none.
    fn rate_found(&mut self, cell: &str, rate: &CellRate) {
        self.finish();
        let failed = rate.failure.as_ref().map(|failure| failure.in_short().to_string());
        let found = match (rate.problem.clone().or(failed), rate.per_s) {
            (Some(problem), _) => problem,
            (None, Some(per_s)) => {
                let predicted = rate.predicted_per_s.unwrap_or(per_s);
                let runs = format!("; runs are at {}", amount(Unit::PerSecond, per_s));
                let runs = if rate.tried.is_empty() { String::new() } else { runs };
                format!("predicted {}{runs}", amount(Unit::PerSecond, predicted))
            }
            (None, None) => return,
        };
        self.ui.labelled("rate", &format!("{cell}: {found}"));
    }

    /// Says on a terminal what takes a while.
    fn spin(&mut self, label: &str, message: String) {
        self.finish();
        if self.is_terminal() {
            let template = format!("{label:<LABEL_WIDTH$}{{msg}}   {{elapsed}}");
            let bar = super::bar(None, ProgressDrawTarget::stderr_with_hz(4), &template);
            bar.set_message(printable(&message).into_owned());
            bar.enable_steady_tick(Duration::from_millis(250));
            self.bar = Some(bar);
        }
    }

    fn converted(&mut self, model: &str, precision: &str, was_cached: bool, took: Duration) {
        self.finish();
        self.conversions += 1;
        // What takes a moment is worth no line; what takes longer was waited for.
        if !was_cached && took >= NOTICEABLE {
            self.ui.labelled("converted", &format!("{model} to {precision}: {}", duration(took)));
        }
    }

    fn rehearsed(&mut self, done: usize, total: usize, _run: &StoredRun) {
        let bar = self.bar(total as u64, "rehearsal");
        bar.set_position(done as u64);
    }

    fn rehearsal(&mut self, plan: &Plan, rehearsals: &[StoredRun], took: Duration) {
        self.finish();
        let good = rehearsals.iter().filter(|run| run.outcome == Outcome::Completed).count();
        let models = match self.conversions {
            0 => String::new(),
            1 => "1 model converted; ".to_owned(),
            several => format!("{several} models converted; "),
        };
        let text = format!("{good} of {} cells load and run; {models}{}", rehearsals.len(), duration(took));
        self.ui.labelled("rehearsal", &text);
        self.left_out(plan, SkipKind::Memory, |skip| format!(" with a larger batch: {}", skip.reason));
        for rehearsal in rehearsals {
            let Some(failure) = &rehearsal.failure else { continue };
            let cell = plan.cells.iter().find(|cell| cell.id == rehearsal.cell);
            let cell = cell.map(|cell| plan.shown(cell, self.runs_commands));
            let first_line = failure.message.lines().next().unwrap_or_default();
            let text = format!("{}: {} ({})", cell.unwrap_or_default(), first_line, failure.kind.name());
            self.ui.labelled("  failed", &text);
        }
    }

    /// The cells that are not run for such a reason: since a smaller batch ran out of memory, or since the budget has no room.
    fn left_out(&self, plan: &Plan, kind: SkipKind, why: impl Fn(&Skip) -> String) {
        for (index, skip) in plan.skips.iter().enumerate().filter(|(_, skip)| skip.kind == kind) {
            let cells = plan.cells.iter().filter(|cell| cell.skip == Some(index as u32)).count();
            self.ui.labelled("  skipped", &(count(cells as u64, "cell") + &why(skip)));
        }
    }

    fn planned(
        &mut self,
        manifest: &Manifest,
        good: usize,
        times: Option<(Duration, Duration)>,
        budget: Option<BudgetUsed>,
        total: usize,
    ) {
        let time = times.map_or(String::new(), |(expected, longest)| forecast(expected, longest, budget));
        let controls = match manifest.plan.controls.len() {
            0 => String::new(),
            1 => " + 1 control".to_owned(),
            several => format!(" + {several} controls"),
        };
        let cells = count(good as u64, "cell");
        self.ui.labelled("time", &format!("{cells}{controls}, {} each{time}", runs_words(manifest)));
        if let Some(budget) = budget {
            self.ui.labelled("budget", &budget_words(&budget, !manifest.experiment.interim_analyses().is_one()));
            let plan = &manifest.plan;
            let is_left_out = |cell: &&Cell| plan.skip(cell).is_some_and(|skip| skip.kind == SkipKind::Budget);
            let left_out = plan.cells.iter().filter(is_left_out).map(|cell| plan.shown(cell, self.runs_commands));
            let names = some(left_out.collect::<Vec<_>>().into_iter(), MOST_NAMED);
            self.left_out(plan, SkipKind::Budget, |skip| format!(" ({}): {}", list(&names), skip.reason));
        }
        self.blocks = Some((Instant::now(), 0));
        if self.is_terminal() && good > 0 {
            self.bar(total as u64, "running");
        }
    }

    fn block(&mut self, manifest: &Manifest, runs: &[StoredRun], progress: &str, going_on: &[usize], left: u32) {
        let count = |outcome: Outcome| {
            runs.iter().filter(|run| run.kind != RunKind::Rehearsal && run.outcome == outcome).count()
        };
        if self.is_terminal() {
            // What cannot be read ends the measurement where it is needed for more than a table.
            let Ok(summary) = summarize_briefly(manifest, runs) else { return };
            let verdicts = verdicts(manifest, &summary);
            let goes_on = |group: usize| left > 0 && going_on.contains(&group);
            let judged = Judged { comparisons: verdicts, ..Judged::default() };
            let results = results::results(manifest, &summary, &judged);
            let table = overview(&results, &|group| goes_on(group as usize));
            let table = table::render(&table, self.ui.width());
            if let Some(bar) = &self.bar {
                bar.set_message(printable(&format!("\n{table}\n\n")).into_owned());
                bar.set_prefix(printable(progress).into_owned());
            }
            return;
        }
        if !self.ui.shows_progress() {
            return;
        }
        let mut text = format!("{progress}   {} runs done", count(Outcome::Completed));
        for (outcome, word) in [(Outcome::Failed, "failed"), (Outcome::NotRun, "not run")] {
            let number = count(outcome);
            if number > 0 {
                text.push_str(&format!(", {number} {word}"));
            }
        }
        if let Some(left) = self.time_left(manifest, left) {
            text.push_str(&format!("   about {} left", duration(left)));
        }
        self.ui.labelled("running", &text);
    }

    /// What the blocks of this invocation say about those that are left.
    fn time_left(&mut self, manifest: &Manifest, left: u32) -> Option<Duration> {
        let (began, ended) = self.blocks.as_mut()?;
        *ended += 1;
        let took = manifest.environment().elapsed(*began).filter(|_| left > 0)?;
        Some(took / *ended * left)
    }

    fn interrupted(&mut self) {
        if !self.has_shown_interrupt {
            self.has_shown_interrupt = true;
            let text = "interrupted: finishing the current run, then a partial report; press Ctrl-C again to stop now";
            match &self.bar {
                Some(bar) => bar.println(text),
                None => self.ui.note(text),
            }
        }
    }

    fn bar(&mut self, length: u64, label: &str) -> &ProgressBar {
        let terminal = self.is_terminal();
        self.bar.get_or_insert_with(|| {
            let target = if terminal { ProgressDrawTarget::stderr_with_hz(1) } else { ProgressDrawTarget::hidden() };
            let template =
                format!("{{msg}}{label:<LABEL_WIDTH$}{{prefix}}   {{pos}}/{{len}} runs   {{elapsed}}   {{bar:20}}");
            super::bar(Some(length), target, &template)
        })
    }
}

/// `10 runs`, `8 to 32 runs by need`.
fn runs_words(manifest: &Manifest) -> String {
    match manifest.experiment.interim_analyses() {
        interim_analyses if interim_analyses.is_one() => count(u64::from(manifest.plan.runs), "run"),
        _ => format!("{} runs by need", manifest.experiment.runs),
    }
}

/// `: about 26 s`; where runs go by need `: about 26 s, up to 1m 20s`, within the budget.
fn forecast(expected: Duration, longest: Duration, budget: Option<BudgetUsed>) -> String {
    let longest = budget.map_or(longest, |budget| longest.min(budget.limit.to_duration())).max(expected);
    let [about, most] = [expected, longest].map(duration);
    if about == most { format!(": about {about}") } else { format!(": about {about}, up to {most}") }
}

/// `block 3 of 10`; where runs go by need, `block 9 of about 12, 2 of 4 groups decided`.
fn progress(manifest: &Manifest, done: u32, blocks: u32, decided: usize, groups: usize) -> String {
    if manifest.experiment.interim_analyses().is_one() {
        return format!("block {done} of {blocks}");
    }
    let decided = match decided {
        0 => String::new(),
        some => format!(", {some} of {} decided", count(groups as u64, "group")),
    };
    format!("block {done} of about {blocks}{decided}")
}

/// What a budget leaves, and what can be seen with it.
fn budget_words(budget: &BudgetUsed, by_need: bool) -> String {
    let limit = duration(budget.limit.to_duration());
    let fits = match (budget.runs, budget.wanted) {
        (runs, wanted) if by_need && runs >= wanted => format!("{limit}: enough for the expected {wanted} blocks"),
        (runs, wanted) if by_need => format!("{limit}: enough for about {runs} of the expected {wanted} blocks"),
        (runs, wanted) if runs >= wanted => format!("{limit}: enough for all {wanted} runs of each cell"),
        (runs, wanted) => format!("{limit}: enough for about {runs} of {wanted} runs of each cell"),
    };
    let finds = match budget.detectable_effect {
        _ if (budget.runs as usize) < LEAST_RUNS => format!("; a verdict needs {LEAST_RUNS}"),
        Some(effect) => format!("; differences below {} may be missed", percent(effect)),
        None => "; noise floor of this machine unknown (`perfrun calibrate` measures it)".to_owned(),
    };
    fits + &finds
}

/// `AMD EPYC 7R13, 4 cores, 0.2 in use; ONNX Runtime 1.31.1, 4 threads; commit 3f2a91c, clean`.
fn machine(manifest: &Manifest) -> String {
    let host = &manifest.host;
    let mut parts = vec![host.cpu.clone().unwrap_or_else(|| "unknown processor".to_owned())];
    if let Some(cores) = host.allowed_cores {
        parts[0].push_str(&format!(", {}", count(u64::from(cores), "core")));
    }
    let nothing = results::results(manifest, &summarize_briefly(manifest, &[]).unwrap_or_default(), &Judged::default());
    if let Some(runtime) = executed_by(&nothing) {
        parts.push(runtime);
    } else {
        parts.push(backend::kind_of(&manifest.experiment.backend).title().to_owned());
    }
    if let Some(revision) = &manifest.revision {
        parts.push(revision.to_string());
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::quantity::Nanos;

    #[test]
    fn a_forecast_says_how_long_it_may_become() {
        let seconds = Duration::from_secs;
        assert_eq!(forecast(seconds(26), seconds(80), None), ": about 26 s, up to 1m 20s");
        assert_eq!(forecast(seconds(26), seconds(26), None), ": about 26 s");
        let budget =
            BudgetUsed { limit: Nanos::from_secs(40), runs: 12, wanted: 12, cells: None, detectable_effect: None };
        assert_eq!(forecast(seconds(26), seconds(80), Some(budget)), ": about 26 s, up to 40 s");
    }
}
