//! `perfrun bisect`: the first version of ONNX Runtime with which a cell is slower, and the node that it is slower in.
//!
//! Both ends are measured in one record, then the first against versions in the middle, each time in a record of its own with
//! the one cell that is followed; at last the two adjacent versions, with a profile.

mod node;
mod versions;

use std::path::Path;

use self::node::Culprit;
use self::versions::{Tried, between, named, passed_over, search};
use super::admission::Wishes;
use super::records::results_of;
use super::{measure, print, specs};
use crate::run::Job;
use crate::ui::Ui;
use crate::ui::cli::{BisectArgs, Overrides};
use crate::ui::error::{Error, ExitCode};
use base::metric::{MetricReference, Unit};
use base::wording::{list, some};
use experiment::{OnAxis, Profiling, Runs, Runtime, Selector};
use judge::results::{Cell, Comparison, Estimated, Explanation, LEAST_RUNS, OperatorDifference, Results};
use onnx::ResolvedTensor;
use plan::CellId;
use reading::plain_file;
use record::ProjectRoot;
use report::format::{self, count, percent, speedup, verdict_of};
use spec::Loaded;
use worker::Interrupts;

/// Neighbours that differ by less of the whole difference, by logarithms, are not all of it.
const MOST_OF_IT: f64 = 0.8;

pub(super) fn run(arguments: &BisectArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let interrupts = super::interrupts()?;
    let BisectArgs { runs, budget, only, .. } = arguments.clone();
    let overrides = Overrides { runs, budget, only, ..Overrides::default() };
    let mut loaded = specs::load(&arguments.spec, &overrides)?;
    if loaded.experiment.variants.iter().any(|variant| variant.runtime.is_some()) {
        let message =
            "variants of the specification name their runtimes, and `bisect` compares versions of ONNX Runtime";
        return Err(Error::refused(message, "give it a specification whose variants name none"));
    }
    let declared = std::mem::take(&mut loaded.experiment.runtimes);
    let ends = [named(&declared, &arguments.from)?, named(&declared, &arguments.to)?];
    if ends[0] == ends[1] {
        return Err(Error::refused("`--from` and `--to` are the same", "name two versions"));
    }
    if arguments.output.exists() && !arguments.output.is_dir() {
        let message = format!("{} is not a folder", arguments.output.display());
        return Err(Error::refused(message, "name a folder for NODE.onnx and NODE.yaml"));
    }
    if (loaded.experiment.runs.max as usize) < LEAST_RUNS {
        let message = format!("a verdict needs at least {LEAST_RUNS} runs");
        return Err(Error::refused(message, "give more `--runs`, or leave it out"));
    }
    let failed = |source| Error::write(&arguments.output, source);
    std::fs::create_dir_all(&arguments.output).map_err(failed)?;
    // Known before anything is measured.
    drop(plain_file::temporary_in(&arguments.output).map_err(failed)?);
    // These ask something else of the specification, for which more would be measured.
    (loaded.experiment.choose, loaded.experiment.profile) = (None, None);
    loaded.experiment.goals.clear();
    specs::obtain(&mut loaded, true, &interrupts, ui)?;
    ui.warnings(&loaded.warnings);
    let project = ProjectRoot::of(&arguments.spec)?;
    let between = between([&ends[0], &ends[1]], &declared);
    let bisection = Bisection { arguments, project: &project, interrupts: &interrupts, ui };
    let code = bisection.carry_out(&loaded, &overrides, ends, between)?.unwrap_or(ExitCode::Interrupted);
    if code == ExitCode::Interrupted {
        ui.note(
            "a bisection is not resumed: the same command begins it anew, between nearer versions where some are known",
        );
    }
    Ok(code)
}

/// What every measurement is made with.
struct Bisection<'a> {
    arguments: &'a BisectArgs,
    project: &'a ProjectRoot,
    interrupts: &'a Interrupts,
    ui: &'a Ui,
}

