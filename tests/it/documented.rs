//! Every command that README and the pages of `docs` show runs as it stands there, ends with the exit code that its page
//! promises, and prints what the page shows; every snippet is read by what it is written for.

mod blocks;
mod project;
mod snippets;
mod tables;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use blocks::{Line, Page, helps, pages};
use project::PageProject;
use tables::{NEEDS, NOT_RUN, STAND_INS};

use crate::need::need;
use crate::support::{Done, Project, without_settings};

/// The page whose sessions are of commits of this repository.
const OF_COMMITS: &str = "docs/changes.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What became of the commands of a page.
#[derive(Default)]
struct Ran {
    commands: usize,
    /// Commands that this machine lacks something for.
    left: usize,
    /// What did not do as its page says: the rest of that page is left out.
    failed: Vec<String>,
    /// The rows of the tables that were about a command of the page, by their texts.
    used: BTreeSet<(&'static str, &'static str)>,
}

impl Ran {
    fn add(&mut self, other: Ran) {
        self.commands += other.commands;
        self.left += other.left;
        self.failed.extend(other.failed);
        self.used.extend(other.used);
    }

    /// Whether the line is run here.
    fn takes(&mut self, page: &Page, line: &Line) -> bool {
        let excused = NOT_RUN.iter().find(|(of, part, _)| *of == page.path && line.command.contains(part));
        if let Some((of, part, _)) = excused {
            self.used.insert((*of, *part));
            return false;
        }
        let needs: Vec<_> = NEEDS.iter().filter(|(part, _)| line.command.contains(part)).collect();
        self.used.extend(needs.iter().map(|(part, _)| ("", *part)));
        let has_all = needs.iter().all(|(_, is_here)| is_here());
        self.left += usize::from(!has_all);
        has_all
    }

    /// A text of a page with what stands for names that are made up.
    fn stand_in(&mut self, page: &Page, text: &str) -> String {
        STAND_INS.iter().filter(|(of, ..)| *of == page.path).fold(text.to_owned(), |text, (of, what, by)| {
            if text.contains(what) {
                self.used.insert((*of, *what));
            }
            text.replace(what, by)
        })
    }
}

/// The script of a block: it ends at the first line that does not end as it should.
fn script(lines: &[(String, i32)]) -> String {
    let step = |(line, code): &(String, i32)| {
        format!("{line}\ncode=$?; [ $code = {code} ] || {{ echo \"ended with $code, not {code}\" >&2; exit 99; }}\n")
    };
    lines.iter().map(step).collect::<Vec<_>>().concat()
}

fn run_page(made: &PageProject, page: &Page) -> Ran {
    let mut ran = Ran::default();
    if let Err(failure) = try_page(made, page, &mut ran) {
        ran.failed.push(format!("{}: {failure}", page.path));
    }
    ran
}

/// Runs the commands of a page in their order, those of a block in one shell.
fn try_page(made: &PageProject, page: &Page, ran: &mut Ran) -> Result<(), String> {
    let mut project: Option<PageProject> = None;
    for block in &page.blocks {
        if let Some(path) = block.file() {
            project.get_or_insert_with(|| made.copy_for(&page.path)).write(&page.path, path, &block.text);
            continue;
        }
        let lines: Vec<Line> = block.lines().into_iter().filter(|line| ran.takes(page, line)).collect();
        let is_session = lines.iter().any(|line| !line.shown.is_empty());
        if lines.is_empty() || (is_session && page.path == OF_COMMITS) {
            continue;
        }
        ran.commands += lines.len();
        let project = project.get_or_insert_with(|| made.copy_for(&page.path));
        let stand_in = |line: &Line, ran: &mut Ran| (ran.stand_in(page, &line.command), line.code);
        if is_session {
            for line in &lines {
                let (command, code) = stand_in(line, ran);
                let said = project.shell(&script(&[(format!("{command} 2>&1"), code)]));
                check(&command, &said)?;
                let shown: Vec<String> = line.shown.iter().map(|line| ran.stand_in(page, line)).collect();
                check_shown(&shown, &said.stdout, masked)?;
            }
        } else {
            let commands: Vec<(String, i32)> = lines.iter().map(|line| stand_in(line, ran)).collect();
            let script = script(&commands);
            check(&script, &project.shell(&script))?;
        }
    }
    Ok(())
}

