// SPDX-License-Identifier: Apache-2.0
#include "host/files/prediction_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "base/format.h"
#include "base/sha256.h"
#include "host/files/atomic_write.h"
#include "host/files/kept_file.h"
#include "host/files/own_cache.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_hashed_bytes = size_t{1} << 20;

// Of file_of(): somebody else's files in the folder stay.
bool is_prediction_name(std::string_view name) {
  return name.size() == 64 + 5 && ends_with(name, ".json") &&
         name.substr(0, 64).find_first_not_of("0123456789abcdef") == name.npos;
}

void drop_oldest(const std::string& folder, size_t keep) {
  const auto files = own_cache_files(folder, is_prediction_name);
  for (size_t i = 0; i + keep < files.size(); ++i) ::unlink(files[i].second.c_str());
}

}  // namespace

PredictionCache::PredictionCache(const Host& host) : folder_(own_cache_folder(host, "fit")) {}

std::string PredictionCache::file_of(const std::string& key) const {
  return folder_ + "/" + sha256(key) + ".json";
}

std::optional<std::string> PredictionCache::load(const std::string& key) const {
  if (folder_.empty() || !is_own_folder(folder_)) return std::nullopt;
  return read_own_file(file_of(key), k_most_prediction_bytes);
}

bool PredictionCache::save(const std::string& key, std::string_view text) const {
  if (folder_.empty() || text.size() > k_most_prediction_bytes || !make_own_folder(folder_))
    return false;
  drop_oldest(folder_, k_most_predictions - 1);
  return replace_file(file_of(key), text, {.mode = 0600, .sync = false}) == 0;
}

std::string file_mark(const std::string& path) {
  const KeptFile file(path, 0);
  struct stat status {};
  if (!file.status(status) || !S_ISREG(status.st_mode)) return {};
  if (static_cast<uint64_t>(status.st_size) > k_most_hashed_bytes)
    return format("size:{} time:{}.{}", status.st_size, status.st_mtim.tv_sec,
                  status.st_mtim.tv_nsec);
  const std::optional<std::string> bytes = file.read(k_most_hashed_bytes);
  return bytes ? "sha256:" + sha256(*bytes) : std::string();
}

int64_t time_of_files() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now.tv_sec;
}

bool is_changed_since(const std::string& path, int64_t seconds) {
  struct stat status {};
  return ::stat(path.c_str(), &status) != 0 || status.st_mtime >= seconds ||
         status.st_ctime >= seconds;
}

}  // namespace cufit::host
