#pragma once
// One multipart upload of S3: CreateMultipartUpload, UploadPart, UploadPartCopy, CompleteMultipartUpload. Each part has
// a CRC-32C that S3 checks, and the object that of all its bytes.

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/store/s3_place.h"

namespace systole {

class S3Multipart {
 public:
  // Errors: io.
  static Result<S3Multipart> begin(const S3Place& place, std::string path);

  // Part `number`, from 1. Thread-safe. Errors: io; not_found (aborted by another).
  Status put(int number, std::span<const std::byte> bytes);
  // Part `number`: `size` bytes from `offset` of another object of the bucket, which is still the version `etag`.
  // Errors: as put.
  Status copy(int number, std::string_view path, const Generation& version, std::int64_t offset, std::int64_t size);
  // After exists and busy it may be tried again. Errors: as Upload::complete.
  Result<Generation> complete(const Precondition& when);
  Status abort(bool once);

  std::int64_t size() const;
  const std::string& path() const { return path_; }

 private:
  struct Part {
    std::string etag;
    std::int64_t size = 0;
    std::optional<std::uint32_t> crc;  // unknown of a copied one
  };
  S3Multipart(S3Place place, std::string path, std::string id, std::string mark)
      : place_(std::move(place)), path_(std::move(path)), id_(std::move(id)), mark_(std::move(mark)) {}
  S3Call part_call(int number) const;
  Error refusal(const S3Answer& answer) const;
  void keep(int number, Part part);
  std::optional<std::uint32_t> whole_crc() const;

  S3Place place_;
  std::string path_, id_, mark_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  std::vector<Part> parts_;
};

}  // namespace systole
