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
#[command(after_help = "Examples:
  perfrun inspect model.onnx
  perfrun inspect zoo:bert_tiny --inputs batch=8,sequence=128")]
pub struct InspectArgs {
    /// Model files, folders of them, or `zoo:NAME` for built-in networks.
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    /// How built-in networks are made.
    #[command(flatten)]
    pub network: NetworkArgs,
    /// Input sizes for the cost of an inference, `batch=8` or `x=1x128` [default: a batch of 1].
    #[arg(long, value_name = "NAME=SIZE", value_delimiter = ',')]
    pub inputs: Vec<Size>,
    /// Write a model of this node alone, named as in the file or in a profile, and inspect that.
    #[arg(long, value_name = "NODE")]
    pub extract: Option<String>,
    /// With `--extract`: file to write; never overwrites [default: NODE.onnx].
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
#[command(after_help = "Examples:
  perfrun convert model.onnx --precision fp16 --output model-fp16.onnx
  perfrun convert model.onnx --precision int8 --reduce-range --output model-int8.onnx")]
pub struct ConvertArgs {
    /// The model file.
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// Target precision.
    #[arg(long, value_name = "PRECISION")]
    pub precision: TargetPrecision,
    /// File to write; never overwrites.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Target device; operators that it does not support stay as they are.
    #[arg(long, value_enum, default_value_t)]
    pub device: TargetDevice,
    /// fp16, bf16: keep the types of inputs and outputs, or convert them too.
    #[arg(long, value_enum, default_value_t)]
    pub io: IoWord,
    /// Operator or node that stays as it is; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub keep: Vec<String>,
    /// int8: scales of activations from data before (static), or in each inference; `auto` is static with convolutions.
    #[arg(long, value_enum, default_value_t)]
    pub quantization: QuantizationWord,
    /// Static int8: range of activations. `percentile` cuts 0.005 % at either end.
    #[arg(long, value_enum, default_value_t)]
    pub calibration: CalibrationWord,
    /// Static int8: calibration data, `.npz`, `.npy` or `.parquet`. Random without it: right for speed only.
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Static int8: calibration items [default: 128 from a file, 8 random ones].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    items: Option<u32>,
    /// Static int8: input sizes, `batch=8` or `x=1x128`; only a batch with `--data` [default: a batch of 1].
    #[arg(long, value_name = "NAME=SIZE", value_delimiter = ',')]
    pub inputs: Vec<Size>,
    /// int8: 7-bit weights, for processors whose 8-bit products saturate.
    #[arg(long)]
    pub reduce_range: bool,
    /// int4: weights that share a scale.
    #[arg(long, value_name = "N", default_value_t = INT4_BLOCK)]
    pub block: u32,
    /// Print what was done as JSON.
    #[arg(long)]
    pub json: bool,
}

impl ConvertArgs {
    /// Whether `--items` is given.
    pub(crate) fn names_items(&self) -> bool {
        self.items.is_some()
    }

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
        /// Without 0.005 % of the values at either end.
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
#[command(after_help = "Examples:
  perfrun zoo list
  perfrun zoo export resnet50")]
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
        /// File to write; never overwrites [default: NETWORK.onnx].
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
