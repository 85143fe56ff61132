//! The report of records that are made up in memory: goldens of the whole text, and what must hold for every report.

mod bounds;
mod claims;
mod experiments;
mod figures;
mod fixture;
mod marks;
mod measured_claims;
mod pages;
mod questions;

use std::collections::BTreeSet;
use std::path::Path;

use base::metric::MetricReference;
use experiment::{Axis, Grade};
use judge::compare::{Comparison, Judged};
use judge::summary::Summary;
use report::page::overview;
use report::{Format, compose, write};
use spec::explain::explain;
use statistics::interim::Analysis;

use crate::support::check_snapshot;
use fixture::{Axes, Behaviour, Fixture, Texts, usual};

fn all() -> Vec<(&'static str, Fixture)> {
    vec![
        ("choose", Fixture::choose()),
        ("question", Fixture::question()),
        ("batches", Fixture::batches()),
        ("alone", Fixture::alone()),
        ("many-variants", Fixture::many_variants()),
        ("interrupted", Fixture::interrupted()),
        ("hostile", Fixture::hostile()),
        ("devices", Fixture::devices()),
        ("failed-control", Fixture::failed_control()),
        ("quick-look", Fixture::quick_look()),
        ("restless", Fixture::restless()),
    ]
}

/// Compares a text with `tests/snapshots/report_<name>.snap`.
fn check(name: &str, text: &str) {
    check_snapshot(&format!("report_{name}"), text);
}

/// Headings of the columns of every table of a page, without their units.
fn columns(html: &str) -> BTreeSet<String> {
    let heads = html.split("<thead").skip(1).filter_map(|rest| rest.split_once("</thead>"));
    let cells =
        heads.flat_map(|(head, _)| head.split("<th").skip(1)).filter(|cell| !cell.contains("scope=\"colgroup\""));
    let cells = cells.filter_map(|cell| cell.split_once('>'));
    let titles = cells.map(|(_, rest)| rest.split(['<', ',']).next().unwrap_or_default().replace("&#x2f;", "/"));
    titles.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty()).collect()
}

#[test]
fn every_column_is_explained() {
    let mut asked = BTreeSet::new();
    for (_, fixture) in all() {
        let plan = &fixture.manifest.plan;
        let is_name = |text: &String| Axis::ALL.iter().any(|axis| plan.names(*axis).contains(text));
        // A table over two axes has names in its headings.
        let is_pivot = |text: &String| text.contains(" / ");
        let words = columns(&fixture.render().html).into_iter().filter(|text| !is_name(text) && !is_pivot(text));
        asked.extend(words.map(|text| if text.starts_with("against ") { "against".to_owned() } else { text }));
    }
    assert!(asked.len() > 20, "{asked:?}");
    let unknown: Vec<&String> = asked.iter().filter(|word| explain(word).is_err()).collect();
    assert!(unknown.is_empty(), "docs/reference/glossary.md lacks {unknown:?}");
}

/// As files, tables and screens call it.
#[test]
fn every_outcome_is_explained() {
    use judge::diff::Standing::{Absent, Fails, Holds, Open};
    use statistics::course::Course::{Flat, NoSteadyState, Slowdown, Warmup};
    let mut words: Vec<String> = Vec::new();
    for (schema, kinds) in [
        (judge::results::schema_text(), &["ControlOutcome", "GoalOutcome", "Kept", "Status", "Validity"][..]),
        (judge::diff::schema_text(), &["GateOutcome", "Held"]),
    ] {
        let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
        for kind in kinds {
            let outcomes = schema["$defs"][kind]["oneOf"].as_array().unwrap();
            words.extend(outcomes.iter().map(|outcome| outcome["const"].as_str().unwrap().to_owned()));
        }
    }
    words.extend([Absent, Fails, Holds, Open].map(|standing| standing.word().to_owned()));
    words.extend([Flat, NoSteadyState, Slowdown, Warmup].map(|course| course.words().to_owned()));
    let further = ["stored", "custom_ops", "unrelated", "not told apart", "agree", "differ", "close", "not judged"];
    words.extend(further.map(str::to_owned));
    let unknown: Vec<&String> = words.iter().filter(|word| explain(word).is_err()).collect();
    assert!(unknown.is_empty(), "docs/reference/glossary.md lacks {unknown:?}");
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    let first = Fixture::choose().render();
    let second = std::thread::spawn(|| Fixture::choose().render()).join().unwrap();
    assert_eq!(first, second);
}

