#include "execute/data/byte_stream.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

#include "ground/store/git_lfs.h"

namespace systole {
namespace {

constexpr std::size_t kInputBytes = std::size_t{256} << 10;

class StoredBytes : public ByteStream {
 public:
  StoredBytes(Store& store, std::string path, std::int64_t size) : store_(store), path_(std::move(path)), size_(size) {}

  Result<std::size_t> read(std::span<std::byte> into) override {
    const auto count = std::min(static_cast<std::int64_t>(into.size()), size_ - offset_);
    if (count > 0) TRY(store_.read(path_, offset_, into.first(static_cast<std::size_t>(count))));
    offset_ += count;
    return static_cast<std::size_t>(count);
  }

 private:
  Store& store_;
  std::string path_;
  std::int64_t size_, offset_ = 0;
};

Error cut_short(const char* kind, std::int64_t read, const std::string& shown) {
  return error(ErrorKind::corrupt, "truncated: the {} data stops at byte {} of the file, before its end", kind,
               with_commas(read))
      .at({shown})
      .hinted("the file was not copied or downloaded whole: fetch it again and compare its size");
}

Error damaged(const char* kind, std::int64_t read, const char* why, const std::string& shown) {
  return error(ErrorKind::corrupt, "damaged: the {} data cannot be decoded near byte {} of the file ({})", kind,
               with_commas(read), why)
      .at({shown})
      .hinted(fmt::format("fetch the file again, or, if it is not {}, give it a name without that ending", kind));
}

// Common to both decoders: reads compressed bytes from the store, a chunk at a time.
class Input {
 public:
  explicit Input(std::unique_ptr<ByteStream> source) : source_(std::move(source)), bytes_(kInputBytes) {}

  // False at the end of the file. REQUIRES: the last chunk is consumed.
  Result<bool> refill() {
    size_ = TRY(source_->read(bytes_));
    read_ += static_cast<std::int64_t>(size_);
    return size_ > 0;
  }
  std::span<std::byte> chunk() { return {bytes_.data(), size_}; }
  std::int64_t read_so_far() const { return read_; }

 private:
  std::unique_ptr<ByteStream> source_;
  std::vector<std::byte> bytes_;
  std::size_t size_ = 0;
  std::int64_t read_ = 0;
};

class GzipBytes : public ByteStream {
 public:
  GzipBytes(std::unique_ptr<ByteStream> source, std::string shown)
      : input_(std::move(source)), shown_(std::move(shown)) {
    CHECK(inflateInit2(&zlib_, 15 + 32) == Z_OK, "zlib cannot start");  // 32: gzip's wrapper or zlib's
  }
  ~GzipBytes() override { inflateEnd(&zlib_); }

  Result<std::size_t> read(std::span<std::byte> into) override {
    zlib_.next_out = reinterpret_cast<Bytef*>(into.data());
    zlib_.avail_out = static_cast<uInt>(std::min(into.size(), std::size_t{1} << 30));
    const uInt room = zlib_.avail_out;
    while (zlib_.avail_out == room) {
      if (zlib_.avail_in == 0 && !TRY(refill())) {
        if (inside_) return cut_short("gzip", input_.read_so_far(), shown_);
        return std::size_t{0};
      }
      TRY(step());
    }
    return std::size_t{room - zlib_.avail_out};
  }

 private:
  Result<bool> refill() {
    if (!TRY(input_.refill())) return false;
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.chunk().data());
    zlib_.avail_in = static_cast<uInt>(input_.chunk().size());
    return true;
  }

  Status step() {
    inside_ = true;
    const int code = inflate(&zlib_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {  // the end of a member; another may follow
      inside_ = false;
      CHECK(inflateReset(&zlib_) == Z_OK, "zlib cannot go on");
      return Done{};
    }
    if (code == Z_OK || code == Z_BUF_ERROR) return Done{};
    const char* why = zlib_.msg != nullptr ? zlib_.msg : "no reason given";
    return damaged("gzip", input_.read_so_far() - zlib_.avail_in, why, shown_);
  }

  Input input_;
  std::string shown_;
  z_stream zlib_{};
  bool inside_ = false;  // between the first and last byte of a member
};

class ZstdBytes : public ByteStream {
 public:
  ZstdBytes(std::unique_ptr<ByteStream> source, std::string shown)
      : input_(std::move(source)), shown_(std::move(shown)), zstd_(ZSTD_createDStream(), ZSTD_freeDStream) {
    CHECK(zstd_ != nullptr, "zstd cannot start");
  }

  Result<std::size_t> read(std::span<std::byte> into) override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    while (out.pos == 0) {
      // After a full output, decoded bytes may remain in the decoder, so it is called again before the file is read.
      if (in_.pos == in_.size && !pending_ && !TRY(refill())) {
        if (inside_) return cut_short("zstd", input_.read_so_far(), shown_);
        return std::size_t{0};
      }
      const std::size_t left = ZSTD_decompressStream(zstd_.get(), &out, &in_);
      if (ZSTD_isError(left)) return damaged("zstd", at(), ZSTD_getErrorName(left), shown_);
      inside_ = left != 0;
      pending_ = inside_ && out.pos == out.size;
    }
    return out.pos;
  }

 private:
  Result<bool> refill() {
    if (!TRY(input_.refill())) return false;
    in_ = {input_.chunk().data(), input_.chunk().size(), 0};
    return true;
  }
  std::int64_t at() const { return input_.read_so_far() - static_cast<std::int64_t>(in_.size - in_.pos); }

  Input input_;
  std::string shown_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> zstd_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  bool inside_ = false, pending_ = false;
};

}  // namespace

const char* name_of(Compression compression) {
  switch (compression) {
    case Compression::by_name: return "by name";
    case Compression::none: return "none";
    case Compression::gzip: return "gzip";
    case Compression::zstd: return "zstd";
  }
  return "?";
}

Compression compression_of(std::string_view path, Compression declared) {
  if (declared != Compression::by_name) return declared;
  if (path.ends_with(".gz") || path.ends_with(".dz")) return Compression::gzip;
  if (path.ends_with(".zst")) return Compression::zstd;
  return Compression::none;
}

Result<std::unique_ptr<ByteStream>> open_bytes(Store& store, const std::string& path, const std::string& shown,
                                               Compression compression) {
  Result<Bytes> size = store.size(path);
  if (!size.ok()) return std::move(size).error().at({shown});
  if (size->count() == 0) {
    return error(ErrorKind::invalid, "the file is empty")
        .at({shown})
        .hinted("it was perhaps not written to its end: make it again, or leave it out of `files`");
  }
  if (Status itself = refuse_lfs_pointer(store, path); !itself.ok()) return std::move(itself).error().at({shown});
  std::unique_ptr<ByteStream> bytes = std::make_unique<StoredBytes>(store, path, size->count());
  switch (compression_of(path, compression)) {
    case Compression::gzip: return std::unique_ptr<ByteStream>(std::make_unique<GzipBytes>(std::move(bytes), shown));
    case Compression::zstd: return std::unique_ptr<ByteStream>(std::make_unique<ZstdBytes>(std::move(bytes), shown));
    default: return bytes;
  }
}

}  // namespace systole
