// SPDX-License-Identifier: Apache-2.0
// GPUs of a pasted text: nvidia-smi's rows, then what torch says of its devices, then boards named
// in prose. Each source is taken as a whole: rows of two lists are never mixed.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "formats/prose/text_words.h"
#include "facts/text_claims.h"

namespace cufit::facts {
namespace {

constexpr size_t k_max_copies = 64;

struct Board {
  std::optional<uint32_t> index;
  std::string name;
  uint64_t line = 0;
  const formats::SmiGpu* row = nullptr;
  std::string capability;
  uint64_t capability_line = 0;
};

// "NVIDIA GeForce RTX 3090" and "rtx-3090" become "rtx3090".
std::string plain(std::string_view name) {
  std::string out;
  for (std::string_view word : formats::words_of(name, 16)) {
    std::string low = lower(word);
    if (low == "nvidia" || low == "geforce" || low == "tesla" || low == "quadro" || low == "gpu" ||
        low == "generation")
      continue;
    for (char c : low)
      if (std::isalnum(static_cast<unsigned char>(c))) out += c;
  }
  return out;
}

// One board, told more or less exactly: "A100" and "A100-SXM4-40GB", "5070Ti" and "RTX 5070 Ti".
// "RTX 3090" and "RTX 3090 Ti" are two.
bool same_board(std::string_view one, std::string_view other) {
  std::string a = plain(one), b = plain(other);
  if (a.size() > b.size()) std::swap(a, b);
  if (a == b) return true;
  if (a.empty()) return false;
  for (std::string_view family : {"rtx", "gtx"})
    if (std::string(family) + a == b) return true;
  if (!starts_with(b, a)) return false;
  std::string_view rest = std::string_view(b).substr(a.size());
  for (std::string_view part : {"sxm", "pcie", "nvl", "laptop", "blackwell", "ada", "workstation",
                                "server", "maxq", "mobile", "pascal", "hbm"})
    if (starts_with(rest, part)) return true;
  size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  return digits > 0 && digits <= 3 && starts_with(rest.substr(digits), "gb") && !is_digit(a.back());
}

class GpuClaims {
 public:
  GpuClaims(const TextParts& parts, const TextSource& source, Facts& facts)
      : parts_(parts), source_(source), facts_(facts) {}

  void read() {
    if (!from_tables() && !from_torch()) from_prose();
    add_capabilities();
    if (!boards_.empty()) {
      facts_.nvml.gpus.clear();
      for (Board& board : boards_) facts_.nvml.gpus.push_back(gpu_of(board));
      processes();
    }
  }

 private:
  // Every run of nvidia-smi (and the dump's list) must show the same boards; the fullest is taken.
  bool from_tables() {
    const formats::SmiRun* best = nullptr;
    for (const formats::SmiRun& run : parts_.smi.runs) {
      if (run.gpus.empty()) continue;
      if (best && !agree(*best, run)) return contradict(best->gpus[0], run.gpus[0]), true;
      if (!best || run.gpus.size() > best->gpus.size()) best = &run;
    }
    if (!best) return !facts_.nvml.gpus.empty();
    for (const formats::SmiGpu& row : best->gpus)
      boards_.push_back({row.index, row.name, row.line, &row, row.compute_capability, row.line});
    run_ = best;
    return true;
  }
  static bool agree(const formats::SmiRun& a, const formats::SmiRun& b) {
    for (const formats::SmiGpu& one : a.gpus)
      for (const formats::SmiGpu& other : b.gpus)
        if (one.index && one.index == other.index && !one.name_cut && !other.name_cut &&
            !one.name.empty() && !other.name.empty() && !same_board(one.name, other.name))
          return false;
    return true;
  }
  void contradict(const formats::SmiGpu& one, const formats::SmiGpu& other) {
    facts_.nvml.gpus.clear();
    facts_.nvml.gpu_count =
        source_.contradicted<uint32_t>({one.name, one.line}, {other.name, other.line});
  }

