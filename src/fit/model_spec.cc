// SPDX-License-Identifier: Apache-2.0
#include "fit/model_spec.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/number.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_most_rank = 4096, k_usual_rank = 16, k_most_length = 1u << 20;
constexpr std::string_view k_diffusers[] = {"UNet2DConditionModel", "FluxTransformer2DModel",
                                            "SD3Transformer2DModel"};

constexpr std::string_view k_notes[] = {
    // of this file
    "model_estimate", "model_no_dtype", "model_full_autocast", "model_full_pure", "model_frozen",
    "model_frozen_pure", "model_four_bit_how", "model_fp8", "model_adamw_fused",
    "model_adamw_foreach", "model_adamw8bit", "model_sgd", "model_checkpointing_on",
    "model_checkpointing_off", "model_text", "model_pictures", "model_latents", "model_beside",
    "model_full_sharded", "model_per_rank", "model_strategy_ddp", "model_strategy_zero1",
    "model_strategy_zero2", "model_strategy_zero3", "model_strategy_fsdp",
    "model_strategy_fsdp_kept", "model_strategy_hsdp", "model_strategy_tp",
    "model_sharded_precision",
    // of the program
    "model_built", "model_lora_targets", "model_trained", "model_four_bit", "model_count",
    "model_positions", "model_loss", "model_no_weights", "model_cut_off", "model_wrapped",
    "model_split"};
constexpr std::string_view k_stops[] = {"model_stop_missing", "model_stop_class",
                                        "model_stop_targets", "model_stop_tp", "model_stop_ranks"};

class Writer {
 public:
  Writer(const ModelKind& kind, Training training, const ModelWeights& weights)
      : kind_(kind), training_(std::move(training)), files_(weights) {}

  Result<ModelSpec> write(const std::string& config) {
    assume("estimate");
    if (!files_.there) assume("no_weights");
    if (files_.missing_bytes != 0) assume("cut_off");
    if (Result<void> good = types(); !good) return good.error();
    if (Result<void> good = strategy(); !good) return good.error();
    if (Result<void> good = data(); !good) return good.error();
    optimizer();
    checkpointing();
    Json json = {{"library", diffusion() ? "diffusers" : "transformers"},
                           {"kind", kind_.layout},
                           {"architecture", kind_.architecture},
                           {"config", config},
                           {"dtype", weights_},
                           {"autocast", autocast_},
                           {"train", training_.method},
                           {"rank", training_.rank},
                           {"seq", training_.sequence},
                           {"res", training_.resolution},
                           {"optimizer", optimizer_},
                           {"checkpointing", training_.checkpointing == "on"},
                           {"lora_targets", training_.lora_targets},
                           {"lora_blocks", lora_blocks()},
                           {"parameters", kind_.parameters},
                           {"channels", kind_.channels},
                           {"blocks", {kind_.blocks, kind_.single_blocks}},
                           {"guidance", kind_.guidance},
                           {"assumed", out_.assumed}};
    if (training_.strategy)
      json.update({{"strategy", training_.strategy->kind},
                   {"strategy_asked", training_.strategy->asked},
                   {"degree", training_.strategy->degree},
                   {"reshard", training_.strategy->reshard}});
    out_.json = json.dump(-1, true);
    return std::move(out_);
  }

 private:
  bool diffusion() const { return kind_.library == ModelLibrary::diffusers; }
  bool full() const { return training_.method == "full"; }
  void assume(const char* id, std::string detail = "") {
    out_.assumed.emplace_back(id, std::move(detail));
  }

  // The blocks whose layers sd-scripts' LoRA takes.
  std::vector<std::string> lora_blocks() const {
    if (kind_.architecture == "UNet2DConditionModel") return {"Transformer2DModel"};
    if (kind_.architecture == "FluxTransformer2DModel")
      return {"FluxTransformerBlock", "FluxSingleTransformerBlock"};
    return {"JointTransformerBlock"};
  }

  // Tensor parallelism is where there are several groups of it.
  bool always_sharded() const {
    return training_.strategy && training_.strategy->shards() && training_.strategy->kind != "tp";
  }

  // FSDP gathers what it computes with in half precision, and needs no autocast.
  Result<void> strategy() {
    if (!training_.strategy) return {};
    const Strategy& strategy = *training_.strategy;
    assume("per_rank");
    assume(strategy.note().c_str(), strategy.degree == 0 ? "" : std::to_string(strategy.degree));
    if (always_sharded() && !autocast_.empty()) assume("sharded_precision", autocast_);
    if (strategy.kind != "tp") return {};
    if (!full())
      return fail(Code::usage, format("`--strategy {}` goes with `--train full`", strategy.asked));
    if (diffusion())
      return fail(Code::unsupported,
                  format("`--strategy {}`: no plan says how the layers of {} are "
                         "split",
                         strategy.asked, kind_.architecture));
    return {};
  }

