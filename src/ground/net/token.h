#pragma once
// The secret of one run: 128 random bits that each of its processes has and sends first. The token alone encrypts
// nothing: whoever can read the wire reads the token. On an untrusted network a run uses TLS with a key derived from
// the token (tls.h); the token is then sent inside TLS.

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

  // From the system's random numbers. Errors: io.
  static Result<RunToken> make();
  // 32 hexadecimal digits. Errors: invalid (the text is not repeated in the message).
  static Result<RunToken> parse(std::string_view hex);

  std::string hex() const;
  // A public identifier of the run's launch for files and logs: from a SHA-256 with a label, which reveals nothing
  // about the token.
  std::uint64_t mark() const;
  std::span<const std::byte, kSize> bytes() const { return bytes_; }
  // Constant time in the contents. Another length returns false at once.
  bool equals(std::span<const std::byte> shown) const;

 private:
  std::array<std::byte, kSize> bytes_{};
};

}  // namespace systole
