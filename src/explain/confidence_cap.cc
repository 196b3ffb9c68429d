// SPDX-License-Identifier: Apache-2.0
#include "explain/confidence_cap.h"

#include <algorithm>
#include <span>

#include "base/format.h"

namespace cufit::explain {
namespace {

constexpr uint64_t k_message_lines = 3;  // an exception's message goes on for so many
constexpr uint64_t k_near = 2;           // "optional" so far from a line is about it
constexpr int k_named = 60;              // a sign of this weight names its cause

size_t own_lines(const SignHit& hit) { return std::min(hit.own, hit.lines.size()); }

// SignLines that signs are about, so that failures of a long log are asked one by one.
class SignLines {
 public:
  void add(const std::vector<SignHit>& hits, int least_weight) {
    for (const SignHit& hit : hits) {
      if (hit.sign->weight < least_weight) continue;
      for (size_t i = 0; i < own_lines(hit); ++i) numbers_.push_back(hit.lines[i].line);
    }
  }
  void sort() { std::sort(numbers_.begin(), numbers_.end()); }
  // One is within the message that begins there.
  bool speak_of(uint64_t failure) const {
    const auto next = std::lower_bound(numbers_.begin(), numbers_.end(), failure);
    return next != numbers_.end() && *next < failure + k_message_lines;
  }

 private:
  std::vector<uint64_t> numbers_;
};

class Judge {
 public:
  Judge(const knowledge::Knowledge& knowledge, const TextEvidence& evidence, size_t index,
        bool certain)
      : knowledge_(knowledge), evidence_(evidence), index_(index), certain_(certain) {}

  ConfidenceCap judge() {
    find_last_line();
    if (!evidence_.outcome.failures.empty()) sort_lines();
    ConfidenceCap out;
    const auto& failures = evidence_.outcome.failures;
    // The last one that is another's decides.
    for (auto failure = failures.rbegin(); failure != failures.rend(); ++failure) {
      if (failure->line <= last_ || is_own(*failure)) continue;
      out.other_failure = failure->line;
      // What a kernel log or a quotation tells of another day explains no ValueError.
      const bool apart = failure->ordinary && (!printed_ || kernel_);
      out.most = apart ? Confidence::possible : Confidence::likely;
      break;
    }
    if (commented_ && evidence_.outcome.failures.empty()) out.most = Confidence::possible;
    if (is_coped_with()) out.most = std::max(out.most, Confidence::likely);
    out.refuted_by = success_after();
    if (out.refuted_by && kernel_) {  // the card did fail, whatever ran on
      out.most = Confidence::possible;
      out.refuted_by = nullptr;
    }
    return out;
  }

 private:
  // Of what proves it, where something does; else of all that speaks for it.
  void find_last_line() {
    const auto& hits = evidence_.signs[index_];
    const auto any_of_hits = [&](auto&& is) { return std::any_of(hits.begin(), hits.end(), is); };
    const auto proves = [](const SignHit& hit) { return hit.sign->certain && hit.printed; };
    const auto would_prove = [](const SignHit& hit) { return hit.sign->certain; };
    proved_ = any_of_hits(proves);
    const bool by_sign = certain_ && any_of_hits(would_prove);
    printed_ = hits.empty();
    bool in_comments = false, elsewhere = false;
    for (const SignHit& hit : hits) {
      if (by_sign && !(proved_ ? proves(hit) : would_prove(hit))) continue;
      printed_ = printed_ || (hit.printed && hit.sign->weight >= k_named);
      for (const EvidenceLine& line : std::span(hit.lines).first(own_lines(hit))) {
        last_ = std::max(last_, line.line);
        const bool comment = starts_with(line.text, "# ") || starts_with(line.text, "// ");
        if (hit.sign->weight >= k_named) (comment ? in_comments : elsewhere) = true;
        kernel_ = kernel_ || contains(line.text, "NVRM: Xid");
        if (by_sign) proof_.push_back(line.line);
      }
    }
    commented_ = in_comments && !elsewhere;
  }

  // Which lines are about the cause, about what it explains, and named by another cause.
  void sort_lines() {
    const std::span<const std::string_view> effects = knowledge_.findings[index_].explains;
    for (size_t i = 0; i < evidence_.signs.size(); ++i) {
      const std::vector<SignHit>& hits = evidence_.signs[i];
      if (hits.empty()) continue;
      const std::string_view id = knowledge_.findings[i].id;
      if (std::find(effects.begin(), effects.end(), id) != effects.end()) explained_.add(hits, 0);
      if (i != index_) others_.add(hits, k_named);
    }
    own_.add(evidence_.signs[index_], 0);
    for (SignLines* lines : {&own_, &explained_, &others_}) lines->sort();
  }

  bool is_own(const Failure& failure) const {
    // What is only told of is not what failed where the message names another cause.
    if (certain_ && !proved_ && others_.speak_of(failure.line)) return false;
    if (failure.chained || own_.speak_of(failure.line)) return true;
    if (!evidence_.outcome.several_gpus && explained_.speak_of(failure.line)) return true;
    if (failure.ordinary || failure.memory) return false;
    // A RuntimeError that no other cause names is how most causes end.
    return !others_.speak_of(failure.line);
  }

  bool is_coped_with() const {
    return std::any_of(proof_.begin(), proof_.end(), [&](uint64_t proof) {
      return std::any_of(
          evidence_.outcome.coped.begin(), evidence_.outcome.coped.end(),
          [&](uint64_t line) { return line + k_near >= proof && line <= proof + k_near; });
    });
  }

  const Success* success_after() const {
    const Outcome& outcome = evidence_.outcome;
    for (const Failure& failure : outcome.failures) {
      if (failure.line > last_ || !certain_) return nullptr;
    }
    // What only points to a cause may show in words of its own kind: such a text must be all well.
    if (!certain_ && outcome.reports_error) return nullptr;
    for (const Success& success : outcome.successes) {
      // (One line may say both: "Uvicorn running on ... (Press CTRL+C to quit)".)
      if (success.line < last_ || success.line < outcome.last_trouble) continue;
      if (success.line == last_ && certain_) continue;
      if (success.kind != Success::Kind::run &&
          knowledge_.findings[index_].category != "kernel-driver")
        continue;
      // A driver that lists its GPUs may still fail to run anything on them.
      if (success.kind == Success::Kind::listed && outcome.reports_error) continue;
      if (success.kind == Success::Kind::run && outcome.on_cpu) continue;
      return &success;
    }
    return nullptr;
  }

  const knowledge::Knowledge& knowledge_;
  const TextEvidence& evidence_;
  const size_t index_;
  const bool certain_;
  uint64_t last_ = 0;
  bool printed_ = false, proved_ = false, commented_ = false, kernel_ = false;
  std::vector<uint64_t> proof_;
  SignLines own_, explained_, others_;
};

}  // namespace

bool speaks_of(const TextEvidence& evidence, size_t index, uint64_t failure, int least_weight) {
  const auto& hits = evidence.signs[index];
  return std::any_of(hits.begin(), hits.end(), [&](const SignHit& hit) {
    return hit.sign->weight >= least_weight &&
           std::any_of(hit.lines.begin(),
                       hit.lines.begin() + static_cast<ptrdiff_t>(own_lines(hit)),
                       [&](const auto& line) {
                         return line.line >= failure && line.line < failure + k_message_lines;
                       });
  });
}

ConfidenceCap confidence_cap_of(const knowledge::Knowledge& knowledge, const TextEvidence& evidence,
                                size_t index, bool certain) {
  return Judge(knowledge, evidence, index, certain).judge();
}

}  // namespace cufit::explain
