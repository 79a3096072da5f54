// Keys of `data`.
#include <algorithm>

#include "describe/spec/families/families.h"

namespace systole {
namespace {

const std::vector<std::pair<std::string, DataSpec::Kind>> kKinds{{"text", DataSpec::Kind::text},
                                                                 {"linear", DataSpec::Kind::linear}};
const Condition kText{"data.kind", {"text"}};
const Condition kLinear{"data.kind", {"linear"}};

// A key of data.held_out whose default is the value of the same key of data.train.
Key follows(Key key, const char* brother, std::function<void(Workload&)> derive) {
  key.default_yaml.clear();
  key.derived = std::string("data.train.") + brother;
  key.derive = std::move(derive);
  return key;
}

// Fields that data.train and data.held_out share.
struct TextFields {
  Field<TextSpec::Document> document;
  Field<TextSpec::InvalidUtf8> invalid_utf8;
  Field<TextSpec::Format> format;
  Field<std::string> field, target;
  Field<Bytes> largest_document;
  Field<TextSpec::OnBadRecord> on_bad_record;
  Field<std::int64_t> bad_records;
};

void add_text_keys(std::vector<Key>& keys, const std::string& under, const TextFields& at, bool held_out) {
  using Document = TextSpec::Document;
  using Invalid = TextSpec::InvalidUtf8;
  using Format = TextSpec::Format;
  const auto add = [&](Key key, const char* brother, std::function<void(Workload&)> derive) {
    key.path = under + "." + brother;
    key.when = kText;
    keys.push_back(held_out ? follows(std::move(key), brother, std::move(derive)) : std::move(key));
  };
  add({.codec = choice_codec<Document>(
           at.document, {{"line", Document::line}, {"blank_line", Document::blank_line}, {"file", Document::file}}),
       .doc = "Where a document of plain text ends.",
       .more = "line: at each newline. blank_line: at an empty line. file: with the file. A JSON record is always one.",
       .default_yaml = "line"},
      "document", [](Workload& w) { w.data.held_out.document = w.data.train.document; });
  add({.codec = choice_codec<Invalid>(
           at.invalid_utf8, {{"error", Invalid::error}, {"replace", Invalid::replace}, {"bytes", Invalid::bytes}}),
       .doc = "What happens to bytes that are not UTF-8.",
       .more =
           "error: refuse, with file and offset. replace: put U+FFFD in their place. bytes: train on them as they are.",
       .default_yaml = "error"},
      "invalid_utf8", [](Workload& w) { w.data.held_out.invalid_utf8 = w.data.train.invalid_utf8; });
  add({.codec = choice_codec<Format>(at.format, {{"by_name", Format::by_name},
                                                 {"text", Format::text},
                                                 {"jsonl", Format::jsonl},
                                                 {"tfrecord", Format::tfrecord},
                                                 {"array_record", Format::array_record},
                                                 {"webdataset", Format::webdataset},
                                                 {"mds", Format::mds},
                                                 {"csv", Format::csv},
                                                 {"numpy", Format::numpy},
                                                 {"parquet", Format::parquet}}),
       .doc = "by_name: .jsonl and .ndjson are JSON Lines, .tfrecord, .array_record, .tar (WebDataset), .mds, .csv, "
              ".tsv, .npy, .npz and .parquet files of records, all else is text; .gz and .zst are unpacked.",
       .default_yaml = "by_name"},
      "format", [](Workload& w) { w.data.held_out.format = w.data.train.format; });
  add({.codec = text_codec(at.field),
       .doc = "Field of a record that holds the text, or what a t5 reads.",
       .more = "Of a JSON record, or of a tf.train.Example in a TFRecord or ArrayRecord. A dot: the whole record. The "
               "ending of a sample's file in a tar; a column. A path leads into JSON: messages[*].content.",
       .default_yaml = "text"},
      "field", [](Workload& w) { w.data.held_out.field = w.data.train.field; });
  Key target{.path = under + ".target",
             .codec = text_codec(at.target),
             .doc = "Field of a JSON record that holds what a t5 is to answer; its data are JSON Lines.",
             .default_yaml = "target",
             .when = families_trained_on(Task::pairs)};
  if (held_out) target = follows(target, "target", [](Workload& w) { w.data.held_out.target = w.data.train.target; });
  keys.push_back(std::move(target));
  add({.codec = bytes_codec(at.largest_document, Bytes(1)),
       .doc = "A longer document is an error; it bounds the memory of reading.",
       .default_yaml = "64MiB"},
      "largest_document", [](Workload& w) { w.data.held_out.largest_document = w.data.train.largest_document; });
  using Bad = TextSpec::OnBadRecord;
  add({.codec = choice_codec<Bad>(at.on_bad_record, {{"error", Bad::error}, {"skip", Bad::skip}}),
       .doc = "What happens to a record that is damaged, has no such field or is not UTF-8.",
       .more =
           "error: refuse, with file, record and byte. skip: leave it out, and count it. Of all formats of records.",
       .default_yaml = "error"},
      "on_bad_record", [](Workload& w) { w.data.held_out.on_bad_record = w.data.train.on_bad_record; });
  add({.codec = count_codec(at.bad_records, 1, std::int64_t{1} << 40),
       .doc = "With on_bad_record: skip, more of them are an error.",
       .default_yaml = "1000"},
      "bad_records", [](Workload& w) { w.data.held_out.bad_records = w.data.train.bad_records; });
}

void add_tokenizer_keys(std::vector<Key>& keys) {
  using Kind = TokenizerSpec::Kind;
  using Algorithm = TokenizerSpec::Algorithm;
  keys.push_back(
      {.path = "data.tokenizer.kind",
       .codec = choice_codec<Kind>(AT(data.tokenizer.kind),
                                   {{"sentencepiece", Kind::sentencepiece}, {"byte_level_bpe", Kind::byte_level_bpe}}),
       .doc = "sentencepiece: without normalisation and with byte fallback. byte_level_bpe: that of GPT-2, Llama "
              "3 and others, out of `file`. Both spell every string of bytes.",
       .default_yaml = "sentencepiece",
       .when = kText});
  Codec vocabulary = count_codec(AT(data.tokenizer.vocabulary), 260, 1'000'000);
  vocabulary.write = [write = vocabulary.write](Workload& w) {  // 0 means "decided by the file" and cannot be read back
    return w.data.tokenizer.vocabulary == 0 ? Node() : write(w);
  };
  keys.push_back({.path = "data.tokenizer.vocabulary",
                  .codec = std::move(vocabulary),
                  .doc = "Tokens in all; 259 of them are the bytes and three marks.",
                  .more = "The tokenizer is trained on the training documents alone. With `file` this key is left out.",
                  .optional = true,
                  .when = kText,
                  .group = "tokenizer"});
  keys.push_back({.path = "data.tokenizer.file",
                  .codec = text_codec(AT(data.tokenizer.file)),
                  .doc = "A tokenizer to use instead of training one.",
                  .more = "sentencepiece: a .model; a t5 may have its own spiece.model. byte_level_bpe: a "
                          "tokenizer.json, a vocab.json with merges.txt beside "
                          "it, or their folder; tokenizer_config.json beside them says which token is eos.",
                  .optional = true,
                  .when = kText,
                  .group = "tokenizer"});
  keys.push_back({.path = "data.tokenizer.algorithm",
                  .codec = choice_codec<Algorithm>(AT(data.tokenizer.algorithm),
                                                   {{"bpe", Algorithm::bpe}, {"unigram", Algorithm::unigram}}),
                  .doc = "How the tokens are found when the tokenizer is trained.",
                  .default_yaml = "bpe",
                  .when = kText});
  keys.push_back({.path = "data.tokenizer.sample",
                  .codec = bytes_codec(AT(data.tokenizer.sample), kKiB),
                  .doc = "Training text that the tokenizer is trained on, drawn from all of it.",
                  .default_yaml = "4MiB",
                  .when = kText});
}

void add_linear_keys(std::vector<Key>& keys) {
  keys.push_back({.path = "data.rows",
                  .codec = count_codec(AT(data.rows), 1, 1'000'000'000'000),
                  .doc = "Examples that training draws from.",
                  .default_yaml = "60000",
                  .when = kLinear});
  keys.push_back({.path = "data.held_out_rows",
                  .codec = count_codec(AT(data.held_out_rows), 0, 1'000'000'000'000),
                  .doc = "Further examples for evaluation.",
                  .default_yaml = "1000",
                  .when = kLinear});
  keys.push_back(
      {.path = "data.noise",
       .codec = number_codec(AT(data.noise), 0, 1e6),
       .doc = "Standard deviation of what is added to each label: its square is the least mean squared error.",
       .default_yaml = "0.1",
       .when = kLinear});
}

}  // namespace

const char* name_of(DataSpec::Kind kind) {
  return std::ranges::find(kKinds, kind, &std::pair<std::string, DataSpec::Kind>::second)->first.c_str();
}

bool DataSpec::has_held_out() const {
  switch (kind) {
    case Kind::text: return !held_out.files.empty() || held_out_fraction > 0;
    case Kind::linear: break;
  }
  return held_out_rows > 0;
}

void DataSpec::hold_nothing_out() {
  held_out.files.clear();
  held_out_fraction = 0;
  held_out_rows = 0;
}

DataSpec::Kind data_of(Task task) {
  switch (task) {
    case Task::language:
    case Task::masked:
    case Task::pairs: return DataSpec::Kind::text;
    case Task::regression:
    case Task::classification: break;
  }
  return DataSpec::Kind::linear;
}

void add_data_keys(Schema& schema) {
  using Kind = DataSpec::Kind;
  schema.sections.push_back({"data", "What it is trained on.", {}, {}});
  schema.sections.push_back({"data.train", "The training text.", {}, {}});
  schema.sections.push_back(
      {"data.held_out", "Text that is set aside before the tokenizer is trained, to measure on.", {}, {}});
  schema.sections.push_back({"data.tokenizer", "How text becomes tokens.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "data.kind",
                  .codec = choice_codec<Kind>(AT(data.kind), kKinds),
                  .doc = "text: files. linear: synthetic examples of a linear law with noise, for regression.",
                  .derived = "linear for mlp, else text",
                  .derive = [](Workload& w) { w.data.kind = data_of(w.model.task()); }});
  keys.push_back({.path = "data.train.files",
                  .codec = texts_codec(AT(data.train.files)),
                  .doc = "Paths or patterns (*, ?, [a-z]); plain, gzip, zstd, JSON Lines and records.",
                  .more =
                      "Records: TFRecord, ArrayRecord, Parquet, CSV and TSV, tar, MDS, NumPy. Relative paths start at "
                      "the folder where the command is given. gs://BUCKET/… and s3://BUCKET/… name objects of "
                      "buckets.",
                  .when = kText,
                  .instead = "data.mixture.sources"});
  add_text_keys(keys, "data.train",
                {AT(data.train.document), AT(data.train.invalid_utf8), AT(data.train.format), AT(data.train.field),
                 AT(data.train.target), AT(data.train.largest_document), AT(data.train.on_bad_record),
                 AT(data.train.bad_records)},
                false);
  keys.push_back({.path = "data.train.where",
                  .codec = text_codec(AT(data.train.where)),
                  .doc = "Which records are kept, of held-out files too: lang == \"en\" and score > 0.5.",
                  .more =
                      "Fields or paths into JSON are compared (==, !=, <, <=, >, >=, in [..], contains) and joined by "
                      "and, or, not. Of JSON Lines and files of records.",
                  .optional = true,
                  .when = kText});
  keys.push_back({.path = "data.train.dedupe",
                  .codec = flag_codec(AT(data.train.dedupe)),
                  .doc = "Leave out a document whose text was there before, in held-out files too.",
                  .more = "By a hash of 128 bits: about 40 bytes of memory a document while the data are built.",
                  .optional = true,
                  .when = kText});
  add_mixture_keys(schema);
  keys.push_back({.path = "data.held_out.files",
                  .codec = texts_codec(AT(data.held_out.files)),
                  .doc = "Paths or patterns, as data.train.files.",
                  .optional = true,
                  .when = kText,
                  .group = "held-out text"});
  keys.push_back(
      {.path = "data.held_out.fraction",
       .codec = fraction_codec(AT(data.held_out_fraction)),
       .doc = "Without files of its own: the share of training documents that is set aside, chosen by their hash.",
       .more = "0 sets nothing aside; then there is no evaluation.",
       .derived = "5%, or 0 beside data.held_out.files",
       .derive = [](Workload& w) { w.data.held_out_fraction = w.data.held_out.files.empty() ? 0.05 : 0.0; },
       .when = kText,
       .group = "held-out text"});
  add_text_keys(keys, "data.held_out",
                {AT(data.held_out.document), AT(data.held_out.invalid_utf8), AT(data.held_out.format),
                 AT(data.held_out.field), AT(data.held_out.target), AT(data.held_out.largest_document),
                 AT(data.held_out.on_bad_record), AT(data.held_out.bad_records)},
                true);
  add_tokenizer_keys(keys);
  keys.push_back({.path = "data.packing",
                  .codec = bool_codec(AT(data.packing)),
                  .doc = "Several documents share a row; no token looks into another document.",
                  .more = "false: one piece of a document a row, the rest of the row is empty; so are a t5's pairs.",
                  .derived = "false beside data.buckets, else true",
                  .derive = [](Workload& w) { w.data.packing = !w.data.buckets; },
                  .when = kText});
  add_bucket_keys(schema);
  keys.push_back(
      {.path = "data.drop_remainder",
       .codec = flag_codec(AT(data.drop_remainder)),
       .doc = "Leave out the rows at an epoch's end that do not fill a step.",
       .more = "Without it such a step goes on with the next epoch's rows. Evaluation takes all rows anyway.",
       .optional = true,
       .when = kText});
  keys.push_back({.path = "data.readers",
                  .codec = optional_count_codec(AT(data.readers), 1, 64),
                  .doc = "Threads that read rows for the steps to come; order and bits do not depend on it.",
                  .more = "Without it, one, or as many as `systole data probe --save` found to be enough.",
                  .optional = true,
                  .when = kText});
  keys.push_back({.path = "data.queue",
                  .codec = optional_count_codec(AT(data.queue), 2, 1024),
                  .doc = "Batches in memory: the one of the step, and those read ahead.",
                  .more = "Without it, two more than readers, and deeper where the storage falters.",
                  .optional = true,
                  .when = kText});
  add_masking_keys(schema);
  add_linear_keys(keys);
  keys.push_back({.path = "data.seed",
                  .codec = count_codec(AT(data.seed), 0, std::numeric_limits<std::int64_t>::max()),
                  .doc = "Of the order of rows, the choice of held-out documents, and synthetic data.",
                  .default_yaml = "0"});
  keys.push_back({.path = "data.folder",
                  .codec = text_codec(AT(data.folder)),
                  .doc = "Where prepared data is kept: tokenizer, token shards, packing tables, by content.",
                  .default_yaml = "build/data"});
  schema.sections.push_back({"data.cache", "Objects of buckets that are read, as files of this machine.", {}, {}});
  keys.push_back({.path = "data.cache.folder",
                  .codec = text_codec(AT(data.cache_folder)),
                  .doc = "Where objects of gs:// and s3:// are kept, by content. Runs and ranks share it.",
                  .derived = "objects in data.folder",
                  .derive = [](Workload& w) { w.data.cache_folder = w.data.folder + "/objects"; },
                  .when = kText});
  keys.push_back({.path = "data.cache.limit",
                  .codec = optional_bytes_codec(AT(data.cache_limit), Bytes(1)),
                  .doc = "Of all objects there. The least recently used go first, and none that a process reads.",
                  .more = "Without it: what the disk has.",
                  .optional = true,
                  .when = kText});
  keys.push_back({.path = "data.cache.memory",
                  .codec = optional_bytes_codec(AT(data.cache_memory), Bytes(1)),
                  .doc = "Of objects that are also kept in shared memory (/dev/shm), where all runs and ranks of the "
                         "user's on a machine read them.",
                  .more = "Without it: none.",
                  .optional = true,
                  .when = kText});
}

}  // namespace systole
