#pragma once
// SHA-256 (FIPS 180-4), for files that travel or that somebody might tamper with. Against accidental corruption
// base/hash.h suffices and is faster. Uses OpenSSL's libcrypto; its failure (no memory) is thrown as Failure.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// Incremental hash of bytes that come in pieces.
class Sha256 {
 public:
  using Digest = std::array<std::byte, 32>;
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  void add(std::span<const std::byte> bytes);
  Digest digest();  // once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// 64 hexadecimal digits, lower-case, as `sha256sum` prints them.
std::string sha256_of(std::string_view text);
// Errors: not_found, io.
Result<std::string> sha256_of_file(const std::string& path);

}  // namespace systole
