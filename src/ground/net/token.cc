#include "ground/net/token.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

int digit(char c) {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

Result<RunToken> RunToken::make() {
  RunToken token;
  ssize_t got = -1;
  do { got = ::getrandom(token.bytes_.data(), kSize, 0); } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(kSize)) return os_error(errno, "draw a run's token");
  return token;
}

Result<RunToken> RunToken::parse(std::string_view hex) {
  const auto wrong = [] { return error(ErrorKind::invalid, "a run's token is {} hexadecimal digits", 2 * kSize); };
  if (hex.size() != 2 * kSize) return wrong();
  RunToken token;
  for (std::size_t i = 0; i < kSize; ++i) {
    const int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return wrong();
    token.bytes_[i] = static_cast<std::byte>(16 * high + low);
  }
  return token;
}

std::string RunToken::hex() const {
  std::string text;
  for (const std::byte byte : bytes_) {
    text += kDigits[std::to_integer<std::size_t>(byte) / 16];
    text += kDigits[std::to_integer<std::size_t>(byte) % 16];
  }
  return text;
}

std::uint64_t RunToken::mark() const {
  const std::string text = "systole run, mark, 1: " + hex();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    fail(error(ErrorKind::internal, "libcrypto: SHA-256 failed"));
  std::uint64_t mark = 0;
  std::memcpy(&mark, digest.data(), sizeof mark);
  return mark;
}

bool RunToken::equals(std::span<const std::byte> shown) const {
  if (shown.size() != kSize) return false;
  // volatile: the compiler must not stop at the first difference.
  volatile unsigned differs = 0;
  for (std::size_t i = 0; i < kSize; ++i) { differs = differs | std::to_integer<unsigned>(bytes_[i] ^ shown[i]); }
  return differs == 0;
}

}  // namespace systole