/// Labels with what is said.
type Lines = Vec<(&'static str, String)>;

/// Two runtimes in one record.
struct Pair {
    job: Job,
    results: Results,
    code: ExitCode,
}

impl Pair {
    fn cell(&self, id: CellId) -> Option<&Cell> {
        self.results.cells.iter().find(|cell| cell.id == id)
    }

    fn rows(&self) -> impl Iterator<Item = &Comparison> {
        self.results.compared_by(MetricReference::LATENCY)
    }

    /// What became slower, the most first.
    fn slower(&self) -> Vec<&Comparison> {
        let mut rows: Vec<&Comparison> = self.rows().filter(|row| is_slower(row)).collect();
        rows.sort_by(|one, other| one.ratio.total_cmp(&other.ratio));
        rows
    }

    /// `3 equivalent, 1 undecided`; empty where nothing was compared.
    fn verdicts(&self) -> String {
        let word = |row: &Comparison| if row.is_judged() { verdict_of(row) } else { "not judged".to_owned() };
        let mut words: Vec<String> = self.rows().map(word).collect();
        words.sort_unstable();
        let each = words.chunk_by(|one, other| one == other);
        each.map(|same| format!("{} {}", same.len(), same[0])).collect::<Vec<_>>().join(", ")
    }

    /// What the comparison says, or why there is none.
    fn said(&self) -> String {
        self.rows().next().map_or_else(|| self.problem(), speedup)
    }

    /// Why a cell was not compared.
    fn problem(&self) -> String {
        let failed = self.results.cells.iter().find_map(|cell| Some(&cell.failures.first()?.failure.message));
        let skipped = || self.results.cells.iter().find_map(|cell| Some(&cell.skipped.as_ref()?.reason));
        failed.or_else(skipped).map_or("too few runs completed", String::as_str).to_owned()
    }
}

fn is_slower(row: &Comparison) -> bool {
    row.is_judged() && row.verdict.is_regression()
}

impl Bisection<'_> {
    /// The whole bisection; `None` where the user stopped it.
    fn carry_out(
        &self,
        loaded: &Loaded,
        overrides: &Overrides,
        ends: [Runtime; 2],
        between: Vec<Runtime>,
    ) -> Result<Option<ExitCode>, Error> {
        let [from, to] = [ends[0].name.clone(), ends[1].name.clone()];
        let Some(first) = self.measure(loaded, &self.arguments.spec, overrides, &ends)? else { return Ok(None) };
        let slower = first.slower();
        let followed = slower.first().and_then(|row| Some((*row, first.cell(row.cell)?)));
        let Some((row, cell)) = followed else {
            let (verdicts, is_judged) = (first.verdicts(), first.rows().any(Comparison::is_judged));
            let found = if verdicts.is_empty() { first.problem() } else { verdicts };
            let more = if first.rows().any(|row| row.verdict.is_open()) { "; more `--runs` may decide" } else { "" };
            let said = if is_judged { "nothing slower was found" } else { "nothing could be judged" };
            print(self.ui, &self.ui.labelled_text("result", &format!("{said} from {from} to {to}: {found}{more}")))?;
            return Ok(Some(if is_judged { first.code } else { ExitCode::RunsFailed }));
        };
        let name = name_of(cell);
        self.ui.labelled("slower", &format!("{name}: {to} is {}, against {from}", speedup(row)));
        let not_followed: Vec<&Cell> = slower[1..].iter().filter_map(|row| first.cell(row.cell)).collect();
        let followed = Overrides { only: Some(selector_of(cell)), ..overrides.clone() };
        let good = ends[0].clone();
        let stopped = || {
            let text = format!("stopped; so far: {name}, {to} is {}, against {from}", speedup(row));
            print(self.ui, &self.ui.labelled_text("result", &text)).map(|_| None)
        };
        let all = between.clone();
        let adjacent = search(ends, between, |version| self.try_it(loaded, &followed, [&good, version], row.ratio))?;
        let Some(adjacent) = adjacent else { return stopped() };
        let mut profiled = loaded.clone();
        profiled.experiment.profile = Some(Profiling::default());
        let Some(pair) = self.measure_adjacent(&mut profiled, &followed, &adjacent)? else { return stopped() };
        let mut lines = self.found(&profiled, &pair, &name, &adjacent);
        let untried: Vec<String> = passed_over(&all, &adjacent).iter().map(|runtime| runtime.name.clone()).collect();
        if !untried.is_empty() {
            let text = format!("{} could not be measured; it may have come with one of these", list(&untried));
            lines.push(("perhaps", text));
        }
        let part = pair.rows().find(|row| is_slower(row)).map(|found| found.ratio.ln() / row.ratio.ln());
        if part.is_some_and(|part| part < MOST_OF_IT) && adjacent[1].name != to {
            let all = format::ratio(row.ratio, row.interval());
            let text = format!("it became slower again by {to}, {all} in all: repeat with --from {}", adjacent[1].name);
            lines.push(("more", text));
        }
        if !not_followed.is_empty() {
            let names = some(not_followed.iter().map(|cell| name_of(cell)), 3).join(", ");
            lines.push((
                "others",
                format!("{} slower too, and not followed: {names}", count(not_followed.len() as u64, "cell")),
            ));
        }
        let lines = lines.iter().map(|(label, text)| self.ui.labelled_text(label, text));
        let code = print(self.ui, &lines.collect::<String>())?;
        // While the node was measured alone.
        let was_stopped = self.interrupts.count() > 0;
        Ok(Some(if was_stopped { ExitCode::Interrupted } else { code }))
    }

    /// Measures what is selected with two runtimes, the second against the first; nothing where the user stopped it.
    fn measure(
        &self,
        loaded: &Loaded,
        file: &Path,
        overrides: &Overrides,
        pair: &[Runtime; 2],
    ) -> Result<Option<Pair>, Error> {
        let mut loaded = loaded.clone();
        loaded.experiment.runtimes = pair.to_vec();
        loaded.experiment.compare.baseline = Some(Selector::of(&pair[0]));
        let mut restrictions = specs::restrictions(overrides);
        restrictions.push(format!("bisect --from {} --to {}", pair[0].name, pair[1].name));
        let what = measure::Measurement {
            loaded: &loaded,
            file,
            project: self.project,
            wishes: Wishes { runtime: None, wait: self.arguments.wait, ..Wishes::default() },
            overrides,
            restrictions,
        };
        let measured = measure::measure(what, self.interrupts, self.ui)?;
        measured.map(|(job, code)| Ok(Pair { results: results_of(job.record())?, job, code })).transpose()
    }

    /// What a version in the middle is, where the last one has this ratio; prints it as a line. Where that stays open,
    /// it is measured once more with more runs, and then the estimate counts.
    fn try_it(
        &self,
        loaded: &Loaded,
        overrides: &Overrides,
        [good, version]: [&Runtime; 2],
        ratio: f64,
    ) -> Result<Option<Tried>, Error> {
        let print_line = |text: &str| self.ui.labelled(&version.name, text);
        let mut loaded = loaded.clone();
        let mut is_last = false;
        loop {
            let pair = match self.measure(&loaded, &self.arguments.spec, overrides, &[good.clone(), version.clone()]) {
                Err(Error::Runtime(problem)) => {
                    print_line(&format!("passed over: {problem}"));
                    return Ok(Some(Tried::Unusable));
                }
                measured => measured?,
            };
            let Some(pair) = pair else { return Ok(None) };
            let Some(row) = pair.rows().next() else {
                print_line(&format!("passed over: {}", pair.problem()));
                return Ok(Some(Tried::Unusable));
            };
            if let Some(why) = row.withheld().filter(|why| why.hides_the_value()) {
                print_line(&format!("passed over: {}", why.words()));
                return Ok(Some(Tried::Unusable));
            }
            let said = format!("{}, against {}", speedup(row), good.name);
            if row.is_decided() {
                print_line(&said);
                return Ok(Some(if is_slower(row) { Tried::Worse } else { Tried::NoWorse }));
            }
            if is_last {
                let is_nearer = row.ratio.ln() < ratio.ln() / 2.0;
                let counts = if is_nearer { "slower" } else { "no slower" };
                print_line(&format!("{said}; counts as {counts}, by the estimate"));
                return Ok(Some(if is_nearer { Tried::Worse } else { Tried::NoWorse }));
            }
            print_line(&format!("{said}; once more, with up to {} runs", with_more_runs(&mut loaded)));
            is_last = true;
        }
    }

    /// Measures the two adjacent versions with a profile; with more runs where they stay undecided.
    fn measure_adjacent(
        &self,
        loaded: &mut Loaded,
        overrides: &Overrides,
        pair: &[Runtime; 2],
    ) -> Result<Option<Pair>, Error> {
        let measured = self.measure(loaded, &self.arguments.spec, overrides, pair)?;
        let is_open = |pair: &Pair| pair.rows().any(|row| row.verdict.is_open());
        let Some(open) = measured.as_ref().filter(|pair| is_open(pair)) else { return Ok(measured) };
        let text =
            format!("{}, against {}; once more, with up to {} runs", open.said(), pair[0].name, with_more_runs(loaded));
        self.ui.labelled(&pair[1].name, &text);
        self.measure(loaded, &self.arguments.spec, overrides, pair)
    }

    /// What the two adjacent versions show: whether they differ, in which operator and node, and the files that repeat
    /// it.
    fn found(&self, loaded: &Loaded, pair: &Pair, name: &str, adjacent: &[Runtime; 2]) -> Lines {
        let [good, bad] = adjacent;
        let said = format!("{}, against {}", pair.said(), good.name);
        if !pair.rows().any(is_slower) {
            let text = format!(
                "{name} is slower by {}, but {said} alone, so no node is named; more `--runs` may show it",
                bad.name
            );
            return vec![("result", text)];
        }
        let said = format!("slower from {} on: {name}, {said}", bad.name);
        let mut lines = vec![("result", said.clone())];
        let Some(explanation) = pair.results.explanations.first() else {
            let why = pair.results.cells.iter().find_map(|cell| cell.profile.as_ref()?.unknown());
            lines.push(("operator", format!("unknown, {}", why.unwrap_or_else(|| "no profile".to_owned()))));
            return lines;
        };
        let is_longer = |difference: &Estimated| difference.low.is_some_and(|low| low > 0.0);
        let operator = explanation.rows.iter().find(|row| is_longer(&row.difference) && row.operator.is_some());
        let named = |row: &OperatorDifference| {
            format!("{} {}", row.operator.as_deref().unwrap_or_default(), grown(&row.difference, explanation))
        };
        let doubt = if explanation.is_seen_again() {
            ""
        } else {
            "; the profile's processes without the profiler did not show this difference: trust it less"
        };
        lines.push(("operator", operator.map_or("none takes longer beyond noise".to_owned(), named) + doubt));
        let node = explanation.nodes.iter().find(|node| is_longer(&node.difference) && node.path.is_some());
        if let (Some(node), Some(cell)) = (node, pair.cell(explanation.cell)) {
            let path = node.path.as_deref().unwrap_or_default();
            let text = format!("{path} ({}) {}", node.operator, grown(&node.difference, explanation));
            let found = [format!("ONNX Runtime: {said}."), format!("The node {text}.")];
            let paths = [path].into_iter().chain(node.baseline_path.as_deref()).collect();
            let operator = &node.operator;
            let culprit =
                Culprit { experiment: &loaded.experiment, cell, paths, operator, runtimes: adjacent, found: &found };
            lines.push(("node", text));
            lines.push(("written", self.write(&culprit, pair.job.served(explanation.cell))));
        }
        lines
    }

    /// What was written and what it shows when it is measured, or why nothing was.
    fn write(&self, culprit: &Culprit<'_>, served: Option<(&Path, &[ResolvedTensor])>) -> String {
        let Some(served) = served else { return "nothing: this backend has no model file".to_owned() };
        let file = match culprit.write(served, &self.arguments.output) {
            Ok(file) => file,
            Err(problem) => return format!("nothing: {problem}"),
        };
        let overrides = Overrides { budget: self.arguments.budget, ..Overrides::default() };
        let loaded = specs::load(&file, &overrides);
        let alone = match loaded.and_then(|loaded| self.measure(&loaded, &file, &overrides, culprit.runtimes)) {
            Ok(measured) => measured.map_or("not measured".to_owned(), |pair| pair.said()),
            Err(problem) => format!("not measured: {problem}"),
        };
        let model = file.with_extension("onnx");
        format!("{} and {}; the node alone: {alone}", model.display(), file.display())
    }
}

