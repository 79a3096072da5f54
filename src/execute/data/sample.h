#pragma once
// A bounded random sample of documents for the tokenizer's training: those with the smallest keyed random numbers, as
// many as fit, whatever their order of arrival. Long documents come in sections. Private to the build.

#include <cstdint>
#include <queue>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/units.h"

namespace systole {

class TextSample {
 public:
  TextSample(Bytes limit, std::uint64_t seed) : limit_(limit.count()), seed_(seed) {}
  void add(std::string_view document);
  // In the order of the random numbers; leaves the sample empty.
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
  std::priority_queue<Entry> entries_;  // the largest priority on top: the first to go
};

}  // namespace systole
