// What the writer writes, the reader reads: every type, encoding and compression; a part of the columns; a part of the
// rows.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "execute/data/formats/parquet/records.h"
#include "execute/data/formats/parquet/testing/made_up_rows.h"

namespace systole::parquet {
namespace {

File open(Store& store, const std::string& path) { return File::open(store, path, path).value(); }

TEST(Parquet, EveryColumnInEveryEncodingReadsBack) {
  const std::vector<Column> columns = every_column();
  const auto store = make_memory_store();
  for (const Encoding encoding : kEncodings) {
    for (const int version : {1, 2}) {
      WriteOptions options{Codec::snappy, encoding, version};
      options.page_bytes = 1000;  // several pages, and several groups
      options.group_rows = 120;
      const std::vector<std::string> lines = write_made_up(*store, "x", columns, 300, options);
      const File file = open(*store, "x");
      EXPECT_EQ(file.metadata().groups.size(), 3u);
      const Result<std::vector<std::string>> read = read_lines(file);
      ASSERT_TRUE(read.ok()) << name_of(encoding) << to_string(read.error());
      EXPECT_EQ(*read, lines) << name_of(encoding) << " in pages of version " << version;
    }
  }
}

TEST(Parquet, EveryCompressionReadsBack) {
  const auto store = make_memory_store();
  for (const Codec codec : kCodecs) {
    for (const bool crc : {true, false}) {
      WriteOptions options{codec, Encoding::dictionary, 2, crc};
      options.page_bytes = 5000;
      const std::vector<std::string> lines = write_made_up(*store, "x", flat_columns(), 1000, options);
      EXPECT_EQ(read_lines(open(*store, "x")).value(), lines) << name_of(codec);
    }
  }
}

TEST(Parquet, ADictionaryThatGrowsTooLargeGoesOnPlain) {
  const auto store = make_memory_store();
  const auto file = store->create("x").value();
  Writer writer = Writer::create(*file, {column_of("text", Physical::bytes, Meaning::text)}).value();
  for (int i = 0; i < 3000; ++i) {
    const std::string text = fmt::format("{:01000}", i);
    const Value value = Value::of(std::string_view(text));
    const Cell cell{false, {&value, 1}};
    writer.add({&cell, 1}).value();
  }
  writer.finish().value();
  const auto records = open_records({store.get(), "x", "x"}).value();
  DataRecord record;
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(records->next(record).value());
    ASSERT_EQ(records->field(record, "text").value(), fmt::format("{:01000}", i));
  }
  EXPECT_FALSE(records->next(record).value());
}

// A dictionary page of that size would be refused when it is read.
TEST(Parquet, ALargeTextThatStartsARowGroupReadsBack) {
  const auto store = make_memory_store();
  const std::string large(33 << 20, 'x');
  const auto writer = create_records(*store, "x").value();
  const RecordField fields[] = {{"text", large}}, small[] = {{"text", "small"}};
  writer->add_fields(fields).value();
  writer->add_fields(small).value();
  writer->finish().value();
  const auto records = open_records({store.get(), "x", "x"}).value();
  DataRecord record;
  ASSERT_TRUE(records->next(record).value());
  EXPECT_TRUE(records->field(record, "text").value() == large);
  ASSERT_TRUE(records->next(record).value());
  EXPECT_EQ(records->field(record, "text").value(), "small");
}

TEST(Parquet, NoRowsAreAFile) {
  const auto store = make_memory_store();
  write_made_up(*store, "x", every_column(), 0, {});
  EXPECT_TRUE(read_lines(open(*store, "x")).value().empty());
}

// The bytes of other columns are not even looked at.
TEST(Parquet, OnlyTheColumnsAskedForAreRead) {
  const auto store = make_memory_store();
  const std::vector<Column> columns = flat_columns();
  write_made_up(*store, "x", columns, 500, {});
  const std::vector<std::string> texts = read_lines(open(*store, "x"), {"text"}).value();
  std::vector<std::byte> bytes = read_all(*store, "x").value();
  const Chunk other = open(*store, "x").metadata().groups[0].chunks[2];
  for (std::int64_t at = other.begin; at < other.end; ++at) bytes[static_cast<std::size_t>(at)] = std::byte{0xee};
  ASSERT_TRUE(write_whole(*store, "x", bytes).ok());
  EXPECT_EQ(read_lines(open(*store, "x"), {"text"}).value(), texts);
  EXPECT_FALSE(read_lines(open(*store, "x"), {"text", "large"}).ok());
}

// Rows 0 to 999 in groups of 100, with `n` rising and `name` falling.
void write_ordered(Store& store) {
  Column real = column_of("half", Physical::float64);
  real.nullable = true;
  const auto file = store.create("ordered").value();
  WriteOptions options;
  options.group_rows = 100;
  Writer writer =
      Writer::create(*file, {column_of("n", Physical::int32), column_of("name", Physical::bytes, Meaning::text), real},
                     options)
          .value();
  for (int i = 0; i < 1000; ++i) {
    const std::string name = fmt::format("{:03}", 999 - i);
    const Value values[] = {Value::of(std::int64_t{i}), Value::of(std::string_view(name)), Value::of(i / 2.0)};
    Cell row[] = {{false, {&values[0], 1}}, {false, {&values[1], 1}}, {false, {&values[2], 1}}};
    if (i % 10 == 0) row[2] = {};
    writer.add(row).value();
  }
  writer.finish().value();
}

TEST(Parquet, RowGroupsWithoutAMatchAreSkipped) {
  const auto store = make_memory_store();
  write_ordered(*store);
  const File file = open(*store, "ordered");
  using Op = FieldComparison::Op;
  const auto number = [](const char* field, Op op, double value, std::optional<std::int64_t> integer = {}) {
    return FieldComparison{field, op, {FieldValue::Kind::number, false, value, integer, {}}};
  };
  const auto text = [](const char* field, Op op, const char* value) {
    return FieldComparison{field, op, {FieldValue::Kind::text, false, 0, {}, value}};
  };
  struct Case {
    std::vector<FieldComparison> where;
    std::size_t rows, skipped;
  };
  const std::vector<Case> cases{
      {{number("n", Op::at_least, 250, 250)}, 750, 2},
      {{number("n", Op::less, 100)}, 100, 9},
      {{number("n", Op::equal, 555, 555)}, 1, 9},
      {{number("n", Op::more, 98.5), number("n", Op::less, 101)}, 2, 8},
      {{text("name", Op::equal, "007")}, 1, 9},
      {{text("name", Op::at_most, "099")}, 100, 9},
      {{number("half", Op::more, 499)}, 1, 9},
      {{number("half", Op::at_most, 5, 5)}, 9, 9},
      {{number("n", Op::equal, 5000)}, 0, 10},
      {{number("half", Op::equal, 5)}, 0, 9},  // row 10 has a null
  };
  for (const Case& one : cases) {
    std::vector<Condition> where;
    for (const FieldComparison& comparison : one.where) {
      const std::size_t index = file.column(comparison.field).value();
      where.push_back(condition_of(comparison, file.metadata().columns[index], index).value());
    }
    Rows rows = Rows::of(file, {0}, where);
    std::size_t count = 0;
    for (; rows.next().value(); ++count) EXPECT_EQ(rows.cell(0).values[0].integer, rows.row());
    EXPECT_EQ(count, one.rows) << one.where[0].field;
    EXPECT_EQ(rows.groups_skipped(), one.skipped) << one.where[0].field;
  }
}

TEST(Parquet, OnlyComparisonsOfWhatAColumnHoldsSkipRows) {
  const FieldComparison with_number{"x", FieldComparison::Op::equal, {FieldValue::Kind::number, false, 5, 5, {}}};
  const FieldComparison with_text{"x", FieldComparison::Op::equal, {FieldValue::Kind::text, false, 0, {}, "5"}};
  const auto is_used = [](const FieldComparison& comparison, const Column& column) {
    return condition_of(comparison, column, 0).has_value();
  };
  EXPECT_TRUE(is_used(with_number, column_of("x", Physical::int64)));
  EXPECT_FALSE(is_used(with_text, column_of("x", Physical::int64)));
  EXPECT_TRUE(is_used(with_text, column_of("x", Physical::bytes, Meaning::text)));
  EXPECT_FALSE(is_used(with_number, column_of("x", Physical::bytes, Meaning::text)));
  EXPECT_FALSE(is_used(with_number, column_of("x", Physical::int32, Meaning::date)));
  EXPECT_TRUE(is_used(with_number, column_of("x", Physical::float64)));
  EXPECT_FALSE(is_used(with_number, column_of("x", Physical::float32)));
  Column list = column_of("x", Physical::int64);
  list.list = true;
  EXPECT_FALSE(is_used(with_number, list));
}

// The filter behind it sees 0.1f as 0.1: no such row may be passed over before.
TEST(Parquet, NoRowOfFloatsIsPassedOverThatAFilterKeeps) {
  const auto store = make_memory_store();
  const auto file = store->create("x").value();
  Writer writer = Writer::create(*file, {column_of("score", Physical::float32)}).value();
  for (const float score : {0.1f, 0.9f}) {
    const Value value = Value::of(static_cast<double>(score));
    const Cell cell{false, {&value, 1}};
    writer.add({&cell, 1}).value();
  }
  writer.finish().value();
  using Op = FieldComparison::Op;
  for (const auto& [op, than, kept] :
       {std::tuple(Op::equal, 0.1, "0.1"), std::tuple(Op::at_most, 0.1, "0.1"), std::tuple(Op::at_least, 0.9, "0.9")}) {
    const auto records = open_records({store.get(), "x", "x"}).value();
    const FieldComparison where{"score", op, {FieldValue::Kind::number, false, than, {}, {}}};
    records->pass_over({&where, 1}).value();
    std::vector<std::string> seen;
    for (DataRecord record; records->next(record).value();)
      seen.push_back(to_json(records->value(record, "score").value()));
    EXPECT_NE(std::ranges::find(seen, kept), seen.end()) << than;
  }
}

TEST(Parquet, ValuesAreWrittenAsTheyMean) {
  const auto shown = [](Column column, Value value) { return to_json(node_of(column, value)); };
  EXPECT_EQ(shown(column_of("", Physical::int32, Meaning::date), Value::of(std::int64_t{-1})), "\"1969-12-31\"");
  Column column = column_of("", Physical::int64, Meaning::timestamp);
  EXPECT_EQ(shown(column, Value::of(std::int64_t{-1})), "\"1969-12-31T23:59:59.999999\"");
  column.utc = true;
  column.unit = TimeUnit::millis;
  EXPECT_EQ(shown(column, Value::of(std::int64_t{1'706'704'496'789})), "\"2024-01-31T12:34:56.789Z\"");
  column = column_of("", Physical::int32, Meaning::decimal);
  column.scale = 2;
  EXPECT_EQ(shown(column, Value::of(std::int64_t{-5})), "-0.05");
  column.type = Physical::fixed;
  EXPECT_EQ(shown(column, Value::of(std::string_view("\xff\x85", 2))), "-1.23");
  EXPECT_EQ(shown(column_of("", Physical::int64, Meaning::unsigned_int), Value::of(std::int64_t{-1})),
            "18446744073709551615");
  EXPECT_EQ(shown(column_of("", Physical::fixed, Meaning::float16, 2), Value::of(std::string_view("\x00\x3e", 2))),
            "1.5");
  EXPECT_EQ(shown(column_of("", Physical::bytes), Value::of(std::string_view("\xff"))), "{\"base64\":\"/w==\"}");
}

TEST(Parquet, ADecimalKeepsItsDigits) {
  const auto store = make_memory_store();
  Column column = column_of("price", Physical::fixed, Meaning::decimal, 16);
  column.scale = 2;
  column.precision = 31;
  const auto file = store->create("x").value();
  Writer::create(*file, {column}, {})->finish().value();
  const File read = File::open(*store, "x", "x").value();
  EXPECT_EQ(read.metadata().columns[0].scale, 2);
  EXPECT_EQ(read.metadata().columns[0].precision, 31);
  for (const int odd : {77, std::numeric_limits<int>::max()}) {
    column.precision = odd;
    const auto lying = store->create("y").value();
    Writer::create(*lying, {column}, {})->finish().value();
    EXPECT_EQ(File::open(*store, "y", "y").value().metadata().columns[0].outside,
              "a decimal with a precision outside 0 to 76");
  }
}

TEST(Parquet, RecordsAreRowsAndTheirFieldsColumns) {
  const auto store = make_memory_store();
  const auto writer = create_records(*store, "x").value();
  const RecordField first[] = {{"answer", "four"}, {"prompt", "2 + 2"}},
                    second[] = {{"prompt", "1"}, {"answer", "one"}};
  const RecordField half[] = {{"answer", "five"}};
  EXPECT_TRUE(writer->add_fields(first).ok());
  EXPECT_NE(to_string(writer->add_fields(half).error()).find("row 1, column 'prompt': a null"), std::string::npos);
  EXPECT_TRUE(writer->add_fields(second).ok());
  EXPECT_EQ(writer->add("bytes").error().kind, ErrorKind::unsupported);
  EXPECT_FALSE(store->exists("x").value());
  ASSERT_TRUE(writer->finish().ok());
  const auto records = open_records({store.get(), "x", "x"}, {Bytes(4)}).value();
  DataRecord record;
  ASSERT_TRUE(records->next(record).value());
  EXPECT_EQ(records->field(record, "answer").value(), "four");
  EXPECT_EQ(to_string(records->field(record, "prompt").error()),
            "x: error: record 0, byte 4: column 'prompt' is longer than 4 B here\n  hint: raise `largest_document`");
  EXPECT_EQ(to_string(records->field(record, "promt").error()),
            "x: error: the file has no column 'promt'\n  hint: did you mean 'prompt'?");
  ASSERT_TRUE(records->next(record).value());
  EXPECT_EQ(records->field(record, "prompt").value(), "1");
  EXPECT_FALSE(records->next(record).value());
}

// A column that is asked for late begins at the row where it is.
TEST(Parquet, AFieldAskedForLateIsThatRows) {
  const auto store = make_memory_store();
  write_ordered(*store);
  const auto records = open_records({store.get(), "ordered", "ordered"}).value();
  DataRecord record;
  for (int i = 0; i < 260; ++i) ASSERT_TRUE(records->next(record).value());
  for (int i = 259; i < 1000; ++i) {
    EXPECT_EQ(records->field(record, "name").value(), fmt::format("{:03}", 999 - i));
    EXPECT_EQ(records->next(record).value(), i < 999);
  }
}

}  // namespace
}  // namespace systole::parquet
