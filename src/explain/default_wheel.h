// SPDX-License-Identifier: Apache-2.0
// "torch 2.11.0" without a variant is mostly what the default index gave: the release's default
// wheel. Its CUDA version is filled in as `assumed`, which never makes a cause certain.
#pragma once

#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

void assume_default_wheels(facts::Facts& facts, const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
