// SPDX-License-Identifier: Apache-2.0
// Which cards a launch may queue for, and which of them nobody uses.
#include "resolve/quota/wait_cards.h"

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace wait_cards_test {

constexpr uint64_t k_mib = uint64_t{1} << 20;

facts::NvmlGpu gpu(const std::string& uuid, uint64_t used_mib = 4) {
  facts::NvmlGpu out;
  out.uuid = known<std::string>(uuid, SourceKind::nvml, "");
  out.memory_total_bytes = known(8192 * k_mib, SourceKind::nvml, "");
  out.memory_used_bytes = known(used_mib * k_mib, SourceKind::nvml, "");
  out.memory_free_bytes = known((8192 - used_mib) * k_mib, SourceKind::nvml, "");
  out.processes = known(std::vector<facts::GpuProcess>(), SourceKind::nvml, "");
  return out;
}

void add(facts::NvmlGpu& card, uint32_t pid, const std::string& name, uint64_t mib,
         const std::string& kind = "compute") {
  card.processes.value->push_back({pid, name, known(mib * k_mib, SourceKind::nvml, ""), kind});
}

facts::CudaFacts cuda(std::vector<std::string> uuids) {
  facts::CudaFacts out;
  for (std::string& uuid : uuids)
    out.devices.emplace_back().uuid = known(std::move(uuid), SourceKind::cuda, "");
  return out;
}

std::vector<std::string> names(const facts::NvmlFacts& told, const facts::CudaFacts& shown,
                               const std::optional<std::string>& visible) {
  std::vector<std::string> out;
  for (const facts::NvmlGpu& card : usable_cards(told, shown, visible))
    out.push_back(*card.uuid.value);
  return out;
}

using Names = std::vector<std::string>;

TEST(WaitCards, ThoseThatCudaShowsInItsOrder) {
  facts::NvmlFacts told;
  told.gpus = {gpu("GPU-a"), gpu("GPU-b"), gpu("GPU-c")};
  EXPECT_EQ(names(told, cuda({"GPU-c", "GPU-a"}), "2,0"), Names({"GPU-c", "GPU-a"}));
  EXPECT_EQ(names(told, cuda({"GPU-x"}), std::nullopt), Names());
  EXPECT_EQ(names(told, cuda({}), ""), Names());
}

// CUDA shows one instance at a time.
TEST(WaitCards, InstancesAsTheVariableNamesThem) {
  facts::NvmlFacts told;
  told.gpus = {gpu("GPU-a"), gpu("MIG-1"), gpu("MIG-2"), gpu("MIG-3")};
  EXPECT_EQ(names(told, cuda({"MIG-1"}), std::nullopt),
            Names({"MIG-1", "GPU-a", "MIG-2", "MIG-3"}));
  EXPECT_EQ(names(told, cuda({"MIG-2"}), "MIG-2,MIG-3"), Names({"MIG-2", "MIG-3"}));
  EXPECT_EQ(names(told, cuda({"GPU-a"}), "GPU-a"), Names({"GPU-a"}));
  EXPECT_EQ(names(told, cuda({}), ""), Names());
}

bool idle(const facts::NvmlGpu& card) { return room_of_card(card, 0).idle; }

TEST(WaitCards, ADisplayIsNobodysJob) {
  facts::NvmlGpu card = gpu("GPU-a", 900);
  EXPECT_FALSE(idle(card));  // somebody whom NVML does not list
  add(card, 1, "/usr/lib/xorg/Xorg -core", 500, "graphics");
  add(card, 2, "/usr/bin/gnome-shell", 380, "graphics");
  EXPECT_TRUE(idle(card));
  add(card, 3, "python train.py", 10);
  EXPECT_FALSE(idle(card));
  facts::NvmlGpu hidden = gpu("GPU-a", 900);
  hidden.display_active = known(true, SourceKind::nvml, "");
  EXPECT_TRUE(idle(hidden));
  EXPECT_TRUE(idle(gpu("GPU-a", 4)));
}

// 147 MiB: the smallest context that there is.
TEST(WaitCards, AHiddenContextIsSomebody) { EXPECT_FALSE(idle(gpu("GPU-a", 147))); }

TEST(WaitCards, UnknownIsNotIdle) {
  facts::NvmlGpu card = gpu("GPU-a");
  card.memory_used_bytes = missing<uint64_t>(WhyNot::not_supported, SourceKind::nvml, "");
  EXPECT_TRUE(idle(card));  // unified memory: its list of processes tells
  card.processes =
      missing<std::vector<facts::GpuProcess>>(WhyNot::not_supported, SourceKind::nvml, "");
  EXPECT_FALSE(idle(card));
}

TEST(WaitCards, RoomIsByCudasTotal) {
  EXPECT_EQ(room_of_card(gpu("GPU-a"), 8000 * k_mib).total_bytes, 8000 * k_mib);
  EXPECT_EQ(room_of_card(gpu("GPU-a"), 0).total_bytes, 8192 * k_mib);
  facts::NvmlGpu card = gpu("GPU-a");
  card.compute_mode = known<std::string>("prohibited", SourceKind::nvml, "");
  EXPECT_FALSE(room_of_card(card, 0).usable);
  card.compute_mode = known<std::string>("exclusive_process", SourceKind::nvml, "");
  EXPECT_TRUE(room_of_card(card, 0).exclusive);
  card.state_code = known(15, SourceKind::nvml, "");
  EXPECT_FALSE(room_of_card(card, 0).usable);
}

TEST(WaitCards, WhoHoldsMostIsNamedWithoutItsFolder) {
  facts::NvmlGpu card = gpu("GPU-a", 900);
  EXPECT_FALSE(main_user(card));
  add(card, 7, "/opt/my py\x1b[31m/bin/python", 500);
  add(card, 8, "small", 10);
  const std::optional<CardUser> user = main_user(card);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->name, "python");
  EXPECT_EQ(user->pid, 7u);
  EXPECT_EQ(user->bytes, 500 * k_mib);
}

}  // namespace wait_cards_test
}  // namespace cufit::resolve
