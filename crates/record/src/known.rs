//! What a manifest knows of a cell from what passes found: its file, its library, its outputs, its limits.

use std::collections::{BTreeMap, HashMap};

use super::found::{CellFidelity, CellRate, CellSearch, VariantAccuracy, VariantFile};
use super::roofline::{Bandwidth, FileArithmetic, Launching, Peak, Roofline, Stream, Traffic, cpu};
use super::{Manifest, RuntimeUsed};
use experiment::{Device, LowerPrecision, Point, Precision, RuntimeIndex, VariantIndex};
use onnx::cost::Arithmetic;
use onnx::precision::ProviderClass;
use plan::Cell;

/// Half precision that is less than so many times as fast as float32 on a processor is float32 behind casts: where it is
/// the processor's own, it is twice as fast.
const HALF_IS_FASTER: f64 = 1.5;

impl Manifest {
    /// The files of variants that are not run with the model's own.
    pub fn variant_files(&self) -> &[VariantFile] {
        self.findings.convert.as_ref().map_or(&[], |found| &found.variant_files)
    }

    /// The file of a cell's variant, if it is not the model's own.
    pub fn variant_file(&self, cell: &Cell) -> Option<&VariantFile> {
        let provider = ProviderClass::of(&self.experiment.devices.get(cell.device().index())?.provider);
        let is_of_cell =
            |file: &&VariantFile| (file.model, file.variant, file.provider) == (cell.model(), cell.variant(), provider);
        self.variant_files().iter().find(is_of_cell)
    }

    /// Iterations per sample by group, from the rehearsal; 0 where no cell of the group ran.
    pub fn iterations(&self) -> &[u32] {
        self.findings.rehearsal.as_ref().map_or(&[], |found| &found.iterations)
    }

    /// What a search found about the batch of a cell.
    pub fn search_of(&self, cell: &Cell) -> Option<&CellSearch> {
        let found = self.findings.search.as_ref()?;
        found.searches.iter().find(|search| {
            let searched = self.plan.cells.get(search.cell as usize);
            searched.is_some_and(|searched| searched.id == cell.id)
        })
    }

    /// How many queries of a cell are served at once.
    pub fn callers_of(&self, cell: &Cell) -> u32 {
        let variant = self.experiment.variants.get(cell.variant().index());
        variant.zip(self.plan.input_of(cell).load).map_or(1, |(variant, load)| load.callers(variant.sessions))
    }

    /// The rate of a cell that looks for the largest.
    pub fn rate_of(&self, cell: &Cell) -> Option<&CellRate> {
        let rates = self.findings.rates.as_ref()?;
        rates.cells.iter().find(|rate| self.plan.cells.get(rate.cell as usize).is_some_and(|known| known.id == cell.id))
    }

    /// What cells are run with, in the order of the specification, each with its name if it names any.
    pub fn libraries(&self) -> impl Iterator<Item = (Option<&str>, RuntimeUsed)> {
        let named = self.experiment.runtimes.iter().zip(&self.runtimes).enumerate();
        let named =
            named.filter_map(|(index, (runtime, used))| Some((Some(runtime.name.as_str()), used.as_ref()?, index)));
        let alone = self.runtime.iter().map(|used| (None, used, 0));
        alone.chain(named).map(|(name, used, index)| (name, self.as_it_said(used, index.into())))
    }

    /// A library with what it said of itself.
    fn as_it_said(&self, used: &RuntimeUsed, runtime: RuntimeIndex) -> RuntimeUsed {
        let mut used = used.clone();
        let libraries = self.findings.rehearsal.iter().flat_map(|found| &found.libraries);
        if let Some(said) = libraries.into_iter().find(|said| said.runtime == runtime) {
            used.version = said.version.clone().or(used.version);
            used.build.clone_from(&said.build);
        }
        used
    }

    /// How like the reference's the outputs of cells are, on data where a variant was run over some, in plan order.
    pub fn fidelity(&self) -> Vec<&CellFidelity> {
        let on_data = self.findings.accuracy.as_ref().map_or(&[][..], |found| &found.fidelity);
        let random = self.findings.outputs.as_ref().map_or(&[][..], |found| &found.fidelity);
        let by_cell: BTreeMap<u32, &CellFidelity> =
            random.iter().chain(on_data).map(|known| (known.cell, known)).collect();
        by_cell.into_values().collect()
    }

