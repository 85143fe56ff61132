//! Arguments of the verbs about this machine and its runtimes: `runtime` and `doctor`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use experiment::{Package, Plugin};

/// Arguments of `runtime`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun runtime list
  perfrun runtime install 1.31.1
  perfrun runtime install --gpu --with-cuda")]
pub struct RuntimeArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: RuntimeAction,
}

/// What `runtime` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum RuntimeAction {
    /// List the local libraries and the versions that can be fetched.
    List,
    /// Download the official wheel with pip or uv, verify its checksum, and keep its library.
    Install {
        /// Version to install [default: the one perfrun is built for].
        #[arg(value_name = "VERSION")]
        version: Option<String>,
        /// Package to take it from.
        #[arg(long, value_name = "NAME", default_value = Package::default().name(), value_parser = Package::ALL.map(Package::name))]
        package: String,
        /// Short for `--package onnxruntime-gpu`.
        #[arg(long, conflicts_with = "package")]
        gpu: bool,
        /// Also fetch CUDA 13 and cuDNN 9, 2.7 GB in all; only the driver must be installed.
        #[arg(long, requires = "gpu")]
        with_cuda: bool,
        /// Fetch the plug-in of this provider instead of a runtime.
        #[arg(long, value_name = "NAME", value_parser = Plugin::ALL.map(Plugin::device), conflicts_with_all = ["package", "gpu", "version"])]
        provider: Option<String>,
    },
    /// Print the library that a run would use.
    Path {
        /// A version [default: the one that a run without `runtimes` would use].
        #[arg(value_name = "VERSION", conflicts_with = "runtime")]
        version: Option<String>,
        /// The library, as in `run`.
        #[arg(long, value_name = "PATH")]
        runtime: Option<PathBuf>,
    },
}

/// Arguments of `doctor`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun doctor
  perfrun doctor --device cuda --verify")]
pub struct DoctorArgs {
    /// Lock the clocks of NVIDIA GPUs, or print the commands for root; says how to undo it.
    #[arg(long, conflicts_with = "json")]
    pub fix: bool,
    /// Check on the device itself that perfrun measures it correctly.
    #[arg(long, requires = "device", conflicts_with = "fix")]
    pub verify: bool,
    /// The device to verify, as in `devices` of a specification.
    #[arg(long, value_name = "DEVICE", requires = "verify")]
    pub device: Option<String>,
    /// ONNX Runtime's library, as in `run`.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
