//! `perfrun site`: pages over the commits of reports, which stand by themselves and lead to each other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Project, without_settings};

const SPEC: &str = "name: x\ndescription: How fast is `one`?\nbackend: { mock: { run_sd: 0.5%, noise: 2% } }\nmodels: [one]\n\
variants: [fp32, { name: int8, precision: int8, mock: { scale: 0.5 } }]\nruns: 5\nmeasure: { stop: { mode: samples, count: 50 } }\n";

/// Runs git in a project.
pub(crate) fn git(project: &Project, arguments: &[&str]) {
    let author = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    let mut git = Command::new("git");
    let git = without_settings(&mut git).args(author).args(arguments).current_dir(project.root());
    let done = git.status().unwrap();
    assert!(done.success(), "git {arguments:?}");
}

/// Two commits of a report, and one experiment that nobody committed.
fn repository() -> Project {
    let project = Project::new();
    git(&project, &["init", "-q", "-b", "main"]);
    for scale in ["0.5", "0.7"] {
        project.write("experiments/x.yaml", &SPEC.replace("0.5 } }]", &format!("{scale} }} }}]")));
        project.run(&["experiments/x.yaml"]).expect_code(0);
        git(&project, &["add", "-A"]);
        git(&project, &["commit", "-q", "-m", scale]);
    }
    project.write("experiments/y.yaml", &SPEC.replace("name: x", "name: y").replace("`one`", "<b>one</b>"));
    project.run(&["experiments/y.yaml"]).expect_code(0);
    project
}

/// Every page with its text, by its path.
fn pages(folder: &Path) -> Vec<(PathBuf, String)> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(|entry| entry.unwrap().into_path());
    files.filter(|path| path.is_file()).map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// What stands in an attribute, of every element that has it.
fn values<'a>(text: &'a str, attribute: &'a str) -> Vec<&'a str> {
    let open = format!(" {attribute}=\"");
    text.match_indices(&open).filter_map(|(at, _)| text[at + open.len()..].split('"').next()).collect()
}

#[test]
fn every_link_leads_to_a_page_or_a_place_in_it() {
    let project = repository();
    let done = project.run(&["site", "out"]).expect_code(0);
    assert!(done.stdout.contains("wrote      out/index.html and 5 more pages"), "{}", done.stdout);
    let pages = pages(&project.path("out"));
    assert_eq!(pages.len(), 6);
    let mut reached = BTreeSet::new();
    for (path, text) in &pages {
        for link in values(text, "href") {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file).canonicalize().unwrap() };
            let target_text =
                std::fs::read_to_string(&target).unwrap_or_else(|_| panic!("{link} in {}", path.display()));
            assert!(anchor.is_empty() || values(&target_text, "id").contains(&anchor), "{link} in {}", path.display());
            reached.insert(target.canonicalize().unwrap());
        }
        // Nothing is loaded from anywhere.
        assert!(
            values(text, "src").is_empty() && !text.contains("@import") && !text.contains("<link"),
            "{}",
            path.display()
        );
    }
    assert_eq!(reached.len(), pages.len(), "nobody finds a page that no other leads to");
}

#[test]
fn pages_say_what_was_measured_and_what_changed() {
    let project = repository();
    project.run(&["site", "-o", "out", "--commit-url", "https://example.org/{commit}"]).expect_code(0);
    let index = project.read("out/index.html");
    assert!(
        index.contains("How fast is") && index.contains("&lt;b&gt;one&lt;/b&gt;") && !index.contains("<b>one"),
        "{index}"
    );
    let x = project.read("out/x/index.html");
    assert!(x.contains("0.5 → 0.7"), "{x}");
    assert!(x.contains("href=\"https://example.org/"), "{x}");
    // A figure for each cell, and each dot leads to its commit.
    assert_eq!(x.matches("<figure>").count(), 2);
    let commits: Vec<PathBuf> = pages(&project.path("out/x")).into_iter().map(|(path, _)| path).collect();
    let commits = commits.iter().filter(|path| !path.ends_with("index.html"));
    for commit in commits {
        let name = commit.file_name().unwrap().to_string_lossy();
        assert_eq!(x.matches(&format!("<a href=\"{name}\"><title>")).count(), 2, "{name}");
        let text = std::fs::read_to_string(commit).unwrap();
        assert!(text.contains("faster") && text.contains("against the baseline"), "{text}");
    }
    assert!(project.read("out/y/index.html").contains("not committed"));
}

#[test]
fn a_site_is_written_over_a_site_and_over_nothing_else() {
    let project = repository();
    let first = {
        project.run(&["site", "out"]).expect_code(0);
        pages(&project.path("out"))
    };
    project.run(&["site", "out"]).expect_code(0);
    assert_eq!(pages(&project.path("out")), first, "the same commits give the same bytes");
    project.write("other/index.html", "mine");
    let refused = project.run(&["site", "other"]).expect_code(2);
    assert!(refused.stderr.contains("is not a perfrun site"), "{}", refused.stderr);
    let refused = project.run(&["site", "out", "--revision", "nope"]).expect_code(2);
    assert!(refused.stderr.contains("`nope` is not a revision"), "{}", refused.stderr);
    let empty = Project::new();
    let refused = empty.run(&["site"]).expect_code(2);
    assert!(refused.stderr.contains("there is no report to show"), "{}", refused.stderr);
}
