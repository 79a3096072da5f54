#pragma once
// Records of many sizes, and what readers make of files of them.

#include <random>
#include <string>
#include <vector>

#include "execute/data/formats/record.h"

namespace systole {

// Deterministic; the first ones are empty, of one byte, and of all bytes; some are over 64 KiB, a Riegeli block.
inline std::vector<std::string> some_records(std::size_t count, std::size_t typical = 200) {
  std::mt19937 random(7);
  std::vector<std::string> records{"", "x", std::string(256, '\0')};
  for (std::size_t i = 0; i < 256; ++i) records[2][i] = static_cast<char>(i);
  while (records.size() < count) {
    const std::size_t size = records.size() % 97 == 0 ? 70'000 : random() % (2 * typical);
    std::string record(size, ' ');
    for (char& c : record) c = static_cast<char>(random() % 40 == 0 ? random() : 'a' + random() % 6);
    records.push_back(std::move(record));
  }
  records.resize(count);
  return records;
}

struct ReadThrough {
  std::vector<std::string> records, errors;
};

// All records in order; after an error it goes on where the reader does.
inline ReadThrough read_through(RecordReader& reader) {
  ReadThrough all;
  DataRecord record;
  while (true) {
    Result<bool> more = reader.next(record);
    if (!more.ok()) {
      all.errors.push_back(to_string(more.error()));
      if (!reader.goes_on()) return all;
      continue;
    }
    if (!*more) return all;
    all.records.emplace_back(record.bytes);
  }
}

// Names and bytes of the fields of the record that the reader gave last; of all records in order.
using Fields = std::vector<std::pair<std::string, std::string>>;
inline Fields fields_of(RecordReader& reader, const DataRecord& record) {
  Fields found;
  for (const std::string& name : reader.field_names())
    found.emplace_back(name, std::string(reader.field(record, name).value()));
  return found;
}
inline std::vector<Fields> all_fields(RecordReader& reader) {
  std::vector<Fields> found;
  for (DataRecord record; reader.next(record).value();) found.push_back(fields_of(reader, record));
  return found;
}

// The first error of opening and reading, as people see it; "": there is none.
inline std::string first_error(const Result<std::unique_ptr<RecordReader>>& reader) {
  if (!reader.ok()) return to_string(reader.error());
  while (true) {
    DataRecord record;
    const Result<bool> more = (*reader)->next(record);
    if (!more.ok()) return to_string(more.error());
    if (!*more) return "";
  }
}

// All that can be asked of at most 1,000 records, in order and then from the last one back by their index; `path` is a
// field of them too. That it ends, whatever the bytes, is what fuzz targets want.
inline void read_everything(const Result<std::unique_ptr<RecordReader>>& reader, std::string_view path) {
  constexpr std::int64_t kMost = 1000;
  if (!reader.ok()) return;
  DataRecord record;
  const auto look = [&] {
    for (const std::string& name : (*reader)->field_names()) (void)(*reader)->field(record, name);
    (void)(*reader)->field(record, path);
  };
  for (std::int64_t i = 0; i < kMost; ++i) {
    const Result<bool> more = (*reader)->next(record);
    if (more.ok() ? !*more : !(*reader)->goes_on()) break;
    if (more.ok()) look();
  }
  for (std::int64_t i = (*reader)->count() - 1, n = 0; i >= 0 && n < kMost; --i, ++n)
    if ((*reader)->read(i, record).ok()) look();
}

inline Status write_records(RecordWriter& writer, const std::vector<std::string>& records) {
  for (const std::string& record : records) TRY(writer.add(record));
  return writer.finish();
}

}  // namespace systole
