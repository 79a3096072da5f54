#include "execute/data/formats/csv_records.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include "execute/data/formats/byte_window.h"
#include "execute/data/formats/compressing_file.h"
#include "execute/data/formats/field_names.h"

namespace systole {
namespace {

bool has_ending(std::string_view path, std::string_view name) {
  for (const std::string_view compressed : {".gz", ".zst"})
    if (path.ends_with(compressed)) path.remove_suffix(compressed.size());
  return path.ends_with(name);
}

// Splits one row; the fields are views of the text, or of unescaped copies.
class RowScanner {
 public:
  explicit RowScanner(char separator) : separator_(separator) {}

  // cut: the text ends first; a quote amid a field, text behind one; a CR amid a field, as old line ends are.
  enum class Found { row, cut, amid, behind, carriage };
  // The row at the start of `text`; `last`: the file ends with it. Sets fields() and length().
  Found scan(std::string_view text, bool last) {
    fields_.clear();
    unescaped_.clear();
    Found worst = Found::row;
    std::size_t at = 0;
    while (true) {
      const bool quoted = at < text.size() && text[at] == '"';
      const std::size_t begin = at;
      if (quoted) {
        bool doubled = false;
        if (!close_quote(text, at, doubled)) return Found::cut;
        add(text.substr(begin + 1, at - begin - 2), doubled);
      }
      const std::size_t rest = at;
      while (at < text.size() && text[at] != separator_ && text[at] != '\n') {
        if (text[at] == '"') worst = Found::amid;
        ++at;
        if (text[at - 1] == '\r' && at < text.size() && text[at] != '\n') worst = Found::carriage;
      }
      if (at == text.size() && !last) return Found::cut;
      const bool line_end = at == text.size() || text[at] == '\n';
      std::size_t end = at;
      if (line_end && end > rest && text[end - 1] == '\r') --end;
      if (!quoted) fields_.push_back(text.substr(begin, end - begin));
      if (quoted && end != rest) worst = Found::behind;
      if (line_end) break;
      ++at;
    }
    length_ = at == text.size() ? at : at + 1;
    return worst;
  }
  std::span<const std::string_view> fields() const { return fields_; }
  std::size_t length() const { return length_; }  // with the end of the line

 private:
  // From an opening quote to behind the closing one; false if the text ends first.
  static bool close_quote(std::string_view text, std::size_t& at, bool& doubled) {
    for (++at;; at += 2, doubled = true) {
      at = text.find('"', at);
      if (at == text.npos) return false;
      if (at + 1 == text.size() || text[at + 1] != '"') break;
    }
    ++at;
    return true;
  }
  void add(std::string_view raw, bool doubled) {
    if (!doubled) return fields_.push_back(raw);
    std::string& plain = unescaped_.emplace_back();
    for (std::size_t i = 0; i < raw.size(); ++i) {
      plain += raw[i];
      if (raw[i] == '"') ++i;
    }
    fields_.push_back(plain);
  }

  char separator_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unescaped_;
  std::size_t length_ = 0;
};

class CsvReader : public RecordReader {
 public:
  CsvReader(std::unique_ptr<ByteWindow> window, const RecordFile& file, const RecordLimits& limits)
      : window_(std::move(window)),
        shown_(file.shown),
        largest_(limits.largest_record.count()),
        row_(has_ending(file.path, ".tsv") ? '\t' : ',') {}

  Status read_header() {
    if (TRY(window_->bytes(0, 3)) == "\xEF\xBB\xBF") at_ = 3;
    std::string_view text;
    if (!TRY(read_row(text))) return error(ErrorKind::invalid, "no header: the file is empty").at({shown_, 1, 1});
    std::unordered_set<std::string_view> seen;
    for (const std::string_view name : row_.fields()) {
      if (name.empty() || !seen.insert(name).second)
        return error(ErrorKind::invalid, "the first row names the columns, and '{}' is {}", name,
                     name.empty() ? "no name" : "there twice")
            .at({shown_, 1, 1})
            .hinted("put a row of names before the others");
      names_.emplace_back(name);
    }
    return Done{};
  }

  Result<bool> next(DataRecord& record) override {
    goes_on_ = false;
    std::string_view text;
    if (!TRY(read_row(text))) return false;
    if (row_.fields().size() != names_.size()) {
      const std::size_t width = row_.fields().size();
      return wrong(
          fmt::format("the row has {} field{}, and the header names {}", width, width == 1 ? "" : "s", names_.size()),
          width > names_.size() ? "a separator within a field needs quotes around the field"
                                : "a field that holds nothing keeps its separator");
    }
    goes_on_ = true;
    record = {next_++, begin_, text};
    return true;
  }
  bool goes_on() const override { return goes_on_; }

  Result<std::string_view> field(const DataRecord& record, std::string_view name) override {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name || (is_whole(name) && names_.size() == 1)) return row_.fields()[i];
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    return nested_field(
        {shown_, record.index, record.byte}, "row", name, names,
        [&](std::size_t i) -> Result<std::string_view> { return row_.fields()[i]; }, scratch_);
  }
  std::vector<std::string> field_names() override { return names_; }

 private:
  // Of the row that was read: the reader goes on behind it.
  Error wrong(std::string what, std::string hint) {
    goes_on_ = true;
    return record_error(ErrorKind::invalid, {shown_, next_++, begin_}, what, std::move(hint));
  }

