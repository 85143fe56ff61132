//! The variants axis: bases are inherited, lists inside an entry multiplied.

use std::collections::BTreeMap;

use super::{Axis, BackendKind, conversion, measure, programs, provider, range, session, variant_names};
use crate::check::Check;
use crate::document::{DocumentPath, Step};
use crate::form::{ExperimentForm, OneOrMany, Ordered, Setting, ThreadsEntry, VariantEntry, VariantForm};
use crate::wording::{PLANNED_PRECISIONS, bad_name, precision_meant_by, unavailable_precision};
use base::name::{fitting_name, is_name};
use experiment::beyond_limit;
use experiment::{Combine, Execution, GraphOptimization, MOST_THREADS, Model, Precision, Runtime, Threads, Variant};
use reading::nearest::{nearest, suggestion};
use reading::yaml::scalar;

/// Every variant, in the order of the file; those of one entry with the last list fastest.
pub(super) fn expand(
    form: &ExperimentForm,
    models: &Axis<Model>,
    runtimes: &Axis<Runtime>,
    backend: BackendKind,
    check: &mut Check<'_>,
) -> Axis<Variant> {
    let top = DocumentPath::top("variants");
    let mut axis = Axis { values: Vec::new(), is_complete: !check.is_damaged(&top) };
    let mut names = Vec::new();
    let (written, plugins, combine) = (written_names(&form.variants), &form.plugins, form.matrix.design);
    for (place, entry) in form.variants.places(&top) {
        if check.is_damaged(&place) {
            axis.is_complete = false;
            continue;
        }
        let made = match entry {
            VariantEntry::Precision(name) => from_word(name, &place, backend, check).into_iter().collect(),
            VariantEntry::Form(own) => {
                check_mock(own, &place, backend, check);
                let entry = &VariantForm { threads: write_out(&own.threads, &place, check), ..(**own).clone() };
                let made = from_form(entry, combine, &place, &axis, &written, plugins, check);
                if let Some(first) = made.first() {
                    programs::check(own, first, form, &place, runtimes, check);
                }
                variant_names::check_precision(entry, &made, models, &place, backend, check);
                made
            }
        };
        axis.is_complete &= !made.is_empty();
        for variant in &made {
            if variant.name.len() > 64 {
                check.error(&place, format!("the name `{}` is longer than 64 characters", variant.name), None);
            }
        }
        names.extend(made.iter().map(|variant| (place.clone(), variant.name.clone())));
        axis.values.extend(made);
    }
    check.duplicates("variants", &names, "give each its own `name`");
    axis
}

/// The names as they stand in the file, for judging bases where some entries could not be read.
struct Written {
    /// Index of the entry, and its name.
    names: Vec<(usize, String)>,
    /// True where entries have names that lists or defaults give them.
    has_others: bool,
}

fn written_names(entries: &OneOrMany<VariantEntry>) -> Written {
    let mut written = Written { names: Vec::new(), has_others: false };
    for (index, entry) in entries.as_slice().iter().enumerate() {
        let (name, multiplies) = match entry {
            VariantEntry::Precision(name) => (Some(name), false),
            VariantEntry::Form(form) => {
                (form.name.as_ref().map(|name| &name.0), lengths(form).iter().any(|length| *length > 1))
            }
        };
        written.has_others |= multiplies || name.is_none();
        written.names.extend(name.filter(|_| !multiplies).map(|name| (index, name.clone())));
    }
    written
}

/// A bare word is a precision; the mock backend has none, so that there it is a name.
fn from_word(word: &str, place: &DocumentPath, backend: BackendKind, check: &mut Check<'_>) -> Option<Variant> {
    if check.is_full() {
        return None;
    }
    let precision = Precision::of_name(word);
    if precision.is_some() || backend != BackendKind::ReadsModels {
        if is_name(word) {
            let precision = precision.unwrap_or_default();
            return Some(Variant { name: word.to_owned(), precision, ..Variant::default() });
        }
        check.problems.push(bad_name(check.at(place, ""), &place.name(), word));
        return None;
    }
    if PLANNED_PRECISIONS.contains(&word) {
        check.problems.push(unavailable_precision(check.at(place, ""), word));
    } else {
        let near = || nearest(word, Precision::ALL.map(Precision::name));
        let hint = match precision_meant_by(word).or_else(near) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("a variant with settings is a map: `{{ name: {}, threads: 1 }}`", scalar(&fitting_name(word)))
            }
        };
        check.error(place, format!("`{word}` is not a precision"), hint);
    }
    None
}

