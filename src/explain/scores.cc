// SPDX-License-Identifier: Apache-2.0
#include "explain/scores.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/format.h"
#include "explain/confidence_cap.h"
#include "knowledge/finding_text.h"

namespace cufit::explain {
namespace {

constexpr double k_likely = 0.55;        // from here on the text points to it
constexpr double k_surely = 0.8;         // the same where the words of the text say otherwise
constexpr double k_scores_least = 0.15;  // below it a cause is not named
constexpr double k_echo = 0.4;       // what is left of a cause that another, likely one explains
constexpr double k_explainer = 0.5;  // a cause explains others from this score on
// What a check's finding is worth beside signatures: an error follows from facts that the text
// claims, but whether they are the failing program's is not said; a warning is only a risk.
// More where the failure in the text is how that cause shows.
constexpr double k_check_shown = 0.85, k_check_error = 0.6, k_check_warning = 0.3;
// How much the words of a text count beside its signs in the order (times the probability of the
// kind, times the root of that within the kind; more where causes of running out of memory are told
// apart, whose messages say less), and from which probability on they name a cause by themselves.
// Chosen by cross-validation on 1,900 reports, of which the signs had not seen 225.
constexpr double k_vote_weight = 2.0, k_vote_weight_memory = 4.0, k_vote_least = 0.04,
                 k_vote_bears = 0.1;
// With fewer causes than this, less likely ones are named, too.
constexpr size_t k_few = 3;
constexpr double k_vote_few = 0.01;

// What is left of the words' vote for a cause that the text's numbers or names make doubtful
// (`doubted` and `sure` of data/findings).
// Of 283 reports that the words had not seen, as many are named right by 0.07 as by 0.4 (222 or 223
// of them): it is so low because numbers are facts and words are not.
constexpr double k_vote_doubted = 0.2;

// A single sign of this weight says more than words do: it is printed for its cause, or names it.
// Measured on 212 public cases and the texts of tests/texts: three more right first, none less.
constexpr int k_telling = 90, k_pointing = 84;

constexpr double k_close = 0.15;  // scores by signs that differ less say the same
// What the text of a dead run must hold of a cause: at least one sign.
constexpr double k_spoken = k_scores_least;
// Signs of a kill say who died, not who killed; from this weight on the killer is named.
constexpr int k_names_killer = 90;

constexpr size_t k_causes = 8, k_evidence_lines = 6;

struct Candidate {
  double doubt = 1.0;  // product of (1 - weight)
  bool certain = false, named_by_text = false;
  bool told = false;                      // what would prove it is told by somebody, not printed
  Confidence most = Confidence::certain;  // how sure it can be, by what follows in the text
  uint64_t other_failure = 0;             // the line of a later one that is not its own
  bool memory = false;
  int strongest = 0, strongest_printed = 0;
  std::string_view variant;  // of the strongest sign
  std::vector<std::pair<int, EvidenceLine>> lines;
  const checks::Finding* finding = nullptr;
  double by_signs = 0;
  double vote = 0;  // probability by words
  double vote_order = 0;
  double score() const { return 1.0 - doubt; }
  double order() const {
    const double telling = strongest >= k_telling ? 1.0 : strongest >= k_pointing ? 0.6 : 0;
    return score() + vote_order + telling * (memory ? 2 : 1);
  }
  bool is_named() const { return score() >= k_scores_least || vote >= k_vote_least; }
};

bool is_cause(const knowledge::FindingTexts& texts) {
  return knowledge::find_text(texts, "decide") != nullptr;
}

// "train.log:12" -> 12; 0 where the source is no line of the text.
uint64_t line_of(const std::string& detail) {
  const size_t colon = detail.rfind(':');
  if (colon == std::string::npos) return 0;
  uint64_t line = 0;
  const char *begin = detail.data() + colon + 1, *end = detail.data() + detail.size();
  const auto [stop, error] = std::from_chars(begin, end, line);
  return error == std::errc() && stop == end ? line : 0;
}

// A check may find that something is absent because no probe looked; a text only proves what it
// says.
bool rests_on_absence(const checks::Finding& finding) {
  return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                     [](const checks::Evidence& item) {
                       return item.value == "not_present" || item.value == "not_asked" ||
                              item.value == "no torch" || item.kind == "nvml";
                     });
}

// Only what is written in the text, and knowledge: nothing that cufit filled in.
bool is_claimed(const checks::Finding& finding) {
  return std::none_of(finding.evidence.begin(), finding.evidence.end(),
                      [](const checks::Evidence& item) { return item.kind == "assumed"; });
}

// A layer that an environment without a GPU does not touch.
bool is_about_gpus(std::string_view layer) {
  constexpr std::string_view k_layers[] = {
      "hardware", "platform",  "kernel-driver", "driver-runtime", "wsl",     "container",
      "capacity", "multi-gpu", "growth",        "allocator",      "outside", "quota"};
  return std::find(std::begin(k_layers), std::end(k_layers), layer) != std::end(k_layers);
}

class Ranker {
 public:
  Ranker(const knowledge::Knowledge& knowledge, const TextEvidence& evidence, const DeadRun* dead,
         bool ordinary_error)
      : knowledge_(knowledge),
        evidence_(evidence),
        candidates_(knowledge.findings.size()),
        dead_(dead),
        ordinary_error_(ordinary_error) {}

