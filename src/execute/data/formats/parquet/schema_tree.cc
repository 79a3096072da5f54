#include "execute/data/formats/parquet/schema_tree.h"

#include <algorithm>

namespace systole::parquet {
namespace {

using Type = ThriftType;
using Repetition = SchemaElement::Repetition;

constexpr int kDeepest = 64;
// A leaf's name is its whole path, so that few bytes of nested nodes name far more.
constexpr std::size_t kMostNames = std::size_t{16} << 20;

TimeUnit read_unit(ThriftReader& thrift, Type type) {
  TimeUnit unit = TimeUnit::micros;
  if (type != Type::structure) thrift.refuse("a unit of time has another type");
  thrift.fields([&](int id, Type) {
    unit = id == 1 ? TimeUnit::millis : id == 3 ? TimeUnit::nanos : TimeUnit::micros;
    return false;
  });
  return unit;
}

void read_time(ThriftReader& thrift, Column& column) {
  thrift.fields([&](int id, Type type) {
    if (id == 1) return column.utc = thrift.boolean(type), true;
    if (id == 2) return column.unit = read_unit(thrift, type), true;
    return false;
  });
}

// A decimal's scale or precision; mismatch() refuses odd ones.
int digits_of(std::int64_t number) { return static_cast<int>(std::clamp<std::int64_t>(number, -1, 1000)); }

// A union: one of its fields is there, a struct.
void read_logical(ThriftReader& thrift, SchemaElement& element) {
  Column& column = element.leaf;
  thrift.fields([&](int id, Type type) {
    if (type != Type::structure) return false;
    const auto means = [&](Meaning meaning) {
      column.meaning = meaning;
      return false;
    };
    switch (id) {
      case 1:
      case 4: return means(Meaning::text);
      case 2: return element.map = true, false;
      case 3: return element.list = true, false;
      case 5:
        column.meaning = Meaning::decimal;
        thrift.fields([&](int part, Type t) {
          if (part == 1) return column.scale = digits_of(thrift.integer(t)), true;
          if (part == 2) return column.precision = digits_of(thrift.integer(t)), true;
          return false;
        });
        return true;
      case 6: return means(Meaning::date);
      case 7: column.meaning = Meaning::time; return read_time(thrift, column), true;
      case 8: column.meaning = Meaning::timestamp; return read_time(thrift, column), true;
      case 10:
        thrift.fields([&](int part, Type t) {
          if (part == 2 && !thrift.boolean(t)) column.meaning = Meaning::unsigned_int;
          return part == 2;
        });
        return true;
      case 12: return means(Meaning::json);
      case 14: return means(Meaning::uuid);
      case 15: return means(Meaning::float16);
      case 16: return element.strange = "a VARIANT", false;
      case 17:
      case 18: return element.strange = "a geometry", false;
      default: return false;
    }
  });
}

// The older annotation, where the newer one is not there.
void apply_converted(SchemaElement& element, std::int64_t scale, std::int64_t precision) {
  Column& column = element.leaf;
  const auto timed = [&](Meaning meaning, TimeUnit unit) {
    column.meaning = meaning;
    column.unit = unit;
    column.utc = true;
  };
  switch (element.converted) {
    case 0:
    case 4: column.meaning = Meaning::text; break;
    case 1:
    case 2: element.map = true; break;
    case 3: element.list = true; break;
    case 5:
      column.meaning = Meaning::decimal;
      column.scale = digits_of(scale);
      column.precision = digits_of(precision);
      break;
    case 6: column.meaning = Meaning::date; break;
    case 7: timed(Meaning::time, TimeUnit::millis); break;
    case 8: timed(Meaning::time, TimeUnit::micros); break;
    case 9: timed(Meaning::timestamp, TimeUnit::millis); break;
    case 10: timed(Meaning::timestamp, TimeUnit::micros); break;
    case 11:
    case 12:
    case 13:
    case 14: column.meaning = Meaning::unsigned_int; break;
    case 19: column.meaning = Meaning::json; break;
    case 21: element.strange = "an INTERVAL"; break;
    default: break;
  }
}

// Whether values of this type can mean that; a lying annotation would be read wrongly.
const char* mismatch(const Column& column) {
  const bool integer = column.type == Physical::int32 || column.type == Physical::int64;
  const bool bytes = column.type == Physical::bytes || column.type == Physical::fixed;
  switch (column.meaning) {
    case Meaning::plain: return nullptr;
    case Meaning::text:
    case Meaning::json: return bytes ? nullptr : "a text that is no BYTE_ARRAY";
    case Meaning::unsigned_int:
    case Meaning::date:
    case Meaning::time:
    case Meaning::timestamp: return integer ? nullptr : "a time or integer that is neither INT32 nor INT64";
    case Meaning::decimal:
      if (column.scale < 0 || column.scale > 38) return "a decimal with a scale outside 0 to 38";
      if (column.precision < 0 || column.precision > 76) return "a decimal with a precision outside 0 to 76";
      return integer || bytes ? nullptr : "a decimal of an odd type";
    case Meaning::uuid:
      return column.type == Physical::fixed && column.width == 16 ? nullptr : "a UUID not of 16 bytes";
    case Meaning::float16:
      return column.type == Physical::fixed && column.width == 2 ? nullptr : "a FLOAT16 not of 2 bytes";
  }
  return nullptr;
}

// Walks the tree with the place of the next node.
class Tree {
 public:
  explicit Tree(const std::vector<SchemaElement>& nodes) : nodes_(nodes) {}

