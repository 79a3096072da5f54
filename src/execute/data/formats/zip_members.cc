#include "execute/data/formats/zip_members.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>

#include "ground/base/units.h"

namespace systole {
namespace {

constexpr std::uint64_t kMostTimesLarger = 200, kNeverABomb = 64 << 20;

struct ZipEntry {
  std::string_view name;
  std::uint32_t crc = 0;
  std::uint16_t flags = 0, method = 0;
  std::uint64_t stored = 0, size = 0, header_at = 0;
};

template <typename T>
T number_at(std::string_view bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Error damaged(std::string_view what) { return error(ErrorKind::corrupt, "the zip archive is damaged: {}", what); }

// The central directory, and how many members it has.
struct Directory {
  std::string_view bytes;
  std::uint64_t members = 0;
};
Result<Directory> find_directory(std::string_view archive) {
  constexpr std::size_t kEnd = 22, kLocator = 20, kEnd64 = 56;
  if (archive.size() < kEnd) return damaged("it is too short");
  const std::size_t lowest = archive.size() - std::min(archive.size(), kEnd + 65535);  // a comment may follow
  std::size_t end = archive.substr(0, archive.size() - kEnd + 4).rfind(std::string_view("PK\5\6", 4));
  if (end == archive.npos || end < lowest) return damaged("it has no directory at its end: it was perhaps cut short");
  std::uint64_t members = number_at<std::uint16_t>(archive, end + 10);
  std::uint64_t size = number_at<std::uint32_t>(archive, end + 12), at = number_at<std::uint32_t>(archive, end + 16);
  if ((members == 0xffff || size == 0xffffffff || at == 0xffffffff) && end >= kLocator &&
      archive.substr(end - kLocator, 4) == std::string_view("PK\6\7", 4)) {
    const auto end64 = number_at<std::uint64_t>(archive, end - kLocator + 8);
    if (end64 > archive.size() || archive.size() - end64 < kEnd64 ||
        archive.substr(end64, 4) != std::string_view("PK\6\6", 4))
      return damaged("its 64-bit end record is not where it should be");
    members = number_at<std::uint64_t>(archive, end64 + 32);
    size = number_at<std::uint64_t>(archive, end64 + 40);
    at = number_at<std::uint64_t>(archive, end64 + 48);
  }
  if (at > end || size > end - at) return damaged("its directory is not in the file");
  return Directory{archive.substr(at, size), members};
}

// Sizes of 64 bits are in an extra field, in this order, each only if the 32 bits are all set.
Status read_zip64(std::string_view extra, ZipEntry& entry) {
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0), length = number_at<std::uint16_t>(extra, 2);
    if (length > extra.size() - 4) return damaged("an extra field leads out of its header");
    std::string_view field = extra.substr(4, length);
    extra.remove_prefix(std::size_t{4} + length);
    if (id != 1) continue;
    for (std::uint64_t* value : {&entry.size, &entry.stored, &entry.header_at}) {
      if (*value != 0xffffffff) continue;
      if (field.size() < 8) return damaged("a size of 64 bits is missing");
      *value = number_at<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
  return Done{};
}

Result<ZipEntry> next_entry(std::string_view& directory) {
  constexpr std::size_t kHeader = 46;
  if (directory.size() < kHeader || !directory.starts_with(std::string_view("PK\1\2", 4)))
    return damaged("its directory has fewer members than it says");
  ZipEntry entry;
  entry.flags = number_at<std::uint16_t>(directory, 8);
  entry.method = number_at<std::uint16_t>(directory, 10);
  entry.crc = number_at<std::uint32_t>(directory, 16);
  entry.stored = number_at<std::uint32_t>(directory, 20);
  entry.size = number_at<std::uint32_t>(directory, 24);
  const std::size_t name = number_at<std::uint16_t>(directory, 28), extra = number_at<std::uint16_t>(directory, 30),
                    comment = number_at<std::uint16_t>(directory, 32);
  entry.header_at = number_at<std::uint32_t>(directory, 42);
  if (directory.size() - kHeader < name + extra + comment) return damaged("a name leads out of its directory");
  entry.name = directory.substr(kHeader, name);
  TRY(read_zip64(directory.substr(kHeader + name, extra), entry));
  directory.remove_prefix(kHeader + name + extra + comment);
  return entry;
}

Result<std::string> inflated(std::string_view stored, const ZipEntry& entry) {
  std::string bytes;
  z_stream zlib{};
  CHECK(inflateInit2(&zlib, -15) == Z_OK, "zlib cannot start");
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
  std::size_t given = 0;
  int code = Z_OK;
  while (code == Z_OK && bytes.size() <= entry.size) {
    const std::size_t before = bytes.size();
    // Memory grows with what is decoded, not with what the member says of itself.
    bytes.resize(std::min<std::uint64_t>(entry.size + 1, before + std::max<std::size_t>(before, 64 << 10)));
    zlib.next_out = reinterpret_cast<Bytef*>(bytes.data() + before);
    zlib.avail_out = static_cast<uInt>(std::min<std::size_t>(bytes.size() - before, std::size_t{1} << 30));
    const uInt room = zlib.avail_out;
    zlib.avail_in = static_cast<uInt>(std::min<std::size_t>(stored.size() - given, std::size_t{1} << 30));
    const uInt in = zlib.avail_in;
    code = inflate(&zlib, Z_NO_FLUSH);
    given += in - zlib.avail_in;
    bytes.resize(before + room - zlib.avail_out);
    if (code == Z_OK && room == zlib.avail_out && in == zlib.avail_in) break;
  }
  inflateEnd(&zlib);
  if (code != Z_STREAM_END) return damaged(fmt::format("member '{}' cannot be decoded", entry.name.substr(0, 200)));
  return bytes;
}

Result<std::string> bytes_of(std::string_view archive, const ZipEntry& entry, std::int64_t room) {
  constexpr std::size_t kLocal = 30;
  const std::string_view name = entry.name.substr(0, 200);
  if ((entry.flags & 1) != 0) return error(ErrorKind::unsupported, "member '{}' of the zip is encrypted", name);
  if (entry.method != 0 && entry.method != 8)
    return error(ErrorKind::unsupported,
                 "member '{}' of the zip is compressed by method {}; stored and deflate are read", name, entry.method);
  if (entry.header_at > archive.size() || archive.size() - entry.header_at < kLocal ||
      archive.substr(entry.header_at, 4) != std::string_view("PK\3\4", 4))
    return damaged(fmt::format("member '{}' is not where the directory says", name));
  const std::uint64_t begin = entry.header_at + kLocal + number_at<std::uint16_t>(archive, entry.header_at + 26) +
                              number_at<std::uint16_t>(archive, entry.header_at + 28);
  if (begin > archive.size() || entry.stored > archive.size() - begin)
    return damaged(fmt::format("member '{}' leads out of the file", name));
  if (entry.size > static_cast<std::uint64_t>(room))
    return error(ErrorKind::does_not_fit, "member '{}' has {} bytes, and {} more are read at most", name,
                 with_commas(entry.size), with_commas(room))
        .hinted("save large arrays as .npy files, which are read in place");
  if (entry.size > kNeverABomb && entry.size / kMostTimesLarger > entry.stored)
    return damaged(fmt::format("member '{}' would become more than {} times as large, as a decompression bomb would",
                               name, kMostTimesLarger));
  const std::string_view stored = archive.substr(begin, entry.stored);
  std::string bytes = entry.method == 0 ? std::string(stored) : TRY(inflated(stored, entry));
  const auto crc = static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<z_size_t>(bytes.size())));
  if (bytes.size() != entry.size || crc != entry.crc)
    return damaged(fmt::format("member '{}' has not the CRC-32 or size that the directory says", name));
  return bytes;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> unzip(std::string_view archive, std::int64_t limit) {
  Directory directory = TRY(find_directory(archive));
  std::vector<std::pair<std::string, std::string>> members;
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    const ZipEntry entry = TRY(next_entry(directory.bytes));
    std::string bytes = TRY(bytes_of(archive, entry, limit));
    limit -= static_cast<std::int64_t>(bytes.size());
    members.emplace_back(std::string(entry.name), std::move(bytes));
  }
  return members;
}

}  // namespace systole
