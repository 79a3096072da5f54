#pragma once
// One version of an object: its size, its generation and the checksum that its store states, and reads of that version
// alone. Who copies an object reads it piece by piece, so a piece of a later version must never come between.

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/hash.h"
#include "ground/store/object_store.h"

namespace systole {

inline constexpr Bytes kLargestObject{std::int64_t{5} << 40};  // of Cloud Storage and of every server of S3

struct ObjectFacts {
  Bytes size{};
  Generation generation = {};             // empty: this store has none that costs no read of all bytes (a local folder)
  std::optional<std::uint32_t> crc32c{};  // as the store states it, of all bytes
  std::string md5 = {};                   // likewise, 32 hexadecimal digits; empty: it states none
  bool is_checked() const { return crc32c.has_value() || !md5.empty(); }
};

// A CRC-32C as Cloud Storage and S3 write it: base64 of its four bytes, the highest first.
std::string crc32c_text(std::uint32_t sum);
// Nothing: it is none, or that of a whole that was checksummed by parts ("abc=-3").
std::optional<std::uint32_t> read_crc32c_text(std::string_view text);

// A store that can pin a version; describe_object and get_version ask it.
class PinsVersions {
 public:
  virtual ~PinsVersions() = default;
  virtual Result<ObjectFacts> describe(std::string_view path) = 0;
  virtual Status get_version(std::string_view path, const Generation& version, std::int64_t offset,
                             std::span<std::byte> into) = 0;
};

// Errors: not_found, io.
Result<ObjectFacts> describe_object(ObjectStore& store, std::string_view path);
// As ObjectStore::get, of this version. Of a store without generations: of the present one. Errors: also busy, another
// version is there now, or none.
Status get_version(ObjectStore& store, std::string_view path, const Generation& version, std::int64_t offset,
                   std::span<std::byte> into);

// The checksums of bytes that come in order.
class ByteSums {
 public:
  explicit ByteSums(bool with_md5 = false);  // md5 takes as long as all else
  ~ByteSums();
  ByteSums(ByteSums&&) noexcept;
  ByteSums& operator=(ByteSums&&) noexcept;
  void add(std::span<const std::byte> bytes);
  Bytes size() const { return size_; }
  std::uint32_t crc32c() const { return crc_; }
  Hash128 hash() const { return hash_.digest(); }
  std::string md5() const;  // 32 hexadecimal digits. REQUIRES: with_md5

 private:
  struct Md5;
  Bytes size_{};
  std::uint32_t crc_ = 0;
  Hasher hash_;
  std::unique_ptr<Md5> md5_;
};
ByteSums sums_for(const ObjectFacts& facts);  // with what `facts` states
// Errors: corrupt, these are not the bytes that `facts` states. `shown`: the object, for the message.
Status check_sums(const ByteSums& sums, const ObjectFacts& facts, std::string_view shown);

// Gives the bytes of the version from `sums.size()` on to `take`, in pieces of at most kCopyPiece, and adds them to
// `sums`; compares these at the end. Errors: as get_version and check_sums; those of `take`.
inline constexpr std::int64_t kCopyPiece = std::int64_t{16} << 20;
using TakeBytes = std::function<Status(std::span<const std::byte>)>;
Status read_version(ObjectStore& store, std::string_view path, const ObjectFacts& facts, std::string_view shown,
                    ByteSums& sums, const TakeBytes& take);

}  // namespace systole
