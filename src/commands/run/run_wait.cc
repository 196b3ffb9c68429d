// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_wait.h"

#include <algorithm>
#include <map>

#include "base/duration.h"
#include "base/format.h"
#include "base/shell_word.h"
#include "commands/run/queue_look.h"
#include "commands/run/wait_needs.h"
#include "commands/run/wait_text.h"
#include "formats/prose/printable.h"
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
constexpr size_t k_near = 4;  // who has more launches before it does not ask the driver

// One launch, from its words to its cards.
class Waiting {
 public:
  Waiting(const Context& context, const WaitOptions& options)
      : context_(context), options_(options) {}
  Waited run();

 private:
  Result<void> check_share() const;
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

  std::string said(const std::string& key, const Words& words = {}) const {
    return context_.message("run.wait." + key, words);
  }
  void say(const std::string& text) const {
    if (!options_.quiet) context_.output.print_message(text);
  }
  void say_waiting(const WaitDecision& decision);
  WaitView view() const { return view_of_wait(context_, needs_, look_); }

  const Context& context_;
  const WaitOptions& options_;
  WaitNeeds needs_;
  double began_ = 0, pause_ = k_least_pause_seconds, said_at_ = 0;
  std::string said_key_, last_line_;
  QueueLook look_;
  size_t failed_looks_ = 0;
  std::optional<size_t> said_before_;
  bool fresh_ = true;  // the cards were looked at in this round
  std::unique_ptr<host::SignalPause> signals_;
};

// It would wait for as long as the share is in use.
Result<void> Waiting::check_share() const {
  if (!options_.share || look_.joined(needs_.mine).cards.size() >= needs_.mine.count) return {};
  std::vector<std::string> numbers;
  for (const facts::NvmlGpu& card : needs_.cards) numbers.push_back(std::to_string(card.index));
  return fail(Code::usage,
              context_.message("run.vram.share_unlimited",
                               {{"name", *options_.share},
                                {"gpu", join(numbers, context_.message("run.vram.comma"))}}));
}

formats::WaitTicket Waiting::ticket(bool started, const std::vector<QueuedCard>& cards) const {
  formats::WaitTicket out;
  out.started = started;
  out.share = options_.share.value_or("");
  out.whole = needs_.mine.whole;
  out.count = static_cast<uint32_t>(needs_.mine.count);
  for (const QueuedCard& card : cards)
    if (out.cards.size() < formats::k_most_ticket_cards)
      out.cards.push_back({card.uuid, card.bytes});
  return out;
}

Result<void> Waiting::file_ticket(host::WaitQueue& queue) {
  CUFIT_TRY(lock, queue.lock(k_lock_seconds));
  if (Result<void> filed = queue.file(ticket(false, needs_.mine.cards)); !filed)
    return filed.error();
  needs_.mine.number = queue.own().number;
  return {};
}

Result<WaitDecision> Waiting::decide(host::WaitQueue& queue) {
  CUFIT_TRY(lock, queue.lock(k_lock_seconds));
  const host::QueueReading reading = queue.read(host::WaitQueue::Dead::remove);
  for (const std::string& name : reading.damaged)
    if (look_.is_new_damage(name))
      say(said("damaged", {{"file", shell_word(queue.folder() + "/" + formats::printable(name))}}));
  const resolve::QueuedLaunch mine = look_.joined(needs_.mine);
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
  return resolve::decide_start(look_.room, look_.launches(reading), look_.joined(needs_.mine));
}

bool Waiting::is_late() const {
  return needs_.timeout && host::running_seconds() - began_ >= static_cast<double>(*needs_.timeout);
}

double Waiting::pause_seconds(size_t before) {
  // Who is next looks at tickets alone, and takes the place soon after it is free.
  double out = before > 0 && before <= k_near ? k_near_pause_seconds : pause_;
  pause_ = std::min(pause_ * k_pause_growth, k_most_pause_seconds);
  if (needs_.timeout)
    out = std::min(out, began_ + static_cast<double>(*needs_.timeout) - host::running_seconds());
  return std::max(out, 0.0);
}

void Waiting::take_new_look(const host::WaitQueue& queue) {
  const Result<void> taken = look_.renew(context_, queue, needs_.cards, needs_.totals);
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
                                                  {"need", need_text(view(), &decision)},
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
  const std::string line = said(said_key_.empty() ? "starts" : "starts_after",
                                {{"gpus", join(names, context_.message("run.vram.comma"))},
                                 {"time", format_duration(seconds)}});
  Waited out;
  out.place.emplace(Place{std::move(queue), std::move(signals_), join(uuids, ","), line});
  return out;
}

Waited Waiting::not_now(const WaitDecision& decision) {
  context_.output.print_message(said(decision.before > 0 ? "not_now_turn" : "not_now",
                                     {{"need", need_text(view(), &decision)},
                                      {"free", free_text(view(), decision)},
                                      {"before", std::to_string(decision.before)},
                                      {"command", options_.waiting_command}}));
  return {std::nullopt, k_refused};
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
      said(fresh_ ? "line" : "line_behind", {{"place", place},
                                             {"need", need_text(view(), &decision)},
                                             {"free", free_text(view(), decision)}});
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
  if (Result<void> read = read_wait_words(context_, options_, needs_); !read)
    return ended_by(read.error());
  Result<host::WaitQueue> queue = host::WaitQueue::open(context_.files);
  if (!queue) return ended_by(queue.error());
  look_.read_usage(context_, *queue, QueueLook::Usage::before);
  if (Result<void> found = find_wait_cards(context_, options_, needs_, look_); !found)
    return ended_by(found.error());
  look_.read_usage(context_, *queue, QueueLook::Usage::after);
  if (options_.share) look_.read_share(context_, *options_.share);
  if (needs_.unsuited) return {std::nullopt, k_refused, true};
  if (Result<void> needed = find_wait_needs(context_, options_, needs_, look_); !needed)
    return ended_by(needed.error());
  if (Result<void> limited = check_share(); !limited) return ended_by(limited.error());
  // From here on there is a file that has to go.
  signals_ = std::make_unique<host::SignalPause>();
  if (Result<void> filed = file_ticket(*queue); !filed) return ended_by(filed.error());
  return loop(std::move(*queue));
}

}  // namespace

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
