// SPDX-License-Identifier: Apache-2.0
#include "host/process/terminal_screen.h"

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <type_traits>

#include "base/format.h"
#include "base/utf8.h"

namespace cufit::host {
namespace {

// The part of the binary interface of ncurses 6 (libncursesw.so.6) that is used, as its manual pages and curses.h have it:
// written down here, so that no header is needed at build time.
struct Window;  // WINDOW
struct Screen;  // SCREEN
using Attributes = uint32_t;
constexpr Attributes k_normal = 0, k_reverse = 1u << 18, k_dim = 1u << 20, k_bold = 1u << 21;
struct MouseEvent {  // MEVENT
  short id;
  int x, y, z;
  uint32_t buttons;
};
constexpr uint32_t k_click = 2, k_wheel_up = 2u << 15, k_wheel_down = 2u << 20;
constexpr int k_curses_ok = 0, k_curses_error = -1, k_is_code = 0400;
enum : uint32_t {
  k_key_down = 0402,
  k_key_up = 0403,
  k_key_left = 0404,
  k_key_right = 0405,
  k_key_home = 0406,
  k_key_backspace = 0407,
  k_key_delete = 0512,
  k_key_next_page = 0522,
  k_key_page_before = 0523,
  k_key_enter = 0527,
  k_key_end = 0550,
  k_key_mouse = 0631,
  k_key_resize = 0632,
};
enum : short { k_colour_red = 1, k_colour_green = 2, k_colour_yellow = 3 };

// Its functions, by their own names.
struct Curses {
  Screen* (*newterm)(const char*, FILE*, FILE*) = nullptr;
  int (*endwin)() = nullptr;
  void (*delscreen)(Screen*) = nullptr;
  int (*cbreak)() = nullptr;
  int (*noecho)() = nullptr;
  int (*nonl)() = nullptr;
  int (*curs_set)(int) = nullptr;
  int (*keypad)(Window*, bool) = nullptr;
  void (*wtimeout)(Window*, int) = nullptr;
  int (*wget_wch)(Window*, wint_t*) = nullptr;
  Window* (*newwin)(int, int, int, int) = nullptr;
  int (*delwin)(Window*) = nullptr;
  int (*werase)(Window*) = nullptr;
  int (*wmove)(Window*, int, int) = nullptr;
  int (*waddnstr)(Window*, const char*, int) = nullptr;
  int (*wattr_set)(Window*, Attributes, short, void*) = nullptr;
  int (*wnoutrefresh)(Window*) = nullptr;
  int (*doupdate)() = nullptr;
  bool (*has_colors)() = nullptr;
  int (*start_color)() = nullptr;
  int (*use_default_colors)() = nullptr;
  int (*init_pair)(short, short, short) = nullptr;
  uint32_t (*mousemask)(uint32_t, uint32_t*) = nullptr;
  int (*mouseinterval)(int) = nullptr;
  int (*getmouse)(MouseEvent*) = nullptr;
  int (*set_escdelay)(int) = nullptr;
  int (*getmaxx)(const Window*) = nullptr;
  int (*getmaxy)(const Window*) = nullptr;
  std::string problem;
};

Curses load_curses() {
  Curses out;
  void* const library = dlopen("libncursesw.so.6", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    out.problem =
        "a screen needs ncurses (libncursesw.so.6; Debian: libncursesw6); --once needs none";
    return out;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && out.problem.empty()) out.problem = format("ncurses has no {}", name);
  };
#define CUFIT_CURSES(name) find(#name, out.name)
  CUFIT_CURSES(newterm);
  CUFIT_CURSES(endwin);
  CUFIT_CURSES(delscreen);
  CUFIT_CURSES(cbreak);
  CUFIT_CURSES(noecho);
  CUFIT_CURSES(nonl);
  CUFIT_CURSES(curs_set);
  CUFIT_CURSES(keypad);
  CUFIT_CURSES(wtimeout);
  CUFIT_CURSES(wget_wch);
  CUFIT_CURSES(newwin);
  CUFIT_CURSES(delwin);
  CUFIT_CURSES(werase);
  CUFIT_CURSES(wmove);
  CUFIT_CURSES(waddnstr);
  CUFIT_CURSES(wattr_set);
  CUFIT_CURSES(wnoutrefresh);
  CUFIT_CURSES(doupdate);
  CUFIT_CURSES(has_colors);
  CUFIT_CURSES(start_color);
  CUFIT_CURSES(use_default_colors);
  CUFIT_CURSES(init_pair);
  CUFIT_CURSES(mousemask);
  CUFIT_CURSES(mouseinterval);
  CUFIT_CURSES(getmouse);
  CUFIT_CURSES(set_escdelay);
  CUFIT_CURSES(getmaxx);
  CUFIT_CURSES(getmaxy);
#undef CUFIT_CURSES
  return out;
}

const Curses& curses() {
  static const Curses k_curses = load_curses();
  return k_curses;
}

Screen* g_screen = nullptr;
Window* g_window = nullptr;
bool g_colour = false;

// A pair of colours for each paint that has one.
constexpr short k_green_pair = 1, k_yellow_pair = 2, k_red_pair = 3;

void set_paint(Paint paint) {
  Attributes attributes = k_normal;
  short pair = 0;
  switch (paint) {
    case Paint::plain:
      break;
    case Paint::bold:
      attributes = k_bold;
      break;
    case Paint::dim:
      attributes = k_dim;
      break;
    case Paint::reverse:
      attributes = k_reverse;
      break;
    // Without colours the state is still seen, and it always has a word.
    case Paint::green:
      pair = k_green_pair;
      break;
    case Paint::yellow:
      pair = k_yellow_pair;
      if (!g_colour) attributes = k_bold;
      break;
    case Paint::red:
      pair = k_red_pair;
      if (!g_colour) attributes = k_bold;
      break;
  }
  curses().wattr_set(g_window, attributes, static_cast<short>(g_colour ? pair : 0), nullptr);
}

ScreenKey key_of_code(wint_t code) {
  using Kind = ScreenKey::Kind;
  switch (code) {
    case k_key_up:
      return {Kind::up, {}};
    case k_key_down:
      return {Kind::down, {}};
    case k_key_left:
      return {Kind::left, {}};
    case k_key_right:
      return {Kind::right, {}};
    case k_key_page_before:
      return {Kind::page_up, {}};
    case k_key_next_page:
      return {Kind::page_down, {}};
    case k_key_home:
      return {Kind::home, {}};
    case k_key_end:
      return {Kind::end, {}};
    case k_key_enter:
      return {Kind::enter, {}};
    case k_key_backspace:
    case k_key_delete:
      return {Kind::backspace, {}};
    case k_key_resize:
      return {Kind::resize, {}};
    case k_key_mouse: {
      MouseEvent event{};
      if (curses().getmouse(&event) != k_curses_ok) return {};
      if (event.buttons & k_wheel_up) return {Kind::up, {}};
      if (event.buttons & k_wheel_down) return {Kind::down, {}};
      return {Kind::click, {}, event.y, event.x};
    }
    default:
      return {};
  }
}

ScreenKey next_key() {
  using Kind = ScreenKey::Kind;
  wint_t letter = 0;
  const int kind = curses().wget_wch(g_window, &letter);
  if (kind == k_curses_error) return {};
  if (kind == k_is_code) return key_of_code(letter);
  if (letter == '\r' || letter == '\n') return {Kind::enter, {}};
  if (letter == 27) return {Kind::escape, {}};
  if (letter == 127 || letter == 8) return {Kind::backspace, {}};
  if (letter < 32) return {};
  std::string text;
  append_utf8(text, static_cast<uint32_t>(letter));
  return {Kind::text, text};
}

}  // namespace

