#include "operate/run/inject.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <type_traits>

#include "describe/ir/op.h"
#include "execute/train/phase_observer.h"
#include "ground/base/number_from.h"
#include "ground/base/quantity.h"
#include "operate/run/full_disk.h"
#include "operate/run/wrong_clock.h"

namespace systole {
namespace {

constexpr const char* kPlaces =
    "data, forward, backward, logging, checkpoint, link; kill=PHASE@N, stuck=PLACE@N, lost=N, mismatch=N, flip=N, "
    "nan=N, full=N, clock=TIME";

struct Stall {
  std::string place;
  Seconds time;
  std::int64_t every = 1, from = 0;
};

Result<std::int64_t> parse_count(std::string_view text) {
  if (const std::optional<std::int64_t> number = number_from(text); number && *number >= 1) return *number;
  return error(ErrorKind::invalid, "--inject: '{}' is no count of 1 or more", text)
      .hinted("--inject data=50ms@10 holds up every tenth step");
}

Result<Stall> parse_stall(std::string_view place, std::string_view value) {
  Stall stall;
  stall.place = std::string(place);
  if (const std::size_t plus = value.find('+'); plus != value.npos) {
    stall.from = TRY(parse_count(value.substr(plus + 1)));
    value = value.substr(0, plus);
  }
  const std::size_t at = value.find('@');
  const Result<Seconds> time = parse_seconds(value.substr(0, at));
  if (!time.ok()) return error(time.error().kind, "--inject: {}", time.error().message).hinted(time.error().hint);
  stall.time = *time;
  if (at != value.npos) stall.every = TRY(parse_count(value.substr(at + 1)));
  return stall;
}

// Calls the hook that is already there first.
template <typename... Arguments>
void then(std::function<void(Arguments...)>& hook, std::type_identity_t<std::function<void(Arguments...)>> more) {
  if (!hook) {
    hook = std::move(more);
    return;
  }
  hook = [first = std::move(hook), more = std::move(more)](Arguments... arguments) {
    first(arguments...);
    more(arguments...);
  };
}

using AtStep = std::function<void(std::int64_t)>;

Status hold_at(std::string_view place, const AtStep& hold, RunRequest& request) {
  if (place == "data") {
    then(request.before_batch, hold);
  } else if (place == "compute" || place == "forward") {
    then(request.hooks.in_compute, hold);
  } else if (place == "backward") {
    then(request.hooks.in_backward, hold);
  } else if (place == "logging") {
    then(request.hooks.in_logging, hold);
  } else if (place == "checkpoint") {
    then(request.hooks.in_checkpoint, hold);
  } else {
    return error(ErrorKind::invalid, "--inject: no place is named '{}'", place).hinted(kPlaces);
  }
  return {};
}

Status add_stall(const Stall& stall, Clock& clock, RunRequest& request, CommFaults& comm) {
  if (stall.place == "link") {
    comm.link = stall.time;
    comm.link_every = stall.every;
    comm.link_from = stall.from;
    return {};
  }
  const auto hold = [stall, &clock](std::int64_t step) {
    if (step % stall.every == 0 && step >= stall.from) clock.sleep(stall.time);
  };
  return hold_at(stall.place, hold, request);
}

// Like a power cut: nothing is flushed or closed.
void die() {
  kill(getpid(), SIGKILL);
  while (true) pause();
}

Status add_kill(std::string_view value, RunRequest& request) {
  constexpr std::string_view kOfSteps[] = {"read", "compute", "reduce", "update", "snapshot"};
  const std::size_t at = value.find('@');
  const std::string phase(value.substr(0, at));
  const std::int64_t time = at == value.npos ? 1 : TRY(parse_count(value.substr(at + 1)));
  const auto entered = std::make_shared<std::atomic<std::int64_t>>(0);
  if (std::find(std::begin(kOfSteps), std::end(kOfSteps), phase) != std::end(kOfSteps)) {
    request.hooks.on_phase = [phase, time, entered](const char* name) {
      if (phase == name && ++*entered == time) die();
    };
    return {};
  }
  if (phase == "gather") {
    request.collectives = std::make_shared<HookedCollectives>();
    request.collectives->before = [time, entered](const ObservedCollective& seen) {
      if (seen.call->kind == CollectiveKind::all_gather && ++*entered == time) die();
    };
    return {};
  }
  for (const auto saving :
       {checkpoint::SavePhase::write, checkpoint::SavePhase::commit, checkpoint::SavePhase::sweep}) {
    if (phase != checkpoint::name_of(saving)) continue;
    request.hooks.on_save_phase = [saving, time, entered](checkpoint::SavePhase now, bool begins) {
      if (begins && now == saving && ++*entered == time) die();
    };
    return {};
  }
  return error(ErrorKind::invalid, "--inject: kill knows no phase '{}'", phase)
      .hinted("read, compute, gather, reduce, update, snapshot, write, commit or sweep");
}

// Hangs forever; a watchdog must end it.
Status add_stuck(std::string_view value, Clock& clock, RunRequest& request) {
  const std::size_t at = value.find('@');
  const std::int64_t from = at == value.npos ? 1 : TRY(parse_count(value.substr(at + 1)));
  const auto hold = [from, &clock](std::int64_t step) {
    for (int minute = 0; step >= from && minute < 60; ++minute) clock.sleep(Seconds(60.0));
  };
  return hold_at(value.substr(0, at), hold, request);
}

// Flips the highest mantissa bit of a nonzero element: the result looks like an ordinary number.
void add_flip(std::int64_t at_step, RunRequest& request) {
  then(request.hooks.on_gradients, [at_step](std::int64_t step, ReplayCheck& gradients) {
    if (step != at_step) return;
    if (gradients.num_gradients() == 0) {
      fail(error(ErrorKind::unsupported, "--inject flip: this device computes a step as a whole and shows no gradients")
               .hinted("--backend cpu"));
    }
    const auto flip = [](std::span<std::byte> bytes) {
      for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        float number = 0;
        std::memcpy(&number, bytes.data() + i, sizeof number);
        if (std::abs(number) < 1e-6F) continue;
        bytes[i + 2] ^= std::byte{0x40};
        return;
      }
    };
    gradients.change(0, flip).value();
  });
}

void add_nan(std::int64_t at_step, RunRequest& request) {
  then(request.hooks.in_compute, [at_step, &request](std::int64_t step) {
    if (step != at_step || request.executor == nullptr) return;
    const Program& program = request.executor->program();
    for (std::size_t v = 0; v < program.values.size(); ++v) {
      const ProgramValue& value = program.values[v];
      if (value.residence != Residence::parameter || !is_float(value.type.dtype)) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(value.type.bytes().count()));
      request.executor->read(static_cast<int>(v), 0, bytes).value();
      store(value.type.dtype, bytes.data(), 0, std::numeric_limits<double>::quiet_NaN());
      request.executor->write(static_cast<int>(v), 0, bytes).value();
      return;
    }
  });
}

