// `systole logs [RUN]`: a run's events as lines, and its loss as a curve; for a run on a cluster, its output.

#include <algorithm>

#include "ground/base/nearest.h"
#include "ground/draw/braille_chart.h"
#include "ground/process/signal_watch.h"
#include "ground/store/lock.h"
#include "operate/cli/run_scene.h"
#include "operate/observe/index.h"
#include "operate/run/run_places.h"
#include "operate/runs/run_output.h"
#include "operate/runs/submitted_rows.h"

namespace systole::cli {
namespace {

struct LogsOptions {
  std::string run;
  std::vector<std::string> kinds;
  std::int64_t last = 0, every = 1;
  bool chart = false, follow = false, all = false;
  bool events() const { return chart || !kinds.empty() || every > 1; }
};

void check_kinds(const std::vector<std::string>& kinds) {
  const std::vector<std::string> names = names_of_events();
  for (const std::string& kind : kinds) {
    if (std::find(names.begin(), names.end(), kind) != names.end()) continue;
    fail(error(ErrorKind::invalid, "--kind: '{}' is no kind of event", kind).hinted(nearest_hint(kind, names)));
  }
}

std::string shown(const Node& value) {
  if (value.is_map()) {
    std::string text;
    for (const Node::Entry& entry : value.entries())
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", entry.key, shown(entry.value));
    return "{" + text + "}";
  }
  if (value.is_null()) return "-";
  // Six digits for people; --json has all.
  if (value.kind() == NodeKind::number && !value.as_int().ok()) return fmt::format("{:.6g}", value.as_double().value());
  return value.text();
}

// "  12.250 s  step_ended        step 40  loss 5.1 ..."
std::string line_of(const Event& event) {
  const Node node = parse_json(to_json_line(event), "event").value();
  std::string line = fmt::format("{:>10.3f} s  {:<18}", event.t.count(), name_of(event.body));
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == "event" || entry.key == "t" || entry.key == "version" || shown(entry.value).empty()) continue;
    line += fmt::format("  {} {}", entry.key, shown(entry.value));
  }
  return line + "\n";
}

bool wanted(const Event& event, const LogsOptions& options) {
  if (!options.kinds.empty() &&
      std::find(options.kinds.begin(), options.kinds.end(), name_of(event.body)) == options.kinds.end())
    return false;
  const auto* step = std::get_if<StepEnded>(&event.body);
  return step == nullptr || options.every <= 1 || step->step % options.every == 0;
}

std::string loss_chart(const std::vector<Event>& events, int width) {
  std::vector<Point> points;
  for (const StepEnded& step : canonical_steps(events)) points.push_back({static_cast<double>(step.step), step.loss});
  const std::string curve = systole::chart(points, std::min(width, 100), 14);
  return curve.empty() ? "" : "loss by step\n" + curve;
}

// Prints new events of a run's files, until its last process has ended. Rereads files only when they have grown.
void follow_events(const RunPlace& place, std::size_t shown, const LogsOptions& options, Context& context) {
  std::int64_t read = run_file_bytes(*place.store, "").value();
  const SignalWatch signals;
  while (!signals.stop_requested() && !context.out.closed()) {
    const Result<bool> held = is_locked(place.path);
    const bool over = held.ok() && !*held;
    const std::int64_t now = run_file_bytes(*place.store, "").value();
    if (now != read) {
      read = now;
      const std::vector<Event> events = record_of(place).value().all();
      for (; shown < events.size(); ++shown)
        if (wanted(events[shown], options)) context.out.stream(line_of(events[shown]));
    }
    if (over) return;
    context.clock.sleep(Seconds(0.2));
  }
}

ExitCode follow_output(const ClusterRun& run, Output& output, bool prefixed, Context& context) {
  const SignalWatch signals;
  Printer& out = context.out;
  OutputFollower follower(run, output, prefixed,
                          {.lines = [&out](const std::string& text) { out.stream(text); },
                           .message = [&out](const std::string& text) { out.message(text); }},
                          context.clock);
  while (!signals.stop_requested() && !out.closed()) {
    if (const std::optional<RunState> over = follower.turn())
      return *over == RunState::finished ? ExitCode::done : ExitCode::no;
    context.clock.sleep(output.pace());
  }
  return ExitCode::interrupted;  // the run is not over
}

// Returns `no` if a followed run did not reach its end.
ExitCode show_output(ClusterRun& run, const LogsOptions& options, Context& context) {
  const std::unique_ptr<Output> output = run.cluster->output(run.record, options.all).value();
  const bool prefixed = run.record.array || options.all;
  if (options.follow && options.last == 0) return follow_output(run, *output, prefixed, context);
  const std::string shown = whole_output(*output, prefixed, options.last);
  context.out.stream(shown);
  if (options.follow) return follow_output(run, *output, prefixed, context);
  const RunStatus status = run.query();
  if (shown.empty()) context.out.message(fmt::format("nothing yet: {}", describe_status(run.record, status.overall())));
  Node node = run_node(run.record, status.as_one(), context.clock);
  context.out.json(node.set("output", shown));
  return ExitCode::done;
}

ExitCode logs(const LogsOptions& options, Context& context) {
  check_kinds(options.kinds);
  if (!options.events())
    if (const auto run = cluster_run_if_any(options.run, follow_scene_of(context)))
      return show_output(*run, options, context);
  const RunPlace place = open_run(options.run).value();
  const std::vector<Event> events = record_of(place).value().all();
  if (options.chart) {
    const std::string curve = loss_chart(events, context.out.width());
    if (curve.empty()) context.out.message("fewer than two steps: nothing to draw");
    context.out.data(curve);
  }
  std::vector<const Event*> chosen;
  for (const Event& event : events)
    if (wanted(event, options)) chosen.push_back(&event);
  const std::size_t skip = options.last > 0 && chosen.size() > static_cast<std::size_t>(options.last)
                               ? chosen.size() - static_cast<std::size_t>(options.last)
                               : 0;
  Node list = Node::sequence();
  std::string text;
  for (std::size_t i = skip; i < chosen.size(); ++i) {
    if (context.out.json())
      list.push(parse_json(to_json_line(*chosen[i]), "event").value());
    else if (!options.chart)
      text += line_of(*chosen[i]);
  }
  if (!text.empty()) context.out.data(text);
  context.out.json(Node::map({{"run", place.path}, {"events", list}}));
  if (options.follow && !options.chart) follow_events(place, events.size(), options, context);
  return ExitCode::done;
}

}  // namespace

void add_logs(Subcommand app, Context& context) {
  auto options = std::make_shared<LogsOptions>();
  Subcommand command = add_command(app, "logs", "a run's events, or its loss as a curve", options, context, logs);
  command.add_option("run", options->run, "a run's folder, name or number; without: the newest");
  command.add_option("--kind", options->kinds, "only events of this kind, as evaluated; may be repeated").take_all();
  command.add_option("-n,--last", options->last, "only the last N").check(at_least(1));
  command.add_option("--every", options->every, "of the steps, only each N-th").check(at_least(1));
  command.add_flag("-f,--follow", options->follow, "go on with what comes, until it ends");
  command.add_flag("--all", options->all, "of one on a cluster: what each of its machines writes, not the first alone");
  command.add_flag("--chart", options->chart, "the loss as a curve instead");
}

}  // namespace systole::cli
