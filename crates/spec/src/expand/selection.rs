//! A selector of the spec, its names checked against the axes.

use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::SelectorForm;
use experiment::{Selector, SelectorError, Vocabulary};

/// Reads the selector at `place`; what it names and the experiment does not know is a problem.
pub(super) fn expand(
    form: &SelectorForm,
    place: &DocumentPath,
    vocabulary: &Vocabulary,
    check: &mut Check<'_>,
) -> Selector {
    let patterns =
        form.0.0.iter().map(|(key, patterns)| {
            (key.clone(), patterns.as_slice().iter().map(|pattern| pattern.0.clone()).collect())
        });
    let selector = Selector(patterns.collect());
    for error in selector.check(vocabulary) {
        report(&error, form, place, check);
    }
    selector
}

/// A selector's error at the key or the pattern that it is about.
fn report(error: &SelectorError, form: &SelectorForm, place: &DocumentPath, check: &mut Check<'_>) {
    let (key, pattern) = error.subject();
    let place = place.key(key);
    let problem = match pattern {
        None => check.at_key(&place, error.to_string()),
        Some(pattern) => {
            let written = form.0.0.iter().find(|(name, _)| name == key);
            let found = written.and_then(|(_, patterns)| {
                patterns.places(&place).into_iter().find(|(_, written)| written.0 == pattern).map(|(place, _)| place)
            });
            check.at(&found.unwrap_or(place), error.to_string())
        }
    };
    check.problems.push(match error.hint() {
        Some(hint) => problem.with_hint(hint),
        None => problem,
    });
}
