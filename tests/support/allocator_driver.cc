// SPDX-License-Identifier: Apache-2.0
// The allocator model behind lines of text, so that another implementation can be compared with it.
// One workload after the other:
//   settings TEXT|-             starts a workload
//   limit BYTES / capacity BYTES / total BYTES / order asc|desc / version MINOR     before its
//   events a ID SIZE STREAM            malloc: prints the address less 2^46, or "oom TRIED" f ID /
//   r ID / c ID          free / free_requested / free_completed e empty_cache end prints the
//   segment calls, then one line of totals
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>

#include "memory/allocator/caching_allocator.h"

namespace {

using namespace cufit;
using namespace cufit::memory;

constexpr uint64_t k_base = uint64_t{1} << 46;

struct Workload {
  std::string settings;
  uint64_t capacity = 0;
  SyntheticMemory::Order order = SyntheticMemory::Order::descending;
  AllocatorOptions options;
  std::vector<SegmentEvent> log;
  std::unique_ptr<SyntheticMemory> memory;
  std::unique_ptr<CachingAllocator> allocator;
  std::unordered_map<uint64_t, BlockHandle> live;
};

int64_t offset(uint64_t address) { return static_cast<int64_t>(address - k_base); }

CachingAllocator& started(Workload& work) {
  if (!work.allocator) {
    auto settings = parse_allocator_settings(work.settings, work.options.version);
    if (!settings) {
      std::fprintf(stderr, "%s\n", settings.error().what.c_str());
      std::exit(2);
    }
    work.options.settings = *settings;
    work.memory = std::make_unique<SyntheticMemory>(work.capacity, work.order);
    work.allocator = std::make_unique<CachingAllocator>(work.options, *work.memory, &work.log);
  }
  return *work.allocator;
}

void option(Workload& work, const std::string& name, std::istringstream& words) {
  std::string value;
  words >> value;
  const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
  if (name == "settings") {
    work = Workload();
    work.settings = value == "-" ? "" : value;
  } else if (name == "limit") {
    work.options.allowed_memory_maximum = number;
  } else if (name == "capacity") {
    work.capacity = number;
  } else if (name == "total") {
    work.options.total_memory = number;
  } else if (name == "version") {
    work.options.version = version_profile(2, static_cast<uint32_t>(number));
  } else if (name == "order") {
    work.order =
        value == "asc" ? SyntheticMemory::Order::ascending : SyntheticMemory::Order::descending;
  }
}

void allocate(Workload& work, std::istringstream& words) {
  uint64_t id = 0, size = 0, stream = 0;
  words >> id >> size >> stream;
  CachingAllocator& allocator = started(work);
  const BlockHandle handle = allocator.malloc(size, allocator.stream(stream));
  if (handle) {
    work.live[id] = handle;
    std::printf("%" PRId64 "\n", offset(allocator.block(handle).ptr));
  } else {
    std::printf("oom %" PRIu64 "\n", allocator.last_oom().tried);
  }
}

void finish(Workload& work) {
  const DeviceStats& stats = started(work).stats();
  for (const SegmentEvent& event : work.log)
    std::printf("%c %" PRId64 " %" PRIu64 "\n", "afmu"[static_cast<int>(event.action)],
                offset(event.address), event.size);
  std::printf("end %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
              stats.allocated_bytes.peak, stats.reserved_bytes.peak, stats.segments.peak,
              stats.num_alloc_retries, stats.reserved_bytes.current, stats.allocated_bytes.current);
}

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);
  Workload work;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    uint64_t id = 0;
    if (what == "a") {
      allocate(work, words);
    } else if (what == "f" && words >> id) {
      started(work).free(work.live.at(id));
    } else if (what == "r" && words >> id) {
      started(work).free_requested(work.live.at(id));
    } else if (what == "c" && words >> id) {
      started(work).free_completed(work.live.at(id));
    } else if (what == "e") {
      started(work).empty_cache();
    } else if (what == "end") {
      finish(work);
    } else {
      option(work, what, words);
    }
  }
  return 0;
}
