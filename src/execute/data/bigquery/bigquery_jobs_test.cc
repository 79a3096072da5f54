#include "execute/data/bigquery/bigquery_jobs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ground/base/testing/places.h"
#include "ground/base/text_file.h"

namespace systole {
namespace {

// What BigQuery's discovery document says of a job (golden/jobs.json).
class Discovery {
 public:
  // What is wrong with a value of this type; "" if nothing is.
  std::string problem(const std::string& type, const Node& value, const std::string& at) const {
    if (type.starts_with("[]")) {
      if (!value.is_sequence()) return at + ": no list";
      for (const Node& item : value.items())
        if (std::string wrong = problem(type.substr(2), item, at + "[]"); !wrong.empty()) return wrong;
      return "";
    }
    if (type.starts_with("#")) return of_schema(type.substr(1), value, at);
    const NodeKind kind = type == "boolean"   ? NodeKind::boolean
                          : type == "integer" ? NodeKind::number
                          : type == "object"  ? NodeKind::map
                                              : NodeKind::string;
    return value.kind() == kind ? "" : fmt::format("{}: {} is no {}", at, value.describe(), type);
  }

 private:
  std::string of_schema(const std::string& name, const Node& value, const std::string& at) const {
    const Node& properties = *schema(name);
    if (!value.is_map()) return at + ": no map";
    for (const Node::Entry& entry : value.entries()) {
      const std::string below = at + "." + entry.key, type = properties.text_at(entry.key);
      if (type.empty()) return below + ": unknown";
      if (std::string wrong = problem(type, entry.value, below); !wrong.empty()) return wrong;
      const Node* values = document_.find("values")->find(entry.key);
      if (values != nullptr && std::ranges::find(values->items(), entry.value) == values->items().end())
        return fmt::format("{}: there is no '{}'", below, entry.value.text());
    }
    return "";
  }
  const Node* schema(const std::string& name) const { return document_.find("schemas")->get(name).value(); }

