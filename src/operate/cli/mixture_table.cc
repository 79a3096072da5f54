#include "operate/cli/mixture_table.h"

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"
#include "operate/cli/printer.h"
#include "operate/run/run_mixture.h"

namespace systole::cli {
MixtureDrawing drawing_of(const Mixture& mixture, const Workload& workload, double steps) {
  const MixtureOrder& order = *mixture.order;
  MixtureDrawing drawing{.of_run = steps > 0};
  constexpr double kMostSteps = 1e15;  // a prediction may be of any size
  const std::int64_t whole = std::llround(std::clamp(steps, 1.0, kMostSteps));
  drawing.rows = steps > 0 ? rows_of_steps(workload, whole) : order.rows();
  if (order.end()) drawing.rows = std::min(drawing.rows, *order.end());
  drawing.asked = mixture.asked(drawing.rows);
  const std::vector<std::int64_t> counts = order.drawn(drawing.rows);
  drawing.drawn = mixture.drawn(counts);
  for (std::size_t s = 0; s < counts.size(); ++s)
    drawing.epochs.push_back(static_cast<double>(counts[s]) / static_cast<double>(mixture.parts[s].rows));
  return drawing;
}

std::string mixture_table(const Mixture& mixture, const MixtureDrawing& drawing, const Workload& workload, int width) {
  const std::string of = drawing.of_run ? fmt::format("{} of {}", counted(drawing.rows / workload.train.batch, "step"),
                                                      counted(workload.train.batch, "row"))
                                        : counted(drawing.rows, "row");
  std::string text = fmt::format("mixture by {}, over {}\n", name_of(mixture.options.by), of);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t s = 0; s < mixture.parts.size(); ++s) {
    const TokensManifest& m = mixture.parts[s].manifest;
    const std::optional<std::int64_t>& most = mixture.options.sources[s].epochs;
    rows.push_back({mixture.options.sources[s].name, with_commas(m.train.documents), with_commas(m.train.tokens),
                    with_commas(mixture.parts[s].rows), fmt::format("{:.2f}%", 100 * drawing.asked[s]),
                    fmt::format("{:.2f}%", 100 * drawing.drawn[s]),
                    fmt::format("{:.2f}{}", drawing.epochs[s], most ? fmt::format(" of {}", *most) : ""), m.key});
  }
  text += table({"source", "documents>", "tokens>", "rows>", "asked>", "drawn>", "epochs>", "dataset"}, rows, width);
  if (mixture.order->end())
    text += fmt::format("its rows end after {}: {}\n", counted(*mixture.order->end() / workload.train.batch, "step"),
                        mixture.options.sources[mixture.order->ended_by()].name);
  return text;
}

Node mixture_node(const Mixture& mixture, const MixtureDrawing& drawing) {
  Node sources = Node::sequence();
  for (std::size_t s = 0; s < mixture.parts.size(); ++s) {
    const TokensManifest& m = mixture.parts[s].manifest;
    sources.push(Node::map({{"name", mixture.options.sources[s].name},
                            {"dataset", m.key},
                            {"documents", m.train.documents},
                            {"tokens", m.train.tokens},
                            {"held_out_documents", m.held_out.documents},
                            {"held_out_tokens", m.held_out.tokens},
                            {"rows", mixture.parts[s].rows},
                            {"asked_share", drawing.asked[s]},
                            {"drawn_share", drawing.drawn[s]},
                            {"epochs", drawing.epochs[s]}}));
  }
  Node node = Node::map({{"by", name_of(mixture.options.by)}, {"rows", drawing.rows}, {"sources", sources}});
  if (mixture.order->end()) node.set("end_row", *mixture.order->end());
  return node;
}

}  // namespace systole::cli
