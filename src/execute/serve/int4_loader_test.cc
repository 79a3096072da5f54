// An engine whose weights are in int4: what it loads, what it keeps as it was stored, how close its logits are to those of
// the same numbers in f32, what it plans; and the law that a sequence's logits have the same bits alone and in company.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "describe/ir/layer_names.h"
#include "execute/serve/int8_loader.h"
#include "execute/serve/testing/tiny_engine.h"

namespace systole {
namespace {

DecoderSpec small_decoder(bool tied) {
  DecoderSpec spec = tiny_decoder(40, 24);
  spec.width = 64;
  spec.heads = 4;
  spec.mlp = 160;
  spec.tied = tied;
  return spec;
}

using Values = std::map<std::string, HostTensor>;

// Weights under which a product keeps the size of its input.
Values values_of(const Model& model) {
  Values values;
  for (const Parameter& parameter : model.parameters()) {
    HostTensor tensor = initial_value(parameter, 3);
    const double factor = parameter.init.kind == Init::Kind::normal ? 6 : 1;
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, factor * tensor.at(i));
    values.emplace(parameter.name, std::move(tensor));
  }
  return values;
}

std::unique_ptr<Engine> f32_engine(const Model& model, Device& device, const Values& values) {
  std::unique_ptr<Engine> engine = Engine::create(model, device, {}).value();
  for (const auto& [name, value] : values)
    engine->executor().write(engine->program().value_named(name), 0, value.bytes()).value();
  return engine;
}

LoadSome source_of(const Model& model, const Values& values) {
  return [&](Executor& executor) -> Status {
    for (std::size_t v = 0; v < executor.program().values.size(); ++v) {
      const ProgramValue& value = executor.program().values[v];
      for (const Parameter& p : model.parameters()) {
        const std::optional<LayerName> all = layer_name(p.name), one = layer_name(value.name);
        if (all ? !one || all->prefix != one->prefix || all->after != one->after : p.name != value.name) continue;
        const auto size = static_cast<std::size_t>(value.type.bytes().count());
        const std::size_t first = all ? static_cast<std::size_t>(one->first - all->first) * size : 0;
        TRY(executor.write(static_cast<int>(v), 0, values.at(p.name).bytes().subspan(first, size)));
      }
    }
    return {};
  };
}

std::unique_ptr<Engine> int4_engine(const Model& model, Device& device, EngineOptions options, const Values& values,
                                    const FindRows& stored = {}) {
  options.parameter = kInt4;
  std::unique_ptr<Engine> engine = Engine::create(model, device, options).value();
  const auto host = make_reference_device();
  load_int8(*engine, model, DType::f32, source_of(model, values), *host, stored).value();
  return engine;
}

// The group of a weight in the engine's memory.
Int4Block block_of(Engine& engine, const Int8Weight& weight, std::int64_t layer, std::int64_t row, std::int64_t group) {
  const auto part = [&](const std::string& name) {
    const std::span<std::byte> all = engine.executor().view(engine.program().value_named(name), 0);
    const std::size_t size = all.size() / static_cast<std::size_t>(weight.stacked ? weight.from.type.size(0) : 1);
    return all.subspan(static_cast<std::size_t>(layer) * size, size);
  };
  const auto codes = part(weight.q8_name()), scales = part(weight.scale_name());
  return block_at(weight.columns(), row, group, {reinterpret_cast<const std::uint8_t*>(codes.data()), codes.size()},
                  {reinterpret_cast<const std::uint16_t*>(scales.data()), scales.size() / 2});
}

// Calls visit(i, layer, row, column) for each element of the parameter.
template <typename Visit>
void for_each_element(const Int8Weight& weight, const Visit& visit) {
  const Shape shape = weight.tensor().shape;
  const std::int64_t layers = weight.stacked ? weight.from.type.size(0) : 1, size = num_elements(shape);
  const auto strides = strides_of(shape);
  for (std::int64_t i = 0; i < layers * size; ++i) {
    std::int64_t row = 0, column = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto dim = static_cast<std::size_t>(weight.order[d]);
      std::int64_t& index = static_cast<int>(d) < weight.outputs ? row : column;
      index = index * shape[dim] + i % size / strides[dim] % shape[dim];
    }
    visit(i, i / size, row, column);
  }
}

