// The report of `why` as text for people.

#include <algorithm>
#include <cmath>

#include "ground/base/counted.h"
#include "operate/observe/why.h"

namespace systole {
namespace {

std::string seconds(Seconds time) { return fmt::format("{:.1f} s", time.count()); }

std::string difference(const WhyRow& row) {
  const double by = (row.measured - row.predicted).count();
  return std::abs(by) < 0.05 ? "0.0 s" : fmt::format("{:+.1f} s", by);
}

std::string share(Seconds part, Seconds whole) {
  return whole > Seconds() ? fmt::format("{:.1f}% of wall time", 100 * (part / whole)) : "";
}

std::string against_plan(std::int64_t counted, std::int64_t planned, const char* unit) {
  if (counted == planned) return fmt::format("{} {} = planned", with_commas(counted), unit);
  return fmt::format("{} {}, planned {} ({:+.2f}%)", with_commas(counted), unit, with_commas(planned),
                     100.0 * (static_cast<double>(counted) / static_cast<double>(planned) - 1));
}

// `unpredicted`: no time was predicted.
std::string line_of(const WhyRow& row, Seconds wall, bool unpredicted) {
  const bool rest = row.category == Category::other;
  // The catalog does not have a vendor compiler's time, and the next run loads the compiled code.
  const bool unknown =
      unpredicted || (row.category == Category::compile && row.predicted == Seconds() && !row.cause.empty());
  std::string line = fmt::format("{:<20}{:>13}{:>12}{:>13}", rest ? "other (unclaimed)" : name_of(row.category),
                                 unknown                      ? "unknown"
                                 : row.predicted == Seconds() ? ""
                                                              : seconds(row.predicted),
                                 seconds(row.measured), rest || unknown ? "" : difference(row));
  if (rest) line += share(row.measured, wall);
  if (!row.cause.empty()) line += "   ← " + row.cause;
  return line + "\n";
}

std::string head_of(const WhyReport& r) {
  std::string text =
      fmt::format("{} · {} · {} · {}", r.run, name_of(r.state), to_string(r.wall), counted(r.steps, "step"));
  if (r.planned_steps > 0) text += fmt::format(" (planned {})", with_commas(std::llround(r.planned_steps)));
  if (r.loss) text += fmt::format(" · loss {:.4f}", *r.loss);
  if (r.bits_per_byte) text += fmt::format(" · {:.4f} bits per byte held out", *r.bits_per_byte);
  text += "\n";
  if (r.processes > 1) text += fmt::format("{} processes worked on it\n", r.processes);
  if (r.killed > 0) {
    text += fmt::format("{} of them left no end (killed, or still at work): of {} the seconds are those of its steps\n",
                        r.killed, r.killed == 1 ? "it" : "each");
  }
  if (!r.last_seen.empty()) text += "last seen " + r.last_seen + "\n";
  if (!r.detail.empty()) text += r.detail + "\n";
  return text;
}

std::optional<Seconds> time_of(const std::vector<std::pair<std::string, Seconds>>& kinds, const std::string& wanted) {
  for (const auto& [kind, time] : kinds) {
    if (kind == wanted) return time;
  }
  return std::nullopt;
}

// A step by kinds of operation; omits those below 1% both predicted and measured.
std::string kinds_of(const WhyReport& r) {
  Seconds predicted{}, measured{};
  for (const auto& [kind, time] : r.compute_by_kind) predicted += time;
  for (const auto& [kind, time] : r.measured_by_kind) measured += time;
  if (predicted <= Seconds() && measured <= Seconds()) return "";
  const auto cell = [](const std::optional<Seconds>& time) { return time ? to_string(*time) : std::string(); };
  std::string text = fmt::format("\n{:<20}{:>13}{:>12}\n", "a step, by kind", "predicted", "measured");
  std::vector<std::string> names;
  for (const auto* kinds : {&r.compute_by_kind, &r.measured_by_kind}) {
    for (const auto& [kind, time] : *kinds) {
      const bool matters = time >= (kinds == &r.compute_by_kind ? predicted : measured) * 0.01;
      if (matters && std::find(names.begin(), names.end(), kind) == names.end()) names.push_back(kind);
    }
  }
  for (const std::string& name : names) {
    text += fmt::format("{:<20}{:>13}{:>12}\n", name, cell(time_of(r.compute_by_kind, name)),
                        cell(time_of(r.measured_by_kind, name)));
  }
  return text + "\n";
}

// What a wait for rows was for, if it matters.
std::string waits_of(const WhyReport& r) {
  Seconds all{};
  for (const auto& [stage, time] : r.waits_by_stage) all += time;
  if (all <= r.wall * 0.01) return "";
  std::string text;
  for (const auto& [stage, time] : r.waits_by_stage)
    text += fmt::format("{}{} {}", text.empty() ? "rows    waited for: " : ", ", stage, to_string(time));
  return text + "\n";
}

std::string account_of(const WhyReport& r) {
  std::string text = waits_of(r);
  if (r.counted_steps > 0 && r.counted_flops == Flops()) {
    text += fmt::format("FLOPs   {} planned, counted by nobody: XLA ran {} as it saw fit\n",
                        with_commas(r.planned_flops.count()), counted(r.counted_steps, "step"));
  } else if (r.counted_steps > 0) {
    text += fmt::format("FLOPs   {} ({})\n", against_plan(r.counted_flops.count(), r.planned_flops.count(), "counted"),
                        counted(r.counted_steps, "step"));
  }
  if (r.measured_arena > Bytes())
    text += fmt::format("arena   {}\n", against_plan(r.measured_arena.count(), r.planned_arena.count(), "B"));
  if (r.resident > Bytes())
    text += fmt::format("memory  {}\n", against_plan(r.resident.count(), r.planned_memory.count(), "B resident"));
  if (r.matmul_ratio) {
    text += fmt::format("speed   {:.0f}% of this machine's measured matmul rate\n", 100 * *r.matmul_ratio);
  } else if (!r.withheld.empty()) {
    text += "speed   utilisation withheld: " + r.withheld + "\n";
  } else if (!r.calibrated) {
    text += "speed   no ratio: this machine's matmul rate was not measured\n";
  }
  return text;
}

}  // namespace

std::string to_text(const WhyReport& r) {
  std::string text = head_of(r);
  if (r.unknown) text += "no time was predicted: " + *r.unknown + "\n";
  if (!r.unknown && !r.calibrated) text += "predictions are UNCALIBRATED, of another machine of this kind\n";
  text += fmt::format("{:<20}{:>13}{:>12}{:>13}\n", "", "predicted", "measured", "difference");
  for (const WhyRow& row : r.rows) text += line_of(row, r.wall, r.unknown.has_value());
  text += kinds_of(r) + account_of(r);
  for (const Note& note : r.notes) text += fmt::format("{}: {}: {}\n", note.level, note.what, note.text);
  return text;
}

}  // namespace systole
