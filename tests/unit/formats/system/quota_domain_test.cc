// SPDX-License-Identifier: Apache-2.0
#include "formats/system/quota_domain.h"

#include <cstring>

#include <gtest/gtest.h>

#include "base/abi/quota_domain.h"

namespace cufit::formats {
namespace {

QuotaDomain two_gpus() {
  QuotaDomain domain;
  domain.name = "team";
  domain.slot_count = 3;
  domain.nvml_own_process = true;
  domain.created_ns = 7;
  QuotaDevice first, second;
  first.uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef";
  first.pci = "0000:65:00.0";
  first.limit_bytes = 1000, first.total_bytes = 2000, first.context_bytes = 300;
  second.uuid = "MIG-01234567-89ab-cdef-0123-456789abcde0";
  domain.devices = {first, second};
  return domain;
}

cufit_domain_slot* slot_of(std::string& bytes, size_t index) {
  return reinterpret_cast<cufit_domain_slot*>(bytes.data() + CUFIT_DOMAIN_HEADER_BYTES +
                                              index * CUFIT_DOMAIN_SLOT_BYTES);
}

TEST(QuotaDomain, WhatIsWrittenIsRead) {
  auto bytes = make_quota_domain(two_gpus());
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size(), 4096u + 3 * 512);
  auto read = parse_quota_domain(*bytes);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->name, "team");
  EXPECT_EQ(read->slot_count, 3u);
  EXPECT_TRUE(read->nvml_own_process);
  EXPECT_FALSE(read->charge_managed);
  EXPECT_EQ(read->created_ns, 7u);
  EXPECT_EQ(read->default_limit_bytes, k_no_quota);
  ASSERT_EQ(read->devices.size(), 2u);
  EXPECT_EQ(read->devices[0].uuid, "GPU-01234567-89ab-cdef-0123-456789abcdef");
  EXPECT_EQ(read->devices[0].pci, "0000:65:00.0");
  EXPECT_EQ(read->devices[0].limit_bytes, 1000u);
  EXPECT_EQ(read->devices[0].context_bytes, 300u);
  EXPECT_EQ(read->devices[1].uuid, "MIG-01234567-89ab-cdef-0123-456789abcde0");
  EXPECT_EQ(read->devices[1].limit_bytes, k_no_quota);
  EXPECT_TRUE(read->processes.empty());
}

TEST(QuotaDomain, ProcessesAndTheirSum) {
  std::string bytes = *make_quota_domain(two_gpus());
  cufit_domain_slot* slot = slot_of(bytes, 2);
  slot->token = 9, slot->pid = 4711, slot->start_ticks = 12;
  std::memcpy(slot->name, "a name of 24 characters!", 24);  // without its end
  slot->used[0] = 600, slot->used[1] = 5;
  slot_of(bytes, 0)->used[0] = 10;  // swept halfway: it counts, and is no process
  auto read = parse_quota_domain(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->devices[0].used_bytes, 610u);
  ASSERT_EQ(read->processes.size(), 1u);
  EXPECT_EQ(read->processes[0].pid, 4711u);
  EXPECT_EQ(read->processes[0].lock_offset, 4096u + 2 * 512);
  EXPECT_EQ(read->processes[0].name, "a name of 24 characters!");
  EXPECT_EQ(read->processes[0].used_bytes, (std::vector<uint64_t>{600, 5}));
  slot_of(bytes, 1)->used[0] = UINT64_MAX;  // never less than nothing
  EXPECT_EQ(parse_quota_domain(bytes)->devices[0].used_bytes, UINT64_MAX);
}

TEST(QuotaDomain, OnlyRowsThatAreReady) {
  std::string bytes = *make_quota_domain(two_gpus());
  auto* header = reinterpret_cast<cufit_domain_header*>(bytes.data());
  header->devices[0].ready = 0;
  slot_of(bytes, 0)->token = 1;
  slot_of(bytes, 0)->used[1] = 44;
  auto read = parse_quota_domain(bytes);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->devices.size(), 1u);
  EXPECT_EQ(read->devices[0].used_bytes, 44u);
  EXPECT_EQ(read->processes.at(0).used_bytes, std::vector<uint64_t>{44});
}

TEST(QuotaDomain, WhatIsNoDomain) {
  std::string bytes = *make_quota_domain(two_gpus());
  EXPECT_EQ(parse_quota_domain("").error().what, "not the file of a quota domain");
  EXPECT_EQ(parse_quota_domain(bytes.substr(0, bytes.size() - 1)).error().what,
            "a quota domain that ends at byte 5631");
  std::string other = bytes;
  other[0] = 'X';
  EXPECT_EQ(parse_quota_domain(other).error().what, "not the file of a quota domain");
  other = bytes;
  other[8] = 2;
  EXPECT_EQ(parse_quota_domain(other).error().code, Code::unsupported);
  other = bytes;
  other[18] = 1;  // 65539 slots
  EXPECT_EQ(parse_quota_domain(other).error().what,
            "a quota domain with sizes that it cannot have");
}

TEST(QuotaDomain, WhatCannotBeWritten) {
  QuotaDomain domain = two_gpus();
  domain.devices[0].uuid = "GPU-01234567-89ab-cdef-0123-456789abcdeg";
  EXPECT_EQ(make_quota_domain(domain).error().code, Code::usage);
  domain.devices[0].uuid = "GPU-0123";
  EXPECT_FALSE(make_quota_domain(domain));
  domain = two_gpus();
  domain.devices[1].uuid.clear();
  EXPECT_EQ(make_quota_domain(domain).error().what, "a GPU without UUID and PCI address");
  domain = two_gpus();
  domain.devices[0].pci = "00000000:65:00.0 and more";
  EXPECT_FALSE(make_quota_domain(domain));
  domain = two_gpus();
  domain.devices.resize(17, domain.devices[0]);
  EXPECT_EQ(make_quota_domain(domain).error().what, "17 GPUs, more than 16");
  domain = two_gpus();
  domain.slot_count = 5000;
  EXPECT_EQ(make_quota_domain(domain).error().what, "room for 5000 processes");
}

}  // namespace
}  // namespace cufit::formats
