// SPDX-License-Identifier: Apache-2.0
// Reads what commands and scripts in a pasted text set and start: environment assignments (`export
// X=1`, `X=1 python`, `-e X=1`, Dockerfile's `ENV X 1`, `set X=1`), `docker run` and `podman run`
// lines, and the loader's answers (`libX.so => /path`, LD_DEBUG's `calling init:`).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

struct ShellVariable {
  std::string name, value;
  std::string how;  // "export", "command", "docker", "dockerfile", "set", "unset", "line", "echo"
  uint64_t line = 0;
};

struct DockerRun {
  std::string image;     // empty = the line does not show it
  std::string gpus;      // of --gpus: "all"
  std::string runtime;   // of --runtime: "nvidia"
  std::string shm_size;  // "16gb"
  std::string ipc;       // "host"
  bool nvidia_docker = false, privileged = false, device_nodes = false;
  uint64_t line = 0;
};

struct LoaderLine {
  std::string name;   // "libnvJitLink.so.12"
  std::string path;   // empty = "not found"
  bool init = false;  // LD_DEBUG: this file was loaded and initialised
  uint64_t line = 0;
};

struct ShellWords {
  std::vector<ShellVariable> variables;  // at most 500
  std::vector<DockerRun> containers;     // at most 50
  std::vector<LoaderLine> libraries;     // at most 500
};

ShellWords parse_shell_words(std::span<const TextLine> lines);

// "16gb", "64m", "1g", "67108864" as docker reads sizes; 0 = not a size.
uint64_t docker_size(std::string_view text);

}  // namespace cufit::formats
