#include "execute/data/formats/parquet/column_writer.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "execute/data/formats/parquet/compression.h"
#include "execute/data/formats/parquet/encoder.h"
#include "execute/data/formats/parquet/thrift.h"

namespace systole::parquet {
namespace {

constexpr std::size_t kLongestBound = 1024;  // bytes of a smallest or largest text; longer ones are left out

Value::Kind kind_of(Physical type) {
  switch (type) {
    case Physical::float32:
    case Physical::float64: return Value::Kind::real;
    case Physical::bytes:
    case Physical::fixed: return Value::Kind::bytes;
    default: return Value::Kind::integer;
  }
}

// Whether the order of the type is that of its values here, so that statistics may be written.
bool is_ordered(const Column& column) {
  if (column.type == Physical::fixed) return false;
  return column.meaning != Meaning::decimal || column.type != Physical::bytes;
}

bool is_less(const Column& column, const Value& a, const Value& b) {
  switch (a.kind) {
    case Value::Kind::real: return a.real < b.real;
    case Value::Kind::bytes: return a.bytes < b.bytes;
    default:
      if (column.meaning != Meaning::unsigned_int) return a.integer < b.integer;
      if (column.type == Physical::int32)
        return static_cast<std::uint32_t>(a.integer) < static_cast<std::uint32_t>(b.integer);
      return static_cast<std::uint64_t>(a.integer) < static_cast<std::uint64_t>(b.integer);
  }
}

std::string plain_of(const Column& column, const Value& value) {
  if (value.kind == Value::Kind::bytes) return std::string(value.bytes);
  return encode(column, Encoding::plain, {&value, 1});
}

std::string levels_of(const std::vector<std::uint32_t>& levels, int largest, bool with_size) {
  if (largest == 0) return {};
  std::string runs = encode_runs(levels, std::bit_width(static_cast<unsigned>(largest)));
  if (!with_size) return runs;
  const auto size = static_cast<std::uint32_t>(runs.size());
  return std::string(reinterpret_cast<const char*>(&size), 4) + runs;
}

}  // namespace

void ColumnWriter::begin() {
  done_ = {};
  pages_.clear();
  chunk_bytes_ = 0;
  use_dictionary_ = options_.encoding == Encoding::dictionary && is_writable(column_.type, Encoding::dictionary);
  dictionary_.clear();
  dictionary_page_.clear();
  has_range_ = nan_ = false;
  done_.range.nulls = 0;
}

Encoding ColumnWriter::encoding_now() const {
  if (use_dictionary_) return Encoding::dictionary;
  const bool other = options_.encoding != Encoding::dictionary && is_writable(column_.type, options_.encoding);
  return other ? options_.encoding : Encoding::plain;
}

const char* ColumnWriter::check(const Cell& cell) const {
  if (cell.null) return column_.nullable ? nullptr : "a null, where the column has none";
  if (!column_.list && cell.values.size() != 1) return "not one value";
  for (const Value& value : cell.values) {
    if (value.is_null()) {
      if (!column_.list || !column_.nullable_elements) return "a null, where the column has none";
      continue;
    }
    if (value.kind != kind_of(column_.type)) return "a value of another kind than the column's";
    if (column_.type == Physical::fixed && value.bytes.size() != static_cast<std::size_t>(column_.width))
      return "a value of another length than the column's";
    if (value.kind == Value::Kind::bytes && value.bytes.size() > INT32_MAX / 4) return "a value longer than 512 MiB";
    const bool narrow = column_.type == Physical::int32 && column_.meaning != Meaning::unsigned_int;
    if (narrow && value.integer != static_cast<std::int32_t>(value.integer)) return "a number beyond 32 bits";
  }
  return nullptr;
}

void ColumnWriter::add_level(std::uint32_t repetition, std::uint32_t definition) {
  if (column_.max_repetition() > 0) repetition_.push_back(repetition);
  if (column_.max_definition() > 0) definition_.push_back(definition);
  ++done_.values;
  ++page_bytes_;
}

void ColumnWriter::widen(const Value& value) {
  if (!is_ordered(column_) || nan_) return;
  if (value.kind == Value::Kind::real && std::isnan(value.real)) {
    nan_ = true;  // it stands in no order
    return;
  }
  const auto keep = [&](Value& bound, std::string& text) {
    bound = value;
    if (value.kind != Value::Kind::bytes) return;
    text = std::string(value.bytes);
    bound.bytes = text;
  };
  if (!has_range_ || is_less(column_, value, lowest_)) keep(lowest_, lowest_text_);
  if (!has_range_ || is_less(column_, highest_, value)) keep(highest_, highest_text_);
  has_range_ = true;
}

void ColumnWriter::add_value(const Value& value) {
  widen(value);
  if (use_dictionary_) {
    const std::string plain = encode(column_, Encoding::plain, {&value, 1});
    const auto [entry, made] = dictionary_.try_emplace(plain, static_cast<std::uint32_t>(dictionary_.size()));
    if (made) dictionary_page_ += plain;
    indices_.push_back(entry->second);
    page_bytes_ += 4;
    return;
  }
  Value kept = value;
  if (value.kind == Value::Kind::bytes) {
    kept.integer = static_cast<std::int64_t>(texts_.size());
    texts_ += value.bytes;
    page_bytes_ += static_cast<std::int64_t>(value.bytes.size());
  }
  values_.push_back(kept);
  page_bytes_ += 8;
}

// Whether its values may go into the dictionary: as if none of them were there yet.
bool ColumnWriter::fits_dictionary(const Cell& cell) const {
  std::size_t size = dictionary_page_.size();
  for (const Value& value : cell.values) size += value.bytes.size() + sizeof(std::int64_t);
  return size <= kDictionary;
}

void ColumnWriter::add(const Cell& cell) {
  if (use_dictionary_ && !cell.null && !fits_dictionary(cell)) {
    flush();
    use_dictionary_ = false;
  }
  const auto there = static_cast<std::uint32_t>(column_.max_definition());
  ++page_rows_;
  if (cell.null || cell.values.empty()) {
    add_level(0, cell.null ? 0 : column_.nullable);
    ++page_nulls_;
  }
  for (std::size_t i = 0; i < cell.values.size() && !cell.null; ++i) {
    const bool null = cell.values[i].is_null();
    add_level(i > 0, null ? there - 1 : there);
    if (null) {
      ++page_nulls_;
    } else {
      add_value(cell.values[i]);
    }
  }
  if (page_bytes_ >= options_.page_bytes) flush();
}

void ColumnWriter::put_page(std::string& out, int kind, const std::string& levels, std::size_t repetition_size,
                            const std::string& values, std::int64_t count, Encoding encoding) {
  const bool second = kind == 3;
  const std::string body =
      second ? levels + compressed(options_.codec, values) : compressed(options_.codec, levels + values);
  ThriftWriter header;
  header.integer(1, kind);
  header.integer(2, static_cast<std::int64_t>(levels.size() + values.size()));
  header.integer(3, static_cast<std::int64_t>(body.size()));
  if (options_.crc) {
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
    header.integer(4, static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)));
  }
  header.begin(kind == 2 ? 7 : second ? 8 : 5);
  header.integer(1, count);
  if (second) {
    header.integer(2, page_nulls_);
    header.integer(3, page_rows_);
    header.integer(4, static_cast<int>(encoding));
    header.integer(5, static_cast<std::int64_t>(levels.size() - repetition_size));
    header.integer(6, static_cast<std::int64_t>(repetition_size));
  } else {
    header.integer(2, static_cast<int>(encoding));
    if (kind == 0) {
      header.integer(3, static_cast<int>(Encoding::rle));
      header.integer(4, static_cast<int>(Encoding::rle));
    }
  }
  header.end();
  header.end();
  const std::string head = header.take();
  done_.expanded += static_cast<std::int64_t>(head.size() + levels.size() + values.size());
  out += head + body;
  if (std::find(done_.encodings.begin(), done_.encodings.end(), encoding) == done_.encodings.end())
    done_.encodings.push_back(encoding);
}

