// SPDX-License-Identifier: Apache-2.0
// The same work for each of several things, on as many threads as are worth it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace cufit {

// work(0) to work(count - 1), each once and in no order; returns when all are done. `threads` is
// how many the caller finds worth it (one costs about 50 microseconds); no more than there are
// processors are used.
template <typename Work>
void in_parallel(size_t count, size_t threads, const Work& work) {
  std::atomic<size_t> next = 0;
  // What is thrown (that memory ran out) is thrown to the caller, and no thread is left behind.
  std::exception_ptr thrown;
  std::mutex guard;
  const auto take = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard<std::mutex> held(guard);
      if (!thrown) thrown = std::current_exception();
    }
  };
  const size_t used =
      std::min({threads, count, size_t{std::max(1u, std::thread::hardware_concurrency())}});
  std::vector<std::thread> helpers;
  try {
    for (size_t i = 1; i < used; ++i) helpers.emplace_back(take);
  } catch (const std::system_error&) {
    // This process may start no more threads; those that there are do it all.
  }
  take();
  for (std::thread& helper : helpers) helper.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace cufit
