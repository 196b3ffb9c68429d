// SPDX-License-Identifier: Apache-2.0
#include "commands/run/vram_variables.h"

#include <gtest/gtest.h>

#include "commands/run/vram_domain.h"

namespace cufit::commands {
namespace vram_variables_test {

constexpr uint64_t k_gib = uint64_t{1} << 30, k_none = UINT64_MAX;

TEST(VramVariables, TheGuardStandsFirstAndOnce) {
  EXPECT_EQ(preload_with("/g.so", ""), "/g.so");
  EXPECT_EQ(preload_with("/g.so", "/a.so:/b.so"), "/g.so:/a.so:/b.so");
  EXPECT_EQ(preload_with("/g.so", " /a.so  /b.so: "), "/g.so:/a.so:/b.so");
  EXPECT_EQ(preload_with("/g.so", "/x/libcufit-guard-0123.so:/a.so"), "/g.so:/a.so");
}

std::string conf_after(const Variables& before, double fraction, const char* name) {
  Variables variables = before;
  set_torch_fraction(variables, fraction);
  return variable_value(variables, name);
}

TEST(VramVariables, TorchsFractionStandsBesideWhatTheUserSet) {
  const char* const k_old = "PYTORCH_CUDA_ALLOC_CONF";
  const char* const k_new = "PYTORCH_ALLOC_CONF";
  EXPECT_EQ(conf_after({}, 0.5, k_old), "per_process_memory_fraction:0.500000");
  EXPECT_EQ(conf_after({"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, 0.25, k_old),
            "expandable_segments:True,per_process_memory_fraction:0.250000");
  EXPECT_EQ(conf_after({"PYTORCH_CUDA_ALLOC_CONF=backend:native,"}, 0.25, k_old),
            "backend:native,per_process_memory_fraction:0.250000");
  // torch reads the new name alone where it is set.
  EXPECT_EQ(conf_after({"PYTORCH_ALLOC_CONF=backend:native"}, 0.25, k_new),
            "backend:native,per_process_memory_fraction:0.250000");
  // Rounded down, never 1, and nothing for what rounds to nothing: torch would allocate nothing.
  EXPECT_EQ(conf_after({}, 0.1234567, k_old), "per_process_memory_fraction:0.123456");
  EXPECT_EQ(conf_after({}, 1.0, k_old), "per_process_memory_fraction:0.999999");
  EXPECT_EQ(conf_after({}, 0.0000005, k_old), "");
  EXPECT_TRUE(has_torch_fraction({"PYTORCH_ALLOC_CONF=a:b,per_process_memory_fraction:0.5"}));
  EXPECT_FALSE(has_torch_fraction({"OTHER=per_process_memory_fraction:0.5"}));
}

TEST(VramVariables, MpsIsToldTheGpusThatAreSeenAndNoBlank) {
  EXPECT_EQ(mps_limits({10 * k_gib}), "0=10240M");
  EXPECT_EQ(mps_limits({10 * k_gib, 4 * k_gib + 12345}), "0=10240M,1=4096M");
  EXPECT_EQ(mps_limits({k_none, 4 * k_gib}), "1=4096M");
  EXPECT_EQ(mps_limits({k_none}), "");
  EXPECT_EQ(mps_limits({}), "");
}

TEST(VramVariables, VisibleByUuidOrNotAtAll) {
  resolve::QuotaCard a, b;
  a.uuid = "GPU-a", b.uuid = "GPU-b";
  EXPECT_EQ(visible_by_uuid({b, a}), "GPU-b,GPU-a");
  b.uuid = "";
  EXPECT_EQ(visible_by_uuid({a, b}), "");
  EXPECT_EQ(visible_by_uuid({}), "");
}

TEST(VramVariables, SettingReplaces) {
  Variables variables = {"A=1", "AB=2", "A=3"};
  set_variable(variables, "A", "4");
  EXPECT_EQ(variables, (Variables{"AB=2", "A=4"}));
}

DomainWish two() {
  DomainWish out;
  resolve::QuotaCard a, b;
  a.uuid = "GPU-a", a.pci = "0000:01:00.0", a.total_bytes = 80 * k_gib;
  b.pci = "0000:02:00.0";
  a.context_bytes = b.context_bytes = k_gib / 2;
  a.least_bytes = b.least_bytes = 1 << 26;
  out.cards = {a, b};
  out.limits = {10 * k_gib, k_gib / 4};
  out.least_context_bytes = 1 << 26;
  return out;
}

TEST(VramDomain, ARowForEachGpuThatHasALimit) {
  DomainWish wish = two();
  formats::QuotaDomain domain = domain_of(wish);
  ASSERT_EQ(domain.devices.size(), 2u);
  EXPECT_EQ(domain.devices[0].limit_bytes, 10 * k_gib);
  EXPECT_EQ(domain.devices[0].context_bytes, k_gib / 2);
  EXPECT_EQ(domain.devices[1].context_bytes, 1u << 26) << "the usual one would refuse what may fit";
  EXPECT_EQ(domain.default_limit_bytes, k_none);
  EXPECT_EQ(limit_in(domain, wish.cards[0]), 10 * k_gib);
  EXPECT_EQ(limit_in(domain, wish.cards[1]), k_gib / 4);
  wish.limits = {k_none, k_gib};
  wish.every_bytes = 7 * k_gib;
  domain = domain_of(wish);
  ASSERT_EQ(domain.devices.size(), 1u);
  EXPECT_EQ(domain.devices[0].pci, "0000:02:00.0");
  EXPECT_EQ(limit_in(domain, wish.cards[0]), 7 * k_gib);
  // More room where many launches come together.
  wish.share = "team";
  EXPECT_GT(domain_of(wish).slot_count, domain.slot_count);
}

TEST(VramDomain, NamesThatMayBePartOfAPath) {
  for (const char* name : {"team", "a.b-c_1", "x"}) EXPECT_TRUE(is_share_name(name)) << name;
  for (const char* name : {"", ".", "..", ".x", "a/b", "a b", "ü", "a\n"})
    EXPECT_FALSE(is_share_name(name)) << name;
  EXPECT_TRUE(is_share_name(std::string(48, 'x')));
  EXPECT_FALSE(is_share_name(std::string(49, 'x')));
}

}  // namespace vram_variables_test
}  // namespace cufit::commands
