// Whole or absent on servers that others wrote: thousands of seeded trials, each a bucket's folder in which one writer
// or two save two steps of a small sharded state while requests fail and the writers may die, and retention drops the
// older one. Then all faults end, and whatever is listed must be whole, bit by bit.
//
// The servers, and what each gets wrong: store_servers.cc. SYSTOLE_TEST_LONG=1 runs 2,000 trials a server, otherwise a
// few. SYSTOLE_TEST_SEED=n begins with the seed n, which alone repeats its trial (with two writers: as far as the order
// of their requests allows).

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <random>
#include <thread>

#include "execute/checkpoint/testing/tiny_ranks.h"
#include "laws/store_servers.h"
#include "laws/test_length.h"

namespace systole::checkpoint {
namespace {

using Random = std::mt19937_64;

constexpr int kTrialsOfABucket = 10;
constexpr Bytes kChunk{320};  // two for the tiny state, and one that never changes

// What happens to the requests of one writer.
class Fate {
 public:
  // `requests`: of a writer that saves twice, about.
  Fate(const StoreServer& server, std::uint64_t seed, std::uint64_t requests) : server_(server), seed_(seed) {
    Random draw(seed);
    constexpr std::uint64_t kShares[] = {0, 20, 80, 200};
    share_ = kShares[draw() % std::size(kShares)];
    if (draw() % 2 == 0) dies_ = 1 + static_cast<std::int64_t>(draw() % requests);
    after_ = draw() % 2 == 0;
    outage_ = draw() % 4 == 0 ? 1 + static_cast<std::int64_t>(draw() % requests) : 0;
    restored_ = outage_ + 1 + static_cast<std::int64_t>(draw() % 40);
  }
  void spare() { dies_ = 0; }
  void calm() { is_calm_ = true; }
  bool is_dead() const { return is_dead_; }

  ProxyFault of(const StubRequest& request, std::int64_t n) {
    using enum ProxyFault;
    if (is_calm_) return none;
    if (dies_ != 0 && n > dies_) return dead;
    is_dead_ = dies_ != 0 && n == dies_;
    if (is_dead_) return after_ ? (server_.takes(request, reply_lost) ? reply_lost : none) : dead;
    Random draw(seed_ * 1'000'003 + static_cast<std::uint64_t>(n));
    ProxyFault fault = none;
    if (draw() % 1000 < share_) fault = static_cast<ProxyFault>(1 + draw() % (kProxyFaults - 1));
    if (outage_ != 0 && n >= outage_ && n < restored_) fault = draw() % 2 == 0 ? unavailable : refused;
    return server_.takes(request, fault) ? fault : none;
  }

 private:
  const StoreServer& server_;
  const std::uint64_t seed_;
  std::uint64_t share_ = 0;  // of 1,000 requests that fail
  std::int64_t dies_ = 0, outage_ = 0, restored_ = 0;
  bool after_ = false;
  std::atomic<bool> is_calm_ = false, is_dead_ = false;
};

// A writer: its store, behind its own proxy.
struct Writer {
  Writer(const StoreServer& server, const std::string& place, std::size_t part, std::uint64_t seed,
         std::uint64_t requests)
      : fate(server, seed, requests),
        proxy(
            server.port, [this](const StubRequest& request, std::int64_t n) { return fate.of(request, n); },
            server.instead),
        access(access_to(server, proxy.url(), part, seed)),
        uri{server.scheme, place} {}

  Result<Folder> open() { return Folder{TRY(open_store(uri, access)), "checkpoints"}; }

  Fate fate;
  FaultyProxy proxy;
  const StoreAccess access;
  const StoreUri uri;
};

HostTensor large_value(std::int64_t step, std::int64_t bytes) {
  HostTensor tensor(DType::i64, {bytes / 8});
  Random draw(static_cast<std::uint64_t>(step));
  for (std::uint64_t& word : tensor.as<std::uint64_t>()) word = draw();
  return tensor;
}

// The state of a step as the shards of two ranks, which one writer or two save.
class State {
 public:
  State(std::int64_t step, TinyCut cut, std::int64_t large) : ranks_(step, 2, cut), large_(large_value(step, large)) {}

