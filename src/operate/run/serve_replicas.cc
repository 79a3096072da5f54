#include "operate/run/serve_replicas.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "execute/checkpoint/folder.h"
#include "ground/base/counted.h"
#include "ground/base/number_from.h"
#include "ground/process/signal_watch.h"
#include "operate/registry/registered_model.h"
#include "operate/run/replica_process.h"
#include "operate/run/replica_restarts.h"
#include "operate/run/rolling_restart.h"
#include "operate/run/run_places.h"

namespace systole {
namespace {

constexpr Seconds kTurn(0.05), kHealthEvery(0.5);
constexpr Seconds kMostSilent(30.0);  // then a replica hangs; one that was told to stop refuses, and has its grace
constexpr Seconds kEnds(5.0);         // a replica without requests, after TERM
constexpr Seconds kReadyLeast(60.0);  // that a replica which takes another's place has to serve, and besides
constexpr double kReadyMore = 4;      // times what the slowest one has taken

// The run or folder of the first replica, with a step if one was asked for.
std::string found_run(const std::string& asked, const Node& first) {
  return asked.empty() || names_registered_model(asked) ? first.text_at("run") : asked;
}

// What names the model of the first replica again, whatever is newest by then.
std::string same_run(const std::string& asked, const Node& first) {
  const std::string step = first.text_at("step"), run = found_run(asked, first);
  if (!number_from(step) || parse_checkpoint_reference(run).step) return run;
  return run.substr(0, run.find_last_not_of('/') + 1) + "@" + step;
}

// For a header.
std::string in_ascii(std::string text) {
  for (char& c : text)
    if (c < ' ' || c > '~') c = '?';
  return text;
}

class Replicas {
 public:
  Replicas(const ReplicasAsked& asked, Balancer& balancer, const RunMessages& messages, Clock& clock)
      : asked_(asked), balancer_(balancer), messages_(messages), clock_(clock), run_(asked.run) {
    for (const auto& [name, model] : {std::pair("the canary", &asked.canary), {"the shadow", &asked.shadow}})
      if (!model->empty()) beside_.push_back({name, *model, *model});
    slots_.resize(static_cast<std::size_t>(places()));
  }

  // Starts what is to be started and reads what they say. Errors: of the first replica; io: none is left.
  Status look_after() {
    for (int i = 0; i < places(); ++i) {
      if (i > 0 && !first_) break;
      TRY(look_after(i));
    }
    if (clock_.now() >= asks_health_at_) {
      balancer_.check_health();
      asks_health_at_ = clock_.now() + kHealthEvery;
    }
    TRY(roll());
    // A canary answers only its share, and a shadow nobody.
    if (std::all_of(slots_.begin(), slots_.begin() + asked_.replicas, [](const Slot& each) { return each.given_up; }))
      return error(ErrorKind::io, "every replica is given up");
    return {};
  }
  void read() {
    for (int i = 0; i < places(); ++i) read(i);
    if (fresh_) read(*fresh_, rolling_->at());
    if (leaving_) read(*leaving_, rolling_->at());
  }
  bool is_rolling() const { return rolling_.has_value(); }
  // Replaces all, one at a time, with what is found now under the name that was asked for.
  void restart_all() {
    rolling_.emplace(places(), kReadyLeast + kReadyMore * slowest_, std::max(asked_.grace, kEnds));
    rolled_run_ = asked_.run.empty() ? parse_checkpoint_reference(found_run(asked_.run, *first_)).run : asked_.run;
    messages_.message(fmt::format("{} restart, one at a time", counted(places(), "replica")));
  }
  // Those that serve look for a newer checkpoint.
  void look_now() {
    for (Slot& slot : slots_)
      if (slot.process && slot.serves) (void)slot.process->process().signal(SIGHUP);
  }
  const std::optional<Node>& first() const { return first_; }
  std::int64_t restarts() const { return restarts_; }

