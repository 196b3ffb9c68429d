// SPDX-License-Identifier: Apache-2.0
#include "formats/prose/shell_words.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/text_words.h"

namespace cufit::formats {
namespace {

constexpr size_t k_max_variables = 500, k_shell_words_max_runs = 50, k_max_libraries = 500;
constexpr size_t k_shell_words_max_line = 8192, k_shell_words_max_value = 2048;
constexpr size_t k_shell_words_npos = std::string_view::npos;

// Capitals, digits and bars: what the variables that matter look like, and code's "x=1" does not.
size_t variable_name(std::string_view text) {
  size_t end = 0;
  while (end < text.size() && end < 100 &&
         ((text[end] >= 'A' && text[end] <= 'Z') || text[end] == '_' ||
          (end > 0 && is_digit(text[end]))))
    ++end;
  return end >= 2 ? end : 0;
}

// The value of an assignment at the start of `text`: to the closing quote or the next blank.
std::string_view value_at(std::string_view text, size_t* length) {
  if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
    size_t close = text.find(text[0], 1);
    if (close != k_shell_words_npos) {
      *length = close + 1;
      return text.substr(1, close - 1);
    }
  }
  size_t end = std::min(text.find_first_of(" \t;|&\"'`"), text.size());
  *length = end;
  return text.substr(0, end);
}

class ShellWordsReader {
 public:
  ShellWords read(std::span<const TextLine> lines) {
    for (const TextLine& line : lines) {
      std::string_view text = trim(std::string_view(line.text).substr(0, k_shell_words_max_line));
      number_ = line.number;
      // A command that goes on behind a backslash is one command.
      if (!open_.empty() || ends_with(text, "\\")) {
        if (open_.empty()) open_line_ = number_;
        bool more = ends_with(text, "\\");
        open_ += std::string(more ? text.substr(0, text.size() - 1) : text) + " ";
        if (more && open_.size() < k_shell_words_max_line) continue;
        number_ = open_line_;
        std::string whole = std::move(open_);
        open_.clear();
        take(trim(std::string_view(whole).substr(0, k_shell_words_max_line)));
        continue;
      }
      take(text);
    }
    if (!open_.empty()) number_ = open_line_, take(trim(open_));
    return std::move(out_);
  }

 private:
  void take(std::string_view line) {
    if (echo_line_ != 0) echoed(line);
    if (line.size() < 4) return;
    loader(line);
    line = without_prompt(line);
    dockerfile(line);
    if (size_t at = run_command(line); at != k_shell_words_npos) container(line, at);
    variables(line);
    if (size_t at = line.find("echo $"); at != k_shell_words_npos && line.size() < 200) {
      size_t end = variable_name(line.substr(at + 6));
      if (end && at + 6 + end == line.size())
        echo_ = line.substr(at + 6, end), echo_line_ = number_;
    }
  }

  static std::string_view without_prompt(std::string_view line) {
    for (std::string_view mark : {"$ ", "# ", "> ", "% "}) {
      size_t at = line.find(mark);
      if (at != k_shell_words_npos && (at == 0 || at < 60) &&
          (at == 0 || line.substr(0, at).find('=') == k_shell_words_npos) &&
          (at == 0 || contains(line.substr(0, at), "@") || contains(line.substr(0, at), ")")))
        return trim(line.substr(at + 2));
    }
    return line;
  }

  void add(std::string_view name, std::string_view value, std::string_view how) {
    if (ends_with(value, ":") && how == "command" && !contains(name, "PATH")) return;  // prose
    if (out_.variables.size() >= k_max_variables) return;
    out_.variables.push_back(
        {std::string(name), printable(value, k_shell_words_max_value), std::string(how), number_});
  }

  // The line behind `echo $LD_LIBRARY_PATH`.
  void echoed(std::string_view line) {
    if (number_ == echo_line_ + 1 && line.find(' ') == k_shell_words_npos) add(echo_, line, "echo");
    echo_line_ = 0;
  }

  // "ENV X=1 Y=2", "ENV X 1"
  void dockerfile(std::string_view line) {
    if (!starts_with(line, "ENV ")) return;
    std::string_view rest = trim(line.substr(4));
    size_t end = variable_name(rest);
    if (end && end < rest.size() && rest[end] == ' ')
      add(rest.substr(0, end), trim(rest.substr(end)), "dockerfile");
  }

  void variables(std::string_view line) {
    if (starts_with(line, "unset ")) {
      for (std::string_view word : words_of(line.substr(6), 32))
        if (variable_name(word) == word.size()) add(word, "", "unset");
      return;
    }
    bool first = true;  // nothing but assignments before this word: "X=1 Y=2 python main.py"
    std::string_view before;
    for (size_t at = 0; at < line.size();) {
      size_t start = line.find_first_not_of(" \t;&|`(", at);
      if (start == k_shell_words_npos) return;
      std::string_view rest = line.substr(start);
      if (rest[0] == '"' || rest[0] == '\'') rest.remove_prefix(1), ++start;
      size_t end = variable_name(rest);
      if (end && end + 1 < rest.size() && rest[end] == '=' && rest[end + 1] != '=' &&
          rest[end + 1] != ' ') {
        size_t length = 0;
        std::string_view value = value_at(rest.substr(end + 1), &length);
        if (std::string_view how = how_of(line, before, first, start + end + 1 + length);
            !how.empty())
          add(rest.substr(0, end), value, how);
        at = start + end + 1 + std::max<size_t>(length, 1);
        before = rest.substr(0, end);
        continue;
      }
      size_t stop = std::min(line.find_first_of(" \t", start), line.size());
      before = line.substr(start, stop - start);
      bool prefix = before == "export" || before == "env" || before == "sudo" || before == "set" ||
                    before == "ENV" || before == "time" || before == "setx";
      first = (first && prefix) || (stop > start && line[stop - 1] == ';') || before == "&&" ||
              before == ";";
      at = stop + 1;
    }
  }
  static std::string_view how_of(std::string_view line, std::string_view before, bool first,
                                 size_t end) {
    if (before == "export") return "export";
    if (before == "set" || before == "setx") return "set";
    if (before == "ENV" || starts_with(line, "ENV ")) return "dockerfile";
    if (before == "-e" || before == "--env") return "docker";
    if (starts_with(line, "export ")) return "export";
    if (first) return end >= line.size() ? "line" : "command";
    return {};  // prose: "works with X=1"
  }

