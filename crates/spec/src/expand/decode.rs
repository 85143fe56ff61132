//! The inputs axis of language models: one point for each call.

use std::collections::BTreeMap;
use std::path::Path;

use super::Axis;
use super::inputs::{Size, file, read_sizes};
use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{CountEntry, DecodeForm, ExperimentForm, ModelEntry, OneOrMany, SizeEntry, VariantEntry};
use base::metric::MetricReference;
use experiment::{AT, BATCH, CAPACITY, ENCODER, GENERATE, InputFile, InputPoint, Model, PROMPT, VERIFY, beyond_limit};

/// The points of `decode`: for each batch and capacity the prompts, then the steps, then several tokens at once.
pub(super) fn expand(
    form: &DecodeForm,
    place: &DocumentPath,
    has_inputs: bool,
    folder: &Path,
    check: &mut Check<'_>,
) -> Axis<InputPoint> {
    if has_inputs {
        let problem = check.at_key(place, "`decode` and `inputs` both say what models are fed");
        check.problems.push(problem.with_hint("leave one out"));
        return Axis::default().incomplete();
    }
    let mut read = |name: &str, entries: &Option<OneOrMany<CountEntry>>| {
        let Some(entries) = entries else { return Vec::new() };
        let entries: Vec<SizeEntry> = entries.as_slice().iter().map(size_entry).collect();
        let least = if matches!(name, AT | "prompt_at") { 0 } else { 1 };
        counts(name, least, &OneOrMany::Many(entries), &place.key(name), check)
    };
    let [prompts, prompts_at, steps_at] =
        [(PROMPT, &form.prompt), ("prompt_at", &form.prompt_at), (AT, &form.at)].map(|(name, form)| read(name, form));
    let [verified, generated, capacities, batches, encoders] = [
        (VERIFY, &form.verify),
        (GENERATE, &form.generate),
        (CAPACITY, &form.capacity),
        (BATCH, &form.batch),
        (ENCODER, &form.encoder),
    ]
    .map(|(name, form)| read(name, form));
    needs(form, place, check);
    let prompts_at = if prompts_at.is_empty() { vec![0] } else { prompts_at };
    let prefills = pairs(&prompts, &prompts_at).map(|(tokens, at)| Call { key: Some(PROMPT), tokens, at });
    let steps = steps_at.iter().map(|at| Call { key: None, tokens: 1, at: *at });
    let verifies = pairs(&verified, &steps_at).map(|(tokens, at)| Call { key: Some(VERIFY), tokens, at });
    let loops = pairs(&generated, &prompts).map(|(tokens, at)| Call { key: Some(GENERATE), tokens, at });
    let calls: Vec<Call> = prefills.chain(steps).chain(verifies).chain(loops).collect();
    let around = [(BATCH, batches), (ENCODER, encoders), (CAPACITY, capacities)];
    let count = around.iter().map(|(_, sizes)| sizes.len().max(1) as u128).product::<u128>() * calls.len() as u128;
    if let Some(message) = beyond_limit("these calls multiply", count, "inputs") {
        check.error(place, message, "use fewer sizes".to_owned());
        return Axis::default().incomplete();
    }
    let mut points = vec![BTreeMap::new()];
    for (name, sizes) in around.iter().filter(|(_, sizes)| !sizes.is_empty()) {
        let with = |point: &BTreeMap<String, u64>, size: u64| {
            let mut point = point.clone();
            point.insert((*name).to_owned(), size);
            point
        };
        points = points.iter().flat_map(|point| sizes.iter().map(move |size| with(point, *size))).collect();
    }
    let file = form.prompts.as_ref().and_then(|text| file(text, &place.key("prompts"), folder, check));
    let values = points.iter().flat_map(|around| calls.iter().map(|call| call.point(around, file.as_ref()))).collect();
    Axis { values, is_complete: !check.is_damaged(place) }
}

/// A count, as sizes of dimensions are read.
fn size_entry(entry: &CountEntry) -> SizeEntry {
    match entry {
        CountEntry::One(count) => SizeEntry::Size(*count),
        CountEntry::Range(range) => SizeEntry::Range(*range),
    }
}

