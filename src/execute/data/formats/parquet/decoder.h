#pragma once
// The values of a page, by its encoding, a few at a time: a page that claims two thousand million of them takes no more
// memory than one that has ten; but for those that put all lengths first, which are at most 2^24 and all held.

#include <memory>
#include <span>
#include <vector>

#include "execute/data/formats/parquet/metadata.h"
#include "execute/data/formats/parquet/value.h"

namespace systole::parquet {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Fills `into` with values that are not null, of which bytes are valid until the next call, and as long as the page.
  // Null, or what is wrong.
  virtual const char* decode(std::span<Value> into) = 0;
};

// `bytes` is borrowed, as is `dictionary` (the values of the chunk's dictionary page, or none). `values`: of the page,
// nulls too; lengths that stand before their bytes are read at once, 8 bytes for each, and are no more than that.
// `most`: bytes that one call may put together. Errors: corrupt, unsupported; without a place.
Result<std::unique_ptr<Decoder>> make_decoder(const Column& column, Encoding encoding, std::span<const std::byte> bytes,
                                              std::span<const Value> dictionary, std::int64_t values, std::size_t most);

}  // namespace systole::parquet
