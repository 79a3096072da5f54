#include "execute/serve/int8_loader.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "describe/ir/layer_names.h"
#include "describe/partition/serving_layouts.h"
#include "ground/base/parallel.h"
#include "ground/tensor/int8.h"

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

// One tensor of a parameter, or a rank's part of it, loaded into memory of its own and converted to f32.
class Tensor {
 public:
  // `mesh`: of the engine's Program.
  static Result<Tensor> load(const Parameter& parameter, const Mesh& mesh, const LoadSome& load, Device& host) {
    Tensor tensor;
    ProgramBuilder builder("tensor", mesh, host.target(), nullptr);
    ProgramValue value{parameter.name, parameter.type, Residence::parameter, 1, parameter, 0, 0};
    if (!mesh.trivial()) {
      value.cut = CutValue{parameter.type, serving_layout(parameter, mesh)};
      value.type = local_type(parameter.type, value.cut->layout, mesh);
    }
    const std::int64_t count = value.type.num_elements();
    builder.add_value(std::move(value));
    tensor.program_ = std::make_unique<const Program>(builder.finish());
    tensor.executor_ = TRY(Executor::create(*tensor.program_, host));
    TRY(load(*tensor.executor_));
    const std::span<std::byte> bytes = tensor.executor_->view(0, 0);
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

// One layer of a weight in an engine's memory: codes and scales.
template <typename Code, typename Scale>
struct Layer {
  std::span<Code> codes;
  std::span<Scale> scales;
};

// The weight's rows as numbers, all at once.
template <typename Code, typename Scale>
Status quantize(const Int8Weight& weight, std::span<const float> numbers, const Layer<Code, Scale>& into) {
  return for_rows(weight.rows(), [&](std::int64_t first, std::int64_t last) {
    quantize_rows(weight, numbers, first, last, into.codes, into.scales);
  });
}

void put_row(std::int64_t row, std::span<const float> numbers, const Layer<std::int8_t, float>& into) {
  const auto at = static_cast<std::size_t>(row);
  into.scales[at] = quantize_row(numbers, into.codes.subspan(at * numbers.size(), numbers.size()));
}
void put_row(std::int64_t row, std::span<const float> numbers, const Layer<std::uint8_t, std::uint16_t>& into) {
  const auto columns = static_cast<std::int64_t>(numbers.size());
  for (std::int64_t group = 0; group < columns / kInt4Group; ++group) {
    const auto from = numbers.subspan(static_cast<std::size_t>(group * kInt4Group)).first<kInt4Group>();
    put_block(quantize_group(from), columns, row, group, into.codes, into.scales);
  }
}

Status put_groups(const StoredRows& rows, const Int8Weight& weight, std::int64_t first, std::int64_t last,
                  const Layer<std::uint8_t, std::uint16_t>& into) {
  const std::int64_t columns = weight.columns(), groups = columns / kInt4Group;
  std::vector<Int4Block> blocks(static_cast<std::size_t>((last - first) * groups));
  TRY(rows.groups(first, last, blocks));
  const Int4Block* next = blocks.data();
  for (std::int64_t row = first; row < last; ++row) {
    for (std::int64_t g = 0; g < groups; ++g) put_block(*next++, columns, row, g, into.codes, into.scales);
  }
  return {};
}

// Rows [first, last) of a layer.
template <typename Code, typename Scale>
Status convert(const StoredRows& rows, const Int8Weight& weight, std::int64_t first, std::int64_t last,
               const Layer<Code, Scale>& into) {
  if constexpr (std::is_same_v<Code, std::uint8_t>) {
    if (rows.groups) return put_groups(rows, weight, first, last, into);
  }
  return rows.numbers(first, last,
                      [&](std::int64_t row, std::span<const float> numbers) { put_row(row, numbers, into); });
}

// Rows of a layer, for one thread at a time.
struct Piece {
  std::size_t layer;
  std::int64_t first, last;
};

// A weight's layers, each as the parameter that it is made of and its name for people.
struct Tensors {
  std::vector<Parameter> parameters;
  std::vector<std::string> names;
};

template <typename Code, typename Scale>
Status fill(Executor& executor, const Int8Weight& weight, const Tensors& from, const LoadSome& load, Device& host,
            const FindRows& find) {
  Destination codes(executor, weight.q8_name()), scales(executor, weight.scale_name());
  const std::size_t layers = from.names.size();
  const auto layer = [&](std::size_t i) {
    const auto at = static_cast<std::int64_t>(i), count = static_cast<std::int64_t>(layers);
    return Layer<Code, Scale>{codes.part<Code>(at, count), scales.part<Scale>(at, count)};
  };
  std::vector<std::optional<StoredRows>> stored(layers);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < layers; ++i) {
    if (find) stored[i] = find(from.names[i], weight);
    if (!stored[i]) continue;
    const std::int64_t unit = std::lcm(kInt4Panel, stored[i]->together),
                       at_once = std::max(kPieceNumbers / weight.columns() / unit, std::int64_t{1}) * unit;
    for (std::int64_t row = 0; row < weight.rows(); row += at_once)
      pieces.push_back({i, row, std::min(row + at_once, weight.rows())});
  }
  TRY(for_each_in_parallel(pieces.size(), io_threads(), [&](std::size_t p) {
    const Piece& piece = pieces[p];
    return convert(*stored[piece.layer], weight, piece.first, piece.last, layer(piece.layer));
  }));
  for (std::size_t i = 0; i < layers; ++i) {
    if (!stored[i]) {
      const Tensor tensor = TRY(Tensor::load(from.parameters[i], executor.program().mesh, load, host));
      TRY(quantize(weight, tensor.numbers(), layer(i)));
    }
    TRY(check_finite(from.names[i], std::span<const Scale>(layer(i).scales)));
  }
  TRY(codes.finish());
  return scales.finish();
}

// The layers of a parameter, or all of it, in the type `stored`.
Tensors tensors_of(Parameter parameter, DType stored) {
  if (is_float(parameter.type.dtype)) parameter.type.dtype = stored;
  const std::optional<LayerName> layers = layer_name(parameter.name);
  if (!layers) return {{parameter}, {parameter.name}};
  Tensors tensors;
  for (std::int64_t i = 0; i < parameter.type.size(0); ++i) {
    tensors.parameters.push_back(of_layer(parameter, *layers, i));
    tensors.names.push_back(layers->of(i));
  }
  return tensors;
}

Status copy(Executor& executor, const std::string& name, const Tensors& from, const LoadSome& load, Device& host) {
  Destination numbers(executor, name);
  const auto count = static_cast<std::int64_t>(from.names.size());
  for (std::int64_t i = 0; i < count; ++i) {
    const Tensor tensor =
        TRY(Tensor::load(from.parameters[static_cast<std::size_t>(i)], executor.program().mesh, load, host));
    std::ranges::copy(tensor.numbers(), numbers.part<float>(i, count).begin());
  }
  return numbers.finish();
}

}  // namespace

Status load_int8(Engine& engine, const Model& model, DType stored, const LoadSome& load, Device& host,
                 const FindRows& rows) {
  Executor& executor = engine.executor();
  const std::span<const Int8Weight> weights = engine.int8_weights();
  for (const Parameter& parameter : model.parameters()) {
    const auto weight =
        std::ranges::find_if(weights, [&](const Int8Weight& w) { return w.from.name == parameter.name; });
    const std::string name = weight == weights.end() ? parameter.name : weight->q8_name();
    if (!executor.program().find_value(name)) continue;  // no function reads it
    const Tensors from = tensors_of(parameter, stored);
    if (weight == weights.end()) {
      TRY(copy(executor, name, from, load, host));
    } else if (weight->bits == 4) {
      TRY((fill<std::uint8_t, std::uint16_t>(executor, *weight, from, load, host, rows)));
    } else {
      TRY((fill<std::int8_t, float>(executor, *weight, from, load, host, rows)));
    }
  }
  return {};
}

}  // namespace systole
