// SPDX-License-Identifier: Apache-2.0
#include "host/notify/post_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace cufit::host {
namespace {

using PostClock = std::chrono::steady_clock;

std::chrono::duration<double> as_duration(double seconds) {
  return std::chrono::duration<double>(seconds);
}

}  // namespace

struct PostQueue::State {
  struct Channel {
    PostReceiver receiver;
    std::deque<std::function<HttpPost(int64_t)>> waiting;  // the first is being sent
    bool is_away = false, was_told_lost = false;
  };
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Channel> channels;
  std::vector<PostReport> reports;
  PostTimes times;
  std::atomic<bool> stopped{false};

  void send_all(size_t index);
  // Until it arrived or was given up; false: stopped.
  bool send_first(size_t index, std::unique_lock<std::mutex>& lock);
  void report(PostReport::Kind kind, size_t index, const std::string& why) {
    reports.push_back({kind, index, why});
  }
};

void PostQueue::State::send_all(size_t index) {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return stopped || !channels[index].waiting.empty(); });
    if (stopped || !send_first(index, lock)) return;
    channels[index].waiting.pop_front();
    changed.notify_all();
  }
}

bool PostQueue::State::send_first(size_t index, std::unique_lock<std::mutex>& lock) {
  Channel& channel = channels[index];
  const std::function<HttpPost(int64_t)> make = channel.waiting.front();
  const PostClock::time_point begun = PostClock::now();
  double pause = times.first_pause_s;
  while (true) {
    lock.unlock();
    HttpPost post = make(static_cast<int64_t>(std::time(nullptr)));
    post.seconds = times.limit_s;
    post.stopped = [this] { return stopped.load(); };
    const Delivery delivery = post_now(post, channel.receiver);
    lock.lock();
    if (stopped) return delivery.outcome == Delivery::Outcome::arrived;
    if (delivery.outcome == Delivery::Outcome::arrived) {
      channel.is_away = channel.was_told_lost = false;
      return true;
    }
    const bool too_late =
        PostClock::now() - begun + as_duration(pause) >= as_duration(times.give_up_s);
    if (delivery.outcome == Delivery::Outcome::refused || too_late) {
      if (!channel.was_told_lost) report(PostReport::Kind::lost, index, delivery.why);
      channel.is_away = channel.was_told_lost = true;
      return true;
    }
    if (!channel.is_away) report(PostReport::Kind::waits, index, delivery.why);
    channel.is_away = true;
    if (changed.wait_for(lock, as_duration(pause), [&] { return stopped.load(); })) return false;
    pause = std::min(pause * 2, times.longest_pause_s);
  }
}

PostQueue::PostQueue(const std::vector<PostReceiver>& receivers, const PostTimes& times)
    : state_(std::make_shared<State>()) {
  http_library();  // opened before there are threads
  state_->times = times;
  for (const PostReceiver& receiver : receivers) state_->channels.push_back({receiver, {}});
  for (size_t i = 0; i < receivers.size(); ++i) {
    try {
      std::thread([state = state_, i] { state->send_all(i); }).detach();
    } catch (const std::system_error& error) {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->report(PostReport::Kind::lost, i, error.code().message());
    }
  }
}

PostQueue::~PostQueue() { finish(0); }

void PostQueue::add(size_t receiver, std::function<HttpPost(int64_t now)> make) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  State::Channel& channel = state_->channels[receiver];
  if (channel.waiting.size() == k_most_waiting) {
    // The first is in the hands of the thread.
    channel.waiting.erase(channel.waiting.begin() + 1);
    if (!channel.was_told_lost) state_->report(PostReport::Kind::full, receiver, {});
    channel.was_told_lost = true;
  }
  channel.waiting.push_back(std::move(make));
  state_->changed.notify_all();
}

std::vector<PostReport> PostQueue::reports() {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return std::exchange(state_->reports, {});
}

size_t PostQueue::finish(double seconds) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto waiting = [&] {
    size_t out = 0;
    for (const State::Channel& channel : state_->channels) out += channel.waiting.size();
    return out;
  };
  state_->changed.wait_for(lock, as_duration(seconds), [&] { return waiting() == 0; });
  state_->stopped = true;
  state_->changed.notify_all();
  return waiting();
}

Delivery post_now(const HttpPost& post, const PostReceiver& receiver) {
  const Result<HttpAnswer> answer = http_post(post);
  if (answer) return receiver.judge(*answer);
  const bool later = answer.error().code == Code::io || answer.error().code == Code::timeout;
  return {later ? Delivery::Outcome::later : Delivery::Outcome::refused, answer.error().what};
}

}  // namespace cufit::host
