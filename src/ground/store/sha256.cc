#include "ground/store/sha256.h"

#include <openssl/evp.h>

#include <cerrno>
#include <fstream>
#include <vector>

#include "ground/base/os_error.h"

namespace systole {
namespace {

void must(bool done) {
  if (!done) fail(error(ErrorKind::internal, "libcrypto: SHA-256 failed"));
}

std::string hex(const Sha256::Digest& digest) {
  std::string text;
  for (const std::byte b : digest) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

}  // namespace

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  must(state_->context && EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

void Sha256::add(std::span<const std::byte> bytes) {
  must(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

Sha256::Digest Sha256::digest() {
  Digest digest;
  unsigned size = 0;
  must(EVP_DigestFinal_ex(state_->context.get(), reinterpret_cast<unsigned char*>(digest.data()), &size) == 1 &&
       size == digest.size());
  return digest;
}

std::string sha256_of(std::string_view text) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(text)));
  return hex(sum.digest());
}

Result<std::string> sha256_of_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return os_read_error(errno == 0 ? EIO : errno, "read", path);
  Sha256 sum;
  std::vector<char> piece(1 << 20);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    sum.add(std::as_bytes(std::span(piece.data(), static_cast<std::size_t>(file.gcount()))));
  }
  if (file.bad()) return os_read_error(EIO, "read", path);
  return hex(sum.digest());
}

}  // namespace systole
