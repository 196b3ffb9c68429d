// SPDX-License-Identifier: Apache-2.0
#include "fit/step_time.h"

#include <algorithm>
#include <vector>

#include "base/format.h"
#include "base/number.h"
#include "fit/workspaces/conv_workspace.h"

namespace cufit::fit {
namespace {

constexpr std::string_view k_default_card = "H100 SXM5 80GB";
constexpr double k_tera = 1e12, k_giga = 1e9, k_micro = 1e-6;
constexpr uint64_t k_attention_backward = 8;  // added to the kernel's number
// Backward multiplies five times where forward does twice.
constexpr double k_attention_forward_flops = 4, k_attention_backward_flops = 10;

double value_of(const knowledge::Knowledge& knowledge, std::string_view of) {
  for (const knowledge::StepTimeRow& row : knowledge.step_time)
    if (row.of == of) return row.value;
  CUFIT_CHECK(false, "every value is in data/step_time.toml");
  return 0;
}

const knowledge::Gpu* gpu_of(const knowledge::GpuComputeRow& row,
                             const knowledge::Knowledge& knowledge) {
  const auto found = std::find_if(knowledge.gpus.begin(), knowledge.gpus.end(),
                                  [&](const knowledge::Gpu& gpu) { return gpu.name == row.gpu; });
  return found == knowledge.gpus.end() ? nullptr : &*found;
}

const knowledge::GpuComputeRow& row_for(std::string_view card, std::string_view cc,
                                        const knowledge::Knowledge& knowledge) {
  const auto& rows = knowledge.gpu_compute;
  const auto named = [&](std::string_view name) {
    return std::find_if(rows.begin(), rows.end(),
                        [&](const knowledge::GpuComputeRow& row) { return row.gpu == name; });
  };
  auto found = named(card);
  if (found == rows.end() && !cc.empty())
    found = std::find_if(rows.begin(), rows.end(), [&](const knowledge::GpuComputeRow& row) {
      const knowledge::Gpu* gpu = gpu_of(row, knowledge);
      return gpu != nullptr && gpu->cc == cc;
    });
  if (found == rows.end()) found = named(k_default_card);
  CUFIT_CHECK(found != rows.end(), "the default card is in data/step_time.toml");
  return *found;
}

// Seconds of the kernels of one kind of phase, and how many operators there are.
struct Sum {
  double kernels = 0, launches = 0;
  double seconds(const CardSpeed& speed) const {
    return std::max(kernels, launches * speed.launch);
  }
};

class Reckoner {
 public:
  Reckoner(const StepProgram& program, const std::vector<SizeAt>& sizes, const CardSpeed& speed)
      : program_(program), sizes_(sizes), speed_(speed) {}

  void add(const StepCall& call) {
    numbers_.clear();
    for (uint32_t i = 0; i < call.count; ++i)
      numbers_.push_back(static_cast<double>(sizes_[program_.call_numbers[call.first + i]].point));
    const Site& site = program_.sites[call.site];
    const std::string_view op = program_.text(site.op);
    Sum& to = site.phase == TracePhase::optimizer ? optimizer_ : pass_;
    if (op == "moved" && numbers_.size() == 2) {
      moved_ = true;
      to.kernels += std::max(numbers_[0] / speed_.bytes, numbers_[1] * speed_.kernel);
      to.launches += numbers_[1];
    } else if ((op == "matmul" || op == "matmul_bias") && numbers_.size() == 6) {
      matmul(to);
    } else if (starts_with(op, "conv")) {
      convolution(to, call);
    } else if (op == "sdpa" && numbers_.size() >= 7) {
      attention(to);
    } else if (op == "rnn" && numbers_.size() >= 9) {
      // Every weight once for every position of every sequence.
      const double bits = numbers_[0];
      const double weights = numbers_[8] / (bits / 8);
      multiply(to, 2 * weights * numbers_[6] * numbers_[7], numbers_[8], bits, false, 1);
    }
  }

  bool told() const { return moved_; }
  StepTime time() const { return {pass_.seconds(speed_), optimizer_.seconds(speed_)}; }

 private:
  void multiply(Sum& to, double flops, double bytes, double bits, bool tf32, double share) {
    const double rate = bits == 16                ? speed_.half
                        : tf32 && speed_.tf32 > 0 ? speed_.tf32
                                                  : speed_.fp32;
    to.kernels += std::max({flops / (rate * share), bytes / speed_.bytes, speed_.kernel});
    to.launches += 1;
  }

