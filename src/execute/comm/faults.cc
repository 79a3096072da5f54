#include "execute/comm/faults.h"

#include <optional>

namespace systole {
namespace {

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(Transport& inner, const CommFaults& faults, Clock& clock)
      : inner_(inner), faults_(faults), clock_(clock) {}
  std::int32_t rank() const override { return inner_.rank(); }
  std::int32_t num_ranks() const override { return inner_.num_ranks(); }
  const char* name() const override { return inner_.name(); }
  void abort(const std::string& why) override { inner_.abort(why); }
  Bytes bytes_written() const override { return inner_.bytes_written(); }
  void observe(WaitObserver* observer) override { inner_.observe(observer); }

  // On a slow link a message is delayed before anyone sees it.
  Result<bool> advance(bool wait) override {
    if (!held_) return inner_.advance(wait);
    const Seconds left = due_ - clock_.now();
    if (left > Seconds() && !wait) return false;
    clock_.sleep(left);
    TRY(inner_.begin(*held_));
    held_.reset();
    return inner_.advance(wait);
  }
  Status begin(const Exchange& e) override {
    const std::int64_t step = faults_.step;
    const bool of_hosts = e.stamp.kind >= MessageStamp::kBarrier;
    if (of_hosts || e.out.empty() || step == 0) return inner_.begin(e);
    if (faults_.link > Seconds() && step >= faults_.link_from && step % faults_.link_every == 0) {
      held_ = e;
      due_ = clock_.now() + faults_.link;
      return {};
    }
    if (faults_.lose_at == 0 || step < faults_.lose_at || lost_) return inner_.begin(e);
    lost_ = true;
    return inner_.begin({e.stamp, e.out.subspan(1), e.in, e.names});
  }

 private:
  Transport& inner_;
  const CommFaults& faults_;
  Clock& clock_;
  std::optional<Exchange> held_;
  Seconds due_;
  bool lost_ = false;
};

class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(Communicator& inner, const CommFaults& faults) : inner_(inner), faults_(faults) {}
  std::int32_t rank() const override { return inner_.rank(); }
  std::int32_t num_ranks() const override { return inner_.num_ranks(); }
  Result<std::unique_ptr<PreparedCollective>> prepare(const CollectiveCall& call, const std::byte* from,
                                                      std::byte* into, std::byte* workspace) override {
    std::unique_ptr<PreparedCollective> prepared = TRY(inner_.prepare(call, from, into, workspace));
    prepared_.push_back({prepared.get(), call});
    return prepared;
  }
  Status run(PreparedCollective& collective, WorkCounters& counters) override {
    if (faults_.mismatch_at == 0 || faults_.step < faults_.mismatch_at || done_)
      return inner_.run(collective, counters);
    done_ = true;
    return inner_.run(another(collective), counters);
  }
  Status start(PreparedCollective& collective) override {
    if (faults_.mismatch_at == 0 || faults_.step < faults_.mismatch_at || done_) return inner_.start(collective);
    done_ = true;
    WorkCounters uncounted;
    return inner_.run(another(collective), uncounted);
  }
  Status progress() override { return inner_.progress(); }
  Status finish(PreparedCollective* collective, WorkCounters& counters) override {
    return inner_.finish(collective, counters);
  }
  Result<std::unique_ptr<PreparedTransfer>> prepare(const TransferCall& call, std::byte* at) override {
    return inner_.prepare(call, at);
  }
  Status post(PreparedTransfer& transfer, WorkCounters& counters) override { return inner_.post(transfer, counters); }
  Status finish_transfers() override { return inner_.finish_transfers(); }
  void observe(CollectiveObserver* observer) override { inner_.observe(observer); }
  Status broadcast(std::span<std::byte> bytes, std::int32_t root) override { return inner_.broadcast(bytes, root); }
  Status barrier() override { return inner_.barrier(); }
  void abort(const std::string& why) override { inner_.abort(why); }

 private:
  // A collective of another kind or shape; the same if there is none.
  PreparedCollective& another(PreparedCollective& collective) const {
    for (const auto& [mine, call] : prepared_) {
      if (mine != &collective) continue;
      for (const auto& [other, its] : prepared_) {
        if (its.axis == call.axis && (its.kind != call.kind || its.shape != call.shape)) return *other;
      }
    }
    return collective;
  }
  struct Made {
    PreparedCollective* collective;
    CollectiveCall call;
  };
  Communicator& inner_;
  const CommFaults& faults_;
  std::vector<Made> prepared_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Transport> faulty_transport(Transport& inner, const CommFaults& faults, Clock& clock) {
  return std::make_unique<FaultyTransport>(inner, faults, clock);
}

std::unique_ptr<Communicator> faulty_communicator(Communicator& inner, const CommFaults& faults) {
  return std::make_unique<FaultyCommunicator>(inner, faults);
}

}  // namespace systole
