// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_wait.h"

#include <algorithm>
#include <map>

#include "base/duration.h"
#include "base/format.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "commands/run/queue_look.h"
#include "commands/run/run_vram.h"
#include "commands/run/wait_text.h"
#include "formats/prose/printable.h"
#include "host/driver/nvml_room.h"
#include "host/probe.h"
#include "resolve/quota/vram_size.h"
#include "resolve/quota/wait_cards.h"
#include "resolve/quota/wait_queue.h"

namespace cufit::commands {
namespace {

using resolve::QueuedCard;
using resolve::WaitDecision;
using resolve::WaitFor;
using Words = std::map<std::string, std::string>;

constexpr double k_least_pause_seconds = 2, k_most_pause_seconds = 10, k_pause_growth = 1.25;
constexpr double k_near_pause_seconds = 0.5;
constexpr double k_lock_seconds = 30;
constexpr double k_again_seconds = 60;  // a line that differs in figures alone comes no sooner
constexpr size_t k_most_failed_looks = 12;
constexpr uint64_t k_most_gpus_asked = 64;
constexpr size_t k_near = 4;  // who has more launches before it does not ask the driver

// Where no card is known: what the smallest context of data/gpu_memory.toml takes.
constexpr uint64_t k_smallest_context = uint64_t{147} << 20;

resolve::QuotaCard quota_card(const facts::NvmlGpu& card, uint64_t total,
                              const knowledge::Knowledge& knowledge) {
  resolve::QuotaCard out;
  out.name = card.name.value_or("");
  out.uuid = card.uuid.value_or("");
  out.total_bytes = total;
  out.context_bytes = k_smallest_context;
  if (const auto* row = knowledge.find_gpu_context(card.compute_capability.value_or("")))
    out.context_bytes = static_cast<uint64_t>(row->mib) << 20;
  return out;
}

// One launch, from its words to its cards.
class Waiting {
 public:
  Waiting(const Context& context, const WaitOptions& options)
      : context_(context), options_(options) {}
  Waited run();

 private:
  Result<void> read_words();
  Result<void> find_cards();
  Result<void> find_needs();
  Result<void> file_ticket(host::WaitQueue& queue);
  formats::WaitTicket ticket(bool started, const std::vector<QueuedCard>& cards) const;
  // Starts where it may: the cards are its own then.
  Result<WaitDecision> decide(host::WaitQueue& queue);
  WaitDecision wait_more(const host::WaitQueue& queue) const;
  Waited loop(host::WaitQueue queue);
  Waited started(host::WaitQueue queue, const WaitDecision& decision);
  Waited not_now(const WaitDecision& decision);
  bool is_late() const;
  double pause_seconds(size_t before);
  void take_new_look(const host::WaitQueue& queue);

  Error usage(const std::string& key, const Words& words = {}) const {
    return fail(Code::usage, context_.message("run.wait." + key, words));
  }
  std::string said(const std::string& key, const Words& words = {}) const {
    return context_.message("run.wait." + key, words);
  }
  void say(const std::string& text) const {
    if (!options_.quiet) context_.output.print_message(text);
  }
  void say_waiting(const WaitDecision& decision);
  WaitView view() const;