  void end(Seconds within) {
    const Seconds until = clock_.now() + within;
    for (Slot& slot : slots_)
      if (slot.process) (void)slot.process->process().signal_group(SIGTERM);
    if (leaving_) (void)leaving_->process().signal_group(SIGTERM);
    for (int i = 0; i < places(); ++i) {
      std::optional<ReplicaProcess>& process = slot(i).process;
      if (!process) continue;
      process->process().stop(std::max(until - clock_.now(), Seconds()));
      read(i);
      process.reset();
    }
    for (std::optional<ReplicaProcess>* process : {&fresh_, &leaving_}) {
      if (*process) (*process)->process().stop(std::max(until - clock_.now(), Seconds()));
      process->reset();
    }
  }

 private:
  struct Slot {
    std::optional<ReplicaProcess> process;
    ReplicaRestarts restarts;
    Seconds starts_at{};            // if there is no process
    Seconds started{};              // if there is one
    std::optional<Seconds> serves;  // since when
    std::optional<Seconds> silent_since;
    bool was_started = false, has_served = false, given_up = false;
  };
  // What serves another model, behind the replicas in slots_.
  struct Beside {
    std::string name, asked, run;  // run: what it serves when it is started again
  };
  bool is_beside(int i) const { return i >= asked_.replicas; }
  Beside& beside(int i) { return beside_[static_cast<std::size_t>(i - asked_.replicas)]; }
  int places() const { return asked_.replicas + static_cast<int>(beside_.size()); }
  std::string who(int i) { return is_beside(i) ? beside(i).name : fmt::format("replica {}", i); }
  Slot& slot(int i) { return slots_[static_cast<std::size_t>(i)]; }

  Status look_after(int i) {
    Slot& own = slot(i);
    if (own.given_up) return {};
    if (!own.process) return clock_.now() < own.starts_at ? Status() : start(i);
    const bool has_ended = own.process->has_ended();  // before reading, so that its last words are read
    read(i);
    if (!own.serves && own.process->said()) serve(i);
    if (has_ended) return ended(i, own.process->failure(own.process->process().wait()));
    if (!own.serves || balancer_.unanswered(i) == 0) {
      own.silent_since.reset();
    } else if (!own.silent_since) {
      own.silent_since = clock_.now();
    }
    if (own.silent_since && clock_.now() - *own.silent_since >= kMostSilent) {
      messages_.message(fmt::format("{} does not answer: it is killed", who(i)));
      (void)own.process->process().signal_group(SIGKILL);
      balancer_.retire(i);
    }
    return {};
  }
  Result<ReplicaProcess> process_of(const std::string& run) const {
    std::vector<std::string> argv = asked_.argv;
    const bool named = std::ranges::any_of(argv, [](const std::string& word) { return word.starts_with("--name="); });
    if (first_ && !named) argv.push_back("--name=" + first_->text_at("model"));  // it may be a registered one
    return ReplicaProcess::start(std::move(argv), run);
  }
  Status start(int i) {
    const bool again = std::exchange(slot(i).was_started, true);
    Result<ReplicaProcess> process = process_of(is_beside(i) ? beside(i).run : again ? run_again_ : run_);
    if (!process.ok()) return ended(i, process.error());
    slot(i).process = std::move(*process);
    slot(i).started = clock_.now();
    slot(i).serves.reset();
    return {};
  }
  void read(int i) {
    if (slot(i).process) read(*slot(i).process, i);
  }
  void read(ReplicaProcess& process, int i) {
    process.read([&](const std::string& line) {
      if (!first_) {
        before_.push_back(line);  // if it fails, its error says the same
      } else {
        messages_.message(fmt::format("[{}] {}", who(i), line));
      }
    });
  }
  // What those serve that are started later, when the first one has said what it serves.
  void find_again(const Node& said) {
    run_ = run_again_ = same_run(asked_.run, said);
    // That checkpoint may be gone by then.
    if (asked_.follow) run_again_ = found_run(asked_.run, said);
    if (asked_.follow == Followed::latest) run_again_ = parse_checkpoint_reference(run_again_).run;
  }
  // It gets requests from now on. `is_first`: it has found what the others serve.
  void begin(int i, bool is_first) {
    ReplicaProcess& process = *slot(i).process;
    if (!first_) first_ = process.said();
    if (is_first) find_again(*process.said());
    const std::string serves = same_run(is_beside(i) ? beside(i).asked : asked_.run, *process.said());
    if (is_beside(i)) beside(i).run = serves;
    balancer_.begin(i, process.address(), process.token(), asked_.canary.empty() ? "" : in_ascii(serves));
  }
  void serve(int i) {
    Slot& own = slot(i);
    own.serves = clock_.now();
    slowest_ = std::max(slowest_, *own.serves - own.started);
    const bool is_first = !first_;
    begin(i, is_first);
    if (is_first) {
      for (const std::string& line : before_) messages_.message(line);
    } else {
      messages_.message(fmt::format("{} serves{}", who(i), own.has_served ? " again" : ""));
    }
    own.has_served = true;
  }
  Status ended(int i, const Error& why) {
    Slot& own = slot(i);
    balancer_.retire(i);
    const Seconds served = own.serves ? clock_.now() - *own.serves : Seconds();
    const std::string how = !own.serves ? why.message : to_string(own.process->process().wait());
    own.process.reset();
    own.serves.reset();
    if (!first_) return why;
    if (is_beside(i) && !own.has_served) return give_up_beside(i, why);
    if (!is_beside(i) && !asked_.follow && why.kind == ErrorKind::not_found && is_gone()) return give_up(i);
    const std::optional<Seconds> wait = own.restarts.after(served);
    own.given_up = !wait.has_value();
    if (wait) {
      ++restarts_;
      own.starts_at = clock_.now() + *wait;
      messages_.message(fmt::format("{} has ended ({}): it starts again in {}", who(i), how, to_string(*wait)));
    } else {
      messages_.warning(error(ErrorKind::io, "{} has ended ({}) {} in a row, and is given up", who(i), how,
                              counted(ReplicaRestarts::kMost + 1, "time")));
    }
    return {};
  }

