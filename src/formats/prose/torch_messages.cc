// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/torch_messages.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "base/version.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_each = 64, k_max_archs = 64, k_torch_messages_max_line = 4096;
constexpr uint64_t k_torch_messages_answer_reach = 3;
constexpr size_t k_torch_messages_npos = std::string_view::npos;

enum class Asked { nothing, torch, archs, torch_cuda, available, capability, name, count, driver };
struct Question {
  std::string_view text;
  Asked what;
};
constexpr Question k_questions[] = {
    {"torch.__version__", Asked::torch},           {"get_arch_list()", Asked::archs},
    {"torch.version.cuda", Asked::torch_cuda},     {"cuda.is_available()", Asked::available},
    {"get_device_capability(", Asked::capability}, {"get_device_name(", Asked::name},
    {"cuda.device_count()", Asked::count},         {"_cuda_getDriverVersion()", Asked::driver},
};

class TorchMessagesReader {
 public:
  TorchMessages read(std::span<const TextLine> lines) {
    for (size_t i = 0; i < lines.size(); ++i) {
      number_ = lines[i].number;
      line_ = std::string_view(lines[i].text).substr(0, k_torch_messages_max_line);
      next_ = i + 1 < lines.size() && lines[i + 1].number == number_ + 1
                  ? std::string_view(lines[i + 1].text).substr(0, 512)
                  : std::string_view();
      take();
    }
    return std::move(out_);
  }

 private:
  void take() {
    if (asked_ != Asked::nothing) answer();
    if (line_.size() < 8) return;
    if (size_t at = line_.find("found version "); at != k_torch_messages_npos)
      driver(line_.substr(at + 14));
    if (size_t at = line_.find("Found GPU"); at != k_torch_messages_npos)
      old_device(line_.substr(at + 9));
    if (size_t at = line_.find(" with CUDA capability sm_"); at != k_torch_messages_npos)
      new_device(at);
    if (line_.find("CUDA capabilities") != k_torch_messages_npos) archs(joined());
    if (has_word(line_, "cuda capability") && find_word(line_, "minimum") != k_torch_messages_npos)
      minimum();
    if (size_t at = line_.find("detected CUDA version ("); at != k_torch_messages_npos)
      mismatch(at);
    if (size_t at = line_.find("(you have ");
        at != k_torch_messages_npos && find_word(line_, "pytorch") < at)
      have(line_.substr(at + 10));
    if (line_.find("not compiled with CUDA enabled") != k_torch_messages_npos)
      add(out_.without_cuda, "cpu");
    launcher();
    questions();
  }

  void add(std::vector<TorchValue>& list, std::string_view value) {
    if (list.size() < k_max_each && !value.empty() && value.size() <= 64)
      list.push_back({std::string(value), number_});
  }
  void add(TorchDevice device) {
    if (out_.devices.size() >= k_max_each) return;
    device.line = number_;
    device.name = printable(trim(device.name), 96);
    out_.devices.push_back(std::move(device));
  }
  // This line and the next: messages are wrapped where torch wrote them.
  std::string joined() const { return std::string(line_) + " " + std::string(trim(next_)); }

  void driver(std::string_view text) {
    std::optional<uint64_t> code = parse_uint(text.substr(0, text.find_first_not_of("0123456789")));
    if (code && *code >= 5000 && *code < 100000)
      add(out_.driver_cuda, cuda_version_text(static_cast<int>(*code)));
  }

  // "Found GPU0 NVIDIA GeForce GTX 1080 Ti which is of cuda capability 6.1."; newer: "which is of
  // compute capability (CC) 6.1."
  void old_device(std::string_view rest) {
    size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    std::optional<uint64_t> index = parse_uint(rest.substr(0, digits));
    size_t which = rest.find(" which is of ");
    if (!index || *index > 1023 || which == k_torch_messages_npos || which < digits || which > 120)
      return;
    std::string_view tail = rest.substr(which);
    size_t number = tail.find_first_of("0123456789");
    if (number == k_torch_messages_npos) return;
    std::string_view capability = dotted_number_at(tail.substr(number));
    if (!parse_compute_capability(capability)) return;
    TorchDevice device;
    device.index = static_cast<uint32_t>(*index);
    device.name = std::string(rest.substr(digits, which - digits));
    device.capability = std::string(capability);
    add(std::move(device));
  }