  Result<std::vector<Column>> columns() {
    if (nodes_.empty() || nodes_[0].has_type) return bad("it has no root");
    at_ = 1;
    for (std::int64_t i = 0; i < nodes_[0].children; ++i) TRY(field());
    if (at_ != nodes_.size()) return bad("it has nodes that belong to no column");
    return std::move(columns_);
  }

 private:
  static Error bad(const char* why) {
    return error(ErrorKind::corrupt, "the footer's schema is no tree: {}", why)
        .hinted("the file is damaged: fetch or write it again");
  }

  // A child of the root, with all below it.
  Status field() {
    if (at_ >= nodes_.size()) return bad("a column is missing");
    const SchemaElement& node = nodes_[at_];
    if (node.has_type) {
      Column column = leaf_of(node);
      column.list = node.repetition == Repetition::repeated;  // before there were groups around lists
      column.nullable = node.repetition == Repetition::optional;
      columns_.push_back(std::move(column));
      ++at_;
      return Done{};
    }
    if (list(node)) return Done{};
    return outside(node.leaf.name, node.map ? "a map" : node.list ? "a list of lists or structs" : "a struct", 0);
  }

  // A list of flat elements, taken; or false, and nothing is.
  bool list(const SchemaElement& node) {
    if (!node.list || node.children != 1 || node.repetition == Repetition::repeated) return false;
    if (at_ + 1 >= nodes_.size() || nodes_[at_ + 1].repetition != Repetition::repeated) return false;
    const SchemaElement* element = &nodes_[at_ + 1];
    std::size_t taken = 2;
    if (!element->has_type) {
      if (element->children != 1 || at_ + 2 >= nodes_.size()) return false;
      element = &nodes_[at_ + 2];
      if (!element->has_type || element->repetition == Repetition::repeated) return false;
      taken = 3;
    }
    Column column = leaf_of(*element);
    column.name = node.leaf.name;
    column.list = true;
    column.nullable = node.repetition == Repetition::optional;
    column.nullable_elements = element->repetition == Repetition::optional;
    columns_.push_back(std::move(column));
    at_ += taken;
    return true;
  }

  // The leaves below the node at at_, as columns that are not read.
  Status outside(const std::string& path, const char* why, int depth) {
    if (depth > kDeepest) return bad("it is nested too deeply");
    if (at_ >= nodes_.size()) return bad("a part of a column is missing");
    const SchemaElement& node = nodes_[at_++];
    if (node.has_type) {
      Column column = leaf_of(node);
      column.name = path;
      column.outside = why;
      if ((names_ += path.size()) > kMostNames) return bad("the names of its parts are too long together");
      columns_.push_back(std::move(column));
      return Done{};
    }
    for (std::int64_t i = 0; i < node.children; ++i) {
      if (at_ >= nodes_.size()) return bad("a part of a column is missing");
      if (path.size() > 4096) return bad("the names of its parts are too long");
      TRY(outside(path + "." + nodes_[at_].leaf.name, why, depth + 1));
    }
    return Done{};
  }

  static Column leaf_of(const SchemaElement& node) {
    Column column = node.leaf;
    column.outside = node.strange;
    if (column.type == Physical::int96) column.outside = "an INT96";
    if (const char* why = mismatch(column); why != nullptr) column.outside = why;
    return column;
  }

