// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_nodes.h"

#include <algorithm>

#include "base/format.h"
#include "base/host_list.h"
#include "base/number.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/fleet/node_questions.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_node_files = 20000;
constexpr double k_ssh_connect_seconds = 10;

Result<std::vector<NodeText>> ask_by_ssh(const FleetSource& source, double seconds) {
  CUFIT_TRY(hosts, expand_host_list(*source.ssh));
  std::vector<host::FanOutTask> tasks;
  for (const std::string& name : hosts) {
    // ssh would take it for an option.
    if (name[0] == '-' || name.find_first_of(" \t\n") != std::string::npos)
      return fail(Code::usage, format("`--ssh`: `{}` is no name of a host", name));
    tasks.push_back({name,
                     {"ssh", "-n", "-T", "-o", "BatchMode=yes", "-o",
                      format("ConnectTimeout={:g}", k_ssh_connect_seconds), "--", name,
                      "sh -c " + shell_word(remote_command(source, "cufit"))}});
  }
  CUFIT_TRY(answers, run_all(tasks, seconds, k_most_of_a_node, "ssh"));
  std::vector<NodeText> out;
  for (host::FanOutAnswer& answer : answers) out.push_back(text_of(std::move(answer), seconds));
  return out;
}

// Names stand in lists and in commands for ssh and Slurm: one line, and no part of one missing.
bool may_be_node(const std::string& name) {
  return !name.empty() && name[0] != '-' &&
         std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return c < ' ' || c == 0x7f || c == ','; });
}

Result<std::vector<NodeText>> read_folder(const Context& context, const std::string& folder) {
  CUFIT_TRY(names, context.files.list(folder));
  std::vector<NodeText> out;
  for (const std::string& name : names) {
    if (!ends_with(name, ".json")) continue;
    if (out.size() >= k_most_node_files)
      return fail(Code::unsupported, format("`{}`: more than {} files", folder, k_most_node_files));
    NodeText node;
    const std::string stem = name.substr(0, name.size() - 5);
    node.name = stem.empty() ? name : stem;
    Result<std::string> text = context.files.read_file(folder + "/" + name, k_most_of_a_node);
    if (!may_be_node(stem))
      node.why = "its file name is no name of a node";
    else if (text)
      node.text = std::move(*text);
    else
      node.why = text.error().what;
    out.push_back(std::move(node));
  }
  if (out.empty()) return fail(Code::not_found, format("`{}`: no file ends in .json", folder));
  return out;
}

}  // namespace

Result<std::vector<NodeText>> ask_nodes(const Context& context, const FleetSource& source) {
  const int engines = int(source.slurm) + int(source.kubernetes) + int(source.ssh.has_value()) +
                      int(source.from.has_value());
  if (engines != 1)
    return fail(Code::usage,
                "one of `--slurm`, `--ssh HOSTS`, `--kubernetes` and `--from DIR` says "
                "which nodes are meant");
  if (!source.slurm && !source.srun_options.empty())
    return fail(Code::usage, "options of srun go with `--slurm`");
  double seconds = 60;
  if (source.seconds) {
    const std::optional<uint64_t> given = parse_uint(*source.seconds);
    if (!given || *given == 0 || *given > 3600)
      return fail(Code::usage, format("`--timeout {}`: seconds from 1 to 3600", *source.seconds));
    seconds = static_cast<double>(*given);
  }
  CUFIT_TRY(texts, source.ssh          ? ask_by_ssh(source, seconds)
                   : source.slurm      ? ask_by_slurm(source, seconds)
                   : source.kubernetes ? ask_by_kubernetes(source, seconds)
                                       : read_folder(context, *source.from));
  return one_of_each(std::move(texts));
}

}  // namespace cufit::commands