// SPDX-License-Identifier: Apache-2.0
#include "resolve/kubernetes/start_signs.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"

namespace cufit::resolve {
namespace {

template <size_t N>
bool is_one_of(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// "finetune_llama.py" has the word "finetune".
bool names_training(std::string_view program) {
  constexpr std::string_view k_trains[] = {"train",    "training", "pretrain",
                                           "finetune", "sft",      "pretraining"};
  constexpr std::string_view k_stays[] = {"server", "serve", "service", "serving", "api",
                                          "app",    "watch", "daemon",  "worker",  "loop",
                                          "agent",  "queue", "test",    "tests",   "scheduler"};
  bool trains = false;
  std::string word;
  for (const char c : lower(program) + ".") {
    if (c != '_' && c != '-' && c != '.') {
      word += c;
      continue;
    }
    if (is_one_of(k_stays, word)) return false;
    trains = trains || is_one_of(k_trains, word);
    word.clear();
  }
  return trains;
}

// "train.py" of `python -u a/train.py --x`, "a.train" of `python -m a.train`; empty = none.
std::string python_program(const std::vector<std::string>& words) {
  size_t at = formats::program_at(words);
  if (at >= words.size() || !starts_with(formats::program_name(words[at]), "python")) return {};
  for (++at; at < words.size(); ++at) {
    if (words[at] == "-m") return at + 1 < words.size() ? words[at + 1] : std::string();
    if (words[at] == "-c" || words[at] == "-") return {};
    if (words[at] == "-X" || words[at] == "-W") {
      ++at;
      continue;
    }
    if (starts_with(words[at], "-")) continue;
    return ends_with(words[at], ".py") ? std::string(formats::program_name(words[at]))
                                       : std::string();
  }
  return {};
}

bool is_smi(const formats::ShellCommand& command) {
  const size_t at = formats::program_at(command.words);
  const std::string& first = command.words[0];
  return at < command.words.size() && formats::program_name(command.words[at]) == "nvidia-smi" &&
         first != "if" && first != "!";
}

}  // namespace

std::string trained_program(const ShellCommands& commands) {
  for (const formats::ShellCommand& one : commands)
    if (one.words[0] == "while" || one.words[0] == "until") return {};
  for (const formats::ShellCommand& one : commands)
    if (const std::string program = python_program(one.words); names_training(program))
      return program;
  return {};
}

std::string asks_for_cuda(const std::vector<std::string>& words) {
  const auto is_cuda = [](std::string_view value) {
    return value == "cuda" || starts_with(value, "cuda:");
  };
  for (size_t i = 0; i < words.size(); ++i) {
    if (starts_with(words[i], "--device=") && is_cuda(std::string_view(words[i]).substr(9)))
      return words[i];
    if (words[i] == "--device" && i + 1 < words.size() && is_cuda(words[i + 1]))
      return words[i] + " " + words[i + 1];
  }
  return {};
}

bool begins_with_smi(const ShellCommands& commands) {
  for (size_t i = 1; i < commands.size(); ++i) {
    if (!is_smi(commands[i])) continue;
    // `sh -c nvidia-smi`: it is all that runs.
    if (i + 1 == commands.size()) return i == 1 && commands[0].joint.empty();
    if (commands[i - 1].joint == "||") return false;
    return std::all_of(commands.begin() + static_cast<ptrdiff_t>(i), commands.end() - 1,
                       [](const formats::ShellCommand& one) { return one.joint == "&&"; });
  }
  return false;
}

std::vector<std::string> chosen_devices(const ShellCommands& commands) {
  constexpr std::string_view k_name = "CUDA_VISIBLE_DEVICES=";
  std::vector<std::string> out;
  for (const formats::ShellCommand& one : commands) {
    const bool exports = one.words[0] == "export";
    const size_t end = exports ? one.words.size() : formats::program_at(one.words);
    for (size_t i = exports ? 1 : 0; i < end; ++i)
      if (starts_with(one.words[i], k_name)) out.push_back(one.words[i].substr(k_name.size()));
  }
  return out;
}

bool fills_slots_with_python(const ShellCommands& commands, uint64_t gpus) {
  bool python = false;
  for (const formats::ShellCommand& one : commands)
    for (size_t i = 0; i < one.words.size(); ++i) {
      const std::string& word = one.words[i];
      const std::string_view name = formats::program_name(word);
      python = python || starts_with(name, "python") || name == "horovodrun";
      // The words themselves say how many go where.
      for (const char* option : {"-N", "-npernode", "--npernode", "-ppn", "-perhost", "--map-by",
                                 "-map-by", "--rankfile", "-rf"})
        if (word == option) return false;
      const bool counts = word == "-np" || word == "-n" || word == "--np";
      if (counts && i + 1 < one.words.size()) {
        const std::optional<uint64_t> number = parse_uint(one.words[i + 1]);
        if (number && *number <= gpus) return false;
      }
    }
  return python;
}

bool is_for_other_device(const std::string& image) {
  const std::string low = lower(image);
  constexpr std::string_view k_others[] = {"cpu",    "rocm",  "xpu",      "tpu",    "gaudi", "hpu",
                                           "neuron", "intel", "openvino", "ascend", "npu"};
  return std::any_of(std::begin(k_others), std::end(k_others),
                     [&](std::string_view other) { return contains(low, other); });
}

}  // namespace cufit::resolve
