//! What tests and benches take from inside, by room.
//!
//! Everything else is private, so that the compiler finds what nobody uses. No other program may build on this.

#![allow(missing_docs, reason = "what is re-exported has its own")]

pub mod vocabulary {
    pub use crate::vocabulary::metric;
    pub mod code {
        pub use crate::vocabulary::code::{
            Carrier, Code, NOISY_STEAL, RUNS_APART, by_name, percent, reference_markdown, spelt,
        };
    }
    pub mod quantity {
        pub use crate::vocabulary::quantity::Nanos;
    }
}

pub mod machine {
    pub mod clock {
        pub use crate::machine::clock::{Clock, HostClock};
    }
    pub mod host {
        pub use crate::machine::host::{Host, describe};
    }
}

pub mod experiment {
    pub use crate::experiment::{
        Aa, Axis, Backend, Bound, Calibration, Choose, Compare, Device, Execution, Experiment, FidelityLimits,
        FidelitySettings, Gate, Goal, Grade, GraphOptimization, InputFile, InputPoint, Margin, Matrix, Measure, Mock,
        Model, Package, Plugin, Precision, QUICK_MARGIN, Require, Runs, Selector, Stop, TableSpec, Threads, Values,
        Variant, Warmup,
    };
}

pub mod data {
    pub use crate::data::digest;
    pub mod array {
        pub use crate::data::array::{Array, write_npy};
    }
    pub mod table {
        pub use crate::data::table::Table;
    }
}

pub mod quality {
    pub mod fidelity {
        pub use crate::quality::fidelity::ACCURACY_NOT_MEASURED;
    }
}

pub mod spec {
    pub use crate::spec::*;
}

pub mod plan {
    pub use crate::plan::*;
}

pub mod prepare {
    pub use crate::prepare::runtime;
}

pub mod worker {
    pub use crate::worker::{
        Afterwards, Data, Interrupts, Launch, RunPlan, WorkerRun, WorkerSession, read_outputs, run,
    };
    pub mod backend {
        pub use crate::worker::backend::{
            Backend, BackendRequest, CellRequest, Failure, FailureKind, OnnxruntimeRequest, Placement, ProgramRequest,
            TensorRequest,
        };
        pub mod inputs {
            pub use crate::worker::backend::inputs::POOL_LIMIT_BYTES;
        }
        pub mod onnxruntime {
            pub use crate::worker::backend::onnxruntime::OnnxRuntime;
        }
    }
    pub mod measure {
        pub use crate::worker::measure::{Samples, settle, stop, warm};
        pub mod batching {
            pub use crate::worker::measure::batching::iterations_per_sample;
        }
        pub mod sampler {
            pub use crate::worker::measure::sampler::Sampler;
        }
    }
    pub mod protocol {
        pub use crate::worker::protocol::{Command, reference_markdown, schema_text};
    }
}

pub mod record {
    pub use crate::record::{
        Arm, FORMAT, LocalPaths, Manifest, ModelFile, Outcome, PassFindings, ProjectRoot, Record, Rehearsed,
        RuntimeUsed, Session, SpecSource, StoredRun, VariantAccuracy, VariantOrigin,
    };
    pub mod revision {
        pub use crate::record::revision::Revision;
    }
}

pub mod run {
    pub use crate::run::Provenance;
    pub use crate::run::create::create;
    pub use crate::run::prepare::prepare;
}

pub mod judge {
    pub mod compare {
        pub use crate::judge::compare::{Calibration, Comparison, Judged, judge, verdicts};
        pub mod need {
            pub use crate::judge::compare::need::settled;
        }
    }
    pub mod diagnosis {
        pub use crate::judge::diagnosis::{BEYOND_ROOF, Bound, HIGH_LAUNCHING, HIGH_PART, HIGH_SHARE, SERIAL};
    }
    pub mod summary {
        pub use crate::judge::summary::{
            CONFIDENCE, CellSummary, Summary, summarize, summarize_asked, summarize_briefly,
        };
    }
}

pub mod report {
    pub use crate::report::{Format, compose, plots, template_reference, write};
    pub mod page {
        pub use crate::report::page::Overview;
    }
}

pub mod results {
    pub use crate::results::*;
}

pub mod stat {
    pub use crate::stat::*;
}

pub mod ui {
    pub use crate::ui::*;
}

pub mod diff {
    pub use crate::diff::{reproduction_schema_text, schema_text};
}

pub mod history {
    pub use crate::history::schema_text;
}

pub mod fuzzing {
    pub use crate::fuzzing::{model, record, specification, trace, worker};
}
