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

inline Status write_records(RecordWriter& writer, const std::vector<std::string>& records) {
  for (const std::string& record : records) TRY(writer.add(record));
  return writer.finish();
}

}  // namespace systole
