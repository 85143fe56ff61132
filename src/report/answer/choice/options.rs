//! What a sentence is about: the contests of one model, the names of what can be chosen, and where answers agree.

use statistics::paired::Verdict;

use crate::experiment::Axis;
use crate::judge::compare::Unfit;
use crate::judge::compare::choose::{Choice, Contest, Entrant, Standing};
use crate::plan::Plan;
use crate::report::answer::evidence::Places;
use crate::report::answer::ties::Ahead;
use crate::report::format;
use crate::vocabulary::metric::MetricReference;

/// The contests that one sentence answers.
pub(super) struct Question<'a> {
    plan: &'a Plan,
    /// `resnet50`; empty where models compete.
    pub(super) label: String,
    /// Where each contest is held, `b1`, and the contest.
    contests: Vec<(String, &'a Contest)>,
    /// The axes on which what can be chosen differs.
    axes: Vec<Axis>,
}

/// Contests with the same answer.
pub(super) struct Cluster<'a> {
    /// What is best in them and keeps every bound; the best estimate of the first contest comes first.
    pub(super) best: Vec<String>,
    /// What would be best too.
    pub(super) doubt: Option<Doubtful>,
    /// Where they are held, and the contests.
    pub(super) contests: Vec<(String, &'a Contest)>,
}

/// What no other beats, and may miss a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Doubtful {
    /// Names, in plan order.
    pub(super) names: Vec<String>,
    /// The bound that the first of them may miss.
    pub(super) bound: usize,
    /// It is only one, and better than all that keep the bounds.
    pub(super) is_ahead: bool,
}

