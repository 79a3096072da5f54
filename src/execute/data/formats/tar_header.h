#pragma once
// The 512-byte headers of a tar file (POSIX.1-1988 ustar, POSIX.1-2001 pax, and what GNU tar adds): one before each member,
// whose bytes follow, padded to a multiple of 512. Two blocks of zeros end the file.
//
//   0 name 100 · 100 mode 8 · 108 uid 8 · 116 gid 8 · 124 size 12 · 136 mtime 12 · 148 checksum 8 · 156 type 1 ·
//   157 link 100 · 257 "ustar" and version 8 · 265 owner 32 · 297 group 32 · 329 device 16 · 345 prefix 155
//
// Numbers are octal text, or, if their first bit is set, big-endian. A member of type x (pax) or L (GNU) holds the name
// and size, or the long name, of the next.

#include <cstdint>
#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

constexpr std::int64_t kTarBlock = 512;

constexpr std::int64_t padded_to_block(std::int64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

struct TarHeader {
  std::string name;  // prefix and name
  std::int64_t size = 0;
  char type = '0';
};

// REQUIRES: `block` holds 512 bytes, not all zero. Reuses the storage of `header.name`.
// Errors, without a place: corrupt (wrong checksum, a size that is no number, negative or over 2^60).
Status parse_tar_header(std::string_view block, TarHeader& header);
bool is_zero_block(std::string_view block);

// What the records of a pax header say of the next member; absent: an empty name, a negative size.
struct PaxRecords {
  std::string name;
  std::int64_t size = -1;
};
// Errors, without a place: corrupt (no such records); unsupported (a sparse file).
Result<PaxRecords> parse_pax(std::string_view records);

// The blocks before a regular file: its header; before it a pax header for a name of over 100 bytes or beyond ASCII, or a
// size of 8 GiB and more. Owner bigdata, mode 0444, time 0: the bytes that webdataset's TarWriter(mtime=0) writes.
std::string tar_headers_of(std::string_view name, std::int64_t size);

}  // namespace systole
