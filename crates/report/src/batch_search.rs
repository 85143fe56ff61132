//! What a search for the best batch found, in words.

use crate::format::{fixed, significant_decimals};
use record::{CellSearch, SearchEnd, Tried};

/// Items a second, in three digits: `812`, `48.1`.
pub fn rate(items_per_s: f64) -> String {
    fixed(items_per_s, significant_decimals(items_per_s, 3))
}

/// Every batch with its throughput, in ascending order: `1 (99.1), 2 (180), 4 (300), 8 out of memory`.
pub(super) fn tried(tried: &[Tried]) -> String {
    let mut tried: Vec<&Tried> = tried.iter().collect();
    tried.sort_by_key(|tried| tried.batch);
    let word = |tried: &&Tried| match (tried.items_per_s, &tried.failure) {
        (Some(rate_of), _) => format!("{} ({})", tried.batch, rate(rate_of)),
        (None, Some(failure)) => format!("{} {}", tried.batch, failure.kind.name().replace('_', " ")),
        (None, None) => format!("{} no sample", tried.batch),
    };
    tried.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Why nothing larger was tried: `49 ran out of memory`.
pub fn end(end: SearchEnd, tried: &[Tried]) -> String {
    let failed = tried.iter().filter(|tried| tried.failure.is_some()).min_by_key(|tried| tried.batch);
    match (end, failed.map(|tried| (tried.batch, tried.failure.as_ref()))) {
        (SearchEnd::OutOfMemory, Some((batch, _))) => format!("{batch} ran out of memory"),
        (SearchEnd::Failed, Some((batch, Some(failure)))) => format!("{batch} failed: {}", failure.in_short()),
        (SearchEnd::OutOfMemory | SearchEnd::Failed, _) => "a larger one failed".to_owned(),
        (SearchEnd::Limit, _) => "limit of the search reached".to_owned(),
        (SearchEnd::Budget, _) => "half of the budget was spent".to_owned(),
        (SearchEnd::Slow, _) => "larger ones are too slow for the samples of a run".to_owned(),
    }
}

/// What was found of a cell: `batch 32, 812 items/s; 1 to 48 fit, 49 ran out of memory`.
pub fn found(search: &CellSearch) -> String {
    let of_it = search.tried.iter().find(|tried| tried.batch == search.batch);
    let rate = of_it.and_then(|tried| tried.items_per_s).map(|of_it| format!(", {} items/s", rate(of_it)));
    let fit = match search.largest() {
        None => String::new(),
        Some(1) => "1 fits, ".to_owned(),
        Some(largest) => format!("1 to {largest} fit, "),
    };
    format!("batch {}{}; {fit}{}", search.batch, rate.unwrap_or_default(), end(search.end, &search.tried))
}

#[cfg(test)]
mod tests {
    use super::*;
    use worker::backend::{Failure, FailureKind};

    fn search(end: SearchEnd, failure: Option<FailureKind>) -> CellSearch {
        let mut tried: Vec<Tried> = [(1, 99.12), (2, 180.0), (4, 183.4)]
            .map(|(batch, rate)| Tried { batch, items_per_s: Some(rate), failure: None })
            .into();
        let failure = failure.map(|kind| Failure::new(kind, "no room"));
        tried.extend(failure.map(|failure| Tried { batch: 8, items_per_s: None, failure: Some(failure) }));
        CellSearch { cell: 0, batch: 2, end, tried, cost: None }
    }

    #[test]
    fn what_was_found_is_a_line() {
        let ran_out = search(SearchEnd::OutOfMemory, Some(FailureKind::OutOfMemory));
        assert_eq!(found(&ran_out), "batch 2, 180 items/s; 1 to 4 fit, 8 ran out of memory");
        assert_eq!(tried(&ran_out.tried), "1 (99.1), 2 (180), 4 (183), 8 out of memory");
        let limited = search(SearchEnd::Limit, None);
        assert_eq!(found(&limited), "batch 2, 180 items/s; 1 to 4 fit, limit of the search reached");
        let failed = search(SearchEnd::Failed, Some(FailureKind::Operator));
        assert_eq!(end(failed.end, &failed.tried), "8 failed: no room");
    }
}
