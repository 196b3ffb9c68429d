// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/collect_env_dump.h"

#include <algorithm>
#include <cstdlib>

#include <re2/re2.h>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr size_t k_collect_env_dump_max_line =
    16384;  // lscpu's Flags line has about 2000 characters
constexpr size_t k_collect_env_dump_max_value = 4096;
constexpr size_t k_max_items = 20000;  // fields, packages, GPUs together

struct Label {
  std::string_view text;  // lower case
  std::string_view field;
};

constexpr Label k_labels[] = {
    {"pytorch version", "torch_version"},
    {"is debug build", "is_debug_build"},
    {"cuda used to build pytorch", "cuda_compiled_version"},
    {"rocm used to build pytorch", "hip_compiled_version"},
    {"os", "os"},
    {"gcc version", "gcc_version"},
    {"clang version", "clang_version"},
    {"cmake version", "cmake_version"},
    {"libc version", "libc_version"},
    {"python version", "python_version"},
    {"python platform", "python_platform"},
    {"is cuda available", "is_cuda_available"},
    {"cuda runtime version", "cuda_runtime_version"},
    {"cuda_module_loading set to", "cuda_module_loading"},
    {"gpu models and configuration", "nvidia_gpu_models"},
    {"nvidia driver version", "nvidia_driver_version"},
    {"cudnn version", "cudnn_version"},
    {"is xpu available", "is_xpu_available"},
    {"hip runtime version", "hip_runtime_version"},
    {"miopen runtime version", "miopen_runtime_version"},
    {"is xnnpack available", "is_xnnpack_available"},
    {"caching allocator config", "caching_allocator_config"},
    {"rocm version", "rocm_version"},
    {"neuron sdk version", "neuron_sdk_version"},
    {"vllm version", "vllm_version"},
    {"vllm build flags", "vllm_build_flags"},
    {"intel gpu driver version", "intel_gpu_driver_version"},
    {"intel gpu models onboard", "intel_gpu_models_onboard"},
    {"intel gpu models detected", "intel_gpu_models_detected"},
};

// Titles that begin a block of lines of their own kind.
enum class Block { fields, cpu, libraries, variables, topology };
struct Title {
  std::string_view text;
  Block block;
};
constexpr Title k_titles[] = {
    {"cpu", Block::cpu},
    {"cpu info", Block::cpu},
    {"versions of relevant libraries", Block::libraries},
    {"environment variables", Block::variables},
    {"gpu topology", Block::topology},
    {"system info", Block::fields},
    {"pytorch info", Block::fields},
    {"python environment", Block::fields},
    {"cuda / gpu info", Block::fields},
    {"intel xpu / gpu info", Block::fields},
    {"vllm info", Block::fields},
    {"cufit", Block::topology},  // our own section at the end: not torch's fields
};

struct CollectEnvDumpPatterns {
  RE2 colour{"\x1b\\[[0-9;?]*[A-Za-z]"};
  // "2024-05-01T12:00:00.1234567Z ", "[2024-05-01 12:00:00,123] ", "12:00:00 | "
  RE2 stamp{
      R"(^\[?(?:\d{4}[-/]\d{2}[-/]\d{2}[T ])?\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?\]?\s*(?:[|:]\s)?)"};
  RE2 gpu{R"(^GPU\s*(\d{1,4})\s*:\s*(.*)$)"};
  RE2 uuid{R"(\s*\(UUID:[^)]*\)?)"};
  RE2 mig{R"(^MIG\s+(\S+)\s+Device)"};
  RE2 package{R"(^\[(pip3?|uv|conda)\]\s+(.*)$)"};
  RE2 label{R"(^[A-Za-z][A-Za-z0-9_ /().-]{2,48}:(\s|$))"};
  RE2 variable{R"(^([A-Za-z_][A-Za-z0-9_]*)=(.*)$)"};
};
const CollectEnvDumpPatterns& patterns() {
  static const CollectEnvDumpPatterns all;
  return all;
}

