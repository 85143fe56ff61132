//! Session entries: names that are nearly those of ONNX Runtime, which ignores what it does not know.

use crate::check::Check;
use crate::document::DocumentPath;
use crate::form::{Ordered, Setting};
use experiment::CUSTOM_OPS;
use reading::nearest::nearest;

/// Entries of ONNX Runtime 1.31, from `onnxruntime_session_options_config_keys.h`.
const KEYS: [&str; 36] = [
    "ep.context_embed_mode",
    "ep.context_enable",
    "ep.context_file_path",
    "ep.context_model_external_initializers_file_name",
    "memory.enable_memory_arena_shrinkage",
    "mlas.use_lut_gemm",
    "optimization.disable_specified_optimizers",
    "optimization.enable_cast_chain_elimination",
    "optimization.enable_gelu_approximation",
    "optimization.minimal_build_optimizations",
    "session.collect_node_memory_stats_to_file",
    "session.disable_aot_function_inlining",
    "session.disable_cpu_ep_fallback",
    "session.disable_double_qdq_remover",
    "session.disable_prepacking",
    "session.disable_qdq_constant_folding",
    "session.disable_quant_qdq",
    "session.dynamic_block_base",
    "session.enable_dq_matmulnbits_fusion",
    "session.enable_quant_qdq_cleanup",
    "session.force_spinning_stop",
    "session.graph_optimizations_loop_level",
    "session.inter_op.allow_spinning",
    "session.intra_op.allow_spinning",
    "session.intra_op_thread_affinities",
    "session.load_model_format",
    "session.optimized_model_external_initializers_file_name",
    "session.optimized_model_external_initializers_min_size_in_bytes",
    "session.qdq_matmulnbits_accuracy_level",
    "session.qdqisint8allowed",
    "session.save_model_format",
    "session.set_denormal_as_zero",
    "session.strict_shape_type_inference",
    "session.use_device_allocator_for_initializers",
    "session.use_env_allocators",
    "session.x64quantprecision",
];

/// Warns of entries whose names differ from a known one by a few letters; of others nothing is known.
pub(super) fn check(form: &Ordered<Setting>, place: &DocumentPath, check: &mut Check<'_>) {
    if form.0.iter().any(|(key, _)| key == CUSTOM_OPS) {
        let message = "a library of custom operators is no session entry".to_owned();
        let hint = "name it at the top: `plugins: { custom_ops: FILE }`".to_owned();
        check.error(&place.key(CUSTOM_OPS), message, hint);
    }
    for (key, _) in form.0.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
        if let Some(near) = nearest(key, KEYS) {
            let message = format!("`{key}` is not a known session entry, and ONNX Runtime ignores unknown ones");
            check.warn(&place.key(key), message, format!("did you mean `{near}`?"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expand::tests::warnings;

    #[test]
    fn a_slip_of_the_pen_is_warned_of_and_a_newer_entry_is_not() {
        let of = |key: &str| warnings(&format!("variants: [{{ name: a, session: {{ {key}: 0 }} }}]"));
        let said =
            "`session.intra_op.allow_spining` is not a known session entry, and ONNX Runtime ignores unknown ones";
        assert_eq!(of("session.intra_op.allow_spining"), [said]);
        assert!(of("session.intra_op.allow_spinning").is_empty() && of("ep.of_a_later_version").is_empty());
    }
}