#[test]
fn what_a_design_sets_is_said_beside_the_verdicts() {
    let mut fixture = Fixture::choose();
    fixture.manifest.experiment.measure.design = experiment::Design::Slices;
    assert!(!fixture.render().markdown.contains("Setting: "));
    fixture.manifest.imposed_session = [("session.force_spinning_stop".to_owned(), "1".to_owned())].into();
    let files = fixture.render();
    let says = "Setting: session.force_spinning_stop = 1 in every variant that does not set it";
    assert!(files.markdown.contains(says) && files.html.contains("session.force_spinning_stop = 1"));
}

#[test]
fn a_report_says_what_a_file_holds_that_is_not_float32() {
    let mut fixture = Fixture::choose();
    let stored = onnx::Stored { holds: "int8".to_owned(), by: Some("QDQ".to_owned()) };
    let model = fixture.manifest.models.iter_mut().flatten().next().unwrap();
    model.stored = Some(stored);
    let name = &fixture.manifest.experiment.models[0].name;
    let says = format!("Variants fp32, int8 and fp16 run {name} as stored: it holds int8 (QDQ).");
    assert!(fixture.render().markdown.contains(&says), "{}", fixture.render().markdown);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for (name, fixture) in all() {
        let summary_with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| judge::summary::summarize(&fixture.manifest, &fixture.runs).unwrap())
        };
        assert_eq!(summary_with(1), summary_with(8), "{name}");
    }
}

/// The terminal's table is redrawn after every block, without what takes long, and shows what the report will say.
#[test]
fn between_blocks_only_what_the_table_shows_is_judged() {
    for (name, fixture) in all() {
        let manifest = &fixture.manifest;
        let brief = judge::summary::summarize_briefly(&fixture.manifest, &fixture.runs).unwrap();
        let verdicts = judge::compare::verdicts(&fixture.manifest, &brief);
        // What bounds a cell is reported when all of it is measured.
        let overview = |summary: &Summary, comparisons: &[Comparison]| {
            let judged = Judged { comparisons: comparisons.to_vec(), ..Judged::default() };
            overview(&judge::results::results(manifest, summary, &judged), &|_| false)
        };
        let mut shown = fixture.summary.shown();
        shown.cells.iter_mut().for_each(|cell| cell.diagnosis = Default::default());
        let whole = overview(&shown, &fixture.judged.comparisons);
        assert_eq!(overview(&brief.shown(), &verdicts), whole, "{name}");
        assert_eq!(verdicts, fixture.judged.comparisons, "{name}");
    }
}

/// The machine offers four, and no cell uses as many as that unless its variant says nothing.
#[test]
fn the_header_says_the_threads_that_cells_use() {
    let header = |fixture: &Fixture| {
        let text = fixture.render().markdown;
        text.lines().find(|line| line.contains("ONNX Runtime 1.31.1, cpu")).unwrap_or_default().to_owned()
    };
    let mut fixture = Fixture::many_variants();
    assert!(header(&fixture).contains("cpu, 1 to 8 threads"), "{}", header(&fixture));
    let variants = |fixture: &mut Fixture, of: &dyn Fn(usize) -> Option<u32>| {
        let all = fixture.manifest.experiment.variants.iter_mut().enumerate();
        all.for_each(|(index, variant)| variant.threads.intra = of(index));
    };
    variants(&mut fixture, &|_| Some(1));
    assert!(header(&fixture).contains("cpu, 1 thread"), "{}", header(&fixture));
    variants(&mut fixture, &|index| (index > 0).then_some(2));
    assert!(header(&fixture).contains("cpu, 2 to 4 threads"), "{}", header(&fixture));
}

#[test]
fn results_read_back_as_they_are() {
    for (name, fixture) in all() {
        let text = fixture.render().json;
        let results = judge::results::parse(Path::new("results.json"), &text).unwrap();
        assert_eq!(results, fixture.results(), "{name}");
        assert_eq!(results.to_json(), text, "{name}");
    }
}

/// The page without its figures.
fn without_figures(html: &str) -> String {
    let mut parts = html.split("<figure");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once("</figure>").map_or(part, |(_, rest)| rest)).collect::<String>()
}

