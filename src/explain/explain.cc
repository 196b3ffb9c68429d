// SPDX-License-Identifier: Apache-2.0
#include "explain/explain.h"

#include <algorithm>
#include <future>
#include <set>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/doctor.h"
#include "checks/wheel_platform.h"
#include "explain/capability_clues.h"
#include "explain/captures.h"
#include "explain/default_wheel.h"
#include "explain/evidence.h"
#include "explain/intake.h"
#include "explain/join.h"
#include "explain/question_first.h"
#include "explain/ring_text.h"
#include "explain/named_package.h"
#include "explain/oom_clues.h"
#include "explain/pattern_search.h"
#include "explain/program_step.h"
#include "explain/scores.h"
#include "formats/prose/python_place.h"
#include "explain/setting.h"
#include "explain/text_clues.h"
#include "explain/source_line_map.h"
#include "explain/torch_step.h"
#include "explain/vocabulary.h"
#include "formats/system/gpu_ring.h"
#include "formats/system/nvidia_smi.h"
#include "facts/text_facts.h"

namespace cufit::explain {

namespace {

// The Python that the text's steps call: a bundle's, else the one in whose packages it failed.
// Windows' shells quote in other ways, and a keeper has commands of its own.
std::string interpreter_of(const Setting& setting, std::span<const formats::TextLine> lines,
                           bool windows) {
  if (!setting.interpreter.empty() || windows || setting.keeper != Keeper::none)
    return setting.interpreter;
  const std::optional<formats::PythonPlace> place = formats::last_python_place(lines);
  const bool plain = place && place->installer.empty() && !place->prefix.empty();
  return plain ? shell_word(place->interpreter) : std::string();
}

// A check names the line of the text that it judged; the reader wants to see it.
void quote(EvidenceLine& evidence, std::span<const formats::TextLine> lines) {
  if (evidence.line == 0 || !evidence.text.empty()) return;
  const auto line = std::lower_bound(
      lines.begin(), lines.end(), evidence.line,
      [](const formats::TextLine& one, uint64_t number) { return one.number < number; });
  if (line != lines.end() && line->number == evidence.line)
    evidence.text = shortened(line->text, 0);
}

// Of a long text, the lines that some sign or clue is about, with their neighbours, and the end:
// the words of a whole log say what it logs, not what failed.
std::vector<formats::TextLine> telling_part(std::span<const formats::TextLine> lines,
                                            const TextEvidence& evidence) {
  constexpr size_t k_whole = 60, k_end = 15;
  if (lines.size() <= k_whole) return {lines.begin(), lines.end()};
  std::set<uint64_t> wanted;
  const auto want = [&](const std::vector<EvidenceLine>& found) {
    for (const EvidenceLine& line : found) {
      for (uint64_t near = line.line > 0 ? line.line - 1 : 0; near <= line.line + 1; ++near)
        wanted.insert(near);
    }
  };
  for (const auto& [clue, found] : evidence.clues) want(found);
  for (const std::vector<SignHit>& signs : evidence.signs) {
    for (const SignHit& sign : signs) want(sign.lines);
  }
  std::vector<formats::TextLine> out;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i + k_end >= lines.size() || wanted.count(lines[i].number)) out.push_back(lines[i]);
  }
  return out;
}

// A cause that only words speak for shows the line that they stand in.
void show_words(Cause& cause, std::span<const formats::TextLine> lines,
                const knowledge::Knowledge& knowledge) {
  if (!cause.evidence.empty()) return;
  const TellingLine line = telling_line(lines, knowledge, cause.id);
  if (line.number != 0) cause.evidence.push_back({line.number, shortened(line.text, 0), {}});
}

}  // namespace

struct Explainer::State {
  explicit State(const knowledge::Knowledge& tables)
      : knowledge(tables), patterns(tables), intake(patterns.words()) {}
  const knowledge::Knowledge& knowledge;
  PatternSearch patterns;
  Intake intake;
  Texts texts;
  // The text that comes now: is it the black box of a process? Its first bytes say so.
  std::string head;
  bool decided = false, is_ring = false;
  std::string name = "stdin";
  std::vector<std::string> unread;
  std::vector<uint64_t> limits;

  void add(const formats::GpuRing& ring);
  // What the message tells of the card, without a limit that stands for its size.
  formats::OomMessage of_the_card(formats::OomMessage message) const;
  void take(std::string_view bytes);
  void end_text();
};

// Bytes of a ring are gathered (it has a fixed size; more is not kept), a text goes on at once.
void Explainer::State::take(std::string_view bytes) {
  constexpr size_t k_magic = 8, k_most_ring = 1 << 20;
  if (!decided) {
    const size_t lacking = std::min(k_magic - head.size(), bytes.size());
    if (head.size() + lacking < k_magic) {
      head.append(bytes);
      return;
    }
    decided = true;
    is_ring = formats::is_gpu_ring(head + std::string(bytes.substr(0, lacking)));
    if (!is_ring) {
      if (!head.empty()) intake.add(head);
      head.clear();
    }
  }
  if (!is_ring) return intake.add(bytes);
  head.append(bytes.substr(0, k_most_ring - std::min(k_most_ring, head.size())));
}

void Explainer::State::add(const formats::GpuRing& ring) {
  for (const formats::RingDevice& device : ring.devices)
    if (device.limited) limits.push_back(device.limit_bytes);
  intake.add(ring_text(ring, knowledge));
}

formats::OomMessage Explainer::State::of_the_card(formats::OomMessage message) const {
  constexpr uint64_t k_rounding = 10u << 20;  // two decimals of a GiB
  for (const uint64_t limit : limits)
    if (message.total && *message.total < limit + k_rounding && limit < *message.total + k_rounding)
      message.total = {};
  return message;
}

