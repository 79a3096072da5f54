// Whole models, forward and backward, sharded over simulated meshes: the loss and every gradient equal those of the
// whole model, in f64 to 1e-12 of the largest.

#include "describe/partition/spmd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "describe/autodiff/autodiff.h"
#include "describe/ir/rewrite.h"
#include "describe/ir/text.h"
#include "describe/ir/verify.h"
#include "describe/models/decoder/testing/tiny_decoder.h"
#include "describe/models/mlp/mlp.h"
#include "describe/models/t5/testing/tiny_t5.h"
#include "describe/ops/testing/cut.h"
#include "describe/ops/testing/op_case.h"

namespace systole {
namespace {

const std::vector<AxisRule> kRules{{"data", {"batch"}},
                                   {"fsdp", {"batch"}},
                                   {"expert", {"expert", "batch"}},
                                   {"model", {"heads", "kv_heads", "mlp", "vocab", "seq"}}};

Mesh mesh_of(const std::string& text) { return Mesh::parse(text).value(); }

// Parameters are sharded by their dim names; the axis "fsdp" also shards the first free dim.
Layout stored(const Type& type, const Mesh& mesh, bool fsdp) {
  Layout layout = preferred_by_names(type, kRules, mesh);
  for (int& dim : layout.at) {
    if (dim == kAnywhere) dim = Layout::kWhole;
  }
  for (std::size_t a = 0; fsdp && a < layout.at.size(); ++a) {
    if (mesh.axes()[a].name != "fsdp") continue;
    for (int dim = 0; dim < type.ndim() && layout.at[a] < 0; ++dim) {
      if (type.name(dim) != "layer") layout.at[a] = dim;
    }
  }
  return layout;
}

class CutModel {
 public:
  CutModel(const Graph& loss, const Mesh& mesh, const std::map<std::string, HostTensor>& data,
           const RecomputePolicy& policy)
      : mesh_(mesh), data_(data), whole_(differentiate(in_f64(loss), "loss", policy)) {}

  // Returns the largest difference of any loss, residual and gradient, relative to the largest value there.
  double check() {
    SpmdRequest request{mesh_, kRules, {}, {}, {}, false};
    std::map<std::string, Layout> gradients;
    for (const GraphInput& input : whole_.forward.inputs()) {
      const Type& type = whole_.forward.type(input.value);
      if (input.parameter) {
        request.inputs[input.name] = stored(type, mesh_, true);
        request.used[input.name] = stored(type, mesh_, false);
        gradients["gradient." + input.name] = stored(type, mesh_, true);
      } else if (type.ndim() > 0) {
        Layout layout = Layout::whole(mesh_);
        for (std::size_t a = 0; a < layout.at.size(); ++a) {
          if (mesh_.axes()[a].name != "model") layout.at[a] = 0;
        }
        request.inputs[input.name] = layout;
      }
    }
    request.outputs["loss"] = Layout::whole(mesh_);
    const SpmdGraph forward = spmd(whole_.forward, request);
    verify(forward.graph);
    for (const GraphOutput& output : whole_.forward.outputs())
      request.inputs[output.name] = forward.outputs.at(output.name);
    request.outputs = gradients;
    const SpmdGraph backward = spmd(whole_.backward, request);
    verify(backward.graph);
    const auto residuals = compare(whole_.forward, forward, arguments(whole_.forward, data_), {});
    compare(whole_.backward, backward, {}, residuals);
    return worst_;
  }

 private:
  using Named = std::map<std::string, HostTensor>;
  struct Both {
    Named whole;
    std::vector<Named> parts;
  };

