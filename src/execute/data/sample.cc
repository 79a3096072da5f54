#include "execute/data/sample.h"

#include <algorithm>

#include "execute/data/text_source.h"
#include "ground/base/philox.h"

namespace systole {
namespace {
constexpr std::size_t kSectionBytes = std::size_t{64} << 10;
constexpr std::uint64_t kStream = 0x73616d706c65;  // "sample": separates this use of the seed from others
}  // namespace

void TextSample::add(std::string_view document) {
  while (!document.empty()) {
    const std::string_view section = document.substr(0, kSectionBytes);
    document.remove_prefix(section.size());
    const PhiloxBlock bits = philox(seed_, philox_counter(count_++, kStream));
    const std::uint64_t priority = (std::uint64_t{bits[1]} << 32) | bits[0];
    // The sample is full and this priority is not below its largest: the section would be evicted at once.
    const auto size = static_cast<std::int64_t>(section.size());
    if (!entries_.empty() && bytes_ + size > limit_ && priority >= entries_.top().priority) continue;
    bytes_ += size;
    entries_.push({priority, std::string(section)});
    while (bytes_ > limit_ && entries_.size() > 1) {
      bytes_ -= static_cast<std::int64_t>(entries_.top().text.size());
      entries_.pop();
    }
  }
}

void TextSample::add(const Document& document) {
  add(document.text);
  add(document.target);
}

std::vector<std::string> TextSample::take() {
  std::vector<std::string> texts;
  for (; !entries_.empty(); entries_.pop()) texts.push_back(entries_.top().text);
  std::reverse(texts.begin(), texts.end());
  bytes_ = 0;
  return texts;
}

}  // namespace systole
