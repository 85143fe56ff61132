//! What becomes of one node: half precision, float32, or the type of the nodes around it.

use super::kernels;
use super::value::{Growth, Reads, Source, Value, WORTH_A_CAST, constant};
use super::weights::Range;
use super::{Half, HalfSettings, ProviderClass};
use crate::ElementType;
use crate::operators::{self, Kind};
use crate::precision::keep::{ASKED, INSIDE_ASKED};
use crate::proto::NodeProto;

/// What becomes of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It computes in half precision.
    Half,
    /// It computes in float32; the reason is left out where nothing else was possible to begin with.
    Full(Option<Reason>),
    /// It makes what its attributes say, and they can be changed.
    Adapts,
    /// It has no part in it: no float32 anywhere, or only the shape counts.
    Untouched,
}

/// Why a node stays in float32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The specification asks for it.
    Asked,
    /// The specification asks for the node whose branch or body it is in.
    InsideAsked,
    /// The standard has no such operator in half precision.
    Standard,
    /// The standard gets it in a later operator set.
    LaterOpset(i64),
    /// The provider has no kernel.
    Provider,
    /// The provider has no kernel, and its weights are so small that storing them in half precision saves nothing.
    Small,
    /// Its results are not to be trusted.
    Unsafe,
    /// It is not one of the standard's operators.
    Custom,
    /// Its weights are whole numbers of so many bits, and blocks of so many share a scale.
    Blocks { bits: i64, size: i64 },
    /// One of its constants is beyond the range.
    Range,
    /// One of its constants has numbers that are too small.
    Tiny,
    /// It makes or reads the angle of a position.
    Angle,
    /// It leads from whole numbers to other whole numbers.
    Whole,
    /// It leads to the logarithm of a probability.
    Logarithm,
    /// It makes coordinates.
    Coordinates,
    /// It is compared with a number near zero.
    Threshold,
    /// A sum of squares takes it away from numbers that are almost as large.
    Difference,
    /// It reads or makes what is no tensor.
    Sequence,
    /// The element type of something that it reads is not known.
    UnknownType,
}

impl Reason {
    pub(super) fn in_words(self, settings: &HalfSettings) -> String {
        let name = settings.target.name();
        match self {
            Reason::Asked => ASKED.to_owned(),
            Reason::InsideAsked => INSIDE_ASKED.to_owned(),
            Reason::Standard => format!("ONNX has no {name} version of it"),
            Reason::LaterOpset(since) => {
                format!("ONNX has a {name} version of it only from opset {since} on")
            }
            Reason::Provider => match settings.provider {
                ProviderClass::Cpu => format!("the CPU provider has no {name} arithmetic"),
                ProviderClass::Cuda => format!("the CUDA provider has no {name} kernel for it"),
            },
            Reason::Small => format!(
                "the CPU provider has no {name} arithmetic, and its weights have fewer than {WORTH_A_CAST} elements: stored in \
                 {name}, they would save less than their cast takes"
            ),
            Reason::Unsafe => format!("its results may exceed the range or the precision of {name}"),
            Reason::Custom => "it is not a standard ONNX operator".to_owned(),
            Reason::Blocks { bits, size } => {
                format!("its weights are int{bits} in blocks of {size} already; only float32 weights are converted")
            }
            Reason::Range => format!("a constant that it reads is beyond the range of {name}"),
            Reason::Tiny => format!("the numbers of a constant that it reads are too small for {name}"),
            Reason::Threshold => format!("it is compared with a number that is too small for {name}"),
            Reason::Difference => {
                format!("it is taken from numbers that are almost as large, and {name} loses the difference")
            }
            Reason::Angle => {
                format!("it leads to the sine or cosine of a position, and errors of {name} grow with the position")
            }
            Reason::Whole => format!(
                "it leads to indices, sizes or a comparison of whole numbers, and {name} has all of them up to {} alone",
                match settings.target {
                    Half::Fp16 => "2048",
                    Half::Bf16 => "256",
                }
            ),
            Reason::Logarithm => {
                format!("a logarithm follows, and {name} loses what is close to zero or one")
            }
            Reason::Coordinates => format!("it makes coordinates, and {name} rounds them to steps that count"),
            Reason::Sequence => "it reads or makes a sequence, whose elements keep their type".to_owned(),
            Reason::UnknownType => {
                "the element type of one of its inputs is not known: run shape inference on the model and save it"
                    .to_owned()
            }
        }
    }
}

