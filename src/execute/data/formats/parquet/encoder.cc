#include "execute/data/formats/parquet/encoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "ground/base/result.h"

namespace systole::parquet {
namespace {

__extension__ using Wide = unsigned __int128;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0);
}

// Packs numbers from the lowest bit up.
template <typename T>
void put_packed(std::string& out, std::span<const T> numbers, int width) {
  Wide waiting = 0;
  int bits = 0;
  for (const T number : numbers) {
    waiting |= static_cast<Wide>(number) << bits;
    for (bits += width; bits >= 8; bits -= 8, waiting >>= 8) out += static_cast<char>(waiting);
  }
  if (bits > 0) out += static_cast<char>(waiting);
}

void put_plain(std::string& out, const Column& column, const Value& value) {
  switch (column.type) {
    case Physical::int32: put(out, static_cast<std::int32_t>(value.integer)); return;
    case Physical::int64: put(out, value.integer); return;
    case Physical::float32: put(out, static_cast<float>(value.real)); return;
    case Physical::float64: put(out, value.real); return;
    case Physical::bytes:
      put(out, static_cast<std::uint32_t>(value.bytes.size()));
      out += value.bytes;
      return;
    default: out += value.bytes; return;
  }
}

std::string plain(const Column& column, std::span<const Value> values) {
  std::string out;
  if (column.type == Physical::boolean) {
    std::vector<std::uint8_t> flags;
    for (const Value& value : values) flags.push_back(value.integer != 0);
    put_packed(out, std::span<const std::uint8_t>(flags), 1);
    return out;
  }
  for (const Value& value : values) put_plain(out, column, value);
  return out;
}

// Blocks of 128 in four parts, as all known writers.
std::string delta_packed(std::span<const std::int64_t> numbers, bool narrow) {
  constexpr std::size_t kBlock = 128, kPart = 32;
  std::string out;
  put_varint(out, kBlock);
  put_varint(out, kBlock / kPart);
  put_varint(out, numbers.size());
  if (!numbers.empty()) put_varint(out, zigzag(narrow ? static_cast<std::int32_t>(numbers[0]) : numbers[0]));
  if (numbers.empty()) put_varint(out, 0);
  for (std::size_t at = 1; at < numbers.size(); at += kBlock) {
    std::vector<std::int64_t> differences;
    for (std::size_t i = at; i < std::min(at + kBlock, numbers.size()); ++i) {
      const std::uint64_t difference =
          static_cast<std::uint64_t>(numbers[i]) - static_cast<std::uint64_t>(numbers[i - 1]);
      // Of 32 bits it wraps there, so that no part needs more bits than a value has.
      differences.push_back(narrow ? std::int64_t{static_cast<std::int32_t>(difference)}
                                   : static_cast<std::int64_t>(difference));
    }
    const std::int64_t smallest = *std::min_element(differences.begin(), differences.end());
    put_varint(out, zigzag(smallest));
    std::vector<std::uint64_t> above;
    for (const std::int64_t difference : differences)
      above.push_back(static_cast<std::uint64_t>(difference) - static_cast<std::uint64_t>(smallest));
    std::string widths(kBlock / kPart, '\0'), parts;
    for (std::size_t p = 0; p * kPart < above.size(); ++p) {
      std::vector<std::uint64_t> part(kPart);
      std::copy(above.begin() + static_cast<std::ptrdiff_t>(p * kPart),
                above.begin() + static_cast<std::ptrdiff_t>(std::min((p + 1) * kPart, above.size())), part.begin());
      const int width = std::bit_width(*std::max_element(part.begin(), part.end()));
      widths[p] = static_cast<char>(width);
      put_packed(parts, std::span<const std::uint64_t>(part), width);
    }
    out += widths + parts;
  }
  return out;
}

std::string delta_lengths(std::span<const std::string_view> texts) {
  std::vector<std::int64_t> lengths;
  for (const std::string_view text : texts) lengths.push_back(static_cast<std::int64_t>(text.size()));
  std::string out = delta_packed(lengths, true);
  for (const std::string_view text : texts) out += text;
  return out;
}