fn pairs(tokens: &[u64], at: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    tokens.iter().flat_map(move |tokens| at.iter().map(move |at| (*tokens, *at)))
}

/// One call, without what is around it.
struct Call {
    /// What its tokens are called; `None`: a step of one.
    key: Option<&'static str>,
    tokens: u64,
    /// Positions before them; of a loop the tokens of its prompt.
    at: u64,
}

impl Call {
    fn point(&self, around: &BTreeMap<String, u64>, prompts: Option<&InputFile>) -> InputPoint {
        let mut dimensions = around.clone();
        let name = match self.key {
            Some(PROMPT) if self.at == 0 => format!("prefill-{}", self.tokens),
            Some(PROMPT) => format!("prefill-{}-at-{}", self.tokens, self.at),
            Some(GENERATE) => format!("generate-{}-from-{}", self.tokens, self.at),
            Some(_) => format!("verify-{}-at-{}", self.tokens, self.at),
            None => format!("step-at-{}", self.at),
        };
        dimensions.extend(self.key.map(|key| (key.to_owned(), self.tokens)));
        if self.key != Some(PROMPT) || self.at > 0 {
            let key = if self.key == Some(GENERATE) { PROMPT } else { AT };
            dimensions.insert(key.to_owned(), self.at);
        }
        let of = |name: &str, before: &str, after: &str| {
            around.get(name).map(|size| format!("{before}{size}{after}")).unwrap_or_default()
        };
        let name = format!("{}{name}{}{}", of(BATCH, "b", "-"), of(CAPACITY, "-of-", ""), of(ENCODER, "-enc", ""));
        let file = prompts.filter(|_| matches!(self.key, Some(PROMPT | GENERATE))).cloned();
        InputPoint { name, dimensions, decode: true, file, ..InputPoint::default() }
    }
}