  const Node document_ = [] {
    const std::string file = SYSTOLE_SOURCE_DIR "/src/execute/data/bigquery/golden/jobs.json";
    return parse_json(read_text_file(file).value(), file).value();
  }();
};

std::string problem_of(const BigQueryJob& job) { return Discovery().problem("#Job", job.body, job.name); }

const BigQueryTable kTable{"shop-1", "shop", "reviews"};

TEST(BigQueryJobs, ExtractsATableToFilesInABucket) {
  const std::vector<BigQueryJob> jobs =
      extract_jobs(kTable, "gs://b/reviews/*.parquet", {"shop-1", "EU"}, "", BigQueryWrite::empty).value();
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(
      to_json(jobs[0].body),
      R"({"jobReference":{"projectId":"shop-1","location":"EU"},"configuration":{"extract":{)"
      R"("sourceTable":{"projectId":"shop-1","datasetId":"shop","tableId":"reviews"},)"
      R"("destinationUris":["gs://b/reviews/*.parquet"],"destinationFormat":"PARQUET","compression":"SNAPPY"}}})");
  EXPECT_EQ(bigquery_script(jobs),
            "#!/bin/sh\nset -eu\nbq --project_id=shop-1 --location=EU extract --destination_format=PARQUET "
            "--compression=SNAPPY shop-1:shop.reviews 'gs://b/reviews/*.parquet'\n");
}

TEST(BigQueryJobs, FillsTheTableByAQueryBefore) {
  const std::string sql = "SELECT id, 'it''s' AS body\nFROM shop.raw\nEND";
  const std::vector<BigQueryJob> jobs =
      extract_jobs(kTable, "gs://b/x.jsonl.gz", {"shop-1", "", "x7"}, sql, BigQueryWrite::truncate).value();
  ASSERT_EQ(jobs.size(), 2U);
  const Node& query = *jobs[0].body.find("configuration")->find("query");
  EXPECT_EQ(query.text_at("query"), sql);
  EXPECT_EQ(query.text_at("useLegacySql"), "false") << "the interface's default is the old dialect";
  EXPECT_EQ(query.text_at("writeDisposition"), "WRITE_TRUNCATE");
  EXPECT_EQ(*query.find("destinationTable"), *jobs[1].body.find("configuration")->find("extract")->find("sourceTable"));
  EXPECT_EQ(jobs[0].body.find("jobReference")->text_at("jobId"), "x7-query");
  EXPECT_EQ(
      bigquery_script(jobs),
      "#!/bin/sh\nset -eu\nbq --project_id=shop-1 --job_id=x7-query query --use_legacy_sql=false --max_rows=0 "
      "--destination_table=shop-1:shop.reviews --replace <<'END_'\n" +
          sql +
          "\nEND_\nbq --project_id=shop-1 --job_id=x7-extract extract "
          "--destination_format=NEWLINE_DELIMITED_JSON --compression=GZIP shop-1:shop.reviews gs://b/x.jsonl.gz\n");
}

TEST(BigQueryJobs, LoadsFilesWithTheirFields) {
  const BigQueryJob parquet =
      load_job({"gs://b/a.parquet"}, kTable, {"pays"}, parse_bigquery_fields("id:int64,v:FLOAT64:repeated").value(),
               BigQueryWrite::truncate)
          .value();
  EXPECT_EQ(
      to_json(parquet.body),
      R"({"jobReference":{"projectId":"pays"},"configuration":{"load":{"sourceUris":["gs://b/a.parquet"],)"
      R"("sourceFormat":"PARQUET","destinationTable":{"projectId":"shop-1","datasetId":"shop","tableId":"reviews"},)"
      R"("writeDisposition":"WRITE_TRUNCATE","parquetOptions":{"enableListInference":true},"schema":{"fields":[)"
      R"({"name":"id","type":"INT64","mode":"NULLABLE"},{"name":"v","type":"FLOAT64","mode":"REPEATED"}]}}}})");
  const std::string script = bigquery_script({parquet});
  EXPECT_NE(script.find("cat >\"$schema\" <<'END'\n[\n  {\n    \"name\": \"id\","), std::string::npos) << script;
  EXPECT_NE(script.find("load --source_format=PARQUET --replace --parquet_enable_list_inference=true "
                        "shop-1:shop.reviews gs://b/a.parquet \"$schema\"\n"),
            std::string::npos)
      << script;
  const BigQueryJob csv =
      load_job({"gs://b/a.csv", "gs://b/b.csv.gz"}, kTable, {"pays"}, {}, BigQueryWrite::append).value();
  EXPECT_EQ(bigquery_script({csv}),
            "#!/bin/sh\nset -eu\nbq --project_id=pays load --source_format=CSV --noreplace --skip_leading_rows=1 "
            "--allow_quoted_newlines=true --autodetect=true shop-1:shop.reviews gs://b/a.csv,gs://b/b.csv.gz\n");
}

// Every property and value of every body is one of the discovery document's.
TEST(BigQueryJobs, AreWhatTheInterfaceTakes) {
  std::vector<BigQueryJob> jobs;
  const std::vector<BigQueryField> fields = parse_bigquery_fields(
                                                "a:STRING,b:BYTES,c:INT64,d:FLOAT64,e:BOOL,f:DATE,g:DATETIME,h:"
                                                "TIMESTAMP,i:TIME,j:NUMERIC,k:BIGNUMERIC,l:JSON,"
                                                "m:GEOGRAPHY:REQUIRED")
                                                .value();
  for (const char* uri : {"gs://b/*.parquet", "gs://b/x.csv", "gs://b/x.csv.gz", "gs://b/d/x.jsonl"}) {
    for (const BigQueryWrite write : {BigQueryWrite::empty, BigQueryWrite::append, BigQueryWrite::truncate}) {
      for (BigQueryJob& job : extract_jobs(kTable, uri, {"p", "US", "j"}, "SELECT 1", write).value())
        jobs.push_back(std::move(job));
      if (write == BigQueryWrite::empty) continue;
      jobs.push_back(load_job({uri}, kTable, {"p"}, {}, write).value());
      jobs.push_back(load_job({uri}, kTable, {"p"}, fields, write).value());
    }
  }
  for (const BigQueryJob& job : jobs) EXPECT_EQ(problem_of(job), "") << to_json(job.body);
  BigQueryJob wrong = jobs[0];
  wrong.body.set("configuration", Node::map({{"query", Node::map({{"useLegacySql", "no"}})}}));
  EXPECT_EQ(problem_of(wrong), "query.configuration.query.useLegacySql: text 'no' is no boolean");
  wrong.body.set("configuration", Node::map({{"query", Node::map({{"writeDisposition", "WRITE"}})}}));
  EXPECT_EQ(problem_of(wrong), "query.configuration.query.writeDisposition: there is no 'WRITE'");
}

TEST(BigQueryJobs, RefuseWhatBigQueryWould) {
  const auto wrong = [](const std::string& uri) {
    return extract_jobs(kTable, uri, {"p"}, "", BigQueryWrite::empty).error().message;
  };
  for (const char* uri : {"gs://b", "gs://b/", "gs:///x.csv", "gs://b*/x.csv", "gs://b/*/*.csv", "s3://b/x.csv"})
    EXPECT_NE(wrong(uri).find("names no files in a bucket"), std::string::npos) << uri;
  for (const char* uri : {"gs://b/x", "gs://b/x.parquet.gz", "gs://b/x.avro"})
    EXPECT_NE(wrong(uri).find("does not say which format"), std::string::npos) << uri;
  EXPECT_EQ(BigQueryTable::parse("a.b.c", "").value().project, "a");
  EXPECT_EQ(BigQueryTable::parse("example.com:a:b.c", "").value().project, "example.com:a");
  EXPECT_EQ(BigQueryTable::parse("b.c$20261128", "a").value().table, "c$20261128");
  for (const char* table : {"", "c", "a.b-d.c", "a.b.", "a.b.c/d"})
    EXPECT_NE(BigQueryTable::parse(table, "p").error().message.find("is no table"), std::string::npos) << table;
  EXPECT_NE(BigQueryTable::parse("b.c", "").error().hint.find("--project"), std::string::npos);
  EXPECT_EQ(parse_bigquery_fields("a:INT").error().hint, "did you mean 'INT64'?");
  EXPECT_NE(parse_bigquery_fields("a:INT64,A:INT64").error().message.find("one name"), std::string::npos);
  EXPECT_NE(parse_bigquery_fields("a.b:INT64").error().hint.find("columns: { lang: meta.lang }"), std::string::npos);
  EXPECT_NE(
      load_job({"gs://b/x.csv"}, kTable, {"p", "", "a b"}, {}, BigQueryWrite::append).error().message.find("no name"),
      std::string::npos);
}

TEST(BigQueryJobs, TakeTheFieldsOfAParquetFile) {
  using parquet::Column;
  using parquet::Meaning;
  using parquet::Physical;
  parquet::Metadata file;
  const auto add = [&](const char* name, Physical type, Meaning meaning = Meaning::plain) -> Column& {
    Column& column = file.columns.emplace_back();
    column.name = name;
    column.type = type;
    column.meaning = meaning;
    return column;
  };
  add("id", Physical::int64);
  add("text", Physical::bytes, Meaning::text).nullable = true;
  add("vector", Physical::float32).list = true;
  add("at", Physical::int64, Meaning::timestamp).utc = true;
  add("wall", Physical::int64, Meaning::timestamp);
  add("day", Physical::int32, Meaning::date);
  add("price", Physical::fixed, Meaning::decimal).scale = 2;
  add("fine", Physical::fixed, Meaning::decimal).scale = 12;
  for (const int precision : {31, 32}) {  // 29 digits before the point, and 30
    Column& column = add(precision == 31 ? "large" : "larger", Physical::fixed, Meaning::decimal);
    column.scale = 2;
    column.precision = precision;
  }
  add("raw", Physical::bytes);
  add("is", Physical::boolean);
  std::string text;
  for (const BigQueryField& field : bigquery_fields(file).value())
    text += fmt::format("{}:{}:{} ", field.name, field.type, field.mode);
  EXPECT_EQ(text,
            "id:INT64:REQUIRED text:STRING:NULLABLE vector:FLOAT64:REPEATED at:TIMESTAMP:REQUIRED "
            "wall:DATETIME:REQUIRED day:DATE:REQUIRED price:NUMERIC:REQUIRED fine:BIGNUMERIC:REQUIRED "
            "large:NUMERIC:REQUIRED larger:BIGNUMERIC:REQUIRED raw:BYTES:REQUIRED is:BOOL:REQUIRED ");
  add("ID", Physical::int64);
  EXPECT_NE(bigquery_fields(file).error().message.find("'id' and 'ID' are one name"), std::string::npos);
  file.columns.pop_back();
  Column& whole = add("whole", Physical::fixed, Meaning::decimal);
  whole.scale = 2;
  whole.precision = 40;
  EXPECT_EQ(bigquery_fields(file).value().back().type, "BIGNUMERIC");
  whole.precision = 41;
  EXPECT_EQ(bigquery_fields(file).error().message,
            "column 'whole' has decimals of 39 digits before the point, and BIGNUMERIC 38");
  file.columns.pop_back();
  add("who", Physical::bytes).outside = "a struct";
  EXPECT_NE(bigquery_fields(file).error().hint.find("leave --schema out"), std::string::npos);
}

}  // namespace
}  // namespace systole
