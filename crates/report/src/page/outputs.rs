//! How right each variant is on its model's data, how like the reference's its outputs are, and what conversions did.

use std::collections::{HashMap, HashSet};

use super::table::{Columns, TableCell, TableColumn};
use super::{Reader, Section, Table, facts};
use crate::format::{self, p_value, percent};
use crate::mark::claimed;
use base::metric::Unit;
use base::wording::{count, distinct, grouped, list, some};
use experiment::{AccuracyMetric, Model};
use judge::results::{Cell, Claim, Conversion, Kind, Results, Topic};
use plan::CellId;
use quality::accuracy::{Change, Score};
use quality::fidelity::{Agreement, Equal, Fidelity};
use record::VariantAccuracy;

/// So many are named where there are at least two more.
const MOST_NAMED: usize = 2;

/// Accuracy, outputs and conversions, as far as there are any.
pub(super) fn sections(reader: &Reader<'_>) -> Vec<Section> {
    let results = reader.results;
    let mut sections = Vec::new();
    sections.extend(accuracy(reader).map(|table| Section::new("accuracy", "accuracy", "Accuracy", table)));
    sections.extend(
        outputs(reader).map(|table| Section::new("accuracy", "outputs", "Outputs against the reference's", table)),
    );
    if !results.conversions.is_empty() {
        let title = "Conversions";
        sections.push(Section::new("accuracy", "conversions", title, conversions(results)));
    }
    sections
}

/// What is printed with a number.
pub(super) fn short_name(metric: AccuracyMetric) -> &'static str {
    match metric {
        AccuracyMetric::Top1 => "top-1",
        AccuracyMetric::Top5 => "top-5",
        AccuracyMetric::Mae => "MAE",
        AccuracyMetric::Rmse => "RMSE",
        AccuracyMetric::R2 => "R2",
        AccuracyMetric::Own(metric) => metric.title,
    }
}

/// `98.1 %`
pub(super) fn value_of(score: &Score) -> String {
    format::score(score.metric.metric(), score.estimate.value, score.estimate.n)
}

/// How like the reference's the outputs of a cell are, in a word; `None` where nothing was compared.
pub(super) fn in_a_word(cell: &Cell) -> Option<String> {
    let outputs = cell.compared_outputs()?;
    let word = match outputs.language.as_ref().and_then(|language| language.divergence_words(false)) {
        Some(divergence) => format!("{}, KL {divergence}", outputs.in_a_word()),
        None => outputs.in_a_word().to_owned(),
    };
    Some(match cell.not_compared.len() {
        0 => word,
        left_out => format!("{word}; {left_out} not compared"),
    })
}

/// `top-1 97.8 % against 98.1 % (lower, p 0.012)`, `as before` where no item changed; else how like the reference's the
/// outputs are; `None` where they are equal to the last digit that is shown.
pub(super) fn against_reference(reader: &Reader<'_>, cell: &Cell) -> Option<String> {
    words_against_reference(reader, cell).map(claimed)
}

/// `top-1 97.8 %, fp32 98.1 % (lower: -0.3 pp [-0.6, -0.1])`: the first score with the reference's; without a score how like
/// the reference's the outputs are, where they are not equal.
pub(super) fn cost(reader: &Reader<'_>, cell: &Cell) -> Option<String> {
    let scores = cell.scores();
    let Some(score) = scores.first() else { return against_reference(reader, cell) };
    let (metric, name) = (score.metric.metric(), short_name(score.metric));
    let shown = |value: f64| format::score(metric, value, score.estimate.n);
    let value = shown(score.estimate.value);
    let Some((change, claim)) = score.change.zip(accuracy_of(reader, cell.id)) else {
        return Some(format!("{name} {value}"));
    };
    let reference = cell.outputs_reference.as_ref().or(reader.results.rules.baseline.as_ref());
    let reference = reference.map_or("before", String::as_str);
    let word = match claim.kind {
        Kind::LessAccurate => "lower:",
        Kind::MoreAccurate => "higher:",
        _ => "change",
    };
    let before = shown(score.estimate.value - change.difference);
    Some(claimed(format!("{name} {value}, {reference} {before} ({word} {})", change_words(&change, score.metric))))
}

/// What is claimed of a cell's first score against the reference's.
pub(super) fn accuracy_of<'a>(reader: &Reader<'a>, cell: CellId) -> Option<&'a Claim> {
    reader.results.claims_on(Topic::Accuracy).find(|claim| claim.cells == [cell])
}

