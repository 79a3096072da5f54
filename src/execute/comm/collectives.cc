#include "execute/comm/collectives.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "execute/comm/steps.h"
#include "ground/base/hash.h"

namespace systole {
namespace {

class Prepared : public PreparedCollective {
 public:
  CollectiveCall call;
  MessageStamp stamp;  // but for sequence and step
  std::uint32_t* sequence = nullptr;
  std::vector<CollectiveStep> steps;
};

// Of what must be alike on all ranks of the group.
std::uint32_t shape_hash(const CollectiveCall& call) {
  const std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {}", call.axis, call.parts, name_of(call.dtype), to_string(call.shape),
                  call.dim, call.split_dim, call.concat_dim, call.maximum, name_of(call.algorithm));
  return static_cast<std::uint32_t>(hash64(text));
}

class Collectives : public Communicator {
 public:
  Collectives(Transport& transport, const Mesh& mesh) : transport_(transport), mesh_(mesh) {
    const auto n = static_cast<std::size_t>(transport.num_ranks());
    tokens_.resize(n);
  }

  std::int32_t rank() const override { return transport_.rank(); }
  std::int32_t num_ranks() const override { return transport_.num_ranks(); }
  void abort(const std::string& why) override { transport_.abort(why); }

  Result<std::unique_ptr<PreparedCollective>> prepare(const CollectiveCall& call, const std::byte* from,
                                                      std::byte* into, std::byte* workspace) override {
    const Collective collective = TRY(collective_on(call, mesh_));
    const std::vector<std::string> axes = axes_of(call.axis);
    const std::vector<std::vector<std::int64_t>> groups = TRY(mesh_.groups(axes));
    auto prepared = std::make_unique<Prepared>();
    for (const std::vector<std::int64_t>& group : groups) {
      const auto place = std::ranges::find(group, std::int64_t{rank()});
      if (place == group.end()) continue;
      prepared->steps = TRY(steps_of(call, collective, group, place - group.begin(), {from, into, workspace}));
    }
    prepared->call = call;
    prepared->stamp.kind = static_cast<int>(call.kind);
    prepared->stamp.shape = shape_hash(call);
    prepared->sequence = &sequences_[call.axis];
    return std::unique_ptr<PreparedCollective>(std::move(prepared));
  }

  Status run(PreparedCollective& collective, WorkCounters& counters) override {
    auto& prepared = static_cast<Prepared&>(collective);
    const SeenCollective seen{&prepared.call, (*prepared.sequence)++};
    const Bytes before = transport_.bytes_written();
    if (observer_ != nullptr) observer_->begin(seen);
    Status done = play(prepared, seen.sequence);
    const Bytes sent = transport_.bytes_written() - before;
    counters.bytes_sent += sent.count();
    if (observer_ != nullptr) observer_->end(seen, done.ok(), sent);
    return done;
  }

  void observe(CollectiveObserver* observer) override { observer_ = observer; }

  Status broadcast(std::span<std::byte> bytes, std::int32_t root) override {
    CHECK(root >= 0 && root < num_ranks(), "a broadcast of rank {} of {}", root, num_ranks());
    if (bytes.empty()) return {};
    const Bytes size(bytes.size());
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (std::int32_t r = 0; r < num_ranks() && rank() == root; ++r) {
      if (r != root) out.push_back({r, bytes.data(), size, size, size});
    }
    if (rank() != root) in.push_back({root, bytes.data(), size, size, size});
    return of_hosts(MessageStamp::kHostBroadcast, out, in);
  }

  // Everyone hears of everyone.
  Status barrier() override {
    static constexpr std::byte kHere{1};
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (std::int32_t r = 0; r < num_ranks(); ++r) {
      if (r == rank()) continue;
      out.push_back({r, &kHere, Bytes(1), Bytes(1), Bytes(1)});
      in.push_back({r, &tokens_[static_cast<std::size_t>(r)], Bytes(1), Bytes(1), Bytes(1)});
    }
    return of_hosts(MessageStamp::kBarrier, out, in);
  }

 private:
  Status play(const Prepared& prepared, std::uint32_t sequence) {
    MessageStamp stamp = prepared.stamp;
    stamp.sequence = sequence;
    for (const CollectiveStep& step : prepared.steps) {
      for (const auto& at_home : step.before) at_home();
      if (step.out.empty() && step.in.empty()) continue;
      stamp.step = step.number;
      TRY(transport_.exchange({stamp, step.out, step.in}));
    }
    return {};
  }

  Status of_hosts(int kind, std::span<const Outgoing> out, std::span<const Incoming> in) {
    return transport_.exchange({MessageStamp{host_sequence_++, kind, 0, 0}, out, in});
  }

  Transport& transport_;
  const Mesh mesh_;
  std::map<std::string, std::uint32_t> sequences_;  // by axes: one count a group
  std::uint32_t host_sequence_ = 0;
  CollectiveObserver* observer_ = nullptr;
  std::vector<std::byte> tokens_;  // what barriers receive
};

}  // namespace

Result<std::unique_ptr<Communicator>> make_communicator(Transport& transport, const Mesh& mesh) {
  if (mesh.num_devices() != transport.num_ranks()) {
    return error(ErrorKind::invalid, "{} ranks for the {} devices of the mesh {}", transport.num_ranks(),
                 mesh.num_devices(), to_string(mesh))
        .hinted("--ranks, or the sizes of `mesh:`, so that their product is the number of ranks");
  }
  return std::unique_ptr<Communicator>(std::make_unique<Collectives>(transport, mesh));
}

}  // namespace systole
