#include "execute/serve/batch/batch_job.h"

#include <gtest/gtest.h>

#include "execute/serve/batch/batch_request.h"

namespace systole {
namespace {

constexpr const char* kJob = R"(model: m
input: in.jsonl
output: out.jsonl
kind: completions
prompt: "Q: {question}\nA:"
temperature: 0
max_tokens: 7
)";

BatchJob job_of(const std::string& yaml) {
  BatchJob job = parse_batch_job(yaml, "job.yaml").value();
  job.name = "m";
  return job;
}
std::string wrong(const std::string& yaml) { return to_string(parse_batch_job(yaml, "job.yaml").error()); }

CompletionRequest completion(const BatchJob& job, const char* row) {
  return std::get<CompletionRequest>(request_of(job, parse_json(row, "row").value()).value().asked);
}
Error refused(const BatchJob& job, const char* row) { return request_of(job, parse_json(row, "row").value()).error(); }

TEST(BatchJob, gives_its_fields_to_each_row) {
  const CompletionRequest request = completion(job_of(kJob), R"({"question": "why?"})");
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(std::get<std::string>(request.prompts.at(0)), "Q: why?\nA:");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0);

  const BatchJob chat = job_of("{model: m, input: i.csv, output: o, kind: chat, prompt: q, seed: 4}");
  const CompletionRequest talk = completion(chat, R"({"q": "why?"})");
  ASSERT_TRUE(talk.conversation.has_value());
  EXPECT_EQ(to_json(talk.conversation->messages), R"([{"role":"user","content":"why?"}])");
  EXPECT_EQ(talk.sampling.seed, 4U);

  const BatchJob vectors = job_of("{model: m, input: i.csv, output: o, kind: embeddings, prompt: q, dimensions: 2}");
  const BatchRequest embedding = request_of(vectors, parse_json(R"({"q": "why?"})", "row").value()).value();
  EXPECT_EQ(std::get<EmbeddingsRequest>(embedding.asked).dimensions, 2);
}

TEST(BatchJob, labels_are_texts_of_which_there_are_at_least_two) {
  const std::string begin = "{model: m, input: i.csv, output: o, kind: classify, prompt: q";
  const BatchJob job = job_of(begin + ", labels: [good, 2]}");
  const BatchRequest request = request_of(job, parse_json(R"({"q": "why?"})", "row").value()).value();
  const auto& asked = std::get<ScoreRequest>(request.asked);
  EXPECT_EQ(asked.text, "why?");
  EXPECT_EQ(asked.labels, (std::vector<std::string>{"good", "2"}));
  EXPECT_EQ(asked.delimiter, " ");
  const BatchJob bare = job_of(begin + ", labels: [a, b], delimiter: ''}");
  EXPECT_EQ(std::get<ScoreRequest>(request_of(bare, parse_json(R"({"q": ""})", "row").value()).value().asked).delimiter,
            "");

  EXPECT_NE(wrong(begin + "}").find("labels: missing"), std::string::npos) << wrong(begin + "}");
  for (const char* labels : {"[a]", "a", "[a, '']", "[a, [b]]"})
    EXPECT_NE(wrong(begin + ", labels: " + labels + "}").find("labels: expected a"), std::string::npos) << labels;
  const std::string twice = wrong(begin + ", labels: [a, b, a]}");
  EXPECT_TRUE(twice.starts_with("job.yaml:1:")) << twice;
  EXPECT_NE(twice.find("error: labels: 'a' is there twice"), std::string::npos) << twice;
  EXPECT_NE(wrong("{model: m, input: i.csv, output: o, kind: score, prompt: q, labels: [a, b]}").find("unknown field"),
            std::string::npos);
}

TEST(BatchJob, a_prompt_without_braces_is_a_field) {
  const auto prompt = [](const std::string& text) {
    return job_of("{model: m, input: i.csv, output: o, kind: completions, prompt: " + text + "}").prompt->fields();
  };
  EXPECT_EQ(prompt("the question"), std::vector<std::string>{"the question"});
  EXPECT_EQ(prompt("'{a} or {b}?'"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(prompt("'{{}}'").empty());
  for (const char* text : {"''", "'{'", "'{}'", "'a}'"}) {
    EXPECT_TRUE(wrong(std::string("{model: m, input: i.csv, output: o, kind: completions, prompt: ") + text + "}")
                    .starts_with("job.yaml:1:64: error: prompt: "))
        << text;
  }
}

TEST(BatchJob, takes_rows_in_openais_format_which_come_first) {
  const BatchJob job = job_of("{model: m, input: i.jsonl, output: o, kind: completions, max_tokens: 7, seed: 1}");
  const char* row = R"({"custom_id": "a", "method": "POST", "url": "/v1/completions",
      "body": {"model": "m", "prompt": "x", "max_tokens": 3}})";
  EXPECT_EQ(completion(job, row).max_tokens, 3);
  EXPECT_FALSE(request_of(job, parse_json(row, "row").value()).value().seeded) << "the job is";
  EXPECT_EQ(custom_id_of(parse_json(row, "row").value()), "a");
  const char* seeded = R"({"custom_id": "a", "method": "POST", "url": "/v1/completions",
      "body": {"prompt": "x", "seed": 3}})";
  EXPECT_TRUE(request_of(job, parse_json(seeded, "row").value()).value().seeded);

  EXPECT_EQ(refused(job, R"({"method": "POST", "url": "/v1/completions", "body": {}})").key, "custom_id");
  EXPECT_EQ(refused(job, R"({"custom_id": "a", "method": "GET", "url": "/v1/completions", "body": {}})").key, "method");
  const Error other = refused(job, R"({"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {}})");
  EXPECT_EQ(other.key, "url");
  EXPECT_NE(other.message.find("completions"), std::string::npos) << other.message;
  EXPECT_EQ(refused(job, R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": 1})").key, "body");
  EXPECT_EQ(refused(job, R"({"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {}, "x": 1})").key,
            "x");
  EXPECT_EQ(refused(job, R"({"custom_id": "a", "method": "POST", "url": "/v1/completions",
      "body": {"prompt": "x", "stream": true}})")
                .key,
            "stream");
}