std::string delta_bytes(std::span<const Value> values) {
  std::vector<std::int64_t> prefixes;
  std::vector<std::string_view> suffixes;
  std::string_view before;
  for (const Value& value : values) {
    const auto [a, b] = std::mismatch(before.begin(), before.end(), value.bytes.begin(), value.bytes.end());
    const auto shared = static_cast<std::size_t>(a - before.begin());
    prefixes.push_back(static_cast<std::int64_t>(shared));
    suffixes.push_back(value.bytes.substr(shared));
    before = value.bytes;
  }
  return delta_packed(prefixes, true) + delta_lengths(suffixes);
}

std::string split_streams(const Column& column, std::span<const Value> values) {
  const std::string whole = plain(column, values);
  if (values.empty()) return whole;
  const std::size_t width = whole.size() / values.size();
  std::string out(whole.size(), '\0');
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t b = 0; b < width; ++b) out[b * values.size() + i] = whole[i * width + b];
  }
  return out;
}

std::string run_booleans(std::span<const Value> values) {
  std::vector<std::uint32_t> flags;
  for (const Value& value : values) flags.push_back(value.integer != 0);
  const std::string runs = encode_runs(flags, 1);
  std::string out;
  put(out, static_cast<std::uint32_t>(runs.size()));
  return out + runs;
}

}  // namespace

std::string encode_runs(std::span<const std::uint32_t> numbers, int width) {
  std::string out;
  std::vector<std::uint32_t> waiting;  // for a packed run, a multiple of eight but at the end
  const auto flush = [&] {
    if (waiting.empty()) return;
    waiting.resize((waiting.size() + 7) / 8 * 8);
    put_varint(out, waiting.size() / 8 << 1 | 1);
    put_packed(out, std::span<const std::uint32_t>(waiting), width);
    waiting.clear();
  };
  for (std::size_t at = 0; at < numbers.size();) {
    std::size_t end = at + 1;
    while (end < numbers.size() && numbers[end] == numbers[at]) ++end;
    // A run is only worth its head when a packed one before it is whole.
    const std::size_t fill = std::min((8 - waiting.size() % 8) % 8, end - at);
    waiting.insert(waiting.end(), fill, numbers[at]);
    const std::size_t rest = end - at - fill;
    if (rest >= 8) {
      flush();
      put_varint(out, rest << 1);
      out.append(reinterpret_cast<const char*>(&numbers[at]), static_cast<std::size_t>(width + 7) / 8);
    } else {
      waiting.insert(waiting.end(), rest, numbers[at]);
    }
    at = end;
  }
  flush();
  return out;
}

bool is_writable(Physical type, Encoding encoding) {
  const bool integer = type == Physical::int32 || type == Physical::int64;
  switch (encoding) {
    case Encoding::plain: return type != Physical::int96;
    case Encoding::dictionary: return type != Physical::int96 && type != Physical::boolean;
    case Encoding::rle: return type == Physical::boolean;
    case Encoding::delta_binary_packed: return integer;
    case Encoding::delta_length_byte_array: return type == Physical::bytes;
    case Encoding::delta_byte_array: return type == Physical::bytes || type == Physical::fixed;
    case Encoding::byte_stream_split:
      return integer || type == Physical::float32 || type == Physical::float64 || type == Physical::fixed;
    default: return false;
  }
}

std::string encode(const Column& column, Encoding encoding, std::span<const Value> values) {
  CHECK(is_writable(column.type, encoding), "{} of {}", name_of(encoding), name_of(column.type));
  switch (encoding) {
    case Encoding::rle: return run_booleans(values);
    case Encoding::delta_binary_packed: {
      std::vector<std::int64_t> numbers;
      for (const Value& value : values) numbers.push_back(value.integer);
      return delta_packed(numbers, column.type == Physical::int32);
    }
    case Encoding::delta_length_byte_array: {
      std::vector<std::string_view> texts;
      for (const Value& value : values) texts.push_back(value.bytes);
      return delta_lengths(texts);
    }
    case Encoding::delta_byte_array: return delta_bytes(values);
    case Encoding::byte_stream_split: return split_streams(column, values);
    default: return plain(column, values);
  }
}

}  // namespace systole::parquet
