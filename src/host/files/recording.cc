// SPDX-License-Identifier: Apache-2.0
#include "host/files/recording.h"

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "facts/collect_env_facts.h"
#include "facts/facts_json.h"
#include "formats/prose/text_decoder.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"

namespace cufit::host {
namespace {

constexpr size_t k_recording_limit =
    64u << 20;  // ours are below 1 MB; a pasted log is cut earlier by its reader

Error recording_error(const std::string& path, const char* doing, int number) {
  Code code = number == EACCES || number == EPERM || number == EROFS ? Code::no_permission
              : number == ENOENT                                     ? Code::not_found
                                                                     : Code::io;
  return fail(code, format("`{}`: {}: {}", path, doing, std::strerror(number)));
}

// What `>` of a Windows shell writes begins with a mark of its order of bytes.
std::string as_utf8(std::string bytes) {
  const bool marked = starts_with(bytes, "\xef\xbb\xbf") || starts_with(bytes, "\xff\xfe") ||
                      starts_with(bytes, "\xfe\xff");
  if (!marked) return bytes;
  formats::TextDecoder decoder;
  std::string out;
  decoder.add(bytes, out);
  decoder.finish(out);
  return out;
}

}  // namespace

Result<void> save_recording(const std::string& path, const facts::Facts& facts) {
  const std::string text = facts::facts_to_json(facts) + "\n";
  if (is_planted_link(path)) return recording_error(path, "cannot be written", EACCES);
  const bool there = path_exists(path);
  if (there && !is_file(path)) return write_whole_file(path, text);  // a pipe, a device
  const int why =
      replace_file(there ? resolved_path(path) : path, text, {.mode = std::nullopt, .sync = true});
  if (why == 0) return {};
  return recording_error(path, "cannot be written", why);
}

Result<facts::Facts> load_facts(const Host& host, const std::string& path) {
  CUFIT_TRY(bytes, host.read_file(path, k_recording_limit));
  const std::string text = as_utf8(std::move(bytes));
  std::string_view start = trim(text);
  if (start.empty()) return fail(Code::malformed, format("`{}`: is empty", path));
  if (start.front() != '{') return facts::facts_from_dump(text, path);
  CUFIT_TRY(facts, facts::facts_from_json(text, path));
  if (facts.origin == "live") facts.origin = "recording";
  return facts;
}

std::vector<facts::PrivateName> private_names(const Host& host) {
  std::vector<facts::PrivateName> out;
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (auto value = host.variable(variable)) out.push_back({*value, "user"});
  }
  if (auto home = host.variable("HOME")) {
    while (home->size() > 1 && home->back() == '/') home->pop_back();
    out.push_back({*home, "user"});
    size_t slash = home->rfind('/');
    if (slash != std::string::npos && *home != "/root")
      out.push_back({home->substr(slash + 1), "user"});
  }
  // A full name also by its parts: "node17.gpu.acme.com" is node17 of acme.com.
  const auto add_host = [&](const std::string& name) {
    out.push_back({name, "host"});
    const std::vector<std::string_view> labels = split(name, '.');
    if (labels.size() < 2) return;
    out.push_back({std::string(labels[0]), "host"});
    for (size_t first = 1; first + 1 < labels.size(); ++first) {
      std::string domain(labels[first]);
      for (size_t i = first + 1; i < labels.size(); ++i) domain += "." + std::string(labels[i]);
      out.push_back({domain, "domain"});
    }
  };
  if (auto value = host.variable("HOSTNAME")) add_host(*value);
  if (auto value = host.read_file("/proc/sys/kernel/hostname", 4096))
    add_host(std::string(trim(*value)));
  return out;
}

}  // namespace cufit::host
