// An engine whose weights are in int8: what it loads, how close its logits are, what it plans; and the law that a
// sequence's logits have the same bits alone and in company.

#include "execute/serve/int8_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "describe/ir/layer_names.h"
#include "describe/models/t5/t5.h"
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

// Weights under which a product keeps the size of its input.
HostTensor value_for(const Parameter& parameter) {
  HostTensor tensor = initial_value(parameter, 3);
  const double factor = parameter.init.kind == Init::Kind::normal ? 6 : 1;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, factor * tensor.at(i));
  return tensor;
}

std::unique_ptr<Engine> f32_engine(const Model& model, Device& device) {
  std::unique_ptr<Engine> engine = Engine::create(model, device, {}).value();
  for (const Parameter& p : model.parameters())
    engine->executor().write(engine->program().value_named(p.name), 0, value_for(p).bytes()).value();
  return engine;
}

// Loads what an executor has of the model's values: whole parameters, or one layer of a stack.
LoadSome source_of(const Model& model, int* loads = nullptr) {
  return [&model, loads](Executor& executor) -> Status {
    for (std::size_t v = 0; v < executor.program().values.size(); ++v) {
      const ProgramValue& value = executor.program().values[v];
      for (const Parameter& p : model.parameters()) {
        const std::optional<LayerName> all = layer_name(p.name), one = layer_name(value.name);
        if (all ? !one || all->prefix != one->prefix || all->after != one->after : p.name != value.name) continue;
        HostTensor whole = value_for(p);
        const auto size = static_cast<std::size_t>(value.type.bytes().count());
        const std::size_t first = all ? static_cast<std::size_t>(one->first - all->first) * size : 0;
        TRY(executor.write(static_cast<int>(v), 0, std::as_const(whole).bytes().subspan(first, size)));
        if (loads != nullptr) ++*loads;
      }
    }
    return {};
  };
}

std::unique_ptr<Engine> int8_engine(const Model& model, Device& device, EngineOptions options) {
  options.parameter = DType::i8;
  std::unique_ptr<Engine> engine = Engine::create(model, device, options).value();
  const auto host = make_reference_device();
  load_int8(*engine, model, DType::f32, source_of(model), *host).value();
  return engine;
}

HostTensor value_of(Engine& engine, const std::string& name) {
  const int v = engine.program().value_named(name);
  const Type& type = engine.program().values[static_cast<std::size_t>(v)].type;
  HostTensor tensor(type.dtype, type.shape);
  engine.executor().read(v, 0, tensor.bytes()).value();
  return tensor;
}

TEST(Int8Loader, EachWeightIsItsParameterWithinHalfAStep) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const auto engine = int8_engine(*model, *device, {});
  std::vector<std::string> names;
  for (const Int8Weight& weight : engine->int8_weights()) {
    names.push_back(weight.from.name);
    const HostTensor q8 = value_of(*engine, weight.q8_name()), scale = value_of(*engine, weight.scale_name());
    const HostTensor from = value_for(weight.from);
    const Shape shape = weight.tensor().shape;
    const std::int64_t layers = weight.stacked ? from.shape()[0] : 1, size = from.size() / layers;
    const auto strides = strides_of(shape);
    for (std::int64_t i = 0; i < from.size(); ++i) {
      std::int64_t row = 0, column = 0;  // of element i, by the order of the weight's dims
      for (std::size_t d = 0; d < shape.size(); ++d) {
        const auto dim = static_cast<std::size_t>(weight.order[d]);
        std::int64_t& index = static_cast<int>(d) < weight.outputs ? row : column;
        index = index * shape[dim] + i % size / strides[dim] % shape[dim];
      }
      const std::int64_t layer = i / size;
      const double step = scale.at(layer * weight.rows() + row);
      ASSERT_NEAR(q8.at(layer * size + row * weight.columns() + column) * step, from.at(i), 0.5001 * step)
          << weight.from.name << " " << i;
    }
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"blocks.{layer}.attn.k", "blocks.{layer}.attn.o", "blocks.{layer}.attn.q",
                                             "blocks.{layer}.attn.v", "blocks.{layer}.mlp.down",
                                             "blocks.{layer}.mlp.up", "embed.tokens"}));
  // What is not a matrix of a product is as it was.
  for (const char* name : {"norm.scale", "embed.positions", "blocks.{layer}.norm1.scale"}) {
    const auto parameter =
        std::ranges::find_if(model->parameters(), [&](const Parameter& p) { return p.name == name; });
    EXPECT_TRUE(value_of(*engine, name) == value_for(*parameter)) << name;
  }
}

