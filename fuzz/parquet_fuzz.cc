// Parquet (execute/data/formats/parquet): whatever the bytes, opening and reading ends in rows or an Error, within the
// limit of memory.
//
// Random bytes seldom are a footer, so the input is also taken as a description: a file is written from it, and a few
// of its bytes are changed.

#include <cstddef>
#include <cstdint>
#include <span>

#include "execute/data/formats/parquet/testing/made_up_rows.h"

namespace {

using namespace systole;
using namespace systole::parquet;

constexpr int kMostRows = 10'000;  // a file may claim any number of nulls

void read_everything(Store& store) {
  ReadLimits limits;
  limits.page.largest_page = 1 << 20;
  limits.largest_footer = 1 << 20;
  const Result<File> file = File::open(store, "x", "x", limits);
  if (!file.ok()) {
    CHECK(file.error().where.file == "x" && !file.error().message.empty(), "{}", to_string(file.error()));
    return;
  }
  const std::vector<std::size_t> columns = file->readable();
  Rows rows = Rows::of(*file, columns);
  for (int i = 0; i < kMostRows; ++i) {
    const Result<bool> more = rows.next();
    if (!more.ok()) CHECK(more.error().where.file == "x", "{}", to_string(more.error()));
    if (!more.ok() || !*more) return;
    for (std::size_t c = 0; c < columns.size(); ++c) (void)node_of(file->metadata().columns[columns[c]], rows.cell(c));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> input = std::as_bytes(std::span(data, size));
  const std::unique_ptr<Store> store = make_memory_store();
  write_whole(*store, "x", input).value();
  read_everything(*store);
  if (size < 12) return 0;

  WriteOptions options{kCodecs[data[0] % kCodecs.size()], kEncodings[data[1] % kEncodings.size()], 1 + data[2] % 2,
                       data[2] % 16 == 0};
  options.page_bytes = 200;
  const std::vector<Column> every = every_column();
  std::vector<Column> columns;
  for (std::size_t i = 0; i < 3; ++i) columns.push_back(every[(data[3] + i * 29) % every.size()]);
  write_made_up(*store, "x", columns, data[4] % 64, options, data[5]);
  std::vector<std::byte> bytes = read_all(*store, "x").value();
  for (std::size_t i = 6; i + 2 < size && i < 30; i += 3) {  // where, counted from either end, and what
    const std::size_t where = data[i] + std::size_t{data[i + 1]} * 256;
    const std::size_t at = where % 2 == 0 ? where / 2 : bytes.size() - 1 - where / 2;
    if (at < bytes.size()) bytes[at] ^= input[i + 2];
  }
  write_whole(*store, "x", bytes).value();
  read_everything(*store);
  return 0;
}
