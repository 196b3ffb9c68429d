// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/kept_traces.h"

#include <memory>

#include "base/format.h"
#include "fit/answer/ranks.h"
#include "formats/model/trace_facts.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"

namespace cufit::commands {

using formats::TraceEvents;

constexpr size_t k_most_kept_bytes = 1u << 30;

std::string kept_trace(const TracingPlan& plan, int number) {
  return format("{}/cufit-fit-{}.events", plan.folder, number);
}

Result<std::string> name_kept_trace(const TracingPlan& plan, const std::string& file,
                                    const TraceEvents& events, int number) {
  const uint64_t world = fit::world_of(events);
  if (world == 1 && !plan.keeps_world) return file;
  // In the order of their numbers also as words: the first file of `--events` says which answers.
  const std::string of_world = plan.keeps_world ? format("world{:05}-", world) : std::string();
  const std::string path = format("{}/cufit-fit-{}rank{}-{}.events", plan.folder, of_world,
                                  fit::rank_of(events), number);
  if (Result<void> renamed = host::rename_file(file, path); !renamed) return renamed.error();
  return path;
}

Result<void> keep_facts(const host::Host& files, const std::string& file,
                        const std::vector<std::pair<std::string, std::string>>& facts) {
  CUFIT_TRY(bytes, files.read_file(file, k_most_kept_bytes));
  CUFIT_TRY(source, files.open(file));
  CUFIT_TRY(kept, formats::read_trace_events(std::shared_ptr<const ByteSource>(std::move(source))));
  for (const auto& [key, value] : facts) {
    CUFIT_TRY(said, formats::with_fact(std::move(bytes), kept, key, value));
    bytes = std::move(said);
    formats::add_fact(kept, key, value);
  }
  return host::write_whole_file(file, bytes);
}

}  // namespace cufit::commands