/// The counts of one key.
fn counts(
    name: &str,
    least: u64,
    entries: &OneOrMany<SizeEntry>,
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Vec<u64> {
    let sizes = read_sizes(name, entries, place, check);
    let counts = sizes.iter().filter_map(|size| if let Size::Known(count) = size { Some(*count) } else { None });
    let (counts, wrong): (Vec<u64>, Vec<u64>) = counts.partition(|count| *count >= least);
    // `read_sizes` reports a batch of 0.
    if !wrong.is_empty() && name != BATCH {
        check.error(place, format!("`{name}` is at least {least}"), None);
    }
    counts
}

/// What says nothing without something else.
fn needs(form: &DecodeForm, place: &DocumentPath, check: &mut Check<'_>) {
    if form.prompt.is_none() && form.at.is_none() && !check.is_damaged(place) {
        let hint = "write `prompt: 128` for a prompt, `at: 1024` for a step of one token";
        check.error(place, "`decode` names no call", hint.to_owned());
    }
    for (key, is_written, other, has_other) in [
        ("prompt_at", form.prompt_at.is_some(), PROMPT, form.prompt.is_some()),
        (VERIFY, form.verify.is_some(), AT, form.at.is_some()),
        (GENERATE, form.generate.is_some(), PROMPT, form.prompt.is_some()),
        ("prompts", form.prompts.is_some(), PROMPT, form.prompt.is_some()),
    ] {
        if is_written && !has_other {
            let problem = check.at_key(&place.key(key), format!("`{key}` goes with `{other}`"));
            check.problems.push(problem);
        }
    }
}

/// Refuses metrics of greedy loops where there is none.
pub(super) fn check_metrics(
    asked: &[(DocumentPath, MetricReference)],
    inputs: &[InputPoint],
    models: &[Model],
    check: &mut Check<'_>,
) {
    let of_models = models.iter().filter_map(|model| model.inputs.as_ref()).flatten();
    let calls = inputs.iter().chain(of_models).filter_map(InputPoint::call);
    let most = calls.map(|call| call.generated).max().unwrap_or(0);
    let lacks = |reference: &MetricReference| reference.metric.least_tokens().is_some_and(|least| most < least);
    for (place, reference) in asked.iter().filter(|(_, reference)| lacks(reference)) {
        let message = format!("no cell has `{reference}`: greedy loops have it");
        check.error(place, message, "write `decode: { prompt: 128, generate: 64 }`".to_owned());
    }
}

/// Refuses kinds of caches where no decoder is called, and what calls of one cannot have.
pub(super) fn check_others(form: &ExperimentForm, check: &mut Check<'_>) {
    if form.dataset.is_some() && form.decode.is_some() {
        let problem = check.at_key(&DocumentPath::top("dataset"), "`dataset` feeds no calls of a decoder");
        check.problems.push(problem.with_hint("leave it out, or give sizes as `inputs` in place of `decode`"));
    }
    let has_own = |entry: &ModelEntry| matches!(entry, ModelEntry::Form(form) if form.decode.is_some());
    let has_calls = form.decode.is_some() || form.models.as_slice().iter().any(has_own);
    if has_calls || check.is_damaged(&DocumentPath::top("decode")) || check.is_damaged(&DocumentPath::top("models")) {
        return;
    }
    for (place, entry) in form.variants.places(&DocumentPath::top("variants")) {
        let VariantEntry::Form(entry) = entry else { continue };
        if entry.cache.is_some() {
            let problem = check.at_key(&place.key("cache"), "`cache` has no effect without `decode`");
            check.problems.push(problem.with_hint("write `decode: { prompt: 128, at: 1024 }` in place of `inputs`"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, problems};

    fn names(spec: &str) -> Vec<String> {
        mock(spec).inputs.into_iter().map(|input| input.name).collect()
    }

    #[test]
    fn every_call_is_a_point() {
        let calls = names("decode: { prompt: [128, 1024], at: [0, 512], verify: 4 }");
        let expected = ["prefill-128", "prefill-1024", "step-at-0", "step-at-512", "verify-4-at-0", "verify-4-at-512"];
        assert_eq!(calls, expected);
        let around = names("decode: { prompt: 8, prompt_at: [0, 64], at: 64, capacity: [128, 256], batch: [1, 4] }");
        assert_eq!(around.len(), 12);
        assert_eq!(around[..3], ["b1-prefill-8-of-128", "b1-prefill-8-at-64-of-128", "b1-step-at-64-of-128"]);
        assert_eq!(around[11], "b4-step-at-64-of-256");
    }

    #[test]
    fn points_say_their_calls() {
        let inputs = mock("decode: { prompt: 16, at: 100, verify: 3, batch: 2 }").inputs;
        let calls: Vec<_> = inputs.iter().filter_map(|input| input.call()).collect();
        let sizes: Vec<_> = calls.iter().map(|call| (call.batch, call.tokens, call.context)).collect();
        assert_eq!(sizes, [(2, 16, 0), (2, 1, 100), (2, 3, 100)]);
        let counted: Vec<_> = inputs.iter().map(|input| (input.batch(), input.counted_of_each())).collect();
        assert_eq!(counted, [(Some(2), 16), (Some(2), 1), (Some(2), 3)]);
    }

    #[test]
    fn what_says_nothing_is_refused() {
        assert_eq!(problems("decode: { batch: 4 }"), ["`decode` names no call"]);
        assert_eq!(problems("decode: { prompt: 8, verify: 2 }"), ["`verify` goes with `at`"]);
        assert_eq!(problems("decode: { prompt: 0 }"), ["`prompt` is at least 1"]);
        assert_eq!(problems("decode: { at: [8, 8] }"), ["8 is listed twice in `at`"]);
        let both = "decode: { at: 8 }\ninputs: { batch: 1 }";
        assert_eq!(problems(both), ["`decode` and `inputs` both say what models are fed"]);
        let cache = "variants: [{ name: a, cache: shared }]";
        assert_eq!(problems(cache), ["`cache` has no effect without `decode`"]);
    }

    #[test]
    fn caches_multiply_variants() {
        let spec = mock("decode: { at: 8 }\nvariants: [{ name: a, cache: [grown, copied] }]");
        let names: Vec<_> = spec.variants.iter().map(|variant| variant.name.as_str()).collect();
        assert_eq!(names, ["a-grown", "a-copied"]);
    }
}
