// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "formats/prose/printable.h"
#include "report/error_translation.h"
#include "report/fleet.h"
#include "report/message.h"
#include "report/terminal/mem_words.h"

namespace cufit::report {
namespace {

std::string range(uint64_t least, uint64_t most) {
  const std::string low = gib(least), high = gib(most);
  return low == high ? low : low + " – " + high;
}

}  // namespace

std::string cannot_text(const pack::JobCannot& cannot, std::string_view lang,
                        const knowledge::Knowledge& knowledge) {
  using Why = pack::JobCannot::Why;
  if (cannot.why == Why::out)
    return label(knowledge, lang, "fleet.out." + cannot.out_as,
                 {{"why", formats::printable(
                              translated_error(cannot.detail, lang, knowledge), 400)}});
  const char* key = cannot.why == Why::no_gpu       ? "fleet.cannot.no_gpu"
                    : cannot.why == Why::too_small  ? "fleet.cannot.too_small"
                    : cannot.why == Why::given_away ? "fleet.cannot.given_away"
                    : cannot.why == Why::instances  ? "fleet.cannot.instances"
                                                    : "fleet.cannot.too_few";
  const uint32_t low = cannot.least_good, high = cannot.most_good;
  return label(knowledge, lang, key,
               {{"needs", gib(cannot.needs)},
                {"has", range(cannot.least, cannot.most)},
                {"gpu", formats::printable(cannot.gpu, 200)},
                {"gpus", std::to_string(cannot.gpus)},
                {"good", low == high ? std::to_string(low) : format("{} – {}", low, high)}});
}

Json job_nodes_json(const std::vector<pack::JobNodes>& jobs,
                    const knowledge::Knowledge& knowledge) {
  Json out = Json::array();
  for (const pack::JobNodes& job : jobs) {
    Json cannot = Json::array();
    for (const pack::JobCannot& one : job.cannot)
      cannot.push_back({{"nodes", one.nodes}, {"why", cannot_text(one, "en", knowledge)}});
    Json told;
    told["name"] = job.name;
    told["nodes"] = job.nodes;
    told["cannot"] = std::move(cannot);
    out.push_back(std::move(told));
  }
  return out;
}

}  // namespace cufit::report
