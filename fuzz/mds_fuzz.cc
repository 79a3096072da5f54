// MDS (execute/data/formats): whatever is in a shard or its index.json, reading ends in samples or an Error. The input's
// first byte says which of the two it is; the other is a good one.

#include <cstdint>
#include <string>

#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/mds.h"
#include "execute/data/formats/testing/some_records.h"

namespace {

using namespace systole;

void read_all_of(Store& store, const std::string& path) {
  read_everything(open_mds({&store, path, path}, {Bytes(1 << 20)}), "text[0].a");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::unique_ptr<Store> store = make_memory_store();
  const auto writer = create_mds(*store, "d", {.columns = {{"text", "json"}, {"n", "int"}}}).value();
  for (const char* text : {"[{\"a\": \"b\"}]", "2", ""}) {
    const RecordField fields[] = {{"text", text}, {"n", "7"}};
    writer->add_fields(fields).value();
  }
  writer->finish().value();
  if (data[0] % 2 == 0) {
    write_whole(*store, "d/index.json", input).value();
  } else {
    write_whole(*store, "d/shard.00000.mds", input).value();
    write_whole(*store, "d/a.mds.zstd", data[0] % 4 == 1 ? input : zstd_bytes(input, 1)).value();
    read_all_of(*store, "d/shard.00000.mds");
    read_all_of(*store, "d/a.mds.zstd");
  }
  read_all_of(*store, "d");
  return 0;
}
