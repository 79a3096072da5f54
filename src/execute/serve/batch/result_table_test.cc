#include "execute/serve/batch/result_table.h"

#include <gtest/gtest.h>

#include "execute/data/formats/parquet/json_rows.h"
#include "execute/data/formats/parquet/reader.h"
#include "execute/serve/batch/carried_columns.h"
#include "execute/serve/batch/result_columns.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

std::string answer(int index, const std::string& body, const std::string& id = "null") {
  return fmt::format(R"({{"index":{},"custom_id":{},"response":{{"status_code":200,"body":{}}},"error":null}})", index,
                     id, body) +
         "\n";
}
std::string wrong(int index) {
  return fmt::format(R"({{"index":{},"custom_id":null,"response":null,"error":)", index) +
         R"({"message":"line 2: no","type":"invalid_request_error","param":null,"code":"missing_key"}})" + "\n";
}

class ResultTable : public testing::Test {
 protected:
  Status write(const std::string& table, BatchKind kind, const std::string& lines, const std::string& rows,
               std::vector<CarriedColumn> columns = {}, const std::string& file = "in.jsonl") {
    job_.kind = kind;
    job_.table = table;
    job_.columns = std::move(columns);
    store_->make_dirs("lines.journal").value();
    write_whole(*store_, "lines", lines).value();
    return write_result_table(*store_, "lines", job_, BatchInput::read(rows, file).value());
  }
  std::string text(const std::string& name) { return read_text(*store_, name).value(); }
  std::string rows(const std::string& name) { return parquet::json_rows(text(name), name).value().lines; }

  const std::unique_ptr<Store> store_ = make_memory_store();
  BatchJob job_;
};

constexpr const char* kTwoAnswers =
    R"({"choices":[{"index":0,"text":"a, \"b\"","finish_reason":"stop"},{"index":1,"text":"","finish_reason":"length"}],)"
    R"("usage":{"prompt_tokens":3,"completion_tokens":5}})";

TEST_F(ResultTable, has_each_answer_with_the_columns_of_its_row) {
  const std::string in = R"({"id": 7, "score": 1, "tags": ["x", "y"], "odd": "t", "deep": {"er": true}}
no json
{"id": null, "score": 0.5, "tags": [], "odd": 12}
)";
  const std::string lines = answer(0, kTwoAnswers, "\"r0\"") + wrong(1) +
                            answer(2, R"({"choices":[{"text":"c","finish_reason":"stop"}],"usage":{}})");
  const std::vector<CarriedColumn> columns{
      {"id", "id"}, {"score", "score"}, {"tags", "tags"}, {"odd", "odd"}, {"flag", "deep.er"}};
  write("t.parquet", BatchKind::completions, lines, in, columns).value();
  EXPECT_EQ(
      rows("t.parquet"),
      R"({"index":0,"item":0,"custom_id":"r0","status":"ok","answer":"a, \"b\"","finish_reason":"stop","prompt_tokens":3,)"
      R"("completion_tokens":5,"error_code":null,"error":null,"id":7,"score":1,"tags":["x","y"],"odd":"t","flag":true})"
      "\n"
      R"({"index":0,"item":1,"custom_id":"r0","status":"ok","answer":"","finish_reason":"length","prompt_tokens":null,)"
      R"("completion_tokens":null,"error_code":null,"error":null,"id":7,"score":1,"tags":["x","y"],"odd":"t","flag":true})"
      "\n"
      R"({"index":1,"item":0,"custom_id":null,"status":"error","answer":null,"finish_reason":null,"prompt_tokens":null,)"
      R"("completion_tokens":null,"error_code":"missing_key","error":"line 2: no","id":null,"score":null,"tags":null,"odd":null,"flag":null})"
      "\n"
      R"({"index":2,"item":0,"custom_id":null,"status":"ok","answer":"c","finish_reason":"stop","prompt_tokens":null,)"
      R"("completion_tokens":null,"error_code":null,"error":null,"id":null,"score":0.5,"tags":[],"odd":"12","flag":null})"
      "\n");
  write("t.csv", BatchKind::completions, lines, in, columns).value();
  EXPECT_EQ(
      text("t.csv"),
      "index,item,custom_id,status,answer,finish_reason,prompt_tokens,completion_tokens,error_code,error,id,score,"
      "tags,odd,flag\n"
      "0,0,r0,ok,\"a, \"\"b\"\"\",stop,3,5,,,7,1,\"[\"\"x\"\",\"\"y\"\"]\",t,true\n"
      "0,1,r0,ok,,length,,,,,7,1,\"[\"\"x\"\",\"\"y\"\"]\",t,true\n"
      "1,0,,error,,,,,missing_key,line 2: no,,,,,\n"
      "2,0,,ok,c,stop,,,,,,0.5,[],12,\n");
}

