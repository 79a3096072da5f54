// ArrayRecord and its Riegeli chunks (execute/data/formats): whatever the bytes, opening and reading ends in records or
// an Error.
//
// Hashes stop nearly every random input early, so the input is also taken as a description: a file is written from it,
// its footer and chunks as the input says, with sound hashes, to reach the checks behind.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "execute/data/formats/array_record.h"
#include "execute/data/formats/riegeli.h"
#include "execute/data/formats/wire.h"

namespace {

using namespace systole;

std::vector<std::string> read_everything(Store& store, const std::string& path) {
  std::vector<std::string> records;
  auto reader = open_array_record({&store, path, path}, {Bytes(1 << 20)});
  if (!reader.ok()) return records;
  DataRecord record;
  for (std::int64_t i = 0; i < std::min<std::int64_t>((*reader)->count(), 1000); ++i) {
    const Result<bool> more = (*reader)->next(record);
    if (!more.ok()) continue;
    records.emplace_back(record.bytes);
    (void)(*reader)->field(record, "text");
    (void)(*reader)->read((*reader)->count() - 1 - i, record);
  }
  return records;
}

// A chunk of the input's own data, an index that says of it what the input's first bytes say.
void write_lying(std::span<const std::uint8_t> input, Store& store) {
  const std::string data(reinterpret_cast<const char*>(input.data()) + 8, input.size() - 8);
  ChunkWriter chunks(PartialFile::create(store, "lying").value());
  chunks.write(ChunkType::signature, {}, 0, 0).value();
  const std::int64_t at = chunks.size();
  const auto type = input[0] % 8 == 0 ? ChunkType::transposed : ChunkType::simple;
  chunks.write(type, data, input[1], std::uint64_t{input[2]} << input[3] % 40).value();
  const std::int64_t footer_at = chunks.size();
  std::string about, metadata, place, postscript;
  put_number(about, 1, 1 + (input[0] % 16 == 1));
  put_number(about, 2, 1 + (input[0] % 16 == 2));
  put_number(about, 3, input[1] + (input[0] % 16 == 3));
  put_bytes(metadata, 1, about);
  put_number(place, 1, static_cast<std::uint64_t>(at) + (input[0] % 16 == 4 ? input[4] : 0));
  put_number(place, 3, std::uint64_t{input[1]} << (input[0] % 16 == 5 ? input[5] % 64 : 0));
  SimpleEncoder footer(ChunkCompression::none, 0);
  footer.add(metadata);
  footer.add(place);
  chunks.write(ChunkType::simple, footer.take().value(), 2, metadata.size() + place.size()).value();
  chunks.pad_to_block().value();
  put_number(postscript, 1, static_cast<std::uint64_t>(footer_at) + (input[0] % 16 == 6 ? input[6] : 0));
  put_number(postscript, 2, kArrayRecordMagic);
  SimpleEncoder last(ChunkCompression::none, 0);
  last.add(postscript);
  chunks.write(ChunkType::simple, last.take().value(), 1, postscript.size()).value();
  chunks.pad_to_block().value();
  chunks.finish().value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<Store> store = make_memory_store();
  if (size < 9) return 0;
  write_lying({data, size}, *store);
  (void)read_everything(*store, "lying");

  std::vector<std::string> records;
  const std::string input(reinterpret_cast<const char*>(data) + 8, size - 8);
  for (std::size_t begin = 0; begin <= input.size();) {  // cut at newlines
    const std::size_t end = std::min(input.find('\n', begin), input.size());
    records.push_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  if (records.size() > 1000) records.resize(1000);
  const ArrayRecordOptions options{.group_size = 1 + data[7] % 9, .zstd_level = data[7] % 2 == 0 ? 1 : 0};
  const std::unique_ptr<RecordWriter> writer = create_array_record(*store, "made", options).value();
  for (const std::string& record : records) writer->add(record).value();
  writer->finish().value();
  if (read_everything(*store, "made") != records) std::abort();

  std::vector<std::byte> bytes = read_all(*store, "made").value();
  for (std::size_t i = 0; i < 3; ++i) {  // where, counted from the begin or the postscript, and what
    const std::size_t at = data[2 * i] % 2 == 0 ? 2 * data[2 * i] : bytes.size() - 65536 + data[2 * i];
    bytes[at] ^= std::byte{data[2 * i + 1]};
  }
  write_whole(*store, "bad", bytes).value();
  (void)read_everything(*store, "bad");
  return 0;
}
