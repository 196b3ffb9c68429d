// SPDX-License-Identifier: Apache-2.0
#include "commands/fleet/fleet_nodes.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/host_list.h"
#include "base/json.h"
#include "base/number.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/progress.h"
#include "facts/facts_json.h"
#include "host/files/paths.h"
#include "host/fleet/fan_out.h"
#include "host/process/this_process.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_of_a_node = 8u << 20;       // of a node
constexpr size_t k_most_of_all_nodes = 512u << 20;  // of all, where one program brings them
constexpr size_t k_most_node_files = 20000;
constexpr double k_ssh_connect_seconds = 10;
constexpr const char* k_pods = "app.kubernetes.io/name=cufit-fleet-check";

std::string last_line(std::string_view text) {
  std::string out;
  for (const std::string_view line : split_lines(text))
    if (!trim(line).empty()) out = std::string(trim(line));
  return out;
}

// The shell's words that start cufit on a node: where it was said to be, in PATH, or in ~/.local.
std::string remote_command(const FleetSource& source, const std::string& own) {
  const std::string named = source.program.value_or(own);
  // A folder is "executable", too: ~/cufit may be the clone.
  return format(
      "p={}; [ -f \"$p\" ] && [ -x \"$p\" ] || p=$(command -v cufit || echo \"$HOME/.local/bin/cufit\"); "
      "exec \"$p\" doctor --fast --json",
      shell_word(named));
}

std::string why_none(const host::FanOutAnswer& answer, double seconds) {
  if (!answer.start_error.empty()) return answer.start_error;
  if (answer.timed_out) return format("no answer within {:g} s", seconds);
  if (answer.too_long) return "it said more than 8 MiB";
  const std::string said = last_line(answer.err);
  return said.empty() ? format("it ended with code {} and said nothing", answer.code) : said;
}

Result<std::vector<host::FanOutAnswer>> run_all(const std::vector<host::FanOutTask>& tasks,
                                                double seconds, size_t most_bytes,
                                                const char* what) {
  host::Interrupts interrupts;
  Progress progress(what);
  host::FanOutOptions options;
  options.seconds = seconds;
  options.most_bytes = most_bytes;
  options.progress = [&](size_t done) { progress.show_count(done, tasks.size()); };
  return host::fan_out(tasks, options, interrupts);
}

// ---- ssh

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
  for (host::FanOutAnswer& answer : answers) {
    const bool spoke = answer.out.find('{') != std::string::npos;
    out.push_back(
        {answer.name, spoke ? std::move(answer.out) : "", spoke ? "" : why_none(answer, seconds)});
  }
  return out;
}

// ---- Slurm

struct SlurmNode {
  std::string name, state, reason, partition;
};

// "gpu001|idle|none|all*"; a node of several partitions stands there several times: that of the
// default one counts, else the first.
std::vector<SlurmNode> slurm_nodes(const std::string& text) {
  std::vector<SlurmNode> out;
  for (const std::string_view line : split_lines(text)) {
    const std::vector<std::string_view> parts = split(line, '|');
    if (parts.size() < 4 || trim(parts[0]).empty()) continue;
    SlurmNode node{std::string(trim(parts[0])), std::string(trim(parts[1])),
                   std::string(trim(parts[2])), std::string(trim(parts[3]))};
    const bool is_default = ends_with(node.partition, "*");
    if (is_default) node.partition.pop_back();
    const auto known = std::find_if(out.begin(), out.end(),
                                    [&](const SlurmNode& one) { return one.name == node.name; });
    if (known == out.end())
      out.push_back(std::move(node));
    else if (is_default)
      *known = std::move(node);
  }
  return out;
}

std::string why_not_asked(const SlurmNode& node) {
  std::string out = "Slurm says " + node.state;
  if (!node.reason.empty() && node.reason != "none") out += ": " + node.reason;
  return out;
}

std::string slurm_script(const FleetSource& source) {
  return "printf 'cufit-node %s\\n' \"${SLURMD_NODENAME:-$(hostname)}\"; (" +
         remote_command(source, host::program_path()) + ") 2>&1; exit 0";
}

std::vector<std::string> srun_command(const FleetSource& source,
                                      const std::vector<std::string>& options) {
  std::vector<std::string> out = {"srun", "--label", "--ntasks-per-node=1", "--mpi=none",
                                  "--input=none"};
  out.insert(out.end(), options.begin(), options.end());
  for (const char* word : {"sh", "-c"}) out.emplace_back(word);
  out.push_back(slurm_script(source));
  return out;
}

// The nodes that one srun asks.
struct SlurmStep {
  std::string partition;
  bool shared = false;  // beside other jobs: it may be given no GPU
  std::vector<std::string> nodes;
};

