// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/top_screen.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::commands {
namespace {

using host::Paint;
using host::ScreenKey;
using report::Look;
using report::StyledLine;
using report::TopSort;
using KeyKind = host::ScreenKey::Kind;

Paint paint_of(Look look) {
  switch (look) {
    case Look::bold:
      return Paint::bold;
    case Look::dim:
      return Paint::dim;
    case Look::good:
      return Paint::green;
    case Look::warn:
      return Paint::yellow;
    case Look::bad:
      return Paint::red;
    case Look::selected:
      return Paint::reverse;
    case Look::plain:
      break;
  }
  return Paint::plain;
}

// Letters of the orders, as the footer shows them.
struct SortKey {
  char letter;
  TopSort sort;
  const char* word;
};
constexpr SortKey k_sort_keys[] = {
    {'m', TopSort::memory, "memory"}, {'u', TopSort::utilization, "use"},
    {'g', TopSort::growth, "growth"}, {'a', TopSort::age, "age"},
    {'p', TopSort::pid, "pid"},       {'n', TopSort::user, "user"},
};

}  // namespace

std::string TopScreen::say(std::string_view key,
                           const std::map<std::string, std::string>& args) const {
  return context_.message(std::string("top.screen.") + std::string(key), args);
}

int TopScreen::taken_steps() { return std::exchange(steps_, 0); }

void TopScreen::draw_line(int row, const StyledLine& line) {
  int column = 0;
  for (const StyledLine::Part& part : line.parts) {
    terminal_.draw(row, column, part.text, paint_of(part.look));
    column += report::screen_columns(part.text);
  }
}

void TopScreen::draw(const watch::WatchedMachine& machine) {
  const int rows = terminal_.rows(), width = terminal_.columns();
  report::Style style = context_.output.style();
  style.width = std::max(width, 40);
  picture_.details = details_.value_or(true);
  report::TopLines lines = report::top_lines(machine, picture_, context_.knowledge, style);
  // Half of the screen is for processes: details go first.
  if (!details_ && lines.gpus.size() > static_cast<size_t>(rows) / 2) {
    picture_.details = false;
    lines = report::top_lines(machine, picture_, context_.knowledge, style);
  }
  terminal_.clear();
  int row = 0;
  const int last = rows - 1;  // the footer's
  const auto put = [&](const std::vector<StyledLine>& part, size_t most) {
    for (size_t i = 0; i < part.size() && i < most && row < last; ++i) draw_line(row++, part[i]);
  };
  put(lines.head, lines.head.size());
  const size_t for_gpus = static_cast<size_t>(std::max(3, rows - row - 6));
  put(lines.gpus, for_gpus);
  if (lines.notes.size() + 4 < static_cast<size_t>(std::max(0, last - row)) || machine.gpus.empty())
    put(lines.notes, lines.notes.size());
  if (!machine.gpus.empty()) ++row;
  process_head_row_ = row;
  put(lines.process_head, 1);
  room_ = static_cast<size_t>(std::max(0, last - row));
  last_process_rows_ = lines.processes.size();
  scroll_ = std::min(scroll_, last_process_rows_ > room_ ? last_process_rows_ - room_ : 0);
  for (size_t i = scroll_; i < lines.processes.size() && row < last; ++i)
    draw_line(row++, lines.processes[i]);
  if (helps_) draw_help();
  terminal_.draw(last, 0, report::screen_cut(footer(), width), Paint::reverse);
  terminal_.show();
}

std::string TopScreen::footer() const {
  if (edits_) return say("filter", {{"filter", picture_.filter}});
  std::string out = say("keys");
  for (const SortKey& key : k_sort_keys)
    if (key.sort == picture_.sort) out = say("sorted", {{"order", say(key.word)}}) + out;
  if (paused_) out = say("paused") + out;
  if (!place_.empty()) out = place_ + "  " + out;
  if (!picture_.filter.empty()) out = say("filtered", {{"filter", picture_.filter}}) + out;
  return out;
}

void TopScreen::draw_help() {
  const std::string text = say("help");
  int row = 1;
  for (const std::string_view line : split(text, '\n')) {
    const std::string shown = report::screen_cut(std::string(line) + " ", terminal_.columns() - 4);
    terminal_.draw(row++, 2, shown, Paint::reverse);
  }
}

bool TopScreen::take(const ScreenKey& key, bool& changed) {
  changed = key.kind != KeyKind::none;
  if (key.kind == KeyKind::closed) return false;
  if (edits_) {
    edit_filter(key);
    return true;
  }
  if (helps_ && key.kind != KeyKind::none && key.kind != KeyKind::resize) {
    helps_ = false;
    return true;
  }
  const size_t page = std::max<size_t>(room_, 2) - 1;
  switch (key.kind) {
    case KeyKind::up:
      scroll_ -= std::min<size_t>(scroll_, 1);
      break;
    case KeyKind::down:
      ++scroll_;
      break;
    case KeyKind::page_up:
      scroll_ -= std::min(scroll_, page);
      break;
    case KeyKind::page_down:
      scroll_ += page;
      break;
    case KeyKind::home:
      scroll_ = 0;
      break;
    case KeyKind::end:
      scroll_ = last_process_rows_;
      break;
    case KeyKind::left:
      --steps_;
      break;
    case KeyKind::right:
      ++steps_;
      break;
    case KeyKind::escape:
      picture_.filter.clear();
      break;
    case KeyKind::click:
      take_click(key);
      break;
    case KeyKind::text:
      return key.text.size() != 1 || take_letter(key.text[0], changed);
    default:
      break;
  }
  return true;
}

bool TopScreen::take_letter(char letter, bool& changed) {
  for (const SortKey& key : k_sort_keys) {
    if (key.letter != letter) continue;
    picture_.sort = key.sort;
    return true;
  }
  switch (letter) {
    case 'q':
    case 'Q':
      return false;
    case ' ':
      paused_ = !paused_;
      break;
    case 't':
      picture_.tree = !picture_.tree;
      break;
    case 'd':
      details_ = !picture_.details;
      break;
    case '/':
      edits_ = true;
      break;
    case '?':
    case 'h':
      helps_ = true;
      break;
    default:
      changed = false;
  }
  return true;
}

// A click on a column's head sorts by it.
void TopScreen::take_click(const ScreenKey& key) {
  if (key.row != process_head_row_) return;
  if (const std::optional<TopSort> sort = report::sort_at(key.column)) picture_.sort = *sort;
}

void TopScreen::edit_filter(const ScreenKey& key) {
  constexpr size_t k_most_filter = 200;
  switch (key.kind) {
    case KeyKind::enter:
      edits_ = false;
      break;
    case KeyKind::escape:
      edits_ = false;
      picture_.filter.clear();
      break;
    case KeyKind::backspace:
      // A whole letter: bytes that go on begin with 10.
      while (!picture_.filter.empty() &&
             (static_cast<unsigned char>(picture_.filter.back()) & 0xc0) == 0x80)
        picture_.filter.pop_back();
      if (!picture_.filter.empty()) picture_.filter.pop_back();
      break;
    case KeyKind::text:
      if (picture_.filter.size() < k_most_filter) picture_.filter += key.text;
      break;
    default:
      break;
  }
  scroll_ = 0;
}

}  // namespace cufit::commands
