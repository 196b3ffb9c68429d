// SPDX-License-Identifier: Apache-2.0
#include "guard_bench.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace guard_bench {
namespace {

constexpr size_t k_block_bytes = 4 << 20;  // whole pages: each is asked of the ledger
constexpr size_t k_held = 8;

struct Driver {
  int (*init)(unsigned);
  int (*retain)(void**, int);
  int (*set_current)(void*);
  int (*allocate)(uint64_t*, size_t);
  int (*release)(uint64_t);
  int (*bare_allocate)(uint64_t*, size_t);
  int (*bare_release)(uint64_t);
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "guard-bench: %s\n", what);
  std::exit(1);
}

Driver find_driver() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) fail("no libcuda.so.1");
  Driver out{};
  const auto find = [&](auto& place, const char* name) {
    void* found = dlsym(library, name);
    if (!found) fail(name);
    std::memcpy(&place, &found, sizeof found);
  };
  find(out.init, "cuInit");
  find(out.retain, "cuDevicePrimaryCtxRetain");
  find(out.set_current, "cuCtxSetCurrent");
  find(out.allocate, "cuMemAlloc_v2");
  find(out.release, "cuMemFree_v2");
  find(out.bare_allocate, "card_allocate");
  find(out.bare_release, "card_free");
  return out;
}

void start(const Driver& cuda) {
  void* context = nullptr;
  if (cuda.init(0) != 0 || cuda.retain(&context, 0) != 0 || cuda.set_current(context) != 0)
    fail("no context");
}

void say(const std::string& line) {
  if (std::puts(line.c_str()) < 0 || std::fflush(stdout) != 0) std::exit(1);
}

// A line of standard input; its end is the end of the program.
void wait_for_line() {
  char c = 0;
  while (c != '\n') {
    if (read(0, &c, 1) != 1) std::_Exit(0);
  }
}

uint64_t quantile(std::vector<uint64_t>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * double(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// One way of calling, and what it took.
struct Side {
  int (*allocate)(uint64_t*, size_t);
  int (*release)(uint64_t);
  std::vector<uint64_t> taken = {}, given = {};
  uint64_t held[k_held] = {};

  void turn(size_t i) {
    uint64_t& place = held[i % k_held];
    const uint64_t begin = now_ns();
    if (place && release(place) != 0) fail("cuMemFree");
    const uint64_t middle = now_ns();
    if (allocate(&place, k_block_bytes) != 0) fail("cuMemAlloc");
    taken.push_back(now_ns() - middle);
    if (i >= k_held) given.push_back(middle - begin);
  }
  std::string told() {
    return std::to_string(quantile(taken, 0.5)) + " " + std::to_string(quantile(taken, 0.99)) +
           " " + std::to_string(quantile(given, 0.5));
  }
};

void allocate(const Driver& cuda, size_t count) {
  Side guarded{cuda.allocate, cuda.release}, bare{cuda.bare_allocate, cuda.bare_release};
  for (Side* side : {&guarded, &bare}) side->taken.reserve(count), side->given.reserve(count);
  wait_for_line();
  for (size_t i = 0; i < count; ++i) guarded.turn(i), bare.turn(i);
  say(guarded.told() + " " + bare.told());
}

void claim(const Driver& cuda, size_t bytes) {
  uint64_t block = 0;
  wait_for_line();
  while (cuda.allocate(&block, bytes) != 0) {
  }
  say(std::to_string(now_ns()));
}

}  // namespace

int child(int count, char** arguments) {
  const std::string what = arguments[0];
  const size_t number = count > 1 ? std::strtoull(arguments[1], nullptr, 10) : 0;
  const Driver cuda = find_driver();
  const uint64_t before = now_ns();
  start(cuda);
  const uint64_t took = now_ns() - before;
  uint64_t block = 0;
  if (what == "hold" && cuda.allocate(&block, number) != 0) fail("cuMemAlloc");
  say(what == "context" ? std::to_string(took) : "ready");
  if (what == "allocate") allocate(cuda, number);
  if (what == "claim") claim(cuda, number);
  wait_for_line();
  return 0;
}

}  // namespace guard_bench
