//! Arrays for timed inferences: of a file that an input names, or of the model's dataset.
//!
//! An array of the shape of its input is the same in every input set. One with a dimension more has a set in each of its
//! items. Where the leading dimension counts items and the array has more of them than a batch, set after set takes the
//! next batch; the last one is filled up from the first item on.

use std::path::{Path, PathBuf};

use super::source::Source;
use super::{DatasetError, Fitted, ModelData, fit, write_whole};
use experiment::{Dataset, InputPoint, Values};
use files::array::Array;
use onnx::{ElementType, KnownShape, Signature, TensorType, known_shapes};
use worker::backend::inputs::{POOL_LIMIT_BYTES, misfit};

/// A set larger than this is a damaged header rather than a wish.
const LARGEST_SET_BYTES: u64 = 4 << 30;

/// What files give a model at an input point.
#[derive(Clone, Debug, PartialEq)]
pub struct Fed {
    arrays: Vec<FedArray>,
    /// Input sets that the arrays hold.
    pub sets: u64,
}

/// The array of one input.
#[derive(Clone, Debug, PartialEq)]
struct FedArray {
    input: String,
    element: ElementType,
    /// The shape of a set.
    shape: Vec<u64>,
    /// Where it is, by which name.
    from: Dataset,
    array: String,
    cut: Cut,
}

/// How an array becomes input sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// It is one, for all of them.
    Whole,
    /// Each item is one; so many.
    Sets(u64),
    /// A batch of its items is one; so many items.
    Items(u64),
}

/// Refuses values that the inputs of a model cannot have.
///
/// # Errors
///
/// An input that it has not, and values of another type.
pub(in crate::run) fn check_values(point: &InputPoint, signature: &Signature) -> Result<(), DatasetError> {
    let names = || signature.inputs.iter().map(|input| input.name.clone()).collect();
    if let Some(name) = point.tensors.keys().find(|name| !signature.inputs.iter().any(|input| input.name == **name)) {
        return Err(DatasetError::NoInput { name: name.clone(), known: names() });
    }
    for input in &signature.inputs {
        let reason = point.values_of(&input.name).and_then(|values| misfit(values, &input.element));
        if let Some(reason) = reason {
            return Err(DatasetError::Fill { input: input.name.clone(), reason });
        }
    }
    Ok(())
}

/// Finds the arrays for a model at an input point, and the point with the shapes that they give it.
///
/// # Errors
///
/// Files that cannot be read, and arrays that are missing or do not fit.
pub(in crate::run) fn feed(
    point: &InputPoint,
    signature: &Signature,
    data: Option<&ModelData>,
) -> Result<(InputPoint, Fed), DatasetError> {
    // A batch that the model has not is a reason to skip its cells, which is reported there.
    let Ok(known) = known_shapes(signature, point.sizes()) else {
        return Ok((point.clone(), Fed { arrays: Vec::new(), sets: 1 }));
    };
    let file = point.file.as_ref().map(|file| Dataset::of_file(file.path.clone()));
    let opened = file.map(|file| Ok::<_, DatasetError>((Source::open(&file)?, file))).transpose()?;
    let from_file: Vec<TensorType> =
        signature.inputs.iter().filter(|input| point.values_of(&input.name).is_none()).cloned().collect();
    let mut arrays = Vec::new();
    for (input, known) in signature.inputs.iter().zip(&known) {
        match (point.values_of(&input.name), &opened) {
            (None, Some((source, file))) => arrays.push(of_file(source, file, &from_file, input, known)?),
            (Some(Values::Dataset), _) => arrays.push(of_dataset(data, input, known)?),
            _ => {}
        }
    }
    let sets = sets(&arrays)?;
    let mut sized = point.clone();
    sized.shapes.extend(arrays.iter().map(|array| (array.input.clone(), array.shape.clone())));
    Ok((sized, Fed { arrays, sets }))
}

/// Names of the arrays in the file of an input point; none without one.
///
/// # Errors
///
/// A file that cannot be read.
pub(in crate::run) fn names(point: &InputPoint) -> Result<Vec<String>, DatasetError> {
    let source = point.file.as_ref().map(|file| Source::open(&Dataset::of_file(file.path.clone()))).transpose()?;
    Ok(source.into_iter().flat_map(|source| source.heads).map(|head| head.name).collect())
}

/// Opens a file for a model of which nothing is known, as with the mock backend.
///
/// # Errors
///
/// A file that cannot be read.
pub(in crate::run) fn open(point: &InputPoint) -> Result<(), DatasetError> {
    let file = point.file.as_ref().map(|file| Dataset::of_file(file.path.clone()));
    file.map_or(Ok(()), |file| Source::open(&file).map(|_| ()))
}

