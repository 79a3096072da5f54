#include "execute/data/formats/record_filter.h"

#include <algorithm>
#include <optional>

#include "execute/data/formats/filter_expression.h"

namespace systole {

using Kind = FieldValue::Kind;

namespace {

using Expression = RecordFilter::Expression;
using Op = Expression::Op;

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::number: return "a number";
    case Kind::text: return "a text";
  }
  return "?";
}

std::string shown_of(const Expression& expression, const FieldValue& value) {
  if (expression.op == Op::field) return fmt::format("'{}' ({})", expression.path, kind_name(value.kind));
  return kind_name(value.kind);
}

class Evaluation {
 public:
  explicit Evaluation(const RecordFilter::Field& field) : field_(field) {}

  Result<bool> holds(const Expression& expression) {
    switch (expression.op) {
      case Op::negated: return !TRY(holds(expression.inner[0]));
      case Op::both:
        for (const Expression& part : expression.inner)
          if (!TRY(holds(part))) return false;
        return true;
      case Op::either:
        for (const Expression& part : expression.inner)
          if (TRY(holds(part))) return true;
        return false;
      case Op::constant:
      case Op::field: {
        const FieldValue value = TRY(value_of(expression));
        if (value.kind == Kind::null) return false;
        if (value.kind == Kind::boolean) return value.boolean;
        if (value.kind == Kind::text && (value.text == "true" || value.text == "false")) return value.text == "true";
        return error(ErrorKind::invalid, "where: {} is neither true nor false", shown_of(expression, value))
            .hinted("compare it with something: field == \"x\"");
      }
      case Op::in:
        for (std::size_t i = 1; i < expression.inner.size(); ++i)
          if (TRY(compares(Op::equal, expression.inner[0], expression.inner[i]))) return true;
        return false;
      default: return compares(expression.op, expression.inner[0], expression.inner[1]);
    }
  }

 private:
  Result<FieldValue> value_of(const Expression& expression) {
    if (expression.op == Op::field) return field_(expression.path);
    return expression.value;
  }

  Result<bool> compares(Op op, const Expression& a, const Expression& b) {
    FieldValue left = TRY(value_of(a)), right = TRY(value_of(b));
    if (left.kind == Kind::null || right.kind == Kind::null) {
      const bool same = left.kind == right.kind;
      return op == Op::equal ? same : op == Op::differs && !same;
    }
    // What CSV and the members of a tar hold is text: a field of it is converted to the other side's kind.
    for (const bool swapped : {false, true}) {
      FieldValue& from = swapped ? right : left;
      const Expression& source = swapped ? b : a;
      const FieldValue& to = swapped ? left : right;
      if (source.op != Op::field || from.kind != Kind::text || to.kind == Kind::text || op == Op::contains) continue;
      if (!convert(from, to.kind))
        return error(ErrorKind::invalid, "where: '{}' is '{}', and it is compared with {}", source.path,
                     from.text.substr(0, 50), kind_name(to.kind));
    }
    if (left.kind != right.kind || (op == Op::contains && left.kind != Kind::text) ||
        (left.kind == Kind::boolean && op != Op::equal && op != Op::differs)) {
      return error(ErrorKind::invalid, "where: {} cannot be compared so with {}", shown_of(a, left), shown_of(b, right))
          .hinted(left.kind == Kind::number && right.kind == Kind::text ? "write the number without quotes" : "");
    }
    if (left.kind == Kind::text) {
      if (op == Op::contains) return left.text.find(right.text) != std::string::npos;
      return ordered(op, left.text, right.text);
    }
    if (left.integer && right.integer) return ordered(op, *left.integer, *right.integer);
    if (left.kind == Kind::number) return ordered(op, left.number, right.number);
    return ordered(op, left.boolean, right.boolean);
  }

