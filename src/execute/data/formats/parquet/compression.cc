#include "execute/data/formats/parquet/compression.h"

#include <snappy.h>
#include <zlib.h>
#include <zstd.h>

#include <cstring>

namespace systole::parquet {
namespace {

const char* from_snappy(std::span<const std::byte> from, std::span<std::byte> into) {
  const char* data = reinterpret_cast<const char*>(from.data());
  std::size_t size = 0;
  if (!snappy::GetUncompressedLength(data, from.size(), &size) || size != into.size())
    return "its Snappy data is of another size than the page says";
  if (!snappy::RawUncompress(data, from.size(), reinterpret_cast<char*>(into.data())))
    return "its Snappy data is damaged";
  return nullptr;
}

const char* from_gzip(std::span<const std::byte> from, std::span<std::byte> into) {
  z_stream zlib{};
  if (inflateInit2(&zlib, 15 + 32) != Z_OK) return "zlib cannot start";  // 32: gzip's wrapper or zlib's
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data()));
  zlib.avail_in = static_cast<uInt>(from.size());
  std::byte none[1];  // an empty page has no place for bytes, and zlib wants one
  zlib.next_out = reinterpret_cast<Bytef*>(into.empty() ? none : into.data());
  zlib.avail_out = static_cast<uInt>(into.size());
  const int code = inflate(&zlib, Z_FINISH);
  const bool whole = code == Z_STREAM_END && zlib.avail_out == 0;
  inflateEnd(&zlib);
  if (whole) return nullptr;
  return code == Z_DATA_ERROR ? "its gzip data is damaged" : "its gzip data is of another size than the page says";
}

std::string to_gzip(std::string_view bytes) {
  z_stream zlib{};
  CHECK(deflateInit2(&zlib, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string out(deflateBound(&zlib, bytes.size()), '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  zlib.avail_in = static_cast<uInt>(bytes.size());
  zlib.next_out = reinterpret_cast<Bytef*>(out.data());
  zlib.avail_out = static_cast<uInt>(out.size());
  const int code = deflate(&zlib, Z_FINISH);
  out.resize(zlib.total_out);
  deflateEnd(&zlib);
  CHECK(code == Z_STREAM_END, "zlib's bound was too small");
  return out;
}

}  // namespace

struct Decompressor::Zstd {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  ~Zstd() { ZSTD_freeDCtx(context); }
};

Decompressor::Decompressor() = default;
Decompressor::~Decompressor() = default;
Decompressor::Decompressor(Decompressor&&) noexcept = default;

bool is_known(Codec codec) {
  return codec == Codec::none || codec == Codec::snappy || codec == Codec::gzip || codec == Codec::zstd;
}

const char* Decompressor::decompress(Codec codec, std::span<const std::byte> from, std::span<std::byte> into) {
  switch (codec) {
    case Codec::none:
      if (from.size() != into.size()) return "it is not compressed, and of another size than it says";
      if (!from.empty()) std::memcpy(into.data(), from.data(), from.size());
      return nullptr;
    case Codec::snappy: return from_snappy(from, into);
    case Codec::gzip: return from_gzip(from, into);
    default: break;
  }
  if (zstd_ == nullptr) zstd_ = std::make_unique<Zstd>();
  const std::size_t size = ZSTD_decompressDCtx(zstd_->context, into.data(), into.size(), from.data(), from.size());
  if (ZSTD_isError(size)) return "its zstd data is damaged";
  return size == into.size() ? nullptr : "its zstd data is of another size than the page says";
}

std::string compressed(Codec codec, std::string_view bytes) {
  std::string out;
  switch (codec) {
    case Codec::none: return std::string(bytes);
    case Codec::snappy: snappy::Compress(bytes.data(), bytes.size(), &out); return out;
    case Codec::gzip: return to_gzip(bytes);
    default: break;
  }
  out.resize(ZSTD_compressBound(bytes.size()));
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3);
  CHECK(!ZSTD_isError(size), "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace systole::parquet
