// SPDX-License-Identifier: Apache-2.0
// The GPUs of `cufit top`: a row each, a line of details, and what is wrong with one in words.
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/top_lines.h"

namespace cufit::report {
namespace {

constexpr int k_bar = 12, k_wide = 112, k_history = 24;

// Filled by memory; '#' and '-' are one column everywhere.
std::string bar_of(double part, int width) {
  const int filled = std::clamp(static_cast<int>(std::lround(part * width)), 0, width);
  return "[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(width - filled), '-') + "]";
}

// The last values as signs that grow: " .:-=+*#%@" by tenths.
std::string history_of(const std::vector<float>& values, int width) {
  static constexpr std::string_view k_signs = " .:-=+*#%@";
  std::string out;
  const size_t count = std::min(values.size(), static_cast<size_t>(width));
  for (size_t i = values.size() - count; i < values.size(); ++i)
    out += values[i] < 0
               ? ' '
               : k_signs[std::min<size_t>(static_cast<size_t>(values[i] * 10), k_signs.size() - 1)];
  return std::string(static_cast<size_t>(width) - count, ' ') + out;
}

Look look_of(double part, double warn, double bad) {
  return part >= bad ? Look::bad : part >= warn ? Look::warn : Look::plain;
}

std::string memory_of(const facts::SampledGpu& gpu) {
  if (!gpu.memory_used_bytes) return "-";
  constexpr double k_gib = 1 << 30;
  const double used = static_cast<double>(*gpu.memory_used_bytes) / k_gib;
  if (!gpu.memory_total_bytes) return format("{:.1f} GiB", used);
  return format("{:.1f}/{:.1f} GiB", used, static_cast<double>(*gpu.memory_total_bytes) / k_gib);
}

class GpuLines {
 public:
  explicit GpuLines(const TopWords& words) : words_(words) {}

  std::vector<StyledLine> made() {
    head();
    for (const watch::WatchedGpu& gpu : words_.machine.gpus) {
      row(gpu);
      if (words_.picture.details && gpu.now.profile.empty()) details(gpu.now);
      troubles(gpu);
    }
    return std::move(out_);
  }

 private:
  std::string say(std::string_view key, const std::map<std::string, std::string>& args = {}) const {
    return words_.say(key, args);
  }
  bool is_wide() const { return words_.width >= k_wide; }

  void head() {
    LineMaker line(words_.width);
    line.left(say("top.column.gpu"), 4, Look::bold).left(say("top.column.name"), 16, Look::bold);
    line.add(pad(say("top.column.memory"), k_bar + 3 + 18), Look::bold);
    line.right(say("top.column.use"), 7, Look::bold).right(say("top.column.power"), 11, Look::bold);
    line.right(say("top.column.heat"), 7, Look::bold);
    if (is_wide()) line.add("  " + say("top.column.history"), Look::bold);
    out_.push_back(line.done());
  }

  void row(const watch::WatchedGpu& gpu) {
    const facts::SampledGpu& now = gpu.now;
    LineMaker line(words_.width);
    const bool instance = !now.profile.empty();
    line.left(instance ? "" : std::to_string(now.index), 4, Look::bold);
    line.left(instance ? "  " + now.profile : short_name(now.name), 16);
    if (now.lost) {
      line.add(say("top.lost", {{"code", std::to_string(*now.lost)}}), Look::bad);
      out_.push_back(line.done());
      return;
    }
    const bool sized =
        now.memory_used_bytes && now.memory_total_bytes && *now.memory_total_bytes > 0;
    const double part = sized ? static_cast<double>(*now.memory_used_bytes) /
                                    static_cast<double>(*now.memory_total_bytes)
                              : 0;
    line.add(sized ? bar_of(part, k_bar) : std::string(k_bar + 2, ' '), look_of(part, 0.9, 0.97));
    line.right(memory_of(now), 15).right(sized ? format("{:.0f}%", part * 100) : "", 5);
    line.right(now.utilization ? format("{:.0f}%", *now.utilization * 100) : "-", 7);
    line.right(power_of(now), 11);
    const double heat = now.temperature_c && now.slowdown_temperature_c
                            ? *now.temperature_c * 1.0 / std::max(1, *now.slowdown_temperature_c)
                            : 0;
    line.right(now.temperature_c ? format("{} C", *now.temperature_c) : "-", 7,
               look_of(heat, 0.93, 1));
    if (is_wide()) {
      line.add("  " + history_of(gpu.history.memory, k_history));
      line.add("  " + history_of(gpu.history.utilization, k_history), Look::dim);
    }
    out_.push_back(line.done());
  }

