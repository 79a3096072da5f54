// `systole batch` whose output is a table: Parquet or CSV, whole or not there, with columns of the input.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr int kRows = 12;

class BatchTable : public testing::Test {
 protected:
  BatchTable() {
    std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2", systole_.folder() / "model");
    std::string rows;
    for (int i = 0; i < kRows; ++i)
      rows += fmt::format("{{\"id\": {}, \"lang\": \"{}\", \"text\": \"{} beings\"}}\n", 100 + i, i % 2 ? "en" : "de",
                          std::string(i % 5 + 1, 'a'));
    systole_.write("rows.jsonl", rows + "no json\n");
  }
  void write_job(const std::string& out, const std::string& more = "columns: [id, lang]\n") const {
    systole_.write("job.yaml", fmt::format("model: model\ninput: rows.jsonl\noutput: {}\nkind: classify\nprompt: \"All "
                                           "{{text}} are\"\nlabels: [born free, equal]\n{}",
                                           out, more));
  }
  Captured run(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"batch", "job.yaml", "--backend", "reference"};
    words.insert(words.end(), more.begin(), more.end());
    return systole_.run(words);
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(systole_.folder() / name); }
  std::string text(const std::string& name) const { return text_of(systole_.folder() / name); }
  std::string cat(const std::string& name, const std::string& columns) const {
    const Captured shown = systole_.run({"data", "cat", name, "--columns", columns});
    EXPECT_EQ(shown.exit.code, 0) << shown.err;
    return shown.out;
  }
  std::string ids() const {
    std::string lines;
    for (int i = 0; i < kRows; ++i) lines += fmt::format("{{\"index\":{},\"status\":\"ok\",\"id\":{}}}\n", i, 100 + i);
    return lines + fmt::format("{{\"index\":{},\"status\":\"error\",\"id\":null}}\n", kRows);
  }

  SystoleRunner systole_;
};

