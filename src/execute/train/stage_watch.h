#pragma once
// What one rank of many spends its time on, finer than the ledger: forward and backward apart, and each collective cut
// into waiting for others and the transfer itself. It is told of every change, by the ledger, the executor's actions,
// the communicator and the transport, and writes them into the rank's flight log: two reads of clocks a change, nothing
// allocated after a collective's first run.
//
// Belongs to the thread that made it, which runs the steps. Collectives may go on beside kernels: then only what the
// rank waits for them at their end is theirs.

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
  // `starved`: how long this thread was ready to run in all and the machine ran something else; may be empty. All must
  // outlive the watch. The rank is starting up.
  StageWatch(FlightLog& log, Clock& clock, std::function<Seconds()> starved);

  void enter(Category category, Seconds now);
  void function(std::string_view name);  // of the Program: what the next category is about
  void step_began(std::int64_t step);
  void step_ended(std::int64_t step);
  void mark(FlightMark mark) { log_.mark(mark, clock_.now()); }

  // Around what the rank does for its collectives alone, and waits in; not around progress between kernels. After an
  // error the log stays as it is: it says where the rank was when it lost the others.
  void enter_collectives();
  void leave_collectives(bool ok);

  void begin(const SeenCollective& collective) override;
  void end(const SeenCollective& collective, bool ok, Bytes sent) override;
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
  RankStage stage_ = RankStage::startup, outside_ = stage_;  // outside: of the collective
  RankStage before_wait_ = stage_, computing_ = RankStage::forward;
  Seconds since_, starved_until_;
  struct Underway {
    int site = -1;
    std::uint32_t sequence = 0;
  };
  std::array<Underway, 64> underway_{};  // they end in the order in which they began
  std::uint64_t begun_ = 0, done_ = 0;   // collectives
  bool in_collective_ = false, waiting_ = false;
  Seconds waited_, transfer_;  // of the collective at hand
};

}  // namespace systole
