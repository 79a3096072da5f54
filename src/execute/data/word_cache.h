#pragma once
// A direct-mapped cache of words' tokens: 65,536 slots of one cache line (4 MiB). A word of at most 24 bytes and 8
// tokens is in the slot of its hash; a newer one evicts an older one. Longer words are not cached. Private to this
// folder.

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace systole {

class WordCache {
 public:
  WordCache() : slots_(kSlots) {}

  // Appends the word's tokens to `tokens` if it is cached.
  bool find(std::string_view word, std::vector<std::int32_t>& tokens) {
    if (word.size() > sizeof(Key)) return false;
    key_ = {};
    std::memcpy(key_.data(), word.data(), word.size());
    slot_ = &slots_[place(key_, word.size())];
    if (slot_->length != word.size() || slot_->key != key_) return false;
    tokens.insert(tokens.end(), slot_->tokens.begin(), slot_->tokens.begin() + slot_->count);
    return true;
  }

  // REQUIRES: the last call was find(word), and it returned false.
  void keep(std::string_view word, std::span<const std::int32_t> tokens) {
    if (word.empty() || word.size() > sizeof(Key) || tokens.size() > slot_->tokens.size()) return;
    slot_->key = key_;
    slot_->length = static_cast<std::uint8_t>(word.size());
    slot_->count = static_cast<std::uint8_t>(tokens.size());
    std::memcpy(slot_->tokens.data(), tokens.data(), tokens.size_bytes());
  }

 private:
  using Key = std::array<std::uint64_t, 3>;  // the word's bytes, then zeros
  static constexpr std::size_t kSlots = std::size_t{1} << 16;

  struct alignas(64) Slot {
    Key key{};
    std::array<std::int32_t, 8> tokens{};
    std::uint8_t length = 0, count = 0;
  };

  static std::size_t place(const Key& key, std::size_t length) {
    const std::uint64_t mixed =
        (key[0] ^ (key[1] * 0x9E3779B97F4A7C15u) ^ (key[2] * 0xC2B2AE3D27D4EB4Fu) ^ length) * 0xD6E8FEB86659FD93u;
    return static_cast<std::size_t>((mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u >> 48);
  }

  std::vector<Slot> slots_;
  Key key_{};
  Slot* slot_ = nullptr;
};

}  // namespace systole