fn of_file(
    source: &Source,
    file: &Dataset,
    inputs: &[TensorType],
    input: &TensorType,
    known: &KnownShape,
) -> Result<FedArray, DatasetError> {
    let heads: Vec<_> = source.heads.iter().collect();
    let head = fit::array_for(file, source, &heads, inputs, input)?;
    if !Array::may_be_cast(&head.element, &input.element) {
        let (array, element) = (head.name.clone(), head.element.clone());
        return Err(DatasetError::Element { array, element, input: input.to_string() });
    }
    let fits = |shape: &[u64], known: &[Option<u64>]| {
        shape.len() == known.len() && shape.iter().zip(known).all(|(size, known)| known.is_none_or(|it| it == *size))
    };
    let (stored, array) = (head.shape.as_slice(), head.name.clone());
    let misfit = || DatasetError::Set { array: array.clone(), shape: stored.to_vec(), input: shape_text(input, known) };
    let (shape, cut) = match (&known.sizes, stored.split_first()) {
        (None, _) => (stored.to_vec(), Cut::Whole),
        (Some(sizes), _) if fits(stored, sizes) => (stored.to_vec(), Cut::Whole),
        (Some(sizes), Some((sets, shape))) if fits(shape, sizes) => (shape.to_vec(), Cut::Sets(*sets)),
        (Some(sizes), Some((items, rest))) if known.counts_items && fits(rest, sizes.get(1..).unwrap_or_default()) => {
            let batch = sizes.first().copied().flatten().ok_or_else(misfit)?;
            (std::iter::once(batch).chain(rest.iter().copied()).collect(), Cut::Items(*items))
        }
        _ => return Err(misfit()),
    };
    if stored.first() == Some(&0) && (cut != Cut::Whole || known.counts_items) {
        return Err(DatasetError::NoItems { array });
    }
    let fed =
        FedArray { input: input.name.clone(), element: input.element.clone(), shape, from: file.clone(), array, cut };
    if fed.set_bytes() > LARGEST_SET_BYTES {
        return Err(DatasetError::TooLarge { array: fed.array, shape: fed.shape });
    }
    Ok(fed)
}

/// The input as the specification and the model have it: `x: float32 [8, 3, ?]`.
fn shape_text(input: &TensorType, known: &KnownShape) -> String {
    let word = |size: &Option<u64>| size.map_or_else(|| "?".to_owned(), |size| size.to_string());
    match &known.sizes {
        Some(sizes) => {
            format!("{}: {} [{}]", input.name, input.element, sizes.iter().map(word).collect::<Vec<_>>().join(", "))
        }
        None => input.to_string(),
    }
}

fn of_dataset(data: Option<&ModelData>, input: &TensorType, known: &KnownShape) -> Result<FedArray, DatasetError> {
    let ModelData { dataset, fitted: Fitted { items, inputs } } = data.ok_or(DatasetError::NoDataset)?;
    let missing = || DatasetError::Nothing { input: input.to_string(), known: Vec::new() };
    let fitted = inputs.iter().find(|fitted| fitted.input == input.name).ok_or_else(missing)?;
    // Where nothing says how many, they are fed one by one.
    let batch = known.sizes.as_ref().and_then(|sizes| sizes.first().copied().flatten()).unwrap_or(1);
    Ok(FedArray {
        input: input.name.clone(),
        element: input.element.clone(),
        shape: std::iter::once(batch).chain(fitted.item.iter().copied()).collect(),
        from: dataset.clone(),
        array: fitted.array.clone(),
        cut: Cut::Items(*items),
    })
}

/// How many input sets the arrays hold.
fn sets(arrays: &[FedArray]) -> Result<u64, DatasetError> {
    let mut cut = arrays.iter().filter(|array| array.cut != Cut::Whole);
    let Some(first) = cut.next() else { return Ok(1) };
    match cut.find(|other| other.sets() != first.sets()) {
        None => Ok(first.sets()),
        Some(other) => Err(DatasetError::Sets {
            array: first.array.clone(),
            sets: first.sets(),
            other: other.array.clone(),
            other_sets: other.sets(),
        }),
    }
}

impl FedArray {
    fn sets(&self) -> u64 {
        match self.cut {
            Cut::Whole => 1,
            Cut::Sets(sets) => sets,
            Cut::Items(items) => items.div_ceil(self.batch()),
        }
    }

    fn batch(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1).max(1)
    }

    fn set_bytes(&self) -> u64 {
        let size = self.element.size_bytes().unwrap_or(1);
        self.shape.iter().fold(size, |product, length| product.saturating_mul(*length))
    }

    /// The first input sets, below each other and in the type of the input.
    fn read(&self, source: &mut Source, sets: u64) -> Result<Array, DatasetError> {
        let (items, item) = match self.cut {
            Cut::Whole => (1, self.shape.as_slice()),
            Cut::Sets(_) => (sets, self.shape.as_slice()),
            Cut::Items(items) => (items.min(sets.saturating_mul(self.batch())), &self.shape[1..]),
        };
        let stored = source.read(&self.array, if self.cut == Cut::Whole { u64::MAX } else { items })?;
        let element = stored.element.clone();
        // Rows of a table, and sets that are one array, have no dimension of their own yet.
        let mut array = Array { shape: std::iter::once(items).chain(item.iter().copied()).collect(), ..stored };
        let mut sets_read = items;
        if let Cut::Items(_) = self.cut {
            let wanted = sets.saturating_mul(self.batch());
            let all = array.clone();
            while array.shape[0] < wanted {
                let mut more = all.clone();
                more.keep_items(wanted - array.shape[0]);
                array.append(&more);
            }
            sets_read = sets;
        }
        array.shape = std::iter::once(sets_read).chain(self.shape.iter().copied()).collect();
        let misfit = || DatasetError::Values { array: self.array.clone(), element: self.element.clone() };
        debug_assert!(Array::may_be_cast(&element, &self.element));
        array.cast(&self.element).ok_or_else(misfit)
    }
}

