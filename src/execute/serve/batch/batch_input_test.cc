#include "execute/serve/batch/batch_input.h"

#include <gtest/gtest.h>

#include "execute/data/formats/parquet/writer.h"

namespace systole {
namespace {

BatchInput input_of(const std::string& text, const std::string& file) { return BatchInput::read(text, file).value(); }

TEST(BatchInput, lines_of_json_know_their_place) {
  const BatchInput input = input_of("\xEF\xBB\xBF{\"a\": 1}\r\n\n  \n{\"a\": 2}\n[3]\n{\"a\": \n", "in.jsonl");
  ASSERT_EQ(input.rows(), 4U);
  EXPECT_EQ(input.fields(0).value().text_at("a"), "1");
  EXPECT_EQ(input.where(1), (Where{"in.jsonl", 4, 0}));
  EXPECT_EQ(input.fields(1).value().text_at("a"), "2");
  EXPECT_EQ(input.fields(2).error().where.line, 5) << "no object";
  EXPECT_EQ(input.fields(3).error().where.line, 6);
  EXPECT_EQ(input_of("", "in.jsonl").rows(), 0U);
}

TEST(BatchInput, of_text_each_line_is_a_row_and_the_prompt) {
  const BatchInput input = input_of("first\n\nthird", "in.txt");
  ASSERT_EQ(input.rows(), 3U);
  EXPECT_EQ(input.fields(1).value().text_at("text"), "");
  BatchJob job;
  ASSERT_TRUE(input.complete(job).ok());
  EXPECT_EQ(job.prompt->fill(input.fields(2).value()).value(), "third");
  const BatchInput latin = input_of("ok\ncaf\xe9\n", "in.txt");
  EXPECT_TRUE(latin.fields(0).ok());
  ASSERT_FALSE(latin.fields(1).ok()) << "a server refuses it, too";
  EXPECT_EQ(latin.fields(1).error().where, (Where{"in.txt", 2, 4}));
}

TEST(BatchInput, of_a_table_the_prompt_names_columns) {
  const BatchInput input = input_of("custom_id,question\na,\"why,\nthen?\"\nb,how?\n", "in.csv");
  ASSERT_EQ(input.rows(), 2U);
  EXPECT_EQ(input.where(1).line, 4);
  EXPECT_EQ(input.fields(0).value().text_at("question"), "why,\nthen?");
  BatchJob job;
  EXPECT_EQ(input.complete(job).error().key, "prompt");
  job.prompt = FieldTemplate::parse("Q {questions}").value();
  EXPECT_EQ(input.complete(job).error().hint, "did you mean 'question'?");
  job.prompt = FieldTemplate::of_field("question");
  EXPECT_TRUE(input.complete(job).ok());
  EXPECT_FALSE(BatchInput::read("a,b\n1\n", "in.csv").ok());
}

TEST(BatchInput, rows_of_parquet_have_its_columns) {
  const std::unique_ptr<Store> store = make_memory_store();
  const auto file = store->create("x").value();
  parquet::Column id, question;
  id.name = "custom_id";
  id.type = parquet::Physical::int64;
  question.name = "question";
  question.nullable = true;
  parquet::Writer writer = parquet::Writer::create(*file, {id, question}).value();
  const parquet::Value number = parquet::Value::of(std::int64_t{7}),
                       text = parquet::Value::of(std::string_view("why?"));
  const parquet::Cell both[] = {{false, {&number, 1}}, {false, {&text, 1}}}, half[] = {{false, {&number, 1}}, {}};
  writer.add(both).value();
  writer.add(half).value();
  writer.finish().value();
  const BatchInput input = input_of(read_text(*store, "x").value(), "in.parquet");
  ASSERT_EQ(input.rows(), 2U);
  EXPECT_EQ(input.fields(0).value().text_at("question"), "why?");
  EXPECT_TRUE(input.fields(1).value().find("question")->is_null());
  BatchJob job;
  EXPECT_EQ(input.complete(job).error().hint, "name a column, as prompt: custom_id");
  job.prompt = FieldTemplate::parse("Q {questions}").value();
  EXPECT_EQ(input.complete(job).error().hint, "did you mean 'question'?");
  EXPECT_EQ(BatchInput::read("PAR1", "in.parquet").error().where.file, "in.parquet");
}

TEST(BatchInput, is_known_by_its_name_and_its_hash) {
  EXPECT_EQ(BatchInput::read("", "in.xlsx").error().key, "input");
  EXPECT_EQ(input_of("a\n", "in.txt").hash(), input_of("a\n", "other.txt").hash());
  EXPECT_NE(input_of("a\n", "in.txt").hash(), input_of("b\n", "in.txt").hash());
  EXPECT_NE(input_of("a\n", "in.txt").hash(), input_of("a\n", "in.csv").hash()) << "its rows are others";
}

}  // namespace
}  // namespace systole