fn words_against_reference(reader: &Reader<'_>, cell: &Cell) -> Option<String> {
    if let Some(score) = cell.scores().first() {
        let (change, claim) = (score.change?, accuracy_of(reader, cell.id)?);
        let (metric, name) = (score.metric.metric(), short_name(score.metric));
        let shown = |value: f64| format::score(metric, value, score.estimate.n);
        let (value, before) = (shown(score.estimate.value), shown(score.estimate.value - change.difference));
        let p = format!("p {}", p_value(change.p));
        let how = match (claim.kind, change.difference < 0.0) {
            (Kind::NotToldApart { .. }, _) => p,
            (_, true) => format!("lower, {p}"),
            (_, false) => format!("higher, {p}"),
        };
        let items = score.estimate.n;
        return Some(match (claim.kind, change.lost.zip(change.gained)) {
            (Kind::AsAccurate, _) => format!("{name} {value} as before"),
            (_, Some((lost, gained))) if lost == gained => {
                format!("{name} {value}: {lost} lost, {gained} gained of {items}")
            }
            _ => format!("{name} {value} against {before} ({how})"),
        });
    }
    let fidelity = cell.fidelity.as_ref()?;
    let is_equal = fidelity.cosine.is_none_or(|cosine| cosine >= 0.999_95)
        && fidelity.equal.iter().all(Equal::is_whole)
        && fidelity.agreement.is_none_or(|agreement| agreement.top1() == 1.0);
    (!is_equal).then(|| format!("outputs {} ({})", fidelity.words(), fidelity.evidence()))
}

/// The cells that were scored, one for each variant of a model on a device: those that differ in their input alone say the
/// same.
fn scored(results: &Results) -> Vec<&Cell> {
    let mut known = HashSet::new();
    let is_known = |cell: &&Cell| !cell.scores().is_empty() || cell.accuracy_problem.is_some();
    let mut is_first = |cell: &&Cell| known.insert(cell.names.clone().without_input());
    results.cells.iter().filter(|cell| is_known(cell) && is_first(cell)).collect()
}

/// `digits-mlp/fp16`
fn variant_name(reader: &Reader<'_>, cell: &Cell) -> String {
    format!("{}/{}", cell.names.model(), cell.names.configuration(|axis| reader.has_several(axis)))
}

/// One row for each variant of a model that was run over data; `None` where none was.
fn accuracy(reader: &Reader<'_>) -> Option<Table> {
    let cells = scored(reader.results);
    cells.first()?;
    let mut table = Columns::of(&cells);
    table.add(TableColumn::text("variant"), |cell| variant_name(reader, cell));
    let mut metrics = distinct(cells.iter().flat_map(|cell| cell.scores()).map(|score| score.metric));
    // As one cell may have what another lacks.
    metrics.sort_by_key(|metric| {
        let rank = AccuracyMetric::OF_LABELS.iter().position(|known| known == metric);
        (rank.unwrap_or(usize::MAX), metric.name())
    });
    for metric in &metrics {
        let score_of = |cell: &Cell| cell.scores().into_iter().find(|score| score.metric == *metric);
        let change = |cell: &Cell| score_of(cell)?.change;
        let described = metric.metric();
        table.add(TableColumn::number(described.title).meaning(described.meaning), |cell| {
            let estimate = score_of(cell)?.estimate;
            let shown = |value: f64| format::score(described, value, estimate.n);
            let bound = |value: f64| shown(value).trim_end_matches(" %").to_owned();
            let interval = estimate.interval.map(|it| format!(" [{}, {}]", bound(it.low), bound(it.high)));
            Some(TableCell::number(
                format!("{}{}", shown(estimate.value), interval.unwrap_or_default()),
                estimate.value,
            ))
        });
        let meaning = "difference on the same items, with its 95 % interval";
        table.add_known(TableColumn::number("against the reference").meaning(meaning), |cell| {
            change(cell).map(|change| TableCell::number(change_words(&change, *metric), change.difference))
        });
        if metric.among().is_some() {
            let column = TableColumn::number("lost").meaning("items that only the reference gets right");
            table.add(column, |cell| change(cell)?.lost.map(TableCell::count));
            let column = TableColumn::number("gained").meaning("items that only this variant gets right");
            table.add(column, |cell| change(cell)?.gained.map(TableCell::count));
        }
    }
    // A number of all items is one.
    let items_of = |cell: &Cell| cell.scores().iter().map(|score| score.estimate.n).max().filter(|items| *items > 1);
    let differ = distinct(cells.iter().map(|cell| items_of(cell))).len() > 1;
    table.add_known(TableColumn::number("items").meaning("items that were run"), |cell| {
        items_of(cell).filter(|_| differ).map(|items| TableCell::count(items as u64))
    });
    let notes = accuracy_notes(reader, &cells, &metrics);
    Some(table.table(notes))
}

