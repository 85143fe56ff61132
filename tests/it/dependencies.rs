//! What may be linked into perfrun: licences, sources, and one version of each crate.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Permissive all; of a crate that offers a choice one of these is taken.
const LICENCES: [&str; 9] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Older versions next to a later one, and who still asks for them.
const OLDER: [(&str, &str, &str); 8] = [
    ("foldhash", "0.1.5", "planus, of polars"),
    ("getrandom", "0.3.4", "ahash, of polars"),
    ("hashbrown", "0.15.5", "planus, of polars"),
    ("libloading", "0.8.9", "nvml-wrapper"),
    ("syn", "2.0.119", "most procedural macros"),
    ("thiserror", "1.0.69", "nvml-wrapper"),
    ("thiserror-impl", "1.0.69", "nvml-wrapper"),
    ("unicode-width", "0.1.14", "miette"),
];

/// Every package that is built for a platform that there are wheels for, those of tests included.
fn packages() -> Vec<Value> {
    let platforms = ["x86_64", "aarch64"].map(|machine| format!("--filter-platform={machine}-unknown-linux-gnu"));
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(platforms)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text<'a>(package: &'a Value, key: &str) -> &'a str {
    package[key].as_str().unwrap_or_default()
}

/// Whether an SPDX expression can be met. `OR` is taken to bind more than `AND` and parentheses are left out, which makes
/// an expression stricter and never looser.
fn is_allowed(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.replace(['(', ')'], "").replace('/', " OR ");
    expression.split(" AND ").all(|part| part.split(" OR ").any(|licence| allowed.contains(&licence.trim())))
}

#[test]
fn licences_are_permissive_and_sources_the_registry() {
    let packages = packages();
    assert!(packages.len() > 200, "{} packages", packages.len());
    let licences: Vec<&str> = packages.iter().map(|package| text(package, "license")).collect();
    for package in &packages {
        let (name, licence) = (text(package, "name"), text(package, "license"));
        assert!(is_allowed(licence, &LICENCES), "{name} has the licence `{licence}`");
        let is_own =
            package["source"].is_null() && text(package, "manifest_path").starts_with(env!("CARGO_MANIFEST_DIR"));
        assert!(is_own || text(package, "source") == REGISTRY, "{name} comes from {}", package["source"]);
        if is_own {
            let any = package["dependencies"]
                .as_array()
                .unwrap()
                .iter()
                .find(|it| text(it, "req") == "*" && it["path"].is_null());
            assert!(any.is_none(), "{name} takes any version of {any:?}");
        }
    }
    for licence in LICENCES {
        let rest: Vec<&str> = LICENCES.into_iter().filter(|other| *other != licence).collect();
        assert!(!licences.iter().all(|it| is_allowed(it, &rest)), "no crate needs {licence} any more");
    }
}

#[test]
fn a_crate_has_one_version_unless_it_is_known_who_keeps_another() {
    let packages = packages();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in &packages {
        versions.entry(text(package, "name")).or_default().insert(text(package, "version"));
    }
    for (name, version, of) in OLDER {
        assert!(versions.get_mut(name).unwrap().remove(version), "nothing keeps {name} {version} any more ({of} did)");
    }
    versions.retain(|_, versions| versions.len() != 1);
    assert!(versions.is_empty(), "a second version is worth a look: {versions:?}");
}

#[test]
fn a_licence_is_met_by_one_of_those_that_it_offers() {
    let allowed = ["MIT", "BSD-3-Clause"];
    for (expression, is_met) in [
        ("MIT", true),
        ("MIT OR GPL-3.0", true),
        ("GPL-3.0/MIT", true),
        ("Apache-2.0 / MIT", true),
        ("MIT AND GPL-3.0", false),
        ("(Apache-2.0 OR MIT) AND BSD-3-Clause", true),
        ("(GPL-3.0 OR Apache-2.0) AND MIT", false),
        ("GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), is_met, "{expression}");
    }
}
