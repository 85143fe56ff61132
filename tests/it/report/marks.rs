//! Sentences that are made from measured values compare nothing but by a claim or a verdict: what words them is marked, and
//! outside of the marks no word of comparison stands.

use std::collections::BTreeSet;

use judge::diff::{DiffOptions, Side, Stale, diff};
use judge::results::Results;
use report::diff::{Page, Uncompared};
use report::{Format, MARKS, compose, with_marks};
use statistics::random::Xoshiro256PlusPlus;

use super::claims::made_up;
use super::fixture::{Axes, Behaviour, Fixture, experiment, usual};
use super::{all, measured_claims};
use crate::support::readable;

const WORDS: &[&str] = &[
    "faster",
    "slower",
    "equivalent",
    "as fast",
    "best",
    "fastest",
    "ahead",
    "kept",
    "met",
    "missed",
    "knee",
    "same",
    "as before",
    "smaller",
    "larger",
    "more",
    "less",
];

/// What the same sentence says of any result: headings, captions, methods, explanations of codes.
const FIXED: &[&str] = &[
    "A run warmed up ",
    "Latency: the 25 % trimmed mean of the processes' medians",
    "changes on the same items",
    "**W_",
    "what runs met on the machine",
    "best case",
    "The ring marks the knee",
    "smaller differences may be missed",
    "failed in rehearsal or twice in the same way",
    "same report on both sides",
    "No colour: equivalent.",
];

fn without_marks(text: &str) -> String {
    let mut depth = 0;
    let mut plain = String::new();
    for letter in text.chars() {
        depth += i32::from(letter == MARKS[0]);
        if depth == 0 {
            plain.push(letter);
        }
        depth -= i32::from(letter == MARKS[1]);
    }
    assert_eq!(depth, 0, "marks are not closed: {text}");
    plain
}

fn has(text: &str, word: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || "-_".contains(letter));
    text.match_indices(word)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next()))
}

fn compared(results: &Results, found: &mut BTreeSet<String>) {
    let formats = ["md", "html", "latex", "junit"].map(|name| Format::named(name).unwrap());
    let rendered = with_marks(|| compose(results, None).render(&formats)).unwrap();
    for (_, bytes) in rendered.files {
        let text = String::from_utf8(bytes).unwrap();
        compared_in(&if text.starts_with("<!") { readable(&text) } else { text }, found);
    }
}

fn compared_in(text: &str, found: &mut BTreeSet<String>) {
    for line in without_marks(text).lines() {
        // The results as data.
        let is_data = line.trim_start().starts_with(['{', '"']);
        if !is_data && WORDS.iter().any(|word| has(&line.to_lowercase(), word)) {
            found.insert(line.trim().to_owned());
        }
    }
}

/// What a diff of two results says.
fn compared_between(baseline: Results, candidate: Results, found: &mut BTreeSet<String>) {
    let side = |name: &str, results: Results| Side { name: name.to_owned(), results, stale: Stale::default() };
    let terms = DiffOptions { judges_unchanged: true, ..DiffOptions::default() };
    let diff = diff(&side("before", baseline), &side("after", candidate), &terms);
    let pages = [with_marks(|| Page::new(&diff, "perfrun diff"))];
    compared_in(&Page::markdown(&pages, &Uncompared::default(), "").unwrap(), found);
    compared_in(&readable(&Page::html(&pages, &Uncompared::default()).unwrap()), found);
}

/// One experiment of three variants on several days, each variant slower or faster than on other days.
fn slowed(number: u64) -> Results {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(number);
    let axes = Axes { models: &["m"], batches: &[1], variants: &["a", "b", "c"], devices: &["cpu"], runs: 10 };
    let factors: Vec<f64> = (0..3).map(|_| (0.2 * random.normal()).exp()).collect();
    let behaviour = |path: &str| {
        let index = ["/a/", "/b/", "/c/"].iter().position(|name| path.contains(name)).unwrap();
        Behaviour { run_sd: 0.01, ..usual(5e6 * factors[index], 30) }
    };
    Fixture::rerun(experiment("slowed", &axes), number, behaviour).summarized().results()
}

/// Six models, of which int8 is best in some only: more answers than have a figure each.
fn many() -> Fixture {
    let models = ["a", "b", "c", "d", "e", "f"];
    let axes = Axes { models: &models, batches: &[1], variants: &["fp32", "int8"], devices: &["cpu"], runs: 8 };
    let is_faster = |path: &str| path.contains("/int8/") && !path.starts_with(['a', 'b']);
    Fixture::new("many", &axes, |path| usual(if is_faster(path) { 1e6 } else { 2e6 }, 80)).summarized()
}

#[test]
fn what_compares_is_a_claim_or_a_verdict() {
    let mut found = BTreeSet::new();
    for (_, fixture) in all() {
        compared(&fixture.results(), &mut found);
    }
    compared(&many().results(), &mut found);
    for number in 0..60 {
        for results in [made_up(number), measured_claims::loads(number), measured_claims::scores(number)] {
            compared(&results, &mut found);
        }
        compared_between(slowed(number), slowed(number + 60), &mut found);
        compared_between(measured_claims::scores(number), measured_claims::scores(number + 1), &mut found);
    }
    let is_fixed = |line: &&String| FIXED.iter().any(|fixed| line.contains(fixed));
    let (fixed, unclaimed): (Vec<&String>, Vec<&String>) = found.iter().partition(is_fixed);
    assert!(unclaimed.is_empty(), "no claim is behind these: {unclaimed:#?}");
    let is_unused = |text: &&str| !fixed.iter().any(|line| line.contains(*text));
    let unused: Vec<&str> = FIXED.iter().copied().filter(is_unused).collect();
    assert_eq!(unused, [""; 0], "what no report says needs no exception");
}
