// Ops with regions, and collectives.

#include <array>

#include "describe/stablehlo/builder.h"
#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

std::vector<Type> types_of(std::span<const Ssa> values) {
  std::vector<Type> types;
  for (const Ssa& value : values) types.push_back(value.type);
  return types;
}

std::vector<Ssa> results_of(const std::string& name, std::span<const Type> types) {
  std::vector<Ssa> made;
  for (std::size_t i = 0; i < types.size(); ++i)
    made.push_back({types.size() == 1 ? name : fmt::format("{}#{}", name, i), types[i]});
  return made;
}

std::string declared(const std::string& name, std::size_t count) {
  return count == 1 ? name : fmt::format("{}:{}", name, count);
}

}  // namespace

std::vector<Ssa> Builder::open_block(std::span<const Type> types) {
  std::vector<Ssa> arguments;
  text_->append(static_cast<std::size_t>(2 * (indent_ - 1)), ' ');
  *text_ += "^bb0(";
  for (const Type& type : types) {
    if (!arguments.empty()) *text_ += ", ";
    arguments.push_back({fresh(), type});
    *text_ += arguments.back().name + ": " + type_text(type);
  }
  *text_ += "):\n";
  return arguments;
}

void Builder::combiner(std::string_view op, DType dtype) {
  *text_ += " ({\n";
  Builder inside(*this, Inside{});
  inside.place_.clear();
  const std::vector<Ssa> pair = inside.open_block(std::array{Type(dtype, {}), Type(dtype, {})});
  inside.give("stablehlo.return", std::array{op.empty() ? pair[1] : inside.binary(op, pair[0], pair[1])});
  indent();
  *text_ += "})";
}

Ssa Builder::sort(const Ssa& x, int dim) {
  const std::array operands{x};
  Ssa made{fresh(), x.type};
  begin(made.name, "sort", operands);
  *text_ += " ({\n";
  Builder inside(*this, Inside{});
  inside.place_.clear();
  const std::vector<Ssa> pair = inside.open_block(std::array{Type(x.type.dtype, {}), Type(x.type.dtype, {})});
  inside.give("stablehlo.return", std::array{inside.compare("LT", pair[0], pair[1])});
  indent();
  *text_ += "})";
  end(fmt::format("dimension = {} : i64, is_stable = false", dim), operands, std::array{x.type});
  return made;
}

// The index runs from `from` while it is below `to`. It is carried first, before the other values.
std::vector<Ssa> Builder::loop_over(const Ssa& from, const Ssa& to, std::span<const Ssa> carries, const Body& body) {
  std::vector<Ssa> carried{from};
  carried.insert(carried.end(), carries.begin(), carries.end());
  const std::vector<Type> types = types_of(carried);
  const std::string name = fresh();
  begin(declared(name, types.size()), "while", carried);
  *text_ += " ({\n";
  {
    Builder condition(*this, Inside{});
    const std::vector<Ssa> arguments = condition.open_block(types);
    condition.give("stablehlo.return", std::array{condition.compare("LT", arguments[0], to)});
  }
  indent();
  *text_ += "}, {\n";
  {
    Builder inside(*this, Inside{});
    const std::vector<Ssa> arguments = inside.open_block(types);
    const std::string place = inside.place_;
    std::vector<Ssa> next = body(inside, arguments[0], std::span(arguments).subspan(1));
    CHECK(next.size() == carries.size(), "a loop of {} values gives {}", carries.size(), next.size());
    for (std::size_t i = 0; i < next.size(); ++i)
      CHECK(next[i].type == carries[i].type, "a loop's {} becomes {}", to_string(carries[i].type),
            to_string(next[i].type));
    inside.set_place(place);
    next.insert(next.begin(), inside.binary("add", arguments[0], inside.integer(from.type, 1)));
    inside.give("stablehlo.return", next);
  }
  indent();
  *text_ += "})";
  end("", carried, types);
  std::vector<Ssa> made = results_of(name, types);
  made.erase(made.begin());
  return made;
}

std::vector<Ssa> Builder::loop(std::int64_t count, std::span<const Ssa> carries, const Body& body, bool reverse) {
  const Type index(DType::i32, {});
  const Ssa from = integer(index, 0), to = integer(index, static_cast<std::uint64_t>(count));
  if (!reverse) return loop_over(from, to, carries, body);
  return loop_over(from, to, carries, [&](Builder& b, const Ssa& i, std::span<const Ssa> now) {
    const Ssa last = b.integer(index, static_cast<std::uint64_t>(count - 1));
    return body(b, b.binary("subtract", last, i), now);
  });
}