  // Full: fp32 weights under autocast, as mixed precision is without further options. Frozen ones
  // stay in the type that they are written in; diffusion trainers cast them to that of the
  // arithmetic.
  Result<void> types() {
    const std::string half = training_.bfloat ? "bf16" : "fp16";
    const std::string& asked = training_.dtype;
    const bool packed = !kind_.quantisation.empty() && kind_.quantisation != "fp8";
    if (packed && training_.method != "qlora")
      return fail(Code::unsupported,
                  format("its weights are quantised ({}) and cannot be trained so: name the model "
                         "as it was before, or `--train qlora` for a LoRA over 4 bit weights",
                         kind_.quantisation));
    if (kind_.quantisation == "fp8") assume("fp8");
    if (kind_.dtype.empty() && asked.empty() && !diffusion() && !full()) assume("no_dtype", half);
    if (full()) {
      weights_ = asked.empty() ? "fp32" : asked;
      autocast_ = asked.empty() ? half : "";
      if (asked.empty())
        assume(always_sharded() ? "full_sharded" : "full_autocast", half);
      else
        assume("full_pure", asked);
      return {};
    }
    const std::string written = kind_.dtype.empty() || diffusion() ? half : kind_.dtype;
    weights_ = asked.empty() ? written : asked;
    if (asked == "fp32")
      autocast_ = "";
    else
      autocast_ = weights_ == "fp32" ? half : weights_;
    if (training_.method == "qlora")
      assume("four_bit_how", autocast_.empty() ? "fp32" : autocast_);
    else if (autocast_.empty())
      assume("frozen_pure", weights_);
    else
      assume("frozen", weights_ == autocast_ ? weights_ : weights_ + " / " + autocast_);
    return {};
  }

  Result<void> data() {
    if (!training_.lora_targets.empty() && (full() || diffusion()))
      return fail(Code::usage,
                  "`--lora-targets` goes with `--train lora:RANK` of a language model");
    if (training_.lora_targets.empty()) training_.lora_targets = "all";
    if (diffusion()) {
      if (training_.sequence != 0)
        return fail(Code::usage, format("`--seq`: {} is trained on pictures; `--res PIXELS` says "
                                        "how large",
                                        kind_.architecture));
      if (training_.resolution == 0)
        training_.resolution = kind_.layout == "sd1" || kind_.layout == "sd2" ? 512 : 1024;
      if (training_.resolution % 64 != 0)
        return fail(Code::usage, format("`--res {}`: a multiple of 64", training_.resolution));
      assume("latents", std::to_string(training_.resolution));
      if (kind_.beside_bytes != 0) assume("beside", gib(kind_.beside_bytes));
      return {};
    }
    const bool pictures = ends_with(kind_.architecture, "ForImageClassification");
    if (!pictures && training_.sequence == 0)
      return fail(Code::usage,
                  format("{}: how many tokens has a sample? `--seq N`", kind_.architecture));
    if (pictures && training_.sequence != 0)
      return fail(Code::usage, format("`--seq`: {} is trained on pictures", kind_.architecture));
    if (!pictures && training_.resolution != 0)
      return fail(Code::usage, format("`--res`: {} is trained on text", kind_.architecture));
    assume(pictures ? "pictures" : "text", std::to_string(training_.sequence));
    return {};
  }

  static std::string gib(uint64_t bytes) {
    return format("{:.2f} GiB", static_cast<double>(bytes) / (1u << 30));
  }

  void optimizer() {
    optimizer_ = training_.optimizer.empty() ? "adamw" : training_.optimizer;
    if (optimizer_ == "adamw" && diffusion()) optimizer_ = "adamw-foreach";
    assume(optimizer_ == "adamw"           ? "adamw_fused"
           : optimizer_ == "adamw-foreach" ? "adamw_foreach"
                                           : optimizer_.c_str());
  }

  void checkpointing() {
    if (training_.checkpointing.empty())
      training_.checkpointing = training_.method == "qlora" && !diffusion() ? "on" : "off";
    assume(training_.checkpointing == "on" ? "checkpointing_on" : "checkpointing_off");
  }

  const ModelKind& kind_;
  Training training_;
  ModelWeights files_;
  std::string weights_, autocast_, optimizer_;
  ModelSpec out_;
};

}  // namespace

Result<Training> parse_training(const std::string& text) {
  Training out;
  const size_t colon = text.find(':');
  out.method = text.substr(0, colon);
  const std::optional<uint64_t> rank =
      colon == std::string::npos ? std::nullopt : parse_uint(text.substr(colon + 1));
  const bool lora = out.method == "lora", qlora = out.method == "qlora";
  const bool good = colon == std::string::npos
                        ? out.method == "full" || qlora
                        : (lora || qlora) && rank && *rank > 0 && *rank <= k_most_rank;
  if (!good)
    return fail(Code::usage, format("`--train {}`: full, lora:RANK, qlora or qlora:RANK, with a "
                                    "rank from 1 to {}",
                                    text, k_most_rank));
  if (lora || qlora) out.rank = rank.value_or(k_usual_rank);
  return out;
}

Result<ModelSpec> model_spec(const ModelKind& kind, const std::string& config, Training training,
                             const ModelWeights& weights) {
  if (training.sequence > k_most_length || training.resolution > k_most_length)
    return fail(Code::usage, format("`--seq`, `--res`: at most {}", k_most_length));
  const bool known = kind.library == ModelLibrary::transformers ||
                     std::find(std::begin(k_diffusers), std::end(k_diffusers), kind.architecture) !=
                         std::end(k_diffusers);
  if (kind.architecture.empty() || !known)
    return fail(
        Code::unsupported,
        format("`{}` is not one that cufit knows how to train: of diffusers {}, of "
               "transformers every class that config.json may name",
               kind.architecture,
               join({"UNet2DConditionModel", "FluxTransformer2DModel", "SD3Transformer2DModel"},
                    ", ")));
  return Writer(kind, std::move(training), weights).write(config);
}

bool is_model_note(std::string_view kind) {
  return std::find(std::begin(k_notes), std::end(k_notes), kind) != std::end(k_notes);
}

bool is_model_stop(std::string_view kind) {
  return std::find(std::begin(k_stops), std::end(k_stops), kind) != std::end(k_stops);
}

}  // namespace cufit::fit
