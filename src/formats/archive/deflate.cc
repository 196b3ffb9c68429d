// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/deflate.h"

#include <algorithm>

#include <zlib.h>

namespace cufit::formats {

std::string deflate(std::string_view bytes, int level) {
  z_stream stream{};
  std::string out;
  if (deflateInit2(&stream, level, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
    return out;                                // no memory or a level that does not exist
  constexpr size_t k_piece = size_t{1} << 30;  // zlib counts in 32 bits
  size_t from = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    const size_t piece = std::min(k_piece, bytes.size() - from);
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + from));  // zlib only reads
    stream.avail_in = static_cast<uInt>(piece);
    const int flush = from + piece == bytes.size() ? Z_FINISH : Z_NO_FLUSH;
    do {
      const size_t used = out.size();
      out.resize(used + std::max<size_t>(piece / 4, 1u << 16));
      stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
      stream.avail_out = static_cast<uInt>(out.size() - used);
      state = ::deflate(&stream, flush);
      out.resize(out.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    from += piece;
    if (state == Z_STREAM_ERROR) break;
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace cufit::formats
