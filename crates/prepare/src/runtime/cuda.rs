//! CUDA's libraries and cuDNN as NVIDIA publishes them for Python, so that a machine needs nothing but the driver.
//!
//! Those of CUDA 13.0, which every driver for CUDA 13 takes (580 and later). All of them go into one folder next to the
//! runtimes; a worker opens them before ONNX Runtime looks for them, whichever runtime it is.

use std::path::{Path, PathBuf};

use super::Progress;
use super::cache::{runtimes, unpack_into};
use super::error::RuntimeError;
use super::library::Machine;
use super::search_paths::SearchPaths;
use super::wheel::{Brings, Part, Wheel};
use crate::seal;
use experiment::CUDA_FOLDER;

const TOOLKIT: &str = "nvidia/cu13/lib/";

const CUDNN: Part = Part { name: "nvidia-cudnn-cu13", folder: "nvidia/cudnn/lib/", library: "libcudnn.so.9" };

const fn part(name: &'static str, library: &'static str) -> Part {
    Part { name, folder: TOOLKIT, library }
}

const fn wheel(
    part: Part,
    version: &'static str,
    systems: &'static [&'static str],
    sha256: &'static str,
) -> Wheel<'static> {
    Wheel { brings: Brings::Cuda(part), version, machine: Machine::X86_64, systems, sha256: Some(sha256) }
}

const SINCE_2_12: &[&str] = &["manylinux2010", "manylinux_2_12"];
const SINCE_2_17: &[&str] = &["manylinux2014", "manylinux_2_17"];
const SINCE_2_25: &[&str] = &["manylinux_2_25"];
const SINCE_2_27: &[&str] = &["manylinux_2_27"];

/// What ONNX Runtime 1.31 for CUDA is linked with, what that is, and CUPTI for profiles.
#[rustfmt::skip]
pub(super) const WHEELS: [Wheel<'static>; 8] = [
    wheel(part("nvidia-cuda-runtime", "libcudart.so.13"), "13.0.96", SINCE_2_17, "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548"),
    wheel(part("nvidia-cuda-nvrtc", "libnvrtc.so.13"), "13.0.88", SINCE_2_12, "ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"),
    wheel(part("nvidia-nvjitlink", "libnvJitLink.so.13"), "13.0.88", SINCE_2_12, "13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b"),
    wheel(part("nvidia-cublas", "libcublas.so.13"), "13.0.2.14", SINCE_2_27, "0cf238ffdbe46c00cb9aa98e7bca745c223a5ca5a53e686ac8b3e5a08fe80d6c"),
    wheel(part("nvidia-cufft", "libcufft.so.12"), "12.0.0.61", SINCE_2_17, "6c44f692dce8fd5ffd3e3df134b6cdb9c2f72d99cf40b62c32dde45eea9ddad3"),
    wheel(part("nvidia-curand", "libcurand.so.10"), "10.4.0.35", SINCE_2_27, "1aee33a5da6e1db083fe2b90082def8915f30f3248d5896bcec36a579d941bfc"),
    wheel(part("nvidia-cuda-cupti", "libcupti.so.13"), "13.0.85", SINCE_2_25, "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8"),
    wheel(CUDNN, "9.28.1.4", SINCE_2_27, "a54f205b1db1f2895d99f398754db1369816f0569dd459731f925635cf7b65ec"),
];

