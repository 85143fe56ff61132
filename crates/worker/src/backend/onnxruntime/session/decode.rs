//! What a session needs where its model is a decoder.

use ort::session::Session;
use ort::value::DynTensor;

use super::OnnxRuntime;
use crate::backend::Failure;
use crate::backend::onnxruntime::caches::Caches;
use crate::backend::onnxruntime::generation::Generation;
use crate::backend::onnxruntime::host_call::HostCall;

impl OnnxRuntime {
    /// Whether an input or an output is a cache of a decoder.
    pub(super) fn is_cache(&self, name: &str) -> bool {
        let mut inputs = self.decode.iter().flat_map(|decode| &decode.decoder.inputs);
        inputs.any(|input| input.role.is_cache() && (input.name == name || input.present.as_deref() == Some(name)))
    }

    /// The greedy loop of a cell that asks for one.
    pub(super) fn new_generation(&self, session: &Session) -> Result<Option<Generation>, Failure> {
        let Some(decode) = self.decode.as_ref().filter(|decode| decode.call.generated > 0) else { return Ok(None) };
        Generation::new(session, decode, (&self.tensors, &self.pool)).map(Some)
    }

    /// The caches of a decoder.
    pub(super) fn fill_caches(&self, session: &Session) -> Result<Option<Caches>, Failure> {
        let Some(decode) = &self.decode else { return Ok(None) };
        let pool = self.pool.first().map(Vec::as_slice).unwrap_or_default();
        Caches::filled(session, decode, (&self.tensors, pool), (self.stream.as_deref(), &self.settings.device))
            .map(Some)
    }

    /// A call from the host's memory with all inputs; it allocates its outputs where none are given.
    pub(super) fn host_call(
        &self,
        session: &Session,
        caches: Option<&Caches>,
        outputs: &mut [(String, DynTensor)],
    ) -> Result<HostCall, Failure> {
        let pasts = caches.map(|caches| caches.pasts.as_slice()).unwrap_or_default();
        let names = self.tensors.iter().map(|tensor| tensor.name.as_str());
        let names: Vec<&str> = names.chain(pasts.iter().map(|(name, _)| name.as_str())).collect();
        let pasts = || pasts.iter().map(|(_, past)| past);
        let pool: Vec<Vec<&DynTensor>> =
            self.pool.iter().map(|values| values.iter().chain(pasts()).collect()).collect();
        HostCall::new(session, &names, &pool, outputs)
    }
}