/// A record adds the figures of its samples, and nothing else.
#[test]
fn a_report_is_made_from_its_results_alone() {
    let formats: Vec<Format> = Format::all().collect();
    for (name, fixture) in all() {
        let results = fixture.results();
        let committed = judge::results::parse(Path::new("results.json"), &results.to_json()).unwrap();
        let of_record = compose(&results, Some(&fixture.runs)).render(&formats).unwrap();
        let of_results = compose(&committed, None).render(&formats).unwrap();
        assert_eq!(of_record.plots, of_results.plots, "{name}");
        for ((format, full), (_, bare)) in of_record.files.iter().zip(&of_results.files) {
            if format.name != "html" {
                assert_eq!(full, bare, "{name}: {}", format.name);
                continue;
            }
            let [full, bare] = [full, bare].map(|bytes| without_figures(&String::from_utf8_lossy(bytes)));
            let mut lines = full.lines();
            let missing: Vec<&str> = bare.lines().filter(|line| !lines.any(|other| other == *line)).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
            assert_eq!(full.matches("<td").count(), bare.matches("<td").count(), "{name}");
        }
    }
}

/// The reports of this repository, whatever format their results have.
#[test]
fn every_committed_report_can_be_rendered_again() {
    let reports = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports");
    let found = walkdir::WalkDir::new(reports).into_iter().map(Result::unwrap);
    let committed: Vec<_> = found.filter(|entry| entry.file_name() == "results.json").collect();
    assert!(committed.len() >= 4, "{committed:?}");
    for file in committed {
        let results = judge::results::read(file.path()).unwrap();
        let rendered = compose(&results, None).render(&Format::all().collect::<Vec<_>>()).unwrap();
        let page = String::from_utf8_lossy(&rendered.files[0].1);
        assert!(page.contains(&results.experiment), "{}:\n{page}", file.path().display());
        let measured = results.cells.iter().filter(|cell| !cell.metrics.is_empty());
        let missing: Vec<_> = measured.filter(|cell| !page.contains(&cell.names[Axis::Variants])).collect();
        assert!(missing.is_empty(), "{}", file.path().display());
    }
}

/// One value a run is all that a verdict takes.
#[test]
fn results_are_enough_to_judge_again() {
    let results = Fixture::choose().results();
    let column = |id| {
        let cell = results.cells.iter().find(|cell| cell.id == id).unwrap();
        (cell.runs["block"].clone(), cell.runs["latency_ns"].clone())
    };
    assert!(results.comparisons.len() >= 8);
    for row in results.comparisons.iter().filter(|row| row.metric == MetricReference::LATENCY) {
        let ((blocks, before), (candidate_blocks, after)) = (column(row.baseline), column(row.cell));
        let pair = |(block, value): (&Option<f64>, &Option<f64>)| {
            let index = blocks.iter().position(|other| other == block)?;
            Some((value.unwrap() / before[index].unwrap()).ln())
        };
        let ratios: Vec<f64> = candidate_blocks.iter().zip(&after).filter_map(pair).collect();
        let again = statistics::paired::compare_paired(&ratios, row.margin, Analysis::single(0.95)).unwrap();
        assert_eq!(again.verdict, row.verdict);
        assert!((again.theta.exp() * row.ratio - 1.0).abs() < 1e-4, "{row:?}");
    }
}

#[test]
fn a_report_of_twelve_cells_stays_small() {
    let Texts { markdown, html, json, plots, .. } = Fixture::choose().render();
    let total = markdown.len() + html.len() + json.len() + plots.iter().map(|(_, svg)| svg.len()).sum::<usize>();
    assert!(total < 500_000, "{total} bytes");
}

#[test]
fn names_and_messages_are_no_markup() {
    let rendered = Fixture::hostile().render();
    assert_eq!(rendered.html.matches("<script>").count(), 1, "only the report's own script");
    assert_eq!(rendered.html.matches("</script>").count(), 1);
    // The failure's message is code, where nothing is markup; everywhere else it is escaped.
    for line in rendered.markdown.lines().filter(|line| !line.contains("**Failed")) {
        for markup in ["<script>", "](http", "**x**"] {
            let is_escaped = line.match_indices(markup).all(|(at, _)| line[..at].ends_with('\\'));
            assert!(is_escaped, "{markup} in {line}");
        }
    }
}

