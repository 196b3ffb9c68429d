// SPDX-License-Identifier: Apache-2.0
#include "facts/cuda_libraries.h"

#include "base/format.h"

namespace cufit::facts {

bool is_cuda_library(const std::string& name) {
  static const char* const k_stems[] = {
      "libcudart", "libcublas",         "libcublasLt",   "libcudnn",      "libcufft",
      "libcurand", "libcusolver",       "libcusparse",   "libcusparseLt", "libnccl",
      "libnvrtc",  "libnvrtc-builtins", "libnvJitLink",  "libcupti",      "libnvToolsExt",
      "libcufile", "libnvshmem_host",   "libcusolverMg", "libnvfatbin"};
  std::string stem = name.substr(0, name.find(".so"));
  for (const char* known : k_stems)
    if (stem == known || (starts_with(stem, known) && stem[std::string_view(known).size()] == '-'))
      return true;
  return starts_with(stem, "libcudnn_");
}

std::string cuda_major_of_library(const std::string& name) {
  size_t at = name.find(".so.");
  if (at == std::string::npos) return {};
  std::string stem = name.substr(0, at), number = name.substr(at + 4);
  number.resize(std::min(number.find('.'), number.size()));
  for (const char* same : {"libcudart", "libcublas", "libcublasLt", "libnvrtc", "libnvrtc-builtins",
                           "libnvJitLink", "libcupti"}) {
    // libcublas.so.11 and libnvrtc.so.11.2 are of CUDA 11; libcublas.so.10 of CUDA 10.
    if (stem == same) return number;
  }
  if (stem == "libcufft" && number == "12") return "13";
  if (stem == "libcufft" && number == "11") return "12";  // 10 is of CUDA 10 and 11
  if (stem == "libcusolver" && number == "12") return "13";
  if (stem == "libcusparse" && number == "11") return "11";
  return {};
}

}  // namespace cufit::facts
