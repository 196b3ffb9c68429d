// SPDX-License-Identifier: Apache-2.0
#include "resolve/diff/fact_difference.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/format.h"

namespace cufit::resolve {
namespace {

struct Row {
  std::string_view field;
  std::string_view key;  // of one element; empty = any
  Topic topic;
  // Field whose difference explains this one; "*" = expected between any two machines.
  std::string_view follows;
};

// The order of the rows is the order of the answer. The first row that fits a field counts; a field
// of no row is listed last.
const Row k_rows[] = {
    {"kernel.version", "", Topic::driver, ""},
    {"nvml.driver_version", "", Topic::driver, "kernel.version"},
    {"driver_libraries[]", "libcuda.so.1", Topic::driver, ""},
    {"driver_libraries[]", "", Topic::driver, ""},
    {"kernel.nouveau_loaded", "", Topic::driver, ""},
    {"kernel.uvm_loaded", "", Topic::driver, ""},
    {"kernel.flavour", "", Topic::driver, ""},
    {"kernel.package_version", "", Topic::driver, "kernel.version"},
    {"kernel.fabric_manager", "", Topic::driver, "gpus"},
    {"kernel.nvswitch", "", Topic::driver, ""},
    {"kernel.nodes[]", "", Topic::driver, "gpus"},
    {"cuda.init_result", "", Topic::driver, ""},
    {"nvml.init_result", "", Topic::driver, ""},
    {"cuda.driver_version", "", Topic::driver, "kernel.version"},
    {"nvml.cuda_version", "", Topic::driver, "kernel.version"},
    {"kernel.uvm_hmm_disabled", "", Topic::driver, ""},
    {"gpus", "", Topic::gpu, ""},
    {"nvml.gpus[].state_code", "", Topic::gpu, ""},
    {"cuda.devices[].compute_check", "", Topic::gpu, ""},
    {"cuda.devices[].compute_code", "", Topic::gpu, ""},
    {"cuda.device_count", "", Topic::gpu, "gpus"},
    {"nvml.gpus[].mig_current", "", Topic::gpu, ""},
    {"nvml.gpus[].compute_mode", "", Topic::gpu, ""},
    {"nvml.gpus[].remap_failed", "", Topic::gpu, ""},
    {"nvml.gpus[].remap_pending", "", Topic::gpu, ""},
    {"nvml.gpus[].retirement_pending", "", Topic::gpu, ""},
    {"kernel.xids", "", Topic::gpu, ""},
    {"pci[].driver", "", Topic::gpu, ""},
    {"env.torch.version", "", Topic::torch, ""},
    {"env.torch.cuda", "", Topic::torch, "env.torch.version"},
    {"env.torch.hip", "", Topic::torch, "env.torch.version"},
    {"env.torch.variant", "", Topic::torch, "env.torch.version"},
    {"env.torch.git", "", Topic::torch, "env.torch.version"},
    {"env.torch.debug", "", Topic::torch, ""},
    {"env.torch_run", "", Topic::torch, ""},
    {"env.python", "", Topic::python, ""},
    {"system.architecture", "", Topic::platform, ""},
    {"system.jetson", "", Topic::platform, ""},
    {"system.wsl", "", Topic::platform, ""},
    {"system.libc", "", Topic::platform, ""},
    {"system.glibc", "", Topic::platform, ""},
    {"system.glibcxx", "", Topic::platform, ""},
    {"env.loads[]", "", Topic::cuda_libraries, "package"},
    {"env.binaries[]", "", Topic::cuda_libraries, "package"},
    {"variables[]", "LD_LIBRARY_PATH", Topic::variables, ""},
    {"variables[]", "LD_PRELOAD", Topic::variables, ""},
    {"variables[]", "CUDA_VISIBLE_DEVICES", Topic::variables, ""},
    {"variables[]", "NVIDIA_VISIBLE_DEVICES", Topic::variables, ""},
    {"variables[]", "NVIDIA_DRIVER_CAPABILITIES", Topic::variables, ""},
    {"variables[]", "PYTHONPATH", Topic::variables, ""},
    {"variables[]", "PYTHONHOME", Topic::variables, ""},
    {"variables[]", "VIRTUAL_ENV", Topic::variables, "*"},
    {"variables[]", "CONDA_PREFIX", Topic::variables, "*"},
    {"variables[]", "CONDA_DEFAULT_ENV", Topic::variables, "*"},
    {"variables[]", "SLURM_JOB_GPUS", Topic::variables, "*"},
    {"variables[]", "SLURM_STEP_GPUS", Topic::variables, "*"},
    {"variables[]", "CUDA_VERSION", Topic::variables, "system.container"},  // of CUDA's images
    {"variables[]", "NCCL_VERSION", Topic::variables, "system.container"},
    {"variables[]", "NVIDIA_PRODUCT_NAME", Topic::variables, "system.container"},
    {"variables[]", "NVIDIA_REQUIRE_CUDA", Topic::variables, "system.container"},
    {"variables[]", "", Topic::variables, ""},
    {"system.container", "", Topic::container, ""},
    {"engine.runtime_registered", "", Topic::container, ""},
    {"engine.toolkit", "", Topic::container, ""},
    {"engine.default_runtime", "", Topic::container, ""},
    {"engine.snap_docker", "", Topic::container, ""},
    {"engine.cdi_specs", "", Topic::container, ""},
    {"system.memory_limit_bytes", "", Topic::container, ""},
    {"system.cpu_limit", "", Topic::container, ""},
    {"system.shm_bytes", "", Topic::container, "outside"},
    {"system.memlock_bytes", "", Topic::container, ""},
    {"system.cgroup", "", Topic::container, ""},
    {"engine.docker", "", Topic::container, ""},
    {"toolkits[]", "", Topic::other, ""},
    {"system.secure_boot", "", Topic::other, ""},
    {"system.distribution", "", Topic::other, ""},
    {"system.distribution_id", "", Topic::other, "system.distribution"},
    {"system.kernel", "", Topic::other, ""},
    {"env.kind", "", Topic::other, ""},
    {"env.installer", "", Topic::other, ""},
    {"kernel.persistence", "", Topic::other, ""},
    {"nvml.gpus[].ecc_current", "", Topic::other, ""},
};

// What no table row names: values that change from minute to minute, addresses, paths, and what
// other entries say better.
const std::string_view k_expected[] = {"schema",
                                       "cufit_version",
                                       "origin",
                                       "problems",
                                       "collect_env.",
                                       "system.boot_id",
                                       "system.cpu_model",
                                       "system.cpus",
                                       "system.ram_bytes",
                                       "system.ram_available_bytes",
                                       "pci[]",
                                       "kernel.module_on_disk",
                                       "kernel.log",
                                       "kernel.persistence",
                                       "driver_libraries.others[]",
                                       "nvml.library",
                                       "nvml.gpu_count",
                                       "nvml.gpus[]",
                                       "cuda.library",
                                       "cuda.devices[]",
                                       "cuda.driver_seconds",
                                       "env.path",
                                       "env.active",
                                       "env.found_by",
                                       "env.interpreter",
                                       "env.site_packages",
                                       "env.torch.path",
                                       "env.torch.xnnpack",
                                       "env.torch.module_loading",
                                       "env.shadowed[]"};

struct Place {
  const Row* row = nullptr;
  int rank = static_cast<int>(std::size(k_rows));
  bool expected = false;
};

Place difference_place(const ListedFact& fact) {
  Place place;
  for (size_t i = 0; i < std::size(k_rows); ++i) {
    const Row& row = k_rows[i];
    if (row.field != fact.field || (!row.key.empty() && row.key != fact.key)) continue;
    place.row = &row;
    place.rank = static_cast<int>(i);
    place.expected = row.follows == "*";
    return place;
  }
  for (const std::string_view start : k_expected)
    place.expected = place.expected || starts_with(fact.field, start);
  return place;
}

bool unanswered(const ListedFact& fact) {
  return fact.missing && *fact.missing != WhyNot::not_present &&
         *fact.missing != WhyNot::not_supported;
}

using Index = std::map<std::pair<std::string, std::string>, const ListedFact*>;

Index index_of(const std::vector<ListedFact>& facts) {
  Index out;
  for (const ListedFact& fact : facts) out.emplace(std::pair(fact.field, fact.key), &fact);
  return out;
}

class Comparer {
 public:
  Comparer(const FactSide& a, const FactSide& b, const std::vector<PackageChange>& packages)
      : a_(a), b_(b), packages_(packages) {}

