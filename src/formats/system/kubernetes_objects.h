// SPDX-License-Identifier: Apache-2.0
// What manifests of Kubernetes say of pods and nodes: the parts that decide about GPUs, memory and
// where a pod may run. Pods, what makes them (Deployment ... CronJob), JobSet, LeaderWorkerSet,
// Kubeflow's jobs, Ray's clusters, lists of them; and Node objects, as `kubectl get nodes -o yaml`
// prints them. Fields are those of the API (k8s.io/api/core/v1); nothing is judged here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/system/yaml_tree.h"

namespace cufit::formats {

struct PodVariable {
  std::string name;
  std::optional<std::string> value;  // nullopt: valueFrom
  size_t line = 0;
};

struct PodResource {
  std::string name, quantity;  // "nvidia.com/gpu", "1"; as written
  size_t line = 0;
};

struct PodMount {
  std::string volume, path;
  size_t line = 0;
};

struct ManifestContainer {
  std::string name, image;
  std::string path;  // "spec.template.spec.containers[0]"
  size_t line = 0;
  bool init = false;
  bool sidecar = false;  // an init container that stays: restartPolicy Always
  std::vector<std::string> command, args;
  size_t command_line = 0;  // of args where there is no command
  std::vector<PodVariable> variables;
  bool variables_from = false;  // envFrom: there are more
  std::vector<PodResource> limits, requests;
  size_t resources_line = 0;  // of the container where it has none
  bool claims = false;        // devices by dynamic resource allocation
  std::vector<PodMount> mounts;
  size_t privileged_line = 0;  // 0 = not privileged
};

struct PodVolume {
  enum class Kind { memory, disk, host_path, other };  // the first two are emptyDir
  std::string name, size_limit, host_path;
  Kind kind = Kind::other;
  size_t line = 0;
};

struct NodeRequirement {
  std::string key, op;  // In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;
  size_t line = 0;
};

struct Toleration {
  std::string key, op, value, effect;
};

// What the API's types do not take, whatever the values are.
struct ManifestFault {
  enum class Kind { repeated, no_list, no_map, outside_resources, no_text, job_restart };
  Kind kind = Kind::repeated;
  std::string key, path;  // "limits"; where it stands: "spec.containers[0]", empty = not told
  size_t line = 0;
};

struct ManifestPod {
  std::string kind, name, space;  // of the object: "Job", "train"; space: its namespace
  std::string role;               // "Worker" of a PyTorchJob, a worker group of Ray; else empty
  std::string path;               // of the pod's spec: "spec.template.spec"
  size_t line = 0;
  // A part of a pod: the rest comes from elsewhere (TrainJob, TrainingRuntime). What is missing may
  // be there.
  bool partial = false;
  bool kubeflow = false, ray = false;  // their controllers add variables, /dev/shm
  std::string processes;               // nprocPerNode of a PyTorchJob, numProcPerNode of a TrainJob
  std::string ray_gpus;                // num-gpus of rayStartParams
  std::string mpi_slots;               // of an MPIJob's worker: slotsPerWorker,
  std::vector<std::string> mpi_command;  // and what the launcher starts in it
  std::string restart_policy;            // empty = the kind's default
  size_t restart_line = 0, processes_line = 0, ray_gpus_line = 0, mpi_slots_line = 0;
  size_t host_pid_line = 0, host_ipc_line = 0;  // 0 = no
  std::string runtime_class, node_name;
  std::vector<ManifestFault> faults;          // at most 100
  std::vector<std::string> annotations;       // names
  std::vector<ManifestContainer> containers;  // those that run first (init) too
  std::vector<PodVolume> volumes;
  std::vector<NodeRequirement> selector;               // all must hold
  std::vector<std::vector<NodeRequirement>> affinity;  // one of them must hold; empty = none asked
  std::vector<Toleration> tolerations;
};

struct Taint {
  std::string key, value, effect;
};

struct ManifestNode {
  std::string name;
  size_t line = 0;
  std::map<std::string, std::string> labels;
  std::vector<Taint> taints;
  std::map<std::string, std::string> allocatable;
  bool unschedulable = false;  // `kubectl cordon`
  bool not_ready = false;      // its condition Ready is False or Unknown
};

struct ManifestObject {
  std::string api, kind, name, space;
  size_t line = 0;
  bool has_pods = false;  // else skipped
};

struct ManifestObjects {
  std::vector<ManifestObject> objects;
  std::vector<ManifestPod> pods;
  std::vector<ManifestNode> nodes;
};

// A field of another type than the API's is left out, as if it were not there, and is a fault of the
// pod where it is one of those that people get wrong. At most 20,000 pods.
ManifestObjects read_objects(const YamlText& text);

// "16Gi", "500m", "1e3": a quantity of Kubernetes as a number; nullopt where it is none.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace cufit::formats
