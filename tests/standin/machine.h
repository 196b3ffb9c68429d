// SPDX-License-Identifier: Apache-2.0
// The described machine behind the stand-in driver libraries, from the file that CUFIT_STANDIN
// names:
//
//   driver = 580.95.05          # lines before the first [gpu] are about the whole machine
//   cuda = 13000
//   fail.cuInit = 803           # this function returns this code (under [gpu]: for that GPU only)
//   hang = cuInit               # this function never returns; also: crash (SIGSEGV), abort, exit
//   live = 1                    # the file is read again where it changed: a machine in the course of time
//   [gpu]
//   name = NVIDIA H200          # every key is one answer; a key that is missing is NOT_SUPPORTED
//   [mig] / [process]           # belong to the [gpu] above
//
// Keys are listed where they are used, in nvml.cc and cuda.cc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace standin {

struct Section {
  std::map<std::string, std::string> values;

  bool has(const std::string& key) const { return values.count(key) > 0; }
  std::string text(const std::string& key, const std::string& otherwise = {}) const;
  uint64_t number(const std::string& key, uint64_t otherwise = 0) const;
};

struct Gpu : Section {
  uint32_t index = 0;
  std::vector<Section> mig, processes;
};

struct Machine : Section {
  std::vector<std::unique_ptr<Gpu>> gpus;
};

// Read once. Without CUFIT_STANDIN, or when the file cannot be read, the program is ended with
// status 99: a test that asks the stand-in about nothing is wrong.
Machine& machine();

// Reads a file that changed again.
void renew();

// What a function does before its own work: hangs, crashes, or returns the code to fail with; 0 =
// go on.
int enter(const char* function, const Section* gpu = nullptr);

}  // namespace standin

#define STANDIN_EXPORT extern "C" __attribute__((visibility("default")))
