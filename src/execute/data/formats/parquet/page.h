#pragma once
// The pages of a column chunk: a header in Thrift's compact protocol, then the page's bytes, compressed. A data page of
// version 1 compresses its levels too; one of version 2 has them before its compressed values.
//
// Memory: the largest page, compressed and not; `PageLimits` bounds it, whatever the headers claim.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "execute/data/formats/parquet/compression.h"
#include "execute/data/formats/parquet/metadata.h"
#include "ground/store/readable.h"

namespace systole::parquet {

struct PageLimits {
  std::int64_t largest_page = std::int64_t{256} << 20;  // bytes, not compressed
};

// Where something is, for messages: "row group 2, column 'text', byte 4,711: ".
struct Place {
  std::string file;
  std::size_t group = 0;
  std::string column;
  std::int64_t byte = -1;  // of the file
};
Error at_place(Error error, const Place& place);

struct Page {
  bool dictionary = false;
  std::int64_t byte = 0;    // of the file, where its header is
  std::int64_t values = 0;  // nulls and empty lists too
  Encoding encoding = Encoding::plain;
  std::span<const std::byte> repetition, definition, bytes;  // valid until the next page
};

class PageReader {
 public:
  // Borrows the file. Errors: unsupported: encrypted, in another file, an unknown compression.
  static Result<PageReader> open(const ReadableFile& file, const Chunk& chunk, const Column& column, Place place,
                                 PageLimits limits);

  // The next page, or false at the chunk's end. Errors: io; corrupt (with the page's byte), unsupported, does_not_fit.
  Result<bool> next(Page& page);
  const Place& place() const { return place_; }  // its byte is that of the last page

 private:
  struct Header;

  PageReader(const ReadableFile& file, const Chunk& chunk, const Column& column, Place place, PageLimits limits)
      : file_(&file),
        column_(&column),
        place_(std::move(place)),
        limits_(limits),
        codec_(chunk.codec),
        at_(chunk.begin),
        end_(chunk.end) {}

  Result<Header> read_header();
  Status check(const Header& header) const;
  Result<std::span<const std::byte>> need(std::int64_t count);
  Result<std::span<const std::byte>> expand(std::span<const std::byte> from, std::int64_t size, bool compressed);
  Status split(Page& page, const Header& header, std::span<const std::byte> stored);
  Error corrupt(std::string why) const;

  const ReadableFile* file_;
  const Column* column_;
  Place place_;
  PageLimits limits_;
  Codec codec_;
  std::int64_t at_, end_;  // bytes of the file: the next page's, the chunk's end
  // A part of the file, read ahead.
  std::unique_ptr<std::byte[]> window_;
  std::int64_t window_room_ = 0, window_begin_ = 0, window_end_ = 0;
  std::unique_ptr<std::byte[]> expanded_;
  std::int64_t expanded_room_ = 0;
  Decompressor decompressor_;
};

}  // namespace systole::parquet
