// SPDX-License-Identifier: Apache-2.0
// Messages on their way to receivers, each receiver with a thread of its own: whoever adds one never waits, and a slow receiver
// holds up no other. A message that does not arrive is tried again, later and later, and given up in the end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/install/http.h"

namespace cufit::host {

struct Delivery {
  enum class Outcome { arrived, later, refused } outcome = Outcome::arrived;
  std::string why;  // one line, of the latter two
};

struct PostReceiver {
  std::function<Delivery(const HttpAnswer&)> judge;  // called in the receiver's thread
};

struct PostTimes {
  double limit_s = 10;  // of one try
  double first_pause_s = 1, longest_pause_s = 60;
  double give_up_s = 600;  // after the first try
};

// What is to be said of a receiver. Of one that stays away: `waits` once, `lost` at the first message that is given up; then
// nothing until one arrives.
struct PostReport {
  enum class Kind { waits, lost, full } kind = Kind::waits;
  size_t receiver = 0;
  std::string why;
};

class PostQueue {
 public:
  static constexpr size_t k_most_waiting = 100;  // of a receiver; then the oldest is given up

  // Make it while the signals that are to reach the main thread are blocked: its threads inherit that.
  PostQueue(const std::vector<PostReceiver>& receivers, const PostTimes& times);
  ~PostQueue();  // finish(0)
  PostQueue(const PostQueue&) = delete;
  PostQueue& operator=(const PostQueue&) = delete;

  // `make` is called for each try, in the receiver's thread, with the seconds since 1970: signatures hold only for a while.
  void add(size_t receiver, std::function<HttpPost(int64_t now)> make);
  std::vector<PostReport> reports();
  // Waits until all have arrived or were given up, at most so long; what then still waits is dropped. A thread that hangs in
  // the name service is left behind. Returns how many messages were dropped.
  size_t finish(double seconds);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// One try, now.
Delivery post_now(const HttpPost& post, const PostReceiver& receiver);

}  // namespace cufit::host
