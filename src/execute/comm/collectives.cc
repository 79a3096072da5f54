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
  MessageStamp stamp;  // without sequence and step
  std::uint32_t* sequence = nullptr;
  std::vector<CollectiveStep> steps;
  // While it runs:
  bool underway = false;
  bool exchanging = false;   // an exchange of the current step has begun
  std::size_t step = 0;      // current step
  std::uint32_t number = 0;  // sequence number of this run
  Bytes sent;
};

class Transfer : public PreparedTransfer {
 public:
  bool sends = true;
  MessageStamp stamp;  // but for sequence
  std::int32_t peer = -1;
  std::byte* at = nullptr;
  Bytes bytes;
  WorkCounters* counters = nullptr;  // set while it is posted
  bool meets(const Transfer& other) const {
    return at < other.at + other.bytes.count() && other.at < at + bytes.count() && !(sends && other.sends);
  }
};

// Hash of what must be equal on all ranks of the group.
std::uint32_t shape_hash(const CollectiveCall& call) {
  const std::string text =
      fmt::format("{} {} {} {} {} {} {} {} {}", call.axis, call.parts, name_of(call.dtype), to_string(call.shape),
                  call.dim, call.split_dim, call.concat_dim, call.maximum, name_of(call.algorithm));
  return static_cast<std::uint32_t>(hash64(text));
}

std::string name_of(const TransferCall& call) {
  return fmt::format("{} {}", call.value, to_string(Type(call.dtype, call.shape)));
}

class Collectives : public Communicator {
 public:
  Collectives(Transport& transport, const Mesh& mesh) : transport_(transport), mesh_(mesh) {
    const auto n = static_cast<std::size_t>(transport.num_ranks());
    tokens_.resize(n);
    sent_to_.resize(n), received_from_.resize(n);
    out_.reserve(n), in_.reserve(n);
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
    TRY(start(collective));
    return finish(&collective, counters);
  }

  Status start(PreparedCollective& collective) override {
    auto& prepared = static_cast<Prepared&>(collective);
    CHECK(!prepared.underway, "a {} is started before it has ended", name_of(prepared.call.kind));
    prepared.underway = true;
    prepared.exchanging = false;
    prepared.step = 0;
    prepared.number = (*prepared.sequence)++;
    prepared.sent = Bytes();
    if (observer_ != nullptr) observer_->begin({&prepared.call, prepared.number});
    underway_.push_back(&prepared);
    return underway_.size() == first_ + 1 ? progress() : Status();
  }

  Status progress() override {
    while (first_ < underway_.size()) {
      if (!TRY(advance(*underway_[first_], false))) return {};
    }
    return {};
  }

  Status finish(PreparedCollective* collective, WorkCounters& counters) override {
    auto* const last = static_cast<Prepared*>(collective);
    Status done;
    while (first_ < underway_.size() && (last == nullptr || last->underway)) {
      if (const Result<bool> ended = advance(*underway_[first_], true); !ended.ok()) {
        done = ended.error();
        break;
      }
    }
    counters.bytes_sent += uncounted_.count();
    uncounted_ = Bytes();
    return done;
  }

  Result<std::unique_ptr<PreparedTransfer>> prepare(const TransferCall& call, std::byte* at) override {
    TRY(mesh_.find(call.axis));
    auto transfer = std::make_unique<Transfer>();
    transfer->sends = call.sends;
    transfer->peer = static_cast<std::int32_t>(peer_of(call, mesh_, rank()));
    transfer->at = at;
    transfer->bytes = call.bytes();
    const std::string name = name_of(call);
    transfer->stamp.kind = MessageStamp::kTransfers;
    transfer->stamp.step = call.microbatch;
    transfer->stamp.shape = MessageStamp::unpacked(hash64(name)).shape;
    names_[transfer->stamp.shape] = name;
    posted_.reserve(++num_transfers_);
    sent_.reserve(num_transfers_), received_.reserve(num_transfers_);
    return std::unique_ptr<PreparedTransfer>(std::move(transfer));
  }

  Status post(PreparedTransfer& prepared, WorkCounters& counters) override {
    auto& transfer = static_cast<Transfer&>(prepared);
    const auto meets = [&](const Transfer* other) { return transfer.meets(*other) || other == &transfer; };
    if (std::ranges::any_of(posted_, meets)) TRY(finish_transfers());
    transfer.counters = &counters;
    posted_.push_back(&transfer);
    return {};
  }

  Status finish_transfers() override {
    if (posted_.empty()) return {};
    WorkCounters uncounted;
    Status done = finish(nullptr, uncounted);
    if (done.ok()) done = exchange_posted();
    posted_.clear();  // their owners may be gone after an error
    return done;
  }

  void observe(CollectiveObserver* observer) override { observer_ = observer; }

