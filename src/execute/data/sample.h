#pragma once
// A bounded random sample of documents for training the tokenizer: as many as fit, those with the smallest keyed random
// numbers. Long documents are split into sections. Private to the build.

#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/units.h"

namespace systole {

struct Document;

class TextSample {
 public:
  TextSample(Bytes limit, std::uint64_t seed) : limit_(limit.count()), seed_(seed) {}
  void add(std::string_view document);
  void add(const Document& document);  // its text, and of a pair its target too
  // Returns the sample in the order of the random numbers, and empties it.
  std::vector<std::string> take();

 private:
  struct Entry {
    std::uint64_t priority;
    std::string text;
    bool operator<(const Entry& other) const { return priority < other.priority; }
  };
  std::int64_t limit_;
  std::uint64_t seed_;
  std::uint64_t count_ = 0;
  std::int64_t bytes_ = 0;
  std::priority_queue<Entry> entries_;  // the largest priority on top: evicted first
};

}  // namespace systole
