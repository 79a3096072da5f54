#include "execute/data/row_maker.h"

#include <algorithm>

namespace systole {

RowReader::Maker::Maker(std::shared_ptr<const PackedTokens> data, const RowReaderOptions& options)
    : data_(std::move(data)),
      options_(options),
      order_(data_->packing.rows(), options.seed, options.pass == RowPass::endless),
      scratch_(kTokenBlockBytes) {}

std::int64_t RowReader::Maker::slot_size(const Packing& packing, const RowReaderOptions& options) {
  return 4 * options.batch_rows * packing.row_length;
}

bool RowReader::Maker::ended(RowCursor cursor) const { return options_.pass == RowPass::once && cursor.epoch > 0; }

Result<Batch> RowReader::Maker::make(RowCursor cursor, std::span<std::int32_t> staging) {
  const std::int64_t rows = order_.rows();
  const std::size_t quarter = staging.size() / 4;
  Batch batch;
  batch.tokens = staging.subspan(0, quarter);
  batch.labels = staging.subspan(quarter, quarter);
  batch.segments = staging.subspan(2 * quarter, quarter);
  batch.positions = staging.subspan(3 * quarter, quarter);
  std::fill(staging.begin(), staging.end(), 0);
  std::fill_n(staging.begin() + static_cast<std::ptrdiff_t>(quarter), quarter, -1);

  for (std::int64_t place = 0; place < options_.batch_rows; ++place) {
    const std::int64_t ahead = cursor.row + options_.first_row + place;
    if (options_.pass == RowPass::once && ahead >= rows) break;
    TRY(fill_row(order_.at(cursor.epoch + ahead / rows, ahead % rows), place, staging, batch));
  }
  const std::int64_t after = cursor.row + step_rows();
  batch.next = {cursor.epoch + after / rows, after % rows};
  if (options_.pass == RowPass::once && after >= rows) batch.next = {1, 0};
  return batch;
}

Status RowReader::Maker::fill_row(std::int64_t row, std::int64_t place, std::span<std::int32_t> staging, Batch& batch) {
  const auto row_length = static_cast<std::size_t>(data_->packing.row_length);
  const std::size_t quarter = staging.size() / 4;
  std::size_t at = static_cast<std::size_t>(place) * row_length;
  std::int32_t segment = 0;
  for (const Piece& piece : data_->packing.row(row)) {
    ++segment;
    const std::size_t length = piece.length;
    const std::span<std::int32_t> labels = staging.subspan(quarter + at, length);
    TRY(read_tokens(piece.token, labels));
    staging[at] = data_->bos;
    std::copy(labels.begin(), labels.end() - 1, staging.begin() + static_cast<std::ptrdiff_t>(at + 1));
    for (std::size_t i = 0; i < length; ++i) {
      staging[2 * quarter + at + i] = segment;
      staging[3 * quarter + at + i] = static_cast<std::int32_t>(i);
    }
    batch.label_count += piece.length;
    batch.bytes += piece.bytes;
    at += length;
  }
  ++batch.rows;
  return Done{};
}

// A piece is a part of one document, and a document lies in one shard.
Status RowReader::Maker::read_tokens(std::uint64_t first, std::span<std::int32_t> into) {
  auto begin = static_cast<std::int64_t>(first);
  for (const TokenShard& shard : data_->shards) {
    if (begin < shard.info().tokens) {
      if (static_cast<std::int64_t>(into.size()) > shard.info().tokens - begin) break;
      return shard.read(begin, into, scratch_);
    }
    begin -= shard.info().tokens;
  }
  return error(ErrorKind::corrupt, "the packing table names token {}, which no shard holds", first)
      .hinted("the table belongs to other shards: build the data again with `systole data build`");
}

}  // namespace systole
