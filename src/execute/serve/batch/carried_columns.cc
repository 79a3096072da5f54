#include "execute/serve/batch/carried_columns.h"

#include <algorithm>
#include <optional>

namespace systole {
namespace {

using Type = ResultColumn::Type;

// What a value is, alone or in a list.
struct Shape {
  Type type = Type::text;
  bool list = false;
  bool mixed = false;  // written as text: of several types, or JSON
  bool empty = false;  // of lists, none of which has an item yet
  bool exact = true;   // integers that a double holds

  friend bool operator==(const Shape&, const Shape&) = default;
};
constexpr Shape kMixed{Type::text, false, true};

Type type_of(const Node& scalar) {
  if (scalar.kind() == NodeKind::boolean) return Type::boolean;
  if (scalar.kind() != NodeKind::number) return Type::text;
  if (scalar.as_int().ok()) return Type::integer;
  const bool is_whole = scalar.text().find_first_of(".eE") == std::string::npos;  // beyond 64 bits
  return !is_whole && scalar.as_double().ok() ? Type::real : Type::text;
}

bool is_exact(const Node& scalar) {
  const Result<std::int64_t> whole = scalar.as_int();
  if (scalar.kind() != NodeKind::number || !whole.ok()) return true;
  const auto real = static_cast<double>(*whole);
  return real < 0x1p63 && static_cast<std::int64_t>(real) == *whole;
}

Shape both(const Shape& a, const Shape& b) {
  if (a == b || (b.empty && a.list)) return a;
  if (a.empty && b.list) return b;
  const auto is_number = [](const Shape& shape) { return shape.type == Type::integer || shape.type == Type::real; };
  const bool exact = a.exact && b.exact;
  if (a.list == b.list && a.type == Type::integer && b.type == Type::integer)
    return {Type::integer, a.list, false, false, exact};
  if (a.list == b.list && is_number(a) && is_number(b) && exact) return {Type::real, a.list};
  return kMixed;
}

// Nothing: null, which every column may be.
std::optional<Shape> shape_of(const Node& value) {
  if (value.is_null()) return std::nullopt;
  if (value.is_scalar()) return Shape{type_of(value), false, false, false, is_exact(value)};
  if (!value.is_sequence()) return kMixed;
  if (value.items().empty()) return Shape{Type::text, true, false, true};
  std::optional<Shape> all;
  for (const Node& item : value.items()) {
    if (item.is_null() || !item.is_scalar()) return kMixed;
    const Shape shape{type_of(item), true, false, false, is_exact(item)};
    all = all ? both(*all, shape) : shape;
  }
  return all;
}

Node value_of(const CarriedColumn& column, const Node& row) {
  const Result<const Node*> value = FieldTemplate::of_field(column.field).value(row);
  return value.ok() ? **value : Node();
}

// As a column of texts has it.
Node text_of(const Node& value) {
  if (value.is_null() || value.kind() == NodeKind::string) return value;
  return value.is_scalar() ? Node(value.text()) : Node(to_json(value));
}

}  // namespace

Status check_carried(const BatchJob& job, const BatchInput& input) {
  for (const CarriedColumn& column : job.columns) {
    std::optional<Error> missing;
    bool is_there = input.rows() == 0;
    for (std::size_t row = 0; row < input.rows() && !is_there; ++row) {
      const Result<Node> fields = input.fields(row);
      if (!fields.ok()) continue;
      Result<const Node*> value = FieldTemplate::of_field(column.field).value(*fields);
      is_there = value.ok();
      if (!is_there && !missing) missing = std::move(value).error();
    }
    if (is_there || !missing) continue;
    return key_error(ErrorKind::invalid, "columns", "the rows of '{}' have no field '{}'", input.file(), column.field)
        .hinted(missing->hint);
  }
  return {};
}

std::vector<ResultColumn> carried_columns(const BatchJob& job, const BatchInput& input) {
  std::vector<std::optional<Shape>> shapes(job.columns.size());
  for (std::size_t row = 0; row < input.rows() && !shapes.empty(); ++row) {
    const Result<Node> fields = input.fields(row);
    if (!fields.ok()) continue;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::optional<Shape> shape = shape_of(value_of(job.columns[i], *fields));
      if (shape) shapes[i] = shapes[i] ? both(*shapes[i], *shape) : *shape;
    }
  }
  std::vector<ResultColumn> columns;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Shape shape = shapes[i].value_or(Shape());
    columns.push_back({job.columns[i].name, shape.type, shape.list});
  }
  return columns;
}

ResultRow carried_row(const BatchJob& job, const BatchInput& input, std::size_t row,
                      const std::vector<ResultColumn>& columns) {
  ResultRow values(columns.size());
  const Result<Node> fields = columns.empty() ? Result<Node>(Node()) : input.fields(row);
  if (!fields.ok()) return values;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Node value = value_of(job.columns[i], *fields);
    const bool is_text = columns[i].type == Type::text && !columns[i].list;
    values[i] = is_text ? text_of(value) : std::move(value);
  }
  return values;
}

}  // namespace systole