  static bool convert(FieldValue& value, Kind to) {
    const std::string& text = value.text;
    if (to == Kind::boolean) {
      value.boolean = text == "true" || text == "True" || text == "1";
      const bool no = text == "false" || text == "False" || text == "0";
      value.kind = to;
      return value.boolean || no;
    }
    const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
    return first < end && read_number(std::string_view(text).substr(first, end - first), value);
  }

  template <typename T>
  static bool ordered(Op op, const T& a, const T& b) {
    switch (op) {
      case Op::equal: return a == b;
      case Op::differs: return a != b;
      case Op::less: return a < b;
      case Op::at_most: return a <= b;
      case Op::more: return a > b;
      default: return a >= b;
    }
  }

  const RecordFilter::Field& field_;
};

}  // namespace

RecordFilter::RecordFilter() = default;
RecordFilter::~RecordFilter() = default;
RecordFilter::RecordFilter(RecordFilter&&) noexcept = default;
RecordFilter& RecordFilter::operator=(RecordFilter&&) noexcept = default;

Result<RecordFilter> RecordFilter::parse(std::string_view text, const Where& where) {
  RecordFilter filter;
  filter.root_ = std::make_unique<Expression>(TRY(parse_filter(text, where, filter.fields_)));
  for (const std::string& field : filter.fields_) filter.paths_.emplace(field, TRY(FieldPath::parse(field)));
  return filter;
}

FieldValue RecordFilter::value_of(const Node& node) {
  FieldValue value;
  switch (node.kind()) {
    case NodeKind::null: break;
    case NodeKind::boolean:
      value.kind = Kind::boolean;
      value.boolean = node.text() == "true";
      break;
    case NodeKind::number:
      if (read_number(node.text(), value)) break;
      [[fallthrough]];
    case NodeKind::string:
      value.kind = Kind::text;
      value.text = node.text();
      break;
    case NodeKind::sequence:
    case NodeKind::map:
      value.kind = Kind::text;
      value.text = to_json(node);
      break;
  }
  return value;
}

std::vector<FieldComparison> RecordFilter::needed() const {
  std::vector<FieldComparison> all;
  const auto take = [&](const Expression& part) {
    using To = FieldComparison::Op;
    static constexpr std::pair<Op, To> kSame[] = {{Op::equal, To::equal},
                                                  {Op::less, To::less},
                                                  {Op::at_most, To::at_most},
                                                  {Op::more, To::more},
                                                  {Op::at_least, To::at_least}};
    const auto* same = std::ranges::find(kSame, part.op, &std::pair<Op, To>::first);
    if (same == std::end(kSame) || part.inner[0].op != Op::field || part.inner[1].op != Op::constant) return;
    if (part.inner[1].value.kind == Kind::null) return;
    all.push_back({part.inner[0].path, same->second, part.inner[1].value});
  };
  if (root_->op == Op::both)
    for (const Expression& part : root_->inner) take(part);
  else
    take(*root_);
  return all;
}

Result<bool> RecordFilter::keeps(const Field& field) const { return Evaluation(field).holds(*root_); }

Result<bool> RecordFilter::keeps(RecordReader& reader, const DataRecord& record) const {
  std::optional<std::vector<std::string>> all;
  return keeps([&](const std::string& path) -> Result<FieldValue> {
    if (path.find_first_of(".[") == path.npos) return value_of(TRY(reader.value(record, path)));
    if (!all) all = reader.field_names();
    const std::vector<std::string>& names = *all;
    std::string_view outer;  // the longest field that is the path, or that it leads into
    for (const std::string_view name : names) {
      const bool begins = path.starts_with(name) && name.size() > outer.size();
      if (begins && (path.size() == name.size() || path[name.size()] == '.' || path[name.size()] == '[')) outer = name;
    }
    if (outer.empty() || outer == path) return value_of(TRY(reader.value(record, path)));
    const std::string_view rest = std::string_view(path).substr(outer.size());
    const FieldPath inner = TRY(FieldPath::parse(rest[0] == '.' ? rest.substr(1) : rest));
    return json_value_at(TRY(reader.field(record, outer)), inner);
  });
}

}  // namespace systole