  // Evaluates both and returns the outputs.
  Both compare(const Graph& whole, const SpmdGraph& cut_graph, std::vector<HostTensor> args, const Both& residuals) {
    if (args.empty()) {
      const std::vector<HostTensor> first = arguments(whole_.forward, data_);
      Named by_name = residuals.whole;
      for (std::size_t i = 0; i < first.size(); ++i) by_name.emplace(whole_.forward.inputs()[i].name, first[i]);
      for (const GraphInput& input : whole.inputs()) args.push_back(by_name.at(input.name));
    }
    Named by_name;
    for (std::size_t i = 0; i < args.size(); ++i) by_name.emplace(whole.inputs()[i].name, args[i]);
    PerRank inputs;
    for (std::int64_t device = 0; device < mesh_.num_devices(); ++device) {
      inputs.emplace_back();
      for (const GraphInput& input : cut_graph.graph.inputs()) {
        if (input.name.starts_with("residual.") && !residuals.parts.empty()) {
          inputs.back().push_back(residuals.parts[static_cast<std::size_t>(device)].at(input.name));
        } else if (input.name.starts_with("coordinate.")) {
          const std::size_t axis = mesh_.find(input.name.substr(11)).value();
          inputs.back().push_back(scalar(static_cast<double>(mesh_.coordinates(device)[axis])));
        } else {
          inputs.back().push_back(cut(by_name.at(input.name), layout_of(input), mesh_, device));
        }
      }
    }
    const PerRank outputs = evaluate_on(fake(mesh_), cut_graph.graph, inputs);
    const std::vector<HostTensor> expected = evaluate(whole, args);
    Both both;
    both.parts.resize(outputs.size());
    for (std::size_t o = 0; o < expected.size(); ++o) {
      const std::string& name = whole.outputs()[o].name;
      std::vector<HostTensor> parts;
      for (std::size_t device = 0; device < outputs.size(); ++device) {
        parts.push_back(outputs[device][o]);
        both.parts[device].emplace(name, outputs[device][o]);
      }
      const HostTensor got = uncut(parts, expected[o].shape(), cut_graph.outputs.at(name), mesh_);
      near(got, expected[o], name, cut_graph.graph);
      both.whole.emplace(name, expected[o]);
    }
    return both;
  }

  Layout layout_of(const GraphInput& input) const {
    const Type& type = whole_.forward.type(
        whole_.forward.inputs()[static_cast<std::size_t>(*whole_.forward.find_input(input.name))].value);
    if (input.parameter) return stored(type, mesh_, true);
    Layout layout = Layout::whole(mesh_);
    for (std::size_t a = 0; type.ndim() > 0 && a < layout.at.size(); ++a) {
      if (mesh_.axes()[a].name != "model") layout.at[a] = 0;
    }
    return layout;
  }

  void near(const HostTensor& got, const HostTensor& expected, const std::string& name, const Graph& graph) {
    const double apart = relative_difference(got, expected);
    EXPECT_LE(apart, 1e-12) << to_string(mesh_) << " " << name << (shown_ ? "" : "\n" + to_text(graph));
    if (apart > 1e-12) shown_ = true;
    worst_ = std::max(worst_, apart);
  }

