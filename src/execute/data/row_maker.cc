#include "execute/data/row_maker.h"

#include <algorithm>

#include "describe/lengths/bucket_edges.h"
#include "ground/base/counted.h"

namespace systole {

RowReader::Maker::Maker(std::shared_ptr<const PackedTokens> data, const RowReaderOptions& options)
    : data_(std::move(data)),
      options_(options),
      order_(data_->packing.rows(), options.seed, options.pass == RowPass::endless),
      steps_(steps_of(data_->packing, options)),
      scratch_(kTokenBlockBytes) {}

std::optional<BucketOrder> RowReader::Maker::steps_of(const Packing& packing, const RowReaderOptions& options) {
  if (!bucketed(packing, options)) return std::nullopt;
  return BucketOrder(packing, options.rows_of_step(), options.seed, options.drop_remainder);
}

std::int64_t RowReader::Maker::slot_size(const Packing& packing, const RowReaderOptions& options) {
  const std::int64_t targets = options.target_length, source = packing.sequence_length - targets;
  if (targets > 0) return options.batch_rows * (2 * source + 3 * targets) + packing.sequence_length;
  std::int64_t positions = bucketed(packing, options) ? 0 : options.batch_rows * packing.sequence_length;
  if (bucketed(packing, options)) {
    for (const std::int64_t edge : packing.edges())
      positions = std::max(positions, edge * rows_of_bucket(options.batch_rows, packing.sequence_length, edge));
  }
  return positions * (options.masking ? 5 : 4);
}

bool RowReader::Maker::ended(RowCursor cursor) const { return options_.pass == RowPass::once && cursor.epoch > 0; }

RowReader::Maker::Parts RowReader::Maker::parts_of(Numbers staging, Shape shape) const {
  const auto rows = static_cast<std::size_t>(shape.rows);
  const auto targets = rows * static_cast<std::size_t>(options_.target_length);
  const std::size_t source = rows * static_cast<std::size_t>(shape.length) - targets;
  const auto take = [&staging](std::size_t size) {
    const Numbers part = staging.first(size);
    staging = staging.subspan(size);
    return part;
  };
  Parts parts;
  parts.tokens = take(source);
  parts.labels = take(targets > 0 ? targets : source);
  parts.segments = take(source);
  if (targets == 0) parts.positions = take(source);
  if (options_.masking) parts.types = take(source);
  parts.target_tokens = take(targets);
  parts.target_segments = take(targets);
  if (targets > 0) parts.pair = staging;
  return parts;
}

RowReader::Maker::Parts RowReader::Maker::row_of(const Parts& all, std::int64_t rows, std::int64_t row) {
  const auto cut = [&](Numbers part) {
    const std::size_t length = part.size() / static_cast<std::size_t>(rows);
    return part.subspan(static_cast<std::size_t>(row) * length, length);
  };
  return {cut(all.tokens), cut(all.labels),        cut(all.segments),        cut(all.positions),
          cut(all.types),  cut(all.target_tokens), cut(all.target_segments), all.pair};
}

Result<Batch> RowReader::Maker::make(RowCursor cursor, std::span<std::int32_t> staging) {
  TRY(lasts(cursor));
  Shape shape{options_.batch_rows, data_->packing.sequence_length};
  std::optional<BucketOrder::Step> step;
  if (steps_) {
    step = steps_->at(cursor.epoch, cursor.row);
    shape = {rows_of_bucket(options_.batch_rows, shape.length, step->edge), step->edge};
  }
  const Parts parts = parts_of(staging, shape);
  const Seconds began = now();
  reading_ = Seconds();
  std::fill(staging.begin(), staging.end(), 0);
  std::fill(parts.labels.begin(), parts.labels.end(), -1);
  Batch batch;
  batch.batch_rows = shape.rows;
  batch.length = shape.length - options_.target_length;
  batch.tokens = parts.tokens;
  batch.labels = parts.labels;
  batch.segments = parts.segments;
  batch.positions = parts.positions;
  batch.types = parts.types;
  batch.target_tokens = parts.target_tokens;
  batch.target_segments = parts.target_segments;
  TRY(step ? fill_step(cursor.epoch, *step, parts, batch) : fill_rows(cursor, parts, batch));
  batch.next = after(cursor);
  batch.made.read = reading_;
  batch.made.pack = now() - began - reading_;
  return batch;
}

Status RowReader::Maker::fill_rows(RowCursor cursor, const Parts& parts, Batch& batch) {
  const std::int64_t rows = length();
  for (std::int64_t r = 0; r < batch.batch_rows; ++r) {
    const std::int64_t ahead = cursor.row + options_.first_row + r;
    if (options_.pass == RowPass::once && ahead >= rows) break;
    const Place place{cursor.epoch + ahead / rows, ahead % rows};
    TRY(fill_row(place, stored_row(place), row_of(parts, batch.batch_rows, r), batch));
  }
  return Done{};
}

// The share of this reader is as large a part of every bucket's step.
Status RowReader::Maker::fill_step(std::int64_t epoch, const BucketOrder::Step& step, const Parts& parts,
                                   Batch& batch) {
  const std::int64_t first = options_.first_row * (step.rows / options_.rows_of_step());
  for (std::int64_t r = 0; r < batch.batch_rows; ++r) {
    const std::int64_t stored = steps_->row(epoch, step, first + r);
    TRY(fill_row({epoch, stored}, stored, row_of(parts, batch.batch_rows, r), batch));
  }
  return Done{};
}

Status RowReader::Maker::lasts(RowCursor cursor) const {
  if (!mixed() || !options_.mixture->end()) return {};
  const std::int64_t end = *options_.mixture->end();
  if (cursor.epoch * order_.rows() + cursor.row + options_.rows_of_step() <= end) return {};
  return error(ErrorKind::invalid, "the rows of the mixture end here, after {}: the source '{}' has no more",
               counted(end, "row"), options_.mixture->sources()[options_.mixture->ended_by()].name)
      .hinted("more `epochs` of it, or data.mixture.exhausted: rescale, in a new run");
}

std::int64_t RowReader::Maker::stored_row(Place place) const {
  if (mixed()) return options_.mixture->joined_row(place.epoch * order_.rows() + place.row);
  if (chosen()) return (*options_.once_rows)[static_cast<std::size_t>(place.row)];
  return order_.at(place.epoch, place.row);
}

std::int64_t RowReader::Maker::length() const {
  return chosen() ? static_cast<std::int64_t>(options_.once_rows->size()) : order_.rows();
}

RowCursor RowReader::Maker::after(RowCursor cursor) const {
  if (steps_)
    return cursor.row + 1 < steps_->steps() ? RowCursor{cursor.epoch, cursor.row + 1} : RowCursor{cursor.epoch + 1, 0};
  const std::int64_t rows = length(), row = cursor.row + options_.rows_of_step();
  if (options_.pass == RowPass::once && row >= rows) return {1, 0};
  if (options_.drop_remainder && row + options_.rows_of_step() > rows) return {cursor.epoch + 1, 0};
  return {cursor.epoch + row / rows, row % rows};
}

Status RowReader::Maker::fill_row(Place place, std::int64_t stored, const Parts& row, Batch& batch) {
  if (stored < 0) return Done{};
  const std::span<const Piece> pieces = data_->packing.row(stored);
  ++batch.rows;
  if (options_.target_length > 0) {
    CHECK(pieces.size() == 1, "{} pairs in a row", pieces.size());
    return fill_pair(pieces[0], row, batch);
  }
  TRY(fill_pieces(pieces, row, batch));
  if (options_.masking) mask(place, row, batch);
  return Done{};
}

Status RowReader::Maker::fill_pieces(std::span<const Piece> pieces, const Parts& row, Batch& batch) {
  std::size_t at = 0;
  std::int32_t segment = 0;
  for (const Piece& piece : pieces) {
    ++segment;
    const std::size_t length = piece.length;
    const Numbers labels = row.labels.subspan(at, length);
    TRY(read_tokens(piece.token, labels));
    row.tokens[at] = data_->bos;
    std::copy(labels.begin(), labels.end() - 1, row.tokens.begin() + static_cast<std::ptrdiff_t>(at + 1));
    for (std::size_t i = 0; i < length; ++i) {
      row.segments[at + i] = segment;
      row.positions[at + i] = static_cast<std::int32_t>(i);
    }
    batch.label_count += piece.length;
    batch.bytes += piece.bytes;
    at += length;
  }
  return Done{};
}

// The labels of a row of pieces are the input of a masked row.
void RowReader::Maker::mask(Place place, const Parts& row, Batch& batch) const {
  for (std::size_t i = 0; i < row.tokens.size(); ++i) row.tokens[i] = row.segments[i] == 0 ? 0 : row.labels[i];
  batch.label_count -= std::count_if(row.segments.begin(), row.segments.end(), [](std::int32_t s) { return s != 0; });
  batch.label_count += mask_row(*options_.masking, place.epoch, place.row, row.segments, row.tokens, row.labels);
  batch.bytes = 0;
}

// A pair is stored as input, bos, target, eos; encode.h gives the maximal lengths.
Status RowReader::Maker::fill_pair(const Piece& piece, const Parts& row, Batch& batch) {
  const Numbers pair = row.pair.first(piece.length);
  TRY(read_tokens(piece.token, pair));
  const auto between = std::find(pair.begin(), pair.end(), data_->bos);
  const auto input = static_cast<std::size_t>(between - pair.begin());
  if (between == pair.end() || input >= row.tokens.size() || pair.size() - input - 1 > row.labels.size()) {
    return error(ErrorKind::corrupt, "a pair of {} tokens does not fit its row", pair.size())
        .hinted("remove the dataset's folder and build the data again: `systole data build`");
  }
  std::copy(pair.begin(), between, row.tokens.begin());
  row.tokens[input] = pair.back();
  std::fill_n(row.segments.begin(), input + 1, 1);
  const Numbers target = pair.subspan(input + 1);
  std::copy(target.begin(), target.end(), row.labels.begin());
  row.target_tokens[0] = kTargetStart;
  std::copy(target.begin(), target.end() - 1, row.target_tokens.begin() + 1);
  std::fill_n(row.target_segments.begin(), target.size(), 1);
  batch.label_count += static_cast<std::int64_t>(target.size());
  return Done{};
}

// A piece is part of one document, and a document is in one shard.
Status RowReader::Maker::read_tokens(std::uint64_t first, std::span<std::int32_t> into) {
  auto begin = static_cast<std::int64_t>(first);
  for (const TokenShard& shard : data_->shards) {
    if (begin < shard.info().tokens) {
      if (static_cast<std::int64_t>(into.size()) > shard.info().tokens - begin) break;
      const Seconds began = now();
      Status read = shard.read(begin, into, scratch_);
      reading_ += now() - began;
      return read;
    }
    begin -= shard.info().tokens;
  }
  return error(ErrorKind::corrupt, "the packing table names token {}, which no shard holds", first)
      .hinted("the table belongs to other shards: build the data again with `systole data build`");
}

}  // namespace systole
