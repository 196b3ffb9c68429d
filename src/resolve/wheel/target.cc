// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/target.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/format.h"
#include "base/number.h"
#include "checks/wheel_platform.h"
#include "checks/doctor.h"

namespace cufit::resolve {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

void add_gpu(const checks::GpuView& view, Target& target) {
  if (!view.cc) {
    target.unknown_gpus.push_back(view.name.empty() ? "GPU " + std::to_string(view.index)
                                                    : view.name);
    return;
  }
  for (TargetGpu& gpu : target.gpus) {
    if (gpu.name == view.name && gpu.cc == *view.cc) {
      ++gpu.count;
      return;
    }
  }
  target.gpus.push_back({view.name, *view.cc, 1, checks::compat_gpu(view)});
}

bool says_none(const Fact<std::string>& fact) { return !fact && fact.why == WhyNot::not_present; }

bool is_times(char c) { return c == 'x' || c == 'X' || c == '*'; }

// "2x A800", "2 x A800", "A800 x2", "A800 x 2" and with "*": the name alone and the digits. A name
// may end in x and digits of its own ("MX450"): a count behind one stands apart.
std::pair<std::string_view, std::string_view> split_count(std::string_view word) {
  size_t digits = 0;
  while (digits < word.size() && is_digit(word[digits])) ++digits;
  const std::string_view rest = trimmed(word.substr(digits));
  if (digits > 0 && !rest.empty() && is_times(rest[0])) {
    const std::string_view after = trimmed(rest.substr(1));
    // "4090x2": as many cards are in no machine, and no card is called "2".
    const bool behind = digits > 2 && !after.empty() && after.size() <= 2 &&
                        after.find_first_not_of("0123456789") == std::string_view::npos;
    if (behind) return {word.substr(0, digits), after};
    return {after, word.substr(0, digits)};
  }
  size_t end = word.size();
  while (end > 0 && is_digit(word[end - 1])) --end;
  const std::string_view head = trimmed(word.substr(0, end));
  if (end == word.size() || head.size() < 2 || !is_times(head.back())) return {word, {}};
  const std::string_view name = head.substr(0, head.size() - 1);
  if (name.back() != ' ' && head.back() != '*') return {word, {}};
  return {trimmed(name), word.substr(end)};
}

// At most 64: nobody has more in one machine.
Result<uint32_t> take_count(std::string_view& word) {
  const auto [name, digits] = split_count(word);
  if (digits.empty()) return 1u;
  const std::optional<uint64_t> count = parse_uint(digits);
  if (!count || *count == 0 || *count > 64)
    return fail(Code::usage, format("`{}`: between 1 and 64 GPUs", std::string(word)));
  word = name;
  return static_cast<uint32_t>(*count);
}

// Boards that sit beside an Arm processor and nowhere else.
bool beside_arm(const TargetGpu& gpu) {
  const std::string name = lower(gpu.name);
  for (const char* word : {"gb10", "gh200", "gb200", "gb300", "orin", "thor", "xavier", "tegra"})
    if (contains(name, word)) return true;
  return false;
}

Result<std::vector<std::string>> described_gpus(std::string_view text) {
  std::vector<std::string> gpus;
  for (std::string_view part : split(text, '+')) {
    std::string_view word = trimmed(part);
    CUFIT_TRY(count, take_count(word));
    if (word.empty()) return fail(Code::usage, format("`{}`: a GPU is missing", std::string(text)));
    if (gpus.size() + count > 64) return fail(Code::usage, "at most 64 GPUs in one machine");
    gpus.insert(gpus.end(), count, std::string(word));
  }
  return gpus;
}

Result<void> take_setting(std::string_view word, Target& target) {
  const size_t equals = word.find('=');
  const std::string_view key = trimmed(word.substr(0, equals));
  const std::string value(trimmed(word.substr(equals + 1)));
  if (key == "glibc") {
    target.glibc = parse_version(value);
    if (target.glibc) return {};
  } else if (key == "python") {
    target.python = minor_python(value);
    if (!target.python.empty()) return {};
  } else if (key == "arch") {
    if (value == "x86_64" || value == "aarch64") {
      target.platform = "linux_" + value;
      return {};
    }
  } else {
    return fail(Code::usage,
                format("`{}`: the words are glibc=, python= and arch=", std::string(word)));
  }
  return fail(Code::usage,
              format("`{}`: `{}` is no value for {}", std::string(word), value, std::string(key)));
}

}  // namespace

