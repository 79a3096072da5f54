#pragma once
// A row of a catalog table, from a CSV file or from a map in the user's YAML file, with the same keys and accessors.
// Accessors record errors with their place and return a default.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/csv.h"
#include "ground/base/document.h"
#include "ground/catalog/dated.h"

namespace systole {

struct TableColumns {
  std::string_view table;                                // "machines": the YAML key and the CSV file name
  std::span<const std::string_view> required, optional;  // columns
};

// A range, "1-48"; both ends are equal for "4".
struct NumberRange {
  double least = 0, most = 0;
  bool holds(double value) const { return least <= value && value <= most; }
};

class TableRow {
 public:
  // Borrows everything. `own`: from the user's files.
  TableRow(const CsvTable& table, std::size_t row, bool own, std::vector<Error>& errors)
      : table_(&table), row_(row), own_(own), errors_(errors) {}
  // Records missing and unknown keys.
  TableRow(const Node& map, const TableColumns& columns, std::vector<Error>& errors);

  std::string_view text(std::string_view key) const;  // "" if absent or empty
  bool has(std::string_view key) const { return !text(key).empty(); }
  Where where(std::string_view key) const;  // place of its value; of the row if absent
  bool own() const { return own_; }

  std::string name(std::string_view key);  // required
  std::string string(std::string_view key) const { return std::string(text(key)); }
  std::optional<double> number(std::string_view key);       // not negative
  std::optional<std::int64_t> count(std::string_view key);  // an integer, not negative
  std::optional<NumberRange> range(std::string_view key);   // "4" or "1-48"
  std::vector<std::string> list(std::string_view key);      // "a;b;c", or a YAML list
  // The index of its text in `names`; an error if it is not there; 0 if absent.
  std::size_t one_of(std::string_view key, std::span<const std::string_view> names);
  bool yes(std::string_view key);  // yes or no; absent: no
  // Source and date. The user's rows must have both; built-in rows may lack the date. Placed at `key`.
  Dated dated(std::string_view key = "source");

  void wrong(std::string_view key, Error e) { errors_.push_back(std::move(e).at(where(key))); }

 private:
  const Node* node(std::string_view key) const { return map_ == nullptr ? nullptr : map_->find(key); }

  const CsvTable* table_ = nullptr;
  std::size_t row_ = 0;
  const Node* map_ = nullptr;
  bool own_ = true;
  std::vector<Error>& errors_;
};

// All errors as one; success if there are none.
Status first_of(std::vector<Error> errors);

}  // namespace systole