  SaveRequest of_all() const {
    SaveRequest all = of(0);
    for (TensorPart& part : of(1).tensors) all.tensors.push_back(std::move(part));
    return all;
  }
  SaveRequest of(int rank) const {
    SaveRequest request = ranks_.request(rank);
    if (large_.size() > 0 && rank == 0) {
      request.tensors.push_back(
          {"large", Role::state, large_.dtype(), large_.shape(), Box::whole(large_.shape()), large_.bytes(), 2});
    }
    return request;
  }
  const HostTensor& large() const { return large_; }

 private:
  TinyRanks ranks_;
  HostTensor large_;
};

// "" if the checkpoint has every bit of its step.
std::string verify(const Checkpoint& checkpoint, std::int64_t large) {
  std::vector<TinyTensor> state = tiny_state(checkpoint.manifest().step);
  if (large > 0) state.push_back({"large", Role::state, large_value(checkpoint.manifest().step, large), 2});
  if (checkpoint.manifest().tensors.size() != state.size()) return "another number of tensors";
  for (const TinyTensor& tensor : state) {
    HostTensor read(tensor.value.dtype(), tensor.value.shape());
    const Status status = checkpoint.read(tensor.name, Box::whole(read.shape()), read.bytes());
    if (!status.ok()) return to_string(status.error());
    if (read != tensor.value) return fmt::format("{} has other values", tensor.name);
  }
  return "";
}

class Trial {
 public:
  Trial(const StoreServer& server, const std::string& bucket, std::uint64_t seed) : draw_(seed) {
    const bool in_parts = draw_() % static_cast<std::uint64_t>(server.large_in) == 0;
    if (in_parts) large_ = server.large;
    const std::size_t part = in_parts || server.scheme == "gs" ? server.part : std::size_t{5} << 20;
    cut_ = static_cast<TinyCut>(draw_() % kTinyCuts);
    const int writers = large_ == 0 && draw_() % 6 == 0 ? 2 : 1;
    const std::uint64_t requests = writers == 2 ? 160 : in_parts && large_ == 0 ? 130 : 70;
    for (int w = 0; w < writers; ++w) {
      writers_.push_back(std::make_unique<Writer>(server, fmt::format("{}/t{}", bucket, seed), part,
                                                  seed * 16 + static_cast<std::uint64_t>(w), requests));
    }
    if (writers == 2) writers_[draw_() % 2]->fate.spare();
    again_ = draw_() % 4 == 0;
  }

  // "" if the law holds.
  std::string run() {
    save_two();
    for (const auto& writer : writers_) {
      writer->proxy.settle();
      writer->fate.calm();
    }
    const Folder folder = writers_[0]->open().value();
    std::string wrong = look(folder);
    if (wrong.empty() && again_) wrong = save_again(folder);
    return wrong;
  }
  std::int64_t faults() const {
    std::int64_t sum = 0;
    for (const auto& writer : writers_) sum += writer->proxy.faults();
    return sum;
  }
  bool was_killed() const {
    return std::ranges::any_of(writers_, [](const auto& writer) { return writer->fate.is_dead(); });
  }
  int whole() const { return whole_; }  // checkpoints that were listed, and had every bit
  std::string story() const {
    std::string text;
    for (const auto& writer : writers_)
      for (const std::string& line : writer->proxy.log()) text += fmt::format("  {}\n", line);
    return text;
  }

 private:
  SaveOptions options(int rank, std::int64_t generation = 1) {
    SaveOptions options;
    options.chunk_bytes = large_ > 0 ? Bytes(large_) : kChunk;
    options.retention.last = 1;
    if (writers_.size() == 2)
      options.group = {rank, generation == 1 ? 2 : 1, "t", generation, &*clock_, Seconds(0.15), Seconds(0.003)};
    return options;
  }

  void save_two() {
    std::vector<std::thread> threads;
    for (std::size_t w = 0; w < writers_.size(); ++w) threads.emplace_back([this, w] { save_two_of(w); });
    for (std::thread& thread : threads) thread.join();
  }
  void save_two_of(std::size_t w) {
    Writer& writer = *writers_[w];
    const int rank = static_cast<int>(w);
    const Result<Folder> folder = writer.open();
    if (!folder.ok()) return;
    if (writers_.size() == 2 && rank == 0) (void)claim(*folder, options(0).group);
    for (std::int64_t number = 1; number <= 2 && !writer.fate.is_dead(); ++number) {
      const State state(number * 10, cut_, large_);
      SaveRequest request = writers_.size() == 2 ? state.of(rank) : state.of_all();
      request.number = number;
      if (save(*folder, request, options(rank)).ok() && rank == 0) said_ = number * 10;
    }
  }