void ColumnWriter::flush() {
  if (page_rows_ == 0) return;
  for (Value& value : values_) {
    if (value.kind == Value::Kind::bytes)
      value.bytes = std::string_view(texts_).substr(static_cast<std::size_t>(value.integer), value.bytes.size());
  }
  const bool second = options_.page_version == 2;
  const std::string repetition = levels_of(repetition_, column_.max_repetition(), !second);
  const std::string levels = repetition + levels_of(definition_, column_.max_definition(), !second);
  const Encoding encoding = encoding_now();
  std::string body;
  if (use_dictionary_) {
    const int width = std::max<int>(1, std::bit_width(dictionary_.size()));
    body = static_cast<char>(width) + encode_runs(indices_, width);
  } else {
    body = encode(column_, encoding, values_);
  }
  const auto levelled = static_cast<std::int64_t>(std::max(repetition_.size(), definition_.size()));
  put_page(pages_, second ? 3 : 0, levels, repetition.size(), body,
           column_.max_definition() > 0 ? levelled : page_rows_, encoding);
  chunk_bytes_ += page_bytes_;
  done_.range.nulls += page_nulls_;
  repetition_.clear();
  definition_.clear();
  values_.clear();
  indices_.clear();
  texts_.clear();
  page_bytes_ = page_rows_ = page_nulls_ = 0;
}

ColumnWriter::Written ColumnWriter::finish() {
  flush();
  // Also an empty one, where all values are null: readers want it before pages of its encoding.
  const std::vector<Encoding>& used = done_.encodings;
  if (std::find(used.begin(), used.end(), Encoding::dictionary) != used.end()) {
    put_page(done_.pages, 2, "", 0, dictionary_page_, static_cast<std::int64_t>(dictionary_.size()), Encoding::plain);
    done_.dictionary_size = static_cast<std::int64_t>(done_.pages.size());
  }
  done_.pages += pages_;
  const bool short_enough = lowest_text_.size() <= kLongestBound && highest_text_.size() <= kLongestBound;
  if (has_range_ && !nan_ && short_enough) {
    if (lowest_.kind == Value::Kind::real && lowest_.real == 0) lowest_.real = -0.0;  // so that 0 and -0 are within
    if (highest_.kind == Value::Kind::real && highest_.real == 0) highest_.real = 0.0;
    done_.range.lowest = plain_of(column_, lowest_);
    done_.range.highest = plain_of(column_, highest_);
  }
  Written done = std::move(done_);
  begin();
  return done;
}

}  // namespace systole::parquet
