// WebDataset (execute/data/formats): whatever the bytes, reading a tar file in order, by its index, and compressed ends in
// records or an Error. A checksum stops nearly every random header, so that of each block that could be one is mended.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/testing/some_records.h"
#include "execute/data/formats/webdataset.h"

namespace {

using namespace systole;

void read_all_of(Store& store, const std::string& path, bool index) {
  read_everything(open_webdataset({&store, path, path}, {.index = index, .limits = {Bytes(1 << 20)}}), "json.a[*].b");
}

// The right checksum into each block whose place for one is not empty.
std::string mended(std::string bytes) {
  for (std::size_t at = 0; at + 512 <= bytes.size(); at += 512) {
    if (bytes[at + 148] == '\0') continue;
    unsigned sum = 8 * ' ';
    for (std::size_t i = 0; i < 512; ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(bytes[at + i]);
    char digits[16];
    std::snprintf(digits, sizeof digits, "%06o", sum);
    std::memcpy(bytes.data() + at + 148, digits, 7);
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<Store> store = make_memory_store();
  const std::string input(reinterpret_cast<const char*>(data), size), whole = mended(input);
  write_whole(*store, "raw.tar.gz", input).value();
  write_whole(*store, "raw.tar.zst", input).value();
  write_whole(*store, "mended.tar", whole).value();
  write_whole(*store, "mended.tar.zst", zstd_bytes(whole, 1)).value();
  for (const char* path : {"raw.tar.gz", "raw.tar.zst", "mended.tar.zst"}) read_all_of(*store, path, false);
  for (const bool index : {false, true}) read_all_of(*store, "mended.tar", index);
  return 0;
}
