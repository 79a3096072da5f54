#include "ground/catalog/tpu_slice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::string_view kRequired[] = {"accelerator", "name",  "counts",         "shape",  "chips",  "cores",
                                          "devices",     "hosts", "chips_per_host", "closes", "source", "date"};
constexpr std::string_view kOptional[] = {"machine", "other_hosts", "gke_label",  "twists",
                                          "api",     "docs",        "confidence", "note"};
constexpr std::int64_t kCube = 4;          // edge of the cubes joined by optical switches, in chips
constexpr std::int64_t kMost = 1'000'000;  // per axis

std::optional<Shape> parse_shape(std::string_view text) {
  Shape shape;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    std::int64_t size = 0;
    const auto [stop, code] = std::from_chars(text.data() + at, text.data() + end, size);
    if (code != std::errc() || stop != text.data() + end || size < 1 || size > kMost) return std::nullopt;
    shape.push_back(size);
    at = end + 1;
  }
  if (shape.size() > 3) return std::nullopt;
  return shape;
}

std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

bool of_whole_cubes(const Shape& shape) {
  return shape.size() == 3 && std::ranges::all_of(shape, [](std::int64_t size) { return size % kCube == 0; });
}

// Consistency of a row: the number in its name with its chips or cores, its chips with its shape and its hosts.
void check(const TpuSlice& slice, TableRow& row) {
  const std::size_t dash = slice.name.rfind('-');
  const std::string counted = std::to_string(slice.counts_cores ? slice.cores : slice.chips);
  if (dash == slice.name.npos || slice.name.substr(dash + 1) != counted)
    row.wrong("name", error(ErrorKind::invalid, "'{}' does not end in its {} {}", slice.name, counted,
                            slice.counts_cores ? "cores" : "chips"));
  if (product(slice.shape) != slice.chips)
    row.wrong("chips", error(ErrorKind::invalid, "{}: {} has {} chips, and not {}", slice.name, slice.shape_text(),
                             product(slice.shape), slice.chips));
  if (slice.hosts * slice.chips_per_host != slice.chips)
    row.wrong("hosts", error(ErrorKind::invalid, "{}: {} hosts of {} chips are not {} chips", slice.name, slice.hosts,
                             slice.chips_per_host, slice.chips));
  if (slice.closes.size() != slice.shape.size())
    row.wrong("closes", error(ErrorKind::invalid, "{}: {} axes, and {} answers", slice.name, slice.shape.size(),
                              slice.closes.size()));
}

bool is_twisted(const Shape& shape) {  // n x n x 2n, n x 2n x 2n
  return of_whole_cubes(shape) && shape[2] == 2 * shape[0] && (shape[1] == shape[0] || shape[1] == shape[2]);
}

// A slice with another shape than the default of its name; everything else follows its family.
TpuSlice unusual(const TpuSlice& large, const Shape& shape) {
  TpuSlice slice = large;
  slice.shape = shape;
  slice.chips = product(shape);
  slice.cores = large.cores / large.chips * slice.chips;
  slice.devices = large.devices / large.chips * slice.chips;
  slice.hosts = slice.chips / slice.chips_per_host;
  slice.name =
      fmt::format("{}-{}", large.name.substr(0, large.name.rfind('-')), large.counts_cores ? slice.cores : slice.chips);
  slice.twists = is_twisted(shape);
  slice.usual = slice.documented = slice.in_api = false;
  slice.note = "not the shape that its name stands for: ask for the shape";
  return slice;
}

std::vector<const TpuSlice*> family_of(std::span<const TpuSlice> slices, std::string_view accelerator) {
  std::vector<const TpuSlice*> family;
  for (const TpuSlice& slice : slices)
    if (slice.accelerator == accelerator) family.push_back(&slice);
  return family;
}

// Existing shapes, nearest first: by number of chips, then by difference along the axes.
std::string nearest_shapes(const std::vector<const TpuSlice*>& family, Shape wanted) {
  std::ranges::sort(wanted);
  const auto far = [&](const TpuSlice* slice) {
    Shape shape = slice->shape;
    std::ranges::sort(shape);
    std::int64_t apart = 0;
    for (std::size_t i = 0; i < std::min(shape.size(), wanted.size()); ++i) apart += std::abs(shape[i] - wanted[i]);
    return std::tuple(std::abs(slice->chips - product(wanted)), apart, slice->chips);
  };
  std::vector<const TpuSlice*> near = family;
  std::ranges::sort(near, {}, far);
  std::vector<std::string> names;
  for (const TpuSlice* slice : near) {
    names.push_back(slice->by_shape());
    if (names.size() == 3) break;
  }
  return fmt::format("the nearest are {}", fmt::join(names, ", "));
}

// "v5e-8" as its family, null if it is not a TPU family, and its number.
struct NameAndNumber {
  const CatalogEntry* family = nullptr;
  std::string_view prefix, number;
};
NameAndNumber name_and_number(const Catalog& catalog, std::string_view text) {
  const std::size_t dash = text.rfind('-');
  if (dash == text.npos) return {};
  NameAndNumber parts{nullptr, text.substr(0, dash), text.substr(dash + 1)};
  if (parts.number.empty() || parts.number.find_first_not_of("0123456789") != parts.number.npos) return {};
  const Result<const CatalogEntry*> family = catalog.find_accelerator(parts.prefix);
  if (family.ok() && (*family)->kind == "tpu") parts.family = *family;
  return parts;
}

