// SPDX-License-Identifier: Apache-2.0
#include "formats/system/kubernetes_objects.h"

#include "base/format.h"
#include "formats/system/kubernetes_faults.h"
#include "formats/system/kubernetes_pod.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_manifest_pods = 20000;
constexpr int k_most_list_depth = 4;  // a List of Lists is nothing that kubectl prints

std::string object_text(const YamlNode& map, std::string_view key) {
  const YamlNode& node = map.at(key);
  return node.is_scalar() ? node.text : std::string();
}

class ObjectReader {
 public:
  ManifestObjects out;

  // To the object that stands before the line, where it has a pod.
  void note_repeats(const std::vector<YamlRepeat>& repeats) {
    for (const YamlRepeat& one : repeats) {
      size_t at = out.objects.size();
      while (at > 0 && out.objects[at - 1].line > one.line) --at;
      if (at == 0 || !out.objects[at - 1].has_pods) continue;
      const size_t first = first_pods_[at - 1];
      if (first < out.pods.size())
        out.pods[first].faults.push_back({ManifestFault::Kind::repeated, one.key, "", one.line});
    }
  }

  void read(const YamlNode& object, int depth) {
    if (!object.is_map()) return;
    api_ = object_text(object, "apiVersion");
    kind_ = object_text(object, "kind");
    const YamlNode& items = object.at("items");
    if (ends_with(kind_, "List") && items.is_sequence()) {
      // Of `kubectl get --raw` the items have no kind of their own.
      const std::string item_kind = kind_.substr(0, kind_.size() - 4), api = api_;
      if (depth < k_most_list_depth)
        for (const YamlNode& item : items.items) {
          if (item.find("kind") == nullptr && !item_kind.empty())
            read_typed(item, api, item_kind);
          else
            read(item, depth + 1);
        }
      return;
    }
    read_typed(object, api_, kind_);
  }

 private:
  void read_typed(const YamlNode& object, const std::string& api, const std::string& kind) {
    api_ = api;
    kind_ = kind;
    name_ = object_text(object.at("metadata"), "name");
    if (name_.empty()) name_ = object_text(object.at("metadata"), "generateName");
    space_ = object_text(object.at("metadata"), "namespace");
    const size_t before = out.pods.size(), nodes = out.nodes.size();
    pods_of(object);
    if (out.pods.size() == before && is_core() && out.pods.size() < k_most_manifest_pods)
      note_spec(object);
    if (is_job())
      for (size_t i = before; i < out.pods.size(); ++i) note_restart(out.pods[i]);
    first_pods_.push_back(before);
    out.objects.push_back({api_, kind_, name_, space_, object.line,
                           out.pods.size() > before || out.nodes.size() > nodes});
  }

  bool is_core() const {
    for (const char* kind :
         {"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"})
      if (kind_ == kind) return true;
    return false;
  }
  // Not Volcano's, nor those that JobSet makes and fills.
  bool is_job() const {
    return (kind_ == "Job" || kind_ == "CronJob") && (api_.empty() || starts_with(api_, "batch/"));
  }
  // A part of a Job that others complete (a patch of Kustomize) has no image.
  static void note_restart(ManifestPod& pod) {
    if (pod.restart_policy == "Never" || pod.restart_policy == "OnFailure") return;
    for (const ManifestContainer& one : pod.containers)
      if (!one.image.empty()) {
        pod.faults.push_back({ManifestFault::Kind::job_restart, "restartPolicy", pod.path,
                              pod.restart_line != 0 ? pod.restart_line : pod.line});
        return;
      }
  }
  // A pod of which nothing can be read.
  void note_spec(const YamlNode& object) {
    const YamlNode& spec = object.at("spec");
    if (!spec.is_scalar() && !spec.is_sequence()) return;
    ManifestPod pod;
    pod.kind = kind_;
    pod.name = name_;
    pod.space = space_;
    pod.path = "spec";
    pod.line = object.line_of("spec");
    pod.partial = true;
    pod.faults.push_back({ManifestFault::Kind::no_map, "spec", "", pod.line});
    out.pods.push_back(std::move(pod));
  }

  ManifestPod* add_template(const YamlNode& of, const std::string& path, std::string role = {}) {
    const YamlNode& spec = of.at("spec");
    if (!spec.is_map()) return nullptr;
    return add_spec(spec, of.at("metadata"), path + ".spec", std::move(role));
  }