  Status broadcast(std::span<std::byte> bytes, std::int32_t root) override {
    CHECK(root >= 0 && root < num_ranks(), "a broadcast of rank {} of {}", root, num_ranks());
    if (bytes.empty()) return {};
    const Bytes size(bytes.size());
    out_.clear(), in_.clear();
    for (std::int32_t r = 0; r < num_ranks() && rank() == root; ++r) {
      if (r != root) out_.push_back({r, bytes.data(), size, size, size});
    }
    if (rank() != root) in_.push_back({root, bytes.data(), size, size, size});
    return of_hosts(MessageStamp::kHostBroadcast);
  }

  // Each rank sends to every other.
  Status barrier() override {
    static constexpr std::byte kHere{1};
    out_.clear(), in_.clear();
    for (std::int32_t r = 0; r < num_ranks(); ++r) {
      if (r == rank()) continue;
      out_.push_back({r, &kHere, Bytes(1), Bytes(1), Bytes(1)});
      in_.push_back({r, &tokens_[static_cast<std::size_t>(r)], Bytes(1), Bytes(1), Bytes(1)});
    }
    return of_hosts(MessageStamp::kBarrier);
  }

 private:
  Status exchange_posted() {
    sent_.clear(), received_.clear();
    Bytes to_send;
    for (const Transfer* t : posted_) {
      const auto peer = static_cast<std::size_t>(t->peer);
      MessageStamp stamp = t->stamp;
      stamp.sequence = t->sends ? sent_to_[peer]++ : received_from_[peer]++;
      if (t->sends) {
        sent_.push_back({t->peer, t->at, t->bytes, t->bytes, t->bytes, stamp});
        to_send += t->bytes;
      } else {
        Incoming message{t->peer, t->at, t->bytes, t->bytes, t->bytes};
        message.stamp = stamp;
        received_.push_back(message);
      }
    }
    const Bytes before = transport_.bytes_written();
    TRY(transport_.exchange({MessageStamp{0, MessageStamp::kTransfers, 0, 0}, sent_, received_, &names_}));
    const Bytes written = transport_.bytes_written() - before;
    CHECK(written == to_send, "{} B written for transfers of {}", written.count(), to_send.count());
    for (Transfer* t : posted_) {
      if (t->sends) t->counters->bytes_sent += t->bytes.count();
    }
    return {};
  }

  // Advances the first running collective; true when it has ended.
  Result<bool> advance(Prepared& prepared, bool wait) {
    Result<bool> ended = play(prepared, wait);
    if (ended.ok() && !*ended) return false;
    if (observer_ != nullptr) observer_->end({&prepared.call, prepared.number}, ended.ok(), prepared.sent);
    prepared.underway = false;
    if (++first_ == underway_.size() || !ended.ok()) {
      for (; first_ < underway_.size(); ++first_) underway_[first_]->underway = false;
      underway_.clear();
      first_ = 0;
    }
    return ended;
  }

  Result<bool> play(Prepared& prepared, bool wait) {
    while (prepared.step < prepared.steps.size()) {
      const CollectiveStep& step = prepared.steps[prepared.step];
      if (!prepared.exchanging) {
        for (const auto& at_home : step.before) at_home();
        if (!step.out.empty() || !step.in.empty()) {
          MessageStamp stamp = prepared.stamp;
          stamp.sequence = prepared.number;
          stamp.step = step.number;
          TRY(transport_.begin({stamp, step.out, step.in}));
          prepared.exchanging = true;
        }
      }
      if (prepared.exchanging) {
        const Bytes before = transport_.bytes_written();
        const Result<bool> ended = transport_.advance(wait);
        const Bytes sent = transport_.bytes_written() - before;
        prepared.sent += sent;
        uncounted_ += sent;
        if (!ended.ok()) return ended.error();
        if (!*ended) return false;
      }
      prepared.exchanging = false;
      ++prepared.step;
    }
    return true;
  }

  // Exchanges out_ and in_, after all running collectives.
  Status of_hosts(int kind) {
    WorkCounters uncounted;
    TRY(finish(nullptr, uncounted));
    return transport_.exchange({MessageStamp{host_sequence_++, kind, 0, 0}, out_, in_});
  }

  Transport& transport_;
  const Mesh mesh_;
  std::map<std::string, std::uint32_t> sequences_;  // by axes: one counter per group
  std::uint32_t host_sequence_ = 0;
  CollectiveObserver* observer_ = nullptr;
  std::vector<Prepared*> underway_;  // in start order; those before first_ have ended
  std::size_t first_ = 0;
  Bytes uncounted_;  // sent, but not yet in any counters
  std::vector<Transfer*> posted_;
  std::size_t num_transfers_ = 0;
  std::vector<Outgoing> sent_;  // for transfers
  std::vector<Incoming> received_;
  std::vector<std::uint32_t> sent_to_, received_from_;  // number of transfers so far, by rank
  ShapeNames names_;                                    // for transfers
  std::vector<Outgoing> out_;                           // for host operations
  std::vector<Incoming> in_;
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