  const Mesh mesh_;
  const std::map<std::string, HostTensor>& data_;
  Differentiated whole_;
  bool shown_ = false;
  double worst_ = 0;
};

// 6 heads of 2, hidden layers of 18, rows of 10, 24 words: 2, 3 and 6 divide most of them, 4 and 8 only some.
template <typename Config>
Config sized(Config config) {
  config.layers = 2;
  config.width = 12;
  config.heads = 6;
  config.head = 2;
  config.mlp = 18;
  config.vocabulary = 24;
  config.context = 10;
  config.dropout = 0.25;
  return config;
}

struct Family {
  const char* name;
  std::unique_ptr<const Model> model;
  BatchShape shape;
  std::map<std::string, HostTensor> data;
};

std::map<std::string, HostTensor> pairs_data(std::int64_t rows) {
  const Type ids(DType::i32, {rows, 10});
  auto data = one_document(rows, 10, 24);
  data["target_tokens"] = random_ids(ids, 3, 24);
  data["target_segments"] = data.at("segments");
  return data;
}

std::vector<Family> families() {
  constexpr std::int64_t kRows = 24;
  std::vector<Family> all;
  const auto text = one_document(kRows, 10, 24);
  const auto decoder = [&](const char* name, const DecoderSpec& config) {
    all.push_back({name, make_decoder(config), {kRows, 10}, text});
  };
  decoder("gpt", sized(tiny_decoder()));
  DecoderSpec llama = sized(llama_decoder());
  llama.kv_heads = 2;
  decoder("llama", llama);
  decoder("parallel", sized(parallel_decoder()));
  decoder("windowed", sized(windowed_decoder()));
  DecoderSpec mixture = sized(shared_experts_decoder());
  mixture.mlp = 18;
  mixture.moe.group = 5;
  decoder("experts", mixture);
  DecoderSpec latent = sized(latent_decoder());
  latent.kv_heads = 0;
  latent.qk_norm = false;
  latent.moe.group = 5;
  decoder("latent", latent);
  DecoderSpec normed = sized(llama_decoder());
  normed.qk_norm = true;
  decoder("normed", normed);
  T5Spec t5 = sized(tiny_gated_t5());
  t5.decoder_layers = 2;
  t5.target_context = 10;
  all.push_back({"t5", make_t5(t5), {kRows, 10}, pairs_data(kRows)});
  MlpSpec mlp;
  mlp.inputs = 6;
  mlp.hidden = {18, 12};
  mlp.outputs = 3;
  mlp.dropout = 0.25;
  std::map<std::string, HostTensor> regression{{"x", random_tensor(Type(DType::f64, {kRows, 6}), "x", 0, 1)},
                                               {"y", random_tensor(Type(DType::f64, {kRows, 3}), "y", 0, 1)},
                                               {"seed", scalar(5)},
                                               {"step", scalar(6)},
                                               {"row", scalar(0)}};
  all.push_back({"mlp", make_mlp(mlp), {kRows, 0}, regression});
  HostTensor filled(DType::f64, {kRows});
  for (std::int64_t row = 0; row < kRows - 5; ++row) filled.set(row, 1);
  regression[kFilled] = std::move(filled);
  all.push_back({"padded", make_mlp(mlp), {.rows = kRows, .padded = true}, std::move(regression)});
  return all;
}

// All factorisations of `ranks` as data × fsdp × model.
std::vector<std::string> factorisations(int ranks) {
  std::vector<std::string> meshes;
  for (int data = 1; data <= ranks; ++data) {
    for (int fsdp = 1; fsdp * data <= ranks; ++fsdp) {
      if (ranks % (data * fsdp) != 0) continue;
      std::vector<std::string> axes;
      for (const auto& [name, size] :
           {std::pair("data", data), std::pair("fsdp", fsdp), std::pair("model", ranks / data / fsdp)}) {
        if (size > 1) axes.push_back(fmt::format("{}={}", name, size));
      }
      meshes.push_back(fmt::format("{}", fmt::join(axes, " ")));
    }
  }
  return meshes;
}

// With SYSTOLE_TEST_LONG every family on every mesh; else each family on a few, which together cover all meshes.
TEST(Spmd, every_family_over_every_factorisation) {
  std::vector<std::string> meshes;
  for (const int ranks : {2, 3, 4, 6, 8}) {
    for (std::string& mesh : factorisations(ranks)) meshes.push_back(std::move(mesh));
  }
  const bool all = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  std::size_t turn = 0;
  for (const Family& family : families()) {
    const Graph loss = family.model->loss(family.shape, true);
    for (std::size_t m = 0; m < meshes.size(); ++m) {
      if (!all && (m + turn) % 16 != 0) continue;
      SCOPED_TRACE(fmt::format("{} on {}", family.name, meshes[m]));
      double worst = 0;
      for (const auto policy : {RecomputePolicy::Kind::none, RecomputePolicy::Kind::block})
        worst = std::max(worst, CutModel(loss, mesh_of(meshes[m]), family.data, {policy, {}}).check());
      if (all) fmt::print("{:<9} {:<22} worst {:.1e}, allowed 1e-12\n", family.name, meshes[m], worst);
    }
    ++turn;
  }
}

// Megatron's tensor and sequence parallelism (Korthikanti et al., 2022, figure 5): per block two all-gathers of the
// sequence and two reduce-scatters, no more.
TEST(Spmd, collectives_of_a_block) {
  const auto model = make_decoder(sized(tiny_decoder()));
  const Mesh mesh = mesh_of("model=2");
  SpmdRequest request{mesh, kRules, {}, {}, {}, false};
  const Graph loss = in_f64(model->loss({24, 10}, false));
  for (const GraphInput& input : loss.inputs()) {
    if (input.parameter) request.inputs[input.name] = stored(loss.type(input.value), mesh, false);
  }
  const Graph cut = spmd(loss, request).graph;
  std::string found, outside;
  for (const GraphNode& node : cut.nodes()) {
    if (is(node, "all_reduce") || is(node, "reduce_scatter") || is(node, "all_gather"))
      outside += std::string(node.op->name) + " ";
    if (!is(node, "repeat")) continue;
    for (const GraphNode& inner : node.regions[0].nodes()) {
      if (inner.attrs.find("axis") != nullptr) found += std::string(inner.op->name) + " ";
    }
  }
  EXPECT_EQ(found, "all_gather reduce_scatter all_gather reduce_scatter ");
  // Reduce-scatter of the embedding, all-gather before the logits, three all-reduces of the loss: label logit, maximum,
  // sum of exponentials.
  EXPECT_EQ(outside, "reduce_scatter all_gather all_reduce all_reduce all_reduce ") << to_text(cut);
}

std::string names_of_collectives(const Graph& graph) {
  std::string found;
  for (const GraphNode& node : graph.nodes()) {
    if (node.attrs.find("axis") != nullptr)
      found += fmt::format("{}({}) ", node.op->name, node.attrs.get_string("axis"));
  }
  return found;
}

// The expert axis shards the batch outside of experts: alone, and with data, fully sharded and tensor parallelism.
TEST(Spmd, experts_over_their_axis) {
  DecoderSpec config = sized(shared_experts_decoder());
  config.moe.experts = 8;
  config.moe.group = 5;
  config.moe.top_k = 2;
  const auto data = one_document(24, 10, 24);
  const Graph loss = make_decoder(config)->loss({24, 10}, true);
  // With SYSTOLE_TEST_LONG each mesh under each policy; else under one of them.
  const bool all = std::getenv("SYSTOLE_TEST_LONG") != nullptr;
  bool blocks = false;
  for (const char* mesh :
       {"expert=2", "expert=4", "data=2 expert=2", "fsdp=2 expert=2", "expert=2 model=2", "data=3 expert=4"}) {
    SCOPED_TRACE(mesh);
    blocks = !blocks;
    for (const auto policy : {RecomputePolicy::Kind::none, RecomputePolicy::Kind::block}) {
      if (all || blocks == (policy == RecomputePolicy::Kind::block))
        CutModel(loss, mesh_of(mesh), data, {policy, {}}).check();
    }
  }
}

// Expert parallelism: all-to-alls send tokens and their gates to the devices of their experts, and one returns the
// results. Expert weights stay in place, and each device routes its own tokens. A buffer sends top_k × capacity_factor
// / devices of what an all-gather of all tokens would: half, for 4 devices and top 2.
TEST(Spmd, tokens_go_to_their_experts_all_to_all) {
  DecoderSpec config = sized(shared_experts_decoder());
  config.moe = {.experts = 8, .top_k = 2, .capacity_factor = 1};
  const auto model = make_decoder(config);
  const Mesh mesh = mesh_of("expert=4");
  SpmdRequest request{mesh, kRules, {}, {}, {}, false};
  const Graph loss = in_f64(model->loss({24, 10}, false));
  for (const GraphInput& input : loss.inputs()) {
    const Type& type = loss.type(input.value);
    request.inputs[input.name] = input.parameter ? stored(type, mesh, false) : Layout{{0}};
  }
  const Graph cut = spmd(loss, request).graph;
  int repeats = 0;
  for (const GraphNode& node : cut.nodes()) {
    if (is(node, "repeat")) {
      ++repeats;
      EXPECT_EQ(names_of_collectives(node.regions[0]), "all_to_all(expert) all_to_all(expert) all_to_all(expert) ")
          << to_text(cut);
    }
  }
  EXPECT_GT(repeats, 0);
}

// The graph of one device for the training loss of experts.
Graph cut_experts(const Mesh& mesh) {
  DecoderSpec config = sized(shared_experts_decoder());
  config.moe = {.experts = 8, .top_k = 2, .group = 5, .balance = 0.5};
  const Graph loss = make_decoder(config)->loss({24, 10}, true);
  SpmdRequest request{mesh, kRules, {}, {}, {}, false};
  for (const GraphInput& input : loss.inputs()) {
    const Type& type = loss.type(input.value);
    Layout rows = Layout::whole(mesh);
    for (std::size_t a = 0; type.ndim() > 0 && a < rows.at.size(); ++a) {
      if (mesh.axes()[a].name != "model") rows.at[a] = 0;
    }
    request.inputs[input.name] = input.parameter ? stored(type, mesh, false) : rows;
  }
  for (const GraphOutput& output : loss.outputs()) request.outputs.emplace(output.name, Layout::whole(mesh));
  return spmd(loss, request).graph;
}

// A constant is created in the shape that each device needs, never as a whole that is then sliced.
void expect_no_part_of_a_constant(const Graph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    for (const Graph& body : node.regions) expect_no_part_of_a_constant(body);
    if (!is(node, "take_part")) continue;
    const NodeId from = graph.producer(node.operands[0]);
    EXPECT_FALSE(from.valid() && is(graph.node(from), "constant")) << to_text(graph);
  }
}

TEST(Spmd, a_part_of_a_constant_is_made_as_a_part) {
  for (const char* mesh : {"data=4", "data=2 expert=2", "expert=4 model=2"})
    expect_no_part_of_a_constant(cut_experts(mesh_of(mesh)));
}

// The balance is replicated, and the label count it is multiplied by is partial sums over the rows of each device.
// Their product is partial sums of the loss, which is reduced once, together with the counts.
TEST(Spmd, a_number_times_terms_is_terms) {
  const Graph cut = cut_experts(mesh_of("data=2 expert=2"));
  EXPECT_EQ(names_of_collectives(cut), "all_reduce(data) all_reduce(expert) ") << to_text(cut);
}

}  // namespace
}  // namespace systole