  // "Found GPU0 ...", "... with CUDA capability sm_120 is not compatible": one line for each device
  // of the process, often twice.
  bool from_torch() {
    for (const formats::TorchDevice& device : parts_.torch.devices) {
      if (device.name.empty() || device.name.size() > 80) continue;
      bool seen = false;
      for (Board& board : boards_) {
        if (device.index && board.index && device.index != board.index) continue;
        if (!same_board(board.name, device.name)) continue;
        if (!board.index) board.index = device.index;
        seen = true;
        break;
      }
      if (!seen && boards_.size() < k_max_copies)
        boards_.push_back(
            {device.index, device.name, device.line, nullptr, device.capability, device.line});
    }
    if (boards_.size() == 1) copies(boards_[0].name);
    return !boards_.empty();
  }

  void from_prose() {
    for (const formats::MachineMention& word : parts_.words.mentions) {
      if (word.what != formats::MachineWord::gpu || word.weak) continue;
      std::string name = with_memory(word);
      bool seen = false;
      for (Board& board : boards_) {
        if (!same_board(board.name, name)) continue;
        if (plain(name).size() > plain(board.name).size())
          board.name = name, board.line = word.line;
        seen = true;
        break;
      }
      if (!seen && boards_.size() < k_max_copies)
        boards_.push_back({{}, name, word.line, nullptr, {}, 0});
    }
    if (boards_.size() > 1) {  // alternatives, or several machines: prose does not tell
      facts_.nvml.gpu_count = source_.contradicted<uint32_t>({boards_[0].name, boards_[0].line},
                                                             {boards_[1].name, boards_[1].line});
      boards_.clear();
    }
    if (boards_.size() == 1) copies(boards_[0].name);
  }
  // The size tells boards of data centres apart ("A100 40GB"); of the others it is a remark.
  static std::string with_memory(const formats::MachineMention& word) {
    std::string low = lower(word.value);
    if (word.memory_gb == 0 || contains(low, "tx") || contains(low, "gb")) return word.value;
    bool named = contains(low, "a100") || contains(low, "v100") || contains(low, "a800") ||
                 contains(low, "h100") || contains(low, "p100");
    return named ? format("{} {}GB", word.value, word.memory_gb) : word.value;
  }
  // "2x RTX 5090": as many as the text says, where it says one number.
  void copies(const std::string& name) {
    uint32_t count = 0;
    for (const formats::MachineMention& word : parts_.words.mentions) {
      if (word.what != formats::MachineWord::gpu || word.weak || word.count == 0 ||
          !same_board(word.value, name))
        continue;
      if (count != 0 && count != word.count) return;
      count = word.count;
    }
    if (count < 2 || count > k_max_copies) return;
    Board board = boards_[0];
    board.index = 0;
    boards_.assign(count, board);
    for (uint32_t i = 0; i < count; ++i) boards_[i].index = i;
  }

  void add_capabilities() {
    for (const formats::TorchDevice& device : parts_.torch.devices) {
      if (device.capability.empty()) continue;
      if (boards_.empty() && facts_.nvml.gpus.empty() && device.name.empty())
        boards_.push_back({device.index, "", device.line, nullptr, device.capability, device.line});
      for (Board& board : boards_) {
        bool fits = device.name.empty() ? boards_.size() == 1 : same_board(board.name, device.name);
        if (!fits || !board.capability.empty()) continue;
        board.capability = device.capability, board.capability_line = device.line;
      }
      for (NvmlGpu& gpu : facts_.nvml.gpus)  // the dump's
        if (!gpu.compute_capability && gpu.name && !device.name.empty() &&
            same_board(*gpu.name, device.name))
          gpu.compute_capability = source_.claim<std::string>(device.capability, device.line);
    }
  }

