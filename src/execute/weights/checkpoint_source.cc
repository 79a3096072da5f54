#include "execute/weights/checkpoint_source.h"

#include <vector>

namespace systole {

ParameterSource source_of(const checkpoint::Checkpoint& from) {
  const auto entry_of = [&from](const std::string& name) -> Result<const checkpoint::TensorEntry*> {
    for (const checkpoint::TensorEntry& tensor : from.manifest().tensors) {
      if (tensor.name == name) return &tensor;
    }
    return error(ErrorKind::not_found, "the checkpoint has no tensor '{}'", name);
  };
  ParameterSource source;
  source.dtype = [entry_of](const std::string& name) -> Result<DType> { return TRY(entry_of(name))->dtype; };
  source.shape = [entry_of](const std::string& name) -> Result<Shape> { return TRY(entry_of(name))->shape; };
  source.read = [&from](const std::string& name, const Shape& shape, std::span<std::byte> into) {
    return from.read(name, checkpoint::Box::whole(shape), into);
  };
  return source;
}

namespace {

// The elements of a checkpoint tensor.
Result<std::vector<double>> numbers_of(const checkpoint::Checkpoint& from, const checkpoint::TensorEntry& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes().count()));
  TRY(from.read(tensor.name, checkpoint::Box::whole(tensor.shape), bytes));
  std::vector<double> numbers(static_cast<std::size_t>(num_elements(tensor.shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = load(tensor.dtype, bytes.data(), static_cast<std::int64_t>(i));
  return numbers;
}

}  // namespace

ParameterSource with_adapters(ParameterSource source, const checkpoint::Checkpoint& from, double scale) {
  source.read = [&from, scale, read = source.read, dtype = source.dtype](const std::string& name, const Shape& shape,
                                                                         std::span<std::byte> into) -> Status {
    TRY(read(name, shape, into));
    const checkpoint::TensorEntry *a = from.manifest().find(name + ".lora_a"),
                                  *b = from.manifest().find(name + ".lora_b");
    if (a == nullptr || b == nullptr) return {};
    const std::vector<double> left = TRY(numbers_of(from, *a)), right = TRY(numbers_of(from, *b));
    const auto rank = static_cast<std::size_t>(a->shape.back());
    const std::size_t rows = left.size() / rank, columns = right.size() / rank;
    if (static_cast<std::int64_t>(rows * columns) != num_elements(shape))
      return error(ErrorKind::corrupt, "the adapters of '{}' are of another size", name);
    const DType type = TRY(dtype(name));
    std::vector<double> row(columns);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::int64_t>(r * columns);
      for (std::size_t c = 0; c < columns; ++c) row[c] = load(type, into.data(), at + static_cast<std::int64_t>(c));
      for (std::size_t k = 0; k < rank; ++k) {
        const double weight = scale * left[r * rank + k];
        for (std::size_t c = 0; c < columns; ++c) row[c] += weight * right[k * columns + c];
      }
      for (std::size_t c = 0; c < columns; ++c) store(type, into.data(), at + static_cast<std::int64_t>(c), row[c]);
    }
    return {};
  };
  return source;
}

}  // namespace systole