class Parser {
 public:
  CollectEnvDump parse(std::string_view text) {
    if (starts_with(text, "\xEF\xBB\xBF")) text.remove_prefix(3);
    size_t start = 0;
    while (start < text.size() && items_ < k_max_items) {
      size_t end = std::min(text.find('\n', start), text.size());
      ++line_;
      std::string_view raw = text.substr(start, end - start);
      if (raw.size() > k_collect_env_dump_max_line) {
        damage(format("a line of {} characters is cut after {}", raw.size(),
                      k_collect_env_dump_max_line));
        raw = raw.substr(0, k_collect_env_dump_max_line);
      }
      std::string line = cleaned(raw);
      if (line.find('\0') != std::string::npos) {
        damage("holds NUL bytes");
        line.erase(std::remove(line.begin(), line.end(), '\0'), line.end());
      }
      take(line);
      start = end + 1;
    }
    if (items_ >= k_max_items) damage("too many lines of data; the rest is not read");
    return std::move(out_);
  }

 private:
  void damage(std::string what) {
    if (out_.damage.size() < 20) out_.damage.push_back({line_, std::move(what)});
  }

  // Takes off what pasting put before a line.
  static std::string cleaned(std::string_view raw) {
    std::string line(trim(raw));
    if (line.find('\x1b') != std::string::npos) RE2::GlobalReplace(&line, patterns().colour, "");
    for (bool again = true; again;) {
      again = false;
      while (!line.empty() && (line[0] == '>' || line[0] == ' ' || line[0] == '\t'))
        line.erase(0, 1);
      if (RE2::Replace(&line, patterns().stamp, "")) again = true;
      for (const char* bullet : {"- ", "* ", "+ ", "**"}) {
        if (starts_with(line, bullet)) {
          line.erase(0, 2);
          again = true;
        }
      }
    }
    return line;
  }

  static bool is_markup(std::string_view line) {
    for (const char* start : {"```", "~~~", "<details", "</details", "<summary", "</summary",
                              "<pre", "</pre", "<!--", "Collecting environment information"}) {
      if (starts_with(line, start)) return true;
    }
    return line.size() >= 3 && line.find_first_not_of("=-") == std::string_view::npos;
  }

  void take(const std::string& line) {
    if (line.empty()) {
      current_ = k_none;
      return;
    }
    if (is_markup(line)) return;
    std::string manager, rest;
    if (RE2::FullMatch(line, patterns().package, &manager, &rest)) return package(manager, rest);
    if (take_label(line)) return;
    switch (block_) {
      case Block::fields:
        return continuation(line);
      case Block::cpu:
        return cpu_line(line);
      case Block::libraries:
        return;
      case Block::variables: {
        std::string name, value;
        if (RE2::FullMatch(line, patterns().variable, &name, &value))
          add(out_.variables, name, value);
        return;
      }
      case Block::topology:
        return;
    }
  }

  // "Label: value", "Label    : value", "**Label**: value", or a known label without its colon.
  bool take_label(const std::string& line) {
    size_t colon = line.find(':');
    size_t wide = line.find("\xEF\xBC\x9A");  // full-width colon, of a Chinese input method
    size_t after = colon + 1;
    if (wide < colon) {
      colon = wide;
      after = wide + 3;
    }
    if (colon != std::string::npos && colon < 64) {
      std::string label = lower(trim(std::string_view(line).substr(0, colon)));
      label.erase(
          std::remove_if(label.begin(), label.end(), [](char c) { return c == '*' || c == '`'; }),
          label.end());
      std::string_view value = trim(std::string_view(line).substr(after));
      while (starts_with(value, "**")) value = trim(value.substr(2));
      if (take_known(trim(label), value)) return true;
    }
    std::string all = lower(line);
    for (const Title& title : k_titles) {
      if (all == title.text && title.text != "cpu") return begin(title.block);
    }
    if (block_ != Block::fields || colon != std::string::npos) return false;
    for (const Label& label : k_labels) {
      if (label.text == "os" || !starts_with(all, label.text)) continue;
      if (all.size() > label.text.size() && all[label.text.size()] != ' ') continue;
      field(label.field, trim(std::string_view(line).substr(label.text.size())));
      return true;
    }
    return false;
  }

  bool begin(Block block) {
    block_ = block;
    current_ = k_none;
    return true;
  }

  bool take_known(std::string_view label, std::string_view value) {
    for (const Title& title : k_titles) {
      if (label == title.text && value.empty()) return begin(title.block);
    }
    for (const Label& known : k_labels) {
      if (label != known.text) continue;
      block_ = Block::fields;
      field(known.field, value);
      return true;
    }
    return false;
  }

