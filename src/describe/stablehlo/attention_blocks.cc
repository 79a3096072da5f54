#include "describe/stablehlo/attention_blocks.h"

#include <algorithm>
#include <array>

namespace systole::stablehlo {
namespace {

std::int64_t blocks_of(std::int64_t length, std::int64_t block) { return (length + block - 1) / block; }

// One block if the length fits; else the size with the least padding, where each block also has a fixed cost.
std::int64_t block_of(std::int64_t length, const AttentionBlocks& blocks) {
  if (length <= blocks.length) return std::max<std::int64_t>(length, 1);
  std::int64_t best = blocks.length, least = 0;
  for (std::int64_t block = blocks.length; block > 0; block -= blocks.tile) {
    const std::int64_t cost = blocks_of(length, block) * (2 * block + blocks.tile);
    if (least == 0 || cost < least) {
      best = block;
      least = cost;
    }
  }
  return best;
}

std::int64_t greatest_divisor(std::int64_t of, std::int64_t at_most) {
  std::int64_t divisor = std::clamp<std::int64_t>(at_most, 1, std::max<std::int64_t>(of, 1));
  while (of % divisor != 0) --divisor;
  return divisor;
}

Ssa plus(Builder& b, const Ssa& x, std::int64_t y) { return b.binary("add", x, number(b, y)); }
Ssa times(Builder& b, const Ssa& x, std::int64_t y) { return b.binary("multiply", x, number(b, y)); }
Ssa over(Builder& b, const Ssa& x, std::int64_t y) { return b.binary("divide", x, number(b, y)); }

// AttentionCut::first and last for a dynamic block index.
Ssa first_of(Builder& b, const AttentionCut& cut, const Ssa& block) {
  if (cut.window == 0) return number(b, 0);
  const Ssa key = b.binary("maximum", plus(b, times(b, block, cut.queries), 1 - cut.window), number(b, 0));
  return b.binary("minimum", over(b, key, cut.keys), number(b, cut.key_blocks - 1));
}

Ssa last_of(Builder& b, const AttentionCut& cut, const Ssa& block) {
  if (!cut.causal) return number(b, cut.key_blocks);
  const Ssa key = times(b, plus(b, block, 1), cut.queries);
  return b.binary("minimum", over(b, plus(b, key, cut.keys - 1), cut.keys), number(b, cut.key_blocks));
}

std::vector<Ssa> joined(std::initializer_list<Ssa> first, Carries rest) {
  std::vector<Ssa> all(first);
  for (const Ssa& value : rest) all.push_back(value);
  return all;
}

}  // namespace

AttentionFlags::AttentionFlags(const Attrs& attrs, int first)
    : causal(attrs.get_bool("causal")), scale(attrs.get_double("scale")) {
  if (attrs.find("zigzag") != nullptr) {  // partitioning splits such rows into chunks in plain order
    fail(error(ErrorKind::unsupported, "attention over rows in zigzag order is lowered by its parts alone"));
  }
  if (attrs.find("window") != nullptr) window = attrs.get_int("window");
  if (attrs.get_bool("segments")) {
    q_segments = first++;
    k_segments = first++;
  }
  if (attrs.get_bool("offsets")) offset = first++;
  if (attrs.find("bias_origin") != nullptr) {
    bias = first++;
    origin = attrs.get_int("bias_origin");
  }
}

// A block of scores of one entry and kv_head has r · queries · keys elements. A group is all heads of several entries,
// or some heads of one entry. With offsets and a bias it has one entry: each entry reads another strip of the bias.
AttentionCut::AttentionCut(const AttentionFlags& flags, const Type& q, const Type& k, const AttentionBlocks& blocks)
    : b(q.size(0)), t(q.size(1)), s(k.size(1)), n(k.size(2)), r(q.size(2) / n), d(q.size(3)) {
  queries = block_of(t, blocks);
  keys = block_of(s, blocks);
  query_blocks = blocks_of(std::max<std::int64_t>(t, 1), queries);
  key_blocks = blocks_of(std::max<std::int64_t>(s, 1), keys);
  const std::int64_t fit = blocks.scores / std::max<std::int64_t>(r * queries * keys, 1);
  const bool one_entry = flags.offset >= 0 && flags.bias >= 0;
  heads = greatest_divisor(n, fit);
  batch = heads == n && !one_entry ? greatest_divisor(b, fit / n) : 1;
  causal = flags.causal && flags.offset < 0;
  window = causal ? std::min(flags.window, query_blocks * queries) : 0;
}

std::int64_t AttentionCut::first(std::int64_t block) const {
  if (window == 0) return 0;
  return std::min(std::max<std::int64_t>(block * queries + 1 - window, 0) / keys, key_blocks - 1);
}

std::int64_t AttentionCut::last(std::int64_t block) const {
  return causal ? std::min(blocks_of((block + 1) * queries, keys), key_blocks) : key_blocks;
}

std::int64_t AttentionCut::pairs() const {
  std::int64_t pairs = 0;
  for (std::int64_t block = 0; block < query_blocks; ++block) pairs += last(block) - first(block);
  return pairs;
}

Ssa number(Builder& b, std::int64_t value) {
  return b.integer(Type(DType::i32, {}), static_cast<std::uint64_t>(value));
}

std::vector<Ssa> for_each_group(Builder& b, const AttentionCut& cut, Carries carries, const GroupBody& body) {
  if (cut.groups() == 1) return body(b, {number(b, 0), number(b, 0)}, carries);
  return b.loop(cut.groups(), carries, [&](Builder& inside, const Ssa& group, Carries now) {
    const std::int64_t of_heads = cut.n / cut.heads;
    const Ssa entry = over(inside, group, of_heads);
    const Ssa head = inside.binary("remainder", group, number(inside, of_heads));
    return body(inside, {times(inside, entry, cut.batch), times(inside, head, cut.heads)}, now);
  });
}

std::vector<Ssa> for_each_pair(Builder& b, const AttentionCut& cut, Carries carries, const PairBody& body) {
  const Ssa zero = number(b, 0);
  if (cut.pairs() == 1) return body(b, {zero, zero, {}, {}}, carries);
  const std::vector<Ssa> all = joined({zero, zero}, carries);
  const auto step = [&](Builder& inside, const Ssa&, Carries now) {
    const Ssa &query = now[0], &key = now[1];  // block indices
    const Ssa below = plus(inside, query, 1), beside = plus(inside, key, 1);
    const Ssa ends = inside.compare("GE", beside, last_of(inside, cut, query));
    PairPlace place{times(inside, query, cut.queries), times(inside, key, cut.keys), {}, {}};
    if (cut.key_blocks > 1) {
      place.fresh = inside.compare("EQ", key, first_of(inside, cut, query));
      place.done = ends;
    }
    const std::vector<Ssa> next = body(inside, place, now.subspan(2));
    return joined({inside.select(ends, below, query), inside.select(ends, first_of(inside, cut, below), beside)}, next);
  };
  std::vector<Ssa> made = b.loop(cut.pairs(), all, step);
  made.erase(made.begin(), made.begin() + 2);
  return made;
}

std::vector<Ssa> write_when_done(Builder& b, const PairPlace& pair, Carries carried, const Builder::Branch& write) {
  if (!pair.done) return write(b);
  return b.branch(*pair.done, write, [&](Builder&) { return std::vector<Ssa>(carried.begin(), carried.end()); });
}

Ssa part_of(Builder& b, const Ssa& x, std::span<const Part> parts) {
  Shape sizes = x.type.shape;
  for (const Part& part : parts) sizes[static_cast<std::size_t>(part.dim)] = part.size;
  if (sizes == x.type.shape) return x;
  std::vector<Ssa> start(sizes.size(), number(b, 0));
  for (const Part& part : parts) start[static_cast<std::size_t>(part.dim)] = part.start;
  return b.dynamic_slice(x, start, sizes);
}

Ssa with_part(Builder& b, const Ssa& x, const Ssa& value, std::span<const Part> parts) {
  if (value.type == x.type) return value;
  std::vector<Ssa> start(x.type.shape.size(), number(b, 0));
  for (const Part& part : parts) start[static_cast<std::size_t>(part.dim)] = part.start;
  return b.dynamic_update(x, value, start);
}

Ssa filled_up(Builder& b, const Ssa& x, int dim, std::int64_t size, double value) {
  if (x.type.size(dim) == size) return x;
  const std::vector<std::int64_t> low(x.type.shape.size(), 0);
  std::vector<std::int64_t> high = low;
  high[static_cast<std::size_t>(dim)] = size - x.type.size(dim);
  return b.pad(x, b.constant(Type(x.type.dtype, {}), value), low, high);
}

}  // namespace systole::stablehlo