std::string minor_python(const std::string& text) {
  const bool free_threaded = !text.empty() && text.back() == 't';
  const std::string plain = free_threaded ? text.substr(0, text.size() - 1) : text;
  const auto version = parse_version(plain);
  if (!version || version->parts.size() < 2 ||
      plain.find_first_not_of("0123456789.") != std::string::npos)
    return {};
  return format("{}.{}{}", version->part(0), version->part(1), free_threaded ? "t" : "");
}

Target target_of(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                 std::string label) {
  const checks::Input input = checks::make_input(facts, knowledge);
  Target target;
  target.label = std::move(label);
  for (const checks::GpuView& view : input.gpus) add_gpu(view, target);
  std::stable_sort(target.gpus.begin(), target.gpus.end(),
                   [](const TargetGpu& a, const TargetGpu& b) { return a.cc < b.cc; });
  target.wsl = checks::is_wsl(facts);
  target.jetson = checks::is_jetson(facts);
  target.driver = input.driver;
  target.driver_cuda = input.driver_cuda;
  // A cuda-compat library that this GPU or driver refuses (804) says a CUDA version that nothing
  // here runs.
  const facts::DriverLibrary* compat = checks::active_compat(input);
  if (compat != nullptr && !checks::may_use_compat(input, *compat) && input.driver)
    target.driver_cuda = knowledge.driver_cuda(*input.driver);
  if (input.driver || input.driver_cuda)
    target.driver_state = Target::Driver::known;
  else if (says_none(facts.kernel.version) && !target.wsl && !target.jetson)
    target.driver_state = Target::Driver::absent;
  const facts::PythonEnv* env = checks::main_env(facts);
  // `uv pip install` takes a virtual environment, and no system's Python.
  if (env != nullptr && env->python && (env->kind == "venv" || env->kind == "conda")) {
    const auto version = parse_version(*env->python);
    if (version && version->parts.size() >= 2)
      target.preferred_python =
          std::to_string(version->part(0)) + "." + std::to_string(version->part(1));
  }
  if (facts.system.architecture) target.platform = "linux_" + *facts.system.architecture;
  if (checks::wheel_platform(facts) == checks::WheelPlatform::mac)
    target.platform = "macos_" + facts.system.architecture.value_or("arm64");
  if (facts.system.libc) target.libc = *facts.system.libc;
  if (facts.system.glibc) target.glibc = parse_version(*facts.system.glibc);
  return target;
}