  static size_t run_command(std::string_view line) {
    for (std::string_view tool :
         {"docker run ", "podman run ", "docker container run ", "nerdctl run "})
      if (size_t at = line.find(tool); at != k_shell_words_npos) return at + tool.size();
    return k_shell_words_npos;
  }

  // Options up to the image: the first word that is no option and no option's value.
  void container(std::string_view line, size_t at) {
    if (out_.containers.size() >= k_shell_words_max_runs) return;
    DockerRun run;
    run.line = number_;
    run.nvidia_docker = contains(line.substr(0, at), "nvidia-docker");
    std::vector<std::string_view> words = words_of(line.substr(at), 200);
    for (size_t i = 0; i < words.size(); ++i) {
      std::string_view word = words[i];
      if (word == "...") continue;
      if (word[0] != '-') {
        while (!word.empty() && contains("'\"`),;", word.substr(word.size() - 1)))
          word.remove_suffix(1);
        run.image = printable(word, 200);
        break;
      }
      size_t equals = word.find('=');
      std::string_view name = word.substr(0, equals);
      std::string_view value =
          equals == k_shell_words_npos ? std::string_view() : word.substr(equals + 1);
      if (equals == k_shell_words_npos && takes_value(name) && i + 1 < words.size())
        value = words[++i];
      if (value.size() > 1 && (value[0] == '"' || value[0] == '\''))
        value = value.substr(1, value.size() - 2);
      option(run, name, printable(value, 200));
    }
    out_.containers.push_back(std::move(run));
  }
  static bool takes_value(std::string_view name) {
    for (std::string_view flag :
         {"--rm", "--privileged", "--init", "--detach", "--interactive", "--tty", "--read-only",
          "--no-healthcheck", "--oom-kill-disable", "--publish-all"})
      if (name == flag) return false;
    if (starts_with(name, "--")) return true;
    return name.find_first_not_of("-itdP") !=
           k_shell_words_npos;  // "-it", "-d"; "-v" and "-p" take one
  }
  static void option(DockerRun& run, std::string_view name, std::string value) {
    if (name == "--gpus")
      run.gpus = std::move(value);
    else if (name == "--runtime")
      run.runtime = std::move(value);
    else if (name == "--shm-size")
      run.shm_size = std::move(value);
    else if (name == "--ipc")
      run.ipc = std::move(value);
    else if (name == "--privileged")
      run.privileged = true;
    else if (name == "--device" && contains(value, "nvidia"))
      run.device_nodes = true;
  }

  // "	libcublas.so.12 => /usr/lib/libcublas.so.12 (0x00007)", "libfoo.so => not found",
  // "     1234:	calling init: /lib/libcudnn.so.9"
  void loader(std::string_view line) {
    if (out_.libraries.size() >= k_max_libraries || line.find("lib") == k_shell_words_npos) return;
    LoaderLine out;
    out.line = number_;
    if (size_t at = line.find("calling init: "); at != k_shell_words_npos) {
      std::vector<std::string_view> words = words_of(line.substr(at + 14), 1);
      if (words.empty() || words[0][0] != '/' || words[0].size() > 1000) return;
      out.path = words[0];
      out.name = words[0].substr(words[0].rfind('/') + 1);
      out.init = true;
    } else if (size_t arrow = line.find(" => "); arrow != k_shell_words_npos) {
      std::vector<std::string_view> left = words_of(line.substr(0, arrow), 16);
      std::vector<std::string_view> right = words_of(line.substr(arrow + 4), 2);
      if (left.empty() || right.empty() || !contains(left.back(), ".so")) return;
      if (left.back().size() > 200 || right[0].size() > 1000) return;
      bool none = right[0] == "not" && right.size() > 1 && starts_with(right[1], "found");
      if (!none && right[0][0] != '/') return;
      out.name = left.back();
      if (!none) out.path = right[0];
    } else {
      return;
    }
    out_.libraries.push_back(std::move(out));
  }

  ShellWords out_;
  std::string open_, echo_;
  uint64_t open_line_ = 0, echo_line_ = 0, number_ = 0;
};

}  // namespace

uint64_t docker_size(std::string_view text) {
  std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  std::optional<uint64_t> number = parse_uint(digits);
  std::string unit = lower(text.substr(digits.size()));
  if (!number || *number > (uint64_t{1} << 40)) return 0;
  if (ends_with(unit, "b")) unit.pop_back();
  if (ends_with(unit, "i")) unit.pop_back();
  if (unit.empty()) return *number;
  uint64_t factor = unit == "k" ? 1024 : unit == "m" ? 1024 * 1024 : unit == "g" ? 1u << 30 : 0;
  return *number > (uint64_t{1} << 30) ? 0 : *number * factor;
}

ShellWords parse_shell_words(std::span<const TextLine> lines) {
  return ShellWordsReader().read(lines);
}

}  // namespace cufit::formats
