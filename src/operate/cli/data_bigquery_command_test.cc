// `systole data bigquery`: a table to a bucket, and the results of a batch to a table.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(DataBigQuery, prints_a_script_bodies_or_a_folder_of_both) {
  const SystoleRunner systole;
  systole.write("q.sql", "SELECT id, body FROM shop.raw WHERE lang = 'de'\n");
  const std::vector<std::string> extract{"data",       "bigquery", "p1.shop.reviews", "gs://b/reviews/*.parquet",
                                         "--query",    "q.sql",    "--write",         "truncate",
                                         "--location", "EU"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), extract.begin(), extract.end());
    return systole.run(more);
  };
  const Captured script = with({});
  ASSERT_EQ(script.exit.code, 0) << script.err;
  EXPECT_TRUE(has(script.out, "#!/bin/sh\nset -eu\nbq --project_id=p1 --location=EU query ")) << script.out;
  EXPECT_TRUE(has(script.out, "lang = 'de'\nEND\nbq --project_id=p1 --location=EU extract ")) << script.out;
  const Node told = parse_json(with({"--json"}).out, "stdout").value();
  ASSERT_EQ(told.find("jobs")->items().size(), 2U);
  EXPECT_EQ(told.find("jobs")->items()[1].text_at("url"),
            "https://bigquery.googleapis.com/bigquery/v2/projects/p1/jobs");
  const Captured folder = with({"--out", "jobs"});
  ASSERT_EQ(folder.exit.code, 0) << folder.err;
  EXPECT_EQ(text_of(systole.folder() / "jobs/bigquery.sh"), script.out);
  const Node body = parse_json(text_of(systole.folder() / "jobs/extract.json"), "extract.json").value();
  EXPECT_EQ(body, *told.find("jobs")->items()[1].find("body"));
  const Captured syntax = systole.shell("sh -n jobs/bigquery.sh");
  EXPECT_EQ(syntax.exit.code, 0) << syntax.err;
}

TEST(DataBigQuery, loads_a_file_of_this_machine_by_its_columns) {
  const SystoleRunner systole;
  systole.write("a.txt", "alpha\nbeta\n");
  ASSERT_EQ(systole.run({"data", "pack", "a.parquet", "a.txt"}).exit.code, 0);
  const Captured load = systole.run(
      {"data", "bigquery", "gs://b/a.parquet", "shop.answers", "--project", "p1", "--schema", "a.parquet", "--json"});
  ASSERT_EQ(load.exit.code, 0) << load.err;
  const Node body = *parse_json(load.out, "stdout").value().find("jobs")->items()[0].find("body");
  const Node& made = *body.find("configuration")->find("load");
  EXPECT_EQ(made.text_at("writeDisposition"), "WRITE_APPEND");
  EXPECT_EQ(to_json(*made.find("schema")), R"({"fields":[{"name":"text","type":"STRING","mode":"REQUIRED"}]})");
}

TEST(DataBigQuery, says_what_it_cannot_do) {
  const SystoleRunner systole;
  const auto refused = [&](std::vector<std::string> words, const std::string& message) {
    words.insert(words.begin(), {"data", "bigquery"});
    const Captured said = systole.run(words);
    EXPECT_EQ(said.exit.code, 2) << said.err;
    EXPECT_TRUE(has(said.err, message)) << said.err;
    EXPECT_TRUE(has(said.err, "hint: ")) << said.err;
  };
  refused({"shop.a", "shop.b"}, "one of 'shop.a' and 'shop.b' is a table");
  refused({"shop.a", "gs://b/x.csv"}, "does not say of which project");
  refused({"p.shop.a", "gs://b/x.csv", "--write", "append"}, "--write: without --query");
  refused({"gs://b/x.csv", "p.shop.a", "--query", "SELECT 1"}, "--query: files are loaded as they are");
  refused({"gs://b/x.csv", "p.shop.a", "--write", "empty"}, "does not ask whether a table is empty");
}

}  // namespace
}  // namespace systole::cli
