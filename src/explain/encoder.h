// SPDX-License-Identifier: Apache-2.0
// Which cause of running out of memory a report tells of, by a small text encoder (a BERT of six
// layers, all-MiniLM-L6-v2, taught further by tools/learn_encoder.py). Where words alone stand for
// what they usually mean (vocabulary.h), it reads them in their order. It proves nothing, either.
#pragma once

#include <string_view>
#include <vector>

#include "explain/encoder_weights.h"

namespace cufit::explain {

struct CauseReading {
  std::string_view cause;  // id of a finding
  double probability = 0;  // among the causes of running out of memory: they add up to 1
};

// In the order of the weights' causes; empty where the encoder knows too little of the text: it has
// no words, or most of it is in a script that it does not read. Takes some 25 ms for 100 words on
// one core.
std::vector<CauseReading> read_report(const EncoderWeights& weights, std::string_view text);

}  // namespace cufit::explain
