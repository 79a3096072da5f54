#include "execute/data/formats/parquet/page.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "execute/data/formats/parquet/thrift.h"

namespace systole::parquet {
namespace {

using Type = ThriftType;
using Bytes = std::span<const std::byte>;

constexpr std::int64_t kWindow = std::int64_t{256} << 10;        // read at once, at least
constexpr std::int64_t kLargestHeader = std::int64_t{16} << 20;  // it holds two values, for statistics
constexpr const char* kSubset = "uncompressed, Snappy, gzip and zstd are read: write the file with one of these";

// Longest output of a byte of input: Snappy's copies are of 64 bytes at most and take 2.
std::int64_t most_of(Codec codec, std::int64_t compressed) {
  if (codec == Codec::none) return compressed;
  if (codec == Codec::snappy) return compressed * 64;
  if (codec == Codec::gzip) return compressed * 1100;
  return INT64_MAX;
}

void grow(std::unique_ptr<std::byte[]>& room, std::int64_t& has, std::int64_t wanted) {
  if (has >= wanted) return;
  room = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(wanted));
  has = wanted;
}

}  // namespace

struct PageReader::Header {
  enum Kind { data = 0, index = 1, dictionary = 2, data_v2 = 3 };
  std::int64_t kind = -1, expanded = -1, stored = -1, values = -1, encoding = -1;
  std::int64_t definition_encoding = 3, repetition_encoding = 3;
  std::int64_t definition_bytes = 0, repetition_bytes = 0;
  bool compressed = true;
  std::optional<std::uint32_t> crc;

  void read(ThriftReader& thrift);
  void read_part(ThriftReader& thrift, int part);
};

void PageReader::Header::read_part(ThriftReader& thrift, int part) {
  thrift.fields([&](int id, Type type) {
    if (id == 1) return values = thrift.integer(type), true;
    if (part == 8) {
      if (id == 4) return encoding = thrift.integer(type), true;
      if (id == 5) return definition_bytes = thrift.integer(type), true;
      if (id == 6) return repetition_bytes = thrift.integer(type), true;
      if (id == 7) return compressed = thrift.boolean(type), true;
      return false;
    }
    if (id == 2) return encoding = thrift.integer(type), true;
    if (part == 5 && id == 3) return definition_encoding = thrift.integer(type), true;
    if (part == 5 && id == 4) return repetition_encoding = thrift.integer(type), true;
    return false;
  });
}

void PageReader::Header::read(ThriftReader& thrift) {
  thrift.fields([&](int id, Type type) {
    switch (id) {
      case 1: kind = thrift.integer(type); return true;
      case 2: expanded = thrift.integer(type); return true;
      case 3: stored = thrift.integer(type); return true;
      case 4: crc = static_cast<std::uint32_t>(thrift.integer(type)); return true;
      case 5:
      case 7:
      case 8:
        if (type != Type::structure) return false;
        read_part(thrift, id);
        return true;
      default: return false;
    }
  });
}

Error at_place(Error error, const Place& place) {
  std::string text = fmt::format("row group {}, column '{}'", place.group, place.column);
  if (place.byte >= 0) text += fmt::format(", byte {}", with_commas(place.byte));
  error.message = text + ": " + error.message;
  return std::move(error).at({place.file});
}

Error PageReader::corrupt(std::string why) const {
  return at_place(error(ErrorKind::corrupt, "{}", why).hinted("the file is damaged: fetch or write it again"), place_);
}

Result<PageReader> PageReader::open(const ReadableFile& file, const Chunk& chunk, const Column& column, Place place,
                                    PageLimits limits) {
  const auto refused = [&](std::string what, const char* hint) {
    return at_place(error(ErrorKind::unsupported, "{}", what).hinted(hint), place);
  };
  if (chunk.encrypted) return refused("it is encrypted", "write the file without encryption");
  if (!chunk.elsewhere.empty())
    return refused(fmt::format("its pages are in another file, '{}'", chunk.elsewhere), "name that file itself");
  if (!is_known(chunk.codec))
    return refused(fmt::format("the compression {} is not read", name_of(chunk.codec)), kSubset);
  return PageReader(file, chunk, column, std::move(place), limits);
}

// The next `count` bytes, which the chunk has.
Result<Bytes> PageReader::need(std::int64_t count) {
  if (at_ < window_begin_ || at_ + count > window_end_) {
    const std::int64_t size = std::min(std::max(count, kWindow), end_ - at_);
    const std::int64_t kept = at_ >= window_begin_ && at_ < window_end_ ? window_end_ - at_ : 0;
    if (size > window_room_) {
      auto larger = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size));
      if (kept > 0) std::memcpy(larger.get(), window_.get() + (at_ - window_begin_), static_cast<std::size_t>(kept));
      window_ = std::move(larger);
      window_room_ = size;
    } else if (kept > 0) {
      std::memmove(window_.get(), window_.get() + (at_ - window_begin_), static_cast<std::size_t>(kept));
    }
    window_begin_ = at_;
    window_end_ = at_;  // until it is read
    Status read = file_->read(at_ + kept, {window_.get() + kept, static_cast<std::size_t>(size - kept)});
    if (!read.ok()) return at_place(std::move(read).error(), place_);
    window_end_ = at_ + size;
  }
  return Bytes(window_.get() + (at_ - window_begin_), static_cast<std::size_t>(count));
}

