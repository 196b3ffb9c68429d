// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fit/model_spec.h"
#include "knowledge/knowledge.h"

namespace cufit::fit {
namespace model_test {

using formats::Tensor;

Tensor tensor(const std::string& name, std::vector<uint64_t> shape,
              const std::string& dtype = "F16") {
  Tensor out{name, dtype, std::move(shape), 1, 0};
  for (const uint64_t size : out.shape) out.elements *= size;
  out.bytes = out.elements * *formats::dtype_bits(dtype) / 8;
  return out;
}

// Those that tell them apart, and a VAE.
std::vector<Tensor> stable_diffusion(uint64_t width, uint64_t label, uint64_t channels = 4) {
  const std::string start = "model.diffusion_model.";
  std::vector<Tensor> out = {
      tensor("first_stage_model.decoder.conv_in.weight", {512, 4, 3, 3}, "F32"),
      tensor(start + "input_blocks.0.0.weight", {320, channels, 3, 3})};
  if (label != 0)
    out.push_back(tensor(start + "label_emb.0.0.weight", {1280, label}));
  else
    out.push_back(
        tensor(start + "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight", {320, width}));
  return out;
}

TEST(ModelKind, CheckpointsOfOneFileAreToldByTheirShapes) {
  const ModelKind xl = kind_of_tensors(stable_diffusion(2048, 2816));
  EXPECT_EQ(xl.layout, "sdxl");
  EXPECT_EQ(xl.architecture, "UNet2DConditionModel");
  EXPECT_EQ(xl.dtype, "fp16");  // of the UNet, not of the VAE
  EXPECT_EQ(xl.parameters, 320u * 4 * 9 + 1280u * 2816);
  EXPECT_EQ(xl.beside_bytes, 512u * 4 * 9 * 4);
  EXPECT_EQ(kind_of_tensors(stable_diffusion(768, 0)).layout, "sd1");
  const ModelKind inpainting = kind_of_tensors(stable_diffusion(1024, 0, 9));
  EXPECT_EQ(inpainting.layout, "sd2");
  EXPECT_EQ(inpainting.channels, 9u);
  EXPECT_EQ(kind_of_tensors(stable_diffusion(1280, 0)).architecture, "");
  EXPECT_EQ(not_a_model(stable_diffusion(0, 2560)), "refiner");
  EXPECT_EQ(not_a_model(stable_diffusion(2048, 2816)), "");
  EXPECT_EQ(not_a_model(std::vector<Tensor>{tensor("lora_unet_x.lora_down.weight", {4, 4})}),
            "lora");
}

TEST(ModelKind, FluxIsCounted) {
  const ModelKind flux = kind_of_tensors(
      std::vector<Tensor>{tensor("double_blocks.0.img_attn.qkv.weight", {9216, 3072}, "F8_E4M3"),
                          tensor("double_blocks.1.img_attn.qkv.weight", {9216, 3072}, "F8_E4M3"),
                          tensor("single_blocks.0.linear1.weight", {21504, 3072}, "F8_E4M3"),
                          tensor("guidance_in.in_layer.weight", {3072, 256}, "F8_E4M3")});
  EXPECT_EQ(flux.layout, "flux");
  EXPECT_EQ(flux.blocks, 2u);
  EXPECT_EQ(flux.single_blocks, 1u);
  EXPECT_TRUE(flux.guidance);
  EXPECT_EQ(flux.quantisation, "fp8");
  EXPECT_EQ(flux.dtype, "bf16");
}

TEST(ModelKind, ConfigSaysTheClassAndHeadersTheType) {
  formats::ModelConfig config;
  config.architectures = {"LlamaForCausalLM"};
  config.dtype = "float16";
  EXPECT_EQ(kind_of_config(config, {}).dtype, "fp16");
  const std::vector<Tensor> tensors = {tensor("model.norm.weight", {8}, "BF16")};
  EXPECT_EQ(kind_of_config(config, tensors).dtype, "bf16");
  EXPECT_EQ(kind_of_config(config, tensors).parameters, 8u);
  const std::vector<Tensor> packed = {tensor("a.qweight", {8}, "I32"),
                                      tensor("a.qzeros", {8}, "I32"),
                                      tensor("a.g_idx", {8}, "I32")};
  EXPECT_EQ(kind_of_config(config, packed).quantisation, "gptq");
}

TEST(Training, IsParsed) {
  EXPECT_EQ(parse_training("lora:64")->rank, 64u);
  EXPECT_EQ(parse_training("qlora")->rank, 16u);
  EXPECT_EQ(parse_training("full")->method, "full");
  for (const char* wrong : {"", "lora", "lora:", "lora:0", "lora:x", "lora:-1", "full:3", "LORA:4",
                            "qlora:99999", "lora:4:4"})
    EXPECT_FALSE(parse_training(wrong)) << wrong;
}

nlohmann::json spec_of(const ModelKind& kind, Training training) {
  const Result<ModelSpec> spec = model_spec(kind, "/m/config.json", std::move(training));
  return spec ? nlohmann::json::parse(spec->json) : nlohmann::json(spec.error().what);
}

TEST(ModelSpec, TypesAreThoseOfMixedPrecision) {
  ModelKind kind;
  kind.architecture = "LlamaForCausalLM";
  kind.dtype = "bf16";
  Training training = *parse_training("full");
  training.sequence = 512;
  nlohmann::json full = spec_of(kind, training);
  EXPECT_EQ(full["dtype"], "fp32");
  EXPECT_EQ(full["autocast"], "bf16");
  EXPECT_EQ(full["checkpointing"], false);
  training.bfloat = false;
  EXPECT_EQ(spec_of(kind, training)["autocast"], "fp16");
  training.dtype = "bf16";
  full = spec_of(kind, training);
  EXPECT_EQ(full["dtype"], "bf16");
  EXPECT_EQ(full["autocast"], "");
  training = *parse_training("qlora:8");
  training.sequence = 512;
  const nlohmann::json qlora = spec_of(kind, training);
  EXPECT_EQ(qlora["dtype"], "bf16");
  EXPECT_EQ(qlora["autocast"], "bf16");
  EXPECT_EQ(qlora["checkpointing"], true);
  EXPECT_EQ(qlora["assumed"][0][0], "estimate");
}

TEST(ModelSpec, SaysHowItIsDealtOut) {
  ModelKind kind;
  kind.architecture = "LlamaForCausalLM";
  Training training = *parse_training("full");
  training.sequence = 512;
  EXPECT_FALSE(spec_of(kind, training).contains("strategy"));
  training.strategy = *parse_strategy("zero2");
  const nlohmann::json spec = spec_of(kind, training);
  EXPECT_EQ(spec["strategy"], "fsdp");
  EXPECT_EQ(spec["strategy_asked"], "zero2");
  EXPECT_EQ(spec["reshard"], false);
  const auto assumed = [&](const std::string& id) {
    const nlohmann::json all = spec_of(kind, training)["assumed"];
    return std::any_of(all.begin(), all.end(),
                       [&](const nlohmann::json& one) { return one[0] == id; });
  };
  EXPECT_TRUE(assumed("strategy_zero2"));
  EXPECT_TRUE(assumed("sharded_precision"));
  EXPECT_FALSE(assumed("full_autocast"));
  training.strategy = *parse_strategy("ddp");
  EXPECT_TRUE(assumed("full_autocast"));
  EXPECT_FALSE(assumed("sharded_precision"));
  training.strategy = *parse_strategy("tp:2");
  EXPECT_EQ(spec_of(kind, training)["degree"], 2);
  training.method = "lora";
  training.rank = 8;
  EXPECT_FALSE(model_spec(kind, "c", training));
}

TEST(ModelSpec, WhatDoesNotGoTogetherIsSaid) {
  ModelKind kind;
  kind.architecture = "LlamaForCausalLM";
  const auto refused = [&](Training training) { return !model_spec(kind, "c", training); };
  Training training = *parse_training("full");
  EXPECT_TRUE(refused(training));  // how many tokens?
  training.sequence = 512;
  EXPECT_FALSE(refused(training));
  training.resolution = 512;
  EXPECT_TRUE(refused(training));
  training.resolution = 0;
  kind.quantisation = "gptq";
  EXPECT_TRUE(refused(training));
  kind.quantisation = "fp8";
  EXPECT_FALSE(refused(training));
  kind.library = ModelLibrary::diffusers;
  kind.architecture = "SomethingElse";
  training.sequence = 0;
  EXPECT_TRUE(refused(training));
  kind.architecture = "UNet2DConditionModel";
  EXPECT_FALSE(refused(training));
  training.resolution = 1000;
  EXPECT_TRUE(refused(training));
}

// Each assumption that the specification or the program makes has a sentence.
TEST(ModelSpec, EveryNoteHasWords) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  ModelKind kinds[3];
  kinds[0].architecture = "LlamaForCausalLM";
  kinds[1].architecture = "ViTForImageClassification";
  kinds[2].architecture = "UNet2DConditionModel";
  kinds[2].library = ModelLibrary::diffusers;
  kinds[2].beside_bytes = 1;
  size_t seen = 0;
  for (const ModelKind& kind : kinds) {
    for (const char* how : {"full", "lora:4", "qlora"}) {
      for (const char* dtype : {"", "fp32"}) {
        for (const char* optimizer : {"", "adamw8bit", "sgd"}) {
          Training training = *parse_training(how);
          training.dtype = dtype;
          training.optimizer = optimizer;
          if (&kind == &kinds[0]) training.sequence = 8;
          training.strategy = *parse_strategy("fsdp");
          const Result<ModelSpec> spec = model_spec(kind, "c", training, {false, 7});
          ASSERT_TRUE(spec) << spec.error().what;
          for (const Assumption& assumption : spec->assumed) {
            const std::string note = "model_" + assumption.first;
            EXPECT_TRUE(is_model_note(note)) << note;
            for (const char* lang : {"en", "zh"})
              EXPECT_FALSE(knowledge.message("report.fit.warning." + note, lang).empty()) << note;
            ++seen;
          }
        }
      }
    }
  }
  EXPECT_GT(seen, 100u);
  EXPECT_FALSE(is_model_note("model_stop_class"));
  EXPECT_TRUE(is_model_stop("model_stop_class"));
}

}  // namespace model_test
}  // namespace cufit::fit
