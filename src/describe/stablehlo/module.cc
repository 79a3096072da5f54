#include "describe/stablehlo/module.h"

#include <algorithm>

#include "describe/partition/spmd.h"
#include "describe/stablehlo/body.h"
#include "describe/stablehlo/builder.h"
#include "ground/base/error.h"

namespace systole::stablehlo {
namespace {

// A valid MLIR name for use after '@'.
std::string symbol(std::string_view name) {
  std::string text;
  for (const char c : name) text += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) != 0 ? "_" + text : text;
}

// The sharding of the global value per dim: "[{"data"}, {}]".
std::string dims_text(const ModulePort& port, const Layout* layout, const Mesh& mesh) {
  std::string text = "[";
  for (int dim = 0; dim < port.local.ndim(); ++dim) {
    text += dim > 0 ? ", {" : "{";
    bool first = true;
    for (std::size_t axis = 0; layout != nullptr && axis < mesh.axes().size(); ++axis) {
      if (layout->at[axis] != dim) continue;
      text += (first ? "" : ", ") + mlir_string(mesh.axes()[axis].name);
      first = false;
    }
    text += '}';
  }
  return text + ']';
}

// Writes the parts of the module around the body.
class ModuleWriter {
 public:
  ModuleWriter(const Graph& graph, const Mesh& mesh, const LowerOptions& options)
      : graph_(graph), mesh_(mesh), body_(mesh, options) {
    module_.name = graph.name();
    module_.devices = static_cast<int>(mesh.num_devices());
  }

  // Call in the order of the graph's inputs and outputs.
  void input(ModulePort port, const Layout* layout, bool donated) {
    cuts_in_.push_back(dims_text(port, layout, mesh_));
    module_.arguments.push_back(std::move(port));
    module_.donated.push_back(donated);
    coordinate_.push_back(-1);
  }
  void coordinate(int axis) { coordinate_.push_back(axis); }
  void output(ModulePort port, const Layout* layout) {
    cuts_out_.push_back(dims_text(port, layout, mesh_));
    module_.results.push_back(std::move(port));
  }
  // An alias between an output and an input of the graph. If their types differ, the input is only donated.
  void alias(Alias alias) {
    alias.input -= static_cast<int>(
        std::count_if(coordinate_.begin(), coordinate_.begin() + alias.input, [](int axis) { return axis >= 0; }));
    ModulePort& argument = module_.arguments[static_cast<std::size_t>(alias.input)];
    module_.donated[static_cast<std::size_t>(alias.input)] = true;
    if (argument.local == module_.results[static_cast<std::size_t>(alias.output)].local)
      module_.aliases.push_back(alias);
  }

  Module write() {
    std::string& text = module_.text;
    text += fmt::format("module @{} attributes {{mhlo.num_partitions = {} : i32, mhlo.num_replicas = 1 : i32}} {{\n",
                        symbol(module_.name), module_.devices);
    if (!mesh_.trivial()) text += mesh_text();
    text += "  func.func public @main(";
    std::vector<Ssa> inputs;
    for (std::size_t i = 0; i < module_.arguments.size(); ++i) {
      inputs.push_back({fmt::format("%arg{}", i), module_.arguments[i].whole});
      text += fmt::format("{}\n      {}: {}{}", i > 0 ? "," : "", inputs.back().name, type_text(inputs.back().type),
                          argument_attrs(i));
    }
    text += ")\n      -> (";
    for (std::size_t i = 0; i < module_.results.size(); ++i) {
      text += fmt::format("{}\n      {}", i > 0 ? "," : "", type_text(module_.results[i].whole));
      if (!mesh_.trivial()) text += fmt::format(" {{sdy.sharding = #sdy.sharding<@mesh, {}>}}", cuts_out_[i]);
    }
    text += ") {\n";
    Builder b(text, mesh_.trivial() ? 2 : 3);
    if (body_.options().wide_products) b.widen_products();
    if (mesh_.trivial()) {
      write_body(b, inputs, "func.return");
    } else {
      manual(b, inputs);
    }
    text += "  }\n}\n";
    text.insert(0, body_.definitions());
    module_.notes = body_.notes();
    return std::move(module_);
  }

 private:
  std::string mesh_text() const {
    std::string text = "  sdy.mesh @mesh = <[";
    for (const Axis& axis : mesh_.axes())
      text += fmt::format("{}{}={}", text.back() == '[' ? "" : ", ", mlir_string(axis.name), axis.size);
    return text + "]>\n";
  }

  std::string argument_attrs(std::size_t i) const {
    std::string text;
    const auto add = [&](const std::string& attr) { text += (text.empty() ? "" : ", ") + attr; };
    if (!mesh_.trivial()) add(fmt::format("sdy.sharding = #sdy.sharding<@mesh, {}>", cuts_in_[i]));
    const auto alias = std::find_if(module_.aliases.begin(), module_.aliases.end(),
                                    [&](const Alias& a) { return a.input == static_cast<int>(i); });
    if (alias != module_.aliases.end()) {
      add(fmt::format("tf.aliasing_output = {} : i32", alias->output));
    } else if (module_.donated[i]) {
      add("jax.buffer_donor = true");
    }
    return text.empty() ? "" : " {" + text + "}";
  }

