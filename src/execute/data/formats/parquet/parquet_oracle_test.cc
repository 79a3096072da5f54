// Beside pyarrow, which tools/oracles/install puts into the build folder: what it writes is read to the same rows, over
// types, encodings, compressions and kinds of pages, and what is written here it reads to the same rows.

#include <gtest/gtest.h>

#include <filesystem>

#include "execute/data/formats/parquet/testing/made_up_rows.h"
#include "execute/data/testing/oracle.h"

namespace systole::parquet {
namespace {

const Oracle pyarrow("parquet");

std::string oracle(const std::string& verb, const std::string& folder) {
  const Captured said = pyarrow.run_script("parquet_oracle.py", {verb, folder});
  EXPECT_TRUE(said.exit.ok()) << said.out << said.err;
  return said.out;
}

void save_lines(Store& store, const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  ASSERT_TRUE(write_whole(store, path, text).ok());
}

TEST(ParquetOracle, FilesOfEitherAreReadByTheOther) {
  SKIP_WITHOUT(pyarrow);
  const std::string folder = pyarrow.folder() + "-files";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto store = open_posix_store(folder).value();
  oracle("write", folder);
  ASSERT_FALSE(HasFailure());
  int files = 0;
  for (const std::string& name : store->list("").value()) {
    if (!name.ends_with(".parquet")) continue;
    const File file = File::open(*store, name, name).value();
    const Result<std::vector<std::string>> lines = read_lines(file);
    ASSERT_TRUE(lines.ok()) << to_string(lines.error());
    EXPECT_EQ(lines->size(), 400u);
    save_lines(*store, name.substr(0, name.size() - 8) + ".jsonl", *lines);
    ++files;
  }
  EXPECT_EQ(files, 7 * 4 * 2);
  for (const Encoding encoding : kEncodings) {
    for (const Codec codec : kCodecs) {
      WriteOptions options{codec, encoding, 1 + files % 2};
      options.page_bytes = 1000;
      options.group_rows = 150;
      const std::string name = fmt::format("ours-{}-{}", name_of(encoding), name_of(codec));
      save_lines(*store, name + ".jsonl",
                 write_made_up(*store, name + ".parquet", every_column(), 400, options, static_cast<unsigned>(files)));
      ++files;
    }
  }
  EXPECT_EQ(oracle("compare", folder), fmt::format("{}\n", files));
}

TEST(ParquetOracle, WhatIsOutsideIsRefusedByName) {
  const std::string folder = pyarrow.folder() + "-files/refused";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "pyarrow's files are not there";
  const auto store = open_posix_store(folder).value();
  const File brotli = File::open(*store, "brotli.parquet", "brotli.parquet").value();
  EXPECT_EQ(to_string(read_lines(brotli).error()),
            "brotli.parquet: error: row group 0, column 'text': the compression BROTLI is not read\n"
            "  hint: uncompressed, Snappy, gzip and zstd are read: write the file with one of these");
  const File nested = File::open(*store, "nested.parquet", "nested.parquet").value();
  EXPECT_EQ(read_lines(nested).value(), (std::vector<std::string>{"{\"text\":\"a\"}", "{\"text\":\"b\"}"}));
  EXPECT_EQ(to_string(nested.column("who").error()),
            "nested.parquet: error: column 'who' is a struct, which is not read\n"
            "  hint: flat columns and lists of flat values are read: write this part as a column of its own");
  EXPECT_EQ(nested.column("tags").error().message, "column 'tags' is a list of lists or structs, which is not read");
}

}  // namespace
}  // namespace systole::parquet
