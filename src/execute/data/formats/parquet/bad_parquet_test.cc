// Files that are truncated, damaged, or lie: an error with the place, and no more memory than what their bytes bear.

#include <gtest/gtest.h>

#include "execute/data/formats/bad_records.h"
#include "execute/data/formats/parquet/compression.h"
#include "execute/data/formats/parquet/records.h"
#include "execute/data/formats/parquet/schema_tree.h"
#include "execute/data/formats/parquet/testing/made_up_rows.h"

namespace systole::parquet {
namespace {

using Type = ThriftType;

Result<std::vector<std::string>> read_file(Store& store, ReadLimits limits = {}) {
  const File file = TRY(File::open(store, "x", "x.parquet", limits));
  return read_lines(file);
}

Result<std::vector<std::string>> read_bytes(std::span<const std::byte> bytes) {
  const auto store = make_memory_store();
  EXPECT_TRUE(write_whole(*store, "x", bytes).ok());
  return read_file(*store);
}

TEST(BadParquet, EveryTruncationIsRefused) {
  const auto store = make_memory_store();
  write_made_up(*store, "x", flat_columns(), 20, {});
  const std::vector<std::byte> bytes = read_all(*store, "x").value();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Result<std::vector<std::string>> read = read_bytes(std::span(bytes).first(size));
    ASSERT_FALSE(read.ok()) << size;
    EXPECT_EQ(read.error().kind, ErrorKind::corrupt) << size << to_string(read.error());
    EXPECT_EQ(read.error().where.file, "x.parquet");
  }
}

// Pages have CRCs: no changed byte of one passes. Their headers have none, and no more the footer: there a change may
// show as other rows, but only as rows or an error.
TEST(BadParquet, EveryChangedByteOfAPageIsFound) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < every_column().size(); i += 7) columns.push_back(every_column()[i]);
  for (const int version : {1, 2}) {
    const auto store = make_memory_store();
    const std::vector<std::string> lines =
        write_made_up(*store, "x", columns, 12, {Codec::snappy, Encoding::plain, version});
    std::vector<std::byte> bytes = read_all(*store, "x").value();
    const File file = File::open(*store, "x", "x").value();
    const std::int64_t footer = file.metadata().groups[0].chunks.back().end;
    std::size_t found = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      bytes[at] ^= std::byte{0x55};
      const Result<std::vector<std::string>> read = read_bytes(bytes);
      found += !read.ok();
      if (!read.ok() && at >= 4 && static_cast<std::int64_t>(at) < footer) {
        EXPECT_NE(read.error().message.find("row group 0, column '"), std::string::npos) << to_string(read.error());
        EXPECT_NE(read.error().message.find("byte "), std::string::npos) << to_string(read.error());
      }
      // What a header says of its page's kind of statistics or order is not needed for its values.
      if (read.ok() && static_cast<std::int64_t>(at) < footer) { EXPECT_EQ(*read, lines) << at; }
      bytes[at] ^= std::byte{0x55};
    }
    EXPECT_GT(found, static_cast<std::size_t>(footer) / 2);
  }
}

// With `on_bad_record: skip` too: rows behind a bad page would have the texts of others.
TEST(BadParquet, NoRowIsReadBehindABadPage) {
  const auto store = make_memory_store();
  const auto file = store->create("x").value();
  WriteOptions options{Codec::none, Encoding::plain};
  options.page_bytes = 100;
  Writer writer = Writer::create(*file, {column_of("text", Physical::bytes, Meaning::text)}, options).value();
  for (int i = 0; i < 100; ++i) {
    const std::string text = fmt::format("text {:03}", i);
    const Value value = Value::of(std::string_view(text));
    const Cell cell{false, {&value, 1}};
    writer.add({&cell, 1}).value();
  }
  writer.finish().value();
  std::string bytes = read_text(*store, "x").value();
  bytes[bytes.find("text 001")] ^= 1;
  write_whole(*store, "x", bytes).value();
  const auto records = open_records({store.get(), "x", "x"}).value();
  BadRecordTally tally;
  DataRecord record;
  std::string text;
  const auto use = [&](const DataRecord& row) -> Status {
    text = std::string(TRY(records->field(row, "text")));
    return Done{};
  };
  for (int i = 0; i < 2; ++i) {
    const Result<bool> more = next_good(*records, record, {OnBadRecord::skip, 1000}, tally, use);
    ASSERT_FALSE(more.ok()) << "row " << record.index << " is read as " << text;
    EXPECT_EQ(more.error().kind, ErrorKind::corrupt);
  }
}