  // The next step of a rolling restart. A place whose replica is given up, or waits to be started again, gets a new one
  // too.
  Status roll() {
    if (!rolling_) return {};
    const int i = rolling_->at();
    RollingSeen seen;
    if (fresh_) {
      seen.new_has_ended = fresh_->has_ended();  // before reading, as above
      read(*fresh_, i);
      seen.new_serves = fresh_->said().has_value();
    }
    if (leaving_) {
      seen.old_lives = !leaving_->has_ended();
      read(*leaving_, i);
      seen.under_way = balancer_.left_open(i);
    }
    switch (rolling_->next(clock_.now(), seen)) {
      case RollingStep::wait: break;
      case RollingStep::start: {
        Result<ReplicaProcess> process = process_of(is_beside(i) ? beside(i).asked : i == 0 ? rolled_run_ : run_again_);
        if (!process.ok()) return end_rolling(i, process.error());
        fresh_ = std::move(*process);
        break;
      }
      case RollingStep::adopt: adopt(i); break;
      case RollingStep::stop:
        if (seen.under_way > 0)
          messages_.message(
              fmt::format("{}: the old one ends with {} under way", who(i), counted(seen.under_way, "request")));
        (void)leaving_->process().signal_group(SIGTERM);
        break;
      case RollingStep::kill: (void)leaving_->process().signal_group(SIGKILL); break;
      case RollingStep::next:
        leaving_.reset();
        messages_.message(
            fmt::format("{} is restarted, and serves {}", who(i), is_beside(i) ? beside(i).run : run_again_));
        if (rolling_->is_over()) rolling_.reset();
        break;
      case RollingStep::fail: {
        const bool has_ended = fresh_->has_ended();
        return end_rolling(i, has_ended
                                  ? fresh_->failure(fresh_->process().wait())
                                  : error(ErrorKind::io, "it does not serve after {}", to_string(rolling_->budget())));
      }
    }
    return {};
  }
  // The new one serves: the old one, if there is one, gets no more requests.
  void adopt(int i) {
    Slot& own = slot(i);
    leaving_ = std::exchange(own.process, std::exchange(fresh_, std::nullopt));
    own.restarts = {};
    own.serves = clock_.now();
    own.silent_since.reset();
    own.was_started = own.has_served = true;
    own.given_up = false;
    begin(i, i == 0);
  }
  Status end_rolling(int i, const Error& why) {
    fresh_.reset();
    rolling_.reset();
    Error told =
        error(why.kind, "{} is not restarted, and goes on as it is, as do those after it: {}", who(i), why.message);
    told.where = why.where;
    messages_.warning(std::move(told).hinted(
        why.hint.empty() ? fmt::format("mend it, and restart them all with: kill -HUP {}", ::getpid()) : why.hint));
    return {};
  }

