#include "execute/train/stage_watch.h"

#include <algorithm>

namespace systole {
namespace {

RankStage stage_of(Category category, RankStage computing) {
  switch (category) {
    case Category::startup: return RankStage::startup;
    case Category::compile: return RankStage::compile;
    case Category::restore: return RankStage::restore;
    case Category::data_wait: return RankStage::data_wait;
    case Category::compute: return computing;
    case Category::reduce: return RankStage::reduce;
    case Category::update: return RankStage::update;
    case Category::snapshot: return RankStage::snapshot;
    case Category::checkpoint: return RankStage::checkpoint;
    case Category::evaluation: return RankStage::evaluation;
    case Category::logging: return RankStage::logging;
    case Category::other: return RankStage::other;
  }
  return RankStage::other;
}

}  // namespace

StageWatch::StageWatch(FlightLog& log, Clock& clock, std::function<Seconds()> starved)
    : log_(log), clock_(clock), starved_(std::move(starved)) {
  since_ = clock_.now();
  if (starved_) starved_until_ = starved_();
  log_.enter(stage_, since_);
}

// Ends the time of a stage. Time in which the machine ran something else is deducted, except from waiting.
void StageWatch::change(RankStage next, Seconds now) {
  Seconds took = std::max(now - since_, Seconds()), kept;
  if (starved_) {
    const Seconds until = starved_();
    if (is_own(stage_)) kept = std::clamp(until - starved_until_, Seconds(), took);
    starved_until_ = until;
  }
  at(step_, stage_) += took - kept;
  log_.spent(stage_, took - kept);
  if (kept > Seconds()) {
    at(step_, RankStage::cores) += kept;
    log_.spent(RankStage::cores, kept);
  }
  if (in_collective_) (stage_ == RankStage::waiting ? waited_ : transfer_) += took;
  stage_ = next;
  since_ = now;
  log_.enter(next, now);
}

// A wait that did not end was cut short by an error: the log keeps showing it.
void StageWatch::enter(Category category, Seconds now) {
  if (!waiting_ && !in_collective_) change(stage_of(category, computing_), now);
}

void StageWatch::function(std::string_view name) {
  if (name.starts_with("forward")) computing_ = RankStage::forward;
  if (name.starts_with("backward")) computing_ = RankStage::backward;
}

void StageWatch::step_began(std::int64_t step) { log_.set_step(step); }

void StageWatch::step_ended(std::int64_t step) {
  const Seconds now = clock_.now();
  change(stage_, now);
  log_.step_ended(step, now, step_);
  step_ = {};
}

int StageWatch::site_of(const CollectiveCall& call) {
  const auto hash = reinterpret_cast<std::uintptr_t>(&call) / alignof(CollectiveCall);
  for (std::size_t probe = 0; probe < sites_.size(); ++probe) {
    Site& site = sites_[(hash + probe) % sites_.size()];
    if (site.call == &call) return site.number;
    if (site.call != nullptr) continue;
    site.call = &call;
    site.number = log_.add_site(
        fmt::format("{} {}{} over {}", name_of(call.kind), name_of(call.dtype), to_string(call.shape), call.axis));
    return site.number;
  }
  return kFlightSites - 1;
}

void StageWatch::enter_collectives() {
  if (in_collective_) return;
  outside_ = stage_;
  change(RankStage::transfer, clock_.now());
  in_collective_ = true;
}

void StageWatch::leave_collectives(bool ok) {
  if (!ok || !in_collective_) return;
  change(outside_, clock_.now());
  in_collective_ = false;
}

void StageWatch::begin(const ObservedCollective& collective) {
  underway_[begun_++ % underway_.size()] = {site_of(*collective.call), collective.sequence};
}

void StageWatch::end(const ObservedCollective& collective, bool ok, Bytes) {
  const int site = site_of(*collective.call);
  if (!ok) return log_.in_site(site, collective.sequence, clock_.now());
  ++done_;
  if (in_collective_) change(stage_, clock_.now());
  log_.left_site(site, waited_, transfer_);
  waited_ = transfer_ = Seconds();
}

// Host messages come between collectives, when none is under way.
void StageWatch::waits(std::int32_t peer, bool to_send, const MessageStamp& stamp) {
  const Seconds now = clock_.now();
  if (!waiting_) {
    before_wait_ = stage_;
    change(RankStage::waiting, now);
  }
  waiting_ = true;
  const bool of_hosts = stamp.kind >= MessageStamp::kTransfers;
  const std::uint64_t within = of_hosts ? stamp.sequence : static_cast<std::uint32_t>(stamp.step);
  if (done_ < begun_ && !of_hosts) {
    const Underway& first = underway_[done_ % underway_.size()];
    log_.in_site(first.site, first.sequence, now);
  }
  log_.awaits(peer, to_send, (2 * done_ + (of_hosts ? 0 : 1)) << 24 | (within & 0xffffff), now);
}

void StageWatch::goes_on() {
  if (!waiting_) return;
  const Seconds now = clock_.now();
  waiting_ = false;
  log_.awaits(-1, false, 0, now);
  change(before_wait_, now);
}

}  // namespace systole
