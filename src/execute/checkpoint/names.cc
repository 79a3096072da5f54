#include "execute/checkpoint/names.h"

#include <algorithm>
#include <map>
#include <set>

#include "ground/base/nearest.h"

namespace systole::checkpoint {

namespace {

constexpr std::size_t kNamed = 3;     // differences listed in one message
constexpr std::size_t kListed = 100;  // differences in Error::others; the rest is counted
constexpr std::size_t kHinted = 6;    // missing names for which similar names are searched

std::vector<std::string> names_of(const Manifest& manifest) {
  std::vector<std::string> names;
  for (const TensorEntry& tensor : manifest.tensors) names.push_back(tensor.name);
  return names;
}

std::string type_text(DType dtype, const Shape& shape) { return fmt::format("{}{}", name_of(dtype), to_string(shape)); }

// `spare`: the candidates for a similar name.
Mismatch missing(const std::string& name, std::span<const std::string> spare) {
  const auto near = nearest(name, spare, 1);
  std::string text = fmt::format("'{}' is not in the checkpoint", name);
  if (!near.empty()) text += fmt::format(" (it has '{}')", near.front());
  return {Mismatch::Kind::missing, name, std::move(text)};
}

Mismatch extra(const std::string& name) {
  return {Mismatch::Kind::extra, name, fmt::format("'{}' is in the checkpoint and not in the model", name)};
}

Mismatch other_type(Mismatch::Kind kind, const TensorEntry& have, const RequestedTensor& want) {
  return {kind, want.name,
          fmt::format("'{}' is {} in the checkpoint and {} in the model", want.name, type_text(have.dtype, have.shape),
                      type_text(want.dtype, want.shape))};
}

}  // namespace

std::vector<Mismatch> compare_names(const Manifest& manifest, std::span<const RequestedTensor> wanted) {
  std::map<std::string_view, const TensorEntry*> have;
  for (const TensorEntry& tensor : manifest.tensors) have.emplace(tensor.name, &tensor);
  std::set<std::string_view> asked;
  std::set<Role> roles;
  for (const RequestedTensor& want : wanted) {
    asked.insert(want.name);
    roles.insert(want.role);
  }
  std::vector<std::string> spare;  // extra tensors: a missing one may be there under another name
  for (const TensorEntry& tensor : manifest.tensors) {
    if (!asked.contains(tensor.name) && roles.contains(tensor.role)) spare.push_back(tensor.name);
  }
  std::vector<Mismatch> differences;
  std::size_t hinted = 0;
  for (const RequestedTensor& want : wanted) {
    const auto found = have.find(want.name);
    if (found == have.end()) {
      const bool hints = hinted++ < kHinted;
      differences.push_back(missing(want.name, hints ? spare : std::span<const std::string>()));
    } else if (found->second->shape != want.shape) {
      differences.push_back(other_type(Mismatch::Kind::shape, *found->second, want));
    } else if (found->second->dtype != want.dtype) {
      differences.push_back(other_type(Mismatch::Kind::dtype, *found->second, want));
    }
  }
  for (const std::string& name : spare) differences.push_back(extra(name));
  return differences;
}

Status check_model(const Manifest& manifest, std::span<const RequestedTensor> wanted) {
  const auto differences = compare_names(manifest, wanted);
  if (differences.empty()) return {};
  std::string first;
  for (std::size_t i = 0; i < differences.size() && i < kNamed; ++i) first += (i ? "; " : "") + differences[i].text;
  if (differences.size() > kNamed) first += fmt::format("; and {} more", differences.size() - kNamed);
  Error mismatch = error(ErrorKind::invalid, "checkpoint {} is of another model ('{}'), {} tensors differ: {}",
                         manifest.step, manifest.identity.model, differences.size(), first)
                       .hinted("give the workload the model of that run, or another checkpoint folder");
  for (const Mismatch& difference : std::span(differences).first(std::min(differences.size(), kListed)))
    mismatch.others.push_back(error(ErrorKind::invalid, "{}", difference.text));
  if (differences.size() > kListed)
    mismatch.others.push_back(error(ErrorKind::invalid, "and {} more tensors", differences.size() - kListed));
  return mismatch;
}

std::string nearest_hint(const Manifest& manifest, std::string_view name) {
  return systole::nearest_hint(name, names_of(manifest));
}

}  // namespace systole::checkpoint
