//! Which sizes of its inputs a model can compute with: those that its weights fix, and those that do not fit.
//!
//! Input: a graph, and inputs. Output: sizes to propose for what is open, or the first size that a node cannot take.
//! Deliberately absent: what each operator demands (`infer`).
//!
//! The inference of shapes has numbers only. So that a number shows where it comes from, every dimension that is open
//! gets a prime of its own, larger than what models have: a node that gets 10007 channels and wants 4 says that this
//! dimension has to be 4, and one that gets 8 x 10007 and wants 96 that it has to be 12.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::batch::{Asked, BATCH};
use crate::infer::{Demand, Wants, unmet};
use crate::proto::ModelProto;
use crate::resolve::{Open, ResolvedTensor, propose, usual_size};
use crate::shape_error::{Misfit, MisfitDimension, ShapeError, USUAL_SIZE};
use crate::signature::{Dimension, Signature};

/// Each round settles dimensions, and what was unknown behind them is seen in the next.
const MOST_ROUNDS: usize = 12;

/// The first prime is beyond this.
const LEAST_PRIME: u64 = 10_000;

/// Primes lie so far apart that no window or padding leads from one to the next.
const PRIME_GAP: u64 = 613;

/// Sizes of images that models are made for, tried where neither the usual size nor one that a weight fixes is right.
#[rustfmt::skip]
const USUAL_IMAGES: [u64; 30] = [
    224, 256, 28, 32, 64, 299, 96, 112, 160, 192, 227, 240, 260, 288, 300, 320, 336, 384, 416, 448, 480, 512, 518, 640,
    1024, 84, 48, 16, 8, 4,
];

/// A free dimension, shared by the inputs that have it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Symbol {
    Batch,
    Name(String),
    InputAxis(String, usize),
}

impl Symbol {
    fn of(open: Open<'_>) -> Self {
        match (open.key, open.name, open.input_axis) {
            (Some(BATCH), ..) => Symbol::Batch,
            (_, Some(name), _) => Symbol::Name(name.to_owned()),
            (_, None, (tensor, index)) => Symbol::InputAxis(tensor.to_owned(), index),
        }
    }
}

/// Sizes to propose for what is open.
#[derive(Clone, Debug, Default)]
pub(super) struct Guesses(BTreeMap<Symbol, u64>);

impl Guesses {
    /// The size that the weights fix, else the usual one.
    pub(super) fn size_of(&self, open: Open<'_>) -> u64 {
        self.0.get(&Symbol::of(open)).copied().unwrap_or_else(|| usual_size(open))
    }
}

/// Sizes for what `asked` leaves open, with which no node of the graph gets what it cannot take, as far as they are found.
pub(super) fn guesses(graph: &ModelProto, signature: &Signature, asked: Asked<'_>) -> Guesses {
    let misfits = |guesses: &Guesses| {
        let tensors = propose(signature, asked, &|open| guesses.size_of(open)).unwrap_or_default();
        unmet(graph, &tensors)
    };
    let mut guesses = Guesses::default();
    for _ in 0..MOST_ROUNDS {
        let found = misfits(&guesses);
        if found.is_empty() {
            break;
        }
        let primes = Primes::default();
        let probe = |open: Open<'_>| guesses.0.get(&Symbol::of(open)).copied().unwrap_or_else(|| primes.size_of(open));
        let tensors = propose(signature, asked, &probe).unwrap_or_default();
        let demands = unmet(graph, &tensors);
        let is_found = |demand: &&Demand| found.iter().any(|misfit| is_same_demand(misfit, demand));
        let solved: Vec<(Symbol, u64)> =
            demands.iter().filter(is_found).filter_map(|demand| primes.solve(demand)).collect();
        if !solved.is_empty() {
            for (symbol, size) in solved {
                guesses.0.entry(symbol).or_insert(size);
            }
            continue;
        }
        // An image that is flattened before a product: its sides are not said by one size.
        let open: Vec<Symbol> = primes.symbols().into_iter().filter(|symbol| *symbol != Symbol::Batch).collect();
        let with = |size: u64| {
            let sides = open.iter().map(|symbol| (symbol.clone(), size));
            Guesses(guesses.0.clone().into_iter().chain(sides).collect())
        };
        let fitting = USUAL_IMAGES.into_iter().map(with).find(|tried| misfits(tried).is_empty());
        return fitting.unwrap_or(guesses);
    }
    guesses
}

