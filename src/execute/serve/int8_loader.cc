#include "execute/serve/int8_loader.h"

#include <algorithm>
#include <cmath>

#include "describe/ir/layer_names.h"
#include "ground/base/parallel.h"

namespace systole {
namespace {

// A value of the engine while its layers are written: in place where the host sees it.
class Destination {
 public:
  Destination(Executor& executor, const std::string& name)
      : executor_(executor), value_(executor.program().value_named(name)), bytes_(executor.view(value_, 0)) {
    if (!bytes_.empty()) return;
    buffer_.resize(static_cast<std::size_t>(type().bytes().count()));
    bytes_ = buffer_;
  }
  const Type& type() const { return executor_.program().values[static_cast<std::size_t>(value_)].type; }
  // Part `index` of `count` equal parts.
  template <typename T>
  std::span<T> part(std::int64_t index, std::int64_t count) {
    const std::size_t size = bytes_.size() / static_cast<std::size_t>(count);
    return {reinterpret_cast<T*>(bytes_.data() + static_cast<std::size_t>(index) * size), size / sizeof(T)};
  }
  Status finish() { return buffer_.empty() ? Status() : executor_.write(value_, 0, buffer_); }

 private:
  Executor& executor_;
  int value_;
  std::span<std::byte> bytes_;
  std::vector<std::byte> buffer_;
};

// One tensor of a parameter, loaded into memory of its own and converted to f32.
class Tensor {
 public:
  static Result<Tensor> load(const Parameter& parameter, const LoadSome& load, Device& host) {
    Tensor tensor;
    ProgramBuilder builder("tensor", Mesh{}, host.target(), nullptr);
    builder.add_value({parameter.name, parameter.type, Residence::parameter, 1, parameter, 0, 0});
    tensor.program_ = std::make_unique<const Program>(builder.finish());
    tensor.executor_ = TRY(Executor::create(*tensor.program_, host));
    TRY(load(*tensor.executor_));
    const std::span<std::byte> bytes = tensor.executor_->view(0, 0);
    const std::int64_t count = parameter.type.num_elements();
    if (parameter.type.dtype == DType::f32) {
      tensor.numbers_ = {reinterpret_cast<const float*>(bytes.data()), static_cast<std::size_t>(count)};
      return tensor;
    }
    tensor.converted_.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      tensor.converted_.push_back(static_cast<float>(systole::load(parameter.type.dtype, bytes.data(), i)));
    tensor.numbers_ = tensor.converted_;
    return tensor;
  }
  std::span<const float> numbers() const { return numbers_; }

 private:
  std::unique_ptr<const Program> program_;
  std::unique_ptr<Executor> executor_;
  std::vector<float> converted_;
  std::span<const float> numbers_;
};

// The parameter of one layer alone: a stack of one.
Parameter of_layer(const Parameter& parameter, const LayerName& layers, std::int64_t layer) {
  Parameter one = parameter;
  one.name = layers.from(layers.first + layer * layers.step);
  one.type.shape[0] = 1;
  return one;
}

Status quantize(const Int8Weight& weight, const std::string& name, std::span<const float> numbers,
                std::span<std::int8_t> q8, std::span<float> scales) {
  const int threads = io_threads();
  const std::int64_t rows = weight.rows(), parts = std::min<std::int64_t>(rows, 4 * threads);
  TRY(for_each_in_parallel(static_cast<std::size_t>(parts), threads, [&](std::size_t part) -> Status {
    const auto at = static_cast<std::int64_t>(part);
    quantize_rows(weight, numbers, rows * at / parts, rows * (at + 1) / parts, q8, scales);
    return {};
  }));
  if (std::ranges::all_of(scales, [](float scale) { return std::isfinite(scale); })) return {};
  return error(ErrorKind::invalid, "'{}' has a value that is not finite", name)
      .hinted("its run diverged, or its file is damaged; take another checkpoint or file");
}

}  // namespace

Status load_int8(Engine& engine, const Model& model, DType stored, const LoadSome& load, Device& host) {
  Executor& executor = engine.executor();
  const std::span<const Int8Weight> weights = engine.int8_weights();
  for (Parameter parameter : model.parameters()) {
    const auto found =
        std::ranges::find_if(weights, [&](const Int8Weight& w) { return w.from.name == parameter.name; });
    const Int8Weight* const weight = found == weights.end() ? nullptr : &*found;
    const std::string name = weight == nullptr ? parameter.name : weight->q8_name();
    if (!executor.program().find_value(name)) continue;  // no function reads it
    const std::optional<LayerName> layers = layer_name(parameter.name);
    const std::int64_t count = layers ? parameter.type.size(0) : 1;
    if (is_float(parameter.type.dtype)) parameter.type.dtype = stored;
    Destination numbers(executor, name);
    std::optional<Destination> scales;
    if (weight != nullptr) scales.emplace(executor, weight->scale_name());
    for (std::int64_t i = 0; i < count; ++i) {
      const Parameter one = layers ? of_layer(parameter, *layers, i) : parameter;
      const Tensor tensor = TRY(Tensor::load(one, load, host));
      if (weight != nullptr) {
        TRY(quantize(*weight, layers ? layers->of(i) : one.name, tensor.numbers(), numbers.part<std::int8_t>(i, count),
                     scales->part<float>(i, count)));
      } else {
        std::ranges::copy(tensor.numbers(), numbers.part<float>(i, count).begin());
      }
    }
    TRY(numbers.finish());
    if (scales) TRY(scales->finish());
  }
  return {};
}

}  // namespace systole