// A file of one column made by hand: what its page header and its footer claim.
struct Claims {
  Physical type = Physical::bytes;
  Codec codec = Codec::none;
  std::int64_t rows = 1, values = 1, page_values = 1, expanded = -1, stored = -1;
  Encoding encoding = Encoding::plain;
  bool nullable = false;
};

std::string file_of(const Claims& claims, std::string body) {
  ThriftWriter page;
  page.integer(1, 0);
  page.integer(2, claims.expanded < 0 ? static_cast<std::int64_t>(body.size()) : claims.expanded);
  page.integer(3, claims.stored < 0 ? static_cast<std::int64_t>(body.size()) : claims.stored);
  page.begin(5);
  page.integer(1, claims.page_values);
  page.integer(2, static_cast<int>(claims.encoding));
  page.integer(3, 3);
  page.integer(4, 3);
  page.end();
  page.end();
  const std::string pages = page.take() + body;
  Column column = column_of("text", claims.type);
  column.nullable = claims.nullable;
  ThriftWriter footer;
  footer.integer(1, 2);
  const std::vector<SchemaElement> schema = schema_of({column});
  footer.begin_list(2, Type::structure, schema.size());
  for (const SchemaElement& element : schema) write_schema_element(footer, element);
  footer.integer(3, claims.rows, Type::i64);
  footer.begin_list(4, Type::structure, 1);
  footer.begin_item();
  footer.begin_list(1, Type::structure, 1);
  footer.begin_item();
  footer.begin(3);
  footer.integer(1, static_cast<int>(claims.type));
  footer.integer(4, static_cast<int>(claims.codec));
  footer.integer(5, claims.values, Type::i64);
  footer.integer(7, static_cast<std::int64_t>(pages.size()), Type::i64);
  footer.integer(9, 4, Type::i64);
  footer.end();
  footer.end();
  footer.integer(3, claims.rows, Type::i64);
  footer.end();
  footer.end();
  const std::string end = footer.take();
  const auto size = static_cast<std::uint32_t>(end.size());
  return "PAR1" + pages + end + std::string(reinterpret_cast<const char*>(&size), 4) + "PAR1";
}

std::string refusal(const Claims& claims, const std::string& body) {
  const std::string file = file_of(claims, body);
  const Result<std::vector<std::string>> read = read_bytes(std::as_bytes(std::span(file)));
  return read.ok() ? "it was read" : to_string(read.error());
}

