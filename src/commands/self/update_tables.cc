// SPDX-License-Identifier: Apache-2.0
#include "commands/self/update_tables.h"

#include <algorithm>

#include "base/format.h"
#include "base/sha256.h"
#include "formats/python/index_config.h"
#include "host/files/user_tables.h"
#include "host/install/http.h"

namespace cufit::commands {
namespace {

using knowledge::UpdatedTables;

bool is_url(const std::string& source) {
  return starts_with(source, "https://") || starts_with(source, "http://");
}

// Who can change a file on its way can change the hash beside it, too.
bool may_be_changed_on_the_way(const std::string& url) {
  return starts_with(url, "http://") && !starts_with(url, "http://127.0.0.1:") &&
         !starts_with(url, "http://localhost:");
}

Result<std::string> bytes_of(const Context& context, const std::string& source, size_t most_bytes,
                             host::Interrupts& interrupts) {
  if (!is_url(source)) return context.files.read_file(source, most_bytes);
  host::HttpRequest request;
  request.url = source;
  request.most_bytes = most_bytes;
  CUFIT_TRY(answer, host::http_get(request, interrupts));
  if (answer.status != 200)
    return fail(answer.status == 404 ? Code::not_found : Code::io,
                format("`{}`: answer {}", formats::without_credentials(source), answer.status));
  return std::move(answer.body);
}

bool is_sum(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

// Of --sha256, else the first word of the file beside.
Result<std::string> sum_of(const Context& context, const SelfRequest& request,
                           host::Interrupts& interrupts) {
  if (request.sha256) {
    const std::string sum = lower(*request.sha256);
    if (!is_sum(sum))
      return fail(Code::usage, format("`--sha256 {}`: not 64 hexadecimal digits", *request.sha256));
    return sum;
  }
  const std::string beside = request.argument + ".sha256";
  const std::string shown = formats::without_credentials(beside);
  if (may_be_changed_on_the_way(beside))
    return fail(Code::usage, format("`{}`: over http `--sha256 HEX` is needed", shown));
  const Result<std::string> text = bytes_of(context, beside, 4096, interrupts);
  if (!text && text.error().code == Code::cancelled) return text.error();
  if (!text && !is_url(request.argument))
    if (auto tables = context.files.status(request.argument); !tables) return tables.error();
  if (!text)
    return fail(Code::usage,
                format("tables are not taken without their hash: `--sha256 HEX`, or `{}`", shown));
  const std::string sum = lower(text->substr(0, text->find_first_of(" \t\r\n")));
  if (!is_sum(sum)) return fail(Code::malformed, format("`{}`: no SHA-256", shown));
  return sum;
}

Result<std::unique_ptr<UpdatedTables>> take_tables(const Context& context,
                                                   const SelfRequest& request,
                                                   const std::string& path) {
  host::Interrupts interrupts;
  CUFIT_TRY(sum, sum_of(context, request, interrupts));
  CUFIT_TRY(bytes, bytes_of(context, request.argument, knowledge::k_tables_most_bytes, interrupts));
  const std::string shown = formats::without_credentials(request.argument);
  if (const std::string have = sha256(bytes); have != sum)
    return fail(Code::malformed,
                format("`{}`: its SHA-256 is {}, and {} was asked for", shown, have, sum));
  CUFIT_TRY(tables, UpdatedTables::read(bytes, shown));
  if (Result<void> done = host::write_user_tables(path, bytes); !done)
    return std::move(done.error());
  return Result<std::unique_ptr<UpdatedTables>>(std::move(tables));
}

int remove_tables(const Context& context, const std::string& path) {
  const Result<bool> was_there = host::remove_user_tables(path);
  if (!was_there) return context.output.exit_code_for(was_there.error());
  return context.output.print(
      context.message(*was_there ? "self.tables_removed" : "self.tables_none") + "\n", k_ok);
}

}  // namespace

TablesInUse tables_in_use(const host::Host& machine) {
  TablesInUse out;
  const std::string path = host::user_tables_path(machine);
  if (path.empty()) return out;
  const auto text = host::read_user_tables(path, knowledge::k_tables_most_bytes);
  if (text && !*text) return out;
  if (!text) {
    out.note = text.error().text();
    return out;
  }
  Result<std::unique_ptr<UpdatedTables>> read = UpdatedTables::read(**text, path);
  if (read) {
    out.updated = std::move(*read);
  } else {
    out.note = read.error().text();
    out.older = read.error().code == Code::unsupported;
  }
  return out;
}

int run_update_tables(const Context& context, const SelfRequest& request) {
  const Output& output = context.output;
  const std::string path = host::user_tables_path(context.files);
  if (path.empty())
    return output.exit_code_for(
        fail(Code::usage, "this user has no data folder: set XDG_DATA_HOME or HOME"));
  if (request.remove && request.argument.empty()) return remove_tables(context, path);
  if (request.remove || request.argument.empty())
    return output.exit_code_for(
        fail(Code::usage,
             "usage: cufit self [update-tables FILE|URL [--sha256 HEX] | update-tables --remove]"));
  const Result<std::unique_ptr<UpdatedTables>> taken = take_tables(context, request, path);
  if (!taken) return output.exit_code_for(taken.error());
  const knowledge::Knowledge& now = (*taken)->knowledge();
  return output.print(
      context.message("self.tables_taken", {{"date", std::string(now.date)},
                                            {"before", std::string(context.knowledge.date)},
                                            {"torch", now.newest_torch().text()},
                                            {"path", path}}) +
          "\n",
      k_ok);
}

}  // namespace cufit::commands
