#include "describe/ops/zigzag.h"

#include <algorithm>
#include <array>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

// Tokens in a row; 0: the value has no dim of tokens.
std::int64_t tokens_of(const Type& type) {
  for (int dim = 0; dim < type.ndim(); ++dim) {
    if (type.name(dim) == "seq") return type.size(dim);
  }
  return 0;
}

// Whether the op depends on the positions of tokens in a row without an operand that gives them.
bool tells_places(const RewriteCall& call) {
  static constexpr std::array<std::string_view, 5> kTell{"stochastic_round", "iota", "take_row", "cache_write",
                                                         "route"};
  // These keep the positions of tokens if the number of tokens stays: then they work along another dim.
  static constexpr std::array<std::string_view, 4> kMove{"slice", "concatenate", "pad", "take_part"};
  const bool moves = std::ranges::find(kMove, call.node.op->name) != kMove.end();
  if (!moves && std::ranges::find(kTell, call.node.op->name) == kTell.end()) return false;
  if (is(call.node, "route")) return true;  // dims of its operand include tokens
  const std::int64_t made = tokens_of(call.from.type(call.node.results[0]));
  return std::ranges::any_of(call.operands,
                             [&](Value x) { return moves ? tokens_of(x.type()) != made : tokens_of(x.type()) > 0; }) ||
         (!moves && made > 0);
}

[[noreturn]] void refuse(const char* what, const char* hint) {
  fail(error(ErrorKind::unsupported, "{} on a mesh with an axis '{}' is not done yet", what, kContextAxis)
           .hinted(fmt::format("{}a mesh without the axis {}", hint, kContextAxis)));
}

// i32[length]: the position of each token in its row.
Value places_in_rows(Graph& graph, std::int64_t length, std::int64_t parts) {
  const Value places = iota(graph, Type(DType::i32, {length}), 0);
  std::vector<Value> chunks;
  for (std::int64_t at = 0, chunk = length / (2 * parts); at < length; at += chunk) {
    const std::int64_t first = zigzag_place(at, length, parts);
    chunks.push_back(slice_dim(places, 0, first, first + chunk));
  }
  return concatenate(chunks, 0);
}

// Dropout with the positions of its tokens, which select their random bits.
std::vector<Value> placed_dropout(const RewriteCall& call, std::int64_t parts) {
  const Type& x = call.operands[0].type();
  if (x.ndim() < 2 || x.name(1) != "seq") refuse("dropout of what is not rows of tokens", "");
  if (x.size(1) % (2 * parts) != 0) {
    fail(error(ErrorKind::invalid, "rows of {} tokens are not cut into 2 × {} chunks, two for each device along '{}'",
               x.size(1), parts, kContextAxis));
  }
  std::vector<Value> operands(call.operands.begin(), call.operands.end());
  operands.push_back(places_in_rows(call.to, x.size(1), parts));
  Attrs attrs = call.node.attrs;
  attrs.set("length", x.size(1));
  return call.to.apply(*call.node.op, operands, std::move(attrs));
}

}  // namespace

Graph in_zigzag(const Graph& graph, std::int64_t parts, ContextKeys keys) {
  return rewrite(graph, [parts, keys](const RewriteCall& call) -> std::optional<std::vector<Value>> {
    if (is(call.node, "dropout") && tokens_of(call.operands[0].type()) > 0) return placed_dropout(call, parts);
    if (is(call.node, "route")) refuse("a mixture of experts", "");
    if (tells_places(call)) refuse(call.node.op->name, "");
    if (!is(call.node, "attention")) return std::nullopt;
    if (call.node.attrs.find("window") != nullptr) refuse("a window of attention", "");
    if (call.node.attrs.find("bias_origin") != nullptr) refuse("a bias by distance", "");
    if (!call.node.attrs.get_bool("causal")) return std::nullopt;
    Attrs attrs = call.node.attrs;
    attrs.set("zigzag", parts);
    if (keys == ContextKeys::ring) attrs.set("ring", true);
    return call.to.apply(*call.node.op, call.operands, std::move(attrs));
  });
}

bool has_zigzag(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const GraphNode& node) {
    return node.attrs.find("zigzag") != nullptr || std::ranges::any_of(node.regions, has_zigzag);
  });
}

}  // namespace systole
