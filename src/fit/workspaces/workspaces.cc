// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/workspaces.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/number.h"
#include "fit/workspaces/attention_workspace.h"
#include "fit/workspaces/call_results.h"
#include "fit/workspaces/conv_workspace.h"
#include "fit/workspaces/cudnn_workspace.h"
#include "fit/workspaces/embedding_workspace.h"
#include "fit/workspaces/fft_workspace.h"
#include "fit/workspaces/reduction_workspace.h"
#include "fit/workspaces/rnn_workspace.h"
#include "fit/workspaces/cudnn_benchmark_workspace.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_max_config = uint64_t{1} << 40;

SizeAt cublas_workspace(const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  // PyTorch warns of what it cannot read and takes the default.
  if (const auto bytes = parse_cublas_workspace_config(setup.cublas_workspace_config))
    return {*bytes, *bytes};
  const knowledge::CublasWorkspaceRow* row = knowledge.find_cublas_workspace(setup.cc);
  if (row == nullptr) return {};
  return {static_cast<uint64_t>(row->bytes), static_cast<uint64_t>(row->upper_bytes)};
}

SizeAt cublaslt_workspace(const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  const Version torch{{setup.torch_major, setup.torch_minor}};
  SizeAt out;
  for (const knowledge::CublasltWorkspaceRow& row : knowledge.cublaslt_workspaces) {
    const auto first = parse_version(row.torch_first), last = parse_version(row.torch_last);
    const auto bytes = static_cast<uint64_t>(row.bytes);
    if (first && last && *first <= torch && torch <= *last) out.point = bytes;
    out.upper = std::max(out.upper, bytes);
  }
  return out;
}

constexpr uint64_t k_traced_batches = 3;  // of validation
constexpr uint64_t k_most_batches = 1u << 30;
constexpr uint64_t k_most_blocks = 4096;      // of one call
constexpr uint64_t k_most_held = 1u << 20;    // of all calls
constexpr uint64_t k_most_left = 1ull << 56;  // bytes, samples: no sum overflows

class Model {
 public:
  Model(const StepProgram& program, const std::vector<SizeAt>& sizes, const LibrarySetup& setup,
        const knowledge::Knowledge& knowledge)
      : program_(program),
        sizes_(sizes),
        setup_(setup),
        knowledge_(knowledge),
        results_(program),
        cublas_(cublas_workspace(setup, knowledge)),
        cublaslt_(cublaslt_workspace(setup, knowledge)) {}

  std::vector<Workspace> run() {
    for (uint32_t i = 0; i < program_.events.size(); ++i)
      if (program_.events[i].kind == StepEventKind::call) call(i);
    std::stable_sort(out_.begin(), out_.end(),
                     [](const Workspace& a, const Workspace& b) { return a.event < b.event; });
    return std::move(out_);
  }

 private:
  void call(uint32_t event) {
    const StepCall& called = program_.calls[program_.events[event].index];
    const Site& site = program_.sites[called.site];
    const std::string_view op = program_.text(site.op);
    stream_ = site.stream;
    if (op == "matmul") return multiply(event, site, false);
    if (op == "matmul_bias") return multiply(event, site, true);
    if (op == "conv") return convolve(event, called, ConvPass::forward);
    if (op == "conv_dgrad") return convolve(event, called, ConvPass::data_gradient);
    if (op == "rnn") return recur(event, called);
    if (op == "fft")
      return add(fft_workspace(numbers_of(called)), results_.event_of(event), false);
    if (op == "embedding" || op == "embedding_bag")
      return add(embedding_workspace(numbers_of(called), op == "embedding_bag"),
                 results_.event_of(event), false);
    if (op == "reduce_rows")
      return add(reduction_workspace(numbers_of(called), setup_.multiprocessors),
                 results_.event_of(event), false);
    if (op == "temporary" && called.count == 1) {
      const uint64_t bytes = numbers_of(called)[0];
      return add({bytes, bytes}, results_.event_of(event), false);
    }
    if (op == "sdpa") {
      const std::span<const uint64_t> numbers = numbers_of(called);
      const bool backward = site.phase == TracePhase::backward;
      const uint32_t at = backward ? results_.after_all(event, 0) : results_.event_of(event);
      add(attention_product(numbers), at, false);
      return add(attention_workspace(numbers), at, false);
    }
    if (op == "kept_of_each_batch" || op == "joined_batches") return validate(event, called);
    if (op == "conv_wgrad") return convolve(event, called, ConvPass::weight_gradient);
  }

