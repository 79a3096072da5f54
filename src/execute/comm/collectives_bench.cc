// Benchmark of all_reduce and all_gather of f32 between processes of this machine, over shared memory and over TCP on
// loopback. Gloo's own algorithms over the same TCP run in alternation.
//
//   collectives_bench [ranks=2,4,8] [kinds=all_reduce,all_gather] [from=1024] [to=268435456] [rounds=7] [detail=0]
//   [peers=1] [spin=MICROSECONDS]
//
// A round of one size runs each contestant once (short ones several times) between two barriers. The result is the
// lower quartile over the rounds at rank 0, for each contestant alike: a busy machine makes a run slow, never fast. A
// contestant that takes 4 s is not run again (Gloo's newer ring, of 8 ranks on 2 cores). A ratio is the time of Gloo's
// fastest algorithm over ours. The size of all_gather is that of the gathered result.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "execute/comm/collectives.h"
#include "execute/comm/ring_transport.h"
#include "execute/comm/tcp_transport.h"
#include "ground/net/rendezvous_server.h"

namespace systole {
namespace {

struct Setting {
  std::vector<std::int64_t> ranks{2, 4, 8};
  std::vector<std::string> kinds{"all_reduce", "all_gather"};
  std::int64_t from = 1 << 10, to = 256 << 20;
  int rounds = 7;
  bool detail = false;
  bool peers = true;  // false: only ours
  Seconds spin = RingOptions().spin;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

Setting setting_of(int argc, char** argv) {
  Setting s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], key = word.substr(0, word.find('=')), value = word.substr(word.find('=') + 1);
    if (key == "ranks") {
      s.ranks.clear();
      for (const std::string& n : split(value)) s.ranks.push_back(std::stoll(n));
    }
    if (key == "kinds") s.kinds = split(value);
    if (key == "from") s.from = std::stoll(value);
    if (key == "to") s.to = std::stoll(value);
    if (key == "rounds") s.rounds = std::stoi(value);
    if (key == "detail") s.detail = value != "0";
    if (key == "peers") s.peers = value != "0";
    if (key == "spin") s.spin = Seconds(std::stod(value) * 1e-6);
  }
  return s;
}

// A contestant: a name and a function that runs it once.
struct Contestant {
  std::string name;
  std::function<void()> run;
};

// Where ranks find each other.
struct RendezvousPoint {
  std::string place, folder;
  NetAddress rendezvous;
  RunToken token;
};

class Rank {
 public:
  Rank(std::int32_t rank, std::int32_t n, const RendezvousPoint& point, const Setting& setting)
      : detail_(setting.detail), gloo_(std::make_shared<gloo::rendezvous::Context>(rank, n)) {
    segment_ = Segment::open(point.place, "bench").value();
    add(ring_transport(segment_, rank, {Seconds(60), setting.spin}).value());
    RendezvousClient client = RendezvousClient::connect(point.rendezvous, point.token).value();
    add(tcp_transport(client, rank, n).value());
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(point.folder);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo_->connectFullMesh(store, device);
  }

  // The lower quartile of each contestant's seconds, measured on rank 0.
  std::map<std::string, double> measure(const std::string& kind, std::int64_t bytes, int rounds, bool peers) {
    const auto elements = static_cast<std::size_t>(bytes / 4);
    x_.assign(elements, 1.0F);
    y_.assign(kind == "all_gather" ? elements : 0, 0.0F);
    std::vector<Contestant> all = kind == "all_reduce" ? reducers(elements) : gatherers(elements);
    std::erase_if(all, [&](const Contestant& c) {
      return (!peers && c.name.starts_with("gloo")) || dropped_.contains(kind + c.name);
    });
    std::map<std::string, std::vector<double>> times;
    std::map<std::string, int> repeats;
    for (int round = -1; round < rounds; ++round) {  // the first warms up and sets the repeat count
      for (const Contestant& contestant : all) {
        if (dropped_.contains(kind + contestant.name)) continue;
        const double seconds = time(contestant, round < 0 ? 1 : repeats[contestant.name]);
        if (round >= 0) times[contestant.name].push_back(seconds);
        if (round < 0) repeats[contestant.name] = agreed(std::clamp(static_cast<int>(4e-3 / seconds), 1, 200));
        if (round < 0 && agreed(seconds > kHopeless ? 1 : 0) == 1) dropped_.insert(kind + contestant.name);
      }
    }
    std::map<std::string, double> quarters;
    for (auto& [name, each] : times) {
      std::ranges::sort(each);
      quarters[name] = each[each.size() / 4];
    }
    return quarters;
  }

