// SPDX-License-Identifier: Apache-2.0
#include "cli/case_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace cufit::cli_tests {

namespace {

constexpr std::string_view k_separator = "--- ";
constexpr std::string_view k_no_newline = "\\ no newline at end";
constexpr std::array<std::string_view, 5> k_sections = {"columns", "script", "stdout", "stderr",
                                                        "exit"};
constexpr size_t k_script = 1;  // of k_sections

struct Line {
  size_t number = 0;  // from 1
  size_t begin = 0;   // in the text
  std::string_view text;
};

struct Section {
  size_t kind = 0;         // of k_sections
  std::string_view extra;  // what follows the name in its line
  size_t number = 0;       // of that line
  std::vector<Line> lines;
};

bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

std::string at(size_t number, const std::string& what) {
  return "line " + std::to_string(number) + ": " + what;
}

int hex_digit(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const size_t place = digits.find(c);
  return place == digits.npos ? -1 : static_cast<int>(place);
}

// Appends the bytes of one line of an escaped section; false: an escape that nobody knows.
bool append_unescaped(std::string& out, std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      out += line[i];
      continue;
    }
    const char kind = ++i < line.size() ? line[i] : ' ';
    if (kind == 'r') {
      out += '\r';
    } else if (kind == 't') {
      out += '\t';
    } else if (kind == 'e') {
      out += '\033';
    } else if (kind == '\\' || kind == '-') {
      out += kind;
    } else if (kind == 'x' && i + 2 < line.size() && hex_digit(line[i + 1]) >= 0 &&
               hex_digit(line[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(line[i + 1]) * 16 + hex_digit(line[i + 2]));
      i += 2;
    } else {
      return false;
    }
  }
  return true;
}

// The bytes that the lines of a section stand for.
bool read_lines(const Section& section, std::string& out, std::string& problem) {
  if (!section.extra.empty() && section.extra != "escaped") {
    problem = at(section.number, "\"" + std::string(section.extra) + "\" is not \"escaped\"");
    return false;
  }
  for (const Line& line : section.lines) {
    std::string_view text = line.text;
    if (text == k_no_newline) {
      if (line.number != section.lines.back().number || out.empty()) {
        problem =
            at(line.number, "\"" + std::string(text) + "\" stands after a section's last line");
        return false;
      }
      out.pop_back();
      return true;
    }
    if (section.extra == "escaped") {
      if (!append_unescaped(out, text)) {
        problem = at(line.number, R"(an escape is none of \r \t \e \\ \- \x00 to \xff)");
        return false;
      }
    } else {
      if (text.substr(0, 1) == "\\") {
        text.remove_prefix(1);
        if (text.empty() || !is_one_of(text[0], "\\-")) {
          problem = at(line.number, R"(a line that begins with "\" is written with "\\")");
          return false;
        }
      }
      out += text;
    }
    out += '\n';
  }
  return true;
}

bool read_number(const Section& section, int& out, int limit, std::string& problem) {
  const char* end = section.extra.data() + section.extra.size();
  const auto [stop, error] = std::from_chars(section.extra.data(), end, out);
  const std::string name(k_sections[section.kind]);
  if (error != std::errc() || stop != end || out < 1 || out > limit) {
    problem = at(section.number, "\"--- " + name + "\" has a number from 1 to " +
                                     std::to_string(limit) + " behind it");
    return false;
  }
  if (!section.lines.empty()) {
    problem = at(section.lines[0].number, "\"--- " + name + "\" has no lines below it");
    return false;
  }
  return true;
}

std::optional<std::vector<Line>> split(std::string_view text, std::string& problem) {
  std::vector<Line> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == text.npos) {
      problem = at(lines.size() + 1, "no newline ends the file: it was cut off");
      return std::nullopt;
    }
    lines.push_back({lines.size() + 1, begin, text.substr(begin, end - begin)});
    if (end > begin && text[end - 1] == '\r') {
      problem = at(lines.size(), R"(a carriage return ends it; where it is meant write "\r" )"
                                 R"(below "--- stdout escaped")");
      return std::nullopt;
    }
    begin = end + 1;
  }
  return lines;
}

// "--- stdout escaped" as a section without lines.
std::optional<Section> begin_section(const Line& line, std::string& problem) {
  std::string_view name = line.text.substr(k_separator.size());
  Section section;
  section.number = line.number;
  if (const size_t space = name.find(' '); space != name.npos) {
    section.extra = name.substr(space + 1);
    name = name.substr(0, space);
  }
  const auto found = std::find(k_sections.begin(), k_sections.end(), name);
  if (found == k_sections.end()) {
    problem = at(line.number, "\"" + std::string(line.text) +
                                  R"(" is no section; text that begins so is written "\---")");
    return std::nullopt;
  }
  section.kind = static_cast<size_t>(found - k_sections.begin());
  return section;
}

