//! The verbs about model files.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};

use experiment::{
    CALIBRATION_ITEMS, CacheForm, Calibration, ConversionSettings, INT4_BLOCK, Io, Precision, Quantization,
};

/// Arguments of `inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// Model files, folders of them, or `zoo:NAME` for built-in networks.
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    /// How built-in networks are made.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Input sizes for the cost of one inference: `batch=1,sequence=128`, or whole shapes, `x=1x128`. Default: a batch
    /// of 1.
    #[arg(long, value_name = "NAME=SIZE", value_delimiter = ',')]
    pub inputs: Vec<Size>,
    /// Write a model of this node alone, with its weights and the shapes of its inputs, and inspect that. It is named as
    /// in the model file or in a profile; where ONNX Runtime executes several nodes as one, all of them are written.
    #[arg(long, value_name = "NODE")]
    pub extract: Option<String>,
    /// With `--extract`: the file to write (default: the node's name in the current folder); never overwritten.
    #[arg(short, long, value_name = "FILE", requires = "extract")]
    pub output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The size of a dimension, `batch=1`, or the whole shape of an input whose dimensions have no names, `x=1x64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    /// The dimension, or the input.
    pub name: String,
    /// Its size or sizes.
    pub sizes: Vec<u64>,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(u64::to_string).collect();
        write!(f, "{}={}", self.name, sizes.join("x"))
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The name of an input may hold anything, so that the last sign counts.
        let parsed = text.rsplit_once('=').and_then(|(name, sizes)| {
            let sizes: Result<Vec<u64>, _> = sizes.trim().split('x').map(str::parse).collect();
            Some((name.trim(), sizes.ok()?))
        });
        match parsed {
            Some((name, sizes)) if !name.is_empty() => Ok(Size { name: name.to_owned(), sizes }),
            _ => Err("write the size of a dimension, batch=1, or the shape of an input, x=1x64".to_owned()),
        }
    }
}

/// Random items of a calibration: more of them add nothing.
const RANDOM_ITEMS: u32 = 8;

/// Arguments of `convert`.
#[derive(Clone, Debug, Args)]
pub struct ConvertArgs {
    /// The model file.
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// Target precision.
    #[arg(long, value_name = "PRECISION")]
    pub precision: TargetPrecision,
    /// The file to write; never overwritten.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Target device; operators that its provider does not support stay as they are.
    #[arg(long, value_enum, default_value_t)]
    pub device: TargetDevice,
    /// With fp16 and bf16: keep the inputs and outputs as they are (with casts), or convert them too.
    #[arg(long, value_enum, default_value_t)]
    pub io: IoWord,
    /// Operator or node to leave as it is; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub keep: Vec<String>,
    /// With int8: how activations get their scales.
    #[arg(long, value_enum, default_value_t)]
    pub quantization: QuantizationWord,
    /// With static int8: how observed activations become a range.
    #[arg(long, value_enum, default_value_t)]
    pub calibration: CalibrationWord,
    /// With static int8: calibration data, a `.npz`, `.npy` or `.parquet` file with an array for each input. Without
    /// it the data are random, and only the speed of the result is meaningful.
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// With static int8: number of calibration items. Default: 128 from a file, or 8 random ones.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    items: Option<u32>,
    /// With static int8: input sizes for the calibration: `batch=1,sequence=128`, or whole shapes, `x=1x128`. With
    /// `--data` only a batch. Default: a batch of 1.
    #[arg(long, value_name = "NAME=SIZE", value_delimiter = ',')]
    pub inputs: Vec<Size>,
    /// With int8: 7-bit weights, for processors whose 8-bit products saturate.
    #[arg(long)]
    pub reduce_range: bool,
    /// With int4: block size, the number of weights that share a scale.
    #[arg(long, value_name = "N", default_value_t = INT4_BLOCK)]
    pub block: u32,
    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

impl ConvertArgs {
    /// Items that ranges are found from.
    pub fn items(&self) -> u32 {
        let usual = if self.data.is_some() { CALIBRATION_ITEMS } else { RANDOM_ITEMS };
        self.items.unwrap_or(usual)
    }

    /// The settings as a specification would have them.
    pub fn settings(&self) -> ConversionSettings {
        ConversionSettings {
            io: self.io.into(),
            keep: self.keep.clone(),
            quantization: self.quantization.into(),
            calibration: self.calibration.into(),
            reduce_range: self.reduce_range,
            block: self.block,
            items: self.items(),
        }
    }
}

/// A word of the command line for each value of a specification's enumeration.
macro_rules! words {
    ($(#[$about:meta])* $name:ident => $target:ident { $($(#[$word_about:meta])* $word:ident),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
        #[value(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$word_about])* $word),+
        }

        impl From<$name> for $target {
            fn from(word: $name) -> $target {
                match word {
                    $($name::$word => $target::$word),+
                }
            }
        }
    };
}

words!(
    /// What a model can be converted to.
    TargetPrecision => Precision {
        /// IEEE half precision.
        Fp16,
        /// bfloat16.
        Bf16,
        /// 8-bit integers.
        Int8,
        /// Weights of matrix products in 4-bit integers.
        Int4,
    }
);

words!(
    /// Inputs and outputs.
    #[derive(Default)]
    IoWord => Io {
        /// Keep their types.
        #[default]
        Keep,
        /// Convert them too.
        Convert,
    }
);

words!(
    /// Scales of activations.
    #[derive(Default)]
    QuantizationWord => Quantization {
        /// Static for models with convolutions, dynamic for others.
        #[default]
        Auto,
        /// Computed at run time, from the values of each inference.
        Dynamic,
        /// Computed before, from calibration data.
        Static,
    }
);

words!(
    /// Ranges of activations.
    #[derive(Default)]
    CalibrationWord => Calibration {
        /// From the smallest to the largest value.
        #[default]
        MinMax,
        /// The 99.99th percentile of the magnitudes.
        Percentile,
        /// The range with the smallest loss of information (Kullback-Leibler divergence).
        Entropy,
    }
);

/// The kind of device that a model is converted for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TargetDevice {
    /// ONNX Runtime's CPU provider.
    #[default]
    Cpu,
    /// CUDA, and the providers built on it.
    Cuda,
}

impl TargetDevice {
    /// The provider.
    pub fn provider(self) -> &'static str {
        match self {
            TargetDevice::Cpu => "cpu",
            TargetDevice::Cuda => "cuda",
        }
    }
}

/// Arguments of `zoo`.
#[derive(Clone, Debug, Args)]
pub struct ZooArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ZooAction,
}

/// What can be done with the networks.
#[derive(Clone, Debug, Subcommand)]
pub enum ZooAction {
    /// Every network with its parameters and multiply-accumulates.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write one to a file.
    Export {
        /// Its name, as `perfrun zoo list` prints it.
        #[arg(value_name = "NETWORK")]
        network: String,
        /// The file to write (default: its name in the current folder); never overwritten.
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// How it is made.
        #[command(flatten)]
        settings: NetworkArgs,
    },
}

/// How a built-in network is made.
#[derive(Clone, Debug, Args)]
pub struct NetworkArgs {
    /// Number of classes of a built-in classifier [default: as published].
    #[arg(long, value_name = "N")]
    pub classes: Option<u32>,
    /// Side of its square images [default: as published].
    #[arg(long, value_name = "N")]
    pub image: Option<u32>,
    /// Form of the cache of a built-in decoder [default: grown].
    #[arg(long, value_name = "FORM", value_parser = cache_form())]
    pub cache: Option<CacheForm>,
}

fn cache_form() -> impl TypedValueParser<Value = CacheForm> {
    let forms = PossibleValuesParser::new(CacheForm::ALL.map(CacheForm::name));
    forms.try_map(|name| CacheForm::of_name(&name).ok_or("no such form"))
}
