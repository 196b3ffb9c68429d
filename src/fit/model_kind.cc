// SPDX-License-Identifier: Apache-2.0
#include "fit/model_kind.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"

namespace cufit::fit {
namespace {

using formats::Tensor;
using Tensors = std::span<const Tensor>;

// Where the diffusion model stands in a checkpoint of one file.
constexpr std::string_view k_prefixes[] = {"model.diffusion_model.", "diffusion_model.", ""};
constexpr std::string_view k_first_conv = "input_blocks.0.0.weight";
constexpr std::string_view k_flux_first = "double_blocks.0.img_attn.qkv.weight";

const Tensor* find(Tensors tensors, const std::string& name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const Tensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

uint64_t bytes_at(const Tensor* tensor, size_t dimension) {
  return tensor != nullptr && tensor->shape.size() > dimension ? tensor->shape[dimension] : 0;
}

// The prefix under which `name` is there; nullptr where it is nowhere.
const std::string_view* prefix_of(Tensors tensors, std::string_view name) {
  for (const std::string_view& prefix : k_prefixes)
    if (find(tensors, std::string(prefix) + std::string(name)) != nullptr) return &prefix;
  return nullptr;
}

// "double_blocks.17.img_mod" counts as 18 blocks.
uint64_t blocks_of(Tensors tensors, const std::string& start) {
  std::set<std::string> seen;
  for (const Tensor& tensor : tensors)
    if (starts_with(tensor.name, start))
      seen.insert(
          tensor.name.substr(start.size(), tensor.name.find('.', start.size()) - start.size()));
  return seen.size();
}

// The type that most bytes have, of floating point.
std::string dtype_of(Tensors tensors, std::string_view prefix) {
  std::map<std::string, uint64_t> bytes;
  for (const Tensor& tensor : tensors) {
    if (!starts_with(tensor.name, prefix)) continue;
    if (tensor.dtype == "BF16" || tensor.dtype == "F16" || tensor.dtype == "F32" ||
        starts_with(tensor.dtype, "F8"))
      bytes[tensor.dtype] += tensor.bytes;
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? std::string() : most->first;
}

// By how the weights are written.
std::string quantisation_of(Tensors tensors) {
  const auto some = [&](std::string_view end) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const Tensor& tensor) { return ends_with(tensor.name, end); });
  };
  if (some(".qweight") && some(".qzeros")) return some(".g_idx") ? "gptq" : "awq or gptq";
  if (some(".weight.absmax") || some(".weight.quant_map")) return "bitsandbytes";
  return {};
}

void count(Tensors tensors, std::string_view prefix, ModelKind& kind) {
  for (const Tensor& tensor : tensors) {
    if (starts_with(tensor.name, prefix))
      kind.parameters += tensor.elements;
    else
      kind.beside_bytes += tensor.bytes;
  }
  const std::string dtype = dtype_of(tensors, prefix);
  if (starts_with(dtype, "F8")) kind.quantisation = "fp8";
  kind.dtype = short_dtype(dtype);
}

}  // namespace

std::string short_dtype(const std::string& name) {
  const std::string text = starts_with(name, "torch.") ? name.substr(6) : name;
  if (text == "bfloat16" || text == "BF16" || text == "bf16") return "bf16";
  if (text == "float16" || text == "half" || text == "F16" || text == "fp16") return "fp16";
  if (text == "float32" || text == "float" || text == "F32" || text == "fp32") return "fp32";
  if (starts_with(text, "F8") || starts_with(text, "float8")) return "bf16";  // trained as such
  return {};
}

std::string not_a_model(Tensors tensors) {
  for (const Tensor& tensor : tensors)
    for (const char* part : {"lora_unet_", "lora_te", ".lora_A.", ".lora_down.", ".lora.down."})
      if (contains(tensor.name, part)) return "lora";
  for (const std::string_view& prefix : k_prefixes) {
    const Tensor* label = find(tensors, std::string(prefix) + "label_emb.0.0.weight");
    if (label != nullptr && bytes_at(label, 1) == 2560) return "refiner";
    if (find(tensors, std::string(prefix) + "joint_blocks.0.x_block.attn.qkv.weight") != nullptr)
      return "sd3";
  }
  return {};
}

ModelKind kind_of_tensors(Tensors tensors) {
  ModelKind kind;
  kind.library = ModelLibrary::diffusers;
  if (const std::string_view* prefix = prefix_of(tensors, k_flux_first)) {
    const std::string start(*prefix);
    kind.architecture = "FluxTransformer2DModel";
    kind.layout = "flux";
    kind.blocks = blocks_of(tensors, start + "double_blocks.");
    kind.single_blocks = blocks_of(tensors, start + "single_blocks.");
    kind.guidance = find(tensors, start + "guidance_in.in_layer.weight") != nullptr;
    count(tensors, *prefix, kind);
    return kind;
  }
  const std::string_view* prefix = prefix_of(tensors, k_first_conv);
  if (prefix == nullptr) return {};
  const std::string start(*prefix);
  const uint64_t width =
      bytes_at(find(tensors, start + "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight"), 1);
  const uint64_t label = bytes_at(find(tensors, start + "label_emb.0.0.weight"), 1);
  if (label == 2816)
    kind.layout = "sdxl";
  else if (label == 0 && width == 768)
    kind.layout = "sd1";
  else if (label == 0 && width == 1024)
    kind.layout = "sd2";
  else
    return {};
  kind.architecture = "UNet2DConditionModel";
  kind.channels = bytes_at(find(tensors, start + std::string(k_first_conv)), 1);
  if (kind.channels == 0 || kind.channels > 64) return {};
  count(tensors, *prefix, kind);
  return kind;
}

ModelKind kind_of_config(const formats::ModelConfig& config, Tensors tensors) {
  ModelKind kind;
  if (!config.class_name.empty()) {
    kind.library = ModelLibrary::diffusers;
    kind.architecture = config.class_name;
  } else if (!config.architectures.empty()) {
    kind.architecture = config.architectures.front();
  }
  count(tensors, "", kind);
  if (kind.dtype.empty()) kind.dtype = short_dtype(config.dtype);
  const std::string written = quantisation_of(tensors);
  if (!config.quantisation.empty())
    kind.quantisation = config.quantisation;
  else if (!written.empty())
    kind.quantisation = written;
  if (!kind.quantisation.empty() && kind.quantisation != "fp8") kind.parameters = 0;  // packed
  return kind;
}

}  // namespace cufit::fit
