//! Names the build profile for `--version` and records, and links debug binaries at a fixed address.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // `target/release/build/perfrun-.../out`; the folder of `dev` is `debug`.
    let out = env::var("OUT_DIR").unwrap_or_default();
    let profile = Path::new(&out).ancestors().nth(3).and_then(Path::file_name).and_then(|name| name.to_str());
    let profile = profile.map_or("unknown", |name| if name == "debug" { "dev" } else { name });
    println!("cargo::rustc-env=PERFRUN_PROFILE={profile}");
    // Half a million addresses that a position-independent program of this size corrects at each start: 2,000 page faults
    // for each of the thousands of workers that the tests start.
    if profile == "dev" && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