// Sections in the order of k_sections, each at most once.
std::optional<std::vector<Section>> sections_of(const std::vector<Line>& lines,
                                                std::string& problem) {
  std::vector<Section> out;
  for (const Line& line : lines) {
    if (line.text.substr(0, k_separator.size()) == k_separator) {
      std::optional<Section> section = begin_section(line, problem);
      if (!section) return std::nullopt;
      if (!out.empty() && section->kind <= out.back().kind) {
        problem = at(line.number,
                     "the order is columns, script, stdout, stderr, exit, each at most once");
        return std::nullopt;
      }
      out.push_back(std::move(*section));
    } else if (!out.empty()) {
      out.back().lines.push_back(line);
    } else if (!line.text.empty() && line.text[0] != '#') {
      problem = at(line.number, "only comments (#) stand before the first \"--- \" line");
      return std::nullopt;
    }
  }
  return out;
}

bool is_utf8(std::string_view text) {
  int wanted = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (wanted > 0) {
      if (byte >> 6 != 2) return false;
      --wanted;
    } else if (byte >= 0x80) {
      wanted = byte >> 5 == 6 ? 1 : byte >> 4 == 14 ? 2 : byte >> 3 == 30 ? 3 : 0;
      if (wanted == 0) return false;
    }
  }
  return wanted == 0;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string escaped(std::string_view text) {
  constexpr std::string_view digits = "0123456789abcdef";
  const bool readable = is_utf8(text);
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += c;
    } else if (is_one_of(c, "\r\t\033\\")) {
      out += '\\';
      out += c == '\r' ? 'r' : c == '\t' ? 't' : c == '\033' ? 'e' : '\\';
    } else if (is_control(c) || (byte >= 0x80 && !readable)) {
      out += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    } else {
      out += c;
    }
  }
  return out;
}

// A section with its header; nothing where nothing is expected.
std::string section_text(size_t kind, std::string_view bytes) {
  if (bytes.empty()) return "";
  const bool plain = is_utf8(bytes) && std::none_of(bytes.begin(), bytes.end(), [](char c) {
                       return is_control(c) && c != '\n' && c != '\t';
                     });
  const std::string body = plain ? std::string(bytes) : escaped(bytes);
  std::string out = std::string(k_separator) + std::string(k_sections[kind]);
  out += plain ? "\n" : " escaped\n";
  for (size_t begin = 0; begin < body.size();) {
    const size_t end = std::min(body.find('\n', begin), body.size());
    const std::string_view line = std::string_view(body).substr(begin, end - begin);
    const bool looks_like_ours = line.substr(0, 3) == "---" || (plain && line.substr(0, 1) == "\\");
    if (looks_like_ours) out += '\\';
    out += line;
    out += '\n';
    begin = end + 1;
  }
  if (body.back() != '\n') out += std::string(k_no_newline) + "\n";
  return out;
}

}  // namespace

std::optional<CaseFile> parse_case(std::string_view text, std::string& problem) {
  const auto lines = split(text, problem);
  if (!lines) return std::nullopt;
  const auto sections = sections_of(*lines, problem);
  if (!sections) return std::nullopt;
  CaseFile file;
  size_t head_lines = 0;
  for (const Section& section : *sections) {
    const std::string_view name = k_sections[section.kind];
    const bool read = name == "columns"  ? read_number(section, file.columns, 500, problem)
                      : name == "exit"   ? read_number(section, file.exit_code, 255, problem)
                      : name == "script" ? read_lines(section, file.script, problem)
                      : name == "stdout" ? read_lines(section, file.out, problem)
                                         : read_lines(section, file.err, problem);
    if (!read) return std::nullopt;
    if (section.kind <= k_script) head_lines = section.number + section.lines.size();
  }
  if (file.script.empty()) {
    problem = at(lines->size(), "there is no \"--- script\" with lines below it");
    return std::nullopt;
  }
  file.head = text.substr(0, head_lines < lines->size() ? (*lines)[head_lines].begin : text.size());
  return file;
}

std::string case_text(const CaseFile& file) {
  std::string out = file.head + section_text(2, file.out) + section_text(3, file.err);
  if (file.exit_code != 0) out += "--- exit " + std::to_string(file.exit_code) + "\n";
  return out;
}

}  // namespace cufit::cli_tests
