#include "execute/data/bigquery/bigquery_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "ground/base/letter_case.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

constexpr std::array<std::string_view, 13> kTypes{"STRING", "BYTES",     "INT64",     "FLOAT64", "BOOL",
                                                  "DATE",   "DATETIME",  "TIMESTAMP", "TIME",    "NUMERIC",
                                                  "JSON",   "GEOGRAPHY", "BIGNUMERIC"};
constexpr std::array<std::string_view, 3> kModes{"NULLABLE", "REQUIRED", "REPEATED"};
constexpr int kNumericScale = 9, kNumericWhole = 29;  // digits behind and before the point that NUMERIC holds
constexpr int kBigNumericWhole = 38;                  // before it, of BIGNUMERIC

const char* type_of(const parquet::Column& column) {
  switch (column.meaning) {
    case parquet::Meaning::text:
    case parquet::Meaning::json: return "STRING";
    case parquet::Meaning::decimal:
      return column.scale <= kNumericScale && column.precision - column.scale <= kNumericWhole ? "NUMERIC"
                                                                                               : "BIGNUMERIC";
    case parquet::Meaning::date: return "DATE";
    case parquet::Meaning::time: return "TIME";
    case parquet::Meaning::timestamp: return column.utc ? "TIMESTAMP" : "DATETIME";
    default: break;
  }
  switch (column.type) {
    case parquet::Physical::boolean: return "BOOL";
    case parquet::Physical::int32:
    case parquet::Physical::int64: return "INT64";
    case parquet::Physical::float32:
    case parquet::Physical::float64: return "FLOAT64";
    default: return "BYTES";
  }
}

template <std::size_t N>
Result<std::string> word_of(std::string_view text, const std::array<std::string_view, N>& words) {
  std::string word = upper_case(text);
  if (std::ranges::find(words, word) != words.end()) return word;
  return error(ErrorKind::invalid, "BigQuery has no type or mode '{}' here", text)
      .hinted(nearest_hint(word, std::vector<std::string>(words.begin(), words.end())));
}

// The names so far: BigQuery tells them apart by their letters, whatever the case.
class Names {
 public:
  Status add(const std::string& name) {
    const auto [there, added] = names_.try_emplace(lower_case(name), name);
    if (added) return {};
    if (there->second == name)
      return error(ErrorKind::invalid, "the field '{}' is there twice", name).hinted("name each once");
    return error(ErrorKind::invalid, "'{}' and '{}' are one name for BigQuery, which ignores their case", there->second,
                 name)
        .hinted("rename one of them");
  }

 private:
  std::unordered_map<std::string, std::string> names_;
};

}  // namespace

Status check_bigquery_name(std::string_view name) {
  const bool fits =
      !name.empty() && name.size() <= 300 && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
      std::ranges::all_of(name, [](unsigned char c) { return (c < 128 && std::isalnum(c) != 0) || c == '_'; });
  if (fits) return {};
  return error(ErrorKind::invalid, "a column of BigQuery cannot be called '{}'", name)
      .hinted("letters, digits and '_', first a letter; a batch names its columns: columns: { lang: meta.lang }");
}

Result<std::vector<BigQueryField>> parse_bigquery_fields(std::string_view text) {
  std::vector<BigQueryField> fields;
  Names names;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view one = text.substr(at, end - at);
    at = end + 1;
    const std::size_t type = one.find(':'), mode = type == one.npos ? type : one.find(':', type + 1);
    if (type == one.npos)
      return error(ErrorKind::invalid, "'{}' is no field", one).hinted("id:INT64,lang:STRING,vector:FLOAT64:REPEATED");
    BigQueryField field{.name = std::string(one.substr(0, type)), .type = {}};
    TRY(check_bigquery_name(field.name));
    TRY(names.add(field.name));
    field.type = TRY(word_of(one.substr(type + 1, mode == one.npos ? mode : mode - type - 1), kTypes));
    if (mode != one.npos) field.mode = TRY(word_of(one.substr(mode + 1), kModes));
    fields.push_back(std::move(field));
  }
  return fields;
}

Result<std::vector<BigQueryField>> bigquery_fields(const parquet::Metadata& metadata) {
  std::vector<BigQueryField> fields;
  Names names;
  for (const parquet::Column& column : metadata.columns) {
    if (!column.outside.empty())
      return error(ErrorKind::unsupported, "column '{}' is {}, and its type is not known here", column.name,
                   column.outside)
          .hinted("leave --schema out: BigQuery takes the types of a Parquet file itself");
    if (column.meaning == parquet::Meaning::decimal && column.precision - column.scale > kBigNumericWhole)
      return error(ErrorKind::unsupported, "column '{}' has decimals of {} digits before the point, and BIGNUMERIC {}",
                   column.name, column.precision - column.scale, kBigNumericWhole)
          .hinted("write it with a lower precision, or as text");
    TRY(check_bigquery_name(column.name));
    TRY(names.add(column.name));
    fields.push_back({column.name, type_of(column),
                      column.list       ? "REPEATED"
                      : column.nullable ? "NULLABLE"
                                        : "REQUIRED"});
  }
  return fields;
}

}  // namespace systole
