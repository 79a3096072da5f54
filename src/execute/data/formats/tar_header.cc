#include "execute/data/formats/tar_header.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace systole {
namespace {

constexpr std::size_t kNameBytes = 100, kChecksumAt = 148, kChecksumBytes = 8;
constexpr std::int64_t kMostSize = std::int64_t{1} << 60;
constexpr std::int64_t kMostUstarSize = std::int64_t{1} << 33;  // eleven octal digits

std::string_view until_nul(std::string_view field) { return field.substr(0, field.find('\0')); }

// Octal text with spaces around, or big-endian; -1 if it is neither.
std::int64_t number_of(std::string_view field) {
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {  // negative ones have the next bit set too
    std::int64_t value = static_cast<unsigned char>(field[0]) & 0x7f;
    for (const char c : field.substr(1)) {
      if (value > kMostSize >> 8) return -1;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  std::size_t i = 0;
  while (i < field.size() && field[i] == ' ') ++i;
  std::int64_t value = 0;
  for (; i < field.size() && field[i] >= '0' && field[i] <= '7'; ++i) value = value * 8 + (field[i] - '0');
  return i == field.size() || field[i] == ' ' || field[i] == '\0' ? value : -1;
}

template <typename Byte>
std::int64_t sum_of(std::string_view block) {
  const auto* bytes = reinterpret_cast<const Byte*>(block.data());
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(kTarBlock); ++i) sum += bytes[i];
  for (std::size_t i = kChecksumAt; i < kChecksumAt + kChecksumBytes; ++i) sum -= bytes[i];
  return sum + static_cast<std::int64_t>(kChecksumBytes) * ' ';  // the checksum's own bytes count as spaces
}

void put_octal(char* field, std::size_t digits, std::int64_t value) {
  field[digits] = '\0';
  for (; digits-- > 0; value >>= 3) field[digits] = static_cast<char>('0' + (value & 7));
}

// `name`: its first 100 bytes count. `owned`: with the owner and mode of a member.
std::string block_of(std::string_view name, std::int64_t size, char type, bool owned) {
  std::string block(static_cast<std::size_t>(kTarBlock), '\0');
  std::memcpy(block.data(), name.data(), std::min(name.size(), kNameBytes));
  put_octal(block.data() + 100, 7, owned ? 0444 : 0);
  put_octal(block.data() + 108, 7, 0);
  put_octal(block.data() + 116, 7, 0);
  put_octal(block.data() + 124, 11, size);
  put_octal(block.data() + 136, 11, 0);
  block[156] = type;
  std::memcpy(block.data() + 257,
              "ustar\0"
              "00",
              8);
  if (owned) {
    std::memcpy(block.data() + 265, "bigdata", 7);
    std::memcpy(block.data() + 297, "bigdata", 7);
  }
  put_octal(block.data() + kChecksumAt, 6, sum_of<unsigned char>(block));
  block[kChecksumAt + 7] = ' ';
  return block;
}

// The name for readers that know no pax headers: a '?' for each character beyond ASCII.
std::string ascii_name(std::string_view name) {
  std::string ascii;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) ascii += c;
    if (byte >= 0xC0) ascii += '?';
  }
  return ascii;
}

// "LEN key=value\n", where LEN counts its own digits.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace

bool is_zero_block(std::string_view block) {
  return block[0] == '\0' && std::memcmp(block.data(), block.data() + 1, block.size() - 1) == 0;
}

Status parse_tar_header(std::string_view block, TarHeader& header) {
  const std::int64_t stored = number_of(block.substr(kChecksumAt, kChecksumBytes));
  if (stored != sum_of<unsigned char>(block) && stored != sum_of<signed char>(block)) {
    return error(ErrorKind::corrupt, "no header of a tar member: its checksum is {}, and its bytes give {}",
                 stored < 0 ? "no number" : std::to_string(stored), sum_of<unsigned char>(block));
  }
  header.size = number_of(block.substr(124, 12));
  if (header.size < 0 || header.size > kMostSize)
    return error(ErrorKind::corrupt, "the size in the header of a tar member is no number that a file can have");
  header.type = block[156];
  header.name.clear();
  if (block.substr(257, 6) == std::string_view("ustar\0", 6) && block[345] != '\0') {
    header.name = until_nul(block.substr(345, 155));
    header.name += '/';
  }
  header.name += until_nul(block.substr(0, 100));
  return Done{};
}

Result<PaxRecords> parse_pax(std::string_view records) {
  PaxRecords found;
  const auto broken = [] {
    return error(ErrorKind::corrupt, "the pax header is damaged: no records 'LENGTH KEY=VALUE'");
  };
  records = records.substr(0, records.find_last_not_of('\0') + 1);
  while (!records.empty()) {
    std::size_t length = 0, digits = 0;
    for (; digits < records.size() && digits < 7 && records[digits] >= '0' && records[digits] <= '9'; ++digits)
      length = length * 10 + static_cast<std::size_t>(records[digits] - '0');
    if (digits == 0 || length > records.size() || length < digits + 3 || records[digits] != ' ' ||
        records[length - 1] != '\n')
      return broken();
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == record.npos) return broken();
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    records.remove_prefix(length);
    if (key == "path") found.name = value;
    if (key == "size") {
      if (value.empty() || value.size() > 18 || value.find_first_not_of("0123456789") != value.npos) return broken();
      found.size = std::stoll(std::string(value));
    }
    if (key.starts_with("GNU.sparse."))
      return error(ErrorKind::unsupported, "a sparse file").hinted("make the tar without --sparse (-S)");
  }
  return found;
}

std::string tar_headers_of(std::string_view name, std::int64_t size) {
  const std::string ascii = ascii_name(name);
  const bool fits = ascii == name && name.size() <= kNameBytes, small = size < kMostUstarSize;
  std::string blocks;
  if (!fits || !small) {
    std::string records;
    if (!fits) records += pax_record("path", name);
    if (!small) records += pax_record("size", std::to_string(size));
    blocks = block_of("././@PaxHeader", static_cast<std::int64_t>(records.size()), 'x', false) + records;
    blocks.resize(static_cast<std::size_t>(padded_to_block(static_cast<std::int64_t>(blocks.size()))), '\0');
  }
  return blocks + block_of(ascii, small ? size : 0, '0', true);
}

}  // namespace systole
