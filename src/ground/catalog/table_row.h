#pragma once
// A row of one of the catalog's tables, out of a CSV file or a map of the user's YAML file: the same keys, the same
// readers. Reading notes what is wrong at the place where it stands, and goes on with a default.

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
  std::string_view table;                                // "machines": its key in a YAML file, its file's name
  std::span<const std::string_view> required, optional;  // columns
};

// From one number to another, as "1-48"; both ends the same for "4".
struct NumberRange {
  double least = 0, most = 0;
  bool holds(double value) const { return least <= value && value <= most; }
};

class TableRow {
 public:
  // Borrows everything. `own`: of the user's files.
  TableRow(const CsvTable& table, std::size_t row, bool own, std::vector<Error>& errors)
      : table_(&table), row_(row), own_(own), errors_(errors) {}
  // Notes keys that are missing or unknown.
  TableRow(const Node& map, const TableColumns& columns, std::vector<Error>& errors);

  std::string_view text(std::string_view key) const;  // "" where it is absent or empty
  bool has(std::string_view key) const { return !text(key).empty(); }
  Where where(std::string_view key) const;  // of its value; of the row where it is absent
  bool own() const { return own_; }

  std::string name(std::string_view key);  // must be there
  std::string string(std::string_view key) const { return std::string(text(key)); }
  std::optional<double> number(std::string_view key);       // 0 or more
  std::optional<std::int64_t> count(std::string_view key);  // a whole number, 0 or more
  std::optional<NumberRange> range(std::string_view key);   // "4" or "1-48"
  std::vector<std::string> list(std::string_view key);      // "a;b;c", or a list of YAML
  // Index of its text among `names`, which must hold it; 0 where it is absent.
  std::size_t one_of(std::string_view key, std::span<const std::string_view> names);
  bool yes(std::string_view key);  // yes or no; absent: no
  // source and date, which the user's rows must have; built-in rows may lack the date. Placed at `key`.
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

// All of them as one error; success without any.
Status first_of(std::vector<Error> errors);

}  // namespace systole
