#include "execute/serve/batch/batch_job.h"

#include <algorithm>
#include <array>
#include <vector>

#include "execute/data/formats/csv_records.h"
#include "execute/serve/batch/batch_request.h"
#include "execute/serve/batch/batch_shard.h"
#include "execute/serve/batch/result_columns.h"
#include "execute/serve/request_fields.h"

namespace systole {

const char* name_of(BatchKind kind) {
  switch (kind) {
    case BatchKind::completions: return "completions";
    case BatchKind::chat: return "chat";
    case BatchKind::embeddings: return "embeddings";
    case BatchKind::classify: return "classify";
    case BatchKind::score: return "score";
  }
  return "?";
}

const char* url_of(BatchKind kind) {
  switch (kind) {
    case BatchKind::completions: return "/v1/completions";
    case BatchKind::chat: return "/v1/chat/completions";
    case BatchKind::embeddings: return "/v1/embeddings";
    case BatchKind::classify:
    case BatchKind::score: return "";
  }
  return "?";
}

bool is_generated(BatchKind kind) { return kind == BatchKind::completions || kind == BatchKind::chat; }
bool is_scored(BatchKind kind) { return kind == BatchKind::classify || kind == BatchKind::score; }

namespace {

constexpr std::array<BatchKind, 5> kKinds{BatchKind::completions, BatchKind::chat, BatchKind::embeddings,
                                          BatchKind::classify, BatchKind::score};

// Of the job itself; every other key is a field of its requests.
constexpr std::array<std::string_view, 18> kOwn{
    "array", "columns", "systole", "model",   "input",     "output",        "kind",     "prompt", "name",
    "slots", "context", "weights", "pooling", "normalize", "chat_template", "schedule", "shards", "cluster"};
// Of them, those that change no result.
constexpr std::array<std::string_view, 9> kFree{"array", "columns",  "systole", "input",  "output",
                                                "slots", "schedule", "shards",  "cluster"};

Result<std::string> text_or(Fields& fields, std::string_view name, const char* otherwise = "") {
  const Node* value = fields.find(name);
  if (value == nullptr) return std::string(otherwise);
  return Fields::named(name, value->as_string());
}

Result<std::string> one_of(Fields& fields, std::string_view name, const char* otherwise,
                           const std::vector<std::string>& words) {
  const std::string word = TRY(text_or(fields, name, otherwise));
  if (word.empty() || std::ranges::find(words, word) != words.end()) return word;
  return key_error(ErrorKind::invalid, std::string(name), "there is no '{}'", word)
      .coded(ErrorCode::unexpected_value)
      .hinted(nearest_hint(word, words));
}

// The name of a field, or text with fields in braces.
Result<FieldTemplate> prompt_of(const std::string& text) {
  if (text.empty()) return key_error(ErrorKind::invalid, "prompt", "it names no field");
  if (text.find_first_of("{}") == text.npos) return FieldTemplate::of_field(text);
  return Fields::named("prompt", FieldTemplate::parse(text));
}

// What all requests have is wrong for all of them, so it is read once, in a request of this text.
Status check_fields(const BatchJob& job) {
  BatchJob sample = job;
  sample.prompt = FieldTemplate::of_field("text");
  sample.name = "model";
  TRY(request_of(sample, Node::map({{"text", "text"}})));
  return {};
}

Result<std::optional<std::int64_t>> shards_of(Fields& fields) {
  const Node* value = fields.find("shards");
  if (value == nullptr) return std::optional<std::int64_t>();
  if (value->kind() == NodeKind::string && value->text() == "auto") return std::optional<std::int64_t>(0);
  if (value->kind() == NodeKind::number)
    return std::optional(TRY(Fields::named("shards", value->as_int(1, kMostShards))));
  return Fields::named("shards", Result<std::optional<std::int64_t>>(value->wrong("auto or a number")));
}

Result<std::string> array_of(Fields& fields, const BatchJob& job) {
  const std::string name = TRY(text_or(fields, "array"));
  if (name.empty()) return name;
  const auto wrong = [&](const char* why, const char* hint) {
    return key_error(ErrorKind::invalid, "array", "'{}': {}", name, why).hinted(hint);
  };
  if (job.kind != BatchKind::embeddings) return wrong("only embeddings are vectors", "take it out");
  if (!name.ends_with(".npy") || name.find('/') != name.npos || name.starts_with('.'))
    return wrong("it is a name that ends in .npy, of a file beside the output", "array: vectors.npy");
  if (job.output == name || job.output.ends_with("/" + name))
    return wrong("it is the output's own name", "output: vectors.jsonl");
  if (fields.find("encoding_format") != nullptr)
    return wrong("it is made of vectors that are written as numbers", "take encoding_format out");
  return name;
}

// A job whose output is a table has its lines beside that.
void name_table(BatchJob& job) {
  if (!job.output.ends_with(".parquet") && !is_csv_name(job.output)) return;
  job.table = job.output.substr(job.output.rfind('/') + 1);
  job.output += ".jsonl";
}

// Fields of the rows by their names, or by others: `columns: [id, lang]`, `columns: { truth: label }`.
Result<std::vector<CarriedColumn>> columns_of(Fields& fields, const BatchJob& job) {
  const Node* node = fields.find("columns");
  std::vector<CarriedColumn> columns;
  if (node == nullptr) return columns;
  if (job.table.empty()) {
    return key_error(ErrorKind::invalid, "columns", "'{}' is no table: its lines have the place of their row",
                     job.output)
        .hinted("output: answers.parquet (or .csv), or take columns out");
  }
  if (!node->is_sequence() && !node->is_map())
    return Fields::named("columns", Result<std::vector<CarriedColumn>>(node->wrong("a list of fields")));
  for (const Node& item : node->items()) {
    const std::string field = TRY(Fields::named("columns", item.as_string()));
    columns.push_back({field, field});
  }
  for (const Node::Entry& entry : node->entries()) {
    const std::string field = TRY(Fields::named("columns", entry.value.as_string()));
    columns.push_back({entry.key, field});
  }
  std::vector<std::string> names;
  for (const ResultColumn& own : result_columns(job.kind)) names.push_back(own.name);
  for (const CarriedColumn& column : columns) {
    if (column.name.empty() || column.field.empty())
      return key_error(ErrorKind::invalid, "columns", "a column without a name").hinted("columns: [id, lang]");
    if (std::ranges::find(names, column.name) != names.end()) {
      return key_error(ErrorKind::invalid, "columns", "the table has a column '{}' already", column.name)
          .hinted(fmt::format("give it another name: columns: {{ input_{}: {} }}", column.name, column.field));
    }
    names.push_back(column.name);
  }
  return columns;
}

Result<BatchJob> read_job(const Node& node) {
  Fields fields(node);
  BatchJob job;
  TRY(fields.integer("systole", 1, 1, 1));
  job.model = TRY(fields.text("model"));
  job.input = TRY(fields.text("input"));
  job.output = TRY(fields.text("output"));
  TRY(fields.required("kind"));
  std::vector<std::string> kinds;
  for (const BatchKind each : kKinds) kinds.emplace_back(name_of(each));
  const std::string kind = TRY(one_of(fields, "kind", "", kinds));
  for (const BatchKind each : kKinds)
    if (kind == name_of(each)) job.kind = each;
  if (fields.find("prompt") != nullptr) job.prompt = TRY(prompt_of(TRY(fields.text("prompt"))));
  job.name = TRY(text_or(fields, "name"));
  job.slots = TRY(fields.integer("slots", job.slots, 1, 4096));
  job.context = TRY(fields.integer("context", 0, 0, INT32_MAX));
  job.weights = packed_type(TRY(one_of(fields, "weights", "stored", {"stored", "int8", "int4"})));
  job.pooling = TRY(one_of(fields, "pooling", "", {"mean", "last", "cls"}));
  job.normalize = TRY(fields.truth("normalize", true));
  job.chat_template = TRY(text_or(fields, "chat_template"));
  job.shards = TRY(shards_of(fields));
  name_table(job);
  job.columns = TRY(columns_of(fields, job));
  job.array = TRY(array_of(fields, job));
  if (const Node* cluster = fields.find("cluster")) job.cluster = *cluster;
  job.results = Node::map();
  for (const Node::Entry& entry : node.entries()) {
    if (std::ranges::find(kFree, entry.key) == kFree.end()) job.results.set(entry.key, entry.value);
    if (std::ranges::find(kOwn, entry.key) == kOwn.end()) job.fields.set(entry.key, entry.value);
  }
  TRY(check_fields(job));
  return job;
}

}  // namespace

Result<BatchJob> parse_batch_job(std::string_view yaml, const std::string& file) {
  const Node node = TRY(parse_yaml(yaml, file));
  if (!node.is_map()) return node.wrong("a map: model, input, output, kind");
  Result<BatchJob> job = read_job(node);
  if (job.ok()) {
    if (const Node* schedule = node.find("schedule")) job->schedule = TRY(read_schedule(*schedule));
    return job;
  }
  Error wrong = std::move(job).error();
  wrong.where = node.where();
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == wrong.key) wrong.where = entry.value.where();
  }
  if (wrong.code == ErrorCode::unknown_key) {
    const std::vector<std::string> own(kOwn.begin(), kOwn.end());
    if (const auto meant = meant_hint(wrong.key, own)) wrong.hint = *meant;
  }
  return wrong;
}

}  // namespace systole
