#include "execute/data/packing.h"

#include <algorithm>
#include <limits>

#include "describe/lengths/bucket_edges.h"
#include "execute/data/little_endian.h"

namespace systole {
namespace {

constexpr std::uint32_t kVersion = 1, kBucketVersion = 2;
constexpr std::size_t kHeaderBytes = 128;

// The pieces of one document, and the bytes of text of each: what its tokens spell; the last piece gets the rest.
Status cut(const TokenShard& shard, std::int64_t document, std::uint64_t base, const Tokenizer& tokenizer,
           std::int64_t sequence_length, std::span<std::byte> scratch, std::vector<Piece>& pieces) {
  const std::int64_t begin = shard.document_begin(document), end = shard.document_end(document);
  std::int64_t bytes = shard.document_bytes(document);
  std::vector<std::int32_t> tokens;
  for (std::int64_t at = begin; at < end; at += sequence_length) {
    const std::int64_t length = std::min(sequence_length, end - at);
    std::int64_t spelled = bytes;
    if (at + length < end) {
      tokens.resize(static_cast<std::size_t>(length));
      TRY(shard.read(at, tokens, scratch));
      spelled = 0;
      for (const std::int32_t token : tokens) spelled += static_cast<std::int64_t>(tokenizer.bytes_of(token).size());
    }
    if (spelled > bytes || spelled > std::numeric_limits<std::uint32_t>::max()) {
      return error(ErrorKind::invalid, "document {} has {} bytes of text in one piece or less than its tokens spell",
                   document, spelled)
          .at({shard.info().path});
    }
    pieces.push_back({base + static_cast<std::uint64_t>(at), static_cast<std::uint32_t>(length),
                      static_cast<std::uint32_t>(spelled)});
    bytes -= spelled;
  }
  return Done{};
}

// Sorts the pieces of a packed table by row, keeping their order within a row.
void arrange(Packing& packing, std::vector<Piece> pieces, const std::vector<std::uint32_t>& rows) {
  std::uint32_t count = 0;
  for (const std::uint32_t row : rows) count = std::max(count, row + 1);
  packing.first.assign(count + std::size_t{1}, 0);
  for (const std::uint32_t row : rows) ++packing.first[row + std::size_t{1}];
  for (std::size_t row = 0; row < count; ++row) packing.first[row + 1] += packing.first[row];
  std::vector<std::uint64_t> next(packing.first.begin(), packing.first.end());
  packing.pieces.resize(pieces.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) packing.pieces[next[rows[i]]++] = pieces[i];
}

// The row of each piece, by bucket; sets the buckets that have rows.
std::vector<std::uint32_t> bucketed_rows(Packing& packing, std::span<const Piece> pieces,
                                         const std::vector<std::int64_t>& edges) {
  const auto bucket_of = [&](const Piece& piece) {
    return static_cast<std::size_t>(std::ranges::lower_bound(edges, std::int64_t{piece.length}) - edges.begin());
  };
  std::vector<std::uint32_t> next(edges.size() + 1), rows;
  for (const Piece& piece : pieces) ++next[bucket_of(piece) + 1];
  for (std::size_t b = 0; b < edges.size(); ++b) {
    if (next[b + 1] > 0) packing.buckets.push_back({edges[b], next[b]});
    next[b + 1] += next[b];
  }
  rows.reserve(pieces.size());
  for (const Piece& piece : pieces) rows.push_back(next[bucket_of(piece)]++);
  return rows;
}

// `first`: the first column of the file.
std::uint64_t hash_of_tables(const Packing& packing, std::span<const std::byte> first) {
  const std::uint64_t rows = hash64(first);
  const std::uint64_t pieces = hash64(std::as_bytes(std::span(packing.pieces)), rows);
  return packing.buckets.empty() ? pieces : hash64(std::as_bytes(std::span(packing.buckets)), pieces);
}
static_assert(sizeof(Piece) == 16 && std::is_trivially_copyable_v<Piece>, "pieces are written as they are");
static_assert(sizeof(RowBucket) == 16 && std::is_trivially_copyable_v<RowBucket>, "buckets are written as they are");

Error damaged(const std::string& name, std::string why) {
  return error(ErrorKind::corrupt, "this packing table is damaged: {}", why)
      .at({name})
      .hinted("remove it and build the data again: `systole data build`");
}

// Each row of a bucket holds one piece, which is longer than the edge before and not longer than its own.
Status check_buckets(const Packing& packing, const std::string& name) {
  if (packing.policy != PackingPolicy::bucketed) return Done{};
  if (packing.buckets.empty() != (packing.rows() == 0)) return damaged(name, "it has rows and no buckets");
  std::int64_t below = 0, row = 0;
  for (std::size_t b = 0; b < packing.buckets.size(); ++b) {
    const auto [edge, first_row] = packing.buckets[b];
    const bool last = b + 1 == packing.buckets.size();
    const std::int64_t end = last ? packing.rows() : packing.buckets[b + 1].first_row;
    if (edge <= below || edge > packing.sequence_length) return damaged(name, "the edges of its buckets do not ascend");
    if (first_row != row || end <= row || end > packing.rows())
      return damaged(name, fmt::format("the rows of the bucket of {} are not those between its neighbours", edge));
    for (; row < end; ++row) {
      const Piece& piece = packing.row(row)[0];
      if (piece.length > edge || piece.length <= below)
        return damaged(name, fmt::format("row {} does not belong to the bucket of {}", row, edge));
    }
    below = edge;
  }
  return Done{};
}

// That rows hold all pieces in order; where a row is one piece, that `first`, the first column of the file, says so.
Status check_first(const Packing& packing, std::span<const std::byte> first, const std::string& name) {
  const std::size_t pieces = packing.pieces.size();
  if (packing.one_each()) {
    bool each = first.size() == 8 * (pieces + 1);
    for (std::size_t row = 0; each && row <= pieces; ++row) each = get<std::uint64_t>(first, 8 * row) == row;
    return each ? Status() : damaged(name, "its rows do not hold a piece each");
  }
  if (packing.first.front() != 0 || packing.first.back() != pieces)
    return damaged(name, "its rows do not hold its pieces");
  if (!std::ranges::is_sorted(packing.first)) return damaged(name, "its rows do not ascend");
  return Done{};
}

// Checks what a reader relies on, beyond the checksums. REQUIRES: check_first.
Status check_tables(const Packing& packing, const std::string& name) {
  std::uint64_t tokens = 0, bytes = 0;
  for (std::int64_t i = 0; i < packing.rows(); ++i) {
    std::uint64_t row = 0;
    for (const Piece& piece : packing.row(i)) {
      if (piece.length == 0) return damaged(name, "a piece is empty");
      row += piece.length;
      bytes += piece.bytes;
    }
    if (row > static_cast<std::uint64_t>(packing.sequence_length))
      return damaged(name, fmt::format("row {} is too full", i));
    tokens += row;
  }
  if (tokens != static_cast<std::uint64_t>(packing.tokens) || bytes != static_cast<std::uint64_t>(packing.bytes)) {
    return damaged(name, "its pieces do not add up to its header");
  }
  return check_buckets(packing, name);
}

}  // namespace

const char* name_of(PackingPolicy policy) {
  switch (policy) {
    case PackingPolicy::packed: return "packed";
    case PackingPolicy::padded: return "padded";
    case PackingPolicy::bucketed: break;
  }
  return "bucketed";
}

std::vector<std::int64_t> bucket_edges(const LengthHistogram& pieces, std::int64_t sequence_length,
                                       const EdgesAsked& asked) {
  std::vector<std::int64_t> edges = asked.edges;
  if (edges.empty()) {
    EdgeRequest best{.shapes = asked.shapes, .waste = asked.waste, .align = asked.align, .longest = sequence_length};
    edges = best_edges(pieces, best);
  }
  CHECK(std::ranges::adjacent_find(edges, std::greater_equal()) == edges.end(), "edges that do not ascend");
  CHECK(edges.empty() || (edges.front() >= 1 && edges.back() <= sequence_length), "edges from {} to {}, rows of {}",
        edges.front(), edges.back(), sequence_length);
  if (edges.empty() || edges.back() < sequence_length) edges.push_back(sequence_length);
  return edges;
}

Hash128 EdgesAsked::hash() const {
  if (!edges.empty()) return hash128(fmt::format("edges {}", fmt::join(edges, " ")));
  return hash128(fmt::format("edges auto waste {} shapes {} align {}", waste, shapes, align));
}

PackingRule PackingRule::bucketed(EdgesAsked edges) {
  PackingRule rule(PackingPolicy::bucketed);
  rule.edges = std::move(edges);
  return rule;
}

PackingRule PackingRule::of_held_out() const {
  return policy == PackingPolicy::bucketed ? PackingRule(PackingPolicy::padded) : *this;
}

Bytes Packing::resident() const {
  return Bytes(static_cast<std::int64_t>(first.capacity() * sizeof(first[0]) + pieces.capacity() * sizeof(Piece) +
                                         buckets.capacity() * sizeof(RowBucket)));
}

std::int64_t Packing::bucket_rows(std::size_t bucket) const {
  return (bucket + 1 < buckets.size() ? buckets[bucket + 1].first_row : rows()) - buckets[bucket].first_row;
}

std::int64_t Packing::positions() const {
  std::int64_t positions = policy == PackingPolicy::bucketed ? 0 : rows() * sequence_length;
  for (std::size_t b = 0; b < buckets.size(); ++b) positions += bucket_rows(b) * buckets[b].edge;
  return positions;
}

std::vector<std::int64_t> Packing::edges() const {
  if (policy != PackingPolicy::bucketed) return {sequence_length};
  std::vector<std::int64_t> edges;
  for (const RowBucket& bucket : buckets) edges.push_back(bucket.edge);
  return edges;
}

Hash128 packing_inputs(std::span<const ShardInfo> shards, std::int64_t sequence_length, PackingPolicy policy,
                       const Hash128& asked) {
  const bool bucketed = policy == PackingPolicy::bucketed;
  std::string inputs =
      fmt::format("packing {} {} {}\n", bucketed ? kBucketVersion : kVersion, sequence_length, name_of(policy));
  if (bucketed) inputs += to_hex(asked) + "\n";
  for (const ShardInfo& shard : shards) inputs += to_hex(shard.id) + "\n";
  return hash128(inputs);
}

Result<Packing> pack(std::span<const TokenShard> shards, const Tokenizer& tokenizer, std::int64_t sequence_length,
                     const PackingRule& rule) {
  CHECK(sequence_length >= 1, "rows of {}", sequence_length);
  std::vector<Piece> pieces;
  std::vector<ShardInfo> infos;
  std::vector<std::byte> scratch(kTokenBlockBytes);
  Packing packing{.policy = rule.policy, .sequence_length = sequence_length, .inputs = {}, .asked = rule.asked()};
  for (const TokenShard& shard : shards) {
    for (std::int64_t document = 0; document < shard.info().documents; ++document) {
      TRY(cut(shard, document, static_cast<std::uint64_t>(packing.tokens), tokenizer, sequence_length, scratch,
              pieces));
    }
    packing.tokens += shard.info().tokens;
    packing.bytes += shard.info().bytes;
    infos.push_back(shard.info());
  }
  packing.inputs = packing_inputs(infos, sequence_length, rule.policy, packing.asked);
  if (rule.policy == PackingPolicy::bucketed) {
    LengthHistogram lengths;
    for (const Piece& piece : pieces) lengths.add(piece.length);
    const std::vector<std::uint32_t> rows =
        bucketed_rows(packing, pieces, bucket_edges(lengths, sequence_length, rule.edges));
    packing.pieces.resize(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) packing.pieces[rows[i]] = pieces[i];
  } else if (rule.policy == PackingPolicy::packed) {
    std::vector<std::uint32_t> lengths(pieces.size());
    for (std::size_t i = 0; i < pieces.size(); ++i) lengths[i] = pieces[i].length;
    arrange(packing, std::move(pieces), best_fit_rows(lengths, sequence_length));
  } else {
    pieces.shrink_to_fit();
    packing.pieces = std::move(pieces);
  }
  return packing;
}

std::vector<std::byte> serialise(const Packing& packing) {
  std::vector<std::uint64_t> own;  // of one piece a row
  for (std::int64_t row = 0; packing.one_each() && row <= packing.rows(); ++row)
    own.push_back(static_cast<std::uint64_t>(row));
  const auto rows = std::as_bytes(std::span(packing.one_each() ? own : packing.first)),
             pieces = std::as_bytes(std::span(packing.pieces));
  std::vector<std::byte> bytes;
  put(bytes, std::string_view("SYSPACKS"));
  put(bytes, packing.policy == PackingPolicy::bucketed ? kBucketVersion : kVersion);
  put(bytes, static_cast<std::uint32_t>(packing.policy));
  for (const std::int64_t number : {packing.sequence_length, packing.rows(),
                                    static_cast<std::int64_t>(packing.pieces.size()), packing.tokens, packing.bytes}) {
    put(bytes, static_cast<std::uint64_t>(number));
  }
  put(bytes, packing.inputs.high);
  put(bytes, packing.inputs.low);
  put(bytes, hash_of_tables(packing, rows));
  put(bytes, packing.asked.high);
  put(bytes, packing.asked.low);
  put(bytes, static_cast<std::uint64_t>(packing.buckets.size()));
  bytes.resize(kHeaderBytes - 8);
  put(bytes, hash64(bytes));
  bytes.insert(bytes.end(), rows.begin(), rows.end());
  bytes.insert(bytes.end(), pieces.begin(), pieces.end());
  const auto buckets = std::as_bytes(std::span(packing.buckets));
  bytes.insert(bytes.end(), buckets.begin(), buckets.end());
  return bytes;
}

Result<Packing> parse_packing(std::span<const std::byte> bytes, const std::string& name) {
  if (bytes.size() < kHeaderBytes || !holds(bytes, 0, "SYSPACKS"))
    return damaged(name, "it does not begin as one does");
  const auto version = get<std::uint32_t>(bytes, 8);
  if (version > kBucketVersion) {
    return error(ErrorKind::unsupported, "this packing table has version {}; this Systole reads up to version {}",
                 version, kBucketVersion)
        .coded(ErrorCode::newer_version)
        .at({name})
        .hinted("use the Systole that wrote it or a newer one, or build the data again");
  }
  if (get<std::uint64_t>(bytes, 120) != hash64(bytes.first(120))) return damaged(name, "its header's checksum differs");
  const auto policy = get<std::uint32_t>(bytes, 12);
  const auto sequence_length = get<std::uint64_t>(bytes, 16), rows = get<std::uint64_t>(bytes, 24),
             pieces = get<std::uint64_t>(bytes, 32), buckets = get<std::uint64_t>(bytes, 96);
  const std::uint64_t room = (bytes.size() - kHeaderBytes) / 8;
  if (policy > 2 || (policy == 2) != (version == kBucketVersion) || (policy != 2 && buckets > 0) ||
      sequence_length == 0 || sequence_length > std::numeric_limits<std::uint32_t>::max() || rows > room ||
      pieces > room || buckets > room || bytes.size() != kHeaderBytes + 8 * (rows + 1) + 16 * pieces + 16 * buckets) {
    return damaged(name, fmt::format("it has {} bytes, which its header does not explain", bytes.size()));
  }
  Packing packing{.policy = static_cast<PackingPolicy>(policy),
                  .sequence_length = static_cast<std::int64_t>(sequence_length),
                  .inputs = {get<std::uint64_t>(bytes, 56), get<std::uint64_t>(bytes, 64)},
                  .asked = {get<std::uint64_t>(bytes, 80), get<std::uint64_t>(bytes, 88)},
                  .buckets = std::vector<RowBucket>(buckets),
                  .pieces = std::vector<Piece>(pieces),
                  .tokens = static_cast<std::int64_t>(get<std::uint64_t>(bytes, 40)),
                  .bytes = static_cast<std::int64_t>(get<std::uint64_t>(bytes, 48))};
  const std::span<const std::byte> first = bytes.subspan(kHeaderBytes, 8 * (rows + 1));
  if (!packing.one_each()) {
    packing.first.resize(rows + 1);
    std::memcpy(packing.first.data(), first.data(), first.size());
  }
  if (pieces > 0) std::memcpy(packing.pieces.data(), first.data() + first.size(), 16 * pieces);
  if (buckets > 0) std::memcpy(packing.buckets.data(), bytes.data() + bytes.size() - 16 * buckets, 16 * buckets);
  if (get<std::uint64_t>(bytes, 72) != hash_of_tables(packing, first))
    return damaged(name, "its tables' checksum differs");
  TRY(check_first(packing, first, name));
  TRY(check_tables(packing, name));
  return packing;
}

}  // namespace systole
