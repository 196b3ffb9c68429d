// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/fit_plan_lines.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/version.h"
#include "report/terminal/python_names.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using Lines = std::vector<std::string>;

class FitPlanLinesWriter {
 public:
  FitPlanLinesWriter(const fit::PlansAnswer& plans, const fit::TrainingPlan& plan,
                     const std::string& settings)
      : program_(plans.programs.front().steps),
        plan_(plan),
        switches_(plans.programs[plan.program].switches),
        settings_(settings),
        framework_(fact("framework")),
        trainer_(framework_ == "trainer"),
        lightning_(framework_ == "lightning"),
        accelerate_(framework_ == "accelerate"),
        own_(!fact("strategy").empty()) {}

  PlanLines of(const std::string& change) const {
    if (change == "bf16" || change == "fp16")
      return {change, fact("forward_at"), precision(change)};
    const std::string kind = change.substr(0, change.find(':'));
    if (kind == "zero1" || kind == "fsdp" || kind == "hsdp" || kind == "tp" || kind == "offload")
      return {change, place_of(kind), dealt(change, kind)};
    if (change == "checkpointing") return {change, "", checkpointing()};
    if (change == "accumulation") return {change, "", accumulation()};
    if (change == "expandable_segments") return {change, "", {allocator()}};
    return {change, trainer_ ? "" : fact("optimizer_at"), optimizer(change)};
  }

 private:
  // Where the program does it itself.
  std::string place_of(const std::string& kind) const {
    if (own_ || trainer_ || lightning_ || accelerate_) return {};
    return fact(kind == "zero1" ? "optimizer_at" : "data_parallel_at");
  }
  std::string fact(const char* key) const { return printable(program_.fact(key)); }

  Lines precision(const std::string& half) const {
    if (trainer_) return {format("TrainingArguments({}=True)  # or --{} True", half, half)};
    if (lightning_)
      return {format("Trainer(precision=\"{}-mixed\")", half == "bf16" ? "bf16" : "16")};
    if (accelerate_) return {format("Accelerator(mixed_precision=\"{}\")", half)};
    if (half == "bf16")
      return {
          "with torch.autocast(\"cuda\", dtype=torch.bfloat16):  # forward and loss, not backward"};
    return {"scaler = torch.amp.GradScaler(\"cuda\")",
            "with torch.autocast(\"cuda\", dtype=torch.float16):  # forward and loss, not backward",
            "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()"};
  }

  // In place of DistributedDataParallel. `kind`: of "hsdp:4" what stands before the colon.
  Lines dealt(const std::string& change, const std::string& kind) const {
    if (own_) {
      if (kind == "offload") return {"fully_shard(..., offload_policy=CPUOffloadPolicy())"};
      return {format("--strategy {}", change)};
    }
    if (trainer_) return {trainer_dealt(change, kind)};
    if (accelerate_) return {accelerate_dealt(change, kind)};
    if (lightning_) return {lightning_dealt(change, kind)};
    if (kind == "offload")
      return {"from torch.distributed.fsdp import CPUOffloadPolicy",
              "fully_shard(..., offload_policy=CPUOffloadPolicy())  # in each of these calls",
              "init_process_group(\"cpu:gloo,cuda:nccl\")  # gradients are clipped on the CPU"};
    // Groups carry their options: of several each keeps its own, which `model.parameters()` would
    // drop. tests/tracer/programs/zero1_lines.py runs these lines.
    if (kind == "zero1")
      return {"from torch.distributed.optim import ZeroRedundancyOptimizer",
              "optimizer = ZeroRedundancyOptimizer(optimizer.param_groups, "
              "optimizer_class=type(optimizer))  # behind the optimizer, before a scheduler is made"};
    return fully_shard(change, kind);
  }

  Lines fully_shard(const std::string& change, const std::string& kind) const {
    const std::string half = gathered_in();
    std::string more;
    Lines out = {format("from torch.distributed.fsdp import {}fully_shard",
                        half.empty() ? "" : "MixedPrecisionPolicy, ")};
    if (kind == "hsdp") {
      const std::string group = printable(change.substr(kind.size() + 1));
      out.push_back("import torch.distributed as dist");
      out.push_back("from torch.distributed.device_mesh import init_device_mesh");
      out.push_back(
          format("mesh = init_device_mesh(\"cuda\", (dist.get_world_size() // {}, {}), "
                 "mesh_dim_names=(\"replicate\", \"shard\"))",
                 group, group));
      more += ", mesh=mesh";
    }
    if (change == "fsdp:no-reshard") more += ", reshard_after_forward=False";
    if (!half.empty()) {
      constexpr auto k_policy =
          "policy = MixedPrecisionPolicy(param_dtype=torch.{}, reduce_dtype=torch.float32)";
      out.push_back(format(k_policy, half));
      more += ", mp_policy=policy";
    }
    const std::string blocks = lists_of_blocks(fact("blocks_at"));
    if (!blocks.empty()) {
      out.push_back(format("for block in [{}]:", blocks));
      out.push_back(format("    fully_shard(block{})", more));
    }
    constexpr auto k_at = "in the place of DistributedDataParallel, before the optimizer is made";
    out.push_back(format("fully_shard(model{})  # {}", more, k_at));
    return out;
  }

