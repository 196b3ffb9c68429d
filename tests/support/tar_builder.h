// SPDX-License-Identifier: Apache-2.0
// Small tar archives as bytes, so that a test says what an image holds.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace cufit::test {

struct TarFile {
  std::string path, content;
  char type = '0';
  std::string link;
  unsigned mode = 0644;
};

inline std::string octal(unsigned long value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*lo", digits, value);
  return text;
}

inline std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  return bytes;
}

// One header; `size` may lie.
inline std::string tar_header(const TarFile& file, unsigned long size) {
  std::string out(512, '\0');
  const auto put = [&out](size_t at, const std::string& text) {
    out.replace(at, text.size(), text);
  };
  put(0, file.path.substr(0, 100));
  put(100, octal(file.mode, 7));
  put(108, octal(0, 7)), put(116, octal(0, 7));
  put(124, octal(size, 11));
  put(136, octal(0, 11));
  put(148, "        ");
  out[156] = file.type;
  put(157, file.link.substr(0, 100));
  put(257, "ustar");
  put(263, "00");
  unsigned long sum = 0;
  for (const char c : out) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string(1, '\0') + " ");
  return out;
}

inline std::string tar_entry(const TarFile& file) {
  return tar_header(file, file.content.size()) + padded(file.content);
}

inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t size = rest.size() + 1;
  while (std::to_string(size).size() + rest.size() != size) ++size;
  return std::to_string(size) + rest;
}

inline std::string build_tar(const std::vector<TarFile>& files) {
  std::string out;
  for (const TarFile& file : files) out += tar_entry(file);
  return out + std::string(1024, '\0');
}

}  // namespace cufit::test
