#include "describe/passes/int8_weights.h"

#include <algorithm>
#include <map>
#include <optional>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "ground/tensor/int4.h"
#include "ground/tensor/int8.h"

namespace systole {
namespace {

bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// A product x w → y, by the letters of its spec.
struct Product {
  std::string x, w, y;
  std::string outputs, summed;  // of w, in its order
  bool batched = false;         // a dim of w is in x and y too: experts

  explicit Product(const std::string& spec) {
    const std::size_t comma = spec.find(','), arrow = spec.find("->");
    x = spec.substr(0, comma);
    w = spec.substr(comma + 1, arrow - comma - 1);
    y = spec.substr(arrow + 2);
    for (const char c : w) {
      batched |= has(x, c) && has(y, c);
      (has(y, c) ? outputs : summed) += c;
    }
  }
  std::vector<int> order() const {
    std::vector<int> dims;
    for (const char c : outputs + summed) dims.push_back(static_cast<int>(w.find(c)));
    return dims;
  }
};

// What is known of a parameter's uses so far.
struct Uses {
  Parameter from;
  std::optional<bool> stacked;
  std::optional<std::vector<int>> order;  // of the products
  int outputs = 0;
  bool looked_up = false, otherwise = false;

  bool fits() const {
    if (!order || otherwise || !stacked) return false;
    return !looked_up || (*order == std::vector<int>{0, 1} && outputs == 1 && !*stacked);
  }
};

// Collects the uses of parameters in a graph and in the bodies of its repeats.
class Finder {
 public:
  void visit(const Graph& graph) {
    std::vector<Uses*> of(static_cast<std::size_t>(graph.num_values()));
    for (const GraphInput& input : graph.inputs()) {
      if (!input.parameter || input.parameter->type.dtype != DType::f32) continue;
      if (input.name.find(".lora_") != std::string::npos) continue;
      Uses& uses = uses_[input.name];
      if (uses.from.name.empty()) {
        uses.from = *input.parameter;
        names_.push_back(input.name);
      }
      of[index(input.value)] = &uses;
    }
    visit(graph, of, false);
  }

  std::vector<Int8Weight> weights(int bits) const {
    std::vector<Int8Weight> all;
    for (const std::string& name : names_) {
      const Uses& uses = uses_.at(name);
      if (!uses.fits()) continue;
      Int8Weight weight{uses.from, *uses.stacked, *uses.order, uses.outputs};
      const bool whole = weight.rows() % kInt4Panel == 0 && weight.columns() % kInt4Group == 0;
      weight.bits = whole && weight.stacked ? bits : 8;
      all.push_back(std::move(weight));
    }
    return all;
  }

 private:
  static std::size_t index(ValueId id) { return static_cast<std::size_t>(id.index); }

  void visit(const Graph& graph, const std::vector<Uses*>& of, bool stacked) {
    for (const GraphNode& node : graph.nodes()) {
      if (is(node, "repeat")) {
        visit_body(node, of, stacked);
        continue;
      }
      for (std::size_t o = 0; o < node.operands.size(); ++o) {
        if (Uses* uses = of[index(node.operands[o])]; uses != nullptr) add(*uses, graph, node, o, stacked);
      }
    }
    for (const GraphOutput& output : graph.outputs()) {
      if (Uses* uses = of[index(output.value)]; uses != nullptr) uses->otherwise = true;
    }
  }

  // Values of one body are either slices of stacked parameters or whole ones: they are visited apart.
  void visit_body(const GraphNode& node, const std::vector<Uses*>& of, bool in_body_of_slices) {
    const Graph& body = node.regions[0];
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries")),
               stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    std::vector<Uses*> slices(static_cast<std::size_t>(body.num_values())), wholes = slices;
    for (std::size_t o = 0; o < node.operands.size(); ++o) {
      Uses* const uses = of[index(node.operands[o])];
      if (uses == nullptr) continue;
      if (o < carries || in_body_of_slices) {
        uses->otherwise = true;
      } else {
        (o < carries + stacked ? slices : wholes)[index(body.inputs()[o].value)] = uses;
      }
    }
    visit(body, slices, true);
    visit(body, wholes, false);
  }

