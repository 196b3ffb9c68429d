// SPDX-License-Identifier: Apache-2.0
// Text in, ranked root causes out: the engine of `cufit explain`, callable on any stream of bytes.
//
// Three sources speak for a cause: its signatures (data/findings, matched on the text), the numbers
// of an out-of-memory message, and doctor's checks over the facts that the text claims (joined with
// a machine's facts where the caller has them). A clue that rules a cause out drops it; a cause
// that explains another one pushes that one down. Pure: no file, no clock, no environment.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checks/finding.h"
#include "explain/join.h"
#include "explain/keeper.h"
#include "explain/program_error.h"
#include "formats/prose/oom_message.h"
#include "formats/system/gpu_ring.h"
#include "facts/facts.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

// certain: the text proves it. likely: what is in the text points to it and nothing contradicts.
// possible: it fits as others do.
enum class Confidence { certain, likely, possible };
const char* to_string(Confidence confidence);

struct EvidenceLine {
  uint64_t line = 0;  // of its file, from 1; 0 = not of the text but of the machine beside it
  std::string text;   // the line as it stands, shortened
  std::string
      fact;  // what it says, where that is more than the line ("driver 470.57.02"); or empty
  std::string file = {};  // which text it is in; empty with line 0
};

struct Cause {
  std::string id;
  Confidence confidence = Confidence::possible;
  double score = 0;  // 0..1, only for the order
  // Texts: report::finding_text(finding, "title" | "why" | "next", ...). Where only the text speaks
  // its variant is "text"; where a check found it, the check's own with its numbers.
  checks::Finding finding;
  std::vector<EvidenceLine> evidence;  // strongest first
  // The finding's text "decide" is worth asking: it is not certain, or has rivals.
  bool would_decide = false;
  bool for_windows = false;      // its commands are for PowerShell or cmd
  Keeper keeper = Keeper::none;  // who installs in place of pip
  std::string tool;              // that uvx runs
  std::string interpreter;       // what its commands call in place of "python"; empty: that
  // No more than possible: a cure would be a guess, so the step finds out first
  // (report::cause_text): by a recording of what holds the memory, or by the text "decide".
  enum class First : uint8_t { cure, measure, decide } first = First::cure;
  // Whose "next" is said in place of the finding's: the text's program has a remedy of its own
  // (program_step.h).
  std::optional<checks::Finding> step = {};
};

struct Ignored {
  std::string id;
  std::string clue;            // id of data/clues that rules it out
  EvidenceLine contradiction;  // where the text says so
};

struct Explanation {
  std::vector<Cause> causes;  // best first; empty = nothing known
  std::vector<Ignored> ignored;
  facts::Facts facts;  // claimed by the text, joined with those beside it
  // Where the machine beside is not the text's: then nothing was joined.
  std::vector<Conflict> conflicts;
  std::optional<formats::OomMessage> oom;
  std::optional<ProgramError> program_error;  // with Options::dead
  std::vector<std::string> clues;             // what the text says, by the names of data/clues
  uint64_t lines = 0;                         // of all texts
  size_t files = 0;
  std::vector<std::string> unread;  // rings that are damaged, each with its name and why
  std::vector<EvidenceLine> ring;   // the lines of black boxes, as far as they are few
  bool thinned = false;             // the middle of a long input was searched but not kept in full
};

// The text is what a program wrote before it died on the machine `beside`. Nobody asks there what
// the machine lacks, and most programs die of themselves: a cause needs signs in the text, to which
// the machine's facts may add; words and facts alone name none.
struct DeadRun {
  bool without_gpu =
      false;  // its environment is made for no GPU: causes about GPUs are none of its
};

struct Options {
  std::string name = "stdin";            // what sources of facts call the text: "train.log:12"
  const facts::Facts* beside = nullptr;  // a recording's facts (--from)
  // This machine's (--here), asked once the text is read: `env` is the environment that its
  // traceback names, "/home/me/venv", or empty.
  std::function<facts::Facts(const std::string& env)> here;
  std::optional<DeadRun> dead;
};

class Explainer {
 public:
  explicit Explainer(const knowledge::Knowledge& knowledge);
  ~Explainer();
  Explainer(const Explainer&) = delete;
  Explainer& operator=(const Explainer&) = delete;

  // What add() brings from here on is a text of this name, with lines of its own from 1 on. The
  // texts are judged as one. Before the first call the name is "stdin".
  void begin(std::string name);
  // The text, in pieces of any size; or the black box of a process (FILE.ring), whose facts are
  // then the text (facts/ring_text.h).
  void add(std::string_view bytes);
  // The same of one that was read already.
  void add_ring(const formats::GpuRing& ring);
  // A limit of cufit: a program is told it as the card's size.
  void know_limit(uint64_t bytes);
  Explanation finish(const Options& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cufit::explain