  // Whether the plan takes DistributedDataParallel away, whose model is `module`.
  bool unwraps() const {
    return std::any_of(switches_.begin(), switches_.end(), [](const std::string& name) {
      return starts_with(name, "fsdp") || starts_with(name, "hsdp");
    });
  }

  // A module of the model by its path: "layers.0.body" is no Python with a dot before a number.
  std::string module_at(std::string_view path) const {
    constexpr std::string_view k_wrapped = "module";
    if (unwraps() && (path == k_wrapped || starts_with(path, "module.")))
      path.remove_prefix(std::min(path.size(), k_wrapped.size() + 1));
    return python_module(path);
  }

  // "*model.encoder, *model.decoder"; empty: none.
  std::string lists_of_blocks(const std::string& paths) const {
    std::string out;
    for (const std::string_view path : split(paths, ' '))
      if (!path.empty()) out += format("{}*{}", out.empty() ? "" : ", ", module_at(path));
    return out;
  }

  // The half precision that the plan computes in; empty: none.
  std::string gathered_in() const {
    for (const std::string& name : switches_) {
      if (name == "bf16") return "bfloat16";
      if (name == "fp16") return "float16";
    }
    return fact("autocast");
  }

  // transformers 5 takes FSDP2 by `fsdp_config`, and knows no hybrid sharding there.
  std::string trainer_dealt(const std::string& change, const std::string& kind) const {
    if (kind == "zero1")
      return "TrainingArguments(deepspeed=FILE)  # with {\"zero_optimization\": {\"stage\": 1}, "
             "\"train_batch_size\": \"auto\", \"train_micro_batch_size_per_gpu\": \"auto\", "
             "\"gradient_accumulation_steps\": \"auto\", \"bf16\": {\"enabled\": \"auto\"}, "
             "\"fp16\": {\"enabled\": \"auto\"}}";
    if (kind == "hsdp") return "accelerate launch " + hybrid(change, kind);
    return format(
        "TrainingArguments(fsdp=True, fsdp_config={{\"version\": 2, {}}})  # transformers 5",
        kind == "offload"             ? "\"cpu_offload\": True"
        : change == "fsdp:no-reshard" ? "\"reshard_after_forward\": False"
                                      : "\"reshard_after_forward\": True");
  }

  static constexpr std::string_view k_fsdp2 =
      "--use_fsdp --fsdp_version 2 --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP ";

  std::string accelerate_dealt(const std::string& change, const std::string& kind) const {
    if (kind == "zero1") return "accelerate launch --use_deepspeed --zero_stage 1";
    if (kind == "hsdp") return "accelerate launch " + hybrid(change, kind);
    return format("accelerate launch {}{}", k_fsdp2,
                  kind == "offload"             ? "--fsdp_offload_params true"
                  : change == "fsdp:no-reshard" ? "--fsdp_reshard_after_forward false"
                                                : "--fsdp_reshard_after_forward true");
  }

  std::string lightning_dealt(const std::string& change, const std::string& kind) const {
    if (kind == "zero1") return "Trainer(strategy=\"deepspeed_stage_1\")";
    if (kind == "offload") return "FSDPStrategy(..., cpu_offload=True)";
    const char* how = kind == "hsdp"                ? "HYBRID_SHARD"
                      : change == "fsdp:no-reshard" ? "SHARD_GRAD_OP"
                                                    : "FULL_SHARD";
    const std::string mesh = kind == "hsdp" ? format(", device_mesh=({}, {})", groups(change, kind),
                                                     shards(change, kind))
                                            : "";
    return format(
        "Trainer(strategy=FSDPStrategy(sharding_strategy=\"{}\", auto_wrap_policy={{Block}}{}))  # "
        "Block: the class of the repeated layers",
        how, mesh);
  }

