#include "execute/checkpoint/coding.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace systole::checkpoint {

namespace {

constexpr int kLevel = 1;

std::string bound_of(const Coding& coding) {
  return fmt::format("systole-chunk 1 raw {} zstd {}", coding.raw.count(), coding.zstd ? 1 : 0);
}

Key256 chunk_key(const Key256& key, const std::string& salt) {
  const auto bytes = key_from_hex(salt);
  CHECK(bytes.has_value(), "salt '{}'", salt);
  return derive(key, *bytes, "systole chunk");
}

}  // namespace

struct ChunkEncoder::Zstd {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ~Zstd() { ZSTD_freeCCtx(context); }
};

ChunkEncoder::ChunkEncoder(Bytes raw, bool zstd, const std::optional<Key256>& key) {
  coding_.raw = raw;
  coding_.zstd = zstd;
  if (zstd) zstd_ = std::make_unique<Zstd>();
  if (!key) return;
  coding_.salt = to_hex_text(random_key());
  key_ = chunk_key(*key, coding_.salt);
}
ChunkEncoder::~ChunkEncoder() = default;

std::span<const std::byte> ChunkEncoder::frame(std::span<const std::byte> raw) {
  const std::size_t most = coding_.zstd ? ZSTD_compressBound(raw.size()) : raw.size();
  stored_.resize(most + kTagBytes);
  std::size_t size = raw.size();
  if (coding_.zstd) {
    size = ZSTD_compressCCtx(zstd_->context, stored_.data(), most, raw.data(), raw.size(), kLevel);
    CHECK(!ZSTD_isError(size), "zstd: {}", ZSTD_getErrorName(size));
  } else if (!raw.empty()) {
    std::memcpy(stored_.data(), raw.data(), raw.size());
  }
  if (key_) {
    const auto tag = encrypt(*key_, coding_.frames.size(), bound_of(coding_), std::span(stored_).first(size));
    std::memcpy(stored_.data() + size, tag.data(), tag.size());
    size += tag.size();
  }
  coding_.frames.push_back(static_cast<std::int64_t>(size));
  return std::span(stored_).first(size);
}

struct ChunkDecoder::Zstd {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ~Zstd() { ZSTD_freeDCtx(context); }
};

ChunkDecoder::ChunkDecoder(const Coding& coding, const std::optional<Key256>& key) : coding_(coding) {
  if (coding.zstd) zstd_ = std::make_unique<Zstd>();
  if (coding.salt.empty()) return;
  CHECK(key.has_value(), "a chunk with a salt and no key");
  key_ = chunk_key(*key, coding.salt);
}
ChunkDecoder::~ChunkDecoder() = default;

Result<std::span<const std::byte>> ChunkDecoder::frame(std::size_t number, std::span<std::byte> stored) {
  if (key_) {
    if (stored.size() < kTagBytes) return error(ErrorKind::corrupt, "frame {} is too short", number);
    const auto tag = stored.last<kTagBytes>();
    stored = stored.first(stored.size() - kTagBytes);
    if (!decrypt(*key_, number, bound_of(coding_), stored, tag)) {
      return error(ErrorKind::corrupt, "frame {} does not decrypt: it was altered, or belongs elsewhere", number);
    }
  }
  const auto size = static_cast<std::size_t>(frame_size(coding_, number));
  if (!coding_.zstd) {
    if (stored.size() == size) return std::span<const std::byte>(stored);
    return error(ErrorKind::corrupt, "frame {} has {} bytes instead of {}", number, stored.size(), size);
  }
  raw_.resize(size);
  const std::size_t got = ZSTD_decompressDCtx(zstd_->context, raw_.data(), raw_.size(), stored.data(), stored.size());
  if (ZSTD_isError(got) || got != size) {
    return error(ErrorKind::corrupt, "frame {} does not decompress to {} bytes{}{}", number, size,
                 ZSTD_isError(got) ? ": " : "", ZSTD_isError(got) ? ZSTD_getErrorName(got) : "");
  }
  return std::span<const std::byte>(raw_);
}

std::int64_t frames_of(Bytes raw) { return (raw.count() + kFrameBytes - 1) / kFrameBytes; }

std::int64_t frame_size(const Coding& coding, std::size_t number) {
  const std::int64_t begin = static_cast<std::int64_t>(number) * kFrameBytes;
  return std::min(kFrameBytes, coding.raw.count() - begin);
}

bool is_worth_compressing(std::span<const std::byte> sample) {
  std::vector<std::byte> into(ZSTD_compressBound(sample.size()));
  const std::size_t size = ZSTD_compress(into.data(), into.size(), sample.data(), sample.size(), kLevel);
  return !ZSTD_isError(size) && size * 10 <= sample.size() * 9;
}

}  // namespace systole::checkpoint
