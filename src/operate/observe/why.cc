#include "operate/observe/why.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "describe/spec/run_summary.h"
#include "ground/base/counted.h"
#include "operate/observe/stalls.h"

namespace systole {
namespace {

// The category of the time of a note's owner.
std::optional<Category> category_of(const Note& note) {
  if (note.what == "data") return Category::data_wait;
  return category_named(note.what);
}

struct Cause {
  std::string text;
  std::int64_t times = 0;
  Seconds took{};
};

template <typename Body>
const Body* last_of(const std::vector<Event>& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event)
    if (const auto* body = std::get_if<Body>(&event->body)) return body;
  return nullptr;
}

// For a process without an end: its steps, and its ring's spans since the last step.
TimeByCategory seconds_of(const std::vector<Event>& process, const std::vector<Span>& spans) {
  if (const auto* stopped = last_of<Stopped>(process)) return stopped->seconds;
  TimeByCategory seconds;
  Seconds told;
  for (const Event& event : process) {
    const auto* step = std::get_if<StepEnded>(&event.body);
    if (step == nullptr) continue;
    seconds += step->seconds;
    told = event.t;
  }
  for (const Span& span : spans) {
    if (span.end > told && span.category < kNumCategories)
      seconds[static_cast<Category>(span.category)] += span.end - std::max(span.begin, told);
  }
  return seconds;
}

std::string last_seen(const std::vector<Span>& spans) {
  if (spans.empty() || spans.back().track >= kNumCategories) return "";
  const Span& last = spans.back();  // it ended when its successor began
  return fmt::format("in {} of step {}, {} after it opened the run", name_of(static_cast<Category>(last.track)),
                     last.tag, to_string(last.end));
}

void add_to(std::vector<std::pair<std::string, Seconds>>& kinds, const std::string& kind, Seconds time) {
  for (auto& [known, sum] : kinds) {
    if (known == kind) {
      sum += time;
      return;
    }
  }
  kinds.emplace_back(kind, time);
}

void count_process(WhyReport& report, TimeByCategory& measured, const std::vector<Event>& process,
                   const std::vector<Span>& spans) {
  ++report.processes;
  measured += seconds_of(process, spans);
  const auto* stopped = last_of<Stopped>(process);
  if (stopped == nullptr) ++report.killed;
  report.last_seen = stopped == nullptr ? last_seen(spans) : "";
  if (const auto* work = last_of<WorkCounted>(process)) {
    report.counted_steps += work->steps;
    report.counted_flops += work->flops;
    for (const auto& [kind, time] : work->compute_by_kind) add_to(report.measured_by_kind, kind, time);
    if (work->waits_by_stage)
      for (const auto& [stage, time] : *work->waits_by_stage) add_to(report.waits_by_stage, stage, time);
  }
  if (const auto* memory = last_of<MemoryMeasured>(process)) {
    report.measured_arena = std::max(report.measured_arena, memory->arena_high_water);
    report.resident = std::max(report.resident, memory->resident);
  }
}

// A note becomes the cause of its category if that took time; other notes are listed separately.
std::array<Cause, kNumCategories> take_notes(WhyReport& report, const std::vector<std::vector<Event>>& processes) {
  std::array<Cause, kNumCategories> causes;
  for (const auto& process : processes) {
    for (const Event& event : process) {
      const auto* note = std::get_if<Note>(&event.body);
      if (note == nullptr) continue;
      const auto category = category_of(*note);
      if (category && note->took > Seconds()) {
        Cause& cause = causes[static_cast<std::size_t>(*category)];
        cause.text = note->text;
        ++cause.times;
        cause.took += note->took;
      } else if (note->level != "info") {
        report.notes.push_back(*note);
      }
    }
  }
  return causes;
}

void fill_rows(WhyReport& report, const TimeByCategory& predicted, const TimeByCategory& measured,
               const std::array<Cause, kNumCategories>& causes, std::span<const StepEnded> steps) {
  for (int c = 0; c < kNumCategories; ++c) {
    const auto category = static_cast<Category>(c);
    const Cause& cause = causes[static_cast<std::size_t>(c)];
    if (predicted[category] == Seconds() && measured[category] == Seconds() && category != Category::other) continue;
    WhyRow row{category, predicted[category], measured[category], ""};
    if (cause.times == 1 && category == Category::startup) {
      row.cause = cause.text;  // which has its times
    } else if (cause.times > 0) {
      row.cause = fmt::format("{}, {}, {}", cause.text, counted(cause.times, "time"), to_string(cause.took));
    } else if (const std::optional<Stalls> stalls = find_stalls(steps, category)) {
      row.cause = to_string(*stalls);
    }
    report.rows.push_back(std::move(row));
  }
  report.wall = measured.total();
}

// A ratio above one means a wrong input, so it is withheld.
void fill_ratio(WhyReport& report, const Plan& plan, const TimeByCategory& measured, std::int64_t steps) {
  const Seconds planned = plan.time.step[Category::compute] + plan.time.step[Category::update];
  const Seconds spent = measured[Category::compute] + measured[Category::update];
  if (!plan.target.calibrated || plan.model_utilisation <= 0 || planned <= Seconds() || spent <= Seconds()) return;
  const double ratio = plan.model_utilisation * (planned * static_cast<double>(steps) / spent);
  if (ratio <= 1) {
    report.matmul_ratio = ratio;
    return;
  }
  const Flops work = plan.program.model_flops * steps;
  const FlopRate rate((plan.program.model_flops / planned).count() / plan.model_utilisation);
  report.withheld = fmt::format(
      "{} model FLOPs in {} is {}, above the measured matmul rate of {} of {}; one of the two is wrong",
      with_commas(work.count()), to_string(spent), to_string(work / spent), plan.target.catalog_entry, to_string(rate));
}

const PlannedShape* shape_of(const Plan& plan, const std::string& length) {
  for (const PlannedShape& shape : plan.shapes)
    if (length == std::to_string(shape.length)) return &shape;
  return nullptr;
}

// Of the steps that were counted, each by the length of its rows. Steps of a length that the plan does not have get a
// note.
void fill_planned_flops(WhyReport& report, const Plan& plan, const std::vector<std::vector<Event>>& processes) {
  std::map<std::string, std::int64_t> unknown;  // length -> steps
  for (const std::vector<Event>& process : processes) {
    const auto* work = last_of<WorkCounted>(process);
    if (work == nullptr) continue;
    if (!work->steps_by_length) {
      report.planned_flops += plan.program.executed_flops * work->steps;
      continue;
    }
    for (const auto& [length, steps] : *work->steps_by_length) {
      if (const PlannedShape* shape = shape_of(plan, length))
        report.planned_flops += shape->executed_flops * steps;
      else if (steps > 0)
        unknown[length] += steps;
    }
  }
  for (const auto& [length, steps] : unknown)
    report.notes.push_back(
        {"warning",
         fmt::format("{} of rows of {} are counted, and the plan has none: the planned FLOPs are without them",
                     counted(steps, "step"), length),
         "plan", Seconds()});
}

}  // namespace

