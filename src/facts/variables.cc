// SPDX-License-Identifier: Apache-2.0
#include "facts/variables.h"

#include "base/format.h"

namespace cufit::facts {
namespace {

bool is_wanted(const std::string& name) {
  // What the driver, CUDA's libraries and torch read.
  static const char* const k_prefixes[] = {"CUDA_",  "NVIDIA_",   "NCCL_",   "TORCH_",  "PYTORCH_",
                                           "CUDNN_", "CUBLASLT_", "CUBLAS_", "TRITON_", "NVTE_"};
  for (const char* prefix : k_prefixes) {
    if (starts_with(name, prefix)) return true;
  }
  // What decides which files are loaded, which Python runs, and which devices a scheduler gave.
  static const char* const k_names[] = {
      "LD_LIBRARY_PATH",    "LD_PRELOAD",          "LD_AUDIT",
      "PYTHONPATH",         "PYTHONHOME",          "PYTHONNOUSERSITE",
      "VIRTUAL_ENV",        "CONDA_PREFIX",        "CONDA_DEFAULT_ENV",
      "CUDAARCHS",          "NVCC_PREPEND_FLAGS",  "NVCC_APPEND_FLAGS",
      "MAX_JOBS",           "UV_TORCH_BACKEND",    "OMP_NUM_THREADS",
      "MKL_NUM_THREADS",    "SLURM_JOB_GPUS",      "SLURM_STEP_GPUS",
      "GPU_DEVICE_ORDINAL", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"};
  for (const char* each : k_names) {
    if (name == each) return true;
  }
  return false;
}

// A record of these facts is made to be shared.
bool may_be_secret(const std::string& name) {
  static const char* const k_words[] = {"token", "secret", "passw", "key", "credential", "auth"};
  const std::string lowered = lower(name);
  for (const char* word : k_words) {
    if (contains(lowered, word)) return true;
  }
  return false;
}

}  // namespace

bool keeps_variable(const std::string& name) { return is_wanted(name) && !may_be_secret(name); }

}  // namespace cufit::facts
