// SPDX-License-Identifier: Apache-2.0
// srun asks: idle nodes with all their GPUs, others beside their jobs.
#include <algorithm>
#include <cctype>
#include <map>

#include "base/format.h"
#include "base/host_list.h"
#include "base/number.h"
#include "commands/fleet/node_questions.h"
#include "host/files/paths.h"
#include "host/process/this_process.h"

namespace cufit::commands {
namespace {

// srun itself gives up after `--immediate`, and says why.
constexpr double k_srun_margin_seconds = 10;

struct SlurmNode {
  std::string name, state, reason, partition;
  bool has_gpu = false;  // of its Gres
};

// "gpu001|idle|all*|gpu:h200:8|none"; the reason is what people wrote. A node of several partitions
// stands there several times: that of the default one counts, else the first.
std::vector<SlurmNode> slurm_nodes(const std::string& text) {
  constexpr size_t k_fields = 5;
  std::vector<SlurmNode> out;
  for (const std::string_view line : split_lines(text)) {
    const std::vector<std::string_view> parts = split(line, '|');
    if (parts.size() < k_fields || trim(parts[0]).empty()) continue;
    SlurmNode node{std::string(trim(parts[0])), std::string(trim(parts[1])),
                   std::string(trim(parts[4])), std::string(trim(parts[2])),
                   contains(parts[3], "gpu")};
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
  // srun hands on the caller's variables: they are no part of the node.
  return "unset LD_LIBRARY_PATH LD_PRELOAD CUDA_VISIBLE_DEVICES; printf 'cufit-node %s\\n' "
         "\"${SLURMD_NODENAME:-$(hostname)}\"; (" +
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
    if (!node.has_gpu) {
      not_asked.push_back({node.name, "", "Slurm gives it no GPU: it was not asked", true});
      continue;
    }
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
  CUFIT_TRY(listed, run_all({{"sinfo", {"sinfo", "-h", "-N", "-o", "%N|%t|%P|%G|%E"}}}, seconds,
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
  CUFIT_TRY(answers, run_all(tasks, seconds + k_srun_margin_seconds, k_most_of_all_nodes, "srun"));
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<NodeText> told = nodes_of_srun(answers[i], steps[i].nodes, seconds);
    for (NodeText& node : told) {
      node.shared = steps[i].shared;
      // What srun itself says of a step that did not start.
      if (answers[i].out.empty() && !node.why.empty()) node.why = why_none(answers[i], seconds);
      out.push_back(std::move(node));
    }
  }
  return out;
}

// "gpu1" is not in "error: gpu10: ...".
bool holds_word(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    const size_t end = at + word.size();
    const auto part_of_name = [&](size_t place) {
      const char c = line[place];
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    };
    if ((at == 0 || !part_of_name(at - 1)) && (end == line.size() || !part_of_name(end)))
      return true;
  }
  return false;
}

}  // namespace

Result<std::vector<NodeText>> ask_by_slurm(const FleetSource& source, double seconds) {
  if (source.srun_options.empty()) return ask_idle_nodes(source, seconds);
  CUFIT_TRY(answers, run_all({{"srun", srun_command(source, source.srun_options)}}, seconds,
                             k_most_of_all_nodes, "srun"));
  std::vector<NodeText> told = nodes_of_srun(answers[0], {}, seconds);
  if (told.empty())
    return fail(Code::not_found, format("`srun`: {}", why_none(answers[0], seconds)));
  return told;
}

std::vector<NodeText> nodes_of_srun(const host::FanOutAnswer& answer,
                                    const std::vector<std::string>& asked, double seconds) {
  std::vector<NodeText> out = nodes_of_labelled(answer.out, answer.err, asked);
  if (!answer.timed_out) return out;
  for (NodeText& node : out) {
    if (!node.why.empty() || ends_with(trim(node.text), "}")) continue;
    node.text.clear();
    node.why = why_none(answer, seconds);
  }
  return out;
}

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
      if (holds_word(line, name)) why = std::string(trim(line));
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
  CUFIT_TRY(told, run_all({{"scontrol", {"scontrol", "show", "node", "-d", "-o"}},
                           {"scontrol", {"scontrol", "show", "partition", "-o"}}},
                          k_scontrol_seconds, k_most_of_all_nodes, "scontrol"));
  if (told[0].code != 0 || !told[0].start_error.empty())
    return fail(Code::not_found,
                format("`scontrol show node`: {}", why_none(told[0], k_scontrol_seconds)));
  // Without the partitions a node's own names are what is known of them.
  return std::move(told[0].out) + "\n" + (told[1].code == 0 ? told[1].out : "");
}

}  // namespace cufit::commands
