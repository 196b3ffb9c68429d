// SPDX-License-Identifier: Apache-2.0
#include "commands/export/export_cluster.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/nearest.h"
#include "base/number.h"

namespace cufit::commands {
namespace {

constexpr uint64_t k_most_counted = 1'000'000;

Result<uint32_t> counted(const char* option, const std::string& text) {
  const std::optional<uint64_t> number = parse_uint(text);
  if (!number || *number < 1 || *number > k_most_counted)
    return fail(Code::usage,
                format("`--{} {}`: a number from 1 to {}", option, text, k_most_counted));
  return static_cast<uint32_t>(*number);
}

// A label of DNS (RFC 1123), as Kubernetes names namespaces.
bool is_namespace(const std::string& text) {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

bool is_image_name(const std::string& text) {
  if (text.empty() || text.size() > 512 || text.front() == '-') return false;
  return text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
             "._-/:@") == std::string::npos &&
         text.back() != ':';
}

// "1g.10gb=4": an instance of the table of profiles, and how many.
Result<std::pair<std::string, uint32_t>> mig_count(const std::string& text,
                                                   const knowledge::Knowledge& knowledge) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos)
    return fail(Code::usage, format("`--mig {}`: PROFILE=N is expected, 1g.10gb=4", text));
  std::string name = text.substr(0, equals);
  std::replace(name.begin(), name.end(), '+', '.');
  std::set<std::string> known;
  for (const knowledge::MigProfileRow& row : knowledge.mig_profiles) {
    std::string label(row.name);
    std::replace(label.begin(), label.end(), '+', '.');
    known.insert(label);
  }
  if (known.count(name) == 0) {
    const std::vector<std::string> near =
        nearest(name, std::vector<std::string>(known.begin(), known.end()), 3);
    return near.empty()
               ? fail(Code::usage, format("`--mig {}`: no GPU is divided into `{}`", text, name))
               : fail(Code::usage, format("`--mig {}`: no GPU is divided into `{}`; did you mean "
                                          "`{}`?",
                                          text, name, join(near, "`, `")));
  }
  CUFIT_TRY(count, counted("mig", text.substr(equals + 1)));
  return std::pair<std::string, uint32_t>("nvidia.com/mig-" + name, count);
}

Result<void> add_resources(const ClusterOptions& options, report::ClusterView& view) {
  if (options.gpus) {
    CUFIT_TRY(count, counted("gpus", *options.gpus));
    view.resources.emplace_back("nvidia.com/gpu", count);
  }
  if (options.shared) {
    CUFIT_TRY(count, counted("shared", *options.shared));
    view.resources.emplace_back("nvidia.com/gpu.shared", count);
  }
  for (const std::string& one : options.mig) {
    CUFIT_TRY(asked, mig_count(one, view.knowledge));
    for (const auto& [name, count] : view.resources)
      if (name == asked.first)
        return fail(Code::usage, format("`--mig {}`: this profile is there twice", one));
    view.resources.push_back(asked);
  }
  if (view.resources.empty())
    return fail(Code::usage,
                "`--to k8s-quota` needs what the quota is of: `--gpus N`, `--shared N` or `--mig "
                "PROFILE=N`");
  return {};
}

}  // namespace

Result<report::ClusterView> cluster_view(const Context& context, const std::string& to,
                                         const ClusterOptions& options) {
  report::ClusterView view{to, context.language(), context.knowledge, "", "default", 0, {}};
  if (options.image && !is_image_name(*options.image))
    return fail(Code::usage, format("`--image {}`: an image is expected, IMAGE:TAG or "
                                    "IMAGE@sha256:<64 digits>",
                                    *options.image));
  view.image = options.image.value_or("");
  if (options.space && !is_namespace(*options.space))
    return fail(Code::usage, format("`--namespace {}`: small letters, digits and `-` are expected",
                                    *options.space));
  if (options.space) view.space = *options.space;
  if (to == "k8s-job") {
    if (!options.nodes)
      return fail(Code::usage,
                  "`--to k8s-job` needs `--nodes N`; `kubectl get nodes -l "
                  "nvidia.com/gpu.present=true -o name | wc -l` counts them");
    CUFIT_TRY(count, counted("nodes", *options.nodes));
    view.nodes = count;
  }
  if (to == "k8s-quota")
    if (Result<void> added = add_resources(options, view); !added) return added.error();
  return view;
}

}  // namespace cufit::commands