impl Fed {
    /// How many sets are used where so many are wanted: no more than there are and fit into the pool.
    pub(in crate::run) fn used(&self, wanted: u32) -> u64 {
        let bytes = self.arrays.iter().map(FedArray::set_bytes).fold(0, u64::saturating_add);
        let fitting = POOL_LIMIT_BYTES.checked_div(bytes).unwrap_or(u64::MAX);
        self.sets.min(wanted.into()).min(fitting).max(1)
    }

    /// Whether a tensor is filled by an array.
    pub(in crate::run) fn has(&self, tensor: &str) -> bool {
        self.arrays.iter().any(|array| array.input == tensor)
    }

    /// Where [`Fed::write`] puts the sets of a tensor.
    pub(in crate::run) fn file(&self, folder: &Path, tensor: &str) -> Option<PathBuf> {
        let index = self.arrays.iter().position(|array| array.input == tensor)?;
        Some(folder.join(format!("{index}.npy")))
    }

    /// Reads what is used, and says in words what is unusual about it.
    ///
    /// # Errors
    ///
    /// Content that is damaged or that the inputs cannot have.
    pub(in crate::run) fn look(&self, wanted: u32) -> Result<Vec<String>, DatasetError> {
        let used = self.used(wanted);
        let mut doubts = Vec::new();
        self.each(used, &mut |index, array| {
            if let Some(element) = array.first_non_finite() {
                let FedArray { array: name, input, .. } = &self.arrays[index];
                let set = element as u64 / (array.len() as u64 / array.shape[0].max(1)).max(1);
                doubts.push(format!("array `{name}` for the input `{input}` has NaN or infinity in input set {set}"));
            }
            Ok(())
        })?;
        if used < self.sets {
            let reason = match used < u64::from(wanted) {
                true => "64 MiB hold no more".to_owned(),
                false => format!("`measure: {{ inputs: {} }}` uses all", self.sets),
            };
            doubts.push(format!("the first {used} of {} input sets are used; {reason}", self.sets));
        }
        Ok(doubts)
    }

    /// Refuses ids of tokens that a model does not have.
    ///
    /// # Errors
    ///
    /// The first of them, and as [`Fed::look`].
    pub(in crate::run) fn check_ids(&self, input: &str, vocabulary: u64, wanted: u32) -> Result<(), DatasetError> {
        for array in self.arrays.iter().filter(|array| array.input == input) {
            if let Cut::Items(prompts) = array.cut
                && prompts < array.batch()
            {
                return Err(DatasetError::FewPrompts { array: array.array.clone(), prompts, batch: array.batch() });
            }
        }
        self.each(self.used(wanted), &mut |index, array| {
            let is_of_ids = self.arrays[index].input == input;
            let is_id = |id: &f64| !is_of_ids || (*id >= 0.0 && *id < vocabulary as f64);
            match array.numbers().into_iter().flatten().find(|id| !is_id(id)) {
                Some(id) => Err(DatasetError::BeyondVocabulary {
                    array: self.arrays[index].array.clone(),
                    id,
                    input: input.to_owned(),
                    vocabulary,
                }),
                None => Ok(()),
            }
        })
    }

    /// Writes the sets that are used into a folder, once, as workers read them.
    ///
    /// # Errors
    ///
    /// As [`Fed::look`], and a folder that cannot be written.
    pub(in crate::run) fn write(&self, folder: &Path, wanted: u32) -> Result<(), DatasetError> {
        let path = |index: usize| folder.join(format!("{index}.npy"));
        if (0..self.arrays.len()).all(|index| path(index).is_file()) {
            return Ok(());
        }
        let unwritable = |path: &Path| {
            let path = path.to_owned();
            move |source| DatasetError::Write { path, source }
        };
        std::fs::create_dir_all(folder).map_err(unwritable(folder))?;
        self.each(self.used(wanted), &mut |index, array| {
            write_whole(&path(index), &array).map_err(unwritable(&path(index)))
        })
    }

    fn each(
        &self,
        sets: u64,
        take: &mut dyn FnMut(usize, Array) -> Result<(), DatasetError>,
    ) -> Result<(), DatasetError> {
        for (index, array) in self.arrays.iter().enumerate() {
            take(index, array.read(&mut Source::open(&array.from)?, sets)?)?;
        }
        Ok(())
    }
}
