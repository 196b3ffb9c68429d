// SPDX-License-Identifier: Apache-2.0
// A torch that the tables do not know, judged by its own file on an index: METADATA says its CUDA,
// the beginning of libtorch_cuda.so which GPUs it has code for. Both are fetched by ranges.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "commands/context.h"
#include "formats/python/index_page.h"
#include "formats/python/requirement.h"
#include "host/process/child_process.h"
#include "knowledge/knowledge.h"

namespace cufit::commands {

struct HeardPage {
  std::string url;  // of the page, "https://host/simple/torch/"
  formats::IndexPage page;
};

// Do the requirements on torch allow this version?
bool is_wanted_torch(const std::string& version,
                     const std::vector<formats::Requirement>& requirements);

// The context's tables with rows of such wheels. Owns what its rows point to.
class NewerTorch {
 public:
  const knowledge::Knowledge& knowledge() const { return knowledge_; }

 private:
  friend class NewerTorchReader;
  knowledge::Knowledge knowledge_;
  std::deque<std::string> texts_;
  std::vector<knowledge::TorchRelease> releases_;
  std::vector<knowledge::WheelVariant> wheels_;
  std::vector<knowledge::ArchSet> sets_;
  std::vector<knowledge::CudaTag> tags_;
};

// Of the newest release on the pages that meets the requirements and is newer than all in the
// tables. Null where there is none, or where its files do not tell (said on stderr).
std::unique_ptr<NewerTorch> read_newer_torch(const Context& context,
                                             const std::vector<HeardPage>& pages,
                                             const std::vector<formats::Requirement>& requirements,
                                             host::Interrupts& interrupts);

}  // namespace cufit::commands
