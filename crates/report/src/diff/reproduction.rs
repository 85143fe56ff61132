//! A reproduction -> what people read: one page for the terminal and Markdown.

use serde::Serialize;

use super::{facts, in_one_line};
use crate::format::count;
use crate::page::{Table, TableCell, TableColumn, TableRow};
use crate::reproduction::{Checked, Reproduction};
use crate::{ReportError, fill_template};
use base::metric::MetricReference;
use judge::diff::SideSeen;
use judge::diff::claims::Standing;

/// A reproduction as people read it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReproductionPage {
    /// Name of the experiment.
    pub experiment: String,
    /// How many claims hold.
    pub headline: String,
    /// Where and when each side was measured.
    pub sides: [String; 2],
    pub differs: Vec<String>,
    /// Every claim, those that do not hold first.
    pub claims: Table,
    perfrun: &'static str,
}

impl ReproductionPage {
    pub fn new(reproduction: &Reproduction) -> Self {
        let mut claims: Vec<&Checked> = reproduction.claims.iter().collect();
        claims.sort_by_key(|claim| claim.standing == Standing::Holds);
        let mut differs = facts::named(&reproduction.changes.frame);
        differs.extend(facts::subject(&reproduction.changes));
        differs.extend(facts::named(&reproduction.changes.context));
        let mut page = ReproductionPage {
            experiment: reproduction.experiment.clone(),
            headline: headline(reproduction),
            sides: [&reproduction.there, &reproduction.here].map(side),
            differs,
            claims: Table { columns: columns(), rows: claims.into_iter().map(row).collect(), notes: Vec::new() },
            perfrun: env!("CARGO_PKG_VERSION"),
        };
        let cells = page.claims.rows.iter_mut().flat_map(|row| &mut row.cells).map(|cell| &mut cell.text);
        let texts = [&mut page.experiment].into_iter().chain(&mut page.sides).chain(&mut page.differs).chain(cells);
        texts.for_each(|text| *text = in_one_line(text));
        page
    }

    /// As Markdown.
    ///
    /// # Errors
    ///
    /// A fault of the template.
    pub fn markdown(&self) -> Result<String, ReportError> {
        fill_template("reproduction.md.j2", self)
    }
}

/// `6 of 8 claims hold, 1 does not, 1 undecided`.
fn headline(reproduction: &Reproduction) -> String {
    let all = reproduction.claims.len();
    if all == 0 {
        return "these results claim nothing: no verdict, no score, no goal".to_owned();
    }
    let said = |standing: Standing, word: &str| {
        let found = reproduction.count(standing);
        (found > 0).then(|| format!("{found} {word}"))
    };
    let fails = reproduction.count(Standing::Fails);
    let rest = [
        said(Standing::Fails, if fails == 1 { "does not" } else { "do not" }),
        said(Standing::Open, "undecided"),
        said(Standing::Absent, "not measured here"),
    ];
    let verb = if all == 1 { "holds" } else { "hold" };
    let holds = format!("{} of {} {verb}", reproduction.count(Standing::Holds), count(all as u64, "claim"));
    std::iter::once(holds).chain(rest.into_iter().flatten()).collect::<Vec<_>>().join(", ")
}

fn side(side: &SideSeen) -> String {
    let day = side.measured.as_deref().and_then(|time| time.get(..10)).map(str::to_owned);
    let grade = side.grade.map(|grade| format!("grade {}", grade.letter()));
    list_of([Some(side.machine.clone()), day, grade, Some(format!("record {}", side.record))])
}

fn list_of(parts: [Option<String>; 4]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn columns() -> Vec<TableColumn> {
    ["claim", "there", "here", ""].map(TableColumn::text).into()
}

fn row(claim: &Checked) -> TableRow {
    let title = match claim.what.as_str() {
        // Every claim that does not say otherwise is about latency.
        what if what == MetricReference::LATENCY.to_string() => claim.of.clone(),
        what => format!("{}, {what}", claim.of),
    };
    let texts = [title, without_interval(&claim.there), claim.here.clone()].map(TableCell::text);
    let cells = texts.into_iter().chain([TableCell::text(claim.standing.word())]).collect();
    TableRow { anchor: None, cells }
}

/// `1.99x faster` of `1.99x [1.98, 2.00] faster`: the interval stands in the report that claims it, and the table has to fit.
fn without_interval(text: &str) -> String {
    match (text.split_once(" ["), text.split_once(']')) {
        (Some((before, _)), Some((_, after))) => format!("{before}{after}"),
        _ => text.to_owned(),
    }
}
