// SPDX-License-Identifier: Apache-2.0
// The texts that were given one after the other. They are judged as one, with lines numbered
// through; this turns such a number back into a text and a line of it.
#pragma once

#include <string>
#include <vector>

#include "explain/explain.h"
#include "facts/facts.h"

namespace cufit::explain {

class Texts {
 public:
  void begin(std::string name, uint64_t first_line) {
    texts_.push_back({std::move(name), first_line});
  }
  size_t size() const { return texts_.empty() ? 1 : texts_.size(); }

  void place(EvidenceLine& line) const;
  // Sources "name:12" of claimed facts, notes of such facts included.
  void place(facts::Facts& facts, const std::string& name) const;
  std::string place(const std::string& text, const std::string& name) const;

 private:
  struct Text {
    std::string name;
    uint64_t first_line;
  };
  const Text* text_of(uint64_t line) const;
  std::vector<Text> texts_;  // by first line; empty = one text of no name
};

}  // namespace cufit::explain
