// SPDX-License-Identifier: Apache-2.0
#include "formats/model/pack_jobs.h"

#include <algorithm>

#include "base/format.h"
#include "base/memory_size.h"
#include "formats/toml_text.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_job_name_bytes = 200, k_most_path_bytes = 4096;
constexpr size_t k_most_words = 1000, k_most_command_bytes = 64 << 10;

class JobReader {
 public:
  JobReader(const TomlDocument& document, const TomlValue& table, size_t most)
      : document_(document), table_(table), most_(most) {}

  Result<JobEntry> read() {
    out_.line = table_.line;
    for (const TomlMember& member : table_.members)
      if (Result<void> done = take(member.name, member.value); !done) return done.error();
    const int sizes = (out_.size ? 1 : 0) + (out_.total ? 1 : 0) +
                      (out_.prediction.empty() ? 0 : 1) + (out_.snapshot.empty() ? 0 : 1) +
                      (out_.fit ? 1 : 0);
    if (sizes == 0)
      return document_.wrong(table_,
                             "the job has no size: `size`, `total`, `prediction`, `snapshot`, or "
                             "`fit = true`");
    if (sizes > 1)
      return document_.wrong(table_,
                             "the job has more than one of `size`, `total`, `prediction`, "
                             "`snapshot` and `fit`");
    if (out_.fit && out_.command.empty())
      return document_.wrong(table_, "`fit = true` needs the `command` that is traced");
    return std::move(out_);
  }

 private:
  Result<void> take(const std::string& key, const TomlValue& value) {
    if (key == "name") return take_name(value);
    if (key == "prediction") return take_text(key, value, k_most_path_bytes, out_.prediction);
    if (key == "snapshot") return take_text(key, value, k_most_path_bytes, out_.snapshot);
    if (key == "size") return take_size(key, value, out_.size);
    if (key == "total") return take_size(key, value, out_.total);
    if (key == "command") return take_command(value);
    if (key == "fit") {
      if (value.kind != TomlValue::Kind::boolean)
        return document_.wrong(value, "`fit` is true or false");
      out_.fit = value.integer != 0;
      return {};
    }
    if (key == "count") return take_number(key, value, most_, out_.count);
    if (key == "gpus") return take_number(key, value, k_most_gpus_of_job, out_.gpus);
    return document_.wrong(value, format("a job has no `{}`", key));
  }

  // One line: behind a second one would stand what looks like a command of the plan.
  Result<void> take_name(const TomlValue& value) {
    if (Result<void> done = take_text("name", value, k_most_job_name_bytes, out_.name); !done)
      return done;
    std::replace_if(
        out_.name.begin(), out_.name.end(),
        [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
    return {};
  }

  Result<void> take_number(const std::string& key, const TomlValue& value, size_t most,
                           uint32_t& out) {
    if (value.kind != TomlValue::Kind::integer || value.integer < 1 ||
        value.integer > static_cast<int64_t>(most))
      return document_.wrong(value, format("`{}` is a number from 1 to {}", key, most));
    out = static_cast<uint32_t>(value.integer);
    return {};
  }

  Result<void> take_text(const std::string& key, const TomlValue& value, size_t most,
                         std::string& out) {
    if (!value.is_text() || value.text.empty() || value.text.size() > most ||
        value.text.find('\0') != std::string::npos)
      return document_.wrong(value, format("`{}` is a text of 1 to {} bytes", key, most));
    out = value.text;
    return {};
  }

  Result<void> take_size(const std::string& key, const TomlValue& value,
                         std::optional<uint64_t>& out) {
    std::string text = value.text;
    if (value.kind == TomlValue::Kind::integer) text = std::to_string(value.integer);
    if (value.kind == TomlValue::Kind::real && value.real > 0 && value.real < 1e9)
      text = std::to_string(value.real);
    out = parse_memory_size(text);
    if (!out)
      return document_.wrong(value,
                             format("`{}` is a size in GiB such as 22.5, or \"800MiB\"", key));
    return {};
  }

  Result<void> take_command(const TomlValue& value) {
    if (value.is_text()) {
      std::optional<std::vector<std::string>> words;
      if (value.text.size() <= k_most_command_bytes) words = command_words(value.text);
      if (!words || words->empty() || words->size() > k_most_words)
        return document_.wrong(value,
                               "`command` is one program with its arguments; what needs a shell is "
                               "written [\"sh\", \"-c\", \"...\"]");
      out_.command = std::move(*words);
      return {};
    }
    if (!value.is_texts() || value.items.empty() || value.items.size() > k_most_words)
      return document_.wrong(value, "`command` is a text or a list of texts");
    size_t bytes = 0;
    for (const TomlValue& item : value.items) {
      bytes += item.text.size();
      if (bytes > k_most_command_bytes || item.text.find('\0') != std::string::npos)
        return document_.wrong(item, "`command` is a text or a list of texts");
      out_.command.push_back(item.text);
    }
    if (out_.command[0].empty())
      return document_.wrong(value, "`command` is a text or a list of texts");
    return {};
  }

  const TomlDocument& document_;
  const TomlValue& table_;
  const size_t most_;
  JobEntry out_;
};

}  // namespace

Result<std::vector<JobEntry>> parse_pack_jobs(std::string_view text, const std::string& file,
                                              size_t most) {
  if (text.size() > k_pack_jobs_most_bytes)
    return fail(Code::malformed, format("{}: larger than 1 MiB", file));
  CUFIT_TRY(document, parse_toml(text, file));
  const TomlValue* jobs = nullptr;
  for (const TomlMember& member : document.root.members) {
    if (member.name != "job")
      return document.wrong(member.value,
                            format("`{}` is not known: jobs are written [[job]]", member.name));
    jobs = &member.value;
  }
  if (jobs == nullptr || jobs->kind != TomlValue::Kind::array || jobs->items.empty())
    return fail(Code::malformed, format("{}: no [[job]] in it", file));
  std::vector<JobEntry> out;
  size_t all = 0;
  for (const TomlValue& table : jobs->items) {
    if (!table.is_table()) return document.wrong(table, "a job is a table: [[job]]");
    CUFIT_TRY(job, JobReader(document, table, most).read());
    all += job.count;
    if (all > most) return document.wrong(table, format("more than {} jobs", most));
    out.push_back(std::move(job));
  }
  return out;
}

std::optional<std::vector<std::string>> command_words(std::string_view text) {
  std::vector<std::string> out;
  std::string word;
  bool inside = false;  // of a word, which may be empty: ''
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\'' || c == '"') {
      inside = true;
      size_t at = i + 1;
      for (; at < text.size() && text[at] != c; ++at) {
        if (c == '"' && (text[at] == '$' || text[at] == '`')) return std::nullopt;
        if (c == '"' && text[at] == '\\' && at + 1 < text.size() &&
            std::string_view("\"\\$`").find(text[at + 1]) != std::string_view::npos)
          ++at;
        word += text[at];
      }
      if (at == text.size()) return std::nullopt;
      i = at;
    } else if (c == '\\') {
      if (i + 1 == text.size() || text[i + 1] == '\n') return std::nullopt;
      inside = true;
      word += text[++i];
    } else if (c == ' ' || c == '\t') {
      if (inside) out.push_back(std::move(word));
      word.clear();
      inside = false;
    } else if (c == '\0' || c == '\n' || c == '\r' ||
               std::string_view("|&;<>()$`*?[]{}!#~").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      inside = true;
      word += c;
    }
  }
  if (inside) out.push_back(std::move(word));
  return out;
}

}  // namespace cufit::formats