  // Into row_; false at the end.
  Result<bool> read_row(std::string_view& text) {
    for (std::int64_t ahead = 32 << 10;; ahead *= 4) {
      const std::string_view bytes = TRY(window_->bytes(at_, at_ + ahead));
      if (bytes.empty()) return false;
      const std::size_t blank = bytes[0] == '\n' ? 1 : bytes.starts_with("\r\n") ? 2 : 0;
      if (blank > 0 && names_.size() != 1) {
        at_ += static_cast<std::int64_t>(blank);
        ahead = 8 << 10;
        continue;
      }
      const bool last = static_cast<std::int64_t>(bytes.size()) < ahead;
      begin_ = at_;
      const RowScanner::Found found = row_.scan(bytes, last);
      if (found == RowScanner::Found::cut) {
        if (!last && ahead <= largest_) continue;
        return record_error(ErrorKind::invalid, {shown_, next_, at_},
                            last ? std::string("a quote in this row is never closed")
                                 : fmt::format("a row of more than {} bytes", with_commas(largest_)),
                            "a quote within quotes is written twice: \"a \"\"b\"\" c\"");
      }
      at_ += static_cast<std::int64_t>(row_.length());
      text = bytes.substr(0, row_.length());
      while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
      if (static_cast<std::int64_t>(text.size()) > largest_)
        return wrong(fmt::format("a row of {} bytes, and the largest allowed is {}", with_commas(text.size()),
                                 with_commas(largest_)),
                     "raise `largest_document`");
      if (found == RowScanner::Found::carriage)
        return wrong("a carriage return (CR) amid a field without quotes",
                     "lines end in LF or CR LF: tr '\\r' '\\n' < OLD > NEW converts those that end in CR alone");
      if (found == RowScanner::Found::amid) return wrong("a quote amid a field", "put the whole field into quotes");
      if (found == RowScanner::Found::behind)
        return wrong("text behind a closing quote", "a quote within quotes is written twice: \"a \"\"b\"\" c\"");
      return true;
    }
  }

  std::unique_ptr<ByteWindow> window_;
  std::string shown_;
  std::int64_t largest_;
  RowScanner row_;
  std::vector<std::string> names_;
  std::string scratch_;
  std::int64_t at_ = 0, begin_ = 0, next_ = 0;
  bool goes_on_ = false;
};

class CsvWriter : public RecordWriter {
 public:
  CsvWriter(std::unique_ptr<CompressingFile> file, char separator) : file_(std::move(file)), separator_(separator) {}

  Status add(std::string_view) override {
    return error(ErrorKind::unsupported, "a row has columns, and this record has none");
  }
  Status add_fields(std::span<const RecordField> fields) override {
    if (names_.empty()) {
      std::vector<std::string> names;
      for (const RecordField& field : fields) names.emplace_back(field.name);
      TRY(begin(std::move(names)));
    }
    std::vector<std::string_view> values;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const auto field = std::ranges::find(fields, names_[i], &RecordField::name);
      if (field == fields.end() || fields.size() != names_.size())
        return record_error(ErrorKind::invalid, {"", records_, -1}, "the record has not the columns of the first");
      values.push_back(field->bytes);
    }
    ++records_;
    return write(values);
  }
  Status finish() override { return file_->finish(); }
  // Writes the header. REQUIRES: before the first record.
  Status begin(std::vector<std::string> names) {
    names_ = std::move(names);
    return write(std::vector<std::string_view>(names_.begin(), names_.end()));
  }

 private:
  Status write(std::span<const std::string_view> values) {
    line_.clear();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view value = values[i];
      if (i > 0) line_ += separator_;
      const bool quoted = value.find_first_of("\"\r\n") != value.npos || value.find(separator_) != value.npos ||
                          value.starts_with("\xEF\xBB\xBF") || (value.empty() && values.size() == 1);
      if (!quoted) {
        line_ += value;
        continue;
      }
      line_ += '"';
      for (const char c : value) line_.append(c == '"' ? 2 : 1, c);
      line_ += '"';
    }
    line_ += '\n';
    return file_->append(line_);
  }

  std::unique_ptr<CompressingFile> file_;
  char separator_;
  std::vector<std::string> names_;
  std::string line_;
  std::int64_t records_ = 0;
};

}  // namespace

bool is_csv_name(std::string_view path) { return has_ending(path, ".csv") || has_ending(path, ".tsv"); }

Result<std::unique_ptr<RecordReader>> open_csv(const RecordFile& file, const RecordLimits& limits) {
  auto reader = std::make_unique<CsvReader>(TRY(ByteWindow::open(file)), file, limits);
  TRY(reader->read_header());
  return std::unique_ptr<RecordReader>(std::move(reader));
}

Result<std::unique_ptr<RecordWriter>> create_csv(Store& store, const std::string& path,
                                                 const std::vector<std::string>& columns) {
  std::unique_ptr<CompressingFile> file =
      TRY(create_compressed(store, path, compression_of(path, Compression::by_name)));
  auto writer = std::make_unique<CsvWriter>(std::move(file), has_ending(path, ".tsv") ? '\t' : ',');
  if (!columns.empty()) TRY(writer->begin(columns));
  return std::unique_ptr<RecordWriter>(std::move(writer));
}

}  // namespace systole
