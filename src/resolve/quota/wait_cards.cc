// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/wait_cards.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "formats/prose/printable.h"

namespace cufit::resolve {
namespace {

// Beside what listed processes hold. A context takes 147 MiB and more (data/gpu_memory.toml), so a card with one more is
// not idle, though its process is hidden (a container lists its own alone).
constexpr uint64_t k_held_of_idle = uint64_t{128} << 20;
// A display whose processes are not listed: the console, a compositor outside of this container.
constexpr uint64_t k_held_of_display = uint64_t{1} << 30;

const facts::NvmlGpu* card_named(const facts::NvmlFacts& told, const std::string& uuid) {
  for (const facts::NvmlGpu& gpu : told.gpus)
    if (!uuid.empty() && gpu.uuid.value_or("") == uuid) return &gpu;
  return nullptr;
}

void add_once(const facts::NvmlGpu* card, std::vector<facts::NvmlGpu>& out) {
  if (card == nullptr) return;
  for (const facts::NvmlGpu& other : out)
    if (*other.uuid.value == *card->uuid.value) return;
  out.push_back(*card);
}

bool is_mig_card(const facts::NvmlGpu& card) { return starts_with(card.uuid.value_or(""), "MIG-"); }

const std::vector<facts::GpuProcess>& processes_on(const facts::NvmlGpu& card) {
  static const std::vector<facts::GpuProcess> none;
  return card.processes ? *card.processes : none;
}

bool draws(const facts::GpuProcess& process) { return process.kind == "graphics"; }

bool is_idle(const facts::NvmlGpu& card) {
  uint64_t drawn = 0;
  bool sized = true;
  for (const facts::GpuProcess& process : processes_on(card)) {
    if (!draws(process)) return false;
    sized = sized && process.used_bytes;
    drawn += std::min(process.used_bytes.value_or(0), UINT64_MAX / 2 - drawn);
  }
  if (!card.memory_used_bytes) return static_cast<bool>(card.processes);
  const bool display = card.display_active.value_or(false) || !sized;
  const uint64_t held = *card.memory_used_bytes > drawn ? *card.memory_used_bytes - drawn : 0;
  return held <= (display ? k_held_of_display : k_held_of_idle);
}

}  // namespace

std::vector<facts::NvmlGpu> usable_cards(const facts::NvmlFacts& told, const facts::CudaFacts& cuda,
                                         const std::optional<std::string>& visible) {
  std::vector<facts::NvmlGpu> out;
  for (const facts::CudaDevice& device : cuda.devices)
    add_once(card_named(told, device.uuid.value_or("")), out);
  const bool divided = std::any_of(told.gpus.begin(), told.gpus.end(), is_mig_card);
  if (!divided) return out;
  if (!visible) {
    for (const facts::NvmlGpu& gpu : told.gpus)
      if (gpu.uuid) add_once(&gpu, out);
    return out;
  }
  for (std::string_view name : split(*visible, ',')) {
    name = trim(name);
    if (!starts_with(name, "MIG-")) continue;
    for (const facts::NvmlGpu& gpu : told.gpus)
      if (starts_with(gpu.uuid.value_or(""), name)) add_once(&gpu, out);
  }
  return out;
}

RoomOfCard room_of_card(const facts::NvmlGpu& card, uint64_t total) {
  RoomOfCard out;
  out.uuid = card.uuid.value_or("");
  out.total_bytes = total != 0 ? total : card.memory_total_bytes.value_or(0);
  if (card.memory_free_bytes) out.free_bytes = *card.memory_free_bytes;
  for (const facts::GpuProcess& process : processes_on(card))
    out.processes += draws(process) ? 0 : 1;
  out.idle = is_idle(card);
  const std::string mode = card.compute_mode.value_or("");
  out.exclusive = mode == "exclusive_process" || mode == "exclusive_thread";
  out.usable = mode != "prohibited" && card.state_code.value_or(0) == 0;
  return out;
}

std::optional<CardUser> main_user(const facts::NvmlGpu& card) {
  const facts::GpuProcess* most = nullptr;
  for (const facts::GpuProcess& process : processes_on(card)) {
    const auto rank = [](const facts::GpuProcess& one) {
      return std::pair(one.used_bytes.value_or(0), !draws(one));
    };
    if (most == nullptr || rank(process) > rank(*most)) most = &process;
  }
  if (most == nullptr) return std::nullopt;
  CardUser out;
  out.name = formats::printable(file_name(most->name), 40);
  out.pid = most->pid;
  if (most->used_bytes) out.bytes = *most->used_bytes;
  return out;
}

}  // namespace cufit::resolve
