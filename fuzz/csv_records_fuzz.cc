// CSV of any size (execute/data/formats): whatever the bytes, reading ends in rows or an Error, and what was read comes
// back from what the writer makes of it.

#include <cstdint>
#include <string>
#include <vector>

#include "execute/data/formats/csv_records.h"
#include "round_trip.h"

namespace {

using namespace systole;
using Rows = std::vector<std::vector<std::string>>;

// The good rows, the names first.
Rows rows_of(Store& store, const std::string& path) {
  const auto reader = open_csv({&store, path, path}, {Bytes(1 << 20)});
  if (!reader.ok()) return {};
  Rows rows{(*reader)->field_names()};
  for (DataRecord record;;) {
    const Result<bool> more = (*reader)->next(record);
    if (more.ok() ? !*more : !(*reader)->goes_on()) return rows;
    if (!more.ok()) continue;
    rows.emplace_back();
    for (const std::string& name : rows[0]) rows.back().emplace_back((*reader)->field(record, name).value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<Store> store = make_memory_store();
  write_whole(*store, "a.csv", std::string_view(reinterpret_cast<const char*>(data), size)).value();
  const Rows rows = rows_of(*store, "a.csv");
  if (rows.size() < 2) return 0;
  const auto writer = create_csv(*store, "b.csv").value();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    std::vector<RecordField> fields;
    for (std::size_t c = 0; c < rows[0].size(); ++c) fields.push_back({rows[0][c], rows[i][c]});
    writer->add_fields(fields).value();
  }
  writer->finish().value();
  CHECK(rows_of(*store, "b.csv") == rows, "the rows do not come back");
  return 0;
}