TEST_F(ResultTable, keeps_whole_numbers_that_no_double_holds) {
  const auto carried = [&](const std::string& other) {
    const std::string in = "{\"n\": 9007199254740993}\n{\"n\": " + other + "}\n";
    write("n.csv", BatchKind::score, wrong(0) + wrong(1), in, {{"n", "n"}}).value();
    EXPECT_NE(text("n.csv").find(",9007199254740993\n"), std::string::npos) << text("n.csv");
    return carried_columns(job_, BatchInput::read(in, "in.jsonl").value())[0].type;
  };
  EXPECT_EQ(carried("7"), ResultColumn::Type::integer);
  EXPECT_EQ(carried("0.5"), ResultColumn::Type::text);
}

TEST_F(ResultTable, has_vectors_as_lists_of_floats) {
  const std::string lines = answer(0, R"({"data":[{"embedding":[1,0.1]}],"usage":{"prompt_tokens":4}})") +
                            answer(1, R"({"data":[{"embedding":"AACAP83MzD0="}],"usage":{"prompt_tokens":2}})") +
                            wrong(2);
  write("t.parquet", BatchKind::embeddings, lines, "a\nb\nc\n", {{"text", "text"}}, "in.txt").value();
  const std::string all = rows("t.parquet");
  EXPECT_NE(all.find(R"("embedding":[1,0.1],"prompt_tokens":4,"error_code":null,"error":null,"text":"a"})"),
            std::string::npos)
      << all;
  EXPECT_NE(all.find(R"("embedding":[1,0.1],"prompt_tokens":2)"), std::string::npos) << all;
  EXPECT_NE(all.find(R"("status":"error","embedding":null)"), std::string::npos) << all;
  const parquet::Column vector = [&] {
    const auto store = make_memory_store();
    write_whole(*store, "t", text("t.parquet")).value();
    return parquet::File::open(*store, "t", "t").value().metadata().columns[4];
  }();
  EXPECT_TRUE(vector.list);
  EXPECT_EQ(vector.type, parquet::Physical::float32);
}

TEST_F(ResultTable, has_labels_and_scores) {
  write("t.csv", BatchKind::classify,
        answer(0, R"({"label":"b","probabilities":{"a":0.25,"b":0.75},"log_probabilities":{"a":-2.0,"b":-1.0}})"),
        "a\n", {}, "in.txt")
      .value();
  EXPECT_EQ(text("t.csv"),
            "index,item,custom_id,status,label,probability,log_probability,probabilities,error_code,error\n"
            "0,0,,ok,b,0.75,-1.0,\"{\"\"a\"\":0.25,\"\"b\"\":0.75}\",,\n");
  write("s.csv", BatchKind::score, "", "", {}, "in.txt").value();
  EXPECT_EQ(text("s.csv"), "index,item,custom_id,status,log_probability,tokens,bytes,bits_per_byte,error_code,error\n");
}