fn accuracy_notes(reader: &Reader<'_>, cells: &[&Cell], metrics: &[AccuracyMetric]) -> Vec<String> {
    let data = facts::rows(reader.results, "datasets");
    let mut files: Vec<String> = data
        .map(|row| {
            let text = |name: &str| row[name].as_str().unwrap_or("unknown").to_owned();
            let (path, hash) = (text("path"), text("sha256"));
            let items = count(row["items"].as_u64().unwrap_or(0), "item");
            format!("{path} ({items}, SHA-256 {})", hash.get(..12).unwrap_or(&hash))
        })
        .collect();
    files.dedup();
    let data = if files.is_empty() { String::new() } else { format!("Data: {}. ", files.join("; ")) };
    let mut notes = vec![format!("{data}Intervals are at 95 %, changes on the same items.")];
    let own_metrics: Vec<&str> = metrics.iter().filter(|metric| metric.is_own()).map(|metric| metric.name()).collect();
    if !own_metrics.is_empty() {
        notes.push(format!(
            "{} as the `score` command prints it; of a list with a number for each item the mean.",
            format::list(&own_metrics)
        ));
    }
    notes.extend(cells.iter().filter_map(|cell| {
        let problem = cell.accuracy_problem.as_ref()?;
        Some(format!("Missing or incomplete for {}: {problem}", variant_name(reader, cell)))
    }));
    notes
}

/// `-0.4 pp [-1.1, +0.4]`: percentage points of shares, the label's unit otherwise.
fn change_words(change: &Change, metric: AccuracyMetric) -> String {
    let is_share = metric.metric().unit == Unit::Share;
    let (factor, unit) = if is_share { (100.0, " pp") } else { (1.0, "") };
    let widest = change.interval.map_or(change.difference.abs(), |interval| interval.half_width()) * factor;
    let decimals = format::significant_decimals(widest, 2).clamp(0, 6);
    let signed = |value: f64| format::signed(value * factor, decimals);
    let interval = change.interval.map(|interval| format!(" [{}, {}]", signed(interval.low), signed(interval.high)));
    format!("{}{unit}{}", signed(change.difference), interval.unwrap_or_default())
}

/// One row for each cell whose outputs were compared, and one for those that differ in their input alone where that says the
/// same; `None` where none were.
fn outputs(reader: &Reader<'_>) -> Option<Table> {
    let without_input = |cell: &Cell| cell.names.clone().without_input();
    let (compared, rest): (Vec<&Cell>, Vec<&Cell>) =
        reader.shown().into_iter().partition(|cell| cell.fidelity.is_some());
    let not_compared: HashSet<_> = rest.into_iter().map(without_input).collect();
    let compared = compared.into_iter().filter_map(|cell| Some((cell, cell.fidelity.as_ref()?)));
    let mut cells: Vec<(&Cell, &Fidelity)> = Vec::new();
    let mut inputs: HashMap<_, Vec<usize>> = HashMap::new();
    for (cell, fidelity) in compared {
        let alike = inputs.entry(without_input(cell)).or_default();
        let is_new = |at: &usize| cells[*at].1 != fidelity || cells[*at].0.outputs_reference != cell.outputs_reference;
        if alike.iter().all(is_new) {
            alike.push(cells.len());
            cells.push((cell, fidelity));
        }
    }
    cells.first()?;
    let is_alike = |cell: &Cell| inputs.get(&without_input(cell)).is_some_and(|alike| alike.len() == 1);
    let is_whole = |cell: &Cell| is_alike(cell) && !not_compared.contains(&without_input(cell));
    let mut table = Columns::of(&cells);
    let number = |text: String, value: f64| Some(TableCell::number(text, value));
    let share = |value: Option<f64>| value.and_then(|share| number(percent(share), share));
    table.add(TableColumn::text("cell"), |(cell, _)| match is_whole(cell) {
        true => variant_name(reader, cell),
        false => cell.path(),
    });
    table.add(TableColumn::text("outputs").meaning("whether they keep the limits"), |(_, fidelity)| {
        TableCell::text(fidelity.words())
    });
    let meaning =
        "what the outputs are compared with, where it is not the baseline's variant on the same device and runtime";
    table.add_known(TableColumn::text("reference").meaning(meaning), |(cell, _)| {
        cell.outputs_reference.as_ref().map(TableCell::text)
    });
    table.add_known(TableColumn::number("cosine").meaning("smallest over outputs of numbers"), |(_, fidelity)| {
        fidelity.cosine.and_then(|cosine| number(format!("{cosine:.6}"), cosine))
    });
    let meaning = "smallest share of equal elements, over outputs of whole numbers, booleans or texts";
    table.add_known(TableColumn::number("equal").meaning(meaning), |(_, fidelity)| {
        share(fidelity.least_equal().map(Equal::share))
    });
    let small = |fidelity: &Fidelity, value: f64| fidelity.cosine.and_then(|_| number(format!("{value:.1e}"), value));
    table.add_known(TableColumn::number("largest difference").meaning("absolute"), |(_, fidelity)| {
        small(fidelity, fidelity.max_abs)
    });
    table.add_known(TableColumn::number("close").meaning("share of elements within the limits"), |(_, fidelity)| {
        share(fidelity.close)
    });
    table.add_known(
        TableColumn::number("top-1").meaning("items whose largest output is the reference's"),
        |(_, fidelity)| share(fidelity.agreement.as_ref().map(Agreement::top1)),
    );
    add_language(&mut table);
    Some(table.table(outputs_notes(reader, &cells)))
}

