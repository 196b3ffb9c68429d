// SPDX-License-Identifier: Apache-2.0
#include "watch/dcgm_metrics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

#include "base/format.h"
#include "facts/gpu_sample_fields.h"
#include "watch/metric_table.h"

namespace cufit::watch {
namespace {

constexpr std::string_view k_last_xid = "last_xid";

// The number of that name among the members of a sample's GPU.
class FindNumber {
 public:
  explicit FindNumber(std::string_view name) : name_(name) {}

  template <class T>
  void operator()(std::string_view name, const std::optional<T>& value) {
    if constexpr (std::is_arithmetic_v<T>)
      if (name == name_) out = as_number(value);
  }
  template <class T>
  void operator()(std::string_view, const T&) {}

  std::optional<double> out;

 private:
  std::string_view name_;
};

std::optional<double> number_of(const facts::SampledGpu& gpu, std::string_view name) {
  FindNumber find(name);
  facts::visit_sample(find, gpu);
  return find.out;
}

// In DCGM's unit. What is converted is a whole number there; 0.29 * 100 is a little less than 29.
double converted(double value, const knowledge::DcgmValue& row) {
  if (row.times == 0 && row.per == 0) return value;
  constexpr double k_least = 1e-7;
  const double times = row.times == 0 ? 1 : row.times, per = row.per == 0 ? 1 : row.per;
  return std::floor(value * times / per + k_least);
}

// "0000:b5:00.0" as NVML writes it: "00000000:B5:00.0".
std::string bus_id(std::string_view pci) {
  if (pci.empty()) return {};
  const std::string_view domain = pci.substr(0, std::min(pci.find(':'), pci.size()));
  std::string out(8 - std::min<size_t>(domain.size(), 8), '0');
  for (const char c : pci) out += c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

// Whose the GPU is: who was given it, where a kubelet told, else who uses it. One of several has no such label.
struct Users {
  std::string container, pod_namespace, pod, job;
};

Users users_of(const WatchedMachine& machine, size_t place) {
  std::set<std::pair<std::string, std::string>> pods;
  std::set<std::string> containers, jobs;
  const auto& given = machine.gpus[place].now.pods;
  if (given)
    for (const facts::SampledPod& pod : *given) {
      pods.emplace(pod.pod_namespace, pod.pod);
      containers.insert(pod.container);
    }
  for (const WatchedProcess& process : machine.processes) {
    if (process.now.gpu != place) continue;
    const facts::ProcessOwner& owner = process.now.owner;
    if (!given && !owner.pod.empty()) {
      pods.emplace(owner.pod_namespace, owner.pod);
      containers.insert(owner.container_name);
    }
    if (!owner.slurm_job.empty()) jobs.insert(owner.slurm_job);
  }
  Users out;
  if (pods.size() == 1) {
    out.pod_namespace = pods.begin()->first;
    out.pod = pods.begin()->second;
    if (containers.size() == 1) out.container = *containers.begin();
  }
  if (jobs.size() == 1) out.job = *jobs.begin();
  return out;
}

class DcgmPage {
 public:
  DcgmPage(const WatchedMachine& machine, std::string_view host,
           const knowledge::Knowledge& knowledge, MetricTable& table)
      : machine_(machine), host_(host), knowledge_(knowledge), table_(table) {}

  void add_gpu(size_t place) {
    facts::SampledGpu gpu = machine_.gpus[place].now;
    const bool instance = !gpu.parent_uuid.empty();
    if (instance && !gpu.gpu_instance) return;
    const bool divided = !instance && place + 1 < machine_.gpus.size() && !gpu.uuid.empty() &&
                         machine_.gpus[place + 1].now.parent_uuid == gpu.uuid;
    // In a sum it would be there twice.
    if (divided)
      for (auto* bytes : {&gpu.memory_total_bytes, &gpu.memory_used_bytes, &gpu.memory_free_bytes,
                          &gpu.memory_reserved_bytes})
        bytes->reset();
    MetricLabels labels = labels_of(gpu, instance);
    const Users users = users_of(machine_, place);
    labels.insert(labels.end(), {{"container", users.container},
                                 {"namespace", users.pod_namespace},
                                 {"pod", users.pod},
                                 {"hpc_job", users.job}});
    for (const knowledge::DcgmValue& row : knowledge_.dcgm_values)
      if (const std::optional<double> value = number_of(gpu, row.value))
        table_.add(row.metric, labels, converted(*value, row));
  }

  // Also of a GPU that is lost: it is what its Xid is about.
  void add_xid(const KnownGpu& known) {
    facts::SampledGpu gpu;
    gpu.index = known.index;
    gpu.uuid = known.uuid;
    gpu.name = known.name;
    gpu.pci = known.pci;
    MetricLabels labels = labels_of(gpu, false);
    const knowledge::XidRow* row = knowledge_.find_xid(known.last_xid);
    const std::string_view meaning = known.last_xid == 0 ? "no error"
                                     : row != nullptr    ? row->meaning
                                                         : "unknown";
    labels.emplace_back("err_code", std::to_string(known.last_xid));
    labels.emplace_back("err_msg", std::string(meaning));
    for (const knowledge::DcgmValue& value : knowledge_.dcgm_values)
      if (value.value == k_last_xid) table_.add(value.metric, labels, known.last_xid);
  }

 private:
  // UUID is the GPU's, of an instance too.
  MetricLabels labels_of(const facts::SampledGpu& gpu, bool instance) const {
    const std::string number = std::to_string(gpu.index);
    return {{"gpu", number},
            {"UUID", instance ? gpu.parent_uuid : gpu.uuid},
            {"pci_bus_id", bus_id(gpu.pci)},
            {"device", "nvidia" + number},
            {"modelName", gpu.name},
            {"GPU_I_PROFILE", instance ? gpu.profile : std::string()},
            {"GPU_I_ID", instance ? std::to_string(*gpu.gpu_instance) : std::string()},
            {"Hostname", std::string(host_)},
            {"hostname", std::string(host_)},
            {"DCGM_FI_DRIVER_VERSION", machine_.driver_version}};
  }

  const WatchedMachine& machine_;
  std::string_view host_;
  const knowledge::Knowledge& knowledge_;
  MetricTable& table_;
};

}  // namespace

std::vector<MetricFamily> dcgm_metrics(const WatchedMachine& machine, std::string_view host,
                                       const knowledge::Knowledge& knowledge) {
  knowledge::Knowledge names;
  names.metrics = knowledge.dcgm_metrics;
  MetricTable table(names);
  DcgmPage page(machine, host, knowledge, table);
  for (size_t i = 0; i < machine.gpus.size(); ++i) page.add_gpu(i);
  for (const KnownGpu& known : machine.known_gpus) page.add_xid(known);
  return table.take();
}

}  // namespace cufit::watch
