#include "predict/perf/product_dims.h"

#include <algorithm>
#include <string>

namespace systole {
namespace {

constexpr std::int64_t kRows = 8, kSide = 128;

// "bse,ehd->bshd": the letters of both operands and of the result.
struct Letters {
  std::string a, b, y;
};
Letters letters_of(const GraphNode& node) {
  const std::string& spec = node.attrs.get_string("spec");
  const std::size_t comma = spec.find(','), arrow = spec.find("->");
  return {spec.substr(0, comma), spec.substr(comma + 1, arrow - comma - 1), spec.substr(arrow + 2)};
}
bool has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

double filled(std::int64_t n, std::int64_t tile) { return static_cast<double>((n + tile - 1) / tile * tile); }

}  // namespace

double ProductDims::filled_flops() const {
  const double one_way = filled(rows, kRows) * filled(columns, kSide),
               other_way = filled(columns, kRows) * filled(rows, kSide);
  return 2 * static_cast<double>(batch) * filled(summed, kSide) * std::min(one_way, other_way);
}

double ProductDims::streamed_bytes(std::int64_t element, Bytes on_chip) const {
  if (Bytes(std::min(rows, columns) * summed * element * 2) <= on_chip) return 0;
  const double passes = static_cast<double>(batch) * static_cast<double>(rows) * static_cast<double>(columns);
  return 2 * passes * static_cast<double>(summed) * static_cast<double>(element);  // by rows, and by columns
}

ProductDims product_dims(const Graph& graph, const GraphNode& node) {
  const auto [a, b, y] = letters_of(node);
  const Type &left = graph.type(node.operands[0]), &right = graph.type(node.operands[1]);
  ProductDims dims;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::int64_t size = left.size(static_cast<int>(i));
    (!has(y, a[i]) ? dims.summed : has(b, a[i]) ? dims.batch : dims.rows) *= size;
  }
  for (std::size_t i = 0; i < b.size(); ++i)
    if (!has(a, b[i])) dims.columns *= right.size(static_cast<int>(i));
  return dims;
}

ProductLayout product_layout(const GraphNode& node) {
  const Letters letters = letters_of(node);
  const auto first =  // after the batch, whose letters are in all three
      std::ranges::find_if(letters.a, [&](char c) { return !has(letters.b, c) || !has(letters.y, c); });
  if (first != letters.a.end() && !has(letters.y, *first) && has(letters.y, letters.a.back())) return ProductLayout::tn;
  return !letters.b.empty() && !has(letters.y, letters.b.back()) ? ProductLayout::nt : ProductLayout::nn;
}

}  // namespace systole
