//! From a signature and a graph to a decoder.
//!
//! Input: the signature, the graph where it can be read, and what a configuration beside the file declares. Output: a
//! [`Decoder`]; nothing where the model takes no tokens or has no cache of earlier ones; or why it cannot be called.

use std::collections::BTreeMap;

use super::config::{Declared, NamedTensor};
use super::error::NameOrigin;
use super::names::{CacheName, numbered, role_of};
use super::{CacheKind, Decoder, DecoderError, DecoderInput, Extent, Role, fixed_positions};
use crate::infer::infer;
use crate::proto::{GraphProto, ModelProto, NodeProto};
use crate::resolve::ResolvedTensor;
use crate::signature::{Dimension, Signature, TensorType};

/// What is known of a decoder besides its signature.
struct Sources<'a> {
    signature: &'a Signature,
    attention: Attention,
    declared: Declared,
    /// Outputs that are caches.
    presents: BTreeMap<CacheName, &'a TensorType>,
}

/// Reads what a model is, if it is a decoder with a cache.
pub(crate) fn recognise(
    signature: &Signature,
    graph: Option<&ModelProto>,
    declared: Result<Option<Declared>, DecoderError>,
) -> Option<Result<Decoder, DecoderError>> {
    let (declared, problem) = match declared {
        Ok(declared) => (declared.unwrap_or_default(), None),
        Err(problem) => (Declared::default(), Some(problem)),
    };
    if let Some(problem) = unmatched(signature, &declared) {
        return Some(Err(problem));
    }
    let has_ids = signature.inputs.iter().any(|input| role(input, &declared) == Some(Role::Ids));
    let is_of_cache = |input: &&TensorType| input.shape.as_ref().is_none_or(|shape| shape.len() >= 3);
    let mut of_caches = signature.inputs.iter().filter(is_of_cache);
    let has_cache = of_caches.any(|input| cache_of(input, &declared).is_some_and(|name| !name.is_cross()));
    if !has_ids || !has_cache {
        return None;
    }
    if let Some(problem) = problem {
        return Some(Err(problem));
    }
    let presents = signature.outputs.iter().filter(|output| output.element.is_float());
    let presents = presents.filter_map(|output| Some((CacheName::of(&output.name, declared.caches(true))?, output)));
    let attention = graph.map(|graph| Attention::of(graph, signature)).unwrap_or_default();
    Some(Sources { signature, attention, presents: presents.collect(), declared }.decoder())
}

/// A name that no tensor has: of the specification any, of a configuration of this model that of a cache, unless the
/// specification names caches there too.
fn unmatched(signature: &Signature, declared: &Declared) -> Option<DecoderError> {
    let tensors = |is_output: bool| if is_output { &signature.outputs } else { &signature.inputs };
    let is_own = |name: &NamedTensor| name.origin == Some(NameOrigin::Specification);
    let is_overridden = |side: bool| declared.tensors.iter().any(|own| is_own(own) && own.is_output == side);
    let must_match = |name: &&NamedTensor| match &name.origin {
        Some(NameOrigin::Specification) => true,
        Some(NameOrigin::File(_)) => name.is_of_caches() && !is_overridden(name.is_output),
        None => false,
    };
    let has = |tensor: &TensorType, name: &NamedTensor| match name.is_of_caches() {
        true => numbered(&tensor.name, &name.name).is_some(),
        false => tensor.name == name.name,
    };
    let is_missing = |name: &&NamedTensor| !tensors(name.is_output).iter().any(|tensor| has(tensor, name));
    let name = declared.tensors.iter().filter(must_match).find(is_missing)?;
    let mut known: Vec<String> = tensors(name.is_output)
        .iter()
        .filter_map(|tensor| if name.is_of_caches() { pattern_of(&tensor.name) } else { Some(tensor.name.clone()) })
        .collect();
    let mut seen = std::collections::HashSet::new();
    known.retain(|name| seen.insert(name.clone()));
    let side = if name.is_output { "outputs" } else { "inputs" };
    let (key, tensor) = (format!("{side}.{}", name.key), name.name.clone());
    Some(DecoderError::NoTensor { origin: name.origin.clone()?, key, tensor, known })
}

