//! Which runtimes lie between two, and where the first bad one is.

use crate::ui::error::Error;
use experiment::{OLDEST_RUNTIME, Package, Runtime, is_new_enough, version_numbers};
use prepare::runtime::PINNED;

/// What one runtime was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tried {
    Worse,
    NoWorse,
    /// It cannot be had, or does not run the model.
    Unusable,
}

/// The runtime of that name in the specification, or else of that version.
///
/// # Errors
///
/// Neither.
pub(super) fn named(declared: &[Runtime], name: &str) -> Result<Runtime, Error> {
    if let Some(known) = declared.iter().find(|runtime| runtime.name == name) {
        return Ok(known.clone());
    }
    if version_numbers(name).is_some_and(is_new_enough) {
        return Ok(of_version(name));
    }
    let [major, minor] = OLDEST_RUNTIME;
    let oldest = format!("{major}.{minor}.0");
    let message = match version_numbers(name) {
        Some(_) => format!("perfrun needs ONNX Runtime {oldest} or newer, not {name}"),
        None => format!("`{name}` is no version of ONNX Runtime, nor one of the specification's `runtimes`"),
    };
    let names: Vec<&str> = declared.iter().map(|runtime| runtime.name.as_str()).collect();
    let or_named =
        if names.is_empty() { String::new() } else { format!(", or a name in `runtimes`: {}", names.join(", ")) };
    Err(Error::refused(message, format!("name three numbers from {oldest} on, such as {PINNED}{or_named}")))
}

fn of_version(version: &str) -> Runtime {
    Runtime { name: version.to_owned(), version: Some(version.to_owned()), ..Runtime::default() }
}

/// The releases that lie between two, in the order from the one to the other: those that perfrun knows, and the
/// specification's own. Nothing lies between two of which one is not a release.
pub(super) fn between(ends: [&Runtime; 2], declared: &[Runtime]) -> Vec<Runtime> {
    let numbers = |runtime: &Runtime| version_numbers(runtime.version.as_deref()?);
    let [Some(from), Some(to)] = ends.map(numbers) else { return Vec::new() };
    let is_between = |number: &[u64; 3]| from.min(to) < *number && *number < from.max(to);
    let package = ends[0].package;
    let known = Package::Onnxruntime.versions().iter();
    let known = known.map(|version| Runtime { package, ..of_version(version) });
    let all = declared.iter().cloned().chain(known).filter_map(|runtime| Some((numbers(&runtime)?, runtime)));
    let mut found: Vec<([u64; 3], Runtime)> = all.filter(|(number, _)| is_between(number)).collect();
    found.sort_by_key(|(number, _)| *number);
    found.dedup_by_key(|(number, _)| *number);
    if from > to {
        found.reverse();
    }
    found.into_iter().map(|(_, runtime)| runtime).collect()
}

/// Those of the ones in between that lie between these two, which are all that were not tried.
pub(super) fn passed_over<'a>(between: &'a [Runtime], [good, bad]: &[Runtime; 2]) -> &'a [Runtime] {
    let index_of = |runtime: &Runtime| between.iter().position(|other| other == runtime);
    let from = index_of(good).map_or(0, |index| index + 1);
    between.get(from..index_of(bad).unwrap_or(between.len())).unwrap_or_default()
}

/// The last good and the first bad one, by halves; what `try_it` says of one in the middle moves an end, and those that are
/// unusable are passed over. Nothing where `try_it` gives nothing.
///
/// # Errors
///
/// Those of `try_it`.
pub(super) fn search<E>(
    [mut good, mut bad]: [Runtime; 2],
    mut open: Vec<Runtime>,
    mut try_it: impl FnMut(&Runtime) -> Result<Option<Tried>, E>,
) -> Result<Option<[Runtime; 2]>, E> {
    while !open.is_empty() {
        let half = open.len() / 2;
        let middle = open.remove(half);
        match try_it(&middle)? {
            None => return Ok(None),
            Some(Tried::Worse) => {
                open.truncate(half);
                bad = middle;
            }
            Some(Tried::NoWorse) => {
                open.drain(..half);
                good = middle;
            }
            Some(Tried::Unusable) => {}
        }
    }
    Ok(Some([good, bad]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(runtimes: &[Runtime]) -> Vec<&str> {
        runtimes.iter().map(|runtime| runtime.name.as_str()).collect()
    }

    #[test]
    fn known_releases_and_the_specifications_own_lie_between_two() {
        let declared = [Runtime { name: "patched".to_owned(), ..of_version("1.29.7") }, of_version("1.40.0")];
        let releases = |from: &str, to: &str| {
            between([&named(&declared, from).unwrap(), &named(&declared, to).unwrap()], &declared)
        };
        assert_eq!(names(&releases("1.28.0", "1.31.0")), ["1.29.0", "patched", "1.30.0"]);
        assert_eq!(names(&releases("1.31.0", "patched")), ["1.30.0"]);
        assert_eq!(names(&releases("1.31.1", "1.40.0")), Vec::<&str>::new());
        let local = Runtime { name: "mine".to_owned(), path: Some("/x".into()), ..Runtime::default() };
        assert_eq!(between([&of_version("1.28.0"), &local], &declared), []);
        for (wrong, why) in [("1.30", "is no version"), ("1.24.0", "1.25.0 or newer"), ("nightly", "is no version")] {
            assert!(named(&declared, wrong).unwrap_err().to_string().contains(why), "{wrong}");
        }
    }

    proptest! {
        /// For every first bad version, and any set of unusable versions.
        #[test]
        fn the_neighbours_are_found_by_halves(first_bad in 1_usize..20, unusable in prop::collection::vec(any::<bool>(), 20)) {
            let all: Vec<Runtime> = (0..=20).map(|minor| of_version(&format!("2.{minor}.0"))).collect();
            let index_of = |runtime: &Runtime| all.iter().position(|other| other == runtime).unwrap();
            let is_unusable = |index: usize| (1..20).contains(&index) && unusable[index];
            let mut tried = 0;
            let found = search::<()>([all[0].clone(), all[20].clone()], all[1..20].to_vec(), |runtime| {
                tried += 1;
                let index = index_of(runtime);
                Ok(Some(match index {
                    _ if is_unusable(index) => Tried::Unusable,
                    _ if index >= first_bad => Tried::Worse,
                    _ => Tried::NoWorse,
                }))
            });
            let [good, bad] = found.unwrap().unwrap();
            prop_assert!(index_of(&good) < first_bad && first_bad <= index_of(&bad));
            prop_assert!((index_of(&good) + 1..index_of(&bad)).all(is_unusable));
            let untried = passed_over(&all[1..20], &[good.clone(), bad.clone()]);
            prop_assert_eq!(untried, &all[index_of(&good) + 1..index_of(&bad)]);
            let passed_over = (1..20).filter(|index| is_unusable(*index)).count();
            prop_assert!(tried <= 5 + passed_over, "{tried}");
        }
    }
}