fn check_mock(form: &VariantForm, place: &DocumentPath, backend: BackendKind, check: &mut Check<'_>) {
    if form.mock.is_some() && backend == BackendKind::ReadsModels {
        let problem = check.at_key(&place.key("mock"), "`mock` has no effect with the backend `onnxruntime`");
        check.problems.push(problem.with_hint("write `backend: mock`, or leave the key out"));
    }
}

fn from_form(
    form: &VariantForm,
    combine: Combine,
    place: &DocumentPath,
    earlier: &Axis<Variant>,
    written: &Written,
    plugins: &Ordered<String>,
    check: &mut Check<'_>,
) -> Vec<Variant> {
    let mut start = match &form.base {
        None => Variant { name: "fp32".to_owned(), ..Variant::default() },
        Some(base) => match earlier.values.iter().find(|variant| variant.name == *base) {
            Some(variant) => variant.clone(),
            None => {
                unknown_base(base, place, earlier, written, check);
                return Vec::new();
            }
        },
    };
    if let Some(name) = &form.name {
        start.name = name.0.clone();
    }
    if let Some(runtime) = &form.runtime {
        start.runtime = Some(runtime.0.clone());
        if form.name.is_none() && form.base.is_none() {
            start.name.clone_from(&runtime.0);
        }
    }
    start.sessions = form.sessions.or(start.sessions);
    start.shared_session = form.shared_session.unwrap_or(start.shared_session);
    start.options.extend(form.options.clone());
    overlay(&mut start.session, &form.session);
    session::check(&form.session, &place.key("session"), check);
    provider::overlay(&mut start.provider, &form.provider, plugins, &place.key("provider"), check);
    overlay(&mut start.env, &form.env);
    if let Some(wrap) = &form.wrap {
        start.wrap.clone_from(wrap);
    }
    if let Some(form) = &form.convert {
        conversion::overlay(&mut start.convert, form);
    }
    if let Some(mock) = &form.mock {
        measure::check_mock_variant(mock, &place.key("mock"), check);
        start.mock = start.mock.overlaid(mock);
    }
    let made = multiply(start, form, combine, place, check);
    conversion::check(form, &made, place, check);
    check_execution(form, &made, place, check);
    made
}

fn unknown_base(base: &str, place: &DocumentPath, earlier: &Axis<Variant>, written: &Written, check: &mut Check<'_>) {
    let place = place.key("base");
    if let Some((at, _)) = written.names.iter().find(|(_, name)| name == base) {
        // An entry above that has no variant is wrong itself, and has its own problem.
        let own = place.0.iter().find_map(|step| if let Step::Index(index) = step { Some(*index) } else { None });
        if own.is_none_or(|own| *at >= own) {
            let hint = "put the base above the variants that build on it".to_owned();
            check.error(&place, format!("`{base}` is not a variant above this one"), hint);
        }
        return;
    }
    if written.has_others && !earlier.is_complete {
        return;
    }
    let hint = if base == "fp32" {
        Some("add `fp32` to the variants above, or write `precision: fp32` in place of the base".to_owned())
    } else {
        suggestion(base, earlier.values.iter().map(|variant| variant.name.as_str()), "variant")
    };
    check.error(&place, format!("there is no variant `{base}` to build on"), hint);
}

fn overlay(settings: &mut BTreeMap<String, String>, form: &Ordered<Setting>) {
    settings.extend(form.0.iter().map(|(key, setting)| (key.clone(), setting.0.clone())));
}

/// The names of what the lists of an entry multiply to, the last list fastest; none where they are more than `most`, or
/// hold ranges.
pub(crate) fn names(form: &VariantForm, most: u128) -> Vec<String> {
    let threads = form.threads.as_ref().map_or(&[][..], OneOrMany::as_slice);
    let has_ranges = threads.iter().any(|entry| matches!(entry, ThreadsEntry::Range(_)));
    if has_ranges || Combine::Product.count(lengths(form).into_iter()) > most {
        return Vec::new();
    }
    let name = form.name.as_ref().map(|name| &name.0).or(form.base.as_ref());
    let start = Variant { name: name.map_or("fp32", String::as_str).to_owned(), ..Variant::default() };
    combinations(start, form, Combine::Product).into_iter().map(|variant| variant.name).collect()
}