 private:
  struct Side {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Communicator> communicator;
  };
  void add(std::unique_ptr<Transport> transport) {
    const Mesh mesh = Mesh::make({{"data", transport->num_ranks()}}).value();
    auto communicator = make_communicator(*transport, mesh).value();
    sides_.push_back({std::move(transport), std::move(communicator)});
  }
  Communicator& shm() { return *sides_.front().communicator; }

  static constexpr double kHopeless = 4;  // seconds of one run; then not run again at this size or a larger one

  double time(const Contestant& contestant, int count) {
    if (!shm().barrier().ok()) std::abort();
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) contestant.run();
    if (!shm().barrier().ok()) std::abort();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() / count;
  }

  int agreed(int count) {  // rank 0 decides
    if (!shm().broadcast(std::as_writable_bytes(std::span(&count, 1)), 0).ok()) std::abort();
    return count;
  }

  void add_ours(std::vector<Contestant>& all, const CollectiveCall& call, float* from, float* into) {
    for (Side& side : sides_) {
      const std::shared_ptr<PreparedCollective> prepared =
          side.communicator
              ->prepare(call, reinterpret_cast<std::byte*>(from), reinterpret_cast<std::byte*>(into), nullptr)
              .value();
      all.push_back({fmt::format("{} {}", side.transport->name(), name_of(call.algorithm)),
                     [communicator = side.communicator.get(), prepared] {
                       WorkCounters counters;
                       if (const Status ran = communicator->run(*prepared, counters); !ran.ok()) {
                         std::fprintf(stderr, "%s\n", ran.error().message.c_str());
                         std::abort();
                       }
                     }});
    }
  }

  // The default algorithm; with details also the others.
  std::vector<CollectiveAlgorithm> ours() const {
    using enum CollectiveAlgorithm;
    return detail_ ? std::vector{direct, ring, recursive_halving_doubling} : std::vector{direct};
  }

  std::vector<Contestant> reducers(std::size_t elements) {
    float* x = x_.data();
    CollectiveCall call{
        CollectiveKind::all_reduce, "data", shm().num_ranks(), DType::f32, {static_cast<std::int64_t>(elements)}};
    std::vector<Contestant> all;
    for (const CollectiveAlgorithm algorithm : ours()) {
      call.algorithm = algorithm;
      add_ours(all, call, x, x);
    }
    using Options = gloo::AllreduceOptions;
    for (const auto algorithm : {Options::Algorithm::RING, Options::Algorithm::BCUBE}) {
      const bool ring = algorithm == Options::Algorithm::RING;
      all.push_back({ring ? "gloo ring" : "gloo bcube", [this, x, elements, algorithm] {
                       Options options(gloo_);
                       options.setAlgorithm(algorithm);
                       options.setOutput(x, elements);
                       void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
                       options.setReduceFunction(sum);
                       gloo::allreduce(options);
                     }});
    }
    const auto count = static_cast<int>(elements);
    const auto halving = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(gloo_, std::vector<float*>{x}, count);
    all.push_back({"gloo halving-doubling", [halving] { halving->run(); }});
    const auto chunked = std::make_shared<gloo::AllreduceRingChunked<float>>(gloo_, std::vector<float*>{x}, count);
    all.push_back({"gloo ring chunked", [chunked] { chunked->run(); }});
    return all;
  }

  std::vector<Contestant> gatherers(std::size_t elements) {
    const std::size_t own = elements / static_cast<std::size_t>(shm().num_ranks());
    CollectiveCall call{
        CollectiveKind::all_gather, "data", shm().num_ranks(), DType::f32, {static_cast<std::int64_t>(own)}};
    std::vector<Contestant> all;
    for (const CollectiveAlgorithm algorithm : ours()) {
      call.algorithm = algorithm;
      if (algorithm != CollectiveAlgorithm::recursive_halving_doubling) add_ours(all, call, x_.data(), y_.data());
    }
    all.push_back({"gloo ring", [this, own] {
                     gloo::AllgatherOptions options(gloo_);
                     options.setInput(x_.data(), own);
                     options.setOutput(y_.data(), own * static_cast<std::size_t>(shm().num_ranks()));
                     gloo::allgather(options);
                   }});
    return all;
  }

