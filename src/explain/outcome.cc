// SPDX-License-Identifier: Apache-2.0
#include "explain/outcome.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/format.h"
#include "explain/pattern_search.h"
#include "explain/program_error.h"
#include "explain/provenance.h"
#include "formats/prose/text_words.h"

namespace cufit::explain {
namespace {

bool holds_one(std::string_view text, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return contains(text, word); });
}

bool is_exception_name(std::string_view name) {
  return ends_with(name, "Error") || ends_with(name, "Exception") || ends_with(name, "Interrupt");
}

// "torch.OutOfMemoryError: ...", "[rank0]: RuntimeError: ...", "today: KeyError: 'x'"; not
// "except ValueError:", "raise ValueError(...)" and what somebody quotes.
struct Raised {
  std::string_view name;
  size_t at = 0;
};
std::optional<Raised> raised(std::string_view line) {
  for (size_t at = 0; at < line.size();) {
    if (!formats::is_name_char(line[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < line.size() && (formats::is_name_char(line[at]) || line[at] == '.')) ++at;
    const std::string_view name = line.substr(begin, at - begin);
    if (!is_exception_name(name)) continue;
    const bool ends = trim(line.substr(at)).empty() && begin == 0;
    if (!ends && (at >= line.size() || line[at] != ':')) continue;
    if (ends_with(trim(line.substr(0, begin)), "except") || is_quoted(line, begin)) continue;
    return Raised{name, begin};
  }
  return std::nullopt;
}

constexpr std::string_view k_memory[] = {"OutOfMemory", "out of memory", "CUBLAS_STATUS_ALLOC",
                                         "Cannot allocate memory", "allocate memory"};
constexpr std::string_view k_chain[] = {"During handling of the above exception",
                                        "The above exception was the direct cause"};
constexpr std::string_view k_coped[] = {"optional", "skipping", "falling back", "fallback",
                                        "fall back"};

constexpr std::string_view k_error[] = {"error",     "fail",  "fatal",         "killed",
                                        "exception", "abort", "not available", "out of memory"};

bool has_digit_after(std::string_view text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == text.npos) return false;
  const std::string_view rest = text.substr(at + word.size(), 12);
  return std::any_of(rest.begin(), rest.end(), is_digit);
}

// "epoch 1 loss 0.3", "{'loss': 0.5, 'epoch': 1.0}", "step=10, skipped=0, lr=[1e-05]"
bool is_training_step(std::string_view text) {
  const bool value = has_digit_after(text, "loss") || has_digit_after(text, "lr=");
  if (!value || contains(text, "loss=nan")) return false;
  return has_digit_after(text, "epoch") || has_digit_after(text, "step") ||
         has_digit_after(text, "iter") || contains(text, "it/s") || contains(text, "s/it");
}

// In lower case. What only says that something is on its way is none.
bool is_run(std::string_view text) {
  constexpr std::string_view k_done[] = {"built target",
                                         "successfully installed",
                                         "successfully built",
                                         "uvicorn running on",
                                         "startup complete",
                                         "training complete",
                                         "training finished",
                                         "finished successfully",
                                         "completed successfully",
                                         "训练完成",
                                         "一切正常",
                                         "运行正常",
                                         "runs fine",
                                         "works fine now"};
  if (holds_one(text, k_done) || is_training_step(text)) return true;
  const std::string_view whole = trim(text);
  return whole == "done" || whole == "done." || ends_with(whole, " passed") ||
         contains(whole, "all checks passed");
}

// "GPU 0: NVIDIA GeForce RTX 4090 (UUID: ...)" of `nvidia-smi -L`.
bool is_listed_gpu(std::string_view text) {
  return starts_with(text, "gpu ") && text.size() > 7 && is_digit(text[4]) &&
         contains(text.substr(0, 8), ": ");
}

bool is_chinese(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0xE4 && static_cast<unsigned char>(c) <= 0xE9;
  });
}

// Words of somebody who has a problem, or of a program that reports one. Of prose and logs alike,
// so that a text without any of them needs no answer.
bool is_trouble(std::string_view text) {
  if (starts_with(trim(text), "#") || contains(text, "一切正常")) return false;
  constexpr std::string_view k_parts[] = {
      "error",     "fail",        "fatal",     "exception",    "abort",      "cannot",
      "can't",     "could not",   "unable",    "not ",         "n't",        "killed",
      "crash",     "oom",         "out of",    "outofmemory",  "missing",    "xid",
      "wrong",     "warning",     "slow",      "leak",         "invalid",    "incompatible",
      "conflict",  "unsupported", "undefined", "hang",         "stuck",      "freeze",
      "froze",     "nan",         "refus",     "denied",       "mismatch",   "too old",
      "too small", "too large",   "too much",  "insufficient", "exceed",     "?",
      "no cuda",   "no gpu",      "false",     "none",         "never",      "grow",
      "increase",  "increasing",  "rises",     "climb",        "full",       "problem",
      "issue",     "help",        "why",       "lost",         "terminated", "segmentation",
      "dumped",    "exit",        "status",    "panic",        "stop",       "disappear",
      "gone",      "spike",       "jump",      "runs out",     "fragment"};
  if (holds_one(text, k_parts)) return true;
  return is_chinese(text);
}

