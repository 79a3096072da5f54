#pragma once
// 64-bit words in a mapped file. A word stored by one process is visible to others at once and survives a kill (not a
// power cut). Storing allocates nothing and makes no system call.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ground/base/result.h"

namespace systole {

class MappedWords {
 public:
  // Zeros in memory only, for tests and for threads of one process.
  explicit MappedWords(std::size_t count);
  // Zeros in a new file with all its space reserved. Errors: exists, not_found (no such folder), no_space, io.
  static Result<std::unique_ptr<MappedWords>> create(const std::string& path, std::size_t count);
  ~MappedWords();
  MappedWords(const MappedWords&) = delete;
  MappedWords& operator=(const MappedWords&) = delete;

  std::size_t size() const { return count_; }
  // Callable from any thread. REQUIRES: place < size().
  std::uint64_t load(std::size_t place) const { return word(place).load(std::memory_order_acquire); }
  void store(std::size_t place, std::uint64_t value) { word(place).store(value, std::memory_order_release); }
  std::vector<std::uint64_t> copy() const;

 private:
  MappedWords(std::uint64_t* words, std::size_t count) : words_(words), count_(count) {}
  std::atomic_ref<std::uint64_t> word(std::size_t place) const { return std::atomic_ref(words_[place]); }

  std::vector<std::uint64_t> owned_;  // when in memory
  std::uint64_t* words_;
  std::size_t count_;
};

// The words of such a file; it may still be written. Errors: not_found, io.
Result<std::vector<std::uint64_t>> read_words(const std::string& path);

}  // namespace systole
