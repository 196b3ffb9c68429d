// SPDX-License-Identifier: Apache-2.0
// What follows from numbers that a text gave: the share of a card that is free, the toolkit that
// knows an architecture, the Python that a release of torch has wheels for.
#pragma once

#include <map>
#include <string>

#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// Adds to `args` what follows from those that are there, under other names:
//   free, whole            share     0.42: a little less than free / whole
//   own_share ("0.6")      lower_share "0.50"
//   cpu_bytes              cpu_gib "619": of one request of RAM; cpu_gib_large where it is 48 or more
//   billions ("13")        full_train "208": GB of all states, states_fit where card_count
//                          cards of card_gb have that; offload_ram "351": with them in RAM
//   job_gb, pod_gib        job_gb_more, pod_gib_more: twice that
//   gcc_below ("13")       gcc       "12"
//   sm ("120", "12.0")     toolkit   "12.8": the first that makes code for it
//                          last_toolkit "11.8": the last that did, where it was dropped
//   wanted_torch           python    "3.11": one that the release has wheels for; nothing
//                                    where the text's Python is among them
//                          pythons   all of them: "3.8, 3.9, 3.10, 3.11"
//   (the torch of the text) torchcodec "0.7", torchcodec_torch "2.8.0"
//   xformers_torch         xformers  "0.0.23.post1", built against it
//   cudnn_wanted ("8")     cudnn9_torch  the torch of the text, where its wheels bring cuDNN 9
//   cpython ("310")        python    "3.10"
//   (the torch of the text) torch_release "2.10.0", triton_next "3.7": below it is its Triton
//   python_new ("3.14")    python_older "3.13"
void add_captured_args(std::map<std::string, std::string>& args, const facts::Facts& facts,
                       const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
