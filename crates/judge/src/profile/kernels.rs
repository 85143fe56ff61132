//! What a kernel of an NVIDIA GPU is, by its name.

use record::profiled::ProfiledNode;

/// Words in the names of kernels that multiply on tensor cores.
///
/// Source: PyTorch's kineto, `tb_plugin/torch_tb_profiler/profiler/tensor_core.py`; CUTLASS (`tensorop`, `gmma`) and cuBLAS 13
/// (`nvjet`) since.
const ON_TENSOR_CORES: [&str; 22] = [
    "h884",
    "s884",
    "h1688",
    "s1688",
    "hmma",
    "i8816",
    "16816",
    "dgrad_1x1_stride_2x2",
    "first_layer_wgrad_kernel",
    "conv1x1",
    "conv2d_c1_k1",
    "direct_group",
    "xmma_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm",
    "xmma_gemm",
    "xmma_sparse_gemm",
    "c1688",
    "tensorop",
    "tensor16x8",
    "gmma",
    "nvjet",
];

/// Words in the names of kernels that use no tensor cores. These win over the words above.
const ON_OTHER_CORES: [&str; 3] = ["ffma", "simt", "sgemm"];

/// Whether a kernel multiplies on tensor cores, as far as its name says.
pub(crate) fn uses_tensor_cores(name: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    has(&ON_TENSOR_CORES) && !has(&ON_OTHER_CORES)
}

/// Whether a kernel of the node does, in any process.
pub(super) fn is_on_tensor_cores(node: &ProfiledNode) -> bool {
    node.on_device.iter().flat_map(|there| &there.kernels).any(|kernel| uses_tensor_cores(&kernel.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_cores_are_known_by_the_name() {
        let names = [
            ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x64x64_stage4_warpsize2x2x1_tensor16x8x16", true),
            ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4", false),
            ("cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_tt_align4>", true),
            ("cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", false),
            ("ampere_sgemm_128x64_nn", false),
            ("nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", true),
            ("onnxruntime::cuda::_BinaryElementWise", false),
        ];
        for (name, expected) in names {
            assert_eq!(uses_tensor_cores(name), expected, "{name}");
        }
    }
}