#[test]
fn tables_of_markdown_have_as_many_cells_as_headings() {
    for (name, fixture) in all() {
        let markdown = fixture.render().markdown;
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let lines: Vec<&str> = markdown.lines().collect();
        for (index, pair) in lines.windows(2).enumerate() {
            if pair.iter().all(|line| line.starts_with('|') && line.ends_with('|')) {
                assert_eq!(cells(pair[0]), cells(pair[1]), "{name}, line {}: {}", index + 2, pair[1]);
            }
        }
    }
}

#[test]
fn markdown_has_no_gaps() {
    for (name, fixture) in all() {
        let markdown = fixture.render().markdown;
        assert!(!markdown.contains("\n\n\n"), "{name}: {:?}", markdown.split("\n\n\n").nth(1).map(|rest| &rest[..40]));
        assert!(markdown.ends_with('\n') && !markdown.ends_with("\n\n"), "{name}");
        assert!(markdown.lines().all(|line| !line.ends_with(' ')), "{name} has spaces at the end of a line");
    }
}

#[test]
fn what_repeats_a_record_has_its_options() {
    let mut fixture = Fixture::choose();
    let repeated = |fixture: &Fixture| {
        let page = fixture.render().markdown;
        page.lines().find_map(|line| line.strip_prefix("- Repeat: ")).map(str::to_owned)
    };
    fixture.manifest.restrictions = vec!["--set models=a b".to_owned(), "--runs 5".to_owned()];
    fixture.manifest.spec.overrides = vec!["models=a b".to_owned()];
    let wanted = "`perfrun experiments/choose.yaml --set 'models=a b' --runs 5`.";
    assert_eq!(repeated(&fixture).as_deref(), Some(wanted));
    fixture.manifest.restrictions = vec!["bisect --from 1.2 --to 1.3".to_owned()];
    assert_eq!(repeated(&fixture), None);
}

#[test]
fn nothing_names_the_user() {
    let mut fixture = Fixture::choose();
    let home = "/home/alice/models";
    fixture.manifest.spec.overrides = vec![format!("models={home}")];
    fixture.manifest.restrictions = vec![format!("--set models={home}")];
    fixture.manifest.revision.as_mut().unwrap().dirty = Some(vec![format!("{home}/m.onnx")]);
    fixture.manifest.runtime.as_mut().unwrap().build = Some(format!("built in {home}"));
    let rendered = fixture.render();
    assert!(rendered.json.contains("~/models"));
    for text in [&rendered.markdown, &rendered.html, &rendered.json] {
        assert!(!text.contains("alice") && !text.contains("/home/"));
    }
}

#[test]
fn html_needs_no_network_and_has_unique_anchors() {
    for (name, fixture) in all() {
        let html = fixture.render().html;
        for outside in ["src=\"http", "href=\"http", "@import", "url(", "<link"] {
            assert!(!html.contains(outside), "{name} has {outside}");
        }
        let mut ids = BTreeSet::new();
        for id in html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(ids.insert(id), "{name} has `{id}` twice");
        }
        for target in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(ids.contains(target), "{name} points to `{target}`, which is not there");
        }
    }
}

#[test]
fn every_cell_that_was_to_run_has_an_anchor() {
    let fixture = Fixture::choose();
    let html = fixture.render().html.replace("&#x2f;", "/");
    let plan = &fixture.manifest.plan;
    for (_, cell) in plan.runnable() {
        assert!(html.contains(&format!("id=\"{}\"", plan.path(cell))), "{}", plan.path(cell));
    }
}

#[test]
fn tail_percentiles_are_bounds_where_samples_are_too_few_and_absent_where_they_are_means() {
    let page = Fixture::choose().render().page;
    let row = |path: &str| page.lines().find(|line| line.starts_with(&format!("| {path} |"))).unwrap().to_owned();
    assert!(row("resnet50/b16/fp32/cpu").contains(">="));
    assert!(!row("mobilenetv2/b1/fp32/cpu").contains(">="));
    let alone = Fixture::alone().render().page;
    assert!(!alone.contains("p95, ") && alone.contains("their percentiles and best case are unknown"));
    let axes = Axes { models: &["m"], batches: &[1, 64], variants: &["fp32"], devices: &["cpu"], runs: 6 };
    let mixed = Fixture::new("mixed", &axes, |path| match path.contains("/b1/") {
        true => Behaviour { iterations: 32, ..usual(3e3, 400) },
        false => usual(90e3, 400),
    });
    assert!(mixed.summarized().render().page.contains("n/a (batched x32)"));
}

