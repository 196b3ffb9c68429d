// SPDX-License-Identifier: Apache-2.0
// The page of `cufit mem view`: one file that needs no network and no other file. Its script and
// style are src/report/page/*, its texts are data/messages/mem_view.toml in both languages.
#pragma once

#include <string>

#include "memory/analysis/view.h"
#include "knowledge/knowledge.h"
#include "memory/snapshot/snapshot.h"

namespace cufit::report {

struct MemView {
  const analysis::View& view;
  const memory::Snapshot& snapshot;
  const knowledge::Knowledge& knowledge;
  std::string file;  // as the user named it
};

// `lang`: the language that the page opens in. Nothing of the snapshot is ever markup: texts are
// compressed and base64, or JSON without "<", or escaped.
std::string mem_view_html(const MemView& page, const std::string& lang);

}  // namespace cufit::report