/// A name with `%d` in place of its first number; `None` where it has none.
fn pattern_of(name: &str) -> Option<String> {
    let begin = name.find(|character: char| character.is_ascii_digit())?;
    let rest = name[begin..].trim_start_matches(|character: char| character.is_ascii_digit());
    Some(format!("{}%d{rest}", &name[..begin]))
}

/// Which cache an input is.
fn cache_of(input: &TensorType, declared: &Declared) -> Option<CacheName> {
    CacheName::of(&input.name, declared.caches(false)).filter(|_| input.element.is_float())
}

/// What an input is for that is no cache: by the configuration, else by its own name.
fn role(input: &TensorType, declared: &Declared) -> Option<Role> {
    let mut named = declared.tensors.iter().filter(|named| !named.is_output && named.name == input.name);
    let known = named.find_map(|named| role_of(&named.key));
    let role = known.or_else(|| role_of(&input.name))?;
    // Ids are integers; what an encoder has made and a mask may be anything.
    (role != Role::Ids || !input.element.is_float()).then_some(role)
}

impl Sources<'_> {
    fn decoder(self) -> Result<Decoder, DecoderError> {
        let mut inputs = Vec::with_capacity(self.signature.inputs.len());
        for input in &self.signature.inputs {
            inputs.push(match cache_of(input, &self.declared) {
                Some(name) => self.cache(input, &name)?,
                None => self.plain(input)?,
            });
        }
        let layers: std::collections::BTreeSet<u64> = self.presents.keys().map(CacheName::layer).collect();
        let logits = self.logits();
        let vocabulary = logits.and_then(|logits| match logits.dimensions().last() {
            Some(Dimension::Fixed(size)) => Some(*size),
            _ => None,
        });
        let mut decoder = Decoder {
            logits: logits.map(|logits| logits.name.clone()).unwrap_or_default(),
            layers: layers.len() as u64,
            heads: self.attention.heads.or(self.declared.heads),
            key_heads: None,
            head_size: None,
            vocabulary: vocabulary.or(self.declared.vocabulary),
            context: None,
            caches: self.kinds(&inputs),
            takes_one_sequence: self.attention.is_grouped,
            inputs,
        };
        (decoder.key_heads, decoder.head_size) = heads_of(&decoder);
        let fixed = decoder.pasts().find_map(|past| Some((past, fixed_positions(past)?)));
        if let Some((past, positions)) = fixed.filter(|_| !decoder.caches.contains(&CacheKind::Static)) {
            return Err(DecoderError::FixedCache { tensor: past.name.clone(), positions });
        }
        let rows = self.attention.positions.or_else(|| decoder.pasts().find_map(fixed_positions));
        decoder.context = [self.declared.context, rows].into_iter().flatten().min();
        self.check(&decoder, vocabulary, rows)?;
        Ok(decoder)
    }

    /// What a configuration declares must be what the file has.
    fn check(&self, decoder: &Decoder, vocabulary: Option<u64>, rows: Option<u64>) -> Result<(), DecoderError> {
        let declared = &self.declared;
        let cache = decoder.pasts().next().map(|past| past.name.clone()).unwrap_or_default();
        let of_heads = if decoder.pasts().all(|past| past.shape.len() > 3) { declared.key_heads } else { None };
        let has = |tensor: &str| format!("`{tensor}` has");
        let of_heads_too = declared.head_size.filter(|_| of_heads.is_some());
        let differs = [
            ("layers ", declared.layers, Some(decoder.layers), "its outputs have".to_owned()),
            ("heads of keys and values ", of_heads, decoder.key_heads, has(&cache)),
            ("head size ", of_heads_too, decoder.head_size, has(&cache)),
        ];
        // More than there is; a table may well be longer than what is used of it.
        let exceeds = [
            ("a vocabulary of ", declared.vocabulary, vocabulary, has(&decoder.logits)),
            ("a context of ", declared.context, rows, has(&self.attention.table)),
        ];
        let differs = differs.into_iter().filter(|(_, declared, found, _)| found.is_some() && declared != found);
        let exceeds = exceeds.into_iter().filter(|(_, declared, found, _)| found.is_some() && declared > found);
        match differs.chain(exceeds).find_map(|(what, declared, found, where_)| Some((what, declared?, found?, where_)))
        {
            Some((what, declared, found, holder)) => {
                let (file, declared) = (self.declared.file.clone(), format!("{what}{declared}"));
                Err(DecoderError::Contradiction { file, declared, holder, found })
            }
            None => Ok(()),
        }
    }

    /// The output that scores tokens.
    fn logits(&self) -> Option<&TensorType> {
        let outputs = &self.signature.outputs;
        let named = |name: &str| outputs.iter().find(|output| output.name == name);
        let is_logits = |tensor: &&NamedTensor| tensor.is_output && tensor.key == "logits";
        let declared = self.declared.tensors.iter().find(is_logits).and_then(|tensor| named(&tensor.name));
        // What has another name may be anything: hidden states are no scores.
        let is_scores = |output: &&TensorType| {
            let name = output.name.to_lowercase();
            ["logits", "scores"].iter().any(|word| name.contains(word))
        };
        declared.or_else(|| named("logits")).or_else(|| outputs.iter().find(is_scores))
    }

    fn kinds(&self, inputs: &[DecoderInput]) -> Vec<CacheKind> {
        let is_written = inputs.iter().any(|input| input.role == Role::WriteIndex);
        if is_written || self.attention.scatters {
            return vec![CacheKind::Static];
        }
        match (self.attention.shares, self.declared.shares_buffer) {
            (false, _) => vec![CacheKind::Grown, CacheKind::Copied],
            (true, Some(false)) => vec![CacheKind::Grown, CacheKind::Shared, CacheKind::Copied],
            (true, _) => vec![CacheKind::Shared, CacheKind::Grown, CacheKind::Copied],
        }
    }

    fn cache(&self, input: &TensorType, name: &CacheName) -> Result<DecoderInput, DecoderError> {
        let present = self.presents.get(name);
        if present.is_none() && !name.is_cross() {
            return Err(DecoderError::NotGivenBack { tensor: input.name.clone() });
        }
        let rank = || DecoderError::Rank { tensor: input.name.clone(), shape: input.shape_text() };
        let dimensions = input.shape.as_deref().filter(|shape| (3..=5).contains(&shape.len())).ok_or_else(rank)?;
        let last = dimensions.len() - 1;
        // Keys and values in one tensor come first there.
        let batch = usize::from(last == 4);
        let is_open = |axis: &usize| !matches!(dimensions[*axis], Dimension::Fixed(_));
        let open: Vec<usize> = (batch + 1..=last).filter(is_open).collect();
        let positions = match open[..] {
            [only] => only,
            _ => last - 1,
        };
        let mut shape = Vec::with_capacity(dimensions.len());
        for (axis, dimension) in dimensions.iter().enumerate() {
            shape.push(match dimension {
                Dimension::Fixed(size) => Extent::Fixed(*size),
                _ if axis == batch => Extent::Batch,
                _ if axis == positions && name.is_cross() => Extent::Encoder,
                _ if axis == positions => Extent::Positions,
                _ => {
                    let own = present.and_then(|present| match present.dimensions().get(axis) {
                        Some(Dimension::Fixed(size)) => Some(*size),
                        _ => None,
                    });
                    let known = if axis == last { self.head_size() } else { self.key_heads() };
                    let unsized_ = || DecoderError::Unsized { tensor: input.name.clone(), axis };
                    Extent::Fixed(own.or(known).ok_or_else(unsized_)?)
                }
            });
        }
        // What is not given back is made by the encoder, once.
        let role = match (name.is_cross(), present) {
            (false, _) => Role::Past,
            (true, Some(_)) => Role::Cross,
            (true, None) => Role::EncoderStates,
        };
        let present = present.map(|present| present.name.clone());
        Ok(DecoderInput { name: input.name.clone(), element: input.element.clone(), shape, role, present })
    }

    fn head_size(&self) -> Option<u64> {
        self.attention.head_size.or(self.declared.head_size).or(self.declared.usual_head_size)
    }

    fn key_heads(&self) -> Option<u64> {
        self.attention.key_heads.or(self.declared.key_heads)
    }

    fn plain(&self, input: &TensorType) -> Result<DecoderInput, DecoderError> {
        let unknown = || DecoderError::Unknown { tensor: input.name.clone() };
        let role = role(input, &self.declared).ok_or_else(unknown)?;
        let dimensions = input.dimensions();
        let usual: &[Extent] = match (role, dimensions.len()) {
            (Role::Ids | Role::Segments | Role::Positions, 2) => &[Extent::Batch, Extent::Tokens],
            (Role::Ids | Role::Positions, 1) => &[Extent::Tokens],
            (Role::Positions, 3) => &[Extent::Fixed(3), Extent::Batch, Extent::Tokens],
            (Role::Mask, 2) => &[Extent::Batch, Extent::Total],
            (Role::UsesCache | Role::LogitsKept | Role::Length, 0) => &[],
            (Role::UsesCache | Role::LogitsKept, 1) => &[Extent::Fixed(1)],
            (Role::LastPosition | Role::Length | Role::WriteIndex, 1) => &[Extent::Batch],
            (Role::LastPosition, 2) => &[Extent::Batch, Extent::Fixed(1)],
            (Role::EncoderMask, 2) => &[Extent::Batch, Extent::Encoder],
            (Role::EncoderStates, 3) => &[Extent::Batch, Extent::Encoder, Extent::Fixed(0)],
            _ => return Err(unknown()),
        };
        let mut shape = Vec::with_capacity(usual.len());
        for (axis, (usual, dimension)) in usual.iter().zip(dimensions).enumerate() {
            shape.push(match (dimension, usual) {
                // A mask of fixed length would say that all its positions are seen.
                (Dimension::Fixed(positions), Extent::Total) => {
                    let (tensor, positions) = (input.name.clone(), *positions);
                    return Err(DecoderError::FixedMask { tensor, positions });
                }
                (Dimension::Fixed(size), _) => Extent::Fixed(*size),
                (_, Extent::Fixed(0)) => {
                    return Err(DecoderError::Unsized { tensor: input.name.clone(), axis });
                }
                (_, usual) => *usual,
            });
        }
        Ok(DecoderInput { name: input.name.clone(), element: input.element.clone(), shape, role, present: None })
    }
}

