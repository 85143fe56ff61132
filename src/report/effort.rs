//! How many blocks the groups of a record needed, in words (method 4.6).

use super::format::{count, list};
use super::plots::group_name;
use crate::judge::compare::need::{Effort, Stopped};
use crate::plan::Plan;

/// More groups than these are counted instead of named.
const MOST_NAMED: usize = 3;

/// One sentence; `None` where runs do not go by need.
pub(super) fn sentence(plan: &Plan, efforts: &[Effort]) -> Option<String> {
    let with = |stopped: Stopped| efforts.iter().filter(|effort| effort.stopped == stopped).collect::<Vec<_>>();
    let (decided, given_up) = (with(Stopped::Decided), with(Stopped::GivenUp));
    let is_open = |effort: &&Effort| !matches!(effort.stopped, Stopped::Decided | Stopped::GivenUp);
    let open: Vec<&Effort> = efforts.iter().filter(is_open).collect();
    let mut parts = Vec::new();
    for (groups, word) in [(&decided, "decided"), (&given_up, "given up")] {
        let of = match efforts.len() {
            1 => String::new(),
            all => format!("{} of {} ", groups.len(), count(all as u64, "group")),
        };
        parts.extend((!groups.is_empty()).then(|| format!("{of}{word} after {}", blocks(groups))));
    }
    let settled = efforts.len() - open.len();
    let first_open = open.first();
    if let Some(first) = first_open {
        let why = match first.stopped {
            Stopped::MostRuns => ", the most that `runs` allows",
            Stopped::Budget => ", when the budget was spent",
            Stopped::Decided | Stopped::GivenUp | Stopped::Unfinished => "",
        };
        let names: Vec<String> = open.iter().map(|effort| group_name(plan, effort.group)).collect();
        let names = match open.len() {
            _ if efforts.len() == 1 => String::new(),
            named if named <= MOST_NAMED => format!("{} ", list(&names)),
            several if settled == 0 => format!("{several} of {} ", count(efforts.len() as u64, "group")),
            several => format!("{several} "),
        };
        parts.push(format!("{names}open after {}{why}", blocks(&open)));
    }
    (!parts.is_empty()).then(|| format!("Runs by need: {}.", parts.join("; ")))
}

/// `8 blocks`, `8 to 12 blocks`.
fn blocks(efforts: &[&Effort]) -> String {
    let least = efforts.iter().map(|effort| effort.blocks).min().unwrap_or(0);
    let most = efforts.iter().map(|effort| effort.blocks).max().unwrap_or(0);
    let most_words = count(u64::from(most), "block");
    if least == most { most_words } else { format!("{least} to {most_words}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_counted_and_open_ones_are_named() {
        let text = "backend: mock\nmodels: [m, n]\nvariants: [a, b]";
        let spec = crate::spec::parse("x.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let plan = crate::plan::expand(&spec.experiment).expect("a plan");
        let effort = |group, blocks, stopped| Effort { group, blocks, stopped };
        let says = |efforts: &[Effort]| sentence(&plan, efforts).unwrap_or_default();
        let both = [effort(0, 8, Stopped::Decided), effort(1, 12, Stopped::Decided)];
        assert_eq!(says(&both), "Runs by need: 2 of 2 groups decided after 8 to 12 blocks.");
        let one = [effort(0, 8, Stopped::Decided), effort(1, 32, Stopped::MostRuns)];
        assert_eq!(
            says(&one),
            "Runs by need: 1 of 2 groups decided after 8 blocks; n open after 32 blocks, the most that `runs` allows."
        );
        assert_eq!(
            says(&[effort(0, 9, Stopped::Budget)]),
            "Runs by need: open after 9 blocks, when the budget was spent."
        );
        assert_eq!(says(&[]), "");
    }
}