TEST(Int4Loader, EachWeightIsItsParameterWithinTwoSteps) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const Values values = values_of(*model);
  const auto engine = int4_engine(*model, *device, {}, values);
  std::vector<std::string> four, eight;
  for (const Int8Weight& weight : engine->int8_weights()) {
    (weight.bits == 4 ? four : eight).push_back(weight.from.name);
    if (weight.bits != 4) continue;
    const HostTensor& from = values.at(weight.from.name);
    double error = 0, power = 0;
    for_each_element(weight, [&](std::int64_t i, std::int64_t layer, std::int64_t row, std::int64_t column) {
      const Int4Block block = block_of(*engine, weight, layer, row, column / 32);
      const double got = value_of(block, static_cast<std::size_t>(column % 32));
      const double step = load(DType::f16, reinterpret_cast<const std::byte*>(&block.scale), 0);
      ASSERT_NEAR(got, from.at(i), 2 * step) << weight.from.name << " " << i;
      error += (got - from.at(i)) * (got - from.at(i));
      power += from.at(i) * from.at(i);
    });
    // A step is about 4 deviations / 15, its error that over √12.
    EXPECT_LT(std::sqrt(error / power), 0.1) << weight.from.name;
  }
  EXPECT_EQ(four.size(), 6U);
  EXPECT_EQ(eight, std::vector<std::string>{"embed.tokens"}) << "the head";
}

TEST(Int4Loader, GroupsThatAreStoredAreKept) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const Values values = values_of(*model);
  const auto made_up = [](std::int64_t i) {
    Int4Block block;
    block.scale = static_cast<std::uint16_t>(0x2000 + i);
    block.minimum = static_cast<std::uint16_t>(0xa000 + i);
    for (std::size_t c = 0; c < 16; ++c) block.codes[c] = static_cast<std::uint8_t>(i * 31 + static_cast<int>(c) * 7);
    return block;
  };
  std::vector<std::string> asked;
  const auto engine =
      int4_engine(*model, *device, {}, values,
                  [&](const std::string& parameter, const Int8Weight& weight) -> std::optional<StoredRows> {
                    asked.push_back(parameter);
                    if (parameter != "blocks.1.mlp.down") return std::nullopt;
                    StoredRows rows;
                    rows.groups = [&, groups = weight.columns() / 32](std::int64_t first, std::int64_t last,
                                                                      std::span<Int4Block> into) -> Status {
                      for (std::int64_t i = first * groups; i < last * groups; ++i)
                        into[static_cast<std::size_t>(i - first * groups)] = made_up(i);
                      return {};
                    };
                    return rows;
                  });
  EXPECT_NE(std::ranges::find(asked, "blocks.1.mlp.down"), asked.end()) << "names are those of single layers";
  for (const Int8Weight& weight : engine->int8_weights()) {
    if (weight.from.name != "blocks.{layer}.mlp.down") continue;
    const std::int64_t groups = weight.columns() / 32;
    for (std::int64_t i = 0; i < weight.rows() * groups; ++i) {
      const Int4Block got = block_of(*engine, weight, 1, i / groups, i % groups), want = made_up(i);
      ASSERT_EQ(got.codes, want.codes) << i;
      ASSERT_EQ(got.scale, want.scale) << i;
      ASSERT_EQ(got.minimum, want.minimum) << i;
    }
  }
}

TEST(Int4Loader, AStoredScaleThatIsNotFiniteIsNamed) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device(), host = make_reference_device();
  const Values values = values_of(*model);
  const auto engine = Engine::create(*model, *device, {.parameter = kInt4}).value();
  const Status loaded = load_int8(*engine, *model, DType::f32, source_of(*model, values), *host,
                                  [&](const std::string&, const Int8Weight& weight) -> std::optional<StoredRows> {
                                    if (weight.bits != 4) return std::nullopt;
                                    StoredRows rows;
                                    rows.groups = [](std::int64_t, std::int64_t, std::span<Int4Block> into) -> Status {
                                      into[5].minimum = 0x7c00;
                                      return {};
                                    };
                                    return rows;
                                  });
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::invalid);
  EXPECT_NE(loaded.error().message.find("not finite"), std::string::npos) << loaded.error().message;
}

