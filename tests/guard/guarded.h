// SPDX-License-Identifier: Apache-2.0
// Programs under the guard on a described card, and what the card and the files say afterwards.
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/types.h>

#include "formats/system/gpu_ring.h"
#include "formats/system/quota_domain.h"

namespace cufit::test {

constexpr uint64_t k_mib = 1024 * 1024;

struct Ran {
  std::string out, err;
  int status = 0;                           // of waitpid
  int code() const { return status >> 8; }  // of a program that ended by itself
};

class Guarded : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Keys of the machine, then of its first card (4096 MiB, contexts of 300 MiB).
  void describe(const std::string& machine, const std::string& card = "");
  void add_card(const std::string& text);  // another [gpu]: uuid ...441, 0000:66:00.0
  void limit(uint64_t mib, uint64_t context_mib = 300);
  formats::QuotaDomain domain;  // what write_domain() writes; limit() fills in one row
  void write_domain();

  Ran run(const std::string& script, const std::string& route = "dlsym",
          const std::string& program = "guard_actor");
  pid_t start(const std::string& script, const std::string& route = "dlsym",
              const std::string& program = "guard_actor", int out = -1, int err = -1);
  // Returns once its output holds `text`; what it says later is lost.
  pid_t start_until(const std::string& text, const std::string& script);
  std::vector<std::string> environment;  // "NAME=value", beside the usual
  bool guarded = true;
  // LD_PRELOAD parts its files at blanks, and the build may lie below a folder with one.
  std::string copy_of(const std::string& library) const;
  std::string guard;

  // cufit itself on this card, by /bin/sh: $CUFIT is the program, $DIR the folder.
  Ran cufit(const std::string& script);

  formats::QuotaDomain domain_now() const;
  uint64_t used_mib() const;                // in the domain, first device
  uint64_t card_used(int index = 0) const;  // by all who live, bytes
  uint64_t card_peak(int index = 0) const;  // ever
  std::vector<formats::GpuRing> rings() const;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_, machine_;
  std::vector<int> outputs_;  // of programs that still run
};

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

}  // namespace cufit::test