/// Folders with libraries of CUDA and cuDNN for this runtime: those that pip installed next to it, then the cache's.
pub fn cuda_folders(library: &Path, cache: &Path) -> Vec<PathBuf> {
    // `site-packages/onnxruntime/capi/libonnxruntime.so.1.31.1`
    let packages = library.ancestors().nth(3).map(|packages| packages.join("nvidia"));
    let parts = packages.and_then(|packages| std::fs::read_dir(packages).ok()).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = parts.map(|part| part.path().join("lib")).collect();
    folders.sort();
    folders.push(runtimes(cache).join(CUDA_FOLDER));
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Makes sure that all of them are in the cache, and says in which folder.
///
/// # Errors
///
/// As [`super::install`]; [`RuntimeError::UnknownVersion`] on a machine for which perfrun knows none.
pub fn install_cuda(cache: &Path, progress: &mut dyn FnMut(&Progress)) -> Result<PathBuf, RuntimeError> {
    install_into(&SearchPaths::of_this_machine(None, cache), progress)
}

/// Fetches them again where one that is in the cache is damaged; nothing where all are whole, or there are none.
pub(super) fn mend(paths: &SearchPaths, progress: &mut dyn FnMut(&Progress)) -> Result<(), RuntimeError> {
    let damaged = seal::broken_in(&runtimes(&paths.cache).join(CUDA_FOLDER));
    damaged.map_or(Ok(()), |_| install_into(paths, progress).map(drop))
}

fn install_into(paths: &SearchPaths, progress: &mut dyn FnMut(&Progress)) -> Result<PathBuf, RuntimeError> {
    let folder = runtimes(&paths.cache).join(CUDA_FOLDER);
    let machine = Machine::this()?;
    // Which wheel a file is from is not kept: all are fetched again.
    let damaged = seal::broken_in(&folder);
    if let Some(path) = damaged.clone() {
        progress(&Progress::Damaged { path });
    }
    for wheel in &WHEELS {
        if machine != wheel.machine {
            let (package, version) = (wheel.brings.name(), wheel.version.to_owned());
            return Err(RuntimeError::UnknownVersion { package, version, known: Vec::new() });
        }
        if damaged.is_some() || !folder.join(wheel.library_name()).is_file() {
            unpack_into(wheel, &folder, paths, progress)?;
        }
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_library_that_onnx_runtime_is_linked_with_is_brought() {
        let brought: Vec<String> = WHEELS.iter().map(Wheel::library_name).collect();
        let linked = ["libcudart.so.13", "libcublas.so.13", "libnvrtc.so.13", "libcurand.so.10", "libcufft.so.12"];
        for wanted in linked.into_iter().chain(["libcudnn.so.9"]) {
            assert!(brought.iter().any(|name| name == wanted), "{wanted}");
        }
    }

    #[test]
    fn the_folders_of_pip_come_before_the_cache() {
        let root = tempfile::tempdir().expect("a folder");
        let (cache, packages) = (root.path().join("cache"), root.path().join("lib/python3.12/site-packages"));
        let in_cache = runtimes(&cache).join(CUDA_FOLDER);
        let pip = [packages.join("nvidia/cu13/lib"), packages.join("nvidia/cudnn/lib")];
        for folder in pip.iter().chain([&in_cache, &packages.join("nvidia/cudnn/include")]) {
            std::fs::create_dir_all(folder).expect("a folder");
        }
        let of_pip = packages.join("onnxruntime/capi/libonnxruntime.so.1.31.1");
        assert_eq!(cuda_folders(&of_pip, &cache), [pip[0].clone(), pip[1].clone(), in_cache.clone()]);
        // A build of the user's own, whether by `--runtime`, `path` or ORT_DYLIB_PATH.
        assert_eq!(cuda_folders(Path::new("/opt/build/libonnxruntime.so"), &cache), [in_cache]);
        assert!(cuda_folders(Path::new("libonnxruntime.so"), root.path()).is_empty());
    }

    #[test]
    fn files_have_the_names_that_the_index_has() {
        let name = |part: &str| WHEELS.iter().find(|wheel| wheel.brings.name() == part).map(Wheel::file_name);
        let runtime = "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl";
        assert_eq!(name("nvidia-cuda-runtime").as_deref(), Some(runtime));
        let cudnn = "nvidia_cudnn_cu13-9.28.1.4-py3-none-manylinux_2_27_x86_64.whl";
        assert_eq!(name("nvidia-cudnn-cu13").as_deref(), Some(cudnn));
        assert!(WHEELS.iter().all(|wheel| wheel.sha256.is_some_and(|sha256| sha256.len() == 64)));
    }
}