  // "NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible with ..."
  void new_device(size_t at) {
    std::string_view before = line_.substr(0, at);
    size_t start = 0;  // what stands before the name: a path with "UserWarning: ", a log's head
    for (std::string_view mark : {": ", "] ", "| ", "\" "}) {
      size_t cut = before.rfind(mark);
      if (cut != k_torch_messages_npos) start = std::max(start, cut + mark.size());
    }
    std::string_view digits = line_.substr(at + 25);
    digits = digits.substr(0, digits.find_first_not_of("0123456789"));
    std::string capability = dotted(digits);
    if (capability.empty()) return;
    TorchDevice device;
    device.name = std::string(before.substr(start));
    device.capability = capability;
    add(std::move(device));
  }
  static std::string dotted(std::string_view sm) {  // "120" -> "12.0"
    if (sm.size() < 2 || sm.size() > 3) return {};
    return std::string(sm.substr(0, sm.size() - 1)) + "." + std::string(sm.substr(sm.size() - 1));
  }

  void archs(std::string_view text) {
    TorchArchs out;
    out.line = number_;
    for (std::string_view prefix : {"sm_", "compute_"}) {
      std::vector<std::string>& list = prefix == "sm_" ? out.sm : out.ptx;
      for (size_t at = text.find(prefix); at != k_torch_messages_npos && list.size() < k_max_archs;
           at = text.find(prefix, at + 1)) {
        if (at > 0 && is_name_char(text[at - 1])) continue;
        size_t end = at + prefix.size();
        while (end < text.size() && is_digit(text[end])) ++end;
        if (end - at - prefix.size() < 2 || end - at - prefix.size() > 3) continue;
        if (end < text.size() && (text[end] == 'a' || text[end] == 'f')) ++end;
        list.emplace_back(text.substr(at + prefix.size(), end - at - prefix.size()));
      }
    }
    // The list of two: a single one is the GPU's own ("capability sm_120") or a wish.
    if (out.sm.size() + out.ptx.size() >= 2 && out_.archs.size() < k_max_each)
      out_.archs.push_back(std::move(out));
  }

  // "The minimum cuda capability supported by this library is 7.5.", "... that we support is 3.5.",
  // "Minimum and Maximum cuda capability supported by this version of PyTorch is\n (7.0) - (12.0)".
  void minimum() {
    std::string text = joined();
    size_t at = find_word(text, "cuda capability");
    size_t number = text.find_first_of("0123456789", at);
    if (number == k_torch_messages_npos || number - at > 120) return;
    std::string_view value = dotted_number_at(std::string_view(text).substr(number));
    if (parse_compute_capability(value)) add(out_.minimum_capability, value);
  }

  // The toolkit's version, and the one of torch.
  void mismatch(size_t at) {
    std::string text = joined();
    std::string_view tool = dotted_number_at(std::string_view(text).substr(at + 23));
    size_t torch = text.find("PyTorch (", at);
    if (!has_inner_dot(tool)) return;
    add(out_.toolkit_cuda, tool);
    if (torch == k_torch_messages_npos) return;
    std::string_view built = dotted_number_at(std::string_view(text).substr(torch + 9));
    if (has_inner_dot(built)) add(out_.torch_cuda, built);
  }

  // "Torch 2.7.0+cu128" behind a logger's own words, as the launchers of web interfaces print it.
  void launcher() {
    const size_t at = line_.find("Torch ");
    if (at == k_torch_messages_npos || (at > 0 && line_[at - 1] != ' ')) return;
    const std::string_view version = python_version_at(line_.substr(at + 6));
    if (!has_inner_dot(version) || version.find('+') == k_torch_messages_npos) return;
    if (trim(line_.substr(at + 6)).size() == version.size()) add(out_.torch_version, version);
  }

  void have(std::string_view text) {
    std::string_view version = python_version_at(text);
    if (has_inner_dot(version)) add(out_.torch_version, version);
  }

