#include "execute/data/formats/riegeli.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "execute/data/formats/highway_hash.h"
#include "execute/data/formats/wire.h"
#include "execute/data/little_endian.h"

namespace systole {
namespace {

constexpr std::int64_t kUsableBlock = kRiegeliBlock - kRiegeliBlockHeader;
constexpr HighwayKey kKey{0x2f696c6567656952, 0x0a7364726f636572, 0x2f696c6567656952, 0x0a7364726f636572};
// A chunk that unpacks to more than this, and to more than so many times its size, is taken for a bomb. The most that
// zstd reaches on data of use is some hundreds.
constexpr std::uint64_t kUnsuspicious = std::uint64_t{64} << 20, kMostTimes = 4096;
// Records of which there may be more than bytes (all empty): each takes up to 18 bytes of memory while it is read.
constexpr std::uint64_t kMostEmpty = std::uint64_t{1} << 24;

std::int64_t with_overhead(std::int64_t begin, std::int64_t size) {
  return begin + size + (size + (begin + kUsableBlock - 1) % kRiegeliBlock) / kUsableBlock * kRiegeliBlockHeader;
}

// No chunk begins within a block header or right after one.
std::int64_t to_possible_begin(std::int64_t position) {
  const std::int64_t left = kRiegeliBlock - 1 - (position + kRiegeliBlock - 1) % kRiegeliBlock;
  return position + std::max<std::int64_t>(left - (kUsableBlock - 1), 0);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error damaged(const RecordPlace& place, std::string_view what) {
  return record_error(ErrorKind::corrupt, place, what,
                      "fetch the file again, or pass over such records with `on_bad_record: skip`");
}

Status refuse_other_chunk(const ChunkHeader& header, const RecordPlace& place) {
  switch (header.type) {
    case ChunkType::simple: return Done{};
    case ChunkType::transposed:
      return record_error(ErrorKind::unsupported, place,
                          "a transposed chunk of Riegeli, whose layout is not documented, is not read",
                          "write the file without the option `transpose` (ArrayRecord's default)");
    default:
      return damaged(place, fmt::format("a chunk of type 0x{:02x} stands where records should be",
                                        static_cast<unsigned char>(header.type)));
  }
}

Status refuse_compression(ChunkCompression compression, const RecordPlace& place) {
  const char* name = nullptr;
  switch (compression) {
    case ChunkCompression::none:
    case ChunkCompression::zstd: return Done{};
    case ChunkCompression::brotli: name = "Brotli"; break;
    case ChunkCompression::snappy: name = "Snappy"; break;
    default:
      return damaged(place, fmt::format("an unknown compression, 0x{:02x}", static_cast<unsigned char>(compression)));
  }
  return record_error(ErrorKind::unsupported, place, fmt::format("records compressed by {} are not read", name),
                      "write the file with `zstd` (ArrayRecord's default) or `uncompressed`");
}

}  // namespace

std::uint64_t riegeli_hash(std::span<const std::byte> bytes) { return highway_hash64(bytes, kKey); }

std::int64_t chunk_end(std::int64_t begin, const ChunkHeader& header) {
  return std::max(with_overhead(begin, kRiegeliChunkHeader + static_cast<std::int64_t>(header.data_size)),
                  to_possible_begin(begin + static_cast<std::int64_t>(header.records)));
}

Result<std::span<std::byte>> without_block_headers(std::int64_t begin, std::span<std::byte> bytes,
                                                   const std::string& shown) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  std::int64_t block = (begin + kRiegeliBlock - 1) / kRiegeliBlock * kRiegeliBlock - begin;
  if (block >= size) return bytes;
  std::int64_t kept = block;
  for (; block < size; block += kRiegeliBlock) {
    const std::int64_t header = std::min(kRiegeliBlockHeader, size - block);
    const std::span<const std::byte> there =
        bytes.subspan(static_cast<std::size_t>(block), static_cast<std::size_t>(header));
    if (header == kRiegeliBlockHeader && get<std::uint64_t>(there, 0) != riegeli_hash(there.subspan(8)))
      return damaged({shown, -1, begin + block}, "the checksum of a block header does not match");
    const std::int64_t from = block + header, until = std::min(block + kRiegeliBlock, size);
    if (until > from) std::memmove(bytes.data() + kept, bytes.data() + from, static_cast<std::size_t>(until - from));
    kept += until - from;
  }
  return bytes.first(static_cast<std::size_t>(kept));
}

Result<ChunkHeader> read_chunk_header(std::span<const std::byte> bytes, const RecordPlace& place) {
  const auto header = bytes.first(static_cast<std::size_t>(kRiegeliChunkHeader));
  if (get<std::uint64_t>(header, 0) != riegeli_hash(header.subspan(8)))
    return damaged(place, "the checksum of a chunk's header does not match");
  const auto type_and_records = get<std::uint64_t>(header, 24);
  return ChunkHeader{.data_size = get<std::uint64_t>(header, 8),
                     .data_hash = get<std::uint64_t>(header, 16),
                     .type = static_cast<ChunkType>(type_and_records & 0xff),
                     .records = type_and_records >> 8,
                     .decoded_size = get<std::uint64_t>(header, 32)};
}

struct SimpleChunk::Zstd {
  Zstd() : decoder(ZSTD_createDCtx(), ZSTD_freeDCtx) { CHECK(decoder != nullptr, "zstd cannot start"); }
  std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> decoder;
};

SimpleChunk::SimpleChunk() = default;
SimpleChunk::~SimpleChunk() = default;

// `stored` as it was before compression: with its size first, at most `most` bytes.
Result<std::string_view> SimpleChunk::unpacked(std::string_view stored, ChunkCompression compression,
                                               std::uint64_t most, std::vector<char>& into, const RecordPlace& place) {
  if (compression == ChunkCompression::none) return stored;
  std::uint64_t size = 0;
  if (!take_varint(stored, size)) return damaged(place, "compressed data without their size");
  if (size > most) return damaged(place, "the compressed data say that they are longer than the chunk does");
  if (zstd_ == nullptr) zstd_ = std::make_unique<Zstd>();
  if (into.size() < size) into.resize(size);
  const std::size_t got = ZSTD_decompressDCtx(zstd_->decoder.get(), into.data(), size, stored.data(), stored.size());
  if (ZSTD_isError(got)) return damaged(place, fmt::format("zstd cannot unpack it: {}", ZSTD_getErrorName(got)));
  if (got != size) return damaged(place, "it unpacks to another size than it says");
  return std::string_view(into.data(), size);
}

Status SimpleChunk::decode_sizes(std::span<const std::byte>& data, const ChunkHeader& header,
                                 ChunkCompression compression, const RecordPlace& place) {
  std::string_view rest = text_of(data);
  std::uint64_t stored = 0;
  if (!take_varint(rest, stored) || stored > rest.size())
    return damaged(place, "the sizes of the records are longer than the chunk");
  data = data.subspan(data.size() - rest.size() + stored);
  ends_.clear();
  if (header.records == 1) {  // its size is in the header: the commonest case is spared a decompression
    ends_.push_back(header.decoded_size);
    return Done{};
  }
  constexpr std::uint64_t kLongestVarint = 10;
  std::string_view sizes =
      TRY(unpacked(rest.substr(0, stored), compression, header.records * kLongestVarint, unpacked_sizes_, place));
  if (sizes.size() < header.records) return damaged(place, "it has fewer sizes than records");
  ends_.reserve(header.records);
  std::uint64_t end = 0, size = 0;
  for (std::uint64_t i = 0; i < header.records; ++i) {
    if (!take_varint(sizes, size) || size > header.decoded_size - end)
      return damaged(place, "the sizes of its records do not fit it");
    ends_.push_back(end += size);
  }
  if (!sizes.empty() || end != header.decoded_size) return damaged(place, "the sizes of its records do not fit it");
  return Done{};
}

Status SimpleChunk::decode(std::span<const std::byte> bytes, Bytes largest, const RecordPlace& place) {
  ends_.clear();
  values_ = {};
  if (bytes.size() < static_cast<std::size_t>(kRiegeliChunkHeader)) return damaged(place, "a chunk is cut short");
  const ChunkHeader header = TRY(read_chunk_header(bytes, place));
  if (header.data_size > bytes.size() - static_cast<std::size_t>(kRiegeliChunkHeader))
    return damaged(place, "a chunk says that it is longer than its place in the file");
  TRY(refuse_other_chunk(header, place));
  std::span<const std::byte> data = bytes.subspan(static_cast<std::size_t>(kRiegeliChunkHeader), header.data_size);
  if (header.data_hash != riegeli_hash(data)) return damaged(place, "the checksum of a chunk's data does not match");
  if (data.empty()) return damaged(place, "a chunk without data");
  if (header.decoded_size > static_cast<std::uint64_t>(largest.count()) ||
      header.records > header.data_size * kMostTimes || header.records > std::max(kMostEmpty, header.data_size) ||
      header.decoded_size > std::max(kUnsuspicious, header.data_size * kMostTimes)) {
    return record_error(
        ErrorKind::invalid, place,
        fmt::format("a chunk of {} bytes says that it holds {} records of {} bytes in all",
                    with_commas(static_cast<std::int64_t>(header.data_size)), header.records, header.decoded_size),
        "so large a group is refused: write the file with a smaller `group_size`");
  }
  const auto compression = static_cast<ChunkCompression>(data[0]);
  TRY(refuse_compression(compression, place));
  data = data.subspan(1);
  TRY(decode_sizes(data, header, compression, place));
  values_ = TRY(unpacked(text_of(data), compression, header.decoded_size, unpacked_values_, place));
  if (values_.size() == header.decoded_size) return Done{};
  ends_.clear();
  return damaged(place, "its records are of another size than the chunk says");
}

}  // namespace systole
