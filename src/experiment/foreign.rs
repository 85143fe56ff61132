//! What a specification lets run beside models, with the rights of whoever measures it.

use super::Experiment;

impl Experiment {
    /// Commands (`wrap`, `score`), variants that set environment variables, and libraries by their path, each once.
    pub(crate) fn foreign(&self) -> Vec<String> {
        let wraps = self.variants.iter().filter(|variant| !variant.wrap.is_empty()).map(|it| it.wrap.join(" "));
        let sets = self.variants.iter().filter(|variant| !variant.env.is_empty());
        let sets = sets.map(|variant| format!("env of {}", variant.name));
        let models = 0..self.models.len() as u32;
        let data = models.filter_map(|model| self.dataset_of(model)).filter(|data| !data.score.is_empty());
        let libraries = self.plugins.values().chain(self.runtimes.iter().filter_map(|it| it.path.as_ref()));
        let all = wraps.chain(sets).chain(data.map(|data| data.score.join(" ")));
        let mut all: Vec<String> = all.chain(libraries.map(|path| path.display().to_string())).collect();
        all.sort();
        all.dedup();
        all
    }
}
