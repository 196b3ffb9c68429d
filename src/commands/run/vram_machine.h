// SPDX-License-Identifier: Apache-2.0
// What `cufit run --vram` has to know of the machine and of the program before it sets a limit: asked once.
#pragma once

#include <string>
#include <vector>

#include "commands/context.h"
#include "commands/run/run_vram.h"
#include "host/quota/program_kind.h"
#include "resolve/quota/backend.h"
#include "resolve/quota/vram_size.h"

namespace cufit::commands {

struct VramMachine {
  std::vector<resolve::QuotaCard> cards;  // as the program's process will number them
  std::vector<std::optional<uint32_t>>
      numbers;                  // the same, as nvidia-smi counts; nullopt: not told
  resolve::QuotaMachine quota;  // with the program in it
  host::ProgramKind program;
  bool nvml_own_process = false;  // NVML says what a process itself holds
  uint64_t link_rate = 0;         // bytes a second of the slowest link to a GPU; 0 = not known
};
// The GPUs are the driver's own answer, by a child with a time limit.
VramMachine read_vram_machine(const Context& context, const VramProgram& program,
                              const std::vector<std::string>& variables);

resolve::SlurmShards read_shards(const Context& context);

}  // namespace cufit::commands