/// Heads and their size, as the caches of a decoder have them.
fn heads_of(decoder: &Decoder) -> (Option<u64>, Option<u64>) {
    let Some(past) = decoder.pasts().next().filter(|past| past.shape.len() > 3) else { return (None, None) };
    let sizes: Vec<u64> = past
        .shape
        .iter()
        .skip(past.shape.len() - 3)
        .filter_map(|extent| if let Extent::Fixed(size) = extent { Some(*size) } else { None })
        .collect();
    match sizes[..] {
        [heads, size] => (Some(heads), Some(size)),
        // Heads, fixed positions, and the size.
        [heads, _, size] => (Some(heads), Some(size)),
        _ => (None, None),
    }
}

/// What the nodes of attention say.
#[derive(Debug, Default)]
struct Attention {
    heads: Option<u64>,
    key_heads: Option<u64>,
    head_size: Option<u64>,
    /// Rows of the table of positions.
    positions: Option<u64>,
    /// Its name.
    table: String,
    /// One of them may write into the buffer that it reads.
    shares: bool,
    /// A node writes at an index.
    scatters: bool,
    /// One of them is ONNX Runtime's GroupQueryAttention.
    is_grouped: bool,
}

/// Operators of ONNX Runtime that write where they read.
const IN_PLACE: [&str; 3] = ["GroupQueryAttention", "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention"];

