#include "ground/store/s3_upload.h"

#include <algorithm>

#include "ground/base/hash.h"
#include "ground/base/parallel.h"
#include "ground/store/object_path.h"
#include "ground/store/s3_multipart.h"

namespace systole {
namespace {

constexpr std::size_t kMostPut = std::size_t{1} << 30;   // S3 takes 5 GiB in one request
constexpr std::int64_t kCopied = std::int64_t{1} << 30;  // bytes of a part that S3 copies
constexpr std::size_t kPartsOfASize = 1000;              // then they double: 10,000 parts have room for 7.8 TiB

class S3Upload : public Upload {
 public:
  S3Upload(S3Place place, std::string path) : place_(std::move(place)), path_(std::move(path)) {}
  S3Upload(const S3Upload&) = delete;
  S3Upload& operator=(const S3Upload&) = delete;
  ~S3Upload() override { (void)end(true); }

  Status append(std::span<const std::byte> bytes) override {
    CHECK(!over_ && !at_first_, "append to the upload of '{}' after its end", path_);
    while (!bytes.empty()) {
      const std::size_t part = part_size();
      if (buffer_.empty() && bytes.size() >= part) {
        const std::size_t count = std::min(bytes.size() / part, kPartsOfASize - parts_ % kPartsOfASize);
        TRY(put_parts(bytes.first(count * part), part));
        bytes = bytes.subspan(count * part);
        continue;
      }
      const std::size_t count = std::min(bytes.size(), part - buffer_.size());
      buffer_.append(reinterpret_cast<const char*>(bytes.data()), count);
      bytes = bytes.subspan(count);
      if (buffer_.size() == part) TRY(put_buffer());
    }
    return {};
  }

  Status complete(const Precondition& when, Durability durability) override {
    return complete_as(path_, when, durability);
  }

  Status complete_as(std::string_view path, const Precondition& when, Durability) override {
    CHECK(!over_, "the upload of '{}' is completed after its end", path_);
    TRY(check_object_path(path));
    if (!multipart_) {
      TRY(put_s3(place_, path, std::as_bytes(std::span(buffer_)), when));
    } else {
      if (!buffer_.empty()) TRY(put_buffer());
      TRY(path == path_ ? at_its_path(when) : copied_to(path, when));
    }
    over_ = true;
    return {};
  }

  Status abort() override { return end(false); }

 private:
  std::size_t part_size() const { return place_.api->access().part << parts_ / kPartsOfASize; }

  // `bytes` are whole parts, except at the end of all.
  Status put_parts(std::span<const std::byte> bytes, std::size_t part) {
    if (!multipart_) multipart_.emplace(TRY(S3Multipart::begin(place_, path_)));
    const std::size_t count = (bytes.size() + part - 1) / part;
    const std::size_t before = parts_;
    parts_ += count;
    return for_each_in_parallel(count, count == 1 ? 1 : place_.api->access().parallel, [&](std::size_t i) {
      const auto piece = bytes.subspan(i * part, std::min(part, bytes.size() - i * part));
      return multipart_->put(static_cast<int>(before + i) + 1, piece);
    });
  }
  Status put_buffer() {
    TRY(put_parts(std::as_bytes(std::span(buffer_)), std::max<std::size_t>(1, buffer_.size())));
    buffer_.clear();
    return {};
  }

  Status at_its_path(const Precondition& when) {
    if (at_first_) {  // copying it elsewhere was refused
      if (when.kind != Precondition::Kind::generation || when.generation == *at_first_) return {};
      return error(ErrorKind::busy, "the object '{}' is not the one that was read", place_.shown(path_));
    }
    TRY(multipart_->complete(when));
    return {};
  }

  Status copied_to(std::string_view path, const Precondition& when) {
    if (!at_first_) TRY(to_first_path(path));
    S3Multipart copy = TRY(S3Multipart::begin(place_, std::string(path)));
    const Status done = copy_parts(copy, when);
    if (!done.ok()) {
      (void)copy.abort(true);
      return done;
    }
    (void)remove_first(false);  // what a lost connection leaves there is an object that nobody names
    return {};
  }

  // Another upload on its way to another path may be there for a moment.
  Status to_first_path(std::string_view path) {
    Retries retries(place_.api->retries(), place_.api->clock());
    while (true) {
      Result<Generation> done = multipart_->complete(Precondition::absent());
      if (done.ok()) at_first_ = *std::move(done);
      if (at_first_) return {};
      if (done.error().kind != ErrorKind::exists) return done.error();
      if (!retries.wait())
        return error(ErrorKind::io, "the object '{}' is in the way of an upload to '{}'", place_.shown(path_), path)
            .hinted(fmt::format("remove '{}'", place_.shown(path_)));
    }
  }

  Status copy_parts(S3Multipart& copy, const Precondition& when) {
    const std::int64_t size = multipart_->size();
    const auto count = static_cast<std::size_t>((size + kCopied - 1) / kCopied);
    TRY(for_each_in_parallel(count, count == 1 ? 1 : place_.api->access().parallel, [&](std::size_t i) {
      const std::int64_t offset = static_cast<std::int64_t>(i) * kCopied;
      return copy.copy(static_cast<int>(i) + 1, path_, *at_first_, offset, std::min(kCopied, size - offset));
    }));
    TRY(copy.complete(when));
    return {};
  }

  Status remove_first(bool once) {
    const S3Answer answer = TRY(place_.api->send({.method = "DELETE", .key = place_.key(path_), .once = once}));
    if (!answer.good() && answer.status() != 404) return place_.api->refusal(answer, place_.shown(path_));
    return {};
  }

  Status end(bool once) {
    if (over_) return {};
    over_ = true;
    if (at_first_) return remove_first(once);
    return multipart_ ? multipart_->abort(once) : Status();
  }

  const S3Place place_;
  const std::string path_;
  std::string buffer_;
  std::optional<S3Multipart> multipart_;
  std::size_t parts_ = 0;
  std::optional<Generation> at_first_;  // completed there, on its way to another path
  bool over_ = false;
};

}  // namespace

Result<Generation> put_s3(const S3Place& place, std::string_view path, std::span<const std::byte> bytes,
                          const Precondition& when) {
  if (bytes.size() > kMostPut) {
    S3Multipart parts = TRY(S3Multipart::begin(place, std::string(path)));
    const std::size_t part = std::max(place.api->access().part, bytes.size() / 9000),
                      count = (bytes.size() + part - 1) / part;
    const Status put = for_each_in_parallel(count, place.api->access().parallel, [&](std::size_t i) {
      return parts.put(static_cast<int>(i) + 1, bytes.subspan(i * part, std::min(part, bytes.size() - i * part)));
    });
    Result<Generation> done = put.ok() ? parts.complete(when) : Result<Generation>(put.error());
    if (!done.ok()) (void)parts.abort(true);
    return done;
  }
  const std::string mark = new_s3_mark();
  const std::uint32_t crc = crc32c(bytes);
  S3Call call{.method = "PUT", .key = place.key(path), .headers = s3_object_headers(place, mark)};
  call.headers.emplace_back("x-amz-checksum-crc32c", crc32c_text(crc));
  add_s3_condition(call.headers, when);
  call.body = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const S3Answer answer = TRY(place.api->send(call));
  if (answer.good()) TRY(check_s3_crc(answer, crc, place.shown(path)));
  return written_s3(place, path, answer, when, mark);
}

std::unique_ptr<Upload> start_s3_upload(S3Place place, std::string path) {
  return std::make_unique<S3Upload>(std::move(place), std::move(path));
}

}  // namespace systole
