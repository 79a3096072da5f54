#pragma once
// A file's bytes in order, decompressed: plain, gzip (zlib; several members, so dictzip and bgzip too) or zstd
// (several frames). Memory: the decoder's window (at most 128 MiB for zstd) and a buffer of 256 KiB.
// One thread at a time.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "ground/base/result.h"
#include "ground/store/store.h"

namespace systole {

enum class Compression { by_name, none, gzip, zstd };  // by_name: .gz or .dz, .zst, otherwise none
const char* name_of(Compression compression);

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills a prefix of `into` and returns its length; 0 only at the end. REQUIRES: `into` is not empty.
  // Errors: io; corrupt if compressed data is damaged or truncated, with the position in the compressed file.
  virtual Result<std::size_t> read(std::span<std::byte> into) = 0;
};

Compression compression_of(std::string_view path, Compression declared);
// Opens `path`; errors call it `shown`. Errors: not_found, io; invalid if it is empty. Borrows the store.
Result<std::unique_ptr<ByteStream>> open_bytes(Store& store, const std::string& path, const std::string& shown,
                                               Compression compression);

}  // namespace systole
