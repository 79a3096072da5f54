#include "operate/run/rank_messages.h"

#include "describe/spec/fields.h"
#include "ground/base/number_from.h"

namespace systole {

// Found by argument-dependent lookup from fields.h, hence not in the unnamed namespace.
static Node node_of(DType dtype) { return name_of(dtype); }
static Status read_node(const Node& node, DType& dtype) {
  const std::string name = TRY(node.as_string());
  const std::optional<DType> named = dtype_named(name);
  if (!named) return error(ErrorKind::corrupt, "'{}' is no type of numbers", name);
  dtype = *named;
  return Done{};
}

template <typename F>
static void fields(F& f, Link& l) {
  f("latency_s", l.latency);
  f("bytes_per_s", l.bandwidth);
}
static Node node_of(const Link& link) { return written(link); }
static Status read_node(const Node& node, Link& link) {
  link = TRY(read_fields<Link>(node));
  link.axis_kind = "host";
  return Done{};
}

template <typename F>
static void fields(F& f, RankedAdapter& a) {
  f("name", a.name);
  f("rank", a.rank);
  f("hash", a.hash);
}
static Node node_of(const std::vector<RankedAdapter>& adapters) {
  std::vector<Node> nodes;
  for (const RankedAdapter& adapter : adapters) nodes.push_back(written(adapter));
  return Node::sequence(std::move(nodes));
}
static Status read_node(const Node& node, std::vector<RankedAdapter>& adapters) {
  if (!node.is_sequence()) return node.wrong("a list");
  for (const Node& item : node.items()) adapters.push_back(TRY(read_fields<RankedAdapter>(item)));
  return Done{};
}

template <typename F>
static void fields(F& f, RankedEngine& e) {
  EngineOptions& o = e.options;
  f("slots", o.slots);
  f("cache", o.cache);
  f("pages", o.pages);
  f("drafts", o.drafts);
  f("parts", o.parts);
  f("buckets", o.buckets);
  f("batches", o.batches);
  f("texts", o.texts);
  f("parameter", o.parameter);
  f("compute", o.compute);
  f("cache_type", o.cache_type);
  f("hidden", o.hidden);
  f("score", o.score);
  f("generates", o.generates);
  f("adapters", e.adapters);
  f("one_machine", e.one_machine);
  f("step", e.step);
  f("link", e.link);
}

std::string to_text(const RankedEngine& engine) { return to_json(written(engine)); }

Result<RankedEngine> ranked_engine_from(const std::string& text) {
  Result<RankedEngine> engine = read_fields<RankedEngine>(TRY(parse_json(text, "rank 0")));
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