Result<TerminalScreen> TerminalScreen::open(bool colour) {
  const Curses& c = curses();
  if (!c.problem.empty()) return fail(Code::unsupported, c.problem);
  std::setlocale(LC_CTYPE, "");  // how wide characters are read and written
  g_screen = c.newterm(nullptr, stdout, stdin);
  if (g_screen == nullptr) {
    const char* const term = std::getenv("TERM");
    return fail(Code::unsupported,
                format("the terminal `{}` can show no screen; --once prints a text",
                       term != nullptr ? term : ""));
  }
  c.cbreak();
  c.noecho();
  c.nonl();
  c.curs_set(0);
  c.set_escdelay(25);
  g_colour = colour && c.has_colors() && c.start_color() == k_curses_ok;
  if (g_colour) {
    c.use_default_colors();
    c.init_pair(k_green_pair, k_colour_green, -1);
    c.init_pair(k_yellow_pair, k_colour_yellow, -1);
    c.init_pair(k_red_pair, k_colour_red, -1);
  }
  g_window = c.newwin(0, 0, 0, 0);
  c.keypad(g_window, true);
  c.wtimeout(g_window, 0);
  c.mouseinterval(0);
  c.mousemask(k_click | k_wheel_up | k_wheel_down, nullptr);
  TerminalScreen out;
  out.open_ = true;
  return out;
}

TerminalScreen::TerminalScreen(TerminalScreen&& other) noexcept : open_(other.open_) {
  other.open_ = false;
}

TerminalScreen::~TerminalScreen() {
  if (!open_) return;
  curses().delwin(g_window);
  curses().endwin();
  curses().delscreen(g_screen);
  g_screen = nullptr;
  g_window = nullptr;
}

int TerminalScreen::rows() const { return curses().getmaxy(g_window); }
int TerminalScreen::columns() const { return curses().getmaxx(g_window); }
void TerminalScreen::clear() { curses().werase(g_window); }

void TerminalScreen::draw(int row, int column, const std::string& text, Paint paint) {
  if (row < 0 || row >= rows() || column >= columns()) return;
  set_paint(paint);
  curses().wmove(g_window, row, column);
  curses().waddnstr(g_window, text.c_str(), static_cast<int>(std::min<size_t>(text.size(), 8192)));
}

void TerminalScreen::show() {
  curses().wnoutrefresh(g_window);
  curses().doupdate();
}

ScreenKey TerminalScreen::wait(int other, double seconds) {
  if (const ScreenKey key = next_key(); key.kind != ScreenKey::Kind::none) return key;
  pollfd polled[2] = {{STDIN_FILENO, POLLIN, 0}, {other, POLLIN, 0}};
  const int ready =
      poll(polled, other >= 0 ? 2 : 1, static_cast<int>(std::max(seconds, 0.0) * 1000));
  // A signal, a new size among them: ncurses has it as a key.
  if (ready < 0 && errno != EINTR) return {ScreenKey::Kind::closed, {}};
  if ((polled[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0 &&
      (polled[0].revents & POLLIN) == 0)
    return {ScreenKey::Kind::closed, {}};
  return next_key();
}

}  // namespace cufit::host
