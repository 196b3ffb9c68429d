// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/gpu_words.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_names = 16;

// Boards of data centres and workstations that are called by their chip's letter and number alone.
constexpr std::string_view k_boards[] = {
    "A100X", "A100",  "A10G",  "A10M",  "A10",   "A16",   "A30X", "A30",   "A40",   "A800",
    "A6000", "A5500", "A5000", "A4500", "A4000", "A2000", "H100", "H200",  "H800",  "H20",
    "GH200", "B100",  "B200",  "B300",  "GB200", "GB300", "GB10", "L40S",  "L40",   "L40G",
    "L20",   "L4",    "T4G",   "T4",    "V100S", "V100",  "P100", "P40",   "K80",   "K40m",
    "K40c",  "K40",   "K20X",  "K20m",  "K20",   "M60",   "M40",  "T1000", "T1200", "T2000"};
// Too short to mean a board without the maker's word before them ("P4" is also a power state).
constexpr std::string_view k_branded_boards[] = {"A2", "L2",   "P4",   "P6",   "M10", "M6",
                                                 "M4", "T400", "T500", "T600", "T550"};
constexpr std::string_view k_counts[] = {"two", "three", "four", "five", "six", "seven", "eight"};

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

class Matcher {
 public:
  explicit Matcher(std::string_view line) : line_(line) {}

  std::vector<GpuWords> all() {
    std::vector<GpuWords> found;
    size_t at = 0;
    while (at < line_.size() && found.size() < k_max_names) {
      size_t end = begins(at) ? match(at) : 0;
      if (end == 0) {
        ++at;
        continue;
      }
      GpuWords gpu;
      gpu.start = at, gpu.end = end;
      for (char c : line_.substr(at, end - at)) {
        if (c == ' ' && !gpu.name.empty() && gpu.name.back() == ' ') continue;
        gpu.name += c == '_' ? ' ' : c;
      }
      gpu.count = count_before(at);
      if (gpu.count == 0) gpu.count = count_behind(end);
      gpu.memory_gb = memory_behind(end);
      found.push_back(std::move(gpu));
      at = end;
    }
    return found;
  }

 private:
  // A name begins a word, or stands right behind a count: "8xH100".
  bool begins(size_t at) const {
    if (!is_name_char(line_[at])) return false;
    if (at == 0 || !is_name_char(line_[at - 1])) return true;
    return (line_[at - 1] == 'x' || line_[at - 1] == 'X') && at >= 2 && is_digit(line_[at - 2]);
  }
  bool ends(size_t at) const { return at >= line_.size() || !is_name_char(line_[at]); }
  // One separator at most: "RTX 3090", "RTX-3090", "RTX_3090", "RTX3090".
  size_t gap(size_t at) const {
    while (at + 1 < line_.size() && line_[at] == ' ' && line_[at + 1] == ' ') ++at;
    return at < line_.size() && (line_[at] == ' ' || line_[at] == '-' || line_[at] == '_') ? at + 1
                                                                                           : at;
  }
  size_t word(size_t at, std::string_view text) const {  // end of `text` at `at`, or 0
    if (at + text.size() > line_.size()) return 0;
    return equal_words(line_.substr(at, text.size()), text) ? at + text.size() : 0;
  }
  size_t optional(size_t at, std::string_view text) const {  // behind a gap, as a whole word
    size_t end = word(gap(at), text);
    return end && ends(end) ? end : at;
  }
  size_t digits(size_t at, size_t least, size_t most) const {
    size_t end = at;
    while (end < line_.size() && is_digit(line_[end])) ++end;
    return end - at >= least && end - at <= most ? end : 0;
  }
  size_t plural(size_t at) const {  // "4090s" ends before the s
    return at < line_.size() && line_[at] == 's' && ends(at + 1) ? at + 1 : at;
  }

  size_t match(size_t at) {
    // First letters of brands, families and "Jetson", capitals of boards, digits of bare numbers.
    const char first = line_[at];
    if (!is_digit(first) && !is_capital(first) &&
        std::string_view("ngtqrmj").find(first) == std::string_view::npos)
      return 0;
    size_t start = at;
    bool branded = false, numbered = false;
    for (std::string_view brand : {"nvidia", "geforce", "tesla", "quadro"}) {
      if (size_t end = word(at, brand)) {
        at = gap(end);
        if (at == end) return 0;
        branded = true;
        numbered = brand != "nvidia";  // "NVIDIA 470" is a driver
      }
    }
    if (at >= line_.size()) return 0;
    for (size_t end : {rtx(at), titan(at), jetson(at), board(at, branded)})
      if (end) return end;
    if (branded) return numbered ? branded_number(at) : 0;
    return start == at ? bare_number(at) : 0;
  }