  std::vector<float> x_, y_;
  std::set<std::string> dropped_;
  bool detail_;
  std::shared_ptr<Segment> segment_;
  std::vector<Side> sides_;  // shared memory, TCP
  std::shared_ptr<gloo::rendezvous::Context> gloo_;
};

struct Ratios {
  double logs = 0, least = std::numeric_limits<double>::infinity();
  int count = 0;
  void add(double ratio) {
    logs += std::log(ratio), ++count;
    least = std::min(least, ratio);
  }
  double mean() const { return count == 0 ? 0 : std::exp(logs / count); }
};

// True when the targets are reached.
bool print_kind(Rank& rank, bool speaks, const Setting& setting, const std::string& kind, std::int32_t n) {
  Ratios tcp, shm, large;  // TCP and shared memory relative to Gloo; shared memory relative to TCP
  for (std::int64_t bytes = setting.from; bytes <= setting.to; bytes *= 4) {
    const bool is_large = bytes >= (16 << 20);
    const int rounds = is_large ? std::min(setting.rounds, 5) : setting.rounds;
    const std::map<std::string, double> quarters = rank.measure(kind, bytes, rounds, setting.peers);
    if (!speaks) continue;
    double gloo = std::numeric_limits<double>::infinity();
    std::string best;
    for (const auto& [name, seconds] : quarters) {
      if (name.starts_with("gloo") && seconds < gloo) gloo = seconds, best = name;
    }
    const double by_shm = quarters.at("shm direct"), by_tcp = quarters.at("tcp direct");
    std::printf(
        "%-10s %d ranks %9lld B  shm %9.1f us  tcp %9.1f us  %-21s %9.1f us  gloo/tcp %5.2f  gloo/shm %7.2f"
        "  tcp/shm %6.2f\n",
        kind.c_str(), n, static_cast<long long>(bytes), by_shm * 1e6, by_tcp * 1e6, best.c_str(), gloo * 1e6,
        gloo / by_tcp, gloo / by_shm, by_tcp / by_shm);
    for (const auto& [name, seconds] : quarters) {
      if (setting.detail) std::printf("      %-30s %10.1f us\n", name.c_str(), seconds * 1e6);
    }
    std::fflush(stdout);
    tcp.add(gloo / by_tcp), shm.add(gloo / by_shm);
    if (is_large) large.add(by_tcp / by_shm);
  }
  if (!speaks || !setting.peers) return true;
  std::printf(
      "%-10s %d ranks: gloo/tcp geometric mean %.2f, least %.2f; gloo/shm %.2f, %.2f; large tcp/shm %.2f, %.2f\n",
      kind.c_str(), n, tcp.mean(), tcp.least, shm.mean(), shm.least, large.mean(), large.least);
  return tcp.mean() >= 1 && tcp.least >= 0.9 && (large.count == 0 || large.mean() >= 2);
}

int bench(const Setting& setting) {
  bool all_reached = true;
  for (const std::int64_t ranks : setting.ranks) {
    const auto n = static_cast<std::int32_t>(ranks);
    char folder[] = "/tmp/systole-bench-XXXXXX";
    if (mkdtemp(folder) == nullptr) return 1;
    const auto segment = Segment::create(n, "bench").value();
    const RunToken token = RunToken::make().value();
    const auto rendezvous = RendezvousServer::start(token).value();
    const RendezvousPoint point{segment->place(), folder, rendezvous->address(), token};
    std::vector<pid_t> children;
    for (std::int32_t r = 0; r < n; ++r) {
      const pid_t child = fork();
      if (child != 0) {
        children.push_back(child);
        continue;
      }
      alarm(600);
      Rank rank(r, n, point, setting);
      bool reached = true;
      for (const std::string& kind : setting.kinds) reached &= print_kind(rank, r == 0, setting, kind, n);
      std::fflush(stdout);
      _exit(reached ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      all_reached &= status == 0;
    }
    std::filesystem::remove_all(folder);
  }
  return all_reached ? 0 : 1;
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) { return systole::bench(systole::setting_of(argc, argv)); }
