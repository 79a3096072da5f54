#pragma once
// Graphs as text, written and read. parse_graph(to_text(g)) is g, and equal graphs print alike: values are renumbered
// in order.
//
//   graph "square_sum" {
//     %0 = input "x" : f32[n=3]
//     %1 = param "w.{layer}" : f32[layer=2, n=3] init normal(0.02) frozen no_decay stage 1
//     %2 "sq" = mul(%0, %0) : f32[n=3]
//     %3 = repeat(%2, %1) {carries=1, count=2, dim="layer", reverse=false, shared=0, stacked=1} : f32[n=3] [
//       graph "body" { … }
//     ]
//     return "y" %3
//   }

#include <string>
#include <string_view>

#include "describe/ir/ir.h"

namespace systole {

std::string to_text(const Graph& graph);

// Checks every node as it is read. Errors: invalid, with line and column in `filename`.
Result<Graph> parse_graph(std::string_view text, const std::string& filename);

}  // namespace systole