// The rest is the error of activations in int8, of which each group of 32 has a scale: under 1% of a product.
TEST(Int4Engine, LogitsAreThoseOfTheSameNumbersInF32) {
  for (const bool tied : {true, false}) {
    const auto model = make_decoder(small_decoder(tied));
    const auto device = make_reference_device();
    const Values values = values_of(*model);
    const auto narrow = int4_engine(*model, *device, {}, values);
    Values widened = values;
    for (const Int8Weight& weight : narrow->int8_weights()) {
      if (weight.bits != 4) continue;
      for_each_element(weight, [&](std::int64_t i, std::int64_t layer, std::int64_t row, std::int64_t column) {
        const Int4Block block = block_of(*narrow, weight, layer, row, column / 32);
        widened.at(weight.from.name).set(i, value_of(block, static_cast<std::size_t>(column % 32)));
      });
    }
    const auto exact = f32_engine(*model, *device, widened);
    for (std::int32_t first = 0; first < 4; ++first) {
      const std::vector<std::int32_t> prompt{first, 7, first + 20};
      exact->prefill(0, prompt).value();
      narrow->prefill(0, prompt).value();
      double power = 0, error = 0;
      for (std::size_t i = 0; i < exact->logits(0).size(); ++i) {
        const double want = exact->logits(0)[i], difference = narrow->logits(0)[i] - want;
        power += want * want;
        error += difference * difference;
      }
      EXPECT_LT(std::sqrt(error / power), 0.05) << "tied " << tied << " prompt " << first;
      EXPECT_GT(error, 0) << "activations are not quantised";
    }
  }
}

TEST(Int4Engine, AloneIsInCompanyToTheBit) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const Values values = values_of(*model);
  const auto alone = int4_engine(*model, *device, {.slots = 1, .buckets = {8}}, values),
             together = int4_engine(*model, *device, {.slots = 5, .buckets = {4, 8}}, values);
  const auto same = [&](std::int64_t slot) {
    return std::memcmp(alone->logits(0).data(), together->logits(slot).data(), alone->logits(0).size_bytes()) == 0;
  };
  for (std::int64_t slot = 0; slot < 5; ++slot)
    together->prefill(slot, std::vector<std::int32_t>{static_cast<std::int32_t>(slot * 7), 1, 2}).value();
  alone->prefill(0, std::vector<std::int32_t>{14, 1, 2}).value();
  EXPECT_TRUE(same(2)) << "prefill";
  for (std::int32_t step = 0; step < 3; ++step) {
    std::vector<Engine::Next> next;
    for (std::int64_t slot = 0; slot < 5; ++slot) next.push_back({slot, static_cast<std::int32_t>((slot + step) % 40)});
    together->decode(next).value();
    alone->decode(std::vector<Engine::Next>{{0, next[2].token}}).value();
    EXPECT_TRUE(same(2)) << "step " << step;
  }
}

TEST(Int4Engine, GroupsArePlannedAtTwentyBytes) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const auto parameters = [&](DType dtype) {
    const Program program = engine_program(*model, {.parameter = dtype}, device->target(), nullptr);
    return memory_by_owner(program)[Residence::parameter].count();
  };
  const auto engine = Engine::create(*model, *device, {.parameter = kInt4}).value();
  std::int64_t from = 0, to = 0;
  for (const Int8Weight& weight : engine->int8_weights()) {
    from += weight.from.type.bytes().count();
    const std::int64_t bytes = weight.q8().bytes().count() + weight.scale().bytes().count();
    if (weight.bits == 4) { EXPECT_EQ(bytes, weight.from.type.num_elements() / 32 * 20) << weight.from.name; }
    to += bytes;
  }
  const double aligned = 64 * 40;  // buffers begin at multiples of 64
  EXPECT_NEAR(static_cast<double>(parameters(kInt4)), static_cast<double>(parameters(DType::f32) - from + to), aligned);
}

}  // namespace
}  // namespace systole