/// What decides.
pub(super) struct Judge<'a> {
    pub(super) opset: i64,
    pub(super) settings: &'a HalfSettings,
    pub(super) target: ElementType,
}

impl Judge<'_> {
    /// Decides about a node from what it reads and makes.
    pub(super) fn decide(
        &self,
        node: &NodeProto,
        kept: Option<Reason>,
        read: &[Option<&Value>],
        made: &[Option<ElementType>],
    ) -> Decision {
        let reads_floats = read.iter().flatten().any(|value| value.is_float32());
        let makes_floats = made.contains(&Some(ElementType::Float32));
        if !reads_floats && !makes_floats {
            return Decision::Untouched;
        }
        if node.graphs().next().is_some() {
            return Decision::Full(None);
        }
        let operator = node.op_type();
        // A `Cast` from whole numbers would make half precision of them.
        if let Some(reason) = kept.filter(|_| !matches!(operator, "Constant" | "ConstantOfShape")) {
            return Decision::Full(Some(reason));
        }
        if node.is_standard() {
            match operator {
                "Constant" | "ConstantOfShape" if self.may_give(operator) && constant(node).is_some() => {
                    return Decision::Adapts;
                }
                "Constant" | "ConstantOfShape" => return Decision::Full(None),
                "Cast" if makes_floats => return Decision::Adapts,
                "Cast" | "Shape" | "Size" | "IsNaN" => return Decision::Untouched,
                _ => {}
            }
        }
        if self.settings.keep.keeps(node) {
            return Decision::Full(Some(Reason::Asked));
        }
        let has_kernel = kernels::has_kernel(self.settings.provider, self.settings.target, node, self.opset);
        match self.what_forbids(node, read, made) {
            // What the provider lacks would not help if the standard had it.
            Some(Reason::Standard | Reason::LaterOpset(_) | Reason::UnknownType) if !has_kernel => {
                return Decision::Full(Some(self.without_kernel(node, read)));
            }
            Some(reason) => return Decision::Full(Some(reason)),
            None => {}
        }
        match kernels::moves(node) {
            true if has_kernel && self.moves_half(read) => Decision::Half,
            true if !has_kernel && self.settings.provider == ProviderClass::Cuda => {
                Decision::Full(Some(Reason::Provider))
            }
            true => Decision::Full(None),
            false if has_kernel => Decision::Half,
            false => Decision::Full(Some(self.without_kernel(node, read))),
        }
    }

    /// Why a node stays that the provider has no kernel for: on the CPU its weights would be stored in half precision.
    fn without_kernel(&self, node: &NodeProto, read: &[Option<&Value>]) -> Reason {
        let has_weights =
            matches!(node.op_type(), "Conv" | "ConvTranspose" | "MatMul" | "Gemm" | "LSTM" | "GRU" | "RNN");
        let weights = || read.iter().skip(1).flatten().filter(|value| is_flexible(value));
        let is_small = |value: &&&Value| match value.source {
            Source::Weight(elements) | Source::Adaptable(elements) => elements < WORTH_A_CAST,
            Source::Input | Source::Node => false,
        };
        let is_small = has_weights && weights().next().is_some() && weights().all(|value| is_small(&value));
        if is_small && self.settings.provider == ProviderClass::Cpu { Reason::Small } else { Reason::Provider }
    }

    /// What the standard and the arithmetic forbid, whatever the provider can do.
    fn what_forbids(&self, node: &NodeProto, read: &[Option<&Value>], made: &[Option<ElementType>]) -> Option<Reason> {
        let operator = node.op_type();
        if let Some(reason) = blocks(node, read) {
            return Some(reason);
        }
        if !node.is_standard() {
            return Some(Reason::Custom);
        }
        if operators::operator(operator, self.opset).is_some_and(|known| !known.is_of_tensors()) {
            return Some(Reason::Sequence);
        }
        // What it makes of other bits is another number.
        if operator == "BitCast" {
            return Some(Reason::Standard);
        }
        let allowed = |opset: i64| {
            operators::operator(operator, opset).is_some_and(|known| self.is_allowed(known, node, read, made))
        };
        if !allowed(self.opset) {
            let later = (self.opset + 1..=operators::NEWEST_OPSET).find(|opset| allowed(*opset));
            return Some(later.map_or(Reason::Standard, Reason::LaterOpset));
        }
        if read.iter().flatten().any(|value| value.element.is_none()) {
            return Some(Reason::UnknownType);
        }
        let is_beyond = |(input, value): (usize, &Option<&Value>)| {
            let is_lost = |value: &Value| match value.range {
                Range::Within => false,
                Range::Masks => !kernels::masks(node),
                Range::Tiny | Range::Beyond => true,
            };
            value.is_some_and(is_lost) && !self.steers(node, input)
        };
        let lost = read.iter().enumerate().filter(|it| is_beyond(*it)).filter_map(|(_, value)| value.as_ref());
        let lost = lost.map(|value| value.range).max();
        if lost.is_some_and(|range| range != Range::Tiny) {
            return Some(Reason::Range);
        }
        let growth = growth(read);
        let is_on_cuda = self.settings.provider == ProviderClass::Cuda;
        let is_unsafe = kernels::is_unsafe(node)
            || (is_on_cuda && kernels::accumulates(node))
            || growth == Growth::Beyond
            || (kernels::continues(operator) && growth == Growth::Perhaps);
        is_unsafe.then_some(Reason::Unsafe).or(lost.map(|_| Reason::Tiny))
    }

    /// Whether every float32 input and output may be in half precision, where its type is not fixed.
    fn is_allowed(
        &self,
        known: &operators::Operator,
        node: &NodeProto,
        read: &[Option<&Value>],
        made: &[Option<ElementType>],
    ) -> bool {
        let inputs = read.iter().enumerate().filter(|(_, value)| value.is_some_and(Value::is_float32));
        let converted = inputs.filter(|(input, _)| self.is_variable(known.input(*input)) && !self.steers(node, *input));
        let mut converted = converted.map(|(input, _)| input).peekable();
        let converts_any = converted.peek().is_some() || made.contains(&Some(ElementType::Float32));
        converts_any && converted.all(|input| known.allows_at(input, &self.target))
    }

    fn is_variable(&self, parameter: Option<&operators::Parameter>) -> bool {
        parameter.is_some_and(|parameter| matches!(parameter.kind, Kind::Variable(_) | Kind::Free(_)))
    }

    fn steers(&self, node: &NodeProto, input: usize) -> bool {
        kernels::steers(node.op_type(), input)
    }

    /// What moves data takes the type that most of the data has; weights have whichever is wanted.
    fn moves_half(&self, read: &[Option<&Value>]) -> bool {
        let floats = || read.iter().flatten().filter(|value| value.is_float32());
        let data: Vec<_> = floats().filter(|value| !is_flexible(value)).collect();
        if data.is_empty() {
            return floats().any(|value| matches!(value.source, Source::Weight(elements) if elements >= WORTH_A_CAST));
        }
        2 * data.iter().filter(|value| value.is_half).count() > data.len()
    }

    /// How a node reads one of its inputs.
    pub(super) fn reads(&self, node: &NodeProto, decision: &Decision, input: usize, read: &[Option<&Value>]) -> Reads {
        let is_float = read[input].is_some_and(Value::is_float32);
        match decision {
            _ if !is_float => Reads::Any,
            Decision::Untouched => Reads::Any,
            Decision::Adapts => Reads::Any,
            // Nothing forbids that its weights are rounded: only its arithmetic is not to be had.
            Decision::Full(Some(
                Reason::Provider
                | Reason::Small
                | Reason::Standard
                | Reason::LaterOpset(_)
                | Reason::Range
                | Reason::Tiny,
            )) => Reads::Widened,
            Decision::Full(_) => Reads::Full,
            Decision::Half => {
                let known = operators::operator(node.op_type(), self.opset);
                let is_variable = self.is_variable(known.and_then(|known| known.input(input)));
                if is_variable && !self.steers(node, input) { Reads::Half } else { Reads::Full }
            }
        }
    }

    /// Whether what a node makes from its attributes alone may be in half precision.
    fn may_give(&self, operator: &str) -> bool {
        operators::operator(operator, self.opset).is_some_and(|known| known.gives_at(0, &self.target))
    }

    /// Whether a node gives an output, which is float32 in the model as it was, in half precision: where an input decides
    /// about its type. Where only an attribute does, as with the mean of a `LayerNormalization`, it stays.
    pub(super) fn gives_half(&self, node: &NodeProto, decision: &Decision, output: usize) -> bool {
        let known = || operators::operator(node.op_type(), self.opset);
        *decision == Decision::Half && known().is_some_and(|known| known.takes_type_of_an_input(output))
    }

    /// Whether what a node makes may be beyond the range of fp16, and by how many decades constants have moved it.
    pub(super) fn grows(&self, node: &NodeProto, decision: &Decision, read: &[Option<&Value>]) -> (Growth, f32) {
        let before = growth(read);
        let decades = decades(node, read);
        // What the CPU computes it computes in float32 anyway.
        if kernels::moves(node) || self.settings.provider == ProviderClass::Cpu {
            return (before, decades);
        }
        let Decision::Full(Some(reason)) = decision else { return (Growth::None, 0.0) };
        // A square exceeds the range also where it stays in float32 for another reason.
        let is_unsafe = *reason == Reason::Unsafe || kernels::is_unsafe(node);
        if !is_unsafe && !matches!(reason, Reason::Range | Reason::Tiny) {
            return (Growth::None, 0.0);
        }
        // A number that keeps a divisor from zero would be zero again in fp16.
        let is_guard = *reason == Reason::Tiny && kernels::guards(node.op_type());
        let is_square = is_unsafe || is_guard || before == Growth::Perhaps;
        match kernels::returns(node.op_type()) {
            true => (Growth::None, 0.0),
            false if !HELD.contains(&decades) => (Growth::Beyond, decades),
            false if is_square => (Growth::Perhaps, decades),
            false => (Growth::None, decades),
        }
    }
}