  ManifestPod* add_spec(const YamlNode& spec, const YamlNode& metadata, const std::string& path,
                        std::string role) {
    if (!spec.is_map() || out.pods.size() >= k_most_manifest_pods) return nullptr;
    ManifestPod pod;
    pod.kind = kind_;
    pod.name = name_;
    pod.space = space_;
    pod.role = std::move(role);
    pod.line = spec.line;
    pod.annotations = metadata.at("annotations").keys;
    read_pod_spec(spec, path, pod);
    note_faults(spec, path, pod);
    out.pods.push_back(std::move(pod));
    return &out.pods.back();
  }

  void pods_of(const YamlNode& object) {
    const YamlNode& spec = object.at("spec");
    if (kind_ == "Pod") {
      add_spec(spec, object.at("metadata"), "spec", {});
    } else if (kind_ == "PodTemplate") {
      add_template(object.at("template"), "template");
    } else if (kind_ == "CronJob") {
      add_template(spec.at({"jobTemplate", "spec", "template"}), "spec.jobTemplate.spec.template");
    } else if (kind_ == "Node") {
      out.nodes.push_back(read_node(object, name_));
    } else if (kind_ == "JobSet") {
      replicated_jobs(spec, "spec", false);
    } else if (kind_ == "TrainingRuntime" || kind_ == "ClusterTrainingRuntime") {
      replicated_jobs(spec.at({"template", "spec"}), "spec.template.spec", true);
    } else if (kind_ == "TrainJob") {
      train_job(spec);
    } else if (starts_with(kind_, "Ray")) {
      ray(spec);
    } else if (kind_ == "LeaderWorkerSet") {
      const YamlNode& both = spec.at("leaderWorkerTemplate");
      const std::string path = "spec.leaderWorkerTemplate.";
      add_template(both.at("leaderTemplate"), path + "leaderTemplate", "leader");
      add_template(both.at("workerTemplate"), path + "workerTemplate", "worker");
    } else if (is_kubeflow_job(spec)) {
      return;
    } else if (kind_ == "Job" && spec.at("tasks").is_sequence()) {  // Volcano's
      const std::vector<YamlNode>& tasks = spec.at("tasks").items;
      for (size_t i = 0; i < tasks.size(); ++i)
        add_template(tasks[i].at("template"), format("spec.tasks[{}].template", i),
                     object_text(tasks[i], "name"));
    } else if (kind_ == "InferenceService") {
      inference(spec);
    } else if (kind_ == "Service" ? starts_with(api_, "serving.knative.dev/")
                                  : kind_ == "Notebook") {
      add_template(spec.at("template"), "spec.template");
    } else if (kind_ == "Deployment" || kind_ == "StatefulSet" || kind_ == "DaemonSet" ||
               kind_ == "ReplicaSet" || kind_ == "ReplicationController" || kind_ == "Job") {
      add_template(spec.at("template"), "spec.template");
    }
  }

  void replicated_jobs(const YamlNode& spec, const std::string& path, bool partial) {
    const YamlNode& jobs = spec.at("replicatedJobs");
    if (!jobs.is_sequence()) return;
    for (size_t i = 0; i < jobs.items.size(); ++i) {
      ManifestPod* pod =
          add_template(jobs.items[i].at({"template", "spec", "template"}),
                       format("{}.replicatedJobs[{}].template.spec.template", path, i),
                       object_text(jobs.items[i], "name"));
      if (pod != nullptr) pod->partial = pod->kubeflow = partial;
    }
  }

  // What the runtime that it names puts around this is in another object.
  void train_job(const YamlNode& spec) {
    const YamlNode& trainer = spec.at("trainer");
    if (!trainer.is_map() || out.pods.size() >= k_most_manifest_pods) return;
    ManifestPod pod;
    pod.kind = kind_;
    pod.name = name_;
    pod.space = space_;
    pod.path = "spec.trainer";
    pod.line = trainer.line;
    pod.partial = pod.kubeflow = true;
    pod.processes = object_text(trainer, "numProcPerNode");
    pod.processes_line = trainer.line_of("numProcPerNode");
    ManifestContainer container = read_container(trainer, "spec.trainer");
    container.name = "trainer";
    read_resources(trainer.at("resourcesPerNode"), container);
    container.resources_line = trainer.line_of("resourcesPerNode");
    pod.containers.push_back(std::move(container));
    out.pods.push_back(std::move(pod));
  }