Result<Target> described_target(std::string_view text, const knowledge::Knowledge& knowledge) {
  checks::WhatIf what_if;
  Target settings;
  settings.platform.clear();
  bool first = true, cpu = false;
  for (std::string_view part : split(text, ',')) {
    const std::string_view word = trimmed(part);
    if (word.empty())
      return fail(Code::usage, format("`{}`: an empty word between commas", std::string(text)));
    if (first) {
      first = false;
      cpu = lower(std::string(word)) == "cpu";
      if (cpu) continue;
      CUFIT_TRY(gpus, described_gpus(word));
      what_if.gpus = std::move(gpus);
      continue;
    }
    if (word.substr(0, 7) == "driver=" || word.substr(0, 7) == "driver ") {
      what_if.driver = std::string(trimmed(word.substr(7)));
    } else if (word.find('=') != std::string_view::npos) {
      if (auto taken = take_setting(word, settings); !taken) return std::move(taken.error());
    } else if (what_if.driver.empty()) {
      what_if.driver = std::string(word);
    } else {
      return fail(Code::usage,
                  format("`{}`: a second driver, `{}`", std::string(text), std::string(word)));
    }
  }
  if (first) return fail(Code::usage, "an empty target; for example \"RTX 4090,535\"");
  facts::Facts facts;
  if (!what_if.gpus.empty() || !what_if.driver.empty()) {
    Result<facts::Facts> assumed = checks::assume(std::move(facts), what_if, knowledge);
    if (!assumed) {
      // The table's answer names doctor's options; here the text is all there is.
      Error error = std::move(assumed.error());
      const size_t option =
          error.what.rfind("--", 0) == 0 ? error.what.find(": ") : std::string::npos;
      const std::string named = option == std::string::npos ? "" : error.what.substr(0, option);
      if (option != std::string::npos) error.what = error.what.substr(option + 2);
      // `--gpu "NAME"`: of several, which one it is.
      const size_t quote = named.find('"');
      // "4090 535": a driver stands behind a comma.
      if (what_if.driver.empty() && contains(error.what, "does not know this name"))
        error.what += "; a driver goes behind a comma: \"RTX 4090,535\"";
      if (what_if.gpus.size() > 1 && quote != std::string::npos)
        error =
            std::move(error).in(format("`{}`", named.substr(quote + 1, named.size() - quote - 2)));
      return std::move(error).in(format("`{}`", std::string(text)));
    }
    facts = std::move(*assumed);
  }
  Target target = target_of(facts, knowledge, std::string(trimmed(text)));
  if (cpu && what_if.driver.empty()) target.driver_state = Target::Driver::absent;
  target.glibc = settings.glibc;
  target.python = settings.python;
  const bool arm = std::any_of(target.gpus.begin(), target.gpus.end(), beside_arm);
  target.platform =
      settings.platform.empty() ? (arm ? "linux_aarch64" : "linux_x86_64") : settings.platform;
  return target;
}

std::string gpus_text(const Target& target) {
  std::string text;
  for (const TargetGpu& gpu : target.gpus) {
    if (!text.empty()) text += ", ";
    if (gpu.count > 1) text += std::to_string(gpu.count) + "x ";
    const std::string cc = gpu.cc.text();
    text += gpu.name.empty() || gpu.name == cc ? "sm_" + gpu.cc.sm() : gpu.name + " (" + cc + ")";
  }
  for (const std::string& name : target.unknown_gpus) text += (text.empty() ? "" : ", ") + name;
  return text;
}

Target with_gpus(const Target& target, std::vector<TargetGpu> gpus) {
  Target part = target;
  part.gpus = std::move(gpus);
  part.unknown_gpus.clear();
  part.label = target.label + ": " + gpus_text(part);
  return part;
}

std::string description_of(const Target& target, const knowledge::Knowledge& knowledge) {
  if (!target.unknown_gpus.empty() || target.libc != "glibc") return {};
  if (!target.gpus.empty() && !target.driver) return {};
  std::vector<std::string> gpus;
  for (const TargetGpu& gpu : target.gpus)
    gpus.push_back((gpu.count > 1 ? format("{}x ", gpu.count) : "") + gpu.name);
  std::string text = gpus.empty() ? "cpu" : join(gpus, " + ");
  if (target.driver) text += "," + driver_text(*target.driver);
  if (target.glibc) text += ",glibc=" + target.glibc->text();
  if (target.platform == "linux_aarch64") text += ",arch=aarch64";
  const Result<Target> again = described_target(text, knowledge);
  if (!again || again->gpus.size() != target.gpus.size()) return {};
  for (size_t i = 0; i < target.gpus.size(); ++i)
    if (!(again->gpus[i].cc == target.gpus[i].cc)) return {};
  return text;
}

}  // namespace cufit::resolve