TEST_F(BatchTable, is_whole_or_not_there_and_is_made_again_of_the_lines) {
  write_job("out.parquet");
  for (const std::uint64_t bytes : {100U, 1'733U, 2'600U}) {
    Command command;
    command.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole", "batch", "job.yaml", "--backend", "reference"};
    command.cwd = systole_.folder().string();
    command.env = {{"NO_COLOR", "1"}, {"HOME", command.cwd}};
    command.limits = {{RLIMIT_FSIZE, bytes}, {RLIMIT_CORE, 0}};
    EXPECT_EQ(run_captured(command).value().exit.signal, SIGXFSZ);
    EXPECT_FALSE(exists("out.parquet"));
  }
  const Captured ended = run({"--json"});
  ASSERT_EQ(ended.exit.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("13 rows, 1 of them with an error, "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(" in out.parquet: "), std::string::npos) << ended.err;
  EXPECT_GE(parse_json(ended.out, "stdout").value().find("rows_before")->as_int().value(), 1);
  EXPECT_EQ(cat("out.parquet", "index,status,id"), ids());
  EXPECT_NE(cat("out.parquet", "error_code,error").find("line 13: "), std::string::npos);

  // Gone, as if the process had been killed before it was made.
  const std::string before = text("out.parquet");
  std::filesystem::remove(systole_.folder() / "out.parquet");
  const Captured again = run();
  EXPECT_EQ(again.exit.code, 0) << again.err;
  EXPECT_NE(again.err.find("finished before"), std::string::npos) << again.err;
  EXPECT_EQ(text("out.parquet"), before);

  write_job("out.parquet", "columns: [id]\n");
  const Captured other = run();
  EXPECT_EQ(other.exit.code, 1) << other.err;
  EXPECT_NE(other.err.find("'out.parquet' is there, with other columns than the job says\n  hint: move it away, "),
            std::string::npos)
      << other.err;
}

TEST_F(BatchTable, of_shards_is_that_of_one_process) {
  write_job("whole.csv");
  ASSERT_EQ(run().exit.code, 0);
  EXPECT_TRUE(text("whole.csv").starts_with("index,item,custom_id,status,label,")) << text("whole.csv");
  write_job("out.csv");
  for (const char* shard : {"0/2", "1/2"}) ASSERT_EQ(run({"--shard", shard}).exit.code, 0);
  EXPECT_FALSE(exists("out.csv"));
  const Captured joined = run({"--join"});
  ASSERT_EQ(joined.exit.code, 0) << joined.err;
  EXPECT_EQ(text("out.csv"), text("whole.csv"));
  write_job("shared.csv", "columns: [id, lang]\nshards: 3\n");
  const Captured shared = run();
  ASSERT_EQ(shared.exit.code, 0) << shared.err;
  EXPECT_NE(shared.err.find(" in shared.csv; "), std::string::npos) << shared.err;
  EXPECT_EQ(text("shared.csv"), text("whole.csv"));
}

TEST_F(BatchTable, computes_nothing_where_only_what_is_made_of_the_lines_failed) {
  systole_.write("job.yaml",
                 "model: model\ninput: rows.jsonl\noutput: out.jsonl\narray: vectors.npy\nkind: "
                 "embeddings\nprompt: text\npooling: mean\n");
  systole_.write("vectors.npy/mine", "");
  const Captured refused = run();
  EXPECT_EQ(refused.exit.code, 1) << refused.err;
  EXPECT_TRUE(exists("out.jsonl"));
  std::filesystem::remove_all(systole_.folder() / "vectors.npy");
  const Captured ended = run();
  EXPECT_EQ(ended.exit.code, 0) << ended.err;
  EXPECT_EQ(ended.err.find(" to compute, with "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("13 rows, 1 of them with an error, 13 of them finished before"), std::string::npos)
      << ended.err;
  EXPECT_TRUE(exists("vectors.npy"));
}

TEST_F(BatchTable, replaces_no_other_file_and_names_a_column_that_is_none) {
  systole_.write("out.csv", "mine\n");
  write_job("out.csv");
  for (const auto& more : {std::vector<std::string>{}, {"--dry-run"}}) {
    const Captured refused = run(more);
    EXPECT_EQ(refused.exit.code, 1) << refused.err;
    EXPECT_NE(refused.err.find("'out.csv' is there, and not of this job\n  hint: move it away"), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(text("out.csv"), "mine\n");
  write_job("new.csv", "columns: [id, lamg]\n");
  const Captured none = run();
  EXPECT_EQ(none.exit.code, 2) << none.err;
  EXPECT_NE(none.err.find("columns: the rows of 'rows.jsonl' have no field 'lamg'\n  hint: did you mean 'lang'?"),
            std::string::npos)
      << none.err;
}

TEST_F(BatchTable, is_read_by_pyarrow_with_the_same_rows_and_vectors) {
  const std::string folder = SYSTOLE_BINARY_DIR "/oracles/parquet";
  const auto python = [&](std::vector<std::string> words) {
    Command command;
    command.argv = std::move(words);
    command.cwd = systole_.folder().string();
    command.env = {{"PYTHONPATH", folder}};
    return run_captured(command, {.timeout = Seconds(500.0)}).value();
  };
  const Captured installed = python({SYSTOLE_SOURCE_DIR "/tools/oracles/install", "parquet", folder});
  if (installed.exit.code == 3) GTEST_SKIP() << installed.err;
  ASSERT_TRUE(installed.exit.ok()) << installed.err;
  systole_.write("job.yaml",
                 "model: model\ninput: rows.jsonl\noutput: out.parquet\ncolumns: [id, lang]\nkind: embeddings\n"
                 "prompt: text\npooling: mean\n");
  ASSERT_EQ(run().exit.code, 0);
  const Captured read = python({"python3", "-c", R"(
import json, struct, pyarrow.parquet as q
table = q.read_table("out.parquet", page_checksum_verification=True)
print(*(f"{f.name}:{f.type}" for f in table.schema))
near = lambda v: [struct.pack("f", x) for x in v]
lines, rows = [json.loads(line) for line in open("out.parquet.jsonl")], table.to_pylist()
print(len(rows), [row["id"] for row in rows] == [*range(100, 112), None])
for line, row in zip(lines, rows):
    data = (line["response"] or {"body": {"data": [{"embedding": None}]}})["body"]["data"][0]["embedding"]
    assert row["index"] == line["index"] and (data is None) == (row["embedding"] is None)
    assert data is None or near(data) == near(row["embedding"]), row
)"});
  ASSERT_TRUE(read.exit.ok()) << read.err;
  EXPECT_EQ(read.out,
            "index:int64 item:int64 custom_id:string status:string embedding:list<element: float not null> "
            "prompt_tokens:int64 error_code:string error:string id:int64 lang:string\n13 True\n");
}

}  // namespace
}  // namespace systole::cli
