#pragma once
// Topics of `systole explain`: terms of the field, and user questions. Each has a general text, its keys in a workload,
// and an answer from the facts at hand: the workload, its plan on this machine, the catalog. The texts contain no
// number of a chip, price or limit: these come from the catalog, with their date.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/base/units.h"
#include "ground/catalog/tables.h"

namespace systole {

enum class TopicGroup {
  idea,      // in training and planning
  feature,   // a group of features of AI platforms
  question,  // a user's question
  term,      // a cloud term
};

// A workload's plan on this machine.
struct PlanFacts {
  std::string machine;  // "avx512, oneDNN 2.6.3 avx512-bf16, 2 threads"
  bool calibrated = false;
  Flops model_flops, executed_flops;                  // per step
  std::optional<Seconds> step;                        // nothing: the machine has no rate for one of its ops
  std::optional<double> matmul_ratio;                 // model FLOP rate over the machine's matmul rate
  std::vector<std::pair<std::string, Bytes>> memory;  // by owner, largest first
  Bytes memory_total, memory_limit;                   // without the text
  bool fits() const { return memory_total <= memory_limit; }
  std::vector<std::pair<std::string, Seconds>> time;  // per step, by kind of op, longest first
};

struct TopicFacts {
  const Catalog* catalog = nullptr;
  CatalogTables* tables = nullptr;
  std::string today;                       // "2026-11-27": old figures are marked with their age
  const Workload* workload = nullptr;      // null: only the general text
  std::string workload_name;               // as given: "job.yaml"
  std::optional<std::int64_t> parameters;  // of its model; nothing: it runs a user's program
  std::optional<std::int64_t> trainable;   // of these; nothing: all
  std::vector<std::string> targets;        // targets that its keys imply
  const PlanFacts* plan = nullptr;         // null: not requested, or not available
  std::string no_plan;                     // why it is not available
};

// Lines of an answer. Each is a sentence, or "key: value".
struct TopicAnswer {
  std::vector<std::string> workload;  // from the workload and its plan; empty without one
  std::vector<std::string> catalog;   // from the catalog
};

struct Topic {
  const char* name;   // as typed: "mfu"
  const char* also;   // synonyms, separated by spaces
  const char* title;  // the term, or the question
  TopicGroup group;
  bool in_glossary;     // on the glossary page: under its sorted terms, not under the group
  bool asks_plan;       // the answer also needs the workload's plan
  const char* text;     // sentences; the term comes first
  const char* keys;     // workload keys of the topic, separated by spaces
  const char* related;  // topic names, separated by spaces
  // Adds an answer from the facts; null: only the keys' values.
  Status (*answer)(const TopicFacts& facts, TopicAnswer& lines);
};

// All topics, by group, in reading order.
std::span<const Topic* const> topics();
// Finds a topic by its name or a synonym, ignoring case and '-' versus '_'; null: none.
const Topic* find_topic(std::string_view name);
std::vector<std::string> topic_names();  // without synonyms

std::vector<std::string> split_words(const char* text);  // splits at spaces

// The values of the topic's keys follow the lines of `answer`. Errors: of the catalog's tables.
Result<TopicAnswer> answer_topic(const Topic& topic, const TopicFacts& facts);

// For people: title, text, keys, then the answer under headings.
std::string topic_text(const Topic& topic, const TopicAnswer& answer, const TopicFacts& facts);
// A value in the workload, as YAML in one line; "not set" if the document does not set it.
std::string value_text(const Workload& workload, std::string_view key);

// The output of `systole explain topics`.
std::string topics_list();
// docs/reference/glossary.md.
std::string glossary_reference();

}  // namespace systole