  // ">>> torch.cuda.is_available()" and "torch.cuda.is_available(): False", "... # True".
  void questions() {
    if (!contains(line_, "cuda") && !contains(line_, "get_") && !contains(line_, "torch.__v"))
      return;
    for (const Question& question : k_questions) {
      size_t at = line_.find(question.text);
      const bool waits = question.what == Asked::torch && asked_ != Asked::nothing;
      if (at == k_torch_messages_npos || waits) continue;
      std::string_view rest = line_.substr(at + question.text.size());
      if (question.text.back() == '(') {
        size_t close = rest.find(')');
        if (close == k_torch_messages_npos || close > 24) continue;
        rest.remove_prefix(close + 1);
      }
      if (size_t hash = rest.find('#'); hash != k_torch_messages_npos) rest = rest.substr(hash);
      size_t value = rest.find_first_not_of(" \t):=#>,-\"'");
      if (value != k_torch_messages_npos && value > 0 &&
          take_answer(question.what, rest.substr(value)))
        continue;
      // "if torch.cuda.is_available():" asks nobody.
      std::string_view start = trim(line_);
      if (starts_with(start, "if ") || starts_with(start, "assert") ||
          find_word(line_, "else") != k_torch_messages_npos)
        continue;
      asked_ = question.what;
      asked_line_ = number_;
    }
  }
  void answer() {
    if (number_ > asked_line_ + k_torch_messages_answer_reach) {
      asked_ = Asked::nothing;
      return;
    }
    std::string_view text = trim(line_);
    while (!text.empty() && (text[0] == '#' || text[0] == ' ')) text.remove_prefix(1);
    if (asked_ != Asked::name || text.size() < 48) {
      if (take_answer(asked_, text)) asked_ = Asked::nothing;
    }
  }
  bool take_answer(Asked what, std::string_view text) {
    std::string_view bare = text;
    while (!bare.empty() && (bare[0] == '\'' || bare[0] == '"')) bare.remove_prefix(1);
    std::string_view number = dotted_number_at(bare);
    switch (what) {
      case Asked::nothing:
        return false;
      case Asked::torch:
        return version(bare);
      case Asked::archs: {
        size_t before = out_.archs.size();
        archs(text);
        return out_.archs.size() > before;
      }
      case Asked::torch_cuda:
        if (starts_with_word(bare, "none")) return add(out_.torch_cuda, "None"), true;
        if (!has_inner_dot(number) || number.find('.') > 2) return false;
        return add(out_.torch_cuda, number), true;
      case Asked::available:
        if (starts_with_word(bare, "true")) return add(out_.cuda_available, "True"), true;
        if (starts_with_word(bare, "false")) return add(out_.cuda_available, "False"), true;
        return false;
      case Asked::capability:
        return capability(text);
      case Asked::name: {
        if (bare.size() == text.size()) return false;  // the answer of a session is quoted
        TorchDevice device;
        device.name = std::string(bare.substr(0, bare.find_first_of("'\"")));
        return add(std::move(device)), true;
      }
      case Asked::count:
        if (number.empty() || number.size() > 3 || has_inner_dot(number)) return false;
        return add(out_.device_count, number), true;
      case Asked::driver:
        if (number.size() < 4 || number.size() > 5) return false;
        return driver(number), true;
    }
    return false;
  }
  // "2.3.1+cpu" and nothing else, in a comment or not: a variant says that it is torch's.
  bool version(std::string_view text) {
    const std::string_view found = python_version_at(text);
    if (!has_inner_dot(found) || found.find('+') == k_torch_messages_npos) return false;
    std::string_view rest = text.substr(found.size());
    while (!rest.empty() && contains("'\" )", rest.substr(0, 1))) rest.remove_prefix(1);
    if (!rest.empty()) return false;
    return add(out_.torch_version, found), true;
  }
  bool capability(std::string_view text) {  // "(8, 6)"
    size_t digit = text.find_first_of("0123456789");
    if (digit == k_torch_messages_npos || digit > 2) return false;
    std::string_view major = dotted_number_at(text.substr(digit));
    std::string_view rest = text.substr(digit + major.size());
    if (rest.empty() || rest[0] != ',') return false;
    size_t next = rest.find_first_not_of(", ");
    std::string_view minor =
        next == k_torch_messages_npos ? std::string_view() : dotted_number_at(rest.substr(next));
    if (major.size() > 2 || minor.size() != 1) return false;
    TorchDevice device;
    device.capability = std::string(major) + "." + std::string(minor);
    return add(std::move(device)), true;
  }

  TorchMessages out_;
  std::string_view line_, next_;
  Asked asked_ = Asked::nothing;
  uint64_t asked_line_ = 0, number_ = 0;
};

}  // namespace

TorchMessages parse_torch_messages(std::span<const TextLine> lines) {
  return TorchMessagesReader().read(lines);
}

}  // namespace cufit::formats