  static void add(Uses& uses, const Graph& graph, const GraphNode& node, std::size_t operand, bool stacked) {
    if (uses.stacked && *uses.stacked != stacked) uses.otherwise = true;
    uses.stacked = stacked;
    if (is(node, "embedding") && operand == 0) {
      uses.looked_up = true;
      return;
    }
    if (!is(node, "contract") || operand != 1) {
      uses.otherwise = true;
      return;
    }
    const Product product(node.attrs.get_string("spec"));
    if (product.batched) {
      fail(error(ErrorKind::unsupported, "weights in int8 or int4 of a model with experts ('{}')", uses.from.name)
               .hinted("leave out --weights, or serve.parameter: i8 or i4"));
    }
    const Type& type = graph.type(node.operands[1]);
    std::int64_t summed = 1;
    for (const char c : product.summed) summed *= type.size(static_cast<int>(product.w.find(c)));
    const bool known =
        uses.order && (*uses.order != product.order() || uses.outputs != static_cast<int>(product.outputs.size()));
    uses.otherwise |= known || product.outputs.empty() || product.summed.empty() || summed > kMostInt8Products ||
                      graph.type(node.results[0]).dtype != DType::f32 || node.operands[0] == node.operands[1];
    uses.order = product.order();
    uses.outputs = static_cast<int>(product.outputs.size());
  }

  std::map<std::string, Uses> uses_;
  std::vector<std::string> names_;  // in the graphs' order
};

// A value of the new graph; or, of a weight, its two values.
struct Mapped {
  Value value, scale;
  const Int8Weight* weight = nullptr;
};

class Rewriter {
 public:
  // `weights`: per input, null where it is none; by a repeat for its body, else by the parameters' names.
  static Graph run(const Graph& graph, std::span<const Int8Weight* const> weights, bool is_body) {
    Graph to(graph.name());
    Rewriter(graph, to).copy(weights, is_body);
    return to;
  }

 private:
  Rewriter(const Graph& from, Graph& to) : from_(from), to_(to), map_(static_cast<std::size_t>(from.num_values())) {}

  Mapped& at(ValueId id) { return map_[static_cast<std::size_t>(id.index)]; }

  void copy(std::span<const Int8Weight* const> weights, bool is_body) {
    for (std::size_t i = 0; i < from_.inputs().size(); ++i) {
      const GraphInput& input = from_.inputs()[i];
      const Int8Weight* const weight = weights[i];
      Mapped& mapped = at(input.value);
      if (weight == nullptr) {
        mapped.value = to_.copy_input(from_, input);
        if (const std::string& name = from_.value_name(input.value); !name.empty()) mapped.value.named(name);
        continue;
      }
      const auto add = [&](const std::string& name, Type type, const char* end) {
        if (!is_body) return to_.parameter({name, std::move(type), {}, false, false, weight->from.stage});
        const bool slice = weight->stacked;
        return to_.input(input.name + end, slice ? slice_type(type) : type);
      };
      mapped.weight = weight;
      mapped.value = add(weight->q8_name(), weight->q8(), weight->ending());
      mapped.scale = add(weight->scale_name(), weight->scale(), ".scale");
    }
    for (const GraphNode& node : from_.nodes()) copy(node);
    for (const GraphOutput& output : from_.outputs()) to_.output(output.name, at(output.value).value);
  }

  void copy(const GraphNode& node) {
    if (is(node, "repeat")) return give(node, repeat(node));
    if (is(node, "contract") && at(node.operands[1]).weight != nullptr) return give(node, {contract(node)});
    if (is(node, "embedding") && at(node.operands[0]).weight != nullptr) {
      const Mapped& table = at(node.operands[0]);
      return give(node, {embedding_int8(table.value, table.scale, at(node.operands[1]).value)});
    }
    std::vector<Value> operands;
    for (const ValueId id : node.operands) {
      CHECK(at(id).weight == nullptr, "{} reads '{}', which is packed", node.op->name, at(id).weight->from.name);
      operands.push_back(at(id).value);
    }
    const GraphNode& copied = to_.copy(from_, node, operands);
    std::vector<Value> results;
    for (const ValueId id : copied.results) results.push_back(to_.value(id));
    give(node, results);
  }

