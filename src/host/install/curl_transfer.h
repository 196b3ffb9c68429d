// SPDX-License-Identifier: Apache-2.0
// One transfer of libcurl: its handle, and what comes of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "host/install/curl_library.h"
#include "host/install/http.h"

namespace cufit::host {

struct CurlTransfer {
  HttpAnswer answer;
  uint64_t most_bytes = 0;
  bool too_large = false;
  Interrupts* interrupts = nullptr;
};

// CURLOPT_WRITEFUNCTION with a CurlTransfer: keeps the body, at most `most_bytes`.
size_t keep_body(char* bytes, size_t size, size_t count, void* transfer);

class CurlEasy {
 public:
  CurlEasy() : handle_(curl().problem.empty() ? curl().easy_init() : nullptr) {}
  ~CurlEasy() {
    if (headers_ != nullptr) curl().slist_free_all(headers_);
    if (handle_ != nullptr) curl().easy_cleanup(handle_);
  }
  CurlEasy(const CurlEasy&) = delete;
  CurlEasy& operator=(const CurlEasy&) = delete;
  CURL* get() const { return handle_; }
  template <class Value>
  void set(CURLoption option, Value value) {
    curl().easy_setopt(handle_, option, value);
  }
  void add_header(const std::string& line) {
    headers_ = curl().slist_append(headers_, line.c_str());
    set(CURLOPT_HTTPHEADER, headers_);
  }

 private:
  CURL* handle_;
  curl_slist* headers_ = nullptr;
};

using CurlProgress = int (*)(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

// What every transfer is told: http and https alone, no signals, its time, where words and bytes go.
// `said`: CURL_ERROR_SIZE bytes. `progress` is asked with `place` and ends the transfer by another
// answer than 0.
struct CurlBasics {
  const std::string& url;
  double seconds = 0;
  const std::string& certificates;
  char* said = nullptr;
  CurlProgress progress = nullptr;
  const void* place = nullptr;
};
void set_basics(CurlEasy& easy, const CurlBasics& basics, CurlTransfer& transfer);

// CURLOPT_CAINFO: a distribution's libcurl knows its own place and is told another only where the user names one. Empty:
// that one, or none where it is part of the program.
std::string curl_certificates();

}  // namespace cufit::host