/// One variant for each combination of the lists.
fn multiply(
    start: Variant,
    form: &VariantForm,
    combine: Combine,
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Vec<Variant> {
    let count = combine.count(lengths(form).into_iter());
    if let Some(message) = beyond_limit("these lists multiply", count, "variants") {
        check.error(place, message, None);
        return Vec::new();
    }
    combinations(start, form, combine)
}

/// One variant for each combination of the lists; what a list of several varies becomes part of the name.
fn combinations(start: Variant, form: &VariantForm, combine: Combine) -> Vec<Variant> {
    let mut variants = vec![(start, 0)];
    let named = form.name.is_some();
    variants = vary(variants, combine, &form.precision, |variant, precision: &Precision| {
        variant.precision = *precision;
        let label = precision.name().to_owned();
        if !named && form.base.is_none() {
            variant.name.clear();
        }
        label
    });
    variants = vary(variants, combine, &form.threads, |variant, threads| {
        let (threads, label) = read_threads(threads);
        variant.threads =
            Threads { intra: threads.intra.or(variant.threads.intra), inter: threads.inter.or(variant.threads.inter) };
        label
    });
    variants = vary(variants, combine, &form.graph_optimization, |variant, level| {
        variant.graph_optimization = Some(*level);
        graph_optimization_label(*level).to_owned()
    });
    variants = vary(variants, combine, &form.execution, |variant, mode| {
        variant.execution = Some(*mode);
        match mode {
            Execution::Sequential => "sequential".to_owned(),
            Execution::Parallel => "parallel".to_owned(),
        }
    });
    variants = vary(variants, combine, &form.cache, |variant, cache| {
        variant.cache = Some(*cache);
        cache.name().to_owned()
    });
    variants.into_iter().map(|(variant, _)| variant).collect()
}

/// Parallel execution on one thread, which ONNX Runtime turns into sequential without a word; and threads that
/// sequential execution has no use for.
fn check_execution(form: &VariantForm, made: &[Variant], place: &DocumentPath, check: &mut Check<'_>) {
    let has_threads = |variant: &&Variant| variant.threads.inter.is_some_and(|inter| inter > 1);
    let is_parallel = |variant: &&Variant| variant.execution == Some(Execution::Parallel);
    let key = if form.execution.is_some() { place.key("execution") } else { place.clone() };
    if made.iter().filter(is_parallel).any(|variant| !has_threads(&variant)) {
        let message = "`execution: parallel` has no effect with one inter-op thread";
        check.error(&key, message, "give it more: `threads: { inter: 2 }`".to_owned());
    }
    let is_idle = |variant: &Variant| variant.execution == Some(Execution::Sequential) && has_threads(&variant);
    // Where `execution` lists both modes, the threads are for the parallel one.
    if !made.is_empty() && made.iter().all(is_idle) {
        let message = "inter-op threads have no effect with `execution: sequential`";
        check.warn(&key, message, "leave `threads: { inter }` or `execution` out");
    }
}

/// Thread counts with their ranges written out; a range that is wrong is left as it is, which makes no variant.
fn write_out(
    threads: &Option<OneOrMany<ThreadsEntry>>,
    place: &DocumentPath,
    check: &mut Check<'_>,
) -> Option<OneOrMany<ThreadsEntry>> {
    let entries = threads.as_ref()?;
    let mut counts = Vec::new();
    for (place, entry) in entries.places(&place.key("threads")) {
        let ThreadsEntry::Range(form) = entry else {
            counts.push(*entry);
            continue;
        };
        let most = u64::from(MOST_THREADS);
        match form {
            form if form.from == 0 => check.error(&place.key("from"), "`from` is 0; it must be at least 1", None),
            form if form.to > most => {
                let message = format!("`to` is {}; it must be at most {most}", form.to);
                check.error(&place.key("to"), message, None);
            }
            form => {
                let numbers = range::numbers(form, &place, check);
                counts.extend(numbers.into_iter().map(|count| ThreadsEntry::Intra(count as u32)));
            }
        }
    }
    Some(OneOrMany::Many(counts))
}

/// How many values each list has.
fn lengths(form: &VariantForm) -> [u128; 5] {
    let threads = form.threads.as_ref().map_or(&[][..], OneOrMany::as_slice);
    let of_entry = |entry: &ThreadsEntry| match entry {
        ThreadsEntry::Range(range) => range.count().unwrap_or(0),
        ThreadsEntry::Intra(_) | ThreadsEntry::Form(_) => 1,
    };
    let threads = if form.threads.is_some() { threads.iter().map(of_entry).sum() } else { 1_u128 };
    let (graph, execution) = (length(&form.graph_optimization), length(&form.execution));
    [length(&form.precision), threads, graph, execution, length(&form.cache)]
}

fn length<T>(list: &Option<OneOrMany<T>>) -> u128 {
    list.as_ref().map_or(1, |list| list.as_slice().len() as u128)
}

/// Every variant with every value of the list, and in how many lists it differs from the first; a variant
/// whose name was cleared takes the value's label as its name.
fn vary<T>(
    variants: Vec<(Variant, usize)>,
    combine: Combine,
    values: &Option<OneOrMany<T>>,
    mut set: impl FnMut(&mut Variant, &T) -> String,
) -> Vec<(Variant, usize)> {
    let Some(values) = values else { return variants };
    let varies = values.as_slice().len() > 1;
    let mut made = Vec::new();
    for (variant, differences) in &variants {
        for (index, value) in values.as_slice().iter().enumerate() {
            let differences = differences + usize::from(index > 0);
            if !combine.has(differences) {
                continue;
            }
            let mut variant = variant.clone();
            let label = set(&mut variant, value);
            if variant.name.is_empty() {
                variant.name = label;
            } else if varies {
                variant.name = format!("{}-{label}", variant.name);
            }
            made.push((variant, differences));
        }
    }
    made
}

/// `t4`, `t4x2` with both counts, `x2` with operators in parallel only.
fn read_threads(entry: &ThreadsEntry) -> (Threads, String) {
    let threads = match entry {
        ThreadsEntry::Intra(intra) => Threads { intra: Some(*intra), inter: None },
        ThreadsEntry::Form(threads) => *threads,
        // Written out before.
        ThreadsEntry::Range(_) => Threads::default(),
    };
    let intra = threads.intra.map(|count| format!("t{count}")).unwrap_or_default();
    let inter = threads.inter.map(|count| format!("x{count}")).unwrap_or_default();
    (threads, format!("{intra}{inter}"))
}

fn graph_optimization_label(level: GraphOptimization) -> &'static str {
    match level {
        GraphOptimization::Disabled => "disabled",
        GraphOptimization::Basic => "basic",
        GraphOptimization::Extended => "extended",
        GraphOptimization::All => "all",
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::{mock, warnings};

    use super::*;

    #[test]
    fn a_list_of_execution_modes_is_two_variants() {
        let spec = "variants: [{ name: v, threads: { inter: 2 }, execution: [sequential, parallel] }]";
        let variants = mock(spec).variants;
        let found: Vec<_> = variants.iter().map(|variant| (variant.name.as_str(), variant.execution)).collect();
        let expected = [("v-sequential", Some(Execution::Sequential)), ("v-parallel", Some(Execution::Parallel))];
        assert_eq!(found, expected);
        assert!(warnings(spec).is_empty());
        assert_eq!(mock("").variants[0].execution, None);
    }

    #[test]
    fn lists_are_varied_one_at_a_time_where_the_matrix_is() {
        let spec = "matrix: { design: one_at_a_time }\nvariants: [{ precision: [fp32, int8], threads: [1, 2, 4] }]";
        let names: Vec<String> = mock(spec).variants.into_iter().map(|variant| variant.name).collect();
        assert_eq!(names, ["fp32-t1", "fp32-t2", "fp32-t4", "int8-t1"]);
    }

    #[test]
    fn a_range_of_threads_is_as_many_variants() {
        let variants = mock("variants: [{ name: v, threads: [1, { from: 2, to: 8, times: 2 }] }]").variants;
        let found: Vec<_> = variants.iter().map(|variant| (variant.name.as_str(), variant.threads.intra)).collect();
        assert_eq!(found, [("v-t1", Some(1)), ("v-t2", Some(2)), ("v-t4", Some(4)), ("v-t8", Some(8))]);
        let built = mock("variants: [{ name: v, threads: { from: 1, to: 2, plus: 1 } }, { name: w, base: v-t2 }]");
        assert_eq!(built.variants[2].threads.intra, Some(2));
    }

    #[test]
    fn threads_that_sequential_execution_leaves_idle_are_warned_of() {
        let spec = "variants: [{ name: v, threads: { inter: 2 }, execution: sequential }]";
        assert_eq!(warnings(spec), ["inter-op threads have no effect with `execution: sequential`"]);
    }
}
