#include "execute/data/formats/parquet/reader.h"

#include <algorithm>
#include <cstring>

#include "ground/base/nearest.h"
#include "ground/store/git_lfs.h"

namespace systole::parquet {
namespace {

constexpr std::int64_t kTail = 8;  // the footer's length and "PAR1"

Error no_parquet(const std::string& shown, std::string what, std::string hint) {
  return error(ErrorKind::corrupt, "{}", what).at({shown}).hinted(std::move(hint));
}

constexpr const char* kAgain = "the file was not written or copied to its end: fetch or write it again";

}  // namespace

Result<File> File::open(Store& store, const std::string& path, const std::string& shown, ReadLimits limits) {
  File file;
  file.shown_ = shown;
  file.limits_ = limits;
  Result<std::unique_ptr<ReadableFile>> opened = open_to_read(store, path);
  if (!opened.ok()) return std::move(opened).error().at({shown});
  file.file_ = std::move(*opened);
  if (Status itself = refuse_lfs_pointer(store, path); !itself.ok()) return std::move(itself).error().at({shown});
  const std::int64_t size = file.file_->size().count();
  std::byte head[4]{}, tail[kTail]{};
  if (size < 12) return no_parquet(shown, "this is no Parquet file: it is shorter than 12 bytes", kAgain);
  TRY(file.file_->read(0, head));
  TRY(file.file_->read(size - kTail, tail));
  if (std::memcmp(tail + 4, "PARE", 4) == 0) {
    return error(ErrorKind::unsupported, "the footer is encrypted")
        .at({shown})
        .hinted("write the file without encryption");
  }
  if (std::memcmp(head, "PAR1", 4) != 0)
    return no_parquet(shown, "this is no Parquet file: it does not begin with PAR1", "name a file that is one");
  if (std::memcmp(tail + 4, "PAR1", 4) != 0)
    return no_parquet(
        shown,
        fmt::format("the file is truncated: byte {} is not the PAR1 that ends a Parquet file", with_commas(size - 4)),
        kAgain);
  std::uint32_t footer_size = 0;
  std::memcpy(&footer_size, tail, 4);
  const std::int64_t begin = size - kTail - footer_size;
  if (begin < 4) {
    return no_parquet(shown,
                      fmt::format("byte {}: the footer is said to have {} bytes, and the file has {}",
                                  with_commas(size - kTail), with_commas(footer_size), with_commas(size)),
                      kAgain);
  }
  if (footer_size > limits.largest_footer) {
    return error(ErrorKind::does_not_fit, "the footer has {} bytes, and at most {} are read", with_commas(footer_size),
                 with_commas(limits.largest_footer))
        .at({shown})
        .hinted("write the file with larger row groups, or with fewer columns");
  }
  std::vector<std::byte> footer(footer_size);
  TRY(file.file_->read(begin, footer));
  file.metadata_ = TRY(parse_metadata(footer, begin, shown));
  return file;
}

std::vector<std::size_t> File::readable() const {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < metadata_.columns.size(); ++i) {
    if (metadata_.columns[i].outside.empty()) columns.push_back(i);
  }
  return columns;
}

Result<std::size_t> File::column(std::string_view name) const {
  const std::string part = std::string(name) + ".";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < metadata_.columns.size(); ++i) {
    const Column& column = metadata_.columns[i];
    if (!column.outside.empty() && (column.name == name || column.name.starts_with(part))) {
      return error(ErrorKind::unsupported, "column '{}' is {}, which is not read", name, column.outside)
          .at({shown_})
          .hinted("flat columns and lists of flat values are read: write this part as a column of its own");
    }
    if (column.outside.empty() && column.name == name) return i;
    if (column.outside.empty()) names.push_back(column.name);
  }
  return error(ErrorKind::invalid, "the file has no column '{}'", name)
      .at({shown_})
      .hinted(nearest_hint(std::string(name), names));
}

Rows Rows::of(const File& file, std::vector<std::size_t> columns, std::vector<Condition> where) {
  Rows rows;
  rows.file_ = &file;
  rows.columns_ = std::move(columns);
  for (Condition& condition : where) {
    const auto found = std::find(rows.columns_.begin(), rows.columns_.end(), condition.column);
    const auto cell = static_cast<std::size_t>(found - rows.columns_.begin());
    if (found == rows.columns_.end()) rows.columns_.push_back(condition.column);
    rows.tests_.push_back({std::move(condition), cell});
  }
  rows.cells_.resize(rows.columns_.size());
  return rows;
}

Result<bool> Rows::next_group() {
  const Metadata& metadata = file_->metadata();
  while (group_ < metadata.groups.size()) {
    const RowGroup& group = metadata.groups[group_];
    first_ += rows_;
    rows_ = group.rows;
    at_ = 0;
    ++group_;
    const bool may = std::all_of(tests_.begin(), tests_.end(), [&](const Test& test) {
      const std::size_t column = columns_[test.cell];
      return may_match(test.condition, metadata.columns[column], group.chunks[column].range);
    });
    if (!may) ++skipped_;
    if (!may || group.rows == 0) {
      at_ = rows_;
      continue;
    }
    cursors_.clear();
    for (const std::size_t column : columns_) TRY(open_cursor(column));
    return true;
  }
  return false;
}

// In the group before group_.
Status Rows::open_cursor(std::size_t index) {
  const Column& column = file_->metadata().columns[index];
  const Place place{file_->shown(), group_ - 1, column.name, -1};
  const Chunk& chunk = file_->metadata().groups[group_ - 1].chunks[index];
  cursors_.push_back(TRY(ColumnCursor::open(*file_->file_, chunk, column, place, file_->limits_.page)));
  return Done{};
}

Result<std::size_t> Rows::cell_of(std::size_t column) {
  if (failed_) return *failed_;
  Result<std::size_t> cell = find_cell(column);
  if (!cell.ok()) failed_ = cell.error();
  return cell;
}

Result<std::size_t> Rows::find_cell(std::size_t column) {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found != columns_.end()) return static_cast<std::size_t>(found - columns_.begin());
  columns_.push_back(column);
  cells_.emplace_back();
  TRY(open_cursor(column));
  for (std::int64_t i = 0; i < at_; ++i) TRY(cursors_.back()->next(cells_.back()));
  return columns_.size() - 1;
}

Status Rows::finish_group() {
  for (const auto& cursor : cursors_) TRY(cursor->finish());
  cursors_.clear();
  return Done{};
}

Result<bool> Rows::next() {
  if (failed_) return *failed_;
  Result<bool> more = advance();
  if (!more.ok()) failed_ = more.error();
  return more;
}

Result<bool> Rows::advance() {
  while (true) {
    if (at_ == rows_) {
      TRY(finish_group());
      if (!TRY(next_group())) return false;
    }
    ++at_;
    for (std::size_t i = 0; i < cursors_.size(); ++i) TRY(cursors_[i]->next(cells_[i]));
    const bool good = std::all_of(tests_.begin(), tests_.end(), [&](const Test& test) {
      return matches(test.condition, file_->metadata().columns[columns_[test.cell]], cells_[test.cell]);
    });
    if (good) return true;
  }
}

}  // namespace systole::parquet
