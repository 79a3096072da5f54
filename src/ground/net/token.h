#pragma once
// The secret of one run: 128 random bits that every process of it knows and shows first. That alone is no encryption:
// whoever can read the wire reads the token. On a network that is not trusted a run speaks TLS, whose key is derived of
// the token (tls.h); the token then is shown inside.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

class RunToken {
 public:
  static constexpr std::size_t kSize = 16;

  // From the system's randomness. Errors: io.
  static Result<RunToken> make();
  // 32 hexadecimal digits. Errors: invalid (the text is not repeated in the message).
  static Result<RunToken> parse(std::string_view hex);

  std::string hex() const;
  // By which files and logs know the run's launch, though others read them: of a SHA-256 with a label, which tells
  // nothing of the token.
  std::uint64_t mark() const;
  std::span<const std::byte, kSize> bytes() const { return bytes_; }
  // In a time that does not depend on where the two differ. Another length is false at once.
  bool equals(std::span<const std::byte> shown) const;

 private:
  std::array<std::byte, kSize> bytes_{};
};

}  // namespace systole
