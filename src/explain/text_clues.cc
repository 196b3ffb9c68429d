// SPDX-License-Identifier: Apache-2.0
#include "explain/text_clues.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "base/format.h"
#include "explain/capability_clues.h"
#include "explain/text_args.h"
#include "formats/system/nvidia_smi.h"
#include "formats/prose/text_words.h"

namespace cufit::explain {
namespace {

// A `docker run` that asks for no GPU in any of the known ways, its continued lines included.
std::optional<ComputedClue> plain_docker_run(std::span<const formats::TextLine> lines) {
  constexpr std::string_view k_asks[] = {"--gpus",          "nvidia", "--device",    "--privileged",
                                         "device-requests", "$GPU",   "compose run", "..."};
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view text = lines[i].text;
    size_t at = text.npos;
    for (std::string_view command : {"docker run ", "podman run ", "nerdctl run "}) {
      at = std::min(at, text.find(command));
    }
    if (at == text.npos || (at > 0 && formats::is_name_char(text[at - 1]))) continue;
    std::string command(text.substr(at));
    for (size_t k = i + 1; k < lines.size() && ends_with(trim(command), "\\"); ++k)
      command += "\n" + lines[k].text;
    const bool whole = command.find(" -") != command.npos;  // "docker run fails": prose
    const bool asks = std::any_of(std::begin(k_asks), std::end(k_asks),
                                  [&](std::string_view word) { return contains(command, word); });
    if (whole && !asks) return ComputedClue{"docker_run_plain", lines[i].number, {}};
  }
  return std::nullopt;
}

// "8g", "8 gb", "8gib" and no word that goes on.
bool ends_unit(std::string_view text, size_t unit) {
  size_t end = unit + 1;
  if (end < text.size() && text[end] == 'i') ++end;
  if (end < text.size() && text[end] == 'b') ++end;
  return end >= text.size() || !formats::is_name_char(text[end]);
}

// /dev/shm is large, or the container was started with the host's: "tmpfs 252G 1.2M 252G 1% /dev/shm".
// What somebody advises or asks for is no fact.
std::optional<ComputedClue> plenty_of_shm(std::span<const formats::TextLine> lines) {
  constexpr uint64_t k_plenty_gib = 8;
  constexpr std::string_view k_advice[] = {"fix",  "solv",     "help", "should", "try",  "need",
                                           "add ", "increase", "100%", "full",   "解决", "改",
                                           "加",   "建议",     "only", "以后",   "才"};
  for (const formats::TextLine& line : lines) {
    const std::string text = lower(line.text);
    const size_t at = std::min({text.find("/dev/shm"), text.find("shm-size"), text.find("shm_size"),
                                text.find("shared memory"), text.find("共享内存")});
    const bool host = text.find("--ipc=host") != text.npos ||
                      text.find("--ipc host") != text.npos || text.find("ipc: host") != text.npos;
    if (at == text.npos && !host) continue;
    if (std::any_of(std::begin(k_advice), std::end(k_advice),
                    [&](std::string_view word) { return contains(text, word); }))
      continue;
    if (host) return ComputedClue{"shm_plenty", line.number, {}};
    for (size_t i = 0; i < text.size(); ++i) {
      if (!is_digit(text[i]) || (i > 0 && formats::is_name_char(text[i - 1]))) continue;
      size_t end = i;
      while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
      const double value = std::strtod(text.substr(i, end - i).c_str(), nullptr);
      while (end < text.size() && text[end] == ' ') ++end;
      const bool tera = text.substr(end, 1) == "t", giga = text.substr(end, 1) == "g";
      if (!ends_unit(text, end)) continue;  // of a name: "/dev/shm/nccl-8tq0zc"
      if ((giga && value >= k_plenty_gib) || (tera && value > 0))
        return ComputedClue{"shm_plenty", line.number, {}};
      if (giga || tera || text.substr(end, 1) == "m") break;  // the first size is the whole
    }
  }
  return std::nullopt;
}

// "free/total before: 23.31 / 23.65 GiB", "(free, total) = (15.2 GiB, 15.8 GiB)": half or more
// free.
std::optional<ComputedClue> mostly_free(std::span<const formats::TextLine> lines) {
  for (const formats::TextLine& line : lines) {
    const std::string_view text = line.text;
    const size_t free = formats::find_word(text, "free"), total = formats::find_word(text, "total");
    if (free == text.npos || total == text.npos || total < free || total - free > 12) continue;
    double values[2] = {};
    size_t count = 0;
    for (size_t at = total; at < text.size() && count < 2; ++at) {
      if (!is_digit(text[at]) || formats::is_name_char(text[at - 1])) continue;
      const std::string_view number = formats::dotted_number_at(text.substr(at));
      values[count++] = std::strtod(std::string(number).c_str(), nullptr);
      at += number.size();
    }
    if (count == 2 && values[1] > 1 && values[0] <= values[1] && values[0] >= values[1] / 2)
      return ComputedClue{"memory_mostly_free", line.number,
                          format("{} of {} free", values[0], values[1])};
  }
  return std::nullopt;
}

// "max_seq_len=32768" and "# GPU blocks: 1842" of one start of vLLM: a block holds 16 tokens unless
// the configuration says otherwise.
std::optional<uint64_t> number_after(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == text.npos) return std::nullopt;
  uint64_t number = 0;
  const std::string_view rest = text.substr(at + name.size());
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || number > 1'000'000'000) return std::nullopt;
  return number;
}

