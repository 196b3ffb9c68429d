// SPDX-License-Identifier: Apache-2.0
// What the paths given to `cufit inspect` stand for: ELF files, wheels (read without unpacking) and
// directories.
#pragma once

#include <functional>
#include <string>

#include "host/files/host.h"
#include "report/inspect.h"

namespace cufit::commands {

// What is read now, done and total bytes; done == total ends it.
using InspectProgress = std::function<void(const std::string& what, uint64_t done, uint64_t total)>;

// Does the file carry device code or need CUDA's, NVIDIA's or torch's libraries? Files of
// directories and wheels that do not are left out of the list.
bool has_cuda_parts(const formats::ElfFile& elf);

// Adds what `path` stands for to `result`. A file named explicitly is always listed; links that
// lead to a file already seen and directories that contain themselves are followed once.
void inspect_path(const host::Host& host, const std::string& path, const InspectProgress& progress,
                  report::InspectResult& result);

// A wheel on a server, read by ranges: small members whole, of large ones the beginning. The signal
// that interrupted it; 0 = none.
int inspect_url(const std::string& url, const InspectProgress& progress,
                report::InspectResult& result);

}  // namespace cufit::commands
