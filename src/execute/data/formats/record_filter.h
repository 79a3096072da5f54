#pragma once
// `where: lang == "en" and score > 0.5`: which records are kept. An expression of
//
//   a == b  !=  <  <=  >  >=      a in ["x", "y"]      a contains "x"      not e      e and e      e or e      (e)
//
// of fields (paths, field_path.h), texts in double quotes, numbers, true, false and null. A field that is text is a number
// where it is compared with one; if it is none, that is an error, and so is any other pair of kinds. What is absent is
// null, which differs from all else, and is neither less nor greater.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/formats/field_path.h"
#include "execute/data/formats/record.h"

namespace systole {

class RecordFilter {
 public:
  // `where` is the expression's first character. Errors: invalid, at the wrong character's place.
  static Result<RecordFilter> parse(std::string_view text, const Where& where = {});
  ~RecordFilter();
  RecordFilter(RecordFilter&&) noexcept;
  RecordFilter& operator=(RecordFilter&&) noexcept;

  // Whether the record with these fields is kept. Errors: those of `field`; invalid (kinds that cannot be compared).
  using Field = std::function<Result<FieldValue>(const std::string& path)>;
  Result<bool> keeps(const Field& field) const;
  // The same of the record that the reader gave last; a path may lead into JSON that a field holds.
  Result<bool> keeps(RecordReader& reader, const DataRecord& record) const;
  // The value of a field that is given as JSON.
  static FieldValue value_of(const Node& node);
  // Comparisons of a field with a constant that hold for every record that is kept.
  std::vector<FieldComparison> needed() const;
  // The paths of the fields, as they are written; each once.
  const std::vector<std::string>& fields() const { return fields_; }
  // One of them, parsed.
  const FieldPath& path_of(const std::string& field) const { return paths_.at(field); }

  struct Expression;

 private:
  RecordFilter();
  std::unique_ptr<Expression> root_;
  std::vector<std::string> fields_;
  std::map<std::string, FieldPath> paths_;  // of fields_
};

}  // namespace systole