// An idle node is asked with all its GPUs; one that runs jobs, beside them.
std::vector<SlurmStep> slurm_steps(const std::vector<SlurmNode>& nodes,
                                   std::vector<NodeText>& not_asked) {
  std::vector<SlurmStep> out;
  for (const SlurmNode& node : nodes) {
    if (node.state == "alloc") {
      not_asked.push_back(
          {node.name, "", "all its processors are allocated: it was not asked", true});
      continue;
    }
    if (node.state != "idle" && node.state != "mix") {
      not_asked.push_back({node.name, "", why_not_asked(node), false});
      continue;
    }
    const bool shared = node.state == "mix";
    auto step = std::find_if(out.begin(), out.end(), [&](const SlurmStep& one) {
      return one.partition == node.partition && one.shared == shared;
    });
    if (step == out.end()) step = out.insert(out.end(), {node.partition, shared, {}});
    step->nodes.push_back(node.name);
  }
  return out;
}

Result<std::vector<NodeText>> ask_idle_nodes(const FleetSource& source, double seconds) {
  CUFIT_TRY(listed, run_all({{"sinfo", {"sinfo", "-h", "-N", "-o", "%N|%t|%E|%P"}}}, seconds,
                            k_most_of_a_node, "sinfo"));
  if (listed[0].code != 0 || !listed[0].start_error.empty())
    return fail(Code::not_found, format("`sinfo`: {}", why_none(listed[0], seconds)));
  std::vector<NodeText> out;
  const std::vector<SlurmStep> steps = slurm_steps(slurm_nodes(listed[0].out), out);
  std::vector<host::FanOutTask> tasks;
  for (const SlurmStep& step : steps) {
    std::vector<std::string> options = {
        "--partition=" + step.partition, "--nodelist=" + host_list(step.nodes),
        format("--nodes={}", step.nodes.size()), format("--immediate={:.0f}", seconds)};
    if (!step.shared) options.emplace_back("--exclusive");
    tasks.push_back({"srun", srun_command(source, options)});
  }
  CUFIT_TRY(answers, run_all(tasks, seconds, k_most_of_all_nodes, "srun"));
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<NodeText> told = nodes_of_labelled(answers[i].out, answers[i].err, steps[i].nodes);
    for (NodeText& node : told) {
      node.shared = steps[i].shared;
      // What srun itself says of a step that did not start.
      if (answers[i].out.empty() && !node.why.empty()) node.why = why_none(answers[i], seconds);
      out.push_back(std::move(node));
    }
  }
  return out;
}

Result<std::vector<NodeText>> ask_by_slurm(const FleetSource& source, double seconds) {
  if (source.srun_options.empty()) return ask_idle_nodes(source, seconds);
  CUFIT_TRY(answers, run_all({{"srun", srun_command(source, source.srun_options)}}, seconds,
                             k_most_of_all_nodes, "srun"));
  std::vector<NodeText> told = nodes_of_labelled(answers[0].out, answers[0].err, {});
  if (told.empty())
    return fail(Code::not_found, format("`srun`: {}", why_none(answers[0], seconds)));
  return told;
}

// ---- Kubernetes

struct Pod {
  std::string name, space, node, phase;
};

Result<std::vector<Pod>> pods_of(const std::string& text) {
  CUFIT_TRY(json, facts::read_json_object(text, "kubectl get pods"));
  std::vector<Pod> out;
  const Json* items = json.member("items");
  if (items == nullptr || !items->is_array()) return out;
  for (const Json& item : *items) {
    const Json* metadata = item.is_object() ? item.member("metadata") : nullptr;
    const Json* spec = item.is_object() ? item.member("spec") : nullptr;
    const Json* status = item.is_object() ? item.member("status") : nullptr;
    if (metadata == nullptr || !metadata->is_object()) continue;
    Pod pod;
    pod.name = metadata->text_at("name");
    pod.space = metadata->text_at("namespace");
    if (spec != nullptr && spec->is_object()) pod.node = spec->text_at("nodeName");
    if (status != nullptr && status->is_object()) pod.phase = status->text_at("phase");
    out.push_back(std::move(pod));
  }
  return out;
}

