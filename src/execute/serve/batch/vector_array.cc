#include "execute/serve/batch/vector_array.h"

#include <bit>
#include <limits>
#include <vector>

#include "execute/serve/batch/batch_journal.h"
#include "ground/base/document.h"
#include "ground/store/unfinished_name.h"

namespace systole {
namespace {

static_assert(std::endian::native == std::endian::little, "the file has the bytes of this machine");

// Empty: the row has an error.
Result<std::vector<float>> vector_of(std::string_view line, const std::string& file, std::size_t row) {
  const Node node = TRY(parse_json(line, file));
  const Node* at = node.find("response");
  if (at == nullptr || at->is_null()) return std::vector<float>();
  at = at->find("body");
  if (at != nullptr) at = at->find("data");
  if (at != nullptr) at = at->items().empty() ? nullptr : at->items()[0].find("embedding");
  if (at == nullptr || !at->is_sequence() || at->items().empty())
    return error(ErrorKind::invalid, "row {} of '{}' has no vector as numbers", row, file)
        .hinted("kind: embeddings, without encoding_format");
  std::vector<float> vector;
  for (const Node& number : at->items()) vector.push_back(static_cast<float>(TRY(number.as_double())));
  return vector;
}

// Padded so that the numbers begin at a multiple of 64 bytes.
std::string header_of(std::size_t rows, std::size_t width) {
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, width);
  constexpr std::size_t kBefore = 10;
  while ((kBefore + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(text.size() & 0xff);
  head += static_cast<char>(text.size() >> 8);
  return head + text;
}

}  // namespace

Status write_vector_array(Store& store, const std::string& lines, const std::string& array) {
  const std::int64_t size = TRY(store.size(lines)).count();
  std::size_t rows = 0, width = 0;
  TRY(for_each_line(store, lines, size, [&](std::string_view line, std::int64_t) -> Status {
    if (width == 0) width = TRY(vector_of(line, lines, rows)).size();
    ++rows;
    return {};
  }));
  TRY(remove_unfinished(store, array));
  return write_whole(store, array, [&](WritableFile& file) -> Status {
    const std::string head = header_of(rows, width);
    TRY(file.append(std::as_bytes(std::span(head))));
    std::size_t row = 0;
    TRY(for_each_line(store, lines, size, [&](std::string_view line, std::int64_t) -> Status {
      std::vector<float> vector = TRY(vector_of(line, lines, row));
      if (vector.empty()) vector.assign(width, std::numeric_limits<float>::quiet_NaN());
      if (vector.size() != width)
        return error(ErrorKind::invalid, "row {} of '{}' has {} numbers, the first one {}", row, lines, vector.size(),
                     width)
            .hinted("one value of dimensions for all rows");
      ++row;
      return file.append(std::as_bytes(std::span(vector)));
    }));
    return {};
  });
}

}  // namespace systole
