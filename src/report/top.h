// SPDX-License-Identifier: Apache-2.0
// The picture of `cufit top`: lines for a screen or a text, and its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "knowledge/knowledge.h"
#include "report/report.h"
#include "watch/watcher.h"

namespace cufit::report {

enum class Look { plain, bold, dim, good, warn, bad, selected };

// One line in parts; no part has a line break, and what comes from outside is printable.
struct StyledLine {
  struct Part {
    std::string text;
    Look look = Look::plain;
  };
  std::vector<Part> parts;
};

enum class TopSort { memory, utilization, growth, age, pid, user };

struct TopPicture {
  TopSort sort = TopSort::memory;
  bool by_gpu = true;   // processes of one GPU together
  bool tree = false;    // what a process started stands under it, whatever the order
  std::string filter;   // words that a process's row has; empty: all rows
  bool details = true;  // a second line for each GPU
  int64_t utc_offset_s = 0;
};

// Head, GPUs and processes apart, so that a screen can scroll the last part.
struct TopLines {
  std::vector<StyledLine> head, gpus, process_head, processes, notes;
};

TopLines top_lines(const watch::WatchedMachine& machine, const TopPicture& picture,
                   const knowledge::Knowledge& knowledge, const Style& style);
std::string top_text(const watch::WatchedMachine& machine, const TopPicture& picture,
                     const knowledge::Knowledge& knowledge, const Style& style);
std::string top_json(const watch::WatchedMachine& machine,
                     const knowledge::Knowledge& knowledge);  // schema cufit.top/1

// The order of the column of processes that stands there; nothing: a column without one.
std::optional<TopSort> sort_at(int column);
int screen_columns(std::string_view utf8);                 // on a terminal
std::string screen_cut(std::string_view utf8, int width);  // its first columns

// "1.2 GB/s"; "118 MiB/min".
std::string rate_text(double bytes_per_s);
std::string growth_text(double bytes_per_s);
// "42 min", "3 h", "2 d"; "42 分钟", "3 小时", "2 天". At most 7 columns.
std::string rough_time(double seconds, std::string_view lang);

}  // namespace cufit::report