// What programs print while all is well, in words that elsewhere speak of trouble ("This may lead
// to unexpected consequences ...", "If you are running out of memory, consider ..."). In lower
// case.
bool is_routine(std::string_view text) {
  return starts_with(text, "info") || contains(text, " info ") || contains(text, "[info]") ||
         contains(text, "running pip as the 'root' user");
}

// Four plain words in a row, or Chinese. Comments of scripts are not asked.
bool is_prose(std::string_view text) {
  if (starts_with(trim(text), "#")) return false;
  size_t row = 0;
  for (std::string_view word : formats::words_of(text)) {
    if (is_chinese(word)) return true;
    while (!word.empty() && (word.back() == ',' || word.back() == '.')) word.remove_suffix(1);
    row = std::all_of(word.begin(), word.end(), formats::is_letter) ? row + 1 : 0;
    if (row == 4) return true;
  }
  return false;
}

// "NVRM: Xid (PCI:0000:3b:00): 79": the address.
std::string_view xid_address(std::string_view line) {
  constexpr std::string_view k_before = "Xid (PCI:";
  const size_t at = line.find(k_before);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + k_before.size());
  return rest.substr(0, std::min(rest.find(')'), rest.size()));
}

class OutcomeReader {
 public:
  OutcomeReader() { out_.told = false; }
  void read(const formats::TextLine& line) {
    const std::string_view text = line.text;
    if (text.empty()) return;
    if (holds_one(text, k_chain)) chained_ = true;
    if (const std::optional<Raised> found = raised(text)) add_failure(line, *found);
    const std::string small = lower(text);
    if (holds_one(small, k_coped)) {
      out_.coped.push_back(line.number);
    } else if (holds_one(small, k_error) && !starts_with(trim(small), "#") &&
               !contains(small, "一切正常") && !is_routine(small)) {
      out_.reports_error = true;
    }
    out_.told = out_.told || (!is_routine(small) && is_prose(text));
    if (formats::has_word(small, "cpu") && !contains(small, "cpu blocks")) out_.on_cpu = true;
    if (is_listed_gpu(small)) succeed(line, Success::Kind::listed);
    if ((contains(small, "is_available") && formats::has_word(small, "true")) ||
        (contains(before_, "is_available") && trim(text) == "True"))
      succeed(line, Success::Kind::found);
    if (is_run(small)) succeed(line, Success::Kind::run);
    const std::string_view address = xid_address(text);
    if (address.data() && !address_.empty() && address != address_) out_.several_gpus = true;
    if (address.data()) address_ = std::string(address);
    before_ = small;
  }
  Outcome take() {
    out_.interrupted = interrupts_ != 0 && out_.failures.empty();
    return std::move(out_);
  }

 private:
  void add_failure(const formats::TextLine& line, const Raised& found) {
    std::string_view name = found.name;
    name = name.substr(name.rfind('.') == name.npos ? 0 : name.rfind('.') + 1);
    if (name == "KeyboardInterrupt" || name == "SystemExit") {
      ++interrupts_;
      return;
    }
    Failure failure{line.number, is_ordinary_exception(name), holds_one(line.text, k_memory)};
    failure.chained = chained_;
    chained_ = false;
    out_.failures.push_back(failure);
  }
  void succeed(const formats::TextLine& line, Success::Kind kind) {
    std::erase_if(out_.successes, [&](const Success& one) { return one.kind == kind; });
    out_.successes.push_back({line.number, kind, shortened(line.text, 0)});
  }

  Outcome out_;
  bool chained_ = false;
  size_t interrupts_ = 0;
  std::string address_, before_;
};

}  // namespace

Outcome read_outcome(std::span<const formats::TextLine> lines) {
  OutcomeReader reader;
  for (const formats::TextLine& line : lines) reader.read(line);
  Outcome out = reader.take();
  for (size_t i = lines.size(); i-- > 0 && out.last_trouble == 0;) {
    const std::string small = lower(lines[i].text);
    if (!is_routine(small) && is_trouble(small)) out.last_trouble = lines[i].number;
  }
  return out;
}

}  // namespace cufit::explain
