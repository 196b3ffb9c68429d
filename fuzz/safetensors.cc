// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of weights, as its index and as a model's config.json: reading ends, what was
// read is consistent, and what the model is can be asked.
#include <cstdlib>

#include "fit/model_spec.h"
#include "formats/model/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto files = formats::parse_safetensors_index(text, "fuzz"))
    for (const std::string& file : *files)
      if (file.empty() || file.find('/') != std::string::npos) std::abort();
  const auto config = formats::parse_model_config(text, "fuzz");
  (void)formats::parse_model_index(text, "fuzz");
  const auto header = formats::read_safetensors(MemorySource("fuzz", text));
  if (header)
    for (const formats::Tensor& tensor : header->tensors)
      if ((tensor.elements * *formats::dtype_bits(tensor.dtype) + 7) / 8 != tensor.bytes)
        std::abort();
  fit::Training training;
  training.method = "lora";
  training.rank = 4;
  for (const uint64_t sequence : {0, 8}) {
    training.sequence = sequence;
    if (header) {
      (void)fit::not_a_model(header->tensors);
      (void)fit::model_spec(fit::kind_of_tensors(header->tensors), "", training);
    }
    if (config) (void)fit::model_spec(fit::kind_of_config(*config, {}), "config.json", training);
  }
  return 0;
}