  void manual(Builder& b, const std::vector<Ssa>& wholes) {
    std::string& text = module_.text;
    const auto join = [](const auto& list, const auto& word) {
      std::string joined;
      for (std::size_t i = 0; i < list.size(); ++i) joined += (i > 0 ? ", " : "") + word(list[i]);
      return joined;
    };
    const auto cut = [](const std::string& dims) { return "<@mesh, " + dims + ">"; };
    const auto whole_type = [](const ModulePort& port) { return type_text(port.whole); };
    std::vector<Ssa> parts;
    for (std::size_t i = 0; i < wholes.size(); ++i)
      parts.push_back({fmt::format("%part{}", i), module_.arguments[i].local});
    text += fmt::format(
        "    %whole:{} = sdy.manual_computation({}) in_shardings=[{}] out_shardings=[{}] manual_axes={{{}}} ({}) {{\n",
        module_.results.size(), join(wholes, [](const Ssa& value) { return value.name; }), join(cuts_in_, cut),
        join(cuts_out_, cut), join(mesh_.axes(), [](const Axis& axis) { return mlir_string(axis.name); }),
        join(parts, [](const Ssa& value) { return value.name + ": " + type_text(value.type); }));
    write_body(b, parts, "sdy.return");
    text +=
        fmt::format("    }} : ({}) -> ({})\n", join(module_.arguments, whole_type), join(module_.results, whole_type));
    std::vector<Ssa> results;
    for (std::size_t i = 0; i < module_.results.size(); ++i)
      results.push_back({fmt::format("%whole#{}", i), module_.results[i].whole});
    Builder(text, 2).give("func.return", results);
  }

  void write_body(Builder& b, std::span<const Ssa> arguments, const char* terminator) {
    std::vector<Ssa> inputs;
    std::size_t next = 0;
    for (const int axis : coordinate_) inputs.push_back(axis < 0 ? arguments[next++] : place_on(b, axis));
    const std::vector<Ssa> outputs = body_.region(b, graph_, inputs);
    b.set_place("");
    b.give(terminator, outputs);
  }

  // This device's coordinate on an axis; devices are numbered in row-major order.
  Ssa place_on(Builder& b, int axis) const {
    std::int64_t inner = 1;
    for (std::size_t a = static_cast<std::size_t>(axis) + 1; a < mesh_.axes().size(); ++a)
      inner *= mesh_.axes()[a].size;
    const Type scalar(DType::u32, {});
    const auto number = [&](std::int64_t value) { return b.integer(scalar, static_cast<std::uint64_t>(value)); };
    b.set_place(coordinate_name(mesh_.axes()[static_cast<std::size_t>(axis)].name));
    const Ssa outer = b.binary("divide", b.partition_id(), number(inner));
    const Ssa place = b.binary("remainder", outer, number(mesh_.axes()[static_cast<std::size_t>(axis)].size));
    return b.convert(place, DType::i64);
  }

  const Graph& graph_;
  const Mesh& mesh_;
  BodyWriter body_;
  Module module_;
  std::vector<int> coordinate_;  // per input of the graph: its mesh axis if it is a coordinate, else -1
  std::vector<std::string> cuts_in_, cuts_out_;
};

ModulePort port_of(const std::string& name, const Type& local, const Layout* layout, const Mesh& mesh) {
  ModulePort port{name, local, local, {}};
  for (int dim = 0; layout != nullptr && dim < local.ndim(); ++dim)
    port.whole.shape[static_cast<std::size_t>(dim)] *= parts_of(*layout, dim, mesh);
  return port;
}

// The axis whose coordinate the input is; -1: none.
int coordinate_axis(const std::string& input, const Mesh& mesh) {
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    if (input == coordinate_name(mesh.axes()[axis].name)) return static_cast<int>(axis);
  }
  return -1;
}

}  // namespace

Module lower(const Graph& graph, const LowerOptions& options) {
  const Mesh one;
  ModuleWriter writer(graph, one, options);
  for (const GraphInput& input : graph.inputs())
    writer.input(port_of(input.name, graph.type(input.value), nullptr, one), nullptr, false);
  for (const GraphOutput& output : graph.outputs())
    writer.output(port_of(output.name, graph.type(output.value), nullptr, one), nullptr);
  return writer.write();
}

namespace {

// `layout_of` returns the layout of a port's value; null: replicated.
template <typename LayoutOf>
Module lower_function(const Mesh& mesh, const Function& function, const LowerOptions& options, LayoutOf layout_of) {
  const Graph& graph = function.graph;
  ModuleWriter writer(graph, mesh, options);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
    const GraphInput& input = graph.inputs()[i];
    if (const int axis = coordinate_axis(input.name, mesh); axis >= 0) {
      writer.coordinate(axis);
      continue;
    }
    const Layout* layout = layout_of(function.inputs[i]);
    ModulePort port = port_of(input.name, graph.type(input.value), layout, mesh);
    port.port = function.inputs[i];
    writer.input(std::move(port), layout, i < function.donated.size() && function.donated[i]);
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const Layout* layout = layout_of(function.outputs[i]);
    ModulePort port = port_of(graph.outputs()[i].name, graph.type(graph.outputs()[i].value), layout, mesh);
    port.port = function.outputs[i];
    writer.output(std::move(port), layout);
  }
  for (const Alias& alias : function.aliases) writer.alias(alias);
  return writer.write();
}

}  // namespace

Module lower(const Function& function, const LowerOptions& options) {
  return lower_function(Mesh(), function, options, [](const Port&) -> const Layout* { return nullptr; });
}

Module lower(const Program& program, const Function& function, const LowerOptions& options) {
  return lower_function(program.mesh, function, options, [&](const Port& port) -> const Layout* {
    const ProgramValue& value = program.values[static_cast<std::size_t>(port.value)];
    return value.cut ? &value.cut->layout : nullptr;
  });
}

}  // namespace systole::stablehlo
