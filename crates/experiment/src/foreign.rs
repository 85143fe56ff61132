//! What a specification lets run besides models, with the rights of whoever measures it.

use super::{Experiment, Program, Source};
use base::printable::printable_line;

impl Experiment {
    /// Commands (`commands` with `prepare` and `setup`, `wrap`, `score`), programs and adapters in `runtimes`, functions of Python,
    /// variants that set environment variables, options of providers that name a file, and libraries by their path: each
    /// once, in a line.
    pub fn foreign(&self) -> Vec<String> {
        let wraps = self.variants.iter().filter(|variant| !variant.wrap.is_empty()).map(|it| it.wrap.join(" "));
        let sets = self.variants.iter().filter(|variant| !variant.env.is_empty());
        let sets = sets.map(|variant| format!("env of {}", variant.name));
        // Which options open libraries only their providers know: whatever may be a file's name.
        let is_file = |value: &str| value.contains('/') || value.contains(".so");
        let options = self.variants.iter().flat_map(|variant| variant.provider.values().flatten());
        let options = options.filter(|(_, value)| is_file(value)).map(|(option, value)| format!("{option}: {value}"));
        let models = 0..self.models.len() as u32;
        let data = models.filter_map(|model| self.dataset_of(model)).filter(|data| !data.score.is_empty());
        let libraries = self.plugins.values().chain(self.runtimes.iter().filter_map(|it| it.path.as_ref()));
        let commands = self.models.iter().filter_map(|model| model.command.as_ref());
        let commands = commands.flat_map(|it| [Some(it.line()), it.prepare.clone(), it.setup.clone()]).flatten();
        let programs = self.runtimes.iter().filter_map(|runtime| runtime.program.as_ref()).map(Program::words);
        let functions = self.models.iter().filter_map(|model| match &model.source {
            Some(Source::Python(model)) => Some(format!("python {}", model.call)),
            _ => None,
        });
        let commands = commands.chain(programs).chain(functions);
        let all = commands.chain(wraps).chain(sets).chain(options).chain(data.map(|data| data.score.join(" ")));
        let mut all: Vec<String> = all
            .chain(libraries.map(|path| path.display().to_string()))
            .map(|it| printable_line(&it).into_owned())
            .collect();
        all.sort();
        all.dedup();
        all
    }
}
