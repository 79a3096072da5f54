#include "operate/run/rank_messages.h"

#include "ground/base/document.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

Node numbers(const std::vector<std::int64_t>& list) { return Node::sequence({list.begin(), list.end()}); }

Result<std::int64_t> number_at(const Node& node, const char* key) { return TRY(node.get(key))->as_int(); }

Result<std::vector<std::int64_t>> numbers_at(const Node& node, const char* key) {
  std::vector<std::int64_t> list;
  for (const Node& item : TRY(node.get(key))->items()) list.push_back(TRY(item.as_int()));
  return list;
}

Result<DType> dtype_at(const Node& node, const char* key) {
  const std::string name = TRY(TRY(node.get(key))->as_string());
  if (const std::optional<DType> dtype = dtype_named(name)) return *dtype;
  return error(ErrorKind::corrupt, "'{}' is no type of numbers", name);
}

Result<RankedEngine> read(const Node& node) {
  RankedEngine engine;
  EngineOptions& options = engine.options;
  options.slots = TRY(number_at(node, "slots"));
  options.cache = TRY(number_at(node, "cache"));
  options.pages = TRY(number_at(node, "pages"));
  options.drafts = TRY(number_at(node, "drafts"));
  options.parts = TRY(number_at(node, "parts"));
  options.buckets = TRY(numbers_at(node, "buckets"));
  options.batches = TRY(numbers_at(node, "batches"));
  options.texts = TRY(numbers_at(node, "texts"));
  options.parameter = TRY(dtype_at(node, "parameter"));
  options.cache_type = TRY(dtype_at(node, "cache_type"));
  options.hidden = TRY(TRY(node.get("hidden"))->as_bool());
  options.score = TRY(TRY(node.get("score"))->as_bool());
  options.generates = TRY(TRY(node.get("generates"))->as_bool());
  engine.one_machine = TRY(TRY(node.get("one_machine"))->as_bool());
  if (!TRY(node.get("step"))->is_null()) engine.step = TRY(number_at(node, "step"));
  if (const Node& link = *TRY(node.get("link")); !link.is_null()) {
    engine.link = Link{"host", Seconds(TRY(TRY(link.get("latency_s"))->as_double())),
                       BytesPerSecond(TRY(TRY(link.get("bytes_per_s"))->as_double()))};
  }
  return engine;
}

}  // namespace

std::string to_text(const RankedEngine& engine) {
  const EngineOptions& options = engine.options;
  Node link;
  if (engine.link) {
    link = Node::map({{"latency_s", engine.link->latency.count()}, {"bytes_per_s", engine.link->bandwidth.count()}});
  }
  return to_json(Node::map({{"slots", options.slots},
                            {"cache", options.cache},
                            {"pages", options.pages},
                            {"drafts", options.drafts},
                            {"parts", options.parts},
                            {"buckets", numbers(options.buckets)},
                            {"batches", numbers(options.batches)},
                            {"texts", numbers(options.texts)},
                            {"parameter", name_of(options.parameter)},
                            {"cache_type", name_of(options.cache_type)},
                            {"hidden", options.hidden},
                            {"score", options.score},
                            {"generates", options.generates},
                            {"one_machine", engine.one_machine},
                            {"step", engine.step ? Node(*engine.step) : Node()},
                            {"link", link}}));
}

Result<RankedEngine> ranked_engine_from(const std::string& text) {
  Result<RankedEngine> engine = read(TRY(parse_json(text, "rank 0")));
  if (engine.ok()) return engine;
  return error(ErrorKind::corrupt, "rank 0 says what cannot be read: {}", engine.error().message)
      .hinted("the same version of systole on every machine");
}

std::string to_text(const Error& error) {
  return to_json(Node::map({{"kind", static_cast<int>(error.kind)}, {"message", error.message}, {"hint", error.hint}}));
}

Error error_from_text(const std::string& text, const std::string& rank) {
  const Result<Node> node = parse_json(text, "rank " + rank);
  Error error{ErrorKind::internal, text, {}, {}, {}};
  if (node.ok()) {
    const int kind = number_from<int>(node->text_at("kind")).value_or(-1);
    if (kind >= 0 && kind <= static_cast<int>(ErrorKind::internal)) error.kind = static_cast<ErrorKind>(kind);
    error.message = node->text_at("message");
    error.hint = node->text_at("hint");
  }
  error.message = fmt::format("rank {}: {}", rank, error.message);
  return error;
}

}  // namespace systole