    /// The variant that the outputs of a cell's are compared with on its device: the baseline's, else the first as the
    /// model is stored, else the first.
    pub fn reference_variant(&self, cell: &Cell) -> VariantIndex {
        let plan = &self.plan;
        let baseline = || plan.baseline_of(cell).map(|index| plan.cells[index].variant());
        if let Some(baseline) = baseline().filter(|_| plan.compares::<VariantIndex>()) {
            return baseline;
        }
        let variants = &self.experiment.variants;
        variants.iter().position(|variant| variant.precision == Precision::Fp32).unwrap_or(0).into()
    }

    /// For each cell the one with that variant on the same device with the same runtime; where the cell has the variant
    /// itself, the first device with the first runtime. Of a merged record those of the same part.
    pub fn references_on_device(&self) -> Vec<Option<usize>> {
        let plan = &self.plan;
        let by_point: HashMap<Point, usize> = plan.runnable().map(|(index, cell)| (cell.at, index)).collect();
        let part = |cell: &Cell| plan.groups.get(cell.group as usize).map(|group| group.part);
        let mut first_of = HashMap::new();
        for (index, cell) in plan.runnable() {
            first_of.entry((part(cell), cell.model(), cell.input(), cell.variant())).or_insert(index);
        }
        let reference = |cell: &Cell| {
            let variant = self.reference_variant(cell);
            if cell.variant() == variant {
                let first = *first_of.get(&(part(cell), cell.model(), cell.input(), variant))?;
                return Some(first).filter(|index| plan.cells[*index].id != cell.id);
            }
            by_point.get(&cell.at.moved_to(variant)).copied()
        };
        plan.cells.iter().map(reference).collect()
    }

    /// Whether the outputs of a cell were compared with those of the baseline's variant on its own device and runtime.
    pub fn is_usual_reference(&self, known: &CellFidelity) -> bool {
        let cell = |index: u32| self.plan.cells.get(index as usize);
        let pair = known.reference.and_then(cell).zip(cell(known.cell));
        pair.is_some_and(|(reference, cell)| reference.at == cell.at.moved_to(self.reference_variant(cell)))
    }

    /// How right variants are on the data.
    pub fn accuracy(&self) -> &[VariantAccuracy] {
        self.findings.accuracy.as_ref().map_or(&[], |found| &found.accuracy)
    }

    /// How right a cell's variant is, if it was run with data.
    pub fn accuracy_of(&self, cell: &Cell) -> Option<&VariantAccuracy> {
        let is_like = |measured: &Cell| measured.differs_in_input_alone(cell);
        self.accuracy().iter().find(|known| self.plan.cells.get(known.cell as usize).is_some_and(is_like))
    }
}

impl Manifest {
    /// What the machine was seen to do; `None` where the pass did not run.
    fn seen(&self) -> Option<&Roofline> {
        self.findings.peak.as_ref()
    }

    /// Arithmetic that was seen; nothing where the costs of models are not known.
    pub fn peaks(&self) -> &[Peak] {
        self.seen().map_or(&[], |found| &found.peaks)
    }

    /// Bandwidths that were seen.
    pub fn bandwidths(&self) -> &[Bandwidth] {
        self.seen().map_or(&[], |found| &found.bandwidths)
    }

    /// What starting nodes was seen to take.
    pub fn launches(&self) -> &[Launching] {
        self.seen().map_or(&[], |found| &found.launches)
    }

    fn label_of_device(&self, cell: &Cell) -> String {
        self.experiment.devices.get(cell.device().index()).map_or_else(cpu, Device::label)
    }

    /// In which numbers the file of a cell is written: what the file says, and in records that do not have it what the
    /// variant does.
    fn written_in(&self, cell: &Cell) -> Arithmetic {
        let is_its = |file: &&FileArithmetic| (file.model, file.variant) == (cell.model(), cell.variant());
        if let Some(file) = self.seen().and_then(|found| found.files.iter().find(is_its)) {
            return file.arithmetic;
        }
        match self.precision_of(cell) {
            Precision::Fp32 => Arithmetic::Float32,
            Precision::Fp16 => Arithmetic::Float16,
            Precision::Bf16 => Arithmetic::Bfloat16,
            Precision::Int8 | Precision::Int4 => Arithmetic::Int8,
        }
    }

