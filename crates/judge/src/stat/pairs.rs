//! Which benchmark of one file belongs to which of the other.
//!
//! Benchmarks are paired by name. Two files with one benchmark each are compared even if the names differ (`old`, `new`).

use std::collections::HashMap;

use base::printable::printable_line;
use reading::nearest::nearest;

use super::Series;

/// What is compared with what, and what has no partner.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairs {
    /// Baseline and candidate, in the order of the baseline; a series of a single file stands alone.
    pub pairs: Vec<(Series, Option<Series>)>,
    /// Benchmarks of the baseline and of the candidate that the other has not.
    pub only: [Vec<String>; 2],
}

/// Why benchmarks cannot be paired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// A file has a name twice.
    #[error("{file} has two benchmarks of the name `{name}`")]
    Twice { file: String, name: String },
    /// The names of two files differ.
    #[error("{baseline} and {candidate} have no benchmark in common")]
    NothingInCommon { baseline: String, candidate: String, of_baseline: Vec<String>, of_candidate: Vec<String> },
    /// Nothing has this name.
    #[error("no benchmark has the name `{name}`")]
    Unknown { name: String, known: Vec<String> },
    /// There is nothing to compare with it.
    #[error("`{name}` is the only benchmark")]
    Alone { name: String },
}

impl miette::Diagnostic for PairError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(match self {
            PairError::Twice { .. } => {
                "give each a name of its own, as hyperfine's `--command-name` does; the file alone is described"
                    .to_owned()
            }
            PairError::NothingInCommon { of_baseline, of_candidate, .. } => {
                format!("one has {}, the other {}", some(of_baseline), some(of_candidate))
            }
            PairError::Unknown { name, known } => match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", some(known)),
            },
            PairError::Alone { .. } => "give a second file, or one that has several benchmarks".to_owned(),
        }))
    }
}

/// A few names of a list.
fn some(names: &[String]) -> String {
    base::wording::list(&base::wording::some(names.iter().map(|name| format!("`{}`", printable_line(name))), 3))
}

/// The series of a single file, or pairs of two.
///
/// # Errors
///
/// Names that occur twice, or nothing in common.
pub fn pairs(baseline: Vec<Series>, candidate: Option<Vec<Series>>) -> Result<Pairs, PairError> {
    let Some(mut candidate) = candidate else {
        return Ok(Pairs { pairs: baseline.into_iter().map(|series| (series, None)).collect(), ..Pairs::default() });
    };
    if baseline.len() == 1 && candidate.len() == 1 {
        return Ok(Pairs { pairs: baseline.into_iter().zip(candidate.pop().map(Some)).collect(), ..Pairs::default() });
    }
    let [of_baseline, of_candidate] = [&baseline, &candidate].map(|side| names(side));
    let [file, other] =
        [&baseline, &candidate].map(|side| side.first().map_or(String::new(), |series| series.source.clone()));
    let mut partners: HashMap<String, Series> = HashMap::new();
    for series in candidate {
        let name = series.name();
        if partners.insert(name.clone(), series).is_some() {
            return Err(PairError::Twice { file: other, name });
        }
    }
    let mut found = Pairs::default();
    let mut seen = HashMap::new();
    for series in baseline {
        let name = series.name();
        if seen.insert(name.clone(), ()).is_some() {
            return Err(PairError::Twice { file, name });
        }
        match partners.remove(&name) {
            Some(partner) => found.pairs.push((series, Some(partner))),
            None => found.only[0].push(name),
        }
    }
    if found.pairs.is_empty() {
        return Err(PairError::NothingInCommon { baseline: file, candidate: other, of_baseline, of_candidate });
    }
    found.only[1] = of_candidate.into_iter().filter(|name| partners.contains_key(name)).collect();
    Ok(found)
}

/// Every other benchmark of a file against the one of this name.
///
/// # Errors
///
/// No such benchmark, or no other.
pub fn against(series: Vec<Series>, name: &str) -> Result<Pairs, PairError> {
    let known = names(&series);
    let (mut baselines, candidates): (Vec<Series>, Vec<Series>) =
        series.into_iter().partition(|series| series.name() == name);
    let baseline = baselines.pop().ok_or_else(|| PairError::Unknown { name: name.to_owned(), known })?;
    if !baselines.is_empty() {
        return Err(PairError::Twice { file: baseline.source, name: name.to_owned() });
    }
    if candidates.is_empty() {
        return Err(PairError::Alone { name: name.to_owned() });
    }
    Ok(Pairs {
        pairs: candidates.into_iter().map(|candidate| (baseline.clone(), Some(candidate))).collect(),
        ..Pairs::default()
    })
}

/// The benchmarks of this name.
///
/// # Errors
///
/// No such benchmark.
pub fn only(series: Vec<Series>, name: &str) -> Result<Vec<Series>, PairError> {
    let known = names(&series);
    let found: Vec<Series> = series.into_iter().filter(|series| series.name() == name).collect();
    if found.is_empty() {
        return Err(PairError::Unknown { name: name.to_owned(), known });
    }
    Ok(found)
}

fn names(series: &[Series]) -> Vec<String> {
    series.iter().map(Series::name).collect()
}

impl Series {
    /// What it is called in a set: its benchmark's name, or its file.
    fn name(&self) -> String {
        self.benchmark.clone().unwrap_or_else(|| self.source.clone())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::stat::Tool;

    fn file(names: &[&str]) -> Vec<Series> {
        names.iter().map(|name| Series::of_benchmark(Tool::Go, Some((*name).to_owned()), vec![1.0])).collect()
    }

    fn names_of(found: &Pairs) -> Vec<(String, String)> {
        found.pairs.iter().map(|(from, to)| (from.name(), to.as_ref().unwrap().name())).collect()
    }

    #[test]
    fn benchmarks_are_paired_by_name() {
        let found = pairs(file(&["a", "b", "c"]), Some(file(&["d", "c", "a"]))).unwrap();
        assert_eq!(names_of(&found), [("a", "a"), ("c", "c")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert_eq!(found.only, [["b".to_owned()], ["d".to_owned()]]);
        let found = pairs(file(&["old"]), Some(file(&["new"]))).unwrap();
        assert_eq!(names_of(&found), [("old".to_owned(), "new".to_owned())]);
    }

    #[test]
    fn what_cannot_be_paired_is_said() {
        let refusal = |baseline: &[&str], candidate: &[&str]| {
            pairs(file(baseline), Some(file(candidate))).unwrap_err().to_string()
        };
        assert!(refusal(&["a", "a"], &["a"]).contains("two benchmarks of the name `a`"));
        assert!(refusal(&["a"], &["a", "a"]).contains("two benchmarks of the name `a`"));
        assert!(refusal(&["a", "b"], &["c"]).contains("no benchmark in common"));
        assert_eq!(pairs(file(&["a", "a"]), None).unwrap().pairs.len(), 2);
    }

    #[test]
    fn one_of_a_file_may_be_the_baseline() {
        let found = against(file(&["a", "b", "c"]), "b").unwrap();
        assert_eq!(names_of(&found), [("b", "a"), ("b", "c")].map(|(a, b)| (a.to_owned(), b.to_owned())));
        assert!(against(file(&["a"]), "a").is_err() && against(file(&["a", "b"]), "x").is_err());
        assert_eq!(only(file(&["a", "b"]), "b").unwrap(), file(&["b"]));
    }
}
