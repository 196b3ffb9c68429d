// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/package_words.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/format.h"

namespace cufit::formats {
namespace {

// Sorted, for the binary search.
constexpr std::string_view k_packages[] = {
    // clang-format off
    "accelerate", "apex", "auto-gptq", "autoawq", "bitsandbytes", "causal-conv1d",
    "cuda-python", "cudatoolkit", "cupy", "deepspeed", "detectron2", "diffusers", "fairscale",
    "faiss-gpu", "fastai", "flash-attn", "flashinfer-python", "gptqmodel", "jax", "jaxlib",
    "keras", "lightning", "llama-cpp-python", "mamba-ssm", "megatron-core", "mkl", "mmcv",
    "mmcv-full", "numpy", "onnxruntime", "onnxruntime-gpu", "open3d", "peft", "pytorch",
    "pytorch-cuda", "pytorch-lightning", "pytorch-nightly", "pytorch3d", "sageattention",
    "sglang", "spconv", "tensorflow", "tensorrt", "torch", "torch-geometric", "torch-scatter",
    "torch-sparse", "torchaudio", "torchdata", "torchtext", "torchtune", "torchvision",
    "transformer-engine", "transformers", "triton", "trl", "unsloth", "vllm", "xformers"
    // clang-format on
};

static_assert(std::is_sorted(std::begin(k_packages), std::end(k_packages)));

}  // namespace

std::string_view known_package(std::string_view name) {
  if (name.size() < 3 || name.size() > 40) return {};
  std::string text = lower(name);
  std::replace(text.begin(), text.end(), '_', '-');
  if (text == "flash-attention") text = "flash-attn";
  // The wheels of CUDA's libraries: their names say what they are.
  if (starts_with(text, "nvidia-") && contains(text, "-cu1")) return name;
  const std::string_view* end = std::end(k_packages);
  const std::string_view* at = std::lower_bound(std::begin(k_packages), end, text);
  return at != end && *at == text ? *at : std::string_view();
}

}  // namespace cufit::formats
