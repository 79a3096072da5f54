#include "execute/data/formats/compressing_file.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>

namespace systole {
namespace {

constexpr std::size_t kOut = std::size_t{128} << 10;

class PlainFile : public CompressingFile {
 public:
  explicit PlainFile(std::unique_ptr<PartialFile> file) : file_(std::move(file)) {}
  Status append(std::string_view bytes) override { return file_->append(bytes); }
  Status finish() override { return file_->finish(); }

 private:
  std::unique_ptr<PartialFile> file_;
};

constexpr int kWindow = 15, kGzipHead = 16;  // of zlib's window bits

class DeflatedFile : public CompressingFile {
 public:
  DeflatedFile(std::unique_ptr<PartialFile> file, int window) : file_(std::move(file)), out_(kOut) {
    CHECK(deflateInit2(&zlib_, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib cannot start");
  }
  ~DeflatedFile() override { deflateEnd(&zlib_); }
  Status append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const std::string_view part = bytes.substr(0, std::size_t{1} << 30);
      TRY(run(part, Z_NO_FLUSH));
      bytes.remove_prefix(part.size());
    }
    return Done{};
  }
  Status finish() override {
    TRY(run({}, Z_FINISH));
    return file_->finish();
  }

 private:
  Status run(std::string_view bytes, int flush) {
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    zlib_.avail_in = static_cast<uInt>(bytes.size());
    while (true) {
      zlib_.next_out = reinterpret_cast<Bytef*>(out_.data());
      zlib_.avail_out = static_cast<uInt>(out_.size());
      const int code = deflate(&zlib_, flush);
      CHECK(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, "deflate gave {}", code);
      TRY(file_->append(std::string_view(out_.data(), out_.size() - zlib_.avail_out)));
      if (flush == Z_FINISH ? code == Z_STREAM_END : zlib_.avail_out > 0) return Done{};
    }
  }

  std::unique_ptr<PartialFile> file_;
  std::vector<char> out_;
  z_stream zlib_{};
};

class ZstdFile : public CompressingFile {
 public:
  explicit ZstdFile(std::unique_ptr<PartialFile> file)
      : file_(std::move(file)), zstd_(ZSTD_createCCtx(), ZSTD_freeCCtx), out_(kOut) {
    CHECK(zstd_ != nullptr, "zstd cannot start");
    ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1);
  }
  Status append(std::string_view bytes) override { return run(bytes, ZSTD_e_continue); }
  Status finish() override {
    TRY(run({}, ZSTD_e_end));
    return file_->finish();
  }

 private:
  Status run(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const std::size_t left = ZSTD_compressStream2(zstd_.get(), &out, &in, directive);
      CHECK(!ZSTD_isError(left), "zstd: {}", ZSTD_getErrorName(left));
      TRY(file_->append(std::string_view(out_.data(), out.pos)));
      if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size) return Done{};
    }
  }

  std::unique_ptr<PartialFile> file_;
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> zstd_;
  std::vector<char> out_;
};

}  // namespace

Result<std::unique_ptr<CompressingFile>> create_compressed(Store& store, std::string path, Compression compression) {
  std::unique_ptr<PartialFile> file = TRY(PartialFile::create(store, std::move(path)));
  switch (compression) {
    case Compression::gzip:
      return std::unique_ptr<CompressingFile>(std::make_unique<DeflatedFile>(std::move(file), kWindow + kGzipHead));
    case Compression::zstd: return std::unique_ptr<CompressingFile>(std::make_unique<ZstdFile>(std::move(file)));
    default: return std::unique_ptr<CompressingFile>(std::make_unique<PlainFile>(std::move(file)));
  }
}

Result<std::unique_ptr<CompressingFile>> create_zlib(Store& store, std::string path) {
  std::unique_ptr<PartialFile> file = TRY(PartialFile::create(store, std::move(path)));
  return std::unique_ptr<CompressingFile>(std::make_unique<DeflatedFile>(std::move(file), kWindow));
}

std::string zstd_bytes(std::string_view bytes, int level) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), bytes.data(), bytes.size());
  CHECK(!ZSTD_isError(size), "zstd: {}", ZSTD_getErrorName(size));
  out.resize(size);
  return out;
}

}  // namespace systole
