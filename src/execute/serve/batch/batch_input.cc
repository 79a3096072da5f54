#include "execute/serve/batch/batch_input.h"

#include <algorithm>
#include <functional>

#include "execute/data/formats/parquet/json_rows.h"
#include "ground/base/nearest.h"
#include "ground/base/utf8.h"

namespace systole {

Result<BatchInput> BatchInput::read(std::string text, const std::string& file) {
  BatchInput input;
  input.file_ = file;
  input.hash_ = Hasher().add(text).add(std::string_view(file).substr(file.rfind('.') + 1)).digest();
  if (file.ends_with(".csv")) {
    input.format_ = Format::table;
    input.table_ = TRY(CsvTable::read(std::move(text), file));
    for (std::size_t i = 0; i < input.table_->width(); ++i) input.columns_.emplace_back(input.table_->name(i));
    return input;
  }
  if (file.ends_with(".parquet")) {
    parquet::JsonRows rows = TRY(parquet::json_rows(std::move(text), file));
    input.format_ = Format::columns;
    input.columns_ = std::move(rows.columns);
    text = std::move(rows.lines);
  } else if (file.ends_with(".txt")) {
    input.format_ = Format::text;
    input.columns_ = {"text"};
  } else if (!file.ends_with(".jsonl")) {
    return key_error(ErrorKind::invalid, "input", "the name of '{}' does not say what its rows are", file)
        .hinted("give it a name that ends in .jsonl, .csv, .parquet or .txt");
  }
  input.text_ = std::make_unique<const std::string>(std::move(text));
  input.lines_ = lines_of(*input.text_);
  if (input.format_ == Format::json) std::erase_if(input.lines_, std::mem_fn(&TextLine::is_blank));
  return input;
}

Where BatchInput::where(std::size_t row) const {
  if (table_) return {file_, table_->where(row, 0).line, 0};
  return {file_, lines_[row].number, 0};
}

Result<Node> BatchInput::fields(std::size_t row) const {
  if (table_) {
    Node node = Node::map();
    for (std::size_t i = 0; i < columns_.size(); ++i) node.set(columns_[i], table_->at(row, i));
    return node;
  }
  const TextLine& line = lines_[row];
  if (format_ == Format::text) {
    if (const std::optional<std::size_t> bad = find_invalid_utf8(line.text)) {
      return error(ErrorKind::invalid, "byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(line.text[*bad]))
          .at({file_, line.number, static_cast<int>(*bad) + 1})
          .hinted("save the file as UTF-8 (iconv -t utf-8 converts it)");
    }
    return Node::map({{"text", line.text}});
  }
  return object_on(line, file_);
}

Status BatchInput::complete(BatchJob& job) const {
  if (!job.prompt && format_ == Format::text) job.prompt = FieldTemplate::of_field("text");
  if (!job.prompt && (format_ == Format::table || format_ == Format::columns)) {
    return key_error(ErrorKind::invalid, "prompt", "missing: '{}' is a table", file_)
        .coded(ErrorCode::missing_key)
        .hinted(fmt::format("name a column, as prompt: {}", columns_.front()));
  }
  if (!job.prompt && is_scored(job.kind)) {
    return key_error(ErrorKind::invalid, "prompt", "missing: rows of kind {} are no requests", name_of(job.kind))
        .coded(ErrorCode::missing_key)
        .hinted("name the field that has the text, as prompt: text");
  }
  if (!job.prompt || format_ == Format::json) return {};
  for (const std::string& field : job.prompt->fields()) {
    if (std::ranges::find(columns_, field) != columns_.end()) continue;
    return key_error(ErrorKind::invalid, "prompt", "the rows of '{}' have no field '{}'", file_, field)
        .hinted(nearest_hint(field, columns_));
  }
  return {};
}

}  // namespace systole
