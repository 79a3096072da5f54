#pragma once
// Internals of the WebDataset reader (webdataset.h): the members of a tar file grouped into samples, in place.

#include <vector>

#include "execute/data/formats/byte_window.h"
#include "execute/data/formats/tar_header.h"

namespace systole {

// One sample; its members' bytes are in the window until it moves.
struct TarSample {
  struct Member {
    std::string field;
    std::int64_t at = 0, size = 0;  // of the (decompressed) file
  };
  std::string key;
  std::int64_t begin = 0, end = 0;  // from its first header to the padding of its last member
  std::vector<Member> members;      // the first `count` of them; the others keep their storage
  std::size_t count = 0;
};

class TarSamples {
 public:
  TarSamples(std::unique_ptr<ByteWindow> window, std::string shown, Bytes largest_sample)
      : window_(std::move(window)), shown_(std::move(shown)), largest_(largest_sample.count()) {}

  // The sample whose first header is at or behind byte `at`; false at the end of the file. With `headers_only` the
  // members' bytes are not read. REQUIRES: of a compressed file, `at` is the `end` of the sample before.
  // Errors: see webdataset.h; after one where resumes_at() >= 0, reading may go on there, past the rest of that sample.
  Result<bool> read(std::int64_t at, std::int64_t record, TarSample& sample, bool headers_only = false);
  std::int64_t resumes_at() const { return resumes_at_; }

  std::string_view bytes_of(const TarSample::Member& member) const {
    return window_->at(member.at, member.at + member.size);
  }
  // So that one read of the file covers the sample at `begin` and the next one's header. REQUIRES: seekable().
  Status prefetch(std::int64_t begin, std::int64_t end) {
    const Result<std::string_view> bytes = window_->bytes(begin, end + kTarBlock);
    if (!bytes.ok()) return bytes.error();
    return Done{};
  }
  bool seekable() const { return window_->seekable(); }

 private:
  enum class Found { member, skipped, end };
  Result<bool> gather(std::int64_t at, std::int64_t record, TarSample& sample, bool headers_only);
  Result<Found> next_member(std::int64_t at);
  Result<Found> classify(std::int64_t after);
  Status check_end(std::int64_t at);
  Status check_size(const TarSample& sample);
  Status add_member(TarSample& sample, bool headers_only);
  bool is_of_refused() const;
  Error wrong(ErrorKind kind, std::int64_t byte, std::string_view what, std::string hint = {}) const {
    return record_error(kind, {shown_, record_, byte}, what, std::move(hint));
  }

  std::unique_ptr<ByteWindow> window_;
  std::string shown_;
  std::int64_t largest_;
  std::int64_t keep_ = 0, record_ = 0;  // of the sample that is read
  std::int64_t resumes_at_ = -1;
  std::string refused_;  // the key of the sample before resumes_at_, of which members may follow

  // The member that was looked at last, with the extension headers before it.
  TarHeader header_;
  std::int64_t member_begin_ = -1, data_at_ = 0;  // its first header; its bytes
  std::size_t dot_ = 0;                           // between key and field in header_.name
};

}  // namespace systole
