//! A range to its numbers; what is wrong with it, at its place.

use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{RangeError, RangeForm};
use experiment::beyond_limit;

/// The numbers of a range; none where something is wrong with it.
pub(super) fn numbers(form: &RangeForm, place: &DocumentPath, check: &mut Check<'_>) -> Vec<u64> {
    match form.count() {
        Ok(count) => match beyond_limit("this range comes", count, "numbers") {
            Some(message) => check.error(place, message, "take larger steps".to_owned()),
            None => return form.numbers().map(Iterator::collect).unwrap_or_default(),
        },
        Err(problem) => complain(problem, form, place, check),
    }
    Vec::new()
}

fn complain(problem: RangeError, form: &RangeForm, place: &DocumentPath, check: &mut Check<'_>) {
    let RangeForm { from, to, .. } = form;
    match problem {
        RangeError::NoStep => {
            let hint = format!("add a step: `{{ from: {from}, to: {to}, times: 2 }}`, or `plus: 1`");
            check.error(place, "this range has no step", hint);
        }
        RangeError::TwoSteps => {
            check.error(place, "a range has one step, either `times` or `plus`", "leave one out".to_owned());
        }
        RangeError::Backwards => {
            let message = format!("`from` is {from}, more than `to`, {to}; a range ascends");
            check.error(&place.key("from"), message, None);
        }
        RangeError::TimesZero => {
            let hint = "begin with 1, or write `plus` in place of `times`".to_owned();
            check.error(&place.key("from"), "`from` is 0, so multiplying never gets beyond 0", hint);
        }
    }
}