  void matmul(Sum& to) {
    const double bits = numbers_[0], count = numbers_[2];
    const double m = numbers_[3], n = numbers_[4], k = numbers_[5];
    multiply(to, 2 * count * m * n * k, count * (m * k + k * n + m * n) * bits / 8, bits,
             numbers_[1] != 0, 1);
  }

  void convolution(Sum& to, const StepCall& call) {
    std::vector<uint64_t> exact;
    for (uint32_t i = 0; i < call.count; ++i)
      exact.push_back(sizes_[program_.call_numbers[call.first + i]].point);
    const std::optional<ConvShape> shape = conv_shape(exact);
    if (!shape || shape->groups == 0) return;
    const auto number = [](uint64_t value) { return static_cast<double>(value); };
    const double pixels = number(shape->transposed ? shape->in_pixels : shape->out_pixels);
    const double pairs = number(shape->channels) * number(shape->outputs) / number(shape->groups);
    const double batch = number(shape->batch), kernel = number(shape->kernel_pixels);
    const double moved = batch * (number(shape->channels) * number(shape->in_pixels) +
                                  number(shape->outputs) * number(shape->out_pixels)) +
                         pairs * kernel;
    // PyTorch lets cuDNN use TF32 unless told otherwise.
    multiply(to, 2 * batch * pixels * pairs * kernel, moved * number(shape->bits) / 8,
             number(shape->bits), true, speed_.convolution);
  }

  void attention(Sum& to) {
    const auto kernel = static_cast<uint64_t>(numbers_[0]);
    const double bits = numbers_[1], heads = numbers_[2] * numbers_[3];
    const double q = numbers_[4], k = numbers_[5], size = numbers_[6];
    const bool backward = kernel >= k_attention_backward;
    const double flops = backward ? k_attention_backward_flops : k_attention_forward_flops;
    multiply(to, flops * heads * q * k * size,
             heads * (backward ? 2 : 1) * 2 * (q + k) * size * bits / 8, bits, false, 1);
  }

  const StepProgram& program_;
  const std::vector<SizeAt>& sizes_;
  const CardSpeed& speed_;
  std::vector<double> numbers_;
  Sum pass_, optimizer_;
  bool moved_ = false;
};

}  // namespace

CardSpeed card_speed(std::string_view card, std::string_view cc,
                     const knowledge::Knowledge& knowledge) {
  const knowledge::GpuComputeRow& row = row_for(card, cc, knowledge);
  const knowledge::Gpu* gpu = gpu_of(row, knowledge);
  CUFIT_CHECK(gpu != nullptr, "every card of data/step_time.toml is in data/gpus.toml");
  CardSpeed out;
  out.card = std::string(row.gpu);
  out.half = row.half * k_tera * value_of(knowledge, "half_share");
  out.tf32 = row.tf32 * k_tera * value_of(knowledge, "tf32_share");
  out.fp32 = row.fp32 * k_tera * value_of(knowledge, "fp32_share");
  out.convolution = value_of(knowledge, "convolution_share");
  out.bytes = gpu->bandwidth_gbs * k_giga * value_of(knowledge, "bandwidth_share");
  out.kernel = value_of(knowledge, "kernel_microseconds") * k_micro;
  out.launch = value_of(knowledge, "launch_microseconds") * k_micro;
  return out;
}

uint64_t micro_batches(const StepProgram& program) {
  return std::max<uint64_t>(parse_uint(std::string(program.fact("micro_batches"))).value_or(1), 1);
}

std::optional<StepTime> step_time(const StepProgram& whole, uint64_t batch,
                                  const CardSpeed& speed) {
  const StepProgram* program = whole.at(batch);
  if (program == nullptr) return std::nullopt;
  const Result<std::vector<SizeAt>> sizes = sizes_at(*program, batch);
  if (!sizes) return std::nullopt;
  Reckoner reckoner(*program, *sizes, speed);
  uint32_t ended = 0;
  for (const StepEvent& event : program->events) {
    if (event.kind == StepEventKind::mark &&
        event.index == static_cast<uint32_t>(TraceMark::step_ends))
      ++ended;
    if (ended > 1) break;
    if (ended == 1 && event.kind == StepEventKind::call) reckoner.add(program->calls[event.index]);
  }
  if (!reckoner.told()) return std::nullopt;
  StepTime out = reckoner.time();
  out.pass /= static_cast<double>(micro_batches(*program));
  return out;
}

}  // namespace cufit::fit
