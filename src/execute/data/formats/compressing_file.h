#pragma once
// A file of records that may be compressed as a whole, by gzip (level 6) or zstd (level 3, with a checksum). It has its
// name once it is finished.

#include <memory>
#include <string>

#include "execute/data/byte_stream.h"
#include "execute/data/formats/partial_file.h"

namespace systole {

class CompressingFile {
 public:
  virtual ~CompressingFile() = default;
  virtual Status append(std::string_view bytes) = 0;  // Errors: io, no_space
  virtual Status finish() = 0;                        // durable; nothing may be called after it
};

// Errors: as Store::create. Borrows the store. REQUIRES: compression is not by_name.
Result<std::unique_ptr<CompressingFile>> create_compressed(Store& store, std::string path, Compression compression);

// By zlib's own format, without gzip's head.
Result<std::unique_ptr<CompressingFile>> create_zlib(Store& store, std::string path);

// Compresses one run of bytes by zstd, with a checksum.
std::string zstd_bytes(std::string_view bytes, int level = 3);

}  // namespace systole
