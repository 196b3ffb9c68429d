// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/fit_plan_lines.h"

#include "base/format.h"
#include "base/version.h"
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
        settings_(settings),
        framework_(fact("framework")),
        trainer_(framework_ == "trainer"),
        lightning_(framework_ == "lightning"),
        accelerate_(framework_ == "accelerate") {}

  PlanLines of(const std::string& change) const {
    if (change == "bf16" || change == "fp16")
      return {change, fact("forward_at"), precision(change)};
    if (change == "checkpointing") return {change, "", checkpointing()};
    if (change == "accumulation") return {change, "", accumulation()};
    if (change == "expandable_segments") return {change, "", {allocator()}};
    return {change, trainer_ ? "" : fact("optimizer_at"), optimizer(change)};
  }

 private:
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

  Lines checkpointing() const {
    const std::string kind = fact("checkpointing"), at = fact("checkpointing_at");
    if (trainer_ && kind == "transformers")
      return {
          "TrainingArguments(gradient_checkpointing=True, "
          "gradient_checkpointing_kwargs={\"use_reentrant\": False})"};
    const std::string model = at.empty() || kind == "blocks" ? "model" : "model." + at;
    if (kind == "transformers")
      return {model +
              ".gradient_checkpointing_enable(gradient_checkpointing_kwargs={\"use_reentrant\": "
              "False})"};
    if (kind == "timm") return {model + ".set_grad_checkpointing(True)"};
    std::string blocks;
    for (const std::string_view name : split(at, ' '))
      blocks += format("{}*model.{}", blocks.empty() ? "" : ", ", name);
    return {"from functools import partial", "from torch.utils.checkpoint import checkpoint",
            format("for block in [{}]:", blocks),
            "    block.forward = partial(checkpoint, block.forward, use_reentrant=False)"};
  }

  Lines optimizer(const std::string& change) const {
    const std::string name = fact("optimizer");
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
  const std::string& settings_;
  const std::string framework_;
  const bool trainer_, lightning_, accelerate_;
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
