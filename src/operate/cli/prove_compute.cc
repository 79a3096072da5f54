#include "operate/cli/prove_compute.h"

#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "describe/graph/op.h"
#include "operate/cli/printer.h"

namespace systole::cli {
namespace {

constexpr std::size_t kUnnamed = kNumOpClasses;  // of no op of Systole's: the compiler's own copies, and casts it moved

struct Line {
  std::string name;
  std::optional<Seconds> predicted, scheduled;
};

// The loops around layers move slices of stacks in and out.
std::size_t class_of_name(const std::string& op) {
  if (op == "repeat") return static_cast<std::size_t>(OpClass::movement);
  const OpDef* known = find_op(op);
  return known == nullptr ? kUnnamed : static_cast<std::size_t>(class_of(*known));
}

// The sum first.
std::vector<Line> lines_of(const JobOnSlice& job, const prove::Proof* proof) {
  const bool told = proof != nullptr && proof->compute && proof->executed.cycles > 0;
  std::array<Seconds, kNumOpClasses + 1> scheduled{};
  if (told) {
    const Seconds cycle = *proof->compute * (1 / proof->executed.cycles);
    for (const prove::OpCycles& op : proof->executed.by_op) scheduled[class_of_name(op.op)] += cycle * op.cycles;
  }
  if (!told && !job.compute) return {};
  std::vector<Line> lines(1);
  lines[0].name = "all";
  if (job.compute) lines[0].predicted = job.compute->total();
  if (told) lines[0].scheduled = proof->compute;
  for (std::size_t c = 0; c <= kUnnamed; ++c) {
    Line line;
    line.name = c == kUnnamed ? "unnamed" : name_of(static_cast<OpClass>(c));
    if (job.compute && c != kUnnamed) line.predicted = (*job.compute)[static_cast<OpClass>(c)];
    if (told) line.scheduled = scheduled[c];
    if (line.predicted.value_or(Seconds()) + line.scheduled.value_or(Seconds()) > Seconds()) lines.push_back(line);
  }
  return lines;
}

std::string text_of(const std::optional<Seconds>& time) { return time ? to_string(*time) : "-"; }

std::optional<double> ratio_of(const Line& line) {
  if (!line.predicted || !line.scheduled || !(*line.scheduled > Seconds())) return std::nullopt;
  return line.predicted->count() / line.scheduled->count();
}

}  // namespace

std::string compute_text(const JobOnSlice& job, const prove::Proof* proof) {
  const std::vector<Line> lines = lines_of(job, proof);
  if (lines.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 1; i <= lines.size(); ++i) {  // the sum last
    const Line& line = lines[i % lines.size()];
    const std::optional<double> ratio = ratio_of(line);
    rows.push_back(
        {line.name, text_of(line.predicted), text_of(line.scheduled), ratio ? fmt::format("{:.2f}", *ratio) : "-"});
  }
  std::string text = "\n" + table({"compute of one run", "predicted>", "scheduled>", "ratio>"}, rows);
  if (!lines[0].predicted) return text + "nothing is predicted: the catalog has no schedule.* of this chip\n";
  if (const std::optional<double> ratio = ratio_of(lines[0]))
    text += fmt::format("predicted is {:.1f}% {} what the compiler schedules\n", 100 * std::abs(*ratio - 1),
                        *ratio < 1 ? "below" : "above");
  return text;
}

Node compute_node(const JobOnSlice& job, const prove::Proof* proof) {
  Node node = Node::map({});
  for (const Line& line : lines_of(job, proof)) {
    Node times = Node::map({});
    if (line.predicted) times.set("predicted_s", line.predicted->count());
    if (line.scheduled) times.set("scheduled_s", line.scheduled->count());
    if (const std::optional<double> ratio = ratio_of(line)) times.set("ratio", *ratio);
    node.set(line.name, std::move(times));
  }
  return node;
}

}  // namespace systole::cli
