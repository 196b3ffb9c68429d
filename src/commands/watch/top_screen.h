// SPDX-License-Identifier: Apache-2.0
// The screen of `cufit top`: what is shown of the picture, and what keys do to it. Pure but for the terminal that it is given.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "commands/context.h"
#include "host/process/terminal_screen.h"
#include "report/top.h"
#include "watch/watcher.h"

namespace cufit::commands {

class TopScreen {
 public:
  TopScreen(const Context& context, host::TerminalScreen& terminal, report::TopPicture picture)
      : context_(context), terminal_(terminal), picture_(std::move(picture)) {}

  void draw(const watch::WatchedMachine& machine);
  // False: the user wants to leave. `changed`: there is something to draw.
  bool take(const host::ScreenKey& key, bool& changed);
  bool paused() const { return paused_; }
  // A recording is shown: where in it, "12/340".
  void set_place(std::string place) { place_ = std::move(place); }
  // Steps that the user made through a recording since the last time.
  int taken_steps();

 private:
  bool take_letter(char letter, bool& changed);
  void take_click(const host::ScreenKey& key);
  void edit_filter(const host::ScreenKey& key);
  void draw_line(int row, const report::StyledLine& line);
  void draw_help();
  std::string footer() const;
  std::string say(std::string_view key, const std::map<std::string, std::string>& args = {}) const;

  const Context& context_;
  host::TerminalScreen& terminal_;
  report::TopPicture picture_;
  bool paused_ = false, helps_ = false, edits_ = false;
  std::optional<bool> details_;  // as the user wants it; else where there is room
  size_t scroll_ = 0, last_process_rows_ = 0, room_ = 0;
  int process_head_row_ = -1, steps_ = 0;
  std::string place_;
};

}  // namespace cufit::commands
