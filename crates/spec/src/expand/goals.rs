//! `goals`: bounds that are promised.

use super::{choose, metric};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{ExperimentForm, GoalForm};
use base::metric::MetricReference;
use experiment::{Compare, Goal, Space};

/// Reads the goals; names are unique.
pub(super) fn expand(forms: &[GoalForm], axes: &Space, compare: &Compare, check: &mut Check<'_>) -> Vec<Goal> {
    let vocabulary = axes.vocabulary();
    let mut goals = Vec::with_capacity(forms.len());
    let mut names = Vec::new();
    for (index, form) in forms.iter().enumerate() {
        let place = top().index(index);
        names.extend(form.name.as_ref().map(|name| (place.clone(), name.0.clone())));
        let Some(bound) = choose::bound(&form.bound(), &place, &vocabulary, check) else { continue };
        metric::check_speedup(bound.metric, axes, compare, &place.key("metric"), check);
        goals.push(Goal { name: form.name.as_ref().map(|name| name.0.clone()), bound });
    }
    check.duplicates("goals", &names, "give each its own `name`");
    goals
}

/// Refuses strictness about nothing.
pub(super) fn check_strict(form: &ExperimentForm, check: &mut Check<'_>) {
    if form.goals_strict && form.goals.is_empty() && !check.is_damaged(&top()) {
        let problem = check.at_key(&DocumentPath::top("goals_strict"), "`goals_strict` does nothing without `goals`");
        check.problems.push(problem.with_hint("add a goal, or leave it out"));
    }
}

/// Every metric that is promised, with its place.
pub(super) fn references(goals: &[Goal]) -> impl Iterator<Item = (DocumentPath, MetricReference)> {
    let metrics = goals.iter().enumerate();
    metrics.map(|(index, goal)| (top().index(index).key("metric"), goal.bound.metric))
}

fn top() -> DocumentPath {
    DocumentPath::top("goals")
}