WhyReport why(const Plan& plan, const std::vector<std::vector<Event>>& processes,
              const std::vector<std::vector<Span>>& spans) {
  WhyReport report;
  const RunSummary summary = summarize(processes, &plan);
  report.run = plan.workload.name;
  report.state = summary.state;
  report.detail = summary.problem;
  report.steps = summary.step;
  report.loss = summary.loss;
  report.bits_per_byte = summary.bits_per_byte;
  TimeByCategory measured;
  std::int64_t stepped = 0;  // includes steps that a kill undid
  for (std::size_t p = 0; p < processes.size(); ++p) {
    const std::vector<Event>& process = processes[p];
    if (const auto* opened = last_of<Opened>(process)) report.run = opened->run;
    count_process(report, measured, process, p < spans.size() ? spans[p] : std::vector<Span>());
    for (const Event& event : process) stepped += std::holds_alternative<StepEnded>(event.body);
  }
  fill_rows(report, plan.time.run, measured, take_notes(report, processes), canonical_steps(processes));
  report.planned_steps = plan.time.steps;
  report.calibrated = plan.target.calibrated;
  report.unknown = plan.time.unknown;
  fill_planned_flops(report, plan, processes);
  report.planned_arena = plan.memory.arena;
  report.planned_memory = plan.memory.total();
  report.compute_by_kind = plan.time.compute_by_kind;
  for (auto& [kind, time] : report.measured_by_kind)
    time = time * (1.0 / static_cast<double>(std::max<std::int64_t>(1, report.counted_steps)));
  fill_ratio(report, plan, measured, stepped);
  return report;
}

Node to_node(const WhyReport& r) {
  Node rows = Node::sequence();
  for (const WhyRow& row : r.rows) {
    rows.push(Node::map({{"category", name_of(row.category)},
                         {"predicted_s", row.predicted.count()},
                         {"measured_s", row.measured.count()},
                         {"cause", row.cause}}));
  }
  Node kinds = Node::map();
  for (const auto& [kind, time] : r.compute_by_kind) kinds.set(kind, time.count());
  Node measured_kinds = Node::map();
  for (const auto& [kind, time] : r.measured_by_kind) measured_kinds.set(kind, time.count());
  Node waits = Node::map();
  for (const auto& [stage, time] : r.waits_by_stage) waits.set(stage, time.count());
  Node notes = Node::sequence();
  for (const Note& note : r.notes)
    notes.push(Node::map({{"level", note.level}, {"what", note.what}, {"text", note.text}}));
  const auto maybe = [](const std::optional<double>& number) { return number ? Node(*number) : Node(); };
  return Node::map({{"run", r.run},
                    {"state", name_of(r.state)},
                    {"detail", r.detail},
                    {"last_seen", r.last_seen},
                    {"processes", r.processes},
                    {"killed", r.killed},
                    {"steps", r.steps},
                    {"planned_steps", r.planned_steps},
                    {"wall_s", r.wall.count()},
                    {"calibrated", r.calibrated},
                    {"prediction_unknown", r.unknown ? Node(*r.unknown) : Node()},
                    {"time", rows},
                    {"predicted_compute_s_of_a_step", kinds},
                    {"measured_compute_s_of_a_step", measured_kinds},
                    {"measured_data_wait_s", waits},
                    {"counted_steps", r.counted_steps},
                    {"planned_flops", r.planned_flops.count()},
                    {"counted_flops", r.counted_flops.count()},
                    {"planned_arena_bytes", r.planned_arena.count()},
                    {"measured_arena_bytes", r.measured_arena.count()},
                    {"planned_memory_bytes", r.planned_memory.count()},
                    {"resident_bytes", r.resident.count()},
                    {"matmul_ratio", maybe(r.matmul_ratio)},
                    {"matmul_ratio_withheld", r.withheld},
                    {"loss", maybe(r.loss)},
                    {"bits_per_byte", maybe(r.bits_per_byte)},
                    {"notes", notes}});
}

}  // namespace systole
