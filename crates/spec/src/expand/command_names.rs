//! Names of commands that have none: the shortest that differ.
//!
//! Input: the commands, some with names. Output: a name for each. Pure.

use std::path::{Component, Path};

use base::name::fitting_name;
use base::wording::distinct;
use experiment::{Command, Model};

/// A way to name a command among those of the same program.
type Way = fn(&[String], &[&[String]]) -> String;

/// The shortest first.
const WAYS: [Way; 4] = [|words, _| program(words), with_arguments, with_folders, |words, _| whole(words)];

/// Names those that have none: after the program; those of one program after it and the words in which they differ, else
/// after the end of its path that differs, else after the whole command. Equal ones get a number.
pub(super) fn name(commands: &mut [Model]) {
    let is_unnamed = |model: &&Model| model.name.is_empty();
    let words: Vec<Vec<String>> =
        commands.iter().filter(is_unnamed).map(|model| model.command.as_ref().map(words).unwrap_or_default()).collect();
    let mut taken: Vec<String> = commands.iter().map(|model| model.name.clone()).filter(|it| !it.is_empty()).collect();
    for (model, own) in commands.iter_mut().filter(|model| model.name.is_empty()).zip(&words) {
        let same = words.iter().map(Vec::as_slice).filter(|other| program(other) == program(own));
        let name = among(own, &same.collect::<Vec<&[String]>>());
        let name = if name.is_empty() { "command" } else { &name };
        let mut numbered = (2..).map(|number| format!("{}-{number}", name.get(..56).unwrap_or(name)));
        let mut free = name.to_owned();
        while taken.contains(&free) {
            free = numbered.next().unwrap_or_default();
        }
        taken.push(free.clone());
        model.name = free;
    }
}

/// Its words; those of a shell's text as they stand between spaces.
fn words(command: &Command) -> Vec<String> {
    match command.words.as_slice() {
        [shell, option, text] if [shell.as_str(), option] == ["sh", "-c"] => {
            text.split_whitespace().map(str::to_owned).collect()
        }
        words => words.to_vec(),
    }
}

/// The name of a command among those of its program, itself included.
fn among(own: &[String], group: &[&[String]]) -> String {
    let tells_apart = |way: &&Way| are_distinct(group.iter().map(|words| way(words, group)));
    WAYS.iter().find(tells_apart).map_or_else(|| whole(own), |way| way(own, group))
}

fn are_distinct(names: impl Iterator<Item = String>) -> bool {
    let names: Vec<String> = names.collect();
    let count = names.len();
    distinct(names).len() == count
}

/// The file of the program.
fn program(words: &[String]) -> String {
    let file = words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    fitting_name(&file.to_string_lossy())
}

/// The program, and the words between the first and the last in which the commands differ.
fn with_arguments(own: &[String], group: &[&[String]]) -> String {
    let arguments: Vec<&[String]> = group.iter().map(|words| words.get(1..).unwrap_or_default()).collect();
    let least = arguments.iter().map(|words| words.len()).min().unwrap_or_default();
    let is_same = |mut words: Vec<Option<&String>>| {
        words.dedup();
        words.len() == 1
    };
    let before = (0..least).take_while(|place| is_same(arguments.iter().map(|words| words.get(*place)).collect()));
    let before = before.count();
    let behind = |place: usize| arguments.iter().map(|words| words.iter().nth_back(place)).collect::<Vec<_>>();
    let after = (0..least - before).take_while(|place| is_same(behind(*place))).count();
    let kept = own.get(1 + before..own.len() - after).unwrap_or_default();
    fitting_name(&format!("{} {}", program(own), kept.join(" ")))
}

/// As much of the end of the program's path as differs.
fn with_folders(own: &[String], group: &[&[String]]) -> String {
    let parts = |words: &[String]| -> Vec<String> {
        let path = Path::new(words.first().map_or("", String::as_str));
        let normal = path.components().filter(|part| matches!(part, Component::Normal(_)));
        normal.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let end = |words: &[String], count: usize| {
        let parts = parts(words);
        fitting_name(&parts[parts.len().saturating_sub(count)..].join("/"))
    };
    let most = group.iter().map(|words| parts(words).len()).max().unwrap_or_default();
    let enough = (1..=most).find(|count| are_distinct(group.iter().map(|words| end(words, *count))));
    end(own, enough.unwrap_or(most))
}

fn whole(words: &[String]) -> String {
    fitting_name(&words.join(" "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::parse;

    fn names(commands: &str) -> Vec<String> {
        let text = format!("setup: 'true'\ncommands: {commands}");
        let models = parse("x.yaml", &text, Path::new("/"), &[]).expect("a valid spec").experiment.models;
        models.into_iter().map(|model| model.name).collect()
    }

    #[test]
    fn a_name_is_the_shortest_that_differs() {
        assert_eq!(names("[grep -c foo x, rg -c foo x]"), ["grep", "rg"]);
        assert_eq!(names("[sleep 0.1, ./bin/sleep 0.2, rg x]"), ["sleep-0.1", "sleep-0.2", "rg"]);
        assert_eq!(names("[sort -S 1M big.txt, sort -S 2M big.txt]"), ["sort-1M", "sort-2M"]);
        assert_eq!(names("[grep foo x, grep -i foo x]"), ["grep", "grep-i"]);
        assert_eq!(names("[./old/bin/app x, ./new/bin/app x]"), ["old-bin-app", "new-bin-app"]);
        assert_eq!(names("[./old/app x, ./new/app x]"), ["old-app", "new-app"]);
        assert_eq!(names("[./app x, ../new/app x]"), ["app", "new-app"]);
    }

    #[test]
    fn equal_commands_are_numbered_and_shells_are_left_out() {
        assert_eq!(names("['true', 'true']"), ["true", "true-2"]);
        assert_eq!(names("[sleep 1, sleep 1, sleep 2]"), ["sleep-1", "sleep-1-2", "sleep-2"]);
        assert_eq!(names("[{ run: 'sort x | uniq', shell: true }, { name: n, run: x }]"), ["sort", "n"]);
        assert_eq!(names("[{ run: 'sort x | uniq', shell: true }, sort -u x]"), ["sort-x-uniq", "sort-u-x"]);
    }
}
