#pragma once
// Finer time accounting of one rank than the ledger's: forward and backward apart, and each collective split into
// waiting and transfer. The ledger, the executor's actions, the communicator and the transport report every change; it
// writes them to the rank's flight log. A change costs two clock reads; nothing is allocated after a collective's first
// run.
//
// Belongs to the thread that made it, which runs the steps. For a collective that overlaps kernels, only the wait at
// its end counts as its time.

#include <array>
#include <functional>
#include <string_view>

#include "describe/spec/flight.h"
#include "describe/spec/run.h"
#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"
#include "ground/base/clock.h"

namespace systole {

class StageWatch final : public CollectiveObserver, public WaitObserver {
 public:
  // `starved`: total time that this thread was runnable while the machine ran something else; may be empty. All
  // arguments must outlive the watch. The stage begins as startup.
  StageWatch(FlightLog& log, Clock& clock, std::function<Seconds()> starved);

  void enter(Category category, Seconds now);
  void function(std::string_view name);  // function of the Program that the next category belongs to
  void step_began(std::int64_t step);
  void step_ended(std::int64_t step);
  void mark(FlightMark mark) { log_.mark(mark, clock_.now()); }

  // Around the time that the rank spends only on its collectives, waits included; not around progress between kernels.
  // After an error the log stays as it is: it shows where the rank was when it lost the others.
  void enter_collectives();
  void leave_collectives(bool ok);

  void begin(const ObservedCollective& collective) override;
  void end(const ObservedCollective& collective, bool ok, Bytes sent) override;
  void waits(std::int32_t peer, bool to_send, const MessageStamp& stamp) override;
  void goes_on() override;

 private:
  struct Site {
    const CollectiveCall* call = nullptr;
    int number = -1;
  };
  void change(RankStage next, Seconds now);
  int site_of(const CollectiveCall& call);

  FlightLog& log_;
  Clock& clock_;
  std::function<Seconds()> starved_;
  std::array<Site, 256> sites_{};                            // by the address of the call
  StageTimes step_{};                                        // since the last step ended
  RankStage stage_ = RankStage::startup, outside_ = stage_;  // outside_: around the collective
  RankStage before_wait_ = stage_, computing_ = RankStage::forward;
  Seconds since_, starved_until_;
  struct Underway {
    int site = -1;
    std::uint32_t sequence = 0;
  };
  std::array<Underway, 64> underway_{};  // end in the order in which they began
  std::uint64_t begun_ = 0, done_ = 0;   // collectives
  bool in_collective_ = false, waiting_ = false;
  Seconds waited_, transfer_;  // of the current collective
};

}  // namespace systole