  void give(const GraphNode& node, const std::vector<Value>& results) {
    for (std::size_t r = 0; r < results.size(); ++r) {
      at(node.results[r]).value = results[r];
      if (const std::string& name = from_.value_name(node.results[r]); !name.empty()) results[r].named(name);
    }
  }

  std::vector<Value> repeat(const GraphNode& node) {
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries")),
               stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    std::vector<Value> operands;
    std::vector<const Int8Weight*> weights;
    std::int64_t more_stacked = 0, more_shared = 0;
    for (std::size_t o = 0; o < node.operands.size(); ++o) {
      const Mapped& mapped = at(node.operands[o]);
      weights.push_back(mapped.weight);
      operands.push_back(mapped.value);
      if (mapped.weight == nullptr) continue;
      operands.push_back(mapped.scale);
      ++(o < carries + stacked ? more_stacked : more_shared);
    }
    Attrs attrs = node.attrs;
    attrs.set("stacked", attrs.get_int("stacked") + more_stacked);
    attrs.set("shared", attrs.get_int("shared") + more_shared);
    std::vector<Graph> regions;
    regions.push_back(run(node.regions[0], weights, true));
    return to_.apply(*node.op, operands, std::move(attrs), std::move(regions));
  }

  // x to [batch, k], the product [batch, n], and that to y.
  Value contract(const GraphNode& node) {
    const Product product(node.attrs.get_string("spec"));
    const Mapped& w = at(node.operands[1]);
    std::string batch;
    for (const char c : product.x) {
      if (!has(product.summed, c)) batch += c;
    }
    const Value x = permuted(at(node.operands[0]).value, product.x, batch + product.summed);
    const int num_batch = static_cast<int>(batch.size());
    const Value flat = merged(x, num_batch, w.weight->columns());
    const Value y = w.weight->bits == 4 ? contract_int4(flat, w.value, w.scale) : contract_int8(flat, w.value, w.scale);
    const Type& wanted = from_.type(node.results[0]);
    const std::string made = batch + product.outputs;
    Type split(DType::f32, {});
    for (const char c : made) {
      const auto dim = static_cast<int>(product.y.find(c));
      split.add_dim(wanted.size(dim), wanted.name(dim));
    }
    return permuted(y.type() == split ? y : reshape(y, split), made, product.y);
  }

  static Value permuted(Value x, const std::string& from, const std::string& to) {
    if (from == to) return x;
    std::vector<int> permutation;
    for (const char c : to) permutation.push_back(static_cast<int>(from.find(c)));
    return transpose(x, permutation);
  }

  // x with its dims from `first` on as one of `size`.
  static Value merged(Value x, int first, std::int64_t size) {
    const Type& type = x.type();
    if (type.ndim() == first + 1) return x;
    Type flat(type.dtype, {});
    for (int d = 0; d < first; ++d) flat.add_dim(type.size(d), type.name(d));
    flat.add_dim(size, "");
    return reshape(x, flat);
  }

