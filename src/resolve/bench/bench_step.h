// SPDX-License-Identifier: Apache-2.0
// The one step that follows from what `cufit bench` measured.
#pragma once

#include <cstddef>
#include <string>

#include "resolve/bench/measurement.h"

namespace cufit::resolve {

struct BenchStep {
  enum class Kind {
    create,         // the environment is not there yet
    doctor,         // an environment does not run what the others do
    mend_file,      // a file that is no workload, or raises everywhere
    smaller_batch,  // it was too large for one
    neighbours,     // somebody else was on the card
    rank,           // the file ranks wheels
    use,            // an environment is faster somewhere and slower nowhere
    use_precision,  // of one environment a precision is
    other,          // there is nothing to compare with
    depends,        // one is faster in this case, another in that
    longer,         // the noise hides what would matter
    none            // speed is no reason
  };
  Kind kind = Kind::none;
  size_t environment = 0;
  std::string precision;  // of use_precision
  std::string workload;   // of mend_file
  double hidden = 0;      // of longer: a difference up to this part was not seen
};

// `has_file`: the result was written to a file.
BenchStep next_step(const BenchMeasurement& result, bool has_file);

}  // namespace cufit::resolve