void Explainer::State::end_text() {
  if (!decided) {
    intake.add(head);
  } else if (is_ring) {
    const Result<formats::GpuRing> ring = formats::parse_gpu_ring(head);
    if (ring)
      add(*ring);
    else
      unread.push_back(format("{}: {}", name, ring.error().what));
  }
  head.clear();
  decided = is_ring = false;
}

Explainer::Explainer(const knowledge::Knowledge& knowledge)
    : state_(std::make_unique<State>(knowledge)) {}
Explainer::~Explainer() = default;

void Explainer::begin(std::string name) {
  state_->end_text();
  state_->name = name;
  state_->texts.begin(std::move(name), state_->intake.begin_text());
}

void Explainer::add(std::string_view bytes) { state_->take(bytes); }

void Explainer::add_ring(const formats::GpuRing& ring) {
  state_->end_text();
  state_->add(ring);
}

void Explainer::know_limit(uint64_t bytes) { state_->limits.push_back(bytes); }

Explanation Explainer::finish(const Options& options) {
  state_->end_text();
  const std::vector<formats::TextLine> all = state_->intake.finish();
  const std::vector<formats::TextLine> lines = without_ring(all);
  Explanation out;
  constexpr size_t k_most_ring_lines = 64;
  for (const formats::TextLine& line : all)
    if (out.ring.size() < k_most_ring_lines && is_ring_line(line.text))
      out.ring.push_back({line.number, shortened(line.text, 0), {}});
  out.unread = std::move(state_->unread);
  out.lines = state_->intake.lines();
  out.thinned = state_->intake.thinned();
  std::optional<facts::Facts> here;
  if (options.here) {
    const std::optional<formats::PythonPlace> place = formats::last_python_place(lines);
    here = options.here(place ? place->prefix : std::string());
  }
  const facts::Facts* beside = here ? &*here : options.beside;
  // The facts and the words of the text are read side by side: neither needs the other.
  std::vector<ComputedClue> computed;
  std::vector<checks::Finding> findings;
  const auto read_facts = [&] {
    out.oom = main_message(formats::parse_oom_messages(lines));
    if (out.oom) computed = oom_clues(state_->of_the_card(*out.oom));
    for (ComputedClue& clue : text_clues(lines)) computed.push_back(std::move(clue));
    out.facts = facts::facts_from_text(lines, options.name);
    assume_default_wheels(out.facts, state_->knowledge);
    if (beside) out.conflicts = conflicts(out.facts, *beside);
    if (beside && out.conflicts.empty()) out.facts = join(std::move(out.facts), *beside);
    for (ComputedClue& clue : capability_clues(lines, out.facts, state_->knowledge))
      computed.push_back(std::move(clue));
    findings = checks::examine(out.facts, state_->knowledge).findings;
  };
  // (By this policy a process that may start no thread reads them when they are asked for.)
  std::future<void> facts = std::async(std::launch::async | std::launch::deferred, read_facts);
  std::vector<formats::TextLine> said;
  for (const formats::TextLine& line : all)
    said.push_back({line.number, formats::is_smi_heading(line.text)
                                     ? std::string()
                                     : formats::without_hint(line.text)});
  const TextEvidence evidence = read_evidence(state_->knowledge, state_->patterns, said, [&] {
    facts.get();
    return computed;
  });
  const std::vector<formats::TextLine> part = telling_part(without_ring(said), evidence);
  std::vector<std::string_view> clues;
  for (const auto& [clue, found] : evidence.clues) clues.push_back(clue);
  // A black box alone is no text: its words say neither that something failed nor that nothing did.
  const bool has_words = std::any_of(part.begin(), part.end(), [](const formats::TextLine& line) {
    return !trim(line.text).empty();
  });
  const Votes votes = has_words ? vote(part, clues, state_->knowledge) : Votes{};
  if (options.dead) out.program_error = read_program_error(lines);
  const bool ordinary =
      out.program_error && out.program_error->kind != ProgramError::Kind::other_exception;
  Ranking ranking =
      rank_causes(state_->knowledge, evidence, findings, !beside || !out.conflicts.empty(), votes,
                  options.dead ? &*options.dead : nullptr, ordinary);
  out.causes = std::move(ranking.causes);
  out.ignored = std::move(ranking.ignored);
  out.clues.assign(clues.begin(), clues.end());
  out.files = state_->texts.size();
  for (Cause& cause : out.causes) show_words(cause, part, state_->knowledge);
  fill_torch_steps(out.causes, out.facts, state_->knowledge, clues);
  const Setting setting =
      out.causes.empty() ? Setting() : read_setting(said, {clues.begin(), clues.end()});
  fill_captures(out.causes, said, clues, out.facts, state_->knowledge, setting);
  fill_program_steps(out.causes, said, clues, out.facts, state_->knowledge, setting);
  name_packages(out.causes, said, state_->knowledge);
  mark_question_first(out.causes, clues, state_->knowledge);
  const bool windows = setting.system == Setting::System::windows ||
                       checks::wheel_platform(out.facts) == checks::WheelPlatform::windows;
  const std::string interpreter = interpreter_of(setting, lines, windows);
  for (Cause& cause : out.causes) {
    cause.for_windows = windows;
    cause.interpreter = interpreter;
    cause.keeper = setting.keeper;
    cause.tool = setting.tool;
    for (EvidenceLine& line : cause.evidence) {
      quote(line, all);
      state_->texts.place(line);
    }
  }
  for (Ignored& ignored : out.ignored) state_->texts.place(ignored.contradiction);
  for (EvidenceLine& line : out.ring) state_->texts.place(line);
  state_->texts.place(out.facts, options.name);
  return out;
}

}  // namespace cufit::explain
