// Codecs for how a model is computed: types, what is saved, mesh axes and what they shard.
#include "describe/spec/codec_parts.h"

namespace systole {

Codec dtype_codec(Field<DType> at) {
  std::vector<std::pair<std::string, DType>> types;
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
    types.emplace_back(name_of(type), type);
  }
  return choice_codec<DType>(at, std::move(types));
}

Codec master_dtype_codec(Field<DType> at) {
  Codec c = choice_codec<DType>(at, {{"f32", DType::f32}, {"f64", DType::f64}});
  c.read = [read = c.read](const Node& node, Workload& w) -> Status {
    for (const DType coarse : {DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2}) {
      if (!node.is_scalar() || node.text() != name_of(coarse)) continue;
      return error(ErrorKind::unsupported, "{} is not done: small updates and long sums would be lost in it",
                   node.text())
          .at(node.where())
          .hinted("f32, or f64 with --backend reference; train.precision.compute may be bf16");
    }
    return read(node, w);
  };
  return c;
}

Codec recompute_codec(Field<RecomputeSpec> at) {
  using Kind = RecomputeSpec::Kind;
  Codec c = codec<RecomputeSpec>(
      "none, attention, block, or the list of values to save", at,
      [](const Node& node) -> Result<RecomputeSpec> {
        if (node.is_sequence()) return RecomputeSpec{Kind::named, TRY(read_list<std::string>(node, read_text))};
        if (is(node, "none")) return RecomputeSpec{Kind::none, {}};
        if (is(node, "attention")) return RecomputeSpec{Kind::attention, {}};
        if (is(node, "block")) return RecomputeSpec{Kind::block, {}};
        return nearly(node, node.wrong("none, attention, block, or a list of names of values"),
                      {"none", "attention", "block"});
      },
      [](const RecomputeSpec& value) {
        switch (value.kind) {
          case Kind::none: return Node("none");
          case Kind::attention: return Node("attention");
          case Kind::block: return Node("block");
          case Kind::named: break;
        }
        return list_node(value.save);
      });
  c.allowed = {"none", "attention", "block"};
  return c;
}

Codec mesh_codec(Field<std::vector<std::pair<std::string, std::int64_t>>> at) {
  using Axes = std::vector<std::pair<std::string, std::int64_t>>;
  return codec<Axes>(
      "map of axis to size", at,
      [](const Node& node) -> Result<Axes> {
        if (!node.is_map()) return node.wrong("a map of axis to size, such as { data: 2, tensor: 4 }");
        Axes axes;
        for (const Node::Entry& entry : node.entries()) {
          axes.emplace_back(entry.key, TRY(read_count(entry.value, 1, std::int64_t{1} << 31)));
        }
        return axes;
      },
      [](const Axes& axes) {
        Node node;
        for (const auto& [name, size] : axes) node.set(name, size);
        return node;
      });
}

Codec sharding_codec(Field<std::vector<ParameterSharding>> at) {
  using Rules = std::vector<ParameterSharding>;
  return codec<Rules>(
      "map of names to a map of dim to axes", at,
      [](const Node& node) -> Result<Rules> {
        constexpr const char* kWanted =
            "a map of names to a map of dim to axes, such as { 'blocks.*.mlp.up': { mlp: model } }";
        if (!node.is_map()) return node.wrong(kWanted);
        Rules rules;
        for (const Node::Entry& entry : node.entries()) {
          if (!entry.value.is_map())
            return entry.value.wrong("a map of dim to axes, such as { mlp: model, embed: fsdp }");
          ParameterSharding rule{entry.key, {}};
          for (const Node::Entry& dim : entry.value.entries())
            rule.dims.emplace_back(dim.key, TRY(read_list<std::string>(dim.value, read_text)));
          rules.push_back(std::move(rule));
        }
        return rules;
      },
      [](const Rules& rules) {
        Node node;
        for (const ParameterSharding& rule : rules) {
          Node dims = Node::map();
          for (const auto& [dim, axes] : rule.dims) dims.set(dim, list_node(axes));
          node.set(rule.names, std::move(dims));
        }
        return node;
      });
}

}  // namespace systole