  const std::vector<SchemaElement>& nodes_;
  std::vector<Column> columns_;
  std::size_t at_ = 0, names_ = 0;  // the next node; bytes of the paths of leaves
};

// Of a decimal whose digits nobody said: as many as fit.
int precision_of(const Column& column) {
  return column.precision > 0 ? column.precision : column.type == Physical::int32 ? 9 : 18;
}

void write_logical(ThriftWriter& thrift, const Column& column) {
  const auto empty = [&](int id) {
    thrift.begin(id);
    thrift.end();
  };
  switch (column.meaning) {
    case Meaning::plain: break;
    case Meaning::text: empty(1); break;
    case Meaning::json: empty(12); break;
    case Meaning::date: empty(6); break;
    case Meaning::uuid: empty(14); break;
    case Meaning::float16: empty(15); break;
    case Meaning::unsigned_int:
      thrift.begin(10);
      thrift.integer(1, column.type == Physical::int64 ? 64 : 32, Type::byte);
      thrift.boolean(2, false);
      thrift.end();
      break;
    case Meaning::decimal:
      thrift.begin(5);
      thrift.integer(1, column.scale);
      thrift.integer(2, precision_of(column));
      thrift.end();
      break;
    case Meaning::time:
    case Meaning::timestamp:
      thrift.begin(column.meaning == Meaning::time ? 7 : 8);
      thrift.boolean(1, column.utc);
      thrift.begin(2);
      empty(column.unit == TimeUnit::millis ? 1 : column.unit == TimeUnit::micros ? 2 : 3);
      thrift.end();
      thrift.end();
      break;
  }
}

}  // namespace

SchemaElement read_schema_element(ThriftReader& thrift) {
  SchemaElement element;
  std::int64_t repetition = 0, scale = 0, precision = 0, width = 0;
  bool named = false, logical = false;
  thrift.fields([&](int id, Type type) {
    switch (id) {
      case 1: {
        const std::int64_t code = thrift.integer(type);
        if (code < 0 || code > 7) thrift.refuse("a column has no known type");
        element.leaf.type = static_cast<Physical>(code);
        element.has_type = true;
        return true;
      }
      case 2: width = thrift.integer(type); return true;
      case 3: repetition = thrift.integer(type); return true;
      case 4:
        element.leaf.name = std::string(thrift.binary(type));
        named = true;
        return true;
      case 5: element.children = thrift.integer(type); return true;
      case 6: element.converted = thrift.integer(type); return true;
      case 7: scale = thrift.integer(type); return true;
      case 8: precision = thrift.integer(type); return true;
      case 10:
        if (type != Type::structure) return false;
        logical = true;
        read_logical(thrift, element);
        return true;
      default: return false;
    }
  });
  if (!named) thrift.refuse("a part of the schema has no name");
  if (repetition < 0 || repetition > 2) thrift.refuse("a column is neither required, optional nor repeated");
  if (element.children < 0) thrift.refuse("a group has fewer than no children");
  if (element.children > 0) element.has_type = false;
  if (element.has_type && element.leaf.type == Physical::fixed && (width < 1 || width > (1 << 20)))
    thrift.refuse("a FIXED_LEN_BYTE_ARRAY is not of 1 byte to 1 MiB");
  element.leaf.width = element.leaf.type == Physical::fixed ? static_cast<int>(width) : 0;
  element.repetition = static_cast<Repetition>(repetition);
  if (!logical) apply_converted(element, scale, precision);
  return element;
}

void write_schema_element(ThriftWriter& thrift, const SchemaElement& element) {
  const Column& column = element.leaf;
  thrift.begin_item();
  if (element.has_type) {
    thrift.integer(1, static_cast<int>(column.type));
    if (column.type == Physical::fixed) thrift.integer(2, column.width);
  }
  thrift.integer(3, static_cast<int>(element.repetition));
  thrift.binary(4, column.name);
  if (!element.has_type) thrift.integer(5, element.children);
  if (element.list) thrift.integer(6, 3);
  if (element.has_type && column.meaning == Meaning::text) thrift.integer(6, 0);  // for readers of before 2017
  if (element.has_type && column.meaning == Meaning::decimal) {
    thrift.integer(6, 5);
    thrift.integer(7, column.scale);
    thrift.integer(8, precision_of(column));
  }
  if (element.list || (element.has_type && column.meaning != Meaning::plain)) {
    thrift.begin(10);
    if (element.list) {
      thrift.begin(3);
      thrift.end();
    } else {
      write_logical(thrift, column);
    }
    thrift.end();
  }
  thrift.end();
}

Result<std::vector<Column>> columns_of(const std::vector<SchemaElement>& schema) { return Tree(schema).columns(); }

std::vector<SchemaElement> schema_of(const std::vector<Column>& columns) {
  std::vector<SchemaElement> nodes(1);
  nodes[0].leaf.name = "schema";
  nodes[0].children = static_cast<std::int64_t>(columns.size());
  const auto leaf = [&](const Column& column, std::string name, bool nullable) {
    SchemaElement node;
    node.leaf = column;
    node.leaf.name = std::move(name);
    node.has_type = true;
    node.repetition = nullable ? Repetition::optional : Repetition::required;
    nodes.push_back(std::move(node));
  };
  for (const Column& column : columns) {
    if (!column.list) {
      leaf(column, column.name, column.nullable);
      continue;
    }
    SchemaElement outer, middle;
    outer.leaf.name = column.name;
    outer.children = middle.children = 1;
    outer.list = true;
    outer.repetition = column.nullable ? Repetition::optional : Repetition::required;
    middle.leaf.name = "list";
    middle.repetition = Repetition::repeated;
    nodes.push_back(std::move(outer));
    nodes.push_back(std::move(middle));
    leaf(column, "element", column.nullable_elements);
  }
  return nodes;
}

}  // namespace systole::parquet