  FactComparison compare() {
    const Index in_a = index_of(a_.facts), in_b = index_of(b_.facts);
    for (const auto& [name, fact] : in_a) {
      const auto other = in_b.find(name);
      pair(fact, other == in_b.end() ? nullptr : other->second);
    }
    for (const auto& [name, fact] : in_b)
      if (in_a.count(name) == 0) pair(nullptr, fact);
    std::stable_sort(out_.changes.begin(), out_.changes.end(),
                     [](const FactChange& x, const FactChange& y) { return x.rank < y.rank; });
    weigh();
    merge();
    return std::move(out_);
  }

 private:
  void one_sided(const ListedFact& told, const ListedFact* silent, bool in_a) {
    if (told.missing) return;
    const Place place = difference_place(told);
    out_.one_sided.push_back({told.field, told.key, told.value, in_a,
                              silent != nullptr ? *silent->missing : WhyNot::not_asked,
                              silent != nullptr ? silent->note : std::string(),
                              place.row != nullptr && !place.expected});
  }

  void pair(const ListedFact* a, const ListedFact* b) {
    if (a == nullptr || b == nullptr) {
      const ListedFact& one = a != nullptr ? *a : *b;
      const bool complete = a != nullptr ? b_.complete : a_.complete;
      // An element that the other list does not have; any other fact was not asked there.
      if (!one.of_list || !complete) return one_sided(one, nullptr, a != nullptr);
    } else {
      if (unanswered(*a) || unanswered(*b)) {
        if (!unanswered(*b)) one_sided(*b, a, false);
        if (!unanswered(*a)) one_sided(*a, b, true);
        return;
      }
      if (a->value == b->value) return;
    }
    const ListedFact& one = a != nullptr ? *a : *b;
    const Place place = difference_place(one);
    FactChange change;
    change.field = one.field;
    if (!one.key.empty()) change.keys.push_back(one.key);
    if (a != nullptr && !a->value.empty()) change.a = a->value;
    if (b != nullptr && !b->value.empty()) change.b = b->value;
    if (!change.a && !change.b) return;  // listed as found nowhere, and not listed at all
    if (a != nullptr) change.places_a = a->places;
    if (b != nullptr) change.places_b = b->places;
    change.rank = place.rank;
    if (place.row != nullptr) change.topic = place.row->topic;
    if (place.expected) change.weight = Weight::expected;
    rows_.emplace(change.field + "\n" + one.key, Origin{place.row, a, b});
    out_.changes.push_back(std::move(change));
  }