/// That a node reads weights of which blocks share a scale, as `quantize_blocks` and the standard's operator set 21 have them.
fn blocks(node: &NodeProto, read: &[Option<&Value>]) -> Option<Reason> {
    let size = node.int("block_size").filter(|size| *size > 0)?;
    let levels = read.first().copied().flatten().and_then(|value| value.element.as_ref());
    let bits = match (node.op_type(), levels.map(ElementType::name)) {
        ("DequantizeLinear", Some("int2" | "uint2")) => 2,
        ("DequantizeLinear", Some("int4" | "uint4")) => 4,
        ("DequantizeLinear", _) => 8,
        ("MatMulNBits" | "GatherBlockQuantized", _) => node.int("bits").unwrap_or(4),
        _ => return None,
    };
    Some(Reason::Blocks { bits, size })
}

/// By how many decades constants may move data of magnitudes from 1e-3 to 20, as most are between layers: then they stay
/// between 1e-7 and 63,000, and fp16 begins at 6e-8 and ends at 65504.
const HELD: std::ops::Range<f32> = -4.0..3.5;

/// By how many decades constants have moved what a node makes.
fn decades(node: &NodeProto, read: &[Option<&Value>]) -> f32 {
    let (mut moved, mut of_data): (f32, Option<f32>) = (0.0, None);
    for (input, value) in read.iter().enumerate().filter_map(|(input, value)| Some((input, value.as_ref()?))) {
        let is_unusual = value.range != Range::Within && value.largest > 0.0;
        match (node.op_type(), is_unusual) {
            ("Mul" | "MatMul" | "Gemm" | "Conv" | "ConvTranspose", true) if input < 2 => moved += value.largest.log10(),
            ("Div", true) if input == 1 => moved -= value.largest.log10(),
            ("Add" | "Sub" | "Sum" | "Max" | "Where" | "Concat", true) => {
                of_data = Some(of_data.unwrap_or_default().max(value.largest.log10()));
            }
            (_, false) if !is_flexible(value) => {
                of_data = Some(of_data.map_or(value.decades, |known| known.max(value.decades)))
            }
            _ => {}
        }
    }
    of_data.unwrap_or_default() + moved
}

fn growth(read: &[Option<&Value>]) -> Growth {
    read.iter().flatten().map(|value| value.growth).max().unwrap_or(Growth::None)
}

/// Whether the type of a value is still open.
fn is_flexible(value: &Value) -> bool {
    matches!(value.source, Source::Weight(_) | Source::Adaptable(_))
}
