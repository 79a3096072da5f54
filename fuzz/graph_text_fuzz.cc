// Any bytes as the text of a graph: an error with a place, or a graph that verifies, prints, and reads back to the same
// text.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "describe/ir/text.h"
#include "describe/ir/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  systole::Result<systole::Graph> graph = systole::parse_graph(text, "fuzz.graph");
  if (!graph.ok()) {
    if (graph.error().kind != systole::ErrorKind::invalid || graph.error().where.file != "fuzz.graph") std::abort();
    return 0;
  }
  systole::verify(*graph);
  const std::string printed = systole::to_text(*graph);
  systole::Result<systole::Graph> again = systole::parse_graph(printed, "fuzz.graph");
  if (!again.ok() || systole::to_text(*again) != printed) std::abort();
  return 0;
}