  size_t rtx(size_t at) const {
    for (std::string_view family : {"rtx", "gtx", "gts", "gt", "mx"}) {
      size_t end = word(at, family);
      if (!end) continue;
      end = gap(end);
      if (size_t pro = word(end, "pro"); pro && family == "rtx") {
        size_t number = digits(gap(pro), 3, 4);
        return number && ends(number) ? edition(number) : 0;
      }
      if (word(end, "titan")) return titan(at);
      size_t letter = end < line_.size() && is_letter(line_[end]) ? end + 1 : end;
      if (letter != end && (family != "rtx" || (line_[end] != 'A' && line_[end] != 'a'))) return 0;
      size_t number = digits(letter, 3, 4);
      return number ? suffixes(number) : 0;
    }
    return 0;
  }

  size_t edition(size_t at) const {
    for (std::string_view part : {"Blackwell", "Max-Q", "Workstation", "Server", "Edition"})
      at = optional(at, part);
    return at;
  }

  // "5060ti16g": the size of the memory, written onto the name.
  bool size_follows(size_t at) const {
    const size_t number = digits(at, 1, 2);
    const size_t gb = number ? std::max(word(number, "gb"), word(number, "g")) : 0;
    return gb && ends(gb);
  }

  // What follows the number: "Ti", "SUPER", "M", "Laptop GPU", "Ada Generation".
  size_t suffixes(size_t at) const {
    size_t end = at;
    if (size_t ti = word(gap(end), "ti");
        ti && (ends(ti) || word(ti, "super") || plural(ti) != ti || size_follows(ti)))
      end = ti;
    if (size_t super = word(gap(end), "super"); super && (ends(super) || size_follows(super)))
      end = super;
    if (end < line_.size() && (line_[end] == 'M' || line_[end] == 'D' || line_[end] == 'm') &&
        ends(end + 1))
      ++end;
    for (std::string_view part : {"SFF", "Ada", "Generation", "Laptop", "Mobile", "Max-Q", "GPU"}) {
      if (part == "GPU" && !ends_with_laptop(end)) continue;
      end = optional(end, part);
    }
    return ends(end) || plural(end) != end || (end > at && size_follows(end)) ? end : 0;
  }
  bool ends_with_laptop(size_t at) const {
    return at >= 6 && equal_words(line_.substr(at - 6, 6), "laptop");
  }

  size_t titan(size_t at) const {
    if (size_t gtx = word(at, "gtx")) at = gap(gtx);
    size_t end = word(at, "titan");
    if (!end || end == gap(end)) return 0;
    for (std::string_view model : {"Xp", "X", "V", "RTX", "Black", "Z"}) {
      size_t with = optional(end, model);
      if (with == end) continue;
      if (size_t chip = word(with, " (pascal)")) return chip;
      return with;
    }
    return 0;
  }

  size_t jetson(size_t at) const {
    size_t end = word(at, "jetson");
    if (!end) return 0;
    size_t with = end;
    for (std::string_view model :
         {"AGX", "Orin", "Xavier", "Thor", "TX2", "TX1", "NX", "Nano", "Super"})
      with = optional(with, model);
    return with == end ? 0 : with;
  }

  size_t board(size_t at, bool branded) const {
    // A capital, then a digit ("A100") or another capital and a digit ("GB200").
    const char next = at + 1 < line_.size() ? line_[at + 1] : ' ';
    if (!is_capital(line_[at]) || (!is_digit(next) && !is_capital(next))) return 0;
    for (std::string_view name : k_boards)
      if (size_t end = board_name(at, name)) return end;
    if (!branded) return 0;
    for (std::string_view name : k_branded_boards)
      if (size_t end = board_name(at, name)) return end;
    return 0;
  }
  // Capitals only: "a10" and "t4" are names of variables. Then "-SXM2-16GB", "-PCIE-40GB", " PCIe".
  size_t board_name(size_t at, std::string_view name) const {
    if (line_.substr(at, name.size()) != name) return 0;
    size_t end = at + name.size();
    if (!ends(end) && plural(end) == end) return 0;
    if (end < line_.size() && (line_[end] == '.' || line_[end] == '/') && end + 1 < line_.size() &&
        is_name_char(line_[end + 1]) && line_[end] == '.')
      return 0;  // "L4.py"
    for (std::string_view form :
         {"SXM2", "SXM3", "SXM4", "SXM5", "SXM6", "SXM", "PCIE", "NVL", "HGX"})
      end = optional(end, form);
    if (end < line_.size() && line_[end] == '-') {  // "-40GB", "-80G"
      size_t number = digits(end + 1, 1, 3);
      size_t gb = number ? word(number, "gb") : 0;
      if (number && !gb) gb = word(number, "g");
      if (gb && ends(gb)) end = gb;
    }
    return end;
  }