  void add_signs() {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      for (const SignHit& hit : evidence_.signs[i]) {
        candidate.doubt *= 1.0 - hit.sign->weight / 100.0;
        candidate.certain = candidate.certain || (hit.sign->certain && hit.printed);
        candidate.told = candidate.told || hit.sign->certain;
        candidate.named_by_text = true;
        if (hit.sign->weight > candidate.strongest) candidate.variant = hit.sign->variant;
        candidate.strongest = std::max(candidate.strongest, hit.sign->weight);
        if (hit.printed)
          candidate.strongest_printed = std::max(candidate.strongest_printed, hit.sign->weight);
        for (const EvidenceLine& line : hit.lines)
          candidate.lines.emplace_back(hit.sign->weight, line);
      }
      candidate.by_signs = candidate.score();
      if (!is_spoken_of(i)) candidate = Candidate();
    }
  }

  void add_findings(std::span<const checks::Finding> findings, bool only_text) {
    double best_by_signs = 0;
    for (const Candidate& candidate : candidates_)
      best_by_signs = std::max(best_by_signs, candidate.score());
    for (const checks::Finding& finding : findings) {
      if (only_text && rests_on_absence(finding)) continue;
      const bool error = finding.severity == checks::Severity::error;
      if (!error && finding.severity != checks::Severity::warning) continue;
      bool counts = false;
      for (size_t i = 0; i < candidates_.size(); ++i) {
        if (knowledge_.findings[i].id != finding.id || !is_cause(knowledge_.findings[i])) continue;
        Candidate& candidate = candidates_[i];
        if (candidate.finding && candidate.finding->severity == checks::Severity::error) continue;
        if (!is_spoken_of(i)) continue;
        if (!only_text && candidate.strongest == 0 && !asks_for_machine(finding, i)) continue;
        counts = true;
        candidate.finding = &finding;
        // Facts that prove it and a failure that is how it shows.
        const bool shows = error && candidate.strongest >= 40;
        // The facts may be true and the failure still another one, which its own message names.
        const bool fits_best = candidate.score() >= best_by_signs - k_close;
        candidate.doubt *= 1.0 - (shows ? k_check_shown : error ? k_check_error : k_check_warning);
        if (shows && candidate.strongest_printed >= 40 && fits_best && is_claimed(finding))
          candidate.certain = true;
        for (const checks::Evidence& item : finding.evidence) {
          // A check that quotes the text's own line says nothing more than the sign did.
          const bool quoted =
              std::any_of(candidate.lines.begin(), candidate.lines.end(), [&](const auto& line) {
                return !item.value.empty() && contains(line.second.text, item.value);
              });
          if (quoted) continue;
          candidate.lines.emplace_back(
              90, EvidenceLine{item.kind == "claimed" ? line_of(item.detail) : 0,
                               item.kind == "claimed" ? std::string() : item.detail, item.value});
        }
      }
      if (dead_ && !counts) continue;
      for (const std::string& effect : finding.consequences) echoes_.push_back(effect);
    }
  }

