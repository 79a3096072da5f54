// TFRecord and tf.train.Example (execute/data/formats): whatever the bytes, reading ends in records or an Error.
//
// A checksum stops nearly every random input early, so the input is also taken as the data of records with sound
// checksums: what is read is what was written, and the Examples in them are parsed.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "execute/data/formats/example.h"
#include "execute/data/formats/tfrecord.h"

namespace {

using namespace systole;

std::vector<std::string> read_everything(Store& store, const std::string& path) {
  std::vector<std::string> records;
  auto reader = open_tfrecord({&store, path, path}, {Bytes(1 << 20)});
  if (!reader.ok()) return records;
  DataRecord record;
  while (true) {
    const Result<bool> more = (*reader)->next(record);
    if (!more.ok() && !(*reader)->goes_on()) return records;
    if (!more.ok()) continue;
    if (!*more) return records;
    (void)(*reader)->field(record, "text");
    records.emplace_back(record.bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::unique_ptr<Store> store = make_memory_store();
  write_whole(*store, "raw", input).value();
  (void)read_everything(*store, "raw");
  const Result<std::vector<Feature>> features = parse_example(input);
  if (features.ok()) (void)bytes_of_example(input, features->empty() ? "" : features->front().name);

  std::vector<std::string> records;
  for (std::size_t begin = 0; begin <= input.size();) {  // cut at newlines
    const std::size_t end = std::min(input.find('\n', begin), input.size());
    records.push_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto compression = static_cast<TfrecordCompression>(size % 3);
  const std::unique_ptr<RecordWriter> writer = create_tfrecord(*store, "made", compression).value();
  for (const std::string& record : records) writer->add(record).value();
  writer->finish().value();
  if (read_everything(*store, "made") != records) std::abort();
  return 0;
}