std::vector<Ssa> Builder::loop(const Ssa& from, const Ssa& to, std::span<const Ssa> carries, const Body& body) {
  CHECK(from.type == Type(DType::i32, {}) && to.type == from.type, "a loop from {} to {}", to_string(from.type),
        to_string(to.type));
  return loop_over(from, to, carries, body);
}

std::vector<Ssa> Builder::branch(const Ssa& pred, const Branch& then, const Branch& otherwise) {
  CHECK(pred.type == Type(DType::boolean, {}), "a branch by {}", to_string(pred.type));
  // The result name precedes the blocks and states their number of values, so the first block is written separately.
  const std::string name = fresh();
  std::vector<Type> types;
  const auto block = [&](const Branch& body) {
    std::string written;
    Builder inside(*this, Inside{});
    inside.text_ = &written;
    const std::vector<Ssa> values = body(inside);
    CHECK(types.empty() || types == types_of(values), "the blocks of a branch give unlike values");
    types = types_of(values);
    inside.give("stablehlo.return", values);
    return written;
  };
  const std::string first = block(then), second = block(otherwise);
  begin(declared(name, types.size()), "if", std::array{pred});
  *text_ += " ({\n" + first;
  indent();
  *text_ += "}, {\n" + second;
  indent();
  *text_ += "})";
  end("", std::array{pred}, types);
  return results_of(name, types);
}

std::vector<Ssa> Builder::barrier(std::span<const Ssa> values) {
  if (values.empty()) return {};
  const std::vector<Type> types = types_of(values);
  const std::string name = fresh();
  begin(declared(name, types.size()), "optimization_barrier", values);
  end("", values, types);
  return results_of(name, types);
}

// --- collectives

std::string Builder::channel() {
  return fmt::format("channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>", numbering_->next_channel++);
}

Ssa Builder::all_reduce(std::string_view op, const Ssa& x, const ReplicaGroups& groups) {
  Ssa made{fresh(), x.type};
  begin(made.name, "all_reduce", std::array{x});
  combiner(op, x.type.dtype);
  end(fmt::format("replica_groups = {}, {}, use_global_device_ids", groups.attribute, channel()), std::array{x},
      std::array{x.type});
  return made;
}

Ssa Builder::all_gather(const Ssa& x, int dim, const ReplicaGroups& groups) {
  Type result = x.type;
  result.shape[static_cast<std::size_t>(dim)] *= groups.size;
  return line("all_gather", std::array{x},
              fmt::format("all_gather_dim = {} : i64, replica_groups = {}, {}, use_global_device_ids", dim,
                          groups.attribute, channel()),
              result);
}

Ssa Builder::reduce_scatter(std::string_view op, const Ssa& x, int dim, const ReplicaGroups& groups) {
  Type result = x.type;
  result.shape[static_cast<std::size_t>(dim)] /= groups.size;
  Ssa made{fresh(), result};
  begin(made.name, "reduce_scatter", std::array{x});
  combiner(op, x.type.dtype);
  end(fmt::format("scatter_dimension = {} : i64, replica_groups = {}, {}, use_global_device_ids", dim, groups.attribute,
                  channel()),
      std::array{x}, std::array{result});
  return made;
}

Ssa Builder::all_to_all(const Ssa& x, int split_dim, int concat_dim, const ReplicaGroups& groups) {
  const std::int64_t parts = groups.size;
  Type result = x.type;
  result.shape[static_cast<std::size_t>(split_dim)] /= parts;
  result.shape[static_cast<std::size_t>(concat_dim)] *= parts;
  return line("all_to_all", std::array{x},
              fmt::format("split_dimension = {} : i64, concat_dimension = {} : i64, split_count = {} : i64, "
                          "replica_groups = {}, {}",
                          split_dim, concat_dim, parts, groups.attribute, channel()),
              result);
}

Ssa Builder::collective_permute(const Ssa& x, std::string_view pairs) {
  return line("collective_permute", std::array{x}, fmt::format("source_target_pairs = {}, {}", pairs, channel()),
              x.type);
}

Ssa Builder::partition_id() { return line("partition_id", {}, "", Type(DType::u32, {})); }

}  // namespace systole::stablehlo
