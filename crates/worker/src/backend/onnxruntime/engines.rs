//! Engines that a provider builds of a model, as TensorRT does: where they are kept, and whether a session will build one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::request::OnnxruntimeRequest;
use experiment::Provider;

/// The provider's options that turn keeping on and name the folder; `None` where it builds none.
fn options_of(settings: &OnnxruntimeRequest) -> Option<[&'static str; 2]> {
    Provider::of(&settings.device)?.engine_cache
}

/// Whether the variant says itself where engines are kept, so that nobody here knows when one is built.
fn is_the_users(settings: &OnnxruntimeRequest) -> bool {
    let says = |option: &&str| settings.provider_options.contains_key(*option);
    options_of(settings).is_some_and(|options| options.iter().any(says))
}

/// Adds what keeps an engine, unless the variant says something of it.
pub(super) fn keep(settings: &OnnxruntimeRequest, options: &mut BTreeMap<String, String>) {
    if let (Some([enable, folder_key]), Some(folder), false) =
        (options_of(settings), &settings.engine_cache, is_the_users(settings))
    {
        options.insert(enable.to_owned(), "1".to_owned());
        options.insert(folder_key.to_owned(), folder.to_string_lossy().into_owned());
    }
}

/// Whether loading builds an engine.
pub(super) fn are_built(settings: &OnnxruntimeRequest) -> bool {
    options_of(settings).is_some()
        && !is_the_users(settings)
        && !settings.engine_cache.as_deref().is_some_and(holds_an_engine)
}

fn holds_an_engine(folder: &Path) -> bool {
    let is_engine = |entry: fs::DirEntry| entry.path().extension().is_some_and(|ending| ending == "engine");
    fs::read_dir(folder).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(is_engine)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Device;

    fn settings(provider: &str, cache: Option<&Path>) -> OnnxruntimeRequest {
        let device = Device { index: Some(0), ..Device::of(provider) };
        let plain = OnnxruntimeRequest::on_device(Path::new("library"), None, &device, Path::new("model"));
        OnnxruntimeRequest { engine_cache: cache.map(Path::to_owned), ..plain }
    }

    fn kept(settings: &OnnxruntimeRequest) -> BTreeMap<String, String> {
        let mut options = settings.provider_options.clone();
        keep(settings, &mut options);
        options
    }

    #[test]
    fn the_first_session_builds_and_the_next_one_loads() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = settings("tensorrt", Some(folder.path()));
        assert!(are_built(&settings));
        assert_eq!(kept(&settings)["trt_engine_cache_enable"], "1");
        assert_eq!(kept(&settings)["trt_engine_cache_path"], folder.path().to_string_lossy());
        fs::write(folder.path().join("half.engine.tmp"), "").expect("a file");
        assert!(are_built(&settings));
        fs::write(folder.path().join("whole.engine"), "").expect("a file");
        assert!(!are_built(&settings));
    }

    #[test]
    fn without_a_folder_every_session_builds() {
        assert!(are_built(&settings("tensorrt", None)));
        assert!(kept(&settings("tensorrt", None)).is_empty());
        assert!(!are_built(&settings("cuda", None)));
    }

    #[test]
    fn what_a_variant_says_of_engines_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut settings = settings("tensorrt", Some(folder.path()));
        settings.provider_options.insert("trt_engine_cache_enable".to_owned(), "0".to_owned());
        assert_eq!(kept(&settings), settings.provider_options);
        assert!(!are_built(&settings));
    }
}
