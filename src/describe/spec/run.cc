#include "describe/spec/run.h"

#include "describe/spec/fields.h"

namespace systole {
// Found by argument-dependent lookup from fields.h, hence not in the unnamed namespace.
template <typename F>
static void fields(F& f, Opened& e) {
  f("run", e.run);
  f("at", e.at);
  f("rank", e.rank);
  f("process", e.process);
  f("host", e.host);
  f("command", e.command);
  f("program_hash", e.program_hash);
  f("workload_hash", e.workload_hash);
  f("data_hash", e.data_hash);
  f("numerics", e.numerics);
  f("from_step", e.from_step);
}

template <typename F>
static void fields(F& f, StepEnded& e) {
  f("step", e.step);
  f("loss", e.loss);
  f("gradient_norm", e.gradient_norm);
  f("rate", e.rate);
  f("labels", e.labels);
  f("tokens", e.tokens);
  f("skipped", e.skipped);
  f("dropped", e.dropped);
  f("seconds", e.seconds);
}

template <typename F>
static void fields(F& f, Evaluated& e) {
  f("step", e.step);
  f("loss", e.loss);
  f("bits_per_byte", e.bits_per_byte);
  f("labels", e.labels);
  f("bytes", e.bytes);
  f("source_losses", e.source_losses);
}

template <typename F>
static void fields(F& f, CheckpointSaved& e) {
  f("step", e.step);
  f("id", e.id);
  f("bytes", e.bytes);
  f("snapshot_s", e.snapshot);
  f("write_s", e.write);
}

template <typename F>
static void fields(F& f, CheckpointRemoved& e) {
  f("step", e.step);
  f("id", e.id);
}

template <typename F>
static void fields(F& f, MemoryMeasured& e) {
  f("bytes_by_owner", e.by_owner);
  f("resident_bytes", e.resident);
  f("arena_high_water_bytes", e.arena_high_water);
}

template <typename F>
static void fields(F& f, WorkCounted& e) {
  f("steps", e.steps);
  f("flops", e.flops);
  f("bytes_moved", e.moved);
  f("bytes_sent", e.sent);
  f("compute_s_by_kind", e.compute_by_kind);
  f("steps_by_row_tokens", e.steps_by_length);
  f("data_wait_s_by_stage", e.waits_by_stage);
}

template <typename F>
static void fields(F& f, Note& e) {
  f("level", e.level);
  f("text", e.text);
  f("what", e.what);
  f("took_s", e.took);
}

template <typename F>
static void fields(F& f, Stopped& e) {
  f("reason", e.reason);
  f("detail", e.detail);
  f("step", e.step);
  f("saved", e.saved);
  f("seconds", e.seconds);
}

template <typename F>
static void fields(F& f, StragglerFound& e) {
  f("kind", e.kind);
  f("rank", e.rank);
  f("step", e.step);
  f("stage", e.stage);
  f("collective", e.collective);
  f("took_s", e.took);
  f("usual_s", e.usual);
  f("text", e.text);
}

template <typename F>
static void fields(F& f, Recovered& e) {
  f("generation", e.generation);
  f("cause", e.cause);
  f("detected_s", e.detected);
  f("ended_s", e.ended);
  f("restarted_s", e.restarted);
  f("restored_s", e.restored);
  f("stepped_s", e.stepped);
  f("from_step", e.from_step);
  f("steps_lost", e.steps_lost);
}

namespace {

constexpr const char* kNames[] = {
    "opened",       "step_ended", "evaluated", "checkpoint_saved", "checkpoint_removed", "memory_measured",
    "work_counted", "note",       "stopped",   "held_up",          "recovered"};
static_assert(std::size(kNames) == std::variant_size_v<EventBody>);

// Reads the body as the variant's alternative of that name, searching from the I-th on.
template <std::size_t I = 0>
Result<EventBody> read_body(const std::string& name, const Node& map) {
  if constexpr (I == std::variant_size_v<EventBody>) {
    return error(ErrorKind::unsupported, "event '{}' is not known to this version", name).at(map.where());
  } else {
    if (name != kNames[I]) return read_body<I + 1>(name, map);
    return EventBody(TRY(read_fields<std::variant_alternative_t<I, EventBody>>(map, {"event", "t", "version"})));
  }
}

Status check_version(const Node& map) {
  const Node* version = map.find("version");
  if (version == nullptr) return error(ErrorKind::corrupt, "'version' is missing").at(map.where());
  const std::int64_t number = TRY(version->as_int());
  if (number >= 1 && number <= kRunVersion) return Done{};
  return error(ErrorKind::unsupported, "a run of version {}; this systole reads up to {}", number, kRunVersion)
      .coded(ErrorCode::newer_version)
      .at(map.where())
      .hinted("use the systole that wrote it, or a newer one");
}

Result<Event> read_event(const Node& map) {
  if (!map.is_map()) return map.wrong("an event");
  const std::string name = TRY(TRY(map.get("event"))->as_string());
  if (name == kNames[0]) TRY(check_version(map));
  Event event;
  TRY(read_node(*TRY(map.get("t")), event.t));
  event.body = TRY(read_body(name, map));
  return event;
}

}  // namespace

std::vector<std::string> names_of_events() { return {std::begin(kNames), std::end(kNames)}; }
const char* name_of(const EventBody& body) { return kNames[body.index()]; }

std::string to_json_line(const Event& event) {
  Node line = Node::map();
  line.set("event", name_of(event.body));
  line.set("t", event.t.count());
  if (std::holds_alternative<Opened>(event.body)) line.set("version", kRunVersion);
  const Node body = std::visit([](const auto& e) { return written(e); }, event.body);
  for (const Node::Entry& entry : body.entries()) line.set(entry.key, entry.value);
  return to_json(line) + "\n";
}

Result<Event> parse_event(std::string_view line, const Where& where) {
  const auto placed = [&](Error e) {
    if (e.kind != ErrorKind::unsupported) e.kind = ErrorKind::corrupt;
    e.where = Where{where.file, where.line, e.where.line > 0 ? e.where.col : where.col};
    return e;
  };
  const Result<Node> map = parse_json(line, where.file);
  if (!map.ok()) return placed(map.error());
  Result<Event> event = read_event(*map);
  if (!event.ok()) return placed(event.error());
  return event;
}

Result<std::vector<Event>> parse_events(std::string_view text, const std::string& filename) {
  std::vector<Event> events;
  for (int line = 1; text.find('\n') != text.npos; ++line) {
    const std::size_t end = text.find('\n');
    events.push_back(TRY(parse_event(text.substr(0, end), {filename, line, 1})));
    if (line == 1 && !std::holds_alternative<Opened>(events[0].body)) {
      return error(ErrorKind::corrupt, "the first event is '{}', not 'opened'", name_of(events[0].body))
          .at({filename, 1, 1});
    }
    text.remove_prefix(end + 1);
  }
  return events;
}

std::vector<StepEnded> canonical_steps(std::span<const std::vector<Event>> processes) {
  std::map<std::int64_t, StepEnded> last;
  for (const std::vector<Event>& events : processes)
    for (const Event& event : events) {
      if (const auto* opened = std::get_if<Opened>(&event.body))
        last.erase(last.upper_bound(opened->from_step), last.end());
      if (const auto* step = std::get_if<StepEnded>(&event.body)) last[step->step] = *step;
    }
  std::vector<StepEnded> steps;
  for (auto& [number, step] : last) steps.push_back(std::move(step));
  return steps;
}

std::vector<StepEnded> canonical_steps(const std::vector<Event>& events) {
  return canonical_steps(std::span(&events, 1));
}

}  // namespace systole