/// The questions of a choice, in plan order.
pub(super) fn questions<'a>(plan: &'a Plan, choice: &'a Choice) -> Vec<Question<'a>> {
    let mut by_label: Vec<(String, Vec<&'a Contest>)> = Vec::new();
    for contest in &choice.contests {
        let label = shared(plan, contest, Axis::Models).unwrap_or_default();
        match by_label.iter_mut().find(|(known, _)| *known == label) {
            Some((_, contests)) => contests.push(contest),
            None => by_label.push((label, vec![contest])),
        }
    }
    by_label.into_iter().map(|(label, contests)| Question::new(plan, label, &contests)).collect()
}

/// The name that every entrant has on an axis.
fn shared(plan: &Plan, contest: &Contest, axis: Axis) -> Option<String> {
    let name = |cell: usize| plan.coordinates(&plan.cells[cell]).on(axis);
    let first = name(contest.entrants.first()?.cell);
    contest.entrants.iter().all(|entrant| name(entrant.cell) == first).then(|| first.to_owned())
}

impl<'a> Question<'a> {
    fn new(plan: &'a Plan, label: String, contests: &[&'a Contest]) -> Self {
        let differs = |axis: &Axis| contests.iter().any(|contest| is_chosen(plan, contest, *axis));
        let axes: Vec<Axis> = Axis::ALL.into_iter().filter(differs).collect();
        let placed = contests.iter().map(|contest| (place(plan, contest, contests), *contest)).collect();
        Question { plan, label, contests: placed, axes }
    }

    /// The first contest, where its values are those of all: there is no other, or the metric is the same in all of them.
    pub(super) fn telling(&self, by: MetricReference) -> Option<&'a Contest> {
        let tells = self.contests.len() == 1 || by.metric.is_constant();
        self.contests.first().filter(|_| tells).map(|(_, contest)| *contest)
    }

    /// Whether it matters where a contest is held.
    pub(super) fn has_places(&self) -> bool {
        self.contests.len() > 1
    }

    /// The name of a cell among those that can be chosen: `int8`, `b8/int8`.
    pub(super) fn name(&self, cell: usize) -> String {
        let cell = &self.plan.cells[cell];
        if self.axes.is_empty() {
            return self.plan.coordinates(cell).variant().to_owned();
        }
        let coordinates = self.plan.coordinates(cell);
        self.axes.iter().map(|axis| coordinates.on(*axis)).collect::<Vec<_>>().join("/")
    }

    /// Every cell of every contest.
    pub(super) fn entrants(&self) -> impl Iterator<Item = &'a Entrant> {
        self.contests.iter().flat_map(|(_, contest)| &contest.entrants)
    }

    /// What broke ties in these contests.
    pub(super) fn ties(&self, contests: &[(String, &'a Contest)]) -> Vec<Ahead> {
        let lead = |place: &str, entrant: &Entrant| match entrant.standing {
            Standing::Tied { with, by } => Some(Ahead {
                name: self.name(with),
                cell: with,
                rival: self.name(entrant.cell),
                rival_cell: entrant.cell,
                by,
                place: place.to_owned(),
            }),
            _ => None,
        };
        let of = |(place, contest): &(String, &'a Contest)| -> Vec<Ahead> {
            contest.entrants.iter().filter_map(|entrant| lead(place, entrant)).collect()
        };
        contests.iter().flat_map(of).collect()
    }

    /// The same of all contests.
    pub(super) fn all_ties(&self) -> Vec<Ahead> {
        self.ties(&self.contests)
    }

    /// How places are told apart in words.
    pub(super) fn places(&self) -> Option<Places> {
        let is_input = |(place, _): &(String, &Contest)| self.plan.inputs().iter().any(|input| input.name == *place);
        let places = if self.contests.iter().all(is_input) { Places::INPUTS } else { Places::ROWS };
        self.has_places().then_some(places)
    }

    /// Whether the record compares `cell` with `baseline`.
    pub(super) fn is_baseline_of(&self, baseline: usize, cell: usize) -> bool {
        self.plan.baseline_of(&self.plan.cells[cell]) == Some(baseline)
    }

    /// The contests by their answer, in order of the first of each.
    pub(super) fn clusters(&self) -> Vec<Cluster<'a>> {
        let mut clusters: Vec<Cluster<'a>> = Vec::new();
        for (place, contest) in &self.contests {
            let keeps = |cell: &&usize| unbeaten(contest, true).any(|(kept, _)| kept == **cell);
            let best: Vec<String> = contest.best.iter().filter(keeps).map(|cell| self.name(*cell)).collect();
            let one = Cluster { best, doubt: self.doubt(contest), contests: vec![(place.clone(), *contest)] };
            match clusters.iter_mut().find(|known| known.answers_like(&one)) {
                Some(known) => known.contests.extend(one.contests),
                None => clusters.push(one),
            }
        }
        clusters
    }

    fn doubt(&self, contest: &Contest) -> Option<Doubtful> {
        let leader = *contest.best.first()?;
        let beaten = |other: usize| {
            let mut evidence = contest.evidence.iter();
            evidence.any(|one| (one.cell, one.baseline) == (leader, other) && one.verdict == Verdict::Better)
        };
        // What the leader beats is no answer, even if the leader misses the bound: then others may be ahead of it.
        let doubtful: Vec<(usize, usize)> = unbeaten(contest, false)
            .filter_map(|(cell, bound)| Some((cell, bound?)))
            .filter(|(cell, _)| !beaten(*cell))
            .collect();
        let (first, bound) = *doubtful.first()?;
        let is_ahead = doubtful.len() == 1 && first == leader && unbeaten(contest, true).all(|(cell, _)| beaten(cell));
        Some(Doubtful { names: doubtful.iter().map(|(cell, _)| self.name(*cell)).collect(), bound, is_ahead })
    }

    /// What `wanted` says of entrants, with the names of those of which it says the same, and ` at b1 and b8` unless that
    /// is so everywhere.
    pub(super) fn told<T: PartialEq + Copy>(
        &self,
        wanted: impl Fn(&Entrant) -> Option<T>,
    ) -> Vec<(T, Vec<String>, Option<String>)> {
        // First where the same is said of the same name, then who shares these places.
        let mut by_name: Vec<(T, String, Vec<&str>)> = Vec::new();
        for (place, contest) in &self.contests {
            for entrant in &contest.entrants {
                let Some(said) = wanted(entrant) else { continue };
                let name = self.name(entrant.cell);
                match by_name.iter_mut().find(|(known, other, _)| *known == said && *other == name) {
                    Some((_, _, places)) => places.push(place),
                    None => by_name.push((said, name, vec![place])),
                }
            }
        }
        let mut told: Vec<(T, Vec<String>, Vec<&str>)> = Vec::new();
        for (said, name, places) in by_name {
            match told.iter_mut().find(|(known, _, there)| *known == said && *there == places) {
                Some((_, names, _)) => names.push(name),
                None => told.push((said, vec![name], places)),
            }
        }
        let everywhere = self.contests.len();
        let at = |places: &[&str]| (places.len() < everywhere).then(|| format!(" at {}", format::list(places)));
        told.into_iter().map(|(said, names, places)| (said, names, at(&places))).collect()
    }
}

