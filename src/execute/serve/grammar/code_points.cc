#include "execute/serve/grammar/code_points.h"

#include <algorithm>
#include <array>
#include <map>

#include "ground/base/utf8.h"

namespace systole::grammar {
namespace {

using State = AutomatonBuilder::State;
struct ByteRange {
  std::uint8_t first, last;
};

// Adds the sequences of ranges of bytes that spell ranges of code points. Ends of sequences that are the same are shared.
class Utf8Adder {
 public:
  Utf8Adder(AutomatonBuilder& builder, State from, State to) : builder_(builder), from_(from), to_(to) {}

  // Splits until every byte of a sequence is a range by itself (as in Go's and RE2's UTF-8 compilers).
  void add(std::uint32_t first, std::uint32_t last) {
    for (const std::uint32_t end : {0x7Fu, 0x7FFu, 0xFFFFu}) {
      if (first > end || end >= last) continue;
      add(first, end);
      return add(end + 1, last);
    }
    if (first > 0x7F) {
      for (int i = 1; i < 4; ++i) {
        const std::uint32_t low = (1u << (6 * i)) - 1;
        if ((first & ~low) == (last & ~low)) continue;
        if ((first & low) != 0) {
          add(first, first | low);
          return add((first | low) + 1, last);
        }
        if ((last & low) != low) {
          add(first, (last & ~low) - 1);
          return add(last & ~low, last);
        }
      }
    }
    std::string lowest, highest;
    append_utf8(lowest, first);
    append_utf8(highest, last);
    State to = to_;
    std::string key;
    for (std::size_t i = lowest.size(); i-- > 1;) {
      const ByteRange range{static_cast<std::uint8_t>(lowest[i]), static_cast<std::uint8_t>(highest[i])};
      key += lowest[i];
      key += highest[i];
      const auto [found, is_new] = behind_.try_emplace(key, 0);
      if (is_new) {
        found->second = builder_.state();
        builder_.range(found->second, range.first, range.last, to);
      }
      to = found->second;
    }
    builder_.range(from_, static_cast<std::uint8_t>(lowest[0]), static_cast<std::uint8_t>(highest[0]), to);
  }

 private:
  AutomatonBuilder& builder_;
  State from_, to_;
  std::map<std::string, State> behind_;  // the state before the ranges of the key, which are in reverse
};

const CodePoints& escaped() {
  static const CodePoints set({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  return set;
}

bool contains(const CodePoints& set, std::uint32_t code) {
  return std::ranges::any_of(set.ranges(), [&](CodeRange r) { return r.first <= code && code <= r.last; });
}

void add_escapes(AutomatonBuilder& builder, State from, const CodePoints& set, State to) {
  static constexpr std::array<std::pair<char, char>, 7> kShort{
      {{'"', '"'}, {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}}};
  State slash = -1;
  const auto behind_slash = [&] {
    if (slash < 0) slash = builder.text(from, "\\");
    return slash;
  };
  for (const auto& [code, letter] : kShort) {
    if (contains(set, static_cast<std::uint32_t>(code))) {
      const auto byte = static_cast<std::uint8_t>(letter);
      builder.range(behind_slash(), byte, byte, to);
    }
  }
  std::array<State, 2> high{-1, -1};  // behind \u000 and \u001
  State zeros = -1;
  for (std::uint32_t code = 0; code < 0x20; ++code) {
    if (!contains(set, code)) continue;
    if (zeros < 0) zeros = builder.text(behind_slash(), "u00");
    State& half = high[code >> 4];
    if (half < 0) half = builder.text(zeros, code < 16 ? "0" : "1");
    for (const char digit : {"0123456789abcdef"[code & 15], "0123456789ABCDEF"[code & 15]})
      builder.range(half, static_cast<std::uint8_t>(digit), static_cast<std::uint8_t>(digit), to);
  }
}

}  // namespace

CodePoints::CodePoints(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  const auto add = [&](std::uint32_t first, std::uint32_t last) {
    if (first > last) return;
    if (!ranges_.empty() && first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, last);
    else
      ranges_.push_back({first, last});
  };
  for (const CodeRange& range : ranges) {
    add(range.first, std::min(range.last, 0xD7FFu));
    add(std::max(range.first, 0xE000u), range.last);
  }
}

CodePoints CodePoints::without(const CodePoints& other) const {
  std::vector<CodeRange> left;
  auto cut = other.ranges_.begin();
  for (CodeRange range : ranges_) {
    while (cut != other.ranges_.end() && cut->last < range.first) ++cut;
    for (auto each = cut; each != other.ranges_.end() && each->first <= range.last; ++each) {
      if (each->first > range.first) left.push_back({range.first, each->first - 1});
      range.first = each->last + 1;
    }
    if (range.first <= range.last) left.push_back(range);
  }
  return CodePoints(std::move(left));
}

void add_code_point(AutomatonBuilder& builder, State from, const CodePoints& set, Spelling spelling, State to) {
  Utf8Adder adder(builder, from, to);
  const CodePoints raw = spelling == Spelling::json ? set.without(escaped()) : set;
  for (const CodeRange& range : raw.ranges()) {
    if (builder.full()) return;
    adder.add(range.first, range.last);
  }
  if (spelling == Spelling::json) add_escapes(builder, from, set, to);
}

}  // namespace systole::grammar