TEST(Int8Loader, TensorsAreLoadedOneByOne) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device(), host = make_reference_device();
  const auto engine = Engine::create(*model, *device, {.parameter = DType::i8}).value();
  Bytes most;
  int loads = 0;
  const LoadSome source = source_of(*model, &loads);
  const LoadSome watched = [&](Executor& executor) {
    most = std::max(most, executor.arena());
    return source(executor);
  };
  load_int8(*engine, *model, DType::f32, watched, *host).value();
  std::int64_t tensors = 0;
  Bytes largest;
  for (const Parameter& p : model->parameters()) {
    const std::int64_t layers = layer_name(p.name) ? p.type.size(0) : 1;
    tensors += layers;
    largest = std::max(largest, Bytes(p.type.bytes().count() / layers));
  }
  EXPECT_EQ(loads, tensors);
  EXPECT_EQ(most, largest);
}

// The rows of all weights but one layer's of one, as a file has them.
FindRows rows_of(const Model& model, int* found) {
  return [&model, found](const std::string& name, const Int8Weight& weight) -> std::optional<StoredRows> {
    if (name == "blocks.1.mlp.up") return std::nullopt;
    const std::optional<LayerName> all = layer_name(weight.from.name);
    std::int64_t layer = 0;
    while (all && all->of(layer) != name) ++layer;
    ++*found;
    return StoredRows{[&model, weight, layer](std::int64_t first, std::int64_t last, const TakeRow& take) -> Status {
      const HostTensor whole = value_for(weight.from);
      const Shape shape = weight.tensor().shape;
      const auto strides = strides_of(shape);
      std::vector<float> matrix(static_cast<std::size_t>(weight.rows() * weight.columns()));
      for (std::int64_t i = 0; i < num_elements(shape); ++i) {
        std::int64_t at = 0;  // in the order of the weight's dims
        for (const int dim : weight.order) {
          const auto d = static_cast<std::size_t>(dim);
          at = at * shape[d] + i / strides[d] % shape[d];
        }
        matrix[static_cast<std::size_t>(at)] = static_cast<float>(whole.at(layer * num_elements(shape) + i));
      }
      for (std::int64_t row = first; row < last; ++row) {
        take(row, std::span(matrix).subspan(static_cast<std::size_t>(row * weight.columns()),
                                            static_cast<std::size_t>(weight.columns())));
      }
      return {};
    }};
  };
}

TEST(Int8Loader, RowsOfAFileGiveTheBytesOfTheTensors) {
  DecoderSpec spec = small_decoder(true);
  spec.vocabulary = 2100;  // more than a thread reads at once
  ASSERT_GT(spec.vocabulary * spec.width, kPieceNumbers);
  const auto model = make_decoder(spec);
  const auto device = make_reference_device(), host = make_reference_device();
  for (const DType parameter : {DType::i8, kInt4}) {
    const auto tensors = Engine::create(*model, *device, {.parameter = parameter}).value(),
               rows = Engine::create(*model, *device, {.parameter = parameter}).value();
    int all = 0, loads = 0, found = 0;
    load_int8(*tensors, *model, DType::f32, source_of(*model, &all), *host).value();
    load_int8(*rows, *model, DType::f32, source_of(*model, &loads), *host, rows_of(*model, &found)).value();
    EXPECT_EQ(loads, all - found) << "what has rows is not loaded";
    EXPECT_EQ(found, 2 * 6 - 1 + 1) << "six matrices of two layers but one, and the table";
    for (const ProgramValue& value : rows->program().values) {
      if (value.residence != Residence::parameter) continue;
      EXPECT_TRUE(value_of(*rows, value.name) == value_of(*tensors, value.name)) << value.name;
    }
  }
}