std::optional<ComputedClue> few_kv_blocks(std::span<const formats::TextLine> lines) {
  uint64_t longest = 0, per_block = 16;
  for (const formats::TextLine& line : lines) {
    if (const auto length = number_after(line.text, "max_seq_len=")) longest = *length;
    if (const auto size = number_after(line.text, "block_size=")) per_block = *size;
    const std::optional<uint64_t> blocks = number_after(line.text, "# GPU blocks: ");
    if (blocks && *blocks * per_block < longest)
      return ComputedClue{"kv_blocks_below_length", line.number,
                          format("{} blocks of {} tokens, the longest sequence is {}", *blocks,
                                 per_block, longest)};
  }
  return std::nullopt;
}

// A row of nvidia-smi's list: "|    0   N/A  N/A   680   C   .../python   8743MiB |".
struct ProcessRow {
  uint64_t gpu = 0, pid = 0, mib = 0;
};

std::optional<ProcessRow> process_row(std::string_view line) {
  if (line.substr(0, 1) != "|") return std::nullopt;
  const auto number = [](std::string_view word) -> std::optional<uint64_t> {
    uint64_t out = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), out);
    if (error != std::errc() || stop != word.data() + word.size()) return std::nullopt;
    return out;
  };
  ProcessRow row;
  std::string_view last;
  bool has_gpu = false, has_pid = false;
  for (size_t at = 1; at < line.size();) {
    const size_t end = std::min(line.find_first_of(" |", at), line.size());
    const std::string_view word = line.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    if (!has_gpu) {
      if (!number(word)) return std::nullopt;
      row.gpu = *number(word);
      has_gpu = true;
    } else if ((word == "C" || word == "C+G") && number(last)) {
      row.pid = *number(last);
      has_pid = true;
    }
    last = word;
  }
  if (!has_pid || last.size() < 4 || last.substr(last.size() - 3) != "MiB") return std::nullopt;
  const std::optional<uint64_t> mib = number(last.substr(0, last.size() - 3));
  if (!mib) return std::nullopt;
  row.mib = *mib;
  return row;
}

// nn.DataParallel gathers on its first GPU: half as much again there as on any other.
std::optional<ComputedClue> first_gpu_fuller(std::span<const formats::TextLine> lines) {
  struct Use {
    ProcessRow first;
    uint64_t line = 0, gpus = 1, most_elsewhere = 0;
  };
  std::map<uint64_t, Use> uses;
  for (const formats::TextLine& line : lines) {
    const std::optional<ProcessRow> row = process_row(line.text);
    if (!row) continue;
    const auto [use, is_new] = uses.try_emplace(row->pid, Use{*row, line.number});
    if (is_new || row->gpu <= use->second.first.gpu) continue;
    ++use->second.gpus;
    use->second.most_elsewhere = std::max(use->second.most_elsewhere, row->mib);
  }
  for (const auto& [pid, use] : uses) {
    if (use.gpus < 3 || use.first.mib * 2 < use.most_elsewhere * 3) continue;
    return ComputedClue{
        "first_gpu_fuller", use.line,
        format("process {} holds {} MiB on GPU {}, at most {} MiB on {} others", pid, use.first.mib,
               use.first.gpu, use.most_elsewhere, use.gpus - 1)};
  }
  return std::nullopt;
}

// nvidia-smi names processes, and those on one GPU hold far less than what is in use there: the
// holder is not visible. A table without any process tells nothing: in a container none are named.
std::optional<ComputedClue> use_without_process(std::span<const formats::TextLine> lines) {
  for (const formats::SmiRun& run : formats::parse_nvidia_smi(lines).runs) {
    if (run.processes.empty() || run.windows) continue;
    for (const formats::SmiGpu& gpu : run.gpus) {
      if (!gpu.index || !gpu.used_mib || !gpu.total_mib) continue;
      const uint64_t used = *gpu.used_mib;
      if (used < *gpu.total_mib / 4) continue;
      uint64_t named = 0;
      bool all_told = true;
      for (const formats::SmiProcess& process : run.processes) {
        if (!process.gpu || !process.used_mib) all_told = false;
        if (process.gpu == gpu.index) named += process.used_mib.value_or(0);
      }
      if (!all_told || named > used / 4) continue;
      return ComputedClue{"smi_use_without_process", gpu.line,
                          format("{} MiB in use on GPU {}, processes with {} MiB are named", used,
                                 *gpu.index, named)};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<ComputedClue> text_clues(std::span<const formats::TextLine> lines) {
  std::vector<ComputedClue> out;
  for (const auto& find : {compare_capability, own_module_file, plain_docker_run, plenty_of_shm,
                           mostly_free, few_kv_blocks, first_gpu_fuller, use_without_process}) {
    if (std::optional<ComputedClue> clue = find(lines)) out.push_back(std::move(*clue));
  }
  return out;
}

}  // namespace cufit::explain