/// Why nothing can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhyNone {
    /// Cells that more runs may make fit.
    TooEarly,
    /// Every cell that can be judged misses a bound.
    OutOfBounds {
        /// Other cells cannot be judged.
        may_others: bool,
    },
    /// Each is beaten by another.
    Circle,
    /// No cell can be judged, whatever the number of runs.
    Unfit,
}

impl WhyNone {
    /// What the answer begins with.
    pub(super) fn lead(self) -> &'static str {
        match self {
            WhyNone::TooEarly => "no answer yet",
            WhyNone::OutOfBounds { .. } => "none",
            WhyNone::Circle | WhyNone::Unfit => "no answer",
        }
    }
}

impl Cluster<'_> {
    /// Whether nothing can be chosen.
    pub(super) fn is_empty(&self) -> bool {
        self.best.is_empty() && self.doubt.is_none()
    }

    /// Whether the answer is the same: the same names, in whatever order, and where there are none, as little.
    fn answers_like(&self, other: &Cluster<'_>) -> bool {
        let is_same = self.best.len() == other.best.len() && self.best.iter().all(|name| other.best.contains(name));
        let is_as_empty = !self.is_empty() || self.why_none().lead() == other.why_none().lead();
        is_same && self.doubt == other.doubt && is_as_empty
    }

    /// Why it is empty, as far as its contests know.
    pub(super) fn why_none(&self) -> WhyNone {
        let standings = || self.contests.iter().flat_map(|(_, contest)| &contest.entrants).map(|one| one.standing);
        let is_early = |standing: Standing| matches!(standing, Standing::Unfit { why } if why.may_heal());
        let misses = |standing: Standing| matches!(standing, Standing::OutOfBounds { .. });
        if standings().any(|standing| matches!(standing, Standing::Beaten { .. })) {
            WhyNone::Circle
        } else if standings().any(is_early) {
            WhyNone::TooEarly
        } else if standings().any(misses) {
            let is_run = |standing: &Standing| *standing != Standing::Unfit { why: Unfit::Skipped };
            WhyNone::OutOfBounds { may_others: !standings().filter(is_run).all(misses) }
        } else {
            WhyNone::Unfit
        }
    }

    /// `at b1 and b8`.
    pub(super) fn place(&self) -> String {
        let places: Vec<&str> = self.contests.iter().map(|(place, _)| place.as_str()).collect();
        format!("at {}", format::list(&places))
    }
}

/// The cells that no other beats, in plan order: those that keep every bound, or those that may miss one, with that.
fn unbeaten(contest: &Contest, keeps: bool) -> impl Iterator<Item = (usize, Option<usize>)> {
    contest.entrants.iter().filter_map(move |entrant| match entrant.standing {
        Standing::Unbeaten if keeps => Some((entrant.cell, None)),
        Standing::InDoubt { bound } if !keeps => Some((entrant.cell, Some(bound))),
        _ => None,
    })
}

/// Whether entrants that are to be run differ on an axis.
fn is_chosen(plan: &Plan, contest: &Contest, axis: Axis) -> bool {
    let cells = contest.entrants.iter().map(|entrant| &plan.cells[entrant.cell]).filter(|cell| cell.skip.is_none());
    let mut names = cells.map(|cell| plan.coordinates(cell).on(axis));
    names.next().is_some_and(|first| names.any(|other| other != first))
}

/// What tells a contest from the others: the names that its entrants share and not all contests have.
fn place(plan: &Plan, contest: &Contest, all: &[&Contest]) -> String {
    let tells = |axis: &Axis| {
        let own = shared(plan, contest, *axis)?;
        all.iter().any(|other| shared(plan, other, *axis).as_ref() != Some(&own)).then_some(own)
    };
    let names: Vec<String> = Axis::ALL.iter().filter(|axis| **axis != Axis::Models).filter_map(tells).collect();
    if !names.is_empty() {
        return names.join(" on ");
    }
    let mut inputs: Vec<&str> = Vec::new();
    for entrant in &contest.entrants {
        let input = plan.coordinates(&plan.cells[entrant.cell]).input();
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }
    inputs.join(" or ")
}
