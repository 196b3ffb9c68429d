// SPDX-License-Identifier: Apache-2.0
#include "formats/system/wait_ticket.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/number.h"

namespace cufit::formats {
namespace {

constexpr std::string_view k_ticket_magic = "cufit-wait 1";
constexpr size_t k_most_uuid = 64, k_most_share = 48, k_most_path = 1024;

bool has_letters_and(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           more.find(c) != std::string_view::npos;
  });
}

// "GPU-...", "MIG-...", "MIG-GPU-.../7/0".
bool is_card_name(std::string_view text) {
  return !text.empty() && text.size() <= k_most_uuid && has_letters_and(text, "-/");
}

bool is_ticket_boot(std::string_view text) {
  return text.size() <= 64 && has_letters_and(text, "-");
}

bool is_ticket_share(std::string_view text) {
  return text.size() <= k_most_share && has_letters_and(text, "._-");
}

bool is_ticket_path(std::string_view text) {
  return text.size() <= k_most_path &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= ' '; });
}

bool take_ticket_number(std::string_view text, uint64_t& out) {
  const std::optional<uint64_t> number = parse_uint(text);
  if (number) out = *number;
  return number.has_value();
}

bool take_ticket_count(std::string_view text, uint32_t most, uint32_t& out) {
  uint64_t number = 0;
  if (!take_ticket_number(text, number) || number > most) return false;
  out = static_cast<uint32_t>(number);
  return true;
}

bool take_ticket_text(std::string_view text, bool (*good)(std::string_view), std::string& out) {
  if (!good(text)) return false;
  out = text;
  return true;
}

bool take_ticket_card(std::string_view text, std::vector<TicketCard>& out) {
  const size_t blank = text.find(' ');
  TicketCard card;
  if (blank == std::string_view::npos || !is_card_name(text.substr(0, blank)) ||
      !take_ticket_number(text.substr(blank + 1), card.bytes) || out.size() >= k_most_ticket_cards)
    return false;
  card.uuid = text.substr(0, blank);
  for (const TicketCard& other : out)
    if (other.uuid == card.uuid) return false;
  out.push_back(std::move(card));
  return true;
}

bool take_ticket_line(std::string_view name, std::string_view value, WaitTicket& out) {
  if (name == "number") return take_ticket_number(value, out.number);
  if (name == "state") {
    out.started = value == "started";
    return out.started || value == "waiting";
  }
  if (name == "pid") return take_ticket_count(value, INT32_MAX, out.pid) && out.pid > 0;
  if (name == "start") return take_ticket_number(value, out.start_ticks);
  if (name == "boot") return take_ticket_text(value, is_ticket_boot, out.boot);
  if (name == "pid_namespace") return take_ticket_number(value, out.pid_namespace);
  if (name == "share") return take_ticket_text(value, is_ticket_share, out.share);
  if (name == "domain") return take_ticket_text(value, is_ticket_path, out.domain);
  if (name == "count")
    return take_ticket_count(value, k_most_ticket_cards, out.count) && out.count > 0;
  uint32_t whole = 0;
  if (name == "whole" && take_ticket_count(value, 1, whole)) {
    out.whole = whole == 1;
    return true;
  }
  return name == "card" && take_ticket_card(value, out.cards);
}

}  // namespace

Result<std::string> make_wait_ticket(const WaitTicket& ticket) {
  std::string out = format("{}\n", k_ticket_magic);
  out += format("number {}\nstate {}\npid {}\nstart {}\nboot {}\npid_namespace {}\n", ticket.number,
                ticket.started ? "started" : "waiting", ticket.pid, ticket.start_ticks, ticket.boot,
                ticket.pid_namespace);
  if (!ticket.share.empty()) out += "share " + ticket.share + "\n";
  if (!ticket.domain.empty()) out += "domain " + ticket.domain + "\n";
  out += format("count {}\nwhole {}\n", ticket.count, ticket.whole ? 1 : 0);
  for (const TicketCard& card : ticket.cards) out += format("card {} {}\n", card.uuid, card.bytes);
  out += "end\n";
  // What would be read as something else (a line break in a path) is not written.
  const Result<WaitTicket> again = parse_wait_ticket(out);
  if (!again || again->domain != ticket.domain || again->share != ticket.share ||
      again->boot != ticket.boot || again->cards.size() != ticket.cards.size())
    return fail(Code::malformed, "a ticket that no other launch could read");
  out.resize(k_ticket_bytes, '\n');
  return out;
}

Result<WaitTicket> parse_wait_ticket(std::string_view text) {
  if (text.size() > k_ticket_bytes)
    return fail(Code::malformed, format("{} bytes are more than a ticket has", text.size()));
  WaitTicket out;
  // Line by line: behind the end stand thousands of empty ones.
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t size = text.find('\n');
    const std::string_view each = text.substr(0, size);
    text.remove_prefix(size == std::string_view::npos ? text.size() : size + 1);
    if (line == 1 && each == k_ticket_magic) continue;
    if (line > 1 && each == "end") {
      if (out.pid == 0 || out.number == 0 || out.cards.empty() || out.count > out.cards.size())
        return fail(Code::malformed, "a ticket that lacks what it needs");
      return out;
    }
    const size_t blank = each.find(' ');
    if (line == 1 || blank == std::string_view::npos ||
        !take_ticket_line(each.substr(0, blank), each.substr(blank + 1), out))
      return fail(Code::malformed, format("line {} is none of a ticket's", line));
  }
  return fail(Code::malformed, "a ticket without its end");
}

}  // namespace cufit::formats