#[test]
fn many_rows_bound_the_number_of_figures() {
    let batches: Vec<u64> = (1..=20).collect();
    let axes = Axes { models: &["m"], batches: &batches, variants: &["a", "b", "c"], devices: &["cpu"], runs: 5 };
    let fixture = Fixture::new("many", &axes, |_| usual(1e6, 40)).summarized();
    assert_eq!(fixture.figures().len(), 10);
    let page = fixture.render().page;
    assert!(page.contains("The distributions of 12 more rows of the table are not drawn"));
}

#[test]
fn every_report_tells_grade_and_control() {
    let words = [
        ("choose", ["control passed", "Control (A/A comparison): equivalent. Noise floor "]),
        ("alone", ["no control", "No control (`compare.aa: off`)"]),
        (
            "failed-control",
            ["controls failed", "Control failed (E_AA_FAILED): the two sides of the A/A comparison of cnn/b1/fp32/cpu"],
        ),
        ("quick-look", ["quick look, no control", "Quick look: no control, and only differences beyond 10 %"]),
    ];
    for (name, fixture) in all() {
        let rendered = fixture.render();
        let Some((_, [short, sentence])) = words.iter().find(|(other, _)| *other == name) else { continue };
        assert!(rendered.markdown.contains(short), "{name}.md lacks {short}");
        assert!(rendered.page.contains(sentence), "{name}.html lacks {sentence}");
    }
}

/// Without a verdict there is nothing that could hold under background load.
#[test]
fn what_is_not_judged_is_not_said_to_hold_under_background_load() {
    let axes = Axes { models: &["m"], batches: &[1], variants: &["a", "b"], devices: &["cpu"], runs: 6 };
    let mut fixture = Fixture::new("few", &axes, |_| usual(1e6, 80));
    for variant in ["a", "b"] {
        fixture.warn(&format!("m/b1/{variant}/cpu"), "W_NO_STEADY_STATE", 6);
    }
    let page = fixture.summarized().render().page;
    assert!(page.contains("most runs never reached a steady state"), "{page}");
    assert!(page.contains("Speed-up of latency against a") && !page.contains("under background load"), "{page}");
}

#[test]
fn pareto_weighs_two_cells_and_says_where_it_weighs_nothing() {
    let axes = Axes { models: &["m"], batches: &[1], variants: &["a", "b"], devices: &["cpu"], runs: 8 };
    let fixture = |is_asked: bool| {
        let mut fixture = Fixture::new("two", &axes, |path| match path.contains("/b/") {
            true => Behaviour { memory: 400.0, ..usual(1e6, 80) },
            false => usual(2e6, 80),
        });
        let asked = ["latency", "peak_rss"].iter().filter(|_| is_asked);
        fixture.manifest.experiment.pareto = asked.map(|metric| metric.parse().unwrap()).collect();
        fixture
    };
    assert!(!fixture(false).summarized().render().page.contains("Trade-offs"));
    let weighed = fixture(true).summarized();
    let page = weighed.render().page;
    assert!(page.contains("\nTrade-offs\n") && page.contains("frontier: a, b"), "{page}");
    assert!(weighed.figures().iter().any(|(file, _)| file.starts_with("tradeoff")));
    let mut alone = fixture(true);
    alone.fail_rehearsal("m/b1/b/cpu", worker::backend::FailureKind::Operator, "no kernel", None);
    let rendered = alone.summarized().render();
    let words = "has nothing to compare: no two interchangeable cells have latency and peak memory.";
    assert!(rendered.page.contains(words), "{}", rendered.page);
}

