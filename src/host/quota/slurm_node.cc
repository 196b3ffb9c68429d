// SPDX-License-Identifier: Apache-2.0
#include "host/quota/slurm_node.h"

#include "base/format.h"
#include "base/path.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_bytes = size_t{16} << 20;  // of all files together
constexpr int k_most_depth = 8, k_most_files = 64;

struct Reading {
  std::string folder;  // of slurm.conf: a file that is included is looked for there
  std::string text;    // of all files, each in its place
  int files = 0;
};

// False: it cannot be read.
bool add_file(const Host& host, const std::string& path, int depth, Reading& all) {
  if (++all.files > k_most_files) return false;
  const Result<std::string> text = host.read_file(path, k_most_bytes);
  if (!text) return false;
  for (const formats::SlurmPiece& piece : formats::slurm_pieces(*text)) {
    if (all.text.size() + piece.text.size() > k_most_bytes) return true;
    all.text += piece.text;
    if (!all.text.empty() && all.text.back() != '\n') all.text += '\n';
    if (!piece.include.empty() && depth < k_most_depth)
      add_file(host, path_in(all.folder, piece.include), depth + 1, all);  // or from the root
  }
  return true;
}

}  // namespace

formats::SlurmNode read_slurm_node(const Host& host) {
  for (const std::string& path :
       {host.variable("SLURM_CONF").value_or(""), std::string("/etc/slurm/slurm.conf"),
        std::string("/run/slurm/conf/slurm.conf")}) {
    Reading all;
    all.folder = parent_folder(path);
    if (path.empty() || !add_file(host, path, 0, all)) continue;
    return formats::parse_slurm_node(all.text, host.variable("SLURMD_NODENAME").value_or(""));
  }
  return {};
}

}  // namespace cufit::host