/// The first size that a node cannot take, of inputs with these shapes.
pub(super) fn misfit(graph: &ModelProto, signature: &Signature, tensors: &[ResolvedTensor]) -> Option<ShapeError> {
    let found = unmet(graph, tensors);
    let first = found.first()?;
    let primes = Primes::default();
    let asked = unmet(graph, &probed(signature, tensors, &primes));
    let traced = found.iter().find_map(|misfit| {
        let demand = asked.iter().find(|demand| is_same_demand(misfit, demand))?;
        let (symbol, size) = primes.solve(demand)?;
        Some((misfit, first_axis_of(&symbol, signature)?, size))
    });
    let problem = |misfit: &Demand, open: Option<MisfitDimension>| {
        ShapeError::Misfit(Box::new(Misfit {
            node: misfit.named.clone(),
            value: misfit.value.clone(),
            axis: misfit.axis,
            has: misfit.has,
            wants: misfit.wants.to_string(),
            by: misfit.by.clone(),
            open,
        }))
    };
    Some(match traced {
        Some((misfit, (tensor, index, name), wants)) => {
            let shape = &tensors.iter().find(|given| given.name == tensor)?.shape;
            let has = *shape.get(index)?;
            problem(misfit, Some(MisfitDimension { tensor, index, name, has, wants }))
        }
        None => problem(first, None),
    })
}

/// The inputs with a prime for every size that the file leaves open.
fn probed(signature: &Signature, tensors: &[ResolvedTensor], primes: &Primes) -> Vec<ResolvedTensor> {
    let probe = |tensor: &ResolvedTensor| {
        let declared = signature.inputs.iter().find(|input| input.name == tensor.name);
        let mut probed = tensor.clone();
        for (index, dimension) in declared.map(|input| input.dimensions()).unwrap_or_default().iter().enumerate() {
            let open = Open { name: dimension.name(), input_axis: (&tensor.name, index), key: None };
            if let (Some(size), Dimension::Named(_) | Dimension::Unknown) = (probed.shape.get_mut(index), dimension) {
                *size = primes.size_of(open);
            }
        }
        probed
    };
    tensors.iter().map(probe).collect()
}

/// The first input and axis of the file that have a dimension, with its name.
fn first_axis_of(symbol: &Symbol, signature: &Signature) -> Option<(String, usize, Option<String>)> {
    match symbol {
        Symbol::InputAxis(tensor, index) => Some((tensor.clone(), *index, None)),
        Symbol::Name(name) => signature.inputs.iter().find_map(|input| {
            let index = input.dimensions().iter().position(|dimension| dimension.name() == Some(name))?;
            Some((input.name.clone(), index, Some(name.clone())))
        }),
        Symbol::Batch => None,
    }
}

/// Whether two demands are one, met with different sizes.
fn is_same_demand(left: &Demand, right: &Demand) -> bool {
    (&left.node, &left.value, left.axis, &left.by) == (&right.node, &right.value, right.axis, &right.by)
}

/// The primes that stand for dimensions.
#[derive(Default)]
struct Primes(RefCell<BTreeMap<Symbol, u64>>);

impl Primes {
    fn size_of(&self, open: Open<'_>) -> u64 {
        let mut known = self.0.borrow_mut();
        let least = LEAST_PRIME + PRIME_GAP * known.len() as u64;
        *known.entry(Symbol::of(open)).or_insert_with(|| prime_from(least))
    }

    fn symbols(&self) -> Vec<Symbol> {
        self.0.borrow().keys().cloned().collect()
    }

    /// How a size comes from a dimension; `None` where it comes from none, or from several.
    fn trace(&self, size: u64) -> Option<Traced> {
        let known = self.0.borrow();
        let traced = |symbol: &Symbol, times, more| Some(Traced { symbol: symbol.clone(), times, more });
        let near = |prime: u64| size.checked_signed_diff(prime).filter(|more| more.unsigned_abs() < PRIME_GAP / 2);
        if let Some((symbol, more)) = known.iter().find_map(|(symbol, prime)| Some((symbol, near(*prime)?))) {
            return traced(symbol, 1, more);
        }
        let mut factors = known.iter().filter(|(_, prime)| size.is_multiple_of(**prime));
        let (symbol, prime) = factors.next().filter(|_| size > 0)?;
        let times = size / prime;
        if factors.next().is_some() || times.is_multiple_of(*prime) { None } else { traced(symbol, times, 0) }
    }

    /// The dimension that a demand is about, and the size that meets it.
    fn solve(&self, demand: &Demand) -> Option<(Symbol, u64)> {
        let has = self.trace(demand.has);
        match demand.wants {
            Wants::Size(size) => match (has, self.trace(size)) {
                // Two dimensions that have to be alike: the other one follows the batch.
                (Some(left), Some(right)) if (left.times, left.more) == (right.times, right.more) => {
                    match (left.symbol, right.symbol) {
                        (Symbol::Batch, other) | (other, Symbol::Batch) => Some((other, 1)),
                        _ => None,
                    }
                }
                (Some(_), Some(_)) | (None, None) => None,
                (Some(has), None) => has.solve(size),
                (None, Some(wanted)) => wanted.solve(demand.has),
            },
            Wants::MultipleOf(factor) => {
                let Traced { symbol, times, more: 0 } = has? else { return None };
                let least = factor / greatest_common_divisor(factor, times);
                Some((symbol, USUAL_SIZE.next_multiple_of(least)))
            }
            Wants::AtLeast(_) => None,
        }
    }
}