TEST(BadParquet, ClaimsThatTheBytesDoNotBear) {
  const std::string one("\x03\0\0\0abc", 7);
  EXPECT_EQ(refusal({}, one), "it was read");
  const auto says = [&](const Claims& claims, const std::string& body, const char* what) {
    const std::string said = refusal(claims, body);
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  Claims claims;
  claims.expanded = INT32_MAX;
  claims.codec = Codec::zstd;
  says(claims, one,
       "row group 0, column 'text', byte 4: a page of 2,147,483,647 bytes, and at most 268,435,456 are read");
  claims.expanded = 100'000;
  claims.codec = Codec::snappy;
  says(claims, one, "7 bytes of SNAPPY cannot become 100,000");
  says({.page_values = 1'000'000'000}, one, "the column has more values than its row group says");
  says({.rows = 1'000'000'000, .values = 1'000'000'000, .page_values = 1'000'000'000}, one,
       "fewer values than it says");
  says({.rows = 2}, one, "it has 1 value for 2 rows");
  says({.stored = 100}, one, "the page has 100 bytes, and 7 are left of the column");
  says({.page_values = -5}, one, "does not say how many values");
  says({},
       std::string("\xff\xff\xff\x7f"
                   "abc",
                   7),
       "a value is longer than the bytes that are left");
  says({.encoding = Encoding::dictionary}, std::string("\x01\x02\x00", 3), "a value is beyond the dictionary's end");
  says({.encoding = Encoding::bit_packed}, one, "BYTE_ARRAY in the encoding BIT_PACKED is not read");
  says({.codec = Codec::brotli}, one, "the compression BROTLI is not read");
  // A block of 65,536 values of no bits each, and a count of 2^40.
  says({.type = Physical::int64, .encoding = Encoding::delta_binary_packed},
       std::string("\x80\x80\x04\x04\x80\x80\x80\x80\x80\x20\x00", 11), "it was read");
  says({.encoding = Encoding::delta_length_byte_array}, std::string("\x80\x01\x04\x80\x80\x80\x80\x80\x20\x00", 10),
       "it has more than 16,777,216 lengths");
  // 65,536 lengths of a page of one value.
  for (const Encoding encoding : {Encoding::delta_length_byte_array, Encoding::delta_byte_array})
    says({.encoding = encoding}, std::string("\x80\x01\x04\x80\x80\x04\x00", 7), "it has more lengths than values");
}

// Two thousand million nulls in a few bytes are read with the memory of a batch.
TEST(BadParquet, ManyNullsTakeNoMemory) {
  const std::string run("\x06\0\0\0\xfe\xff\xff\xff\x0f\x00", 10);
  const auto store = make_memory_store();
  const std::string file =
      file_of({.rows = INT32_MAX, .values = INT32_MAX, .page_values = INT32_MAX, .nullable = true}, run);
  ASSERT_TRUE(write_whole(*store, "x", file).ok());
  const File opened = File::open(*store, "x", "x").value();
  Rows rows = Rows::of(opened, {0});
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(rows.next().value());
    ASSERT_TRUE(rows.cell(0).null);
  }
}

// One byte more each: a page of 32 KiB would become half a gigabyte.
TEST(BadParquet, PrefixesThatGrowStopAtTheLimit) {
  const auto store = make_memory_store();
  const auto file = store->create("x").value();
  Writer writer =
      Writer::create(*file, {column_of("text", Physical::bytes)}, {Codec::none, Encoding::delta_byte_array}).value();
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += std::string(100, 'a');
    const Value value = Value::of(std::string_view(text));
    const Cell cell{false, {&value, 1}};
    writer.add({&cell, 1}).value();
  }
  writer.finish().value();
  EXPECT_TRUE(read_file(*store).ok());
  ReadLimits limits;
  limits.page.largest_page = 1 << 20;
  const Result<std::vector<std::string>> read = read_file(*store, limits);
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("grow beyond the limit of a page"), std::string::npos) << read.error().message;
}

// Columns that are not read do not keep the others from it, and say what they are.
TEST(BadParquet, ColumnsOutsideTheSubsetSayWhatTheyAre) {
  std::vector<SchemaElement> schema = schema_of({column_of("id", Physical::int64)});
  schema[0].children = 3;
  SchemaElement group, leaf = schema[1];
  group.leaf.name = "author";
  group.children = 2;
  schema.push_back(group);
  leaf.leaf.name = "name";
  schema.push_back(leaf);
  leaf.leaf.name = "age";
  schema.push_back(leaf);
  leaf.leaf.name = "old";
  leaf.leaf.type = Physical::int96;
  schema.push_back(leaf);
  const std::vector<Column> columns = columns_of(schema).value();
  ASSERT_EQ(columns.size(), 4u);
  EXPECT_EQ(columns[0].outside, "");
  EXPECT_EQ(columns[1].name + ": " + columns[1].outside, "author.name: a struct");
  EXPECT_EQ(columns[2].name + ": " + columns[2].outside, "author.age: a struct");
  EXPECT_EQ(columns[3].outside, "an INT96");
  schema[2].children = 1000;
  EXPECT_FALSE(columns_of(schema).ok());
}

// 5,000 leaves below a long name would take 20 MB of names, and a footer of 64 MiB thousands of times that.
TEST(BadParquet, NamesOfNestedPartsDoNotMultiply) {
  std::vector<SchemaElement> schema = schema_of({column_of("id", Physical::int64)});
  SchemaElement leaf = schema[1];
  leaf.leaf.name = "x";
  schema[1].has_type = false;
  schema[1].leaf.name = std::string(4000, 'n');
  const auto with = [&](std::size_t leaves) {
    schema.resize(2);
    schema[1].children = static_cast<std::int64_t>(leaves);
    schema.insert(schema.end(), leaves, leaf);
    return columns_of(schema);
  };
  EXPECT_TRUE(with(4000).ok());
  EXPECT_NE(to_string(with(5000).error()).find("the names of its parts are too long together"), std::string::npos);
}

TEST(BadParquet, ASchemaOfMillionsOfPartsIsRefused) {
  ThriftWriter footer;
  footer.integer(1, 2);
  const std::vector<SchemaElement> schema = schema_of({column_of("x", Physical::int64)});
  footer.begin_list(2, Type::structure, (1 << 18) + 1);
  for (int i = 0; i <= 1 << 18; ++i) write_schema_element(footer, schema[1]);
  footer.integer(3, 0, Type::i64);
  footer.begin_list(4, Type::structure, 0);
  footer.end();
  const std::string bytes = footer.take();
  const Result<Metadata> read = parse_metadata(std::as_bytes(std::span(bytes)), 4, "x");
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("its schema has more than 262,144 parts"), std::string::npos)
      << read.error().message;
}

}  // namespace
}  // namespace systole::parquet
