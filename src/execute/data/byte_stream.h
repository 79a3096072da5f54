#pragma once
// A file's bytes in order, decompressed: plain, gzip (zlib; several members, so dictzip and bgzip too) or zstd
// (several frames). Memory is bounded by the decoder's window (at most 128 MiB for zstd) and a buffer of 256 KiB.
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
  // Fills a prefix of `into` and says its length; 0 only at the end. REQUIRES: `into` is not empty.
  // Errors: io; corrupt when compressed data is damaged or cut short, with the place in the compressed file.
  virtual Result<std::size_t> read(std::span<std::byte> into) = 0;
};

Compression compression_of(std::string_view path, Compression declared);
// Opens `path`; errors name it `shown`. Errors: not_found, io; invalid when it is empty.
// The store is borrowed.
Result<std::unique_ptr<ByteStream>> open_bytes(Store& store, const std::string& path, const std::string& shown,
                                               Compression compression);

}  // namespace systole