  // Whether the one checkpoint that all serve was removed, as a run that goes on does with its old ones.
  bool is_gone() const {
    const Result<CheckpointPlace> place = find_checkpoints(run_again_);
    if (!place.ok() || !place->step) return false;
    const Result<std::vector<std::int64_t>> steps = checkpoint::list_steps(place->folder);
    return steps.ok() && std::ranges::find(*steps, *place->step) == steps->end();
  }
  Status give_up(int i) {
    slot(i).given_up = true;
    messages_.warning(
        error(ErrorKind::not_found, "replica {} is given up: checkpoint '{}', which all serve, is gone", i, run_again_)
            .hinted("serve with --follow latest, which goes on to newer ones, or keep one with `systole ckpt bless "
                    "RUN@STEP` and name it"));
    return {};
  }

  // One that never served would not the next time: what is wrong is with its model or the options.
  Status give_up_beside(int i, const Error& why) {
    slot(i).given_up = true;
    Error told = error(why.kind, "{} is given up, and the replicas serve on: {}", beside(i).name, why.message);
    told.where = why.where;
    messages_.warning(std::move(told).hinted(why.hint));
    return {};
  }

  const ReplicasAsked& asked_;
  Balancer& balancer_;
  const RunMessages& messages_;
  Clock& clock_;
  std::string run_, run_again_;  // that a replica serves when it is started first, and later
  std::vector<Beside> beside_;
  std::vector<Slot> slots_;
  std::optional<Node> first_;        // what the first one said of itself
  std::vector<std::string> before_;  // lines until then
  Seconds asks_health_at_{};
  std::int64_t restarts_ = 0;

  Seconds slowest_{};                      // from a start to serving
  std::optional<RollingRestart> rolling_;  // of a rolling restart, as the next
  std::string rolled_run_;                 // that its first replica serves
  std::optional<ReplicaProcess> fresh_;    // is to take the place of its replica
  std::optional<ReplicaProcess> leaving_;  // has left it
};

}  // namespace

Result<ReplicasServed> serve_replicas(const ReplicasAsked& asked,
                                      const std::function<void(const NetAddress& address, const Node& first)>& begun,
                                      const RunMessages& messages, Clock& clock) {
  const SignalWatch watch(Hangup::reload);
  const std::unique_ptr<HttpUpstreams> upstreams = TRY(HttpUpstreams::start());
  Balancer balancer(asked.replicas, *upstreams, asked.canary.empty() ? 0 : asked.canary_percent,
                    asked.shadow.empty() ? 0 : asked.shadow_percent);
  HttpServerOptions options = asked.server;
  options.routes = balancer.routes();
  std::unique_ptr<HttpServer> server = TRY(HttpServer::start(std::move(options)));
  Replicas replicas(asked, balancer, messages, clock);
  int looked = 0;
  for (bool is_told = false; !watch.stop_requested(); clock.sleep(kTurn)) {
    TRY(replicas.look_after());
    // One that comes during a restart makes another one follow: what is served may be newer still.
    if (replicas.first() && !replicas.is_rolling()) {
      const int reloads = watch.reloads();
      if (reloads != std::exchange(looked, reloads)) asked.follow ? replicas.look_now() : replicas.restart_all();
    }
    if (replicas.first() && !std::exchange(is_told, true)) begun(server->address(), *replicas.first());
  }
  const Seconds until = clock.now() + asked.grace;
  while (!watch.stop_at_once() && clock.now() < until && !server->drain(deadline_after(kTurn))) replicas.read();
  server.reset();  // a request that is under way ends, and so does its replica's work
  replicas.end(watch.stop_at_once() ? Seconds() : kEnds);
  return ReplicasServed{balancer.counts(), replicas.restarts()};
}

}  // namespace systole
