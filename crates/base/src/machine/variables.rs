//! Environment variables that change what a runtime does, as workers inherit them.
//!
//! A list of names, and nothing else of the environment, which may hold secrets. Deliberately absent: what perfrun itself
//! sets for its workers (`CUDA_DEVICE_ORDER`), and what a variant sets in `env`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use crate::privacy::without_home;

/// Beginnings of names: ONNX Runtime, OpenMP and its implementations, memory allocators, and libraries of linear algebra.
const PREFIXES: [&str; 14] = [
    "ORT_",
    "OMP_",
    "GOMP_",
    "KMP_",
    "MALLOC_",
    "MIMALLOC_",
    "OPENBLAS_",
    "BLIS_",
    "MKL_",
    "DNNL_",
    "ONEDNN_",
    "CUBLAS_",
    "CUDNN_",
    "TBB_",
];

/// Whole names: the dynamic linker, the C library, and of CUDA and PyTorch what changes speed or arithmetic.
const NAMES: [&str; 16] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_BIND_NOW",
    "GLIBC_TUNABLES",
    "NVIDIA_TF32_OVERRIDE",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "PYTORCH_CUDA_ALLOC_CONF",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_CACHE_DISABLE",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_AUTO_BOOST",
];

/// Those that are set, by name, without home folders. Of a value that is not UTF-8 the rest is kept.
pub(super) fn inherited() -> BTreeMap<String, String> {
    relevant(std::env::vars_os())
}

fn relevant(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<String, String> {
    let is_listed = |name: &str| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| is_listed(name))
        .map(|(name, value)| (name, without_home(&value.to_string_lossy())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_runtime_is_kept_and_nothing_else() {
        let set = [
            ("OMP_NUM_THREADS", "1"),
            ("LD_PRELOAD", "/home/alice/lib/libjemalloc.so:/usr/lib/x.so"),
            ("NVIDIA_TF32_OVERRIDE", "0"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("HOME", "/home/alice"),
            ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
            ("CUDA_HOME", "/usr/local/cuda"),
            ("MY_OMP_NUM_THREADS", "2"),
            ("POLARS_MAX_THREADS", "3"),
        ];
        let found = relevant(set.iter().map(|(name, value)| (name.into(), value.into())));
        let expected = [
            ("LD_PRELOAD", "~/lib/libjemalloc.so:/usr/lib/x.so"),
            ("NVIDIA_TF32_OVERRIDE", "0"),
            ("OMP_NUM_THREADS", "1"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
