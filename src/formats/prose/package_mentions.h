// SPDX-License-Identifier: Apache-2.0
// Reads which package a failed build or a failed import is about, as installers and Python say it:
//
//   ERROR: Failed building wheel for flash-attn           Building wheel for mamba-ssm (setup.py)
//   ... ERROR: Could not build wheels for a, b, which is      Running setup.py install for apex:
//   started x Failed to build `deepspeed==0.16.4`                 Collecting flash-attn==2.5.8 $
//   pip install flash-attn==2.5.8 /tmp/pip-install-x/flash-attn_<hex>/setup.py ModuleNotFoundError:
//   No module named 'flash_attn_2_cuda' ImportError:
//   .../site-packages/mmcv/_ext.cpython-310-x86_64-linux-gnu.so: undefined symbol ImportError: DLL
//   load failed while importing flash_attn_2_cuda
//
// What was built in the end is left out. Names are checked against PEP 508, versions against PEP
// 440: both may be written into a command.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

enum class MentionKind {
  build_failed,  // a distribution that could not be built
  build,         // one whose build was begun, and nothing says how it went
  module,        // a module that an import did not find or could not load
  file,          // a compiled file in site-packages that did not load; its module: "mmcv._ext"
  frame,         // a module of the last traceback, or one that its lines of code name
  wheel          // the distribution in a wheel's name
};

struct PackageMention {
  MentionKind kind = MentionKind::build;
  std::string name;     // as written
  std::string version;  // of "==": without a local part; empty = none asked for
  bool sure = true;     // false: people write the same words ("failed to build the package")
  bool folder = false;  // file: the module is a folder of site-packages
  uint64_t line = 0;
};

// `pip install a b`, `uv add a`, ... What it names may be empty: `pip install -r list.txt`.
struct InstallCommand {
  std::vector<PackageMention> wanted;  // as kind build
  bool typed = false;                  // behind a prompt, in a Dockerfile or in backticks: no prose
  uint64_t line = 0;
};

struct PackageMentions {
  std::vector<PackageMention> mentions;  // at most 1000, in the order of the text
  std::vector<InstallCommand> commands;  // at most 200
  bool from_folder = false;              // a folder or a repository is built: names are its own
};

PackageMentions parse_package_mentions(std::span<const TextLine> lines);

bool is_distribution_name(std::string_view name);  // PEP 508, at most 64 characters

}  // namespace cufit::formats