  // Behind "GeForce" or "Quadro": "940MX", "920M", "P2000", "K620", "3090".
  size_t branded_number(size_t at) const {
    size_t start = at < line_.size() && is_letter(line_[at]) ? at + 1 : at;
    size_t end = digits(start, 3, 4);
    if (!end) return 0;
    for (std::string_view part : {"MX", "M", "A"})
      if (size_t with = word(end, part); with && ends(with)) return with;
    return suffixes(end);
  }

  // "5070Ti", "3090 Ti", "eight 4090s": a number that some GeForce has, and a sign that it is one.
  size_t bare_number(size_t at) const {
    size_t end = digits(at, 4, 4);
    if (!end) return 0;
    int number = std::atoi(std::string(line_.substr(at, 4)).c_str());
    bool model = number % 10 == 0 && number % 100 >= 50 && number % 100 <= 90 && number >= 1050 &&
                 number <= 5090 && (number < 1100 || number >= 1600);
    if (!model) return 0;
    size_t with = suffixes(end);
    if (!with) return 0;
    bool ti = with > end;
    return ti || plural(end) != end || optional(end, "GPU") != end || optional(end, "GPUs") != end
               ? with
               : 0;
  }

  uint32_t count_before(size_t at) const {
    size_t end = at;
    while (end > 0 && line_[end - 1] == ' ') --end;
    std::string_view before = line_.substr(0, end);
    for (std::string_view times : {"x", "X", "*", "\xC3\x97"}) {  // and the sign of multiplication
      if (!ends_with(before, times)) continue;
      before.remove_suffix(times.size());
      while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
      break;
    }
    size_t start = before.size();
    while (start > 0 && is_name_char(before[start - 1])) --start;
    std::string_view number = before.substr(start);
    if (start > 0 && (before[start - 1] == '.' || before[start - 1] == ':')) return 0;
    if (!number.empty() && number.size() <= 2 &&
        number.find_first_not_of("0123456789") == number.npos)
      return static_cast<uint32_t>(std::atoi(std::string(number).c_str()));
    for (size_t i = 0; i < std::size(k_counts); ++i)
      if (equal_words(number, k_counts[i])) return static_cast<uint32_t>(i + 2);
    return 0;
  }

  uint32_t count_behind(size_t at) const {  // "A100 x 8", "A100*8", "RTX 3090 (x2)"
    std::string_view rest = line_.substr(at);
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '(')) rest.remove_prefix(1);
    if (rest.empty()) return 0;
    size_t sign = starts_with(rest, "\xC3\x97") ? 2 : rest[0] == 'x' || rest[0] == '*' ? 1 : 0;
    if (sign == 0) return 0;
    rest.remove_prefix(sign);
    while (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
    std::string_view number = dotted_number_at(rest);
    if (number.empty() || number.size() > 2 || number.find('.') != number.npos) return 0;
    return static_cast<uint32_t>(std::atoi(std::string(number).c_str()));
  }

  uint32_t memory_behind(size_t at) const {  // " 40GB", " (24 GB)", "-80G"
    std::string_view rest = line_.substr(at);
    size_t start = rest.find_first_not_of(" (-/,");
    if (start == std::string_view::npos || start > 3) return 0;
    rest.remove_prefix(start);
    std::string_view number = dotted_number_at(rest);
    if (number.empty() || number.size() > 3 || number.find('.') != number.npos) return 0;
    rest.remove_prefix(number.size());
    if (!rest.empty() && rest[0] == ' ') rest.remove_prefix(1);
    for (std::string_view unit : {"gib", "gb", "g"})
      if (starts_with_word(rest, unit))
        return static_cast<uint32_t>(std::atoi(std::string(number).c_str()));
    return 0;
  }

  std::string_view line_;
};

}  // namespace

std::vector<GpuWords> find_gpu_words(std::string_view line) { return Matcher(line).all(); }

}  // namespace cufit::formats
