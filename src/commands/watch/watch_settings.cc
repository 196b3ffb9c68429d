// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/watch_settings.h"

#include <algorithm>

#include "base/duration.h"
#include "base/format.h"
#include "commands/watch/sample_times.h"
#include "host/files/secret_file.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_receivers = 16;
constexpr size_t k_most_rules_bytes = 1 << 20;
constexpr uint64_t k_least_repeat_s = 60;

// The address behind `@FILE` or `env:NAME`, or `said` itself.
Result<std::string> address_of(const Context& context, const std::string& said) {
  if (starts_with(said, "env:")) {
    const std::optional<std::string> value = context.files.variable(said.substr(4));
    if (!value || value->empty())
      return fail(Code::usage, format("`--notify {}`: the variable is not set", said));
    return *value;
  }
  if (!starts_with(said, "@")) return said;
  if (said.size() == 1)
    return fail(Code::usage, "`--notify @`: the name of a file is missing behind `@`");
  const Result<std::string> text = context.files.read_file(said.substr(1), 64 << 10);
  if (!text) return text.error();
  const std::string_view line = trim(*text);
  if (line.empty()) return fail(Code::usage, format("`--notify {}`: the file is empty", said));
  if (contains(line, "\n"))
    return fail(Code::usage, format("`--notify {}`: the file holds one line, an address", said));
  return std::string(line);
}

// What tells receivers of one host apart: where the address came from, or its place.
std::string origin_of(const WatchRequest& request, size_t place) {
  const std::string& said = request.notify[place];
  if (starts_with(said, "env:") || starts_with(said, "@")) return said;
  return request.notify.size() > 1 ? format("no. {}", place + 1) : std::string();
}

Result<std::vector<watch::WatchRule>> read_rules(const Context& context,
                                                 const WatchRequest& request) {
  if (!request.rules) return watch::alert_rules(context.knowledge);
  CUFIT_TRY(text, context.files.read_file(*request.rules, k_most_rules_bytes));
  CUFIT_TRY(document, formats::parse_toml(text, *request.rules));
  return watch::alert_rules(context.knowledge, document);
}

Result<void> check_together(const WatchRequest& request) {
  if (request.unit && request.test)
    return fail(Code::usage, "`--unit` and `--test` do not go together");
  if (request.from && (request.unit || request.test))
    return fail(Code::usage, "`--from` judges a recording and sends nothing");
  if (request.json && request.test)
    return fail(Code::usage, "`--json` is for alarms, not for `--test`");
  if (request.test && request.notify.empty() && request.exec.empty())
    return fail(Code::usage, "`--test` needs `--notify` or `--exec`");
  if (request.notify.size() + request.exec.size() > k_most_receivers)
    return fail(Code::usage, format("more than {} receivers", k_most_receivers));
  return {};
}

Result<std::string> absolute(const Context& context, const std::string& path) {
  Result<std::string> out = context.files.real_path(path);
  if (!out) return out.error();
  return *out;
}

}  // namespace

Result<WatchSettings> read_watch_settings(const Context& context, const WatchRequest& request) {
  if (Result<void> checked = check_together(request); !checked) return checked.error();
  WatchSettings out;
  CUFIT_TRY(interval, read_interval(request.interval, out.interval_s, k_most_alarm_interval));
  out.interval_s = interval;
  if (request.repeat) {
    const std::optional<uint64_t> seconds = parse_duration(*request.repeat);
    if (!seconds || (*seconds != 0 && *seconds < k_least_repeat_s))
      return fail(Code::usage,
                  format("`--repeat {}`: a time of 1m or more such as 30m, 4h, 1d, or 0 for none",
                         *request.repeat));
    out.times.repeat_s = static_cast<double>(*seconds);
  }
  CUFIT_TRY(rules, read_rules(context, request));
  out.rules = std::move(rules);
  for (size_t i = 0; i < request.notify.size(); ++i) {
    const std::string& said = request.notify[i];
    if (starts_with(said, "env:")) out.secrets.push_back(said.substr(4));
    if (starts_with(said, "@")) {
      CUFIT_TRY(exposure, host::check_secret(said.substr(1)));
      if (exposure != host::SecretExposure::none) out.exposed.push_back(said.substr(1));
    }
    CUFIT_TRY(address, address_of(context, said));
    CUFIT_TRY(receiver, report::parse_receiver(address, origin_of(request, i)));
    out.receivers.push_back(std::move(receiver));
  }
  out.programs = request.exec;
  return out;
}

Result<std::vector<std::string>> watch_unit_command(const Context& context,
                                                    const WatchRequest& request) {
  CUFIT_TRY(program, absolute(context, "/proc/self/exe"));
  std::vector<std::string> out = {program, "watch"};
  const auto add = [&](const char* option, const std::string& value) {
    out.insert(out.end(), {option, value});
  };
  for (const std::string& said : request.notify) {
    if (starts_with(said, "env:")) {
      add("--notify", said);
    } else if (starts_with(said, "@")) {
      // It may be written later; the unit names where it is looked for.
      const Result<std::string> path = absolute(context, said.substr(1));
      if (!path && said[1] != '/') return path.error();
      add("--notify", "@" + (path ? *path : said.substr(1)));
    } else {
      return fail(
          Code::usage,
          "`--unit`: every user may read a unit, and an address is a secret. Write it into a "
          "file of mode 600 and give `--notify @FILE`");
    }
  }
  for (const std::string& command : request.exec) add("--exec", command);
  if (request.rules) {
    CUFIT_TRY(path, absolute(context, *request.rules));
    add("--rules", path);
  }
  if (request.interval) add("--interval", *request.interval);
  if (request.repeat) add("--repeat", *request.repeat);
  if (request.json) out.push_back("--json");
  add("--lang", context.language());
  return out;
}

}  // namespace cufit::commands