  const Context& context_;
  const WaitOptions& options_;
  resolve::VramRequest request_;
  size_t count_ = 1;
  std::optional<uint64_t> timeout_;
  double began_ = 0, pause_ = k_least_pause_seconds, said_at_ = 0;
  std::string said_key_, last_line_;
  std::vector<facts::NvmlGpu> cards_;  // that it may use
  std::vector<uint64_t> totals_;       // CUDA's; 0 = not told
  resolve::QueuedLaunch mine_;
  QueueLook look_;
  size_t failed_looks_ = 0;
  std::optional<size_t> said_before_;
  bool unsuited_ = false;
  bool fresh_ = true;  // the cards were looked at in this round
  std::unique_ptr<host::SignalPause> signals_;
};

std::optional<Error> words_problem(const Context& context, const WaitOptions& options) {
  const auto problem = [&](const std::string& key, const Words& words) {
    return fail(Code::usage, context.message("run.wait." + key, words));
  };
  if (options.timeout && !options.wait) return problem("timeout_alone", {});
  if (options.timeout && !parse_duration(*options.timeout))
    return problem("timeout_words", {{"text", shell_word(*options.timeout)}});
  if (!options.gpus) return std::nullopt;
  const std::optional<uint64_t> count = parse_uint(*options.gpus);
  if (!count || *count == 0 || *count > k_most_gpus_asked)
    return problem("gpus_words", {{"text", shell_word(*options.gpus)}});
  return std::nullopt;
}

Result<void> Waiting::read_words() {
  if (auto problem = words_problem(context_, options_)) return std::move(*problem);
  if (options_.gpus) count_ = parse_uint(*options_.gpus).value_or(1);
  if (options_.timeout) timeout_ = parse_duration(*options_.timeout);
  if (!options_.vram) return {};
  const std::string inside = context_.files.variable("CUFIT_DOMAIN").value_or("");
  if (auto problem = vram_words_problem(context_, *options_.vram, options_.share, inside, request_))
    return std::move(*problem);
  if (request_.form == resolve::VramRequest::Form::each) return usage("each");
  if (request_.form == resolve::VramRequest::Form::shards) return usage("shards");
  return {};
}

Result<void> Waiting::find_cards() {
  facts::Facts facts;
  host::ProbeOptions probe;
  probe.driver_depth = host::DriverDepth::identity;
  host::read_driver_answers(context_.machine, probe, facts);
  const Result<facts::NvmlFacts> told = host::read_gpu_room(context_.machine);
  if (!told) return fail(told.error().code, said("no_nvml", {{"why", told.error().text()}}));
  cards_ =
      resolve::usable_cards(*told, facts.cuda, context_.machine.variable("CUDA_VISIBLE_DEVICES"));
  const bool any = !cards_.empty();
  if (options_.suits)
    cards_.erase(std::remove_if(cards_.begin(), cards_.end(),
                                [&](const facts::NvmlGpu& card) {
                                  return !options_.suits(card.uuid.value_or(""));
                                }),
                 cards_.end());
  unsuited_ = any && cards_.empty();
  if (!any) {
    std::string why = facts.cuda.library.note;
    if (facts.cuda.library) why = facts.cuda.init_result.note;
    if (facts.cuda.init_result.value_or(0) != 0)
      why = format("cuInit: {}", *facts.cuda.init_result);
    return fail(Code::unsupported,
                said(why.empty() ? "no_gpu" : "no_gpu_why", {{"why", formats::printable(why)}}));
  }
  for (const facts::NvmlGpu& card : cards_) {
    totals_.push_back(0);
    for (const facts::CudaDevice& device : facts.cuda.devices)
      if (device.uuid.value_or("") == *card.uuid.value)
        totals_.back() = device.memory_total_bytes.value_or(0);
  }
  look_.take(*told, cards_, totals_);
  return {};
}

// What is needed of each card; those that never could are left out.
Result<void> Waiting::find_needs() {
  mine_.count = count_;
  mine_.whole = !options_.vram;
  if (options_.share) mine_.group = group_of(host::user_id(), *options_.share);
  std::vector<resolve::QuotaCard> all;
  for (size_t i = 0; i < cards_.size(); ++i)
    all.push_back(quota_card(cards_[i], look_.room[i].total_bytes, context_.knowledge));
  std::optional<resolve::VramProblem> problem;
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<uint64_t> limits = {all[i].total_bytes};
    std::optional<resolve::VramProblem> one;
    if (options_.vram) one = resolve::vram_limits(request_, {all[i]}, {}, limits);
    if (!one && options_.vram && !look_.room[i].free_bytes)
      one = resolve::VramProblem{"free_unknown", {}};
    if (!one) mine_.cards.push_back({look_.room[i].uuid, limits[0], 0});
    if (one && !problem) {
      problem = std::move(one);
      problem->args["gpu"] = format("{}: {}", cards_[i].index, all[i].name);
    }
  }
  if (mine_.cards.empty() && problem)
    return fail(Code::usage, context_.message("run.vram." + problem->id, problem->args));
  if (mine_.cards.size() < count_)
    return usage("too_few", {{"count", std::to_string(count_)},
                             {"there", std::to_string(mine_.cards.size())},
                             {"need", need_text(view())}});
  return {};
}

formats::WaitTicket Waiting::ticket(bool started, const std::vector<QueuedCard>& cards) const {
  formats::WaitTicket out;
  out.started = started;
  out.share = options_.share.value_or("");
  out.whole = mine_.whole;
  out.count = static_cast<uint32_t>(count_);
  for (const QueuedCard& card : cards)
    if (out.cards.size() < formats::k_most_ticket_cards)
      out.cards.push_back({card.uuid, card.bytes});
  return out;
}

Result<void> Waiting::file_ticket(host::WaitQueue& queue) {
  CUFIT_TRY(lock, queue.lock(k_lock_seconds));
  if (Result<void> filed = queue.file(ticket(false, mine_.cards)); !filed) return filed.error();
  mine_.number = queue.own().number;
  return {};
}

Result<WaitDecision> Waiting::decide(host::WaitQueue& queue) {
  CUFIT_TRY(lock, queue.lock(k_lock_seconds));
  const host::QueueReading reading = queue.read(host::WaitQueue::Dead::remove);
  for (const std::string& name : reading.damaged)
    if (look_.is_new_damage(name))
      say(said("damaged", {{"file", shell_word(queue.folder() + "/" + name)}}));
  const resolve::QueuedLaunch mine = look_.joined(mine_);
  WaitDecision out = resolve::decide_start(look_.room, look_.launches(reading), mine);
  if (out.wait_for != WaitFor::nothing) return out;
  std::vector<QueuedCard> chosen;
  for (const size_t place : out.cards)
    for (const QueuedCard& card : mine.cards)
      if (card.uuid == look_.room[place].uuid) chosen.push_back(card);
  formats::WaitTicket own = queue.own();
  own.started = true;
  own.cards = ticket(true, chosen).cards;
  if (Result<void> written = queue.change(own); !written) return written.error();
  return out;
}

// Without the folder's lock, of tickets that may be written just then: enough to go on waiting, not to start.
WaitDecision Waiting::wait_more(const host::WaitQueue& queue) const {
  const host::QueueReading reading = queue.read(host::WaitQueue::Dead::leave);
  return resolve::decide_start(look_.room, look_.launches(reading), look_.joined(mine_));
}

bool Waiting::is_late() const {
  return timeout_ && host::running_seconds() - began_ >= static_cast<double>(*timeout_);
}

double Waiting::pause_seconds(size_t before) {
  // Who is next looks at tickets alone, and takes the place soon after it is free.
  double out = before > 0 && before <= k_near ? k_near_pause_seconds : pause_;
  pause_ = std::min(pause_ * k_pause_growth, k_most_pause_seconds);
  if (timeout_)
    out = std::min(out, began_ + static_cast<double>(*timeout_) - host::running_seconds());
  return std::max(out, 0.0);
}

void Waiting::take_new_look(const host::WaitQueue& queue) {
  const Result<void> taken = look_.renew(context_, queue, cards_, totals_);
  if (options_.share) look_.read_share(context_, *options_.share);
  if (taken) {
    failed_looks_ = 0;
    return;
  }
  if (failed_looks_++ == 0) say(said("no_answer", {{"why", taken.error().text()}}));
}

Waited Waiting::loop(host::WaitQueue queue) {
  const auto ended_by = [&](const Error& error) {
    return Waited{std::nullopt, context_.output.exit_code_for(error)};
  };
  bool first = true;
  size_t before = 0;
  while (true) {
    WaitDecision decision = wait_more(queue);
    // Who is next but some looks again when their number changes, or where its group may have a place.
    const bool near = decision.before != before && decision.before <= k_near;
    if (first || near) pause_ = k_least_pause_seconds;
    if (decision.before > k_near) pause_ = k_most_pause_seconds;
    fresh_ = first || decision.before == 0 || near || options_.share;
    before = decision.before;
    if (fresh_) {
      if (!first) take_new_look(queue);
      if (failed_looks_ >= k_most_failed_looks) return ended_by(fail(Code::io, said("gave_up")));
      decision = wait_more(queue);
      if (failed_looks_ == 0 && decision.wait_for == WaitFor::nothing) {
        Result<WaitDecision> now = decide(queue);
        if (!now && now.error().code != Code::timeout) return ended_by(now.error());
        if (now)
          decision = std::move(*now);
        else
          say(said("no_answer", {{"why", now.error().text()}}));
        if (now && decision.wait_for == WaitFor::nothing)
          return started(std::move(queue), decision);
      }
    }
    first = false;
    if (!options_.wait) return not_now(decision);
    say_waiting(decision);
    if (is_late()) {
      context_.output.print_message(said("late", {{"timeout", shell_word(*options_.timeout)},
                                                  {"need", need_text(view())},
                                                  {"free", free_text(view(), decision)}}));
      return {std::nullopt, k_timed_out};
    }
    if (const int number = signals_->pause(pause_seconds(decision.before))) {
      // The ticket goes first.
      { const host::WaitQueue gone = std::move(queue); }
      signals_.reset();
      host::end_by_signal(number);
      return {std::nullopt, interrupted_exit(number)};
    }
  }
}

Waited Waiting::started(host::WaitQueue queue, const WaitDecision& decision) {
  std::vector<std::string> uuids, names;
  for (const size_t place : decision.cards) {
    uuids.push_back(look_.room[place].uuid);
    names.push_back(card_text(context_, look_.now[place]));
  }
  const auto seconds = static_cast<uint64_t>(host::running_seconds() - began_);
  say(said(said_key_.empty() ? "starts" : "starts_after",
           {{"gpus", join(names, context_.message("run.vram.comma"))},
            {"time", format_duration(seconds)}}));
  Waited out;
  out.place.emplace(Place{std::move(queue), std::move(signals_), join(uuids, ",")});
  return out;
}

Waited Waiting::not_now(const WaitDecision& decision) {
  context_.output.print_message(said(decision.before > 0 ? "not_now_turn" : "not_now",
                                     {{"need", need_text(view())},
                                      {"free", free_text(view(), decision)},
                                      {"before", std::to_string(decision.before)},
                                      {"command", options_.waiting_command}}));
  return {std::nullopt, k_refused};
}

WaitView Waiting::view() const {
  std::string size;
  if (options_.vram)
    size = request_.all.bytes != 0 ? format_bytes(request_.all.bytes) : *options_.vram;
  return {context_, look_.now, look_.room, count_, size};
}

// One line where something else than figures changes; else one a minute at most.
void Waiting::say_waiting(const WaitDecision& decision) {
  if (!fresh_ && said_before_ == decision.before) return;
  said_before_ = decision.before;
  std::string key = format("{} {}", decision.before, decision.fitting);
  if (decision.best && fresh_) {
    const auto user = resolve::main_user(look_.now[*decision.best]);
    key += format(" {} {}", *decision.best, user ? user->pid : 0);
  }
  const std::string place = decision.before == 0
                                ? said("next")
                                : said("before", {{"before", std::to_string(decision.before)}});
  const std::string line =
      said(fresh_ ? "line" : "line_behind",
           {{"place", place}, {"need", need_text(view())}, {"free", free_text(view(), decision)}});
  const double now = host::running_seconds();
  if (key == said_key_ && (last_line_ == line || now - said_at_ < k_again_seconds)) return;
  if (key != said_key_ && decision.before <= k_near) pause_ = k_least_pause_seconds;
  said_key_ = key;
  said_at_ = now;
  last_line_ = line;
  say(line);
}

Waited Waiting::run() {
  const auto ended_by = [&](const Error& error) {
    return Waited{std::nullopt, context_.output.exit_code_for(error)};
  };
  began_ = host::running_seconds();
  if (Result<void> read = read_words(); !read) return ended_by(read.error());
  Result<host::WaitQueue> queue = host::WaitQueue::open(context_.files);
  if (!queue) return ended_by(queue.error());
  look_.read_usage(context_, *queue, QueueLook::Usage::before);
  if (Result<void> found = find_cards(); !found) return ended_by(found.error());
  look_.read_usage(context_, *queue, QueueLook::Usage::after);
  if (options_.share) look_.read_share(context_, *options_.share);
  if (unsuited_) return {std::nullopt, k_refused, true};
  if (Result<void> needed = find_needs(); !needed) return ended_by(needed.error());
  // From here on there is a file that has to go.
  signals_ = std::make_unique<host::SignalPause>();
  if (Result<void> filed = file_ticket(*queue); !filed) return ended_by(filed.error());
  return loop(std::move(*queue));
}

}  // namespace

std::optional<Error> wait_words_problem(const Context& context, const WaitOptions& options) {
  return words_problem(context, options);
}

Waited wait_for_place(const Context& context, const WaitOptions& options) {
  return Waiting(context, options).run();
}

void leave_to_program(Place& place, const std::string& domain, bool becomes_program) {
  if (!domain.empty()) {
    formats::WaitTicket own = place.queue.own();
    own.domain = domain;
    // Without it what the program uses is asked of NVML.
    if (const auto lock = place.queue.lock(1)) (void)place.queue.change(own);
  }
  if (becomes_program) place.queue.keep_over_exec();
  if (!place.signals) return;
  const int number = place.signals->pause(0);
  if (number != 0) {
    const host::WaitQueue gone = std::move(place.queue);
  }
  place.signals.reset();
  if (number != 0) host::end_by_signal(number);
}

}  // namespace cufit::commands
