//! The node by itself, as a model and a specification that compares both runtimes on it.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::commands::inspect::{stem_of, write_node};
use crate::ui::error::Error;
use base::printable::printable_line;
use experiment::{Experiment, Runtime};
use judge::results::Cell;
use onnx::ResolvedTensor;
use reading::yaml::scalar;
use record::write_whole;

/// What the files are made of.
pub(super) struct Culprit<'a> {
    pub(super) experiment: &'a Experiment,
    /// Where it was found.
    pub(super) cell: &'a Cell,
    /// The node's names, the cell's first: other versions may name it differently.
    pub(super) paths: Vec<&'a str>,
    /// What the cell executes it as.
    pub(super) operator: &'a str,
    pub(super) runtimes: &'a [Runtime; 2],
    /// What was found, sentences.
    pub(super) found: &'a [String],
}

impl Culprit<'_> {
    /// Writes model and specification into a folder that is there, under names that are free, from the file that the cell was run with and what it was fed; the
    /// specification's path.
    ///
    /// # Errors
    ///
    /// A node that cannot be taken out of its model, and what the system says.
    pub(super) fn write(&self, served: (&Path, &[ResolvedTensor]), folder: &Path) -> Result<PathBuf, Error> {
        let stem = stem_of(self.paths[0]);
        let files = |name: &str| ["onnx", "yaml"].map(|end| folder.join(format!("{name}.{end}")));
        let is_free = |name: &String| files(name).iter().all(|file| !file.exists());
        // An earlier bisection may have found the same node.
        let names = std::iter::once(stem.clone()).chain((2..).map(|number| format!("{stem}-{number}")));
        let name = names.into_iter().find(is_free).unwrap_or(stem);
        let [model, specification] = files(&name);
        let first = write_node(served, (self.paths[0], Some(self.operator)), &model);
        let write = |written: Result<_, _>, path: &&str| {
            written.or_else(|problem| write_node(served, (path, None), &model).map_err(|_| problem))
        };
        self.paths[1..].iter().fold(first, write)?;
        write_whole(&specification, self.specification(&name).as_bytes())?;
        Ok(specification)
    }

    fn specification(&self, name: &str) -> String {
        let comment: String = self.found.iter().map(|line| format!("# {}\n", printable_line(line))).collect();
        let [older, newer] = self.runtimes;
        let file = format!("{name}.onnx");
        format!(
            "{comment}# {file} is the node alone, with the shapes that it has in the whole model. Repeat with: perfrun {name}.yaml\n\n\
             name: {}\nmodels: {}\nvariants: [{}]\ndevices: [{}]\nruntimes:\n  - {}\n  - {}\n\
             compare: {{ baseline: {{ runtime: {} }} }}\nruns: {}\n",
            scalar(name),
            scalar(&file),
            self.variant(),
            scalar(self.cell.names.device()),
            json!(older),
            json!(newer),
            scalar(&older.name),
            json!(self.experiment.runs),
        )
    }

    /// What of the variant holds for one node too, in the words of a specification: not the precision, which the file has.
    fn variant(&self) -> Value {
        const KEPT: [&str; 6] = ["graph_optimization", "execution", "session", "provider", "env", "wrap"];
        let measured = self.experiment.variants.iter().find(|variant| variant.name == self.cell.names.variant());
        let all = json!(measured);
        let is_set = |value: &&Value| ![Value::Null, json!({}), json!([])].contains(value);
        let kept = KEPT.iter().filter_map(|key| Some(((*key).to_owned(), all.get(key).filter(is_set)?.clone())));
        let mut variant: Map<String, Value> = kept.collect();
        let mut threads = json!({ "intra": self.cell.threads });
        if let Some(inter) = measured.and_then(|variant| variant.threads.inter) {
            threads["inter"] = inter.into();
        }
        variant.insert("threads".to_owned(), threads);
        variant.insert("name".to_owned(), self.cell.names.variant().into());
        variant.into()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_node_is_written_with_a_specification_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/models/digits-mlp.onnx");
        let text = "models: m.onnx\nvariants: [{ name: tuned, precision: fp16, threads: { inter: 2 }, graph_optimization: basic, \
                    session: { session.x: 1 }, env: { A: b }, wrap: [nice] }]\nruns: 9\n";
        std::fs::copy(&path, folder.path().join("m.onnx")).unwrap();
        let experiment = spec::parse("x.yaml", text, folder.path(), &[]).unwrap().experiment;
        let cell: Cell = serde_json::from_value(json!({
            "id": "0000000000000001", "definition": "", "model": "m", "input": "default", "variant": "tuned", "device": "cpu", "runtime": "old",
            "status": "measured", "threads": 3, "iterations": 1,
        }))
        .unwrap();
        let runtime = |name: &str, version: &str| Runtime {
            name: name.to_owned(),
            version: Some(version.to_owned()),
            ..Runtime::default()
        };
        let runtimes = [runtime("old", "1.29.0"), runtime("1.30.0", "1.30.0")];
        let element = onnx::ElementType::Float32;
        let input = &onnx::read_header(&path).unwrap().signature.inputs[0];
        let shape = input.shape.as_ref().unwrap().iter().map(|size| match size {
            onnx::Dimension::Fixed(size) => *size,
            _ => 1,
        });
        let fed = [ResolvedTensor {
            name: input.name.clone(),
            element,
            shape: shape.collect(),
            integers: None,
            is_counted: false,
        }];
        let model = onnx::load(&path).unwrap();
        let node = model.graph.unwrap().node[0].output[0].clone();
        let found = ["a line\nand another".to_owned()];
        let culprit = Culprit {
            experiment: &experiment,
            cell: &cell,
            paths: vec!["unknown", &node],
            operator: "Gemm",
            runtimes: &runtimes,
            found: &found,
        };
        let file = culprit.write((&path, &fed), folder.path()).unwrap();
        let written = spec::load(&file, &[]).unwrap().experiment;
        assert_eq!((&written.runtimes[..], written.runs), (&runtimes[..], experiment.runs));
        let (variant, original) = (&written.variants[0], &experiment.variants[0]);
        assert_eq!(
            (variant.threads.intra, variant.threads.inter, variant.precision),
            (Some(3), Some(2), Default::default())
        );
        assert_eq!((&variant.session, &variant.env, &variant.wrap), (&original.session, &original.env, &original.wrap));
        assert_eq!(variant.graph_optimization, original.graph_optimization);
        assert_eq!(onnx::load(&file.with_extension("onnx")).unwrap().graph.unwrap().node.len(), 1);
        let second = culprit.write((&path, &fed), folder.path()).unwrap();
        assert!(second != file && spec::load(&second, &[]).is_ok());
        let unknown = Culprit { paths: vec!["unknown"], ..culprit };
        let problem = unknown.write((&path, &fed), folder.path()).unwrap_err().to_string();
        assert!(problem.contains("there is no node `unknown`"), "{problem}");
    }
}
