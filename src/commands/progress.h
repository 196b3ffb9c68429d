// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that is overwritten while a large file is read or samples are taken; nothing
// when stderr is a file.
#pragma once

#include <cstdint>
#include <string>

namespace cufit::commands {

class Progress {
 public:
  explicit Progress(std::string name);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Bytes read so far, of `total` (0: not known).
  void show(uint64_t done, uint64_t total);
  // Things done of all: "12 / 600".
  void show_count(uint64_t done, uint64_t total);

 private:
  std::string name_;
  bool wanted_;
  uint64_t shown_ = 0;
};

}  // namespace cufit::commands
