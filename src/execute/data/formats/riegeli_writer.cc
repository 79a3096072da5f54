#include <zstd.h>

#include <algorithm>

#include "execute/data/formats/riegeli.h"
#include "execute/data/formats/wire.h"
#include "execute/data/little_endian.h"

namespace systole {
namespace {

constexpr int kWindowLog = 20;  // ArrayRecord's own choice

void append_number(std::string& into, std::uint64_t value) {
  into.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::uint64_t hash_of(std::string_view text) {
  return riegeli_hash(std::as_bytes(std::span(text.data(), text.size())));
}

// A header: the hash of its numbers, then these.
std::string hashed(std::string numbers) {
  std::string header;
  append_number(header, hash_of(numbers));
  return header + numbers;
}

}  // namespace

// Writes a part of the chunk [begin, end), with the block headers that fall into it.
Status ChunkWriter::put(std::string_view bytes, std::int64_t begin, std::int64_t end) {
  while (!bytes.empty()) {
    const std::int64_t at = file_->size();
    if (at % kRiegeliBlock == 0) {
      std::string numbers;
      append_number(numbers, static_cast<std::uint64_t>(at - begin));
      append_number(numbers, static_cast<std::uint64_t>(end - at));
      TRY(file_->append(hashed(std::move(numbers))));
      continue;
    }
    const auto left = static_cast<std::size_t>(kRiegeliBlock - at % kRiegeliBlock);
    const std::size_t step = std::min(left, bytes.size());
    TRY(file_->append(bytes.substr(0, step)));
    bytes.remove_prefix(step);
  }
  return Done{};
}

Status ChunkWriter::write(ChunkType type, std::string_view data, std::uint64_t records, std::uint64_t decoded_size) {
  const ChunkHeader header{.data_size = data.size(),
                           .data_hash = hash_of(data),
                           .type = type,
                           .records = records,
                           .decoded_size = decoded_size};
  std::string numbers;
  append_number(numbers, header.data_size);
  append_number(numbers, header.data_hash);
  append_number(numbers, records << 8 | static_cast<unsigned char>(type));
  append_number(numbers, decoded_size);
  const std::int64_t begin = file_->size(), end = chunk_end(begin, header);
  TRY(put(hashed(std::move(numbers)), begin, end));
  TRY(put(data, begin, end));
  // What is left is zeros; a block header within is one all the same.
  while (file_->size() < end) {
    const std::int64_t at = file_->size();
    const std::int64_t header_left = at % kRiegeliBlock == 0 ? kRiegeliBlockHeader : 0;
    const std::int64_t until = std::min(end, (at / kRiegeliBlock + 1) * kRiegeliBlock);
    TRY(put(std::string(static_cast<std::size_t>(until - at - header_left), '\0'), begin, end));
  }
  return Done{};
}

Status ChunkWriter::pad_to_block() {
  const std::int64_t begin = file_->size();
  std::int64_t end = (begin + kRiegeliBlock - 1) / kRiegeliBlock * kRiegeliBlock;
  if (end == begin) return Done{};
  if (end - begin < kRiegeliChunkHeader) end += kRiegeliBlock;                  // no place for the chunk's header
  const std::int64_t blocks = end / kRiegeliBlock - begin / kRiegeliBlock - 1;  // block headers within
  const std::int64_t zeros = end - begin - kRiegeliChunkHeader - blocks * kRiegeliBlockHeader;
  return write(ChunkType::padding, std::string(static_cast<std::size_t>(zeros), '\0'), 0, 0);
}

struct SimpleEncoder::Zstd {
  Zstd() : encoder(ZSTD_createCCtx(), ZSTD_freeCCtx) { CHECK(encoder != nullptr, "zstd cannot start"); }
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> encoder;
};

SimpleEncoder::SimpleEncoder(ChunkCompression compression, int level) : compression_(compression) {
  if (compression != ChunkCompression::zstd) return;
  zstd_ = std::make_unique<Zstd>();
  ZSTD_CCtx_setParameter(zstd_->encoder.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(zstd_->encoder.get(), ZSTD_c_windowLog, kWindowLog);
}
SimpleEncoder::~SimpleEncoder() = default;

void SimpleEncoder::add(std::string_view record) {
  put_varint(sizes_, record.size());
  values_ += record;
  ++records_;
}

Result<std::string> SimpleEncoder::packed(const std::string& bytes) {
  if (zstd_ == nullptr) return bytes;
  std::string result;
  put_varint(result, bytes.size());
  const std::size_t begin = result.size();
  result.resize(begin + ZSTD_compressBound(bytes.size()));
  const std::size_t size =
      ZSTD_compress2(zstd_->encoder.get(), result.data() + begin, result.size() - begin, bytes.data(), bytes.size());
  if (ZSTD_isError(size)) return error(ErrorKind::internal, "zstd: {}", ZSTD_getErrorName(size));
  result.resize(begin + size);
  return result;
}

Result<std::string> SimpleEncoder::take() {
  const std::string sizes = TRY(packed(sizes_)), values = TRY(packed(values_));
  std::string data(1, static_cast<char>(compression_));
  put_varint(data, sizes.size());
  data += sizes;
  data += values;
  sizes_.clear();
  values_.clear();
  records_ = 0;
  return data;
}

}  // namespace systole
