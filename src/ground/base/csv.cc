#include "ground/base/csv.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "ground/base/errors.h"
#include "ground/base/nearest.h"
#include "ground/base/tree_builder.h"
#include "ground/base/units.h"

namespace systole {
namespace {

Status all_of(std::vector<Error> errors) {
  if (errors.empty()) return {};
  return together(std::move(errors));
}

}  // namespace

// One pass over the text. After a fault the scanner reads on to the end of the row, so that each fault is reported
// once.
class CsvScanner {
 public:
  explicit CsvScanner(CsvTable& table) : table_(table), text_(*table.text_) {}
  Status scan();

 private:
  void row();
  CsvTable::Field field();
  std::string_view quoted();
  std::string_view bare();
  bool at_line_end() const { return done() || text_[at_] == '\n' || (text_[at_] == '\r' && next_is('\n')); }
  bool next_is(char c) const { return at_ + 1 < text_.size() && text_[at_ + 1] == c; }
  bool done() const { return at_ == text_.size(); }
  int col() const { return static_cast<int>(at_ - line_start_) + 1; }
  void new_line() {
    ++line_;
    line_start_ = at_;
  }
  void end_line();
  void header();
  void add(Error e, int line, int col) { errors_.push_back(std::move(e).at({*table_.file_, line, col})); }

  CsvTable& table_;
  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  std::vector<Error> errors_;
};

std::string_view CsvScanner::quoted() {
  const int line = line_, column = col();
  ++at_;
  const std::size_t begin = at_;
  bool doubled = false;
  for (; !done(); ++at_) {
    if (text_[at_] == '"') {
      if (!next_is('"')) break;
      doubled = true;
      ++at_;
    } else if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
  }
  const std::string_view raw = text_.substr(begin, at_ - begin);
  if (done()) {
    add(error(ErrorKind::invalid, "the quote that opens here is never closed"), line, column);
    return raw;
  }
  ++at_;  // the closing quote
  if (!at_line_end() && text_[at_] != ',') {
    add(error(ErrorKind::invalid, "text behind a closing quote")
            .hinted("a quote within quotes is written twice: \"a \"\"b\"\" c\""),
        line_, col());
    bare();
  }
  if (!doubled) return raw;
  std::string& plain = table_.unescaped_.emplace_back();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    plain += raw[i];
    if (raw[i] == '"') ++i;
  }
  return plain;
}

std::string_view CsvScanner::bare() {
  const std::size_t begin = at_;
  for (; !at_line_end() && text_[at_] != ','; ++at_) {
    if (text_[at_] == '\r') add(error(ErrorKind::invalid, "a carriage return without a line feed"), line_, col());
    if (text_[at_] == '"' && (at_ == begin || text_[at_ - 1] != '"'))
      add(error(ErrorKind::invalid, "a quote amid a field").hinted("put the whole field into quotes"), line_, col());
  }
  return text_.substr(begin, at_ - begin);
}

CsvTable::Field CsvScanner::field() {
  CsvTable::Field found{{}, line_, col()};
  found.text = !done() && text_[at_] == '"' ? quoted() : bare();
  return found;
}

void CsvScanner::end_line() {
  if (done()) return;
  at_ += text_[at_] == '\r' ? 2 : 1;
  new_line();
}

void CsvScanner::row() {
  const std::size_t before = table_.fields_.size(), faults = errors_.size();
  const int line = line_;
  table_.fields_.push_back(field());
  while (!done() && text_[at_] == ',') {
    ++at_;
    table_.fields_.push_back(field());
  }
  end_line();
  const std::size_t width = table_.fields_.size() - before;
  if (table_.width_ == 0) {
    table_.width_ = width;
  } else if (width != table_.width_) {
    table_.fields_.resize(before);
    if (errors_.size() > faults) return;
    add(error(ErrorKind::invalid, "this row has {} field{}, and the header names {} columns", width,
              width == 1 ? "" : "s", table_.width_)
            .hinted(width > table_.width_ ? "a comma within a field needs quotes around the field"
                                          : "a field that holds nothing keeps its comma"),
        line, 1);
  }
}

void CsvScanner::header() {
  for (std::size_t i = 0; i < table_.width_; ++i) {
    const CsvTable::Field& name = table_.fields_[i];
    if (name.text.empty()) add(error(ErrorKind::invalid, "a column without a name"), name.line, name.col);
    for (std::size_t k = 0; k < i && !name.text.empty(); ++k)
      if (table_.fields_[k].text == name.text)
        add(error(ErrorKind::invalid, "the column '{}' is there twice", name.text), name.line, name.col);
  }
}

Status CsvScanner::scan() {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = line_start_ = 3;
  if (done()) return error(ErrorKind::invalid, "no header: the file is empty").at({*table_.file_, 1, 1});
  row();
  header();
  while (!done()) row();
  return all_of(std::move(errors_));
}

Result<CsvTable> CsvTable::read(std::string text, std::string_view file) {
  TRY(check_text(text, file, kGiB.count()));
  CsvTable table;
  table.text_ = std::make_unique<const std::string>(std::move(text));
  table.file_ = std::make_unique<const std::string>(file);
  TRY(CsvScanner(table).scan());
  return table;
}

std::size_t CsvTable::column(std::string_view name) const {
  for (std::size_t i = 0; i < width_; ++i)
    if (fields_[i].text == name) return i;
  return kNoColumn;
}

Where CsvTable::where(std::size_t row, std::size_t column) const {
  const Field& place = field(row, column);
  return {*file_, place.line, place.col};
}

Status CsvTable::expect_columns(std::span<const std::string_view> required,
                                std::span<const std::string_view> optional) const {
  std::vector<Error> errors;
  std::vector<std::string> missing, known;
  for (const auto& names : {required, optional}) known.insert(known.end(), names.begin(), names.end());
  for (const std::string_view name : required)
    if (column(name) == kNoColumn) missing.emplace_back(name);
  if (!missing.empty()) {
    errors.push_back(
        error(ErrorKind::invalid, "missing column{}: {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "))
            .at({*file_, 1, 1})
            .hinted(fmt::format("the first row names the columns: {}", fmt::join(required, ","))));
  }
  for (std::size_t i = 0; i < width_; ++i) {
    if (std::ranges::find(known, fields_[i].text) != known.end()) continue;
    errors.push_back(error(ErrorKind::invalid, "unknown column '{}'", fields_[i].text)
                         .at({*file_, fields_[i].line, fields_[i].col})
                         .hinted(nearest_hint(fields_[i].text, known)));
  }
  return all_of(std::move(errors));
}

}  // namespace systole