#[test]
fn a_coefficient_of_variation_is_shown_in_percent() {
    let axes = Axes { models: &["m"], batches: &[1], variants: &["a", "b"], devices: &["cpu"], runs: 8 };
    let mut fixture = Fixture::new("cv", &axes, |path| usual(if path.contains("/b/") { 1e6 } else { 2e6 }, 80));
    let metric: base::metric::MetricReference = "latency.cv".parse().unwrap();
    let of = experiment::Selector(Default::default());
    let bound = experiment::Bound { metric, min: None, max: Some(0.05), of };
    let experiment = &mut fixture.manifest.experiment;
    experiment.pareto = vec![metric, "peak_rss".parse().unwrap()];
    experiment.goals = vec![experiment::Goal { name: None, bound }];
    experiment.tables = vec![experiment::TableSpec {
        name: "t".to_owned(),
        rows: vec![experiment::Axis::Variants],
        columns: Vec::new(),
        show: vec![metric],
    }];
    let page = fixture.summarized().render().page;
    assert_eq!(page.matches("latency cv, % |").count(), 1, "{page}");
    assert!(page.contains("cv <= 5 %") && !page.contains("cv, ns"), "{page}");
}

#[test]
fn nothing_is_claimed_where_an_aa_comparison_finds_a_difference() {
    let markdown = Fixture::failed_control().render().markdown;
    let beginning = markdown.split("<details>").next().unwrap();
    assert!(beginning.contains("the control failed"), "{beginning}");
    assert!(!beginning.contains("] faster") && !beginning.contains("is faster"), "{beginning}");
}

#[test]
fn significant_stands_only_beside_its_p_values() {
    for (name, fixture) in all() {
        for line in fixture.render().page.lines().filter(|line| line.contains("significant")) {
            let is_row = line.starts_with("| ") && line.split(" | ").any(|cell| cell.ends_with(" significant"));
            assert!(is_row || line.contains("without a significant trend"), "{name}: {line}");
        }
    }
}

#[test]
fn outputs_that_are_not_finite_have_no_number() {
    let axes = Axes { models: &["m"], batches: &[1], variants: &["a", "b"], devices: &["cpu"], runs: 8 };
    let mut fixture = Fixture::new("nan", &axes, |path| usual(if path.contains("/b/") { 5e5 } else { 1e6 }, 80));
    fixture.warn("m/b1/b/cpu", "W_OUTPUT_NONFINITE", 8);
    let rendered = fixture.summarized().render();
    assert!(rendered.markdown.contains("| withheld: outputs with NaN or infinity |"), "{}", rendered.markdown);
    assert!(!rendered.markdown.contains(" faster") && !rendered.page.contains("] faster"), "{}", rendered.markdown);
    assert!(rendered.html.contains("<details open><summary>What the warnings mean"));
}

#[test]
fn what_runs_met_on_the_machine_is_shown_where_a_code_rests_on_it() {
    let axes = Axes { models: &["m"], batches: &[1, 8], variants: &["a", "b"], devices: &["cpu"], runs: 8 };
    let mut fixture = Fixture::new("steal", &axes, |_| usual(1e6, 80));
    for path in ["m/b1/a/cpu", "m/b1/b/cpu", "m/b8/a/cpu", "m/b8/b/cpu"] {
        fixture.measured(path, "steal_ratio", if path == "m/b8/b/cpu" { 0.03 } else { 0.001 });
        fixture.measured(path, "pressure_cpu_ratio", 0.01);
    }
    fixture.warn("m/b8/b/cpu", "W_STEAL", 8);
    fixture.warn("m/b1/a/cpu", "W_LATE_WARMUP", 2);
    fixture.warn("m/b1/b/cpu", "W_LATE_WARMUP", 3);
    // As an earlier version stored them.
    for code in ["W_DRIFT", "W_OUTLIERS", "W_WARMUP_TREND", "W_PRECISION_NOT_REACHED"] {
        fixture.warn("m/b8/a/cpu", code, 8);
    }
    let rendered = fixture.summarized().render();
    let page = rendered.page;
    let steal = "| steal (W_STEAL) | 8 of 32 | 0.5 % | 0.1 % | 3 % | m/b8/b/cpu |";
    assert!(page.contains(steal), "{page}");
    assert!(!page.contains("| CPU pressure ("), "nothing was above it");
    assert!(
        page.contains("Not quite. The hypervisor took 3 % of the processors in 8 of 32 runs. 1 kind of warning."),
        "{page}"
    );
    assert!(!page.contains("**W_STEAL**"), "the line says it");
    // The trimmed mean leaves two of eight runs out.
    assert!(page.contains("**W_LATE_WARMUP** (warning) in 1 of 4 cells, 3 of 8 runs: m/b1/b/cpu."), "{page}");
    for retired in ["W_DRIFT", "W_OUTLIERS", "W_WARMUP_TREND", "W_PRECISION_NOT_REACHED", "does not know"] {
        assert!(!page.contains(retired) && !rendered.json.contains(retired), "{retired}");
    }
    let results = judge::results::parse(Path::new("results.json"), &rendered.json).unwrap();
    assert_eq!(results.detectable_effect.noisy_runs, 8);
    let cell = &results.cells[3];
    assert!(cell.environment.contains_key("steal_ratio") && !cell.metrics.contains_key("steal_ratio"));
}