std::string_view digits_of(const TpuSlice& slice) {
  return std::string_view(slice.name).substr(slice.name.rfind('-') + 1);
}

Result<TpuSlice> by_name(const std::vector<const TpuSlice*>& family, std::string_view text,
                         const NameAndNumber& parts) {
  for (const TpuSlice* slice : family)
    if (digits_of(*slice) == parts.number) return *slice;
  const bool cores = family.front()->counts_cores;
  std::int64_t wanted = std::numeric_limits<std::int64_t>::max();
  std::from_chars(parts.number.data(), parts.number.data() + parts.number.size(), wanted);
  std::vector<const TpuSlice*> near = family;
  std::ranges::stable_sort(
      near, {}, [&](const TpuSlice* slice) { return std::abs((cores ? slice->cores : slice->chips) - wanted); });
  std::vector<std::string> names;
  for (const TpuSlice* slice : near) {
    std::string name = fmt::format("'{}-{}' ({})", parts.prefix, digits_of(*slice), counted(slice->chips, "chip"));
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    if (names.size() == 3) break;
  }
  return error(ErrorKind::not_found, "no slice is called '{}': names of {} count {}", text, family.front()->accelerator,
               cores ? "TensorCores, two a chip" : "chips")
      .hinted(fmt::format("the nearest are {}", fmt::join(names, ", ")));
}

Result<TpuSlice> by_shape(std::span<const TpuSlice> slices, const Catalog& catalog, std::string_view asked,
                          std::string_view text) {
  const Result<const CatalogEntry*> chip = catalog.find_accelerator(asked);
  const std::string accelerator = chip.ok() ? (*chip)->name : std::string(asked);
  const std::vector<const TpuSlice*> family = family_of(slices, accelerator);
  if (family.empty()) {
    std::vector<std::string> names;
    for (const TpuSlice& slice : slices)
      if (names.empty() || names.back() != slice.accelerator) names.push_back(slice.accelerator);
    return error(ErrorKind::not_found, "no slices are known of '{}'", accelerator)
        .hinted(nearest_hint(accelerator, names));
  }
  const std::optional<Shape> shape = parse_shape(text);
  if (!shape) return error(ErrorKind::invalid, "'{}' is no shape", text).hinted("as in " + family.front()->by_shape());
  for (const TpuSlice* slice : family)
    if (slice->shape == *shape) return *slice;
  const auto most = std::ranges::max_element(family, {}, &TpuSlice::chips);
  if (of_whole_cubes((*most)->shape) && of_whole_cubes(*shape) && std::ranges::is_sorted(*shape) &&
      product(*shape) <= (*most)->chips)
    return unusual(**most, *shape);
  return error(ErrorKind::invalid, "there is no slice {}:{}", accelerator, text).hinted(nearest_shapes(family, *shape));
}

}  // namespace

const TableColumns kSliceColumns{"slices", kRequired, kOptional};

std::string TpuSlice::shape_text() const { return fmt::format("{}", fmt::join(shape, "x")); }

TpuSlice read_tpu_slice(TableRow& row) {
  constexpr std::string_view kCounts[] = {"cores", "chips"};
  TpuSlice slice;
  slice.accelerator = row.name("accelerator");
  slice.name = row.name("name");
  slice.counts_cores = row.one_of("counts", kCounts) == 0;
  const std::optional<Shape> shape = parse_shape(row.text("shape"));
  if (!shape)
    row.wrong("shape", error(ErrorKind::invalid, "'{}' is no shape", row.text("shape")).hinted("4x4, or 4x4x8"));
  slice.shape = shape.value_or(Shape{});
  slice.chips = row.count("chips").value_or(0);
  slice.cores = row.count("cores").value_or(0);
  slice.devices = row.count("devices").value_or(0);
  slice.hosts = row.count("hosts").value_or(0);
  slice.chips_per_host = row.count("chips_per_host").value_or(0);
  slice.machine = row.string("machine");
  slice.other_hosts = row.string("other_hosts");
  slice.gke_label = row.string("gke_label");
  for (const std::string& answer : row.list("closes")) slice.closes.push_back(answer == "yes");
  slice.twists = row.yes("twists");
  slice.in_api = row.yes("api");
  slice.documented = row.yes("docs");
  slice.dated = row.dated("accelerator");
  slice.note = row.string("note");
  if (shape) check(slice, row);
  return slice;
}

bool names_tpu_slice(const Catalog& catalog, std::string_view text) {
  return name_and_number(catalog, text).family != nullptr;
}

Result<TpuSlice> find_tpu_slice(const Catalog& catalog, std::span<const TpuSlice> slices, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != text.npos) return by_shape(slices, catalog, text.substr(0, colon), text.substr(colon + 1));
  const NameAndNumber parts = name_and_number(catalog, text);
  const std::vector<const TpuSlice*> family =
      parts.family == nullptr ? std::vector<const TpuSlice*>() : family_of(slices, parts.family->name);
  if (!family.empty()) return by_name(family, text, parts);
  std::vector<std::string> names;
  for (const TpuSlice& slice : slices) names.push_back(slice.name);
  return error(ErrorKind::not_found, "no slice is called '{}'", text).hinted(nearest_hint(text, names));
}

}  // namespace systole
