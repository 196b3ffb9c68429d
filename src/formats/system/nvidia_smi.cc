// SPDX-License-Identifier: Apache-2.0
#include "formats/system/nvidia_smi.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/gpu_words.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_nvidia_smi_max_runs = 32, k_max_gpus = 128, k_max_processes = 512,
                 k_max_mig = 256;
constexpr size_t k_nvidia_smi_max_line = 1024;
constexpr uint64_t k_row_reach =
    6;  // lines between a GPU's first and second row, thinned or wrapped
constexpr size_t k_none = static_cast<size_t>(-1);

std::optional<uint32_t> small(std::string_view text, uint64_t limit) {
  std::optional<uint64_t> value = parse_uint(text);
  if (!value || *value > limit) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

// "00000000:01:00.0", "0000:01:00.0"
bool is_bus(std::string_view word) {
  return word.size() >= 10 && word.size() <= 16 && word[word.size() - 2] == '.' &&
         std::count(word.begin(), word.end(), ':') == 2 &&
         word.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

struct Memory {
  uint64_t used = 0, total = 0;
  size_t start = 0;
};
// "498MiB / 12189MiB"
std::optional<Memory> memory_pair(std::string_view line) {
  for (size_t slash = line.find('/'); slash != line.npos; slash = line.find('/', slash + 1)) {
    size_t end = slash;
    while (end > 0 && line[end - 1] == ' ') --end;
    size_t start = end;
    while (start > 0 && end - start < 12 && (is_name_char(line[start - 1]))) --start;
    if (start == end) continue;
    std::optional<uint64_t> used = mib_at(line.substr(start, end - start));
    size_t next = line.find_first_not_of(' ', slash + 1);
    if (!used || next == line.npos) continue;
    std::optional<uint64_t> total = mib_at(line.substr(next));
    if (total && *total > 0) return Memory{*used, *total, start};
  }
  return std::nullopt;
}

enum class Part { none, gpus, mig, processes, query };

class NvidiaSmiReader {
 public:
  NvidiaSmi read(std::span<const TextLine> lines) {
    for (const TextLine& line : lines) {
      number_ = line.number;
      std::string_view text = std::string_view(line.text).substr(0, k_nvidia_smi_max_line);
      take(text);
    }
    out_.runs.erase(std::remove_if(out_.runs.begin(), out_.runs.end(),
                                   [](const SmiRun& run) {
                                     return run.driver.empty() && run.gpus.empty() &&
                                            run.processes.empty();
                                   }),
                    out_.runs.end());
    return std::move(out_);
  }

 private:
  void take(std::string_view line) {
    if (line.size() < 5) return;
    if (csv(line)) return;
    if (size_t at = line.find("NVIDIA-SMI "); at != line.npos && header(line, at)) return;
    if (list_line(line) || query_line(line)) return;
    if (line.find('|') == line.npos && line.find("MiB") == line.npos) return section_word(line);
    if (section_word(line); gpu_row(line) || process_row(line)) return;
    if (std::optional<Memory> memory = memory_pair(line)) return memory_row(line, *memory);
    mig_mode_row(line);
  }

  SmiRun& run() {
    if (out_.runs.empty()) begin_run();
    return out_.runs.back();
  }
  void begin_run() {
    if (out_.runs.size() < k_nvidia_smi_max_runs) out_.runs.push_back({});
    out_.runs.back().line = number_;
    part_ = Part::none;
    current_ = k_none;
  }
  SmiGpu* current() { return current_ < run().gpus.size() ? &run().gpus[current_] : nullptr; }
  bool has_index(std::optional<uint32_t> index) {
    for (const SmiGpu& seen : run().gpus)
      if (seen.index == index) return true;
    return false;
  }
  SmiGpu& add_gpu() {
    if (run().gpus.size() < k_max_gpus) run().gpus.push_back({});
    current_ = run().gpus.size() - 1;
    SmiGpu& gpu = run().gpus.back();
    gpu.line = number_;
    return gpu;
  }

  // "| NVIDIA-SMI 535.54.03   Driver Version: 535.54.03   CUDA Version: 12.2 |"; newer ones say
  // "KMD Version" and "CUDA UMD Version".
  bool header(std::string_view line, size_t at) {
    if (at + 11 >= line.size() || !is_digit(line[at + 11])) return false;
    std::string_view driver = behind(line, "Driver Version:");
    if (driver.empty()) driver = behind(line, "KMD Version:");
    if (driver.empty()) return false;
    begin_run();
    set_driver(driver);
    std::string_view cuda = behind(line, "CUDA Version:");
    if (cuda.empty()) cuda = behind(line, "CUDA UMD Version:");
    set_cuda(cuda);
    return true;
  }
  static std::string_view behind(std::string_view line, std::string_view label) {
    size_t at = line.find(label);
    if (at == line.npos) return {};
    std::string_view rest = line.substr(at + label.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    return rest.substr(0, rest.find_first_of(" |"));
  }
  void set_driver(std::string_view text) {
    std::string_view number = dotted_number_at(text);
    if (!has_inner_dot(number) || !run().driver.empty()) return;
    run().driver = number, run().driver_line = number_;
  }
  void set_cuda(std::string_view text) {
    std::string_view number = text == "N/A" ? text : dotted_number_at(text);
    if (number.empty() || !run().cuda.empty()) return;
    run().cuda = number, run().cuda_line = number_;
  }

  void section_word(std::string_view line) {
    if (has_word(line, "processes:")) part_ = Part::processes;
    if (line.find("MIG devices:") != line.npos) part_ = Part::mig;
    if (line.find("Persistence-M") != line.npos || line.find("Bus-Id") != line.npos ||
        line.find("TCC/WDDM") != line.npos) {
      if (!run().gpus.empty() && run().driver_line + 8 < number_) begin_run();
      part_ = Part::gpus;
    }
  }

  // "|   0  Tesla V100-PCIE...  Off  | 00000000:37:00.0 Off |": a number, a name, and the bus of
  // the second column. Windows prints the driver model before the bar.
  bool gpu_row(std::string_view line) {
    std::vector<std::string_view> cells = split(line, '|');
    size_t first = !cells.empty() && trim(cells[0]).empty() ? 1 : 0;
    if (cells.size() < first + 2) return false;
    std::vector<std::string_view> second = words_of(cells[first + 1], 8);
    if (second.empty() || !is_bus(second[0])) return false;
    std::vector<std::string_view> words = words_of(cells[first], 32);
    if (words.size() < 2) return false;
    std::optional<uint32_t> index = small(words[0], 1023);
    if (!index) return false;
    if (!run().gpus.empty() && part_ == Part::processes) begin_run();
    if (has_index(index)) begin_run();  // the same number again: another run of the tool
    SmiGpu& gpu = add_gpu();
    gpu.index = index;
    gpu.bus = lower(second[0]);
    size_t last = words.size();
    for (std::string_view state :
         {"On", "Off", "WDDM", "TCC", "MCDM", "N/A", "Enabled", "Disabled"}) {
      if (words[last - 1] != state) continue;
      if (state == "WDDM" || state == "TCC" || state == "MCDM") run().windows = true;
      --last;
      break;
    }
    for (size_t i = 1; i < last; ++i) gpu.name += (i > 1 ? " " : "") + std::string(words[i]);
    gpu.name = printable(gpu.name, 96);
    gpu.name_cut = contains(gpu.name, "..");
    part_ = Part::gpus;
    return true;
  }

  // "| N/A   35C    P0    46W / 400W |      0MiB / 40537MiB |      0%      Default |", and what
  // people make of it: "GPU 0  NVIDIA GeForce ...  277MiB /  4096MiB", "GPU0 8382MiB / 11016MiB".
  void memory_row(std::string_view line, const Memory& memory) {
    if (part_ == Part::mig) return mig_row(line, memory);
    if (shortened_row(line, memory)) return;
    SmiGpu* gpu = current();
    if (!gpu || gpu->total_mib || number_ > gpu->line + k_row_reach || part_ != Part::gpus) return;
    gpu->used_mib = memory.used, gpu->total_mib = memory.total;
    set_mode(*gpu, line.substr(memory.start));
  }
  static void set_mode(SmiGpu& gpu, std::string_view rest) {
    for (std::string_view mode : {"Default", "E. Process", "E. Thread", "Prohibited"})
      if (rest.find(mode) != rest.npos) gpu.compute_mode = mode;
  }

  bool shortened_row(std::string_view line, const Memory& memory) {
    size_t at = find_word(line, "gpu", 0, false);
    if (at == line.npos || at > memory.start) return false;
    std::string_view rest = line.substr(at + 3);
    rest.remove_prefix(std::min(rest.find_first_not_of(" #:"), rest.size()));
    std::string_view digits =
        rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
    std::optional<uint32_t> index = small(digits, 1023);
    if (!index || digits.size() == rest.size() || is_letter(rest[digits.size()])) return false;
    for (const SmiGpu& seen : run().gpus)
      if (seen.index == index && seen.total_mib) return true;
    SmiGpu& gpu = add_gpu();
    gpu.index = index;
    gpu.used_mib = memory.used, gpu.total_mib = memory.total;
    size_t name_at = at + 3 + (line.size() - at - 3 - rest.size()) + digits.size();
    std::string_view name =
        trim(line.substr(name_at, memory.start - std::min(name_at, memory.start)));
    while (!name.empty() && (name[0] == ':' || name[0] == ' ')) name.remove_prefix(1);
    if (name.size() < 64 && !name.empty() &&
        (starts_with_word(name, "nvidia") || !find_gpu_words(name).empty() ||
         starts_with_word(name, "geforce") || starts_with_word(name, "tesla"))) {
      gpu.name = name;
      gpu.name_cut = contains(name, "..");
    }
    return true;
  }

  // "|  0    1   0   0  |     11MiB / 20096MiB | 42      0 |  3   0    2    0    0 |"; the second
  // line of a device (BAR1) has no numbers in the first column.
  void mig_row(std::string_view line, const Memory& memory) {
    std::vector<std::string_view> cells = split(line, '|');
    size_t first = !cells.empty() && trim(cells[0]).empty() ? 1 : 0;
    if (first >= cells.size()) return;
    std::vector<std::string_view> words = words_of(cells[first], 8);
    if (words.size() < 3) return;
    std::optional<uint32_t> index = small(words[0], 1023);
    for (SmiGpu& gpu : run().gpus) {
      if (gpu.index != index || gpu.mig_devices.size() >= k_max_mig) continue;
      gpu.mig_devices.push_back({{}, memory.used, memory.total, number_});
      gpu.mig = true;
    }
  }

  // "|                               |                      |             Disabled |"
  void mig_mode_row(std::string_view line) {
    SmiGpu* gpu = current();
    if (!gpu || part_ != Part::gpus || number_ > gpu->line + k_row_reach || gpu->mig) return;
    std::string_view inner = trim(line);
    while (!inner.empty() && (inner.back() == '|' || inner.back() == ' ')) inner.remove_suffix(1);
    std::string_view before = inner.substr(0, inner.rfind('|') + 1);
    if (before.find_first_not_of("| ") != before.npos) return;
    if (ends_with(inner, "Enabled") || ends_with(inner, "Enabled*")) gpu->mig = true;
    if (ends_with(inner, "Disabled") || ends_with(inner, "Disabled*")) gpu->mig = false;
  }

  // "|    0   N/A  N/A      1234      C   /usr/bin/python3               500MiB |"
  bool process_row(std::string_view line) {
    if (part_ != Part::processes) return false;
    std::vector<std::string_view> words;
    for (std::string_view word : words_of(line, 64))
      if (word != "|") words.push_back(word);
    for (size_t i = 2; i < words.size() && i < 6; ++i) {
      if (words[i] != "C" && words[i] != "G" && words[i] != "C+G" && words[i] != "M+C") continue;
      std::optional<uint32_t> pid = small(words[i - 1], 0xffffffffu);
      if (!pid || run().processes.size() >= k_max_processes) return false;
      SmiProcess out;
      out.gpu = small(words[0], 1023);
      out.pid = *pid;
      out.type = words[i];
      out.line = number_;
      size_t end = words.size();
      out.used_mib = mib_at(words[end - 1]);
      if (out.used_mib || words[end - 1] == "N/A") --end;
      for (size_t k = i + 1; k < end; ++k)
        out.name += (k > i + 1 ? " " : "") + std::string(words[k]);
      out.name = printable(out.name, 256);
      run().processes.push_back(std::move(out));
      return true;
    }
    return false;
  }

  // `nvidia-smi -L`: "GPU 0: NVIDIA A10 (UUID: GPU-...)", "  MIG 1g.5gb     Device  0: (UUID: ...)"
  bool list_line(std::string_view raw) {
    std::string_view line = trim(raw);
    if (starts_with(line, "MIG ") && contains(line, "Device")) {
      std::vector<std::string_view> words = words_of(line, 4);
      SmiGpu* gpu = current();
      if (!gpu || words.size() < 3 || words[2] != "Device") return false;
      gpu->mig = true;
      if (gpu->mig_devices.size() < k_max_mig)
        gpu->mig_devices.push_back({printable(words[1], 64), {}, {}, number_});
      return true;
    }
    if (!starts_with(line, "GPU ")) return false;
    size_t colon = line.find(": ");
    if (colon == line.npos || colon > 8) return false;
    std::optional<uint32_t> index = small(trim(line.substr(4, colon - 4)), 1023);
    if (!index || memory_pair(line)) return false;
    std::string_view name = line.substr(colon + 2);
    size_t uuid = name.find(" (UUID");
    name = trim(name.substr(0, uuid));
    std::vector<GpuWords> boards = find_gpu_words(name);
    bool named = starts_with(name, "NVIDIA ") || (!boards.empty() && boards[0].start == 0);
    if (uuid == name.npos && !boards.empty() && boards[0].start == 0)
      name = name.substr(0, boards[0].end);  // "GPU 0: NVIDIA GeForce RTX 4090, driver 550.142"
    if (name.empty() || name.size() > 64 || (uuid == name.npos && !named)) return false;
    if (has_index(index)) begin_run();
    SmiGpu& gpu = add_gpu();
    gpu.index = index;
    gpu.name = name;
    return true;
  }

  // `nvidia-smi -q`: "    Product Name                          : NVIDIA GeForce RTX 3090". The
  // blanks before the colon tell it from prose.
  bool query_line(std::string_view line) {
    size_t colon = line.find(" : ");
    if (colon == line.npos) {
      std::string_view title = trim(line);
      if (starts_with(title, "GPU ") && is_bus(title.substr(4)) && part_ == Part::query)
        add_gpu().bus = lower(title.substr(4));
      if (part_ == Part::query && !title.empty()) block_ = title;
      return false;
    }
    std::string_view label = trim(line.substr(0, colon)), value = trim(line.substr(colon + 3));
    if (label == "Driver Version" && has_inner_dot(value)) {
      if (part_ != Part::query || !run().driver.empty()) begin_run();
      part_ = Part::query;
      set_driver(value);
      return true;
    }
    if (label == "CUDA Version" && run().driver_line > 0) return set_cuda(value), true;
    if (label == "Product Name") {
      part_ = Part::query;
      SmiGpu* gpu = current();
      if (!gpu || !gpu->name.empty() || gpu->line + 4 < number_) gpu = &add_gpu();
      gpu->name = printable(value, 96);
      return true;
    }
    SmiGpu* gpu = current();
    if (part_ != Part::query || !gpu) return false;
    if (block_ == "FB Memory Usage") {
      if (label == "Total") gpu->total_mib = mib_at(value);
      if (label == "Used") gpu->used_mib = mib_at(value);
      if (label == "Free") gpu->free_mib = mib_at(value);
    }
    if (label == "Compute Mode") set_mode(*gpu, value);
    if (block_ == "MIG Mode" && label == "Current") gpu->mig = value == "Enabled";
    return true;
  }

  // `nvidia-smi --query-gpu=name,memory.total --format=csv`: the command or the first line names
  // the columns.
  bool csv(std::string_view line) {
    if (size_t at = line.find("--query-gpu="); at != line.npos) {
      columns(split(line.substr(at + 12, line.find_first_of(" '\"`)", at + 12) - at - 12), ','));
      return true;
    }
    std::vector<std::string_view> cells = split(line, ',');
    if (cells.size() > 1 && line.find('=') == line.npos && is_csv_title(cells)) {
      columns(cells);
      return true;
    }
    if (columns_.empty() || cells.size() != columns_.size()) return false;
    if (number_ > columns_line_ + k_max_gpus) return false;
    SmiGpu gpu;
    std::string_view driver;
    for (size_t i = 0; i < cells.size(); ++i)
      if (!csv_cell(columns_[i], trim(cells[i]), gpu, driver)) return columns_.clear(), false;
    if (gpu.name.empty() && !gpu.total_mib && driver.empty()) return columns_.clear(), false;
    if (gpu.index && has_index(gpu.index)) begin_run();
    set_driver(driver);
    if (gpu.name.empty() && !gpu.total_mib) return true;
    if (!gpu.index) gpu.index = static_cast<uint32_t>(rows_);
    ++rows_;
    uint64_t line_number = number_;
    add_gpu() = std::move(gpu);
    current()->line = line_number;
    return true;
  }
  static bool is_csv_title(const std::vector<std::string_view>& cells) {
    std::string_view first = trim(cells[0]);
    if (first != "name" && first != "index" && first != "driver_version" &&
        !starts_with(first, "memory."))
      return false;
    return std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
      cell = trim(cell);
      return starts_with(cell, "memory.") || cell == "driver_version" || cell == "compute_cap" ||
             cell == "uuid";
    });
  }
  static bool csv_cell(std::string_view column, std::string_view value, SmiGpu& gpu,
                       std::string_view& driver) {
    auto mib = [&](std::optional<uint64_t>& out) {
      out = parse_uint(value);  // "nounits"
      if (!out) out = mib_at(value);
      return out || starts_with(value, "[");
    };
    if (column == "name" || column == "gpu_name") {
      gpu.name = printable(value, 96);
      return !value.empty() && is_letter(value[0]);
    }
    if (column == "index") return (gpu.index = small(value, 1023)).has_value();
    if (column == "driver_version") return has_inner_dot(driver = value);
    if (column == "memory.total") return mib(gpu.total_mib);
    if (column == "memory.used") return mib(gpu.used_mib);
    if (column == "memory.free") return mib(gpu.free_mib);
    if (column == "compute_mode") set_mode(gpu, value);
    if (column == "compute_cap" && has_inner_dot(dotted_number_at(value)))
      gpu.compute_capability = dotted_number_at(value);
    return true;
  }
  void columns(const std::vector<std::string_view>& names) {
    columns_.clear();
    for (std::string_view name : names) {
      if (columns_.size() >= 64) break;
      columns_.emplace_back(lower(trim(name.substr(0, name.find('[')))));
    }
    columns_line_ = number_;
    rows_ = 0;
    // The command and the header it prints belong to one run.
    if (!out_.runs.empty() && !run().gpus.empty()) begin_run();
    run();
  }

  NvidiaSmi out_;
  Part part_ = Part::none;
  std::string block_;        // of -q: the last title without a value
  size_t current_ = k_none;  // the GPU that the next row belongs to
  std::vector<std::string> columns_;
  uint64_t columns_line_ = 0;
  size_t rows_ = 0;
  uint64_t number_ = 0;
};

}  // namespace

NvidiaSmi parse_nvidia_smi(std::span<const TextLine> lines) {
  return NvidiaSmiReader().read(lines);
}

bool is_smi_heading(std::string_view line) {
  line = trim(line);
  if (!starts_with(line, "|")) return false;
  // (Newer drivers write "Processes:" and "GPU Memory", older ones "GPU-Util" in the same places.)
  for (std::string_view name : {"Volatile Uncorr. ECC", "GPU-Util  Compute M.", "MIG M. |",
                                "Process name", "GI   CI", "ID   ID"})
    if (contains(line, name)) return true;
  return false;
}

}  // namespace cufit::formats
