// SPDX-License-Identifier: Apache-2.0
// A line of `cufit top` while it is being written: parts with a look, cut at the width of the screen.
#pragma once

#include <string>

#include "report/terminal/width.h"
#include "report/top.h"

namespace cufit::report {

// The first `width` columns of a printable text.
std::string cut(std::string_view utf8, int width);

class LineMaker {
 public:
  explicit LineMaker(int width) : width_(width) {}
  LineMaker& add(std::string_view text, Look look = Look::plain) {
    std::string shown = cut(text, width_ - used_);
    used_ += columns(shown);
    if (!shown.empty()) line_.parts.push_back({std::move(shown), look});
    return *this;
  }
  // In a column of that width, cut or filled.
  LineMaker& left(std::string_view text, int columns_of_it, Look look = Look::plain) {
    return add(pad(cut(text, columns_of_it), columns_of_it), look);
  }
  LineMaker& right(std::string_view text, int columns_of_it, Look look = Look::plain) {
    const std::string shown = cut(text, columns_of_it);
    return add(
        std::string(static_cast<size_t>(std::max(0, columns_of_it - columns(shown))), ' ') + shown,
        look);
  }
  int room() const { return width_ - used_; }
  StyledLine done() { return std::move(line_); }

 private:
  int width_, used_ = 0;
  StyledLine line_;
};

// The parts of top_lines(): top_gpus.cc, top_processes.cc.
struct TopWords {
  const watch::WatchedMachine& machine;
  const TopPicture& picture;
  const knowledge::Knowledge& knowledge;
  Labels say;
  std::string_view lang;
  int width;
};
std::vector<StyledLine> top_gpu_lines(const TopWords& words);
void top_process_lines(const TopWords& words, TopLines& out);

}  // namespace cufit::report