// From this save on, the disk accepts no writes.
void add_full(std::int64_t save, RunRequest& request) {
  const auto disk = std::make_shared<FullDisk>();
  request.disk = disk;
  then(request.hooks.on_save_phase,
       [disk, save, saves = std::int64_t{0}](checkpoint::SavePhase now, bool begins) mutable {
         if (begins && now == checkpoint::SavePhase::snapshot && ++saves == save) disk->fill();
       });
}

Result<Seconds> parse_wrong(std::string_view value) {
  const bool behind = value.starts_with('-');
  const Result<Seconds> by = parse_seconds(behind ? value.substr(1) : value);
  if (!by.ok()) return error(by.error().kind, "--inject clock: {}", by.error().message).hinted("--inject clock=-1h");
  return behind ? *by * -1.0 : *by;
}

// "rank2.forward=300ms".
struct Injection {
  std::int64_t rank = -1;  // -1: any rank
  std::string_view what, value;
};

Result<std::vector<Injection>> injections_of(std::string_view text) {
  std::vector<Injection> all;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view one = text.substr(0, comma);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
    Injection injection;
    if (const std::size_t dot = one.find('.'); one.starts_with("rank") && dot < one.find('=')) {
      injection.rank = number_from(one.substr(4, dot - 4)).value_or(-1);
      if (injection.rank < 0)
        return error(ErrorKind::invalid, "--inject: '{}' names no rank", one).hinted("--inject rank1.forward=300ms");
      one = one.substr(dot + 1);
    }
    const std::size_t equals = one.find('=');
    if (equals == one.npos) {
      return error(ErrorKind::invalid, "--inject '{}' is not PLACE=TIME", one)
          .hinted("--inject data=50ms, or data=50ms@10 for every tenth step");
    }
    injection.what = one.substr(0, equals);
    injection.value = one.substr(equals + 1);
    all.push_back(injection);
  }
  return all;
}

