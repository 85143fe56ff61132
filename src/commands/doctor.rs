//! `perfrun doctor`: what this machine offers and what would spoil a measurement.

use super::print;
use crate::cli::DoctorArgs;
use crate::error::{Error, ExitCode};
use crate::run::prepare::why_not_here;
use crate::spec::model::Device;
use crate::ui::{Ui, doctor};
use crate::{host, runtime};

pub(super) fn run(arguments: &DoctorArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let cache = runtime::cache_folder();
    let found = runtime::find(arguments.runtime.as_deref(), &cache);
    // Not being able to use it is what `doctor` is asked about, so it is a line of the answer.
    let library = match found.map(|found| found.or_else(|| runtime::find_elsewhere().into_iter().next())) {
        Err(error) => format!("NOT USABLE: {error}"),
        Ok(Some(library)) => library.to_string(),
        Ok(None) => "none yet; the first run fetches it, or `perfrun runtime install` does".to_owned(),
    };
    let devices = [("cpu", None), ("cuda", Some(0))].map(|(provider, index)| {
        let device = Device { provider: provider.to_owned(), index };
        (device.label(), why_not_here(&device).map(|skip| skip.reason))
    });
    print(ui, &doctor::describe(&host::describe(), &host::neighbours(), &library, &devices))
}
