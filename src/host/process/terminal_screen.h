// SPDX-License-Identifier: Apache-2.0
// A whole terminal to draw on, and its keys: ncurses, opened when a screen is wanted, so that nothing else starts slower and a
// machine without it lacks the screen alone. One at a time; the terminal is as it was when it is destroyed.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"

namespace cufit::host {

enum class Paint { plain, bold, dim, green, yellow, red, reverse };

struct ScreenKey {
  enum class Kind {
    none,
    text,
    up,
    down,
    left,
    right,
    page_up,
    page_down,
    home,
    end,
    enter,
    backspace,
    escape,
    resize,
    click,
    closed
  };
  Kind kind = Kind::none;
  std::string text;         // of `text`: one character, UTF-8
  int row = 0, column = 0;  // of `click`
};

class TerminalScreen {
 public:
  // Error{unsupported}: ncurses is not there, or the terminal can do too little (TERM is said).
  static Result<TerminalScreen> open(bool colour);
  TerminalScreen(TerminalScreen&& other) noexcept;
  ~TerminalScreen();

  int rows() const;
  int columns() const;
  // What is drawn is seen at show(); only what changed is sent.
  void clear();
  void draw(int row, int column, const std::string& text, Paint paint);
  void show();
  // Waits for a key or until `other` (-1: none) can be read, at most so long. Kind::none: neither a key.
  // Kind::closed: the terminal is gone.
  ScreenKey wait(int other, double seconds);

 private:
  TerminalScreen() = default;
  bool open_ = false;
};

}  // namespace cufit::host