TEST_F(ResultTable, is_known_by_its_columns_and_not_made_of_other_lines) {
  write("t.parquet", BatchKind::score, wrong(0), "a\n", {}, "in.txt").value();
  check_result_table(*store_, "lines", job_, "t.parquet").value();
  job_.columns = {{"text", "text"}};
  EXPECT_EQ(to_string(check_result_table(*store_, "lines", job_, "r/t.parquet").error()),
            "error: 'r/t.parquet' is there, with other columns than the job says\n"
            "  hint: move it away, and type the same command again: it is made anew, and no row is computed");
  EXPECT_FALSE(is_recorded(*store_, "lines", job_).value());
  // Without its record, and with another file in its place.
  job_.columns.clear();
  EXPECT_TRUE(is_recorded(*store_, "lines", job_).value());
  const auto refused = [&] { return check_result_table(*store_, "lines", job_, "t.parquet").error().message; };
  const std::string record = text("lines.journal/table");
  store_->remove("lines.journal/table").value();
  EXPECT_EQ(refused(), "'t.parquet' is there, and not of this job");
  write("t.parquet", BatchKind::score, wrong(0), "a\n", {{"text", "text"}}, "in.txt").value();
  write_whole(*store_, "lines.journal/table", record).value();
  job_.columns.clear();
  EXPECT_EQ(refused(), "'t.parquet' is there, and not of this job");
  // The same name, of another field.
  write("v.parquet", BatchKind::score, wrong(0), "{\"label\":1,\"gold\":2}\n", {{"truth", "label"}}, "in.jsonl")
      .value();
  check_result_table(*store_, "lines", job_, "v.parquet").value();
  job_.columns[0].field = "gold";
  EXPECT_EQ(check_result_table(*store_, "lines", job_, "v.parquet").error().kind, ErrorKind::exists);
  EXPECT_EQ(write("u.parquet", BatchKind::score, wrong(0), "a\nb\n", {}, "in.txt").error().message,
            "'lines' has 1 line, and the input 2 rows");
  EXPECT_EQ(
      write("u.parquet", BatchKind::score, wrong(0) + wrong(1), "a\n", {{"text", "text"}}, "in.txt").error().message,
      "'lines' has more lines than the input rows");
  EXPECT_EQ(write("u.parquet", BatchKind::embeddings, answer(0, R"({"data":[{"embedding":"AACAP80="}]})"), "a\n", {},
                  "in.txt")
                .error()
                .message,
            "a vector of 5 bytes, which are no 32-bit floats");
  EXPECT_EQ(write("u.parquet", BatchKind::chat, answer(0, "{}"), "a\n", {}, "in.txt").error().message,
            "row 0 of 'lines' has no answer of kind chat");
  EXPECT_FALSE(store_->exists("u.parquet").value());
}

TEST_F(ResultTable, is_whole_or_absent_wherever_the_machine_dies) {
  job_.kind = BatchKind::score;
  job_.table = "t.parquet";
  const BatchInput input = BatchInput::read("a\nb\n", "in.txt").value();
  store_->make_dirs("lines.journal").value();
  const auto written = [&](FaultyStore& store) { return write_result_table(store, "lines", job_, input); };
  write_whole(*store_, "lines", wrong(0) + wrong(1)).value();
  FaultyStore well(*store_);
  written(well).value();
  const std::string whole = read_text(well, "t.parquet").value();
  ASSERT_GT(well.changing_calls(), 3);
  for (std::int64_t call = 1; call <= well.changing_calls(); ++call) {
    FaultyStore store(*store_);
    store.inject(call % 2 == 0 ? Fault::dies_after(call) : Fault::dies_before(call, 7));
    EXPECT_THROW((void)written(store).ok(), SimulatedCrash);
    const std::unique_ptr<Store> left = store.survivor(Unsynced::torn, static_cast<std::uint64_t>(call));
    if (left->exists("t.parquet").value()) { EXPECT_EQ(read_text(*left, "t.parquet").value(), whole) << call; }
  }
}

TEST_F(ResultTable, refuses_columns_that_no_row_has) {
  job_.columns = {{"lang", "lang"}};
  const auto checked = [&](const std::string& rows) {
    return check_carried(job_, BatchInput::read(rows, "in.jsonl").value());
  };
  checked("{\"langs\": 1}\n{\"lang\": null}\n").value();
  EXPECT_EQ(to_string(checked("{\"langs\": 1}\n").error()),
            "error: columns: the rows of 'in.jsonl' have no field 'lang'\n  hint: did you mean 'langs'?");
}

}  // namespace
}  // namespace systole