Result<PageReader::Header> PageReader::read_header() {
  const std::int64_t left = end_ - at_;
  for (std::int64_t size = std::min<std::int64_t>(left, 4096);; size = std::min(left, size * 16)) {
    ThriftReader thrift(TRY(need(size)));
    Header header;
    header.read(thrift);
    if (thrift.ok()) {
      at_ += static_cast<std::int64_t>(thrift.position());
      return header;
    }
    if (!thrift.ran_out() || size == left || size >= kLargestHeader)
      return corrupt(fmt::format("a page's header cannot be read: {}", thrift.why()));
  }
}

Status PageReader::check(const Header& header) const {
  if (header.stored < 0 || header.stored > end_ - at_)
    return corrupt(fmt::format("the page has {} bytes, and {} are left of the column", with_commas(header.stored),
                               with_commas(end_ - at_)));
  if (header.expanded < 0) return corrupt("the page's size is negative");
  if (header.expanded > limits_.largest_page) {
    return at_place(error(ErrorKind::does_not_fit, "a page of {} bytes, and at most {} are read",
                          with_commas(header.expanded), with_commas(limits_.largest_page))
                        .hinted("write the file with smaller pages"),
                    place_);
  }
  // Data that does not get smaller grows a little.
  if (header.stored > limits_.largest_page + limits_.largest_page / 8 + 1024)
    return corrupt(fmt::format("the page has {} bytes, more than its values", with_commas(header.stored)));
  if (header.expanded > most_of(codec_, header.stored) && header.expanded > 64)
    return corrupt(fmt::format("{} bytes of {} cannot become {}", with_commas(header.stored), name_of(codec_),
                               with_commas(header.expanded)));
  if (header.values < 0 && header.kind != Header::index) return corrupt("the page does not say how many values it has");
  return Done{};
}

Result<Bytes> PageReader::expand(Bytes from, std::int64_t size, bool compressed) {
  if (!compressed || codec_ == Codec::none) {
    if (static_cast<std::int64_t>(from.size()) != size) return corrupt("the page is of another size than it says");
    return from;
  }
  grow(expanded_, expanded_room_, size);
  const std::span<std::byte> into(expanded_.get(), static_cast<std::size_t>(size));
  if (size == 0 && from.empty()) return Bytes(into);
  if (const char* why = decompressor_.decompress(codec_, from, into); why != nullptr) return corrupt(why);
  return Bytes(into);
}

Status PageReader::split(Page& page, const Header& header, Bytes stored) {
  page.repetition = page.definition = {};
  if (header.kind == Header::data_v2) {
    const auto count = static_cast<std::int64_t>(stored.size());
    if (header.repetition_bytes < 0 || header.definition_bytes < 0 || header.repetition_bytes > count ||
        header.definition_bytes > count - header.repetition_bytes) {
      return corrupt("the page's levels are longer than the page");
    }
    const std::int64_t levels = header.repetition_bytes + header.definition_bytes;
    if (header.expanded < levels) return corrupt("the page's levels are longer than the page");
    page.repetition = stored.first(static_cast<std::size_t>(header.repetition_bytes));
    page.definition = stored.subspan(page.repetition.size(), static_cast<std::size_t>(header.definition_bytes));
    page.bytes =
        TRY(expand(stored.subspan(static_cast<std::size_t>(levels)), header.expanded - levels, header.compressed));
    return Done{};
  }
  Bytes all = TRY(expand(stored, header.expanded, true));
  const auto levels = [&](int largest, std::int64_t encoding, Bytes& into) -> Status {
    if (largest == 0 || page.dictionary) return Done{};
    if (encoding != static_cast<int>(Encoding::rle)) {
      return at_place(error(ErrorKind::unsupported, "levels in the encoding {} are not read",
                            name_of(static_cast<Encoding>(encoding)))
                          .hinted("write the file again with a writer of after 2014"),
                      place_);
    }
    std::uint32_t size = 0;
    if (all.size() < 4) return corrupt("the page ends in its levels");
    std::memcpy(&size, all.data(), 4);
    if (size > all.size() - 4) return corrupt("the page's levels are longer than the page");
    into = all.subspan(4, size);
    all = all.subspan(4 + size);
    return Done{};
  };
  TRY(levels(column_->max_repetition(), header.repetition_encoding, page.repetition));
  TRY(levels(column_->max_definition(), header.definition_encoding, page.definition));
  page.bytes = all;
  return Done{};
}

Result<bool> PageReader::next(Page& page) {
  while (true) {
    place_.byte = at_;
    if (at_ == end_) return false;
    page.byte = at_;
    const Header header = TRY(read_header());
    TRY(check(header));
    const Bytes stored = TRY(need(header.stored));
    at_ += header.stored;
    if (header.crc) {
      const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(stored.data()), stored.size());
      if (sum != *header.crc)
        return corrupt(fmt::format("the page's CRC is {:08x}, the file says {:08x}", sum, *header.crc));
    }
    if (header.kind == Header::index) continue;
    if (header.kind < 0 || header.kind > Header::data_v2) return corrupt("a page of no known kind");
    page.dictionary = header.kind == Header::dictionary;
    page.values = header.values;
    page.encoding = static_cast<Encoding>(std::clamp<std::int64_t>(header.encoding, -1, 1000));
    TRY(split(page, header, stored));
    return true;
  }
}

}  // namespace systole::parquet