Result<std::vector<NodeText>> ask_by_kubernetes(const FleetSource& source, double seconds) {
  std::vector<std::string> command = {"kubectl", "get", "pods", "-l", k_pods, "-o", "json"};
  if (source.kube_namespace) command.push_back("--namespace=" + *source.kube_namespace);
  CUFIT_TRY(listed, run_all({{"kubectl", command}}, seconds, k_most_of_all_nodes, "kubectl"));
  if (listed[0].code != 0 || !listed[0].start_error.empty())
    return fail(Code::not_found, format("`kubectl get pods`: {}", why_none(listed[0], seconds)));
  CUFIT_TRY(pods, pods_of(listed[0].out));
  if (pods.empty())
    return fail(Code::not_found,
                format("no pod has the label {}: `cufit export --to k8s-job` makes the Job that "
                       "asks the nodes",
                       k_pods));
  std::vector<host::FanOutTask> tasks;
  for (const Pod& pod : pods)
    tasks.push_back({pod.node.empty() ? pod.name : pod.node,
                     {"kubectl", "logs", "--namespace=" + pod.space, "--", pod.name}});
  CUFIT_TRY(answers, run_all(tasks, seconds, k_most_of_a_node, "kubectl logs"));
  std::vector<NodeText> out;
  for (size_t i = 0; i < answers.size(); ++i) {
    host::FanOutAnswer& answer = answers[i];
    const bool spoke = answer.out.find('{') != std::string::npos;
    std::string why = spoke ? "" : why_none(answer, seconds);
    if (!spoke && pods[i].phase == "Pending") why = "its pod waits to be started";
    out.push_back({answer.name, spoke ? std::move(answer.out) : "", std::move(why)});
  }
  return out;
}

// ---- files

Result<std::vector<NodeText>> read_folder(const Context& context, const std::string& folder) {
  CUFIT_TRY(names, context.files.list(folder));
  std::vector<NodeText> out;
  for (const std::string& name : names) {
    if (!ends_with(name, ".json")) continue;
    if (out.size() >= k_most_node_files)
      return fail(Code::unsupported, format("`{}`: more than {} files", folder, k_most_node_files));
    NodeText node;
    node.name = name.substr(0, name.size() - 5);
    Result<std::string> text = context.files.read_file(folder + "/" + name, k_most_of_a_node);
    if (text)
      node.text = std::move(*text);
    else
      node.why = text.error().what;
    out.push_back(std::move(node));
  }
  if (out.empty()) return fail(Code::not_found, format("`{}`: no file ends in .json", folder));
  return out;
}

}  // namespace

std::vector<NodeText> nodes_of_labelled(const std::string& labelled, const std::string& errors,
                                        const std::vector<std::string>& asked) {
  constexpr std::string_view k_mark = "cufit-node ";
  std::map<uint64_t, NodeText> tasks;
  for (const std::string_view line : split_lines(labelled)) {
    const size_t colon = line.find(": ");
    const std::string_view label = trim(line.substr(0, colon));
    const std::optional<uint64_t> task =
        colon == std::string_view::npos ? std::nullopt : parse_uint(label);
    if (!task) continue;
    const std::string_view text = line.substr(colon + 2);
    NodeText& node = tasks[*task];
    if (node.name.empty() && starts_with(text, k_mark)) {
      node.name = std::string(trim(text.substr(k_mark.size())));
      continue;
    }
    if (node.text.size() > k_most_of_a_node) continue;
    node.text += text;
    node.text += '\n';
  }
  std::vector<NodeText> out;
  for (auto& [task, node] : tasks) {
    if (node.name.empty()) node.name = format("task {}", task);
    if (node.text.size() > k_most_of_a_node) node.why = "it said more than 8 MiB";
    if (node.text.find('{') == std::string::npos) {
      node.why = last_line(node.text);
      if (node.why.empty()) node.why = "it said nothing";
    }
    if (!node.why.empty()) node.text.clear();
    out.push_back(std::move(node));
  }
  for (const std::string& name : asked) {
    const bool told = std::any_of(out.begin(), out.end(),
                                  [&](const NodeText& node) { return node.name == name; });
    if (told) continue;
    std::string why = "it did not answer";
    for (const std::string_view line : split_lines(errors))
      if (contains(line, name)) why = std::string(trim(line));
    out.push_back({name, "", std::move(why)});
  }
  return out;
}

Result<std::string> slurm_node_lines(const Context& context, const FleetSource& source) {
  if (source.from) {
    const std::string path = *source.from + "/scontrol.txt";
    if (!host::is_file(path)) return std::string();
    return context.files.read_file(path, k_most_of_all_nodes);
  }
  constexpr double k_scontrol_seconds = 30;
  CUFIT_TRY(told, run_all({{"scontrol", {"scontrol", "show", "node", "-d", "-o"}}},
                          k_scontrol_seconds, k_most_of_all_nodes, "scontrol"));
  if (told[0].code != 0 || !told[0].start_error.empty())
    return fail(Code::not_found, format("`scontrol show node`: {}",
                                        why_none(told[0], k_scontrol_seconds)));
  return std::move(told[0].out);
}

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
  if (source.ssh) return ask_by_ssh(source, seconds);
  if (source.slurm) return ask_by_slurm(source, seconds);
  if (source.kubernetes) return ask_by_kubernetes(source, seconds);
  return read_folder(context, *source.from);
}

}  // namespace cufit::commands