/// A size of `times` a dimension and `more`.
struct Traced {
    symbol: Symbol,
    times: u64,
    more: i64,
}

impl Traced {
    /// What the dimension has to be for the size to be this.
    fn solve(self, size: u64) -> Option<(Symbol, u64)> {
        let product = size.checked_add_signed(self.more.checked_neg()?)?;
        product.is_multiple_of(self.times).then(|| (self.symbol, product / self.times))
    }
}

fn prime_from(least: u64) -> u64 {
    let is_prime = |number: &u64| {
        (2..).take_while(|factor| factor * factor <= *number).all(|factor| !number.is_multiple_of(factor))
    };
    // There is a prime between any number and twice that.
    (least..2 * least).find(is_prime).unwrap_or(least)
}

fn greatest_common_divisor(left: u64, right: u64) -> u64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, NodeProto, TensorProto};
    use crate::sample::{model_of, point, tensors};
    use crate::{ElementType, Interface};

    fn node(operator: &str, inputs: &[&str], outputs: &[&str], attributes: Vec<AttributeProto>) -> NodeProto {
        NodeProto::of(operator, "", inputs, outputs, attributes)
    }

    fn weight(name: &str, shape: &[u64]) -> TensorProto {
        TensorProto::of_floats(name, shape, &vec![0.5; shape.iter().product::<u64>() as usize])
    }

    /// A model of these inputs, weights and nodes.
    fn interface(inputs: &str, weights: Vec<TensorProto>, nodes: Vec<NodeProto>) -> Interface {
        let signature = Signature { inputs: tensors(inputs), outputs: vec![] };
        Interface::of(model_of(17, inputs, "", weights, nodes), signature)
    }

    /// What is proposed where nothing is said, or why these sizes do not fit.
    fn proposed(interface: &Interface, dimensions: &[(&str, u64)]) -> String {
        match interface.resolve(point(dimensions, &[]).asked(), |_| true) {
            Ok(resolved) => format!("{:?}", resolved.tensors.iter().map(|tensor| &tensor.shape).collect::<Vec<_>>()),
            Err(problem) => format!("{problem}: {}", problem.remedy()),
        }
    }

    #[track_caller]
    fn proposes(interface: &Interface, expected: &str) {
        let text = proposed(interface, &[]);
        assert!(text.ends_with(&format!("for example `inputs: {expected}`")), "{text}");
    }

    #[test]
    fn sizes_that_a_weight_fixes_are_proposed() {
        let convolution = vec![node("Conv", &["x", "w"], &["y"], vec![])];
        let unet = interface("x[batch_size,num_channels,height,width]", vec![weight("w", &[8, 4, 3, 3])], convolution);
        proposes(&unet, "{ batch: 1, height: 128, num_channels: 4, width: 128 }");
        let product = vec![node("Relu", &["x"], &["r"], vec![]), node("MatMul", &["r", "w"], &["y"], vec![])];
        let hidden = interface("x[N,s,hidden]", vec![weight("w", &[96, 8])], product);
        proposes(&hidden, "{ batch: 1, hidden: 96, s: 128 }");
        let normal = vec![node("LayerNormalization", &["x", "g", "b"], &["y"], vec![])];
        let normal = interface("x[N,s,h]", vec![weight("g", &[96]), weight("b", &[96])], normal);
        proposes(&normal, "{ batch: 1, h: 96, s: 128 }");
        let recurrent = vec![node("LSTM", &["x", "w", "r"], &["y"], vec![])];
        let recurrent = interface("x[t,N,f]", vec![weight("w", &[1, 64, 9]), weight("r", &[1, 64, 16])], recurrent);
        proposes(&recurrent, "{ batch: 1, f: 9, t: 128 }");
        let sum = vec![node("Add", &["x", "p"], &["y"], vec![])];
        proposes(&interface("x[N,s,h]", vec![weight("p", &[1, 197, 48])], sum), "{ batch: 1, h: 48, s: 197 }");
    }

    #[test]
    fn sizes_behind_reshapes_and_of_several_inputs_are_found() {
        let heads = TensorProto::of_integers("heads", &[4], &[0, 0, 12, 64]);
        let split = vec![node("Reshape", &["x", "heads"], &["y"], vec![])];
        proposes(&interface("x[N,s,h]", vec![heads], split), "{ batch: 1, h: 768, s: 128 }");
        // Twice as many after the join, and only known once the other is.
        let axis = || vec![AttributeProto::of_int("axis", 2)];
        let joined = vec![
            node("Add", &["x", "g"], &["a"], vec![]),
            node("Concat", &["a", "z"], &["j"], axis()),
            node("MatMul", &["j", "w"], &["y"], vec![]),
        ];
        let joined = interface("x[N,s,h] z[N,s,k]", vec![weight("g", &[40]), weight("w", &[100, 8])], joined);
        proposes(&joined, "{ batch: 1, h: 40, k: 60, s: 128 }");
        let sides = vec![node("Flatten", &["x"], &["f"], vec![]), node("MatMul", &["f", "w"], &["y"], vec![])];
        proposes(&interface("x[N,1,h,w]", vec![weight("w", &[784, 8])], sides), "{ batch: 1, h: 28, w: 28 }");
        let squeezed = vec![node("Squeeze", &["x", "axes"], &["y"], vec![])];
        let axes = TensorProto::of_integers("axes", &[1], &[1]);
        proposes(&interface("x[N,k,h]", vec![axes], squeezed), "{ batch: 1, h: 128, k: 1 }");
    }

    #[test]
    fn what_no_weight_fixes_keeps_its_usual_size() {
        // A table of positions is cut to the length, which may be as long as the table.
        let cut = vec![
            node("Shape", &["x"], &["shape"], vec![]),
            node("Gather", &["shape", "one"], &["length"], vec![]),
            node("Slice", &["p", "zero", "length", "one"], &["cut"], vec![]),
            node("Add", &["x", "cut"], &["y"], vec![]),
        ];
        let list = |name: &str, value: i64| TensorProto::of_integers(name, &[1], &[value]);
        let weights = || vec![weight("p", &[1, 512, 48]), list("zero", 0), list("one", 1)];
        proposes(&interface("x[N,s,h]", weights(), cut.clone()), "{ batch: 1, h: 48, s: 128 }");
        let long = proposed(&interface("x[N,s,h]", weights(), cut), &[("batch", 1), ("s", 600), ("h", 48)]);
        assert!(long.starts_with("`s` (dimension 1 of `x`) is 600, and `cut` of Add asks for 512"), "{long}");
    }

    #[test]
    fn sizes_that_do_not_fit_are_told_with_input_dimension_and_weight() {
        let convolution =
            vec![NodeProto { name: Some("/conv_in".to_owned()), ..node("Conv", &["x", "w"], &["y"], vec![]) }];
        let unet = interface("x[batch_size,num_channels,h,?]", vec![weight("w", &[8, 4, 3, 3])], convolution);
        let asked = point(&[], &[("x", &[1, 128, 8, 8])]);
        let problem = unet.resolve(asked.asked(), |_| true).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "`num_channels` (dimension 1 of `x`) is 128, and `w` of Conv `/conv_in` asks for 4"
        );
        assert_eq!(problem.remedy(), "set `num_channels: 4`");
        let small = unet.resolve(point(&[], &[("x", &[1, 4, 8, 2])]).asked(), |_| true).unwrap_err();
        assert_eq!(
            (small.to_string(), small.remedy()),
            (
                "Conv `/conv_in` gets `x` with 2 in dimension 3, and `w` asks for 3 or more".to_owned(),
                "give the model inputs of other sizes".to_owned()
            )
        );
        assert!(unet.resolve(point(&[], &[("x", &[1, 4, 8, 8])]).asked(), |_| true).is_ok());
        let pair = vec![node("Add", &["a", "b"], &["y"], vec![])];
        let pair = interface("a[N,s] b[N,t]", vec![], pair);
        assert_eq!(proposed(&pair, &[("batch", 1), ("s", 7), ("t", 7)]), "[[1, 7], [1, 7]]");
        assert!(proposed(&pair, &[("batch", 1), ("s", 7), ("t", 8)]).contains("`b` asks for 8"));
    }

    #[test]
    fn what_may_never_run_demands_nothing() {
        let then = crate::proto::GraphProto {
            node: vec![node("Add", &["x", "w"], &["t"], vec![])],
            output: crate::sample::value_infos("t[...]"),
            ..Default::default()
        };
        let branch = |name: &str| AttributeProto::of_graph(name, then.clone());
        let nodes = vec![node("If", &["c"], &["y"], vec![branch("then_branch"), branch("else_branch")])];
        let choice = interface("c:bool[] x[N,s]", vec![weight("w", &[9])], nodes);
        assert!(choice.resolve(point(&[("batch", 1), ("s", 7)], &[]).asked(), |_| true).is_ok());
        assert_eq!(choice.signature().inputs[0].element, ElementType::Bool);
    }
}
