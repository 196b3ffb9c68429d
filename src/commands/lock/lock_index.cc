// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock_index.h"

#include <algorithm>

#include "base/format.h"
#include "base/version.h"
#include "formats/python/wheel_name.h"

namespace cufit::commands {
namespace {

struct Heard {
  formats::IndexPage page;  // of all that answered
  bool all = true;          // one that did not answer may have it
};

Result<Heard> ask_all(const Context& context, const LockJob& job,
                      const std::vector<formats::IndexUrl>& indexes, host::Interrupts& interrupts) {
  Heard out;
  for (const formats::IndexUrl& index : indexes) {
    host::IndexOptions options;
    options.offline = job.index.offline;
    Result<host::IndexAnswer> answer =
        host::ask_index(context.files, index.url, "torch", options, interrupts);
    if (!answer) {
      if (answer.error().code == Code::cancelled) return answer.error();
      if (answer.error().code == Code::not_found && !options.offline) continue;
      context.output.print_error(answer.error().text() + "; going on, the installer will tell");
      out.all = false;
      continue;
    }
    if (answer->how == host::IndexAnswer::How::stale)
      context.output.print_error(format("using what the index said earlier: {}", answer->problem));
    for (formats::IndexFile& file : answer->page.files) out.page.files.push_back(std::move(file));
  }
  return out;
}

std::vector<std::string> versions_for(const formats::IndexPage& page, const std::string& python,
                                      const std::string& platform) {
  const size_t dash = platform.find("-manylinux_");
  std::string glibc = platform.substr(dash + 11);
  std::replace(glibc.begin(), glibc.end(), '_', '.');
  std::vector<std::string> out;
  for (const formats::IndexFile& file : page.files) {
    const auto name = formats::parse_wheel_name(file.filename);
    if (!name || file.yanked ||
        !formats::fits(*name, python, platform.substr(0, dash), *parse_version(glibc)))
      continue;
    out.push_back(name->version);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::stable_sort(out.begin(), out.end(), [](const std::string& left, const std::string& right) {
    return parse_version(left) < parse_version(right);  // 2.9 before 2.11
  });
  return out;
}

}  // namespace

Result<std::optional<IndexLack>> index_lack(const Context& context, const LockJob& job,
                                            resolve::Class& one, const std::string& platform,
                                            host::Interrupts& interrupts) {
  resolve::Wheel& wheel = one.choice.wheel;
  CUFIT_TRY(heard, ask_all(context, job, job.given, interrupts));
  // uv takes a package from the first index that has it: torch comes from the given ones, or from
  // those of the configuration.
  const bool from_given = !job.given.empty() && (!heard.page.files.empty() || !heard.all);
  if (!from_given && wheel.on_default_index) {
    std::vector<formats::IndexUrl> indexes;
    bool default_known = false;
    for (const formats::IndexUrl& index : job.configured.indexes) {
      if (index.is_explicit) continue;
      indexes.push_back(index);
      default_known = default_known || index.is_default;
    }
    if (!default_known) return std::optional<IndexLack>();
    CUFIT_TRY(configured, ask_all(context, job, indexes, interrupts));
    heard = std::move(configured);
  } else if (job.given.empty()) {
    return std::optional<IndexLack>();
  }
  std::vector<std::string> others = versions_for(heard.page, one.choice.python, platform);
  const auto has = [&](const std::string& version) {
    return std::find(others.begin(), others.end(), version) != others.end();
  };
  const bool plain = wheel.on_default_index && has(wheel.torch);
  if (plain || has(wheel.torch + "+" + wheel.tag)) {
    if (from_given && !plain) wheel.on_default_index = false;
    return std::optional<IndexLack>();
  }
  if (!heard.all) return std::optional<IndexLack>();
  if (others.size() > 8) others.erase(others.begin(), others.end() - 8);
  const std::string torch = wheel.torch + (wheel.on_default_index ? "" : "+" + wheel.tag);
  IndexLack out;
  out.error = fail(
      Code::not_found,
      format("class {}: no configured index has torch {} for Python {} on {}{}", one.name, torch,
             one.choice.python, platform, others.empty() ? "" : "; it has " + join(others, ", ")));
  out.page = std::move(heard.page);
  return std::optional<IndexLack>(std::move(out));
}

}  // namespace cufit::commands
