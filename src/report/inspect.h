// SPDX-License-Identifier: Apache-2.0
// The result of `cufit inspect` and its two views. commands/inspect/inspect.cc fills it.
#pragma once

#include <string>
#include <vector>

#include "checks/code_match.h"
#include "checks/file_driver.h"
#include "checks/finding.h"
#include "facts/nvidia_properties.h"
#include "formats/binary/elf.h"
#include "knowledge/knowledge.h"
#include "report/report.h"

namespace cufit::report {

struct InspectVerdict {
  std::string gpu;  // as the table names it; the capability where only that was given
  std::string cc;   // "8.9"
  checks::CodeMatch match;
  checks::LinkState verdict = checks::LinkState::unknown;
  // Why it stays unknown whatever the code says: "damaged", "no_kernel"; "host_code": an undamaged
  // file without any device code, of which there is nothing to judge.
  const char* because = "";
  checks::FileDriver driver;  // what it needs of the driver, whatever its code
};

struct InspectedFile {
  std::string path;  // "a.whl!torch/lib/libtorch_cuda.so" inside a wheel
  uint64_t size_bytes = 0;
  formats::ElfFile elf;
  std::vector<InspectVerdict> verdicts;
  uint64_t seen_bytes = 0;  // of a file on a server that was not read to its end; 0 = all of it
};

// One variant of a wheel that has such, or of a table of them.
struct InspectedVariant {
  std::string path;  // "a.whl", "torch-2.8.0-variants.json"
  formats::LabelledVariant variant;
  struct Fit {
    std::string gpu, cc;
    facts::VariantFit fit = facts::VariantFit::not_known;
  };
  std::vector<Fit> fits;  // of each GPU that was asked for
};

struct InspectError {
  std::string path;
  std::string what;
};

struct InspectResult {
  std::vector<InspectedFile> files;
  std::vector<InspectError> errors;
  size_t skipped = 0;  // files of directories and wheels that have nothing to do with CUDA
  std::vector<InspectedVariant> variants = {};
};

// Machine code works; PTX works with a slow first start; none is broken; a file without code is
// unknown.
checks::LinkState verdict_of(checks::Match match);

// What the file says for this device: its driver first (verdict.driver), then its code. "No code fits" is certain only for a whole file whose
// code holds kernels: a damaged one and one that brings its kernels in another way (cuFFT) stay
// unknown, and so does one of which only the beginning was seen.
void judge_file(const formats::ElfFile& elf, InspectVerdict& verdict, bool whole = true);

// One sentence for a verdict: messages "inspect.detail.<match>".
std::string inspect_detail(const InspectVerdict& verdict, std::string_view lang,
                           const knowledge::Knowledge& knowledge);

std::string inspect_text(const InspectResult& result, const Style& style,
                         const knowledge::Knowledge& knowledge);
std::string inspect_json(const InspectResult& result,
                         const knowledge::Knowledge& knowledge);  // inspect_json.cc

}  // namespace cufit::report
