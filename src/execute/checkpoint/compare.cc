#include "execute/checkpoint/compare.h"
#include "ground/base/hash.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace systole::checkpoint {

namespace {

constexpr Bytes kSlab = 4 * kMiB;

using EntryMap = std::map<std::string, const TensorEntry*>;

EntryMap sorted(const Manifest& manifest) {
  EntryMap entries;
  for (const TensorEntry& tensor : manifest.tensors) entries.emplace(tensor.name, &tensor);
  return entries;
}

std::string type_of(const TensorEntry& tensor) {
  return fmt::format("{}{}", name_of(tensor.dtype), to_string(tensor.shape));
}

double distance(double a, double b) {
  if (std::isfinite(a) && std::isfinite(b)) return std::abs(a - b);
  const bool alike = (std::isnan(a) && std::isnan(b)) || a == b;
  return alike ? 0 : std::numeric_limits<double>::infinity();
}

// Adds the elements of two slabs that begin at element `at`.
void compare_slabs(DType dtype, std::int64_t at, std::span<const std::byte> a, std::span<const std::byte> b,
                   TensorDiff& diff) {
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return;
  const std::int64_t element = size_of(dtype), count = static_cast<std::int64_t>(a.size()) / element;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::memcmp(a.data() + i * element, b.data() + i * element, static_cast<std::size_t>(element)) == 0) continue;
    if (diff.differing++ == 0) diff.first = at + i;
    diff.max_abs = std::max(diff.max_abs, distance(load(dtype, a.data(), i), load(dtype, b.data(), i)));
  }
}

Result<TensorDiff> diff_values(const Checkpoint& a, const TensorEntry& in_a, const Checkpoint& b,
                               const TensorEntry& in_b) {
  TensorDiff row{in_a.name, TensorDiff::Kind::equal, num_elements(in_a.shape)};
  std::vector<std::byte> other;
  std::int64_t at = 0;
  const std::int64_t element = size_of(in_a.dtype);
  auto boxes = cut(Box::whole(in_a.shape), kSlab.count() / element);
  auto box = boxes.begin();
  TRY(for_each_slab(a, in_a, kSlab, [&](std::span<const std::byte> slab) -> Status {
    other.resize(slab.size());
    TRY(b.read(in_b, *box++, other));
    compare_slabs(in_a.dtype, at, slab, other, row);
    at += static_cast<std::int64_t>(slab.size()) / element;
    return {};
  }));
  if (row.differing > 0) row.kind = TensorDiff::Kind::values;
  return row;
}

}  // namespace

const char* name_of(TensorDiff::Kind kind) {
  switch (kind) {
    case TensorDiff::Kind::equal: return "equal";
    case TensorDiff::Kind::values: return "values differ";
    case TensorDiff::Kind::other_type: return "other type";
    case TensorDiff::Kind::only_in_a: return "only in the first";
    case TensorDiff::Kind::only_in_b: return "only in the second";
  }
  return "?";
}

Status for_each_slab(const Checkpoint& checkpoint, const TensorEntry& tensor, Bytes limit,
                     const std::function<Status(std::span<const std::byte>)>& take) {
  const std::int64_t element = size_of(tensor.dtype);
  std::vector<std::byte> bytes;
  for (const Box& box : cut(Box::whole(tensor.shape), std::max<std::int64_t>(1, limit.count() / element))) {
    bytes.resize(static_cast<std::size_t>(box.num_elements() * element));
    TRY(checkpoint.read(tensor, box, bytes));
    TRY(take(bytes));
  }
  return {};
}

Result<std::vector<TensorDiff>> diff(const Checkpoint& a, const Checkpoint& b) {
  const EntryMap in_a = sorted(a.manifest()), in_b = sorted(b.manifest());
  EntryMap either = in_a;
  either.insert(in_b.begin(), in_b.end());
  std::vector<TensorDiff> rows;
  for (const auto& [name, tensor] : either) {
    const auto left = in_a.find(name), right = in_b.find(name);
    if (left == in_a.end() || right == in_b.end()) {
      const auto kind = right == in_b.end() ? TensorDiff::Kind::only_in_a : TensorDiff::Kind::only_in_b;
      rows.push_back({name, kind, num_elements(tensor->shape), 0, 0, -1, type_of(*tensor)});
    } else if (left->second->dtype != right->second->dtype || left->second->shape != right->second->shape) {
      rows.push_back({name, TensorDiff::Kind::other_type, num_elements(tensor->shape), 0, 0, -1,
                      fmt::format("{} and {}", type_of(*left->second), type_of(*right->second))});
    } else {
      rows.push_back(TRY(diff_values(a, *left->second, b, *right->second)));
    }
  }
  return rows;
}

Result<std::string> state_hash(const Checkpoint& checkpoint) {
  Hasher hasher;
  for (const auto& [name, tensor] : sorted(checkpoint.manifest())) {
    const std::string head = fmt::format("{}:{} {}\n", name.size(), name, type_of(*tensor));
    hasher.add(std::as_bytes(std::span(head)));
    TRY(for_each_slab(checkpoint, *tensor, kSlab, [&](std::span<const std::byte> bytes) -> Status {
      hasher.add(bytes);
      return {};
    }));
  }
  return to_hex(hasher.digest());
}

}  // namespace systole::checkpoint