/// Columns of language models.
fn add_language(table: &mut Columns<'_, (&Cell, &Fidelity)>) {
    let of = |fidelity: &Fidelity| fidelity.language.clone();
    let meaning =
        "KL divergence of the next token's distribution, in nats a token, with its 95 % interval over sequences";
    table.add_known(TableColumn::number("KL").meaning(meaning), |(_, fidelity)| {
        let language = of(fidelity)?;
        Some(TableCell::number(language.divergence_words(true)?, language.divergence?.value))
    });
    let meaning = "of the prompts, and over that of the reference with its 95 % interval over sequences";
    table.add_known(TableColumn::number("perplexity").meaning(meaning), |(_, fidelity)| {
        let language = of(fidelity)?;
        Some(TableCell::number(language.perplexity_words()?, language.perplexity?.own.value))
    });
    let meaning = "tokens of greedy loops before the first difference from the reference's";
    table.add_known(TableColumn::number("same until").meaning(meaning), |(_, fidelity)| {
        let greedy = of(fidelity)?.greedy?;
        Some(TableCell::number(format!("{} of {}", greedy.before_difference, greedy.tokens), greedy.share()))
    });
}

fn outputs_notes(reader: &Reader<'_>, cells: &[(&Cell, &Fidelity)]) -> Vec<String> {
    let known = || cells.iter().map(|(_, fidelity)| fidelity);
    let sets = known().filter(|fidelity| fidelity.items_of_data.is_none()).map(|fidelity| fidelity.input_sets).max();
    let items = known().filter_map(|fidelity| fidelity.items_of_data).max();
    let same = [items.map(|items| count(items, "item") + " of the data"), sets.map(|sets| count(sets, "input set"))];
    let same: Vec<String> = same.into_iter().flatten().collect();
    let mut notes = vec![format!(
        "Outputs of each cell and of its reference for the same {}, by the limits of `fidelity`.",
        same.join(", or the same ")
    )];
    let is_random = |fidelity: &&&Fidelity| fidelity.items_of_data.is_none() && !fidelity.is_given;
    if known().any(|fidelity| fidelity.language.is_some()) {
        notes.push(
            "Greedy loops are compared by what they choose where both are fed the reference's tokens.".to_owned(),
        );
        let of_random = known().filter(is_random).any(|fidelity| fidelity.language.is_some());
        let random = "The ids are random, so that divergences are not those of texts: `decode: { prompts: ids.npy }`.";
        notes.extend(of_random.then(|| random.to_owned()));
    } else if known().any(|fidelity| is_random(&fidelity)) {
        notes.push(
            "With random inputs the top classes are meaningless: accuracy needs a `dataset` with labels.".to_owned(),
        );
    }
    let mut left: Vec<String> = Vec::new();
    for cell in reader.shown() {
        let of_model = cell.not_compared.iter();
        let outputs = of_model.map(|(name, element)| format!("output `{name}` of {} ({element})", cell.names.model()));
        left.extend(outputs.filter(|output| !left.contains(output)).collect::<Vec<_>>());
    }
    notes.extend((!left.is_empty()).then(|| format!("Not compared: {}.", left.join(", "))));
    notes
}