  // KServe's: each component is the spec of a pod; what serves a `model` is in a ServingRuntime.
  void inference(const YamlNode& spec) {
    for (const char* component : {"predictor", "transformer", "explainer"}) {
      const YamlNode& one = spec.at(component);
      const std::string path = std::string("spec.") + component;
      ManifestPod* pod = add_spec(one, one.at("metadata"), path, component);
      if (pod == nullptr || !one.at("model").is_map()) continue;
      pod->partial = true;
      pod->containers.push_back(read_container(one.at("model"), path + ".model"));
      if (pod->containers.back().name.empty()) pod->containers.back().name = "kserve-container";
    }
  }

  void ray(const YamlNode& spec) {
    for (const char* key : {"", "rayClusterSpec", "rayClusterConfig"}) {
      const YamlNode& cluster = *key == '\0' ? spec : spec.at(key);
      const std::string path = *key == '\0' ? "spec" : std::string("spec.") + key;
      note_ray(add_template(cluster.at({"headGroupSpec", "template"}),
                            path + ".headGroupSpec.template", "head"),
               cluster.at("headGroupSpec"));
      const YamlNode& groups = cluster.at("workerGroupSpecs");
      if (groups.is_sequence())
        for (size_t i = 0; i < groups.items.size(); ++i)
          note_ray(add_template(groups.items[i].at("template"),
                                format("{}.workerGroupSpecs[{}].template", path, i),
                                object_text(groups.items[i], "groupName")),
                   groups.items[i]);
    }
    note_ray(
        add_template(spec.at("submitterPodTemplate"), "spec.submitterPodTemplate", "submitter"),
        YamlNode());
  }
  static void note_ray(ManifestPod* pod, const YamlNode& group) {
    if (pod == nullptr) return;
    pod->ray = true;
    pod->ray_gpus = object_text(group.at("rayStartParams"), "num-gpus");
    pod->ray_gpus_line = group.at("rayStartParams").line_of("num-gpus");
  }

  // PyTorchJob, MPIJob, TFJob ...: spec.pytorchReplicaSpecs.Worker.template
  bool is_kubeflow_job(const YamlNode& spec) {
    bool found = false;
    for (size_t i = 0; i < spec.keys.size(); ++i) {
      const std::string& key = spec.keys[i];
      if (!ends_with(key, "ReplicaSpecs") || !spec.items[i].is_map()) continue;
      found = true;
      const YamlNode& roles = spec.items[i];
      for (size_t k = 0; k < roles.keys.size(); ++k) {
        ManifestPod* pod =
            add_template(roles.items[k].at("template"),
                         format("spec.{}.{}.template", key, roles.keys[k]), roles.keys[k]);
        if (pod == nullptr) continue;
        pod->kubeflow = true;
        pod->processes = object_text(spec, "nprocPerNode");
        pod->processes_line = spec.line_of("nprocPerNode");
        pod->restart_policy = object_text(roles.items[k], "restartPolicy");
        if (key == "mpiReplicaSpecs" && roles.keys[k] == "Worker") note_mpi(spec, roles, *pod);
      }
    }
    return found;
  }

  static void note_mpi(const YamlNode& spec, const YamlNode& roles, ManifestPod& pod) {
    pod.mpi_slots = object_text(spec, "slotsPerWorker");
    pod.mpi_slots_line = spec.line_of("slotsPerWorker");
    const YamlNode& containers = roles.at({"Launcher", "template", "spec", "containers"});
    if (!containers.is_sequence() || containers.items.empty()) return;
    for (const char* key : {"command", "args"})
      for (std::string& word : yaml_words(containers.items[0].at(key)))
        pod.mpi_command.push_back(std::move(word));
  }

  std::string api_, kind_, name_, space_;
  std::vector<size_t> first_pods_;  // of out.objects
};

}  // namespace

ManifestObjects read_objects(const YamlText& text) {
  ObjectReader reader;
  for (const YamlNode& document : text.documents) reader.read(document, 0);
  reader.note_repeats(text.repeats);
  return std::move(reader.out);
}

}  // namespace cufit::formats