  // What every card of this maker is called tells nobody anything.
  static std::string short_name(const std::string& name) {
    std::string_view out = name;
    for (const std::string_view front : {"NVIDIA ", "GeForce "})
      if (starts_with(out, front)) out.remove_prefix(front.size());
    return std::string(out);
  }

  static std::string power_of(const facts::SampledGpu& gpu) {
    if (!gpu.power_watts) return "-";
    return gpu.power_limit_watts
               ? format("{:.0f}/{:.0f} W", *gpu.power_watts, *gpu.power_limit_watts)
               : format("{:.0f} W", *gpu.power_watts);
  }

  void details(const facts::SampledGpu& gpu) {
    if (gpu.lost) return;
    std::vector<std::string> parts;
    if (gpu.sm_clock_mhz)
      parts.push_back(gpu.sm_clock_max_mhz
                          ? format("{}/{} MHz", *gpu.sm_clock_mhz, *gpu.sm_clock_max_mhz)
                          : format("{} MHz", *gpu.sm_clock_mhz));
    if (gpu.memory_temperature_c)
      parts.push_back(
          say("top.memory_heat", {{"heat", std::to_string(*gpu.memory_temperature_c)}}));
    if (gpu.fan) parts.push_back(say("top.fan", {{"part", format("{:.0f}%", *gpu.fan * 100)}}));
    if (gpu.pcie_gen && gpu.pcie_width) {
      std::string link = format("PCIe {} x{}", *gpu.pcie_gen, *gpu.pcie_width);
      if (gpu.pcie_rx_bytes_per_s && gpu.pcie_tx_bytes_per_s)
        link += format(" rx {} tx {}", rate_text(static_cast<double>(*gpu.pcie_rx_bytes_per_s)),
                       rate_text(static_cast<double>(*gpu.pcie_tx_bytes_per_s)));
      parts.push_back(link);
    }
    if (gpu.nvlinks)
      parts.push_back(format("NVLink {}/{}", gpu.nvlinks_active.value_or(0), *gpu.nvlinks));
    if (gpu.ecc_uncorrected)
      parts.push_back(say("top.ecc", {{"corrected", std::to_string(gpu.ecc_corrected.value_or(0))},
                                      {"uncorrected", std::to_string(*gpu.ecc_uncorrected)}}));
    if (parts.empty()) return;
    LineMaker line(words_.width);
    line.add("    ").add(join(parts, "  "), Look::dim);
    out_.push_back(line.done());
  }

  void troubles(const watch::WatchedGpu& watched) {
    const facts::SampledGpu& gpu = watched.now;
    if (gpu.throttle) {
      std::vector<std::string> reasons;
      bool harmful = false;
      for (const std::string& reason : *gpu.throttle) {
        reasons.push_back(say("top.throttle." + reason));
        harmful = harmful || starts_with(reason, "hw_") || contains(reason, "thermal");
      }
      if (!reasons.empty())
        trouble(say("top.slowed", {{"reasons", join(reasons, say("top.comma"))}}),
                harmful ? Look::bad : Look::warn);
    }
    if (gpu.remap_failed.value_or(false)) trouble(say("top.remap_failed"), Look::bad);
    if (gpu.remap_pending.value_or(false)) trouble(say("top.remap_pending"), Look::warn);
    if (gpu.ecc_uncorrected.value_or(0) > 0)
      trouble(say("top.uncorrected", {{"count", std::to_string(*gpu.ecc_uncorrected)}}), Look::bad);
    if (!gpu.profile.empty()) return;
    for (const facts::SampledXid& xid : words_.machine.xids)
      if (!gpu.pci.empty() && starts_with(gpu.pci, xid.pci)) one_xid(xid);
  }

  void one_xid(const facts::SampledXid& xid) {
    const knowledge::XidRow* const row = words_.knowledge.find_xid(xid.number);
    const std::string meaning =
        row == nullptr ? "" : std::string(words_.lang == "zh" ? row->zh : row->meaning);
    trouble(say(meaning.empty() ? "top.xid_unknown" : "top.xid",
                {{"number", std::to_string(xid.number)},
                 {"count", std::to_string(xid.count)},
                 {"meaning", meaning}}),
            Look::bad);
  }

  void trouble(const std::string& text, Look look) {
    LineMaker line(words_.width);
    line.add("    ! ", look).add(text, look);
    out_.push_back(line.done());
  }

  const TopWords& words_;
  std::vector<StyledLine> out_;
};

}  // namespace

std::vector<StyledLine> top_gpu_lines(const TopWords& words) { return GpuLines(words).made(); }

}  // namespace cufit::report