impl Attention {
    fn of(model: &ModelProto, signature: &Signature) -> Self {
        let Some(graph) = model.graph.as_ref() else { return Attention::default() };
        let mut found = Attention::default();
        let nodes = graph.node.iter().chain(model.functions.iter().flat_map(|function| &function.node));
        nodes.for_each(|node| found.see(node));
        // A merged model has them in branches, and its weights may lie there too.
        let (mut inside, mut graphs) = (vec![graph], Vec::new());
        while let Some(graph) = inside.pop() {
            inside.extend(graph.node.iter().flat_map(NodeProto::graphs));
            graphs.push(graph);
        }
        let all = || graphs.iter().flat_map(|graph| &graph.node);
        if let Some(node) = all().find(|node| node.op_type() == IN_PLACE[0]) {
            found.head_size = head_size(model, signature, node);
            let table = node.input.get(7).filter(|name| !name.is_empty());
            found.read_table(&graphs, table);
        }
        let learned = all().find(|node| reads_positions(node, signature)).and_then(|node| node.input.first());
        found.read_table(&graphs, learned);
        found
    }

    fn see(&mut self, node: &NodeProto) {
        let number = |name: &str| node.int(name).and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
        let is_attention = node.op_type().ends_with("Attention");
        if is_attention {
            self.heads = self.heads.or(number("num_heads")).or(number("q_num_heads"));
            self.key_heads = self.key_heads.or(number("kv_num_heads"));
            let is_in_place = IN_PLACE.contains(&node.op_type()) || node.int("past_present_share_buffer") == Some(1);
            self.shares |= is_in_place;
        }
        self.is_grouped |= node.op_type() == IN_PLACE[0];
        self.scatters |= node.op_type() == "TensorScatter" && node.is_standard();
        node.graphs().flat_map(|graph| &graph.node).for_each(|node| self.see(node));
    }