  const Graph& from_;
  Graph& to_;
  std::vector<Mapped> map_;
};

Type with_layers(const Int8Weight& weight, DType dtype, const Shape& shape) {
  Type type(dtype, {});
  if (weight.stacked) type.add_dim(weight.from.type.size(0), weight.from.type.name(0));
  for (const std::int64_t size : shape) type.add_dim(size, "");
  return type;
}

std::int64_t product_of(const Int8Weight& weight, std::size_t from, std::size_t to) {
  std::int64_t product = 1;
  const Type tensor = weight.tensor();
  for (std::size_t i = from; i < to; ++i) product *= tensor.size(weight.order[i]);
  return product;
}

// Calls take(row, numbers) for rows [first, last) of one layer's f32 tensor, their summed dims gathered.
template <typename Take>
void for_each_row(const Int8Weight& weight, std::span<const float> tensor, std::int64_t first, std::int64_t last,
                  const Take& take) {
  const Type type = weight.tensor();
  const std::vector<std::int64_t> strides = strides_of(type.shape);
  // Offsets of the indices of the dims order[from, to), the last one fastest.
  const auto offsets = [&](std::size_t from, std::size_t to) {
    std::vector<std::int64_t> all{0};
    for (std::size_t i = from; i < to; ++i) {
      const auto dim = static_cast<std::size_t>(weight.order[i]);
      std::vector<std::int64_t> next;
      for (const std::int64_t base : all) {
        for (std::int64_t n = 0; n < type.shape[dim]; ++n) next.push_back(base + n * strides[dim]);
      }
      all = std::move(next);
    }
    return all;
  };
  const auto outputs = static_cast<std::size_t>(weight.outputs);
  const std::vector<std::int64_t> rows = offsets(0, outputs), columns = offsets(outputs, weight.order.size());
  constexpr std::int64_t kTogether = 16;  // rows whose elements may be neighbours: a cache line of f32
  constexpr std::size_t kLines = 8;       // at a time, although their distance may be a power of two
  std::vector<float> block(static_cast<std::size_t>(kTogether) * columns.size());
  for (std::int64_t begin = first; begin < last; begin += kTogether) {
    const auto count = static_cast<std::size_t>(std::min(kTogether, last - begin));
    const auto at = static_cast<std::size_t>(begin);
    for (std::size_t c = 0; c < columns.size(); c += kLines) {
      for (std::size_t r = 0; r < count; ++r) {
        for (std::size_t i = c; i < std::min(c + kLines, columns.size()); ++i)
          block[r * columns.size() + i] = tensor[static_cast<std::size_t>(rows[at + r] + columns[i])];
      }
    }
    for (std::size_t r = 0; r < count; ++r)
      take(at + r, std::span<const float>(block).subspan(r * columns.size(), columns.size()));
  }
}

}  // namespace

Type Int8Weight::tensor() const { return stacked ? slice_type(from.type) : from.type; }
std::int64_t Int8Weight::rows() const { return product_of(*this, 0, static_cast<std::size_t>(outputs)); }
std::int64_t Int8Weight::columns() const { return product_of(*this, static_cast<std::size_t>(outputs), order.size()); }
Type Int8Weight::q8() const {
  if (bits != 4) return with_layers(*this, DType::i8, {rows(), columns()});
  return with_layers(*this, kInt4, {rows() / kInt4Panel, columns() / kInt4Group, kInt4PanelBytes});
}
Type Int8Weight::scale() const {
  if (bits != 4) return with_layers(*this, DType::f32, {rows()});
  return with_layers(*this, DType::f16, {rows() / kInt4Panel, columns() / kInt4Group, kInt4PanelScales});
}

std::vector<Int8Weight> int8_weights(std::span<const Graph* const> graphs, int bits) {
  Finder finder;
  for (const Graph* graph : graphs) finder.visit(*graph);
  return finder.weights(bits);
}

Graph with_int8_weights(const Graph& graph, std::span<const Int8Weight> weights) {
  std::vector<const Int8Weight*> of_input;
  for (const GraphInput& input : graph.inputs()) {
    const auto found = std::ranges::find_if(
        weights, [&](const Int8Weight& w) { return input.parameter && w.from.name == input.name; });
    of_input.push_back(found == weights.end() ? nullptr : &*found);
  }
  return Rewriter::run(graph, of_input, false);
}

void quantize_rows(const Int8Weight& weight, std::span<const float> tensor, std::int64_t first, std::int64_t last,
                   std::span<std::int8_t> q8, std::span<float> scales) {
  for_each_row(weight, tensor, first, last, [&](std::size_t row, std::span<const float> numbers) {
    scales[row] = quantize_row(numbers, q8.subspan(row * numbers.size(), numbers.size()));
  });
}

void quantize_rows(const Int8Weight& weight, std::span<const float> tensor, std::int64_t first, std::int64_t last,
                   std::span<std::uint8_t> codes, std::span<std::uint16_t> scales) {
  for_each_row(weight, tensor, first, last, [&](std::size_t row, std::span<const float> numbers) {
    const auto columns = static_cast<std::int64_t>(numbers.size());
    for (std::int64_t group = 0; group < columns / kInt4Group; ++group) {
      const auto from = numbers.subspan(static_cast<std::size_t>(group * kInt4Group)).first<kInt4Group>();
      put_block(quantize_group(from), columns, static_cast<std::int64_t>(row), group, codes, scales);
    }
  });
}

}  // namespace systole
