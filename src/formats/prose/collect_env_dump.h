// SPDX-License-Identifier: Apache-2.0
// Reads what `python -m torch.utils.collect_env` (or vLLM's `collect_env.py`) printed, as people
// paste it.
//
// Accepted, because all of it is in the wild: torch <= 1.6 (`Yes`/`No`, `[pip]`) up to 2.14; vLLM's
// flat and sectioned forms; Markdown fences, `<details>`, `>` quotes, list bullets, indentation, CR
// LF, leading time stamps, terminal colours, a missing first line, values wrapped onto the next
// line, labels typed off without their colon.
//
// Fields carry torch's own internal names ("torch_version"), values as written (several lines
// joined by \n). Nothing is judged here; facts/collect_env_facts.h makes claimed facts of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/damage.h"

namespace cufit::formats {

struct DumpField {
  std::string name;  // "torch_version"; in `cpu` and `variables` the label as written
  std::string value;
  uint64_t line = 0;  // from 1
};

struct DumpGpu {
  uint32_t index = 0;
  std::string name;
  std::vector<std::string> mig;  // "1g.10gb"
  uint64_t line = 0;
};

struct DumpPackage {
  std::string manager;  // "pip", "pip3", "uv", "conda"
  std::string name, version;
  std::string build, channel;  // conda only
  uint64_t line = 0;
};

struct CollectEnvDump {
  std::vector<DumpField> fields;  // in the order of the text; a name occurs once (the first wins)
  std::vector<DumpGpu> gpus;
  std::vector<DumpField> cpu;        // lscpu's lines
  std::vector<DumpField> variables;  // vLLM's "Environment Variables"
  std::vector<DumpPackage> packages;
  std::vector<Damage> damage;  // offset is a line number

  const DumpField* find(std::string_view name) const;
  // Two known labels are needed to believe that a text is such a dump at all.
  bool recognised() const { return fields.size() >= 2; }
};

CollectEnvDump parse_collect_env_dump(std::string_view text);

// "True", "Yes", "1" -> true; "False", "No" -> false; anything else -> neither.
bool dump_says_yes(std::string_view value);
bool dump_says_no(std::string_view value);
// "Could not collect", "N/A", "No CUDA", "None" and an empty value: the dump's author did not know.
bool dump_says_nothing(std::string_view value);

}  // namespace cufit::formats