    /// The rows of a table, where none is known.
    fn read_table(&mut self, graphs: &[&GraphProto], name: Option<&String>) {
        let Some(name) = name else { return };
        let mut weights = graphs.iter().flat_map(|graph| &graph.initializer);
        let table = weights.find(|tensor| tensor.name() == name);
        let rows = table.and_then(|table| u64::try_from(*table.dims.first()?).ok());
        if let Some(rows) = rows.filter(|_| self.positions.is_none()) {
            (self.positions, self.table) = (Some(rows), name.clone());
        }
    }
}

/// Whether a node reads rows of a table by the positions that the model is given.
fn reads_positions(node: &NodeProto, signature: &Signature) -> bool {
    let index = node.input.get(1);
    let is_read = |input: &TensorType| Some(&input.name) == index && role_of(&input.name) == Some(Role::Positions);
    node.op_type() == "Gather" && node.int("axis").unwrap_or(0) == 0 && signature.inputs.iter().any(is_read)
}

/// The width of a head, from the width of what an attention node is given: queries, or queries, keys and values together.
fn head_size(model: &ModelProto, signature: &Signature, node: &NodeProto) -> Option<u64> {
    let guessed = |input: &TensorType| ResolvedTensor {
        name: input.name.clone(),
        element: input.element.clone(),
        shape: input
            .dimensions()
            .iter()
            .map(|size| if let Dimension::Fixed(size) = size { *size } else { 1 })
            .collect(),
        integers: None,
        is_counted: false,
    };
    let tensors: Vec<ResolvedTensor> = signature.inputs.iter().map(guessed).collect();
    let inferred = infer(model, &tensors);
    let width = (*inferred.value(node.input.first()?)?.shape.as_ref()?.last()?)?;
    let heads = u64::try_from(node.int("num_heads")?).ok()?;
    let key_heads = u64::try_from(node.int("kv_num_heads")?).ok()?;
    let is_packed = node.input.get(1).is_none_or(String::is_empty);
    let parts = if is_packed { heads.checked_add(key_heads.checked_mul(2)?)? } else { heads };
    width.checked_div(parts).filter(|size| *size > 0 && size * parts == width)
}
