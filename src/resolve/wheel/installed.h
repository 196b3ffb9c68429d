// SPDX-License-Identifier: Apache-2.0
// torch wheels that lie on the disk: what was read in them goes before the wheel table, and a row
// that says otherwise is reported.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "resolve/wheel/wheel.h"

namespace cufit::resolve {

struct Installed {
  std::string torch, tag;  // "2.11.0", "cu130"
  std::string path;        // of libtorch_cuda.so
  std::vector<formats::DeviceCode> code;
};
// Of every environment whose torch library was read in full.
std::vector<Installed> installed_wheels(const facts::Facts& facts,
                                        const knowledge::Knowledge& knowledge);

// A row of the table and a file that run on different GPUs.
struct Disagreement {
  std::string torch, tag, path;
  std::string row, file;            // "7.5 8.0 8.6", as both say it
  std::vector<std::string> differ;  // capabilities that only one of them serves: "12.0"
};
// Puts the files' code into the wheels of the same release and variant.
std::vector<Disagreement> believe_files(const std::vector<Installed>& installed,
                                        const knowledge::Knowledge& knowledge,
                                        std::vector<Wheel>& wheels);

}  // namespace cufit::resolve