  // Of "hsdp:8" over 16 ranks: 8 share a copy, 2 groups have one each.
  uint64_t shards(const std::string& change, const std::string& kind) const {
    return std::max<uint64_t>(1, parse_uint(change.substr(kind.size() + 1)).value_or(1));
  }
  uint64_t groups(const std::string& change, const std::string& kind) const {
    return parse_uint(program_.fact("world_size")).value_or(1) / shards(change, kind);
  }
  std::string hybrid(const std::string& change, const std::string& kind) const {
    return format(
        "{}--use_parallelism_config --parallelism_config_dp_replicate_size {} "
        "--parallelism_config_dp_shard_size {}",
        k_fsdp2, groups(change, kind), shards(change, kind));
  }

  Lines checkpointing() const {
    if (own_) return {"--checkpointing on"};
    const std::string kind = fact("checkpointing"), at = fact("checkpointing_at");
    if (trainer_ && kind == "transformers")
      return {
          "TrainingArguments(gradient_checkpointing=True, "
          "gradient_checkpointing_kwargs={\"use_reentrant\": False})"};
    const std::string model = kind == "blocks" ? "model" : module_at(at);
    if (kind == "transformers")
      return {model +
              ".gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": "
              "False})"};
    if (kind == "timm") return {model + ".set_grad_checkpointing(True)"};
    return {"from functools import partial", "from torch.utils.checkpoint import checkpoint",
            format("for block in [{}]:", lists_of_blocks(at)),
            "    block.forward = partial(checkpoint, block.forward, use_reentrant=False)"};
  }

  Lines optimizer(const std::string& change) const {
    const std::string name = fact("optimizer");
    if (own_ && change == "8bit") return {"--optimizer adamw8bit"};
    if (change == "8bit") {
      if (trainer_)
        return {"TrainingArguments(optim=\"adamw_bnb_8bit\")  # pip install bitsandbytes"};
      return {
          format("bitsandbytes.optim.{}8bit(...)  # for torch.optim.{}; pip install bitsandbytes",
                 name, name)};
    }
    if (trainer_ && change == "fused" && name == "AdamW")
      return {"TrainingArguments(optim=\"adamw_torch_fused\")"};
    return {format("torch.optim.{}(..., {})", name,
                   change == "fused" ? "fused=True" : "foreach=False")};
  }

  Lines accumulation() const {
    const uint64_t micro = plan_.micro_batch, count = plan_.accumulation;
    if (trainer_)
      return {format(
          "TrainingArguments(per_device_train_batch_size={}, gradient_accumulation_steps={})",
          micro, count)};
    if (lightning_)
      return {
          format("Trainer(accumulate_grad_batches={})  # with a batch size of {}", count, micro)};
    if (accelerate_)
      return {format("Accelerator(gradient_accumulation_steps={})  # with a batch size of {}",
                     count, micro),
              "with accelerator.accumulate(model):  # round forward, backward and step"};
    if (count == 1) return {format("batch size {}, a step after each", micro)};
    return {format("batch size {}; (loss / {}).backward()", micro, count),
            format("if (i + 1) % {} == 0: optimizer.step(); optimizer.zero_grad()", count)};
  }

  // The variable has this name from torch 2.9 on; 2.9 itself drops settings of the old one.
  std::string allocator() const {
    const std::optional<Version> torch = parse_version(fact("torch"));
    const bool is_new = torch && *torch >= *parse_version("2.9");
    return format("{}={}{}expandable_segments:True",
                  is_new ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF", printable(settings_),
                  settings_.empty() ? "" : ",");
  }

  const fit::StepProgram& program_;
  const fit::TrainingPlan& plan_;
  const std::vector<std::string>& switches_;
  const std::string& settings_;
  const std::string framework_;
  const bool trainer_, lightning_, accelerate_;
  const bool own_;  // a model without a script
};

}  // namespace

std::vector<PlanLines> plan_lines(const fit::PlansAnswer& plans, const fit::TrainingPlan& plan,
                                  const std::string& settings) {
  const FitPlanLinesWriter writer(plans, plan, settings);
  std::vector<PlanLines> out;
  for (const std::string& change : plans.programs[plan.program].switches)
    out.push_back(writer.of(change));
  const fit::TrainingPlan& own = plans.plans.plans[plans.plans.as_it_is];
  if (plan.accumulation != own.accumulation) out.push_back(writer.of("accumulation"));
  if (plan.expandable_segments) out.push_back(writer.of("expandable_segments"));
  return out;
}

}  // namespace cufit::report