fn check(script: &str, done: &Done) -> Result<(), String> {
    let is_well = done.code == 0;
    is_well.then_some(()).ok_or_else(|| format!("{script}\n{}\n{}", done.stdout, done.stderr))
}

/// The lines that a page shows follow each other in what was printed; `...` stands for any.
fn check_shown(shown: &[String], printed: &str, masked: fn(&str) -> String) -> Result<(), String> {
    let mut rest = printed.lines().map(masked);
    for line in shown.iter().filter(|line| !line.trim().is_empty() && line.trim() != "...") {
        let wanted = masked(line);
        if !rest.any(|line| line == wanted) {
            return Err(format!("shows\n{line}\nwhich is not in\n{printed}"));
        }
    }
    Ok(())
}

/// A line without what another measurement changes: numbers, the precision that is slowest, and spaces of the table.
fn masked(line: &str) -> String {
    let mut text = String::new();
    for letter in line.chars() {
        match letter {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            '.' | ',' if text.ends_with('#') => {}
            _ => text.push(letter),
        }
    }
    text.replace("int#", "fp#").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_command_of_the_documents_runs() {
    let pages: Vec<Page> = pages().into_iter().chain(helps()).collect();
    let made = PageProject::new();
    let queue = Mutex::new(pages.iter());
    let next = || queue.lock().unwrap().next();
    let work = || {
        let mut ran = Ran::default();
        while let Some(page) = next() {
            ran.add(run_page(&made, page));
        }
        ran
    };
    let mut ran = Ran::default();
    std::thread::scope(|scope| {
        // As many as the smallest machine has processors.
        for worker in [scope.spawn(work), scope.spawn(work)] {
            ran.add(worker.join().unwrap());
        }
    });
    assert!(ran.failed.is_empty(), "{}", ran.failed.join("\n\n"));
    println!("{} commands ran, {} were left out for want of something", ran.commands, ran.left);
    let rows = NOT_RUN.iter().map(|(page, part, _)| (*page, *part)).chain(NEEDS.iter().map(|(part, _)| ("", *part)));
    for row in rows {
        assert!(ran.used.contains(&row), "no page shows this any more: {row:?}");
    }
    // A row about a command that is left out here may be of use on another machine.
    let stand_ins = STAND_INS.iter().map(|(page, what, _)| (*page, *what));
    for row in stand_ins.filter(|_| ran.left == 0) {
        assert!(ran.used.contains(&row), "no page shows this any more: {row:?}");
    }
    assert!(ran.commands + ran.left > 60, "{}", ran.commands + ran.left);
}

/// The page shows what two commands print of commits of this repository, to the letter.
#[test]
fn what_a_page_shows_of_this_repository_is_what_perfrun_prints() {
    need!(commits);
    let page = pages().into_iter().find(|page| page.path == OF_COMMITS).unwrap();
    let lines: Vec<Line> = page.blocks.iter().flat_map(|block| block.lines()).collect();
    let shown: Vec<&Line> = lines.iter().filter(|line| !line.shown.is_empty()).collect();
    assert_eq!(shown.len(), 2, "{OF_COMMITS}");
    let project = Project::new();
    for line in shown {
        let words = shlex::split(&line.command).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_perfrun"));
        let command = without_settings(&mut command).args(&words[1..]).current_dir(root());
        // The page has commits by eight digits; git takes as many as a clone needs.
        let abbrev = [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.abbrev"), ("GIT_CONFIG_VALUE_0", "8")];
        let command = command.envs(abbrev).env("NO_COLOR", "1").env("PERFRUN_LOCK", project.lock());
        let done = Done::from(command.output().unwrap()).expect_code(line.code);
        check_shown(&line.shown, &done.stdout, |line| line.trim_end().to_owned()).unwrap();
    }
}