    /// In which numbers a cell multiplies: those of its file, unless the processor has no such arithmetic, or the provider
    /// computes float32 in less.
    pub(crate) fn arithmetic_of(&self, cell: &Cell) -> Arithmetic {
        let written = self.written_in(cell);
        let is_half = matches!(written, Arithmetic::Float16 | Arithmetic::Bfloat16);
        let is_cpu = self.experiment.devices.get(cell.device().index()).is_none_or(Device::is_cpu);
        let rate = |arithmetic| self.fastest(cell, arithmetic).map(|peak| peak.operations_per_s);
        match (rate(written), rate(Arithmetic::Float32)) {
            _ if written == Arithmetic::Float32 => self.float32_of(cell),
            (Some(half), Some(wide)) if is_half && is_cpu && half < HALF_IS_FASTER * wide => Arithmetic::Float32,
            _ => written,
        }
    }

    /// In which numbers the parts of a cell that are in float32 multiply, on its device and with its settings.
    pub fn float32_of(&self, cell: &Cell) -> Arithmetic {
        let lower = self.settings_of(cell).and_then(|(variant, device)| LowerPrecision::of(variant, device)?.to);
        lower.unwrap_or(Arithmetic::Float32)
    }

    fn precision_of(&self, cell: &Cell) -> Precision {
        self.experiment.variants.get(cell.variant().index()).map(|variant| variant.precision).unwrap_or_default()
    }

    /// What was seen on a cell's device with its threads, or with fewer: it could have used no more of them.
    fn fastest(&self, cell: &Cell, arithmetic: Arithmetic) -> Option<&Peak> {
        let (device, threads) = (self.label_of_device(cell), self.threads_of(cell));
        let is_usable =
            |peak: &&Peak| peak.device == device && peak.threads <= threads && peak.arithmetic == arithmetic;
        let peaks = self.peaks().iter().filter(is_usable);
        peaks.max_by(|one, two| one.operations_per_s.total_cmp(&two.operations_per_s))
    }

    /// The most arithmetic that a cell could do: in its own numbers or in those of float32, in which parts of every model
    /// stay, whichever is faster. `None` where its own was not measured.
    pub fn peak_of(&self, cell: &Cell) -> Option<&Peak> {
        let native = self.fastest(cell, self.arithmetic_of(cell))?;
        let wide = self.fastest(cell, self.float32_of(cell));
        Some(wide.filter(|wide| wide.operations_per_s > native.operations_per_s).unwrap_or(native))
    }

    /// The bandwidth at which a cell goes through so many bytes again and again: the most that was seen of as many or
    /// more, for fewer bytes move no slower.
    pub fn bandwidth_of(&self, cell: &Cell, stream: Stream, bytes: u64) -> Option<f64> {
        let (device, threads) = (self.label_of_device(cell), self.threads_of(cell));
        let is_usable = |seen: &&Bandwidth| {
            seen.device == device && seen.threads <= threads && seen.stream == stream && seen.bytes >= bytes
        };
        self.bandwidths().iter().filter(is_usable).map(|seen| seen.bytes_per_s).max_by(f64::total_cmp)
    }

    /// What starting the nodes of a cell takes: the least that was seen with its threads or fewer.
    pub fn launching_of(&self, cell: &Cell) -> Option<&Launching> {
        let (device, threads) = (self.label_of_device(cell), self.threads_of(cell));
        let seen = self.launches().iter().filter(|seen| seen.device == device && seen.threads <= threads);
        seen.min_by(|one, two| one.node_ns.total_cmp(&two.node_ns))
    }

    /// What an inference of a cell must move at least, where that is known.
    pub fn traffic_of(&self, cell: &Cell) -> Option<Traffic> {
        self.traffic_in(cell, self.arithmetic_of(cell))
    }

    /// The same, if it multiplies such numbers.
    pub fn traffic_in(&self, cell: &Cell, arithmetic: Arithmetic) -> Option<Traffic> {
        const INT4_WEIGHT: f64 = 0.5;
        let moved = self.cost(cell)?.products?;
        let number = arithmetic.bytes();
        let weight = if self.precision_of(cell) == Precision::Int4 { INT4_WEIGHT } else { number };
        Some(Traffic {
            weights: moved.weights as f64 * weight,
            activations: moved.activations as f64 * number,
            largest_activations: moved.largest_activations as f64 * number,
        })
    }
}
