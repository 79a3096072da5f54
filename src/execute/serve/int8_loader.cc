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

bool is_finite(float scale) { return std::isfinite(scale); }
bool is_finite(std::uint16_t half) { return is_finite_half(half); }

// work(first, last) of rows, by several threads.
template <typename Work>
Status for_rows(std::int64_t rows, const Work& work) {
  const int threads = io_threads();
  const std::int64_t parts = std::min<std::int64_t>(rows, 4 * threads);
  return for_each_in_parallel(static_cast<std::size_t>(parts), threads, [&](std::size_t part) -> Status {
    const auto at = static_cast<std::int64_t>(part);
    work(rows * at / parts, rows * (at + 1) / parts);
    return {};
  });
}

template <typename Scale>
Status check_finite(const std::string& name, std::span<const Scale> scales) {
  if (std::ranges::all_of(scales, [](Scale scale) { return is_finite(scale); })) return {};
  return error(ErrorKind::invalid, "'{}' has a value that is not finite{}", name,
               sizeof(Scale) == 2 ? ", or too large for a scale of 16 bits" : "")
      .hinted("its run diverged, or its file is damaged; take another checkpoint or file");
}

// One layer of a weight, in an engine's memory.
template <typename Code, typename Scale>
Status quantize(const Int8Weight& weight, const std::string& name, std::span<const float> numbers,
                std::span<Code> codes, std::span<Scale> scales) {
  TRY(for_rows(weight.rows(), [&](std::int64_t first, std::int64_t last) {
    quantize_rows(weight, numbers, first, last, codes, scales);
  }));
  return check_finite(name, std::span<const Scale>(scales));
}

Status put_blocks(const Int8Weight& weight, const std::string& name, std::span<const Int4Block> blocks,
                  std::span<std::uint8_t> codes, std::span<std::uint16_t> scales) {
  const std::int64_t columns = weight.columns(), groups = columns / kInt4Group;
  CHECK(static_cast<std::int64_t>(blocks.size()) == weight.rows() * groups, "{} groups of '{}'", blocks.size(), name);
  TRY(for_rows(weight.rows(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      for (std::int64_t g = 0; g < groups; ++g)
        put_block(blocks[static_cast<std::size_t>(row * groups + g)], columns, row, g, codes, scales);
    }
  }));
  return check_finite(name, std::span<const std::uint16_t>(scales));
}

}  // namespace

Status load_int8(Engine& engine, const Model& model, DType stored, const LoadSome& load, Device& host,
                 const StoredInt4& int4) {
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
      const std::string of = layers ? layers->of(i) : one.name;
      if (weight != nullptr && weight->bits == 4 && int4) {
        if (const auto blocks = TRY(int4(of, *weight)); blocks) {
          TRY(put_blocks(*weight, of, *blocks, numbers.part<std::uint8_t>(i, count),
                         scales->part<std::uint16_t>(i, count)));
          continue;
        }
      }
      const Tensor tensor = TRY(Tensor::load(one, load, host));
      if (weight != nullptr && weight->bits == 4) {
        TRY(quantize(*weight, of, tensor.numbers(), numbers.part<std::uint8_t>(i, count),
                     scales->part<std::uint16_t>(i, count)));
      } else if (weight != nullptr) {
        TRY(quantize(*weight, of, tensor.numbers(), numbers.part<std::int8_t>(i, count),
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
