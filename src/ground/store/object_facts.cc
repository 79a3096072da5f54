#include "ground/store/object_facts.h"

#include <openssl/evp.h>

#include <algorithm>
#include <vector>

#include "ground/base/base64.h"

namespace systole {

std::string crc32c_text(std::uint32_t sum) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(sum >> shift & 0xff);
  return to_base64(bytes);
}

std::optional<std::uint32_t> read_crc32c_text(std::string_view text) {
  if (text.size() != 8) return std::nullopt;
  const Result<std::string> bytes = from_base64(text);
  if (!bytes.ok() || bytes->size() != 4) return std::nullopt;
  std::uint32_t sum = 0;
  for (const char c : *bytes) sum = sum << 8 | static_cast<unsigned char>(c);
  return sum;
}

Result<ObjectFacts> describe_object(ObjectStore& store, std::string_view path) {
  if (auto* pins = dynamic_cast<PinsVersions*>(&store)) return pins->describe(path);
  return ObjectFacts{.size = TRY(store.size(path))};
}

Status get_version(ObjectStore& store, std::string_view path, const Generation& version, std::int64_t offset,
                   std::span<std::byte> into) {
  auto* pins = dynamic_cast<PinsVersions*>(&store);
  if (pins == nullptr || version.text.empty()) return store.get(path, offset, into);
  return pins->get_version(path, version, offset, into);
}

// MD5 serves no secrecy here: it is what S3 has of objects that were written without another checksum.
struct ByteSums::Md5 {
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context{EVP_MD_CTX_new(), EVP_MD_CTX_free};
};

ByteSums::ByteSums(bool with_md5) {
  if (!with_md5) return;
  md5_ = std::make_unique<Md5>();
  CHECK(md5_->context && EVP_DigestInit_ex(md5_->context.get(), EVP_md5(), nullptr) == 1, "no MD5 in libcrypto");
}
ByteSums::~ByteSums() = default;
ByteSums::ByteSums(ByteSums&&) noexcept = default;
ByteSums& ByteSums::operator=(ByteSums&&) noexcept = default;

void ByteSums::add(std::span<const std::byte> bytes) {
  size_ += Bytes(bytes.size());
  crc_ = systole::crc32c(bytes, crc_);
  hash_.add(bytes);
  if (!md5_) return;
  CHECK(EVP_DigestUpdate(md5_->context.get(), bytes.data(), bytes.size()) == 1, "MD5 of {} bytes", bytes.size());
}

ByteSums sums_for(const ObjectFacts& facts) { return ByteSums(!facts.crc32c && !facts.md5.empty()); }

std::string ByteSums::md5() const {
  CHECK(md5_ != nullptr, "MD5 was not asked for");
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> copy{EVP_MD_CTX_new(), EVP_MD_CTX_free};
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  CHECK(copy && EVP_MD_CTX_copy_ex(copy.get(), md5_->context.get()) == 1 &&
            EVP_DigestFinal_ex(copy.get(), digest.data(), &size) == 1,
        "MD5 cannot end");
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

Status check_sums(const ByteSums& sums, const ObjectFacts& facts, std::string_view shown) {
  if (sums.size() != facts.size) {
    return error(ErrorKind::corrupt, "'{}': {} bytes came, and it has {}", shown, with_commas(sums.size().count()),
                 with_commas(facts.size.count()));
  }
  if (facts.crc32c && *facts.crc32c != sums.crc32c()) {
    return error(ErrorKind::corrupt, "'{}': the bytes that came have the CRC32C {:08x}, those of the object {:08x}",
                 shown, sums.crc32c(), *facts.crc32c);
  }
  if (!facts.crc32c && !facts.md5.empty() && facts.md5 != sums.md5()) {
    return error(ErrorKind::corrupt, "'{}': the bytes that came have the MD5 {}, those of the object {}", shown,
                 sums.md5(), facts.md5);
  }
  return {};
}

Status read_version(ObjectStore& store, std::string_view path, const ObjectFacts& facts, std::string_view shown,
                    ByteSums& sums, const TakeBytes& take) {
  std::vector<std::byte> buffer(
      static_cast<std::size_t>(std::clamp(facts.size.count() - sums.size().count(), std::int64_t{0}, kCopyPiece)));
  while (sums.size() < facts.size) {
    const std::int64_t left = facts.size.count() - sums.size().count();
    const auto piece = std::span(buffer).first(static_cast<std::size_t>(std::min(left, kCopyPiece)));
    TRY(get_version(store, path, facts.generation, sums.size().count(), piece));
    sums.add(piece);
    TRY(take(piece));
  }
  return check_sums(sums, facts, shown);
}

}  // namespace systole