Status add(std::string_view what, std::string_view value, Clock& clock, RunRequest& request, CommFaults& comm) {
  const bool first = request.role.group.generation <= 1;
  const bool of_ranks = what == "link" || what == "lost" || what == "mismatch";
  if (of_ranks && request.role.group.alone())
    return error(ErrorKind::invalid, "--inject {}: there is one rank", what).hinted("--ranks 2, or a mesh");
  if (what == "kill") return add_kill(value, request);
  if (what == "clock") {  // handled by injected_clock
    TRY(parse_wrong(value));
    return {};
  }
  if (what == "full") {
    add_full(TRY(parse_count(value)), request);
    return {};
  }
  if (what == "stuck") return first ? add_stuck(value, clock, request) : Status();
  for (const std::string_view once : {"lost", "mismatch", "flip", "nan"}) {
    if (what != once) continue;
    const std::int64_t step = TRY(parse_count(value));
    if (!first) return {};
    if (once == "lost") comm.lose_at = step;
    if (once == "mismatch") comm.mismatch_at = step;
    if (once == "flip") add_flip(step, request);
    if (once == "nan") add_nan(step, request);
    return {};
  }
  return add_stall(TRY(parse_stall(what, value)), clock, request, comm);
}

bool calls(const Graph& graph, std::string_view op) {
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    return node.op->name == op || std::any_of(node.regions.begin(), node.regions.end(),
                                              [&](const Graph& region) { return calls(region, op); });
  });
}

struct Lack {
  std::string what, hint;
};

// Why the injection can never act; nothing if it can.
std::optional<Lack> lacks(const Injection& one, const InjectionScene& scene) {
  const std::string_view at = one.value.substr(0, one.value.find('@'));
  const std::string_view place = one.what == "stuck" ? at : one.what;
  const auto plays = [&](auto is_it) {
    return std::ranges::any_of(scene.program.schedules, [&](const Schedule& schedule) {
      return schedule.name != "evaluate" && std::ranges::any_of(schedule.actions, [&](const Action& action) {
               return is_it(scene.program.functions[static_cast<std::size_t>(action.function)]);
             });
    });
  };
  if (one.rank >= scene.ranks && one.rank > 0)
    return Lack{fmt::format("there is no rank {}", one.rank),
                scene.ranks == 1 ? "--ranks 2, or a mesh" : fmt::format("rank0 to rank{}", scene.ranks - 1)};
  if (one.rank > 0 && scene.in_process)
    return Lack{"of ranks that are threads, rank 0 alone can be held up", "without --in-process"};
  const bool of_ranks = one.what == "link" || one.what == "lost" || one.what == "mismatch";
  if (of_ranks && scene.ranks == 1) return Lack{"there is one rank", "--ranks 2, or a mesh"};
  if (of_ranks && scene.in_process) return Lack{"ranks that are threads send nothing", "without --in-process"};
  if (place == "data" && scene.workload.data.kind != DataSpec::Kind::text)
    return Lack{"this kind of data is made up as it is needed, and has no reader to hold up",
                "forward=TIME, or data.kind: text"};
  if (place == "backward" && !plays([](const Function& f) { return PhaseObserver::is_backward(f.name); }))
    return Lack{"this step has no backward pass of its own", "forward=TIME"};
  if (one.what != "kill") return std::nullopt;
  const auto gathers = [](const Function& f) { return calls(f.graph, "all_gather"); };
  if (at == "gather" && (scene.ranks == 1 || !plays(gathers)))
    return Lack{"no all_gather is run", "kill=reduce, or a mesh with fsdp"};
  const std::string_view kOfFunctions[] = {"compute", "reduce", "update", "snapshot"};
  const auto is_phase = [&](const Function& f) {
    return PhaseObserver::tells_phase(f.name) && name_of(PhaseObserver::category_of(f.name)) == at;
  };
  if (std::ranges::find(kOfFunctions, at) != std::end(kOfFunctions) && !plays(is_phase))
    return Lack{fmt::format("a step of this run has no phase {}", at), "kill=compute, update or write"};
  return std::nullopt;
}