  // The main thread and autograd's have a handle each, and each handle on each stream a workspace.
  void multiply(uint32_t call, const Site& site, bool with_bias) {
    const uint32_t event = results_.event_of(call);
    const std::pair key(site.phase == TracePhase::backward, site.stream);
    if (has_cublas_.insert(key).second) add(cublas_, event, true);
    if (with_bias && has_cublaslt_.insert(key).second) add(cublaslt_, event, true);
  }

  std::span<const uint64_t> numbers_of(const StepCall& called) {
    numbers_.clear();
    for (uint32_t i = 0; i < called.count; ++i)
      numbers_.push_back(sizes_[program_.call_numbers[called.first + i]].point);
    return numbers_;
  }

  // Forward: from before what is kept for backward until that is made. Backward: after the
  // gradients of the states, and after those of the weights.
  void recur(uint32_t event, const StepCall& called) {
    const std::span<const uint64_t> numbers = numbers_of(called);
    const SizeAt bytes = rnn_workspace(numbers, setup_, knowledge_);
    const bool backward = rnn_is_backward(numbers);
    const uint32_t last = results_.after_all(event, 0);
    if (backward) return add(bytes, last, false);
    add(bytes, results_.after_all(event, 1), false);
    if (bytes.upper > 0) out_.back().until = last;
  }

  void convolve(uint32_t event, const StepCall& called, ConvPass pass) {
    const std::span<const uint64_t> numbers = numbers_of(called);
    const std::optional<ConvShape> shape = conv_shape(numbers);
    if (!shape) return;
    const std::optional<CudnnAnswer> answer = program_.cudnn.at(setup_.cc, pass, numbers);
    SizeAt bytes = answer ? cudnn_workspace(*shape, pass, *answer, setup_, knowledge_)
                          : conv_workspace(*shape, pass, setup_, knowledge_);
    const bool refused = program_.cudnn.refused(setup_.cc, pass, numbers);
    if (refused) bytes = unnamed_workspace(*shape, pass, bytes);
    if (pass == ConvPass::forward && has_no_other_engine(numbers))
      bytes = tried_workspace(numbers, pass);
    if (answer && takes_over(numbers, pass, *answer)) {
      const SizeAt tried = tried_workspace(numbers, pass);
      bytes = {tried.point, std::max(tried.upper, bytes.upper)};
    }
    // Before it chooses, PyTorch tries all engines with a block for the one that asks for most, and
    // gives back what is cached (aten/src/ATen/native/cudnn/Conv_v8.cpp). A torch without cuDNN has no
    // answer: what it would name is unknown then, the largest is not.
    if (setup_.cudnn_benchmark && !refused) {
      const uint64_t named = answer ? answer->most : 0;
      const std::vector<uint64_t> key(numbers.begin(), numbers.end());
      if (tried_[static_cast<size_t>(pass)].insert(key).second) {
        const SizeAt engines = tried_workspace(numbers, pass);
        const SizeAt most{std::max(named, engines.point),
                          std::max({named, engines.upper, bytes.upper})};
        add(most, results_.event_of(event), false);
        if (most.upper > 0) out_.back().empties_cache = true;
      }
      bytes.upper = std::max({bytes.upper, bytes.point, named});
    }
    add(bytes, results_.event_of(event), false);
  }

