#include "execute/data/formats/parquet/column_cursor.h"

#include <algorithm>

namespace systole::parquet {

Result<std::unique_ptr<ColumnCursor>> ColumnCursor::open(const ReadableFile& file, const Chunk& chunk,
                                                         const Column& column, Place place, PageLimits limits) {
  PageReader pages = TRY(PageReader::open(file, chunk, column, std::move(place), limits));
  return std::unique_ptr<ColumnCursor>(new ColumnCursor(std::move(pages), column, limits, chunk.values));
}

Error ColumnCursor::corrupt(const char* why) const {
  return at_place(error(ErrorKind::corrupt, "{}", why).hinted("the file is damaged: fetch or write it again"),
                  pages_.place());
}

Status ColumnCursor::read_dictionary(const Page& page) {
  if (!dictionary_bytes_.empty() || !dictionary_.empty()) return corrupt("the column has two dictionaries");
  if (page.encoding != Encoding::plain && page.encoding != Encoding::plain_dictionary)
    return corrupt("the dictionary is in another encoding than PLAIN");
  const std::size_t size = page.bytes.size();
  const std::size_t least = column_.type == Physical::fixed ? static_cast<std::size_t>(column_.width) : 4;
  if (page.values > static_cast<std::int64_t>(size / least))
    return corrupt("the dictionary has fewer values than it says");
  if (static_cast<std::int64_t>(size) > limits_.largest_page / 8) {  // a value takes up to 8 times its bytes
    return at_place(error(ErrorKind::does_not_fit, "a dictionary of {} bytes, and at most {} are read",
                          with_commas(static_cast<std::int64_t>(size)), with_commas(limits_.largest_page / 8))
                        .hinted("write the column without a dictionary"),
                    pages_.place());
  }
  dictionary_bytes_.assign(page.bytes.begin(), page.bytes.end());
  dictionary_.resize(static_cast<std::size_t>(page.values));
  Result<std::unique_ptr<Decoder>> decoder = make_decoder(column_, Encoding::plain, dictionary_bytes_, {}, page.values,
                                                          static_cast<std::size_t>(limits_.largest_page));
  if (!decoder.ok()) return at_place(std::move(decoder).error(), pages_.place());
  if (const char* why = (*decoder)->decode(dictionary_); why != nullptr) return corrupt(why);
  return Done{};
}

Result<bool> ColumnCursor::next_page() {
  Page page;
  decoder_.reset();
  while (TRY(pages_.next(page))) {
    if (page.dictionary) {
      TRY(read_dictionary(page));
      continue;
    }
    if (page.values == 0) continue;
    if (page.values > expected_ - seen_) return corrupt("the column has more values than its row group says");
    seen_ += page.values;
    page_left_ = page.values;
    repetition_levels_ = RunReader(page.repetition, column_.max_repetition());
    definition_levels_ = RunReader(page.definition, std::bit_width(static_cast<unsigned>(column_.max_definition())));
    Result<std::unique_ptr<Decoder>> decoder = make_decoder(
        column_, page.encoding, page.bytes, dictionary_, page.values, static_cast<std::size_t>(limits_.largest_page));
    if (!decoder.ok()) return at_place(std::move(decoder).error(), pages_.place());
    decoder_ = std::move(*decoder);
    return true;
  }
  return false;
}

Status ColumnCursor::read_levels(std::size_t count, std::size_t& there) {
  if (column_.max_repetition() > 0 && !repetition_levels_.read(std::span(repetition_).first(count)))
    return corrupt("the page has fewer repetition levels than values");
  if (column_.max_definition() == 0) return Done{};
  if (!definition_levels_.read(std::span(definition_).first(count)))
    return corrupt("the page has fewer definition levels than values");
  there = 0;
  const int most = column_.max_definition();
  for (std::size_t i = 0; i < count; ++i) {
    if (definition_[i] > most) return corrupt("a definition level is too high");
    there += definition_[i] == most;
  }
  return Done{};
}

Result<bool> ColumnCursor::fill() {
  if (page_left_ == 0 && !TRY(next_page())) return false;
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(page_left_, kBatch));
  std::size_t there = count;
  TRY(read_levels(count, there));
  if (const char* why = decoder_->decode(std::span(values_).first(there)); why != nullptr) return corrupt(why);
  page_left_ -= static_cast<std::int64_t>(count);
  count_ = count;
  at_ = value_at_ = 0;
  return true;
}

Status ColumnCursor::next(Cell& cell) {
  if (at_ == count_ && !TRY(fill())) return corrupt("the column has fewer rows than its row group says");
  if (column_.list) return next_list(cell);
  cell.null = column_.nullable && definition_[at_] == 0;
  cell.values = cell.null ? std::span<const Value>() : std::span<const Value>(&values_[value_at_++], 1);
  ++at_;
  return Done{};
}

Status ColumnCursor::add_element(bool there) {
  if (elements_.size() == kMostElements) return corrupt("a list has more than 16,777,216 elements");
  elements_.push_back(there ? values_[value_at_++] : Value());
  if (!there || elements_.back().kind != Value::Kind::bytes) return Done{};
  const std::string_view bytes = elements_.back().bytes;  // of a page that may be gone before the list ends
  if (static_cast<std::int64_t>(texts_.size() + bytes.size()) > limits_.largest_page)
    return corrupt("a list is larger than a page may be");
  texts_ += bytes;
  return Done{};
}

Status ColumnCursor::next_list(Cell& cell) {
  elements_.clear();
  texts_.clear();
  if (repetition_[at_] != 0) return corrupt("a column does not begin with a row");
  const int empty = column_.nullable;  // the level of a list without elements
  cell.null = definition_[at_] < empty;
  if (definition_[at_] <= empty) {
    ++at_;
    if (at_ < count_ && repetition_[at_] != 0) return corrupt("an element belongs to a list that has none");
  } else {
    do {
      if (definition_[at_] <= empty) return corrupt("an element belongs to a list that has none");
      TRY(add_element(definition_[at_] == column_.max_definition()));
      ++at_;
    } while ((at_ < count_ || TRY(fill())) && repetition_[at_] != 0);
  }
  const char* text = texts_.data();
  for (Value& element : elements_) {
    if (element.kind != Value::Kind::bytes) continue;
    element.bytes = {text, element.bytes.size()};
    text += element.bytes.size();
  }
  cell.values = elements_;
  return Done{};
}

Status ColumnCursor::finish() {
  if (at_ < count_ || page_left_ > 0 || TRY(next_page()))
    return corrupt("the column has more rows than its row group says");
  if (seen_ != expected_) return corrupt("the column has fewer values than its row group says");
  return Done{};
}

}  // namespace systole::parquet
