#include "operate/cli/data_contamination.h"

#include "ground/base/counted.h"
#include "operate/cli/printer.h"

namespace systole::cli {
namespace {

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

}  // namespace

std::string contamination_text(std::span<const Contamination> found, std::span<const std::string> names,
                               std::int64_t words, int width) {
  std::string text =
      fmt::format("held-out text that stands in the training text too, in runs of {}\n", counted(words, "word"));
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Contamination& f = found[i];
    rows.push_back({names[i].empty() ? "held out" : names[i], with_commas(f.documents), with_commas(f.touched),
                    fmt::format("{:.2f}%", 100 * share(f.touched, f.documents)), with_commas(f.ngrams),
                    with_commas(f.found), fmt::format("{:.2f}%", 100 * share(f.found, f.ngrams))});
  }
  return text + table({"", "documents>", "with one>", "share>", "runs>", "found>", "share>"}, rows, width);
}

Node contamination_node(std::span<const Contamination> found, std::span<const std::string> names, std::int64_t words) {
  Node list = Node::sequence();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Contamination& f = found[i];
    Node node = Node::map({{"documents", f.documents}, {"touched", f.touched}, {"runs", f.ngrams}, {"found", f.found}});
    if (!names[i].empty()) node.set("source", names[i]);
    list.push(std::move(node));
  }
  return Node::map({{"words", words}, {"held_out", list}});
}

}  // namespace systole::cli
