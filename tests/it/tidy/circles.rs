//! Files that use each other in a circle.
//!
//! Read as text: `use` trees, and paths that begin with `crate::`, `super::` or the name of a module below. A name that
//! a module gives out is taken to the file that it is from. What a file takes from the modules that it lies in does not
//! count: these hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

type Module = Vec<String>;

/// One package: the code of its modules, and the names that they give out with the modules that these are from.
struct Package {
    code: BTreeMap<Module, String>,
    given_out: BTreeMap<(Module, String), Module>,
}

/// The modules of each circle, given the files of a package by their paths below its `src`.
pub(super) fn circles(files: &[(PathBuf, String)]) -> Vec<Vec<String>> {
    let package = Package::new(files);
    let uses: BTreeMap<&Module, BTreeSet<Module>> =
        package.code.keys().map(|module| (module, package.uses(module))).collect();
    let reached = |from: &Module| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(module) = left.pop() {
            left.extend(uses[&module].iter().filter(|next| seen.insert((*next).clone())).cloned());
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = uses.keys().map(|module| (*module, reached(module))).collect();
    let in_circle = |module: &Module| -> Vec<String> {
        let mutual = reached[module].iter().filter(|other| reached[*other].contains(module));
        mutual.map(|other| other.join("::")).collect()
    };
    let found: BTreeSet<Vec<String>> = uses.keys().map(|module| in_circle(module)).collect();
    found.into_iter().filter(|circle| !circle.is_empty()).collect()
}

impl Package {
    fn new(files: &[(PathBuf, String)]) -> Self {
        let without_comments = |text: &str| -> String {
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<&str>>().join("\n")
        };
        let code = files.iter().map(|(path, text)| (module_of(path), without_comments(text))).collect();
        let mut package = Package { code, given_out: BTreeMap::new() };
        for (holder, text) in &package.code {
            for (_, path) in uses_in(text).into_iter().filter(|(is_given_out, _)| *is_given_out) {
                if let Some((module, rest)) = package.resolve(holder, &path)
                    && let ([name], true) = (rest.as_slice(), module != *holder)
                {
                    package.given_out.insert((holder.clone(), name.clone()), module);
                }
            }
        }
        package
    }

    /// What a module uses but what it lies in.
    fn uses(&self, holder: &Module) -> BTreeSet<Module> {
        let text = &self.code[holder];
        let uses = uses_in(text).into_iter().filter(|(is_given_out, _)| !is_given_out).map(|(_, path)| path);
        // One that ends in `::` has names in braces behind it, which are those of a `use`.
        let is_path = |word: &&str| word.contains("::") && !word.ends_with("::");
        let paths = text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).filter(is_path);
        let paths = paths.map(|word| word.split("::").map(str::to_owned).collect());
        let used = uses.chain(paths).filter_map(|path| Some(self.source(self.resolve(holder, &path)?)));
        used.filter(|module| !holder.starts_with(module)).collect()
    }

    /// The module that a path leads to, and what is left of it; `None`: it leads out of the package.
    fn resolve(&self, holder: &Module, path: &[String]) -> Option<(Module, Vec<String>)> {
        let mut module = holder.clone();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (module, rest) = (Vec::new(), &rest[1..]),
            "super" | "self" => {
                while let Some((first @ ("super" | "self"), behind)) = rest.split_first().map(|(a, b)| (a.as_str(), b))
                {
                    if first == "super" {
                        module.pop()?;
                    }
                    rest = behind;
                }
            }
            first if self.code.contains_key(&[holder.as_slice(), &[first.to_owned()]].concat()) => {}
            _ => return None,
        }
        while let Some((first, behind)) = rest.split_first() {
            let below = [module.as_slice(), std::slice::from_ref(first)].concat();
            if !self.code.contains_key(&below) {
                break;
            }
            (module, rest) = (below, behind);
        }
        Some((module, rest.to_vec()))
    }

    /// The file that a name is from which modules may give out.
    fn source(&self, (mut module, rest): (Module, Vec<String>)) -> Module {
        let Some(name) = rest.first() else { return module };
        while let Some(from) = self.given_out.get(&(module.clone(), name.clone())) {
            module.clone_from(from);
        }
        module
    }
}

fn module_of(path: &Path) -> Module {
    let mut module: Module = path.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// Every path of the `use` items of a code, and whether it is given out.
fn uses_in(text: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    for (start, _) in text.match_indices("use ") {
        let line = &text[text[..start].rfind('\n').map_or(0, |end| end + 1)..start];
        let is_item = line.trim().is_empty() || line.trim_start().starts_with("pub");
        let Some((tree, _)) = text[start + 4..].split_once(';').filter(|_| is_item) else { continue };
        found.extend(paths_of(tree).into_iter().map(|path| (line.contains("pub"), path)));
    }
    found
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn paths_of(tree: &str) -> Vec<Vec<String>> {
    let names = |text: &str| -> Vec<String> {
        let text = text.split(" as ").next().unwrap();
        text.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let Some((head, body)) = tree.split_once('{') else { return vec![names(tree)] };
    let body = &body[..body.rfind('}').unwrap()];
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in body.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&body[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&body[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(paths_of).map(|path| [names(head), path].concat()).collect()
}

#[test]
fn a_circle_is_found_and_names_are_taken_to_their_files() {
    let file = |path: &str, text: &str| (PathBuf::from(path), text.to_owned());
    let files = [
        file("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::{A, inner::Deep as D};"),
        file("a/mod.rs", "mod inner;\nuse crate::b::B;\npub struct A;"),
        file("a/inner.rs", "use super::A;\n// use crate::c::C;\npub struct Deep;"),
        file("b.rs", "fn f(_: crate::A) {}"),
        file("c.rs", "use crate::{A, b::B};"),
    ];
    assert_eq!(circles(&files), [["a", "b"]]);
    assert_eq!(circles(&files[..3]), [[""; 0]; 0]);
}