/// Method 14: codes are for what weakens a number, so a good record has few. Grade B is held to it as well.
#[test]
fn at_most_a_fifth_of_the_cells_of_a_good_record_carry_codes() {
    // That one has a fault in every cell but one.
    let usual = all().into_iter().filter(|(name, _)| *name != "restless");
    let good = usual.filter(|(_, fixture)| fixture.judged.detectable_effect.grade.is_some_and(|it| it <= Grade::B));
    let mut seen = 0;
    for (name, fixture) in good {
        let cells: Vec<_> = fixture.summary.cells.iter().filter(|cell| cell.runs.completed > 0).collect();
        let carry: Vec<_> = cells.iter().map(|cell| cell.codes()).filter(|codes| !codes.is_empty()).collect();
        assert!(carry.len() * 5 <= cells.len(), "{name}: {carry:?}");
        seen += 1;
    }
    assert!(seen > 0);
}

#[test]
fn a_report_is_written_whole_and_replaces_an_earlier_one() {
    let folder = tempfile::tempdir().unwrap();
    let rendered = |fixture: &Fixture, formats: &[Format]| {
        compose(&fixture.results(), Some(&fixture.runs)).render(formats).unwrap()
    };
    let formats = ["md", "html"].map(|name| Format::named(name).unwrap());
    write(&rendered(&Fixture::choose(), &formats), folder.path()).unwrap();
    let written = write(&rendered(&Fixture::alone(), &formats), folder.path()).unwrap();
    let mut names: Vec<String> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["report.html", "report.md", "results.json"]);
    assert_eq!(written[0], folder.path().join("report.md"));
    assert_eq!(std::fs::read_to_string(&written[2]).unwrap(), Fixture::alone().render().json);
}

/// What `git diff` shows of two reports of the same thing: the page is made for people who read the difference.
#[test]
fn a_rerun_with_nothing_changed_hardly_alters_the_page() {
    let axes =
        Axes { models: &["cnn"], batches: &[1, 16], variants: &["fp32", "fp16", "int8"], devices: &["cpu"], runs: 12 };
    let page = |seed: u64| {
        let behaviour = |path: &str| match (path.contains("/b1/"), path.split('/').nth(2)) {
            (true, Some("int8")) => usual(7.93e6, 100),
            (true, _) => usual(18.42e6, 100),
            (false, Some("int8")) => usual(109.0e6, 60),
            (false, _) => usual(271.0e6, 60),
        };
        let fixture = Fixture::rerun(fixture::experiment("rerun", &axes), seed, behaviour);
        let mut fixture = fixture.with_control(experiment::Aa::Auto, 1.0);
        fixture.manifest.record = format!("20261120T101112Z-{seed:08x}");
        fixture.summarized().render().markdown
    };
    let pages: Vec<String> = (1..=20).map(page).collect();
    let (mut lines, mut altered) = (0, 0);
    for pair in pages.windows(2) {
        lines += pair[1].lines().count();
        altered += pair[1].lines().zip(pair[0].lines()).filter(|(now, before)| now != before).count();
    }
    let share = altered as f64 / lines as f64;
    // One of the lines says when it was measured, so that no page of this length comes below a twenty-fifth, and rows have a
    // rate as well as the latency where batches differ.
    assert!(share <= 0.2, "{share}, {} lines:\n{}", lines / 19, pages[0]);
    assert!(pages.iter().all(|page| page.len() < 8_000 && page.lines().count() <= 120));
}
