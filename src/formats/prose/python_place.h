// SPDX-License-Identifier: Apache-2.0
// Which Python a pasted text is about: the environment whose packages stand in its traceback
// ("/home/me/venv/lib/python3.11/site-packages/torch/..."), the Python that says that it misses a
// module ("/home/me/venv/bin/python: No module named pip"), or the interpreter of a bundle that it
// names ("python_embeded\python.exe").
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

struct PythonPlace {
  std::string prefix;       // "/home/me/venv"; empty where only the interpreter is known
  std::string interpreter;  // "/home/me/venv/bin/python", "D:\\ui\\python_embeded\\python.exe"
  std::string minor;        // "3.11" where the path says it
  std::string installer;    // "poetry", "pixi" by where it lies; else empty
  uint64_t line = 0;
};

// The last one that the text shows: a traceback ends where it failed. Nothing for the Python of a
// system or an image (/usr, /usr/local, /opt/conda), which a command reaches by name, and for paths
// that are abbreviated (".../site-packages").
std::optional<PythonPlace> last_python_place(std::span<const TextLine> lines);

}  // namespace cufit::formats