TEST(Int8Loader, RowsThatCannotBeReadOrAreNotFiniteAreRefused) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device(), host = make_reference_device();
  const auto engine = Engine::create(*model, *device, {.parameter = DType::i8}).value();
  const auto loaded = [&](const StoredRows& rows) {
    return load_int8(*engine, *model, DType::f32, source_of(*model), *host,
                     [&](const std::string&, const Int8Weight&) { return std::optional(rows); });
  };
  const Status broken = loaded({[](std::int64_t, std::int64_t, const TakeRow&) -> Status {
    return error(ErrorKind::corrupt, "the file was cut");
  }});
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message, "the file was cut");
  const Status infinite = loaded({[](std::int64_t first, std::int64_t last, const TakeRow& take) -> Status {
    const std::vector<float> row(64, INFINITY);
    for (; first < last; ++first) take(first, std::span(row));
    return {};
  }});
  ASSERT_FALSE(infinite.ok());
  EXPECT_NE(infinite.error().message.find("' has a value that is not finite"), std::string::npos)
      << infinite.error().message;
}

TEST(Int8Loader, AValueThatIsNotFiniteIsNamed) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device(), host = make_reference_device();
  const auto engine = Engine::create(*model, *device, {.parameter = DType::i8}).value();
  const LoadSome source = source_of(*model);
  const Status loaded = load_int8(
      *engine, *model, DType::f32,
      [&](Executor& executor) -> Status {
        TRY(source(executor));
        if (executor.program().values[0].name == "blocks.{layer+1}.mlp.up")
          executor.view(0, 0)[3] = executor.view(0, 0)[2] = std::byte{0xff};
        return {};
      },
      *host);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().kind, ErrorKind::invalid);
  EXPECT_NE(loaded.error().message.find("blocks.1.mlp.up"), std::string::npos) << loaded.error().message;
}

// A product's error is about 1% of it: both operands are off by a step of max / 127 over √12, and the maximum of normal
// numbers is about three deviations. At most thirteen products follow each other.
constexpr double kError = 0.1;

// Where f32's likeliest token is ahead by more than the difference, int8's is the same.
TEST(Int8Engine, LogitsAreCloseToThoseOfF32) {
  for (const bool tied : {true, false}) {
    const auto model = make_decoder(small_decoder(tied));
    const auto device = make_reference_device();
    const auto exact = f32_engine(*model, *device), narrow = int8_engine(*model, *device, {});
    int apart = 0;
    for (std::int32_t first = 0; first < 12; ++first) {
      const std::vector<std::int32_t> prompt{first, 7, first + 20};
      exact->prefill(0, prompt).value();
      narrow->prefill(0, prompt).value();
      for (int step = 0; step < 3; ++step) {
        const std::span<const float> want = exact->logits(0), got = narrow->logits(0);
        double power = 0, error = 0, worst = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
          const double difference = std::abs(double{got[i]} - double{want[i]});
          power += double{want[i]} * double{want[i]};
          error += difference * difference;
          worst = std::max(worst, difference);
        }
        EXPECT_LT(std::sqrt(error / power), kError) << "tied " << tied << " prompt " << first;
        EXPECT_GT(error, 0) << "not int8";
        std::vector<float> sorted(want.begin(), want.end());
        std::ranges::sort(sorted, std::greater());
        const auto best = std::ranges::max_element(want) - want.begin();
        if (double{sorted[0]} - double{sorted[1]} > 2 * worst) {
          ++apart;
          EXPECT_EQ(std::ranges::max_element(got) - got.begin(), best);
        }
        const auto token = static_cast<std::int32_t>(best);
        exact->decode(std::vector<Engine::Next>{{0, token}}).value();
        narrow->decode(std::vector<Engine::Next>{{0, token}}).value();
      }
    }
    EXPECT_GT(apart, 10) << "too few are apart to show anything";
  }
}