/// What was made of the models for variants.
fn conversions(results: &Results) -> Table {
    let mut table = Columns::of(&results.conversions);
    let words = |words: String| Some(TableCell::text(words)).filter(|cell| !cell.text.is_empty());
    table.add(TableColumn::text("model"), |conversion| TableCell::text(&conversion.model));
    table.add(TableColumn::text("variant"), |conversion| TableCell::text(&conversion.variant));
    table.add(TableColumn::text("in the new precision"), |conversion| words(converted(conversion)));
    table.add(TableColumn::text("left as it was"), |conversion| words(kept(conversion)));
    table.add(TableColumn::text("added"), |conversion| {
        let added = [(conversion.casts, "cast"), (conversion.quantize_nodes, "quantising node")].into_iter();
        words(list(
            &added.filter(|(number, _)| *number > 0).map(|(number, what)| count(number, what)).collect::<Vec<_>>(),
        ))
    });
    // Those of all models of a variant are remarks of the page.
    let is_said = |note: &&String| results.remarks.iter().any(|remark| remark.contains(note.as_str()));
    let notes = results.conversions.iter().flat_map(|conversion| {
        let what = format!("{} as {}", conversion.model, conversion.variant);
        conversion.notes.iter().filter(|note| !is_said(note)).map(move |note| (note, what.clone()))
    });
    let note = |(note, of): (&String, Vec<String>)| format!("{}: {note}.", list(&some(of.into_iter(), MOST_NAMED)));
    table.table(grouped(notes).into_iter().map(note).collect())
}

/// `54 Conv, 1 Gemm; 98 % of the weights`.
fn converted(conversion: &Conversion) -> String {
    let nodes = conversion.converted.iter().map(|(operator, nodes)| format!("{nodes} {operator}"));
    let nodes = some(nodes, MOST_NAMED).join(", ");
    let share =
        conversion.weights_converted as f64 / (conversion.weights_converted + conversion.weights_kept).max(1) as f64;
    let weights = (conversion.weights_converted > 0).then(|| format!("{} of the weights", percent(share)));
    [nodes, weights.unwrap_or_default()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// `12 Conv, 6 Add (the CPU provider has no fp16 arithmetic)`, reason by reason.
fn kept(conversion: &Conversion) -> String {
    let each = conversion.kept.iter().map(|kept| (&kept.reason, format!("{} {}", kept.nodes, kept.operator)));
    let nodes = |nodes: Vec<String>| some(nodes.into_iter(), MOST_NAMED).join(", ");
    let words = grouped(each).into_iter().map(|(reason, of)| format!("{} ({reason})", nodes(of)));
    words.collect::<Vec<_>>().join("; ")
}

/// What the pass over the data found, for the terminal: `digits-mlp: fp32 98.1 %, int8 97.8 % (top-1 accuracy of 540
/// items)`, then what else is to be said of its variants.
pub fn lines(plan: &plan::Plan, known: &[VariantAccuracy]) -> Vec<String> {
    let coordinates = |known: &VariantAccuracy| plan.coordinates(&plan.cells[known.cell as usize]);
    let name = |known: &VariantAccuracy| coordinates(known).configuration(|axis| plan.names(axis).len() > 1);
    let mut lines = Vec::new();
    for model in plan.names_of::<Model>() {
        let of_model: Vec<&VariantAccuracy> =
            known.iter().filter(|known| coordinates(known).model() == model).collect();
        let each: Vec<String> = of_model
            .iter()
            .filter_map(|known| Some(format!("{} {}", name(known), value_of(known.scores.first()?))))
            .collect();
        if let Some(Score { metric, estimate, .. }) = of_model.iter().find_map(|known| known.scores.first()) {
            let (title, items) = (metric.metric().title, count(estimate.n as u64, "item"));
            lines.push(format!("{model}: {} ({title} of {items})", each.join(", ")));
        }
        for known in of_model {
            lines.extend(known.problem.iter().map(|problem| format!("{model}/{}: unknown: {problem}", name(known))));
        }
    }
    lines
}
