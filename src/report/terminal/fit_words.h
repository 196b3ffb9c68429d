// SPDX-License-Identifier: Apache-2.0
// Words that the two views of `cufit fit` share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/fit.h"

namespace cufit::report {

// The key of a sentence that names a number of things: that of one has a form of its own.
std::string counted(const char* key, uint64_t count);
const char* phase_name(fit::TracePhase phase);  // "backward": a key and a word of the JSON

// The parts of the peak in the order of a report: "weights" and its bytes. The last two are beside
// what is allocated: "fragmentation", "outside_allocator".
std::vector<std::pair<std::string, uint64_t>> parts_of(const fit::Prediction& prediction);
constexpr size_t k_parts_beside = 2;

// Batch sizes that were traced, also where the traces are of programs apart.
std::vector<uint64_t> traced_batches(const fit::StepProgram& program);

// Sentences of the answer, for the terminal and the page.
std::string fit_batch_text(const FitView& view, const std::string& lang);    // "batch 8, its own"
std::string fit_traced_text(const FitView& view, const std::string& lang);   // how it is known
std::string fit_peak_text(const FitView& view, const std::string& lang);     // the sizes
std::string fit_outside_text(const FitView& view, const std::string& lang);  // beside them
std::string fit_when_text(const FitView& view, const std::string& lang);     // when it comes
std::string fit_largest_text(const FitView& view, const fit::CardAnswer& gpu);  // ">= 16", "-"
std::string fit_gpu_note(const FitView& view, const fit::CardAnswer& gpu, const std::string& lang);
std::string fit_module_name(const FitView& view, const fit::ModuleBytes& row,
                            const std::string& lang);

}  // namespace cufit::report
