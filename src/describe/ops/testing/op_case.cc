#include "describe/ops/testing/op_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kOrdinary = 65536;  // larger values are compared by their own magnitude, not the tensor's

// Values that expose kernel bugs, rounded to the type when stored.
std::vector<double> special_values(DType dtype) {
  const double largest = dtype == DType::f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  return {kInf, -kInf, std::nan(""), 0.0, -0.0, largest, -largest, 1e-30, -1e-30, 88.5, -104.0, 1.0};
}

HostTensor filled(const CaseOperand& operand, PhiloxStream& random) {
  using Fill = CaseOperand::Fill;
  HostTensor tensor(operand.type.dtype, operand.type.shape);
  const std::vector<double> specials = special_values(operand.type.dtype);
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::size_t k = static_cast<std::size_t>(i);
    double value = operand.low + (operand.high - operand.low) * random.uniform();
    if (operand.fill == Fill::integers) value = std::floor(value);
    if (operand.fill == Fill::given) value = operand.values[k % operand.values.size()];
    if (operand.fill == Fill::special && k % 2 == 0) value = specials[k / 2 % specials.size()];
    tensor.set(i, value);
  }
  return tensor;
}

bool same(double got, double want, double allowed) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::fabs(got - want) <= allowed;
}

// Memory for a result between two guards filled with the poison byte.
class Guarded {
 public:
  Guarded(Bytes size, unsigned char poison)
      : size_(static_cast<std::size_t>(size.count())), poison_{poison}, raw_(kGuard + size_ + kGuard, poison_) {}
  std::byte* data() { return raw_.data() + kGuard; }
  bool guards_hold() const {
    const auto poisoned = [this](std::byte b) { return b == poison_; };
    return std::all_of(raw_.begin(), raw_.begin() + kGuard, poisoned) &&
           std::all_of(raw_.end() - kGuard, raw_.end(), poisoned);
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::ptrdiff_t kGuard = 64;
  std::size_t size_;
  std::byte poison_;
  std::vector<std::byte> raw_;
};

}  // namespace

CaseOperand real(Type type, double low, double high) {
  return {std::move(type), CaseOperand::Fill::uniform, low, high, {}};
}

CaseOperand whole(Type type, std::int64_t low, std::int64_t high) {
  return {std::move(type), CaseOperand::Fill::integers, static_cast<double>(low), static_cast<double>(high), {}};
}

CaseOperand flags(Shape shape) { return whole(Type(DType::boolean, std::move(shape)), 0, 2); }
CaseOperand special(Type type) { return {std::move(type), CaseOperand::Fill::special, -1, 1, {}}; }

CaseOperand given(Type type, std::vector<double> values) {
  CHECK(!values.empty(), "a case gives no values");
  return {std::move(type), CaseOperand::Fill::given, 0, 0, std::move(values)};
}

std::vector<Type> OpCase::operand_types() const {
  std::vector<Type> types;
  for (const CaseOperand& operand : operands) types.push_back(operand.type);
  return types;
}

std::string OpCase::describe() const {
  std::string text = op + "(";
  for (std::size_t i = 0; i < operands.size(); ++i) text += (i > 0 ? ", " : "") + to_string(operands[i].type);
  text += ")" + to_string(attrs);
  return note.empty() ? text : text + " " + note;
}

OpCases& OpCases::operator+=(OpCases other) {
  std::move(other.good.begin(), other.good.end(), std::back_inserter(good));
  std::move(other.bad.begin(), other.bad.end(), std::back_inserter(bad));
  return *this;
}

std::vector<HostTensor> fill_operands(const OpCase& call, std::uint64_t seed) {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    PhiloxStream random(seed, i);
    tensors.push_back(filled(call.operands[i], random));
  }
  return tensors;
}

std::vector<Type> infer_results(const OpDef& op, const Attrs& attrs, std::span<const Type> operands) {
  return op.infer(OpCall{op, attrs, operands, {}});
}

Type type_of(const HostTensor& tensor) { return Type(tensor.dtype(), tensor.shape()); }

std::vector<HostTensor> run_reference(const OpDef& op, const Attrs& attrs, std::span<const HostTensor> operands,
                                      unsigned char poison) {
  std::vector<HostTensor> copies(operands.begin(), operands.end());
  std::vector<Type> types;
  std::vector<TensorView> operand_views, result_views;
  for (HostTensor& copy : copies) {
    types.push_back(type_of(copy));
    operand_views.push_back({types.back(), copy.bytes().data()});
  }
  const std::vector<Type> result_types = infer_results(op, attrs, types);
  std::vector<Guarded> memory;
  for (const Type& type : result_types) memory.emplace_back(type.bytes(), poison);
  for (std::size_t i = 0; i < memory.size(); ++i) result_views.push_back({result_types[i], memory[i].data()});
  op.reference(ReferenceCall{attrs, operand_views, result_views});

  std::vector<HostTensor> results;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    CHECK(memory[i].guards_hold(), "the reference of {} writes outside its result {}", op.name, i);
    results.emplace_back(result_types[i].dtype, result_types[i].shape);
    std::copy_n(memory[i].data(), memory[i].size(), results.back().bytes().data());
  }
  for (std::size_t i = 0; i < copies.size(); ++i)
    CHECK(copies[i] == operands[i], "the reference of {} writes its operand {}", op.name, i);
  return results;
}

double tolerance_of(const OpCase& call, DType dtype, DType accumulate) {
  if (!is_float(dtype)) return 0;
  constexpr double kElementary = 8;  // ulps of a formula around the sum
  return epsilon_of(dtype) + (static_cast<double>(call.reduction) + kElementary) * epsilon_of(accumulate);
}

std::string difference(const HostTensor& got, const HostTensor& want, double tolerance) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return fmt::format("{} is not {}", to_string(type_of(got)), to_string(type_of(want)));
  if (!is_float(want.dtype())) {
    if (got == want) return "";
    for (std::int64_t i = 0; i < got.size(); ++i) {
      if (got.at(i) != want.at(i)) return fmt::format("element {} is {}, not {}", i, got.at(i), want.at(i));
    }
    return "integers beyond 2^53 differ";
  }
  double scale = std::numeric_limits<float>::min();
  for (std::int64_t i = 0; i < want.size(); ++i) {
    if (std::fabs(want.at(i)) <= kOrdinary) scale = std::max(scale, std::fabs(want.at(i)));
  }
  for (std::int64_t i = 0; i < want.size(); ++i) {
    const double allowed = tolerance * (std::isfinite(want.at(i)) ? std::max(scale, std::fabs(want.at(i))) : 0);
    if (!same(got.at(i), want.at(i), allowed)) {
      return fmt::format("element {} of {} is {:.17g}, not {:.17g} ± {:.2g}", i, to_string(type_of(want)), got.at(i),
                         want.at(i), allowed);
    }
  }
  return "";
}

double relative_difference(const HostTensor& got, const HostTensor& want) {
  CHECK(got.shape() == want.shape(), "{} beside {}", to_string(type_of(got)), to_string(type_of(want)));
  double largest = 1e-3, worst = 0;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::fabs(want.at(i)));
    if (got.at(i) == want.at(i)) continue;
    const double apart = std::fabs(got.at(i) - want.at(i));
    if (!std::isfinite(apart)) return kInf;
    worst = std::max(worst, apart);
  }
  return worst / largest;
}

}  // namespace systole
