//! What cannot be chosen, and why.

use super::answer::{MOST_NAMED, Names};
use super::bounds;
use crate::quality::fidelity::Fidelity;
use crate::results::{Choice, Standing, Unfit};
use crate::vocabulary::wording::{count, list};
use statistics::planning::MINIMUM_RUNS;

/// `p and q (differs: cosine 0.86, required 0.999); r (misses p95 <= 7 ms)`; cells that the plan skips are a notice.
pub(super) fn left_out(choice: &Choice, names: &Names<'_>) -> String {
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for entrant in &names.contest.entrants {
        let bound = || entrant.metric.as_ref().and_then(|metric| choice.bounds.iter().find(|it| it.metric == *metric));
        let why = match entrant.standing {
            Standing::Unfit => match entrant.why {
                None | Some(Unfit::Skipped | Unfit::TooFewRuns(_) | Unfit::NotRun) => None,
                Some(Unfit::OutputsDiffer) => {
                    names.reader.cell(&entrant.cell).and_then(|cell| cell.fidelity.as_ref()).map(Fidelity::words)
                }
                Some(why) => Some(unfit_words(why)),
            },
            Standing::OutOfBounds => bound().map(|bound| format!("misses {}", bounds::words_of(bound))),
            Standing::InDoubt => bound().map(|bound| {
                let cell = bound.cells.iter().find(|cell| cell.cell == entrant.cell);
                let value = cell.map(|cell| format!(", {}", bounds::value_words(&bound.metric, bound.max, cell)));
                format!("undecided: {}{}", bounds::words_of(bound), value.unwrap_or_default())
            }),
            _ => None,
        };
        let Some(why) = why else { continue };
        let name = names.name(&entrant.cell);
        match parts.iter_mut().find(|(known, _)| *known == why) {
            Some((_, alike)) => alike.push(name),
            None => parts.push((why, vec![name])),
        }
    }
    let told = parts.into_iter().map(|(why, mut alike)| {
        let more = alike.len().saturating_sub(MOST_NAMED);
        alike.truncate(MOST_NAMED);
        alike.extend((more > 0).then(|| format!("{more} more")));
        format!("{} ({why})", list(&alike))
    });
    told.collect::<Vec<_>>().join("; ")
}

/// `failed: operator`, a fragment about one or several cells.
pub(super) fn unfit_words(why: Unfit) -> String {
    match why {
        Unfit::Skipped => "skipped".to_owned(),
        Unfit::Failed(kind) => format!("failed: {}", kind.name().replace('_', " ")),
        Unfit::NotRun => "no completed run".to_owned(),
        Unfit::TooFewRuns(runs) => {
            format!("{}; a verdict needs {MINIMUM_RUNS}", count(u64::from(runs), "completed run"))
        }
        Unfit::Withheld(reason) => format!("not judged: {}", reason.words()),
        Unfit::OutputsDiffer => "outputs differ".to_owned(),
        Unfit::NoValue => "no value".to_owned(),
        Unfit::TooFewSamples { needed } => {
            format!("not judged: this percentile takes {needed} samples per run, `min_samples`")
        }
        Unfit::Batched(iterations) => format!("not judged: a sample is the mean of {iterations} iterations"),
        Unfit::NoDirection => "not judged: the metric has no better direction".to_owned(),
    }
}