  NvmlGpu gpu_of(const Board& board) {
    NvmlGpu gpu;
    gpu.index = board.index ? *board.index : static_cast<uint32_t>(&board - boards_.data());
    gpu.name = name_of(board);
    if (!board.capability.empty())
      gpu.compute_capability = source_.claim<std::string>(board.capability, board.capability_line);
    const formats::SmiGpu* row = board.row;
    if (!row) return gpu;
    auto mib = [&](const std::optional<uint64_t>& value, Fact<uint64_t>& fact) {
      if (value && *value < (uint64_t{1} << 30))
        fact = source_.claim<uint64_t>(*value << 20, row->line);
    };
    mib(row->total_mib, gpu.memory_total_bytes);
    mib(row->used_mib, gpu.memory_used_bytes);
    mib(row->free_mib, gpu.memory_free_bytes);
    if (!row->bus.empty()) {
      std::string bus = row->bus.size() == 16 ? row->bus.substr(4) : row->bus;
      gpu.pci_address = source_.claim<std::string>(bus, row->line);
    }
    if (row->mig) gpu.mig_current = source_.claim<bool>(*row->mig, row->line);
    for (const formats::SmiMig& mig : row->mig_devices) {
      MigInstance out{mig.profile, {}, source_.unsaid<uint64_t>()};
      mib(mig.total_mib, out.memory_bytes);
      gpu.mig_instances.push_back(std::move(out));
    }
    for (auto [text, mode] :
         {std::pair{"Default", "default"}, std::pair{"E. Process", "exclusive_process"},
          std::pair{"E. Thread", "exclusive_thread"}, std::pair{"Prohibited", "prohibited"}})
      if (row->compute_mode == text) gpu.compute_mode = source_.claim<std::string>(mode, row->line);
    return gpu;
  }

  // "Tesla V100-PCIE..." lost its end; prose or the dump may have it.
  Fact<std::string> name_of(const Board& board) {
    if (board.name.empty()) return source_.unsaid<std::string>();
    if (!board.row || !board.row->name_cut)
      return source_.claim<std::string>(board.name, board.line);
    std::string kept = board.name.substr(0, board.name.find(".."));
    std::string start = plain(kept);
    const formats::MachineMention* full = nullptr;
    for (const formats::MachineMention& word : parts_.words.mentions) {
      if (word.what != formats::MachineWord::gpu || word.weak ||
          !starts_with(plain(word.value), start))
        continue;
      if (full && !same_board(full->value, word.value)) return cut(board);
      full = &word;
    }
    for (const formats::TorchDevice& device : parts_.torch.devices)
      if (!device.name.empty() && starts_with(plain(device.name), start) && !start.empty())
        return source_.claim<std::string>(device.name, device.line);
    if (full) return source_.claim<std::string>(full->value, full->line);
    bool tells = start.find_first_of("0123456789") != std::string::npos && start.size() > 3;
    return tells ? source_.claim<std::string>(std::string(trim(kept)), board.line) : cut(board);
  }
  Fact<std::string> cut(const Board& board) const {
    return source_.unsaid<std::string>(format("line {} shows only `{}`", board.line, board.name));
  }

  void processes() {
    if (!run_ || run_->processes.empty()) return;
    for (NvmlGpu& gpu : facts_.nvml.gpus) {
      std::vector<GpuProcess> list;
      uint64_t line = 0;
      for (const formats::SmiProcess& process : run_->processes) {
        if (process.gpu != gpu.index) continue;
        if (line == 0) line = process.line;
        GpuProcess out{process.pid, process.name, source_.unsaid<uint64_t>(),
                       contains(process.type, "C") ? "compute" : "graphics"};
        if (process.used_mib)
          out.used_bytes = source_.claim<uint64_t>(*process.used_mib << 20, process.line);
        list.push_back(std::move(out));
      }
      if (!list.empty()) gpu.processes = source_.claim(std::move(list), line);
    }
  }

  const TextParts& parts_;
  const TextSource& source_;
  Facts& facts_;
  std::vector<Board> boards_;
  const formats::SmiRun* run_ = nullptr;
};

}  // namespace

void read_text_gpus(const TextParts& parts, const TextSource& source, Facts& facts) {
  GpuClaims(parts, source, facts).read();
}

}  // namespace cufit::facts