// The step it names, if it is after the last one; otherwise nothing.
std::optional<std::int64_t> step_beyond(const Injection& one, const InjectionScene& scene) {
  if (!scene.workload.train.steps || one.what == "kill" || one.what == "full" || one.what == "clock")
    return std::nullopt;
  const bool alone = one.what == "lost" || one.what == "mismatch" || one.what == "flip" || one.what == "nan";
  const std::size_t sign = one.value.find_last_of("@+");
  if (!alone && sign == one.value.npos) return std::nullopt;
  const Result<std::int64_t> step = parse_count(alone ? one.value : one.value.substr(sign + 1));
  return step.ok() && *step > *scene.workload.train.steps ? std::optional(*step) : std::nullopt;
}

}  // namespace

Status check_injections(const std::string& text, const InjectionScene& scene) {
  const std::unique_ptr<Clock> clock = real_clock();
  for (const Injection& one : TRY(injections_of(text))) {
    RunRequest request;
    if (scene.ranks > 1) request.role.group.world = static_cast<int>(scene.ranks);
    CommFaults comm;
    TRY(add(one.what, one.value, *clock, request, comm));
    const auto refused = [&](const std::string& why, const std::string& hint) {
      return error(ErrorKind::invalid, "--inject {}={} would do nothing: {}", one.what, one.value, why).hinted(hint);
    };
    if (const std::optional<Lack> lack = lacks(one, scene)) return refused(lack->what, lack->hint);
    if (const std::optional<std::int64_t> step = step_beyond(one, scene))
      return refused(fmt::format("step {} is behind the last", *step),
                     fmt::format("a step up to {}", *scene.workload.train.steps));
  }
  return {};
}

Status inject(const std::string& text, Clock& clock, RunRequest& request, CommFaults& comm) {
  for (const Injection& one : TRY(injections_of(text))) {
    const bool ours = one.rank < 0 || (one.rank == request.role.rank && request.role.group.generation <= 1);
    RunRequest checked_alone;  // parses injections for other ranks, to check them
    checked_alone.role = request.role;
    CommFaults no_faults;
    TRY(add(one.what, one.value, clock, ours ? request : checked_alone, ours ? comm : no_faults));
  }
  if (comm.any()) {
    then(request.hooks.on_action, [&comm](std::int64_t step, const Action&, const Function&) { comm.step = step; });
  }
  return {};
}

Result<std::unique_ptr<Clock>> injected_clock(const std::string& text, std::int64_t rank, Clock& right) {
  for (const Injection& one : TRY(injections_of(text))) {
    if (one.what != "clock" || (one.rank >= 0 && one.rank != rank)) continue;
    return std::unique_ptr<Clock>(std::make_unique<WrongClock>(right, TRY(parse_wrong(one.value))));
  }
  return std::unique_ptr<Clock>();
}

}  // namespace systole