TEST(BatchJob, is_refused_at_the_place_of_what_is_wrong) {
  EXPECT_TRUE(wrong(std::string(kJob) + "temprature: 1\n").starts_with("job.yaml:8:13: error: temprature"))
      << wrong(std::string(kJob) + "temprature: 1\n");
  EXPECT_NE(wrong(std::string(kJob) + "temprature: 1\n").find("did you mean 'temperature'?"), std::string::npos);
  EXPECT_NE(wrong(std::string(kJob) + "weigths: int8\n").find("did you mean 'weights'?"), std::string::npos);
  EXPECT_TRUE(wrong(std::string(kJob) + "top_p: 3\n").starts_with("job.yaml:8:8: error: top_p: 3 is not between"));
  EXPECT_NE(wrong(std::string(kJob) + "stream: true\n").find("stream"), std::string::npos);
  EXPECT_NE(wrong(std::string(kJob) + "slots: 0\n").find("slots"), std::string::npos);
  EXPECT_NE(wrong("{input: a, output: b, kind: chat}").find("model"), std::string::npos);
  EXPECT_NE(wrong("{model: m, input: a, output: b}").find("kind"), std::string::npos);
  EXPECT_NE(wrong("{model: m, input: a, output: b, kind: chats}").find("did you mean 'chat'?"), std::string::npos);
  EXPECT_NE(wrong("[1]").find("a map"), std::string::npos);
}

TEST(BatchJob, says_when_and_by_how_many_it_is_run) {
  EXPECT_EQ(job_of(kJob).shards, std::nullopt);
  EXPECT_EQ(job_of(kJob + std::string("shards: auto\n")).shards, 0);
  const BatchJob job = job_of(kJob + std::string("shards: 12\nschedule: { cron: '@daily', time_zone: Asia/Tokyo }\n"));
  EXPECT_EQ(job.shards, 12);
  EXPECT_EQ(job.schedule->zone.name(), "Asia/Tokyo");
  const auto wrongs = [](const std::string& more) { return wrong(kJob + more); };
  EXPECT_TRUE(wrongs("shards: 0\n").starts_with("job.yaml:8:9: error: shards")) << wrongs("shards: 0\n");
  EXPECT_TRUE(wrongs("shards: many\n").starts_with("job.yaml:8:9: error: shards")) << wrongs("shards: many\n");
  EXPECT_NE(wrongs("shedule: '@daily'\n").find("did you mean 'schedule'?"), std::string::npos);
  EXPECT_TRUE(wrongs("array: v.npy\n").starts_with("job.yaml:8:8: error: array: 'v.npy': only embeddings are vectors"));
  const std::string vectors = "{model: m, input: a.txt, output: b, kind: embeddings, array: ";
  EXPECT_EQ(job_of(vectors + "v.npy}").array, "v.npy");
  for (const char* name : {"v", "a/v.npy", "../v.npy", ".npy"})
    EXPECT_NE(wrong(vectors + name + "}").find("hint: array: vectors.npy"), std::string::npos) << name;
  EXPECT_NE(wrong("{model: m, input: a.txt, output: r/v.npy, kind: embeddings, array: v.npy}").find("the output's own"),
            std::string::npos);
  EXPECT_NE(wrong(vectors + "v.npy, encoding_format: base64}").find("take encoding_format out"), std::string::npos);
}

TEST(BatchJob, has_a_table_beside_its_lines) {
  const std::string start = "{model: m, input: a.csv, kind: classify, labels: [x, y], prompt: text, output: ";
  const BatchJob job = job_of(start + "out/t.parquet, columns: [id, lang]}");
  EXPECT_EQ(job.output, "out/t.parquet.jsonl");
  EXPECT_EQ(job.table, "t.parquet");
  ASSERT_EQ(job.columns.size(), 2U);
  EXPECT_EQ(job.columns[1].field, "lang");
  const BatchJob named = job_of(start + "t.csv.gz, columns: { truth: label }}");
  EXPECT_EQ(named.table, "t.csv.gz");
  EXPECT_EQ(named.columns[0].name + " " + named.columns[0].field, "truth label");
  EXPECT_EQ(to_json(job_of(start + "t.csv}").results), to_json(named.results)) << "they change no answer";
  EXPECT_EQ(wrong(start + "t.csv, columns: [id, label]}"),
            "job.yaml:1:96: error: columns: the table has a column 'label' already\n"
            "  hint: give it another name: columns: { input_label: label }");
  EXPECT_NE(wrong(start + "t.csv, columns: [id, id]}").find("a column 'id' already"), std::string::npos);
  EXPECT_NE(wrong(start + "t.jsonl, columns: [id]}").find("hint: output: answers.parquet"), std::string::npos);
  EXPECT_NE(wrong(start + "t.csv, columns: id}").find("a list of fields"), std::string::npos);
}

TEST(BatchJob, results_depend_on_neither_place_nor_slots) {
  const auto results = [](const std::string& more) { return to_json(job_of(kJob + more).results); };
  EXPECT_EQ(results(""), results("slots: 9\nsystole: 1\n"));
  EXPECT_EQ(results(""), results("shards: 3\nschedule: '@daily'\ncluster: { name: x }\n"));
  EXPECT_NE(results(""), results("seed: 1\n"));
  EXPECT_NE(results(""), results("weights: int8\n"));
}

}  // namespace
}  // namespace systole
