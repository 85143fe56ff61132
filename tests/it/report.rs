//! The report of records that are made up in memory: goldens, and what must hold for every report.

mod fixture;

use fixture::Fixture;

#[test]
fn dump() {
    let Ok(out) = std::env::var("DUMP") else { return };
    for (name, fixture) in all() {
        let folder = std::path::Path::new(&out).join(name);
        let rendered = fixture.render();
        use perfrun::report::Format::*;
        perfrun::report::write(&rendered, &folder, &[Markdown, Html, Json]).expect("a report");
    }
}

fn all() -> Vec<(&'static str, Fixture)> {
    vec![
        ("choose", Fixture::choose()),
        ("alone", Fixture::alone()),
        ("many-variants", Fixture::many_variants()),
        ("interrupted", Fixture::interrupted()),
        ("hostile", Fixture::hostile()),
    ]
}