  // The limits in here were chosen by cross-validation on 2,000 reports and 136 texts without a
  // cause: they keep four fifths of the latter without an answer and cost half a percent of the
  // former. The 0.6 came later, in sample: naive Bayes made the likeliest cause likelier.
  void add_votes(const Votes& votes) {
    double most = 0;
    bool proved = false;  // by the text or by facts that it claims
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (!candidate.certain && contradiction(i).data()) continue;
      most = std::max(most, candidate.score());
      proved = proved || candidate.certain ||
               (candidate.finding && candidate.finding->severity == checks::Severity::error);
    }
    const double none = votes.needs_none,
                 likeliest = votes.causes.empty() ? 0.0 : votes.causes[0].probability;
    // A text that needs no answer has words, too, and single signs.
    if (most < k_scores_least) {
      if (none > 0.15 && (none > 0.3 || likeliest < 0.2)) return;
    } else if (!proved && ((none > 0.5 && most < 0.75 && likeliest < (none > 0.8 ? 0.6 : 0.3)) ||
                           (none > 0.4 && most < 0.5 && likeliest < 0.1))) {
      std::fill(candidates_.begin(), candidates_.end(), Candidate());
      return;
    }
    words_count_ = !votes.causes.empty();
    const bool one_is_sure =
        std::any_of(knowledge_.findings.begin(), knowledge_.findings.end(),
                    [&](const knowledge::FindingTexts& texts) { return holds_one(texts.sure); });
    for (const WordVote& vote : votes.causes) {
      for (size_t i = 0; i < candidates_.size(); ++i) {
        if (knowledge_.findings[i].id != vote.cause || !is_cause(knowledge_.findings[i])) continue;
        if (!is_spoken_of(i)) continue;
        candidates_[i].vote = vote.probability;
        candidates_[i].memory = vote.memory;
        candidates_[i].vote_order = (vote.memory ? k_vote_weight_memory : k_vote_weight) *
                                    vote.kind * std::sqrt(vote.of_kind);
        const knowledge::FindingTexts& texts = knowledge_.findings[i];
        if (holds_one(texts.doubted)) candidates_[i].vote_order *= k_vote_doubted;
        if (one_is_sure && !holds_one(texts.sure)) candidates_[i].vote_order *= k_vote_doubted;
      }
    }
    for (size_t i = 0; i < candidates_.size() && words_count_; ++i) {
      const std::string_view id = knowledge_.findings[i].id;
      const bool learned = std::any_of(votes.causes.begin(), votes.causes.end(),
                                       [&](const WordVote& vote) { return vote.cause == id; });
      if (!learned) speak_for_itself(candidates_[i], knowledge_.findings[i].category);
    }
  }

  Ranking result() {
    Ranking out;
    drop_contradicted(out.ignored);
    weigh_outcome(out.ignored);
    drop_without_trouble();
    const std::vector<size_t> owners = owners_of_failures();
    push_down_echoes(owners);
    std::vector<size_t> order;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].is_named() || candidates_[i].vote >= k_vote_few) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const Candidate &x = candidates_[a], &y = candidates_[b];
      if (x.certain != y.certain) return x.certain;
      if ((a == last_owner_) != (b == last_owner_)) return a == last_owner_;
      return x.order() > y.order();
    });
    for (size_t k = order.size(); k > k_few; --k) {
      if (!candidates_[order[k - 1]].is_named()) order.erase(order.begin() + (k - 1));
    }
    // Beside what the text proves, only what it points to is worth a look.
    if (!order.empty() && candidates_[order[0]].certain) {
      std::erase_if(order, [&](size_t i) {
        const bool owns = std::find(owners.begin(), owners.end(), i) != owners.end();
        return !candidates_[i].certain && !is_likely(candidates_[i]) && !owns;
      });
    }
    if (order.size() > k_causes) order.resize(k_causes);
    for (size_t i : order) {
      out.causes.push_back(cause(i));
      // Nothing is surer than what stands before it.
      if (out.causes.size() > 1)
        out.causes.back().confidence =
            std::max(out.causes.back().confidence, out.causes[out.causes.size() - 2].confidence);
    }
    ask(out.causes);
    return out;
  }

 private:
  // Whether the text holds enough of the cause for facts and words to count; always, unless it is a
  // dead run's.
  bool is_spoken_of(size_t index) const {
    if (!dead_) return true;
    if (dead_->without_gpu && is_about_gpus(knowledge_.findings[index].category)) return false;
    const Candidate& candidate = candidates_[index];
    return candidate.certain || candidate.by_signs >= (ordinary_error_ ? k_likely : k_spoken);
  }

  // What the machine beside lacks explains a text only where that text complains of it: a machine
  // without a GPU is no answer to what pip or Kubernetes says.
  bool asks_for_machine(const checks::Finding& finding, size_t index) const {
    const bool claimed =
        std::any_of(finding.evidence.begin(), finding.evidence.end(),
                    [](const checks::Evidence& item) { return item.kind == "claimed"; });
    if (claimed) return true;
    if (finding.id == "torch_not_installed") return evidence_.has("no_module_torch");
    if (!is_about_gpus(knowledge_.findings[index].category)) return true;
    constexpr std::string_view k_did_not_start[] = {
        "cuda_fails",      "no_cuda_device",     "smi_no_comm",
        "libcuda_missing", "nvidia_smi_missing", "nvidia_smi_fails",
        "found_no_driver", "no_devices_found",   "nvml_missing"};
    constexpr std::string_view k_ran[] = {"cuda_error", "cuda_failure", "nccl_trouble", "oom"};
    const auto has = [&](std::string_view clue) { return evidence_.has(clue); };
    if (std::any_of(std::begin(k_did_not_start), std::end(k_did_not_start), has)) return true;
    // What cuDNN, an allocator or a kernel complains of had a GPU and a driver.
    const bool absence =
        finding.id == "no_nvidia_gpu" || knowledge_.findings[index].category == "kernel-driver";
    return !absence && std::any_of(std::begin(k_ran), std::end(k_ran), has);
  }

  // A cause that is newer than the word table gets no vote, and would stand behind each that a word
  // speaks for. Strong signs are taken for what the words would have said.
  void speak_for_itself(Candidate& candidate, std::string_view category) {
    if (candidate.by_signs < k_surely) return;
    constexpr std::string_view k_of_memory[] = {"capacity", "growth",  "allocator",  "outside",
                                                "quota",    "serving", "distributed"};
    candidate.memory = std::find(std::begin(k_of_memory), std::end(k_of_memory), category) !=
                       std::end(k_of_memory);
    candidate.vote = candidate.by_signs;
    candidate.vote_order =
        (candidate.memory ? k_vote_weight_memory : k_vote_weight) * candidate.by_signs;
  }

  // Whether all clues of one of the lists hold.
  bool holds_one(std::span<const std::span<const std::string_view>> lists) const {
    return std::any_of(lists.begin(), lists.end(), [&](std::span<const std::string_view> clues) {
      return std::all_of(clues.begin(), clues.end(), [&](std::string_view clue) {
        return clue.substr(0, 1) == "!" ? !evidence_.has(clue.substr(1)) : evidence_.has(clue);
      });
    });
  }

  // The clue that rules the cause out; without data where none does.
  std::string_view contradiction(size_t index) const {
    for (std::string_view clue : knowledge_.findings[index].against) {
      if (evidence_.has(clue)) return clue;
    }
    return {};
  }

  void drop_contradicted(std::vector<Ignored>& ignored) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      if (!candidate.is_named() || candidate.certain) continue;
      const std::string_view clue = contradiction(i);
      if (!clue.data()) continue;
      ignored.push_back({std::string(knowledge_.findings[i].id), std::string(clue),
                         evidence_.clues.find(clue)->second.front()});
      candidate = Candidate();
    }
  }

  // What follows in the text: another failure, or success.
  void weigh_outcome(std::vector<Ignored>& ignored) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      const bool by_facts =
          candidate.finding && candidate.finding->severity == checks::Severity::error;
      const bool sure = candidate.certain || candidate.told;
      const ConfidenceCap standing = confidence_cap_of(knowledge_, evidence_, i, sure);
      if (standing.refuted_by && !by_facts) {
        if (candidate.is_named() && candidate.named_by_text) {
          const Success& success = *standing.refuted_by;
          ignored.push_back({std::string(knowledge_.findings[i].id), "came_through",
                             EvidenceLine{success.line, success.text, {}}});
        }
        candidate = Candidate();
        came_through_ = came_through_ || sure;
        continue;
      }
      candidate.most = standing.most;
      if (sure) candidate.other_failure = standing.other_failure;
      if (sure && standing.most != Confidence::certain) {
        candidate.certain = false;
        last_failure_ = std::max(last_failure_, standing.other_failure);
      }
    }
  }

  // The words of a text whose run succeeded, or that speaks of no trouble, name nothing.
  void drop_without_trouble() {
    const Outcome& outcome = evidence_.outcome;
    const bool well = outcome.failures.empty() && came_through_ && !outcome.reports_error;
    // A warning that its own numbers show to be harmless, or an optional package, and nothing else.
    const bool harmless =
        (evidence_.has("arch_covered") && outcome.failures.empty()) ||
        (evidence_.has("triton_optional") && outcome.failures.size() <= 1 && !evidence_.has("oom"));
    const bool nothing = (outcome.last_trouble == 0 && !outcome.told) || harmless;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      const bool by_facts =
          candidate.finding && candidate.finding->severity == checks::Severity::error;
      if (candidate.certain || by_facts) continue;
      const bool weak = candidate.score() < k_likely;
      if (weak && (well || nothing || outcome.interrupted)) candidate = Candidate();
    }
  }

  // The best cause of each failure's own message.
  std::vector<size_t> owners_of_failures() {
    std::vector<size_t> out;
    for (const Failure& failure : evidence_.outcome.failures) {
      size_t best = SIZE_MAX;
      for (size_t i = 0; i < candidates_.size(); ++i) {
        const Candidate& candidate = candidates_[i];
        if (!candidate.is_named() || candidate.other_failure == failure.line) continue;
        if (!speaks_of(evidence_, i, failure.line) && !(failure.memory && candidate.memory))
          continue;
        if (best == SIZE_MAX || candidate.order() > candidates_[best].order()) best = i;
      }
      if (best == SIZE_MAX) continue;
      out.push_back(best);
      if (failure.line == last_failure_ && is_likely(candidates_[best])) last_owner_ = best;
    }
    return out;
  }

  void push_down(std::string_view effect, bool by_certain, const std::vector<size_t>& owners) {
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& candidate = candidates_[i];
      if (knowledge_.findings[i].id != effect || candidate.score() == 0) continue;
      if (candidate.certain && !by_certain) continue;
      // What one GPU's failure explains is not another GPU's.
      if (evidence_.outcome.several_gpus &&
          std::find(owners.begin(), owners.end(), i) != owners.end())
        continue;
      candidate.doubt = 1.0 - candidate.score() * k_echo;
      candidate.certain = false;
    }
  }

  void push_down_echoes(const std::vector<size_t>& owners) {
    // Judged before any is pushed down, so that the order of the files does not matter.
    std::vector<std::pair<std::string_view, bool>> effects;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].score() < k_explainer) continue;
      for (std::string_view effect : knowledge_.findings[i].explains)
        effects.emplace_back(effect, candidates_[i].certain);
    }
    for (const std::string& effect : echoes_) effects.emplace_back(effect, false);
    std::sort(effects.begin(), effects.end());
    std::string_view last;
    for (auto it = effects.rbegin(); it != effects.rend(); ++it) {  // certain ones first
      if (it->first == last) continue;
      last = it->first;
      push_down(it->first, it->second, owners);
    }
  }

  // Signs that the words of the text do not bear out need to be many: of causes with such signs
  // from k_likely on 66 % were right, of all others 95 %, from k_surely on 84 %.
  bool is_likely(const Candidate& candidate) const {
    if (candidate.most == Confidence::possible) return false;
    if (dead_ && is_kill(candidate) && candidate.strongest < k_names_killer) return false;
    return candidate.score() >=
           (words_count_ && candidate.vote < k_vote_bears ? k_surely : k_likely);
  }

  bool is_kill(const Candidate& candidate) const {
    const size_t index = static_cast<size_t>(&candidate - candidates_.data());
    return knowledge_.findings[index].id == "host_ram_kill" && evidence_.has("sigkill");
  }

  Cause cause(size_t index) const {
    const Candidate& candidate = candidates_[index];
    Cause out;
    out.id = knowledge_.findings[index].id;
    out.score = std::max(candidate.score(), candidate.vote);
    out.confidence = candidate.certain      ? Confidence::certain
                     : is_likely(candidate) ? Confidence::likely
                                            : Confidence::possible;
    if (candidate.finding) {
      out.finding = *candidate.finding;
    } else {
      out.finding.id = out.id;
      out.finding.variant = "text";
      if (!candidate.variant.empty()) out.finding.variant += "." + std::string(candidate.variant);
    }
    auto lines = candidate.lines;
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& weighed : lines) {
      EvidenceLine& line = weighed.second;
      auto same = std::find_if(out.evidence.begin(), out.evidence.end(), [&](const auto& have) {
        return have.line == line.line && (line.line != 0 || have.text == line.text);
      });
      if (same == out.evidence.end()) {
        if (out.evidence.size() < k_evidence_lines) out.evidence.push_back(std::move(line));
        continue;
      }
      if (same->fact.empty()) same->fact = std::move(line.fact);
      if (same->text.empty()) same->text = std::move(line.text);
    }
    return out;
  }

  // The question belongs to the first cause, and to one that stands close behind it.
  static void ask(std::vector<Cause>& causes) {
    for (Cause& cause : causes) {
      if (cause.confidence == Confidence::certain) continue;
      cause.would_decide = &cause == &causes[0] || cause.score > 0.5 * causes[0].score;
    }
  }

  const knowledge::Knowledge& knowledge_;
  const TextEvidence& evidence_;
  std::vector<Candidate> candidates_;  // by index of the finding
  const DeadRun* dead_;
  const bool ordinary_error_;
  std::vector<std::string> echoes_;
  bool words_count_ = false;
  bool came_through_ = false;     // success rules out a cause
  uint64_t last_failure_ = 0;     // which keeps a cause from being certain
  size_t last_owner_ = SIZE_MAX;  // the cause of that failure
};

}  // namespace

const char* to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::certain:
      return "certain";
    case Confidence::likely:
      return "likely";
    case Confidence::possible:
      return "possible";
  }
  return "possible";
}

Ranking rank_causes(const knowledge::Knowledge& knowledge, const TextEvidence& evidence,
                    std::span<const checks::Finding> findings, bool only_text, const Votes& votes,
                    const DeadRun* dead, bool ordinary_error) {
  Ranker ranker(knowledge, evidence, dead, ordinary_error);
  ranker.add_signs();
  ranker.add_findings(findings, only_text);
  ranker.add_votes(votes);
  return ranker.result();
}

}  // namespace cufit::explain
