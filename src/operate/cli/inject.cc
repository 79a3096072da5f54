#include "operate/cli/inject.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <iterator>
#include <memory>

#include "ground/base/quantity.h"

namespace systole::cli {
namespace {

struct Stall {
  std::string place;
  Seconds time;
  std::int64_t every = 1;
};

Result<std::int64_t> parse_count(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number < 1) {
    return error(ErrorKind::invalid, "--inject: '{}' is no count of 1 or more", text)
        .hinted("--inject data=50ms@10 holds up every tenth step");
  }
  return number;
}

Result<Stall> parse_stall(std::string_view place, std::string_view value) {
  const std::size_t at = value.find('@');
  Stall stall;
  stall.place = std::string(place);
  const Result<Seconds> time = parse_seconds(value.substr(0, at));
  if (!time.ok()) return error(time.error().kind, "--inject: {}", time.error().message).hinted(time.error().hint);
  stall.time = *time;
  if (at != value.npos) stall.every = TRY(parse_count(value.substr(at + 1)));
  return stall;
}

Status add_stall(const Stall& stall, Clock& clock, RunRequest& request) {
  const auto hold = [stall, &clock](std::int64_t step) {
    if (step % stall.every == 0) clock.sleep(stall.time);
  };
  if (stall.place == "data") {
    request.before_batch = hold;
  } else if (stall.place == "compute") {
    request.hooks.in_compute = hold;
  } else if (stall.place == "logging") {
    request.hooks.in_logging = hold;
  } else if (stall.place == "checkpoint") {
    request.hooks.in_checkpoint = hold;
  } else {
    return error(ErrorKind::invalid, "--inject: no place is named '{}'", stall.place)
        .hinted("data, compute, logging, checkpoint, or kill=PHASE@N");
  }
  return {};
}

// As a power cut would: nothing is written, nothing is closed.
void die() {
  kill(getpid(), SIGKILL);
  while (true) pause();
}

class KillInGather final : public CollectiveObserver {
 public:
  explicit KillInGather(std::int64_t time) : left_(time) {}
  void begin(const SeenCollective& seen) override {
    if (seen.call->kind == CollectiveKind::all_gather && --left_ == 0) die();
  }
  void end(const SeenCollective&, bool, Bytes) override {}

 private:
  std::int64_t left_;
};

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
    request.collectives = std::make_shared<KillInGather>(time);
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

}  // namespace

Status inject(const std::string& text, Clock& clock, RunRequest& request) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view one = rest.substr(0, comma);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    const std::size_t equals = one.find('=');
    if (equals == one.npos) {
      return error(ErrorKind::invalid, "--inject '{}' is not PLACE=TIME", one)
          .hinted("--inject data=50ms, or data=50ms@10 for every tenth step");
    }
    if (one.substr(0, equals) == "kill") {
      TRY(add_kill(one.substr(equals + 1), request));
    } else {
      TRY(add_stall(TRY(parse_stall(one.substr(0, equals), one.substr(equals + 1))), clock, request));
    }
  }
  return {};
}

}  // namespace systole::cli