  bool changed(std::string_view field) const {
    for (const FactChange& change : out_.changes)
      if (change.field == field) return true;
    return false;
  }

  bool package_changed(const std::string& name) const {
    for (const PackageChange& package : packages_)
      if (package.name == name) return true;
    return false;
  }

  // The files belong to packages whose versions are listed; or one torch asks for a library that
  // the other does not know.
  bool of_changed_packages(const ListedFact* a, const ListedFact* b) const {
    if (a == nullptr || b == nullptr) {
      const ListedFact& one = a != nullptr ? *a : *b;
      return package_changed("torch") || package_changed(one.package);
    }
    return package_changed(a->package) && package_changed(b->package);
  }

  void weigh() {
    for (FactChange& change : out_.changes) {
      const Origin origin =
          rows_.at(change.field + "\n" + (change.keys.empty() ? std::string() : change.keys[0]));
      if (origin.row == nullptr || change.weight == Weight::expected) continue;
      const std::string_view follows = origin.row->follows;
      // A board without MIG and one whose MIG is off behave alike.
      const bool off = (!change.a && change.b == "false") || (!change.b && change.a == "false");
      const bool of_board = starts_with(change.field, "nvml.gpus[]") && (!change.a || !change.b);
      // Of a text nobody can tell.
      const bool untold =
          change.field == "env.kind" && (change.a == "claimed" || change.b == "claimed");
      if (off || untold) change.weight = Weight::expected;
      if (of_board && changed("gpus")) change.weight = Weight::implied;
      if (change.weight != Weight::matters) continue;
      if (follows == "package") {
        if (of_changed_packages(origin.a, origin.b)) change.weight = Weight::implied;
      } else if (follows == "outside") {  // half of the host's memory, unless a container says else
        if (!a_.container && !b_.container) change.weight = Weight::expected;
      } else if (!follows.empty() && changed(follows)) {
        change.weight = Weight::implied;
      }
    }
  }

  // Eight equal GPUs that differ in the same way are one difference.
  void merge() {
    std::vector<FactChange> merged;
    for (FactChange& change : out_.changes) {
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const FactChange& have) {
        return have.field == change.field && have.a == change.a && have.b == change.b &&
               have.weight == change.weight && !change.keys.empty();
      });
      if (same == merged.end()) {
        merged.push_back(std::move(change));
        continue;
      }
      same->keys.push_back(change.keys[0]);
      same->places_a.insert(same->places_a.end(), change.places_a.begin(), change.places_a.end());
      same->places_b.insert(same->places_b.end(), change.places_b.begin(), change.places_b.end());
    }
    out_.changes = std::move(merged);
  }

  struct Origin {
    const Row* row;
    const ListedFact *a, *b;
  };
  const FactSide &a_, &b_;
  const std::vector<PackageChange>& packages_;
  std::map<std::string, Origin> rows_;
  FactComparison out_;
};

}  // namespace

const char* to_string(Topic topic) {
  static const char* const k_names[] = {"driver",    "gpu",       "torch",
                                        "python",    "platform",  "cuda_libraries",
                                        "variables", "container", "other"};
  return k_names[static_cast<size_t>(topic)];
}

const char* to_string(Weight weight) {
  static const char* const k_names[] = {"matters", "implied", "expected"};
  return k_names[static_cast<size_t>(weight)];
}

FactComparison compare_facts(const FactSide& a, const FactSide& b,
                             const std::vector<PackageChange>& packages) {
  return Comparer(a, b, packages).compare();
}

}  // namespace cufit::resolve
