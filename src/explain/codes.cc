// SPDX-License-Identifier: Apache-2.0
#include "explain/codes.h"

#include <charconv>
#include <optional>

#include "base/format.h"
#include "formats/prose/text_words.h"

namespace cufit::explain {
namespace {

constexpr size_t k_codes = 64;

// "exit code 137", "exitcode: -9", "return code = -9", "exit status 139", "Exited (137)".
constexpr std::string_view k_exits[] = {"exit code",  "exitcode",    "exit_code",   "return code",
                                        "returncode", "exit status", "exited with", "exited (",
                                        "退出码",     "退出代码"};
// A number behind one of these, in a line that speaks of CUDA, is a result of the CUDA driver.
constexpr std::string_view k_cuda_errors[] = {"cuda error", "error code", "error",
                                              "returned",   "cuinit",     "errno"};

class CodesReader {
 public:
  explicit CodesReader(const knowledge::Knowledge& knowledge) : knowledge_(knowledge) {}

  std::optional<CodeHit> read(const formats::TextLine& line) const {
    std::optional<CodeHit> hit = name(line.text);
    if (!hit) hit = xid(line.text);
    if (!hit) hit = exit(line.text);
    if (!hit) hit = cuda(line.text);
    if (hit) hit->line = line.number;
    return hit;
  }

 private:
  static CodeHit hit(size_t column, std::string fact, std::string_view finding = {}) {
    return {0, column, std::move(fact), finding};
  }
  // "exit code 137 (SIGKILL, 128 + 9): killed from outside ..."
  static std::string said(const std::string& what, std::string_view name,
                          std::string_view meaning) {
    return what + (name.empty() ? "" : " (" + std::string(name) + ")") + ": " +
           std::string(meaning);
  }

  // Names say it themselves: CUDNN_STATUS_..., CUBLAS_STATUS_..., nccl..., CUDA_ERROR_...,
  // NVML_ERROR_....
  std::optional<CodeHit> name(std::string_view text) const {
    for (size_t at = 0; at < text.size();) {
      if (!formats::is_name_char(text[at])) {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < text.size() && formats::is_name_char(text[end])) ++end;
      const std::string_view word = text.substr(at, end - at);
      if (std::optional<CodeHit> found = named(word, at)) return found;
      at = end;
    }
    return std::nullopt;
  }

  std::optional<CodeHit> named(std::string_view word, size_t at) const {
    if (word.size() < 8) return std::nullopt;
    if (starts_with(word, "CUDNN_STATUS_") || starts_with(word, "CUBLAS_STATUS_") ||
        starts_with(word, "nccl")) {
      const knowledge::LibraryCodeRow* row = knowledge_.find_library_code(word);
      if (row && row->code != 0)
        return hit(at, said(std::string(word), "", row->meaning), row->finding);
    }
    const bool nvml = starts_with(word, "NVML_ERROR_");
    if (nvml || starts_with(word, "CUDA_ERROR_") || starts_with(word, "cudaError")) {
      for (const knowledge::CodeRow& row : nvml ? knowledge_.nvml_codes : knowledge_.cuda_codes) {
        if (row.name == word && row.code != 0)
          return hit(at, said(std::string(word), std::to_string(row.code), row.meaning));
      }
    }
    return std::nullopt;
  }

  // "NVRM: Xid (PCI:0000:65:00): 79, pid=1234, ...", "Xid 79".
  std::optional<CodeHit> xid(std::string_view text) const {
    const size_t at = formats::find_word(text, "xid");
    if (at == std::string_view::npos) return std::nullopt;
    std::string_view rest = text.substr(at + 3);
    if (starts_with(trim(rest), "(")) {
      const size_t close = rest.find(')');
      if (close == std::string_view::npos) return std::nullopt;
      rest.remove_prefix(close + 1);
    }
    const std::optional<int64_t> number = number_at(rest);
    if (!number || *number < 0 || *number > 1000) return std::nullopt;
    const knowledge::XidRow* row = knowledge_.find_xid(static_cast<uint32_t>(*number));
    if (!row) return std::nullopt;
    return hit(at, said("Xid " + std::to_string(*number), "", row->meaning), row->finding);
  }

  std::optional<CodeHit> exit(std::string_view text) const {
    for (std::string_view word : k_exits) {
      const size_t at = formats::find_word(text, word, 0, false);
      if (at == std::string_view::npos) continue;
      std::optional<int64_t> number = number_at(text.substr(at + word.size()));
      if (number && *number < -255) *number += int64_t{1} << 32;  // NTSTATUS as a signed number
      const knowledge::ExitCodeRow* row = number ? knowledge_.find_exit_code(*number) : nullptr;
      if (!row || *number == 1) continue;  // 1 says nothing
      const std::string what = "exit code " + std::to_string(*number);
      const bool as_signal = !row->signal.empty();
      return hit(at, said(what, as_signal ? row->signal : row->name, row->meaning), row->finding);
    }
    return std::nullopt;
  }

  std::optional<CodeHit> cuda(std::string_view text) const {
    if (!formats::has_word(text, "cuda") &&
        formats::find_word(text, "cuinit", 0, false) == text.npos)
      return std::nullopt;
    for (std::string_view word : k_cuda_errors) {
      const size_t at = formats::find_word(text, word, 0, false);
      if (at == std::string_view::npos) continue;
      const std::optional<int64_t> number = number_at(text.substr(at + word.size()));
      if (!number || *number <= 0 || *number > 999) continue;
      const knowledge::CodeRow* row = knowledge_.find_cuda_code(static_cast<int>(*number));
      if (row)
        return hit(at, said("CUDA error " + std::to_string(*number), row->name, row->meaning));
    }
    return std::nullopt;
  }

  // A whole number behind blanks and signs: ": -9", " = 137", " (139)", "() returned 804". A count
  // with a unit or a version ("error 12.1", "returned 35 MiB") is none.
  static std::optional<int64_t> number_at(std::string_view text) {
    size_t at = 0;
    while (at < text.size() && at < 24 &&
           std::string_view(" \t:=()[]\"'").find(text[at]) != text.npos)
      ++at;
    for (std::string_view word : {"is ", "code ", "status ", "returned ", "with ", "number "}) {
      if (text.substr(at, word.size()) != word) continue;
      at += word.size();
      while (at < text.size() && std::string_view(" :=(").find(text[at]) != text.npos) ++at;
    }
    const char *begin = text.data() + at, *end = text.data() + text.size();
    int64_t number = 0;
    const auto [stop, error] = std::from_chars(begin, end, number);
    if (error != std::errc()) return std::nullopt;
    if (stop != end && (formats::is_name_char(*stop) || *stop == '%')) return std::nullopt;
    if (stop + 1 < end && *stop == '.' && is_digit(stop[1])) return std::nullopt;
    return number;
  }

  const knowledge::Knowledge& knowledge_;
};

}  // namespace

std::vector<CodeHit> find_codes(std::span<const formats::TextLine> lines,
                                const knowledge::Knowledge& knowledge) {
  const CodesReader reader(knowledge);
  std::vector<CodeHit> out;
  for (const formats::TextLine& line : lines) {
    std::optional<CodeHit> hit = reader.read(line);
    if (hit) out.push_back(std::move(*hit));
    if (out.size() >= k_codes) break;
  }
  return out;
}

}  // namespace cufit::explain
