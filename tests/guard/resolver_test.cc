// SPDX-License-Identifier: Apache-2.0
// How callers reach the driver, and who else stands there.
#include <filesystem>

#include "guarded.h"
#include "support/places.h"

namespace cufit::test {
namespace {

const std::string k_start = "init\ncontext 0\n";
const std::string k_started = "init: 0\ncontext 0: 0\n";

class GuardResolver : public Guarded {
 protected:
  std::string library(const std::string& name) { return binary_dir() + "/guard_card/" + name; }
  // Before the guard, or behind it.
  void preload(const std::string& before, const std::string& behind) {
    guarded = false;
    environment.push_back("LD_PRELOAD=" + before + " " + guard + " " + behind);
  }
};

TEST_F(GuardResolver, EveryRouteEndsAtTheGuard) {
  for (const char* route : {"dlsym", "default", "next", "gpa", "gpa_ptsz"})
    EXPECT_EQ(
        run(k_start + "whose\nalloc a 700M\nalloc b 100M\nasync c 100M\nvmm d 0 100M", route).out,
        k_started +
            "whose: 0 libcufit-guard.so\nalloc a 700M: 0\nalloc b 100M: 2\nasync c 100M: 2\nvmm d "
            "0 100M: 2\n")
        << route;
  EXPECT_EQ(run(k_start + "alloc a 700M\nalloc b 100M\nvmm d 0 100M\ninfo", "linked",
                "guard_actor_linked")
                .out,
            k_started +
                "alloc a 700M: 0\nalloc b 100M: 2\nvmm d 0 100M: 2\ninfo: 0 free 24 total 1024\n");
}

// Nothing says that dlsym and cuGetProcAddress give the same address.
TEST_F(GuardResolver, TwoAddressesOfOneFunction) {
  describe("two_addresses = 1");
  EXPECT_EQ(run(k_start + "whose\nalloc a 700M\nalloc b 100M\nvmm c 0 100M", "gpa").out,
            k_started +
                "whose: 0 libcufit-guard.so\nalloc a 700M: 0\nalloc b 100M: 2\nvmm c 0 100M: 2\n");
}

// The driver decides what a name means at a version; what it does not have stays missing.
TEST_F(GuardResolver, AnswersAreTheDrivers) {
  describe("cuda = 12020");
  EXPECT_EQ(run("init\nask cuCtxCreate 13000\nask cuMemAlloc 2000\nask cuLaunchKernel 4000\nask "
                "cuMemAllocAsync 13000\nask noSuchName 13000")
                .out,
            "init: 0\nask cuCtxCreate 13000: 0 libcufit-guard.so 0\nask cuMemAlloc 2000: 0 "
            "libcuda.so.1 0\n"
            "ask cuLaunchKernel 4000: 0 libcuda.so.1 0\nask cuMemAllocAsync 13000: 0 "
            "libcufit-guard.so 0\n"
            "ask noSuchName 13000: 0 ? 1\n");
  // A driver before cuCtxCreate_v4 answers 13000 with the function of 3020: it must be called as that.
  EXPECT_EQ(run(k_start + "create 0 a\ninfo", "gpa").out,
            k_started + "create 0 a: 0\ninfo: 0 free 424 total 1024\n");
}

// A call that the guard does not know goes through, and is told.
TEST_F(GuardResolver, ANewerAllocatorIsReported) {
  describe("future = 1");
  EXPECT_EQ(
      run("init\ncontext 0\nask cuMemAlloc 14000\nask cuMemAlloc 13000").out,
      k_started +
          "ask cuMemAlloc 14000: 0 libcuda.so.1 0\nask cuMemAlloc 13000: 0 libcufit-guard.so 0\n");
  EXPECT_EQ(domain_now().unknown, std::vector<std::string>{"cuMemAlloc@14000"});
  EXPECT_EQ(rings().at(0).unknown, std::vector<std::string>{"cuMemAlloc@14000"});
  describe("");
  write_domain();
  run(k_start + "ask cuMemAllocHost 3020\nask cuMemAlloc 2000");
  EXPECT_TRUE(domain_now().unknown.empty());
}

// dlsym looks at who calls: RTLD_NEXT of a library behind the guard begins behind that library.
TEST_F(GuardResolver, LookUpsOfOthersAreAsWithoutIt) {
  preload("", copy_of(binary_dir() + "/guard_card/libguard_chain_a.so") + " " +
                  copy_of(binary_dir() + "/guard_card/libguard_chain_b.so"));
  EXPECT_EQ(run("chain").out, "chain: 0 ab\n");
  environment.clear();
  preload(copy_of(binary_dir() + "/guard_card/libguard_chain_a.so"),
          copy_of(binary_dir() + "/guard_card/libguard_chain_b.so"));
  EXPECT_EQ(run("chain").out, "chain: 0 ab\n");
  EXPECT_EQ(
      run("error puts\nerror no_such_function\nerror puts NO_VERSION\nerror cuMemAlloc_v2").out,
      "error puts: 0 found\nerror no_such_function: 0 none, said\nerror puts NO_VERSION: 0 none, "
      "said\n"
      "error cuMemAlloc_v2: 0 none, said\n");  // libcuda is loaded, but not for all
}

// Two that stand before the driver do not find each other in a circle, and it is told.
TEST_F(GuardResolver, AnotherLibraryBeforeTheDriver) {
  for (bool first : {true, false}) {
    environment.clear();
    write_domain();
    preload(first ? copy_of(binary_dir() + "/guard_card/libguard_foreign.so") : "",
            first ? "" : copy_of(binary_dir() + "/guard_card/libguard_foreign.so"));
    for (const char* route : {"dlsym", "default", "gpa"})
      EXPECT_EQ(run(k_start + "alloc a 700M\nalloc b 100M", route).out,
                k_started + "alloc a 700M: 0\nalloc b 100M: 2\n")
          << first << route;
    EXPECT_EQ(run(k_start + "alloc a 700M\nalloc b 100M", "linked", "guard_actor_linked").out,
              k_started + "alloc a 700M: 0\nalloc b 100M: 2\n")
        << first;
    EXPECT_EQ(domain_now().foreign, "libguard_foreign.so") << first;
  }
}

// A program without CUDA has no slot, no ring, no descriptor of the guard.
TEST_F(GuardResolver, AProgramWithoutCudaIsLeftAlone) {
  EXPECT_EQ(run("error puts").out, "error puts: 0 found\n");
  EXPECT_TRUE(domain_now().processes.empty());
  EXPECT_TRUE(rings().empty());
}

// The real runtimes over the described driver. They look all up and read the devices before they find that it is none of
// NVIDIA's, and what they read came through the guard.
TEST_F(GuardResolver, TheRealRuntimes) {
  std::vector<std::pair<std::string, std::string>> programs;
  for (const char* name : {"runtime_shared", "runtime_static"}) {
    if (std::filesystem::exists(library(name))) programs.emplace_back(name, "-");
  }
  if (const char* folder = std::getenv("CUFIT_CUDA_RUNTIMES")) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().filename().string().find("libcudart.so.") == 0)
        programs.emplace_back("runtime_loaded", entry.path().string());
    }
  }
  if (programs.empty())
    GTEST_SKIP() << "no CUDA toolkit here; CUFIT_CUDA_RUNTIMES names a folder of runtimes";
  for (const auto& [program, file] : programs) {
    std::filesystem::remove_all(path("rings"));
    std::filesystem::create_directory(path("rings"));
    Ran ran = run("-", file, program);
    EXPECT_EQ(ran.status, 0) << program << file;
    EXPECT_EQ(ran.out.find("cudaMalloc: "), 0u) << program << file << ran.out;
    auto rings_now = rings();
    ASSERT_EQ(rings_now.size(), 1u) << program << file;
    ASSERT_EQ(rings_now[0].devices.size(), 1u) << program << file;
    EXPECT_EQ(rings_now[0].devices[0].limit_bytes, 1024 * k_mib) << program << file;
  }
}

}  // namespace
}  // namespace cufit::test
