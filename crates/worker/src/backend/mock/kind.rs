//! The mock backend, as the parent asks about it.

use std::collections::BTreeMap;

use super::MockRequest;
use crate::backend::{BackendRequest, CellFacts, Kind};
use base::machine::environment::Environment;
use device::Monitors;
use experiment::{Device, Mock};

impl Kind for Mock {
    fn environment(&self) -> Environment {
        Environment::script()
    }

    fn library(&self) -> Option<&'static str> {
        None
    }

    fn title(&self) -> &'static str {
        "mock backend: scripted latencies, nothing is measured"
    }

    fn session_of_residents(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    fn monitors(&self, _devices: &[Device]) -> Monitors {
        self.device.as_ref().map_or_else(Monitors::default, Monitors::scripted)
    }

    fn request(&self, facts: &CellFacts<'_>) -> BackendRequest {
        BackendRequest::Mock(MockRequest::of_cell(self, facts))
    }
}
