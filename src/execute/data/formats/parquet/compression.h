#pragma once
// The compressions of pages: none, Snappy, gzip, zstd.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "execute/data/formats/parquet/metadata.h"

namespace systole::parquet {

bool is_known(Codec codec);

// Keeps the libraries' states between pages. One thread at a time.
class Decompressor {
 public:
  Decompressor();
  ~Decompressor();
  Decompressor(Decompressor&&) noexcept;

  // Fills `into` exactly. Null, or what is wrong. REQUIRES: is_known(codec).
  const char* decompress(Codec codec, std::span<const std::byte> from, std::span<std::byte> into);

 private:
  struct Zstd;
  std::unique_ptr<Zstd> zstd_;
};

// REQUIRES: is_known(codec).
std::string compressed(Codec codec, std::string_view bytes);

}  // namespace systole::parquet
