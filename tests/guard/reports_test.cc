// SPDX-License-Identifier: Apache-2.0
// Twenty ways in which the quotas of others failed (research of 2026-11, table 1.6), each as a test. 1 and 2 are in
// crash_test.cc.
#include "guarded.h"

namespace cufit::test {
namespace {

const std::string k_start = "init\ncontext 0\n";
const std::string k_started = "init: 0\ncontext 0: 0\n";

class GuardReport : public Guarded {};

// HAMi-core 200, HAMi 1181: counters below zero, 17 TB "used".
TEST_F(GuardReport, R03_NothingIsFreedTwiceOrBelowZero) {
  Ran ran = run(k_start +
                "alloc a 10M\nfree a\nfree a\nfree nothing\nvmm h 0 10M\nclose h\nclose h\n"
                "async p 10M\nback p\nback p\narray q 100 100\nunarray q\nunarray q\ninfo\n"
                "alloc b 700M\nfree b\nreset 0\nfree b\nsleep 0.01");
  EXPECT_NE(ran.out.find("free a: 1\nfree nothing: 1\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("info: 0 free 692 total 1024"), std::string::npos) << ran.out;  // a pool
  EXPECT_NE(ran.out.find("alloc b 700M: 0"), std::string::npos) << ran.out;
  EXPECT_EQ(used_mib(), 0u);
}

// HAMi-core 191: the second process sees free == total.
TEST_F(GuardReport, R04_ASecondProcessSeesWhatTheFirstHolds) {
  limit(1024);
  Ran ran = run(k_start +
                "alloc a 200M\ninfo\nfork init; context 0; info; alloc b 300M; alloc c 300M; info\n"
                "alloc c 500M\nsleep 0");
  EXPECT_EQ(ran.out,
            k_started +
                "alloc a 200M: 0\ninfo: 0 free 524 total 1024\n"
                "init: 0\ncontext 0: 0\ninfo: 0 free 224 total 1024\nalloc b 300M: 2\n"
                "alloc c 300M: 2\ninfo: 0 free 224 total 1024\nfork: 0\nalloc c 500M: 0\n");
}

// HAMi-core 169, 187: NCCL and llama.cpp ask for memory of the host.
TEST_F(GuardReport, R05_MemoryOfTheHostIsLeftAlone) {
  Ran ran = run(k_start +
                "host a 2 4096M\nhost b 3 4096M\nhost c 4 64M\nimport d\nmap m a 4096M\nclose a\n"
                "unmap m\nclose d\ninfo");
  EXPECT_EQ(
      ran.out,
      k_started +
          "host a 2 4096M: 0\nhost b 3 4096M: 0\nhost c 4 64M: 1\nimport d: 0\nmap m a 4096M: 0\n"
          "close a: 0\nunmap m: 0\nclose d: 0\ninfo: 0 free 724 total 1024\n");
}

// HAMi-core 181, vllm 40937: cuMemGetInfo and NVML disagree.
TEST_F(GuardReport, R06_CudaAndNvmlSayTheSame) {
  Ran ran = run(k_start + "alloc a 333M\ninfo\nnvml 0\nnvml2 0");
  EXPECT_EQ(
      ran.out,
      k_started +
          "alloc a 333M: 0\ninfo: 0 free 390 total 1024\n"
          "nvml 0: 0 free 390 total 1024 used 634\nnvml2 0: 0 free 390 total 1024 used 634\n");
}

struct Way {
  const char *take, *give;
};

// HAMi-core 74, 79: calls that nobody counts.
TEST_F(GuardReport, R07_08_EveryWayToMemoryIsCharged) {
  for (const Way& way : {Way{"alloc a 400M", "free a"}, Way{"pitch a 4096 100K", "free a"},
                         Way{"vmm a 0 400M", "close a"}, Way{"array a 10240 10240", "unarray a"},
                         Way{"many 200 2M", "reset 0"}, Way{"many 4000 100K", "reset 0"}}) {
    write_domain();
    write_bytes(path("card"), "");
    std::string take = way.take;
    // The same once more, under another name.
    std::string filled = take;
    if (take.substr(0, 4) != "many") filled[take.find(' ') + 1] = 'b';
    std::string again = take[0] == 'm' ? "\ncontext 0\n" : "\n";
    Ran ran = run(k_start + take + "\n" + filled + "\n" + way.give + again + take + "\ninfo\n");
    // It is given once, refused the second time, and given again when it was given back.
    EXPECT_NE(ran.out.find(take + ": 0"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.find(filled + ": 2"), std::string::npos) << ran.out;
    EXPECT_NE(ran.out.rfind(take + ": 0"), ran.out.find(take + ": 0")) << ran.out;
    EXPECT_LE(card_peak(), 1024 * k_mib) << take;
    EXPECT_GE(card_peak(), 600 * k_mib) << take;
  }
}

// HAMi-core 93, 96, 217, 306: RAPIDS' allocator.
TEST_F(GuardReport, R09_PoolsAreUsedOverAndOver) {
  limit(512, 0);
  describe("", "context = 0");
  std::string script = k_start;
  for (int i = 0; i < 200; ++i) script += "async p 32M\nback p\n";
  script += "sync\npool q 0\n";
  for (int i = 0; i < 200; ++i) script += "from p 32M q\nback p\n";
  Ran ran = run(script + "info\nasync a 300M\nfree a\nasync b 480M\nasync c 64M");
  EXPECT_EQ(ran.out.find(": 2\n"), ran.out.find(": 2\n", ran.out.find("async c"))) << ran.out;
  EXPECT_NE(ran.out.find("info: 0 free 480 total 512"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("free a: 0\nasync b 480M: 0\nasync c 64M: 2"), std::string::npos)
      << ran.out;
  EXPECT_LE(card_peak(), 512 * k_mib);
}

// HAMi-core 319: CUDA's index is not NVML's.
TEST_F(GuardReport, R10_AQuotaFollowsTheCardNotItsIndex) {
  add_card("");
  domain.devices[0].limit_bytes = 1000 * k_mib;
  formats::QuotaDevice second;
  second.uuid = "GPU-00000000-1111-2222-3333-444444444441";
  second.limit_bytes = 2000 * k_mib;
  domain.devices.push_back(second);
  write_domain();
  const char* uuid = "GPU-00000000-1111-2222-3333-444444444441";
  for (const std::string& visible : {std::string("1"), std::string("1,0"), std::string(uuid)}) {
    environment = {"CUDA_VISIBLE_DEVICES=" + visible};
    EXPECT_EQ(run("init\ntotal 0\ncontext 0\ninfo\nnvml 1\nnvml 0").out,
              "init: 0\ntotal 0: 0 2000\ncontext 0: 0\n"
              "info: 0 free 2000 total 2000\nnvml 1: 0 free 2000 total 2000 used 0\n"
              "nvml 0: 0 free 1000 total 1000 used 0\n")
        << visible;
  }
}

// A MIG instance has its card's address, and an identity of its own.
TEST_F(GuardReport, R10_AMigInstanceIsNotItsCard) {
  describe("",
           "uuid = MIG-00000000-1111-2222-3333-55555555555a\n"
           "card_uuid = GPU-00000000-1111-2222-3333-444444444440");
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 4096\n");
  // Nor is another card in the same place.
  describe("", "uuid = GPU-00000000-1111-2222-3333-777777777777");
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 4096\n");
  describe("",
           "uuid = MIG-00000000-1111-2222-3333-55555555555a\n"
           "card_uuid = GPU-00000000-1111-2222-3333-444444444440");
  domain.devices[0].uuid = "MIG-00000000-1111-2222-3333-55555555555a";
  write_domain();
  EXPECT_EQ(run("init\ntotal 0").out, "init: 0\ntotal 0: 0 1024\n");
}

// HAMi-core 55: torch frees its cache and asks again on this code alone.
TEST_F(GuardReport, R11_ARefusalIsOutOfMemory) {
  Ran ran = run(k_start +
                "alloc a 800M\nvmm b 0 800M\nasync c 800M\nmany 1 18446744073709551615\n"
                "pitch d 9223372036854775807 9\ngraph g 0 800M\narray h 30000 30000\nalloc e 0");
  EXPECT_EQ(ran.out,
            k_started +
                "alloc a 800M: 2\nvmm b 0 800M: 2\nasync c 800M: 2\n"
                "many 1 18446744073709551615: 2 granted 0\npitch d 9223372036854775807 9: 2\n"
                "graph g 0 800M: 2\narray h 30000 30000: 2\nalloc e 0: 1\n");
}

// HAMi 1381: with GPU 1 alone, "host pid error".
TEST_F(GuardReport, R12_NoPidIsLookedFor) {
  describe("no_process_memory = 1");
  add_card("");
  domain.nvml_own_process = true;
  domain.devices[0].uuid = "GPU-00000000-1111-2222-3333-444444444441";
  domain.devices[0].pci = "0000:66:00.0";
  write_domain();
  environment = {"CUDA_VISIBLE_DEVICES=1"};
  Ran ran = run(k_start + "alloc a 700M\nalloc b 100M\ninfo");
  EXPECT_EQ(ran.out, k_started + "alloc a 700M: 0\nalloc b 100M: 2\ninfo: 0 free 24 total 1024\n");
  EXPECT_EQ(ran.err, "");
}

// HAMi 1219, 1461: tensor and pipeline parallel.
TEST_F(GuardReport, R13_SeveralRanksOnSeveralCards) {
  add_card("");
  formats::QuotaDevice second;
  second.uuid = "GPU-00000000-1111-2222-3333-444444444441";
  second.limit_bytes = 1000 * k_mib;
  domain.devices.push_back(second);
  write_domain();
  std::string rank =
      "init; context 0; context 1; alloc a 100M; vmm h 0 100M; import i; threads 3 50 3M; free a; "
      "info";
  Ran ran = run("fork " + rank + "\nfork " + rank +
                "\ninit\ncount\ncontext 0\nvmm a 1 900M\nvmm b 1 200M\nvmm c 0 600M");
  EXPECT_NE(ran.out.find("threads 3 50 3M: 0\nfree a: 0\ninfo: 0 free 1000 total 1000\nfork: 0\n"),
            std::string::npos)
      << ran.out;
  // By the location of the request, not the current context.
  EXPECT_NE(ran.out.find("vmm a 1 900M: 0\nvmm b 1 200M: 2\nvmm c 0 600M: 0\n"), std::string::npos)
      << ran.out;
}

// HAMi 1055, HAMi-core 326: the driver looks itself up.
TEST_F(GuardReport, R14_TheDriversOwnLookUpsAreItsOwn) {
  describe("own_lookup = 1");
  for (const char* route : {"dlsym", "gpa", "default", "next"})
    EXPECT_EQ(run("init\nwhose", route).out, "init: 0\nwhose: 0 libcufit-guard.so\n") << route;
}

// HAMi 1522: refused while a pool keeps what nobody uses.
TEST_F(GuardReport, R15_PoolsAreTrimmedBeforeARefusal) {
  Ran ran = run(k_start + "keep 0 4G\nasync a 600M\nback a\nsync\ninfo\nalloc b 600M\ninfo");
  EXPECT_EQ(ran.out,
            k_started +
                "keep 0 4G: 0\nasync a 600M: 0\nback a: 0\nsync: 0\ninfo: 0 free 116 total 1024\n"
                "alloc b 600M: 0\ninfo: 0 free 124 total 1024\n");
}
TEST_F(GuardReport, R15_GraphMemoryIsTrimmedBeforeARefusal) {
  Ran ran = run(k_start + "graph g 0 600M\nready g\nlaunch g\ninfo\nalloc b 600M\ninfo");
  EXPECT_EQ(ran.out, k_started +
                         "graph g 0 600M: 0\nready g: 0\nlaunch g: 0\ninfo: 0 free 124 total 1024\n"
                         "alloc b 600M: 0\ninfo: 0 free 124 total 1024\n");
}

// HAMi 2760, 2641: harm done although it was switched off.
TEST_F(GuardReport, R16_OffMeansOff) {
  environment = {"CUFIT_GUARD=0"};
  for (const char* route : {"dlsym", "gpa", "default", "next"})
    EXPECT_EQ(run(k_start + "whose\nalloc a 2000M\ninfo", route).out,
              k_started + "whose: 0 libcuda.so.1\nalloc a 2000M: 0\ninfo: 0 free 1796 total 4096\n")
        << route;
  EXPECT_EQ(run(k_start + "alloc a 2000M\ninfo\nfree a", "linked", "guard_actor_linked").out,
            k_started + "alloc a 2000M: 0\ninfo: 0 free 1796 total 4096\nfree a: 0\n");
  EXPECT_EQ(used_mib(), 0u);
  EXPECT_TRUE(rings().empty());
}

// HAMi 2125: a process without the variable makes the limit 0 for all.
TEST_F(GuardReport, R17_TheLimitIsTheLaunchersAlone) {
  environment = {"CUDA_DEVICE_MEMORY_LIMIT=0", "CUFIT_VRAM=0"};
  EXPECT_EQ(run("init\ntotal 0\ncontext 0\nalloc a 700M").out,
            "init: 0\ntotal 0: 0 1024\ncontext 0: 0\nalloc a 700M: 0\n");
  EXPECT_EQ(domain_now().devices.at(0).limit_bytes, 1024 * k_mib);
}

// HAMi 1777: lines of a log in a program's output.
TEST_F(GuardReport, R18_NothingIsWritten) {
  for (const std::string& bad : {std::string(), path("nothing"), path("short"), path("machine")}) {
    write_bytes(path("short"), "CUFITQD1");
    environment =
        bad.empty() ? std::vector<std::string>{} : std::vector<std::string>{"CUFIT_DOMAIN=" + bad};
    Ran ran = run("init\ncontext 0\nalloc a 3000M\nsleep 0");
    EXPECT_EQ(ran.err, "");
    EXPECT_EQ(ran.out, k_started + (bad.empty() ? "alloc a 3000M: 2\n" : "alloc a 3000M: 0\n"))
        << bad;
  }
  // But the black box says that nothing was limited.
  int failed = 0;
  for (const auto& ring : rings()) failed += ring.domain_failed;
  EXPECT_EQ(failed, 3);
}

// HAMi 446, 332: nvidia-smi inside and outside. Inside is what the domain holds, without a context of one's own.
TEST_F(GuardReport, R19_AMonitorInsideSeesTheQuota) {
  Ran ran = run("fork init; context 0; alloc a 100M; nvml 0\nnvml 0\nnvml2 0");
  EXPECT_NE(ran.out.find(
                "nvml 0: 0 free 624 total 1024 used 400\nfork: 0\n"
                "nvml 0: 0 free 1024 total 1024 used 0\nnvml2 0: 0 free 1024 total 1024 used 0\n"),
            std::string::npos)
      << ran.out;
}

// HAMi-core 233, 57: the functions of CUDA 12 and 13 under one name.
TEST_F(GuardReport, R20_EveryVersionIsTheDriversChoice) {
  for (const char* version : {"11080", "12020", "12080", "13000", "13030"}) {
    describe("cuda = " + std::string(version));
    Ran ran = run(k_start + "alloc a 500M\nalloc b 500M\nvmm c 0 100M\nwhose", "gpa");
    EXPECT_EQ(ran.out,
              k_started +
                  "alloc a 500M: 0\nalloc b 500M: 2\nvmm c 0 100M: 0\nwhose: 0 libcufit-guard.so\n")
        << version;
  }
}

// Olares 2687, 3259: false refusals and crashes of shims on an RTX 5090 with CUDA 13.
TEST_F(GuardReport, R21_ALargeQuotaOfALargeCardIsAllThere) {
  describe("cuda = 13000", "memory = 34190917632");
  limit(31 * 1024);
  std::string script = k_start;
  for (int i = 0; i < 20; ++i)
    script += "alloc a 15G\nasync b 10G\nvmm c 0 5G\nfree a\nsync\nback b\nsync\nclose c\n";
  const Ran ran = run(script + "alloc a 30G\nalloc b 2G\ninfo", "gpa");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out.find("alloc a 15G: 2"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("async b 10G: 2"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("vmm c 0 5G: 2"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("alloc a 30G: 0\nalloc b 2G: 2\ninfo: 0 free 724 total 31744\n"),
            std::string::npos)
      << ran.out;
}

// KAI 1967: a GB10 has one memory with its host, and NVML says nothing of it.
TEST_F(GuardReport, R22_AGpuWhoseMemoryNvmlDoesNotTell) {
  describe("no_process_memory = 1", "no_nvml_memory = 1");
  const Ran ran = run(k_start + "alloc a 500M\nalloc b 500M\ninfo\nnvml 0\nnvml2 0");
  EXPECT_EQ(ran.out.find(k_started + "alloc a 500M: 0\nalloc b 500M: 2\n"
                                     "info: 0 free 224 total 1024\nnvml 0: 3"),
            0u)
      << ran.out;
  EXPECT_NE(ran.out.find("nvml2 0: 3"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace cufit::test
