// SPDX-License-Identifier: Apache-2.0
// The result of `cufit inspect` and its two views. commands/inspect/inspect.cc fills it.
#pragma once

#include <string>
#include <vector>

#include "checks/code_match.h"
#include "checks/file_driver.h"
#include "checks/finding.h"
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
};

struct InspectError {
  std::string path;
  std::string what;
};

struct InspectResult {
  std::vector<InspectedFile> files;
  std::vector<InspectError> errors;
  size_t skipped = 0;  // files of directories and wheels that have nothing to do with CUDA
};

// Machine code works; PTX works with a slow first start; none is broken; a file without code is
// unknown.
checks::LinkState verdict_of(checks::Match match);

// What the file says for this device: its driver first (verdict.driver), then its code. "No code fits" is certain only for a whole file whose
// code holds kernels: a damaged one and one that brings its kernels in another way (cuFFT) stay
// unknown.
void judge_file(const formats::ElfFile& elf, InspectVerdict& verdict);

// One sentence for a verdict: messages "inspect.detail.<match>".
std::string inspect_detail(const InspectVerdict& verdict, std::string_view lang,
                           const knowledge::Knowledge& knowledge);

std::string inspect_text(const InspectResult& result, const Style& style,
                         const knowledge::Knowledge& knowledge);
std::string inspect_json(const InspectResult& result,
                         const knowledge::Knowledge& knowledge);  // inspect_json.cc

}  // namespace cufit::report