  std::string look(const Folder& folder) {
    const std::vector<std::int64_t> steps = list_steps(folder).value();
    if (said_ > 0 && (steps.empty() || steps.back() < said_))
      return fmt::format("checkpoint {} was said to be saved, and is gone", said_);
    for (const std::int64_t step : steps) {
      const auto opened = open_step(folder, step);
      const std::string wrong = opened.ok() ? verify(*opened, large_) : to_string(opened.error());
      if (!wrong.empty()) return fmt::format("checkpoint {} is torn: {}", step, wrong);
      ++whole_;
    }
    return "";
  }

  // The next process saves, and leaves nothing but that.
  std::string save_again(const Folder& folder) {
    const SaveOptions next = options(0, 2);
    if (!next.group.launch.empty()) claim(folder, next.group).value();
    const auto saved = save(folder, State(30, cut_, large_).of_all(), next);
    if (!saved.ok()) return "after a restart: " + to_string(saved.error());
    if (saved->sweep_error) return "after a restart: " + to_string(*saved->sweep_error);
    said_ = 30;
    if (std::string wrong = look(folder); !wrong.empty()) return "after a restart: " + wrong;
    const ObjectList chunks = folder.store->list("checkpoints/chunks/").value(),
                     manifests = folder.store->list("checkpoints/manifests/").value();
    const std::size_t named = load_manifest(folder, 30).value().chunks.size();
    if (chunks.objects.size() == named && manifests.objects.size() == 1) return "";
    return fmt::format("after a restart: {} manifests, and {} chunks where {} are named", manifests.objects.size(),
                       chunks.objects.size(), named);
  }

  Random draw_;
  std::int64_t large_ = 0;
  TinyCut cut_ = TinyCut::first_dim;
  bool again_ = false;
  std::unique_ptr<Clock> clock_ = real_clock();
  std::vector<std::unique_ptr<Writer>> writers_;
  std::int64_t said_ = 0;
  int whole_ = 0;
};

void campaign(StoreServer server, int few) {
  const int trials = laws::is_long() ? 2000 : few;
  const std::uint64_t first = laws::test_seed();
  std::string bucket;
  std::int64_t faults = 0;
  int killed = 0, torn = 0, whole = 0;
  for (int t = 0; t < trials && torn < 5; ++t) {
    if (t % kTrialsOfABucket == 0) bucket = server.new_bucket(server);
    const std::uint64_t seed = first + static_cast<std::uint64_t>(t);
    Trial trial(server, bucket, seed);
    const std::string wrong = trial.run();
    faults += trial.faults();
    killed += trial.was_killed() ? 1 : 0;
    whole += trial.whole();
    if (wrong.empty()) continue;
    ++torn;
    ADD_FAILURE() << server.name << ", SYSTOLE_TEST_SEED=" << seed << ": " << wrong << "\n" << trial.story();
  }
  std::cout << fmt::format("NOTE {}: {} trials, {} faults, {} killed, {} torn\n", server.name, trials, faults, killed,
                           torn);
  if (trials < 20) return;
  EXPECT_GT(faults, trials);
  EXPECT_GT(killed, trials / 8);
  EXPECT_GT(whole, trials / 2);
}

void campaign_if_there(Result<StoreServer> server) {
  if (!server.ok() && server.error().kind == ErrorKind::not_found) GTEST_SKIP() << server.error().message;
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  campaign(*std::move(server), 30);
}

TEST(StoreCampaign, whole_or_absent_on_fake_gcs_server) { campaign_if_there(start_fake_gcs()); }
TEST(StoreCampaign, whole_or_absent_on_moto) { campaign_if_there(start_moto()); }
TEST(StoreCampaign, whole_or_absent_on_s3s_fs) { campaign_if_there(start_s3s_fs()); }
TEST(StoreCampaignTwins, whole_or_absent_on_the_twin_of_gcs) { campaign(gcs_twin_server(), 100); }
TEST(StoreCampaignTwins, whole_or_absent_on_the_twin_of_s3) { campaign(s3_twin_server(), 100); }

}  // namespace
}  // namespace systole::checkpoint
