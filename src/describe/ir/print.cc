#include "describe/ir/op.h"
#include "describe/ir/text.h"

namespace systole {
namespace {

std::string quoted(const std::string& text) { return to_string(Attr(text)); }

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), numbers_(static_cast<std::size_t>(graph.num_values()), -1) {}

  void print(std::string& out, const std::string& indent) {
    out += indent + "graph " + quoted(graph_.name()) + " {\n";
    const std::string inner = indent + "  ";
    for (const GraphInput& input : graph_.inputs()) out += inner + input_line(input) + "\n";
    for (const GraphNode& node : graph_.nodes()) print_node(out, node, inner);
    out += inner + "return";
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const GraphOutput& output = graph_.outputs()[i];
      out += (i > 0 ? ", " : " ") + quoted(output.name) + " " + number(output.value);
    }
    out += "\n" + indent + "}\n";
  }

 private:
  std::string number(ValueId id) { return fmt::format("%{}", numbers_[static_cast<std::size_t>(id.index)]); }

  std::string define(ValueId id) {
    numbers_[static_cast<std::size_t>(id.index)] = next_++;
    const std::string& name = graph_.value_name(id);
    return number(id) + (name.empty() ? "" : " " + quoted(name));
  }

  std::string input_line(const GraphInput& input) {
    std::string line = define(input.value);
    if (!input.parameter) return line + " = input " + quoted(input.name) + " : " + to_string(graph_.type(input.value));
    const Parameter& p = *input.parameter;
    line += " = param " + quoted(p.name) + " : " + to_string(p.type) + " init ";
    switch (p.init.kind) {
      case Init::Kind::zeros: line += "zeros"; break;
      case Init::Kind::ones: line += "ones"; break;
      case Init::Kind::normal: line += fmt::format("normal({})", p.init.scale); break;
      case Init::Kind::uniform: line += fmt::format("uniform({})", p.init.scale); break;
    }
    if (!p.trainable) line += " frozen";
    if (!p.decay) line += " no_decay";
    if (p.stage != 0) line += fmt::format(" stage {}", p.stage);
    return line;
  }

  void print_node(std::string& out, const GraphNode& node, const std::string& indent) {
    std::string operands, results, types;
    for (const ValueId id : node.operands) operands += (operands.empty() ? "" : ", ") + number(id);
    for (const ValueId id : node.results) {
      results += (results.empty() ? "" : ", ") + define(id);
      types += (types.empty() ? "" : ", ") + to_string(graph_.type(id));
    }
    out += indent + results + " = " + node.op->name + "(" + operands + ")";
    if (!node.attrs.empty()) out += " " + to_string(node.attrs);
    out += " : " + types;
    if (node.recomputed) out += " recomputed";
    if (!node.regions.empty()) {
      out += " [\n";
      for (const Graph& region : node.regions) Printer(region).print(out, indent + "  ");
      out += indent + "]";
    }
    out += "\n";
  }

  const Graph& graph_;
  std::vector<int> numbers_;
  int next_ = 0;
};

}  // namespace

std::string to_text(const Graph& graph) {
  std::string out;
  Printer(graph).print(out, "");
  return out;
}

}  // namespace systole
