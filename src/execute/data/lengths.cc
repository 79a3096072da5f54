#include "execute/data/lengths.h"

#include <algorithm>
#include <cmath>

#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr std::int64_t kMostDrawn = std::int64_t{1} << 20;

std::int64_t rows_of(std::span<const std::uint32_t> pieces, std::int64_t longest) {
  std::int64_t rows = 0;
  for (const std::uint32_t row : best_fit_rows(pieces, longest)) rows = std::max<std::int64_t>(rows, row + 1);
  return rows;
}

void cut(std::int64_t length, std::int64_t longest, std::vector<std::uint32_t>& pieces) {
  for (; length > 0; length -= longest) pieces.push_back(static_cast<std::uint32_t>(std::min(length, longest)));
}

std::vector<std::uint32_t> shuffled(const std::vector<LengthCount>& counts, PhiloxStream& random) {
  std::vector<std::uint32_t> pieces;
  for (const auto& [length, count] : counts)
    pieces.insert(pieces.end(), static_cast<std::size_t>(count), static_cast<std::uint32_t>(length));
  for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.below(i)]);
  return pieces;
}

std::vector<std::uint32_t> drawn(const std::vector<LengthCount>& counts, std::int64_t size, PhiloxStream& random) {
  std::vector<std::int64_t> until;
  std::int64_t all = 0;
  for (const LengthCount& one : counts) until.push_back(all += one.count);
  std::vector<std::uint32_t> pieces;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto at = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all)));
    const auto found = std::ranges::upper_bound(until, at) - until.begin();
    pieces.push_back(static_cast<std::uint32_t>(counts[static_cast<std::size_t>(found)].length));
  }
  return pieces;
}

// Adds the lengths of the shard's pairs, each stored as input, bos, target, eos.
Status add_pairs(const TokenShard& shard, std::int32_t bos, DatasetLengths& lengths) {
  std::vector<std::byte> scratch(kTokenBlockBytes);
  std::vector<std::int32_t> pair;
  for (std::int64_t i = 0; i < shard.info().documents; ++i) {
    const std::int64_t begin = shard.document_begin(i), size = shard.document_end(i) - begin;
    pair.resize(static_cast<std::size_t>(size));
    TRY(shard.read(begin, pair, scratch));
    const std::int64_t input = std::ranges::find(pair, bos) - pair.begin();
    if (input == size) return error(ErrorKind::corrupt, "document {} is no pair", i).at({shard.info().path});
    lengths.documents.add(input + 1);
    lengths.targets->add(size - input - 1);
  }
  return {};
}

}  // namespace

Result<DatasetLengths> dataset_lengths(Store& store, const TokensManifest& manifest, bool held_out,
                                       std::int64_t longest) {
  DatasetLengths lengths;
  const bool pairs = manifest.use() == TokenizerUse::pairs;
  std::int32_t bos = 0;
  if (pairs) {
    const std::string model = TRY(read_text(store, manifest.key + "/tokenizer.model"));
    bos = TRY(Tokenizer::load(model, manifest.use())).bos();
    lengths.targets.emplace();
  }
  std::vector<std::int64_t> documents;
  for (const ShardInfo& info : (held_out ? manifest.held_out : manifest.train).shards) {
    const TokenShard shard = TRY(TokenShard::open(store, manifest.key + "/" + info.path));
    if (pairs) {
      TRY(add_pairs(shard, bos, lengths));
      continue;
    }
    for (std::int64_t i = 0; i < shard.info().documents; ++i) {
      documents.push_back(shard.document_end(i) - shard.document_begin(i));
      lengths.documents.add(documents.back());
    }
  }
  if (longest == 0) longest = lengths.documents.longest();
  std::vector<std::uint32_t> pieces;
  for (const std::int64_t length : documents) cut(length, longest, pieces);
  if (!pairs) lengths.packed_rows = rows_of(pieces, longest);
  return lengths;
}

std::int64_t packed_rows(const LengthHistogram& texts, std::int64_t longest) {
  const LengthHistogram pieces = texts.in_pieces(longest);
  const std::vector<LengthCount> counts = pieces.counts();
  PhiloxStream random(0);
  if (pieces.count() <= kMostDrawn) return rows_of(shuffled(counts, random), longest);
  const std::vector<std::uint32_t> sample = drawn(counts, kMostDrawn, random);
  double tokens = 0;
  for (const std::uint32_t length : sample) tokens += length;
  const double rows = static_cast<double>(rows_of(sample, longest));
  return std::llround(rows / tokens * static_cast<double>(pieces.tokens()));
}

}  // namespace systole