TEST(Int8Engine, AloneIsInCompanyToTheBit) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const auto alone = int8_engine(*model, *device, {.slots = 1, .buckets = {8}}),
             together = int8_engine(*model, *device, {.slots = 5, .buckets = {4, 8}});
  const auto same = [&](std::int64_t slot) {
    return std::memcmp(alone->logits(0).data(), together->logits(slot).data(), alone->logits(0).size_bytes()) == 0;
  };
  for (std::int64_t slot = 0; slot < 5; ++slot) {
    const auto token = static_cast<std::int32_t>(slot * 7);
    together->prefill(slot, std::vector<std::int32_t>{token, 1, 2}).value();
  }
  alone->prefill(0, std::vector<std::int32_t>{14, 1, 2}).value();
  EXPECT_TRUE(same(2)) << "prefill";
  for (std::int32_t step = 0; step < 6; ++step) {
    std::vector<Engine::Next> next;
    for (std::int64_t slot = 0; slot < 5; ++slot) next.push_back({slot, static_cast<std::int32_t>((slot + step) % 40)});
    together->decode(next).value();
    alone->decode(std::vector<Engine::Next>{{0, next[2].token}}).value();
    EXPECT_TRUE(same(2)) << "step " << step;
  }
}

TEST(Int8Engine, MatricesArePlannedAtAQuarter) {
  const auto model = make_decoder(small_decoder(true));
  const auto device = make_reference_device();
  const auto parameters = [&](DType dtype) {
    const Program program = engine_program(*model, {.parameter = dtype}, device->target(), nullptr);
    return memory_by_owner(program)[Residence::parameter].count();
  };
  const auto engine = Engine::create(*model, *device, {.parameter = DType::i8}).value();
  std::int64_t matrices = 0, scales = 0;
  for (const Int8Weight& weight : engine->int8_weights()) {
    matrices += weight.from.type.bytes().count();
    scales += weight.scale().bytes().count();
    EXPECT_EQ(weight.q8().bytes().count() * 4, weight.from.type.bytes().count());
  }
  const std::int64_t aligned = 64 * 40;  // buffers begin at multiples of 64
  EXPECT_NEAR(static_cast<double>(parameters(DType::i8)),
              static_cast<double>(parameters(DType::f32) - matrices + matrices / 4 + scales), aligned);
  EXPECT_GT(matrices, parameters(DType::f32) * 9 / 10);
}

TEST(Int8Engine, AnEncoderDecoderHasWeightsInInt8Too) {
  T5Spec spec;
  spec.layers = 2;
  spec.width = 32;
  spec.heads = 4;
  spec.mlp = 64;
  spec.vocabulary = 20;
  spec.context = 10;
  spec.target_context = 8;
  const auto model = make_t5(spec);
  const auto device = make_reference_device();
  const auto exact = f32_engine(*model, *device), narrow = int8_engine(*model, *device, {});
  EXPECT_FALSE(narrow->int8_weights().empty());
  const std::vector<std::int32_t> prompt{3, 7, 1};
  exact->prefill(0, prompt).value();
  narrow->prefill(0, prompt).value();
  double power = 0, error = 0;
  for (std::size_t i = 0; i < exact->logits(0).size(); ++i) {
    const double want = exact->logits(0)[i], difference = narrow->logits(0)[i] - want;
    power += want * want;
    error += difference * difference;
  }
  EXPECT_LT(std::sqrt(error / power), kError);
}

TEST(Int8Engine, ExpertsAreRefused) {
  DecoderSpec spec = small_decoder(true);
  spec.bias = false;
  spec.moe.experts = 4;
  spec.moe.top_k = 2;
  const auto model = make_decoder(spec);
  const auto device = make_reference_device();
  const auto engine = Engine::create(*model, *device, {.parameter = DType::i8});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().kind, ErrorKind::unsupported);
  EXPECT_NE(engine.error().message.find("moe."), std::string::npos) << engine.error().message;
}

}  // namespace
}  // namespace systole