  void field(std::string_view name, std::string_view value) {
    current_ = k_none;
    for (const DumpField& known : out_.fields)
      if (known.name == name) return;  // a second dump in the same text: the first one counts
    current_ = out_.fields.size();
    add(out_.fields, std::string(name), std::string(value));
    if (name == "nvidia_gpu_models") gpu_line(std::string(value));
  }

  void add(std::vector<DumpField>& list, std::string name, const std::string& value) {
    ++items_;
    list.push_back({printable(name, 128), printable(value, k_collect_env_dump_max_value), line_});
  }

  void continuation(const std::string& line) {
    if (current_ == k_none) return;
    DumpField& open = out_.fields[current_];
    if (open.name == "nvidia_gpu_models") gpu_line(line);
    if (open.value.size() + line.size() > k_collect_env_dump_max_value) return;
    // A list has one item a line; anything else is a value that was wrapped while it was pasted.
    bool list = open.name == "nvidia_gpu_models" || open.name == "cudnn_version" ||
                open.name == "nvidia_driver_version";
    if (!list && RE2::PartialMatch(
                     line, patterns().label)) {  // a label that we do not know is no continuation
      current_ = k_none;
      return;
    }
    if (!open.value.empty()) open.value += list ? '\n' : ' ';
    open.value += printable(line, k_collect_env_dump_max_value);
    ++items_;
  }

  void gpu_line(const std::string& text) {
    std::string line = text, index, name, profile;
    RE2::GlobalReplace(&line, patterns().uuid, "");
    if (RE2::FullMatch(line, patterns().gpu, &index, &name)) {
      ++items_;
      out_.gpus.push_back(
          {static_cast<uint32_t>(std::atoi(index.c_str())), printable(trim(name), 128), {}, line_});
    } else if (!out_.gpus.empty() && RE2::PartialMatch(line, patterns().mig, &profile)) {
      ++items_;
      out_.gpus.back().mig.push_back(printable(profile, 64));
    }
  }

  void cpu_line(const std::string& line) {
    size_t colon = line.find(':');
    size_t wide = line.find("\xEF\xBC\x9A");
    size_t equals = line.find('=');  // wmic: "Name=Intel(R) Core(TM)"
    size_t at = std::min({colon, wide, equals});
    size_t length = at == wide ? 3 : 1;
    if (at == std::string::npos) {
      if (out_.cpu.empty()) add(out_.cpu, "Model name", line);  // macOS prints the name alone
      return;
    }
    add(out_.cpu, std::string(trim(std::string_view(line).substr(0, at))),
        std::string(trim(std::string_view(line).substr(at + length))));
  }

  void package(const std::string& manager, const std::string& rest) {
    if (trim(rest) == "Could not collect" || trim(rest) == "No relevant packages") return;
    DumpPackage out{manager, {}, {}, {}, {}, line_};
    std::string_view text = trim(rest);
    if (size_t equals = text.find("=="); equals != std::string_view::npos) {
      out.name = text.substr(0, equals);
      out.version = text.substr(equals + 2);
    } else {
      std::vector<std::string> words;
      for (std::string_view word : split(text, ' '))
        if (!trim(word).empty()) words.emplace_back(trim(word));
      words.resize(4);
      out.name = words[0], out.version = words[1], out.build = words[2], out.channel = words[3];
    }
    for (std::string* part : {&out.name, &out.version, &out.build, &out.channel})
      *part = printable(trim(*part), 128);
    if (out.name.empty()) return;
    ++items_;
    out_.packages.push_back(std::move(out));
  }

  static constexpr size_t k_none = static_cast<size_t>(-1);

  CollectEnvDump out_;
  Block block_ = Block::fields;
  size_t current_ = k_none;  // index of the field that may go on
  size_t items_ = 0;
  uint64_t line_ = 0;
};

}  // namespace

const DumpField* CollectEnvDump::find(std::string_view name) const {
  for (const DumpField& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

CollectEnvDump parse_collect_env_dump(std::string_view text) { return Parser().parse(text); }

bool dump_says_yes(std::string_view value) {
  std::string word = lower(trim(value));
  return word == "true" || word == "yes" || word == "1";
}
bool dump_says_no(std::string_view value) {
  std::string word = lower(trim(value));
  return word == "false" || word == "no" || word == "0";
}
bool dump_says_nothing(std::string_view value) {
  std::string word = lower(trim(value));
  return word.empty() || word == "n/a" || word == "could not collect" || word == "no cuda" ||
         word == "none" || word == "not available" || word == "unknown";
}

}  // namespace cufit::formats