/// Lets it have as many runs as it had at most, and up to twice as many; that number.
fn with_more_runs(loaded: &mut Loaded) -> u32 {
    let Runs { max, .. } = loaded.experiment.runs;
    loaded.experiment.runs = Runs { min: max, max: max.saturating_mul(2).min(Runs::MOST) };
    loaded.experiment.runs.max
}

/// `+0.41 ms, 84 % of the difference`.
fn grown(difference: &Estimated, explanation: &Explanation) -> String {
    let time = format::measured(Unit::Nanoseconds, difference.value, None);
    let part = difference.value / explanation.difference_ns;
    if explanation.difference_ns > 0.0 {
        format!("+{time}, {} of the difference", percent(part))
    } else {
        format!("+{time}")
    }
}

/// A cell without its runtime: `net/b1/fp32/cpu`.
fn name_of(cell: &Cell) -> String {
    let names = cell.names.iter().filter(|(axis, _)| *axis != Runtime::AXIS);
    names.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("/")
}

/// What selects a cell with any runtime.
fn selector_of(cell: &Cell) -> String {
    let names = cell.names.iter().filter(|(axis, _)| *axis != Runtime::AXIS);
    names.map(|(axis, name)| format!("{}={name}", axis.singular())).collect::<Vec<_>>().join(",")
}