  // Three batches were traced (python/cufit_tracer/steps/growth.py), these are the others.
  // Numbers: samples in all, of a batch, bytes that one leaves; joined: 0 after the second, 1 after
  // the third.
  void validate(uint32_t event, const StepCall& called) {
    const std::span<const uint64_t> numbers = numbers_of(called);
    const bool joined = called.count == 4;
    if (called.count < 3 || numbers[1] == 0) return;
    if (std::max(numbers[0], numbers[1]) > k_most_left) return;
    const uint64_t count = numbers[0] / numbers[1] + (numbers[0] % numbers[1] != 0 ? 1 : 0);
    const uint64_t bytes = numbers[2];
    if (count > k_most_batches || bytes > k_most_left / std::max<uint64_t>(count, 1)) return;
    const uint64_t lacking = count * numbers[1] - numbers[0];  // samples, of the last batch
    const auto share = static_cast<double>(lacking) / static_cast<double>(numbers[1]);
    const uint64_t less =
        std::min(static_cast<uint64_t>(share * static_cast<double>(bytes) + 0.5), bytes);
    const uint64_t all = count * bytes - less;
    const auto hold = [&](uint64_t size) {
      if (size == 0 || ++held_ > k_most_held) return;
      add({size, size}, event, !joined);
      out_.back().by_program = true;
      out_.back().replaces = joined;
    };
    if (joined && numbers[3] == 1) return hold(all);
    const uint64_t stride = 1 + count / k_most_blocks;  // of more batches several are one block
    if (joined)
      for (uint64_t i = k_traced_batches; i < count; i += stride) hold(i * bytes);
    else
      for (uint64_t at = k_traced_batches * bytes; at < all && bytes != 0 && held_ <= k_most_held;
           at += stride * bytes)
        hold(std::min(all - at, stride * bytes));
  }

  void add(const SizeAt& bytes, uint32_t event, bool kept) {
    if (bytes.upper > 0) out_.push_back({bytes.point, bytes.upper, event, stream_, kept});
  }

  const StepProgram& program_;
  const std::vector<SizeAt>& sizes_;
  const LibrarySetup& setup_;
  const knowledge::Knowledge& knowledge_;
  CallResults results_;
  const SizeAt cublas_, cublaslt_;
  std::set<std::pair<bool, uint8_t>> has_cublas_, has_cublaslt_;  // of backward; stream
  uint8_t stream_ = 0;                                            // of the call
  std::vector<uint64_t> numbers_;
  uint64_t held_ = 0;                                     // blocks of batches that were not traced
  std::array<std::set<std::vector<uint64_t>>, 3> tried_;  // by pass
  std::vector<Workspace> out_;
};

}  // namespace

std::optional<uint64_t> parse_cublas_workspace_config(std::string_view text) {
  uint64_t total = 0;
  if (text.empty()) return std::nullopt;
  while (!text.empty()) {
    std::array<uint64_t, 2> pair{};  // KiB, how many
    for (uint64_t& number : pair) {
      if (text.empty() || text.front() != ':') return std::nullopt;
      text.remove_prefix(1);
      const size_t end = std::min(text.find(':'), text.size());
      const std::optional<uint64_t> parsed = parse_uint(text.substr(0, end));
      if (!parsed || *parsed > k_max_config) return std::nullopt;
      number = *parsed;
      text.remove_prefix(end);
    }
    if (pair[1] != 0 && pair[0] > k_max_config / 1024 / pair[1]) return std::nullopt;
    total += pair[0] * pair[1] * 1024;
    if (total > k_max_config) return std::nullopt;
  }
  return total;
}

std::vector<Workspace> workspaces_at(const StepProgram& program, const std::vector<SizeAt>& sizes,
                                     const LibrarySetup& setup,
                                     const knowledge::Knowledge& knowledge) {
  return Model(program, sizes, setup, knowledge).run();
}

}  // namespace cufit::fit
